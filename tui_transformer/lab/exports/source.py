"""The program of a reproduction package: plain PyTorch source of only the parts that a run used.

Templates hold each part once; `refusal` names the first setting of a run that they do not cover. The program draws its
initial weights, batches and dropout from the same seeded streams as the engine, so that it trains the same model.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w

from engine.base.errors import join_or
from engine.base.language import tr
from engine.config.keys import flatten, is_bookkeeping
from engine.config.lints import CONDITIONAL_SETTINGS
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, OPTIMIZERS, SCHEDULES
from engine.config.visibility import self_attention
from tui_transformer.lab.template import render_template

# What the templates have, by the setting that chooses it.
COVERED: Mapping[str, tuple[object, ...]] = {
    "model.architecture": ("decoder", "encoder", "encoder-decoder"),
    "model.position": ("none", "sinusoidal", "learned", "rope", "relative", "alibi", "t5", "xl"),
    "model.attention": ("global", "window", "sparse", "linear"),
    "model.norm": ("layer", "rms", "none"),
    "model.norm_placement": ("pre", "post", "sandwich"),
    "model.activation": ("gelu", "gelu-tanh", "relu", "relu2", "silu", "swiglu", "geglu", "geglu-tanh"),
    "model.rope_pairing": ("half", "adjacent"),
    "model.rope_scaling": ("none", "linear", "ntk", "yarn", "llama3"),
    "model.position_init": ("normal", "zero"),
    "model.qk_norm": ("none", "before", "after"),
    "model.gate": ("none", "head", "output"),
    "model.init": ("scaled-normal", "normal", "xavier", "torch"),
    "model.zero_init": ("none", "outputs", "outputs-and-head"),
    "objective.kind": ("next-token", "masked", "translation", "summarization", "classification"),
    "optimizer.kind": ("adamw", "adam", "muon", "lion", "sgd"),
    "optimizer.schedule": ("constant", "cosine", "linear", "wsd", "step", "inverse-sqrt"),
    "optimizer.decay": ("matrices", "matrices-and-positions", "linear-weights", "all"),
    "train.precision": ("auto", "fp32"),
    "train.fp32_matmul": ("exact", "fast"),  # the program's products are exact
}
# Covered with any value, by section.
SUPPORTED_SETTINGS: Mapping[str, str] = {
    "": "seed",
    "model": (
        "causal n_layers n_encoder_layers d_model n_heads n_kv_heads d_ff context_length source_length vocab_size "
        "source_vocab_size classes rope_base rope_part "
        "rope_factor rope_original yarn_fast yarn_slow yarn_gain llama3_low llama3_high relative_max_distance "
        "t5_buckets t5_max_distance embedding_scale window link_every layers final_norm norm_eps residual "
        "parallel layer_scale embedding_mix conv bias head_bias tie_embeddings logit_softcap score_cap sinks "
        "value_mix dropout attention_dropout attention_output_dropout embedding_dropout ff_dropout layer_drop "
        "init_std embedding_std"
    ),
    "data": (
        "corpus corpus_seed corpus_size tokenizer tokenizer_from bpe_size words_size "
        "validation_fraction test_fraction window_stride across_documents lowercase max_length shared_vocabulary"
    ),
    "objective": "mask_fraction label_smoothing z_loss",
    "train": (
        "steps epochs batch_size batch_tokens accumulation clip auto_batch activation_checkpointing compile allow_leak "
        "threads ema"
    ),
    "optimizer": (
        "lr min_lr betas eps weight_decay warmup decay_every decay_over decay_factor decay_from momentum "
        "nesterov matrix_lr embedding_lr head_lr"
    ),
    "evaluation": "every stride select",
    "checkpoint": "average_last",
}
NAMES = {
    "learned": "Learned",
    "rope": "Rope",
    "relative": "RelativeBias",
    "alibi": "Alibi",
    "t5": "T5Bias",
    "xl": "TransformerXL",
}
SHARED_POSITIONS = ("learned", "rope", "relative", "alibi", "t5")  # one module for all layers
FUNCTIONS = {
    "gelu": "F.gelu",
    "gelu-tanh": "F.gelu",
    "relu": "F.relu",
    "relu2": "F.relu",
    "silu": "F.silu",
    "swiglu": "F.silu",
    "geglu": "F.gelu",
    "geglu-tanh": "F.gelu",
}
DECAYED = {
    "matrices": ("matrix", "embedding"),
    "matrices-and-positions": ("matrix", "embedding", "position"),
    "linear-weights": ("matrix",),
    "all": ("matrix", "embedding", "position", "vector"),
}
# Modules that start at zero, by `zero_init`; as in `engine.model.initialisation`.
ZERO = {
    "none": (),
    "outputs": ("attention.output", "feed_forward.output"),
    "outputs-and-head": ("attention.output", "feed_forward.output", "head"),
}
DROPOUTS = ("dropout", "attention_dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout", "layer_drop")


def refusal(config: RunConfig) -> str | None:
    """Say which setting of a run the templates do not cover; None if they cover all."""
    values, usual = flatten(config.dump()), flatten(RunConfig().dump())
    idle = {key for key, acts, _ in CONDITIONAL_SETTINGS if not acts(config)}
    for key, value in values.items():
        if key in COVERED:
            if key not in idle and value not in COVERED[key]:
                known = join_or(map(str, COVERED[key]))
                return tr(
                    "export --to package supports {key} = {known}, not {value}", key=key, known=known, value=value
                )
        elif not _is_supported(key) and key not in idle and not is_bookkeeping(key) and value != usual.get(key):
            return tr("export --to package does not support {key} = {value}", key=key, value=value)
    for key, names in (
        ("model.attention", config.model.distinct_attentions),
        ("model.position", config.model.distinct_positions),
    ):
        for name in names:  # of a pattern of layers too
            if name not in COVERED[key]:
                return tr("export --to package does not support {key} = {value}", key=key, value=name)
    narrow = "window" in config.model.distinct_attentions or config.model.sinks
    if config.trains_on_rows and narrow and config.model.attention_dropout:
        return tr(
            "export --to package supports model.attention_dropout with model.attention = window or model.sinks "
            "only for plain text, which has no padding"
        )
    if config.model.backend == "sdpa" and config.model.attention_dropout:
        return tr(
            "export --to package supports model.attention_dropout only if tui-transformer draws the dropout masks "
            "itself, so not with model.backend = sdpa"
        )
    return None


def _is_supported(key: str) -> bool:
    section, _, name = key.rpartition(".")
    return name in SUPPORTED_SETTINGS.get(section, "").split()


@dataclass(frozen=True)
class ProgramFacts:
    """What a program needs to know of its data beside the config."""

    words: int  # tokens of the text; in pairs, of the targets
    characters: bool  # whether the tokens of a text are its characters, so that the program makes them itself
    tokenizer: str  # what the tokens are
    sources: int | None = None  # tokens of the sources of pairs, if their vocabulary is not the targets'
    in_bytes: bool = False  # whether a token may be a part of a letter
    between: str = ""  # two tokens
    boundary: int | None = None  # the token that ends a document, if windows do not see across it
    prompt: str = ""


def program_files(config: RunConfig, facts: ProgramFacts) -> dict[str, str]:
    """Return the files of `src`, `configs` and `scripts`.

    The config file has the settings that the source reads, and no other.
    """
    m, o, masked = config.model, config.optimizer, config.task.fills_gaps
    kinds = list(_kinds(config))
    used = m.distinct_positions
    own = m.position if m.position in used and m.position in SHARED_POSITIONS else ""
    drops = any(getattr(m, name) > 0.0 for name in DROPOUTS)
    pairs, pools = config.task.corpus == "pairs", config.task.corpus == "labelled"
    smoothing = config.objective.label_smoothing
    constants = ["END"] if facts.boundary is not None or (pairs and smoothing) else []
    functions = ["batch_of"] * config.trains_on_rows + ["hide"] * masked + ["tokens_of"]
    given: dict[str, Any] = {
        "m": m,
        "o": o,
        "two": m.architecture == "encoder-decoder",
        "pads": config.trains_on_rows,
        "pairs": pairs,
        "pools": pools,
        "real_given": ", real=None" if pairs else ", real" if pools else "",
        "real_passed": ", real" if config.trains_on_rows else "",
        "rows": config.task.row_name,
        "asked": ("source", "target") if pairs else ("text", "label"),
        "sample_about": {"translation": "Translate", "summarization": "Summarize"}.get(config.task.name, "Classify")
        + " held-out texts",
        "batch_tokens": config.train.batch_tokens,
        "max_length": config.data.max_length,
        "drops": drops,
        "positions": used,
        "attentions": m.distinct_attentions,
        "kinds": kinds,
        "banded": any(kind["banded"] for kind in kinds),
        "cross_dropout": _dropout_function_name(torch=m.backend != "reference"),
        "gated": m.ff_expanded_width != m.d_ff,
        "activation": FUNCTIONS[m.activation],
        "tables": [(_position_constructor(m, own), "positions")] if own else [],
        "others": [(name, _position_constructor(m, name)) for name in used if name in SHARED_POSITIONS and name != own],
        "pattern": [_layer_constructor(config, kinds, i) for i in range(len(m.layers))] if m.layers else [],
        "embedding_positions": [m.position] if m.position in used else [],
        "zero": _tuple(ZERO[m.zero_init]),
        "about": _model_about(m),
        "layer_about": _layer_about(m),
        "network_about": _network_about(config),
        "init_about": INITS[m.init],
        "masked": masked,
        "words": facts.words,
        "sources": facts.words if facts.sources is None else facts.sources,
        "spread": m.classes or facts.words,
        "stride": config.data.window_stride,
        "characters": facts.characters,
        "boundary": facts.boundary,
        "in_bytes": facts.in_bytes,
        "from_data": ", ".join([*constants, "Batches", *functions]),
        "tokenizer_about": facts.tokenizer,
        "smoothing": smoothing,
        "z_loss": config.objective.z_loss,
        "clip": config.train.clip,
        "decayed": _tuple(DECAYED[o.decay]),
        "optimizer_about": _optimizer_sentence(OPTIMIZERS[o.kind].citation, o.kind),
        "decay_about": f"Weight decay acts on these kinds of weight: {', '.join(DECAYED[o.decay])}.",
        "schedule_about": f"the schedule {o.schedule} ({SCHEDULES[o.schedule].citation})",
        "prompt": facts.prompt,
        "between": facts.between,
        "temperature": config.generation.temperature,
    }
    rows = "rows" if config.trains_on_rows else "data"
    templates = {"model": "model", "data": rows, "train": "train", "plot": "plot"}
    if not masked:
        templates["sample"] = "sample_rows" if config.trains_on_rows else "sample"
    files = {f"src/{name}.py": _tidy(_render(f"{found}.py.j2", given)) for name, found in templates.items()}
    files["scripts/run.sh"] = _render("run.sh.j2", given)
    files["configs/run.toml"] = _used_settings_toml(config, files)
    return files


INITS = {
    "scaled-normal": "Matrices are drawn from a normal distribution, residual outputs narrower (GPT-2).",
    "normal": "Matrices are drawn from a normal distribution.",
    "xavier": "Matrices are drawn uniformly, scaled by their widths (Glorot and Bengio 2010).",
    "torch": "Matrices are drawn as torch does: embeddings N(0, 1), linear maps uniform.",
}


def _kinds(config: RunConfig) -> Iterator[dict[str, Any]]:
    """Yield what the template needs of each kind of layer."""
    m = config.model
    several = len(m.layer_kinds()) > 1
    for kind, _ in m.layer_kinds():
        see, scores = self_attention(kind), ATTENTIONS[kind.attention].has_scores
        name, two = "SelfAttention", m.architecture == "encoder-decoder"
        if several:
            name = "".join(word.capitalize() for word in (kind.attention, kind.position)) + "Attention"
        narrow = see.is_band_faster(config.window_targets, cpu=True) or kind.backend == "banded"
        banded = scores and kind.attention_dropout > 0.0 and narrow and not see.has_gaps
        banded = banded and kind.backend in ("auto", "banded")
        torch = config.trains_on_rows and kind.backend != "reference" and kind.position != "xl" and not kind.score_cap
        drop = _dropout_function_name(torch=torch)
        if two and torch:  # a decoder has no padding
            drop = f"({_dropout_function_name(torch=False)} if self.causal else {drop})"
        dropped = f"{drop}(weights, self.config.attention_dropout)"
        if banded:
            dropped = "dropout_in_blocks(weights, self.config.attention_dropout, self.config.window)"
        found = {
            "model": kind,
            "name": name,
            "scores": scores,
            "shared": kind.position in SHARED_POSITIONS[1:],
            "sees": {"global": "sees_all", "window": "sees_window", "sparse": "sees_sparse"}.get(kind.attention, ""),
            "what": f"{kind.attention}, with {kind.position} positions" if kind.position != "none" else kind.attention,
            "banded": banded,
            "dropped": dropped,
            "takes": ", ".join(
                ["self", "config"]
                + ["scheme"] * (kind.position in SHARED_POSITIONS[1:])
                + ["causal"] * two
                + ["is_first"] * m.value_mix
            ),
        }
        yield found | {"made": _attention_constructor(m, found)}


def _dropout_function_name(*, torch: bool) -> str:
    """The function that drops attention weights. Where rows have padding, the engine leaves that to torch's kernel."""
    return "F.dropout" if torch else "dropout"


