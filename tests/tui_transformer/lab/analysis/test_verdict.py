"""What may be concluded: never more than one seed can show; and which scores are different measures."""

import itertools
from dataclasses import replace

import pytest

from engine.runs.reader import RunReader
from engine.runs.records import StudyPlace
from tests.tui_transformer.lab.analysis.variants import LEAK, change, entry, variant
from tui_transformer.cli.run.summary import print_summary
from tui_transformer.lab.analysis import columns as differences
from tui_transformer.lab.analysis.columns import FIXED_COLUMNS, columns
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import BEST, BITS_PER_BYTE, LAST, RunEntry, read_entry
from tui_transformer.lab.analysis.folder import RequestedStudy, StudyVariant
from tui_transformer.lab.analysis.group_columns import main_columns
from tui_transformer.lab.analysis.groups import Grouping, comparable, why_incomparable
from tui_transformer.lab.analysis.query import sort
from tui_transformer.lab.analysis.sentences import table_footnotes
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult, verdict, verdict_kind
from tui_transformer.lab.records.badges import BADGES, badge

HASHES = {"validation": "f" * 64}


@pytest.fixture
def baseline(tmp_path) -> RunEntry:
    return entry(tmp_path, "baseline")


def test_one_run_each_cannot_tell_however_large_the_difference(tmp_path, baseline) -> None:
    assert verdict(entry(tmp_path, "worse", by=3.0), baseline) == "one seed: inconclusive"
    assert verdict(entry(tmp_path, "lower", by=-0.5), baseline) == "one seed: inconclusive"
    assert verdict(baseline, baseline) == "—" and verdict(baseline, None) == ""


OTHERS = {
    "different corpus": {"data": {"corpus": "tiny-shakespeare@1"}},
    "different split": {"data": {"sha256": HASHES}},
    "different context": {"scored": {"context": 128}},
    "different stride": {"scored": {"stride": 1}},
    "different objective": {"settings": ["model.architecture=encoder", "objective.kind=masked"]},
}


@pytest.mark.parametrize("said", OTHERS)
def test_scores_that_are_other_measures_are_not_compared(tmp_path, said) -> None:
    known = {"sha256": {"validation": "0" * 64}}
    base = entry(tmp_path, "baseline", data=known)
    more = {"data": known, **OTHERS[said]}
    found = entry(tmp_path, "other", *more.pop("settings", []), **more)
    assert verdict(found, base) == f"{said}: not comparable" and not comparable(found, base)
    assert why_incomparable(found, base).startswith("other was scored ")
    for key in ("Δlast", "Δbest"):
        assert FIXED_COLUMNS[key].value(found, base) is None  # a difference between them is no number


def test_another_unit_is_not_compared(baseline) -> None:
    found = replace(baseline, path=baseline.path / "x", protocol=replace(baseline.protocol, unit="token"))
    assert verdict(found, baseline) == "different unit: not comparable"


def with_tokens(entry: RunEntry, bits: float | None, sha256: str = "b" * 64) -> RunEntry:
    protocol = replace(entry.protocol, unit="token" if sha256 else "character", tokens=sha256, context=64, stride=64)
    return replace(entry, protocol=protocol, scores={} if bits is None else {"bits_per_byte": bits})


def test_other_tokens_are_compared_by_bits_per_byte_and_by_nothing_else(tmp_path, baseline) -> None:
    base = replace(baseline, scores={"bits_per_byte": 2.0})
    found = with_tokens(entry(tmp_path, "words", by=5.0), 1.75)
    assert verdict(found, base) == "one seed: inconclusive" and not comparable(found, base)
    assert FIXED_COLUMNS["Δbits_per_byte"].value(found, base) == -0.25
    assert FIXED_COLUMNS["Δlast"].value(found, base) is None and FIXED_COLUMNS["Δbest"].value(found, base) is None
    assert "the two losses are different measures" in why_incomparable(found, base)
    assert FIXED_COLUMNS["Δbits_per_byte"].value(base, replace(base, path=base.path / "x")) is None  # the same tokens


