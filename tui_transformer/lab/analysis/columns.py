"""The columns of a table of runs: what each is called, what it is of a run, and how it is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.config.keys import all_keys, is_bookkeeping
from engine.config.schema import RunConfig
from engine.runs.lineage import INIT_FROM
from tui_transformer.lab.analysis.entry import EXACT_MATCH, NO_RUN, SCORES, Entry, probes
from tui_transformer.lab.analysis.groups import comparable
from tui_transformer.lab.analysis.verdict import verdict
from tui_transformer.lab.formatting import duration, short
from tui_transformer.lab.records.badges import NONE_YET, PASSED, in_a_cell, worst_first

NONE = NONE_YET
Value = Any  # a number, a text, a tuple of texts, or None


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        key: what sorting and filtering call it.
        title: over it in a table on the screen.
        name: in full, with its unit, for files.
        value: of a row beside the baseline; a row is a run, or a variant, which knows its baseline itself.
        show: a value where there is little room.
        write: a value in a file, with its sensible digits.
        right: whether it is aligned to the right, as numbers are.
        always: shown even where no run has a value.
        dotted: the config key it shows; "" if none.
        beside: whether it says something about the baseline as well.
        spread: the cell of a row where its value is not all of it, as `1.2431 ± 0.0031`.
        nothing: what to show for an empty tuple.
    """

    key: str
    title: str
    name: str
    value: Callable[[Any, Any], Value]
    show: Callable[[Value], str]
    write: Callable[[Value], str]
    right: bool = True
    always: bool = False
    dotted: str = ""
    beside: bool = False
    spread: Callable[[Any], str] | None = None
    nothing: str = NONE

    def shown(self, row: Any, baseline: Any) -> str:
        """The cell on the screen; not cleaned."""
        value = self.value(row, baseline)
        if value is None or value == "" or value == ():
            return self.nothing if value == () else NONE
        return self.spread(row) if self.spread is not None else self.show(value)

    def written(self, row: Any, baseline: Any) -> str:
        """The cell in a file; "" where there is no value; not cleaned."""
        value = self.value(row, baseline)
        if value is None:
            return ""
        return self.spread(row) if self.spread is not None else self.write(value)


