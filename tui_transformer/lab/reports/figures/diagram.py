"""A model diagram from its config alone: how blocks stack, where the norms are, how often layers repeat."""

from dataclasses import dataclass
from gettext import NullTranslations
from itertools import groupby
from typing import TYPE_CHECKING

from engine.base.language import Message, translate
from engine.config.model import ModelConfig, active_parts
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS
from tui_transformer.lab.analysis.lists import PHRASES, join
from tui_transformer.lab.reports.figures.style import FAINT, INK, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EMBED, NORM, ATTEND, FEED, LINEAR, TEXT = "#fbe3e4", "#f8f3cf", "#fde2c4", "#d6e9f8", "#e2dcf1", "#ffffff"
MEMORY = "#B15C00"  # path from the encoder to the decoder
BOX, HIGH, GAP, PLUS = 3.3, 0.62, 0.3, 0.13  # width and height of a box, gap between two, radius of a ⊕
MOST_TURNS = 8  # lines about layers that differ
STEP, SIDE = HIGH + GAP, 0.42  # from box to box; from a box to the skip line around it
ASIDE, LINE = BOX / 2 + 0.22, 0.26  # from the stream to the middle of a parallel part; from line to line of a label
Point = tuple[float, float]
INPUTS = {"tokens": Message("tokens"), "source": Message("source tokens"), "target": Message("target tokens so far")}
OUTPUT = Message("probability of each token")


@dataclass(frozen=True)
class Box:
    text: str
    colour: str
    memory: bool = False  # whether it reads the encoder's output

    @property
    def height(self) -> float:
        """Its height: that of two lines, or of more."""
        return HIGH * max(1.0, (self.text.count("\n") + 1) / 2)


def boxes_before_in_after_layers(
    model: ModelConfig, language: NullTranslations, norm: Box | None, input_kind: str
) -> tuple[list[Box], list[Box], list[Box]]:
    """A column of the diagram: before the layers, a layer's sublayers without their norms, after the layers."""

    def say(text: str, **values: object) -> str:
        return translate(text, language, **values)

    def with_commas(*parts: str) -> str:
        return say(join(PHRASES, filter(None, parts)))

    def with_parts(where: str, *first: str) -> str:
        return with_commas(*first, *_active_part_labels(model, language, where))

    heads = Message("{n} heads" if model.kv_heads == model.n_heads else "{n} heads, {kv} KV heads")
    heads = Message(heads, n=model.n_heads, kv=model.kv_heads)
    added = ""
    if POSITIONS[model.position].acts_on == "embeddings":
        added = f"\n+ {say(POSITIONS[model.position].label)}"

    def attention(kind: ModelConfig, *, otherwise: bool = False) -> list[str]:
        """An attention and its positions; `otherwise` names what a plain network has without saying so."""
        seen = say(ATTENTIONS[kind.attention].label, window=kind.window, link_every=kind.link_every)
        row = POSITIONS[kind.position]
        position = "" if row.acts_on == "embeddings" else say(row.label)
        if not otherwise:
            return [seen, with_parts("positions", position)]
        if row.acts_on == "nothing":
            return [seen or say(Message.in_context("diagram", "global")), say("no positions")]
        return [
            seen or say(Message.in_context("diagram", "global")),
            with_parts("positions", position) if row.rotates else position,
        ]

    both_sides = not model.causal or input_kind == "source"
    sides = say(Message.in_context("diagram", "bidirectional" if both_sides else "causal"))
    if model.layers:
        runs = groupby(attention(model.layer_config(i), otherwise=True) for i in range(len(model.layers)))
        turns = [f"{len(list(run))} × {with_commas(*kind)}" for kind, run in runs]
        turns = turns if len(turns) <= MOST_TURNS else [*turns[: MOST_TURNS - 1], "…"]
        what = "\n".join([with_parts("attention", sides), *turns])
    else:
        what = with_parts("attention", sides, *attention(model))
    layer = [Box(say("self-attention, {heads}\n{what}", what=what, heads=heads), ATTEND)]
    if input_kind == "target":
        layer.append(Box(say("cross-attention, {heads}\nsees the whole source", heads=heads), ATTEND, memory=True))
    layer.append(
        Box(
            say(
                "feed-forward, {activation}\nwidth {d}",
                d=model.d_ff,
                activation=with_parts("feed-forward", model.activation),
            ),
            FEED,
        )
    )
    above = [norm] if model.final_norm and norm is not None else []
    if input_kind != "source":
        tied = say(", tied") if model.tie_embeddings else ""
        above.append(Box(with_parts("head", say("linear, softmax{tied}", tied=tied)), LINEAR))
    embed = say("token embedding, width {d}{position}", d=model.d_model, position=added)
    return [Box(say(INPUTS[input_kind]), TEXT), Box(embed, EMBED)], layer, above


