"""A forest plot in characters: each variant's difference from the baseline, with its interval, against a line at zero.

A verdict is shown in words and by shape: a sign before its word; a filled mark on a thick line, or a hollow one on a
thin line. A verdict's colour may also be that of a curve, so beside curves, a row has the colour of its own curve.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from engine.base.clean import clean_line
from engine.base.language import tr
from engine.config.measures import Measure
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.charts.canvas import cells_of, ticks
from tui_transformer.lab.analysis.sentences import FALLING
from tui_transformer.lab.analysis.verdict import VariantResult, brief_verdict
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.lab.records.badges import badge, mark_if_seen

Part = tuple[str, str]  # text, the name of its style
GAP = 2  # columns between two parts of a row
NARROWEST, LEAST_NAME, LONGEST_NAME = 24, 8, 28  # columns of the plot, and of a name
SIDE = 11  # least columns on each side of the line, where there is room
LINE, BASELINE = "│", "◆"
DECIDED = {"better": "good", "worse": "bad"}  # kind of a verdict -> style
SIGNS = {"better": "✓", "worse": "✗", "same": "="}  # before its word; others are open
OPEN = "~"
ANSI_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "name": "bold", "dim": "none", "cell": "none"}


@dataclass(frozen=True)
class ForestRow:
    name: str
    verdict: str  # in a word or two
    style: str
    value: str = ""  # the difference; `short` without its interval
    short: str = ""
    more: str = ""  # how many seeds would settle it; of the baseline, its level
    badges: str = ""
    why_incomparable: str = ""  # why it does not count; "" if it does
    baseline: bool = False
    decided: bool = False
    mean: float | None = None
    low: float | None = None  # end of its interval
    high: float | None = None


@dataclass(frozen=True)
class Forest:
    measure: str
    better_left: bool
    scale: float  # of x, for its labels
    rows: tuple[ForestRow, ...]


def forest(answer: StudyConclusion) -> Forest:
    results, measure = answer.results, answer.measure
    rows = tuple(_row(result, measure) for result in results)
    return Forest(tr(measure.name), measure.lower_is_better, 100.0 if measure.is_share else 1.0, rows)


def _row(result: VariantResult, measure: Measure) -> ForestRow:
    found, counts, words = result.difference(measure), result.group.badge_counts, []
    for name in result.badges:
        if name != FALLING:  # which the sentence below tells
            some = f" {counts[name]}/{len(result.runs)}" if counts[name] < len(result.runs) else ""
            words.append(mark_if_seen(badge(name).word + some, seen=name in result.badges_acknowledged))
    badges, name = " ".join(words), clean_line(result.name)
    if result.is_baseline:
        mean = result.mean(measure)
        level = f"({measure.format_value(mean.mean)}{' %' if measure.is_share else ''})" if mean is not None else ""
        verdict = tr("{baseline} baseline", baseline=BASELINE)
        return ForestRow(name, verdict, "dim", more=level, badges=badges, baseline=True)
    judged = result.judgement(measure)
    if result.why_incomparable or found is None or judged is None:
        why = tr(result.why_incomparable or brief_verdict(judged)) or tr("no score in common")
        return ForestRow(name, "–", "warn", badges=badges, why_incomparable=clean_line(why))
    ends = found.interval or ((found.mean - found.half, found.mean + found.half) if found.half else (None, None))
    decided = judged.kind in DECIDED
    return ForestRow(
        name,
        with_verdict_sign(judged.kind, re.split("[:：]", tr(brief_verdict(judged)))[0]),
        DECIDED.get(judged.kind, "cell"),
        measure.format_mean(found, sign=True),
        measure.format_value(found.mean, sign=True),
        tr("(≈ {seeds:,} seeds)", seeds=judged.seeds) if judged.seeds is not None else "",
        badges,
        decided=decided,
        mean=found.mean,
        low=ends[0],
        high=ends[1],
    )


def with_verdict_sign(kind: str, word: str) -> str:
    """A verdict's word after its sign, so that it is not told by colour alone."""
    return f"{SIGNS.get(kind, OPEN)} {word}"


