"""The decode loop: a strategy chooses tokens from a step's logits; the next step reads them, over one cache.

Sampling, which is greedy at temperature 0, and beam search are its strategies. Filling gaps and ranking given answers
need no loop: one pass gives all their logits. Notation: B prompts, R rows, T time, V vocabulary.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor

from engine.base.language import tr
from engine.model.decoding import Predictor


@dataclass(frozen=True)
class DecodeStep:
    """What a strategy chooses at one step."""

    tokens: Tensor  # (R, 1) ids, the next of every row that goes on
    # (R,) the row that each of them continues, and whether the new rows have the old ones' sources; None: all go on
    parents: Tensor | None = field(default=None, kw_only=True)
    same_sources: bool = field(default=False, kw_only=True)
    restarted: bool = field(default=False, kw_only=True)  # the context was full and restarted before it


C = TypeVar("C", bound=DecodeStep)


def generate(
    predictor: Predictor,
    prompts: Tensor,
    length: int,
    choose: Callable[[Tensor], C | None],
    *,
    context: int,
    restart_when_full: bool = False,
    between: Callable[[], None] = lambda: None,
) -> Iterator[C]:
    """Yield the choices after prompts (B, T) of equal length: at most `length` steps, one token per row and step.

    Only the newest `context` tokens, the model's training length, count. When they are used up the text ends, or, if it
    `restarts`, its newest half is read again from position 0; rows then keep their places. `choose`: (R, V) logits →
    the next step, None to end; `between` is called before each step and may raise to stop.
    """
    if prompts.shape[1] == 0:
        raise ValueError(tr("a prompt needs at least one token"))
    pending = prompts[:, -context:]
    recent = deque(torch.split(pending, 1, dim=1), maxlen=max(1, context // 2))
    capacity = min(context, pending.shape[1] + length)
    predictor.begin(capacity)
    for _ in range(length):
        between()
        full = predictor.cache.length + pending.shape[1] > context
        if full and not restart_when_full:
            return
        if full:
            pending = torch.cat(tuple(recent), dim=1)
            predictor.begin(capacity)
        with torch.inference_mode():
            chosen = choose(predictor.feed(pending))
            if chosen is None:
                return
            if chosen.parents is not None:
                predictor.cache.select(chosen.parents, same_sources=chosen.same_sources)
        yield replace(chosen, restarted=full)
        pending = chosen.tokens
        recent.append(pending)
