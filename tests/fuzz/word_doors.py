"""Doors for what people type: configs, settings of a command line, command lines, prompts."""

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine import capabilities
from engine.base.errors import InputError
from engine.config import keys, lints, presets, toml
from tests.fuzz.door import Door, command
from tests.tui_transformer.loaded import loaded
from tui_transformer.cli.run.sample import SampleSession
from tui_transformer.cli.run.translate import TranslationSession
from tui_transformer.lab.play.prompt import ASKING, SEARCH, SETTINGS, TRANSLATING, WRITING, CommandPrompt, CommandTable

NAMES = st.one_of(st.sampled_from(sorted(keys.all_keys())), st.text(max_size=12))
VALUES = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
        st.sampled_from(["rope", "none", "learned", "cosine", "step", "5 epochs", "all", "decoder", 1, 2, 4, 64, 0.1]),
        st.sampled_from([10**400, -1, 0, 1e308, float("nan"), float("inf"), "\ud800", "x" * 3000, 2**63, "9" * 30]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=5,
)


def nested(flat: dict[str, object]) -> dict[str, object]:
    """Dotted keys as tables."""
    tables: dict[str, object] = {}
    for key, value in flat.items():
        section, dot, name = key.partition(".")
        inner = tables.get(section)
        if dot and isinstance(inner, dict | None):
            tables[section] = {**(inner or {}), name: value}
        else:
            tables[key] = value
    return tables


def config(folder: Path, flat: dict[str, object]) -> None:
    try:
        built = toml.validate(presets.merge({"train": {"steps": 5}}, nested(flat)), "x")
    except InputError as error:
        assert len(str(error)) < 1000
        raise
    capabilities.check(built)
    resolved = built.resolved(vocab_size=64, threads=1, train_tokens=1000)
    list(lints.lint(resolved, 1000))
    assert toml.validate(toml.parse(toml.config_toml(resolved).encode(), "y"), "y") == resolved


def toml_bytes(folder: Path, raw: bytes) -> None:
    toml.parse(raw, "x")


@cache
def commands() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Every command, hidden ones too, and its options."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}

    def walk(one: Any, words: tuple[str, ...]) -> None:
        found[words] = tuple(flag for known in one.params for flag in known.opts if flag.startswith("-"))
        for name, inner in getattr(one, "commands", {}).items():
            walk(inner, (*words, name))

    walk(loaded(), ())
    return found


WORTH = st.one_of(
    st.sampled_from(
        [
            *(
                "demo",
                "baseline",
                "rope",
                "phrasebook",
                "last",
                "cpu",
                "text",
                "att",
                "att.study.toml",
                "en",
                "csv",
                "run",
            ),
            *(
                "model.n_heads=2",
                "train.steps=nan",
                "model.n_heads=1,2,4",
                "train.init_from=x@best",
                "a.b.c=1",
                "=",
                "1",
            ),
            *("-1", "0", "1e999", "9" * 40, "nan", "x", "/", "", "..", "\x00", "\x1b[2J", "\ud800", "/dev/null", "~x"),
            *("x" * 5000, "--", "-", "#", "a,b", "1,2,3", "biographies", "playlets", "tiny-shakespeare", "é界"),
        ]
    ),
    st.text(max_size=12),
    st.integers().map(str),
)


@st.composite
def lines(draw: Any) -> list[str]:
    """A command line: mostly a command with options of its own, sometimes anything."""
    words, flags = draw(st.sampled_from(sorted(commands().items())))
    rest = []
    for _ in range(draw(st.integers(0, 4))):
        rest += [draw(st.sampled_from(flags))] if flags and draw(st.booleans()) else []
        rest += [draw(WORTH)] if draw(st.integers(0, 4)) else []
    return [*words, *rest] if draw(st.integers(0, 9)) else draw(st.permutations([*words, *rest]))


def command_line(folder: Path, words: list[str]) -> None:
    command(*words, codes=(0, 1, 2))


