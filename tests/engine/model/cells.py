"""The grid: every legal network, each with its padding, for the tests that must hold in all of them."""

from collections.abc import Iterator

import torch

from engine.config.schema import RunConfig
from engine.evaluation.checks import randomize_weights, starts_as_identity
from engine.model.positions import Positions
from engine.model.transformer import Network, build_model
from tests.legal_cells import AXES as ALL_AXES
from tests.legal_cells import legal_cells

VOCAB, LENGTH, SOURCE = 13, 20, 14
BASE = RunConfig.model_validate(
    {
        "model": {
            "n_layers": 2,
            "d_model": 16,
            "n_heads": 2,
            "d_ff": 24,
            "context_length": LENGTH,
            "source_length": SOURCE,
            "init_std": 0.2,
            "window": 5,
            "link_every": 4,
            "relative_max_distance": 6,
            "t5_buckets": 8,
            "t5_max_distance": 16,
        },
        "train": {"allow_leak": True},
    }
)
PADDINGS = ("none", "left", "right")
# One objective is enough to reach each network: what a network computes does not depend on it.
OBJECTIVES = ("next-token", "copy")
AXES = ALL_AXES | {"objective.kind": OBJECTIVES}


def cells() -> list[RunConfig]:
    """Every legal network: architecture × causal or not × position × attention × norm and its place."""
    return list(legal_cells(BASE.model_copy(update={"model": BASE.model}), AXES))


def some_of(grid: list[RunConfig]) -> list[RunConfig]:
    """Of every stack × position × attention one norm and place, each norm and place in its turn."""
    alike: dict[tuple[object, ...], list[RunConfig]] = {}
    for cell in grid:
        model = cell.model
        alike.setdefault((model.architecture, model.causal, model.position, model.attention), []).append(cell)
    return [norms[turn % len(norms)] for turn, norms in enumerate(alike.values())]


def half_of(some: list[RunConfig]) -> list[RunConfig]:
    """Of those every other, as on a chequerboard: each position with each attention, in every other stack."""
    kept, axes = [], [dict[object, int](), dict[object, int](), dict[object, int]()]
    for cell in some:
        model = cell.model
        values = ((model.architecture, model.causal), model.position, model.attention)
        if sum(axis.setdefault(value, len(axis)) for axis, value in zip(axes, values, strict=True)) % 2 == 0:
            kept.append(cell)
    return kept


def name(cell: RunConfig) -> str:
    model = cell.model
    causal = "" if model.architecture != "encoder" else "-causal" if model.causal else "-both-sides"
    norm = model.norm if model.norm == "none" else f"{model.norm}-{model.norm_placement}"
    return f"{model.architecture}{causal}-{model.position}-{model.attention}-{norm}"


def draw(seed: int, length: int, rows: int = 2) -> torch.Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def network(cell: RunConfig) -> Network:
    """In float64, dropout off; with other weights where layers begin as the identity, or close to it."""
    built = build_model(cell.model, VOCAB, 1).double().eval()
    if starts_as_identity(cell.model):
        randomize_weights(built)
    return built


def padded(tokens: torch.Tensor, lengths: list[int], padding: str) -> tuple[torch.Tensor, Positions]:
    """Rows of the given lengths, the rest of each row padded with other tokens."""
    width = tokens.shape[1]
    slot = torch.arange(width)
    real = torch.tensor(lengths)[:, None]
    keep = slot < real if padding == "right" else slot >= width - real
    shifted = torch.full_like(tokens, VOCAB - 1)
    for row, length in enumerate(lengths):
        shifted[row, keep[row]] = tokens[row, :length]
    return shifted, Positions.of_tokens(keep, one_side=True)


def logits(model: Network, tokens: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return model.logits(tokens, source)


def as_read(model: Network, tokens: torch.Tensor, source: torch.Tensor) -> list[torch.Tensor]:
    """The logits of each token when no later one has been read: of one pass, unless a token can see later ones."""
    if model.config.architecture == "encoder" and not model.config.causal:
        return [logits(model, tokens[:, : t + 1], source)[:, t] for t in range(tokens.shape[1])]
    return list(logits(model, tokens, source).unbind(1))


def rows_alone(
    model: Network, tokens: torch.Tensor, source: torch.Tensor, lengths: list[int]
) -> Iterator[torch.Tensor]:
    """Each row's logits without any padding."""
    for row, length in enumerate(lengths):
        yield logits(model, tokens[row : row + 1, :length], source[row : row + 1, : min(length, SOURCE)])[0]
