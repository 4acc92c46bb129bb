"""A model's formulas in LaTeX: those that its config computes, with its numbers filled in, and their papers.

Their titles are messages. Every formula matches `engine.model` term by term; none contains text from users or files.
"""

from collections.abc import Iterator
from dataclasses import replace

from engine.base.language import Message
from engine.config.model import ModelConfig, active_parts, layer_ranges
from engine.config.schema import RunConfig
from engine.config.schemes import ACTIVATIONS, ATTENTIONS, NORMS, POSITIONS, VASWANI
from engine.config.visibility import reach_of, self_attention
from tui_transformer.lab.analysis.lists import in_brackets, join_names
from tui_transformer.lab.reports.document import Formula

KINDS = (
    "attention",
    "linear",
    "visible",
    "visible-source",
    "reach",
    "position",
    "norm",
    "layer",
    "feed-forward",
    "part",
)
FEED_FORWARD = Message("Feed-forward")
VISIBLE_SOURCE = Message("Which keys an encoder query sees; cross-attention sees the whole source")
LAYER_TITLES = {  # by where the norms are
    "pre": Message("For each sublayer f, with its input normalized first"),
    "post": Message("For each sublayer f, with the result normalized afterwards"),
    "sandwich": Message("For each sublayer f, with both its input and its output normalized"),
    "none": Message("For each sublayer f, without normalization"),
}
LOSS_TITLES = {
    "past": Message("Loss and perplexity; the context of a token is what precedes it"),
    "masked": Message("Loss and perplexity; the context is the text around the hidden tokens"),
    "source": Message("Loss and perplexity; the context of a token is the source and what precedes the token"),
    "class": Message("Loss of N texts of T tokens each; h are the last hidden states"),
}
LOSS = (
    r"\mathcal{L} = -\frac{1}{N} \sum_{t=1}^{N} \ln \left( p_\theta( x_t \mid c_t ) \right), "
    r"\qquad \text{PPL} = e^{\mathcal{L}}"
)


# Of N texts, of the n-th the class y and the last hidden states h of its T tokens.
CLASS_LOSS = (
    r"\mathcal{L} = -\frac{1}{N} \sum_{n=1}^{N} \ln \left( p_\theta( y_n \mid x^{(n)} ) \right), \qquad "
    r"p_\theta( \cdot \mid x ) = \operatorname{softmax}\left( W \, \frac{1}{T} \sum_{t=1}^{T} h_t \right)"
)


def formulas(variants: list[tuple[str, ModelConfig]], config: RunConfig) -> Iterator[Formula]:
    """All variants' formulas, each once, naming the variants unless all share it; the objective is `config`'s."""
    found: dict[str, dict[tuple[str, str], tuple[Formula, list[str]]]] = {kind: {} for kind in KINDS}
    for name, model in variants:
        for kind, formula in _of_model(model):
            found[kind].setdefault((formula.latex, formula.what), (formula, []))[1].append(name)
    for formula, names in (having for same_kind in found.values() for having in same_kind.values()):
        if len(names) < len(variants):
            formula = replace(formula, what=in_brackets(formula.what, join_names(names)))
        yield formula
    if config.task.uses("model.classes", config):
        yield Formula(LOSS_TITLES["class"], CLASS_LOSS)
        return
    context = "source" if config.model.architecture == "encoder-decoder" else "past"
    yield Formula(LOSS_TITLES["masked" if config.task.fills_gaps else context], LOSS)


def _of_model(m: ModelConfig) -> Iterator[tuple[str, Formula]]:
    """Yield one model's formulas, each after its kind."""
    norm = NORMS[m.norm]
    alike: dict[tuple[str, Formula], list[int]] = {}
    for layer, places in m.layer_kinds(m.n_layers):
        for found in _of_layer(layer):
            alike.setdefault(found, []).extend(places)
    for (kind, formula), layers in alike.items():
        what = formula.what
        if len(layers) < m.n_layers:
            text = Message("layers {which}" if len(layers) > 1 else "layer {which}")
            what = in_brackets(what, Message(text, which=layer_ranges(sorted(layers))))
        yield kind, replace(formula, what=what)
    steps = [(len(places), self_attention(layer).reach(1)) for layer, places in m.layer_kinds(m.n_layers)]
    if (reached := reach_of(m)) is not None:
        sum_ = " + ".join(rf"{n} \cdot {step}" for n, step in steps)
        general = rf"L \cdot {steps[0][1]} = " if len(steps) == 1 else ""
        reach = rf"\text{{reach}} = {general}{sum_} = {reached}"
        yield "reach", Formula(Message("How far back a token can see through all layers"), reach)
    if latex := norm.formula(m):
        yield "norm", Formula(norm.title, latex, norm.citation)

    # What a sublayer f does to the stream.
    wrap = (lambda x: f"{norm.symbol}({x})") if norm.symbol else (lambda x: x)
    past = "x + " if m.residual else ""
    sums = {"pre": rf"{past}f({wrap('x')})", "post": wrap(past + "f(x)"), "sandwich": past + wrap(rf"f({wrap('x')})")}
    placed = m.norm_placement if norm.symbol else "none"
    if not m.parallel:  # whose own formula is the layer's
        yield "layer", Formula(LAYER_TITLES[placed], rf"x \leftarrow {sums[m.norm_placement]}")
    inside = ACTIVATIONS[m.activation].formula(m)
    feed_forward = rf"\operatorname{{FFN}}(x) = {inside}"
    yield "feed-forward", Formula(FEED_FORWARD, feed_forward, VASWANI)
    for row in active_parts(m).values():
        yield "part", Formula(row.title, row.formula(m), row.citation)


def _of_layer(m: ModelConfig) -> Iterator[tuple[str, Formula]]:
    """Yield the formulas of one layer's attention and positions."""
    attention, position = ATTENTIONS[m.attention], POSITIONS[m.position]
    # A head's output, with the pre-softmax score of query i with key j if there is one.
    paper = VASWANI if attention.has_scores else attention.citation
    kind = "attention" if attention.has_scores else "linear"
    yield kind, Formula(attention.title, attention.formula(m), paper)
    if attention.has_scores:
        paper = "" if attention.citation == VASWANI else attention.citation
        yield "visible", Formula(attention.visible_title, _seen(m, m.causal), paper)
        if m.architecture == "encoder-decoder":  # the encoder of two stacks is never causal
            yield "visible-source", Formula(VISIBLE_SOURCE, _seen(m, False).replace("T", "T_s"))
    if latex := position.formula(m):
        yield "position", Formula(position.title, latex, position.citation)


def _seen(m: ModelConfig, causal: bool) -> str:
    return rf"S_i = \left\{{ j \mid {ATTENTIONS[m.attention].visible_formula(m, causal)} \right\}}"
