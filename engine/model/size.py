"""How large and how costly a model is, from the config alone. No torch here.

Counts are exact and equal the built module's; FLOPs and memory are the usual estimates, named as such.
"""

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig

BYTES = 4  # parameters, gradients and optimizer state are fp32


def _stacks(model: ModelConfig) -> list[tuple[int, int, bool, bool]]:
    """(layers, longest, causal, over a source) of each stack."""
    decoder = (model.n_layers, model.context_length, model.causal, model.architecture == "encoder-decoder")
    if model.architecture != "encoder-decoder":
        return [decoder]
    return [(model.encoder_layers, model.source_tokens, False, False), decoder]


def _positions(model: ModelConfig, layers: int, longest: int) -> int:
    d = model.d_model
    sizes = {
        "learned": longest * d,
        "relative": (2 * model.relative_max_distance + 1) * model.n_heads,
        "t5": model.t5_buckets * model.n_heads,
        "xl": layers * (d * d + 2 * d),
    }
    return sizes.get(model.position, 0)


def parameters(model: ModelConfig, vocab_size: int) -> dict[str, int]:
    """Parameters by component; the sum is the module's exact count.

    Args:
        model: the network.
        vocab_size: tokens of the tokenizer; `model.vocab_size` wins where it is set.
    """
    vocab = model.vocab_size or vocab_size
    d, ff, wide, bias = model.d_model, model.d_ff, model.ff_expansion, int(model.bias)
    joined = 2 * d + 2 * model.kv_width  # rows of the query, key, value and output maps
    attention = d * joined + bias * joined
    norm = {"layer": d + bias * d, "rms": d, "none": 0}[model.norm]
    stacks = _stacks(model)
    layers = sum(n for n, *_ in stacks)
    cross_layers = sum(n for n, _, _, over_source in stacks if over_source)
    found = {
        "source embedding": (model.source_vocab_size or 0) * d,
        "token embedding": vocab * d,
        "positions": sum(_positions(model, n, longest) for n, longest, *_ in stacks),
        "attention": layers * attention,
        "cross-attention": cross_layers * attention,
        "feed-forward": layers * (d * wide + ff * d + bias * (wide + d)),
        "norms": (2 * layers + cross_layers) * norm + (len(stacks) * norm if model.final_norm else 0),
        "head": (0 if model.tie_embeddings else vocab * d) + (vocab if model.head_bias else 0),
    }
    return {
        name: count for name, count in found.items() if count or name not in ("cross-attention", "source embedding")
    }


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """All parameters, tied ones once."""
    return sum(parameters(model, vocab_size).values())


def _keys_seen(model: ModelConfig, length: int) -> int:
    """Keys a query is multiplied with, at most; block-sparse attention computes them all and masks most."""
    if model.attention == "window":
        return min(length, model.window)
    if model.attention == "linear":
        return min(length, 2 * model.head_width)  # a chunk's sums instead of its keys
    return length


def flops_per_token(model: ModelConfig, vocab_size: int) -> int:
    """Floating-point operations to train on one token: forward and backward (3 × forward; Kaplan et al. 2020).

    Matrix products count 2 operations per weight; attention scores and mixing count 2 · 2 · K · D a layer for K keys:
    the full context T (a kernel that skips the masked half does half of that), a window, or for linear attention the
    size of its sums. A target token of an encoder-decoder also pays for its share of the source.
    """
    vocab = model.vocab_size or vocab_size
    d = model.d_model
    joined = 2 * d + 2 * model.kv_width
    per_layer = d * joined + d * model.ff_expansion + model.d_ff * d
    total = vocab * d
    for layers, length, _, over_source in _stacks(model):
        share = length / model.context_length
        cross = d * joined + 2 * model.source_tokens * d if over_source else 0
        total += int(share * layers * (per_layer + cross + 2 * _keys_seen(model, length) * d))
    return 3 * 2 * total


def memory_bytes(config: RunConfig, vocab_size: int) -> int:
    """An estimate of training memory in bytes: weights, gradients, AdamW's two moments, and stored activations."""
    model = config.model
    vocab = model.vocab_size or vocab_size
    state = 4 * BYTES * parameter_count(model, vocab_size)
    longest = max(model.context_length, model.source_tokens if model.architecture == "encoder-decoder" else 0)
    budget = config.train.batch_tokens  # of the longer side
    batch = config.train.batch_size if budget is None else budget / longest
    # Kept for backward, a token and layer: two inputs, two norms, q k v, mixed: 8 D; hidden before and after: 2 ff.
    per_layer = 8 * model.d_model + 2 * model.ff_expansion
    masks = (model.dropout > 0.0) + (model.attention_output_dropout > 0.0)
    per_layer += masks * model.d_model + (model.ff_dropout > 0.0) * model.d_ff
    if model.attention_dropout > 0.0:  # the fused kernel is out: weights, their mask, and what it leaves
        per_layer += 3 * model.n_heads * _keys_seen(model, model.context_length)
    layer_tokens = sum(layers * batch * length for layers, length, *_ in _stacks(model))
    kept = layer_tokens * per_layer
    if config.train.activation_checkpointing:  # each layer's input, and all of one layer
        kept = layer_tokens * model.d_model + max(batch * length for _, length, *_ in _stacks(model)) * per_layer
    return state + int(kept + 2 * batch * model.context_length * vocab) * BYTES
