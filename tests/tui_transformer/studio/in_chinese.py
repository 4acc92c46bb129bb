"""The studio's screens in Chinese as text: `python -m tests.tui_transformer.studio.in_chinese WIDTH HEIGHT FOLDER …`.

A process of its own, for module-level texts are translated when their module is imported. FOLDER is written to: the
runs that are shown, and each scene of the walks that are named after it as NAME.txt, with the faults of its layout as
NAME.faults.

A studio is walked through from scene to scene: the keys of one go on from the screen before.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.waiting import until
from tui_transformer import languages

Scene = tuple[str, tuple[str, ...]]  # a name, "" for a screen that is not kept; the keys that lead there
# What the engine would have recorded, in place of the fixtures' words.
RECORDED = {
    "no later token is seen (256 of 256 positions tried)": "the model sees no later token (256 of 256 positions tried)",
    "the loss at 12 of 256 places sees a later token": "a position's prediction depends on its answer or on what "
    "follows it (gradient 0.12, change 0.41): the model can read what it has to predict, so its scores are meaningless",
    "the loss is not finite at step 310 (NaN)": "the loss is NaN or infinite at step 310; the last good state is "
    "step 309",
    "the loss is not a number": "the loss is NaN or infinite at step 310; the last good state is step 309",
}
TALE = "门已关上，今夜无人可过。\n朱丽叶：那就等月亮落下。\n"
ENDS = ("escape",)
FIND = ("slash", "ctrl+u")  # a preset

NONE: list[Scene] = [
    ("welcome", ()),
    ("no-run-design", ENDS),
    ("no-run-train", ("2",)),
    ("no-run-compare", ("3",)),
    ("no-run-playground", ("4",)),
    ("design", ("1",)),
    ("design-values", ("tab", "enter")),
    ("design-number", ("escape", "end", "enter")),
    ("design-changed", ("escape", *FIND, *"win16", "enter", "enter", "down", "down", "right")),
    ("design-attention", ("down", "enter")),
    ("design-any-setting", ("escape", "e", *"model.n_heads=7")),
    ("design-base", ("escape", "B")),
    ("design-refused", ("escape", "e", *"model.attention=linear", "enter")),
    ("design-long", ("escape", *FIND, *"baseline", "enter", "f5")),
    ("design-no-corpus", ("escape", *FIND, *"multi30k", "enter")),
    ("design-encoder-decoder", ("escape", *FIND, *"copy", "enter")),
    ("design-name", (*FIND, *"demo", "enter", "n")),
    ("design-save", ("escape", "ctrl+s")),
    ("study", ("escape", "v")),
    ("study-presets", ("P",)),
    ("study-values", ("escape", "v")),
    ("study-seeds", ("escape", "number_sign")),
    ("study-load", ("escape", "L")),
    ("study-loaded", ("enter",)),
    ("study-loaded-second", ("down",)),
    ("study-rename", ("n",)),
    ("study-help", ("escape", "question_mark")),
    ("help-design", ("escape", "escape", "question_mark")),
]
CORPORA: list[Scene] = [  # that take seconds to make
    ("design-phrasebook", ("1", *FIND, *"phrasebook", "enter", "enter", "end")),
    ("design-documents", ("escape", *FIND, *"biographies-pretrain", "enter")),
    ("design-report", (*FIND, *"report-encoder-sparse", "enter")),
]
RUNS: list[Scene] = [
    ("train-starting", ("2", "home")),
    ("train-running", ("down",)),
    ("train-paused", ("down",)),
    ("train-queued", ("down",)),
    ("train-interrupted", ("down", "down")),
    ("train-lost", ("down",)),
    ("train-stopped", ("down",)),
    ("train-failed", ("down",)),
    ("train-leak", ("down",)),
    ("train-finished", ("down",)),
    ("train-checks", ("b",)),
    ("train-log", ("l",)),
    ("train-refused", ("r",)),
    ("train-log-y", ("W", "y", "x")),
    ("train-zoomed", ("z", "plus")),
    ("train-next-chart", ("escape", "escape", "y", "x", "c")),
    ("train-delete", ("delete",)),
    ("train-rename", ("escape", "n")),
    ("help-train", ("escape", "question_mark")),
    ("compare", ("escape", "3")),
    ("compare-about", ("home", "enter")),
    ("compare-about-end", ("end",)),
    ("compare-right", ("escape", "right", "right", "right", "right", "right", "right")),
    ("compare-baseline", ("home", "p", "down")),
    ("compare-about-second", ("enter",)),
    ("compare-variants", ("escape", "v")),
    ("compare-filter", ("v", "slash", *"loss<2")),
    ("compare-mistake", (*"x>",)),
    ("compare-note", ("escape", "escape", "home", "N")),
    ("compare-tags", ("escape", "g")),
    ("compare-export", ("escape", "E")),
    ("compare-report", ("escape", "R")),
    ("help-compare", ("escape", "question_mark")),
    ("playground", ("escape", "4")),
    ("playground-choose", ("escape", "L")),
    ("palette", ("escape", "2", "ctrl+p")),
    ("palette-found", (*"主题",)),
    ("settings", ("escape", "escape", "comma")),
    ("settings-launch", ("down", "down")),
    ("settings-quit", ("down",)),
    ("quit", ("escape", "q")),
]
STUDY: list[Scene] = [
    ("compared", ("3",)),
    ("compared-recall", ("right", "right", "right")),
    ("compared-about", ("down", "enter")),
    ("compared-about-end", ("end",)),
    ("compared-table", ("escape", "f")),
    ("compared-table-right", ("right", "right", "right", "right", "right", "right", "right", "right")),
    ("compared-leak", ("home", "down", "down", "down")),
    ("compared-runs", ("v",)),
    ("compared-distance", ("f", "z", "D")),
    ("compared-difference", ("c", "c")),
    ("compared-train", ("escape", "2", "home")),
    ("compared-train-open", ("enter", "down")),
]
PLAY: list[Scene] = [
    ("play", ("4",)),
    ("play-written", (*"门", "enter")),
    ("play-alternatives", ("escape", "up", "left")),
    ("play-commands", ("i", "slash", *"te")),
    ("play-help", ("escape", "escape", "i", "ctrl+u", *"/help", "enter")),
    ("play-surprise", ("escape", *"/surprise 门已关上", "enter")),
    ("play-attention", (*"/attention 2 1", "enter", "escape", "up")),
    ("play-two", ("w", "plus", "down", "enter")),
    ("help-playground", ("escape", "escape", "question_mark")),
]
WALKS = {"none": NONE, "corpora": CORPORA, "runs": RUNS, "study": STUDY, "play": PLAY}


def as_recorded(runs: Path) -> None:
    """Put the engine's own words where a run recorded sentences, and Chinese text where it wrote."""

    def put(found: Any) -> Any:
        if isinstance(found, dict):
            return {key: _as_recorded(key, put(value)) for key, value in found.items()}
        return [put(value) for value in found] if isinstance(found, list) else found

    for file in (*runs.glob("*/*.json"), *runs.glob("*/samples.jsonl"), *runs.glob("*/events.jsonl")):
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("".join(json.dumps(put(json.loads(line))) + "\n" for line in lines), encoding="utf-8")


