"""The table of schemes for networks and their training: everything about a scheme except its computation.

A row has the scheme's texts (sentence, paper, formula, diagram label), settings, rules and cost. Its name is the value
that a config accepts. The class or function that computes it is registered under the same name in
`engine.model.positions`, `heads`, `layers` or `engine.training.optimizer`; a schedule is its row's `rate`. A second
implementation, in `engine.model.reference`, checks it. No torch here.
"""

import math
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, dataclass_transform

from engine.base.language import Message, tr
from engine.config.rules import Rule

if TYPE_CHECKING:
    from engine.config.model import ModelConfig
    from engine.config.sections import OptimizerConfig

WINDOW_BREAK_EVEN = 8  # a window beats full attention in texts at least this many times its reach (measured on a CPU)

VASWANI = "Vaswani et al. 2017"


class StackShape(NamedTuple):
    layers: int  # their number
    longest: int  # its longest input in tokens
    causal: bool  # whether its self-attention is causal
    over_source: bool = False  # whether its layers have cross-attention
    encodes: bool = False  # whether it encodes the source


class Kernel(NamedTuple):
    # from `BACKENDS`, or `chunked`; `math` is what torch's fused kernel falls back to on a CPU under dropout or with a
    # learned mask, materializing the scores
    name: str
    blocks: int  # parts of the text, the last one padded
    queries: int  # in a block
    keys: int  # keys that each block's queries are multiplied by

    @property
    def padded_length(self) -> int:
        return self.blocks * self.queries


@dataclass_transform(kw_only_default=True, frozen_default=True)
class TableRow:
    """A table row: a frozen dataclass to mypy, without the code generation that would slow every start."""

    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)


class Scheme(TableRow):
    sentence: str  # what it does
    citation: str  # "" only for a no-op
    settings: Collection[str] = ()  # settings of its section that act only with it
    rules: tuple[Rule, ...] = ()  # on its section
    title: str = ""  # heading of its formula
    formula: Callable[[Any], str] = staticmethod(lambda section: "")  # LaTeX, given its config section
    label: str = ""  # in a diagram; its gaps are filled with settings


class Part(Scheme):
    """An optional part of a network: a setting that is off by default. Its row is at the setting in
    `engine.config.model`; its texts and rules apply when it is on.
    """

    display_name: str  # what Design calls it
    on_values: tuple[Any, ...]  # values that turn it on: all of them, or examples of a number
    diagram_box: Literal["attention", "positions", "feed-forward", "layer", "head"]  # the box that shows its label
    options: Mapping[str, str] = {}  # a sentence for each named value
    settings: Mapping[str, tuple[Any, ...]] = {}  # setting that acts only with it → with which of its values; (): any
    acts_when: Literal["always", "in training", "at the start"] = "always"  # at the start: only on the initial weights
    identity_at_init: bool = False  # whether it, or its layer, starts as the identity or close to it
    # Support in torch's fused kernel: nothing to do, as a term of its mask, or none.
    fused_support: Literal["as it is", "in the mask", "no"] = "as it is"
    parameters: Callable[["ModelConfig", StackShape], int] = staticmethod(lambda model, stack: 0)  # of a whole stack
    # Extra multiplications per layer and token in the forward pass.
    multiply_adds: Callable[["ModelConfig"], int] = staticmethod(lambda model: 0)
    # Extra numbers that a layer keeps for the backward pass: per token, and per materialised score.
    saved_numbers: Callable[["ModelConfig"], float] = staticmethod(lambda model: 0.0)
    saved_per_score: int = 0

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add the description to the config's JSON schema; pydantic calls this."""
        schema["description"] = self.sentence


# ---------------------------------------------------------------------------------------------------------- positions


