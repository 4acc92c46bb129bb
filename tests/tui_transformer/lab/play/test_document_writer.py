"""Questions and documents with gaps at the prompt and for the Playground: answers, their chances, examples."""

import io
import json
import math
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.documents.corpus import DocumentCorpus
from engine.runs.records import ModelOutput
from tests.tui_transformer.answering import answering
from tui_transformer.__main__ import main
from tui_transformer.lab.play.writers import GREEDY, ModelWriter, WriterCache

CORPUS = load_corpus(DocumentCorpus, DataConfig(corpus="biographies", corpus_size=20))
QUESTION = CORPUS.questions["validation"][0].text
NAME = QUESTION.removeprefix("Where was ").removesuffix(" born?")
GAP = f"{NAME} was born in ___."


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    answering(folder, "ask")
    answering(folder, "read", reads=True)
    answering(folder, "fill", "span-corruption", data={"tokenizer": "characters"}, model={"context_length": 96})
    answering(folder, "spans", "span-corruption", reads=True)
    return folder


def writer(runs: Path, name: str) -> ModelWriter:
    found = WriterCache("cpu").get(runs / name, "last")
    assert found.config.task.corpus == "documents"
    return found


ASKED = {"ask": QUESTION, "read": QUESTION, "fill": GAP, "spans": f"{NAME} was born in ___ and likes ___."}


@pytest.mark.parametrize("name", list(ASKED))
def test_the_answer_has_its_probability_and_the_likeliest_others_come_after_it(runs, name) -> None:
    model, asked = writer(runs, name), ASKED[name]
    pieces = list(model.stream(asked, GREEDY | {"length": 4}, alternatives=5))
    wholes = model.answer_and_likeliest_others(asked, "".join(piece.text for piece in pieces), 3)
    assert all(len(piece.alternatives) == 5 for piece in pieces)
    assert wholes[0].probability <= math.prod(piece.probability for piece in pieces) + 1e-6
    others = [one.probability for one in wholes[1:]]
    assert len(others) <= 3 and others == sorted(others, reverse=True)
    assert len({one.text for one in wholes}) == len(wholes)


@pytest.mark.parametrize("name", list(ASKED))
def test_surprise_of_an_answer_is_its_probability(runs, name) -> None:
    model = writer(runs, name)
    answer = "Arlow ⁇ reading" if name == "spans" else "Arlow"
    found = model.surprise(f"{ASKED[name]} → {answer}")
    assert math.exp(-found.total_nats) == pytest.approx(
        model.answer_and_likeliest_others(ASKED[name], answer, 0)[0].probability, rel=1e-3
    )
    assert found.tokens[-1].text == "■" and found.source == ASKED[name]


@pytest.mark.parametrize("name", list(ASKED))
def test_attention_is_shown_over_the_question_or_the_document(runs, name) -> None:
    model = writer(runs, name)
    for which in model.attention_kinds:
        found = model.attention(ASKED[name], "Arlow", 1, 2, which)
        assert found.weights.shape == (len(found.queries), len(found.keys))
        assert found.weights.sum(1) == pytest.approx([1.0] * len(found.queries), abs=1e-5)
        assert NAME.replace(" ", "") in "".join(found.keys).replace(" ", "") or which == "self"
    assert "⁇" in found.queries or which == "encoder"


def test_the_token_the_first_word_is_written_from_is_named(runs) -> None:
    found = writer(runs, "ask").attention(QUESTION, "Arlow", 1, 1)
    assert found.queries[:2] == ("Where", " was") and found.queries[-2:] == ("⁇", "Arlow") and "last ⁇" in found.rule


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("ask", "Where was Fooo born?", "has never seen 'Fooo'"),
        ("ask", "  ", "enter a question"),
        ("ask", "born " * 70, "71 tokens, special tokens included; this model sees at most 64"),
        ("read", "born " * 70, "70 tokens; this model reads at most 64"),
        ("fill", NAME, "mark what is missing with ___"),
        ("fill", f"{NAME} ___ ___", "one gap"),
        ("spans", "___ " * 30, "gaps"),
    ],
)
def test_what_cannot_be_asked_says_why(runs, name, asked, said) -> None:
    with pytest.raises(InputError, match=said):
        list(writer(runs, name).stream(asked, GREEDY))


