"""Beam search as it would be explained: no cache, no batch, the whole decoder for each hypothesis at each step."""

from collections.abc import Callable
from functools import cache

import torch

from engine.generation.beam import Specials
from engine.model.transformer import Network

Result = tuple[tuple[int, ...], bool, float, float]  # tokens, finished, log probability, score


def next_log_probabilities(model: Network, source: torch.Tensor, read: list[int]) -> tuple[float, ...]:
    """Of a model whose weights stay as they are: it is asked once, although penalties differ from test to test."""
    return _asked(model, tuple(source.tolist()), tuple(read))


@cache
def _asked(model: Network, source: tuple[int, ...], read: tuple[int, ...]) -> tuple[float, ...]:
    with torch.no_grad():
        return tuple(model(torch.tensor([source]), torch.tensor([read]))[0, -1].double().log_softmax(-1).tolist())


def reference_beam(
    model: Network,
    source: torch.Tensor,
    specials: Specials,
    allowed: int,
    limit: int,
    beam: int,
    penalty: Callable[[int], float],
) -> list[Result]:
    """All that a beam ever finishes, best first; nothing is stopped early."""
    live: list[tuple[list[int], float]] = [([], 0.0)]
    done: list[Result] = []
    for length in range(1, limit + 1):
        extensions = []
        for tokens, so_far in live:
            log_probabilities = next_log_probabilities(model, source, [specials.start, *tokens])
            for token in [*range(allowed), specials.end]:
                extensions.append(([*tokens, token], so_far + log_probabilities[token]))
        best = sorted(extensions, key=lambda e: -e[1])[: beam - len(done)]
        live = []
        for tokens, total in best:
            if tokens[-1] == specials.end:
                done.append((tuple(tokens[:-1]), True, total, total / penalty(length)))
            elif length == limit:
                done.append((tuple(tokens), False, total, total / penalty(length)))
            else:
                live.append((tokens, total))
        if not live:
            break
    return sorted(done, key=lambda d: -d[3])


def all_sequences(
    model: Network, source: torch.Tensor, specials: Specials, allowed: int, limit: int
) -> dict[tuple[tuple[int, ...], bool], float]:
    """(tokens, finished) → log probability, of every translation there is."""
    found: dict[tuple[tuple[int, ...], bool], float] = {}

    def visit(tokens: list[int], so_far: float) -> None:
        if len(tokens) == limit:
            found[tuple(tokens), False] = so_far
            return
        log_probabilities = next_log_probabilities(model, source, [specials.start, *tokens])
        found[tuple(tokens), True] = so_far + log_probabilities[specials.end]
        for token in range(allowed):
            visit([*tokens, token], so_far + log_probabilities[token])

    visit([], 0.0)
    return found
