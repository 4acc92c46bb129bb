"""The ablation as bars: what each variant scores over its seeds, and how far it is from the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.analysis.verdict import VariantResult, scores_of
from tui_transformer.lab.records.floors import Floor
from tui_transformer.lab.reports.figures.curves import floor_text
from tui_transformer.lab.reports.figures.style import COLOURS, FAINT, FLOOR, INK, figure, label, legend_below, minus
from tui_transformer.lab.reports.report_data import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

BETTER, WORSE, OPEN = COLOURS[2], COLOURS[1], "#b9bec7"
KINDS = {"better": BETTER, "worse": WORSE}
ROW = 0.34  # inches


@dataclass(frozen=True)
class Bar:
    """One variant.

    Args:
        loss: its mean; None where no run counts.
        half: half of its interval; None with one seed.
        seeds: of each run that counts.
        difference: to the baseline, paired by seed; None where it is not held against it.
        kind: of its verdict; "" without one.
        void: why its loss must not be read; "" if it may.
    """

    name: str
    loss: float | None
    half: float | None
    seeds: tuple[float, ...]
    difference: float | None
    difference_half: float | None
    kind: str
    void: str
    baseline: bool


def bars_of(data: ReportData, standings: Sequence[VariantResult], language: Language) -> tuple[Bar, ...]:
    """Every variant, in its study's order."""
    return tuple(_bar(data, standing, language) for standing in standings)


def _bar(data: ReportData, standing: VariantResult, language: Language) -> Bar:
    mean, found, judged = standing.mean(LAST), standing.difference(LAST), standing.judgement(LAST)
    reason = standing.family.reason(standing.group)
    return Bar(
        label(data.name(standing)),
        mean.mean if mean is not None else None,
        mean.half if mean is not None else None,
        tuple(score for _, score in scores_of(standing.group, LAST).by_seed),
        found.difference if found is not None else None,
        found.half if found is not None else None,
        judged.kind if judged is not None else "",
        standing.group.void or (language.tell(reason) if reason is not None else ""),
        standing.is_baseline,
    )


def bars(shown: Sequence[Bar], unit: str, floor: Floor | None, language: Language) -> "Figure":
    """The picture: mean losses on the left, differences to the baseline on the right where there are any."""
    judged = any(bar.difference is not None for bar in shown)
    made = figure(ROW * max(3, len(shown)) + 1.15)
    panels = made.subplots(1, 2 if judged else 1, sharey=True, squeeze=False)[0]
    _means(panels[0], shown, unit, floor, language)
    if judged:
        _differences(panels[1], shown, unit, language)
    panels[0].set_yticks(range(len(shown)), [bar.name for bar in shown])
    panels[0].set_ylim(len(shown) - 0.4, -0.6)
    handles = [line for line in panels[0].lines if _is_named(line)]
    legend_below(made, [*handles, *_kinds(shown, language)])
    return made


def _is_named(line: "Line2D") -> bool:
    """Whether a legend shows it."""
    return not str(line.get_label()).startswith("_")


def _kinds(shown: Sequence[Bar], language: Language) -> list[object]:
    """What the colours of the differences mean."""
    from matplotlib.patches import Patch

    kinds = {"better": BETTER, "worse": WORSE, "open": OPEN}
    there = {bar.kind if bar.kind in KINDS else "open" for bar in shown if bar.difference is not None}
    return [Patch(color=kinds[kind], label=language.say(f"figure.{kind}")) for kind in kinds if kind in there]


def _means(axes: "Axes", shown: Sequence[Bar], unit: str, floor: Floor | None, language: Language) -> None:
    for y, bar in enumerate(shown):
        if bar.loss is None:
            axes.text(0, y, f" {bar.void or language.say('figure.no-score')}", va="center", color=FAINT, fontsize=8)
            continue
        void: dict[str, Any] = {"hatch": "////", "fill": False, "edgecolor": FAINT} if bar.void else {}
        colour: dict[str, Any] = {} if bar.void else {"color": COLOURS[0], "alpha": 0.75 if bar.baseline else 0.45}
        axes.barh(y, bar.loss, height=0.62, **void, **colour)
        if bar.half is not None:
            axes.errorbar(bar.loss, y, xerr=bar.half, color=INK, capsize=2.5, linewidth=1)
        seeds = language.say("figure.each-seed") if not any(_is_named(line) for line in axes.lines) else None
        dots: dict[str, Any] = {
            "linestyle": "",
            "marker": "o",
            "markersize": 3,
            "markerfacecolor": "white",
            "color": INK,
        }
        axes.plot(bar.seeds, [y] * len(bar.seeds), label=seeds, markeredgewidth=0.7, zorder=4, **dots)
        edge = max(bar.loss + (bar.half or 0.0), *bar.seeds)
        note = f"{LAST.amount(bar.loss)}" + (f"  {bar.void}" if bar.void else "")
        axes.annotate(note, (edge, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize=7.5)
    if floor is not None:
        said = floor_text(floor, language)
        axes.axvline(floor.nats, color=FLOOR, linestyle=(0, (6, 2)), linewidth=1.1, label=said)
    axes.set(title=language.say("figure.means"), xlabel=language.say("figure.loss.unit", unit=language.word(unit)))
    axes.margins(x=0.28)
    axes.set_xlim(left=0)
    axes.grid(visible=False, axis="y")


def _differences(axes: "Axes", shown: Sequence[Bar], unit: str, language: Language) -> None:
    for y, bar in enumerate(shown):
        if bar.difference is None:
            said = language.say("figure.baseline") if bar.baseline else bar.void
            axes.annotate(said, (0, y), xytext=(5, 0), textcoords="offset points", va="center", color=FAINT, fontsize=8)
            continue
        axes.barh(y, bar.difference, height=0.62, color=KINDS.get(bar.kind, OPEN))
        if bar.difference_half is not None:
            axes.errorbar(bar.difference, y, xerr=bar.difference_half, color=INK, capsize=2.5, linewidth=1)
        half, left = bar.difference_half or 0.0, bar.difference < 0
        edge = bar.difference - half if left else bar.difference + half
        note = minus(LAST.amount(bar.difference, sign=True))
        offset, side = ((-5, 0), "right") if left else ((5, 0), "left")
        at: dict[str, Any] = {
            "xytext": offset,
            "textcoords": "offset points",
            "va": "center",
            "ha": side,
            "fontsize": 7.5,
        }
        axes.annotate(note, (edge, y), **at)
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set(
        title=language.say("figure.differences"),
        xlabel=language.say("figure.difference.unit", unit=language.word(unit)),
    )
    axes.margins(x=0.3)
    axes.grid(visible=False, axis="y")
