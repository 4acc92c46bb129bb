"""`sample`: what a line can show of alternatives and surprise, and two runs at once."""

import io
import json
import math
from pathlib import Path

import pytest

from tests.tui_transformer.trained import train
from tui_transformer.__main__ import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder, "one")
    train(folder, "two", "model.position=alibi")
    train(folder, "gaps", "model.architecture=encoder", "objective.kind=masked")
    return folder


@pytest.fixture
def session(runs, monkeypatch, capsys):
    def ask(*lines: str, run: str = "one", options: tuple[str, ...] = ()) -> tuple[list[str], str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert main(["sample", run, "--length", "12", *options, "--runs-dir", str(runs)]) == 0
        out, err = capsys.readouterr()
        return out.splitlines(), err

    return ask


def test_two_runs_answer_the_same_prompt(session) -> None:
    lines, _ = session("the", options=("--vs", "two"))
    titles = [line for line in lines if line.startswith("── ")]
    assert titles == ["── one, step 6", "── two, step 6"] and sum(line.startswith("the") for line in lines) == 2


def test_runs_are_taken_and_put_away_at_the_prompt(session) -> None:
    lines, err = session("/vs two", "the", "/vs", "/run two", "/checkpoint last", "the", "/run nothing")
    assert "one at step 6 and two at step 6" in err and "no run named 'nothing'" in err
    assert sum(line.startswith("the") for line in lines) == 3


def test_the_most_surprising_tokens_come_first(session) -> None:
    records = [json.loads(line) for line in session("the", "/alternatives 4", options=("--json",))[0]]
    answer, listed = records[0], records[1:]
    assert answer["run"] == "one" and len(answer["probabilities"]) == 12
    assert answer["nll"] == pytest.approx(-sum(map(math.log, answer["probabilities"])))
    assert [one["probability"] for one in listed] == sorted(answer["probabilities"])[:4]
    assert all(len(one["alternatives"]) == 5 and one["text"] == answer["text"][one["at"]] for one in listed)
    lines, _ = session("the", "/alternatives 4")
    assert sum("[" in line and "]" in line for line in lines) >= 4


def test_surprise_is_a_text_and_a_line_and_in_json_a_list(session) -> None:
    lines, _ = session("/surprise the gate")
    assert lines[0] == "the gate" and "nats" in lines[1] and "perplexity" in lines[1]
    (record,) = (json.loads(line) for line in session("/surprise the gate", options=("--json",))[0])
    nats = [token["nats"] for token in record["tokens"]]
    assert nats[0] is None and record["nll"] == pytest.approx(sum(nats[1:]))
    assert record["nats_per_character"] == pytest.approx(record["nll"] / 7)
    assert "".join(token["text"] for token in record["tokens"]) == "the gate"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/alternatives", "no answer yet"),
        ("/alternatives many", "whole number"),
        ("/surprise", "needs some text, e.g."),
        ("/attention 1 1", "Playground"),
        ("/copy", "own copy"),
        ("/checkpoint 99", "has no checkpoint"),
    ],
)
def test_what_makes_no_sense_says_why(session, line, said) -> None:
    assert said in session(line)[1]


def test_again_takes_the_next_seed_and_history_tells_the_prompts(session) -> None:
    lines, _ = session("the", "/seed 2", "the", "/seed 1", "/again", "/history", options=("--json",))
    first, second, again = (json.loads(line) for line in lines if line.startswith("{"))
    assert first["text"] != second["text"] == again["text"] and again["seed"] == 2
    assert lines[-2:] == ["the", "the"]


def test_a_model_of_gaps_says_why_it_has_no_surprise(session) -> None:
    assert "from both sides" in session("/surprise the", run="gaps")[1]