def _as_recorded(key: str, value: Any) -> Any:
    if key == "prompt":
        return "罗密欧："
    if key == "text" and "\n" in value:
        return TALE
    return RECORDED.get(value, value) if isinstance(value, str) else value


def pictured(app: Any) -> str:
    """The text on the screen, without spaces at the ends of lines."""
    from tests.tui_transformer.studio.on_screen import shown

    return "\n".join(line.rstrip() for line in shown(app).splitlines()) + "\n"


async def walk(scenes: list[Scene], runs: Path, folder: Path, size: tuple[int, int]) -> None:
    """Open a studio, and write what it shows after the keys of each scene, once it is at rest."""
    from tests.tui_transformer.studio.at_rest import rest, take
    from tests.tui_transformer.studio.layout_faults import faults
    from tui_transformer.studio.app import PANE_NAMES, PaneSwitcher, Studio

    app = Studio(runs_dir=runs, device="cpu")
    async with app.run_test(size=size) as pilot:
        await until(lambda: len(app.query_one(PaneSwitcher).children) == len(PANE_NAMES), "the panes")
        await rest(pilot)
        for name, keys in scenes:
            app.clear_notifications()
            await take(pilot, *keys)
            await rest(pilot)
            said = "".join(f"{one.severity}: {one.message}\n" for one in app._notifications)
            (folder / f"{name}.txt").write_text(pictured(app) + said, encoding="utf-8")
            (folder / f"{name}.faults").write_text("\n".join(faults(app)), encoding="utf-8")


