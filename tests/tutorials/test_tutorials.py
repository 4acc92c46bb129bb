"""Every command of every tutorial works, in its order; what the pages show is of the form that commands print.

In CI training is shortened by settings that stand here and not in the pages; a slow test runs them as written.
"""

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engine.data.synthetic.phrasebook import corpus as phrasebook
from tests.tutorials.page import Change, Commands, File, applied, commands, steps
from tests.tutorials.terminal import ROOT, Terminal
from tests.waiting import PATIENCE

FOLDER = ROOT / "docs" / "tutorials"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")
IN_CLONE = ("your-own-attention.md",)  # typed in a clone; the others in any folder
CLONED = ("engine", "tui_transformer", "presets", "tests", "pyproject.toml")
SMALL = ("model.n_layers=1", "model.d_model=16", "evaluation.sample_length=8", "optimizer.warmup=2")
OFTEN = ("train.steps=10", "evaluation.every=10", "evaluation.sample_every=10", "checkpoint.every=5")
Short = Mapping[str, Sequence[str]]


def settings(*changes: str) -> tuple[str, ...]:
    return tuple(word for change in (*SMALL, *OFTEN, "train.threads=1", *changes) for word in ("--set", change))


PLAYLETS = settings("data.corpus_size=20000", "train.batch_size=4", "model.context_length=64")
OWN_TEXT = settings("data.validation_fraction=0.02", "train.batch_size=4", "model.context_length=32")
READ = settings("evaluation.probes=false", "train.batch_size=8")
PHRASES = settings("data.corpus_size=2000", "data.bpe_size=300", "train.batch_tokens=200", "evaluation.translations=8")
# To be interrupted.
SEEN = ("train.steps=200", "evaluation.every=100", "evaluation.sample_every=200", "checkpoint.every=50")
LONGER = (*PLAYLETS, *(word for change in SEEN for word in ("--set", change)))
SHORT: dict[str, Short] = {
    "your-own-attention.md": {"check": PLAYLETS, "ablate": PLAYLETS, "pytest": ("-k", "decoder-rope-sigmoid")},
    "laptop-to-cluster.md": {"run": LONGER, "run --queue": PLAYLETS},
    "translate.md": {"run": PHRASES},
    "pretrain-finetune.md": {"run": READ, "ablate": (*READ, "--seeds", "2")},
    "reproducible-report.md": {"ablate": (*OWN_TEXT, "--seeds", "2")},
    "first-ablation.md": {"run": PLAYLETS, "ablate": PLAYLETS},
}
VERDICT = r"better|worse|no difference|inconclusive"
# What commands print in one form whatever the training: of a line that is shown there must be one, with the same names.
FORMS = [
    r"study (?P<study>\S+) on (?P<base>\S+): \d+ variants × \d+ seeds .*= \d+ runs",
    r"primary measure: (?P<measure>\S+); all measures share one error rate of 5 %",
    rf"(?P<variant>[\w-]+?)(\.s\d+)?: ([\w ]+: )?({VERDICT}).*\(.*\d+ seeds?\)",
    r"(?P<variant>[\w-]+?)(\.s\d+)?: the baseline \(\d+ seeds?\)",
    rf"(?P<variant>[\w-]+?)(\.s\d+)? .*[✗✓=~] ({VERDICT})",
    r"(?P<run>[\w.-]+) +\d\.\d{4} +[-+]\d\.\d{4} +one seed: inconclusive",
    r"(?P<run>[\w.-]+) +(?P<state>queued|running|lost|interrupted|finished) ",
    r"(\(nothing\) )?probability \d\.\d+; then ",
    r"validation loss \d+\.\d{4} nats per (?P<unit>\w+)",
]