def test_runs_that_did_not_spell_or_know_few_words_are_not_compared(tmp_path, baseline) -> None:
    base = replace(baseline, scores={"bits_per_byte": 2.0})
    found = with_tokens(entry(tmp_path, "words"), 1.0)
    known, unknown = (replace(found, scores=found.scores | {"unknown": share}) for share in (0.25, 0.26))
    older = replace(found, scores={"unknown": 0.01}, redefined=("bits_per_byte",))
    for run, why in ((unknown, "more than 25% of the tokens are <unk>"), (older, "without the spelling of <unk>")):
        for one, other in ((run, base), (base, run)):
            assert why in verdict(one, other) and verdict_kind(one, other) == "incomparable"
            assert FIXED_COLUMNS["Δbits_per_byte"].value(one, other) is None
    assert verdict(known, base) == "one seed: inconclusive"
    results = {result.name: result for result in family_of({"base": [base], "known": [known], "older": [older]})}
    assert (
        results["known"].judgement(BITS_PER_BYTE).kind == "one-seed"
        and results["older"].judgement(BITS_PER_BYTE) is None
    )
    said = list(table_footnotes(tuple(results.values())))
    assert any("spelling every <unk>" in line for line in said)
    assert "unknown" in [column.key for column in main_columns(tuple(results.values()))]


def test_other_tokens_without_bits_per_byte_or_of_another_text_are_not_compared(tmp_path, baseline) -> None:
    base = replace(baseline, scores={"bits_per_byte": 2.0})
    found = with_tokens(entry(tmp_path, "words"), None)
    assert verdict(found, base) == "different unit: not comparable"
    elsewhere = with_tokens(entry(tmp_path, "elsewhere"), 1.75)
    elsewhere = replace(elsewhere, protocol=replace(elsewhere.protocol, corpus="another"))
    assert verdict(elsewhere, base) == "different corpus: not comparable"
    assert FIXED_COLUMNS["Δbits_per_byte"].value(elsewhere, base) is None


def family_of(runs: dict[str, list[RunEntry]]) -> tuple[VariantResult, ...]:
    """The results of a study, its first variant the baseline."""
    placed = [
        replace(
            run,
            path=run.path.with_name(f"{name}-{seed}"),
            seed=seed,
            config=run.config | {"seed": seed},
            state="finished",
            study=StudyPlace(name="tokens", variant=name, seed=seed),
        )
        for name, found in runs.items()
        for seed, run in enumerate(found)
    ]
    variants = tuple(StudyVariant(name=name) for name in runs)
    file = RequestedStudy.model_validate({"baseline": next(iter(runs)), "variants": variants})
    return VariantEvaluator().evaluate(Grouping().group(placed), {"tokens": file})


def test_a_study_of_tokenizers_is_judged_by_bits_per_byte(tmp_path, baseline) -> None:
    noise = (0.0, 0.001, -0.001, 0.002)
    base = [replace(baseline, last=1.2 + e, scores={"bits_per_byte": 2.0 + e}) for e in noise]
    same = [replace(baseline, last=1.1 + e / 2, scores={"bits_per_byte": 1.9 + e / 2}) for e in noise]
    words = [with_tokens(replace(baseline, last=4.0 + e), 1.5 + e / 2) for e in noise]
    results = {result.name: result for result in family_of({"characters": base, "deeper": same, "words": words})}
    assert {result.primary.key for result in results.values()} == {"bits_per_byte"}
    assert results["words"].verdict().startswith("better") and results["deeper"].verdict().startswith("better")
    assert results["words"].difference(BITS_PER_BYTE).mean == pytest.approx(-0.5, abs=0.01)
    for measure in (LAST, BEST, *results["words"].family.measures[:-1]):
        assert results["words"].difference(measure) is None and results["words"].judgement(measure) is None
    assert results["deeper"].difference(LAST).mean == pytest.approx(-0.1, abs=0.01)
    assert results["words"].loss_change() is None and results["words"].rank is None