def _active_part_labels(model: ModelConfig, language: NullTranslations, where: str) -> list[str]:
    """The labels of the parts that are on, of one box or of the layer."""
    rows = [row for row in active_parts(model).values() if row.diagram_box == where]
    return [translate(row.label, language, **dict(model)) for row in rows]


def diagram(model: ModelConfig, language: NullTranslations) -> "Figure":
    from matplotlib.patches import Rectangle

    label = translate(NORMS[model.norm].label, language)
    norm = Box(label, NORM) if label else None
    kinds = {"tokens": model.n_layers}
    if model.architecture == "encoder-decoder":
        kinds = {"source": model.encoder_layers, "target": model.n_layers}
    columns = [boxes_before_in_after_layers(model, language, norm, kind) for kind in kinds]
    rows = 0.0
    for below, layer, above in columns:
        norms = 0 if norm is None else 2 if model.norm_placement == "sandwich" else 1
        stacked = layer[:1] if model.parallel else layer
        taller = max(box.height for box in layer) - HIGH if model.parallel else sum(box.height - HIGH for box in layer)
        boxes = len(below) + len(above) + len(stacked) * (1 + norms)
        sums = len(stacked) if model.residual or model.parallel else 0
        rows = max(rows, boxes * STEP + taller + sums * (2 * PLUS + 0.2) + 0.85)
    labels = _active_part_labels(model, language, "layer")
    edge = BOX / 2 + (ASIDE + 0.2 if model.parallel else SIDE + 0.12)
    wide = 10.4 if len(columns) > 1 else 2 * edge + 1.2 if model.parallel else 5.6
    wide += 2 * LINE * len(labels)
    made = figure(rows * 0.52 + 0.3, wide * 0.66)
    axes = made.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-wide / 2, wide / 2), ylim=(-0.45, rows + 0.1), aspect="auto")
    axes.axis("off")
    centres = (0.25,) if len(columns) == 1 else (-2.45, 2.45)
    memory: Point | None = None
    for (below, layer, above), times, x in zip(columns, kinds.values(), centres, strict=True):
        y = 0.0
        for box in below:
            y = _box(axes, x, y, box, arrow=y > 0)
        bottom = y
        if model.parallel:
            y = _side_by_side(axes, x, y, layer, norm, model)
        else:
            for part in layer:
                y = _sublayer(axes, x, y, part, norm, model, memory)
        frame = (x - edge, bottom - GAP + 0.16), 2 * edge, y - bottom + 0.1
        axes.add_patch(Rectangle(*frame, fill=False, edgecolor=FAINT, linestyle="--", linewidth=0.9))
        side, far = ("right", x - edge - 0.12) if x == centres[0] else ("left", x + edge + 0.12)
        axes.text(far, (bottom + y) / 2 - 0.1, f"{times} ×", ha=side, va="center", fontsize=11)
        if labels:
            far += 0.6 if x != centres[0] else -0.6
            text = axes.text(far, (bottom + y) / 2 - 0.1, "\n".join(labels), ha=side, va="center", rotation=90)
            text.set(multialignment="center", fontsize=7)
        for i, box in enumerate(above):
            y = _box(axes, x, y + (0.14 if i == 0 else 0.0), box)
        if x != centres[-1]:
            memory = (x + BOX / 2, y - GAP) if above else (x, y - GAP)
        else:
            _arrow(axes, (x, y - GAP), (x, y + 0.12))
            axes.text(x, y + 0.17, translate(OUTPUT, language), ha="center", va="bottom", fontsize=8.5)
    return made


