"""One chart of a run: train and validation, the floors, the best."""

from typing import ClassVar

from tui_transformer.lab.charts.canvas import BLANK, Canvas, Cell, Line, Mark, draw, usual_top
from tui_transformer.lab.charts.curves import AXIS_LABELS, Picture, axis_text, value_text
from tui_transformer.studio.shared.chart import Chart, cells_of, whole

FULL, USUAL, BRIEF = range(3)  # how detailed a legend is
STYLES = ("train", "raw", "validation", "floor", "past", "best")


class RunChart(Chart):
    """Draws a `Picture`; knows nothing of runs."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{name}" for name in STYLES}
    DEFAULT_CSS = """
    RunChart .chart--train { color: $primary; }
    RunChart .chart--raw { color: $primary 35%; }
    RunChart .chart--validation { color: $accent; }
    RunChart .chart--floor { color: $success; }
    RunChart .chart--past { color: $success 45%; }
    RunChart .chart--best { color: $warning; text-style: bold; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._unit = ""
        self._picture: Picture | None = None

    def draw(self, picture: Picture | None, unit: str, waiting: str = "") -> None:
        """Show another picture, or why there is none."""
        self._picture, self._unit, self.waiting = picture, unit, waiting
        self.redraw()

    def paint(self, width: int, height: int) -> Canvas | None:
        """Its curves, with the floors as levels and the best marked."""
        made = self._picture
        if made is None or made.empty:
            return None
        lines = [
            Line(made.raw.x, made.raw.y, "raw"),
            Line(made.train.x, made.train.y, "train"),
            Line(made.validation.x, made.validation.y, "validation", dots=True),
        ]
        values = [*made.train.y, *made.validation.y]
        low = min(made.floors, default=min(values))
        marks = []
        if made.best is not None:
            marks.append(Mark(made.validation.x[made.best], made.validation.y[made.best], "★", "best", on="validation"))
        return draw(
            lines,
            width=width,
            height=height,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[(level, style) for _, level, style in reversed(self._floors(made))],
            marks=marks,
            top=usual_top(values, low) if made.measure.lower and not made.log else float("inf"),
            log=made.log,
        )

    def title(self, width: int) -> list[Cell]:
        """The measure and its legend, in the longest form that there is room for."""
        made = self._picture
        if made is None:
            return []
        name = made.measure.name
        long = f"{name}, nats per {self._unit}" if made.measure.key == "loss" else name
        forms = ((long, 3, FULL), (long, 3, USUAL), (name, 2, USUAL), (name, 2, BRIEF), (name, 1, BRIEF))
        for label, gap, form in forms:
            legend = self._legend(made, form)
            if len(label) + sum(len(text) + gap for text, _ in legend) <= width:
                break
        else:
            while legend and len(name) + sum(len(text) + 1 for text, _ in legend) > width:
                legend.pop()
        cells = cells_of(label, "focused" if self.has_focus else "title")
        cells += [BLANK] * max(0, width - len(label) - sum(len(text) + gap for text, _ in legend))
        for text, style in legend:
            cells += [BLANK] * gap + cells_of(text, style)
        return cells

    def _floors(self, made: Picture) -> list[tuple[str, float, str]]:
        """Name, level and style of each floor."""
        if len(made.floors) == 2:
            reachable, past = made.floors
            return [("reachable floor", reachable, "floor"), ("given the whole past", past, "past")]
        return [("floor", level, "floor") for level in made.floors]

    def _legend(self, made: Picture, form: int) -> list[Cell]:
        legend, brief = [], form == BRIEF
        if made.train.x:
            legend.append(("━ train", "train"))
        if made.validation.x:
            legend.append(("━ val" if brief else "━ validation", "validation"))
        if made.best is not None:
            sign = "★ " if brief else "★ best "
            legend.append((sign + value_text(made.measure, made.validation.y[made.best]), "best"))
        for name, level, style in self._floors(made)[: 2 if form == FULL else 1]:
            sign = "┄ " if brief else f"┄ {name} "
            legend.append((sign + value_text(made.measure, level), style))
        if made.log:
            legend.append(("log", "dim"))
        return legend

    def values(self, width: int, x: float | None) -> list[Cell]:
        """What the lines are at the cursor, or at their ends."""
        made = self._picture
        if made is None or made.empty:
            return []
        curves = [c for c in (made.train, made.validation) if c.x]
        at = x if x is not None else max(curve.x[-1] for curve in curves)
        place = axis_text(made.axis, curves[0].x[curves[0].near(at) or 0])
        where = {"step": f"step {place}", "tokens": f"{place} tokens", "seconds": place}[made.axis]
        values = [(curve, curve.near(at)) for curve in (made.train, made.validation)]
        for now, names in (("now ", ("train", "validation")), ("", ("train", "val")), ("", ("", ""))):
            head = where if x is not None else now + where
            parts = [cells_of(head, "dim" if x is None else "cursor")]
            for (curve, index), name, style in zip(values, names, ("train", "validation"), strict=True):
                if index is not None:
                    there = axis_text(made.axis, curve.x[index])  # an evaluation may be far from the cursor
                    at_its = f" @ {there}" if there != place else ""
                    parts.append(cells_of(f"  {name} {value_text(made.measure, curve.y[index])}{at_its}", style))
            if sum(map(len, parts)) <= width:
                break
        return whole(parts, width)
