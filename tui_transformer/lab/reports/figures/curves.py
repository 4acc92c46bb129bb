"""Curves of variants: loss, perplexity, the end of the loss, the learning rate; means over seeds with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_transformer.lab.analysis.curves import Band, Metrics, band, scored
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.charts.curves import SMOOTHINGS, Curve, curve_of, smoothed
from tui_transformer.lab.records.floors import Floor
from tui_transformer.lab.reports.figures.style import (
    COLOURS,
    DASHES,
    INK,
    OF_FLOOR,
    figure,
    label,
    legend_below,
    thousands,
)
from tui_transformer.lab.reports.report_data import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

END = 0.6  # share of a run where its end begins
FEW = 40  # points of which each has a mark


@dataclass(frozen=True)
class Line:
    """What is drawn of one variant.

    Args:
        name: in the legend.
        loss: validation, over seeds; `perplexity` the same.
        train: smoothed, of its first run.
        rate: the learning rate of its first run.
        void: whether its loss means nothing, so that it must not be read beside the others.
    """

    name: str
    loss: Band
    perplexity: Band
    train: Curve
    rate: Curve
    void: bool = False

    def style(self, i: int) -> dict[str, Any]:
        return {"color": COLOURS[i % len(COLOURS)], "linestyle": ":" if self.void else DASHES[i % len(DASHES)]}


def lines_of(data: ReportData, standings: Sequence[VariantResult], language: Language) -> tuple[Line, ...]:
    """Of those that were measured at all."""
    made = (_line(data, standing, language) for standing in standings)
    return tuple(line for line in made if line.loss.curve.x or line.train.x)


def _line(data: ReportData, standing: VariantResult, language: Language) -> Line:
    void, name = standing.group.void, data.name(standing)
    found = [data.metrics.get(run.path, Metrics()) for run in standing.group.drawn]
    if len(found) > 1:
        name = language.say("figure.seeds", name=name, n=sum(bool(metrics.validation) for metrics in found))
    loss, perplexity = (
        band({i: scored(metrics.validation, "step", key) for i, metrics in enumerate(found)})
        for key in ("loss", "perplexity")
    )
    train, rate = (curve_of(found[0].train, "step", key) if found else Curve() for key in ("loss", "lr"))
    sign = f" [{void}]" if void else ""
    return Line(label(name) + sign, loss, perplexity, smoothed(train, SMOOTHINGS[-1]), rate, bool(void))


def curves(lines: Sequence[Line], unit: str, floor: Floor | None, language: Language) -> "Figure":
    """The picture: loss, perplexity, the end of the loss, the learning rate."""
    say = language.say
    made = figure(5.4)
    (loss, perplexity), (end, rate) = made.subplots(2, 2)
    handles = _losses(loss, lines, floor, language)
    _perplexities(perplexity, lines, floor)
    _losses(end, lines, floor, language, marks=True)
    _zoom(end, lines, floor)
    _rates(rate, lines)
    for axes, title in ((loss, "loss"), (perplexity, "perplexity"), (end, "end"), (rate, "rate")):
        axes.set(title=say(f"figure.{title}"), xlabel=say("figure.step"))
        thousands(axes)
    for axes in (loss, end):
        axes.set_ylabel(say("figure.loss.unit", unit=language.word(unit)))
    legend_below(made, handles, 3 if len(lines) < 3 else 4)
    return made


def _losses(
    axes: "Axes", lines: Sequence[Line], floor: Floor | None, language: Language, *, marks: bool = False
) -> list[Any]:
    """Lines with their bands; gives back what the legend shows."""
    handles = []
    alone = len(lines) == 1
    for i, line in enumerate(lines):
        if line.train.x:
            colour = line.style(i)["color"]
            (train,) = axes.plot(line.train.x, line.train.y, color=colour, linewidth=0.7, alpha=0.55)
            if alone:
                train.set_label(language.say("figure.train"))
                handles.append(train)
        name = language.say("figure.validation") if alone else line.name
        handles += _banded(axes, line.loss, line.style(i), name, marks=marks)
    if floor is not None:
        handles.append(axes.axhline(floor.nats, label=floor_text(floor, language), **OF_FLOOR))
    return handles


def _banded(axes: "Axes", made: Band, style: dict[str, Any], name: str, *, marks: bool) -> list[Any]:
    x, y = made.curve.x, made.curve.y
    if not x:
        return []
    if made.half:
        low, high = ([a + s * h for a, h in zip(y, made.half, strict=True)] for s in (-1, 1))
        axes.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
    size = 4 if len(x) == 1 else 2.6 if marks and len(x) <= FEW else None
    mark: dict[str, Any] = {"marker": "o", "markersize": size} if size else {}
    return axes.plot(x, y, label=name, **style, **mark)


def _perplexities(axes: "Axes", lines: Sequence[Line], floor: Floor | None) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for i, line in enumerate(lines):
        if all(y > 0 for y in line.perplexity.curve.y):
            _banded(axes, line.perplexity, line.style(i), line.name, marks=False)
    if floor is not None:
        axes.axhline(math.exp(floor.nats), **OF_FLOOR)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))  # `2`, `5`, `10`, not powers
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _zoom(axes: "Axes", lines: Sequence[Line], floor: Floor | None) -> None:
    """Where the variants part: the last of the run, as high as the losses that mean something are there."""
    last = max((line.loss.curve.x[-1] for line in lines if line.loss.curve.x), default=0.0)
    honest = [line.loss for line in lines if not line.void] or [line.loss for line in lines]
    start = min([END * last, *(loss.curve.x[-2] for loss in honest if len(loss.curve.x) > 1)])
    values = [
        edge
        for loss in honest
        for i, (x, y) in enumerate(zip(loss.curve.x, loss.curve.y, strict=True))
        if x >= start
        for edge in ((y - loss.half[i], y + loss.half[i]) if loss.half else (y,))
    ]
    if not values or not last:
        return
    middle = sorted(values)[len(values) // 2]
    values = [value for value in values if abs(value - middle) < 1e3]
    low, high = min(values), max(values)
    if floor is not None and low - floor.nats < 1.5 * (high - low):
        low = min(low, floor.nats)
    pad = 0.08 * (high - low) or 0.05
    axes.set(xlim=(start - 0.02 * last, 1.02 * last), ylim=(low - pad, high + pad))


def _rates(axes: "Axes", lines: Sequence[Line]) -> None:
    """Each schedule once: most variants share one."""
    rates = [line.rate for line in lines]
    for i, rate in enumerate(rates):
        if rate.x and rate not in rates[:i]:
            colour = INK if rates.count(rate) > 1 else COLOURS[i % len(COLOURS)]
            axes.plot(rate.x, rate.y, color=colour, linewidth=1.3)
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))


def floor_text(floor: Floor, language: Language) -> str:
    """Its entry in a legend."""
    key = "figure.floor.window" if floor.context else "figure.floor"
    return language.say(key, value=f"{floor.nats:.4f}", context=floor.context, stride=floor.stride)
