"""The first paragraph says what may be concluded, and every alarm."""

import json

import pytest

from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import LEAK, change, variant
from tests.tui_transformer.lab.reports.reports import document, first, strong
from tui_transformer.lab.reports.document import VerdictParagraph


def alarm(check: str, verdict: str, why: str = "seen") -> tuple[str, str, str]:
    return check, verdict, why


def test_a_study_is_judged_by_variant_and_its_leaky_one_is_not_compared(tmp_path) -> None:
    attention(tmp_path)
    made = document(tmp_path, "att")
    said = first(made)
    assert "The baseline global has a validation loss of 0." in said
    assert "Worse than the baseline global at these settings, in nats per character: win16 (by 0.0508 ± " in said
    assert "3 seeds can miss small differences" in said
    assert "leaky cannot be compared: it leaks." in strong(made)
    assert "1 of 3 seeds of hot diverged and were excluded, so its mean looks better" in strong(made)
    assert "leaky (" not in said  # it has no amount
    assert isinstance(made.blocks[0], VerdictParagraph) and made.blocks[0].alarm


def test_answers_stand_beside_what_always_the_same_one_scores(tmp_path) -> None:
    for name, share in (("taught", 0.62), ("scratch", 0.1)):
        path = variant(tmp_path, name, *(["model.n_heads=2"] if name == "taught" else []))
        change(path / "data.json", majority={"answer": "Arlow", "right": 31, "of": 250})
        last = json.loads((path / "summary.json").read_text())["last"]
        change(path / "summary.json", last=last | {"exact_match": share})
    said = first(document(tmp_path, "scratch", "taught"))
    assert "answered exactly right: 10.0 % by scratch and 62.0 % by taught." in said
    assert "Always answering “Arlow” would be right 12.4% of the time." in said


def test_one_seed_each_says_that_nothing_can_be_told(tmp_path) -> None:
    attention(tmp_path, seeds=(1,))
    made = document(tmp_path, "att")
    assert "Every comparison here rests on a single seed" in strong(made)
    assert "Worse than" not in first(made) and "Better than" not in first(made)


def test_a_single_run_says_that_it_is_one(tmp_path) -> None:
    variant(tmp_path, "demo")
    said = first(document(tmp_path, "demo"))
    assert said.startswith("demo reached a validation loss of 0.9005 nats per character (1 seed)")
    assert "This is one run with one seed" in said and "relative to the floor given the whole past" in said


@pytest.mark.parametrize(
    ("check", "badge", "words"),
    [
        ("leak", "LEAK", "odd cannot be compared: it leaks"),
        ("plausible", "IMPLAUSIBLE", "odd cannot be compared: its score is better than this data allows"),
        ("inert", "INERT", "odd cannot be compared: what was changed had no effect"),
        ("learning", "NOT-LEARNING", "odd learned next to nothing"),
        ("curve", "OVERFIT", "odd overfitted"),
        ("curve", "STILL-FALLING", "The loss of odd was still falling"),
        ("order", "NO-ORDER", "Nothing tells odd the order of its tokens"),
        ("samples", "SAME-TEXT", "Samples of odd that should be independent are the same text"),
        ("later", "NEWER", "odd has the badge NEWER"),
    ],
)
def test_every_alarm_of_a_run_stands_there(tmp_path, check, badge, words) -> None:
    variant(tmp_path, "base")
    variant(tmp_path, "odd", "model.n_heads=2", verdicts=[alarm(check, badge)])
    assert words in strong(document(tmp_path, "base", "odd"))
    assert words in strong(document(tmp_path, "odd"))


def test_a_run_that_diverged_has_no_score(tmp_path) -> None:
    variant(tmp_path, "base")
    variant(tmp_path, "hot", "optimizer.lr=0.3", state="failed", step=310, reason="the loss is not a number")
    assert "hot diverged and has no score to compare" in strong(document(tmp_path, "base", "hot"))


def test_a_leaky_run_alone_must_not_be_reported_as_a_result(tmp_path) -> None:
    variant(tmp_path, "enc", "model.causal=false", by=-0.8, verdicts=[LEAK])
    said = first(document(tmp_path, "enc"))
    assert "cannot be compared: it leaks" in said and "must not be reported as a result" in said
    assert "reached a validation loss" not in said


def test_a_loss_that_counting_tokens_reaches_too_is_no_result_however_short_the_run(tmp_path) -> None:
    variant(tmp_path, "slow", by=2.4, data={"unigram": 3.3})
    assert "slow learned next to nothing" in strong(document(tmp_path, "slow"))


def test_runs_on_different_texts_are_different_measures(tmp_path) -> None:
    variant(tmp_path, "one", data={"corpus": "playlets@1"})
    variant(tmp_path, "two", "data.corpus=phrasebook", data={"corpus": "phrasebook@1"}, by=-0.5)
    said = strong(document(tmp_path, "one", "two"))
    assert "two was scored on phrasebook@1, one on playlets@1: the two losses are different measures." in said
    assert "So no variant is judged here." in said


def test_unfinished_and_unscored_runs_say_so(tmp_path) -> None:
    variant(tmp_path, "base")
    variant(tmp_path, "young", "model.n_layers=6", state="stopped", step=800)
    assert "young (stopped at step 800 of 2,000)" in strong(document(tmp_path, "base", "young"))
    run = variant(tmp_path, "blind", "model.n_layers=3")
    (run / "summary.json").unlink()
    made = document(tmp_path, "blind")
    assert "blind was never evaluated" in strong(made) and "There is no score to report." in first(made)


def test_no_better_is_said_of_variants_whose_difference_is_noise(tmp_path) -> None:
    attention(tmp_path)
    said = first(document(tmp_path, "att"))
    assert "heads2" in said and not any(
        f"{word} than the baseline global, in nats per character: heads2" in said for word in ("Better", "Worse")
    )


def test_what_is_damaged_is_said_and_breaks_nothing(tmp_path) -> None:
    run = variant(tmp_path, "hurt")
    (run / "config.toml").write_text("no = [toml")
    (run / "data.json").write_text("{")
    (run / "metrics.jsonl").write_text('{"kind":"validation","loss":"x"}\n{torn')
    made = document(tmp_path, "hurt")
    assert "A file of hurt cannot be read" in strong(made)


def test_values_of_the_wrong_kind_break_nothing(tmp_path) -> None:
    run = cell(tmp_path, "odd", "a", 1)
    other = cell(tmp_path, "odd", "b", 1)
    for name, content in (
        (
            "data",
            {
                "corpus": 3,
                "splits": [1],
                "sha256": "x",
                "floor": {"nats_per_char": "y"},
                "probes": [1, {"n": "z"}],
                "notes": 7,
            },
        ),
        ("environment", {"attempts": [{"versions": [1], "cores": "two", "bit_exact": "maybe"}]}),
        ("model", {"parameters": "many", "components": {"head": "x"}}),
    ):
        (run / f"{name}.json").write_text(json.dumps(content))
    (other / "samples.jsonl").write_text('{"text": 3, "prompt": null, "step": "x"}\n')
    change(other / "run.json", command=7)
    assert "odd" in document(tmp_path, "odd").title