def plain(folder: Path) -> None:
    """Noon, two cores, no corpora of this machine, and no cursor that blinks."""
    from textual.widgets import Input, TextArea

    from engine.base import threads
    from engine.base.errors import InputError
    from engine.base.language import tr
    from engine.base.matched_messages import MatchedMessage
    from engine.data import corpus
    from engine.runs.reader import RunReader
    from tests.tui_transformer.conftest import NOON
    from tests.tui_transformer.fake_writer import FakeWriter, FakeWriters
    from tests.tui_transformer.studio import corpora_seen
    from tui_transformer.lab.play.pictures import mask_sentence, stack_plans
    from tui_transformer.lab.work.run_actions import RunActions
    from tui_transformer.studio.design import own_files
    from tui_transformer.studio.design import pane as design
    from tui_transformer.studio.playground import column, pane
    from tui_transformer.studio.train import run_header

    class Writer(FakeWriter):
        """Says what the engine's would say, in the language in use."""

        invitation = tr("type some text to continue")

        def length_warning(self, text: str, settings: object) -> str:
            return ""

        def surprise(self, text: str, alternatives: int = 0) -> Any:
            rule = tr(
                "each {unit} given up to {context} before it; from the second window on, at least {context2}",
                unit=tr("character"),
                context=256,
                context2=128,
            )
            return replace(super().surprise(text, alternatives), rule=rule)

        def attention(self, *asked: Any) -> Any:
            seen, model = super().attention(*asked), RunReader(Path("play") / self.name).config.model
            rule = mask_sentence(stack_plans(model)[0], len(seen.keys))
            return replace(seen, title=tr(MatchedMessage(seen.title)), rule=rule)

    class Writers(FakeWriters):
        def get(self, run: Path, which: str) -> FakeWriter:
            return self.known.setdefault(run.name, Writer(run.name, text=TALE))  # type: ignore[return-value]

    def preview(*asked: Any) -> Any:
        """What is told of a corpus, with other text."""
        seen = corpora_seen.preview(*asked)
        return replace(seen, lines=tuple(TALE.splitlines()[at % 2] for at in range(len(seen.lines))))

    def refuse(*_: object) -> None:
        raise InputError(tr("a run with this name already exists"))  # nothing is trained here

    RunActions.create = refuse  # type: ignore[assignment]
    design.preview_corpus = preview  # type: ignore[attr-defined]
    run_header.local_time = lambda: NOON
    threads.physical_cores = lambda: 2  # type: ignore[assignment]
    corpus.user_data_path = lambda name: Path("data")  # type: ignore[attr-defined]
    own_files.user_config_path = lambda name: Path("config")  # type: ignore[attr-defined]
    pane.WriterCache = lambda device: Writers()  # type: ignore[attr-defined]
    column.monotonic = lambda: 0.0  # type: ignore[attr-defined]
    for kind in (Input, TextArea):
        kind.cursor_blink._default = False  # type: ignore[attr-defined]


def main() -> None:
    width, height, folder, wanted = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).resolve(), sys.argv[4:]
    settings = folder / "settings.toml"
    os.environ |= {languages.SETTINGS_VARIABLE: "settings.toml", "LANGUAGE": "zh", "COLORTERM": "truecolor"}
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    os.environ.pop("TUI_TRANSFORMER_DATA", None)
    os.environ.pop("NO_COLOR", None)
    os.chdir(folder)
    languages.use("zh")
    import pytest

    from tests.tui_transformer.lab.analysis.studies import attention
    from tests.tui_transformer.recorded import everything, record
    from tests.tui_transformer.studio.on_screen import patch_waits

    def two(runs: Path) -> None:
        for name in ("baseline", "win16"):
            record(runs, name)

    plain(folder)
    patch_waits(pytest.MonkeyPatch())
    makes: dict[str, Callable[[Path], object]] = {"runs": everything, "study": attention, "play": two}
    for name in wanted:
        settings.write_text(f"welcomed = {str(name != 'none').lower()}\n")
        makes.get(name, Path.mkdir)(Path(name))
        as_recorded(Path(name))
        asyncio.run(walk(WALKS[name], Path(name), folder, (width, height)))


if __name__ == "__main__":
    main()
