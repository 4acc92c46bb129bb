"""The columns of variants: a mean and its interval share a cell on screen and paper; data has one number per cell."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from engine.base.language import Message, tr
from engine.config.measures import MEASURES_BY_KEY, Measure
from tui_transformer.lab.analysis import columns as runs_columns
from tui_transformer.lab.analysis.columns import (
    ABOUT_COLUMNS,
    FIXED_COLUMNS,
    Column,
    Value,
    difference_title,
    has_value,
    setting_columns,
    text_column,
)
from tui_transformer.lab.analysis.entry import BEST, EXCESS, LAST, LOSSES, RunEntry, probe_measures, score_measures
from tui_transformer.lab.analysis.verdict import (
    VariantResult,
    brief_verdict,
    expectations,
    judgement_text,
    outcome_summary,
    scores_of,
    with_settings_caveat,
)
from tui_transformer.lab.formatting import signed_per_cent
from tui_transformer.lab.records.badges import badge, mark_if_seen

_number: Callable[[Value], str] = "{:.6g}".format
_signed: Callable[[Value], str] = "{:+.6g}".format
_p: Callable[[Value], str] = lambda p: f"{p:.3f}" if p >= 0.001 else "<0.001"
ADJUSTED = Message("paired t test, corrected across all verdicts in the study and for a second look")


def _badges(standing: VariantResult, seen: Collection[str] = ()) -> str:
    counts, runs = standing.group.badge_counts, len(standing.runs)
    some = {n: f" {counts[n]}/{runs}" if counts[n] < runs else "" for n in standing.badges}
    return " ".join(mark_if_seen(badge(n).word + some[n], seen=n in seen) for n in standing.badges)


VARIANT = text_column(Message("variant"), lambda s: s.group.name, always=True)
TITLE = replace(VARIANT, title=Message("study: variant"), name="study: variant", value=lambda s, b: s.group.title)
STUDY = text_column("study", lambda s: s.group.study)
SEEDS = Column(
    "n",
    "n",
    Message("seeds"),
    lambda s, b: len(s.group.counted_runs),
    str,
    str,
    always=True,
    spread=lambda s: s.seed_count_text,
)
VERDICT = text_column(
    "verdict",
    lambda s: s.verdict(),
    show=tr,
    always=True,
    kind=lambda s, b: s.verdict_kind,
)
CHECKS = replace(runs_columns.CHECKS, spread=_badges, screen_cell=lambda s, b: _badges(s, s.badges_acknowledged))
P_VALUE = Column(
    "p",
    Message("p adj."),
    Message("p ({how})", how=ADJUSTED),
    lambda s, b: _difference_field(s, s.primary, "adjusted_p"),
    _p,
    _number,
)
PRIMARY = text_column(Message("primary"), lambda s: s.primary.name, Message("primary measure"), show=tr)
CHANGE = Message("loss − baseline's (% of baseline)")
PER_CENT = Column("%", "Δ %", CHANGE, lambda s, b: s.loss_change(), signed_per_cent, signed_per_cent)
PPL = Message("perplexity − baseline's (% of baseline)")
PERPLEXITY = Column(
    "ppl%", Message("Δ ppl %"), PPL, lambda s, b: s.perplexity_change(), signed_per_cent, signed_per_cent
)
RANK = Column("rank", Message("rank"), Message("rank by mean last loss"), lambda s, b: s.rank, str, str)


def _difference_field(standing: VariantResult, measure: Measure, what: str) -> Any:
    return getattr(standing.difference(measure), what, None)


def mean_column(measure: Measure, *, always: bool = False) -> Column:
    """`1.2431 ± 0.0031`; for a share `97.1 [90.2, 99.8]`."""
    title = measure.title if measure.is_share else measure.name if not measure.lower_is_better else measure.key
    return Column(
        measure.key,
        Message("{title} {unit}", title=Message(title), unit=measure.unit) if measure.unit else Message(title),
        _measure_heading(measure, Message(measure.name)),
        lambda s, b: getattr(s.mean(measure), "mean", None),
        measure.format_value,
        measure.format_value,
        always=always,
        spread=lambda s: "" if (mean := s.mean(measure)) is None else measure.format_mean(mean),
    )


def difference_column(measure: Measure) -> Column:
    """`+0.0476 ± 0.0050`; for a share `-21.1 [-30.3, -11.9]`."""
    return Column(
        f"Δ{measure.key}",
        difference_title(Message(measure.title.replace("_", " "))),
        _measure_heading(measure, difference_title(Message(measure.name))),
        lambda s, b: _difference_field(s, measure, "mean"),
        _signed,
        _signed,
        spread=lambda s: "" if (found := s.difference(measure)) is None else measure.format_mean(found, sign=True),
    )


def verdict_column(measure: Measure) -> Column:
    return replace(
        text_column(f"{measure.key} verdict", lambda s: brief_verdict(s.judgement(measure)), show=tr),
        title=Message("{title} verdict", title=Message(measure.title)),
        kind=lambda s, b: getattr(s.judgement(measure), "kind", ""),
    )


def _measure_heading(measure: Measure, name: str) -> str:
    """Its name, and that its interval is beside it."""
    named = Message("{name} (%)", name=name) if measure.unit == "%" else name
    return Message("{name}, 95 % interval", name=named)


def _averaged(of: Column) -> Column:
    """A run column as the mean over runs that count."""

    def value(standing: VariantResult, baseline: object) -> Value:
        found = [of.value(run, None) for run in standing.group.counted_runs.values()]
        known = [v for v in found if v is not None]
        mean = sum(known) / len(known) if known else None
        return round(mean) if mean is not None and all(isinstance(v, int) for v in known) else mean

    return replace(of, value=value)


def _of_representative(column: Column) -> Column:
    """Return a run column for the run that represents its variant, against the one that represents the baseline."""

    def value(standing: VariantResult, baseline: object) -> Value:
        level = standing.family.baseline
        return column.value(standing.group.representative, level.representative if level is not None else None)

    return replace(column, value=value)


PARAMETERS = _averaged(FIXED_COLUMNS["params"])
MORE_PARAMETERS = _of_representative(runs_columns.MORE_PARAMETERS)
TRAINING_COLUMNS = [_averaged(FIXED_COLUMNS[key]) for key in ("tokens", "flops", "tok/s", "time")]
COST_COLUMNS = (PARAMETERS, MORE_PARAMETERS, *TRAINING_COLUMNS)
DERIVED_COLUMNS = (PER_CENT, PERPLEXITY, RANK)
MAJORITY = Column(
    "majority",
    Message("majority"),
    Message("exact match when always giving the most frequent answer (not a run)"),
    lambda s, b: getattr(s.group.representative.majority, "share", None),
    "{:.1%}".format,
    _number,
)
OVER_MAJORITY = _averaged(runs_columns.OVER_MAJORITY)
MAJORITY_CLASS = replace(MAJORITY, name=Message("accuracy when always predicting the most frequent class (not a run)"))
OVER_CLASS = _averaged(runs_columns.OVER_CLASS)
ABOUT_GROUPS = [_of_representative(column) for column in ABOUT_COLUMNS if column.key in ("corpus", "unit")]


def differing_settings(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """A column per setting in which the variants differ from each other or their baseline, or per setting."""
    groups = dict.fromkeys([*(s.family.baseline for s in standings), *(s.group for s in standings)])
    among = [group.representative for group in groups if group is not None]
    found = setting_columns(among, all_settings=all_settings)
    return [_of_representative(column) for column in found if column.config_key != "seed"]


def all_runs(standings: Sequence[VariantResult]) -> list[RunEntry]:
    return [run for standing in standings for run in standing.runs]


def expected_column(measures: Sequence[Measure]) -> Column:
    """The outcome beside what the study expected."""

    value = lambda standing: outcome_summary(expectations(standing, measures))
    return text_column(Message("expected"), value, Message("outcome against expectations"), show=tr)


def main_columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """Everything but probes and other scores, most important first."""
    runs = all_runs(standings)
    measures = (*probe_measures(runs), *score_measures(runs))
    primary = {s.primary.key: s.primary for s in standings if s.primary is not LAST}.values()
    several = len({standing.group.study for standing in standings}) > 1
    offered = [
        *(TITLE if several else VARIANT, SEEDS, mean_column(LAST, always=True), difference_column(LAST)),
        *(column for m in primary for column in (mean_column(m), difference_column(m))),
        mean_column(MEASURES_BY_KEY["unknown"]),
        *(VERDICT, CHECKS, expected_column(measures), *differing_settings(standings, all_settings=all_settings)),
        *(P_VALUE, mean_column(BEST, always=True), difference_column(BEST), mean_column(EXCESS)),
        *(*COST_COLUMNS, *DERIVED_COLUMNS),
    ]
    return _with_values(offered, standings)


def columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    runs = all_runs(standings)
    more: list[Column] = []
    for measure in (*probe_measures(runs), *score_measures(runs)):
        more.append(mean_column(measure))
        if measure.is_compared:
            more += [difference_column(measure), verdict_column(measure)]
    main = main_columns(standings, all_settings=all_settings)
    shown = {column.key for column in main}
    rest = [column for column in more if column.key not in shown]
    return [*main, *_with_values([*rest, MAJORITY, OVER_MAJORITY, PRIMARY, STUDY, *ABOUT_GROUPS], standings)]


def data_columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """The same for programs: one number per column, shares from 0 to 1."""
    runs = all_runs(standings)
    others = (*probe_measures(runs), *score_measures(runs))
    names = [STUDY, VARIANT, SEEDS, *(_plain(k, n, v) for k, n, v in _COUNTS), PRIMARY, VERDICT, SENTENCE, CHECKS]
    numbers = [column for measure in (*LOSSES, *others) for column in _numbers(measure)]
    changed = differing_settings(standings, all_settings=all_settings)
    shares = (replace(c, name=c.name.replace("% of", "share of"), show=_number, write=_number) for c in DERIVED_COLUMNS)
    classify = any(run.classification is not None for run in runs)
    majority = _with_values((MAJORITY_CLASS, OVER_CLASS) if classify else (MAJORITY, OVER_MAJORITY), standings)
    return [*names, *numbers, expected_column(others), *changed, *COST_COLUMNS, *shares, *majority, *ABOUT_GROUPS]


_COUNTS: tuple[tuple[str, str, Callable[[VariantResult], Value]], ...] = (
    ("runs", "runs", lambda s: len(s.runs)),
    ("seeds", "seeds, in words", lambda s: s.seeds_text()),
    ("baseline", "baseline", lambda s: s.family.baseline.name if s.family.baseline is not None else ""),
)


def _sentence(standing: VariantResult) -> str:
    judged, reason = standing.judgement(standing.primary), standing.family.incomparable_reason(standing.group)
    if reason is not None:
        return reason
    return with_settings_caveat(judgement_text(judged), judged) if judged is not None else ""


SENTENCE = text_column("judgement", _sentence, "verdict with its numbers")


def _plain(key: str, name: str, value: Callable[[VariantResult], Value]) -> Column:
    return Column(key, key, name, lambda s, b: value(s), str, lambda v: v if isinstance(v, str) else _number(v))


def _numbers(measure: Measure) -> Iterable[Column]:
    """Mean and interval; for judged measures, also every figure on the difference."""
    key, name = measure.key, measure.key if measure.is_probe else measure.name
    yield _plain(key, f"{name}, mean", lambda s: getattr(s.mean(measure), "mean", None))
    if measure.is_share:
        for i, end in enumerate(("low", "high")):
            at = lambda s, i=i: ends[i] if (ends := getattr(s.mean(measure), "interval", None)) is not None else None
            yield _plain(f"{key} {end}", f"{name}, {end} end of the 95 % interval", at)
        yield _plain(f"{key} places", f"{name}, questions", lambda s: scores_of(s.group, measure).places)
    else:
        half = lambda s: getattr(s.mean(measure), "half", None)
        yield _plain(f"{key} ±", f"{name}, half-width of the 95 % interval", half)
    if measure.is_compared:
        for suffix, what, of in _DIFFERENCES:
            value = partial(_difference_field, measure=measure, what=of)
            yield _plain(f"Δ{key}{suffix}", f"{name} − baseline's{what}", value)
        yield _plain(f"{key} verdict", f"{name}, verdict", lambda s: getattr(s.judgement(measure), "kind", ""))


_DIFFERENCES = (
    ("", ", paired by seed", "mean"),
    (" ±", ", half-width of the 95 % interval", "half"),
    (" n", ", seeds in common", "n"),
    (" p", ", p (paired t)", "p"),
    (" p_adjusted", f", p ({ADJUSTED})", "adjusted_p"),
    (" p_flip", ", p (exact sign-flip test)", "sign_flip_p"),
    (" r", ", correlation over seeds", "correlation"),
)


def _with_values(offered: Iterable[Column], standings: Sequence[VariantResult]) -> list[Column]:
    return [c for c in offered if c.always or c.config_key or any(has_value(c.value(s, None)) for s in standings)]
