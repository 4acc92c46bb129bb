"""Which runs are seeds of one variant, which of them count, and which scores are comparable at all."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.language import Message, tr
from engine.config.keys import is_bookkeeping
from engine.config.measures import MOST_UNKNOWN
from tui_transformer.lab.analysis.entry import BITS_PER_BYTE, DAMAGED, ENDED_EARLY, RunEntry, ScoringProtocol
from tui_transformer.lab.records.badges import badge

if TYPE_CHECKING:
    from tui_transformer.lab.analysis.verdict import VariantResult

DIVERGED, INERT = "DIVERGED", "INERT"
SHORTEST_NAME = 3  # shortest shared prefix that may name a group of runs
WITH_OTHER: dict[str, str] = {  # by what differs from the runs that count
    Message("corpus"): Message("with a different corpus"),
    Message("split"): Message("with a different split"),
    Message("objective"): Message("with a different objective"),
    Message("unit"): Message("with a different unit"),
    Message("tokens"): Message("with different tokens"),
    Message("context"): Message("with a different context"),
    Message("stride"): Message("with a different stride"),
}


SCORED = {  # how a run was scored, by what makes its scores a measure
    "corpus": Message("on {value}"),
    "split": Message("on the text with SHA-256 {value}…"),
    "cut": Message("on its own split of the text"),
    "objective": Message("with objective {value}"),
    "unit": Message("in nats per {value}"),
    "tokens": Message("over tokens of vocabulary {value}"),
    "context": Message("with context {value}"),
    "stride": Message("with stride {value}"),
}


def _protocol_parts(of: ScoringProtocol, *, split_known: bool) -> Iterator[tuple[str, str, object, object]]:
    """What must be equal: in a word, as one of `SCORED`, and each run's value.

    None and "" are not known yet and equal anything.
    """
    yield "corpus", "corpus", of.corpus, of.corpus
    if split_known:
        yield "split", "split", of.split, of.split[:8]
    else:  # before data.json says which text it is, the settings must do
        yield "corpus", "corpus", of.text_settings[:1], of.text_settings[0] if of.text_settings else ""
        yield "split", "cut", of.text_settings[1:], ""
    yield "objective", "objective", of.objective, of.objective
    yield "unit", "unit", of.unit, Message(of.unit)
    yield "tokens", "tokens", of.tokens, of.tokens[:8] or Message("unknown")
    yield "context", "context", of.context, of.context
    yield "stride", "stride", of.stride, of.stride


def _difference(a: ScoringProtocol, b: ScoringProtocol) -> tuple[str, str, str] | None:
    """What differs, in a word, and how each run was scored."""
    known = bool(a.split and b.split)
    pairs = zip(_protocol_parts(a, split_known=known), _protocol_parts(b, split_known=known), strict=True)
    for (word, key, one, own), (_, _, two, others) in pairs:
        if one and two and one != two:
            return word, Message(SCORED[key], value=own), Message(SCORED[key], value=others)
    return None


def other_measure_reason(entry: RunEntry, baseline: RunEntry) -> Message | None:
    """Return why two runs' scores are different measures, as `other corpus`; None if they are the same."""
    found = _difference(entry.protocol, baseline.protocol)
    if found is None:
        return None
    if found[0] in ("unit", "tokens"):
        if any(BITS_PER_BYTE.key in run.redefined for run in (entry, baseline)):
            return Message("bits per byte without the spelling of <unk>, by an older version")
        if _any_exceeds_unknown_limit(entry, baseline):
            return Message(
                "more than {share:.0%} of the tokens are <unk>, so most bits are for spelling", share=MOST_UNKNOWN
            )
    return Message("different {what}", what=Message(found[0]))


def _any_exceeds_unknown_limit(*runs: RunEntry) -> bool:
    return any(run.scores.get("unknown", 0.0) > MOST_UNKNOWN for run in runs)


def differing_part(entry: RunEntry, baseline: RunEntry) -> str:
    """Return what makes their scores different measures, in a word; "" if nothing does."""
    found = _difference(entry.protocol, baseline.protocol)
    return found[0] if found is not None else ""


