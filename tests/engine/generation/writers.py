"""Small translators for tests: every encoder-decoder of the grid, made to write texts of many lengths."""

import torch

from engine.config.schema import RunConfig
from engine.generation.beam import Specials
from engine.model.positions import Positions
from engine.model.transformer import Network
from tests.engine.model.cells import SOURCE, cells, draw, network, padded

TEXT = 8  # tokens of the text; the model has five more, two of them nobody's
SPECIALS = Specials.numbered_from(TEXT)
LIMIT = 12
CELLS = [
    cell
    for cell in cells()
    if cell.model.architecture == "encoder-decoder" and (cell.model.norm, cell.model.norm_placement) == ("layer", "pre")
]
NAMES = [f"{cell.model.position}-{cell.model.attention}" for cell in CELLS]
SOURCES = draw(6, SOURCE, 4) % TEXT
LENGTHS = [SOURCE, 9, 3, 1]


def writer(cell: RunConfig = CELLS[0]) -> Network:
    """In float64, with surer predictions than an untrained model's, and an end that comes neither at once nor never."""
    model = network(cell)
    with torch.no_grad():
        model.head.weight *= 3.0
        model.head.weight[SPECIALS.end] *= 0.5
    return model


def padded_sources(padding: str) -> tuple[torch.Tensor, Positions]:
    """Four sentences of different lengths."""
    return padded(SOURCES, LENGTHS, padding)
