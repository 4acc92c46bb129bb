"""Which runs are seeds of one variant, which of them count, and which scores can be held against each other at all."""

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from engine.config.keys import is_bookkeeping
from tui_transformer.lab.analysis.entry import DAMAGED, ENDED_EARLY, Entry, Listed, Protocol
from tui_transformer.lab.analysis.language import ENGLISH, Language, Message, Word
from tui_transformer.lab.records.badges import badge

SEED = "seed"
DIVERGED, INERT = "DIVERGED", "INERT"
SHORTEST_NAME = 3  # letters that several runs must share to be called by them


@dataclass(frozen=True)
class ProtocolDifference:
    """A way in which two scores can mean different things.

    Args:
        word: what is another one.
        part: what must be equal; None and "" are not known yet, and differ from nothing.
        shown: what of it stands in a sentence.
        phrase: the sentence's, of `scored.…`.
    """

    word: str
    part: Callable[[Protocol], object]
    shown: Callable[[Protocol], object]
    phrase: str


_CORPUS = ProtocolDifference("corpus", lambda p: p.corpus, lambda p: p.corpus, "corpus")
_SCORE = (
    ProtocolDifference("objective", lambda p: p.objective, lambda p: p.objective, "objective"),
    ProtocolDifference("unit", lambda p: p.unit, lambda p: Word(p.unit), "unit"),
    ProtocolDifference("tokens", lambda p: p.tokens, lambda p: p.tokens[:8] or Word("unknown"), "tokens"),
    ProtocolDifference("context", lambda p: p.context, lambda p: p.context, "context"),
    ProtocolDifference("stride", lambda p: p.stride, lambda p: p.stride, "stride"),
)
DIFFERENCES = (_CORPUS, ProtocolDifference("split", lambda p: p.split, lambda p: p.split[:8], "split"), *_SCORE)
# Before data.json says which text it is, the settings must do: without them nothing is known, and nothing differs.
ASKED_DIFFERENCES = (
    _CORPUS,
    ProtocolDifference("corpus", lambda p: p.asked[:1], lambda p: p.asked[0], "corpus"),
    ProtocolDifference("split", lambda p: p.asked[1:], lambda p: "", "cut"),
    *_SCORE,
)


def _difference(a: Protocol, b: Protocol) -> ProtocolDifference | None:
    for difference in DIFFERENCES if a.split and b.split else ASKED_DIFFERENCES:
        one, two = difference.part(a), difference.part(b)
        if one and two and one != two:
            return difference
    return None


def other_measure(entry: Entry, baseline: Entry) -> Message | None:
    """Return what makes the scores of two runs different measures, as `other corpus`; None if nothing does."""
    found = _difference(entry.protocol, baseline.protocol)
    return Message("other", {"what": Word(found.word)}) if found is not None else None


def other(entry: Entry, baseline: Entry) -> str:
    """Return the same in English; "" if nothing does."""
    found = other_measure(entry, baseline)
    return ENGLISH.tell(found) if found is not None else ""


def void(entry: Entry) -> str:
    """Return the badge because of which a run's loss must not be compared at all; "" if there is none."""
    return next((name for name in entry.badges if badge(name).void), "")


def comparable(entry: Entry, baseline: Entry) -> bool:
    """Return whether a difference of their losses means anything."""
    return not (other_measure(entry, baseline) or void(entry) or void(baseline))


def why_not(entry: Entry, baseline: Entry, language: Language = ENGLISH) -> str:
    """Return why two runs cannot be compared, in one sentence; "" where they can."""
    for run in (entry, baseline):
        if void(run):
            return language.say("has-badge", name=run.name, badge=void(run), means=language.badge(void(run)).means)
    found = _difference(entry.protocol, baseline.protocol)
    if found is None:
        return ""
    own, others = (
        Message(f"scored.{found.phrase}", {"value": found.shown(p)}) for p in (entry.protocol, baseline.protocol)
    )
    return language.say("measures", a=entry.name, own=own, b=baseline.name, others=others)


def unit_of(entries: Sequence[Listed]) -> str:
    """Return the unit of these runs' losses."""
    units = {entry.protocol.unit for entry in entries}
    return f"nats per {units.pop()}" if len(units) == 1 else "not all in the same unit"


@dataclass(frozen=True, eq=False)
class Group:
    """A variant: the same settings, one run a seed.

    Args:
        path: what it is known by; nothing is there.
        study: "" where the runs belong to none and have their settings in common.
        variant: its name.
        runs: all of them, by seed.
        counted: seed -> the run whose scores count.
        left_out: run -> why it does not count.
        earlier: runs of earlier stages, whose weights it came to; nothing of them counts.
    """

    path: Path
    study: str
    variant: str
    runs: tuple[Entry, ...]
    counted: Mapping[int, Entry]
    left_out: Mapping[Path, str]
    earlier: tuple[Entry, ...] = ()

    @property
    def name(self) -> str:
        """As it is called where there are variants of one study."""
        return self.variant

    @property
    def title(self) -> str:
        """As it is called where there are several studies."""
        return f"{self.study}: {self.variant}" if self.study else self.variant

    @cached_property
    def state(self) -> str:
        """Of all its runs: what goes on first, then what went wrong."""
        states = [run.state for run in self.runs]
        moving = next((run.state for run in self.runs if run.live), "")
        bad = next((state for state in states if state in (*ENDED_EARLY, DAMAGED)), "")
        return moving or bad or states[0]

    @cached_property
    def live(self) -> bool:
        return any(run.live for run in self.runs)

    @cached_property
    def badges(self) -> dict[str, str]:
        """Of any of its runs, what makes scores void first; each with how many runs have it, and the first reason."""
        first = {name: run.badges[name] for run in reversed(self.runs) for name in run.badges}
        order = sorted(self.badge_counts, key=lambda name: (not badge(name).void, name != INERT))
        runs = f"of {len(self.runs)} runs" if len(self.runs) > 1 else "of one run"
        return {name: f"{self.badge_counts[name]} {runs}: {first[name]}" for name in order}

    @cached_property
    def badge_counts(self) -> Counter[str]:
        """How many of its runs have each badge."""
        return Counter(name for run in self.runs for name in run.badges)

    @cached_property
    def void(self) -> str:
        """The badge because of which its scores mean nothing; "" if there is none.

        A seed that diverged is left out; the others still mean what they say.
        """
        return next((name for name in self.badges if badge(name).void and name != DIVERGED), "")

    @property
    def protocol(self) -> Protocol:
        return self.representative.protocol

    @property
    def representative(self) -> Entry:
        """A run that stands for its settings: one that counts, if any does."""
        return next(iter(self.counted.values()), self.runs[0])

    @cached_property
    def drawn(self) -> tuple[Entry, ...]:
        """The runs whose curves say something of it: those that count, and those that may yet."""
        hidden = {path for path, reason in self.left_out.items() if reason not in ("still training", "ended early")}
        return tuple(run for run in self.runs if run.path not in hidden) or self.runs

    @property
    def diverged(self) -> int:
        return sum(reason == "diverged" for reason in self.left_out.values())


