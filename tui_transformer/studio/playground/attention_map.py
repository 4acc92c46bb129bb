"""One head's attention over a text, as shades, beside what the mask and the bias allow."""

import numpy as np
from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.language import tr, trn
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.lab.play.pictures import SHADES, Values, shade_lines
from tui_transformer.lab.play.written import AttentionView, probability_text, token_label
from tui_transformer.studio.shared.palette import Palette

GAP = 3  # columns between two pictures
HEAD = 5  # lines of words over the pictures
NAMED = 6  # most keys named
LONGEST = 8  # columns of a query's name
WIDEST = 6  # columns of a key whose name has several characters


class AttentionMap(Widget):
    """Rows are queries, columns keys; each row is shaded up to its own largest weight."""

    def __init__(self) -> None:
        super().__init__(id="attention-map")
        self._attention: AttentionView | None = None
        self._row = 0
        self._empty_text = ""

    def show(self, looks: AttentionView | None, row: int, words: str = "") -> None:
        """Show where the token at `row` and its neighbours look; or only words."""
        self._attention, self._row, self._empty_text = looks, row, words
        self.refresh()

    def render(self) -> Text:
        palette, looks = Palette.from_app(self.app), self._attention
        if looks is None or not looks.queries:
            return Text(clean_line(self._empty_text), palette.dim)
        width, height = self.content_size.width, self.content_size.height
        row = max(0, min(self._row, len(looks.queries) - 1))
        colour = not self.app.no_color

        # In words: the token and head, the keys it attends to most, the mask's rule.
        token = token_label(looks.queries[row])
        title = Text.assemble((looks.title, "bold"), (tr("  token "), palette.dim), (token, "bold"))
        title.append(f" ({row})", palette.dim).append(tr("    h: next head, j: next layer"), palette.dim)
        weights, seen = looks.weights[row], int(looks.visible[row].sum())
        reads = trn(
            "attends to {seen} of {n} token, most strongly to",
            "attends to {seen} of {n} tokens, most strongly to",
            len(looks.keys),
            seen=seen,
        )
        most = Text(reads, palette.dim)
        for key in map(int, weights.argsort()[::-1][: min(NAMED, seen)]):
            most.append(f"  {token_label(looks.keys[key])}", "bold")
            most.append(f" {probability_text(float(weights[key]))}").append(f" ({key})", palette.dim)
        rule = Text(clean_line(looks.rule), palette.dim)
        lines = [line for line in (title, most, rule) if line.plain]
        for line in lines:
            line.truncate(max(10, width), overflow="ellipsis")

        # As pictures with the tokens on their axes: the rows and keys that fit, including the chosen row.
        # Two rows share a line, unless their names would not fit beside it.
        names = [[token_label(text) for text in texts] for texts in (looks.queries, looks.keys)]
        words = any(cell_len(name) > 1 for texts in names for name in texts)
        step = 2 if colour and not words else 1
        left = min(LONGEST, max(map(cell_len, names[0]))) if words else step
        margin = left + 3  # a mark, the name, a space, the frame
        both = not _is_plain_mask(looks) and width >= 2 * margin + GAP + 2 * min(len(looks.keys), 24)
        room = (width - GAP) // 2 - margin if both else width - margin - 1
        cell = max(1, min(WIDEST, room // len(looks.keys), max(map(cell_len, names[1])) + 1)) if words else 1
        columns, rows = max(1, room // cell), step * max(1, height - HEAD)
        if len(looks.keys) > columns:  # a taller picture would show rows without their keys
            rows = min(rows, columns)
        near = row if looks.weights.shape[0] == looks.weights.shape[1] else int(weights.argmax())
        queries, keys = _window_around(row, rows, len(looks.queries)), _window_around(near, columns, len(looks.keys))
        pictures: list[tuple[Values, str]] = [(_relative_weights(looks, queries, keys), tr("weights"))]
        pictures += [_mask_or_bias(looks, queries, keys)] if both else []
        labels = (fit_to_width(fit_to_width(names[1][key], cell - (cell > 2)), cell) for key in keys)
        axis = Text("".join(labels), palette.dim)
        drawn = [
            [
                Text(tr("{name}, keys {start}–{stop}", name=name, start=keys.start, stop=keys.stop - 1), palette.dim),
                axis,
                *_shaded_lines(values, step, cell, colour),
            ]
            for values, name in pictures
        ]
        for i, parts in enumerate(zip(*drawn, strict=True)):
            at, line = queries.start + (i - 2) * step, Text(no_wrap=True)
            here = i > 1 and at <= row < at + step
            shown = names[0][at : min(at + step, queries.stop)] if i > 1 else []
            name = fit_to_width("".join(shown), left)
            for part in parts:
                line.append(f"{'▸' if here else ' '}{name} ", palette.accent if here else palette.dim)
                line.append("│" if i > 1 else " ", palette.dim).append_text(part)
                line.append(" " * max(0, margin + len(keys) * cell + GAP - line.cell_len))
            line.rstrip()
            lines.append(line)
        return Text("\n", no_wrap=True).join(lines)


def _is_plain_mask(looks: AttentionView) -> bool:
    """Whether the mask is worth no picture: it hides nothing, or only what comes later, and positions add nothing."""
    seen = looks.visible
    return looks.bias is None and bool(
        seen.all() or (seen.shape[0] == seen.shape[1] and (seen == np.tri(*seen.shape)).all())
    )


def _window_around(at: int, room: int, length: int) -> range:
    start = max(0, min(length - room, at - 2 * room // 3))
    return range(start, min(length, start + max(1, room)))


def _shaded_lines(values: Values, step: int, cell: int, colour: bool) -> list[Text]:
    doubled = [row for row in values for _ in range(2)] if colour and step == 1 else values
    return shade_lines(doubled, colour=colour, characters=cell, shades=SHADES[1:])


def _relative_weights(looks: AttentionView, queries: range, keys: range) -> list[list[float | None]]:
    """Each row as shares of its largest weight; None where a key is not seen."""
    rows: list[list[float | None]] = []
    for q in queries:
        largest = float(looks.weights[q].max()) or 1.0
        part, seen = looks.weights[q, keys.start : keys.stop], looks.visible[q, keys.start : keys.stop]
        rows.append([w / largest if s else None for w, s in zip(part.tolist(), seen.tolist(), strict=True)])
    return rows


def _mask_or_bias(looks: AttentionView, queries: range, keys: range) -> tuple[Values, str]:
    """What positions add, or else what the mask allows; and its name."""
    seen = looks.visible[queries.start : queries.stop, keys.start : keys.stop].tolist()
    if looks.bias is None:
        return [[1.0 if cell else None for cell in row] for row in seen], tr("allowed by the mask")
    bias = looks.bias[queries.start : queries.stop, keys.start : keys.stop]
    values = [
        [float(value) if let else None for value, let in zip(row, line, strict=True)]
        for row, line in zip(bias.tolist(), seen, strict=True)
    ]
    known = [value for row in values for value in row if value is not None]
    low, high = (f"{value + 0.0:.3g}".replace("-", "−") for value in (min(known, default=0.0), max(known, default=0.0)))
    return values, tr("position bias {low} … {high}", low=low, high=high)
