"""Which tokenizer a text gets: made from its training split alone, or loaded from elsewhere."""

import json

import pytest

from engine.base.errors import InputError
from engine.data.corpora import TextCorpus
from engine.data.splits import Split
from engine.data.tokenizers import BpeTokenizer, CharacterTokenizer, PairTokenizer, TextWordTokenizer
from engine.data.tokenizers.bpe import SIGNS
from engine.tasks.text import TextTask

TRAIN, HELD_OUT = "one two three one two\n" * 60, "one four four four\n" * 30
CORPUS = TextCorpus("x", "x", "x.txt", {"train": Split(TRAIN), "validation": Split(HELD_OUT)})


def of(tiny, *settings: str, corpus: TextCorpus = CORPUS) -> TextTask:
    config = tiny("data.corpus=x.txt", "model.context_length=8", *settings)
    return TextTask.from_corpus(corpus, config)


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_only_the_training_split_makes_the_tokens(tiny, kind: str) -> None:
    task = of(tiny, f"data.tokenizer={kind}", "data.bpe_size=300")
    other = TextCorpus("x", "x", "x.txt", {"train": Split(TRAIN), "validation": Split("five six seven\n" * 40)})
    assert (
        task.tokenizer.sha256 == of(tiny, f"data.tokenizer={kind}", "data.bpe_size=300", corpus=other).tokenizer.sha256
    )
    assert not any("four" in task.tokenizer.decode([i]) for i in range(task.vocab_size))


def test_characters_are_of_all_splits_as_before(tiny) -> None:
    assert of(tiny).tokenizer.sha256 == CharacterTokenizer.from_texts([TRAIN, HELD_OUT]).sha256


def test_words_are_at_most_as_many_as_asked_for(tiny) -> None:
    assert of(tiny, "data.tokenizer=words", "data.words_size=3").vocab_size == 3


def loaded(tiny, place) -> TextTask:
    return of(tiny, "data.tokenizer=loaded", f"data.tokenizer_from='{place}'")


def test_a_tokenizer_is_loaded_from_a_run_or_a_file(tiny, tmp_path) -> None:
    ours = BpeTokenizer.train([TRAIN], 300)
    (tmp_path / "tokenizer.json").write_text(ours.to_json())
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        assert loaded(tiny, place).tokenizer.sha256 == ours.sha256


def test_bpe_of_the_tokenizers_library_encodes_alike(tiny, tmp_path) -> None:
    ours = BpeTokenizer.train([TRAIN], 300)
    (tmp_path / "tokenizer.json").write_text(ours.library_json())
    assert loaded(tiny, tmp_path).tokenizer.sha256 == ours.sha256


@pytest.mark.parametrize("name", ["merges.txt", "vocab.bpe"])
def test_the_merges_of_gpt2_are_read(tiny, tmp_path, name: str) -> None:
    ours = BpeTokenizer.train([TRAIN], 300)
    signs = ["".join(SIGNS[byte] for byte in piece) for piece in ours.token_bytes]
    lines = ["#version: 0.2", *(f"{signs[left]} {signs[right]}" for left, right in ours.merges)]
    (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert loaded(tiny, tmp_path).tokenizer.sha256 == BpeTokenizer(ours.merges, end_of_text=True).sha256


WORDS = TextWordTokenizer.train(TRAIN, 10)
FOREIGN = {
    "nothing": (None, "tokenizer.json: cannot read this tokenizer"),
    "no BPE": ({"model": {"type": "WordPiece"}, "pre_tokenizer": None}, "only byte-level BPE"),
    "another split": (
        {"model": {"type": "BPE", "merges": []}, "pre_tokenizer": {"type": "Whitespace"}},
        "only byte-level BPE",
    ),
    "a merge of nothing": (
        {"model": {"type": "BPE", "merges": ["a nowhere"]}, "pre_tokenizer": {"type": "ByteLevel"}},
        "merge 1 joins a token that does not exist",
    ),
    "a pair": (json.loads(PairTokenizer(WORDS, BpeTokenizer([])).to_json()), "plain text needs just one"),
}


@pytest.mark.parametrize(("content", "says"), FOREIGN.values(), ids=FOREIGN.keys())
def test_what_cannot_be_loaded_is_one_line(tiny, tmp_path, content, says: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=says) as found:
        loaded(tiny, tmp_path)
    assert "\n" not in str(found.value)


def test_a_tokenizer_of_another_kind_is_not_taken_over(tiny) -> None:
    config = tiny("data.corpus=x.txt", "model.context_length=8", "data.tokenizer=bpe")
    with pytest.raises(InputError, match="reads text with the 'bpe' tokenizer, but the parent's is 'text-words'"):
        TextTask.from_corpus(CORPUS, config, WORDS)
    assert TextTask.from_corpus(
        CORPUS, tiny("data.corpus=x.txt", "data.tokenizer=words", "model.context_length=8"), WORDS
    )


@pytest.mark.parametrize("kind", ["words", "bpe", "bytes"])
@pytest.mark.parametrize("objective", ["next-token", "masked", "copy"])
def test_the_first_sample_has_a_prompt_of_its_own_tokens(tiny, kind: str, objective: str) -> None:
    architecture = {"next-token": "decoder", "masked": "encoder", "copy": "encoder-decoder"}[objective]
    settings = (f"data.tokenizer={kind}", f"objective.kind={objective}", f"model.architecture={architecture}")
    config = tiny("data.corpus=x.txt", "model.context_length=8", "data.bpe_size=300", *settings)
    task = TextTask.from_corpus(CORPUS, config)
    sampler = task.sampler(config)
    assert sampler.prompt and len(task.tokenizer.encode(sampler.prompt))


SENTENCES = "".join(f"{chr(0x4E00 + i)}猫{chr(0x5E00 + i)}坐在{chr(0x6E00 + i)}垫子上。" for i in range(300))
KNOWN = "a b c d e f g h\n" * 60


@pytest.mark.parametrize(
    "train, held_out, settings, split",
    [
        (SENTENCES, SENTENCES, (), "validation"),  # each sentence is one word
        (KNOWN, KNOWN, ("data.words_size=4",), "validation"),
        (KNOWN, KNOWN + "x y z\n" * 90, (), "validation"),
        (KNOWN + SENTENCES * 2, KNOWN, (), ""),
        (KNOWN, KNOWN, (), ""),
    ],
)
def test_a_word_model_that_knows_too_few_words_says_so(tiny, train, held_out, settings, split: str) -> None:
    corpus = TextCorpus("x", "x", "x.txt", {"train": Split(train), "validation": Split(held_out)})
    config = tiny("data.corpus=x.txt", "model.context_length=8", "data.tokenizer=words", *settings)
    task = TextTask.from_corpus(corpus, config)
    said = [lint.message for lint in task.lints(config) if lint.key == "data.tokenizer"]
    assert len(said) == bool(split)
    for words in said:
        share = (task.tokens[split] == 0).float().mean()
        assert f"{share:.0%} of the tokens in the {split} split are <unk>" in words and "data.tokenizer=bpe" in words
