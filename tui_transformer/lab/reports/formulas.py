"""The formulas of a model in LaTeX: those that this very config computes, with its numbers in them, and their papers.

Every formula says what `engine.model` does, term by term; no text of a user or a file is ever part of one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.reports.document import Formula

VASWANI = "Vaswani et al. 2017"


@dataclass(frozen=True)
class Entry:
    """A formula of a config.

    Args:
        key: of what it is, `formula.KEY`.
        latex: from the model; None where the config has none.
        source: the paper.
    """

    key: str
    latex: Callable[[ModelConfig], str | None]
    source: str = ""


def _scores(m: ModelConfig) -> str:
    """The score of a query i with a key j, before the softmax."""
    scale = "" if m.position == "t5" else r"\frac{1}{\sqrt{d_h}}"
    inner = {
        "rope": r"(R_i q_i)^\top (R_j k_j)",
        "xl": r"\left(q_i^\top k_j + q_i^\top W_R r_{i-j} + u^\top k_j + v^\top W_R r_{i-j}\right)",
    }.get(m.position, r"q_i^\top k_j")
    bias = " + b_{ij}" if m.position in ("relative", "alibi", "t5") else ""
    return rf"s_{{ij}} = {scale} {inner}{bias}"


def _attention(m: ModelConfig) -> str | None:
    if m.attention == "linear":
        return None
    return r"o_i = \sum_{j \in S_i} \frac{e^{s_{ij}}}{\sum_{l \in S_i} e^{s_{il}}} \, v_j, \qquad " + _scores(m)


def _linear(m: ModelConfig) -> str | None:
    if m.attention != "linear":
        return None
    turned = m.position == "rope"
    over = (
        r"\left(R_i \varphi(q_i)\right)^\top \left(R_j \varphi(k_j)\right)"
        if turned
        else r"\varphi(q_i)^\top \varphi(k_j)"
    )
    seen = r"j \le i" if m.causal else "j"
    under = r"\varphi(q_i)^\top \varphi(k_j)"
    return (
        rf"o_i = \frac{{\sum_{{{seen}}} {over} \, v_j}}{{\sum_{{{seen}}} {under}}}, \qquad "
        r"\varphi(x) = \operatorname{elu}(x) + 1"
    )


def _visible(m: ModelConfig) -> str | None:
    """Which keys a query i sees."""
    return _seen(m, causal=m.causal) if m.attention != "linear" else None


def _visible_source(m: ModelConfig) -> str | None:
    """The same in the encoder of two stacks, which is never causal."""
    both = m.architecture == "encoder-decoder" and m.attention != "linear"
    return _seen(m, causal=False).replace("T", "T_s") if both else None


def _seen(m: ModelConfig, *, causal: bool) -> str:
    near = rf"0 \le i - j < {m.window}" if causal else rf"|i - j| \le {m.window // 2}"
    rules = {
        "global": r"0 \le j \le i" if causal else r"0 \le j < T",
        "window": near,
        "sparse": (r"j \le i,\; " if causal else "")
        + rf"\left( {near} \;\lor\; j \bmod {m.link_every} = {m.link_every - 1} \right)",
    }
    return rf"S_i = \left\{{ j \mid {rules[m.attention]} \right\}}"


def _reach(m: ModelConfig) -> str | None:
    if m.attention != "window":
        return None
    step = m.window - 1 if m.causal else m.window // 2
    return rf"\text{{reach}} = L \cdot {step} = {m.n_layers} \cdot {step} = {m.n_layers * step}"


def _position(m: ModelConfig) -> str | None:
    base = f"{m.rope_base:.10g}"
    return {
        "none": None,
        "sinusoidal": r"p_{t,2i} = \sin\left(t \, / \, 10000^{2i/d}\right), \qquad "
        r"p_{t,2i+1} = \cos\left(t \, / \, 10000^{2i/d}\right)",
        "learned": r"x_t = e(w_t) + p_t, \qquad p_t \in \mathbb{R}^d",
        "rope": r"R_t = \operatorname{diag}\left( \rho(t\theta_0), \ldots, \rho(t\theta_{d_h/2-1}) \right), \quad "
        r"\rho(\alpha) = \begin{pmatrix} \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{pmatrix}, \quad "
        rf"\theta_i = {base}^{{-2i/d_h}}",
        "relative": rf"b_{{ij}} = B_{{h,\, \operatorname{{clip}}(j-i,\, -{m.relative_max_distance},\, "
        rf"{m.relative_max_distance})}}",
        "alibi": r"b_{ij} = -m_h \, |i - j|, \qquad " + _slopes(m),
        "t5": rf"b_{{ij}} = B_{{h,\, \operatorname{{bucket}}(j-i)}}, \qquad {m.t5_buckets} \text{{ buckets}}, \; "
        rf"|j-i|_{{\max}} = {m.t5_max_distance}",
        "xl": r"r_{\delta,2i} = \sin\left(\delta \, / \, 10000^{2i/d}\right), \qquad "
        r"r_{\delta,2i+1} = \cos\left(\delta \, / \, 10000^{2i/d}\right)",
    }[m.position]


def _slopes(m: ModelConfig) -> str:
    """A power of two has the paper's series; other numbers of heads fill in between."""
    power = m.n_heads & (m.n_heads - 1) == 0
    return rf"m_h = 2^{{-8h/{m.n_heads}}}" if power else r"m_1 > m_2 > \cdots > 0"


