"""How large and how costly a model is, from the config alone. No torch here.

Parameters are counted exactly and equal the built module's; so are the operations of its matrix products.
"""

from dataclasses import dataclass

from engine.config.sections import ModelConfig
from engine.model.kernel import Kernel, training_kernel


@dataclass(frozen=True)
class StackShape:
    """One stack of layers.

    Args:
        layers: how many.
        longest: most tokens it gets.
        causal: whether it may not see its future.
        over_source: whether its layers also look at a source.
        encodes: whether it reads that source.
    """

    layers: int
    longest: int
    causal: bool
    over_source: bool = False
    encodes: bool = False


def stacks(model: ModelConfig) -> list[StackShape]:
    """The stacks of a network: one, or an encoder and a decoder over it."""
    if model.architecture != "encoder-decoder":
        return [StackShape(model.n_layers, model.context_length, model.causal)]
    encoder = StackShape(model.encoder_layers, model.source_tokens, causal=False, encodes=True)
    return [encoder, StackShape(model.n_layers, model.context_length, causal=True, over_source=True)]


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
    built = stacks(model)
    layers = sum(stack.layers for stack in built)
    cross_layers = sum(stack.layers for stack in built if stack.over_source)
    found = {
        "source embedding": (model.source_vocab_size or 0) * d,
        "token embedding": vocab * d,
        "positions": sum(_positions(model, stack.layers, stack.longest) for stack in built),
        "attention": layers * attention,
        "cross-attention": cross_layers * attention,
        "feed-forward": layers * (d * wide + ff * d + bias * (wide + d)),
        "norms": (2 * layers + cross_layers) * norm + (len(built) * norm if model.final_norm else 0),
        "head": (0 if model.tie_embeddings else vocab * d) + (vocab if model.head_bias else 0),
    }
    return {
        name: count for name, count in found.items() if count or name not in ("cross-attention", "source embedding")
    }


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """All parameters, tied ones once."""
    return sum(parameters(model, vocab_size).values())


def flops_per_token(model: ModelConfig, vocab_size: int, rows: int = 1) -> int:
    """Floating-point operations to train on one token: the matrix products of a forward and a backward pass.

    Counts what the kernel of a training step multiplies, 2 operations per product: all T keys of a mask (a fused
    kernel that skips the masked half does half of that), the band of a window with its padded blocks, the chunks of
    linear attention. The backward pass costs two forward passes (Kaplan et al. 2020). A target token of an
    encoder-decoder also pays for its share of the source.

    Args:
        model: the network; rows as long as its context.
        vocab_size: tokens of the tokenizer; `model.vocab_size` wins where it is set.
        rows: per batch; Transformer-XL projects its distances once for all of them.
    """
    d, kv, target = model.d_model, model.kv_width, model.context_length
    once, products = 0.0, float((model.vocab_size or vocab_size) * d * target)
    for stack in stacks(model):
        length = stack.longest
        linear = d * (2 * d + 2 * kv) + d * model.ff_expansion + model.d_ff * d
        kernel = training_kernel(model, stack.causal, length)
        mixing = kernel.filled * _products_a_query(model, stack.causal, kernel)
        if model.position == "xl":
            distances = 2 * kernel.queries - 1 + kernel.keys - kernel.queries
            mixing += kernel.filled * distances * d + kernel.blocks * kernel.keys * d
            once += stack.layers * distances * d * d
        across = 0
        if stack.over_source:
            across = length * (2 * d * d + 2 * model.source_tokens * d) + model.source_tokens * d * 2 * kv
        products += stack.layers * (length * linear + mixing + across)
    # A sinusoid needs no gradient: the projection of distances saves one forward pass.
    return round((3 * 2 * products + 2 * 2 * once / rows) / target)


def _products_a_query(model: ModelConfig, causal: bool, kernel: Kernel) -> int:
    """Multiplications of one query in attention itself, over all heads."""
    if model.attention != "linear":
        return 2 * kernel.keys * model.d_model
    if kernel.name == "reference":
        return 3 * kernel.keys * model.d_model
    within = (3 if model.position == "rope" else 2) * kernel.keys if causal else 0
    return (within + 2 * model.head_width + 1) * model.d_model
