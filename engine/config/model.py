"""The network's settings. Each optional part is described by one row, next to its setting."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Field, StrictBool

from engine.base.errors import did_you_mean, join_and, join_or
from engine.base.language import Message, tr
from engine.config.fields import Depth, Doc, Fraction, Positive, Section, Width, bookkeeping_field, later_field
from engine.config.rules import Rule
from engine.config.schemes import ACTIVATIONS, ATTENTIONS, NORMS, POSITIONS, Part

if TYPE_CHECKING:  # a name of the table; the names are known only at run time
    PositionName: TypeAlias = str
    AttentionName: TypeAlias = str
    NormName: TypeAlias = str
    ActivationName: TypeAlias = str
else:
    PositionName, AttentionName, NormName = Literal[*POSITIONS], Literal[*ATTENTIONS], Literal[*NORMS]
    ActivationName = Literal[*ACTIVATIONS]

MOST_KINDS = 1_000  # of layers in a pattern


def _checked_layers(value: object) -> tuple[str, ...]:
    """Check `model.layers`; return each entry as an attention, a position, or both separated by a space."""
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(tr('must be a list of layers, e.g. ["window", "global none"]'))
    if len(value) > MOST_KINDS:
        message = tr("is a pattern of {n:,} layers; the maximum is {most_kinds:,}", n=len(value), most_kinds=MOST_KINDS)
        raise ValueError(message)
    found = []
    for entry in value:
        words = entry.split()
        for word in words:
            if word not in ATTENTIONS and word not in POSITIONS:
                hint = did_you_mean(word[:80], [*ATTENTIONS, *POSITIONS])
                message = tr(
                    "'{word}' is neither an attention type ({attentions}) nor a position scheme ({positions}){hint}",
                    word=word[:80],
                    attentions=join_or(ATTENTIONS),
                    positions=join_or(POSITIONS),
                    hint=hint,
                )
                raise ValueError(message)
        chosen = [[word for word in words if word in table] for table in (ATTENTIONS, POSITIONS)]
        if not words or max(map(len, chosen)) > 1:
            message = tr(
                "'{entry}': each entry must be an attention type, a position scheme, or one of each", entry=entry[:80]
            )
            raise ValueError(message)
        found.append(" ".join(word for kind in chosen for word in kind))
    return tuple(found)


def _name_in_entry(entry: str, table: Mapping[str, object], otherwise: str) -> str:
    """Return the name from a table that an entry of `model.layers` has; `otherwise` if it has none."""
    return next((word for word in entry.split() if word in table), otherwise)


def _attentions_of(partial_settings: Mapping[str, Any]) -> list[str]:
    """Return the kinds of attention of a network whose settings are only partly validated."""
    usual = partial_settings.get("attention", "global")
    return [_name_in_entry(entry, ATTENTIONS, usual) for entry in partial_settings.get("layers") or ("",)]


def layer_ranges(places: Sequence[int]) -> str:
    """Format 0-based layer indices as 1-based ranges: `1-3, 5`."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(f"{first + 1}" if first == last else f"{first + 1}-{last + 1}" for first, last in runs)


def part_field(off: Any, row: Part, **bounds: Any) -> Any:
    """Declare an optional part, off by default; as with `later_field`, a config file leaves it out at its default."""
    return Field(off, json_schema_extra=cast(Any, row), **bounds)


def _needs_scores(name: str) -> Rule:
    """The rule for a part that acts on attention scores."""
    return Rule(
        (f"model.{name}", "model.attention"),
        lambda m: not any(ATTENTIONS[kind].has_scores for kind in m.distinct_attentions),
        lambda m: tr(
            "{attention} attention has no scores for {name} to act on; choose another attention type",
            attention=join_and(m.distinct_attentions),
            name=name,
        ),
    )


def _qk_norm_saved_numbers(m: "ModelConfig") -> float:
    """What QK norm saves; rotated heads are saved anyway unless copied: into blocks, beside sinks, or to share keys."""
    if not all(ATTENTIONS[name].has_scores for name in m.distinct_attentions):
        share = 1.5
    elif POSITIONS[m.position].rotates and not ("window" in m.distinct_attentions or m.sinks or m.kv_width < m.d_model):
        share = 1.0
    else:
        share = 2.5
    return (m.d_model + m.kv_width) * (share if m.qk_norm == "before" else 1.0)


def _gate_width(m: "ModelConfig") -> int:
    return m.n_heads if m.gate == "head" else m.d_model


def dropout_field() -> Any:
    """Declare a rate that defaults to `dropout`."""
    return Field(default_factory=lambda earlier: earlier.get("dropout", 0.1))


