"""Every text that people read is in the catalogue: a text of two words or more outside it is here, with the reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.catalogue import KEYWORDS, ROOT, command_help, messages
from tui_transformer.cli.show import bench
from tui_transformer.cli.show.node import DONE, SCRIPT

PROSE = re.compile(r"[A-Za-z]{2,}[,:;.?!)'’]* [(‘“]?[A-Za-z]{2,}")
SHOWN = {*(name.rpartition(".")[2] for name in KEYWORDS), "Doc"}  # calls whose texts the catalogue has
# Calls that read, compare or log texts, and never show them.
READS = {
    *("compile", "fullmatch", "match", "search", "sub", "findall", "split", "partition", "startswith", "removeprefix"),
    *("replace", "index", "debug", "info", "warning", "exception"),
    *("literal_eval", "query_one", "query", "get", "stylize", "part_field"),
}
STYLES = re.compile(r"(not |on |bold|dim|italic|underline|reverse|red|green|yellow|\$[\w-]+|\{\}| )+$")
NAMED = {"citation", "paper", "formula", "classes", "style", "styles", "id", "key", "keys", "va", "loc"}  # arguments
CONSTANTS = {"DEFAULT_CSS", "CSS", "BINDINGS"}

# Whole files: what they have is no text of the program.
FILES = {
    "engine/data/synthetic": "words of the generated corpora, and names of their grammars' states",
    "engine/data/documents/named.py": "sentences of a generated corpus",
    "engine/training/small_corpora.py": "sentences of small corpora, which only checks read",
    "engine/config/schemes.py": "papers",
    "tui_transformer/lab/exports/source.py": "comments of a program that is written out, which are English",
    "tui_transformer/lab/reports/figures/style.py": "names of fonts",
    "tui_transformer/msgfmt.py": "mistakes in the catalogue itself, which cannot translate them",
}
LOOKED_UP = "looked up, never shown"
RECORDED = "recorded, and translated by `tr`"
EVENT = "the name of an event, recorded"
EXPORTED = "a head of a table that is exported, in English"
TYPED = "typed as it is"
TORCHS = "as torch says it"
SHELL = "a script for a shell"
WORKER = "the name of a worker, for developers"
PROMPT = "a prompt for a model that reads English"
# Single texts, by file; `{}` is a gap.
TEXTS = {
    "engine/data/labelled/by_path.py": {"class index": "a column's name"},
    "engine/model/size.py": {"as it is": LOOKED_UP, "in the mask": LOOKED_UP},
    "engine/proofs/device/memory.py": {"CUDA out of memory": TORCHS},
    "engine/proofs/device/resuming.py": {"CUDA error: unspecified launch failure": TORCHS},
    "engine/training/assemble.py": {"damaged checkpoint": EVENT, "begun again": EVENT},
    "engine/model/devices.py": {"cpu family": "a field of /proc/cpuinfo"},
    "engine/tasks/translation.py": {
        "--set model.context_length={}": TYPED,
        " --set model.source_length={}": TYPED,
    },
    "engine/proofs/verify/repeats.py": {"is NaN or infinite": LOOKED_UP, "is not a number": LOOKED_UP},
    "tui_transformer/cli/show/bench.py": dict.fromkeys(
        (
            *(bench.MARK, bench.MEMORY_TITLE, bench.MEMORY_NOTE, "{}, {}, one thread, torch {}"),
            *("tui-transformer bench --case memory --size all --write docs/benchmarks.md", "largest batch"),
            *("estimate, MiB", "measured, MiB"),
        ),
        "a page of the documentation, which is English",
    ),
    "tui_transformer/cli/show/data.py": {"first use": LOOKED_UP},
    "tui_transformer/cli/mistyped.py": {"No such command": "typer's words, looked up", "data fetch": TYPED},
    "tui_transformer/cli/run/repl.py": {"tab: complete": "a setting of readline"},
    "tui_transformer/cli/show/node.py": dict.fromkeys((DONE, SCRIPT), SHELL),
    "tui_transformer/studio/responsiveness.py": {"training, fp32": RECORDED},
    "tui_transformer/lab/analysis/export.py": dict.fromkeys(
        (
            *("nats per {}", "nats, per the unit in each row"),
            "% \\input this where the table is to stand; it needs no package.",
        ),
        EXPORTED,
    ),
    "tui_transformer/lab/analysis/group_columns.py": dict.fromkeys(
        (
            *("verdict with its numbers", "seeds, in words", ", paired by seed", ", half-width of the 95 % interval"),
            *(", seeds in common", ", p (exact sign-flip test)", ", correlation over seeds"),
            *("{}, half-width of the 95 % interval", "{}, {} end of the 95 % interval"),
        ),
        EXPORTED,
    ),
    "tui_transformer/lab/work/launchers.py": {"#!/bin/bash\n# One worker of the study {}.\n{}\n": SHELL},
    "engine/config/tasks.py": {
        "'Where was Ada Lovelace born?'": PROMPT,
        "'Ada Lovelace was born in ___.'": PROMPT,
    },
    "tui_transformer/lab/reports/figures/bars.py": {"offset points": "a unit of matplotlib"},
    "tui_transformer/lab/reports/paper.py": dict.fromkeys(
        (*("pip install -r requirements.txt", "bash scripts/run.sh", "bash scripts/run.sh --steps 10"),),
        TYPED,
    ),
    "tui_transformer/studio/compare/pane.py": {"compare the runs": WORKER},
    "tui_transformer/studio/shared/keys.py": {"tab shift+tab": "keys"},
    "tui_transformer/studio/train/pane.py": {"look at the runs": WORKER},
}

# Literals that fill gaps of messages, and are no words there.
GAPS = {
    ("engine/proofs/bench/peers.py", "against"),  # an option
    ("engine/data/parallel/by_path.py", "de"),  # languages, as files are named
    ("engine/data/parallel/by_path.py", "en"),
    ("tui_transformer/lab/design/study_draft.py", "study"),  # names that a message is made with, and never shown
    ("tui_transformer/lab/design/study_draft.py", "this"),
}


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file that are in no call of the catalogue, nor only read; `{}` is a gap."""
    tree = ast.parse(path.read_bytes())
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    known = {*command_help(tree)}
    for node in ast.walk(tree):
        text = _text(node) if node not in known else ""
        if text and PROSE.search(text) and not STYLES.match(text) and not _allowed(node, above):
            yield node.lineno, text


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def _allowed(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    inner = node
    while (outer := above.get(inner)) is not None:
        if isinstance(outer, ast.JoinedStr | ast.Expr | ast.Compare | ast.Assert) and inner is node:
            return True  # a part of a text, a docstring, compared, for developers
        if isinstance(outer, ast.Subscript) and outer.slice is inner:
            return True
        if isinstance(outer, ast.Dict) and inner in outer.keys and _text(inner):
            return True
        if isinstance(outer, ast.keyword) and outer.arg in NAMED:
            return True
        if isinstance(outer, ast.arg) or inner in (getattr(outer, "returns", 0), getattr(outer, "annotation", 0)):
            return True  # a type
        if isinstance(outer, ast.Assign | ast.AnnAssign):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            if any(ast.unparse(target) in CONSTANTS for target in targets):
                return True
        if isinstance(outer, ast.Call):
            name = ast.unparse(outer.func).rpartition(".")[2]
            if name in SHOWN | READS and (name != "Rule" or inner is node):  # a rule's functions have texts too
                return True
        inner = outer
    return False


# Of runs or stages that train, wait, pause or were stopped, never failed: there "is failed" would be wrong.
OF_LIVE_RUNS = {
    "run '{name}' is {state}; verify it once it has ended",
    "run '{name}' is {state}; stop it before you rename it",
    "run '{name}' is {state}; stop it before you delete it",
    "its stage '{stage}' is {state}",
}


def test_no_sentence_says_that_a_run_is_failed() -> None:
    assert {text for _, text in messages() if isinstance(text, str) and "is {state}" in text} == {
        *OF_LIVE_RUNS,
        *(text for _, text in messages() if isinstance(text, str) and "state is {state}" in text),
    }


def gap_texts(path: Path) -> Iterator[tuple[int, str]]:
    """The literals that fill gaps of a file's messages: they stay English in every language."""
    for call in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in KEYWORDS:
            for value in (keyword.value for keyword in call.keywords):
                yield from ((value.lineno, text) for text in _literals(value) if re.search("[A-Za-z]{2}", text))


def _literals(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.IfExp | ast.BoolOp | ast.BinOp):
        for part in ast.iter_child_nodes(node):
            yield from _literals(part) if part is not getattr(node, "test", None) else ()
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    else:
        yield from filter(None, [_text(node)])


def python_files() -> list[Path]:
    return sorted(path for folder in ("engine", "tui_transformer") for path in (ROOT / folder).rglob("*.py"))


def test_every_text_that_people_read_is_in_the_catalogue() -> None:
    found, used = [], set[tuple[str, str]]()
    known = {text for _, text in messages() if isinstance(text, str)}  # used again as recorded, and translated by `tr`
    for path in python_files():
        where = path.relative_to(ROOT).as_posix()
        if any(where.startswith(plain) for plain in FILES):
            continue
        for line, text in prose(path):
            if text in TEXTS.get(where, {}):
                used.add((where, text))
            elif text not in known:
                found.append(f"{where}:{line}: {text[:100]!r}")
    assert not found, "wrap them in tr(…), trn(…) or Message(…), or say here why not:\n" + "\n".join(found)
    assert used == {(where, text) for where, texts in TEXTS.items() for text in texts}, "no longer needed here"


def test_no_word_in_a_translated_sentence_stays_english() -> None:
    found = set()
    for path in python_files():
        for _, text in gap_texts(path):
            if not text.startswith("--"):  # an option, typed as it is
                found.add((path.relative_to(ROOT).as_posix(), text))
    assert found == GAPS, "fill the gaps of messages with messages, or say here why not"


# Packages whose modules show texts: none is translated when one is imported.
LATE = ("tui_transformer/cli", "tui_transformer/studio")
TRANSLATES = {"tr", "trn", "translate", "comma_separated", "join_and", "join_or"}


def imported(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: all but the bodies of functions."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        parts: list[ast.AST] = [*node.decorator_list, node.args, *([node.returns] if node.returns else [])]
    else:
        yield node
        parts = [] if isinstance(node, ast.Lambda) else [*ast.iter_child_nodes(node)]
    for part in parts:
        yield from imported(part)


def test_no_text_is_translated_before_it_is_shown() -> None:
    """A text that is translated when its module is imported would stay in the language of that moment."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in LATE
        for path in (ROOT / folder).rglob("*.py")
        for node in imported(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in TRANSLATES
    }
    assert not found, "make it a Message, and call tr(…) where it is shown"


def test_what_an_import_translates_is_found() -> None:
    tree = ast.parse("@mark(a())\ndef f(x: b() = c()) -> d():\n  g()\nclass C:\n  y = e(lambda: g())\n  def h(s): g()")
    names = {ast.unparse(node.func) for node in imported(tree) if isinstance(node, ast.Call)}
    assert names == {"mark", *"abcde"}
