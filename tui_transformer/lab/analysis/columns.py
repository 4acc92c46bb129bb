"""The columns of a run table: each one's name, its value for a run, and how that is formatted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.base.language import Message, tr
from engine.config.keys import all_keys, is_bookkeeping, sentence_of
from engine.config.measures import MEASURES_BY_KEY, distance_text, name_without_band, probe_measure
from engine.config.schema import RunConfig
from engine.runs.lineage import INIT_FROM
from tui_transformer.lab.analysis.entry import (
    BITS_PER_BYTE,
    EXACT_MATCH,
    NO_RUN,
    SCORES,
    RunEntry,
    probe_measures,
    score_measures,
)
from tui_transformer.lab.analysis.groups import comparable, invalid_badge, only_bytes_comparable
from tui_transformer.lab.analysis.verdict import verdict, verdict_kind
from tui_transformer.lab.formatting import duration, si_number
from tui_transformer.lab.records.badges import NONE_YET, PASSED, cell_text, worst_first

NONE = NONE_YET
VAGUE = ("every", "threads")  # last parts of keys that say nothing by themselves
INTERVAL = Message("95 % interval")
Value = Any  # a number, a text, a tuple of texts, or None


EXPLAINED = {  # by key; other columns are explained by their full name
    "run": tr("the run's name; ◆ marks the baseline, and a letter marks a drawn curve"),
    "variant": tr("what was changed; ◆ marks the baseline, and a letter marks a drawn curve"),
    "n": tr("the number of seeds included"),
    "last": tr("the validation loss at the newest evaluation"),
    "Δlast": tr("the last loss minus the baseline's; below zero is better (– while the run is training)"),
    "Δbits_per_byte": tr(
        "bits per byte minus the baseline's: the only score that can be compared across runs with different "
        "tokenizers; below zero is better"
    ),
    "best": tr("the lowest validation loss so far"),
    "Δbest": tr("the best loss minus the baseline's; below zero is better"),
    "gap": tr("how far the validation loss has risen above its best; not the gap between training and validation loss"),
    "excess": tr("how far the last loss is above the lowest that any model can reach on this text"),
    "verdict": tr("better, worse or inconclusive, compared to the baseline"),
    "checks": tr(
        "✓ if all checks passed, – if none has run yet, otherwise what is wrong with the scores; hover over a badge "
        "for more"
    ),
    "Δparams": tr("how many more parameters it has than the baseline; a larger model may win on size alone"),
    "state": tr("whether the run is training or has finished, or why it ended early"),
    "step": tr("the step reached so far"),
    "steps": tr("how many steps are planned in total"),
    "flops": tr("floating-point operations per training token, in a forward and a backward pass"),
    "tokens": tr("how many tokens the model has been trained on"),
    "rank": tr("the rank by mean last loss; ranks ignore noise"),
}


def _probe_explained(key: str) -> str:
    """What a column about a probe shows, in the language in use; "" for any other."""
    name = key.removeprefix("Δ").removesuffix(" verdict")
    known = MEASURES_BY_KEY.get(name_without_band(name))
    if known is None or not known.question:
        return ""
    where = tr(", {where}", where=distance_text(name)) if distance_text(name) else ""
    said = tr(
        "{name}{where}: how often the model is right about {asks}; in a filter: {key}",
        name=tr(probe_measure(name).name),
        where=where,
        asks=tr(known.question),
        key=name,
    )
    return f"Δ {said}" if key.startswith("Δ") else said


@dataclass(frozen=True)
class Column:
    """A column. Its texts and values are English, as filters and files have them, except what is only shown."""

    key: str  # its name in filters and sort orders
    title: str  # short, for a table
    name: str  # in full, with its unit
    # from a row and the baseline; a row is a run, or a variant, which has its own baseline
    value: Callable[[Any, Any], Value]
    show: Callable[[Value], str]  # a value for a table, in the language in use
    write: Callable[[Value], str]  # a value in a file, sensibly rounded
    right_aligned: bool = True  # right-aligned, as numbers are
    always: bool = False  # shown even if no run has a value
    config_key: str = ""  # the config key it shows; "" if none
    uses_baseline: bool = False  # also applies to the baseline
    # the row's cell if it has more than the value, as `1.2431 ± 0.0031`
    spread: Callable[[Any], str] | None = None
    empty_text: str = NONE  # what to show for an empty tuple
    shown_name: str = ""  # its name on the screen, if not the one in files
    screen_cell: Callable[[Any, Any], str] | None = None  # the row's cell on the screen, if it is not all in the value
    kind: Callable[[Any, Any], str] | None = None  # of a verdict: what `verdict_kind` returns

    @property
    def head(self) -> str:
        """Its title on the screen."""
        return self.title if self.config_key else tr(self.title)

    @property
    def full(self) -> str:
        """Its full name on the screen."""
        return self.name if self.config_key else tr(self.shown_name or self.name)

    @property
    def explained(self) -> str:
        """One sentence on what it shows; not cleaned."""
        key = self.config_key
        said = sentence_of(key) if key else EXPLAINED.get(self.key, "") or _probe_explained(self.key)
        said = said or self.full
        if INTERVAL in self.name and tr(INTERVAL) not in said:
            said += tr("; the cell also gives the {interval}", interval=tr(INTERVAL))
        said = sentence(said)
        return tr("{name}: {text}", name=key, text=said) if key and said != sentence(key) else said

    def screen_text(self, row: Any, baseline: Any) -> str:
        """Return the screen cell; not cleaned."""
        value = self.value(row, baseline)
        if not has_value(value):
            return self.empty_text if value == () else NONE
        if self.screen_cell is not None:
            return self.screen_cell(row, baseline)
        return self.spread(row) if self.spread is not None else self.show(value)

    def file_text(self, row: Any, baseline: Any) -> str:
        """Return the file cell, "" without a value; not cleaned."""
        value = self.value(row, baseline)
        if value is None:
            return ""
        return self.spread(row) if self.spread is not None else self.write(value)


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop, as the language in use writes them."""
    return tr("{sentence}.", sentence=f"{text[:1].upper()}{text[1:]}".rstrip(".。"))


