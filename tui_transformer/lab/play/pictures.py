"""Character pictures: who may look at whom, and what a position scheme adds, from a model's own objects.

A picture shows the first N positions unaveraged. Only functions that ask a scheme for its numbers import torch.
Notation: N positions drawn, D model width, Dh head width, H heads.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from engine.base.language import Message, tr, trn
from engine.config.model import ModelConfig, layer_ranges
from engine.config.schemes import ATTENTIONS, POSITIONS
from engine.config.visibility import Visibility, self_attention

if TYPE_CHECKING:
    from engine.model.positions import PositionScheme

SHADES = " ░▒▓█"  # lowest to highest
HALVES = " ▄▀█"  # by 2 · upper half + lower half
GREYS = (0x38, 0xE8)  # lowest and highest: neither is a terminal's background
MARGIN = 5  # columns left of a picture: position and frame
LARGEST_TABLE = 2**26  # most numbers to compute for drawing a few of them

Values = Sequence[Sequence[float | None]]


@dataclass(frozen=True)
class PictureFormat:
    width: int = 80
    lines: int = 20  # of a picture alone; 24 lines have room for its captions too
    colour: bool = False  # greys, two positions a line; else characters, and shades one position a line
    brief: bool = False  # fewer words

    def rows_that_fit(self, length: int) -> int:
        return max(1, min(length, 2 * self.lines if self.colour else self.lines))

    def columns_that_fit(self, characters: int) -> int:
        return max(1, (self.width - MARGIN - 1) // characters)


@dataclass(frozen=True)
class StackPlan:
    """One stack of layers, as pictures need it."""

    name: str  # "encoder", "decoder", or "" for the only one: initial weights depend on it
    attention: str
    visibility: Visibility
    length: int  # most tokens it gets at once
    position: str = ""  # "": the model's
    visibility_text: str = ""  # which keys a query sees, in words
    layer_indices: tuple[int, ...] = ()  # the layers that are of this kind, from 0; (): all

    @property
    def layers_text(self) -> str:
        """Which layers it is about, in words; "" if all."""
        return (
            trn(
                "layer {numbered}",
                "layers {numbered}",
                len(self.layer_indices),
                numbered=layer_ranges(self.layer_indices),
            )
            if self.layer_indices
            else ""
        )


KIND = ("attention", "position")


def stack_plans(model: ModelConfig, by: Sequence[str] = KIND[:1]) -> list[StackPlan]:
    """A network's stacks, one or encoder and decoder; if their layers differ in what is drawn, one for each kind."""
    if model.architecture == "encoder-decoder":
        shapes: list[tuple[str, bool, int, int]] = [
            (Message("encoder"), False, model.source_tokens, model.encoder_layers),
            (Message("decoder"), True, model.context_length, model.n_layers),
        ]
    else:
        shapes = [("", model.causal, model.context_length, model.n_layers)]
    found = []
    for name, causal, length, depth in shapes:
        alike: dict[tuple[str, ...], tuple[ModelConfig, list[int]]] = {}
        for layer, places in model.layer_kinds(depth):
            alike.setdefault(tuple(getattr(layer, key) for key in by), (layer, []))[1].extend(places)
        for layer, of_kind in alike.values():
            own = tuple(sorted(of_kind)) if len(alike) > 1 else ()
            see = self_attention(layer, causal=causal)
            words = ATTENTIONS[layer.attention].visible_text(layer, causal)
            found.append(StackPlan(name, layer.attention, see, length, layer.position, words, own))
    return found


def layer_plan(model: ModelConfig, layer: int, *, encoder: bool) -> StackPlan:
    """A layer of a network, from 0, among those of its kind."""
    plans = stack_plans(model, KIND)
    plans = [plan for plan in plans if plan.name == plans[0 if encoder else -1].name]
    return next(plan for plan in plans if not plan.layer_indices or layer in plan.layer_indices)


def mask_and_position_pictures(model: ModelConfig, seed: int, canvas: PictureFormat) -> Iterator[Text]:
    """All pictures of a network: each stack's mask, then what its positions add.

    Learned numbers are drawn as initialized with this seed.
    """
    plans = stack_plans(model)
    for plan in plans:
        yield mask_picture(plan, canvas)
    if plans[0].name != plans[-1].name:
        yield Text(tr("cross-attention: every decoder query sees the whole source; only padding is masked"))
    for plan in stack_plans(model, KIND[1:]):
        position = POSITIONS[plan.position]
        own = position.acts_on == "scores" or (position.learned and position.acts_on == "embeddings")
        if own or plan.name == plans[-1].name:
            yield position_picture(model, plan, seed, canvas)


