"""Which kernel computes self-attention in a training step, and the sizes of its products. No torch here.

`engine.model.attention` chooses it call by call, but the cost and memory of a step must be known before anything is
built. Tests check that the two agree.
"""

from dataclasses import dataclass

from engine.config.sections import ModelConfig
from engine.model.visibility import CHUNK, LONG, NARROW, QUICKER, SMALLEST_BLOCK, self_attention


@dataclass(frozen=True)
class Kernel:
    """A kernel and how it cuts T tokens.

    Args:
        name: from `BACKENDS` or `LINEAR_BACKENDS`; `math` is torch's fallback on a CPU from its fused kernel under
            dropout or with a learned mask: the scores are materialized.
        blocks: parts of the text, the last one padded.
        queries: in a block.
        keys: keys that each block's queries are multiplied by.
    """

    name: str
    blocks: int
    queries: int
    keys: int

    @property
    def filled(self) -> int:
        """Queries of all blocks, including padding."""
        return self.blocks * self.queries

    @property
    def writes_scores(self) -> bool:
        """Whether a tensor of queries × keys is materialized."""
        return self.name in ("reference", "dense", "math", "banded")


def training_kernel(
    model: ModelConfig, causal: bool, length: int, *, padded: bool = False, gpu: bool = False
) -> Kernel:
    """The kernel of self-attention.

    Args:
        model: the network.
        causal: of the stack.
        length: T.
        padded: whether rows differ in length, as sources do.
        gpu: whether it runs on one.
    """
    if model.attention == "linear":
        chunk = min(CHUNK, length) if causal else length
        if model.backend == "reference":
            return Kernel("reference", 1, length, length)
        return Kernel("chunked", -(-length // chunk), chunk, chunk)
    see, wanted = self_attention(model, causal=causal), model.backend
    reach = see.reach(1)
    if reach is not None:
        narrow = NARROW * reach <= length and (length >= LONG or (not gpu and QUICKER * reach <= length))
        if wanted == "banded" or (wanted == "auto" and narrow):
            before = min(reach, length - 1)
            block = min(max(SMALLEST_BLOCK, before), length)
            return Kernel("banded", -(-length // block), block, before + block + (0 if causal else before))
    return Kernel(_over_all(model, padded, gpu), 1, length, length)


def _over_all(model: ModelConfig, padded: bool, gpu: bool) -> str:
    dropped = model.attention_dropout > 0.0
    if model.backend == "reference" or model.position == "xl":
        return "reference"
    if model.backend == "dense" or (model.backend == "auto" and dropped and not padded and not gpu):
        return "dense"
    if gpu:  # its fused kernels also handle dropout and learned masks
        return "sdpa"
    return "math" if dropped or model.position in ("relative", "t5") else "sdpa"
