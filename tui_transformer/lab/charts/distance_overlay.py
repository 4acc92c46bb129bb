"""How often a probe is right by distance, and how far each model can look: what the Compare pane draws of it. Pure."""

from collections.abc import Mapping, Sequence

from engine.measures import family
from tui_transformer.lab.analysis.curves import Group, Reach, Stretch, families, newest, reach, share_band
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.charts.overlay import Overlay, Stroke
from tui_transformer.lab.charts.seeds_overlay import DrawnGroups

DISTANCE = "distance"  # the axis
NONE = "no run here counted its probes by distance: they need a corpus with probes (playlets)"


def probes_of(drawn: DrawnGroups) -> tuple[str, ...]:
    """The probes that were counted by distance."""
    return families(newest(drawn.of_run(run.path).validation) for _, group in drawn.groups for run in group.runs)


def distances(drawn: DrawnGroups, probe: str) -> Overlay:
    """The share right of a probe over distance, one line a variant; dotted: chance; upright: what a model can reach.

    Args:
        drawn: the variants, or runs.
        probe: its family; the first that there is where none of these runs has it.
    """
    known = probes_of(drawn)
    if not known:
        missing = any(run.path not in drawn.metrics for _, group in drawn.groups for run in group.runs)
        return Overlay("recall by distance", axis=DISTANCE, waiting="reading…" if missing else NONE)
    name = probe if probe in known else known[0]
    strokes, single = [], []
    many = any(len(group.runs) > 1 for _, group in drawn.groups)
    for slot, group in drawn.groups:
        made = share_band([_stretches(drawn, run, name) for run in group.by_seed.values()])
        strokes.append(Stroke(slot, group.label, made.curve, seeds=made.n if many else None, ends=made.ends))
        if many and made.n == 1:
            single.append(group.label)
    shown = [stroke for stroke in strokes if stroke.curve.x]
    furthest = max((stroke.curve.x[-1] for stroke in shown), default=0.0)
    reaches: dict[int, tuple[int, ...]] = {}
    for slot, group in drawn.groups:
        limit = reach_of(group)
        if limit is not None and limit.tokens <= furthest:
            reaches[limit.tokens] = (*reaches.get(limit.tokens, ()), slot)
    alone = (f"one seed, no interval: {', '.join(single)}",) if single else ()
    return Overlay(
        f"{name} by distance, share right",
        name,
        DISTANCE,
        tuple(strokes),
        share=True,
        levels=tuple(_chances(drawn, name)),
        reaches=tuple((float(tokens), slots) for tokens, slots in sorted(reaches.items())),
        waiting=f"no run here has {name} by distance",
        notes=(*_reaching(reaches), *alone),
    )


def reach_of(group: Group) -> Reach | None:
    """Of its model."""
    return reach(group.runs[0].config)


def _reaching(reaches: Mapping[int, Sequence[int]]) -> list[str]:
    """Who can look back how far."""
    return [
        f"{' '.join(LETTERS[slot] for slot in slots)} can look {tokens} back"
        for tokens, slots in sorted(reaches.items())
    ]


def _stretches(drawn: DrawnGroups, run: Entry, name: str) -> Sequence[Stretch]:
    return newest(drawn.of_run(run.path).validation).get(name, ())


def _chances(drawn: DrawnGroups, name: str) -> list[float]:
    """What guessing scores; of runs on other corpora it may be another share."""
    return sorted(
        {
            chance
            for _, group in drawn.groups
            for run in group.runs
            for part, chance in run.chances.items()
            if family(part) == name
        }
    )