class Session:
    """A prompt with a tiny model behind it; answers are short, whatever length is asked for."""

    def __init__(self, work: Any, settings: dict[str, Any], table: CommandTable, answer: Callable[[str], None]) -> None:
        self.work, self.first, self.answer = work, dict(settings), answer
        self.kept = [*work.writers]
        self.prompt = CommandPrompt(settings, self.bounded, self.actions(), table)

    def actions(self) -> dict[str, Callable[[str], None]]:
        """What the command gives its prompt."""
        names = {
            "align": "align",
            "examples": "examples",
            "run": "take_run",
            "checkpoint": "take_checkpoint",
            "alternatives": "alternatives",
            "surprise": "surprise",
            "vs": "take_second",
        }
        return {name: getattr(self.work, own) for name, own in names.items() if hasattr(self.work, own)}

    def bounded(self, text: str) -> None:
        """An answer of a few tokens."""
        settings = self.prompt.settings
        for name, most in (("length", 6), ("beam", 4), ("nbest", 4)):
            if name in settings:
                settings[name] = min(settings[name], most)
        self.answer(text)

    def take(self, given: list[str]) -> None:
        """Some lines, from the beginning."""
        self.prompt.settings.clear()
        self.prompt.settings.update(self.first)
        self.prompt.done, self.prompt.history[:] = False, []
        for line in given:
            self.prompt.handle_line(line)


@cache
def sessions(folder: Path) -> dict[str, Session]:
    """One for each kind of model."""
    runs = folder / "trained"
    found = {}
    for name, table in (("text", WRITING), ("asked", ASKING)):
        work = SampleSession(runs, "cpu", "last", False)
        work.writers = [work.load(name)]
        settings = dict(work.writers[0].defaults)
        found[name] = Session(work, settings, table, lambda text, w=work, s=settings: w.answer(text, s))
    translating = TranslationSession(runs, "cpu", "last", False)
    translating.use_run("pairs")
    found["pairs"] = Session(translating, translating.settings, TRANSLATING, translating.answer)
    return found


COMMANDS = sorted({*SETTINGS, *SEARCH, *WRITING.commands, *TRANSLATING.commands, "exit", "?", "nothing", ""})
ARGUMENTS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                " ",
                "0",
                "1",
                "-1",
                "2",
                "3",
                "1e999",
                "nan",
                "inf",
                "9" * 40,
                "1.5",
                "x",
                "best",
                "last",
                "6",
                "text",
            ),
            *(
                "asked",
                "pairs",
                "..",
                "/",
                "\x00",
                "\x1b[2J",
                "\u202e",
                "é界",
                "²",
                "٣",
                "0x10",
                "1_0",
                "0 0",
                "0 0 self",
            ),
            *("9" * 5000, "step-00000006", "average", "00000006", "\ud800"),
        ]
    ),
    st.text(max_size=12),
    st.integers().map(str),
)
LINES = st.one_of(
    st.builds(lambda name, argument: f"/{name} {argument}", st.sampled_from(COMMANDS), ARGUMENTS),
    st.builds(lambda name, argument: f"/{name} {argument}", st.sampled_from(COMMANDS), ARGUMENTS),
    st.sampled_from(
        ["examples", "quit", " exit ", "ROMEO:", "I see the dog.", "Where was Ada born?", "\t", "___", "a ___ b"]
    ),
    st.text(max_size=30),
    st.builds(
        lambda text, count: text * count,
        st.sampled_from(["a", "dog ", "\x00", "界", "___", "\n"]),
        st.integers(1, 20_000),
    ),
)


def prompted(name: str) -> Callable[[Path, list[str]], None]:
    """Lines at the prompt of one kind of model."""

    def knock(folder: Path, given: list[str]) -> None:
        with quiet():
            session = sessions(folder)[name]
            session.take(given)
            work = session.work
            if work.checkpoint != "last" or [*map(id, work.writers)] != [*map(id, session.kept)]:
                work.checkpoint = "last"
                work.use_run(name)
                if work.__class__ is not TranslationSession:
                    work.use_second_run("")
                session.kept = [*work.writers]

    return knock


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing on the screen."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


_LISTS = st.lists(LINES, min_size=1, max_size=4)
LARGE_COUNT = ["a", "/alternatives " + "9" * 5000]
LINE_FAULTS = (["measure-study"], ["data", "show", ""], ["data", "show", "x/" * 3000])
WORD_DOORS = {
    "configs: generated tables": Door(st.dictionaries(NAMES, VALUES, max_size=6), config),
    "configs: bytes": Door(st.binary(max_size=300), toml_bytes),
    "command lines": Door(lines(), command_line, once=LINE_FAULTS),
    "prompts: a text's": Door(_LISTS, prompted("text"), once=(LARGE_COUNT,)),
    "prompts: of questions": Door(_LISTS, prompted("asked"), once=(LARGE_COUNT,)),
    "prompts: a translation's": Door(_LISTS, prompted("pairs"), once=(["a" * 20_000],)),
}
