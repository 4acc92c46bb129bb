"""How much memory a training step takes, from the config alone: an account of what is there at its peak. No torch here.

    weights, gradients, AdamW's two moments    4 numbers a parameter
    what layers keep for the backward pass     `_attention`, `_cross_attention`, `_feed_forward`, each around a norm
    log probabilities and their gradients      3 numbers a token of the vocabulary and place
    gradients of the layer that is computed    2 tensors as large as its widest

Numbers are fp32, which is an upper bound where a GPU computes in bf16. A CPU's process holds more than these tensors:
its allocator leaves gaps between what is kept and what is freed, `SLACK`. docs/benchmarks.md has estimates beside
measured peaks. Notation: D model width, H heads, T keys; all counts are of numbers a token, unless they say otherwise.
"""

from dataclasses import dataclass
from typing import Any

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.model.kernel import training_kernel
from engine.model.size import parameter_count, stacks

BYTES = 4
STATE = 4  # weights, gradients, two moments
LOGITS = 3  # log probabilities, their gradient, the logits' gradient
WORKING = 2  # the gradient that comes in, and the one that goes out
SLACK = 1.35  # resident over allocated, of glibc with freed memory kept; measured 1.15 to 1.6
CONTENT = 2  # a Transformer-XL score is looked up among the distances of all keys, before and after: 2 T − 1


