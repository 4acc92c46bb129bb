"""Scores of a text by other tokens: exact sums, and bits per byte that do not depend on the tokens."""

import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.schema import RunConfig
from engine.data import spelling
from engine.data.corpora import TextCorpus
from engine.data.splits import Split
from engine.data.text_sizes import sizes_of
from engine.data.tokenizers import BpeTokenizer, ByteTokenizer, CharacterTokenizer, TextWordTokenizer, Tokenizer
from engine.data.tokenizers.words import WordDecoder, word_tokens
from engine.evaluation.metrics import TargetScores
from engine.model.transformer import build_model
from engine.tasks.text import TextScorer, TextsScorer, TextTask

TRAIN = "the cat sat on the mat . <unk> é\nthe dog sat on a mat . é\n" * 40
TEXT = "the cat sat on a mat . é\na zebra sat\n" * 12
MADE: dict[str, Tokenizer] = {
    "characters": CharacterTokenizer.from_texts([TRAIN, TEXT]),
    "bytes": ByteTokenizer(),
    "bpe": BpeTokenizer.train([TRAIN], 290),
    "words": TextWordTokenizer.train(TRAIN, 100),
    "words and marks": TextWordTokenizer.train(TRAIN.replace("<unk> ", ""), 100),
}
END = -1


def scored(tokenizer: Tokenizer, config: RunConfig, model: nn.Module) -> dict:
    tokens = torch.from_numpy(tokenizer.encode(TEXT))
    return TextScorer(config, Split(TEXT), tokens, tokenizer, train=Split(TRAIN)).score_model(model).dump()


def spelled(tokenizer: TextWordTokenizer) -> list[float]:
    """The nats of what each token leaves open."""
    price = nats_of([one for found in left_open(tokenizer, TRAIN) for one in found])
    return [sum(price(*one) for one in found) for found in left_open(tokenizer, TEXT)]


def words_of(text: str, *, spaced: bool) -> list[tuple[str, str]]:
    """Each word, mark or unusual gap of a text as it is written there, with the white space before it."""
    if spaced:
        return re.findall(r"([^\S\n]*)(\n|\S+)", text)
    tokens = list(word_tokens(text))
    decoder = WordDecoder(tokens)
    written = [decoder.feed(i) for i in range(len(tokens))]
    return [(one.removesuffix(token), token) for one, token in zip(written, tokens, strict=True)]


def left_open(tokenizer: TextWordTokenizer, text: str) -> list[list[tuple[str, str]]]:
    """What each token of a text leaves open, by kind."""
    found, left = [], "\n"
    for gap, word in words_of(text, spaced=tokenizer.spaced):
        known = "<eos>" if tokenizer.spaced and word == "\n" else word
        made = [("edge" if "\n" in (left, word) else "gap", gap)] if tokenizer.spaced else []
        if known not in tokenizer.words or word == "<unk>":
            made.append(("word", word))
        elif known == "<eos>":
            made.append(("line", word))
        found.append(made)
        left = word
    return found


def nats_of(train: list[tuple[str, str]]) -> Callable[[str, str], float]:
    """What it costs to say what is left open, after a training text: counted one by one."""
    kinds = {"word": ["<unk>"], "line": ["\n"], "gap": [" ", ""], "edge": [" ", ""]}
    chosen = Counter((kind, text if text in kinds[kind] else None) for kind, text in train)
    of_kind = Counter(kind for kind, _ in train)
    spelled = [[END, *text.encode(), END] for kind, text in train if text not in kinds[kind]]
    pairs = Counter(pair for word in spelled for pair in pairwise(word))
    before = Counter(byte for word in spelled for byte in word[:-1])
    after = Counter(byte for word in spelled for byte in word[1:])

    def nats(kind: str, text: str) -> float:
        choice = text if text in kinds[kind] else None
        found = math.log((of_kind[kind] + 3) / (chosen[kind, choice] + 1))
        for left, right in pairwise([END, *text.encode(), END]) if choice is None else ():
            single = (after[right] + 1) / (after.total() + 256)
            found -= math.log((pairs[left, right] + single) / (before[left] + 1))
        return found

    return nats