@pytest.mark.usefixtures("minimal_leak_probe", "no_self_check")  # the page in a clone has its own program, which checks
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says_in_short(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TUTORIAL_TASKS", "2")
    monkeypatch.setattr(phrasebook, "DEFAULT_SIZE", 2_000)  # which `data show` shows
    play(page, tmp_path, SHORT[page.name])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says_as_written(page: Path, tmp_path) -> None:
    play(page, tmp_path, None)


def play(page: Path, place: Path, short: Short | None) -> None:
    """Take the steps of a page, and hold what it shows against what came."""
    folder = place / "tui-transformer"
    if page.name in IN_CLONE:
        for name in CLONED:
            one = ROOT / name
            (shutil.copytree if one.is_dir() else shutil.copy2)(one, folder / name)
    else:
        folder.mkdir()
    source = folder if page.name in IN_CLONE else ROOT
    terminal = Terminal(folder, place / "home", source, short, longest=PATIENCE if short is not None else 3600.0)
    for step in steps(page):
        if isinstance(step, Commands):
            take(step, terminal, page)
        elif isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            path = folder / step.name
            path.write_text(applied(step, path.read_text(encoding="utf-8")), encoding="utf-8")


def take(step: Commands, terminal: Terminal, page: Path) -> None:
    printed = []
    for command in step.commands:
        began = time.monotonic()
        said = terminal.run(command, step.typed if command == step.commands[-1] else ())
        print(f"{page.name}, line {step.line}: {command}  ({time.monotonic() - began:.1f} s)\n{said.text}")
        assert (said.code == 0) != command.startswith("timeout"), f"{command} ended with {said.code}:\n{said.text}"
        printed.append(said.text)
    where, whole = f"{page.name}, line {step.line}", terminal.short is None
    assert_of_this_form(step.shown, "\n".join(printed), where, whole=whole)


def assert_of_this_form(shown: Sequence[str], printed: str, where: str, *, whole: bool) -> None:
    """Every line of a form that is shown was printed, with the same names, and so was some line but for its numbers.

    `whole`: half of them were, whatever is drawn, sampled or translated.
    """
    lines = [line.strip() for line in printed.splitlines()]
    shapes, same = {shape(line) for line in lines}, 0
    for line in shown:
        known = shape(line) in shapes
        for form in FORMS:
            if (match := re.match(form, line.strip())) is not None:
                others = (re.match(form, other) for other in lines)
                known = any(other is not None and other.groupdict() == match.groupdict() for other in others)
                assert known, f"{where}: nothing was printed of the form of\n{line}\nbut this:\n{printed}"
        same += known
    needed = len(shown) / 2 if whole else 1
    assert same >= needed or not shown, f"{where}: nothing like this was printed:\n{shown}\nbut this:\n{printed}"


def shape(line: str) -> str:
    """A line without its numbers, and without how far apart its words are."""
    return re.sub(r"[\d.,:]*\d( [kM]\b)?", "0", re.sub(r"[-+–<> ]+", " ", line)).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_says_what_it_gives_how_long_it_takes_and_where_next(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    first = text.split("\n\n")[1]
    assert first.startswith("By the end, you will have") and re.search(
        r"(?:It|[Tt]he tutorial|Training) takes .*\b(minutes|hour|hours)\b", first, re.DOTALL
    )
    assert text.rstrip().split("\n## ")[-1].startswith("Where next\n")
    assert 80 <= text.count("\n") <= 160


def test_the_index_leads_to_every_tutorial() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", text)) == {page.name for page in PAGES} == set(SHORT)


def test_every_link_of_a_tutorial_leads_to_a_page() -> None:
    for page in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target.partition("#")[0]).is_file(), (page, target)


def test_a_command_that_nobody_knows_fails(tmp_path) -> None:
    terminal = Terminal(tmp_path, tmp_path / "home", short={})
    for command in ("frobnicate --all", "ls && frobnicate", "ls | frobnicate"):
        with pytest.raises(AssertionError, match="nobody knows how to run frobnicate"):
            terminal.run(command)


def test_a_page_is_read_as_its_steps(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Write `a.toml`:\n\n```toml\nx = 1\n```\n\n```\nls    # a comment\n# another\ncat a.toml \\\n    b\n```\n\n"
        "```text\nx = 1\n> quit\n```\n\nIn `b.py`:\n\n```diff\n one\n-two\n+three\n```\n"
    )
    file, run, change = steps(page)
    assert file == File(3, "a.toml", "x = 1\n")
    assert isinstance(run, Commands) and run.commands == ["ls", "cat a.toml b"]
    assert (run.typed, run.shown) == (["quit"], ["x = 1"])
    assert isinstance(change, Change) and (change.name, change.before) == ("b.py", "one\ntwo\n")
    assert applied(change, "zero\none\ntwo\n") == "zero\none\nthree\n"
    for text in ("one\n", "one\ntwo\none\ntwo\n"):
        with pytest.raises(ValueError, match="the lines to change are there"):
            applied(change, text)
    assert list(commands("a '#b' # c")) == ["a '#b'"]
    for wrong in ("```text\nx\n```\n", "```perl\nx\n```\n", "no name\n\n```toml\nx\n```\n"):
        page.write_text(wrong)
        with pytest.raises(ValueError, match="page.md|no file is named"):
            list(steps(page))