class Position(Scheme):
    """A position scheme. `acts_on` is where the class acts: `embed`, `rotate`, `bias` or `content`."""

    score: str = r"q_i^\top k_j"  # the product of query and key; where `acts_on` is "scores", b_ij is added to it
    scaled: bool = True  # whether the score is divided by √Dh
    acts_on: Literal["nothing", "embeddings", "queries and keys", "scores", "content"]
    adds: str = ""  # what it adds to the scores, for the refusal of attention without scores
    learned: bool = False
    bounded: bool = False  # one vector per position, none past the context
    parameters: Callable[["ModelConfig", StackShape], int] = staticmethod(lambda model, stack: 0)  # of a whole stack
    # Multiplications per layer besides attention's: per row of a batch, and once for all rows. The inputs of the latter
    # need no gradient.
    multiply_adds: Callable[["ModelConfig", Kernel], int] = staticmethod(lambda model, kernel: 0)
    shared_multiply_adds: Callable[["ModelConfig", Kernel], int] = staticmethod(lambda model, kernel: 0)
    saved_per_score: float = 0.0  # numbers kept for the backward pass per query-key pair, whatever the number of heads

    @property
    def rotates(self) -> bool:
        return self.acts_on == "queries and keys"


def _slopes(n_heads: int) -> str:
    """ALiBi's slopes: the paper's formula covers powers of two; other head counts interpolate."""
    return r"m_1 > m_2 > \cdots > 0" if n_heads & (n_heads - 1) else rf"m_h = 2^{{-8h/{n_heads}}}"


def _needs_even_d_model(what: str) -> Rule:
    return Rule(
        ("model.position", "model.d_model"),
        lambda m: m.d_model % 2 != 0,
        lambda m: tr("{what} pairs, so d_model must be even, not {d_model}", what=what, d_model=m.d_model),
    )


def _rotated_width_symbol(m: "ModelConfig") -> str:
    """The features of a head that rope rotates."""
    return "d_h" if m.rope_part == 1.0 else "d_r"


def _distances(kernel: Kernel) -> int:
    return kernel.queries + kernel.keys - 1