@pytest.mark.parametrize("kind", MADE)
def test_a_model_of_bytes_has_the_same_bits_whatever_the_tokens(kind: str, tiny, monkeypatch) -> None:
    """Each byte has the same probability, one in 3000, whether a token stands for it or it is spelled."""
    tokenizer = MADE[kind]
    lengths = [len(tokenizer.decode([i]).encode()) for i in tokenizer.encode(TEXT)]
    if isinstance(tokenizer, BpeTokenizer):
        lengths = [len(tokenizer.token_bytes[i]) for i in tokenizer.encode(TEXT)]
    nll = np.array(lengths[1:]) * math.log(3000)
    if isinstance(tokenizer, TextWordTokenizer):
        parts, paid = words_of(TEXT, spaced=tokenizer.spaced), spelled(tokenizer)
        nll = np.array([len((g + w).encode()) * math.log(3000) - p for (g, w), p in zip(parts, paid, strict=True)])[1:]
        assert nll.min() > 0 and max(paid) > 10  # these are probabilities
    scores = TargetScores(nll, nll > 0, np.zeros(len(nll), np.int32), 8, 8)
    monkeypatch.setattr(TextScorer, "token_scores", lambda *_: scores)
    record = scored(tokenizer, tiny("data.corpus=x.txt"), nn.Identity())
    rest = TEXT.encode()[len(words_of(TEXT, spaced=False)[0][1]) if "words" in kind else lengths[0] :].decode()
    assert record["bits_per_byte"] == pytest.approx(math.log2(3000), abs=1e-9)
    assert record["bits_per_character"] == pytest.approx(math.log2(3000) * len(rest.encode()) / len(rest), abs=1e-9)
    if kind != "characters":
        per_word = math.log(3000) * len(rest.encode()) / (len(rest.split()) + rest.count("\n"))
        assert record["word_perplexity"] == pytest.approx(math.exp(per_word), rel=1e-9)


class Always(nn.Module):
    """Predicts any token with the same probabilities everywhere, `<unk>` above all."""

    reads_source = False

    def __init__(self, size: int) -> None:
        super().__init__()
        self.logits = torch.arange(size, 0, -1).double()

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits.expand(*tokens.shape, -1)


@pytest.mark.parametrize("spaced", [True, False])
def test_the_probabilities_of_all_texts_of_a_length_are_at_most_one(spaced: bool, tiny) -> None:
    train = "a b \n a b. c\n\n a" + " <unk> b" * spaced
    tokenizer, config = TextWordTokenizer.train(train, 4), tiny("data.corpus=x.txt")
    sums = {2: 0.0, 3: 0.0}
    for records in sums:
        for letters in product("ab. \n", repeat=4):
            text = "a " + "".join(letters)
            if not text.endswith(" "):
                tokens = torch.from_numpy(tokenizer.encode(text))
                scorer = TextScorer(config, Split(text), tokens, tokenizer, records, Split(train))
                bits = scorer.score_model(Always(tokenizer.vocab_size)).bits_per_byte
                sums[records] += 2.0 ** -(bits * (len(text) - 1))
    assert 0.0 < sums[3] <= 1.0 < sums[2]  # where `<unk>` is free, it is no probability


@pytest.mark.parametrize("text", ["", "a \n <unk> b\n\tc <unk> <eos> rare ", "ba \u4e2d.a"])
def test_spelling_is_a_probability(text: str) -> None:
    """Of what is chosen, of every byte after another, and of all words: each of them ends."""
    tokenizer = TextWordTokenizer.train(text + "x x", 3)
    chances = np.exp(-spelling.spelling_model_costs(spelling.spelling_model_counts(text, tokenizer)))
    choices, after = chances[: spelling.CHOICES].reshape(-1, 3), chances[spelling.CHOICES :].reshape(256, 256)
    assert choices.sum(1) == pytest.approx(1.0, abs=1e-12) and after.sum(1) == pytest.approx(1.0, abs=1e-12)
    assert after.min() > 0.0  # so a word of any bytes can be spelled, and ends


@given(st.text(alphabet="ab. \t\n(<unk>é中", max_size=30), st.booleans())
def test_the_tokens_and_what_they_leave_open_are_the_text(text: str, spaced: bool) -> None:
    tokenizer = TextWordTokenizer.train("a b a b. b\n a\n" + "<unk>" * spaced, 4)
    kinds: dict[str, list[str]] = {"word": [], "line": [], "gap": [], "edge": []}
    for kind, found in tokenizer.undetermined_kinds_and_texts(text):
        kinds[kind].append(found)
    made, left = "", "\n"
    words = []
    for token in tokenizer.encode(text):
        word = tokenizer.words[token]
        words.append(kinds["word"].pop(0) if token == 0 else kinds["line"].pop(0) if word == "<eos>" else word)
    if tokenizer.spaced:
        for word in words:
            made += kinds["edge" if "\n" in (left, word) else "gap"].pop(0) + word
            left = word
    else:
        decoder = WordDecoder(words)
        made = "".join(decoder.feed(i) for i in range(len(words)))
    assert made.strip() == text.strip() and not any(kinds.values())


