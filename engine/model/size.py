"""How large and how costly a model is, from the config alone. No torch here.

Counts are exact and equal the built module's; FLOPs and memory are the usual estimates, named as such.
"""

from engine.config.schema import ModelConfig, RunConfig

BYTES = 4  # parameters, gradients and optimizer state are fp32


def parameters(model: ModelConfig, vocab_size: int) -> dict[str, int]:
    """Parameters by component; the sum is the module's exact count.

    Args:
        model: the network.
        vocab_size: tokens of the tokenizer; `model.vocab_size` wins where it is set.
    """
    vocab = model.vocab_size or vocab_size
    d, ff, layers, bias = model.d_model, model.d_ff, model.n_layers, int(model.bias)
    norm = d + bias * d
    return {
        "token embedding": vocab * d,
        "positions": model.context_length * d if model.position == "learned" else 0,
        "attention": layers * (4 * d * d + bias * 4 * d),
        "feed-forward": layers * (2 * d * ff + bias * (ff + d)),
        "norms": layers * 2 * norm + (norm if model.final_norm else 0),
        "head": (0 if model.tie_embeddings else vocab * d) + (vocab if model.head_bias else 0),
    }


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """All parameters, tied ones once."""
    return sum(parameters(model, vocab_size).values())


def flops_per_token(model: ModelConfig, vocab_size: int) -> int:
    """Floating-point operations to train on one token: forward and backward (3 × forward; Kaplan et al. 2020).

    Matrix products count 2 operations per weight; attention scores and mixing count 2 · 2 · T · D a layer at the
    full context T (a kernel that skips the masked half does half of that).
    """
    vocab = model.vocab_size or vocab_size
    d, ff = model.d_model, model.d_ff
    weights = model.n_layers * (4 * d * d + 2 * d * ff) + vocab * d
    mixing = model.n_layers * 2 * model.context_length * d
    return 3 * 2 * (weights + mixing)


def memory_bytes(config: RunConfig, vocab_size: int) -> int:
    """An estimate of training memory in bytes: weights, gradients, AdamW's two moments, and stored activations."""
    model = config.model
    vocab = model.vocab_size or vocab_size
    state = 4 * BYTES * parameter_count(model, vocab_size)
    tokens = config.train.batch_size * model.context_length
    # Kept for backward, a token and layer: two norms, q k v, mixed, output, two residuals ≈ 9 D; hidden twice 2 ff.
    per_layer = 9 * model.d_model + 2 * model.d_ff
    if model.attention_dropout > 0.0:  # the fused kernel is out, so weights and their mask are stored
        per_layer += 2 * model.n_heads * model.context_length
    activations = tokens * (model.n_layers * per_layer + 2 * vocab) * BYTES
    return state + activations
