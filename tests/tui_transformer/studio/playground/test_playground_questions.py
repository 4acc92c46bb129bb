"""The Playground with runs on questions that really were trained: answer, probability, where tokens look."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.documents.corpus import DocumentCorpus
from tests.tui_transformer.answering import answering
from tests.tui_transformer.studio import on_screen
from tui_transformer.studio.app import Studio
from tui_transformer.studio.playground.pane import PlaygroundPane

QUESTION = load_corpus(DocumentCorpus, DataConfig(corpus="biographies", corpus_size=20)).questions["validation"][0].text
pytestmark = pytest.mark.usefixtures("plain_surroundings")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    answering(folder, "scratch")
    answering(folder, "finetuned", model={"n_layers": 1})
    return folder


def shown(pilot: Pilot) -> str:
    return on_screen.shown(pilot.app)


async def until(pilot: Pilot, *words: str) -> None:
    await on_screen.until(pilot, lambda: all(word in shown(pilot) for word in words))


async def test_two_runs_answer_a_question_with_its_probability_and_their_attention_is_drawn(runs) -> None:
    app = Studio(runs_dir=runs, device="cpu", panes=("playground",))
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, "type a question")
        pane = app.query_one(PlaygroundPane)
        pane.session.handle_line("/run finetuned")
        await until(pilot, "finetuned", "type a question")
        pane.session.handle_line("/vs scratch")
        await until(pilot, "finetuned", "scratch", "step 2")
        pane.session.handle_line(QUESTION)
        await on_screen.until(pilot, lambda: shown(pilot).count("probability ") > 2 and "; then " in shown(pilot))
        assert all(column.prompt_text == QUESTION for column in pane.columns_with_run)
        pane.session.handle_line("/attention 1 3")
        await until(pilot, "layer 1 of 1, head 3 of 4", "⁇")
        looks = pane._first.attention
        assert looks is not None and looks.queries == looks.keys and "⁇" in looks.keys
