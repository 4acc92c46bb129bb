"""Which runs are seeds of one variant, and which of them count. What they score together is said in `standing`."""

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from engine.config.keys import is_bookkeeping
from tui_transformer.lab.analysis.comparable import other
from tui_transformer.lab.analysis.entry import DAMAGED, Entry, Protocol
from tui_transformer.lab.analysis.verdict import ENDED_EARLY
from tui_transformer.lab.records.badges import badge

SEED = "seed"
DIVERGED, INERT = "DIVERGED", "INERT"
SHORTEST_NAME = 3  # letters that several runs must share to be called by them


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
        """Whether any of its runs is trained now."""
        return any(run.live for run in self.runs)

    @cached_property
    def badges(self) -> dict[str, str]:
        """Of any of its runs, what makes scores void first; each with how many runs have it, and the first reason."""
        counts = Counter(name for run in self.runs for name in run.badges)
        first = {name: run.badges[name] for run in reversed(self.runs) for name in run.badges}
        order = sorted(counts, key=lambda name: (not badge(name).void, name != INERT))
        runs = f"of {len(self.runs)} runs" if len(self.runs) > 1 else "of one run"
        return {name: f"{counts[name]} {runs}: {first[name]}" for name in order}

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
        """How its runs were scored."""
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
        """How many of its runs did."""
        return sum(reason == "diverged" for reason in self.left_out.values())


class Grouping:
    """Puts runs into groups, and keeps the groups in which no run has changed."""

    def __init__(self) -> None:
        self._settings: dict[Path, tuple[Entry, Hashable]] = {}
        self._made: dict[Path, Group] = {}

    def of(self, entries: Iterable[Entry]) -> tuple[Group, ...]:
        """Every run in its group: of a study by its variant, any other with those that differ in the seed alone.

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
    return seed_of(run) or 0, run.created, run.name


def seed_of(entry: Entry) -> int | None:
    """Of its config; where that is damaged, of its study."""
    return entry.seed if entry.seed is not None else entry.study.seed if entry.study is not None else None


def _group(path: Path, ordered: Sequence[Entry], settings: Callable[[Entry], Hashable]) -> Group:
    scored = next((run for run in ordered if not _unfinished(run)), None)
    counted: dict[int, Entry] = {}
    left_out: dict[Path, str] = {}
    for run in ordered:
        seed = seed_of(run)
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
    study = ordered[0].study
    in_study = study is not None and study.variant
    name = study.variant if study is not None and in_study else _shared_name([run.name for run in ordered])
    return Group(path, study.name if study is not None and in_study else "", name, tuple(ordered), counted, left_out)


def _unfinished(run: Entry) -> str:
    """Why the scores of a run are not those of its variant; "" if they are."""
    if "DIVERGED" in run.badges:
        return "diverged"
    if run.state == "queued":
        return "waiting"
    if run.live:
        return "still training"
    if run.state == "failed":
        return "failed"
    if run.state in ENDED_EARLY:
        return "ended early"
    if run.state != "finished":
        return DAMAGED
    return "without a score" if run.last is None else ""


def _shared_name(names: Sequence[str]) -> str:
    """What the names of several runs begin with, without what is left of a number."""
    if len(names) == 1:
        return names[0]
    least, most = min(names), max(names)
    shared = least[: next((i for i, letter in enumerate(least) if letter != most[i : i + 1]), len(least))]
    shared = next((shared.removesuffix(end) for end in ("-seed", "-s", ".s", "_s") if shared.endswith(end)), shared)
    shared = shared.rstrip("-_. ")
    return shared if len(shared) >= SHORTEST_NAME else names[0]