class Grouping:
    """Puts runs into groups, and keeps the groups in which no run has changed."""

    def __init__(self) -> None:
        self._settings: dict[Path, tuple[Entry, Hashable]] = {}
        self._made: dict[Path, Group] = {}

    def of(self, entries: Iterable[Entry]) -> tuple[Group, ...]:
        """Return every run in its group: of a study by its variant, any other with those that differ in the seed alone.

        Groups come in the order of their first run. What a variant's runs started from is none of them.
        """
        found: dict[Path, list[Entry]] = {}
        earlier: dict[Path, list[Entry]] = {}
        alike: dict[Hashable, Path] = {}
        for entry in entries:
            if entry.study is not None and entry.study.variant:
                path = entry.path.parent / "studies" / entry.study.name / entry.study.variant
                if entry.study.stage:
                    earlier.setdefault(path, []).append(entry)
                    continue
            elif entry.config:
                path = alike.setdefault(self._of_settings(entry), entry.path)
            else:  # damaged: nobody knows what it is a seed of
                path = entry.path
            found.setdefault(path, []).append(entry)
        self._made = {path: self._group(path, runs, earlier.get(path, [])) for path, runs in found.items()}
        return tuple(self._made.values())

    def _group(self, path: Path, runs: Sequence[Entry], earlier: Sequence[Entry]) -> Group:
        """The group as it was made before where all of its runs are as they were."""
        made, ordered, before = self._made.get(path), sorted(runs, key=_by_seed), sorted(earlier, key=_by_seed)
        if made is not None and _same(made.runs, ordered) and _same(made.earlier, before):
            return made
        return replace(_group(path, ordered, self._of_settings), earlier=tuple(before))

    def _of_settings(self, entry: Entry) -> Hashable:
        """What is equal in the seeds of one variant."""
        kept = self._settings.get(entry.path)
        if kept is None or kept[0] is not entry:
            said = sorted((k, repr(v)) for k, v in entry.config.items() if k != SEED and not is_bookkeeping(k))
            kept = self._settings[entry.path] = entry, (entry.path.parent, tuple(said))
        return kept[1]


def _same(ones: Sequence[Entry], others: Sequence[Entry]) -> bool:
    return len(ones) == len(others) and all(map(operator.is_, ones, others))


def _by_seed(run: Entry) -> tuple[int, str, str]:
    return run.seed_of_study or 0, run.created, run.name


def _group(path: Path, ordered: Sequence[Entry], settings: Callable[[Entry], Hashable]) -> Group:
    scored = next((run for run in ordered if not _unfinished(run)), None)
    counted: dict[int, Entry] = {}
    left_out: dict[Path, str] = {}
    for run in ordered:
        seed = run.seed_of_study
        reason = _unfinished(run) or ("without a seed" if seed is None else "")
        if not reason and scored is not None and other(run, scored):
            reason = f"with {other(run, scored)}"
        if not reason and scored is not None and run.config and scored.config and settings(run) != settings(scored):
            reason = "with other settings"
        if not reason and seed in counted:
            reason = "with the same seed again"
        if reason or seed is None:
            left_out[run.path] = reason
        else:
            counted[seed] = run
    place = ordered[0].study
    study, variant = (place.name, place.variant) if place is not None and place.variant else ("", "")
    return Group(path, study, variant or _shared_name([run.name for run in ordered]), tuple(ordered), counted, left_out)


def _unfinished(run: Entry) -> str:
    """Why the scores of a run are not those of its variant; "" if they are."""
    if DIVERGED in run.badges:
        return "diverged"
    if run.live:
        return "still training"
    early = dict.fromkeys(ENDED_EARLY, "ended early")
    unscored = "without a score" if run.last is None else ""
    return (early | {"queued": "waiting", "failed": "failed", "finished": unscored}).get(run.state, DAMAGED)


def _shared_name(names: Sequence[str]) -> str:
    """What the names of several runs begin with, without what is left of a number."""
    if len(names) == 1:
        return names[0]
    least, most = min(names), max(names)
    shared = least[: next((i for i, letter in enumerate(least) if letter != most[i : i + 1]), len(least))]
    shared = next((shared.removesuffix(end) for end in ("-seed", "-s", ".s", "_s") if shared.endswith(end)), shared)
    shared = shared.rstrip("-_. ")
    return shared if len(shared) >= SHORTEST_NAME else names[0]
