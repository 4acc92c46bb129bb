"""The false conclusions of the founding reports, replayed from the numbers they gave: what the table says to each.

The verdicts are made by the engine's own alarms from those numbers; a clean pair gets none.
"""

from pathlib import Path

import pytest

from engine.config.tasks import TASKS
from engine.evaluation.alarms import check_curves, check_learning, check_plausible, check_repeated_sample
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, EvaluationScores, TrainRecord, ValidationRecord
from engine.runs.twins import inert_switches
from engine.runs.verdict import Verdict
from tests.tui_transformer.lab.analysis.studies import cell, standings
from tests.tui_transformer.lab.analysis.variants import LEAK, change, variant
from tui_transformer.lab.analysis.columns import FIXED_COLUMNS
from tui_transformer.lab.analysis.detail import results_text, variant_detail
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.group_columns import CHECKS, MORE_PARAMETERS
from tui_transformer.lab.analysis.verdict import verdict


def found(verdict: Verdict | None) -> tuple[str, str, str]:
    """As a record of checks.json; that there is one is the claim."""
    assert verdict is not None and verdict.verdict != "ok"
    return verdict.check, verdict.verdict, verdict.why


def rising(best: float, last: float) -> Verdict | None:
    """The decoder report's curves: validation best after the first of 30 epochs, then rising; training falls."""
    validation = [ValidationRecord(step=e, loss=best + (last - best) * (e - 1) / 29) for e in range(1, 31)]
    train = [TrainRecord(step=e, loss=1.6 / e**0.15) for e in range(1, 31)]
    return check_curves(train, validation, when="after", step=30)


def shown(root: Path, name: str, *settings: str, **more) -> RunEntry:
    return read_entry(variant(root, name, *settings, **more))


def test_fewer_heads_that_generalise_better_are_overfit_runs_of_one_seed_and_equal_size(tmp_path) -> None:
    four = shown(tmp_path, "heads4", verdicts=[found(rising(1.5320, 1.7953))])
    two = shown(tmp_path, "heads2", "model.n_heads=2", verdicts=[found(rising(1.5217, 1.7330))], by=-0.0623)
    assert "OVERFIT" in four.badges and "OVERFIT" in two.badges
    assert verdict(two, four) == "one seed: inconclusive"
    assert FIXED_COLUMNS["Δparams"].value(two, four) == 0
    assert "compare best losses" in two.badges["OVERFIT"]


def test_a_translation_that_a_unigram_model_nearly_matches_has_not_learned(tmp_path) -> None:
    facts = DataFacts(unigram=6.6)
    alarm = check_learning(EvaluationScores(loss=6.82), facts, warmup=0, step=30_000)
    assert "NOT-LEARNING" in shown(tmp_path, "translation", verdicts=[found(alarm)]).badges


def test_four_equal_rows_of_a_bidirectional_model_leak_and_their_switches_do_nothing(tmp_path) -> None:
    rows = [
        shown(tmp_path, f"row{i}", f"model.n_layers={i + 1}", "model.causal=false", verdicts=[LEAK]) for i in range(4)
    ]
    assert all("LEAK" in row.badges for row in rows)
    assert verdict(rows[1], rows[0]) == "LEAK: not comparable"
    for row in rows:
        change(row.path / "summary.json", fingerprint="the same to the last bit")
    named = dict(inert_switches(RunReader(rows[0].path), tmp_path))
    assert set(named) == {"row1", "row2", "row3"} and "model.n_layers" in named["row1"]


def test_a_perplexity_of_1_03_is_not_possible(tmp_path) -> None:
    facts = DataFacts(unigram=3.347, plausible=1.2, floor=None)
    alarm = check_plausible(EvaluationScores(loss=0.0297), facts, TASKS["shifted"], step=1)
    copied = shown(tmp_path, "copied", by=-0.8, verdicts=[LEAK, found(alarm)])
    clean = shown(tmp_path, "clean")
    assert {"LEAK", "IMPLAUSIBLE"} <= copied.badges.keys()
    assert verdict(copied, clean) == "LEAK: not comparable" and FIXED_COLUMNS["Δlast"].value(copied, clean) is None


