"""A model's formulas in LaTeX: those that its config computes, with its numbers filled in, and their papers.

Every formula matches `engine.model` term by term; none contains text from users or files.
"""

from collections.abc import Iterator

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.reports.document import Formula

VASWANI = "Vaswani et al. 2017"
KINDS = ("attention", "linear", "visible", "visible-source", "reach", "position", "norm", "layer", "feed-forward")
LOSS = (
    r"\mathcal{L} = -\frac{1}{N} \sum_{t=1}^{N} \ln \left( p_\theta( x_t \mid c_t ) \right), "
    r"\qquad \text{PPL} = e^{\mathcal{L}}"
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


def formulas(variants: list[tuple[str, ModelConfig]], config: RunConfig, language: Language) -> Iterator[Formula]:
    """All variants' formulas, each once, naming the variants unless all share it; the objective is `config`'s."""
    found: dict[str, dict[str, tuple[Formula, list[str]]]] = {kind: {} for kind in KINDS}
    for name, model in variants:
        for kind, formula in _of_model(model):
            found[kind].setdefault(formula.latex, (formula, []))[1].append(name)
    for formula, names in (having for same_kind in found.values() for having in same_kind.values()):
        what = language.say(f"formula.{formula.what}")
        if len(names) < len(variants):
            what = language.say("formula.of", what=what, names=language.joined(names))
        yield Formula(what, formula.latex, formula.source)
    context = "source" if config.model.architecture == "encoder-decoder" else "past"
    yield Formula(language.say(f"formula.loss.{'masked' if config.task.fills_gaps else context}"), LOSS)


def _of_model(m: ModelConfig) -> Iterator[tuple[str, Formula]]:
    """One model's formulas by kind, each with the rest of its phrase's key."""
    if m.attention == "linear":
        under = r"\varphi(q_i)^\top \varphi(k_j)"
        turned = r"\left(R_i \varphi(q_i)\right)^\top \left(R_j \varphi(k_j)\right)"
        over = turned if m.position == "rope" else under
        seen = r"j \le i" if m.causal else "j"
        linear = (
            rf"o_i = \frac{{\sum_{{{seen}}} {over} \, v_j}}{{\sum_{{{seen}}} {under}}}, \qquad "
            r"\varphi(x) = \operatorname{elu}(x) + 1"
        )
        yield "linear", Formula("linear", linear, "Katharopoulos et al. 2020")
    else:
        # A head's output, and the pre-softmax score of query i with key j.
        scale = "" if m.position == "t5" else r"\frac{1}{\sqrt{d_h}}"
        inner = {
            "rope": r"(R_i q_i)^\top (R_j k_j)",
            "xl": r"\left(q_i^\top k_j + q_i^\top W_R r_{i-j} + u^\top k_j + v^\top W_R r_{i-j}\right)",
        }.get(m.position, r"q_i^\top k_j")
        bias = " + b_{ij}" if m.position in ("relative", "alibi", "t5") else ""
        softmax = r"\sum_{j \in S_i} \frac{e^{s_{ij}}}{\sum_{l \in S_i} e^{s_{il}}}"
        attention = rf"o_i = {softmax} \, v_j, \qquad s_{{ij}} = {scale} {inner}{bias}"
        yield "attention", Formula("attention", attention, VASWANI)
        paper = "Child et al. 2019" if m.attention == "sparse" else ""
        yield "visible", Formula(f"visible.{m.attention}", _visible(m, causal=m.causal), paper)
        if m.architecture == "encoder-decoder":  # the encoder of two stacks is never causal
            yield "visible-source", Formula("visible-source", _visible(m, causal=False).replace("T", "T_s"))
    if m.attention == "window":
        step = m.window - 1 if m.causal else m.window // 2
        reach = rf"\text{{reach}} = L \cdot {step} = {m.n_layers} \cdot {step} = {m.n_layers * step}"
        yield "reach", Formula("reach", reach)
    if m.position != "none":
        yield "position", Formula(f"position.{m.position}", _position(m), POSITIONS[m.position])
    if m.norm == "layer":
        beta = r" + \beta" if m.bias else ""
        layer = r"\operatorname{LN}(x) = \gamma \odot \frac{x - \mu(x)}{\sqrt{\sigma^2(x) + \varepsilon}}" + beta
        yield "norm", Formula("norm.layer", layer, "Ba et al. 2016")
    elif m.norm == "rms":
        rms = r"\operatorname{RMS}(x) = \gamma \odot \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \varepsilon}}"
        yield "norm", Formula("norm.rms", rms, "Zhang and Sennrich 2019")

    # What a sublayer f does to the stream.
    norm = {"layer": r"\operatorname{LN}", "rms": r"\operatorname{RMS}", "none": ""}[m.norm]
    wrap = (lambda x: f"{norm}({x})") if norm else (lambda x: x)
    past = "x + " if m.residual else ""
    sum_ = rf"{past}f({wrap('x')})" if m.norm_placement == "pre" else wrap(past + "f(x)")
    placed = m.norm_placement if m.norm != "none" else "none"
    yield "layer", Formula(f"layer.{placed}", rf"x \leftarrow {sum_}")

    names = {"gelu": r"\operatorname{GELU}", "gelu-tanh": r"\operatorname{GELU}", "relu": r"\operatorname{ReLU}"}
    if m.activation == "swiglu":
        inside = r"\left( \operatorname{silu}(x W_g) \odot x W_v \right) W_2"
    else:
        b1, b2 = (" + b_1", " + b_2") if m.bias else ("", "")
        inside = rf"{names[m.activation]}(x W_1{b1}) W_2{b2}"
    yield "feed-forward", Formula("feed-forward", rf"\operatorname{{FFN}}(x) = {inside}", VASWANI)


def _visible(m: ModelConfig, *, causal: bool) -> str:
    near = rf"0 \le i - j < {m.window}" if causal else rf"|i - j| \le {m.window // 2}"
    rules = {
        "global": r"0 \le j \le i" if causal else r"0 \le j < T",
        "window": near,
        "sparse": (r"j \le i,\; " if causal else "")
        + rf"\left( {near} \;\lor\; j \bmod {m.link_every} = {m.link_every - 1} \right)",
    }
    return rf"S_i = \left\{{ j \mid {rules[m.attention]} \right\}}"


def _position(m: ModelConfig) -> str:
    base, clip = f"{m.rope_base:.10g}", m.relative_max_distance
    slopes = rf"m_h = 2^{{-8h/{m.n_heads}}}"  # for a power of two, as in the paper; others interpolate
    if m.n_heads & (m.n_heads - 1):
        slopes = r"m_1 > m_2 > \cdots > 0"
    return {
        "sinusoidal": r"p_{t,2i} = \sin\left(t \, / \, 10000^{2i/d}\right), \qquad "
        r"p_{t,2i+1} = \cos\left(t \, / \, 10000^{2i/d}\right)",
        "learned": r"x_t = e(w_t) + p_t, \qquad p_t \in \mathbb{R}^d",
        "rope": r"R_t = \operatorname{diag}\left( \rho(t\theta_0), \ldots, \rho(t\theta_{d_h/2-1}) \right), \quad "
        r"\rho(\alpha) = \begin{pmatrix} \cos\alpha & -\sin\alpha \\ \sin\alpha & \cos\alpha \end{pmatrix}, \quad "
        rf"\theta_i = {base}^{{-2i/d_h}}",
        "relative": rf"b_{{ij}} = B_{{h,\, \operatorname{{clip}}(j-i,\, -{clip},\, {clip})}}",
        "alibi": rf"b_{{ij}} = -m_h \, |i - j|, \qquad {slopes}",
        "t5": rf"b_{{ij}} = B_{{h,\, \operatorname{{bucket}}(j-i)}}, \qquad {m.t5_buckets} \text{{ buckets}}, \; "
        rf"|j-i|_{{\max}} = {m.t5_max_distance}",
        "xl": r"r_{\delta,2i} = \sin\left(\delta \, / \, 10000^{2i/d}\right), \qquad "
        r"r_{\delta,2i+1} = \cos\left(\delta \, / \, 10000^{2i/d}\right)",
    }[m.position]
