"""Which runs are one variant, and which of them count; what is said of them is no more than their seeds allow."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.config.measures import probe_measure
from tests.tui_transformer.lab.analysis.studies import attention, cell, entries, standings
from tests.tui_transformer.lab.analysis.variants import LEAK, change, variant
from tests.tui_transformer.lab.records.test_feed import POISON, spoil
from tests.tui_transformer.recorded import put_status
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.detail import results_text, study_text, variant_detail
from tui_transformer.lab.analysis.entry import LAST, probe_measures, read_entry
from tui_transformer.lab.analysis.export import DATA_FORMATS, FORMATS, variant_comparison_table
from tui_transformer.lab.analysis.folder import RequestedStudy, read_study_file, study_files
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.sentences import evidence_sentence, verdict_sentence
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult, expectations, outcome_summary

RECALL = probe_measure("recall<110")


@pytest.fixture
def study(tmp_path) -> dict[str, VariantResult]:
    attention(tmp_path)
    return standings(tmp_path)


def test_runs_of_a_study_are_grouped_by_variant_with_the_baseline_of_its_file_first(study) -> None:
    assert list(study) == ["global", "win16", "heads2", "hot", "leaky"]
    assert study["global"].is_baseline and all(len(s.runs) == 3 for s in study.values())
    assert sorted(study["win16"].group.counted_runs) == [1, 2, 3]


def test_runs_of_no_study_that_differ_in_the_seed_alone_are_one_variant(tmp_path) -> None:
    for seed in (1, 2, 3):
        variant(tmp_path, f"heads2-s{seed}", f"seed={seed}", "model.n_heads=2", f"log.every={seed}", by=seed / 100)
        variant(tmp_path, f"base-{seed}", f"seed={seed}")
    found = standings(tmp_path, pinned="base-2")
    assert {name: s.seed_count_text for name, s in found.items()} == {"base": "3", "heads2": "3"}
    assert found["base"].is_baseline and found["heads2"].difference(LAST).mean == pytest.approx(0.02)


def test_other_settings_under_one_variants_name_do_not_count_as_its_seed(tmp_path) -> None:
    cell(tmp_path, "s", "a", 1)
    cell(tmp_path, "s", "a", 2, "model.n_layers=2")
    assert standings(tmp_path)["a"].seeds_text() == "1 of 2 seeds; 1 with different settings"


LEFT_OUT = {
    "failed": {"state": "failed", "step": 310, "reason": "no space is left"},
    "diverged": {"state": "failed", "step": 310, "reason": "the loss is not finite"},
    "still training": {"state": "running", "step": 800},
    "ended early": {"state": "stopped", "step": 800},
    "waiting": {"state": "queued", "step": 0},
    "without a score": {"state": "finished", "step": 0},
    "with a different context": {"scored": {"context": 64}},
    "with a different split": {"data": {"sha256": {"validation": "f" * 64}}},
}


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_what_is_not_a_finished_seed_does_not_count_and_is_said(tmp_path, reason) -> None:
    known = {"data": {"sha256": {"validation": "0" * 64}}}
    for seed in (1, 2):
        cell(tmp_path, "s", "a", seed, **known)
    cell(tmp_path, "s", "a", 3, **{**known, **LEFT_OUT[reason]})
    found = standings(tmp_path)["a"]
    assert (found.seed_count_text, found.seeds_text()) == ("2/3", f"2 of 3 seeds; 1 {reason}")
    assert found.mean(LAST).n == 2


def test_the_same_seed_twice_is_one_seed(tmp_path) -> None:
    for name in ("a", "b"):
        variant(tmp_path, f"same-{name}", "seed=4")
    assert standings(tmp_path)["same"].seeds_text() == "1 of 2 seeds; 1 with a repeated seed"


def test_seeds_and_variants_that_are_not_begun_are_said(tmp_path) -> None:
    cell(tmp_path, "att", "global", 1)
    cell(tmp_path, "att", "win16", 1, "model.attention=window", loss=0.1)
    attention_file(tmp_path)
    found = standings(tmp_path)
    assert found["win16"].seed_count_text == "1/3" and found["win16"].verdict() == "one seed: inconclusive"
    assert found["win16"].seeds_text() == "1 of 3 seeds; 2 not started"
    assert "Not started yet: heads2." in results_text(list(found.values()))


def attention_file(root: Path) -> None:
    from tests.tui_transformer.lab.analysis.studies import FILE

    (root / "att.study.toml").write_text(FILE)


def test_verdicts_are_those_of_the_engine_and_brief_beside_their_numbers(study) -> None:
    assert study["win16"].verdict() == "worse" and "worse by 0.050" in verdict_sentence(study["win16"])
    for name, decided in (("win16", True), ("heads2", True), ("leaky", False), ("global", False)):
        assert (" at these settings (" in verdict_sentence(study[name])) == decided
    assert study["heads2"].verdict().startswith(("no difference > 0.00", "inconclusive"))
    assert study["global"].verdict() == "—"
    assert " p " not in verdict_sentence(study["win16"])
    evidence = evidence_sentence(study["win16"])
    assert "exact sign-flip test p = 0.250" in evidence and "seed correlation r = +" in evidence
    of_three = {s.difference(LAST).comparison_count for s in study.values() if s.difference(LAST) is not None}
    assert len(of_three) == 1 and f"over {of_three.pop()} comparisons" in evidence
    assert evidence_sentence(study["leaky"]) == ""


def test_a_void_badge_stops_the_verdict_and_stands_first(tmp_path) -> None:
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed)
        bad = [("curve", "OVERFIT", "it rose"), *([LEAK] if seed == 2 else [])]
        cell(tmp_path, "s", "bad", seed, loss=-0.5, verdicts=bad)
    found = standings(tmp_path, pinned="s.base.s1")["bad"]
    assert found.verdict() == "LEAK: not comparable" and found.difference(LAST) is None and found.rank is None
    assert group_columns.CHECKS.screen_text(found, None) == "LEAK 1/3 OVERFIT"
    assert list(found.badges) == ["LEAK", "OVERFIT"] and found.badges["LEAK"].startswith("1 of 3 runs: ")
    assert standings(tmp_path, pinned="s.bad.s1")["base"].verdict() == "baseline LEAK: not comparable"


def test_an_inert_variant_is_no_comparison_but_its_baseline_still_is(tmp_path) -> None:
    inert = [("inert", "INERT", "the same metrics as run s.base.s1")]
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed, verdicts=inert)
        cell(tmp_path, "s", "idle", seed, "model.n_heads=2", verdicts=inert)
        cell(tmp_path, "s", "wide", seed, "model.d_model=320", loss=0.1)
    found = standings(tmp_path, pinned="s.base.s1")
    assert found["idle"].verdict() == "INERT: not comparable" and found["wide"].verdict() == "worse"


def test_a_variant_that_diverged_in_all_seeds_says_so(tmp_path) -> None:
    attention(tmp_path)
    for seed in (1, 3):
        put_status(tmp_path / f"att.hot.s{seed}", state="failed", reason="the loss is not a number")
    found = standings(tmp_path)["hot"]
    assert found.verdict() == "diverged in all 3 seeds" and found.seed_count_text == "0/3" and found.mean(LAST) is None


def test_seeds_that_diverged_are_said_to_flatter_the_others(study) -> None:
    assert study["hot"].verdict() == "worse" and "2 of 3 seeds; 1 diverged" in verdict_sentence(study["hot"])
    lines = [line.text for block in variant_detail(study["hot"]).values() for line in block]
    assert "1 of 3 seeds diverged and had to be excluded, so this mean looks better than it is." in lines


def test_without_a_baseline_nothing_is_concluded(tmp_path) -> None:
    attention(tmp_path)
    (tmp_path / "att.study.toml").unlink()
    assert {s.verdict() for s in standings(tmp_path).values()} == {""}
    assert standings(tmp_path, pinned="att.win16.s2")["global"].verdict() == "better"


def test_what_was_expected_stands_beside_what_came_out(study) -> None:
    found = expectations(study["win16"], probe_measures(study["win16"].runs))
    assert {e.what: e.outcome for e in found} == {
        "loss": "as expected",
        "recall": "as expected",
        "rhyme": "as expected",
        "counter": "unknown beforehand",
    }
    assert [m.key for m, _ in found[1].judgements] == ["recall<110", "recall>=110"]  # a family is all of its probes
    assert outcome_summary(found) == "3 as expected, 1 unknown"
    assert outcome_summary(expectations(study["heads2"], ())) in ("open", "not as expected")


def test_an_expectation_holds_only_against_the_studys_own_baseline(tmp_path) -> None:
    attention(tmp_path)
    assert expectations(standings(tmp_path, pinned="att.heads2.s1")["win16"], ()) == ()


def test_one_contradicting_probe_of_a_family_is_not_as_expected_and_an_open_one_is_open(tmp_path) -> None:
    for seed in (1, 2, 3):
        shift = (0.01, -0.02, 0.015)[seed - 1]
        cell(tmp_path, "att", "global", seed, scored={"probes": {"recall<110": 0.5 + shift, "recall>=110": 0.5}})
        better = {"probes": {"recall<110": 0.1 + shift / 2, "recall>=110": 0.9 + shift}}
        cell(tmp_path, "att", "win16", seed, loss=0.05, scored=better)
        unsure = {"probes": {"recall<110": 0.1 + shift / 2, "recall>=110": 0.5 + 9 * shift}}
        cell(tmp_path, "att", "heads2", seed, loss=0.05, scored=unsure)
    file = tmp_path / "att.study.toml"
    attention_file(tmp_path)
    file.write_text(file.read_text().replace('loss = "better"', 'recall = "worse"'))
    found = standings(tmp_path)
    outcome = lambda name: expectations(found[name], probe_measures(found[name].runs))
    assert next(e.outcome for e in outcome("win16") if e.what == "recall") == "not as expected"
    assert outcome("heads2")[0].outcome == "open"


def test_numbers_agree_with_scipy(study) -> None:
    stats = pytest.importorskip("scipy.stats")
    own = [run.last for run in study["win16"].runs]
    base = [run.last for run in study["global"].runs]
    found, mean = study["win16"].difference(LAST), study["win16"].mean(LAST)
    tested = stats.ttest_rel(own, base)
    low, high = tested.confidence_interval(0.95)
    assert found.p == pytest.approx(tested.pvalue) and found.half == pytest.approx((high - low) / 2)
    assert found.correlation == pytest.approx(stats.pearsonr(own, base).statistic)
    assert mean.half == pytest.approx(stats.t.ppf(0.975, 2) * stats.sem(own))
    others = [study[name] for name in ("win16", "heads2", "hot")]
    p = [stats.ttest_rel(*_shared(s, study["global"])).pvalue for s in others]
    family = study["win16"].family
    found = {(m, s.name): d for m in family.measures for s in study.values() if (d := s.difference(m)) is not None}
    others_weigh = 0.2 / sum(m is not LAST for m, _ in found)
    weights = {key: 0.8 / 3 if key[0] is LAST else others_weigh for key in found}
    ratios = {key: (1.0 if d.p is None else d.p) / weights[key] for key, d in found.items()}
    best = (LAST, others[p.index(min(p))].name)
    left = sum(weights[key] for key in found if ratios[key] >= ratios[best])  # what is decided before passes it on
    assert found[best].adjusted_p == pytest.approx(2 * min(p) / weights[best] * left, rel=1e-6)  # two looks


def _shared(one: VariantResult, other: VariantResult) -> tuple[list[float], list[float]]:
    seeds = sorted(set(one.group.counted_runs) & set(other.group.counted_runs))
    return [one.group.counted_runs[s].last for s in seeds], [other.group.counted_runs[s].last for s in seeds]


def test_per_cent_of_the_loss_and_of_the_perplexity_stand_beside_each_other(study) -> None:
    found = study["win16"]
    assert found.loss_change() == pytest.approx(found.difference(LAST).mean / study["global"].mean(LAST).mean)
    assert found.perplexity_change() == pytest.approx(0.0517, abs=1e-3)
    assert [study[name].rank for name in ("global", "heads2", "win16", "hot", "leaky")] == [1, 2, 3, 4, None]


def test_every_format_says_the_same_of_a_study(tmp_path, study) -> None:
    shown = list(study.values())
    data, paper = variant_comparison_table(shown, data=True), variant_comparison_table(shown)
    rows = json.loads(FORMATS["json"].write(data))
    assert rows[1]["variant"] == "win16" and rows[1]["Δlast"] == pytest.approx(0.0508, abs=1e-3)
    assert rows[1]["last verdict"] == "worse" and rows[1]["recall<110 verdict"] == "worse" and rows[3]["n"] == 2
    assert rows[4]["verdict"] == "LEAK: not comparable" and rows[4]["Δlast"] is None
    csv = FORMATS["csv"].write(data).splitlines()
    assert len(csv) == 6 and re.search(r"worse by 0\.05\d+ ± 0\.\d+ at these settings", csv[2])
    markdown = FORMATS["markdown"].write(paper).splitlines()
    assert len(markdown) == 7 and len({line.count(" | ") for line in markdown}) == 1 and "±" in markdown[3]
    latex = FORMATS["latex"].write(paper)
    assert r"$\pm$" in latex and "%" not in latex.replace(r"\%", "").split("\n", 2)[2].replace("4pt}%", "")


def test_the_text_of_a_study_has_table_probes_verdicts_and_expectations(tmp_path) -> None:
    attention(tmp_path)
    file = read_study_file(tmp_path / "att.study.toml")
    text = study_text(entries(tmp_path), file)
    for words in (
        "win16: worse by 0.05",
        "expected recall worse: as expected (near recall: worse by 53.0",
        "why: Two layers with a window of 16 reach 30 characters.",
        "LEAK: not comparable",
        "3 seeds can miss small differences",
        "expectations: 3 of 4 as expected",
    ):
        assert words in text, text
    narrow = study_text(entries(tmp_path), file, width=80)
    tables = narrow.split("global: the baseline")[0]
    assert max(map(len, tables.splitlines())) <= 80 and narrow.count("\nvariant ") > 3


def test_shares_are_points_where_they_differ(study) -> None:
    assert study["win16"].difference(RECALL).mean == pytest.approx(-0.53, abs=1e-3)
    text = results_text(list(study.values()))
    assert re.search(r"by 53\.\d \[5\d\.\d, 5\d\.\d\] points", text)


@pytest.mark.parametrize("poison", POISON, ids=lambda value: repr(value)[:12])
def test_values_of_any_type_and_hostile_names_are_survived(tmp_path, poison) -> None:
    run = cell(tmp_path, "s", "a", 1)
    cell(tmp_path, "s", "b", 1)
    spoil(run, poison)
    hostile = "\x1b]0;x\x07\u202e/../..\0 |[b]"
    change(tmp_path / "s.b.s1" / "run.json", study={"name": hostile, "variant": hostile, "seed": 1})
    (tmp_path / "s.study.toml").write_text("[[[")
    found = list(standings(tmp_path).values())
    text = results_text(found)
    assert not any((c < " " and c != "\n") or c in "\u202e\x9b" for c in text)
    for standing in found:
        assert variant_detail(standing)
    for name, kind in FORMATS.items():
        assert kind.write(variant_comparison_table(found, data=name in DATA_FORMATS, all_settings=True))


@pytest.mark.parametrize(
    "damage", ["[[[", "variants = 3", "baseline = 4\nseeds = 'x'\n[[variants]]\nname = 3", "\0", ""]
)
def test_a_damaged_study_file_takes_nothing_but_its_own_words_away(tmp_path, damage) -> None:
    attention(tmp_path)
    (tmp_path / "att.study.toml").write_text(damage)
    found = standings(tmp_path)
    assert len(found) == 5 and found["win16"].mean(LAST).n == 3 and found["win16"].verdict() == ""
    assert results_text(list(found.values()))


def test_a_study_file_is_read_again_only_where_it_changed(tmp_path, monkeypatch) -> None:
    attention(tmp_path, seeds=(1,))
    known = study_files(tmp_path)["att"]
    assert study_files(tmp_path)["att"] is known and known.baseline == "global"
    (tmp_path / "att.study.toml").write_text('baseline = "win16"\n')
    assert study_files(tmp_path)["att"].baseline == "win16"


def test_families_and_groups_are_kept_where_nothing_changed(tmp_path) -> None:
    attention(tmp_path)
    variant(tmp_path, "alone")
    grouping, kept, runs, files = Grouping(), VariantEvaluator(), entries(tmp_path), study_files(tmp_path)
    first = kept.evaluate(grouping.group(runs), files)
    again = kept.evaluate(grouping.group(list(runs)), files)
    assert all(a is b for a, b in zip(first, again, strict=True))
    at = next(i for i, run in enumerate(runs) if run.name == "alone")
    runs[at] = replace(runs[at], notes="changed")
    changed = kept.evaluate(grouping.group(runs), files)
    assert [s.name for s in changed if s not in first] == ["alone"]


def test_the_verdict_is_about_the_studys_primary_measure(tmp_path, study) -> None:
    assert study["win16"].primary is LAST  # what the runs select checkpoints by
    variants = [{"name": name} for name in ("global", "win16")]
    file = RequestedStudy(name="att", baseline="global", primary="recall", variants=variants)
    found = standings(tmp_path, files={"att": file})["win16"]
    assert found.primary.key == "recall<110"
    recall, loss = found.difference(found.primary), found.difference(LAST)
    assert recall.level > loss.level and recall.comparison_count == loss.comparison_count
    assert verdict_sentence(found).startswith("near recall: worse by 53.") and "points" in verdict_sentence(found)
    assert "verdicts are based on near recall" in results_text([found])
    named = standings(tmp_path, files={"att": file.model_copy(update={"primary": "recall>=110"})})["win16"]
    assert named.primary.key == "recall>=110"
    unknown = standings(tmp_path, files={"att": file.model_copy(update={"primary": "bleu"})})["win16"]
    assert unknown.primary is LAST


def test_questions_behind_a_share_are_read_from_any_version_of_a_run(tmp_path) -> None:
    old = read_entry(variant(tmp_path, "old", data={"probes": [{"name": "rhyme", "n": 120}]}))
    assert old.places["rhyme"] == 120
    new = read_entry(variant(tmp_path, "new", scored={"probe_places": {"rhyme": 80}, "questions": 500}))
    assert new.places["rhyme"] == 80 and new.places["exact_match"] == 500
    bad = read_entry(variant(tmp_path, "bad", scored={"probe_places": {"rhyme": "many"}, "questions": -1}))
    assert "rhyme" not in bad.places and "exact_match" not in bad.places
