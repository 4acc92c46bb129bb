"""Scores of a text by other tokens: exact sums, and bits per byte that do not depend on the tokens."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.schema import RunConfig
from engine.data.corpora import Split, TextCorpus
from engine.data.text_sizes import sizes_of
from engine.data.tokenizers import BpeTokenizer, ByteTokenizer, CharacterTokenizer, TextWordTokenizer, Tokenizer
from engine.evaluation.scorers import TextScorer
from engine.model.transformer import build_model
from engine.training.text_task import TextTask

TRAIN = "the cat sat on the mat . <unk> é\nthe dog sat on a mat . é\n" * 40
TEXT = "the cat sat on a mat . é\na zebra sat\n" * 12
MADE: dict[str, Tokenizer] = {
    "characters": CharacterTokenizer.of([TRAIN, TEXT]),
    "bytes": ByteTokenizer(),
    "bpe": BpeTokenizer.trained([TRAIN], 290),
    "words": TextWordTokenizer.trained(TRAIN, 100),
}


class OfBytes(nn.Module):
    """Gives each byte of a token the same probability, one in 300, whatever the tokens are: no sum over them is 1."""

    reads_source = False

    def __init__(self, lengths: list[int]) -> None:
        super().__init__()
        self.nll = torch.tensor(lengths).double() * math.log(300)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits whose softmax is that, with the rest on a token that never comes."""
        chances = torch.exp(-self.nll)
        rest = (1 - chances.sum()).clamp_min(1e-12)
        return torch.log(torch.cat((chances, rest[None]))).expand(*tokens.shape, -1)


def scored(tokenizer: Tokenizer, config: RunConfig, model: nn.Module) -> dict:
    tokens = torch.from_numpy(tokenizer.encode(TEXT))
    return TextScorer(config, Split(TEXT), tokens, tokenizer).record(model).dump()


@pytest.mark.parametrize("kind", ["characters", "bytes", "bpe"])
def test_bits_per_byte_are_the_same_whatever_the_tokens(kind: str, tiny) -> None:
    tokenizer = MADE[kind]
    lengths = [
        len(tokenizer.pieces[i] if isinstance(tokenizer, BpeTokenizer) else tokenizer.decode([i]).encode())
        for i in range(tokenizer.vocab_size)
    ]
    record = scored(tokenizer, tiny("data.corpus=x.txt"), OfBytes(lengths))
    assert record["bits_per_byte"] == pytest.approx(math.log2(300), rel=1e-6)


@pytest.mark.parametrize("kind", MADE)
def test_every_score_is_a_sum_token_by_token(kind: str, tiny) -> None:
    tokenizer, config = MADE[kind], tiny("data.corpus=x.txt", "model.context_length=16", "evaluation.stride=16")
    ids = torch.from_numpy(tokenizer.encode(TEXT))
    model = build_model(config.model, tokenizer.vocab_size, 1).eval()
    record = scored(tokenizer, config, model)
    nats = 0.0
    for target in range(1, len(ids)):
        start = (target - 1) // 16 * 16
        with torch.no_grad():
            logits = model(ids[None, start:target])[0, -1]
        nats += F.cross_entropy(logits.double(), ids[target]).item()
    first = {"characters": "t", "bytes": "t", "bpe": tokenizer.decode([int(ids[0])]), "words": "the"}[kind]
    rest = TEXT.removeprefix(first)
    assert record["loss"] == pytest.approx(nats / (len(ids) - 1), abs=1e-5)
    assert record["perplexity"] == pytest.approx(math.exp(nats / (len(ids) - 1)), rel=1e-4)
    assert record["bits_per_byte"] == pytest.approx(nats / math.log(2) / len(rest.encode()), rel=1e-5)
    assert record["bits_per_character"] == pytest.approx(nats / math.log(2) / len(rest), rel=1e-5)
    words = len(rest.split()) + rest.count("\n")
    if kind == "characters":
        assert "word_perplexity" not in record  # recorded as before
    else:
        assert record["word_perplexity"] == pytest.approx(math.exp(nats / words), rel=1e-3)
    if kind == "words":
        assert record["word_perplexity"] == pytest.approx(record["perplexity"], rel=1e-9)  # a token is a word
        assert record["unknown"] == 12 / (len(ids) - 1)  # zebra
    else:
        assert "unknown" not in record


def test_the_facts_of_a_run_count_words_bytes_and_unknown_words(tiny) -> None:
    corpus = TextCorpus("x", "x", "x.txt", {"train": Split(TRAIN), "validation": Split(TEXT)})
    config = tiny("data.corpus=x.txt", "data.tokenizer=words", "model.context_length=8")
    facts = TextTask.of(corpus, config).facts(config).splits["validation"]
    sizes = sizes_of(TEXT.encode())
    assert facts == {
        "characters": len(TEXT),
        "tokens": sizes.words,
        "words": sizes.words,
        "bytes": len(TEXT.encode()),
        "unknown": 12,
    }
