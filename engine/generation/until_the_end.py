"""A writer that may end: it draws tokens of the text, perhaps marks, or the end, and no others."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.generation.sampling import Decodes


class UntilTheEnd:
    """Numbers what can be drawn anew: the text's tokens as they are, then the marks, then the end.

    Args:
        writer: of one text, which has not been begun.
        text: tokens of the text; the others are numbered after them.
        end: the token that ends what is written.
        marks: special tokens that may be written besides.
    """

    def __init__(self, writer: Decodes, text: int, end: int, marks: Sequence[int] = ()) -> None:
        self._writer, self._text, self._others = writer, text, [*marks, end]

    @property
    def allowed(self) -> int:
        """Tokens that can be drawn; the last is the end."""
        return self._text + len(self._others)

    def new_cache(self, room: int) -> Any:
        """The writer's."""
        return self._writer.new_cache(room)

    def next_logits(self, tokens: Tensor, cache: Any) -> Tensor:
        """(B, T) → (B, allowed + 1): the last is all that is never drawn, so that probabilities stay the model's.

        The first tokens are the prompt's, numbered as the model has them; later ones are those that were drawn.
        """
        if cache.length:
            ids = torch.cat((torch.arange(self._text, device=tokens.device), tokens.new_tensor(self._others)))
            tokens = ids[tokens]
        logits = self._writer.next_logits(tokens, cache)
        never = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
        never[: self._text] = False
        never[self._others] = False
        rest = logits[:, never].logsumexp(-1, keepdim=True)
        return torch.cat((logits[:, : self._text], logits[:, self._others], rest), dim=1)
