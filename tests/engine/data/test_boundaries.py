"""`<|endoftext|>` is one token, and nothing is predicted across it unless a setting says so."""

import pytest
import tokenizers as hf
import torch

from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.loader import TextBatches, boundary_token, token_positions, training_batches
from engine.data.objectives import IGNORED, make_objective
from engine.data.sources import END_OF_TEXT
from engine.data.tokenizers import BpeTokenizer, CharacterTokenizer, cached_bpe, read_tokenizer
from engine.data.tokenizers.load import read_any_tokenizer
from engine.evaluation.metrics import score_tokens
from engine.model.transformer import build_model

DOCUMENTS = ["one two three\n", "four five", "six", "seven eight nine ten eleven"]
TEXT = "".join(document + END_OF_TEXT for document in DOCUMENTS)
END = 9


def config(**data: object) -> RunConfig:
    found = presets.resolve(presets.find("demo")).miniature().dump()
    found["data"] |= {"tokenizer": "bpe"} | data
    found["model"] |= {"vocab_size": 12, "context_length": 8}
    return RunConfig.model_validate(found)


def test_it_is_one_token_of_byte_pairs_and_never_merged(tmp_path) -> None:
    tokenizer = cached_bpe([TEXT * 3], 300)
    assert tokenizer.end_of_text == tokenizer.vocab_size - 1
    ids = tokenizer.encode(TEXT)
    assert int((ids == tokenizer.end_of_text).sum()) == len(DOCUMENTS) and tokenizer.decode(ids) == TEXT
    assert not any(b"end" in piece for piece in tokenizer.token_bytes[:-1])
    assert cached_bpe([TEXT * 3], 300).sha256 == tokenizer.sha256  # from the cache
    (tmp_path / "t.json").write_text(tokenizer.to_json())
    assert read_tokenizer(tmp_path / "t.json").target.end_of_text == tokenizer.end_of_text
    assert hf.Tokenizer.from_str(tokenizer.library_json()).encode(TEXT).ids == ids.tolist()
    assert cached_bpe(["no document ends"], 300).end_of_text is None


def test_gpt2s_vocabulary_has_it_after_its_merges(tmp_path) -> None:
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\nhe l\n")
    tokenizer = read_any_tokenizer(tmp_path / "merges.txt")
    assert tokenizer.encode(f"hel{END_OF_TEXT}").tolist() == [257, 258]


def test_windows_start_with_a_document_and_predict_nothing_of_the_next() -> None:
    tokens = torch.randint(0, 9, (400,), generator=torch.Generator().manual_seed(3))
    tokens[torch.arange(0, 400, 13)] = END
    made = config()
    objective = make_objective(made, 10)
    batches = TextBatches(tokens, objective, 64, 1, boundary=END)
    begun = 0
    for step in range(1, 9):
        batch = batches.batch(step, 0)
        assert batch.n_targets == int((batch.targets != IGNORED).sum())
        for read, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            begun += read[0] == END
            ends = read.index(END, 1) if END in read[1:] else len(read)
            assert all(target != IGNORED for target in targets[:ends]) and set(targets[ends:]) <= {IGNORED}
    assert begun > 100
    again = TextBatches(tokens, objective, 64, 1, boundary=END)
    assert torch.equal(
        again.batch(5, 0).targets, TextBatches(tokens, objective, 64, 1, boundary=END).batch(5, 0).targets
    )


@pytest.mark.parametrize("batch_size", [1, 5])
def test_each_document_is_scored_as_if_alone(batch_size: int) -> None:
    made = config()
    model = build_model(made.model, 12, 1, torch.device("cpu"))
    tokens = torch.randint(0, 9, (60,), generator=torch.Generator().manual_seed(3))
    tokens[[4, 5, 30, 59]] = END
    ends = token_positions(tokens, END)
    scores = score_tokens(model, tokens, context=8, stride=4, batch_size=batch_size, document_ends=ends)
    alone = [
        score_tokens(model, part, context=8, stride=4, batch_size=1).nll
        for part in (tokens[:5], tokens[4:6], tokens[5:31], tokens[30:])
    ]
    assert scores.nll == pytest.approx(torch.cat([torch.from_numpy(one) for one in alone]).numpy(), abs=1e-5)
    assert len(scores.nll) == 59


def test_a_setting_lets_windows_see_across() -> None:
    tokenizer = BpeTokenizer([], end_of_text=True)
    assert boundary_token(config(), tokenizer) == 256
    assert boundary_token(config(across_documents=True), tokenizer) is None
    assert boundary_token(config(), CharacterTokenizer("ab")) is None
    tokens, across = torch.full((100,), END), config(across_documents=True)
    batches = training_batches(tokens, across, make_objective(across, 10))
    assert batches.batch(1, 0).n_targets == batches.batch(1, 0).targets.numel()