def setting_text(value: Any) -> str:
    """Return a config value as TOML, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(setting_text(item) for item in value)}]"
    return str(value)


def setting_shown(value: Any) -> str:
    """Return a config value as the screen has it: `1,200` as for every other count."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else setting_text(value)


def _difference(of: Callable[[RunEntry], Value], *, even_if_incomparable: bool = False) -> Callable[[Any, Any], Value]:
    def value(entry: RunEntry, baseline: RunEntry | None) -> Value:
        if baseline is None or entry.path == baseline.path or not (even_if_incomparable or comparable(entry, baseline)):
            return None
        own, others = of(entry), of(baseline)
        return None if own is None or others is None else own - others

    return value


def _final(entry: RunEntry) -> Value:
    """The last loss, unless more are to come: losses at different steps have no meaningful difference."""
    return None if entry.live else entry.last


def _bits_per_byte_difference(entry: RunEntry, baseline: RunEntry | None) -> Value:
    """The difference between runs with different tokens."""
    if baseline is None or entry.live or not only_bytes_comparable(entry, baseline):
        return None
    if invalid_badge(entry) or invalid_badge(baseline):
        return None
    return entry.scores[BITS_PER_BYTE.key] - baseline.scores[BITS_PER_BYTE.key]


def _loss(value: Value) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"


def _change(value: Value) -> str:
    return f"{value:+.4f}" if abs(value) < 1000 else f"{value:+.4g}"


def badges_if_checked(row: Any, _: Any) -> tuple[str, ...] | None:
    """Return a run's or variant's badges: empty if checks passed, None if none have run yet."""
    return worst_first(row.badges) if row.badges or row.checked else None


_words: Callable[[Value], str] = " ".join
_badges: Callable[[Value], str] = partial(cell_text, checked=True)
_whole: Callable[[Value], str] = "{:,}".format
_signed: Callable[[Value], str] = lambda value: f"{value:+,}" if value else "0"
_exact: Callable[[Value], str] = "{:.6g}".format
_change_exact: Callable[[Value], str] = "{:+.5g}".format
_share: Callable[[Value], str] = "{:.0%}".format
_decimals: Callable[[Value], str] = "{:.4f}".format


def text_column(key: str, value: Callable[[Any], Value], name: str = "", *, show: Any = str, **more: Any) -> Column:
    return Column(key, key, name or key, lambda row, _: value(row), show, str, right_aligned=False, **more)


def _study(entry: RunEntry) -> str:
    study = entry.study
    if study is None:
        return ""
    cell = ", ".join([f"{study.name}: {study.variant}", *([study.stage] if study.stage else [])])
    return Message("{cell}, seed {seed}", cell=cell, seed=study.seed)


_compared = partial(Column, uses_baseline=True)


def _loss_difference_column(key: str, value: Callable[[RunEntry], Value], name: str) -> Column:
    return _compared(f"Δ{key}", difference_title(Message(key)), name, _difference(value), _change, _change_exact)


def difference_title(of: str) -> str:
    return Message("Δ {of}", of=of)


