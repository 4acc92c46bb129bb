"""Window and linear attention never build a T × T tensor, forward or backward; their memory grows linearly."""

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine import capabilities
from engine.config.schema import RunConfig
from engine.model.linear_attention import linear_attention
from engine.model.positions import Positions, make_schemes
from engine.model.transformer import build_model
from tests.legal_cells import AXES as ALL_AXES
from tests.legal_cells import legal_cells

VOCAB = 7
LONG = RunConfig.model_validate(
    {
        "model": {
            "n_layers": 1,
            "d_model": 16,
            "n_heads": 2,
            "d_ff": 16,
            "context_length": 16384,
            "dropout": 0.0,
            "window": 16,
            "architecture": "encoder",  # both causal and not
        }
    }
)
AXES = {
    "model.causal": (True, False),
    "model.position": ALL_AXES["model.position"],
    "model.attention": ("window", "linear"),
    "objective.kind": ("masked",),
}
CELLS = list(legal_cells(LONG, AXES))


class Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation gives, in elements."""

    elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.elements = max(self.elements, leaf.untyped_storage().nbytes() // leaf.element_size())
        return result


def largest(config: RunConfig, length: int, at: Positions | None = None) -> int:
    """Of a whole training step."""
    model = build_model(config.model, VOCAB, 1)
    tokens = torch.randint(VOCAB, (1, length), generator=torch.Generator().manual_seed(0))
    with Largest() as seen:
        model(tokens, at).square().sum().backward()
    return seen.elements


def name(cell: RunConfig) -> str:
    causal = "causal" if cell.model.causal else "both-sides"
    return f"{cell.model.attention}-{cell.model.position}-{causal}"


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_no_tensor_is_as_large_as_t_by_t_and_the_largest_grows_with_t(cell: RunConfig) -> None:
    sizes = [largest(cell, length) for length in (1024, 2048, 4096)]
    assert sizes[0] < 1024**2 and sizes[2] < 4096**2 / 8
    assert sizes[2] <= 4.2 * sizes[0]


def test_the_watch_sees_a_dense_mask() -> None:
    """It is not blind: global attention with a bias, and a window without its band, do build one."""
    dense = capabilities.with_value(
        capabilities.with_value(LONG, "model.attention", "global"), "model.position", "alibi"
    )
    window = capabilities.with_value(
        capabilities.with_value(LONG, "model.attention", "window"), "model.backend", "sdpa"
    )
    for config in (dense, window):
        assert largest(config, 1024) >= 1024**2


def test_a_padded_row_keeps_its_band_where_padding_is_known_to_be_at_one_side() -> None:
    config = capabilities.with_value(LONG, "model.attention", "window")
    keep = torch.arange(1024)[None] < 900
    assert largest(config, 1024, Positions.of_tokens(keep, one_side=True)) < 1024**2
    assert largest(config, 1024, Positions.of_tokens(keep)) >= 1024**2  # holes are possible: only a mask can tell


PEAK = """
import sys, torch
from engine.config.schema import RunConfig
from engine.model.transformer import build_model
torch.set_num_threads(1)
attention, length = sys.argv[1], int(sys.argv[2])
model = {"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": length, "dropout": 0.0, "attention": attention}
network = build_model(RunConfig.model_validate({"model": model}).model, 65, 1)
def peak():  # getrusage would give that of the process this one was forked from, where that was larger
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
network(torch.zeros(1, length, dtype=torch.long)).logsumexp(-1).sum().backward()
print((peak() - before) / 1024)
"""


@pytest.mark.slow
def test_peak_memory_grows_linearly_up_to_16k_tokens() -> None:
    """A training step of two layers, 64 wide, batch 1: MiB above the process with its model."""
    lengths = (1024, 2048, 4096, 8192, 16384)
    for attention in ("window", "linear"):
        peaks = []
        for length in lengths:
            command = [sys.executable, "-c", PEAK, attention, str(length)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks.append(float(done.stdout))
        print(attention, dict(zip(lengths, (round(p) for p in peaks), strict=True)))
        assert peaks[-1] - peaks[-2] < 2.6 * (peaks[-2] - peaks[-3])
        assert peaks[-1] < 16384**2 * 4 / 2**20  # one T × T matrix of numbers alone


@pytest.mark.parametrize("position", ["none", "rope"])
def test_no_rounding_of_later_tokens_reaches_earlier_ones(position: str) -> None:
    """In fp32, over several chunks: what stands after a token does not change its output by one bit."""
    torch.manual_seed(0)
    scheme = make_schemes(LONG.model.model_copy(update={"position": position}), 1, 8, causal=True)[0]
    q, k, v = (torch.randn(1, 2, 200, 8) * 3 for _ in range(3))
    at = Positions.consecutive(200)
    out = linear_attention(q, k, v, at, scheme, causal=True)
    for t in (0, 63, 64, 100, 130, 198):
        k2, v2 = (torch.cat((x[:, :, : t + 1], torch.randn(1, 2, 199 - t, 8) * 30), dim=2) for x in (k, v))
        assert torch.equal(linear_attention(q, k2, v2, at, scheme, causal=True)[:, :, : t + 1], out[:, :, : t + 1])


def test_a_window_wider_than_the_text_costs_no_more_than_a_mask() -> None:
    config = capabilities.with_value(LONG, "model.attention", "window")
    for window in (400, 1024, 10**6, 10**12):
        assert largest(capabilities.with_value(config, "model.window", window), 1024) <= 2 * 1024**2
