"""Translations in the Design pane: the corpora that fit, the switches they have, pairs, costs, and one's own files."""

import re
from pathlib import Path

import pytest
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from tests.small_pairs import multi30k, table
from tests.tui_transformer.studio.on_screen import said, until
from tests.tui_transformer.studio.stored_screens import LARGE, MEDIUM, SMALL
from tui_transformer.lab.design.benchmarks import Benchmarks
from tui_transformer.studio import app as studio
from tui_transformer.studio.app import Studio
from tui_transformer.studio.design.corpus_preview import TOO_LARGE
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.design.switches import Switches

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(3)]


TALL = (120, 70)


class App(Studio):
    """A studio with the Design pane alone that keeps what it is asked to launch."""

    CSS_PATH = Path(studio.__file__).with_name("studio.tcss")

    def __init__(self, data_dir: Path | None) -> None:
        super().__init__(runs_dir=Path("runs"), data_dir=data_dir, device="cpu", panes=("design",))
        self.asked: list[DesignPane.LaunchRequested] = []

    def on_design_pane_launch_requested(self, event: DesignPane.LaunchRequested) -> None:
        event.prevent_default()
        self.asked.append(event)

    @property
    def text(self) -> str:
        every = [screen._compositor.render_strips() for screen in self.screen_stack]
        return "\n".join("".join(part.text for part in line) for strips in every for line in strips)

    @property
    def said(self) -> str:
        return said(self)

    @property
    def current_pane(self) -> DesignPane:
        return self.screen_stack[0].query_one(DesignPane)


@pytest.fixture
def app(tmp_path) -> App:
    return App(multi30k(tmp_path / "data").parent)


async def go_to(pilot: Pilot, key: str) -> None:
    """The cursor on a switch."""
    switches = pilot.app.query_one(Switches)
    switches.focus()
    switches.highlighted = switches.get_option_index(key)
    await pilot.pause()


def labels(app: App) -> list[str]:
    """Of a dialog's answers that can be chosen."""
    return [_label(option.prompt) for option in app.screen.query_one(OptionList).options]


def _label(prompt: object) -> str:
    if isinstance(prompt, Table):  # a label beside what it is
        prompt = next(iter(prompt.columns[0].cells))
    if isinstance(prompt, Padding):
        prompt = prompt.renderable
    return prompt.plain if isinstance(prompt, Text) else ""


async def choose(pilot: Pilot, words: str) -> None:
    """The answer of a dialog that begins so."""
    await pilot.pause()
    found = next(i for i, line in enumerate(labels(pilot.app)) if line.startswith(words))
    pilot.app.screen.query_one(OptionList).highlighted = found
    await pilot.press("enter")
    await pilot.pause()


def shown_keys(app: App) -> set[str]:
    return {option.id for option in app.query_one(Switches).options}


TRANSLATIONS_OWN = {
    "data.tokenizer",
    "data.bpe_size",
    "data.shared_vocabulary",
    "objective.label_smoothing",
    "train.batch_tokens",
    "evaluation.beam",
    "evaluation.select",
}


async def test_the_switches_of_translations_are_there_for_translations_only(app: App) -> None:
    async with app.run_test(size=TALL) as pilot:
        await pilot.pause()
        assert not shown_keys(app) & (TRANSLATIONS_OWN | {"# evaluation"})
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: shown_keys(app) >= TRANSLATIONS_OWN)
        assert "model.n_encoder_layers" in shown_keys(app)
        await go_to(pilot, "data.tokenizer")
        await pilot.press("right")
        await until(pilot, lambda: "data.bpe_size" not in shown_keys(app))


@pytest.mark.parametrize("size", [SMALL, MEDIUM, LARGE])
async def test_pairs_and_an_upper_bound_of_the_parameters_are_shown(app: App, size: tuple[int, int]) -> None:
    async with app.run_test(size=(size[0], 120)) as pilot:  # high enough for all that the width shows
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: "7,579,392" in app.text)
        assert ("at most" if size != SMALL else "≤ 7,579,392") in app.text
        await until(pilot, lambda: "Two men are" in app.text and "Zwei Männer" in app.text)


async def test_characters_of_pairs_are_counted_before_their_model_is(app: App) -> None:
    async with app.run_test(size=TALL) as pilot:
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: app.current_pane.draft.preset.name == "multi30k")
        await go_to(pilot, "data.tokenizer")
        await pilot.press("right")
        await until(pilot, lambda: re.search(r"(?<!at most )(?<![\d,])[\d,]+ parameters", app.text) is not None)
        joint = app.current_pane.draft.cost(
            app.current_pane._corpus_preview(app.current_pane.draft).characters
        ).vocabulary
        assert joint.sources is None
        await go_to(pilot, "data.shared_vocabulary")
        await pilot.press("right")
        await until(pilot, lambda: app.current_pane._corpus_preview(app.current_pane.draft) is not None)
        apart = app.current_pane.draft.cost(
            app.current_pane._corpus_preview(app.current_pane.draft).characters
        ).vocabulary
        assert 3 < apart.sources < apart.tokens <= joint.tokens