def _position_constructor(m: ModelConfig, position: str) -> str:
    """Return the source that constructs a module of positions that all layers share."""
    given = ["config"]
    if m.architecture == "encoder-decoder":
        given += ["longest"] * (position == "learned") + ["causal"] * (position == "t5")
    return f"{NAMES[position]}({', '.join(given)})"


def _attention_constructor(m: ModelConfig, kind: Mapping[str, Any]) -> str:
    position, given = kind["model"].position, ["config"]
    if kind["shared"]:
        given.append("self.positions" if position == m.position else f'self.layer_positions["{position}"]')
    if m.architecture == "encoder-decoder":
        given.append("causal")
    if m.value_mix:
        given.append("i == 0")
    return f"{kind['name']}({', '.join(given)})"


def _layer_constructor(config: RunConfig, kinds: list[dict[str, Any]], i: int) -> str:
    layer = config.model.layer_config(i)
    both = (layer.attention, layer.position)
    return next(str(kind["made"]) for kind in kinds if (kind["model"].attention, kind["model"].position) == both)


def _model_about(m: ModelConfig) -> str:
    what = "A decoder-only Transformer" if m.causal else "An encoder-only Transformer"
    if m.architecture == "encoder-decoder":
        what = "An encoder-decoder Transformer"
    return f"{what} with {', '.join(m.distinct_attentions)} attention and {', '.join(m.distinct_positions)} positions."