def visibility_matrix(see: Visibility, n: int) -> list[list[bool]]:
    return [[bool(see(q, k)) for k in range(n)] for q in range(n)]


def half_blocks(cells: Sequence[Sequence[bool]]) -> list[str]:
    """Cells (N × M) as ⌈N / 2⌉ lines of M characters: ▀ is the upper row's, ▄ the lower one's, █ both."""
    return [
        "".join(HALVES[2 * bool(up) + bool(down)] for up, down in itertools.zip_longest(upper, lower))
        for upper, lower in itertools.zip_longest(cells[::2], cells[1::2], fillvalue=())
    ]


def drawn_positions(length: int, canvas: PictureFormat) -> int:
    """N: how many of `length` positions a mask's picture shows, two rows per line."""
    return min(length, 2 * canvas.lines, canvas.columns_that_fit(1))


def mask_picture(stack: StackPlan, canvas: PictureFormat) -> Text:
    """Who may look at whom: queries down, keys across, N × N in half blocks, under two lines of words."""
    n = drawn_positions(stack.length, canvas)
    words = tr(
        "rows: queries, columns: keys; position 0 at the top left{share}", share=_drawn_share_suffix(n, stack.length)
    )
    if canvas.brief:
        words = tr("↓ {queries}, → keys", queries=_drawn_rows_text(n, stack.length, tr("queries")))
    rows = [Text(line) for line in half_blocks(visibility_matrix(stack.visibility, n))]
    return Text("\n").join([Text(mask_sentence(stack, n)), Text(words), _ruler(n, 1), *_frame_rows(rows, n, 2)])


def mask_sentence(stack: StackPlan, n: int) -> str:
    """A stack's mask in a sentence; its first N positions are drawn."""
    see = stack.visibility
    far = 0 if see.window is None else see.window if see.causal else see.window // 2 + 1
    what = stack.visibility_text + (tr(" (more than shown here)") if n < stack.length and far >= n else "")
    owner = tr("{stack}'s ", stack=tr(stack.name)) if stack.name else ""
    where = tr(" in {layers}", layers=stack.layers_text) if stack.layers_text else ""
    return tr(
        "{owner}self-attention{where}, {attention}: each query sees {what}",
        owner=owner,
        where=where,
        attention=stack.attention,
        what=what,
    )


def _drawn_share_suffix(n: int, length: int) -> str:
    return tr("; first {n} of {length:,}", n=n, length=length) if n < length else ""


def _drawn_rows_text(n: int, length: int, rows: str) -> str:
    return tr("first {n} of {length:,} {rows}", n=n, length=length, rows=rows) if n < length else rows


def _label_step(n: int) -> int:
    return 4 if n <= 20 else 8


def _ruler(n: int, characters: int) -> Text:
    step = _label_step(n)
    marks = "".join(str(at).ljust(step * characters) for at in range(0, n, step))
    return Text(" " * MARGIN + marks.rstrip())


def _frame_rows(rows: Sequence[Text], n: int, rows_a_line: int) -> list[Text]:
    labels = [str(at) if at % _label_step(n) == 0 else "" for at in range(0, n, rows_a_line)]
    return [Text.assemble(f"{label:>{MARGIN - 2}} │", row, "│") for label, row in zip(labels, rows, strict=True)]


def shade_lines(values: Values, *, colour: bool, characters: int, shades: str) -> list[Text]:
    """Numbers (N × M) as shades from their lowest to their highest; None is blank.

    In colour these are greys in half blocks, two rows per line; else each number is a few of the `shades` side by side.
    """
    low, high = _extremes(values)

    def share(value: float) -> float:
        return (value - low) / (high - low) if high > low else 1.0

    def shade(value: float | None) -> str:
        return " " if value is None else shades[min(int(share(value) * len(shades)), len(shades) - 1)]

    if not colour:
        return [Text("".join(shade(v) * characters for v in row)) for row in values]
    lines = []
    for upper, lower in itertools.zip_longest(values[::2], values[1::2], fillvalue=()):
        line = Text()
        for up, down in itertools.zip_longest(upper, lower):
            greys = [grey(share(v)) for v in (up, down) if v is not None]
            sign = " " if not greys else "▄" if up is None else "▀"
            line.append(sign * characters, " on ".join(greys))
        lines.append(line)
    return lines


def _extremes(values: Values) -> tuple[float, float]:
    known = [v for row in values for v in row if v is not None]
    return min(known, default=0.0), max(known, default=0.0)


