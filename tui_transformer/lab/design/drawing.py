"""A network drawn in text, from its output down to its tokens, with what differs from another one marked.

It has the boxes of the report's diagram (`lab.reports.figures.diagram`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from rich.console import Console
from rich.text import Text

from engine.base.language import language_code, tr, translate
from engine.config.model import ModelConfig
from engine.config.schemes import NORMS
from tui_transformer.lab.reports.figures.diagram import OUTPUT, Box, boxes_before_in_after_layers
from tui_transformer.lab.reports.languages import load_report_language

WRAP_CONSOLE = Console()  # needed by `Text.wrap`
GUTTER = 10  # columns of lines left of the words
STREAM, OPENS, INSIDE, CLOSES = "│", "├──╯", "│  │", "⊕◂─╮"
BESIDE = Box(tr("∥ in parallel, on the same input"), "")
RowParts = list[tuple[str, str]]


@dataclass(frozen=True)
class NetworkRow:
    lines: str  # of the stream of features, and of what is added to it
    words: str
    state: Literal["", "new", "gone"] = ""  # beside the network that it is compared with


def draw_network(model: ModelConfig, before: ModelConfig | None, width: int) -> list[list[NetworkRow]]:
    """Return the stacks of a network, the one that is read from last, each as rows of this width."""
    then = list(_rows_by_stack(before, width)) if before is not None else []
    found = []
    for at, rows in enumerate(_rows_by_stack(model, width)):
        found.append(
            _mark_differences(rows, then[at])
            if at < len(then)
            else [NetworkRow(*row, "new" if then else "") for row in rows]
        )
    return found


def _mark_differences(rows: RowParts, before: RowParts) -> list[NetworkRow]:
    found = []
    for what, i, j, k, m in SequenceMatcher(None, before, rows, autojunk=False).get_opcodes():
        kept = {words for _, words in rows[k:m]}  # a part that only moves is not gone
        found += [NetworkRow(lines, words, "gone") for lines, words in before[i:j] if words and words not in kept]
        found += [NetworkRow(lines, words, "" if what == "equal" else "new") for lines, words in rows[k:m]]
    return found


def _rows_by_stack(model: ModelConfig, width: int) -> Iterator[RowParts]:
    """The rows of each stack, from the top down, without marks."""
    language = load_report_language(language_code())
    label = translate(NORMS[model.norm].label, language)
    norm = Box(label, "") if label else None
    counts = {"tokens": model.n_layers}
    if model.architecture == "encoder-decoder":
        counts = {"target": model.n_layers, "source": model.encoder_layers}
    for reads, layers in counts.items():
        below, parts, above = boxes_before_in_after_layers(model, language, norm, reads)
        rows: RowParts = []  # from the bottom up
        for box in below:
            rows += _box_rows(box, STREAM, width)
        inside: RowParts = []
        if model.parallel:
            inside += _sublayer_rows(parts, norm, model, width)
        else:
            for part in parts:
                inside += _sublayer_rows([part], norm, model, width)
        rows += [(f"┃{lines}", words) for lines, words in inside]
        for box in above:
            rows += _box_rows(box, STREAM, width)
        output = tr(OUTPUT) if reads != "source" else tr("to the decoder")
        rows += _box_rows(Box(output, ""), STREAM, width)
        rows[-1] = ("▴", rows[-1][1])
        top = max(at for at, (lines, _) in enumerate(rows) if lines.startswith("┃"))
        yield [
            (f"{f'{layers}×' if at == top else '':>4}{lines if lines[0] == '┃' else ' ' + lines}", words)
            for at, (lines, words) in reversed(list(enumerate(rows)))
        ]


def _sublayer_rows(parts: list[Box], norm: Box | None, model: ModelConfig, width: int) -> RowParts:
    """Parts that read the stream together, and what is around them; from the bottom up."""
    lines = INSIDE if model.residual else STREAM
    inside = [norm] if norm is not None and model.norm_placement != "post" else []
    inside += [box for part in parts for box in (BESIDE, part)][1:]
    inside += [norm] if norm is not None and model.norm_placement == "sandwich" else []
    rows = [row for box in inside for row in _box_rows(box, lines, width)]
    if model.residual:
        rows = [(OPENS, ""), *rows, (CLOSES, "")]
    if norm is not None and model.norm_placement == "post":
        rows += _box_rows(norm, STREAM, width)
    return rows


def _box_rows(box: Box, lines: str, width: int) -> RowParts:
    """A box's words, from the bottom up; what follows its first line is indented."""
    room, found = max(12, width - GUTTER), list[str]()
    for at, line in enumerate(box.text.split("\n")):
        whole = Text(("  " if at else "") + line)
        first = (whole.wrap(WRAP_CONSOLE, room) or [Text()])[0].plain.rstrip()
        rest = Text(whole.plain[len(first) :].lstrip()).wrap(WRAP_CONSOLE, room - 2)
        found += [first, *(f"  {part.plain.rstrip()}" for part in rest if part)]
    return [(lines, words) for words in reversed(found)]