async def test_a_translation_is_one_choice_away_and_says_what_comes_with_it(app: App) -> None:
    async with app.run_test(size=TALL) as pilot:
        await go_to(pilot, "objective.kind")
        await pilot.press("enter")
        await pilot.pause()
        wanted = "↳ translation, with data.corpus = "
        assert any(line.startswith(wanted) for line in labels(app))
        await choose(pilot, "↳ translation")
        config = app.current_pane.draft.config
        assert (
            config.task.name == "translation"
            and not app.current_pane.draft.problem
            and len(app.current_pane.draft.changes) == 2
        )


async def test_the_corpora_that_fit_come_first_and_the_others_say_why_not(app: App) -> None:
    async with app.run_test(size=TALL) as pilot:
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: app.current_pane.draft.preset.name == "multi30k")
        await go_to(pilot, "data.corpus")
        await pilot.press("enter")
        await pilot.pause()
        answers = app.screen._answers  # more than the dialog shows at once
        seen = " ".join(f"{answer.label} {answer.why_not}" for answer in answers)
        assert (
            seen.index("tatoeba-en-de")
            < seen.index("your own sentence pairs …")
            < seen.index("'playlets' contains plain text")
        )
        await choose(pilot, "tatoeba-en-de")
        assert app.current_pane.draft.changes == {"data.corpus": "tatoeba-en-de"}
        await until(pilot, lambda: "is not on this machine" in app.text)
        await pilot.press("f5")
        assert app.asked == [] and "ctrl+d downloads it" in app.said


async def test_sentence_pairs_of_ones_own_are_read_before_they_are_taken(app: App, tmp_path) -> None:
    async def name(path: str) -> None:
        await go_to(pilot, "data.corpus")
        await pilot.press("enter")
        await choose(pilot, "your own sentence pairs")
        app.screen.query_one(Input).value = path
        await pilot.press("enter")
        await pilot.pause()

    async with app.run_test(size=TALL) as pilot:
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: app.current_pane.draft.preset.name == "multi30k")
        (tmp_path / "text.txt").write_text("no tab\n" * 50)
        await name(str(tmp_path / "text.txt"))
        await until(pilot, lambda: "one column" in app.said)
        assert app.current_pane.draft.changes == {}
        table(tmp_path / "own.tsv", 50)
        await name("own.tsv#2,1")
        await until(pilot, lambda: "45 pairs to train on" in app.text)
        assert app.current_pane.draft.changes == {"data.corpus": f"{tmp_path}/own.tsv#2,1"}
        (tmp_path / "a.en").write_text("".join(f"the dog {i}\n" for i in range(40)))
        (tmp_path / "a.de").write_text("".join(f"der Hund {i}\n" for i in range(40)))
        await name("a.en, a.de")
        await until(pilot, lambda: "36 pairs to train on" in app.text)
        assert app.current_pane.draft.changes == {"data.corpus": f"{tmp_path}/a.en,{tmp_path}/a.de"}


async def test_large_pairs_are_not_read_beside_the_screen(app: App, tmp_path, monkeypatch) -> None:
    table(tmp_path / "own.tsv", 50)
    monkeypatch.setattr("tui_transformer.studio.design.corpus_preview.LARGEST_PAIRS", 1_000)
    async with app.run_test(size=TALL) as pilot:
        for corpus in ("multi30k", str(tmp_path / "own.tsv")):
            app.current_pane.choose("multi30k")
            await until(pilot, lambda: app.current_pane.draft.preset.name == "multi30k")
            app.current_pane._record_and_show(app.current_pane.draft.with_change("data.corpus", corpus))
            await until(pilot, lambda: TOO_LARGE in app.text)
            assert "✗" not in app.text and "7,579,392" in app.text


async def test_poison_in_pairs_reaches_no_screen(app: App, tmp_path) -> None:
    lines = "".join(f"\x1b]0;x\x07 [red]a[/red] {i}\t\u202eb \x9b31m {i}\n" for i in range(60))
    (tmp_path / "poison.tsv").write_text(lines, encoding="utf-8")
    async with app.run_test(size=TALL) as pilot:
        app.current_pane.choose("multi30k")
        await until(pilot, lambda: app.current_pane.draft.preset.name == "multi30k")
        app.current_pane._record_and_show(
            app.current_pane.draft.with_change("data.corpus", str(tmp_path / "poison.tsv"))
        )
        await until(pilot, lambda: "54 pairs to train on" in app.text)
        assert "[red]a[/red]" in app.text
        assert not set(app.text) & set("\x1b\x07\x9b\u202e")


async def test_the_engine_s_own_check_measures_a_translation(app: App, tmp_path) -> None:
    from tui_transformer.lab.design.draft import Draft

    small = {
        "model.d_model": 16,
        "model.n_heads": 2,
        "model.n_layers": 1,
        "model.d_ff": 16,
        "data.bpe_size": 300,
        "train.batch_tokens": 256,
        "train.threads": 1,
    }
    draft = Draft.from_preset("multi30k").with_changes(small)
    fit = await Benchmarks("cpu", tmp_path / "data").measure(draft)
    assert fit.seconds_per_step > 0 and fit.verdicts and all(verdict.verdict == "ok" for verdict in fit.verdicts)
