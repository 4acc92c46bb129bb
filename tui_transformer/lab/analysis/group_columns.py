"""The columns of variants: on the screen and on paper a mean with its interval in one cell, in data a number a cell."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from engine.measures import Measure
from tui_transformer.lab.analysis.columns import (
    ABOUT,
    MEASURED,
    Column,
    Value,
    checks,
    differing,
    has_value,
    setting,
    settings,
    short_names,
)
from tui_transformer.lab.analysis.entry import BEST, EXCESS, LAST, LOSSES, Entry, probes, scores
from tui_transformer.lab.analysis.language import ENGLISH
from tui_transformer.lab.analysis.verdict import VariantResult, brief, expectations, scores_of, summary
from tui_transformer.lab.formatting import per_cent
from tui_transformer.lab.records.badges import PASSED, badge

_text: Callable[[Value], str] = str
_number: Callable[[Value], str] = "{:.6g}".format
_signed: Callable[[Value], str] = "{:+.6g}".format
_cent: Callable[[Value], str] = per_cent
ADJUSTED = "paired t, corrected for all verdicts of the study and a second look"
_p: Callable[[Value], str] = lambda p: f"{p:.3f}" if p >= 0.001 else "<0.001"


def _label(title: str, value: Callable[[VariantResult], str]) -> Column:
    return Column("variant", title, title, lambda s, b: value(s), _text, _text, right=False, always=True)


VARIANT = _label("variant", lambda s: s.group.name)
TITLE = _label("study: variant", lambda s: s.group.title)
STUDY = Column("study", "study", "study", lambda s, b: s.group.study, _text, _text, right=False)
SEEDS = Column("n", "n", "seeds", lambda s, b: len(s.group.counted), _text, _text, always=True, spread=lambda s: s.n)
VERDICT = Column("verdict", "verdict", "verdict", lambda s, b: s.verdict, _text, _text, right=False, always=True)
CHECKS = Column(
    *("checks", "checks", "checks", checks, " ".join, " ".join),
    right=False,
    always=True,
    spread=lambda s: " ".join(_counted(s, name) for name in s.badges),
    nothing=PASSED,
)
P = Column("p", "p adj.", f"p ({ADJUSTED})", lambda s, b: _of(s, s.primary, "adjusted_p"), _p, _number)
PRIMARY = Column("primary", "primary", "primary measure", lambda s, b: s.primary.name, _text, _text, right=False)
PER_CENT = Column("%", "Δ %", "loss − baseline's (% of it)", lambda s, b: s.per_cent(), _cent, _cent)
PERPLEXITY = Column(
    *("ppl%", "Δ ppl %", "perplexity − baseline's (% of it)", lambda s, b: s.perplexity_per_cent(), _cent, _cent)
)
RANK = Column("rank", "rank", "rank by mean last loss", lambda s, b: s.rank, _text, _text)


def _counted(standing: VariantResult, name: str) -> str:
    count, runs = standing.group.badge_counts[name], len(standing.runs)
    return badge(name).word if count == runs else f"{badge(name).word} {count}/{runs}"


def _of(standing: VariantResult, measure: Measure, what: str) -> Any:
    found = standing.difference(measure)
    return None if found is None else getattr(found, what)


def _mean(standing: VariantResult, measure: Measure) -> float | None:
    mean = standing.mean(measure)
    return None if mean is None else mean.mean


def mean_column(measure: Measure, *, always: bool = False) -> Column:
    """`1.2431 ± 0.0031`; for a share `97.1 [90.2, 99.8]`."""
    return Column(
        measure.key,
        _titled(measure),
        f"{_named(measure)}, 95 % interval",
        lambda s, b: _mean(s, measure),
        *(measure.amount, measure.amount),
        always=always,
        spread=lambda s: "" if (mean := s.mean(measure)) is None else measure.spread(mean),
    )


def difference_column(measure: Measure, *, always: bool = False) -> Column:
    """`+0.0476 ± 0.0050`; for a share `-21.1 [-30.3, -11.9]`."""
    return Column(
        f"Δ{measure.key}",
        f"Δ {measure.key.replace('_', ' ')}",
        f"Δ {_named(measure)}, 95 % interval",
        lambda s, b: _of(s, measure, "difference"),
        *(_signed, _signed),
        always=always,
        spread=lambda s: "" if (found := s.difference(measure)) is None else measure.spread(found.estimate, sign=True),
    )


def verdict_column(measure: Measure) -> Column:
    """What may be concluded about a probe or another score."""
    value = lambda s, b: brief(s.judgement(measure))
    name = f"{measure.key} verdict"
    return Column(name, name, name, value, _text, _text, right=False)


def _titled(measure: Measure) -> str:
    return f"{measure.key} %" if measure.unit == "%" else measure.name if not measure.lower else measure.key


def _named(measure: Measure) -> str:
    return f"{measure.name} (%)" if measure.unit == "%" else measure.name


def _averaged(key: str) -> Column:
    """A column of runs as the mean of those that count."""
    of = next(column for column in MEASURED if column.key == key)

    def value(standing: VariantResult, baseline: object) -> Value:
        found = [of.value(run, None) for run in standing.group.counted.values()]
        known = [v for v in found if v is not None]
        mean = sum(known) / len(known) if known else None
        return round(mean) if mean is not None and all(isinstance(v, int) for v in known) else mean

    return Column(key, of.title, of.name, value, of.show, of.write, always=of.always)


PARAMETERS, TIME = _averaged("params"), _averaged("time")


def _more_parameters(standing: VariantResult, baseline: object) -> int | None:
    level = standing.family.baseline
    if level is None or standing.is_baseline:
        return None
    own, others = standing.group.representative.parameters, level.representative.parameters
    return own - others if own is not None and others is not None else None


MORE_PARAMETERS = Column(
    *("Δparams", "Δ params", "parameters − baseline's", _more_parameters),
    *(lambda value: f"{value:+,}" if value else "0", str),
)
FAIRNESS = (PARAMETERS, MORE_PARAMETERS, *map(_averaged, ("tokens", "flops", "tok/s")), TIME)
HANDED_IN = (PER_CENT, PERPLEXITY, RANK)


def _over_majority(standing: VariantResult, baseline: object) -> float | None:
    found = [run.over_majority for run in standing.group.counted.values()]
    known = [value for value in found if value is not None]
    return sum(known) / len(known) if known else None


def _majority(standing: VariantResult, baseline: object) -> float | None:
    found = standing.group.representative.majority
    return None if found is None else found.share


MAJORITY = Column(
    *("majority", "majority", "exact match of always the most frequent answer (no run)", _majority),
    *("{:.1%}".format, "{:.6g}".format),
)
OVER_MAJORITY = Column(
    *("Δmajority", "Δ majority", "exact match − that of always the most frequent answer", _over_majority),
    *("{:+.1%}".format, "{:+.5g}".format),
)


def _of_representative(column: Column) -> Column:
    """A column of runs that is the same in every run of a variant."""
    value = lambda s, b: column.value(s.group.representative, None)
    return Column(
        *(column.key, column.title, column.name, value, column.show, column.write),
        right=column.right,
        dotted=column.dotted,
    )


def differing_settings(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """A column for each setting in which the variants differ from each other or their baseline, or for every one."""
    baselines = {id(s.family.baseline): s.family.baseline for s in standings if s.family.baseline is not None}
    groups = {id(group): group for group in (*baselines.values(), *(s.group for s in standings))}
    among: list[Entry] = [group.representative for group in groups.values()]
    keys = settings(among) if all_settings else differing(among)
    titles = short_names(keys)
    return [_of_representative(setting(key, titles[key])) for key in keys if key != "seed"]


ABOUT_GROUPS = [_of_representative(column) for column in ABOUT if column.key in ("corpus", "unit")]


def of_runs(standings: Sequence[VariantResult]) -> list[Entry]:
    return [run for standing in standings for run in standing.runs]


def expected_column(measures: Sequence[Measure]) -> Column:
    """What came out beside what the study said beforehand."""
    value = lambda s, b: summary(expectations(s, measures))
    return Column("expected", "expected", "expected beforehand", value, _text, _text, right=False)


def main_columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """Everything but probes and other scores, the most important first."""
    runs = of_runs(standings)
    measures = (*probes(runs), *scores(runs))
    several = len({standing.group.study for standing in standings}) > 1
    offered = [
        *(TITLE if several else VARIANT, SEEDS, mean_column(LAST, always=True), difference_column(LAST)),
        *_primary_columns(standings),
        *(VERDICT, CHECKS, expected_column(measures), *differing_settings(standings, all_settings=all_settings)),
        *(P, mean_column(BEST, always=True), difference_column(BEST), mean_column(EXCESS)),
        *(*FAIRNESS, *HANDED_IN),
    ]
    return _with_values(offered, standings)


def _primary_columns(standings: Sequence[VariantResult]) -> list[Column]:
    """Mean and difference of the primary measures other than the loss."""
    measures = {s.primary.key: s.primary for s in standings if s.primary is not LAST}
    return [column for m in measures.values() for column in (mean_column(m), difference_column(m))]


def columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """What a table of these variants shows, in its order."""
    runs = of_runs(standings)
    more: list[Column] = []
    for measure in (*probes(runs), *scores(runs)):
        more.append(mean_column(measure))
        if measure.judged:
            more += [difference_column(measure), verdict_column(measure)]
    main = main_columns(standings, all_settings=all_settings)
    shown = {column.key for column in main}
    rest = [column for column in more if column.key not in shown]
    return [*main, *_with_values([*rest, MAJORITY, OVER_MAJORITY, PRIMARY, STUDY, *ABOUT_GROUPS], standings)]


def data_columns(standings: Sequence[VariantResult], *, all_settings: bool = False) -> list[Column]:
    """The same for programs: every number in a column of its own, shares from 0 to 1."""
    runs = of_runs(standings)
    others = (*probes(runs), *scores(runs))
    names = [STUDY, VARIANT, SEEDS, *(_plain(k, n, v) for k, n, v in _COUNTS), PRIMARY, VERDICT, SENTENCE, CHECKS]
    numbers = [column for measure in (*LOSSES, *others) for column in _numbers(measure)]
    rest = [expected_column(others), *differing_settings(standings, all_settings=all_settings), *FAIRNESS, *HANDED_IN]
    rest += _with_values((MAJORITY, OVER_MAJORITY), standings)
    return [*names, *numbers, *(_as_data(column) for column in (*rest, *ABOUT_GROUPS))]


_COUNTS: tuple[tuple[str, str, Callable[[VariantResult], Value]], ...] = (
    ("runs", "runs", lambda s: len(s.runs)),
    ("seeds", "seeds in words", lambda s: s.seeds),
    ("baseline", "baseline", lambda s: s.family.baseline.name if s.family.baseline is not None else ""),
)


def _sentence(standing: VariantResult, baseline: object) -> str:
    judged = standing.judgement(standing.primary)
    return standing.why_not or (ENGLISH.judgement(judged) if judged is not None else "")


SENTENCE = Column(
    *("judgement", "judgement", "verdict with its numbers"),
    *(_sentence, _text, _text),
    right=False,
)


def _plain(key: str, name: str, value: Callable[[VariantResult], Value]) -> Column:
    return Column(key, key, name, lambda s, b: value(s), _text, _number_or_text)


def _number_or_text(value: Value) -> str:
    return value if isinstance(value, str) else _number(value)


def _numbers(measure: Measure) -> Iterable[Column]:
    """Mean and interval, and for judged measures everything about the difference."""
    key, name = measure.key, measure.name
    yield _plain(key, f"{name}, mean", lambda s: _mean(s, measure))
    if measure.share:
        for i, end in enumerate(("low", "high")):
            yield _plain(f"{key} {end}", f"{name}, {end} end of the 95 % interval", partial(_end, measure=measure, i=i))
        yield _plain(f"{key} places", f"{name}, questions", lambda s: scores_of(s.group, measure).places)
    else:
        yield _plain(f"{key} ±", f"{name}, half of the 95 % interval", lambda s: getattr(s.mean(measure), "half", None))
    if measure.judged:
        for suffix, what, of in _DIFFERENCES:
            yield _plain(f"Δ{key}{suffix}", f"{name} − baseline's{what}", partial(_of, measure=measure, what=of))
        yield _plain(f"{key} verdict", f"{name}, verdict", lambda s: getattr(s.judgement(measure), "kind", ""))


def _end(standing: VariantResult, measure: Measure, i: int) -> Value:
    mean = standing.mean(measure)
    return None if mean is None or mean.interval is None else mean.interval[i]


_DIFFERENCES = (
    ("", ", paired by seed", "difference"),
    (" ±", ", half of the 95 % interval", "half"),
    (" n", ", seeds in common", "n"),
    (" p", ", p (paired t)", "p"),
    (" p_adjusted", f", p ({ADJUSTED})", "adjusted_p"),
    (" p_flip", ", p (exact sign-flip test)", "sign_flip_p"),
    (" r", ", correlation over seeds", "correlation"),
)


def _as_data(column: Column) -> Column:
    if column not in (PER_CENT, PERPLEXITY):
        return column
    name = column.name.replace("(% of it)", "(share of it)")
    return Column(column.key, column.title, name, column.value, _number, _number)


def _with_values(offered: Iterable[Column], standings: Sequence[VariantResult]) -> list[Column]:
    return [c for c in offered if c.always or c.dotted or any(has_value(c.value(s, None)) for s in standings)]
