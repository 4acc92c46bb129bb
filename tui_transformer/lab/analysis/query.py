"""Filtering and sorting runs: `rope -failed n_heads>=2 badge:LEAK tag:report "recall<110">50%`.

Terms are and-ed, `-` negates one. A word matches name, preset, tags, notes and state. A key is any column, probe or
config setting, in full (`model.n_heads`) or by its last part where that is unambiguous. A mistake is an `InputError`.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from engine.base.errors import InputError, comma_separated, did_you_mean, join_or
from engine.base.language import Message, tr
from engine.config.keys import all_keys
from engine.runs.records import MAX_NUMBER
from tui_transformer.lab.analysis.columns import (
    ALIASES,
    FIXED_COLUMNS,
    Column,
    Value,
    has_value,
    probe_column,
    score_column,
    setting_column,
    setting_text,
)
from tui_transformer.lab.analysis.entry import SCORES, RunEntry, probe_measures
from tui_transformer.lab.analysis.groups import invalid_badge
from tui_transformer.lab.records.badges import BADGES

R = TypeVar("R")  # a run or a variant
LONGEST = 1000  # characters of a filter
UNSET = "none"
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "%": 0.01, "s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"([+-]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(k|min|m|g|t|%|s|h)?\Z", re.IGNORECASE)
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d\d)\Z")
_QUOTED = r'"[^"]*"'
_OPERATOR = re.compile(r"\s*(<=|>=|!=|=|<|>|:)\s*")
_KEY = re.compile(rf"{_QUOTED}|[^\s<>=!:\"]+")
_WORD = re.compile(rf"{_QUOTED}|\S+")

Matches = Callable[[RunEntry, RunEntry | None], bool]


@dataclass(frozen=True)
class Query:
    terms: tuple[tuple[str, Matches], ...] = ()  # each as written and as applied

    def __call__(self, entries: Sequence[RunEntry], baseline: RunEntry | None = None) -> tuple[RunEntry, ...]:
        """Return the runs that match all terms, in order."""
        return tuple(e for e in entries if all(matches(e, baseline) for _, matches in self.terms))

    def why_no_match(self, entries: Sequence[RunEntry], baseline: RunEntry | None = None) -> str:
        """Return the term to blame if no run matches."""
        for text, matches in self.terms:
            if not any(matches(entry, baseline) for entry in entries):
                return tr("no run matches {text}", text=text)
        if self(entries, baseline):
            return ""
        return tr("no run matches all of these at once: {value}", value=comma_separated(text for text, _ in self.terms))


def parse(text: str, entries: Sequence[RunEntry] = ()) -> Query:
    """Parse a filter for these runs; raises InputError about the first mistake."""
    query, mistake = parse_partial(text, FilterKeys(entries))
    if mistake:
        raise InputError(mistake)
    return query


def parse_partial(text: str, known: "FilterKeys") -> tuple[Query, str]:
    """Parse a filter still being typed: the terms before the first mistake, and one sentence about that."""
    if (n := len(text)) > LONGEST:
        return Query(), tr("a filter can have at most {longest:,} characters; this one has {n:,}", longest=LONGEST, n=n)
    terms: list[tuple[str, Matches]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start, negated = at, text[at] == "-" and at + 1 < len(text) and not text[at + 1].isspace()
        try:
            matches, at = _term(text, at + negated, known)
        except InputError as error:
            return Query(tuple(terms)), str(error)
        terms.append((text[start:at], _not(matches) if negated else matches))
    return Query(tuple(terms)), ""


def suggested_key(text: str, query: Query, entries: Sequence[RunEntry], known: "FilterKeys") -> str:
    """Return the key that the last typed word may become; "" if runs have that word or it begins no key."""
    last = text.rpartition(" ")[2].removeprefix("-")
    if not last or not query.terms or any(query.terms[-1][1](entry, None) for entry in entries):
        return ""
    return next((name for name in known.names if name.startswith(last)), "")


def _not(matches: Matches) -> Matches:
    return lambda entry, baseline: not matches(entry, baseline)


def _term(text: str, at: int, known: "FilterKeys") -> tuple[Matches, int]:
    """Parse the condition at this place, and find its end."""
    key, end = known.match_odd_probe(text, at)
    if key is None:
        found = _KEY.match(text, at)
        key, end = (found[0].strip('"'), found.end()) if found else ("", at)
    sign = _OPERATOR.match(text, end)
    if sign is None:
        word = _WORD.match(text, at)
        assert word is not None
        _require_closed_quote(word[0])
        sought = word[0].strip('"').casefold()

        def has(entry: RunEntry, baseline: RunEntry | None) -> bool:
            texts = (entry.name, entry.preset, entry.state, entry.notes, *entry.tags)
            return any(sought in text.casefold() for text in texts)

        return has, word.end()
    if not key:
        shown = text[at : sign.end()].strip()
        raise InputError(Message("{text}: needs a key before it, e.g. loss{sign}1.3", text=shown, sign=sign[1]))
    value = _WORD.match(text, sign.end())
    if value is None:
        raise InputError(Message("{key}{sign}: needs a value after {sign}", key=key, sign=sign[1]))
    _require_closed_quote(value[0])
    return _condition(key, sign[1], value[0].strip('"'), known), value.end()


def _require_closed_quote(word: str) -> None:
    if word.count('"') == 1:
        raise InputError(Message("{word}: missing a closing quotation mark", word=word))


def _condition(key: str, sign: str, value: str, known: "FilterKeys") -> Matches:
    size, sought = parse_number(value), value.casefold()
    if key in ("badge", "tag"):
        if sign not in (":", "=", "!="):
            raise InputError(Message("{key}{sign}{value}: write {key}:{value}", key=key, sign=sign, value=value))
        badge, tag = None, value.lstrip("#").casefold()
        if key == "badge":
            names = {name.casefold(): name for name in BADGES}
            names |= {badge.word.rstrip(".").casefold(): name for name, badge in BADGES.items()}
            badge = names.get(value.rstrip(".").casefold())
            if badge is None:
                hint = did_you_mean(value.upper(), BADGES) or tr("; choose {badges}", badges=join_or(BADGES))
                raise InputError(Message("no badge named '{value}'{hint}", value=value, hint=hint))

        def has(entry: RunEntry, baseline: RunEntry | None) -> bool:
            return badge in entry.badges if badge is not None else tag in map(str.casefold, entry.tags)

        return _not(has) if sign == "!=" else has
    column = known.column(key)
    name = column.key
    if sign in COMPARE:
        if not column.right_aligned and not column.config_key:
            why = Message(
                "{key} is text: write {key}={value}, or {key}:{value} to match part of it", key=name, value=value
            )
            raise InputError(why)
        if size is None:
            why = Message(
                "{key}{sign}{value}: {sign} needs a number, e.g. 1.3, 10k or 50%", key=name, sign=sign, value=value
            )
            raise InputError(why)
        compare, limit = COMPARE[sign], size
        return lambda e, b: (own := comparable_number(column.value(e, b))) is not None and compare(own, limit)
    if sign == ":":
        return lambda e, b: (found := column.value(e, b)) is not None and sought in _casefolded_text(found)

    def equals(entry: RunEntry, baseline: RunEntry | None) -> bool:
        found = column.value(entry, baseline)
        if not has_value(found):
            return sought == UNSET
        shown, own = column.show(found).casefold(), comparable_number(found)
        if own is not None and size is not None:
            return own == size or sought == shown
        return sought in (_casefolded_text(found), shown)

    return _not(equals) if sign == "!=" else equals


def _casefolded_text(value: Any) -> str:
    return (" ".join(value) if isinstance(value, tuple) else setting_text(value)).casefold()


def parse_number(text: str) -> float | None:
    """Parse `1.3`, `41.2k`, `3e-4`, `50%`, `2:30`, `5min`; None if not a number."""
    clock = _CLOCK.match(text)
    if clock:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(3600 * hours + 60 * minutes + seconds)
    found = _NUMBER.match(text)
    if not found:
        return None
    return comparable_number(float(found[1].replace(",", "").replace("_", "")) * _FACTORS[(found[2] or "").lower()])


def comparable_number(value: Value) -> float | None:
    """A value that can be compared with a number."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER
    return float(value) if numeric else None


