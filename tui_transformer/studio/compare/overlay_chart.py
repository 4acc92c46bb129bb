"""A chart of several runs: colours and letters tell them apart, in the lines, the legend and the values."""

from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len

from engine.clean import clean_line
from tui_transformer.lab.charts.canvas import BLANK, Canvas, Cell
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.charts.curves import Curve, axis_text
from tui_transformer.lab.charts.overlay import Overlay, Stroke, paint
from tui_transformer.studio.compare.layout import fitted
from tui_transformer.studio.shared.chart import Chart, cells_of, whole

WHERE = {"step": "step {}", "tokens": "{} tokens", "distance": "{} back"}
BRIEF = (("", 2, True), ("", 3, False), ("", 2, False))  # a value without its spread is still correct
MORE = "…"  # stands for runs that do not fit
SHORTEST = 6  # columns of a name in the legend that still says something


class OverlayChart(Chart):
    """Draws an `Overlay`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "chart--zero",
        *(f"chart--{kind}{i}" for kind in ("run", "raw", "band") for i in range(len(LETTERS))),
    }
    DEFAULT_CSS = "OverlayChart .chart--zero { color: $foreground 60%; }\n" + "".join(
        f"OverlayChart .chart--run{i} {{ color: $run-{letter}; }}\n"
        f"OverlayChart .chart--raw{i} {{ color: $run-{letter} 35%; }}\n"
        f"OverlayChart .chart--band{i} {{ color: $run-{letter} 45%; }}\n"
        for i, letter in enumerate(LETTERS)
    )

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._overlay = Overlay()

    def draw(self, overlay: Overlay) -> None:
        """Show another one."""
        self._overlay, self.waiting = overlay, clean_line(overlay.waiting)
        self.redraw()

    def paint(self, width: int, height: int) -> Canvas | None:
        """The lines with their bands."""
        return paint(self._overlay, width, height)

    def title(self, width: int) -> list[Cell]:
        """What y is, and the legend, whose names get the room that there is."""
        made = self._overlay
        style = "focused" if self.has_focus else "title"
        names = [(stroke, clean_line(stroke.name)) for stroke in made.drawn]
        longest = max((cell_len(name) for _, name in names), default=0)
        for label in (made.title, made.brief):
            for room in range(longest, SHORTEST - 1, -1):
                legend = [(" ".join(_words(s, _cut(name, room))), f"run{s.slot}") for s, name in names]
                taken = cell_len(clean_line(label)) + sum(cell_len(text) + 2 for text, _ in legend)
                if taken + (4 if made.log else 0) <= width:
                    return _title(clean_line(label), style, legend, width, log=made.log)
        for words in (_words, _letter):
            legend = [(" ".join(words(stroke, "")), f"run{stroke.slot}") for stroke, _ in names]
            if cell_len(made.brief) + sum(cell_len(text) + 2 for text, _ in legend) + (5 if made.log else 0) <= width:
                break
        return _title(made.brief, style, legend, width, log=made.log)

    def values(self, width: int, x: float | None) -> list[Cell]:
        """Each run at the cursor, or where it ends."""
        made = self._overlay
        strokes = [stroke for stroke in made.drawn if stroke.curve.x]
        if not strokes:
            return []
        place = "" if x is None else axis_text(made.axis, x)
        where = WHERE.get(made.axis, "{}").format(place)
        ends = [(s, s.curve.y[-1] if x is None else _value(s.curve, x)) for s in strokes]
        last = ("furthest", "far") if made.share else ("at the end", "end")
        for head, decimals, spread in ((last[0], 4, True), (last[1], 4, True), (last[1], 3, True), *BRIEF):
            parts = [cells_of(head, "dim") if x is None else cells_of(where, "cursor")]
            for stroke, value in ends:
                text = "–" if value is None else _number(made, value, decimals)
                half = _half(stroke, x) if spread else None
                text += f" ± {_number(replace(made, zero=False), half, decimals)}" if half is not None else ""
                parts.append(cells_of(f"  {LETTERS[stroke.slot]} {text}", f"run{stroke.slot}"))
            if sum(map(len, parts)) <= width:
                break
        else:
            parts.append(cells_of(f"  {MORE}", "dim"))
            while len(parts) > 2 and sum(map(len, parts)) > width:
                del parts[-2]
        return whole([*parts, *(cells_of(f"   {clean_line(note)}", "dim") for note in made.notes)], width)


def _words(stroke: Stroke, name: str) -> list[str]:
    """Letter, sign and name; the sign is never cut."""
    seeds = f"n{stroke.seeds}" if stroke.seeds is not None else ""
    return [word for word in (LETTERS[stroke.slot], stroke.sign, name, seeds) if word]


def _letter(stroke: Stroke, name: str) -> list[str]:
    return [LETTERS[stroke.slot], stroke.sign]


def _number(made: Overlay, value: float, decimals: int) -> str:
    if made.share:
        return f"{value:.{max(0, decimals - 3)}%}".replace("%", " %" if decimals > 2 else "%")
    return f"{value:{'+' if made.zero else ''}.{decimals}f}"


def _half(stroke: Stroke, x: float | None) -> float | None:
    """Half the width of the interval at the cursor, or at the end."""
    if not stroke.half:
        return None
    if x is None:
        return stroke.half[-1]
    return _value(Curve(stroke.curve.x, stroke.half), x)


def _value(curve: Curve, x: float) -> float | None:
    """Of the evaluation nearest to x; None beyond the ends of the run."""
    spacing = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
    if not curve.x[0] - spacing <= x <= curve.x[-1] + spacing:
        return None
    near = curve.near(x)
    return None if near is None else curve.y[near]


def _title(label: str, style: str, legend: list[tuple[str, str]], width: int, *, log: bool) -> list[Cell]:
    parts = [*legend, *([("log", "dim")] if log else [])]
    cells = cells_of(label, style)
    cells += [BLANK] * max(0, width - cell_len(label) - sum(cell_len(text) + 2 for text, _ in parts))
    for text, of in parts:
        cells += [BLANK] * 2 + cells_of(text, of)
    return cells


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else fitted(text, width)
