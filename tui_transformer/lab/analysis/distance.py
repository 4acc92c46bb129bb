"""How often a probe is right, by how far back what it must remember stands; and how far a model can look back. Pure.

A character is predicted from the one before it: a model whose layers carry information over 30 characters knows
nothing of what stands further back, whatever it is trained on. A chart that draws its reach says why a line falls.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.model.visibility import Visibility
from tui_transformer.lab.analysis.bands import Band, stacked
from tui_transformer.lab.analysis.statistics import mean_of
from tui_transformer.lab.records.facts import Record, first_probes, number

FIELD = "by_distance"  # of a validation record
MOST_STRETCHES = 100  # of a probe; a longer list is damage


@dataclass(frozen=True)
class Stretch:
    """Places whose distances lie together: start ≤ distance < stop, characters; `right` of `of` were right."""

    start: float
    stop: float
    right: float
    of: float

    @property
    def middle(self) -> float:
        """Where it is drawn."""
        return (self.start + self.stop) / 2

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.right / self.of


def by_distance(record: Record) -> dict[str, tuple[Stretch, ...]]:
    """Probe -> its stretches, nearest first; {} of a record that has none. What is damaged is left out."""
    found = {}
    for name, listed in first_probes(record.get(FIELD)).items():
        rows = listed[:MOST_STRETCHES] if isinstance(listed, list) else []
        stretches = sorted(filter(None, map(_stretch, rows)), key=lambda stretch: stretch.start)
        if stretches:
            found[name] = tuple(stretches)
    return found


def newest(records: Sequence[Record]) -> dict[str, tuple[Stretch, ...]]:
    """Of the last evaluation that has it."""
    return next((found for record in reversed(records) if (found := by_distance(record))), {})


def _stretch(row: Any) -> Stretch | None:
    values = [number(value) for value in row] if isinstance(row, list) and len(row) == 4 else []
    start, stop, right, of = [*values, None, None, None, None][:4]
    if start is None or stop is None or right is None or of is None:
        return None
    return Stretch(start, stop, right, of) if 0 <= start < stop and 0 <= right <= of and of > 0 else None


def families(runs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The probes that any of these runs has, in their order."""
    return tuple(dict.fromkeys(name for run in runs for name in run))


def share_band(seeds: Sequence[Sequence[Stretch]]) -> Band:
    """The mean share over seeds in each stretch that all of them have, with its interval.

    Seeds have equal weight; the interval covers seeds and the places in the stretch, which all seeds share.
    """
    known = [{(s.start, s.stop): s for s in stretches} for stretches in seeds if stretches]
    if not known:
        return Band()
    shared = sorted(set.intersection(*(set(stretches) for stretches in known)))
    made = stacked([[(stretches[at].middle, stretches[at].share) for at in shared] for stretches in known])
    ends = []
    for at in shared:
        shares, places = [each[at].share for each in known], min(each[at].of for each in known)
        mean = mean_of(shares, share=True, places=round(places))
        ends.append(mean.interval or (mean.mean, mean.mean))
    return replace(made, half=(), ends=tuple(ends) if len(known) > 1 else ())


@dataclass(frozen=True)
class Reach:
    """How far back a model can know anything.

    Args:
        tokens: back from the token that is read.
        why: in a few words, as `2 × 15`.
    """

    tokens: int
    why: str


def reach(config: Mapping[str, Any]) -> Reach | None:
    """What a model's layers can carry, where its attention has a window; else its context; None where not known.

    Args:
        config: every setting, by its dotted key.
    """
    kind = config.get("model.attention")
    window, layers, context, link = (
        _count(config.get(f"model.{key}")) for key in ("window", "n_layers", "context_length", "link_every")
    )
    causal = config.get("model.causal") is not False
    carried = None
    if kind in ("window", "sparse") and window and layers:
        see = Visibility(causal, window, link if kind == "sparse" else None)
        carried = see.reach(layers)
    if carried is not None and layers and (context is None or carried < context):
        return Reach(carried, f"{layers} × {carried // layers}")
    return Reach(context, "context") if context is not None else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