def test_a_study_of_one_tokenizer_is_judged_as_before(baseline) -> None:
    runs = [replace(baseline, last=1.2 + e, scores={"bits_per_byte": 2.0 + e}) for e in (0.0, 0.001)]
    results = family_of({"a": runs, "b": runs})
    assert all(result.primary is LAST for result in results)
    assert all(measure.key != "bits_per_byte" for result in results for measure in result.family.measures)


def test_the_same_text_by_another_cut_is_the_same_split(tmp_path) -> None:
    one = entry(tmp_path, "a", "data.validation_fraction=0.1", data={"sha256": HASHES})
    two = entry(tmp_path, "b", "data.validation_fraction=0.2", data={"sha256": HASHES})
    assert comparable(one, two)


def test_before_the_text_is_known_the_settings_say_which_it_is(tmp_path, baseline) -> None:
    queued = entry(tmp_path, "queued", state="queued", step=0)
    elsewhere = entry(tmp_path, "elsewhere", "data.corpus=x.txt", state="queued", step=0)
    assert verdict(queued, baseline) == "no score yet"
    assert verdict(elsewhere, baseline) == "different corpus: not comparable"


@pytest.mark.parametrize("name", [name for name, found in BADGES.items() if found.void])
def test_void_scores_are_not_compared_on_either_side(tmp_path, baseline, name) -> None:
    leaky = entry(tmp_path, "leaky", verdicts=[("some", name, "why")])
    assert verdict(leaky, baseline) == f"{name}: not comparable"
    assert verdict(baseline, leaky) == f"baseline {name}: not comparable"
    assert FIXED_COLUMNS["Δlast"].value(leaky, baseline) is None


def test_runs_that_are_not_done_cannot_tell(tmp_path, baseline) -> None:
    live = entry(tmp_path, "live", state="running", step=800)
    stopped = entry(tmp_path, "stopped", state="stopped", step=800)
    falling = entry(tmp_path, "falling", verdicts=[("curve", "STILL-FALLING", "it fell")])
    assert verdict(live, baseline) == "still training"
    assert verdict(baseline, live) == "still training"
    assert verdict(stopped, baseline) == "ended early"
    assert verdict(falling, baseline) == "still falling: inconclusive"


def test_no_verdict_ever_claims_anything(tmp_path, baseline) -> None:
    found = [baseline, entry(tmp_path, "leak", verdicts=[LEAK]), entry(tmp_path, "live", state="running", step=500)]
    found += [entry(tmp_path, "b", by=-0.3), entry(tmp_path, "c", scored={"context": 1}), entry(tmp_path, "q", step=0)]
    for one, two in itertools.product(found, found):
        said = verdict(one, two)
        assert said == "—" or said.endswith(
            ("inconclusive", "still training", "ended early", "not comparable", "no score yet")
        )


def test_equal_parameters_are_a_zero_and_not_a_guess(tmp_path, baseline) -> None:
    heads2 = entry(tmp_path, "heads2", "model.n_heads=2")
    assert (
        FIXED_COLUMNS["Δparams"].screen_text(heads2, baseline) == "0"
        and FIXED_COLUMNS["Δparams"].file_text(heads2, baseline) == "0"
    )


def test_only_settings_that_differ_are_columns_and_bookkeeping_is_none(tmp_path, baseline) -> None:
    found = [baseline, entry(tmp_path, "b", "model.n_heads=2", "log.every=3", preset="x")]
    assert differences.differing_keys(found) == ["model.n_heads"]
    assert [c.title for c in columns(found, baseline) if c.config_key] == ["n_heads"]
    everything = [c.key for c in columns(found, baseline, all_settings=True) if c.config_key]
    assert "log.every" in everything and len(everything) > 60


