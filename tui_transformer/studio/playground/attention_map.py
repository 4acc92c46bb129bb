"""One head's attention over a text, as shades, beside what the mask and the bias allow."""

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from engine.clean import clean_line
from tui_transformer.lab.play.pictures import SHADES, half_blocks, shaded
from tui_transformer.lab.play.written import AttentionView, number, sign
from tui_transformer.studio.shared.palette import Palette

MARGIN, GAP = 5, 3  # columns left of a picture: a position and the frame; between two pictures
HEAD = 4  # lines of words over the pictures
NAMED = 6  # most keys named


class AttentionMap(Widget):
    """Rows are queries, columns keys; each row is shaded up to its own largest weight."""

    def __init__(self) -> None:
        super().__init__(id="attention-map")
        self._looks: AttentionView | None = None
        self._row = 0
        self._words = ""

    def show(self, looks: AttentionView | None, row: int, words: str = "") -> None:
        """Show where the token at `row` and its neighbours look; or only words."""
        self._looks, self._row, self._words = looks, row, words
        self.refresh()

    def render(self) -> Text:
        palette, looks = Palette.of(self.app.theme_variables), self._looks
        if looks is None or not looks.queries:
            return Text(clean_line(self._words), palette.dim)
        width, height = self.content_size.width, self.content_size.height
        row = max(0, min(self._row, len(looks.queries) - 1))
        colour = not self.app.no_color

        # In words: the token and head, the keys it looks at most, the mask's rule.
        title = Text.assemble((looks.title, "bold"), ("  token ", palette.dim), (sign(looks.queries[row]), "bold"))
        title.append(f" at {row}", palette.dim).append("    h l: another head, layer", palette.dim)
        weights, seen = looks.weights[row], int(looks.visible[row].sum())
        most = Text(f"sees {seen} of {len(looks.keys)}, most at", palette.dim)
        for key in map(int, weights.argsort()[::-1][: min(NAMED, seen)]):
            most.append(f"  {sign(looks.keys[key])}", "bold")
            most.append(f" {number(float(weights[key]))}").append(f" at {key}", palette.dim)
        rule = Text(clean_line(looks.rule), palette.dim)
        lines = [line for line in (title, most, rule) if line.plain]
        for line in lines:
            line.truncate(max(10, width), overflow="ellipsis")

        # As pictures: the rows and keys that fit, including the chosen row.
        room = max(1, height - HEAD)
        both = width >= 2 * MARGIN + GAP + 2 * min(len(looks.keys), 24)
        columns = (width - 2 * MARGIN - GAP - 2) // 2 if both else width - MARGIN - 1
        rows = 2 * room if colour else room
        if len(looks.keys) > columns:  # a taller picture would show rows without their keys
            rows = min(rows, columns)
        near = row if looks.weights.shape[0] == looks.weights.shape[1] else int(weights.argmax())
        queries, keys = _window(row, rows, len(looks.queries)), _window(near, columns, len(looks.keys))
        left = _picture(_shares(looks, queries, keys), colour)
        right, name = _allowed(looks, queries, keys, colour)

        shown = f"keys {keys.start}–{keys.stop - 1}"
        head = Text(" " * MARGIN, no_wrap=True).append(f"weights, {shown}", palette.dim)
        if both:
            head.append(" " * max(1, len(keys) + MARGIN - head.cell_len + GAP)).append(f"{name}, {shown}", palette.dim)
        lines.append(head)
        step = 2 if colour else 1
        for i, cells in enumerate(left):
            at = queries.start + i * step
            here = at <= row < at + step
            mark = Text(f"{'▸' if here else ' '}{at:>3}│", palette.accent if here else palette.dim)
            line = Text(no_wrap=True).append_text(mark + cells)
            if both and i < len(right):
                line.append(" " * max(1, len(keys) + MARGIN - line.cell_len + GAP))
                line.append("│", palette.dim).append_text(right[i])
            lines.append(line)
        return Text("\n", no_wrap=True).join(lines)


def _window(at: int, room: int, length: int) -> range:
    start = max(0, min(length - room, at - 2 * room // 3))
    return range(start, min(length, start + max(1, room)))


def _picture(values: Sequence[Sequence[float | None]], colour: bool) -> list[Text]:
    return shaded(values, colour=colour, characters=1, shades=SHADES[1:])


def _shares(looks: AttentionView, queries: range, keys: range) -> list[list[float | None]]:
    """Each row as shares of its largest weight; None where a key is not seen."""
    rows: list[list[float | None]] = []
    for q in queries:
        largest = float(looks.weights[q].max()) or 1.0
        part, seen = looks.weights[q, keys.start : keys.stop], looks.visible[q, keys.start : keys.stop]
        rows.append([w / largest if s else None for w, s in zip(part.tolist(), seen.tolist(), strict=True)])
    return rows


def _allowed(looks: AttentionView, queries: range, keys: range, colour: bool) -> tuple[list[Text], str]:
    """What the mask lets through, or what positions add, if anything; and its name."""
    seen = looks.visible[queries.start : queries.stop, keys.start : keys.stop].tolist()
    if looks.bias is None:
        lines = half_blocks(seen) if colour else ["".join("█" if cell else " " for cell in row) for row in seen]
        return [Text(line) for line in lines], "let through"
    bias = looks.bias[queries.start : queries.stop, keys.start : keys.stop]
    values = [
        [float(value) if let else None for value, let in zip(row, line, strict=True)]
        for row, line in zip(bias.tolist(), seen, strict=True)
    ]
    known = [value for row in values for value in row if value is not None]
    low, high = (f"{value + 0.0:.3g}".replace("-", "−") for value in (min(known, default=0.0), max(known, default=0.0)))
    return _picture(values, colour), f"added {low} … {high}"
