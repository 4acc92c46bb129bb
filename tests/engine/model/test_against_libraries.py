"""Our networks with the weights of well-known libraries must compute what those compute.

Every parameter is drawn at random, gains and biases too, so that none can be left out without being noticed; nothing
is downloaded. All in float64 unless a library itself rounds to fp32, which is then said.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.config.model import ModelConfig
from engine.config.visibility import Visibility
from engine.model.decoding import Predictor
from engine.model.heads import ForwardContext, SoftmaxSelfAttention
from engine.model.linear_attention import linear_attention
from engine.model.positions import T5, Alibi, Positions, PositionScheme, Rope, Sinusoidal, alibi_slopes
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM, build_model

EXACT = 1e-8  # absolute, of numbers around 1; measured are at most 6e-15, sinusoids of position 100 000 6e-12
VOCAB, LENGTH, WIDTH, HEADS, HIDDEN, LAYERS = 19, 12, 16, 4, 24, 2
Weights = dict[str, Tensor]


def config(**settings) -> ModelConfig:
    sizes = {"d_model": WIDTH, "n_heads": HEADS, "d_ff": HIDDEN, "n_layers": LAYERS, "context_length": LENGTH}
    return ModelConfig.model_validate({"dropout": 0.0, **sizes, **settings})


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tokens(rows: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def randomised(library: nn.Module) -> nn.Module:
    """In float64, dropout off, every parameter drawn."""
    library = library.double().eval()
    for seed, parameter in enumerate(library.parameters()):
        parameter.copy_(0.5 * draw(*parameter.shape, seed=seed))
    return library


@torch.no_grad()
def with_weights(ours: nn.Module, weights: Weights) -> nn.Module:
    """Ours in float64, dropout off, every parameter replaced; none may be missing, none left over."""
    ours = ours.double().eval()
    parameters = dict(ours.named_parameters())
    assert parameters.keys() == weights.keys()
    for name, parameter in parameters.items():
        assert parameter.shape == weights[name].shape, name
        parameter.copy_(weights[name])
    return ours


def joined(*maps: nn.Module) -> Weights:
    """The weights, and biases if any, of maps stacked into one."""
    leaves = [leaf for leaf, _ in maps[0].named_parameters()]
    return {leaf: torch.cat([getattr(part, leaf) for part in maps]) for leaf in leaves}


def under(prefix: str, parts: dict[str, Weights]) -> Weights:
    """{"output": {"weight": w}} under "layers.0." → {"layers.0.output.weight": w}."""
    return {f"{prefix}{part}.{leaf}": value for part, leaves in parts.items() for leaf, value in leaves.items()}


def difference(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape and theirs.std() > 0.05, "nothing to compare"
    return (ours.double() - theirs.double()).abs().max().item()


# --- GPT-2


def test_our_decoder_is_gpt2() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": WIDTH, "n_head": HEADS, "n_inner": HIDDEN, "n_layer": LAYERS, "n_positions": LENGTH}
    settings = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    settings = transformers.GPT2Config(vocab_size=VOCAB, **sizes, **settings)
    theirs = randomised(transformers.GPT2LMHeadModel(settings))
    assert theirs.lm_head.weight is theirs.transformer.wte.weight

    def transposed(conv: nn.Module) -> Weights:  # GPT-2's maps are stored (in, out)
        return {"weight": conv.weight.T, "bias": conv.bias}

    body = theirs.transformer
    outside = {"token_embedding": body.wte, "positions.table": body.wpe, "final_norm": body.ln_f}
    weights = under("", {name: joined(part) for name, part in outside.items()})
    for i, block in enumerate(body.h):
        parts = {
            "attention_norm": joined(block.ln_1),
            "attention.query_key_value": transposed(block.attn.c_attn),
            "attention.output": transposed(block.attn.c_proj),
            "feed_forward_norm": joined(block.ln_2),
            "feed_forward.expand": transposed(block.mlp.c_fc),
            "feed_forward.output": transposed(block.mlp.c_proj),
        }
        weights |= under(f"layers.{i}.", parts)
    model = config(position="learned", activation="gelu-tanh", tie_embeddings=True)
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    with torch.no_grad():
        assert difference(ours(tokens()), theirs(tokens()).logits) <= EXACT


# --- LLaMA

ROPE_BASE, RMS_EPS, KV_HEADS = 500.0, 1e-6, 2


def llama(width: int = WIDTH, length: int = LENGTH, *, name: str = "Llama", **rope) -> nn.Module:
    """A model of LLaMA's family."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": width, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    sizes |= {"intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "max_position_embeddings": length}
    rope = {"rope_type": "default", "rope_theta": ROPE_BASE} | rope
    settings = {"rope_parameters": rope, "rms_norm_eps": RMS_EPS, "tie_word_embeddings": False}
    # sdpa: the written-out attention of transformers takes its softmax in fp32.
    settings |= {"vocab_size": VOCAB, "attn_implementation": "sdpa", "head_dim": width // HEADS}
    made = getattr(transformers, f"{name}Config")(**sizes, **settings)
    return randomised(getattr(transformers, f"{name}ForCausalLM")(made))


def as_our_decoder(theirs: nn.Module, **settings) -> DecoderLM:
    body = theirs.model
    outside = {"token_embedding": body.embed_tokens, "final_norm": body.norm, "head": theirs.lm_head}
    weights = under("", {name: joined(part) for name, part in outside.items()})
    for i, layer in enumerate(body.layers):
        attention, mlp = layer.self_attn, layer.mlp
        parts = {
            "attention_norm": joined(layer.input_layernorm),
            "attention.query_key_value": joined(attention.q_proj, attention.k_proj, attention.v_proj),
            "attention.output": joined(attention.o_proj),
            "feed_forward_norm": joined(layer.post_attention_layernorm),
            "feed_forward.expand": joined(mlp.gate_proj, mlp.up_proj),  # the first half of ours is the gate
            "feed_forward.output": joined(mlp.down_proj),
        }
        if hasattr(attention, "q_norm"):
            parts |= {"attention.query_norm": joined(attention.q_norm), "attention.key_norm": joined(attention.k_norm)}
        weights |= under(f"layers.{i}.", parts)
    model = config(
        position="rope",
        rope_base=ROPE_BASE,
        norm="rms",
        norm_eps=RMS_EPS,
        activation="swiglu",
        bias=False,
        n_kv_heads=KV_HEADS,
        **settings,
    )
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    assert isinstance(ours, DecoderLM)
    return ours


class ExactRMSNorm(nn.Module):
    """LLaMA's norm without its cast to fp32."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.weight = norm.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / (x.square().mean(-1, keepdim=True) + RMS_EPS).sqrt()


class ExactAngles(nn.Module):
    """LLaMA's rotary angles without their cast to fp32, for the features of a head that are rotated."""

    def __init__(self, width: int = WIDTH // HEADS) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        width = self.width
        frequency = torch.tensor([ROPE_BASE ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64)
        angle = (position_ids[..., None] * frequency).repeat(1, 1, 2)
        return angle.cos(), angle.sin()


def without_casts(theirs: nn.Module) -> None:
    theirs.model.rotary_emb = ExactAngles()
    for parent in list(theirs.modules()):
        for name, part in list(parent.named_children()):
            if type(part).__name__.endswith("RMSNorm") and not isinstance(part, ExactRMSNorm):
                setattr(parent, name, ExactRMSNorm(part))


def test_our_decoder_is_llama_with_grouped_keys() -> None:
    theirs = llama()
    ours = as_our_decoder(theirs)
    with torch.no_grad():
        # LLaMA's norms and angles are fp32 in a float64 network too: measured 6e-7 of logits around 1.
        assert difference(ours(tokens()), theirs(tokens()).logits) <= 1e-5


def test_our_decoder_is_llama_to_the_last_digit_without_its_casts_to_fp32() -> None:
    theirs = llama()
    ours = as_our_decoder(theirs)
    without_casts(theirs)
    with torch.no_grad():
        assert difference(ours(tokens()), theirs(tokens()).logits) <= EXACT


# --- Gemma 2


def test_our_decoder_is_gemma_2(monkeypatch) -> None:
    """Its norms, angles and softmax, which it computes in fp32, are made exact."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(nn.functional, "softmax", lambda scores, dim, dtype: scores.softmax(dim))
    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    sizes |= {"intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "max_position_embeddings": LENGTH}
    sizes |= {"head_dim": WIDTH // HEADS, "query_pre_attn_scalar": WIDTH // HEADS}
    caps = {"final_logit_softcapping": 3.0, "attn_logit_softcapping": 2.0}
    settings = {
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE},
        "rms_norm_eps": RMS_EPS,
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 4,
        "attn_implementation": "eager",
    }
    theirs = randomised(
        transformers.Gemma2ForCausalLM(transformers.Gemma2Config(vocab_size=VOCAB, **sizes, **caps, **settings))
    )
    body = theirs.model
    assert theirs.lm_head.weight is body.embed_tokens.weight

    def exact(norm: nn.Module) -> nn.Module:  # its gain is 1 + w
        norm.weight.data += 1.0
        return ExactRMSNorm(norm)

    body.rotary_emb, body.norm = ExactAngles(), exact(body.norm)
    body.embed_tokens.embed_scale = torch.tensor(math.sqrt(WIDTH))
    weights = under("", {"token_embedding": joined(body.embed_tokens), "final_norm": joined(body.norm)})
    for i, layer in enumerate(body.layers):
        for name, norm in [(name, norm) for name, norm in layer.named_children() if name.endswith("layernorm")]:
            setattr(layer, name, exact(norm))
        attention, mlp = layer.self_attn, layer.mlp
        parts = {
            "attention_norm": joined(layer.input_layernorm),
            "attention.query_key_value": joined(attention.q_proj, attention.k_proj, attention.v_proj),
            "attention.output": joined(attention.o_proj),
            "attention_after.norm": joined(layer.post_attention_layernorm),
            "feed_forward_norm": joined(layer.pre_feedforward_layernorm),
            "feed_forward.expand": joined(mlp.gate_proj, mlp.up_proj),
            "feed_forward.output": joined(mlp.down_proj),
            "feed_forward_after.norm": joined(layer.post_feedforward_layernorm),
        }
        weights |= under(f"layers.{i}.", parts)
    model = config(
        position="rope",
        rope_base=ROPE_BASE,
        norm="rms",
        norm_eps=RMS_EPS,
        norm_placement="sandwich",
        activation="geglu-tanh",
        bias=False,
        n_kv_heads=KV_HEADS,
        embedding_scale=True,
        tie_embeddings=True,
        logit_softcap=3.0,
        score_cap=2.0,
        layers=("window", "global"),
        window=4,
    )
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    with torch.no_grad():
        assert difference(ours(tokens()), theirs(tokens()).logits) <= EXACT


# Their names for what slows rope down, and ours.
SLOWED = {
    "linear": ({"factor": 4.0}, {}),
    "yarn": ({"factor": 4.0, "original_max_position_embeddings": 40}, {"rope_original": 40}),
    "yarn-set": (
        {"factor": 3.0, "original_max_position_embeddings": 40, "beta_fast": 4.0, "beta_slow": 0.5}
        | {"attention_factor": 1.3},
        {"rope_original": 40, "rope_factor": 3.0, "yarn_fast": 4.0, "yarn_slow": 0.5, "yarn_gain": 1.3},
    ),
    "llama3": (
        {"factor": 8.0, "original_max_position_embeddings": 80, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
        {"rope_original": 80, "rope_factor": 8.0},
    ),
}


@pytest.mark.parametrize("kind", SLOWED)
def test_our_decoder_is_llama_with_slowed_rotations(kind: str) -> None:
    given, settings = SLOWED[kind]
    name, width, length = kind.partition("-")[0], 16 * HEADS, 160
    theirs = llama(width, length, rope_type=name, **given)
    ours = as_our_decoder(theirs, d_model=width, context_length=length, rope_scaling=name, **settings)
    scheme = ours.layers[0].get_submodule("attention").scheme
    assert isinstance(scheme, Rope) and scheme.rescale is not None
    plain = ROPE_BASE ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    rates, rotary = scheme.rescale(plain), theirs.model.rotary_emb
    assert (rates / plain).min() < 0.4 and (name == "linear" or (rates / plain).max() == 1.0)
    assert (rates / rotary.inv_freq - 1).abs().max() <= 1e-6  # theirs are fp32
    assert scheme.gain == pytest.approx(rotary.attention_scaling, abs=1e-12)

    class Exact(nn.Module):
        """Their rotary angles from these rates, without their cast to fp32."""

        def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
            angle = (position_ids[..., None] * rates).repeat(1, 1, 2)
            return angle.cos() * rotary.attention_scaling, angle.sin() * rotary.attention_scaling

    with torch.no_grad():
        assert difference(ours(tokens(length=length)), theirs(tokens(length=length)).logits) <= 1e-3  # of fp32 angles
        without_casts(theirs)
        theirs.model.rotary_emb = Exact()
        assert difference(ours(tokens(length=length)), theirs(tokens(length=length)).logits) <= EXACT


# --- SmolLM3: LLaMA's layers, every fourth without positions; others see a window here


@pytest.mark.parametrize("step_by_step", [False, True])
def test_our_pattern_of_layers_is_smollm3s(step_by_step: bool) -> None:
    transformers = pytest.importorskip("transformers")
    depth, length = 6, 20
    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    sizes |= {"intermediate_size": HIDDEN, "num_hidden_layers": depth, "max_position_embeddings": length}
    settings = {"rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE}, "rms_norm_eps": RMS_EPS}
    settings |= {"no_rope_layer_interval": 4, "use_sliding_window": True, "sliding_window": 5}
    kinds = [["sliding", "full"][i % 4 == 3] + "_attention" for i in range(depth)]
    settings |= {"layer_types": kinds, "tie_word_embeddings": False, "attn_implementation": "sdpa"}
    tokens_of = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    library = transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(vocab_size=VOCAB, **sizes, **settings, **tokens_of)
    )
    theirs = randomised(library)
    assert theirs.config.no_rope_layers == [1, 1, 1, 0, 1, 1]
    pattern = ["window", "window", "window", "global none"]
    ours = as_our_decoder(theirs, n_layers=depth, context_length=length, layers=pattern, window=5)
    body = theirs.model
    body.norm, body.rotary_emb = ExactRMSNorm(body.norm), ExactAngles()
    for layer in body.layers:
        layer.input_layernorm = ExactRMSNorm(layer.input_layernorm)
        layer.post_attention_layernorm = ExactRMSNorm(layer.post_attention_layernorm)
    text = tokens(length=length)
    with torch.inference_mode():
        expected = theirs(text).logits
        if step_by_step:
            writer = Predictor(ours)
            writer.begin(8)
            made = [writer.feed(text[:, :3]), *(writer.feed(text[:, t : t + 1]) for t in range(3, length))]
            assert difference(torch.stack(made, dim=1), expected[:, 2:]) <= EXACT
        else:
            assert difference(ours(text), expected) <= EXACT


# --- GPT-NeoX


def by_head(of: nn.Module) -> Weights:
    """GPT-NeoX's rows, (heads, query key value, width), as ours: (query key value, heads, width)."""
    shape = HEADS, 3, -1
    return {leaf: part.unflatten(0, shape).transpose(0, 1).flatten(0, 2) for leaf, part in of.named_parameters()}


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_our_self_attention_is_gpt_neoxs_with_a_part_rotated(share: float) -> None:
    transformers = pytest.importorskip("transformers")
    module = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    width = 16 * HEADS
    sizes = {"hidden_size": width, "num_attention_heads": HEADS, "intermediate_size": HIDDEN, "num_hidden_layers": 1}
    rope = {"rope_type": "default", "rope_theta": ROPE_BASE, "partial_rotary_factor": share}
    settings = transformers.GPTNeoXConfig(**sizes, rope_parameters=rope, attn_implementation="sdpa")
    theirs = randomised(module.GPTNeoXAttention(settings, layer_idx=0))
    model = config(position="rope", rope_part=share, rope_base=ROPE_BASE, d_model=width)
    ours = build_model(model, VOCAB, 1).layers[0].get_submodule("attention")

    parts = {"query_key_value": by_head(theirs.query_key_value), "output": joined(theirs.dense)}
    ours, x = with_weights(ours, under("", parts)), draw(2, LENGTH, width)
    at = Positions.consecutive(LENGTH)
    rates = ROPE_BASE ** (-torch.arange(0, model.rope_width, 2, dtype=torch.float64) / model.rope_width)
    angle = (at.index[..., None] * rates).repeat(1, 1, 2)
    with torch.no_grad():
        expected = theirs(x, attention_mask=None, position_embeddings=(angle.cos(), angle.sin()))[0]
        assert difference(ours(x, ForwardContext(at)), expected) <= EXACT
        rotary = module.GPTNeoXRotaryEmbedding(settings)
        assert (rates / rotary.inv_freq - 1).abs().max() <= 1e-6


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_our_parallel_decoder_is_gpt_neox(share: float) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": HIDDEN}
    sizes |= {"num_hidden_layers": LAYERS, "max_position_embeddings": LENGTH}
    rope = {"rope_type": "default", "rope_theta": ROPE_BASE, "partial_rotary_factor": share}
    settings = {"rope_parameters": rope, "use_parallel_residual": True, "attn_implementation": "sdpa"}
    theirs = randomised(
        transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(vocab_size=VOCAB, **sizes, **settings))
    )
    body = theirs.gpt_neox
    body.rotary_emb = ExactAngles(round(share * WIDTH / HEADS))
    outside = {"token_embedding": body.embed_in, "final_norm": body.final_layer_norm, "head": theirs.lm_head}
    weights = under("", {name: joined(part) for name, part in outside.items()})
    for i, layer in enumerate(body.layers):
        parts = {
            "attention_norm": joined(layer.input_layernorm),
            "attention.query_key_value": by_head(layer.attention.query_key_value),
            "attention.output": joined(layer.attention.dense),
            "feed_forward_norm": joined(layer.post_attention_layernorm),
            "feed_forward.expand": joined(layer.mlp.dense_h_to_4h),
            "feed_forward.output": joined(layer.mlp.dense_4h_to_h),
        }
        weights |= under(f"layers.{i}.", parts)
    model = config(position="rope", rope_base=ROPE_BASE, rope_part=share, parallel=True)
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    with torch.no_grad():
        assert difference(ours(tokens()), theirs(tokens()).logits) <= EXACT


# --- Qwen 3


def test_our_decoder_is_qwen3_with_norms_of_queries_and_keys() -> None:
    theirs = llama(name="Qwen3")
    ours = as_our_decoder(theirs, qk_norm="before")
    with torch.no_grad():
        assert difference(ours(tokens()), theirs(tokens()).logits) <= 1e-5  # fp32 in it, as in LLaMA
        without_casts(theirs)
        assert difference(ours(tokens()), theirs(tokens()).logits) <= EXACT


# --- the attention of GPT-OSS and of Gemma 2


def one_layer(name: str, module: str, **settings) -> nn.Module:
    """The attention of a library's first layer."""
    transformers = pytest.importorskip("transformers")
    source = pytest.importorskip(f"transformers.models.{module}.modeling_{module}")
    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}
    sizes |= {"head_dim": WIDTH // HEADS, "num_hidden_layers": 1, "attn_implementation": "eager"}
    made = getattr(transformers, f"{name}Config")(**sizes, **settings)
    return randomised(getattr(source, f"{name}Attention")(made, 0))


def as_our_attention(theirs: nn.Module, **settings) -> SoftmaxSelfAttention:
    parts = {
        "query_key_value": joined(theirs.q_proj, theirs.k_proj, theirs.v_proj),
        "output": joined(theirs.o_proj),
    }
    weights = under("", parts) | ({"softmax.sinks": theirs.sinks} if hasattr(theirs, "sinks") else {})
    model = config(position="rope", rope_base=ROPE_BASE, n_kv_heads=KV_HEADS, **settings)
    ours = with_weights(build_model(model, VOCAB, 1).layers[0].get_submodule("attention"), weights)
    assert isinstance(ours, SoftmaxSelfAttention)
    return ours


def hidden(length: int, window: int | None) -> Tensor:
    """The term that hides the future, and what is out of the window."""
    apart = torch.arange(length)[:, None] - torch.arange(length)
    seen = (apart >= 0) & (apart < (window or length))
    return torch.zeros(length, length, dtype=torch.float64).masked_fill(~seen, -math.inf)


@pytest.mark.parametrize("backend", ["auto", "reference", "banded"])
@pytest.mark.parametrize("window", [None, 4])
def test_our_sinks_are_gpt_oss(window: int | None, backend: str) -> None:
    if window is None and backend == "banded":
        return
    theirs = one_layer("GptOss", "gpt_oss")
    seeing = {"attention": "window", "window": window} if window else {}
    ours, x = as_our_attention(theirs, sinks=True, backend=backend, **seeing), draw(2, LENGTH, WIDTH)
    cos, sin = (part.chunk(2, dim=-1)[0] for part in ExactAngles()(x, torch.arange(LENGTH)[None]))
    with torch.no_grad():
        expected = theirs(x, position_embeddings=(cos, sin), attention_mask=hidden(LENGTH, window))[0]
        assert difference(ours(x, ForwardContext(Positions.consecutive(LENGTH))), expected) <= EXACT


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_our_cap_on_scores_is_gemma2s(backend: str) -> None:
    cap = 1.5  # scores are around 1
    theirs = one_layer("Gemma2", "gemma2", attn_logit_softcapping=cap, query_pre_attn_scalar=WIDTH // HEADS)
    ours, x = as_our_attention(theirs, score_cap=cap, bias=False, backend=backend), draw(2, LENGTH, WIDTH)
    angles = ExactAngles()(x, torch.arange(LENGTH)[None])
    with torch.no_grad():
        expected = theirs(x, position_embeddings=angles, attention_mask=hidden(LENGTH, None))[0]
        # Gemma takes its softmax in fp32.
        assert difference(ours(x, ForwardContext(Positions.consecutive(LENGTH))), expected) <= 1e-5


# --- T5


def t5_attention(**settings) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    module = pytest.importorskip("transformers.models.t5.modeling_t5")
    sizes = {"d_model": WIDTH, "num_heads": HEADS, "d_kv": WIDTH // HEADS, "d_ff": HIDDEN, "num_layers": 1}
    settings = transformers.T5Config(**sizes, **settings, dropout_rate=0.0, attn_implementation="eager")
    return randomised(module.T5Attention(settings, has_relative_attention_bias=True, layer_idx=0))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_buckets", [4, 8, 31, 32, 64])
@pytest.mark.parametrize("max_distance", [40, 128, 200, 1000])
def test_our_buckets_are_t5s(causal: bool, n_buckets: int, max_distance: int) -> None:
    theirs = pytest.importorskip("transformers.models.t5.modeling_t5").T5Attention._relative_position_bucket
    apart = torch.arange(-300, 301)
    expected = theirs(apart, bidirectional=not causal, num_buckets=n_buckets, max_distance=max_distance)
    ours = T5(2, n_buckets, max_distance, causal=causal).bucket(apart)
    assert ours.dtype == torch.long and torch.equal(ours, expected)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_our_self_attention_is_t5s(causal: bool, backend: str) -> None:
    length, buckets = 40, {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20}
    theirs = t5_attention(is_decoder=causal, **buckets)
    model = config(
        architecture="decoder" if causal else "encoder",
        position="t5",
        t5_buckets=8,
        t5_max_distance=20,
        bias=False,
        backend=backend,
    )
    ours = build_model(model, VOCAB, 1).layers[0].get_submodule("attention")
    assert isinstance(ours, SoftmaxSelfAttention)
    parts = {
        "query_key_value": joined(theirs.q, theirs.k, theirs.v),
        "output": joined(theirs.o),
        "scheme.table": joined(theirs.relative_attention_bias),
    }
    ours, x = with_weights(ours, under("", parts)), draw(2, length, WIDTH)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    mask = torch.zeros(length, length, dtype=torch.float64).masked_fill(future, -math.inf)
    with torch.no_grad():
        # T5 leaves the mask to its caller and adds none itself.
        expected = theirs(x, mask=mask if causal else None)[0]
        assert difference(ours(x, ForwardContext(Positions.consecutive(length))), expected) <= EXACT


# --- BERT


def bert() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": HIDDEN}
    sizes |= {"num_hidden_layers": LAYERS, "max_position_embeddings": LENGTH, "vocab_size": VOCAB}
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return randomised(transformers.BertModel(transformers.BertConfig(**sizes, **no_dropout), add_pooling_layer=False))


def as_our_encoder(theirs: nn.Module) -> EncoderLM:
    """What ours has not, the token type and a norm of the embeddings: one joins the tokens, the other is BERT's own."""
    embeddings = theirs.embeddings
    with_type = embeddings.word_embeddings.weight + embeddings.token_type_embeddings.weight[0]
    weights = under("", {"token_embedding": {"weight": with_type}, "head": {"weight": with_type}})
    weights |= under("positions.", {"table": joined(embeddings.position_embeddings)})
    for i, layer in enumerate(theirs.encoder.layer):
        attention = layer.attention
        parts = {
            "attention.query_key_value": joined(attention.self.query, attention.self.key, attention.self.value),
            "attention.output": joined(attention.output.dense),
            "attention_norm": joined(attention.output.LayerNorm),
            "feed_forward.expand": joined(layer.intermediate.dense),
            "feed_forward.output": joined(layer.output.dense),
            "feed_forward_norm": joined(layer.output.LayerNorm),
        }
        weights |= under(f"layers.{i}.", parts)
    model = config(architecture="encoder", position="learned", norm_placement="post", norm_eps=1e-12)
    assert not model.final_norm
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    assert isinstance(ours, EncoderLM)
    ours.embedding_dropout = embeddings.LayerNorm  # stands where dropout does: after the positions, before layer 0
    return ours


SHORT, BY = LENGTH - 5, 5
KEEP = {
    "none": torch.ones(2, LENGTH, dtype=torch.bool),
    "right": torch.tensor([[True] * LENGTH, [True] * SHORT + [False] * BY]),
    "left": torch.tensor([[True] * LENGTH, [False] * BY + [True] * SHORT]),
    "holes": torch.tensor([[True] * LENGTH, [True, False] * (LENGTH // 2)]),
}


@pytest.mark.parametrize("padding", KEEP)
def test_our_encoder_is_bert(padding: str) -> None:
    theirs, keep = bert(), KEEP[padding]
    ours = as_our_encoder(theirs)
    at = Positions.of_tokens(keep) if padding != "none" else Positions.consecutive(LENGTH)
    hidden: list[Tensor] = []
    for layer in ours.layers:
        layer.register_forward_hook(lambda module, given, made: hidden.append(made))
    with torch.no_grad():
        places = at.index.clamp(min=0).expand(2, -1)  # BERT counts slots unless told
        made = theirs(tokens(), attention_mask=keep.long(), position_ids=places, output_hidden_states=True)
        out = ours.run_layers(ours.token_embedding(tokens()), at)
    assert torch.equal(out, hidden[-1])
    for mine, wanted in zip(hidden, made.hidden_states[1:], strict=True):  # their first is the embedding
        assert difference(mine[keep], wanted[keep]) <= EXACT  # what stands at padding is nobody's business


# --- torch.nn.Transformer


def torch_transformer(*, pre_norm: bool) -> nn.Transformer:
    theirs = nn.Transformer(
        WIDTH, HEADS, LAYERS, LAYERS + 1, HIDDEN, dropout=0.0, activation="relu", norm_first=pre_norm, batch_first=True
    )
    # Gradients stay on, else torch may take another kernel of its own than the one written out in Python.
    randomised(theirs)
    return theirs


def of_torch_attention(attention: nn.MultiheadAttention, rows: slice = slice(None)) -> Weights:
    return {"weight": attention.in_proj_weight[rows], "bias": attention.in_proj_bias[rows]}


def of_torch_stack(name: str, stack: nn.Module) -> Weights:
    weights = under(f"{name}.", {"final_norm": joined(stack.norm)})
    for i, layer in enumerate(stack.layers):
        over_source = name == "decoder"
        parts = {
            "attention_norm": joined(layer.norm1),
            "attention.query_key_value": of_torch_attention(layer.self_attn),
            "attention.output": joined(layer.self_attn.out_proj),
            "feed_forward_norm": joined(layer.norm3 if over_source else layer.norm2),
            "feed_forward.expand": joined(layer.linear1),
            "feed_forward.output": joined(layer.linear2),
        }
        if over_source:
            parts |= {
                "cross_attention_norm": joined(layer.norm2),
                "cross_attention.query": of_torch_attention(layer.multihead_attn, slice(WIDTH)),
                "cross_attention.key_value": of_torch_attention(layer.multihead_attn, slice(WIDTH, None)),
                "cross_attention.output": joined(layer.multihead_attn.out_proj),
            }
        weights |= under(f"{name}.layers.{i}.", parts)
    return weights


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_our_encoder_decoder_is_torchs_transformer(placement: str, padded: bool) -> None:
    theirs = torch_transformer(pre_norm=placement == "pre")
    model = config(
        architecture="encoder-decoder",
        position="none",
        norm_placement=placement,
        final_norm=True,
        activation="relu",
        n_layers=LAYERS + 1,
        n_encoder_layers=LAYERS,
    )
    words = {"token_embedding": {"weight": torch.zeros(VOCAB, WIDTH)}, "head": {"weight": torch.zeros(VOCAB, WIDTH)}}
    weights = under("", words) | of_torch_stack("encoder", theirs.encoder) | of_torch_stack("decoder", theirs.decoder)
    ours = with_weights(build_model(model, VOCAB, 1), weights)
    assert isinstance(ours, EncoderDecoder)
    source, target = draw(2, LENGTH, WIDTH, seed=3), draw(2, LENGTH - 3, WIDTH, seed=4)
    keep = KEEP["right" if padded else "none"]
    source_at, at = (
        Positions.of_tokens(keep) if padded else Positions.consecutive(LENGTH),
        Positions.consecutive(LENGTH - 3),
    )
    future = nn.Transformer.generate_square_subsequent_mask(LENGTH - 3, dtype=torch.float64)
    hide = {"src_key_padding_mask": ~keep, "memory_key_padding_mask": ~keep} if padded else {}
    expected = theirs(source, target, tgt_mask=future, tgt_is_causal=True, **hide)
    memory = ours.encoder.run_layers(source, source_at)
    crossed = [layer.get_submodule("cross_attention").keys_and_values(memory) for layer in ours.decoder.layers]
    assert difference(ours.decoder.run_layers(target, at, None, crossed, source_at), expected) <= EXACT


# --- formulas of the papers


def slopes_of_the_authors(n: int) -> list[float]:
    """github.com/ofirpress/attention_with_linear_biases, get_slopes."""
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return slopes_of_the_authors(closest) + slopes_of_the_authors(2 * closest)[0::2][: n - closest]


def test_alibi_slopes_are_the_papers() -> None:
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert alibi_slopes(6) == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]


@pytest.mark.parametrize("n_heads", [*range(1, 34), 64, 71, 112])
def test_alibi_slopes_are_those_of_the_authors_code(n_heads: int) -> None:
    assert alibi_slopes(n_heads) == pytest.approx(slopes_of_the_authors(n_heads), abs=1e-14)


@pytest.mark.parametrize("n_heads", [6, 8])
def test_alibis_bias_is_slope_times_distance(n_heads: int) -> None:
    q_pos, k_pos = np.arange(30, 40), np.arange(40)
    bias = Alibi(n_heads).bias(torch.tensor(q_pos)[None], torch.tensor(k_pos)[None])
    apart = np.abs(q_pos[:, None] - k_pos[None, :])
    expected = -np.array(slopes_of_the_authors(n_heads))[:, None, None] * apart
    assert bias.shape == (1, n_heads, 10, 40) and np.abs(bias[0].numpy() - expected).max() == 0.0  # powers of two


def turned(x: np.ndarray, pos: int) -> np.ndarray:
    """RoFormer, eq. 15: pairs (2i, 2i + 1) as complex numbers."""
    angle = pos * 10_000.0 ** (-np.arange(0, len(x), 2) / len(x))
    pairs = (x[0::2] + 1j * x[1::2]) * np.exp(1j * angle)
    return np.stack((pairs.real, pairs.imag), -1).ravel()


def linear_by_loops(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, pos: np.ndarray, causal: bool, rope: bool
) -> np.ndarray:
    """Katharopoulos et al. 2020, eq. 9; rotation in the numerator only: Su et al. 2021, eq. 19. One row, one head."""

    def features(x: np.ndarray) -> np.ndarray:
        return np.where(x > 0, x + 1.0, np.exp(np.minimum(x, 0.0)))

    out = np.zeros_like(v)
    for i in range(len(q)):
        above, below = np.zeros(v.shape[1]), 0.0
        for j in range(len(k)):
            if min(pos[i], pos[j]) < 0 or (causal and pos[j] > pos[i]):
                continue
            a, b = features(q[i]), features(k[j])
            below += a @ b
            above += ((turned(a, pos[i]) @ turned(b, pos[j])) if rope else (a @ b)) * v[j]
        if below > 0.0:
            out[i] = above / below
    return out


@pytest.mark.parametrize("backend", ["chunked", "reference"])
@pytest.mark.parametrize("rope", [False, True])
@pytest.mark.parametrize("causal", [True, False])
def test_our_linear_attention_is_the_papers_sum(causal: bool, rope: bool, backend: str) -> None:
    length, heads, width = 70, 2, 6  # more than one chunk of 64
    q, k, v = (draw(2, heads, length, width, seed=seed) for seed in (5, 6, 7))
    at = Positions.of_tokens(torch.stack((torch.ones(length, dtype=torch.bool), torch.arange(length) % 9 > 1)))
    scheme = Rope(width, 10_000.0, "adjacent") if rope else PositionScheme()
    ours = linear_attention(q, k, v, at, scheme, causal=causal, backend=backend)
    expected = torch.zeros_like(v)
    for row, head in np.ndindex(2, heads):
        one = (x[row, head].numpy() for x in (q, k, v))
        expected[row, head] = torch.from_numpy(linear_by_loops(*one, at.index[row].numpy(), causal, rope))
    assert difference(ours, expected) <= EXACT


@pytest.mark.parametrize("width", [2, 8, 130])
def test_our_sinusoids_are_the_papers(width: int) -> None:
    pos, feature = np.array([0, 1, 2, 511, 100_000])[:, None], np.arange(width)[None, :]
    angle = pos / np.power(10_000.0, 2 * (feature // 2) / width)
    expected = np.where(feature % 2 == 0, np.sin(angle), np.cos(angle))
    ours = Sinusoidal(width).embed(torch.tensor(pos.T))[0]
    assert difference(ours, torch.tensor(expected)) <= EXACT


@pytest.mark.parametrize(("window", "link_every"), [(1, 2), (4, 8), (16, 16), (20, 7)])
def test_a_causal_sparse_query_sees_its_window_and_every_link_before_it(window: int, link_every: int) -> None:
    q, k = np.arange(100)[:, None], np.arange(100)[None, :]
    seen = Visibility(causal=True, window=window, link_every=link_every)(q, k).sum(1)
    # Links stand at l − 1, 2l − 1, …: ⌊n / l⌋ of them in the n = q − window + 1 places before the window.
    before = np.maximum(0, np.arange(100) - window + 1)
    assert (seen == np.minimum(np.arange(100) + 1, window) + before // link_every).all()


@pytest.mark.parametrize(("window", "link_every"), [(1, 2), (4, 8), (16, 16), (20, 7)])
def test_a_two_sided_sparse_query_sees_its_window_and_every_link(window: int, link_every: int) -> None:
    q, k = np.arange(100)[:, None], np.arange(100)[None, :]
    seen = Visibility(causal=False, window=window, link_every=link_every)(q, k)
    links = set(range(link_every - 1, 100, link_every))
    for at in range(100):
        near = set(range(max(0, at - window // 2), min(100, at + window // 2 + 1)))
        assert set(np.flatnonzero(seen[at]).tolist()) == near | links