def test_a_damaged_config_makes_nothing_differ(tmp_path, baseline) -> None:
    run = variant(tmp_path, "broken")
    (run / "config.toml").write_text("[[[")
    assert differences.differing_keys([baseline, read_entry(run), entry(tmp_path, "c")]) == []


def test_last_parts_that_two_keys_share_are_written_in_full() -> None:
    keys = ["evaluation.every", "checkpoint.every", "model.n_heads"]
    assert list(differences.short_names(keys).values()) == ["evaluation.every", "checkpoint.every", "n_heads"]


@pytest.mark.parametrize("key", FIXED_COLUMNS)
def test_every_column_sorts_both_ways_with_what_is_missing_last(tmp_path, baseline, key) -> None:
    found = [baseline, entry(tmp_path, "b", by=0.2, tags=("t",)), entry(tmp_path, "q", state="queued", step=0)]
    column = FIXED_COLUMNS[key]
    for reverse in (False, True):
        order = sort(found, column, baseline, reverse=reverse)
        values = [column.value(e, baseline) for e in order]
        known = [value for value in values if value not in (None, "", ())]
        assert values[: len(known)] == known and sorted(e.name for e in order) == ["b", "baseline", "q"]


def test_runs_with_equal_values_keep_their_order_both_ways(tmp_path) -> None:
    found = [entry(tmp_path, name) for name in ("c", "a", "b")]
    for reverse in (False, True):
        assert [e.name for e in sort(found, FIXED_COLUMNS["last"], None, reverse=reverse)] == ["c", "a", "b"]


def test_the_detail_says_every_badge_why_and_what_to_do(tmp_path, baseline) -> None:
    bad = [(name, name, f"because of {name}") for name in BADGES]
    blocks = detail(entry(tmp_path, "bad", verdicts=bad), baseline)
    text = "\n".join(f"{line.head} {line.text}" for line in next(iter(blocks.values())))
    for name, found in BADGES.items():
        assert name in text and found.means in text and found.advice in text and f"because of {name}" in text


def test_the_detail_has_all_settings_probes_notes_and_what_is_damaged(tmp_path, baseline) -> None:
    run = variant(tmp_path, "a", "model.n_heads=2", note="one\ntwo", tags=("x", "y"))
    change(run / "run.json", study={"name": "s", "variant": "v", "seed": 1})
    (run / "checks.json").write_text("{")
    text = "\n".join(
        f"{line.head} {line.text}" for block in detail(read_entry(run), baseline).values() for line in block
    )
    for words in ("model.n_heads 2   (baseline: 4)", "optimizer.lr 0.0003", "near recall 62.0%", "#x #y", "note one"):
        assert words in text
    assert "checks.json cannot be read" in text and "s: v, seed 1" in text


def test_the_detail_and_the_end_of_a_run_say_what_averaged_weights_score(tmp_path, capsys) -> None:
    run = variant(tmp_path, "a")
    best = read_entry(run).best
    assert best is not None
    change(run / "summary.json", ema={"loss": best}, average={"loss": best + 0.5})
    said = [("moving average of the weights", f"{best:.4f}, equal to best")]
    said += [("mean of the last checkpoints", f"{best + 0.5:.4f}, 0.5000 higher than best")]
    scores = detail(read_entry(run), None)["Scores"]
    assert [(line.head, line.text) for line in scores[-2:]] == said
    print_summary(RunReader(run), as_json=False)
    out = capsys.readouterr().out
    assert all(f"  {name} {words}\n" in out for name, words in said)


def test_badges_have_short_words_and_whole_sentences() -> None:
    for found in BADGES.values():
        assert len(found.word) <= 12 and found.means.endswith(".") and found.advice.endswith(".")
    assert badge("OF-TOMORROW").word == "OF-TOMORR"
