"""One head's attention over a text: who looks at whom, as shades, and beside it what the mask and the bias allow."""

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import Static

from engine.clean import clean_line
from tui_transformer.lab.play.pictures import SHADES, half_blocks, shaded
from tui_transformer.lab.play.written import AttentionView, number, sign
from tui_transformer.studio.shared.palette import Palette

MARGIN, GAP = 5, 3  # columns left of a picture: a position and the frame; between two pictures
HEAD = 4  # lines of words over the pictures
NAMED = 6  # keys that are named


class AttentionMap(Static, can_focus=False):
    """Rows are queries, columns keys; each row is shaded up to its own largest weight."""

    DEFAULT_CSS = """
    AttentionMap { height: 1fr; padding: 0 1; border-top: solid $foreground 15%; }
    """

    def __init__(self) -> None:
        super().__init__("", id="attention-map")
        self._looks: AttentionView | None = None
        self._row = 0
        self._words = ""

    def show(self, looks: AttentionView | None, row: int, words: str = "") -> None:
        """Show where the token at `row` looks, and the rows around it; or only words."""
        self._looks, self._row, self._words = looks, row, words
        self._draw()

    def on_resize(self) -> None:
        """Other pictures."""
        self._draw()

    def _draw(self) -> None:
        palette, looks = Palette.of(self.app.theme_variables), self._looks
        if looks is None or not looks.queries:
            self.update(Text(clean_line(self._words), palette.dim))
            return
        width, height = self.content_size.width, self.content_size.height
        row = max(0, min(self._row, len(looks.queries) - 1))
        colour = not self.app.no_color
        lines = [_title(looks, row, palette), _most(looks, row, palette), Text(clean_line(looks.rule), palette.dim)]
        lines = [line for line in lines if line.plain]
        for line in lines:
            line.truncate(max(10, width), overflow="ellipsis")
        room = max(1, height - HEAD)
        both = width >= 2 * MARGIN + GAP + 2 * min(len(looks.keys), 24)
        columns = (width - 2 * MARGIN - GAP - 2) // 2 if both else width - MARGIN - 1
        rows = 2 * room if colour else room
        if len(looks.keys) > columns:  # a taller picture would show rows without their keys
            rows = min(rows, columns)
        top = _window(row, rows, len(looks.queries))
        near = row if looks.weights.shape[0] == looks.weights.shape[1] else int(looks.weights[row].argmax())
        left = _window(near, columns, len(looks.keys))
        queries, keys = range(*top), range(*left)
        first = _picture(_shares(looks, queries, keys), colour)
        second, name = _allowed(looks, queries, keys, colour)
        heads = [_caption("weights", keys), _caption(name, keys)]
        lines.append(_beside(heads[0], heads[1] if both else None, len(keys), palette.dim))
        step = 2 if colour else 1
        for i, line in enumerate(first):
            at = queries.start + i * step
            here = at <= row < at + step
            mark = Text(f"{'▸' if here else ' '}{at:>3}│", palette.accent if here else palette.dim)
            right = second[i] if both and i < len(second) else None
            lines.append(_beside(mark + line, right, len(keys) + MARGIN, palette.dim))
        self.update(Text("\n", no_wrap=True).join(lines))


def _title(looks: AttentionView, row: int, palette: Palette) -> Text:
    token = Text.assemble((sign(looks.queries[row]), "bold"), (f" at {row}", palette.dim))
    turn = ("    h l: another head, layer", palette.dim)
    return Text.assemble((looks.title, "bold"), ("  token ", palette.dim), token, turn)


def _most(looks: AttentionView, row: int, palette: Palette) -> Text:
    """The keys it looks at most."""
    weights = looks.weights[row]
    seen = int(looks.visible[row].sum())
    best = weights.argsort()[::-1][: min(NAMED, seen)]
    words = Text(f"sees {seen} of {len(looks.keys)}, most at", palette.dim)
    for key in best:
        words.append(f"  {sign(looks.keys[int(key)])}", "bold")
        words.append(f" {number(float(weights[key]))}").append(f" at {int(key)}", palette.dim)
    return words


def _window(at: int, room: int, length: int) -> tuple[int, int]:
    """`room` of `length` places, the chosen one among them."""
    start = max(0, min(length - room, at - 2 * room // 3))
    return start, min(length, start + max(1, room))


def _shares(looks: AttentionView, queries: range, keys: range) -> list[list[float | None]]:
    """Each row as shares of its largest weight; None where a key is not seen."""
    rows: list[list[float | None]] = []
    for q in queries:
        largest = float(looks.weights[q].max()) or 1.0
        part, seen = looks.weights[q, keys.start : keys.stop], looks.visible[q, keys.start : keys.stop]
        rows.append([w / largest if s else None for w, s in zip(part.tolist(), seen.tolist(), strict=True)])
    return rows


def _picture(values: Sequence[Sequence[float | None]], colour: bool) -> list[Text]:
    return shaded(values, colour=colour, characters=1, shades=SHADES[1:])


def _allowed(looks: AttentionView, queries: range, keys: range, colour: bool) -> tuple[list[Text], str]:
    """What is let through, or what is added where positions add something; and its name."""
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
    return _picture(values, colour), f"added {_signed(min(known, default=0.0))} … {_signed(max(known, default=0.0))}"


def _signed(value: float) -> str:
    return f"{value + 0.0:.3g}".replace("-", "−")


def _caption(name: str, keys: range) -> Text:
    return Text(f"{name}, keys {keys.start}–{keys.stop - 1}")


def _beside(left: Text, right: Text | None, width: int, style: str) -> Text:
    """Two lines side by side."""
    line = Text(no_wrap=True)
    if left.plain.startswith("weights"):
        line.append(" " * MARGIN).append(left.plain, style)
        width += MARGIN
    else:
        line.append_text(left)
    if right is None:
        return line
    line.append(" " * max(1, width - line.cell_len + GAP))
    if left.plain.startswith("weights"):
        return line.append(right.plain, style)
    return line.append("│", style).append_text(right)