def _rope_scaling_formula(m: "ModelConfig") -> str:
    """Return the formula of `model.rope_scaling`: how it changes each frequency θ_i."""
    s, length, width = f"{m.rope_factor:g}", f"{m.rope_trained:g}", m.rope_width
    if m.rope_scaling == "linear":
        return rf"\theta_i \leftarrow \theta_i \, / \, {s}"
    if m.rope_scaling == "ntk":
        power = rf"{width}/{max(1, width - 2)}"
        return rf"\theta_i \leftarrow \left({m.rope_base:.10g} \cdot {s}^{{{power}}}\right)^{{-2i/{width}}}"
    mixed = rf"\theta_i \leftarrow \left(1 - \gamma_i\right) \frac{{\theta_i}}{{{s}}} + \gamma_i \theta_i, \qquad "
    if m.rope_scaling == "yarn":
        return (
            mixed + r"\gamma_i = 1 - \operatorname{clip}\left(\frac{i - a}{b - a},\, 0,\, 1\right), \quad "
            rf"a = \lfloor c({m.yarn_fast:g}) \rfloor, \; b = \lceil c({m.yarn_slow:g}) \rceil, \quad "
            rf"c(n) = \frac{{{width} \ln\left({length} / (2 \pi n)\right)}}{{2 \ln {m.rope_base:.10g}}}, \qquad "
            rf"R_t \leftarrow {m.rope_gain:.5g} \, R_t"
        )
    return mixed + (
        rf"\gamma_i = \operatorname{{clip}}\left(\frac{{{length} \theta_i / (2 \pi) - {m.llama3_low:g}}}"
        rf"{{{m.llama3_high:g} - {m.llama3_low:g}}},\, 0,\, 1\right)"
    )


def _rope_width_formula(m: "ModelConfig") -> str:
    product = rf"{m.rope_part:g} \cdot {m.head_width}"
    return product if m.rope_part * m.head_width == m.rope_width else rf"\lfloor {product} \rfloor"


def _parallel_formula(m: "ModelConfig") -> str:
    """Return the formula of a parallel layer."""
    norm = NORMS[m.norm].symbol
    parts = [rf"\operatorname{{Attn}}({norm}_1(x))", rf"\operatorname{{FFN}}({norm}_2(x))"]
    if not norm:
        parts = [r"\operatorname{Attn}(x)", r"\operatorname{FFN}(x)"]
    elif m.norm_placement == "sandwich":
        parts = [rf"{norm}_{i}({part})" for i, part in enumerate(parts, 3)]
    return r"x \leftarrow " + " + ".join(["x"] * m.residual + parts)


def _needs_residual(name: str) -> Rule:
    return Rule(
        (f"model.{name}", "model.residual"),
        lambda m: not m.residual,
        lambda m: tr("{name} needs residual connections; --set model.residual=true", name=name),
    )


