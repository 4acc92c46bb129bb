"""The ablation as bars: what each variant scores over its seeds, and how far it is from the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.analysis.verdict import VariantResult, scores_of
from tui_transformer.lab.records.floors import Floor
from tui_transformer.lab.reports.figures.curves import floor_text
from tui_transformer.lab.reports.figures.style import COLOURS, FAINT, INK, OF_FLOOR, figure, label, legend_below
from tui_transformer.lab.reports.report_data import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {"better": COLOURS[2], "worse": COLOURS[1], "open": "#b9bec7"}
ROW = 0.34  # inches
WHISKER: dict[str, Any] = {"color": INK, "capsize": 2.5, "linewidth": 1}
NOTE: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
SEED: dict[str, Any] = {"ls": "", "marker": "o", "ms": 3, "mfc": "white", "mew": 0.7, "color": INK, "zorder": 4}


@dataclass(frozen=True)
class Bar:
    """One variant.

    Args:
        loss: its mean; None where no run counts.
        half: half of its interval; None with one seed.
        seeds: of each run that counts.
        difference: to the baseline, paired by seed; None where it is not held against it.
        kind: of its verdict, as the colour has it; "open" without one.
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
    made = []
    for standing in standings:
        mean, found, judged = standing.mean(LAST), standing.difference(LAST), standing.judgement(LAST)
        reason = standing.family.reason(standing.group)
        made.append(
            Bar(
                name=label(data.name(standing)),
                loss=mean.mean if mean is not None else None,
                half=mean.half if mean is not None else None,
                seeds=tuple(score for _, score in scores_of(standing.group, LAST).by_seed),
                difference=found.difference if found is not None else None,
                difference_half=found.half if found is not None else None,
                kind=judged.kind if judged is not None and judged.kind in KINDS else "open",
                void=standing.group.void or (language.tell(reason) if reason is not None else ""),
                baseline=standing.is_baseline,
            )
        )
    return tuple(made)


def bars(shown: Sequence[Bar], unit: str, floor: Floor | None, language: Language) -> "Figure":
    """The picture: mean losses on the left, differences to the baseline on the right where there are any."""
    from matplotlib.patches import Patch

    judged = any(bar.difference is not None for bar in shown)
    made = figure(ROW * max(3, len(shown)) + 1.15)
    panels = made.subplots(1, 2 if judged else 1, sharey=True, squeeze=False)[0]
    handles = _means(panels[0], shown, floor, language)
    panels[0].set(title=language.say("figure.means"))
    panels[0].set_xlabel(language.say("figure.loss.unit", unit=language.word(unit)))
    if judged:
        _differences(panels[1], shown, language)
        panels[1].set(title=language.say("figure.differences"))
        panels[1].set_xlabel(language.say("figure.difference.unit", unit=language.word(unit)))
    for axes in panels:
        axes.grid(visible=False, axis="y")
    panels[0].set_yticks(range(len(shown)), [bar.name for bar in shown])
    panels[0].set_ylim(len(shown) - 0.4, -0.6)
    there = {bar.kind for bar in shown if bar.difference is not None}
    kinds = [Patch(color=KINDS[kind], label=language.say(f"figure.{kind}")) for kind in KINDS if kind in there]
    legend_below(made, [*handles, *kinds])
    return made


def _means(axes: "Axes", shown: Sequence[Bar], floor: Floor | None, language: Language) -> list[Any]:
    """Gives back what the legend shows: a seed, and the floor."""
    handles: list[Any] = []
    for y, bar in enumerate(shown):
        if bar.loss is None:
            axes.text(0, y, f" {bar.void or language.say('figure.no-score')}", va="center", color=FAINT, fontsize=8)
            continue
        fill: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.75 if bar.baseline else 0.45}
        if bar.void:
            fill = {"hatch": "////", "fill": False, "edgecolor": FAINT}
        axes.barh(y, bar.loss, height=0.62, **fill)
        if bar.half is not None:
            axes.errorbar(bar.loss, y, xerr=bar.half, **WHISKER)
        dots = axes.plot(bar.seeds, [y] * len(bar.seeds), label=language.say("figure.each-seed"), **SEED)
        handles = handles or dots
        edge = max(bar.loss + (bar.half or 0.0), *bar.seeds)
        note = LAST.amount(bar.loss) + (f"  {bar.void}" if bar.void else "")
        axes.annotate(note, (edge, y), xytext=(5, 0), fontsize=7.5, **NOTE)
    if floor is not None:
        handles = [*handles, axes.axvline(floor.nats, label=floor_text(floor, language), **OF_FLOOR)]
    axes.margins(x=0.28)
    axes.set_xlim(left=0)
    return handles


def _differences(axes: "Axes", shown: Sequence[Bar], language: Language) -> None:
    for y, bar in enumerate(shown):
        if bar.difference is None:
            said = language.say("figure.baseline") if bar.baseline else bar.void
            axes.annotate(said, (0, y), xytext=(5, 0), color=FAINT, fontsize=8, **NOTE)
            continue
        axes.barh(y, bar.difference, height=0.62, color=KINDS[bar.kind])
        if bar.difference_half is not None:
            axes.errorbar(bar.difference, y, xerr=bar.difference_half, **WHISKER)
        sign, side = (-1, "right") if bar.difference < 0 else (1, "left")
        edge = bar.difference + sign * (bar.difference_half or 0.0)
        note = LAST.amount(bar.difference, sign=True).replace("-", "\u2212")
        axes.annotate(note, (edge, y), xytext=(5 * sign, 0), ha=side, fontsize=7.5, **NOTE)
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.margins(x=0.3)