@dataclass(frozen=True)
class BatchShape:
    """The largest batch that a step has.

    Args:
        rows: B.
        target: T, tokens of a row that is predicted or read.
        source: S, tokens of a source; 0 without one.
    """

    rows: int
    target: int
    source: int = 0

    @classmethod
    def of(cls, config: RunConfig) -> "BatchShape":
        """The batch of a config; for rows of different lengths, which only the data knows, an upper bound."""
        target = config.model.context_length if config.on_rows else config.window_targets
        source = config.model.source_tokens if config.has_source else 0
        budget = config.train.batch_tokens  # of the longer side
        rows = config.train.batch_size if budget is None else max(1, budget // max(target, source))
        return cls(rows, target, source)

    @classmethod
    def of_batch(cls, batch: Any) -> "BatchShape":
        """The shape of an `engine.data.objectives.Batch`."""
        source = 0 if batch.source is None else batch.source.shape[1]
        return cls(batch.tokens.shape[0], batch.tokens.shape[1], source)


def memory_bytes(config: RunConfig, vocab_size: int, shape: BatchShape | None = None, *, slack: float = SLACK) -> int:
    """An estimate of a training step's peak, in bytes, beyond what the process held before the model was built.

    Args:
        config: of the run.
        vocab_size: tokens of the tokenizer; `model.vocab_size` wins where it is set.
        shape: of the largest batch, where the data is known.
        slack: of the allocator; 1 counts tensors alone, as a GPU's allocator does.
    """
    shape = shape or BatchShape.of(config)
    state = STATE * parameter_count(config.model, vocab_size)
    return int(BYTES * (state + slack * activations(config, vocab_size, shape)))


def activations(config: RunConfig, vocab_size: int, shape: BatchShape) -> float:
    """Numbers beside the state at the peak: kept for the backward pass, and computed with."""
    logits = shape.rows * shape.target * (config.model.vocab_size or vocab_size)
    return kept(config, shape) + max(LOGITS * logits, WORKING * _widest(config, shape))


def kept(config: RunConfig, shape: BatchShape) -> float:
    """Numbers that the forward pass keeps for the backward one, without the logits."""
    model, d, total = config.model, config.model.d_model, 0.0
    for stack in stacks(model):
        length = shape.target if stack.causal or not shape.source else shape.source
        tokens = shape.rows * length
        padded = stack.encodes and config.on_rows
        layer = _norm(model) + _attention(config, stack.causal, length, padded=padded)
        layer += _norm(model) + _feed_forward(model)
        across = 0.0
        if stack.over_source:
            layer += _norm(model)
            across = _cross_attention(config, shape)
        per_layer = tokens * layer + across + _mask(config, stack.causal, length, padded=padded) * length
        if config.train.activation_checkpointing:  # what goes into each layer, and all of one
            total += stack.layers * tokens * d + per_layer
        else:
            total += stack.layers * per_layer
        total += tokens * (_norm(model) if model.final_norm else d)
        total += tokens * d * (model.embedding_dropout > 0.0)
    return total


def _norm(model: ModelConfig) -> float:
    """What goes into a norm, and what comes out of it and into a product."""
    return model.d_model * {"layer": 2, "rms": 3, "none": 1}[model.norm]


def _feed_forward(model: ModelConfig) -> float:
    """The features before the activation, after it, and what dropout makes of them."""
    ff, dropped = model.d_ff, model.ff_dropout > 0.0
    before = {"relu": 0, "swiglu": 3 * ff}.get(model.activation, ff)  # ReLU's gradient follows from its result
    after = 2 * ff + (ff if model.activation == "relu" else 0) if dropped else ff
    return before + after + model.d_model * (model.dropout > 0.0)


def _attention(config: RunConfig, causal: bool, length: int, *, padded: bool) -> float:
    """Queries, keys, values, weights where a kernel keeps them, what they mix to, and a mask of dropout."""
    model, d = config.model, config.model.d_model
    kernel = training_kernel(model, causal, length, padded=padded)
    filled, rotated, dropped = kernel.filled / length, model.position == "rope", model.attention_dropout > 0.0
    scores = filled * model.n_heads * kernel.keys
    out = d + d * (model.attention_output_dropout > 0.0)
    if kernel.name == "sdpa":
        joined = d + 2 * model.kv_width  # one tensor, of which queries, keys and values are parts
        repeated = model.kv_heads < model.n_heads  # keys and values, for the queries that share them
        held = 3 * d if rotated and repeated else joined + 2 * d * (rotated or repeated)
        return out + held + d * rotated + model.n_heads  # what rotated heads mix to is put in another order once more
    if kernel.name == "chunked":  # features and rotated ones, perhaps cut and filled up; values, numerators
        cut = kernel.filled > length
        features = (10 if cut else 8.5) if rotated else (7.5 if cut else 6.5)
        return out + (scores if causal else 0) + features * d
    if kernel.name == "banded" and model.position != "xl":
        bands = d + 2 * d * kernel.keys / kernel.queries
        return out + filled * bands + scores * (1 + dropped)
    if kernel.name == "math":
        return out + 3 * d + scores * (2.25 if dropped else 1)  # its mask of dropout has a byte a number
    if kernel.name == "dense":
        return out + 3 * d + scores * (3 if dropped else 1)
    copies = (7 if model.position == "xl" else 3) * d * max(1.0, kernel.keys / kernel.queries)
    return out + copies + scores * _reference_weights(model)


def _mask(config: RunConfig, causal: bool, length: int, *, padded: bool) -> float:
    """What is added to the scores, of one text for all rows: numbers a query."""
    model = config.model
    kernel = training_kernel(model, causal, length, padded=padded)
    if model.position in ("relative", "t5", "xl") and kernel.name != "banded":
        return 2.5 * length  # which row of its table each score takes, 8 bytes each
    if kernel.name != "sdpa":
        return 0.0
    if model.position == "alibi":
        return model.n_heads * length
    return 2.0 * length if model.attention != "global" or padded else 0.0


def _reference_weights(model: ModelConfig) -> float:
    """Tensors as large as the scores: the softmax, what is visible of it, what dropout makes of that."""
    return (3 if model.attention_dropout > 0.0 else 2) + (CONTENT if model.position == "xl" else 0)


def _cross_attention(config: RunConfig, shape: BatchShape) -> float:
    """Of one layer and a whole batch: queries and output of each target, keys and values of each source."""
    model, d = config.model, config.model.d_model
    targets, sources = shape.rows * shape.target, shape.rows * shape.source
    dropped = model.attention_dropout > 0.0
    weights = 0.0
    if model.backend == "reference":
        weights = 3 if dropped else 2
    elif dropped:
        weights = 2.25 if config.on_rows or shape.target != shape.source else 3
    repeated = model.kv_heads < model.n_heads and not weights
    of_source = 2 * (d if weights else model.kv_width) + (2 * d if repeated else 0)
    of_target = 2 * d + d * (model.attention_output_dropout > 0.0) + model.n_heads * shape.source * weights
    return targets * of_target + sources * of_source


def _widest(config: RunConfig, shape: BatchShape) -> float:
    """Numbers of the widest tensor of a layer, over a batch."""
    model, widest = config.model, 0.0
    for stack in stacks(model):
        length = shape.target if stack.causal or not shape.source else shape.source
        kernel = training_kernel(model, stack.causal, length, padded=stack.encodes and config.on_rows)
        scores = model.n_heads * kernel.keys * kernel.writes_scores * (CONTENT if model.position == "xl" else 1)
        widest = max(widest, shape.rows * length * max(model.ff_expansion, 3 * model.d_model, scores))
    return widest