@dataclass
class ForestLayout:
    """A forest plot at a width: its head, its rows, and its axis, each as parts from the left."""

    forest: Forest
    width: int
    _low: float = field(init=False)
    _high: float = field(init=False)

    def __post_init__(self) -> None:
        rows = self.forest.rows
        most = min(LONGEST_NAME, max(LEAST_NAME, self.width // 4))
        self._name = min(max(LEAST_NAME, _longest([row.name for row in rows])), most)
        left = self.width - self._name - GAP - NARROWEST
        # What has no room is left out, never cut: seeds first, then the interval in numbers, then badges.
        for spread, badges, more in ((1, 1, 1), (1, 1, 0), (0, 1, 1), (0, 1, 0), (0, 0, 0)):
            self._values = [row.value if spread else row.short for row in rows]
            self._verdicts = [f"{row.verdict} {row.more if more else ''}".strip() for row in rows]
            self._badges = [row.badges if badges else "" for row in rows]
            self._widths = [_longest(texts) for texts in (self._values, self._verdicts, self._badges)]
            taken = sum(width + GAP for width in self._widths if width)
            if taken <= left:
                break
        self._plot = max(8, self.width - self._name - GAP - taken)
        means = [0.0, *(row.mean for row in rows if row.mean is not None)]
        halves = [(row.high - row.low) / 2 for row in rows if row.low is not None and row.high is not None]
        span = max(max(means) - min(means), median(halves) if halves else 0.0) or 1.0
        # A wide interval is cut off with an arrow, so that it does not flatten the others.
        low = max(min([*means, *(row.low for row in rows if row.low is not None)]), min(means) - span)
        high = min(max([*means, *(row.high for row in rows if row.high is not None)]), max(means) + span)
        air = (high - low) * 0.04 or 1.0
        self._low, self._high = low - air, high + air
        if self._plot > 4 * SIDE:  # room for the words on both sides of the line
            share = SIDE / (self._plot - 1)
            self._low = min(self._low, -share / (1 - share) * self._high)
            self._high = max(self._high, -share / (1 - share) * self._low)

    def _column(self, x: float) -> int:
        share = (x - self._low) / (self._high - self._low)
        return round(min(1.0, max(0.0, share)) * (self._plot - 1))

    @property
    def badges_at(self) -> int:
        """The column where badges begin."""
        return self._name + GAP + self._plot + sum(GAP + width for width in self._widths[:2] if width) + GAP

    def head(self) -> list[Part]:
        at, cells = self._column(0.0), [" "] * self._plot
        names = (tr("better"), tr("worse")) if self.forest.better_left else (tr("worse"), tr("better"))
        left, right = ([c for c, _ in cells_of(text, "")] for text in (f"◂ {names[0]}", f"{names[1]} ▸"))
        if at > len(left):
            cells[at - 1 - len(left) : at - 1] = left
        if at + 2 + len(right) <= self._plot:
            cells[at + 2 : at + 2 + len(right)] = right
        cells[at] = LINE
        return self._joined(
            [("", "dim"), ("".join(cells), "dim"), *self._columns_right_of_plot(("Δ", tr("verdict"), tr("badges")))]
        )

    def axis(self) -> list[Part]:
        found = ticks(self._low, self._high, max(3, self._plot // 10))
        scaled = [x * self.forest.scale for x in found]
        decimals = next((d for d in range(6) if all(abs(x - round(x, d)) < 1e-9 for x in scaled)), 6)
        cells, free = [" "] * self._plot, 0
        for x, value in zip(found, scaled, strict=True):
            label = f"{value:+.{decimals}f}" if abs(x) > 1e-12 else "0"
            start = self._column(x) - len(label) // 2
            if start >= free and start + len(label) <= self._plot:
                cells[start : start + len(label)] = label
                free = start + len(label) + 2
        measure = clean_line(self.forest.measure)
        room = self.width - self._name - GAP - self._plot - GAP
        name = [(f"Δ {measure}", "dim")] if cell_len(measure) + 2 <= room else []
        return self._joined([("", "dim"), ("".join(cells), "dim"), *name])

    def caption(self) -> str:
        """What its signs mean."""
        if any(row.low is not None for row in self.forest.rows):
            text = tr("●○ mean difference over shared seeds · ━ its 95 % interval")
            more = tr(" · ● better or worse, ○ neither")
            return text + (more if cell_len(text + more) <= self.width else "")
        drawn = any(row.mean is not None for row in self.forest.rows)
        return tr("○ difference with one seed: no interval") if drawn else ""

    def row(self, at: int, colour: str = "") -> list[Part]:
        """The parts of a row; `colour` is the style of its mark and interval, by default that of its verdict."""
        row = self.forest.rows[at]
        ends = self._columns_right_of_plot(
            (self._values[at], self._verdicts[at], self._badges[at]), ("cell", row.style, "warn")
        )
        drawn = self._drawn(replace(row, style=colour) if colour else row)
        return self._joined([(row.name, "name"), *drawn, *ends], plot_part_count=len(drawn))

    def _columns_right_of_plot(self, texts: Sequence[str], styles: Sequence[str] = ("dim",) * 3) -> list[Part]:
        """The columns right of the plot; numbers end below each other."""
        columns = zip(texts, self._widths, styles, strict=True)
        return [(fit_to_width(text, w, right=i == 0), style) for i, (text, w, style) in enumerate(columns) if w]

    def _joined(self, parts: Sequence[Part], plot_part_count: int = 1) -> list[Part]:
        """Name and plot padded to their columns, with a gap before each other part."""
        (name, style), *rest = parts
        made = [(fit_to_width(name, self._name) + " " * GAP, style), *rest[:plot_part_count]]
        for text, of in rest[plot_part_count:]:
            made += [(" " * GAP, "dim"), (text, of)]
        return made

    def _drawn(self, row: ForestRow) -> list[Part]:
        zero, cells = self._column(0.0), [(" ", "dim")] * self._plot
        cells[zero] = (LINE, "dim")
        if row.why_incomparable:
            text = fit_to_width(row.why_incomparable, min(cell_len(row.why_incomparable), self._plot))
            return [(text, "warn"), (" " * (self._plot - cell_len(text)), "dim")]
        if row.baseline:
            cells[zero] = (BASELINE, "name")
        elif row.mean is not None:
            if row.low is not None and row.high is not None:
                first, last, mid = self._column(row.low), self._column(row.high), self._column(row.mean)
                ends, line, crossing = ("┣┫", "━", "┿") if row.decided else ("├┤", "─", "┼")
                for at in range(first, last + 1):
                    cells[at] = (crossing if at == zero else line, row.style)
                if first < mid:
                    cells[first] = ("◂" if row.low < self._low else ends[0], row.style)
                if last > mid:
                    cells[last] = ("▸" if row.high > self._high else ends[1], row.style)
            cells[self._column(row.mean)] = ("●" if row.decided else "○", row.style)
        return _join_same_style(cells)


def _longest(texts: Sequence[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _join_same_style(cells: Sequence[Part]) -> list[Part]:
    """Join neighbours of one style."""
    made: list[Part] = []
    for text, style in cells:
        if made and made[-1][1] == style:
            made[-1] = (made[-1][0] + text, style)
        else:
            made.append((text, style))
    return made


def forest_text(answer: StudyConclusion, width: int, *, colour: bool) -> str:
    """Return the plot as lines of text for a terminal."""
    layout = ForestLayout(forest(answer), width)
    lines = [layout.head(), *(layout.row(at) for at in range(len(layout.forest.rows))), layout.axis()]
    return "\n".join(_ansi_text(line, colour=colour) for line in lines)


def _ansi_text(line: Sequence[Part], *, colour: bool) -> str:
    if not colour:
        return "".join(text for text, _ in line).rstrip()
    styled = ((text, Style.parse(ANSI_STYLES[style])) for text, style in line)
    return "".join(style.render(text, color_system=ColorSystem.EIGHT_BIT) for text, style in styled)