def grey(share: float) -> str:
    """The grey for a share, 0 to 1, of the brightest value."""
    level = round(GREYS[0] + share * (GREYS[1] - GREYS[0]))
    return f"#{level:02x}{level:02x}{level:02x}"


def _format_number(value: float) -> str:
    return f"{value + 0.0:.3g}".replace("-", "−")


def _legend(values: Values, *, colour: bool, shades: str) -> Text:
    """The shades between the highest and the lowest value: `0 █▓▒░ −9.75`."""
    low, high = _extremes(values)
    if not high > low:
        return Text(tr("{number} everywhere", number=_format_number(high)))
    legend = Text(f"{_format_number(high)} ")
    if colour:
        for i in range(len(SHADES)):
            legend.append("█", grey(1 - i / (len(SHADES) - 1)))
    else:
        legend.append(shades[::-1])
    return legend.append(f" {_format_number(low)}")


def bias_picture(values: Values, *, full_length: int, title: str, canvas: PictureFormat) -> Text:
    """One head's bias, N × N, over queries (down) and keys (across), as shades, under two lines of words.

    None, where a key is not seen, stays blank; there are `length` tokens, and room for N of them.
    """
    n, characters, shades = len(values), 1 if canvas.colour else 2, SHADES[1:]  # cells are square in both cases
    legend = _legend(values, colour=canvas.colour, shades=shades)
    words = tr(
        "rows: queries, columns: keys; blank where a key is not seen{share}", share=_drawn_share_suffix(n, full_length)
    )
    head = [Text.assemble(tr("{title}: ", title=title), legend, tr(" added to the score")), Text(words)]
    if canvas.brief:
        axes = tr("↓ {queries}, → keys", queries=_drawn_rows_text(n, full_length, tr("queries")))
        head = [Text(tr("{title}, added to the score", title=title)), Text.assemble(legend, tr("; {more}", more=axes))]
    rows = shade_lines(values, colour=canvas.colour, characters=characters, shades=shades)
    return Text("\n").join([*head, _ruler(n, characters), *_frame_rows(rows, n, 2 if canvas.colour else 1)])


