"""A model's size and cost, from the config alone: parameters, operations, memory. No torch here.

Parameters are counted exactly, as in the built module; so are the operations of its matrix products. Memory is an
itemised estimate of a training step's peak:

    weights, gradients, the optimizer's moments    4 numbers per parameter with Adam's two moments
    what layers keep for the backward pass         `_saved_by_attention` and so on, each around a norm
    log probabilities and their gradients          3 numbers per token and vocabulary entry
    gradients of the current layer                 2 tensors as large as its widest

Numbers are fp32, an upper bound where a GPU computes in bf16. A process on a CPU holds more: its allocator leaves gaps,
`SLACK` (docs/benchmarks.md). `engine.model.attention` chooses a kernel call by call, but here it must be known before
anything is built; tests check that the two agree. Notation: D model width, H heads, T keys; numbers per token.
"""

from dataclasses import dataclass
from typing import Any

from engine.base.language import Message
from engine.config.model import ModelConfig, active_parts
from engine.config.schema import RunConfig
from engine.config.schemes import ACTIVATIONS, ATTENTIONS, NORMS, OPTIMIZERS, POSITIONS, Kernel, StackShape
from engine.config.visibility import CHUNK, SMALLEST_BLOCK, self_attention


def training_kernel(
    model: ModelConfig, causal: bool, length: int, *, padded: bool = False, gpu: bool = False
) -> Kernel:
    """Return the kernel of a stack's self-attention over `length` tokens; `padded`: rows differ in length."""
    if not ATTENTIONS[model.attention].has_scores:
        chunk = min(CHUNK, length) if causal else length
        if model.backend == "reference":
            return Kernel("reference", 1, length, length)
        return Kernel("chunked", -(-length // chunk), chunk, chunk)
    see, wanted, able = self_attention(model, causal=causal), model.backend, ATTENTIONS[model.attention].backends
    reach = see.reach(1) if "banded" in able else None
    if reach is not None and (wanted == "banded" or (wanted == "auto" and see.is_band_faster(length, cpu=not gpu))):
        before = min(reach, length - 1)
        block = min(max(SMALLEST_BLOCK, before), length)
        return Kernel("banded", -(-length // block), block, before + block + (0 if causal else before))
    dropped, position = model.attention_dropout > 0.0, POSITIONS[model.position]
    fused = fused_kernel_support(model)
    if wanted == "reference" or position.acts_on == "content" or "sdpa" not in able:
        name = "reference"
    elif wanted == "dense" or (wanted == "auto" and (dropped or fused != "as it is") and not padded and not gpu):
        name = "dense"
    elif fused == "no":
        name = "reference"
    elif gpu:  # its fused kernels also handle dropout and learned masks
        name = "sdpa"
    else:
        learned_mask = position.learned and position.acts_on == "scores"
        name = "math" if dropped or fused == "in the mask" or learned_mask else "sdpa"
    return Kernel(name, 1, length, length)


def fused_kernel_support(model: ModelConfig) -> str:
    """Return how torch's fused kernel supports the active parts: the least of theirs; see `Part.fused_support`."""
    found = {row.fused_support for row in active_parts(model).values()}
    return next((how for how in ("no", "in the mask") if how in found), "as it is")


def stacks(model: ModelConfig) -> list[StackShape]:
    if model.architecture != "encoder-decoder":
        return [StackShape(model.n_layers, model.context_length, model.causal)]
    encoder = StackShape(model.encoder_layers, model.source_tokens, causal=False, encodes=True)
    return [encoder, StackShape(model.n_layers, model.context_length, causal=True, over_source=True)]


def parameters(model: ModelConfig, vocab_size: int) -> dict[str, int]:
    """Count parameters by component; the sum is exact. `model.vocab_size` overrides `vocab_size`."""
    vocab = model.vocab_size or vocab_size
    d, ff, wide, bias = model.d_model, model.d_ff, model.ff_expanded_width, int(model.bias)
    joined = 2 * d + 2 * model.kv_width  # rows of the query, key, value and output projections
    attention = d * joined + bias * joined
    norm = NORMS[model.norm].parameters(model)
    built = stacks(model)
    layers = sum(stack.layers for stack in built)
    cross_layers = sum(stack.layers for stack in built if stack.over_source)
    found = {
        Message("source embedding"): (model.source_vocab_size or 0) * d,
        Message("token embedding"): vocab * d,
        Message("positions"): sum(_position_parameters(model, stack) for stack in built),
        Message("attention"): layers * attention,
        Message("cross-attention"): cross_layers * attention,
        Message("feed-forward"): layers * (d * wide + ff * d + bias * (wide + d)),
        Message("norms"): (2 * layers + cross_layers) * norm * (2 if model.norm_placement == "sandwich" else 1)
        + (len(built) * norm if model.final_norm else 0),
        Message("parts"): sum(row.parameters(model, stack) for row in active_parts(model).values() for stack in built),
        Message("head"): logit_count(model, vocab) * ((not model.tie_embeddings) * d + model.head_bias),
    }
    optional = ("cross-attention", "source embedding", "parts")
    return {name: count for name, count in found.items() if count or name not in optional}


def logit_count(model: ModelConfig, vocab_size: int) -> int:
    """Return how many logits the head gives for a token."""
    return model.classes or model.vocab_size or vocab_size


def _position_parameters(model: ModelConfig, stack: StackShape) -> int:
    """Count the parameters of a stack's position schemes, each with the number of layers that use it."""
    layers: dict[str, int] = {}
    for layer, places in model.layer_kinds(stack.layers):
        layers[layer.position] = layers.get(layer.position, 0) + len(places)
    return sum(POSITIONS[name].parameters(model, stack._replace(layers=n)) for name, n in layers.items())


def parameter_count(model: ModelConfig, vocab_size: int) -> int:
    """Return the number of parameters, tied ones counted once."""
    return sum(parameters(model, vocab_size).values())


def layer_matrix_parameters(model: ModelConfig) -> int:
    """Count the weights of the layers' matrices, without optional parts."""
    d, found = model.d_model, 0
    for stack in stacks(model):
        attention = d * (2 * d + 2 * model.kv_width)
        found += stack.layers * (attention * (1 + stack.over_source) + d * (model.ff_expanded_width + model.d_ff))
    return found


def optimizer_state_numbers(config: RunConfig, vocab_size: int) -> int:
    """Return how many numbers are kept between steps besides the weights: the optimizer's moments, a moving average."""
    of_matrices, of_others = OPTIMIZERS[config.optimizer.kind].moments(config.optimizer)
    matrices, everything = layer_matrix_parameters(config.model), parameter_count(config.model, vocab_size)
    return of_matrices * matrices + of_others * (everything - matrices) + (everything if config.train.ema else 0)


def training_flops_per_token(model: ModelConfig, vocab_size: int, batch_rows: int = 1) -> int:
    """Return the floating-point operations to train on one token, in the products of a forward and backward pass.

    Counts what the kernel of a training step multiplies, 2 operations per product: all T keys of a mask (a fused kernel
    that skips the masked half does half of that), the band of a window with its padded blocks, the chunks of linear
    attention. The backward pass costs two forward passes (Kaplan et al. 2020). A target token of an encoder-decoder
    also pays for its share of the source. Rows are as long as the context; all `rows` of a batch share
    what a position scheme computes once (Transformer-XL projects its distances).
    """
    d, kv, target = model.d_model, model.kv_width, model.context_length
    once, products = 0.0, float(logit_count(model, vocab_size) * d * target)
    for stack in stacks(model):
        length = stack.longest
        linear = d * (2 * d + 2 * kv) + d * model.ff_expanded_width + model.d_ff * d
        mixing = 0
        for layer, places in model.layer_kinds(stack.layers):
            position, kernel = POSITIONS[layer.position], training_kernel(layer, stack.causal, length)
            queries = kernel.padded_length * _multiply_adds_per_query(layer, stack.causal, kernel)
            parts = length * sum(row.multiply_adds(layer) for row in active_parts(layer).values())
            mixing += len(places) * (queries + position.multiply_adds(layer, kernel) + parts)
            once += len(places) * position.shared_multiply_adds(layer, kernel)
        across = 0
        if stack.over_source:
            across = length * (2 * d * d + 2 * model.source_tokens * d) + model.source_tokens * d * 2 * kv
        products += stack.layers * (length * linear + across) + mixing
    # The inputs of what is computed once need no gradient (sinusoids, for example): one forward pass is saved.
    return round((3 * 2 * products + 2 * 2 * once / batch_rows) / target)


def _multiply_adds_per_query(model: ModelConfig, causal: bool, kernel: Kernel) -> int:
    """Return the multiplications per query in attention itself, over all heads."""
    if ATTENTIONS[model.attention].has_scores:
        return 2 * kernel.keys * model.d_model
    if kernel.name == "reference":
        return 3 * kernel.keys * model.d_model
    within = (3 if POSITIONS[model.position].rotates else 2) * kernel.keys if causal else 0
    return (within + 2 * model.head_width + 1) * model.d_model


BYTES = 4
STATE_COPIES = 2  # weights and gradients, besides the optimizer's moments
LOGIT_COPIES = 3  # log probabilities, their gradient, the logits' gradient
Z_LOSS_COPIES = 1  # the logits themselves
WORKING_TENSORS = 2  # the incoming and the outgoing gradient
SLACK = 1.35  # resident / allocated, for glibc, which keeps freed memory; measured 1.15 to 1.6
# Bytes of cuBLAS's workspaces, by whether a step is recorded. A plain step has one of 32 MiB (see
# `engine.model.devices`) for each pass; what recording takes was measured.
WORKSPACES = {False: 64 * 2**20, True: 48 * 2**20}
DROPOUT_MASK_NUMBERS = {False: 1.0, True: 0.25}  # per element of a dropout mask, by whether a GPU, which keeps one byte
CONTENT_COPIES = 2  # Transformer-XL scores are gathered from the distances to all keys, before and after: 2 T − 1


@dataclass(frozen=True)
class BatchShape:
    """The shape of a step's largest batch: B rows of T target tokens, and S source tokens (0 without a source)."""

    rows: int
    target: int
    source: int = 0

    @classmethod
    def from_config(cls, config: RunConfig) -> "BatchShape":
        """Return the batch of a config; an upper bound if row lengths depend on the data."""
        target = config.model.context_length if config.trains_on_rows else config.window_targets
        source = config.model.source_tokens if config.has_source else 0
        budget = config.train.batch_tokens  # tokens on the longer side
        rows = config.train.batch_size if budget is None else max(1, budget // max(target, source))
        return cls(rows, target, source)

    @classmethod
    def from_batch(cls, batch: Any) -> "BatchShape":
        source = 0 if batch.source is None else batch.source.shape[1]
        return cls(batch.tokens.shape[0], batch.tokens.shape[1], source)


def memory_bytes(config: RunConfig, vocab_size: int, shape: BatchShape | None = None, *, gpu: bool = False) -> int:
    """Estimate a training step's peak memory, in bytes, beyond what the process held before the model was built; on a
    GPU, only what torch allocates. `shape` is that of the largest batch, if known.
    """
    shape = shape or BatchShape.from_config(config)
    parameters = parameter_count(config.model, vocab_size)
    sums = max(0, (config.train.accumulation - 1).bit_length() - 1)  # of gradients, beside the one being computed
    state = (STATE_COPIES + sums) * parameters + optimizer_state_numbers(config, vocab_size)
    logits = shape.rows * shape.target * logit_count(config.model, vocab_size)
    logits *= LOGIT_COPIES + (Z_LOSS_COPIES if config.objective.z_loss else 0)
    activations = saved_activation_numbers(config, shape, gpu=gpu) + max(
        logits, WORKING_TENSORS * _largest_tensor_numbers(config, shape, gpu)
    )
    workspaces = WORKSPACES[supports_cuda_graphs(config)] if gpu else 0
    return int(BYTES * (state + (1.0 if gpu else SLACK) * activations)) + workspaces


def supports_cuda_graphs(config: RunConfig) -> bool:
    """Whether all passes of a training run launch the same kernels, so that a GPU can record one and replay it: all
    batches have the same shape, and no layer is recomputed, which would need its random numbers a second time.
    """
    return not config.trains_on_rows and not config.train.activation_checkpointing


def saved_activation_numbers(config: RunConfig, shape: BatchShape, *, gpu: bool = False) -> float:
    """Return the numbers that the forward pass keeps for the backward pass, without the logits."""
    model, d, total = config.model, config.model.d_model, 0.0
    dropout_mask = DROPOUT_MASK_NUMBERS[gpu]
    for stack in stacks(model):
        length = shape.target if stack.causal or not shape.source else shape.source
        tokens = shape.rows * length
        padded = stack.encodes and config.trains_on_rows
        per_layer: list[tuple[int, float]] = []  # (number of layers, what each keeps)
        for kind, places in model.layer_kinds(stack.layers):
            kernel = training_kernel(kind, stack.causal, length, padded=padded, gpu=gpu)
            layer = _saved_by_sublayer_norms(model) + _saved_by_attention(
                kind, kernel, stack.causal, length, dropout_mask
            )
            layer += _saved_by_sublayer_norms(model) + _saved_by_feed_forward(model, dropout_mask)
            across = 0.0
            if stack.over_source:
                layer += _saved_by_sublayer_norms(model)
                across = _cross_attention_saved_per_batch(config, shape, gpu)
            layer += sum(row.saved_numbers(kind) for row in active_parts(kind).values())
            mask = _mask_numbers_per_query(kind, kernel, length, padded=padded) * length
            per_layer.append((len(places), tokens * layer + across + mask))
        if config.train.activation_checkpointing:  # the input of each layer, and all of one layer
            total += stack.layers * tokens * d + max(numbers for _, numbers in per_layer)
        else:
            total += sum(n * numbers for n, numbers in per_layer)
        total += tokens * (_saved_by_norm(model) if model.final_norm else d)
        total += tokens * d * dropout_mask * (model.embedding_dropout > 0.0)
    return total


def _saved_by_norm(model: ModelConfig) -> float:
    """A norm's input, and its output, which goes into a product."""
    return model.d_model * NORMS[model.norm].saved_tensors


def _saved_by_sublayer_norms(model: ModelConfig) -> float:
    """The norms of a sublayer. The output of a sandwich norm is only added to the residual stream."""
    norm = _saved_by_norm(model)
    return norm + (norm - model.d_model if model.norm_placement == "sandwich" else 0.0)


def _saved_by_feed_forward(model: ModelConfig, mask: float) -> float:
    """The features before the activation, after it, and after dropout."""
    ff, dropped, activation = model.d_ff, model.ff_dropout > 0.0, ACTIVATIONS[model.activation]
    after = (1 + mask + activation.saves_output) * ff if dropped else ff
    return activation.saved_numbers * ff + after + mask * model.d_model * (model.dropout > 0.0)


def _saved_by_attention(model: ModelConfig, kernel: Kernel, causal: bool, length: int, mask: float) -> float:
    """Queries, keys, values, weights if the kernel keeps them, the output, and the dropout mask."""
    d = model.d_model
    filled, position, dropped = kernel.padded_length / length, POSITIONS[model.position], model.attention_dropout > 0.0
    rotated, content = position.rotates, position.acts_on == "content"
    usual = fused_kernel_support(model) == "as it is"
    of_parts = sum(row.saved_per_score for row in active_parts(model).values())
    scores = filled * model.n_heads * kernel.keys
    out = d + mask * d * (model.attention_output_dropout > 0.0)
    if kernel.name == "sdpa":
        joined = d + 2 * model.kv_width  # one tensor, of which queries, keys and values are views
        repeated = model.kv_heads < model.n_heads  # keys and values are repeated for the queries that share them
        held = 3 * d if rotated and repeated else joined + 2 * d * (rotated or repeated)
        return out + held + d * rotated + model.n_heads  # the output of rotated heads is reordered once more
    if kernel.name == "chunked":  # features, plain and rotated, perhaps padded; values, numerators
        cut = kernel.padded_length > length
        features = (10 if cut else 8.5) if rotated else (7.5 if cut else 6.5)
        return out + (scores if causal else 0) + features * d
    if kernel.name == "banded" and usual and not content:
        bands = d + 2 * d * kernel.keys / kernel.queries
        return out + filled * bands + scores * (1 + mask * dropped)
    if kernel.name == "math":
        return out + 3 * d + scores * (2.25 if dropped else 1)  # the dropout mask has one byte per number
    if kernel.name == "dense":
        return out + 3 * d + scores * ((3 if dropped else 1) + of_parts)
    copies = (7 if content else 3) * d * max(1.0, kernel.keys / kernel.queries)
    # As large as the scores: the softmax, its masked version, the result of dropout, and what parts keep.
    weights = (3 if dropped else 2) + (CONTENT_COPIES if content else 0) + of_parts
    return out + copies + scores * weights


def _mask_numbers_per_query(model: ModelConfig, kernel: Kernel, length: int, *, padded: bool) -> float:
    """Return the size of the mask added to the scores, shared by all rows: numbers per query."""
    position = POSITIONS[model.position]
    looked_up = position.saved_per_score * length if kernel.name != "banded" else 0.0
    if kernel.name != "sdpa":
        return looked_up
    if position.acts_on == "scores" or fused_kernel_support(model) == "in the mask":
        return looked_up + model.n_heads * length
    return 2.0 * length if model.attention != "global" or padded else 0.0


def _cross_attention_saved_per_batch(config: RunConfig, shape: BatchShape, gpu: bool) -> float:
    """Per layer and whole batch: queries and output of each target, keys and values of each source."""
    model, d = config.model, config.model.d_model
    targets, sources = shape.rows * shape.target, shape.rows * shape.source
    dropped = model.attention_dropout > 0.0
    weights = 0.0
    if model.backend == "reference":
        weights = 2 + DROPOUT_MASK_NUMBERS[gpu] * dropped
    elif dropped and not gpu:
        weights = 2.25 if config.trains_on_rows or shape.target != shape.source else 3
    repeated = model.kv_heads < model.n_heads and not weights
    of_source = 2 * (d if weights else model.kv_width) + (2 * d if repeated else 0)
    output_mask = DROPOUT_MASK_NUMBERS[gpu] * d * (model.attention_output_dropout > 0.0)
    of_target = 2 * d + output_mask + model.n_heads * shape.source * weights
    return targets * of_target + sources * of_source


def _largest_tensor_numbers(config: RunConfig, shape: BatchShape, gpu: bool) -> float:
    model, widest = config.model, 0.0
    for stack in stacks(model):
        length = shape.target if stack.causal or not shape.source else shape.source
        padded = stack.encodes and config.trains_on_rows
        for layer, _ in model.layer_kinds(stack.layers):
            kernel = training_kernel(layer, stack.causal, length, padded=padded, gpu=gpu)
            scores = model.n_heads * kernel.keys * (kernel.name in ("reference", "dense", "math", "banded"))
            scores *= CONTENT_COPIES if POSITIONS[layer.position].acts_on == "content" else 1
            widest = max(widest, shape.rows * length * max(model.ff_expanded_width, 3 * model.d_model, scores))
    return widest