def test_unknown_words_are_never_predicted_and_a_run_keeps_the_rules_it_began_with(tiny) -> None:
    tokenizer, config = MADE["words"], tiny("data.corpus=x.txt")
    tokens = torch.from_numpy(tokenizer.encode(TEXT))
    share = 12 / (len(tokens) - 1)
    scorers = [TextScorer(config, Split(TEXT), tokens, tokenizer, n, Split(TRAIN)) for n in (2, 3)]
    older, now = (scorer.score_model(Always(tokenizer.vocab_size)) for scorer in scorers)
    assert (older.accuracy, now.accuracy) == (share, 0.0) and older.unknown == now.unknown == share
    assert older.loss == now.loss and older.bits_per_byte < now.bits_per_byte
    rest = TEXT.removeprefix("the")
    assert older.bits_per_byte * len(rest.encode()) * math.log(2) == pytest.approx(older.loss * (len(tokens) - 1))
    apart = TextsScorer(config, scorers[1:] * 2, 0, None).score_model(Always(tokenizer.vocab_size))
    assert apart.bits_per_byte == pytest.approx(now.bits_per_byte, rel=1e-12) and apart.accuracy == 0.0


def test_without_the_training_text_only_known_words_have_bits_per_byte(tiny) -> None:
    tokenizer, config = TextWordTokenizer.train("the cat . the cat .", 100), tiny("data.corpus=x.txt")
    for text, known in (("the cat. the cat.", True), ("the cat. the zebra.", False)):
        scorer = TextScorer(config, Split(text), torch.from_numpy(tokenizer.encode(text)), tokenizer)
        record, lines = TextsScorer(config, [scorer], 0, None).evaluate(Always(tokenizer.vocab_size), 0)
        assert ("bits_per_byte" in record) is ("word_perplexity" in record) is known
        assert any("which is not here" in line for _, line in lines) is not known


@pytest.mark.parametrize(
    "text, spaces", [("这只猫坐在垫子上。ok\n", False), ("ไทย " * 9, False), ("Ja, 中 is a word\n", True)]
)
def test_a_text_without_spaces_between_words_has_no_word_perplexity(text: str, spaces: bool, tiny) -> None:
    text, tokenizer = text * 9, ByteTokenizer()
    for records in (2, 3):
        tokens = torch.from_numpy(tokenizer.encode(text))
        scorer = TextScorer(tiny("data.corpus=x.txt"), Split(text), tokens, tokenizer, records)
        assert ("word_perplexity" in scorer.score_model(Always(256)).dump()) is (spaces or records == 2)


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
    first = {"characters": "t", "bytes": "t", "bpe": tokenizer.decode([int(ids[0])])}.get(kind, "the")
    rest = TEXT.removeprefix(first)
    loss = nats / (len(ids) - 1)
    if "words" in kind:
        nats += math.fsum(spelled(tokenizer)[1:])
    assert record["loss"] == pytest.approx(loss, abs=1e-5)
    assert record["perplexity"] == pytest.approx(math.exp(loss), rel=1e-4)
    assert record["bits_per_byte"] == pytest.approx(nats / math.log(2) / len(rest.encode()), rel=1e-5)
    assert record["bits_per_character"] == pytest.approx(nats / math.log(2) / len(rest), rel=1e-5)
    words = len(rest.split()) + rest.count("\n")
    if kind == "characters":
        assert "word_perplexity" not in record  # recorded as before
    else:
        assert record["word_perplexity"] == pytest.approx(math.exp(nats / words), rel=1e-3)
    assert record.get("unknown") == (12 / (len(ids) - 1) if "words" in kind else None)  # zebra


def test_the_facts_of_a_run_count_words_bytes_and_unknown_words(tiny) -> None:
    corpus = TextCorpus("x", "x", "x.txt", {"train": Split(TRAIN), "validation": Split(TEXT)})
    config = tiny("data.corpus=x.txt", "data.tokenizer=words", "model.context_length=8")
    facts = TextTask.from_corpus(corpus, config).facts(config).splits["validation"]
    sizes = sizes_of(TEXT.encode())
    assert facts == {
        "characters": len(TEXT),
        "tokens": sizes.words,
        "words": sizes.words,
        "bytes": len(TEXT.encode()),
        "unknown": 12,
    }