def table_picture(
    values: Values, *, full_length: int, title: str, row_meaning: str, column_meaning: str, canvas: PictureFormat
) -> Text:
    """Numbers by position (down), as shades, under two lines of words; skips pairs if there are many columns.

    `rows` and `columns` say what they are; there are `length` positions, and room for the N that have values.
    """
    n, width = len(values), len(values[0])
    every = math.ceil(width / 2 / max(1, canvas.columns_that_fit(2)))
    kept = [i for i in range(width) if i // 2 % every == 0]
    shown = [[row[i] for i in kept] for row in values]
    legend = _legend(shown, colour=canvas.colour, shades=SHADES)
    some = f"{width:,} {column_meaning}" + (tr(", one in {every:,} pairs", every=every) if every > 1 else "")
    head = [
        Text.assemble(tr("{title}: ", title=title), legend),
        Text(
            tr(
                "rows: {rows}, columns: {some}{share}",
                rows=row_meaning,
                some=some,
                share=_drawn_share_suffix(n, full_length),
            )
        ),
    ]
    if canvas.brief:
        across = tr("{n:,} of {some}", n=len(kept), some=f"{width:,} {column_meaning}") if every > 1 else some
        axes = tr("↓ {rows}, → {columns}", rows=_drawn_rows_text(n, full_length, row_meaning), columns=across)
        head = [Text(title), Text.assemble(legend, tr("; {more}", more=axes))]
    characters = 2 if width <= canvas.columns_that_fit(2) else 1
    lines = shade_lines(shown, colour=canvas.colour, characters=characters, shades=SHADES)
    return Text("\n").join([*head, *_frame_rows(lines, n, 2 if canvas.colour else 1)])


def position_picture(model: ModelConfig, stack: StackPlan, seed: int, canvas: PictureFormat) -> Text:
    """What a stack's position scheme adds, and where: a head's bias, a table, turned pairs, or one line."""
    name = stack.position or model.position
    position, n = POSITIONS[name], canvas.rows_that_fit(stack.length)
    kind = tr("{name} in {layers}", name=name, layers=stack.layers_text) if stack.layers_text else name
    if position.acts_on == "nothing":
        return Text(tr("position {kind}: adds nothing to embeddings or scores", kind=kind))
    scheme = initial_scheme(model, stack, seed)
    if scheme is None:
        return Text(tr("position {kind}: its learned table is too large to draw", kind=kind))
    picture = partial(table_picture, full_length=stack.length, canvas=canvas)
    if position.rotates:
        title = tr("position {kind} rotates queries and keys, later columns more slowly (cosines)", kind=kind)
        columns = tr("angles of a head")
        if canvas.brief:
            title, columns = tr("position {kind} rotates queries and keys", kind=kind), tr("angles (cosines)")
        return picture(
            rotation_cosines(scheme, model, n), title=title, row_meaning=tr("positions"), column_meaning=columns
        )
    if position.acts_on == "content":
        waves = None if scheme.distance_embedding is None else embedding_values(scheme.distance_embedding, n)
        if waves is None:
            return Text(tr("position {kind}: its term depends on the query's content", kind=kind))
        title, note = tr("sinusoids of the distance"), Text()
        if canvas.brief:
            title = tr("position {kind}: {factor}", kind=kind, factor=title)
        else:
            said = tr("position {kind}: its term depends on the query's content; only one factor is drawn", kind=kind)
            note = Text(said + "\n")
        return note + picture(waves, title=title, row_meaning=tr("distances q − k"), column_meaning=tr("features"))
    owner = tr(", {stack}", stack=tr(stack.name)) if stack.name else ""
    learned = tr(" (shown as initialized)") if name == "learned" else tr(" (learned; shown as initialized)")
    words = {"kind": kind, "learned": learned if position.learned else ""}
    table = embedding_values(scheme, n)
    if table is not None:
        added_to = owner if position.learned else ""
        title = tr("position {kind}{learned}{owner}, added to the embeddings", owner=added_to, **words)
        return picture(table, title=title, row_meaning=tr("positions"), column_meaning=tr("features"))
    bias = first_head_bias(scheme, stack.visibility, min(n, canvas.columns_that_fit(1 if canvas.colour else 2)))
    assert bias is not None
    title = tr("position {kind}{learned}{owner}, head 1 of {n_heads}", owner=owner, n_heads=model.n_heads, **words)
    return bias_picture(bias, full_length=stack.length, title=title, canvas=canvas)


def initial_scheme(model: ModelConfig, stack: StackPlan, seed: int) -> "PositionScheme | None":
    """A stack's position scheme as initialized with this seed; None if it is too large.

    Not through `build_model`: the rest of the network may be large, and a parameter's first numbers depend only on
    the seed, its name and its shape.
    """
    import torch
    from torch import nn

    from engine.model.initialisation import initialise
    from engine.model.positions import make_schemes

    position = stack.position or model.position
    kind = model.model_copy(update={"position": position, "layers": ()})
    with torch.device("meta"):
        scheme = make_schemes(kind, 1, stack.length, causal=stack.visibility.causal)[0]
    if POSITIONS[position].acts_on == "content":  # learned per layer, and not drawn
        return scheme
    if sum(parameter.numel() for parameter in scheme.parameters()) > LARGEST_TABLE:
        return None
    scheme.to_empty(device="cpu")
    holder = nn.ModuleDict({"positions": scheme})
    if position != model.position:
        holder = nn.ModuleDict({"layer_positions": nn.ModuleDict({position: scheme})})
    initialise(nn.ModuleDict({stack.name: holder}) if stack.name else holder, model, seed)
    return scheme


def first_head_bias(scheme: "PositionScheme", see: Visibility, n: int) -> list[list[float | None]] | None:
    """What a scheme adds to the first head's scores, N × N, None where the key is not seen; None if it adds nothing."""
    import torch

    at = torch.arange(n)[None]
    with torch.no_grad():
        bias = scheme.bias(at, at)  # (1, H, N, N)
    if bias is None:
        return None
    rows: list[list[float]] = bias[0, 0].tolist()
    return [[v + 0.0 if see(q, k) else None for k, v in enumerate(row)] for q, row in enumerate(rows)]


def embedding_values(scheme: "PositionScheme", n: int) -> list[list[float]] | None:
    """What a scheme adds to the token embeddings of the first N positions, N × D; None if it adds nothing."""
    import torch

    with torch.no_grad():
        table = scheme.embed(torch.arange(n)[None])  # (1, N, D)
    return None if table is None else table[0].tolist()


def rotation_cosines(scheme: "PositionScheme", model: ModelConfig, n: int) -> list[list[float]]:
    """The cosines of the angles by which rope turns the feature pairs of the first N positions: N × Dh / 2."""
    import torch

    width = model.rope_width
    firsts = slice(width // 2) if model.rope_pairing == "half" else slice(0, width, 2)
    x = torch.zeros(1, 1, n, model.head_width, dtype=torch.float64)
    x[..., firsts] = 1.0  # the first feature of each pair: rotating it leaves the angle's cosine
    rows: list[list[float]] = scheme.rotate(x, torch.arange(n)[None])[0, 0, :, firsts].tolist()
    return rows
