"""Curves of variants: loss, perplexity, the end of the loss, the learning rate; means over seeds with intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_transformer.lab.analysis.curves import Band, Metrics, Points, band, scored
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.charts.curves import SMOOTHINGS, Curve, curve_of, smoothed
from tui_transformer.lab.records.facts import Record
from tui_transformer.lab.records.floors import Floor
from tui_transformer.lab.reports.figures.style import (
    COLOURS,
    DASHES,
    FLOOR,
    INK,
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

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (self.loss.curve.x or self.train.x)


@dataclass(frozen=True)
class Panels:
    """What the four panels show.

    Args:
        lines: the variants.
        unit: of the loss.
        floor: of their text and its windows; None if unknown.
        unigram: the loss of knowing only how often each token occurs.
    """

    lines: tuple[Line, ...]
    unit: str
    floor: Floor | None = None
    unigram: float | None = None
    shown: tuple[VariantResult, ...] = field(default=(), compare=False)


def lines_of(data: ReportData, standings: Sequence[VariantResult], language: Language) -> tuple[Line, ...]:
    """Of those that were measured at all."""
    made = (_line(data, standing, language) for standing in standings)
    return tuple(line for line in made if not line.empty)


def _line(data: ReportData, standing: VariantResult, language: Language) -> Line:
    group = standing.group
    runs = group.drawn
    found = [data.metrics.get(run.path, Metrics()) for run in runs]
    name = data.name(standing)
    n = sum(bool(metrics.validation) for metrics in found)
    named = language.say("figure.seeds", name=name, n=n) if len(runs) > 1 else name
    sign = f" [{group.void}]" if group.void else ""
    train = curve_of(found[0].train, "step", "loss") if found else Curve()
    return Line(
        label(named) + sign,
        band(_points([metrics.validation for metrics in found], "loss")),
        band(_points([metrics.validation for metrics in found], "perplexity")),
        smoothed(train, SMOOTHINGS[-1]),
        curve_of(found[0].train, "step", "lr") if found else Curve(),
        bool(group.void),
    )


def _points(seeds: Sequence[Sequence[Record]], key: str) -> Mapping[int, Points]:
    return {i: scored(records, "step", key) for i, records in enumerate(seeds)}


def curves(panels: Panels, language: Language) -> "Figure":
    """The picture: loss, perplexity, the end of the loss, the learning rate."""
    made = figure(5.4)
    (loss, perplexity), (end, rate) = made.subplots(2, 2)
    say = language.say
    handles = _losses(loss, panels, language)
    loss.set(title=say("figure.loss"), ylabel=say("figure.loss.unit", unit=language.word(panels.unit)))
    _perplexities(perplexity, panels)
    perplexity.set(title=say("figure.perplexity"))
    _losses(end, panels, language, marks=True)
    end.set(title=say("figure.end"), ylabel=say("figure.loss.unit", unit=language.word(panels.unit)))
    _zoom(end, panels)
    _rates(rate, panels)
    rate.set(title=say("figure.rate"))
    for axes in (loss, perplexity, end, rate):
        axes.set_xlabel(say("figure.step"))
        thousands(axes)
    legend_below(made, handles, 3 if len(panels.lines) < 3 else 4)
    return made


def _style(i: int, line: Line) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": ":" if line.void else DASHES[i % len(DASHES)]}


def _losses(axes: "Axes", panels: Panels, language: Language, *, marks: bool = False) -> list[Any]:
    """Lines with their bands; gives back what the legend shows."""
    handles = []
    for i, line in enumerate(panels.lines):
        style = _style(i, line)
        if line.train.x:
            (train,) = axes.plot(line.train.x, line.train.y, color=style["color"], linewidth=0.7, alpha=0.55)
            if len(panels.lines) == 1:
                train.set_label(language.say("figure.train"))
                handles.append(train)
        named = language.say("figure.validation") if len(panels.lines) == 1 else line.name
        handles += _banded(axes, line.loss, style, named, marks=marks)
    if panels.floor is not None:
        said = floor_text(panels.floor, language)
        handles.append(axes.axhline(panels.floor.nats, color=FLOOR, linestyle=(0, (6, 2)), linewidth=1.1, label=said))
    return handles


def _banded(axes: "Axes", made: Band, style: dict[str, Any], name: str, *, marks: bool) -> Iterator[Any]:
    x, y = made.curve.x, made.curve.y
    if not x:
        return
    if made.half:
        low, high = ([a + s * h for a, h in zip(y, made.half, strict=True)] for s in (-1, 1))
        axes.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
    mark: dict[str, Any] = {"marker": "o", "markersize": 2.6} if marks and len(x) <= FEW else {}
    if len(x) == 1:
        mark = {"marker": "o", "markersize": 4}
    yield axes.plot(x, y, label=name, **style, **mark)[0]


def _perplexities(axes: "Axes", panels: Panels) -> None:
    for i, line in enumerate(panels.lines):
        if any(y <= 0 for y in line.perplexity.curve.y):
            continue
        list(_banded(axes, line.perplexity, _style(i, line), line.name, marks=False))
    if panels.floor is not None:
        axes.axhline(math.exp(panels.floor.nats), color=FLOOR, linestyle=(0, (6, 2)), linewidth=1.1)
    axes.set_yscale("log")
    _plain_logs(axes)


def _plain_logs(axes: "Axes") -> None:
    """`2`, `5`, `10`, not powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _zoom(axes: "Axes", panels: Panels) -> None:
    """Where the variants part: the last of the run, as high as the losses that mean something are there."""
    last = max((line.loss.curve.x[-1] for line in panels.lines if line.loss.curve.x), default=0.0)
    honest = [line for line in panels.lines if not line.void] or list(panels.lines)
    start = min([END * last, *(line.loss.curve.x[-2] for line in honest if len(line.loss.curve.x) > 1)])
    values = [
        edge
        for line in honest
        for i, (x, y) in enumerate(zip(line.loss.curve.x, line.loss.curve.y, strict=True))
        if x >= start
        for edge in ((y - line.loss.half[i], y + line.loss.half[i]) if line.loss.half else (y,))
    ]
    if not values or not last:
        return
    middle = sorted(values)[len(values) // 2]
    values = [value for value in values if abs(value - middle) < 1e3]
    low, high = min(values), max(values)
    if panels.floor is not None and low - panels.floor.nats < 1.5 * (high - low):
        low = min(low, panels.floor.nats)
    pad = 0.08 * (high - low) or 0.05
    axes.set(xlim=(start - 0.02 * last, 1.02 * last), ylim=(low - pad, high + pad))


def _rates(axes: "Axes", panels: Panels) -> None:
    """Each schedule once: most variants share one."""
    drawn: list[Curve] = []
    for i, line in enumerate(panels.lines):
        if line.rate.x and line.rate not in drawn:
            drawn.append(line.rate)
            shared = sum(other.rate == line.rate for other in panels.lines) > 1
            colour = INK if shared else COLOURS[i % len(COLOURS)]
            axes.plot(line.rate.x, line.rate.y, color=colour, linewidth=1.3)
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))


def floor_text(floor: Floor, language: Language) -> str:
    """Its entry in a legend."""
    key = "figure.floor.window" if floor.context else "figure.floor"
    return language.say(key, value=f"{floor.nats:.4f}", context=floor.context, stride=floor.stride)