def test_a_warm_up_longer_than_the_run_was_not_done(tmp_path) -> None:
    train = [TrainRecord(step=step, loss=4.2 - 0.012 * step) for step in range(10, 121, 10)]
    alarm = check_curves(train, [ValidationRecord(step=120, loss=2.8)], when="after", step=120)
    short = shown(tmp_path, "short", verdicts=[found(alarm)])
    assert "STILL-FALLING" in short.badges
    assert verdict(short, shown(tmp_path, "other")) == "still falling: inconclusive"


def test_two_samples_that_share_42_characters_were_not_drawn_apart(tmp_path) -> None:
    passage = "the gate is barred and none shall pass tonight"
    new = {"step": 2, "text": f"xx {passage} yy", "chances": [0.23] * (len(passage) + 6)}
    alarm = check_repeated_sample(new, [{"step": 1, "text": f"aaaa {passage} b"}], step=2)
    assert "SAME-TEXT" in shown(tmp_path, "samples", verdicts=[found(alarm)]).badges


@pytest.mark.parametrize("by", [0.0, 0.0103, -0.05])
def test_a_clean_pair_shows_no_badge_and_no_conclusion(tmp_path, by) -> None:
    one, other = shown(tmp_path, "one"), shown(tmp_path, "other", "model.n_heads=2", by=by)
    assert not one.badges and not other.badges
    assert verdict(other, one) == "one seed: inconclusive"


def told(found) -> str:
    return "\n".join(f"{line.head} {line.text}" for lines in variant_detail(found).values() for line in lines)


def test_two_heads_against_four_at_one_seed_cannot_tell_and_at_their_best_neither(tmp_path) -> None:
    cell(tmp_path, "heads", "four", 42, verdicts=[found(rising(1.5320, 1.7953))])
    two = cell(tmp_path, "heads", "two", 42, "model.n_heads=2", verdicts=[found(rising(1.5217, 1.7330))], loss=-0.0623)
    shown = standings(tmp_path, pinned="heads.four.s42")["two"]
    assert shown.verdict() == "one seed: inconclusive" and CHECKS.screen_text(shown, None) == "OVERFIT"
    assert MORE_PARAMETERS.screen_text(shown, None) == "0"
    assert "at its best: one seed: inconclusive" in told(shown) and read_entry(two).badges["OVERFIT"] in told(shown)


def test_variants_that_leak_are_not_ranked_whatever_their_loss(tmp_path) -> None:
    for seed in (1, 2, 3):
        cell(tmp_path, "encoder", "base", seed, "model.causal=false", verdicts=[LEAK])
        for name in ("rope", "alibi", "win16"):
            bad = [("curve", "OVERFIT", "it rose"), ("inert", "INERT", "the same metrics"), LEAK]
            cell(tmp_path, "encoder", name, seed, "model.causal=false", verdicts=bad)
    found = standings(tmp_path, pinned="encoder.base.s1")
    for name in ("rope", "alibi", "win16"):
        assert found[name].verdict() == "LEAK: not comparable" and found[name].rank is None
        assert CHECKS.screen_text(found[name], None).split() == ["LEAK", "INERT", "OVERFIT"]
    assert not any(word in results_text(list(found.values())) for word in ("better", "worse by"))


def test_a_ranking_by_per_cent_of_the_loss_says_what_it_is_in_perplexity(tmp_path) -> None:
    facts = DataFacts(unigram=6.6)
    alarm = found(check_learning(EvaluationScores(loss=6.82), facts, warmup=0, step=30_000))
    cell(tmp_path, "mt", "base", 1, loss=5.9164, verdicts=[alarm])
    cell(tmp_path, "mt", "no-pe", 1, "model.position=none", loss=5.9164 + 0.63, verdicts=[alarm])
    shown = standings(tmp_path, pinned="mt.base.s1")["no-pe"]
    assert "NOT-LEARNING" in shown.badges and shown.verdict() == "one seed: inconclusive"
    assert "Loss +9.2%, perplexity +87.8%." in told(shown)