def setting_text(value: Any) -> str:
    """A config value as TOML would have it, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(setting_text(item) for item in value)}]"
    return str(value)


def _difference(of: Callable[[Entry], float | None]) -> Callable[[Entry, Entry | None], float | None]:
    def value(entry: Entry, baseline: Entry | None) -> float | None:
        if baseline is None or entry.path == baseline.path or not comparable(entry, baseline):
            return None
        own, others = of(entry), of(baseline)
        return None if own is None or others is None else own - others

    return value


def _more_parameters(entry: Entry, baseline: Entry | None) -> int | None:
    if baseline is None or entry.path == baseline.path or entry.parameters is None or baseline.parameters is None:
        return None
    return entry.parameters - baseline.parameters


def _loss(value: Value) -> str:
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"


def _change(value: Value) -> str:
    return f"{value:+.4f}" if abs(value) < 1000 else f"{value:+.4g}"


def checks(row: Any, _: Any) -> tuple[str, ...] | None:
    """The badges of a run or variant; empty if checks have passed, None if there are none yet."""
    return worst_first(row.badges) if row.badges or row.checked else None


_text: Callable[[Value], str] = str
_words: Callable[[Value], str] = " ".join
_badges: Callable[[Value], str] = partial(in_a_cell, checked=True)
_whole: Callable[[Value], str] = "{:,}".format
_signed: Callable[[Value], str] = lambda value: f"{value:+,}" if value else "0"
_exact: Callable[[Value], str] = "{:.6g}".format
_change_exact: Callable[[Value], str] = "{:+.5g}".format
_share: Callable[[Value], str] = "{:.0%}".format
_decimals: Callable[[Value], str] = "{:.4f}".format


def _study(entry: Entry, baseline: Entry | None) -> str:
    study = entry.study
    if study is None:
        return ""
    return ", ".join([f"{study.name}: {study.variant}", *([study.stage] if study.stage else []), f"seed {study.seed}"])


NAME = Column("run", "run", "run", lambda e, b: e.name, _text, _text, right=False, always=True)
LAST = Column("last", "last", "last validation loss", lambda e, b: e.last, _loss, _exact, always=True)
STATE = Column("state", "state", "state", lambda e, b: e.state, _text, _text, right=False, always=True)
JUDGED = (
    LAST,
    Column(
        "Δlast", "Δ last", "last loss − baseline's", _difference(lambda e: e.last), _change, _change_exact, beside=True
    ),
    Column("verdict", "verdict", "verdict", verdict, _text, _text, right=False, beside=True),
    Column("checks", "checks", "checks", checks, _badges, _words, right=False, always=True, nothing=PASSED),
)
MEASURED = (
    Column("best", "best", "best validation loss", lambda e, b: e.best, _loss, _exact, always=True),
    Column(
        "Δbest", "Δ best", "best loss − baseline's", _difference(lambda e: e.best), _change, _change_exact, beside=True
    ),
    Column("gap", "gap", "gap (last − best loss)", lambda e, b: e.gap, _loss, _exact),
    Column(
        "excess",
        "excess",
        "last loss above the reachable floor",
        lambda e, b: e.excess,
        _change,
        _change_exact,
    ),
    Column("params", "params", "parameters", lambda e, b: e.parameters, short, str, always=True),
    Column("Δparams", "Δ params", "parameters − baseline's", _more_parameters, _signed, str, beside=True),
    STATE,
    Column("step", "step", "step", lambda e, b: e.step, _whole, str, always=True),
    Column("steps", "of steps", "steps asked for", lambda e, b: e.steps, _whole, str),
    Column("tokens", "tokens", "tokens seen", lambda e, b: e.tokens, short, str),
    Column("flops", "FLOPs/token", "floating-point operations a token", lambda e, b: e.flops_per_token, short, str),
    Column("tok/s", "tok/s", "tokens per second of training", lambda e, b: e.tokens_per_second, short, "{:.0f}".format),
    Column("time", "time", "training time (s)", lambda e, b: e.seconds, duration, "{:.1f}".format),
)
ABOUT = (
    Column("corpus", "corpus", "corpus", lambda e, b: e.corpus, _text, _text, right=False),
    Column("unit", "unit", "unit of the loss", lambda e, b: f"nats per {e.protocol.unit}", _text, _text, right=False),
    Column("context", "context", "context of the score (tokens)", lambda e, b: e.protocol.context, _whole, str),
    Column("stride", "stride", "stride of the score (tokens)", lambda e, b: e.protocol.stride, _whole, str),
    Column("preset", "preset", "preset", lambda e, b: e.preset, _text, _text, right=False),
    Column("study", "study", "study", _study, _text, _text, right=False),
    Column("tags", "tags", "tags", lambda e, b: e.tags, _words, ", ".join, right=False),
    Column("notes", "notes", "notes", lambda e, b: e.notes, _text, _text, right=False),
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


def setting(key: str, title: str = "") -> Column:
    numeric = _numeric(key)
    of = lambda e, b: e.config.get(key)
    return Column(key, title or key, key, of, setting_text, setting_text, right=numeric, dotted=key)


def _numeric(key: str) -> bool:
    """Whether the default of a setting is a number, or it has none."""
    value: Any = RunConfig()
    for part in key.split("."):
        value = getattr(value, part, None)
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def probe(name: str) -> Column:
    """The column of a probe: the share it got right."""
    return Column(name, name, f"probe {name} (share right)", lambda e, b: e.probes.get(name), _share, _decimals)


def score(name: str) -> Column:
    """The column of another score of the last evaluation."""
    value, title = (lambda e, b: e.scores.get(name)), name.replace("_", " ")
    if name == EXACT_MATCH:
        return Column(name, title, f"{title}, last (share)", value, SCORES[name].brief.format, _exact)
    return Column(name, title, f"{title}, last", value, "{:.4g}".format, _exact)


OVER_MAJORITY = Column(
    "Δmajority",
    "Δ majority",
    "exact match − that of always the most frequent answer",
    lambda e, b: None if e.state == NO_RUN else e.over_majority,
    "{:+.1%}".format,
    _change_exact,
)


FIXED = {column.key: column for column in (NAME, *JUDGED, *MEASURED, OVER_MAJORITY, *ABOUT)}


def columns(
    entries: Sequence[Entry], baseline: Entry | None, *, of: Sequence[Entry] = (), all_settings: bool = False
) -> list[Column]:
    """What a table of these runs shows, in its order.

    Args:
        entries: the rows.
        baseline: the pinned run.
        of: the runs whose differing settings are shown; the rows where there are none.
        all_settings: every setting, not only those that differ.
    """
    among = of or entries
    keys = settings(among) if all_settings else differing(among)
    titles = short_names(keys)
    asked = [score(EXACT_MATCH), OVER_MAJORITY] if any(entry.majority is not None for entry in entries) else []
    offered = [
        *(NAME, *JUDGED, *asked, *(setting(key, titles[key]) for key in keys), *MEASURED),
        *(probe(measure.key) for measure in probes(entries)),
        *(score(name) for name in SCORES if _scored(name, entries) and not (asked and name == EXACT_MATCH)),
        *(column for column in ABOUT if column.key not in ("context", "stride") or _varies(column, entries)),
    ]
    return [c for c in offered if c.always or c.dotted or any(has_value(c.value(e, baseline)) for e in entries)]


def _scored(name: str, entries: Sequence[Entry]) -> bool:
    return any(name in entry.scores for entry in entries)


def has_value(value: Value) -> bool:
    """Return whether there is something to show."""
    return value is not None and value != "" and value != ()


def _varies(column: Column, entries: Sequence[Entry]) -> bool:
    return len({column.value(entry, None) for entry in entries}) > 1


NAMES = {INIT_FROM: "from"}


def settings(entries: Sequence[Entry]) -> list[str]:
    """Every dotted key that any of these runs has, in the order of the config; keys of later versions at the end."""
    present = set().union(*(entry.config for entry in entries))
    known = [key for key in all_keys() if key in present]
    return [*known, *sorted(present.difference(known))]


def differing(entries: Sequence[Entry]) -> list[str]:
    """The keys whose values are not the same in all these runs; a damaged config counts as none."""
    configs = [entry.config for entry in entries if entry.config]
    if len(configs) < 2:
        return []
    first, rest = configs[0], configs[1:]
    keys = (key for key in settings(entries) if not is_bookkeeping(key))
    return [key for key in keys if any(config.get(key) != first.get(key) for config in rest)]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Each key's last part, or all of it where that says which of several is meant; some have a better name."""
    lasts = [NAMES.get(key, key.rpartition(".")[2]) for key in keys]
    return {key: last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)}


def changes(entry: Entry, baseline: Entry) -> Iterator[tuple[str, Any, Any]]:
    """What a run changes: key, its value, the baseline's."""
    for key in differing([entry, baseline]):
        yield key, entry.config.get(key), baseline.config.get(key)