class FilterKeys:
    """Every key that a filter or sort may name, with these runs' probes and later versions' settings."""

    def __init__(self, entries: Sequence[RunEntry] = ()) -> None:
        self._probes = [measure.key for measure in probe_measures(entries)]
        later = set().union(*(entry.config for entry in entries)).difference(all_keys())
        self._settings = [*all_keys(), *sorted(later)]
        self._odd = sorted((name for name in self._probes if not _KEY.fullmatch(name)), key=len, reverse=True)

    def match_odd_probe(self, text: str, at: int) -> tuple[str | None, int]:
        """A probe with an operator in its name (`recall<110`), and where it ends.

        Raises InputError for the name alone, which would read as a comparison.
        """
        for name in self._odd:
            end = at + len(name)
            if text.startswith(name, at):
                if _OPERATOR.match(text, end):
                    return name, end
                if end == len(text) or text[end].isspace():
                    raise InputError(Message("{name} is a probe: compare it with a number, e.g. {name}>50%", name=name))
        return None, at

    def column(self, key: str) -> Column:
        """Return a key's column. Raises InputError if unknown or ambiguous, naming the nearest."""
        key = ALIASES.get(key, key)
        if key in FIXED_COLUMNS:
            return FIXED_COLUMNS[key]
        if key in self._probes:
            return probe_column(key)
        if key in SCORES:
            return score_column(key)
        if key in self._settings:
            return setting_column(key)
        meant = [full for full in self._settings if full.rpartition(".")[2] == key]
        if len(meant) == 1:
            return setting_column(meant[0])
        if meant:
            raise InputError(Message("'{key}' could be {meant}: write it in full", key=key, meant=join_or(meant)))
        hint = did_you_mean(key, self.names) or tr("; try loss, params, state, or a setting")
        raise InputError(Message("unknown key '{key}'{hint}", key=key[:80], hint=hint))

    @property
    def names(self) -> list[str]:
        """Every key, and every key's last part."""
        lasts = [full.rpartition(".")[2] for full in self._settings]
        return [*FIXED_COLUMNS, *ALIASES, "badge", "tag", *self._probes, *SCORES, *lasts, *self._settings]