def only_bytes_comparable(entry: RunEntry, baseline: RunEntry) -> bool:
    """Return whether two runs can be compared by bits per byte and by nothing else: same text, other tokens."""
    a, b = entry.protocol, baseline.protocol
    parts = zip(
        _protocol_parts(a, split_known=bool(a.split and b.split)),
        _protocol_parts(b, split_known=bool(a.split and b.split)),
        strict=True,
    )
    differs = {word for (word, _, one, _), (_, _, two, _) in parts if one and two and one != two}
    # A context counts tokens, so with other tokens the same context is another length of text.
    if not differs & {"unit", "tokens"} or differs - {"unit", "tokens", "context", "stride"}:
        return False
    scored = all(run.scores.get(BITS_PER_BYTE.key) is not None for run in (entry, baseline))
    return scored and not _any_exceeds_unknown_limit(entry, baseline)


def invalid_badge(entry: RunEntry) -> str:
    """Return the badge that makes a run's loss incomparable; "" if there is none."""
    return next((name for name in entry.badges if badge(name).void), "")


def comparable(entry: RunEntry, baseline: RunEntry) -> bool:
    return not (other_measure_reason(entry, baseline) or invalid_badge(entry) or invalid_badge(baseline))


def why_incomparable(entry: RunEntry, baseline: RunEntry) -> str:
    """Return why two runs cannot be compared, in one sentence; "" if they can."""
    for run in (entry, baseline):
        if invalid_badge(run):
            return has_badge(run.name, invalid_badge(run))
    found = _difference(entry.protocol, baseline.protocol)
    if found is None:
        return ""
    _, own, others = found
    return Message(
        "{a} was scored {own}, {b} {others}: the two losses are different measures.",
        a=entry.name,
        own=own,
        b=baseline.name,
        others=others,
    )


def has_badge(name: str, badge_name: str) -> str:
    """Return what a badge of a run or a variant means."""
    means = Message(badge(badge_name).means)
    return Message("{name} has the badge {badge}: {means}", name=name, badge=badge_name, means=means)


def unit_of(rows: "Sequence[RunEntry | VariantResult]") -> str:
    units = {row.protocol.unit for row in rows}
    return tr("nats per {unit}", unit=tr(units.pop())) if len(units) == 1 else tr("different units")


@dataclass(frozen=True, eq=False)
class VariantRuns:
    """A variant: the same settings, a run per seed."""

    path: Path  # its identity; no such path exists
    study: str  # "" if the runs belong to none and share their settings
    name: str  # of the variant, where all belong to one study
    runs: tuple[RunEntry, ...]  # all of them, by seed
    counted_runs: Mapping[int, RunEntry]  # seed -> the run whose scores count
    exclusion_reasons: Mapping[Path, str]  # run -> why it does not count, in English
    earlier_stages: tuple[RunEntry, ...] = ()  # runs of earlier stages, whose weights it started from; none count

    @property
    def title(self) -> str:
        """Its name where there are several studies."""
        return f"{self.study}: {self.name}" if self.study else self.name

    @cached_property
    def badges(self) -> dict[str, str]:
        """Its runs' badges, those that void scores first; each with its number of runs and the first reason."""
        first = {name: run.badges[name] for run in reversed(self.runs) for name in run.badges}
        order = sorted(self.badge_counts, key=lambda name: (not badge(name).void, name != INERT))
        runs = tr("of {n} runs", n=len(self.runs)) if len(self.runs) > 1 else tr("of 1 run")
        return {name: f"{self.badge_counts[name]} {runs}: {first[name]}" for name in order}

    @cached_property
    def badge_counts(self) -> Counter[str]:
        return Counter(name for run in self.runs for name in run.badges)

    @cached_property
    def badges_acknowledged(self) -> tuple[str, ...]:
        """The badges that were acknowledged in all of its runs that have them."""
        return tuple(
            n for n in self.badge_counts if all(n in run.badges_acknowledged for run in self.runs if n in run.badges)
        )

    @cached_property
    def invalid_badge(self) -> str:
        """The badge that makes its scores meaningless; "" if there is none.

        A seed that diverged is left out; the others remain valid.
        """
        return next((name for name in self.badges if badge(name).void and name != DIVERGED), "")

    @property
    def representative(self) -> RunEntry:
        """A run that represents its settings: one that counts, if any."""
        return next(iter(self.counted_runs.values()), self.runs[0])

    @cached_property
    def charted_runs(self) -> tuple[RunEntry, ...]:
        """The runs whose curves are drawn: those that count, and for other seeds those that may yet."""
        may = ("still training", "ended early")
        hidden = {
            run.path
            for run in self.runs
            if (why := self.exclusion_reasons.get(run.path))
            and (why not in may or run.seed_or_study_seed in self.counted_runs)
        }
        return tuple(run for run in self.runs if run.path not in hidden) or self.runs

    @property
    def diverged_count(self) -> int:
        return sum(reason == "diverged" for reason in self.exclusion_reasons.values())