def _norm(m: ModelConfig) -> str | None:
    beta = r" + \beta" if m.bias else ""
    return {
        "layer": r"\operatorname{LN}(x) = \gamma \odot \frac{x - \mu(x)}{\sqrt{\sigma^2(x) + \varepsilon}}" + beta,
        "rms": r"\operatorname{RMS}(x) = \gamma \odot \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \varepsilon}}",
        "none": None,
    }[m.norm]


def _layer(m: ModelConfig) -> str:
    """What a sublayer f does to the stream."""
    norm = {"layer": r"\operatorname{LN}", "rms": r"\operatorname{RMS}", "none": ""}[m.norm]
    wrap = (lambda x: f"{norm}({x})") if norm else (lambda x: x)
    past = "x + " if m.residual else ""
    if m.norm_placement == "pre":
        return rf"x \leftarrow {past}f({wrap('x')})"
    return rf"x \leftarrow {wrap(past + 'f(x)')}"


def _feed_forward(m: ModelConfig) -> str:
    b1, b2 = (" + b_1", " + b_2") if m.bias else ("", "")
    if m.activation == "swiglu":
        gate = r"\left( \operatorname{silu}(x W_g) \odot x W_v \right) W_2"
        return rf"\operatorname{{FFN}}(x) = {gate}"
    name = {"gelu": r"\operatorname{GELU}", "gelu-tanh": r"\operatorname{GELU}", "relu": r"\operatorname{ReLU}"}
    return rf"\operatorname{{FFN}}(x) = {name[m.activation]}(x W_1{b1}) W_2{b2}"


ENTRIES = (
    Entry("attention", _attention, VASWANI),
    Entry("linear", _linear, "Katharopoulos et al. 2020"),
    Entry("visible", _visible),
    Entry("visible-source", _visible_source),
    Entry("reach", _reach),
    Entry("position", _position),
    Entry("norm", _norm),
    Entry("layer", _layer),
    Entry("feed-forward", _feed_forward, VASWANI),
)
POSITIONS = {
    "sinusoidal": VASWANI,
    "learned": "Gehring et al. 2017",
    "rope": "Su et al. 2021",
    "relative": "Shaw et al. 2018",
    "alibi": "Press et al. 2022",
    "t5": "Raffel et al. 2020",
    "xl": "Dai et al. 2019",
}
NORMS = {"layer": "Ba et al. 2016", "rms": "Zhang and Sennrich 2019"}
SPARSE = "Child et al. 2019"
LOSS = (
    r"\mathcal{L} = -\frac{1}{N} \sum_{t=1}^{N} \ln \left( p_\theta( x_t \mid c_t ) \right), "
    r"\qquad \text{PPL} = e^{\mathcal{L}}"
)


def formulas(variants: list[tuple[str, ModelConfig]], config: RunConfig, language: Language) -> Iterator[Formula]:
    """Those of all variants, each once, with whose it is where not all have it.

    Args:
        variants: names and models.
        config: of the first, for its objective.
        language: for what each is.
    """
    for entry in ENTRIES:
        found: dict[str, list[tuple[str, ModelConfig]]] = {}
        for name, model in variants:
            latex = entry.latex(model)
            if latex is not None:
                found.setdefault(latex, []).append((name, model))
        for latex, having in found.items():
            what = _what(entry.key, having[0][1], language)
            if len(having) < len(variants):
                names = language.joined([name for name, _ in having])
                what = language.say("formula.of", what=what, names=names)
            yield Formula(what, latex, _source(entry, having[0][1]))
    yield Formula(language.say(f"formula.loss.{_context(config)}"), LOSS)


def _what(key: str, model: ModelConfig, language: Language) -> str:
    placed = model.norm_placement if model.norm != "none" else "none"
    details = {"position": model.position, "visible": model.attention, "norm": model.norm, "layer": placed}
    detail = details.get(key)
    return language.say(f"formula.{key}" + (f".{detail}" if detail else ""))


def _source(entry: Entry, model: ModelConfig) -> str:
    if entry.key == "position":
        return POSITIONS.get(model.position, "")
    if entry.key == "norm":
        return NORMS.get(model.norm, "")
    if entry.key == "visible":
        return SPARSE if model.attention == "sparse" else ""
    return entry.source


def _context(config: RunConfig) -> str:
    """What a token is predicted from: its past, what surrounds it, or a source and its past."""
    if config.objective.kind == "masked":
        return "masked"
    return "source" if config.model.architecture == "encoder-decoder" else "past"
