"""Variant curves: loss, perplexity, the final loss, the learning rate; means over seeds with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from gettext import NullTranslations
from typing import TYPE_CHECKING

from engine.base.language import Message, translate
from engine.runs.records import Floor
from tui_transformer.lab.analysis.chart_lines import SMOOTHINGS, Curve, curve_of, smooth_curve
from tui_transformer.lab.analysis.curves import Band, band, points_by_step
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.figures.style import COLOURS, DASHES, INK, clip_label, figure, floor_line, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

END = 0.6  # share of a run where its final part begins
FEW = 40  # most points to be marked individually


@dataclass(frozen=True)
class CurveLine:
    name: str  # in the legend
    colour: str
    dash: object
    loss: Band  # validation, over seeds
    perplexity: Band
    train: Curve  # smoothed, of its first run
    rate: Curve  # the same run's learning rate
    void: bool  # whether its loss is void, so that it must not be compared with the others


def lines_of(context: ReportContext, standings: Sequence[VariantResult]) -> tuple[CurveLine, ...]:
    made: list[CurveLine] = []
    for standing in standings:
        void, name = standing.group.invalid_badge, context.name(standing)
        found = [context.metrics[run.path] for run in standing.group.charted_runs]
        if len(found) > 1:
            scores = sum(bool(metrics.validation) for metrics in found)
            name = context.say_in_pictures("{name} (n = {n})", name=name, n=scores)
        loss, perplexity = (
            band({i: points_by_step(metrics.validation, "step", key) for i, metrics in enumerate(found)})
            for key in ("loss", "perplexity")
        )
        train, rate = (curve_of(found[0].train, "step", key) if found else Curve() for key in ("loss", "lr"))
        if loss.x or train.x:
            name = clip_label(name) + (f" [{void}]" if void else "")
            colour, dash = COLOURS[len(made) % len(COLOURS)], ":" if void else DASHES[len(made) % len(DASHES)]
            train = smooth_curve(train, SMOOTHINGS["strong"])
            made.append(CurveLine(name, colour, dash, loss, perplexity, train, rate, bool(void)))
    return tuple(made)


def curves_figure(lines: Sequence[CurveLine], unit: str, floor: Floor | None, language: NullTranslations) -> "Figure":
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    def say(text: str, **values: object) -> str:
        return translate(text, language, **values)

    made = figure(5.4)
    (loss, perplexity), (end, rate) = made.subplots(2, 2)
    handles = _losses(loss, lines, floor, language)
    for line in lines:
        if all(y > 0 for y in line.perplexity.y):
            _banded(perplexity, line, line.perplexity, line.name)
    if floor is not None:
        floor_line(perplexity.axhline, math.exp(floor.known_nats_per_char))
    perplexity.set_yscale("log")
    perplexity.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))  # `2`, `5`, `10`, not powers
    perplexity.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    perplexity.yaxis.set_minor_formatter(NullFormatter())
    _losses(end, lines, floor, language, marks=True)
    _zoom(end, lines, floor)
    rates = [line.rate for line in lines]
    for i, one in enumerate(rates):
        if one.x and one not in rates[:i]:  # each distinct schedule once: most variants share one
            colour = INK if rates.count(one) > 1 else COLOURS[i % len(COLOURS)]
            rate.plot(one.x, one.y, color=colour, linewidth=1.3)
    rate.set_ylim(bottom=0)
    rate.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    titles = {
        loss: say("loss"),
        perplexity: say("perplexity, validation"),
        end: say("loss near the end of training"),
        rate: say("learning rate"),
    }
    for axes, title in titles.items():
        axes.set(title=title, xlabel=say("optimizer steps"))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axes in (loss, end):
        axes.set_ylabel(say("nats per {unit}", unit=Message(unit)))
    legend_below(made, handles, 3 if len(lines) < 3 else 4)
    return made


def _losses(
    axes: "Axes", lines: Sequence[CurveLine], floor: Floor | None, language: NullTranslations, *, marks: bool = False
) -> "list[Line2D]":
    """Draw lines with their bands; return the legend's handles."""
    handles: list[Line2D] = []
    alone = len(lines) == 1
    for line in lines:
        if line.train.x:
            (train,) = axes.plot(line.train.x, line.train.y, color=line.colour, linewidth=0.7, alpha=0.55)
            if alone:
                train.set_label(translate("training loss, smoothed", language))
                handles.append(train)
        name = translate("validation loss", language) if alone else line.name
        handles += _banded(axes, line, line.loss, name, marks=marks)
    if floor is not None:
        handles.append(floor_line(axes.axhline, floor.known_nats_per_char, floor_text(floor, language)))
    return handles


def _banded(axes: "Axes", line: CurveLine, made: Band, name: str, *, marks: bool = False) -> "list[Line2D]":
    x = made.x
    if not x:
        return []
    if made.ends:
        low, high = zip(*made.ends, strict=True)
        axes.fill_between(x, low, high, color=line.colour, alpha=0.18, linewidth=0)
    drawn = axes.plot(x, made.y, label=name, color=line.colour, linestyle=line.dash)
    if len(x) == 1 or (marks and len(x) <= FEW):
        drawn[0].set(marker="o", markersize=4 if len(x) == 1 else 2.6)
    return drawn


def _zoom(axes: "Axes", lines: Sequence[CurveLine], floor: Floor | None) -> None:
    """Where the variants diverge: the end of the run, up to the highest valid loss there."""
    last = max((line.loss.x[-1] for line in lines if line.loss.x), default=0.0)
    honest = [line.loss for line in lines if not line.void] or [line.loss for line in lines]
    start = min([END * last, *(loss.x[-2] for loss in honest if len(loss.x) > 1)])
    values = [
        edge
        for loss in honest
        for i, (x, y) in enumerate(zip(loss.x, loss.y, strict=True))
        if x >= start
        for edge in (loss.ends[i] if loss.ends else (y,))
    ]
    if not values or not last:
        return
    middle = sorted(values)[len(values) // 2]
    values = [value for value in values if abs(value - middle) < 1e3]
    low, high = min(values), max(values)
    if floor is not None and low - floor.known_nats_per_char < 1.5 * (high - low):
        low = min(low, floor.known_nats_per_char)
    pad = 0.08 * (high - low) or 0.05
    axes.set(xlim=(start - 0.02 * last, 1.02 * last), ylim=(low - pad, high + pad))


def floor_text(floor: Floor, language: NullTranslations) -> str:
    text = Message(
        "floor reachable at context {context}, stride {stride}: {value:.4f}"
        if floor.context
        else "floor given the whole past: {value:.4f}"
    )
    values = {"value": floor.known_nats_per_char, "context": floor.context, "stride": floor.stride}
    return translate(text, language, **values)