POSITIONS: dict[str, Position] = {
    "none": Position(
        sentence=tr("no position information is added; a causal decoder can still infer order from its mask"),
        citation="Kazemnejad et al. 2023",
        acts_on="nothing",
    ),
    "sinusoidal": Position(
        sentence=tr("fixed sines and cosines of the position, added to the embeddings"),
        citation=VASWANI,
        title=Message("Positions: sinusoids, added to the embeddings"),
        formula=lambda m: (
            r"p_{t,2i} = \sin\left(t \, / \, 10000^{2i/d}\right), \qquad "
            r"p_{t,2i+1} = \cos\left(t \, / \, 10000^{2i/d}\right)"
        ),
        label=Message("sinusoidal positions"),
        acts_on="embeddings",
        rules=(_needs_even_d_model(tr("sinusoidal positions come in sine-cosine")),),
    ),
    "learned": Position(
        sentence=tr("a learned vector per position, added to the embeddings"),
        citation="Gehring et al. 2017",
        title=Message("Positions: a learned vector each, added to the embeddings"),
        formula=lambda m: r"x_t = e(w_t) + p_t, \qquad p_t \in \mathbb{R}^d",
        label=Message("learned positions"),
        acts_on="embeddings",
        learned=True,
        bounded=True,
        parameters=lambda m, stack: stack.longest * m.d_model,
    ),
    "rope": Position(
        sentence=tr("queries and keys are rotated according to position, so that scores depend on relative distance"),
        citation="Su et al. 2021",
        title=Message("Positions: queries and keys are rotated (RoPE)"),
        formula=lambda m: (
            r"R_t = \operatorname{diag}\left( \rho(t\theta_0), \ldots, "
            rf"\rho(t\theta_{{{_rotated_width_symbol(m)}/2-1}}) \right), \quad "
            r"\rho(\alpha) = \begin{pmatrix} \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{pmatrix}, \quad "
            rf"\theta_i = {m.rope_base:.10g}^{{-2i/{_rotated_width_symbol(m)}}}"
        ),
        score=r"(R_i q_i)^\top (R_j k_j)",
        label=Message("RoPE"),
        acts_on="queries and keys",
        settings=("rope_base", "rope_pairing"),
    ),
    "relative": Position(
        sentence=tr("a learned bias per head and clipped distance, added to the score"),
        citation="Shaw et al. 2018",
        title=Message("Positions: a learned bias per head and clipped distance"),
        formula=lambda m: (
            rf"b_{{ij}} = B_{{h,\, \operatorname{{clip}}(j-i,\, -{m.relative_max_distance},\, "
            rf"{m.relative_max_distance})}}"
        ),
        label=Message("relative bias"),
        acts_on="scores",
        adds=tr("a learned bias"),
        learned=True,
        settings=("relative_max_distance",),
        parameters=lambda m, stack: (2 * m.relative_max_distance + 1) * m.n_heads,
        saved_per_score=2.5,  # the table index of each score, 8 bytes each
    ),
    "alibi": Position(
        sentence=tr("a score penalty that grows linearly with distance, at a different rate per head"),
        citation="Press et al. 2022",
        title=Message("Positions: a penalty that grows with the distance (ALiBi)"),
        formula=lambda m: rf"b_{{ij}} = -m_h \, |i - j|, \qquad {_slopes(m.n_heads)}",
        label=Message("ALiBi"),
        acts_on="scores",
        adds="ALiBi",
    ),
    "t5": Position(
        sentence=tr("a learned bias per head and distance bucket (wider at longer distances), added to the score"),
        citation="Raffel et al. 2020",
        title=Message("Positions: a learned bias per head and distance bucket"),
        formula=lambda m: (
            rf"b_{{ij}} = B_{{h,\, \operatorname{{bucket}}(j-i)}}, \qquad {m.t5_buckets} \text{{ buckets}}, \; "
            rf"|j-i|_{{\max}} = {m.t5_max_distance}"
        ),
        scaled=False,
        label=Message("T5 bias"),
        acts_on="scores",
        adds=tr("T5's bias"),
        learned=True,
        settings=("t5_buckets", "t5_max_distance"),
        rules=(
            Rule(
                ("model.t5_max_distance", "model.t5_buckets"),
                lambda m: m.t5_max_distance <= m.t5_buckets // 2,
                lambda m: tr(
                    "half of the {t5_buckets} buckets hold one distance each, so t5_max_distance must be above "
                    "{t5_buckets2}, not {t5_max_distance}",
                    t5_buckets=m.t5_buckets,
                    t5_buckets2=m.t5_buckets // 2,
                    t5_max_distance=m.t5_max_distance,
                ),
            ),
        ),
        parameters=lambda m, stack: m.t5_buckets * m.n_heads,
        saved_per_score=2.5,
    ),
    "xl": Position(
        sentence=tr(
            "the score has extra terms in the query, the key and a sinusoid of their distance (Transformer-XL)"
        ),
        citation="Dai et al. 2019",
        title=Message("Positions: sinusoids of the distance in the score (Transformer-XL)"),
        formula=lambda m: (
            r"r_{\delta,2i} = \sin\left(\delta \, / \, 10000^{2i/d}\right), \qquad "
            r"r_{\delta,2i+1} = \cos\left(\delta \, / \, 10000^{2i/d}\right)"
        ),
        score=r"\left(q_i^\top k_j + q_i^\top W_R r_{i-j} + u^\top k_j + v^\top W_R r_{i-j}\right)",
        label=Message("Transformer-XL"),
        acts_on="content",
        adds=tr("Transformer-XL's terms"),
        learned=True,
        rules=(_needs_even_d_model(tr("Transformer-XL's sinusoids come in")),),
        parameters=lambda m, stack: stack.layers * (m.d_model * m.d_model + 2 * m.d_model),
        multiply_adds=lambda m, k: k.padded_length * _distances(k) * m.d_model + k.blocks * k.keys * m.d_model,
        shared_multiply_adds=lambda m, k: _distances(k) * m.d_model * m.d_model,
        saved_per_score=2.5,
    ),
}


# ---------------------------------------------------------------------------------------------------------- attention


