"""Classify texts with a trained model. Notation: B texts, C classes."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.data.objectives import Classification
from engine.data.padding import Tokens
from engine.data.tokenizers import Tokenizer
from engine.model.transformer import Network, evaluating

AT_ONCE = 256  # texts


def encode_texts(tokenizer: Tokenizer, config: RunConfig, texts: Sequence[str]) -> list[Tokens]:
    """Return the tokens of each text, cut to the context; what has no token is unknown. `InputError`: an empty text."""
    unknown = Classification(config, tokenizer.vocab_size).unknown
    texts = apply_case(config, texts)
    found = [tokens[: config.model.context_length] for tokens in tokenizer.encode_with_unknown(texts, unknown)]
    if any(not len(tokens) for tokens in found):
        raise InputError(Message("an empty text has no class; enter at least one word"))
    return found


def apply_case(config: RunConfig, texts: Sequence[str]) -> Sequence[str]:
    return [text.lower() for text in texts] if config.data.lowercase else texts


def class_probabilities(
    model: Network,
    tokenizer: Tokenizer,
    config: RunConfig,
    texts: Sequence[str],
    between: Callable[[], None] = lambda: None,
) -> Tensor:
    """Return (B, C) the probability of each class; `between` is called between batches and may raise to stop."""
    objective, device = Classification(config, tokenizer.vocab_size), next(model.parameters()).device
    read, found = encode_texts(tokenizer, config, texts), []
    with evaluating(model):
        for start in range(0, len(read), AT_ONCE):
            between()
            some = read[start : start + AT_ONCE]
            batch = objective.class_batch(some, [0] * len(some), device)
            found.append(batch.target_logits(model(*batch.inputs))[:, 0].float().softmax(-1).cpu())
    return torch.cat(found)