def test_a_surprise_needs_an_arrow(runs) -> None:
    with pytest.raises(InputError, match="a question and its answer"):
        writer(runs, "ask").surprise(QUESTION)


def test_a_document_is_shown_with_its_gaps_filled(runs) -> None:
    assert writer(runs, "fill").filled_prompt(f"{NAME} was born in ⁇.", " Arlow") == f"{NAME} was born in [Arlow]."
    assert writer(runs, "spans").filled_prompt("__ likes ___.", "Bo ⁇ tea") == "[Bo] likes [tea]."
    assert writer(runs, "ask").filled_prompt(QUESTION, "Arlow") == ""


def test_an_example_is_right_only_where_it_is_exactly_so() -> None:
    assert (
        ModelOutput(reference="Arlow", text=" Arlow").right and not ModelOutput(reference="Arlow", text="arlow").right
    )
    assert not ModelOutput(reference="", text="").right


def test_an_example_without_a_right_answer_is_neither_right_nor_wrong(session, monkeypatch) -> None:
    monkeypatch.setattr(ModelWriter, "answer_held_out_examples", lambda self: [ModelOutput(source="?", text="Arlow")])
    (line,) = session("/examples", run="ask", options=("--json",))[0]
    assert json.loads(line)["right"] is None


# On the command line


@pytest.fixture
def session(runs, monkeypatch, capsys):
    def ask(*lines: str, run: str, options: tuple[str, ...] = ()) -> tuple[list[str], str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert main(["sample", run, "--checkpoint", "last", *options, "--runs-dir", str(runs)]) == 0
        out, err = capsys.readouterr()
        return out.splitlines(), err

    return ask


def test_a_question_is_answered_with_its_probability(session) -> None:
    lines, _ = session(QUESTION, run="ask")
    assert len(lines) == 2 and "probability " in lines[1] and "; then " in lines[1]


def test_a_document_is_filled(session) -> None:
    lines, err = session(GAP, NAME, run="fill", options=("--length", "3"))
    assert lines[0].startswith(f"{NAME} was born in [") and lines[0].endswith("].")
    assert "mark what is missing with ___" in err


def test_examples_are_held_out_questions_right_or_wrong(session, runs) -> None:
    lines, _ = session("examples", run="ask")
    held_out = {question.text for question in CORPUS.questions["validation"]}
    assert len(lines) == 5 and all(line.split("  ", 1)[0] in ("right", "wrong") for line in lines)
    assert all(line.split("  ", 1)[1].split(" → ")[0] in held_out for line in lines)
    records = [json.loads(line) for line in session("/examples", run="fill", options=("--json",))[0]]
    assert len(records) == 5 and all("⁇" in one["asked"] and one["right"] in (True, False) for one in records)


def test_json_has_the_answer_its_probability_and_others(session) -> None:
    (record,) = (json.loads(line) for line in session(QUESTION, run="ask", options=("--json",))[0])
    assert record["prompt"] == QUESTION and 0 < record["probability"] < 1
    assert [set(one) for one in record["alternatives"]] == [{"text", "probability"}] * 3
    (record,) = (json.loads(line) for line in session(GAP, run="fill", options=("--json",))[0])
    assert record["filled"] == f"{NAME} was born in [{record['text']}]."


def test_two_runs_answer_the_same_question(session) -> None:
    lines, _ = session(QUESTION, run="ask", options=("--vs", "read"))
    assert [line for line in lines if line.startswith("── ")] == ["── ask, step 2", "── read, step 2"]


def test_an_unknown_word_ends_a_single_prompt_with_one_line(runs, capsys) -> None:
    assert main(["sample", "ask", "--prompt", "Where was Fooo born?", "--runs-dir", str(runs)]) == 2
    assert "has never seen 'Fooo'" in capsys.readouterr().err