def _softmax_formula(m: "ModelConfig") -> str:
    position = POSITIONS[m.position]
    scale = r"\frac{1}{\sqrt{d_h}}" if position.scaled else ""
    bias = " + b_{ij}" if position.acts_on == "scores" else ""
    weights = r"\sum_{j \in S_i} \frac{e^{s_{ij}}}{\sum_{l \in S_i} e^{s_{il}}}"
    return rf"o_i = {weights} \, v_j, \qquad s_{{ij}} = {scale} {position.score}{bias}"


def _linear_formula(m: "ModelConfig") -> str:
    under = r"\varphi(q_i)^\top \varphi(k_j)"
    turned = r"\left(R_i \varphi(q_i)\right)^\top \left(R_j \varphi(k_j)\right)"
    over = turned if POSITIONS[m.position].rotates else under
    seen = r"j \le i" if m.causal else "j"
    return (
        rf"o_i = \frac{{\sum_{{{seen}}} {over} \, v_j}}{{\sum_{{{seen}}} {under}}}, \qquad "
        r"\varphi(x) = \operatorname{elu}(x) + 1"
    )


def _window_condition(m: "ModelConfig", causal: bool) -> str:
    return rf"0 \le i - j < {m.window}" if causal else rf"|i - j| \le {m.window // 2}"


