"""The catalogue of messages: `python -m tests.catalogue` brings every language up to date with the code.

Messages are the texts in `tr(…)`, `trn(…)`, `Message(…)` and the other calls in `KEYWORDS`, the sentences on settings
in `Doc(…)`, the docstrings, options and examples of commands, and the texts of a few TOML files. A message whose
translation is missing has an empty `msgstr` in `messages.po`; write it there and run this again.
"""

import ast
import io
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from engine.base.language import CONTEXT_END
from tui_transformer.catalogues import FOLDER
from tui_transformer.languages import LANGUAGES

ROOT = Path(__file__).parent.parent
KEYWORDS = {  # how many texts of a call are one message
    **dict.fromkeys(("tr", "Message", "Rule", "translate", "say"), 1),
    **dict.fromkeys(("context.say", "context.say_in_pictures", "context.paragraph"), 1),
    **dict.fromkeys(("trn", "Message.counted", "Message.in_context"), 2),
    "context.headings": 1,  # each of which is one, in the context `heading`
}
EVERY = ("*",)  # of a file's strings
TABLES = {  # TOML files, and which of their strings are read by people
    "engine/data/corpora.toml": ("description",),
    "presets/*.toml": ("description",),
    "presets/studies/*.toml": ("description", "why"),
    "tui_transformer/lab/records/badges.toml": ("means", "advice", "alarm", "alarm_of_one"),
    "tui_transformer/studio/shared/keys.toml": ("description", "tooltip", "groups", "mouse", "words"),
    "tui_transformer/lab/reports/paper.toml": EVERY,
    "tui_transformer/lab/play/commands.toml": ("what", "argument", "why_not"),
}
DATE = datetime(2026, 11, 25, tzinfo=UTC)  # in every header: a catalogue depends on its messages alone
# The file, and its text, after its context if it has one, or its texts.
Message = tuple[str, str | tuple[str, str]]


@cache
def messages() -> tuple[Message, ...]:
    """Return all messages, file by file."""
    return tuple(_messages())


def _messages() -> Iterator[Message]:
    for path in sorted(file for folder in ("engine", "tui_transformer") for file in (ROOT / folder).rglob("*.py")):
        where, tree = path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes())
        if where != "engine/base/language.py":
            yield from ((where, text) for text in _calls(tree))
        if where.startswith("tui_transformer/cli/"):
            yield from ((where, text) for text in _command_docstrings(tree))
        if where.startswith("engine/config/"):
            yield from ((where, text) for text in _says(tree))
    for pattern, keys in TABLES.items():
        for path in sorted(ROOT.glob(pattern)):
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            yield from ((path.relative_to(ROOT).as_posix(), text) for text in _texts(tables, keys))


def _calls(tree: ast.Module) -> Iterator[str | tuple[str, str]]:
    """Yield the texts of calls, in the order of the file; a text that is no literal is one of another call."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in KEYWORDS]
    nodes: list[ast.Call | ast.Constant] = [*calls, *command_help(tree)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Constant):
            yield from _literals(node)
            continue
        texts = [list(_literals(part)) for part in node.args]
        name, texts = ast.unparse(node.func), [found for found in texts if found]
        if name == "context.headings":
            yield from ("heading" + CONTEXT_END + text for found in texts for text in found)
            continue
        if len(texts) < KEYWORDS[name]:
            continue
        if name == "Message.in_context":
            yield from (texts[0][0] + CONTEXT_END + text for text in texts[1])
        elif KEYWORDS[name] == 1:
            yield from texts[0]
        else:
            yield texts[0][0], texts[1][0]


def command_help(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the help of options and the texts of examples, which are translated as a whole command is."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        parts: list[ast.expr] = []
        if ast.unparse(call.func).startswith("typer."):
            parts = [part.value for part in call.keywords if part.arg in ("help", "epilog")]
        elif ast.unparse(call.func) == "examples":
            parts = [text for part in call.args if isinstance(part, ast.Dict) for text in part.values]
        yield from (part for part in parts if isinstance(part, ast.Constant))


def _literals(node: ast.AST) -> Iterator[str]:
    """Yield a literal text, or those of `"…" if … else "…"`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_literals(node.body), *_literals(node.orelse))


def _says(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Doc":
            for part in node.args:
                said = ast.literal_eval(part) if isinstance(part, ast.Constant | ast.Dict) else ""
                yield from [said] if isinstance(said, str) else said.values()


def _command_docstrings(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marks = {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list}
        if marks & {"command", "app.command"} and (text := ast.get_docstring(node, clean=False)):
            yield cleandoc(text)


def _texts(table: dict[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        if key in ("groups", "mouse", "words"):  # by pane: titles, or signs, and what they stand for
            for part in value.values():
                for sign, text in part.items():
                    yield sign
                    yield from [text] if isinstance(text, str) else []
        elif isinstance(value, dict):
            yield from value.values() if key in keys else _texts(value, keys)
        elif isinstance(value, list):
            for part in value:
                yield from _texts(part, keys) if isinstance(part, dict) else ()
        elif (key in keys or keys is EVERY) and isinstance(value, str):
            yield value


def updated(code: str) -> Catalog:
    """Return a language's catalogue with the code's messages, and the translations that `messages.po` has for them."""
    file = FOLDER / code / "LC_MESSAGES" / "messages.po"
    with file.open("rb") as old:
        known = read_po(old, locale=code)
    found = Catalog(locale=code, project="tui-transformer", charset="utf-8", fuzzy=False)
    found.header_comment = "# The messages of tui-transformer, and what they are in another language."
    found.creation_date = found.revision_date = DATE
    for where, text in messages():
        if text:
            context, _, text = ("", "", text) if isinstance(text, tuple) else text.rpartition(CONTEXT_END)
            before = known.get(text[0] if isinstance(text, tuple) else text, context or None)
            said = before.string if before is not None else ""
            found.add(text, said, locations=[(where, None)], context=context or None)
    return found


def as_po(catalogue: Catalog) -> bytes:
    made = io.BytesIO()
    write_po(made, catalogue, width=0, include_lineno=False)
    return made.getvalue()


def main() -> int:
    missing = 0
    for code in LANGUAGES[1:]:
        catalogue, folder = updated(code), FOLDER / code / "LC_MESSAGES"
        (folder / "messages.po").write_bytes(as_po(catalogue))
        empty = [message.id for message in catalogue if message.id and not any(message.string)]
        print(f"{code}: {len(catalogue):,} messages, {len(empty)} without a translation")
        missing += len(empty)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