def sort(
    entries: Sequence[R], column: Column | None, baseline: RunEntry | None, *, reverse: bool = False
) -> tuple[R, ...]:
    """Sort runs or variants; without a column, they stay as they are."""
    if column is None:
        return tuple(reversed(entries)) if reverse else tuple(entries)
    valued = [(entry, column.value(entry, baseline)) for entry in entries]
    known = [pair for pair in valued if has_value(pair[1])]
    missing = [entry for entry, value in valued if not has_value(value)]
    known.sort(key=lambda pair: _key(pair[1]), reverse=reverse)
    return (*(entry for entry, _ in known), *missing)


def best_first(entries: Sequence[RunEntry]) -> tuple[RunEntry, ...]:
    """Sort runs by their last loss within groups that are scored alike; the first run's group comes first.

    In a group, losses that mean nothing come after the others; runs without a loss come last of all.
    """
    places: dict[object, int] = {}

    def place(entry: RunEntry) -> tuple[bool, int, bool, float]:
        of = entry.protocol
        alike = entry.corpus, of.split, of.objective, of.unit, of.tokens, of.context, of.stride
        return entry.last is None, places.setdefault(alike, len(places)), bool(invalid_badge(entry)), entry.last or 0.0

    return tuple(entry for _, entry in sorted([(place(entry), entry) for entry in entries], key=lambda pair: pair[0]))


def _key(value: Value) -> tuple[int, float, str]:
    size = comparable_number(value)
    if size is not None:
        return 0, size, ""
    return 1, 0.0, (" ".join(value) if isinstance(value, tuple) else str(value)).casefold()
