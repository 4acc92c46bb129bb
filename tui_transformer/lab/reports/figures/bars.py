"""The ablation as bars: each variant's score over its seeds, and its difference from the baseline."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.base.language import Message
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.verdict import VariantResult, scores_of
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.figures.curves import floor_text
from tui_transformer.lab.reports.figures.style import COLOURS, FAINT, INK, clip_label, figure, floor_line, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

KINDS = {
    "better": (COLOURS[2], Message("better")),
    "worse": (COLOURS[1], Message("worse")),
    "open": ("#b9bec7", Message("no clear difference")),
}
ROW = 0.34  # inches


def bars_figure(context: ReportContext, shown: Sequence[VariantResult]) -> "Figure":
    """The picture: mean losses on the left, differences from the baseline, if any, on the right."""
    from matplotlib.patches import Patch

    say = context.say_in_pictures
    there = {_loss_verdict_kind(standing) for standing in shown if standing.difference(LAST) is not None}
    made = figure(ROW * max(3, len(shown)) + 1.15)
    panels = made.subplots(1, 2 if there else 1, sharey=True, squeeze=False)[0]
    unit = Message(shown[0].protocol.unit)
    handles = _means(panels[0], context, shown)
    panels[0].set(title=say("validation loss"))
    panels[0].set_xlabel(say("nats per {unit}", unit=unit))
    if there:
        _differences(panels[1], context, shown)
        panels[1].set(title=say("difference from the baseline"))
        panels[1].set_xlabel(say("difference, nats per {unit}", unit=unit))
    for axes in panels:
        axes.grid(visible=False, axis="y")
    panels[0].set_yticks(range(len(shown)), [clip_label(context.name(standing)) for standing in shown])
    panels[0].set_ylim(len(shown) - 0.4, -0.6)
    kinds = [Patch(color=colour, label=say(text)) for kind, (colour, text) in KINDS.items() if kind in there]
    legend_below(made, [*handles, *kinds])
    return made


def _loss_verdict_kind(standing: VariantResult) -> str:
    """Its verdict's kind, as in the colours; "open" without one."""
    judged = standing.judgement(LAST)
    return judged.kind if judged is not None and judged.kind in KINDS else "open"


def _invalid_reason(context: ReportContext, standing: VariantResult) -> str:
    """Why its loss is void; "" if it is not."""
    reason = standing.family.incomparable_reason(standing.group)
    return standing.group.invalid_badge or (context.say_in_pictures(reason) if reason is not None else "")


def _whisker(axes: "Axes", x: float, y: int, half: float | None) -> None:
    if half is not None:
        axes.errorbar(x, y, xerr=half, color=INK, capsize=2.5, linewidth=1)


def _note(axes: "Axes", words: str, x: float, y: int, *, size: float, away: int = 5, colour: str = INK) -> None:
    """Write beside a bar that ends at `x`, so many points `away`."""
    side = "left" if away > 0 else "right"
    at = axes.annotate(words, (x, y), xytext=(away, 0), textcoords="offset points", fontsize=size, color=colour)
    at.set(va="center", ha=side)


def _means(axes: "Axes", context: ReportContext, shown: Sequence[VariantResult]) -> "list[Line2D]":
    """Return the legend's handles: a seed, and the floor."""
    say, floor = context.say_in_pictures, context.common_floor(shown)
    handles: list[Line2D] = []
    for y, standing in enumerate(shown):
        mean, void = standing.mean(LAST), _invalid_reason(context, standing)
        if mean is None:
            axes.text(0, y, f" {void or say('no score')}", va="center", color=FAINT, fontsize=8)
            continue
        if void:
            axes.barh(y, mean.mean, height=0.62, hatch="////", fill=False, edgecolor=FAINT)
        else:
            axes.barh(y, mean.mean, height=0.62, color=COLOURS[0], alpha=0.75 if standing.is_baseline else 0.45)
        _whisker(axes, mean.mean, y, mean.half)
        seeds = [score for _, score in scores_of(standing.group, LAST).by_seed]
        dots = axes.plot(seeds, [y] * len(seeds), "o", ms=3, mfc="white", mew=0.7, color=INK, zorder=4)
        dots[0].set_label(say("individual seeds"))
        handles = handles or dots
        edge = max(mean.mean + (mean.half or 0.0), *seeds)
        _note(axes, LAST.format_value(mean.mean) + (f"  {void}" if void else ""), edge, y, size=7.5)
    if floor is not None:
        handles = [
            *handles,
            floor_line(axes.axvline, floor.known_nats_per_char, floor_text(floor, context.picture_language)),
        ]
    axes.margins(x=0.28)
    axes.set_xlim(left=0)
    return handles


def _differences(axes: "Axes", context: ReportContext, shown: Sequence[VariantResult]) -> None:
    for y, standing in enumerate(shown):
        found = standing.difference(LAST)
        if found is None:
            baseline = context.say_in_pictures("the baseline")
            said = baseline if standing.is_baseline else _invalid_reason(context, standing)
            _note(axes, said, 0, y, colour=FAINT, size=8)
            continue
        axes.barh(y, found.mean, height=0.62, color=KINDS[_loss_verdict_kind(standing)][0])
        _whisker(axes, found.mean, y, found.half)
        sign = -1 if found.mean < 0 else 1
        edge = found.mean + sign * (found.half or 0.0)
        _note(axes, LAST.format_value(found.mean, sign=True).replace("-", "\u2212"), edge, y, away=5 * sign, size=7.5)
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.margins(x=0.3)