NAME = text_column(Message("run"), lambda e: e.name, always=True)
LAST = Column("last", Message("last"), Message("last validation loss"), lambda e, b: e.last, _loss, _exact, always=True)
VERDICT = _compared(
    "verdict",
    Message("verdict"),
    "verdict",
    verdict,
    tr,
    str,
    right_aligned=False,
    kind=verdict_kind,
)
CHECKS = Column(
    "checks",
    Message("checks"),
    "checks",
    badges_if_checked,
    _badges,
    _words,
    right_aligned=False,
    always=True,
    empty_text=PASSED,
    screen_cell=lambda e, b: cell_text(badges_if_checked(e, b) or (), checked=True, seen=e.badges_acknowledged),
)
MORE_PARAMETERS_VALUE = _difference(lambda e: e.parameters, even_if_incomparable=True)
MORE_PARAMETERS = _compared(
    "Δparams", Message("Δ params"), Message("parameters − baseline's"), MORE_PARAMETERS_VALUE, _signed, str
)
BITS = _compared(
    "Δbits_per_byte",
    Message("Δ bits per byte"),
    Message("bits per byte − baseline's"),
    _bits_per_byte_difference,
    _change,
    _change_exact,
)
JUDGED_COLUMNS = (
    LAST,
    _loss_difference_column("last", _final, Message("last loss − baseline's")),
    BITS,
    VERDICT,
    CHECKS,
)
MEASURED_COLUMNS = (
    Column("best", Message("best"), Message("best validation loss"), lambda e, b: e.best, _loss, _exact, always=True),
    _loss_difference_column("best", lambda e: e.best, Message("best loss − baseline's")),
    Column("gap", Message("last − best"), Message("gap (last − best loss)"), lambda e, b: e.gap, _loss, _exact),
    Column(
        "excess",
        Message("excess"),
        Message("last loss above the reachable floor"),
        lambda e, b: e.excess,
        _change,
        _change_exact,
    ),
    Column("params", Message("params"), Message("parameters"), lambda e, b: e.parameters, si_number, str, always=True),
    MORE_PARAMETERS,
    text_column(Message("state"), lambda e: e.state, show=tr, always=True),
    Column("step", Message("step"), "step", lambda e, b: e.step, _whole, str, always=True),
    Column("steps", Message("planned"), Message("planned steps"), lambda e, b: e.steps, _whole, str),
    Column("tokens", Message("tokens"), Message("tokens seen"), lambda e, b: e.tokens, si_number, str),
    Column(
        "flops",
        Message("FLOPs/token"),
        Message("floating-point operations per token"),
        lambda e, b: e.flops_per_token,
        si_number,
        str,
    ),
    Column(
        "tok/s",
        Message("tok/s"),
        Message("training tokens per second"),
        lambda e, b: e.tokens_per_second,
        si_number,
        "{:.0f}".format,
    ),
    Column("time", Message("time"), Message("training time (s)"), lambda e, b: e.seconds, duration, "{:.1f}".format),
)
ABOUT_COLUMNS = (
    text_column(Message("corpus"), lambda e: e.corpus),
    text_column(
        Message("unit"),
        lambda e: Message("nats per {unit}", unit=Message(e.protocol.unit)),
        Message("unit of the loss"),
        show=tr,
    ),
    Column(
        "context", Message("context"), Message("scoring context (tokens)"), lambda e, b: e.protocol.context, _whole, str
    ),
    Column(
        "stride", Message("stride"), Message("scoring stride (tokens)"), lambda e, b: e.protocol.stride, _whole, str
    ),
    text_column(Message("preset"), lambda e: e.preset),
    text_column(Message("study"), _study, show=tr),
    Column("tags", Message("tags"), "tags", lambda e, b: e.tags, _words, ", ".join, right_aligned=False),
    text_column(Message("notes"), lambda e: e.notes),
)

ALIASES = {
    "from": INIT_FROM,
    "loss": "last",
    "name": "run",
    "dlast": "Δlast",
    "dbest": "Δbest",
    "dparams": "Δparams",
    "parameters": "params",
    "flops_per_token": "flops",
    "seconds": "time",
    "tokens_per_second": "tok/s",
    "badges": "checks",
}


def setting_column(key: str, title: str = "") -> Column:
    usual: Any = RunConfig()
    for part in key.split("."):
        usual = getattr(usual, part, None)
    numeric = usual is None or (isinstance(usual, int | float) and not isinstance(usual, bool))
    of = lambda e, b: e.config.get(key)
    return Column(key, title or key, key, of, setting_shown, setting_text, right_aligned=numeric, config_key=key)