def _box(axes: "Axes", x: float, y: float, box: Box, *, arrow: bool = True) -> float:
    """Draw a box at `y` and the arrow to it; return where the next one begins."""
    from matplotlib.patches import FancyBboxPatch

    if arrow:
        _arrow(axes, (x, y - GAP), (x, y))
    shape = "round,pad=0,rounding_size=0.09"
    edge = FAINT if box.colour == TEXT else INK
    axes.add_patch(FancyBboxPatch((x - BOX / 2, y), BOX, box.height, boxstyle=shape, fc=box.colour, ec=edge, lw=0.8))
    axes.text(x, y + box.height / 2, box.text, ha="center", va="center", fontsize=8, linespacing=1.15)
    return y + box.height + GAP


def _sublayer(
    axes: "Axes", x: float, y: float, part: Box, norm: Box | None, model: ModelConfig, memory: Point | None
) -> float:
    """Draw norm, sublayer, another norm in a sandwich, ⊕, or ⊕ before the norm; return where the next begins."""
    branch = y - GAP * 0.55
    if norm is not None and model.norm_placement != "post":
        y = _box(axes, x, y, norm)
    at = y
    y = _box(axes, x, y, part)
    if part.memory and memory is not None:  # from the encoder's top to where the decoder reads it
        end = (x - BOX / 2, at + HIGH / 2)
        top, between = memory[1] + 0.12, end[0] - SIDE - 0.75
        way = [memory[0], memory[0], between, between], [memory[1], top, top, end[1]]
        axes.plot(*way, color=MEMORY, linewidth=1.1, zorder=2)
        _arrow(axes, (between, end[1]), end, MEMORY)
    if norm is not None and model.norm_placement == "sandwich":
        y = _box(axes, x, y, norm)
    if model.residual:  # the sum of the output and the residual
        centre = y - GAP + 0.2 + PLUS
        _arrow(axes, (x, y - GAP), (x, centre - PLUS))
        side = x + BOX / 2 + SIDE - 0.12
        axes.plot([x, side, side], [branch, branch, centre], color=INK, linewidth=0.9, solid_capstyle="round")
        _arrow(axes, (side, centre), (x + PLUS, centre))
        _sum(axes, x, centre)
        y = centre + PLUS + GAP
    if norm is not None and model.norm_placement == "post":
        y = _box(axes, x, y, norm)
    return y


def _side_by_side(axes: "Axes", x: float, y: float, layer: list[Box], norm: Box | None, model: ModelConfig) -> float:
    """Draw a parallel layer, its parts left and right of the stream and one ⊕; return where the next begins."""
    branch = y - GAP * 0.55
    axes.plot([x, x], [y - GAP, branch], color=INK, linewidth=0.9)
    boxes = [[part] if norm is None else [norm, part] for part in layer]
    if norm is not None and model.norm_placement == "sandwich":
        boxes = [[*column, norm] for column in boxes]
    centre = y + max(sum(box.height + GAP for box in column) for column in boxes) - GAP + 0.2 + PLUS
    for column, way in zip(boxes, (-1, 1), strict=True):
        at, top = x + way * ASIDE, y
        axes.plot([x, at], [branch, branch], color=INK, linewidth=0.9, solid_capstyle="round")
        _arrow(axes, (at, branch), (at, y))
        for i, box in enumerate(column):
            top = _box(axes, at, top, box, arrow=i > 0)
        axes.plot([at, at], [top - GAP, centre], color=INK, linewidth=0.9, solid_capstyle="round")
        _arrow(axes, (at, centre), (x + way * PLUS, centre))
    if model.residual:
        _arrow(axes, (x, branch), (x, centre - PLUS))
    _sum(axes, x, centre)
    return centre + PLUS + GAP


def _sum(axes: "Axes", x: float, y: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), PLUS, fc="white", ec=INK, lw=0.9, zorder=3))
    axes.text(x, y, "+", ha="center", va="center", fontsize=8.5, zorder=4)


def _arrow(axes: "Axes", start: Point, end: Point, colour: str = INK) -> None:
    style = "-|>,head_length=0.3,head_width=0.14"
    shape = {"arrowstyle": style, "color": colour, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=start, arrowprops=shape)