def _window_condition_text(m: "ModelConfig", causal: bool) -> str:
    if causal:
        return tr("the last {window:,} keys, including its own", window=m.window)
    return tr("the keys at most {window:,} positions away", window=m.window // 2)


def _global_visible_text(m: "ModelConfig", causal: bool) -> str:
    return tr("its own key and all before it") if causal else tr("all keys")


class Attention(Scheme):
    """A kind of self-attention: how keys are weighted, and which keys a query sees. `formula`: a head's output."""

    title: str = Message("Attention")
    formula: Callable[["ModelConfig"], str] = staticmethod(_softmax_formula)
    visible_title: str = ""  # heading of `visible_formula`
    # LaTeX of which keys a query sees, given whether it is causal; "" if it is in `formula`
    visible_formula: Callable[["ModelConfig", bool], str] = staticmethod(lambda model, causal: "")
    visible_text: Callable[["ModelConfig", bool], str]  # the same in words: "each query sees …"
    has_scores: bool = True  # whether each pair of query and key has a score, to which a bias can be added
    # those that a config may name; without `sdpa` its weights are no softmax, and are written out
    backends: tuple[str, ...] = ("auto", "reference", "sdpa", "dense", "banded")
    # context from which a layer is faster than full attention: 0 for full attention itself, None for never
    break_even_context: Callable[["ModelConfig"], int | None]


ATTENTIONS: dict[str, Attention] = {
    "global": Attention(
        sentence=tr("each query attends to all keys, or, with a causal mask, to all up to its own"),
        citation=VASWANI,
        visible_title=Message("Which keys a query sees"),
        visible_formula=lambda m, causal: r"0 \le j \le i" if causal else r"0 \le j < T",
        visible_text=_global_visible_text,
        break_even_context=lambda m: 0,
    ),
    "window": Attention(
        sentence=tr("each query attends only to nearby keys, at a cost that is linear in the length, not quadratic"),
        citation=VASWANI,  # §4, restricted self-attention
        visible_title=Message("Which keys a query sees: a window"),
        visible_formula=_window_condition,
        label=Message("window {window}"),
        settings=("window",),
        visible_text=_window_condition_text,
        break_even_context=lambda m: max(1, WINDOW_BREAK_EVEN * (m.window - 1)),
    ),
    "sparse": Attention(
        sentence=tr("each query attends to a window, and to every n-th key outside it"),
        citation="Child et al. 2019",
        visible_title=Message("Which keys a query sees: a window, and every n-th key outside it"),
        visible_formula=lambda m, causal: (
            (r"j \le i,\; " if causal else "")
            + rf"\left( {_window_condition(m, causal)} \;\lor\; j \bmod {m.link_every} = {m.link_every - 1} \right)"
        ),
        label=Message("window {window} + every {link_every}th"),
        settings=("window", "link_every"),
        visible_text=lambda m, causal: tr(
            Message("{sees_near}, and, before them, keys {link_every:,}, {link_every2:,}, …")
            if causal
            else Message("{sees_near}, and keys {link_every:,}, {link_every2:,}, …"),
            sees_near=_window_condition_text(m, causal),
            link_every=m.link_every - 1,
            link_every2=2 * m.link_every - 1,
        ),
        break_even_context=lambda m: None,
    ),
    "linear": Attention(
        sentence=tr("a feature map of queries and keys replaces the softmax, so that keys can be summed in advance"),
        citation="Katharopoulos et al. 2020",
        title=Message("Linear attention"),
        formula=_linear_formula,
        label=Message.in_context("diagram", "linear"),
        has_scores=False,
        backends=("auto", "reference", "chunked"),
        visible_text=lambda m, causal: tr(
            "{sees_all}; with no scores to mask, the mask is applied through the sums",
            sees_all=_global_visible_text(m, causal),
        ),
        break_even_context=lambda m: 512,  # measured on a CPU
    ),
}


# -------------------------------------------------------------------------------------------- norms and activations


class Norm(Scheme):
    symbol: str = ""  # in the formula of a layer
    parameters: Callable[["ModelConfig"], int]
    saved_tensors: int  # tensors of width d_model kept for the backward pass: its input and output


NORMS: dict[str, Norm] = {
    "layer": Norm(
        sentence=tr("each token's features are centred and scaled to unit variance"),
        citation="Ba et al. 2016",
        title=Message("Layer norm"),
        formula=lambda m: (
            r"\operatorname{LN}(x) = \gamma \odot \frac{x - \mu(x)}{\sqrt{\sigma^2(x) + \varepsilon}}"
            + (r" + \beta" if m.bias else "")
        ),
        symbol=r"\operatorname{LN}",
        label=Message("layer norm"),
        parameters=lambda m: m.d_model * (2 if m.bias else 1),
        saved_tensors=2,
    ),
    "rms": Norm(
        sentence=tr("each token's features are divided by their root mean square"),
        citation="Zhang and Sennrich 2019",
        title=Message("RMS norm"),
        formula=lambda m: (
            r"\operatorname{RMS}(x) = \gamma \odot \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \varepsilon}}"
        ),
        symbol=r"\operatorname{RMS}",
        label=Message("RMS norm"),
        parameters=lambda m: m.d_model,
        saved_tensors=3,
    ),
    "none": Norm(
        sentence=tr("no normalization"),
        citation="",
        rules=(
            Rule(
                ("model.norm_placement", "model.norm"),
                lambda m: m.norm_placement != "pre",
                "norm = 'none' has no norm to place; leave norm_placement at 'pre'",
            ),
            Rule(
                ("model.final_norm", "model.norm"),
                lambda m: m.final_norm,
                "norm = 'none' has no final norm; --set model.final_norm=false",
            ),
        ),
        parameters=lambda m: 0,
        saved_tensors=1,
    ),
}


class Activation(Scheme):
    """An activation. Its `formula` is the whole feed-forward; a diagram shows its name."""

    expansion: int = 1  # features of the first projection per feature of `d_ff`
    saved_numbers: int = 1  # pre-activation numbers kept per feature of `d_ff`, for its gradient
    saves_output: bool = False  # its gradient needs its output instead


def _two_layer_formula(function: str) -> Callable[["ModelConfig"], str]:
    """Return the formula of two projections with an activation between them."""

    def formula(m: "ModelConfig") -> str:
        b1, b2 = (" + b_1", " + b_2") if m.bias else ("", "")
        return rf"{function}(x W_1{b1}) W_2{b2}"

    return formula


def _gated_formula(function: str) -> Callable[["ModelConfig"], str]:
    """Return the formula of a gated linear unit; like the paper's, it leaves biases out."""
    return lambda m: rf"\left( {function}(x W_g) \odot x W_v \right) W_2"


ACTIVATIONS: dict[str, Activation] = {
    "gelu": Activation(
        sentence=tr("a smooth ReLU: x times the probability that a standard normal variable is below x"),
        citation="Hendrycks and Gimpel 2016",
        formula=_two_layer_formula(r"\operatorname{GELU}"),
    ),
    "gelu-tanh": Activation(
        sentence=tr("GPT-2's tanh approximation of GELU"),
        citation="Hendrycks and Gimpel 2016",
        formula=_two_layer_formula(r"\operatorname{GELU}"),
    ),
    "relu": Activation(
        sentence=tr("negative features are set to 0"),
        citation="Nair and Hinton 2010",
        formula=_two_layer_formula(r"\operatorname{ReLU}"),
        saved_numbers=0,
        saves_output=True,
    ),
    "relu2": Activation(
        sentence=tr("negative features are set to 0, positive ones squared"),
        citation="So et al. 2021",
        formula=_two_layer_formula(r"\operatorname{ReLU}^2"),
    ),
    "silu": Activation(
        sentence=tr("x times its sigmoid, also known as swish"),
        citation="Elfwing et al. 2018; Ramachandran et al. 2017",
        formula=_two_layer_formula(r"\operatorname{silu}"),
    ),
    "swiglu": Activation(
        sentence=tr("half of the features, passed through SiLU, gate the other half"),
        citation="Shazeer 2020",
        formula=_gated_formula(r"\operatorname{silu}"),
        expansion=2,
        saved_numbers=3,
    ),
    "geglu": Activation(
        sentence=tr("half of the features, passed through GELU, gate the other half"),
        citation="Shazeer 2020",
        formula=_gated_formula(r"\operatorname{GELU}"),
        expansion=2,
        saved_numbers=3,
    ),
    "geglu-tanh": Activation(
        sentence=tr("GEGLU with GPT-2's tanh approximation of GELU, as in Gemma"),
        citation="Shazeer 2020",
        formula=_gated_formula(r"\operatorname{GELU}"),
        expansion=2,
        saved_numbers=3,
    ),
}


# ------------------------------------------------------------------------------------- learning rate and optimizer


class Schedule(Scheme):
    """A learning-rate schedule: its value after warm-up, at an optimizer step (from 1) of `steps`. It costs nothing.

    Its formula gives η at step t of T with w steps of warm-up; η₀ is `lr`.
    """

    rate: Callable[["OptimizerConfig", int, int], float]
    needs: Mapping[str, str] = {}  # required setting → what to give


def require_steps(duration: int | str | None) -> int:
    if not isinstance(duration, int):
        raise ValueError(
            tr("the duration {duration!r} has not been resolved to steps; see RunConfig.resolved", duration=duration)
        )
    return duration


def _decay_progress(o: "OptimizerConfig", step: int, steps: int) -> float:
    """Return how much of the decay is done: 0 at the end of warm-up, 1 at `decay_over`, by default the last step."""
    warmup = require_steps(o.warmup)
    over = steps if o.decay_over is None else require_steps(o.decay_over)
    if o.decay_every is not None:  # constant between multiples, like a scheduler stepped once per epoch
        step = (step - 1) // require_steps(o.decay_every) * require_steps(o.decay_every)
    return min(max((step - warmup) / max(1, over - warmup), 0.0), 1.0)


def _wsd_learning_rate(o: "OptimizerConfig", step: int, steps: int) -> float:
    begin = max(require_steps(o.warmup), round(o.decay_from * steps))
    left = min(max((steps - step) / max(1, steps - begin), 0.0), 1.0)
    return o.min_lr + (o.lr - o.min_lr) * left


NO_DECAY_OVER = Rule(
    ("optimizer.decay_over", "optimizer.schedule"),
    lambda o: o.decay_over is not None,
    "decay_over is the length of a cosine or linear decay, but the schedule is '{schedule}'; leave out decay_over",
)

SCHEDULES: dict[str, Schedule] = {
    "constant": Schedule(
        sentence=tr("the learning rate is constant after warm-up"),
        citation="Kingma and Ba 2015",
        formula=lambda o: r"\eta_t = \eta_0",
        rate=lambda o, step, steps: o.lr,
        rules=(
            NO_DECAY_OVER,
            Rule(
                ("optimizer.decay_every", "optimizer.schedule"),
                lambda o: o.decay_every is not None,
                "decay_every sets when the rate changes, but a constant rate never does; leave out decay_every",
            ),
        ),
    ),
    "cosine": Schedule(
        sentence=tr("the learning rate follows half a cosine down to its minimum at the end"),
        citation="Loshchilov and Hutter 2017",
        formula=lambda o: (
            r"\eta_t = \eta_{\min} + \frac{\eta_0 - \eta_{\min}}{2} "
            r"\left(1 + \cos\left(\pi \, \frac{t - w}{T - w}\right)\right)"
        ),
        rate=lambda o, step, steps: (
            o.min_lr + 0.5 * (o.lr - o.min_lr) * (1.0 + math.cos(math.pi * _decay_progress(o, step, steps)))
        ),
    ),
    "linear": Schedule(
        sentence=tr("the learning rate decays linearly to its minimum at the end"),
        citation="Devlin et al. 2019",
        formula=lambda o: r"\eta_t = \eta_{\min} + (\eta_0 - \eta_{\min}) \left(1 - \frac{t - w}{T - w}\right)",
        rate=lambda o, step, steps: o.min_lr + (o.lr - o.min_lr) * (1.0 - _decay_progress(o, step, steps)),
    ),
    "wsd": Schedule(
        sentence=tr(
            "the learning rate is constant after warm-up, then decays linearly to its minimum at the end of the "
            "run (warm-up, stable, decay)"
        ),
        citation="Hu et al. 2024",
        formula=lambda o: (
            r"\eta_t = \eta_{\min} + (\eta_0 - \eta_{\min}) \, "
            rf"\min\left(1, \frac{{T - t}}{{T - {o.decay_from:g} \, T}}\right)"
        ),
        rate=_wsd_learning_rate,
        rules=(
            NO_DECAY_OVER,
            Rule(
                ("optimizer.decay_every", "optimizer.schedule"),
                lambda o: o.decay_every is not None,
                "decay_every makes a cosine or linear decay stepwise, but wsd decays at every step after "
                "decay_from; leave out decay_every",
            ),
        ),
        settings=("decay_from",),
    ),
    "step": Schedule(
        sentence=tr("the learning rate is multiplied by a factor at regular intervals"),
        citation="He et al. 2016",
        formula=lambda o: r"\eta_t = \eta_0 \, f^{\lfloor (t - 1) / n \rfloor}",
        rate=lambda o, step, steps: max(
            o.min_lr, o.lr * o.decay_factor ** ((step - 1) // require_steps(o.decay_every))
        ),
        needs={"decay_every": tr('the interval between decays, e.g. "5 epochs"')},
        rules=(NO_DECAY_OVER,),
        settings=("decay_factor",),
    ),
    "inverse-sqrt": Schedule(
        sentence=tr("the learning rate decays as the inverse square root of the step"),
        citation=VASWANI,
        formula=lambda o: r"\eta_t = \eta_0 \sqrt{w / t}",
        # The paper's, but the rate at the end of warm-up is given, not derived from d_model.
        rate=lambda o, step, steps: max(o.min_lr, o.lr * math.sqrt(max(1, require_steps(o.warmup)) / step)),
        rules=(
            Rule(
                ("optimizer.warmup", "optimizer.schedule"),
                lambda o: o.warmup == 0,
                "inverse-sqrt decays from the end of warm-up, so it needs a warm-up, e.g. --set optimizer.warmup=400",
            ),
            NO_DECAY_OVER,
        ),
    ),
}


def learning_rate(config: "OptimizerConfig", step: int, steps: int) -> float:
    """Return the rate of optimizer step `step` (from 1) of `steps`: linear warm-up, then the schedule."""
    warmup = require_steps(config.warmup)
    return config.lr * step / warmup if step <= warmup else SCHEDULES[config.schedule].rate(config, step, steps)


class Optimizer(Scheme):
    """Its formula is one step; m and v with hats are the bias-corrected moments."""

    # Moments per weight: of the layers' matrices, and of all other weights.
    moments: Callable[["OptimizerConfig"], tuple[int, int]] = staticmethod(lambda o: (2, 2))


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": Optimizer(
        sentence=tr("Adam with decoupled weight decay"),
        citation="Loshchilov and Hutter 2019",
        formula=lambda o: (
            r"\theta \leftarrow \theta - "
            r"\eta_t \left( \frac{\hat{m}}{\sqrt{\hat{v}} + \varepsilon} + \lambda \theta \right)"
        ),
        settings=("betas", "eps"),
    ),
    "adam": Optimizer(
        sentence=tr(
            "each weight's step size adapts to the first two moments of its gradient; weight decay is added to "
            "the gradient"
        ),
        citation="Kingma and Ba 2015",
        formula=lambda o: (
            r"\theta \leftarrow \theta - \eta_t \, \frac{\hat{m}}{\sqrt{\hat{v}} + \varepsilon}, \qquad "
            r"g = \nabla \mathcal{L} + \lambda \theta"
        ),
        settings=("betas", "eps"),
    ),
    "muon": Optimizer(
        sentence=tr(
            "orthogonalized momentum, with roughly equal singular values, for the layers' matrices; AdamW for "
            "everything else"
        ),
        citation="Jordan et al. 2024",
        formula=lambda o: (
            r"W \leftarrow W - \eta_t \left( 0.2 \sqrt{\max(m, n)} \, \operatorname{NS}_5(B') + \lambda W \right), "
            rf"\qquad B \leftarrow {o.momentum:g} B + {1 - o.momentum:.3g} \nabla \mathcal{{L}}, \qquad "
            + (rf"B' = {o.momentum:g} B + {1 - o.momentum:.3g} \nabla \mathcal{{L}}" if o.nesterov else "B' = B")
        ),
        settings=("betas", "eps", "momentum", "nesterov"),
        moments=lambda o: (1, 2),
    ),
    "lion": Optimizer(
        sentence=tr(
            "the sign of the momentum: every weight moves by the learning rate, so set it 3 to 10 times "
            "lower than AdamW's, and weight decay higher by the same factor"
        ),
        citation="Chen et al. 2023",
        formula=lambda o: (
            r"\theta \leftarrow \theta - \eta_t \left( \operatorname{sign}\left( \beta_1 m + (1 - \beta_1) g \right) "
            r"+ \lambda \theta \right), \qquad m \leftarrow \beta_2 m + (1 - \beta_2) g"
        ),
        settings=("betas",),
        moments=lambda o: (1, 1),
    ),
    "sgd": Optimizer(
        sentence=tr("stochastic gradient descent with momentum"),
        citation="Sutskever et al. 2013",
        formula=lambda o: (
            r"v \leftarrow \mu v + g, \qquad \theta \leftarrow \theta - \eta_t "
            + (r"(g + \mu v)" if o.nesterov else "v")
            + rf", \qquad g = \nabla \mathcal{{L}} + \lambda \theta, \qquad \mu = {o.momentum:g}"
        ),
        settings=("momentum", "nesterov"),
        moments=lambda o: (1, 1) if o.momentum else (0, 0),
    ),
}


# All schemes, by the setting that selects one.
SCHEMES: Mapping[str, Mapping[str, Scheme]] = {
    "model.position": POSITIONS,
    "model.attention": ATTENTIONS,
    "model.norm": NORMS,
    "model.activation": ACTIVATIONS,
    "optimizer.kind": OPTIMIZERS,
    "optimizer.schedule": SCHEDULES,
}


def describe_scheme(key: str, name: str) -> str:
    """Return a scheme's kind, name, sentence and paper: `position rope: queries … (Su et al. 2021)`."""
    scheme = SCHEMES[key][name]
    kind = key.removesuffix(".kind").rpartition(".")[2]
    return f"{kind} {name}: {scheme.sentence}" + (f" ({scheme.citation})" if scheme.citation else "")