def probe_column(name: str) -> Column:
    title, said = Message(probe_measure(name).title), Message("probe {name} (share correct)")
    cells = lambda e, b: e.probes.get(name), _share, _decimals
    return Column(name, title, Message(said, name=name), *cells, shown_name=Message(said, name=title))


def score_column(name: str) -> Column:
    title, exact_match = Message(SCORES[name].name), name == EXACT_MATCH
    show = SCORES[name].brief_format.format if exact_match else "{:.4g}".format
    said = Message("{title}, last (share)" if exact_match else "{title}, last")
    cells = lambda e, b: e.scores.get(name), show, _exact
    in_files = Message(said, title=name.replace("_", " "))
    return Column(name, title, in_files, *cells, shown_name=Message(said, title=title))


ALWAYS_THE_SAME = Message("exact match − that of always giving the most frequent answer")
OVER_MAJORITY_VALUE = lambda e, b: None if e.state == NO_RUN else e.over_majority
OVER_MAJORITY = Column(
    "Δmajority", Message("Δ majority"), ALWAYS_THE_SAME, OVER_MAJORITY_VALUE, "{:+.1%}".format, _change_exact
)
OVER_CLASS = replace(OVER_MAJORITY, name=Message("accuracy − that of always predicting the most frequent class"))
FIXED_COLUMNS = {c.key: c for c in (NAME, *JUDGED_COLUMNS, *MEASURED_COLUMNS, OVER_MAJORITY, *ABOUT_COLUMNS)}


def columns(
    entries: Sequence[RunEntry],
    baseline: RunEntry | None,
    *,
    differing_among: Sequence[RunEntry] = (),
    all_settings: bool = False,
) -> list[Column]:
    """Return a table's columns for these runs, in order; settings are those that differ among `of`, or all."""
    compared = dict.fromkeys(entry.majority.score for entry in entries if entry.majority is not None)
    over = OVER_MAJORITY if EXACT_MATCH in compared else OVER_CLASS
    asked = [*map(score_column, compared), over] if compared else []
    alike = {key for key in ("context", "stride") if len({FIXED_COLUMNS[key].value(e, None) for e in entries}) < 2}
    offered = [
        *(
            NAME,
            *JUDGED_COLUMNS,
            *asked,
            *setting_columns(differing_among or entries, all_settings=all_settings),
            *MEASURED_COLUMNS,
        ),
        *(probe_column(measure.key) for measure in probe_measures(entries)),
        *(score_column(m.key) for m in score_measures(entries) if m.key not in compared),
        *(c for c in ABOUT_COLUMNS if c.key not in alike),
    ]
    return [c for c in offered if c.always or c.config_key or any(has_value(c.value(e, baseline)) for e in entries)]


def has_value(value: Value) -> bool:
    return value is not None and value != "" and value != ()


def setting_columns(entries: Sequence[RunEntry], *, all_settings: bool) -> list[Column]:
    """Return a column for each setting that differs among these runs, or for every setting."""
    keys = setting_keys(entries) if all_settings else differing_keys(entries)
    return [setting_column(key, title) for key, title in short_names(keys).items()]


def setting_keys(entries: Sequence[RunEntry]) -> list[str]:
    """Return every dotted key that any of these runs has, in config order; keys of later versions come last."""
    present = set().union(*(entry.config for entry in entries))
    known = [key for key in all_keys() if key in present]
    return [*known, *sorted(present.difference(known))]


def differing_keys(entries: Sequence[RunEntry]) -> list[str]:
    """Return the keys whose values differ among these runs; a damaged config is ignored."""
    configs = [entry.config for entry in entries if entry.config]
    if len(configs) < 2:
        return []
    first, differing = configs[0], set[str]()
    for config in configs[1:]:  # run by run: going through thousands for each key takes ten times as long
        differing |= first.keys() - config.keys()
        differing.update(key for key, value in config.items() if first.get(key) != value)
    return [key for key in setting_keys(entries) if key in differing and not is_bookkeeping(key)]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Map each key to its last part, or all of it where that is ambiguous; some have a better name."""
    lasts = ["from" if key == INIT_FROM else key.rpartition(".")[2] for key in keys]
    vague = {last for last in lasts if lasts.count(last) > 1 or last in VAGUE}
    return {key: key if last in vague else last for key, last in zip(keys, lasts, strict=True)}


def changes(entry: RunEntry, baseline: RunEntry) -> Iterator[tuple[str, Any, Any]]:
    """Return what a run changes: key, value, baseline's."""
    for key in differing_keys([entry, baseline]):
        yield key, entry.config.get(key), baseline.config.get(key)
