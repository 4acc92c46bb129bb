"""Probes by distance: each variant's accuracy by how far back the text to remember is."""

from collections.abc import Sequence
from dataclasses import replace
from gettext import NullTranslations
from typing import TYPE_CHECKING

from engine.base.language import Message, language_code, tr, translate
from tui_transformer.lab.analysis.charts.overlay import ChartedRuns, Overlay, distance_chart, probes_scored_by_distance
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.curves import SeedRuns
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.figures.style import (
    COLOURS,
    DASHES,
    FAINT,
    INK,
    SVG,
    chinese_font,
    clip_label,
    figure,
    legend_below,
    render,
)
from tui_transformer.lab.reports.languages import load_report_language

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DISTANCE = Message.in_context("axis", "characters back")
PANELS_PER_ROW = 2  # panels side by side
MOST_PANELS = 6  # most panels; the rest go into a table


def probe_distance_charts(context: ReportContext, standings: Sequence[VariantResult]) -> tuple[Overlay, ...]:
    """One chart per probe; none if no run has probes by distance."""
    groups = tuple((i, SeedRuns(context.name(s), s.group.charted_runs)) for i, s in enumerate(standings))
    drawn = ChartedRuns(groups, None, context.metrics)
    charts = [distance_chart(drawn, probe) for probe in probes_scored_by_distance(drawn)[:MOST_PANELS]]
    return tuple(chart for chart in charts if chart.drawn_strokes)


def probe_distance_figure(charts: Sequence[Overlay], language: NullTranslations, *, alone: bool = False) -> "Figure":
    down, across = -(-len(charts) // PANELS_PER_ROW), min(PANELS_PER_ROW, len(charts))
    made = figure(2.35 * down + 0.5)
    places = list(made.subplots(down, across, squeeze=False, sharey=True).flat)
    handles: dict[str, Artist] = {}
    for axes, chart in zip(places, charts, strict=False):
        handles |= _panel(axes, chart, language, chart.title if alone else translate(chart.probe, language))
    for axes in places[len(charts) :]:
        axes.set_axis_off()
    legend_below(made, list(handles.values()))
    return made


def _panel(axes: "Axes", chart: Overlay, language: NullTranslations, title: str) -> "dict[str, Artist]":
    from matplotlib.ticker import PercentFormatter

    handles: dict[str, Artist] = {}
    for stroke in chart.drawn_strokes:
        colour, x, y = COLOURS[stroke.slot % len(COLOURS)], stroke.curve.x, stroke.curve.y
        if stroke.curve.ends:
            low, high = zip(*stroke.curve.ends, strict=True)
            axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
        name, dash = clip_label(stroke.name), DASHES[stroke.slot % len(DASHES)]
        (handles[name],) = axes.plot(x, y, color=colour, linestyle=dash, marker="o", markersize=2.6, label=name)
    said = translate("chance", language)
    for chance in chart.levels:
        handles[said] = axes.axhline(chance, color=FAINT, linestyle=(0, (1, 1.5)), linewidth=1.2, label=said)
    said = translate("reach of a variant", language)
    for tokens, slots in chart.reaches:
        colour = COLOURS[slots[0] % len(COLOURS)] if len(slots) == 1 else INK
        handles[said] = axes.axvline(tokens, color=colour, linestyle=(0, (4, 2)), linewidth=1, label=said)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
    axes.set(title=title, xlabel=translate(DISTANCE, language), ylim=(-0.03, 1.03))
    axes.set_xlim(left=0)
    return handles


def probe_distance_svg(chart: Overlay) -> str:
    """One standalone chart as SVG: letters in its legend, their meaning in words below."""
    strokes = []
    for one in chart.strokes:
        seeds = "" if one.seeds is None else f" (n = {one.seeds})"
        strokes.append(replace(one, name=f"{LETTERS[one.slot]} {one.name}{seeds}"))
    words = [*(tr("chance {level:.0%}", level=level) for level in chart.levels), *chart.notes]

    def draw() -> "Figure":
        lettered = replace(chart, strokes=tuple(strokes))
        made = probe_distance_figure([lettered], load_report_language(language_code()), alone=True)
        (axes,) = made.axes
        axes.set_xlabel(f"{axes.get_xlabel()}\n{clip_label('; '.join(words), 200)}")
        return made

    declared = render(draw, chinese_font(), (SVG,))[SVG].decode("utf-8")
    return declared[declared.index("<svg") :]