class Grouping:
    """Groups runs, and reuses the groups in which no run has changed."""

    def __init__(self) -> None:
        self._settings: dict[Path, tuple[RunEntry, Hashable]] = {}
        self._made: dict[Path, VariantRuns] = {}

    def group(self, entries: Iterable[RunEntry]) -> tuple[VariantRuns, ...]:
        """Group runs: in a study by variant, otherwise with runs that differ only in the seed.

        Groups are in the order of their first run. Runs that a variant started from are not part of it.
        """
        found: dict[Path, list[RunEntry]] = {}
        earlier: dict[Path, list[RunEntry]] = {}
        alike: dict[Hashable, Path] = {}
        for entry in entries:
            if entry.study is not None and entry.study.variant:
                path = entry.path.parent / "studies" / entry.study.name / entry.study.variant
                if entry.study.stage:
                    earlier.setdefault(path, []).append(entry)
                    continue
            elif entry.config:
                path = alike.setdefault(self._settings_key(entry), entry.path)
            else:  # damaged: its variant is unknown
                path = entry.path
            found.setdefault(path, []).append(entry)
        self._made = {path: self._group_variant(path, runs, earlier.get(path, [])) for path, runs in found.items()}
        return tuple(self._made.values())

    def _group_variant(self, path: Path, runs: Sequence[RunEntry], earlier: Sequence[RunEntry]) -> VariantRuns:
        """The group made earlier if none of its runs has changed."""
        ordered, before = (tuple(sorted(some, key=_by_seed)) for some in (runs, earlier))
        made = self._made.get(path)
        if made is not None and (made.runs, made.earlier_stages) == (ordered, before):
            return made
        scored = next((run for run in ordered if not _why_uncounted(run)), None)
        settings = self._settings_key(scored) if scored is not None and scored.config else None
        counted: dict[int, RunEntry] = {}
        left_out: dict[Path, str] = {}
        for run in ordered:
            seed = run.seed_or_study_seed
            reason = _why_uncounted(run) or (Message("without a seed") if seed is None else "")
            if not reason and scored is not None:
                reason = WITH_OTHER.get(differing_part(run, scored), "")
            if not reason and settings is not None and run.config and self._settings_key(run) != settings:
                reason = Message("with different settings")
            if not reason and seed in counted:
                reason = Message("with a repeated seed")
            if reason or seed is None:
                left_out[run.path] = reason
            else:
                counted[seed] = run
        place = ordered[0].study
        study, variant = (place.name, place.variant) if place is not None and place.variant else ("", "")
        name = variant or _shared_name([run.name for run in ordered])
        return VariantRuns(path, study, name, ordered, counted, left_out, before)

    def _settings_key(self, entry: RunEntry) -> Hashable:
        """What the seeds of one variant share."""
        kept = self._settings.get(entry.path)
        if kept is None or kept[0] is not entry:
            keys = _identifying_keys(tuple(entry.config))
            kept = self._settings[entry.path] = entry, (entry.path.parent, keys, *(repr(entry.config[k]) for k in keys))
        return kept[1]


@lru_cache  # thousands of runs have the same keys
def _identifying_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(key for key in keys if key != "seed" and not is_bookkeeping(key)))


def _by_seed(run: RunEntry) -> tuple[int, str, str]:
    return run.seed_or_study_seed or 0, run.created, run.name


def _why_uncounted(run: RunEntry) -> str:
    """Return why a run's scores do not count for its variant, in English; "" if they do."""
    if DIVERGED in run.badges:
        return Message("diverged")
    if run.live:
        return Message("still training")
    early = dict.fromkeys(ENDED_EARLY, Message("ended early"))
    unscored = Message("without a score") if run.last is None else ""
    waiting = {"queued": Message("waiting"), "failed": Message("failed"), "finished": unscored}
    return (early | waiting).get(run.state, DAMAGED)


def _shared_name(names: Sequence[str]) -> str:
    """The common prefix of several runs' names, without a trailing partial number."""
    if len(names) == 1:
        return names[0]
    least, most = min(names), max(names)
    shared = least[: next((i for i, letter in enumerate(least) if letter != most[i : i + 1]), len(least))]
    shared = next((shared.removesuffix(end) for end in ("-seed", "-s", ".s", "_s") if shared.endswith(end)), shared)
    shared = shared.rstrip("-_. ")
    return shared if len(shared) >= SHORTEST_NAME else names[0]