class ModelConfig(Section):
    """The network. Widths in features, lengths in tokens.

    `causal` follows from the architecture: only encoders may attend to later tokens. If causal, `window` counts keys,
    including the query's own; otherwise |q − k| ≤ window // 2. Positions, attention and its parts apply to
    self-attention; the cross-attention of an encoder-decoder attends to the whole source.
    """

    architecture: Annotated[
        Literal["decoder", "encoder", "encoder-decoder"],
        Doc(
            "which layer stacks the network has, and what they can see",
            {
                "decoder": "one stack that predicts the next token and sees only what came before",
                "encoder": "one stack that sees the whole text and fills the gaps in it",
                "encoder-decoder": "an encoder reads a source, and a decoder writes the target from it",
            },
        ),
    ] = "decoder"
    causal: Annotated[StrictBool, Doc("whether a token sees only itself and earlier tokens")] = Field(
        default_factory=lambda earlier: earlier.get("architecture") != "encoder"
    )
    n_layers: Annotated[Depth, Doc("number of layers, each with attention and a feed-forward")] = 4
    n_encoder_layers: Annotated[Depth | None, Doc("number of encoder layers")] = None  # None: n_layers
    d_model: Annotated[Width, Doc("width of the residual stream; most costs grow with its square")] = 256
    n_heads: Annotated[Depth, Doc("number of attention heads, each d_model / n_heads features wide")] = 4
    n_kv_heads: Annotated[
        Depth | None, Doc("key and value heads, shared by the query heads; fewer make the cache smaller")
    ] = None  # None: n_heads
    d_ff: Annotated[Width, Doc("width of the feed-forward, usually 4 × d_model")] = Field(
        default_factory=lambda earlier: 4 * earlier.get("d_model", 256)
    )
    context_length: Annotated[
        Positive, Doc("maximum tokens seen at once; the cost of full attention grows with its square")
    ] = 128
    source_length: Annotated[
        Positive | None,
        Doc("maximum length, in tokens, of an encoder-decoder's source, or of the article that a decoder summarizes"),
    ] = None  # None: context_length, or half of it for an article
    vocab_size: Annotated[Width | None, Doc("rows of the embedding; unset: one per token")] = None
    source_vocab_size: Annotated[
        Width | None, Doc("rows of the source embedding, if source and target do not share a vocabulary")
    ] = None

    classes: Annotated[Width | None, Doc("number of classes in classification; unset: as many as the corpus has")] = (
        later_field(None)
    )

    position: Annotated[PositionName, Doc("how the network knows the order of tokens")] = "sinusoidal"
    position_init: Annotated[
        Literal["normal", "zero"],
        Doc(
            "how learned positions are initialized",
            {"normal": "at random, according to `init`", "zero": "at zero: all positions are the same at first"},
        ),
    ] = "normal"
    rope_base: Annotated[
        float, Field(gt=1.0, le=1e12), Doc("base of rope's frequencies; larger for longer contexts")
    ] = 10_000.0
    rope_pairing: Annotated[
        Literal["half", "adjacent"],
        Doc(
            "how rope pairs the features of a head",
            {"half": "features i and i + half the head's width, as in LLaMA", "adjacent": "features 2i and 2i + 1"},
        ),
    ] = "half"
    rope_part: float = part_field(
        1.0,
        Part(
            display_name=Message("rope part"),
            sentence=Message("only the first part of each head is rotated; the rest ignores position"),
            citation="Black et al. 2022",
            title=Message("Partial rotary embedding"),
            formula=lambda m: (
                rf"q \leftarrow \left[\, R_t \, q_{{1:d_r}} ;\; q_{{d_r+1:d_h}} \,\right], \qquad "
                rf"d_r = {_rope_width_formula(m)} = {m.rope_width}"
            ),
            label=Message("{rope_part:g} of each head"),
            diagram_box="positions",
            on_values=(0.5, 0.25),
            rules=(
                Rule(
                    ("model.rope_part", "model.position"),
                    lambda m: "rope" not in m.distinct_positions,
                    lambda m: tr(
                        "rope_part is the fraction of a head that rope rotates, but position = '{position}'; "
                        "leave rope_part at 1.0 or choose position = 'rope'",
                        position="', '".join(m.distinct_positions),
                    ),
                ),
                Rule(
                    ("model.rope_part", "model.n_heads"),
                    lambda m: int(m.rope_part * m.head_width) % 2 != 0 or int(m.rope_part * m.head_width) < 2,
                    lambda m: tr(
                        "rope rotates features in pairs, but {rope_part:g} of a head's {head_width} features, "
                        "rounded down, is {rope_part2}, which is not an even number above 0; a fraction that works: "
                        "{max:g}",
                        rope_part=m.rope_part,
                        head_width=m.head_width,
                        rope_part2=int(m.rope_part * m.head_width),
                        max=2 * max(1, round(m.rope_part * m.head_width / 2)) / m.head_width,
                    ),
                ),
            ),
        ),
        gt=0.0,
        le=1.0,
    )
    rope_scaling: Literal["none", "linear", "ntk", "yarn", "llama3"] = part_field(
        "none",
        Part(
            display_name=Message("rope scaling"),
            sentence=Message("rotations are slowed, so that longer contexts stay within the angles seen in training"),
            citation="Chen et al. 2023; bloc97 2023; Peng et al. 2023; Llama Team 2024",
            options={
                "linear": Message(
                    "every frequency is divided by the factor, as if positions were that much closer together"
                ),
                "ntk": Message(
                    "a larger base: the highest frequency is unchanged and the lowest is divided by the factor"
                ),
                "yarn": Message(
                    "high frequencies are unchanged and low ones divided by the factor; scores are sharpened slightly"
                ),
                "llama3": Message(
                    "wavelengths well below the training context are unchanged; those above it are multiplied "
                    "by the factor"
                ),
            },
            title=Message("RoPE scaling for longer contexts"),
            formula=_rope_scaling_formula,
            label=Message("{rope_scaling} × {rope_factor:g}"),
            diagram_box="positions",
            on_values=("linear", "ntk", "yarn", "llama3"),
            settings={
                "rope_factor": (),
                "rope_original": ("yarn", "llama3"),
                **dict.fromkeys(("yarn_fast", "yarn_slow", "yarn_gain"), ("yarn",)),
                **dict.fromkeys(("llama3_low", "llama3_high"), ("llama3",)),
            },
            rules=(
                Rule(
                    ("model.rope_scaling", "model.position"),
                    lambda m: "rope" not in m.distinct_positions,
                    lambda m: tr(
                        "rope_scaling changes rope's frequencies, but position = '{position}'; "
                        "leave rope_scaling at 'none' or choose position = 'rope'",
                        position="', '".join(m.distinct_positions),
                    ),
                ),
                Rule(
                    ("model.rope_scaling", "model.rope_part"),
                    lambda m: m.rope_scaling == "ntk" and m.rope_width == 2,
                    "ntk leaves the highest frequency unchanged, and with 2 rotated features there is no other; "
                    "rotate more features or choose 'linear'",
                ),
                Rule(
                    ("model.rope_scaling", "model.attention"),
                    lambda m: m.rope_scaling == "yarn" and (m.attention, m.position) == ("linear", "rope"),
                    "yarn sharpens the scores before the softmax, but linear attention has no scores and no "
                    "softmax; choose linear, ntk or llama3",
                ),
                Rule(
                    ("model.rope_scaling", "model.qk_norm"),
                    lambda m: m.qk_norm == "after" and m.rope_gain != 1.0,
                    lambda m: tr(
                        "yarn sharpens the scores by scaling queries and keys by {rope_gain:.3g}, but a norm after "
                        "the rotation undoes that; --set model.qk_norm=before or model.yarn_gain=1",
                        rope_gain=m.rope_gain,
                    ),
                ),
                Rule(
                    ("model.yarn_slow", "model.yarn_fast"),
                    lambda m: m.rope_scaling == "yarn" and m.yarn_slow >= m.yarn_fast,
                    "yarn_slow ({yarn_slow:g}) must be below yarn_fast ({yarn_fast:g})",
                ),
                Rule(
                    ("model.llama3_low", "model.llama3_high"),
                    lambda m: m.rope_scaling == "llama3" and m.llama3_low >= m.llama3_high,
                    "llama3_low ({llama3_low:g}) must be below llama3_high ({llama3_high:g})",
                ),
            ),
        ),
    )
    rope_factor: Annotated[float, Doc("how far rope is stretched, as a multiple of the training context")] = (
        later_field(4.0, gt=1.0, le=1e6)
    )
    rope_original: Annotated[
        Positive | None, Doc("the training context in tokens; unset: context_length / rope_factor")
    ] = later_field(None)
    yarn_fast: Annotated[float, Doc("rotations per training context above which YaRN leaves a frequency unchanged")] = (
        later_field(32.0, gt=0.0, le=1e6)
    )
    yarn_slow: Annotated[
        float, Doc("rotations per training context below which YaRN divides a frequency by the factor")
    ] = later_field(1.0, gt=0.0, le=1e6)
    yarn_gain: Annotated[
        Annotated[float, Field(gt=0.0, le=100.0)] | None,
        Doc("factor by which YaRN multiplies queries and keys; unset: 0.1 ln(rope_factor) + 1"),
    ] = later_field(None)
    llama3_low: Annotated[
        float, Doc("wavelengths per training context below which Llama 3 divides a frequency by the factor")
    ] = later_field(1.0, gt=0.0, le=1e6)
    llama3_high: Annotated[
        float, Doc("wavelengths per training context above which Llama 3 leaves a frequency unchanged")
    ] = later_field(4.0, gt=0.0, le=1e6)
    relative_max_distance: Annotated[Positive, Doc("distance in tokens at which relative positions are clipped")] = 64
    t5_buckets: Annotated[
        int, Field(strict=True, ge=4, le=10_000), Doc("how many buckets T5 sorts distances into; each has a bias")
    ] = 32
    t5_max_distance: Annotated[
        Positive, Doc("distance in tokens beyond which everything falls into T5's last bucket")
    ] = 128
    embedding_scale: Annotated[
        StrictBool, Doc("whether embeddings are multiplied by the square root of d_model, as in Vaswani et al. 2017")
    ] = False

    attention: Annotated[AttentionName, Doc("which tokens each token may look at")] = "global"
    window: Annotated[Positive, Doc("how many of the nearest keys a query sees")] = 16
    link_every: Annotated[
        int, Field(strict=True, ge=2, le=10**9), Doc("spacing of the positions that all later queries see")
    ] = 16
    # Layer i is layers[i % len(layers)]: an attention, a position or both; (): every layer has `attention`, `position`
    layers: Annotated[
        tuple[str, ...],
        BeforeValidator(_checked_layers),
        Doc(
            "pattern of layers, repeated until every layer is covered; each entry is an attention type, a position "
            "scheme or both"
        ),
    ] = later_field(())
    backend: Annotated[
        Literal["auto", "reference", "sdpa", "dense", "banded", "chunked"],
        Doc(
            "the implementation that computes attention",
            {
                "auto": "the fastest one that applies",
                "reference": "plain code, in fp32",
                "sdpa": "torch's fused kernel",
                "dense": "three matrix products over all heads at once",
                "banded": "window attention in blocks of queries, each with the keys it can see",
                "chunked": "linear attention in chunks with prefix sums between them",
            },
        ),
    ] = bookkeeping_field("auto")

    norm: Annotated[NormName, Doc("how activations are normalized")] = "layer"
    norm_placement: Annotated[
        Literal["pre", "post", "sandwich"],
        Doc(
            "where the norms are",
            {
                "pre": "before attention and feed-forward; deep networks train stably",
                "post": "after each residual sum, as in the original Transformer; needs a warm-up",
                "sandwich": "before and after attention and feed-forward",
            },
        ),
    ] = "pre"
    final_norm: Annotated[StrictBool, Doc("whether a norm follows the last layer")] = Field(
        default_factory=lambda earlier: earlier.get("norm_placement") != "post" and earlier.get("norm") != "none"
    )
    norm_eps: Annotated[float, Field(gt=0.0, le=1.0), Doc("added to the variance, so that no norm divides by 0")] = 1e-5
    residual: Annotated[
        StrictBool, Doc("whether each sublayer adds to its input instead of replacing it; deep networks need this")
    ] = True
    parallel: StrictBool = part_field(
        False,
        Part(
            display_name=Message("parallel"),
            sentence=Message("attention and feed-forward read the same input, and both add to the residual stream"),
            citation="Wang and Komatsuzaki 2021; Black et al. 2022",
            title=Message("Parallel attention and feed-forward"),
            formula=_parallel_formula,
            label=Message("parallel"),
            diagram_box="layer",
            on_values=(True,),
            rules=(
                Rule(
                    ("model.parallel", "model.architecture"),
                    lambda m: m.architecture == "encoder-decoder",
                    "cross-attention runs between self-attention and feed-forward; parallel layers need "
                    "architecture = 'decoder' or 'encoder'",
                ),
                Rule(
                    ("model.parallel", "model.norm_placement"),
                    lambda m: m.norm_placement == "post",
                    "parallel layers have no place for post-norm, which would sit between attention and "
                    "feed-forward; --set model.norm_placement=pre",
                ),
            ),
            saved_numbers=lambda m: -m.d_model,  # they share their input
        ),
    )
    layer_scale: float = part_field(
        0.0,
        Part(
            display_name=Message("layer scale"),
            sentence=Message("each residual branch is scaled by a learned gain per feature, small at initialization"),
            citation="Touvron et al. 2021",
            title=Message("LayerScale: a learned gain on each residual branch Δ"),
            formula=lambda m: (
                r"\Delta \leftarrow \gamma \odot \Delta, \qquad \gamma_i = "
                rf"{m.layer_scale:.10g} \text{{ at step }} 0"
            ),
            label=Message("layer scale {layer_scale:g}"),
            diagram_box="layer",
            identity_at_init=True,
            on_values=(1e-5, 0.1),  # as published: 0.1 up to 18 layers, 1e-5 for 24
            rules=(
                _needs_residual("layer_scale"),
                Rule(
                    ("model.layer_scale", "model.norm_placement"),
                    lambda m: m.norm_placement == "sandwich",
                    "a sandwich norm already has a learned gain; --set model.norm_placement=pre",
                ),
            ),
            parameters=lambda m, stack: stack.layers * (3 if stack.over_source else 2) * m.d_model,
            saved_numbers=lambda m: (3 if m.architecture == "encoder-decoder" else 2) * m.d_model,
        ),
        ge=0.0,
        le=1e3,
    )
    embedding_mix: StrictBool = part_field(
        False,
        Part(
            display_name=Message("embedding mix"),
            sentence=Message("each layer reads a learned mix of the residual stream and the initial embedding"),
            citation="Jordan et al. 2024",
            title=Message("Layer ℓ reads the residual stream mixed with the embedding"),
            formula=lambda m: (
                r"x_\ell \leftarrow \lambda_\ell \, x_\ell + \mu_\ell \, x_0, \qquad "
                r"\lambda_\ell = 1, \; \mu_\ell = 0 \text{ at step } 0"
            ),
            label=Message.in_context("diagram", "embedding mix"),
            diagram_box="layer",
            on_values=(True,),
            rules=(_needs_residual("embedding_mix"),),
            parameters=lambda m, stack: 2 * stack.layers,
            saved_numbers=lambda m: m.d_model,
        ),
    )
    conv: int = part_field(
        0,
        Part(
            display_name=Message("conv"),
            sentence=Message(
                "a short causal convolution over tokens precedes attention, and another precedes the feed-forward"
            ),
            citation="So et al. 2021; Allen-Zhu 2025",
            title=Message("A short convolution before each sublayer"),
            formula=lambda m: (
                rf"y_t \leftarrow \sum_{{j=0}}^{{{m.conv - 1}}} w_j \odot y_{{t-j}}, \qquad "
                r"w_0 = 1, \; w_{j>0} = 0 \text{ at step } 0"
            ),
            label=Message("conv, width {conv}"),
            diagram_box="layer",
            identity_at_init=True,
            on_values=(4, 2),
            rules=(
                Rule(
                    ("model.conv",),
                    lambda m: m.conv == 1,
                    "a convolution of width 1 mixes no tokens; 4 is usual and 0 turns it off",
                ),
            ),
            parameters=lambda m, stack: 2 * m.conv * m.d_model * stack.layers,
            saved_numbers=lambda m: 2 * m.d_model,
        ),
        ge=0,
        le=1_000,
    )
    activation: Annotated[ActivationName, Doc("the nonlinearity of the feed-forward")] = "gelu"
    bias: Annotated[StrictBool, Doc("whether linear maps and layer norms have a bias")] = True
    head_bias: Annotated[StrictBool, Doc("whether the output layer has a bias per token")] = False
    tie_embeddings: Annotated[StrictBool, Doc("whether the output layer uses the embedding matrix")] = False
    logit_softcap: float = part_field(
        0.0,
        Part(
            display_name=Message("logit softcap"),
            sentence=Message("a scaled tanh keeps logits below the cap"),
            citation="Gemma Team 2024",
            title=Message("Soft-capped logits"),
            formula=lambda m: rf"z \leftarrow {m.logit_softcap:g} \tanh\left(z / {m.logit_softcap:g}\right)",
            label=Message("softcap {logit_softcap:g}"),
            diagram_box="head",
            on_values=(30.0, 2.0),
        ),
        ge=0.0,
        le=1e6,
    )

    qk_norm: Literal["none", "before", "after"] = part_field(
        "none",
        Part(
            display_name=Message("qk norm"),
            sentence=Message("queries and keys are RMS-normalized in each head, so that scores stay bounded"),
            options={
                "before": Message(
                    "queries and keys are RMS-normalized in each head, with a learned gain, before any rotation"
                ),
                "after": Message(
                    "queries and keys are RMS-normalized in each head, without a gain, after any rotation"
                ),
            },
            citation="Henry et al. 2020; Qwen Team 2025",
            title=Message("QK norm: normalised queries and keys"),
            formula=lambda m: (
                r"q \leftarrow \gamma_q \odot q / \operatorname{rms}(q), \qquad "
                r"k \leftarrow \gamma_k \odot k / \operatorname{rms}(k)"
                if m.qk_norm == "before"
                else r"q \leftarrow R q / \operatorname{rms}(R q), \qquad k \leftarrow R k / \operatorname{rms}(R k)"
                if POSITIONS[m.position].rotates
                else r"q \leftarrow q / \operatorname{rms}(q), \qquad k \leftarrow k / \operatorname{rms}(k)"
            ),
            label=Message("QK norm"),
            diagram_box="attention",
            on_values=("before", "after"),
            parameters=lambda m, stack: 2 * m.head_width * stack.layers if m.qk_norm == "before" else 0,
            saved_numbers=_qk_norm_saved_numbers,
            rules=(
                Rule(
                    ("model.qk_norm", "model.attention"),
                    lambda m: (
                        m.qk_norm == "after" and not all(ATTENTIONS[name].has_scores for name in m.distinct_attentions)
                    ),
                    "linear attention rotates the feature maps of queries and keys, so there are no rotated "
                    "queries and keys to normalize; --set model.qk_norm=before",
                ),
            ),
        ),
    )

    score_cap: float = part_field(
        0.0,
        Part(
            display_name=Message("score cap"),
            sentence=Message("a scaled tanh keeps attention scores below the cap, before biases and masks"),
            citation="Gemma Team 2024",
            title=Message("Soft-capped attention scores"),
            formula=lambda m: rf"s_{{ij}} \leftarrow {m.score_cap:g} \tanh\left(s_{{ij}} / {m.score_cap:g}\right)",
            label=Message("score cap {score_cap:g}"),
            diagram_box="attention",
            on_values=(50.0, 2.0),
            fused_support="no",
            saved_per_score=1,
            rules=(
                _needs_scores("score_cap"),
                Rule(
                    ("model.score_cap", "model.backend"),
                    lambda m: m.backend == "sdpa",
                    "the fused kernel does not support score_cap; leave backend at 'auto'",
                ),
            ),
        ),
        ge=0.0,
        le=1e6,
    )
    sinks: StrictBool = part_field(
        False,
        Part(
            display_name=Message("sinks"),
            sentence=Message(
                "a learned logit without a value joins each head's softmax, so that a head can attend to nothing"
            ),
            citation="Xiao et al. 2024; Agarwal et al. 2025",
            title=Message("Attention sinks"),
            formula=lambda m: r"a_{ij} = \frac{\exp(s_{ij})}{\exp(b_h) + \sum_{j'} \exp(s_{ij'})}",
            label=Message("sinks"),
            diagram_box="attention",
            on_values=(True,),
            parameters=lambda m, stack: sum(
                m.n_heads * len(places)
                for kind, places in m.layer_kinds(stack.layers)
                if ATTENTIONS[kind.attention].has_scores
            ),
            fused_support="in the mask",
            rules=(_needs_scores("sinks"),),
        ),
    )

    gate: Literal["none", "head", "output"] = part_field(
        "none",
        Part(
            display_name=Message("gate"),
            sentence=Message("a sigmoid gate computed from the layer's input scales the attention output"),
            options={
                "head": Message("a sigmoid gate computed from the layer's input scales each head's output"),
                "output": Message(
                    "a sigmoid gate computed from the layer's input scales each feature of the attention output"
                ),
            },
            citation="Qiu et al. 2025",
            title=Message("Gated attention"),
            formula=lambda m: (
                r"o_i \leftarrow \sigma(W_g x_i) \odot o_i"
                if m.gate == "output"
                else r"o_i^{(h)} \leftarrow \sigma\left(w_h^\top x_i\right) o_i^{(h)}"
            ),
            label=Message("{gate} gate"),
            diagram_box="attention",
            on_values=("head", "output"),
            parameters=lambda m, stack: stack.layers * _gate_width(m) * (m.d_model + int(m.bias)),
            multiply_adds=lambda m: m.d_model * _gate_width(m),
            saved_numbers=lambda m: m.d_model + _gate_width(m),
        ),
    )

    value_mix: StrictBool = part_field(
        False,
        Part(
            display_name=Message("value mix"),
            sentence=Message(
                "from the second layer on, values are mixed with the first layer's, using two learned weights"
            ),
            citation="Zhou et al. 2024",
            title=Message("Value residual: values mixed with the first layer's"),
            formula=lambda m: r"v^{(l)} \leftarrow \lambda_1^{(l)} v^{(1)} + \lambda_2^{(l)} v^{(l)}, \qquad l > 1",
            label=Message("value residual"),
            diagram_box="attention",
            on_values=(True,),
            parameters=lambda m, stack: 2 * (stack.layers - 1),
            saved_numbers=lambda m: 2 * m.kv_width,
        ),
    )

    dropout: Annotated[
        Fraction, Doc("fraction of features zeroed at random in training; helps when a small text is seen often")
    ] = 0.1
    attention_dropout: Annotated[Fraction, Doc("dropout on the attention weights")] = Field(
        default_factory=lambda earlier: (
            earlier.get("dropout", 0.1) if all(ATTENTIONS[name].has_scores for name in _attentions_of(earlier)) else 0.0
        )
    )
    attention_output_dropout: Annotated[Fraction, Doc("dropout on the attention output")] = dropout_field()
    embedding_dropout: Annotated[Fraction, Doc("dropout on the embeddings")] = dropout_field()
    ff_dropout: Annotated[Fraction, Doc("dropout inside the feed-forward, after the activation")] = dropout_field()
    layer_drop: float = part_field(
        0.0,
        Part(
            display_name=Message("layer drop"),
            sentence=Message("in training, each sequence skips sublayers at random, more often in deeper layers"),
            citation="Huang et al. 2016",
            title=Message("Stochastic depth: residual branch Δ in layer ℓ of L, in training"),
            formula=lambda m: (
                r"\Delta \leftarrow \frac{b}{1 - p_\ell} \, \Delta, \qquad "
                rf"\Pr(b = 0) = p_\ell = {m.layer_drop:g} \, \ell / L, \quad b \in \{{0, 1\}}"
            ),
            label=Message("layer drop {layer_drop:g}"),
            diagram_box="layer",
            acts_when="in training",
            on_values=(0.2,),
            rules=(_needs_residual("layer_drop"),),
        ),
        ge=0.0,
        lt=1.0,
    )

    init: Annotated[
        Literal["scaled-normal", "normal", "xavier", "torch"],
        Doc(
            "how matrices are initialized",
            {
                "scaled-normal": "normal with init_std, residual outputs divided by √(number of branches), as in GPT-2",
                "normal": "normal with init_std",
                "xavier": "uniform, scaled by the matrix's input and output widths (Glorot and Bengio 2010)",
                "torch": "torch's defaults: embeddings from N(0, 1), linear maps uniform, scaled by their input width",
            },
        ),
    ] = "scaled-normal"
    init_std: Annotated[
        float, Field(gt=0.0, le=10.0), Doc("standard deviation of normally distributed initial weights")
    ] = 0.02
    embedding_std: Annotated[
        Annotated[float, Field(gt=0.0, le=10.0)] | None,
        Doc("standard deviation of the initial embedding; unset: according to `init`"),
    ] = None
    zero_init: Literal["none", "outputs", "outputs-and-head"] = part_field(
        "none",
        Part(
            display_name=Message("zero init"),
            sentence=Message("output projections start at zero, so that each layer starts as the identity"),
            citation="Goyal et al. 2017; Zhang et al. 2019",
            title=Message("Output projections at step 0"),
            formula=lambda m: (
                r"W_O = 0, \qquad W_2 = 0" + (r", \qquad W_{\text{head}} = 0" if m.zero_init != "outputs" else "")
            ),
            label=Message("zero init: {zero_init}"),
            diagram_box="layer",
            identity_at_init=True,
            acts_when="at the start",
            on_values=("outputs", "outputs-and-head"),
            options={
                "none": Message("all weights are initialized by `init`"),
                "outputs": Message("output projections start at zero, so that each layer starts as the identity"),
                "outputs-and-head": Message(
                    "each layer starts as the identity, and all tokens start out equally likely"
                ),
            },
            rules=(
                Rule(
                    ("model.zero_init", "model.tie_embeddings"),
                    lambda m: m.zero_init == "outputs-and-head" and m.tie_embeddings,
                    "a head tied to the embedding cannot start at zero; choose zero_init = 'outputs', or --set "
                    "model.tie_embeddings=false",
                ),
                Rule(
                    ("model.zero_init", "model.norm_placement"),
                    lambda m: m.norm_placement == "sandwich",
                    "a sandwich norm scales a branch to full size as soon as its output is nonzero, after the "
                    "first step; --set model.norm_placement=pre",
                ),
                Rule(
                    ("model.zero_init", "model.residual"),
                    lambda m: not m.residual,
                    "without residual connections, nothing gets past a layer whose output is zero; --set "
                    "model.residual=true",
                ),
            ),
        ),
    )

    def layer_config(self, i: int) -> "ModelConfig":
        """Return the config of layer `i` of a stack, from 0: with that layer's attention and position."""
        if not self.layers:
            return self
        entry = self.layers[i % len(self.layers)]
        attention = _name_in_entry(entry, ATTENTIONS, self.attention)
        position = _name_in_entry(entry, POSITIONS, self.position)
        return self.model_copy(update={"layers": (), "attention": attention, "position": position})

    def layer_kinds(self, n_layers: int | None = None) -> list[tuple["ModelConfig", tuple[int, ...]]]:
        """Return the distinct layer configs of a stack, by default the deepest, each with its layers, from 0."""
        depth = self.max_stack_depth if n_layers is None else n_layers
        if not self.layers:
            return [(self, tuple(range(depth)))]
        found: dict[tuple[str, str], tuple[ModelConfig, list[int]]] = {}
        for i in range(depth):
            layer = self.layer_config(i)
            found.setdefault((layer.attention, layer.position), (layer, []))[1].append(i)
        return [(layer, tuple(places)) for layer, places in found.values()]

    @property
    def max_stack_depth(self) -> int:
        """The number of layers of the deepest stack."""
        return max(self.n_layers, self.encoder_layers if self.architecture == "encoder-decoder" else 0)

    @property
    def distinct_attentions(self) -> list[str]:
        """The distinct kinds of attention in its layers."""
        return list(dict.fromkeys(layer.attention for layer, _ in self.layer_kinds()))

    @property
    def distinct_positions(self) -> list[str]:
        """The distinct position schemes in its layers."""
        return list(dict.fromkeys(layer.position for layer, _ in self.layer_kinds()))

    @property
    def head_width(self) -> int:
        return self.d_model // self.n_heads

    @property
    def rope_width(self) -> int:
        """The number of features that rope rotates in each head; even."""
        return max(2, int(self.rope_part * self.head_width) // 2 * 2) if self.rope_part < 1.0 else self.head_width

    @property
    def rope_trained(self) -> float:
        """The context in tokens that rope's unscaled frequencies were trained at."""
        return self.rope_original or self.context_length / self.rope_factor

    @property
    def rope_gain(self) -> float:
        """YaRN's scale of queries and of keys (Peng et al. 2023, §3.4); 1 without it."""
        return 1.0 if self.rope_scaling != "yarn" else self.yarn_gain or 0.1 * math.log(self.rope_factor) + 1.0

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads or self.n_heads

    @property
    def encoder_layers(self) -> int:
        return self.n_encoder_layers or self.n_layers

    @property
    def source_tokens(self) -> int:
        """The longest source of an encoder-decoder, in tokens."""
        return self.source_length or self.context_length

    @property
    def ff_expanded_width(self) -> int:
        """Output features of the feed-forward's first projection: gated activations need a gate for each of `d_ff`."""
        return ACTIVATIONS[self.activation].expansion * self.d_ff

    @property
    def kv_width(self) -> int:
        """The total width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_width


# The parts, by setting.
PARTS: dict[str, Part] = {
    name: row for name, field in ModelConfig.model_fields.items() if isinstance(row := field.json_schema_extra, Part)
}


def active_parts(model: ModelConfig) -> dict[str, Part]:
    """Return the parts that are on, by setting."""
    fields = ModelConfig.model_fields
    return {name: row for name, row in PARTS.items() if getattr(model, name) != fields[name].default}