def _network_about(config: RunConfig) -> str:
    if config.task.corpus == "labelled":
        what = "A decoder" if config.model.causal else "An encoder"
        return f"{what} whose tokens each vote for a class of their text."
    if config.model.architecture == "encoder-decoder":
        return "A target is written token by token, from all of its source (Vaswani et al. 2017)."
    if config.model.causal:
        return "A decoder: each token is predicted from those before it."
    return "An encoder: hidden tokens are predicted from both sides."


def _layer_about(m: ModelConfig) -> str:
    placed = {
        "pre": "x + f(norm(x)) (Xiong et al. 2020)",
        "post": "norm(x + f(x)) (Vaswani et al. 2017)",
        "sandwich": "x + norm(f(norm(x))) (Ding et al. 2021)",
    }[m.norm_placement]
    if m.norm == "none":
        placed = "x + f(x)"
    if not m.residual:
        placed = placed.replace("x + ", "")
    if m.parallel:
        return "Attention and feed-forward side by side (Wang and Komatsuzaki 2021)."
    if m.architecture == "encoder-decoder":
        return f"Attention (in a decoder also over the source), feed-forward, each as {placed}."
    return f"Attention, then feed-forward, each as {placed}."


def literal(text: str) -> str:
    """Text as a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=True)


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(map(literal, names))}{',' * (len(names) == 1)})"


def _optimizer_sentence(citation: str, name: str) -> str:
    return f"The optimizer {name} ({citation})."


def _render(name: str, given: Mapping[str, Any]) -> str:
    return render_template("exports", f"package/{name}", lambda text: text, {"literal": literal}, **given)


def _tidy(text: str) -> str:
    """Drop imports that the chosen parts do not need, and blank lines in excess."""
    for line, use in (("import math\n", "math."), ("from torch.nn import functional as F\n", "F.")):
        if use not in text.replace(line, ""):
            text = text.replace(line, "")
    return re.sub(r"\n{4,}", "\n\n\n", text).rstrip("\n") + "\n"


def _used_settings_toml(config: RunConfig, files: Mapping[str, str]) -> str:
    """Return the config file of the settings that the source reads."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in files.items():
        if name == "src/model.py":
            uses = [("model", key) for key in re.findall(r"\bconfig\.(\w+)", text)]
        else:
            uses = re.findall(r"\bconfig\.(model|data|objective|train|optimizer|evaluation)\.(\w+)", text)
            uses += [("optimizer", key) for key in re.findall(r"\bo\.(\w+)", text)]
        for section, key in uses:
            value = config.evaluation_stride if key == "stride" else getattr(getattr(config, section), key)
            found.setdefault(section, {})[key] = list(value) if isinstance(value, tuple) else value
    found.setdefault("train", {})["threads"] = config.train.threads or 1
    made = {"seed": config.seed} | {section: dict(sorted(found[section].items())) for section in sorted(found)}
    return tomli_w.dumps(made)
