"""What a config costs is known before it is trained wherever that can be."""

import pytest

from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.data.corpus import VocabularySizes
from tui_transformer.lab.design.draft import Vocabulary, cost, vocabulary


def config(name: str, *changes: str) -> RunConfig:
    return presets.resolve(presets.find(name), overrides=parse_overrides(changes))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("report-translation", 90_248_496),
        ("report-translation-no-pe", 90_248_496),
        ("report-translation-4heads", 90_248_496),
        ("report-translation-3layers", 68_179_248),
        ("report-translation-d256", 40_432_944),
        ("report-decoder", 3_192_897),
    ],
)
def test_the_reports_parameters_are_counted_without_their_data(name: str, parameters: int) -> None:
    found = cost(config(name))
    assert found is not None and found.parameters == parameters and not found.vocabulary.at_most


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((), Vocabulary(8_003, None, True)),
        (("data.bpe_size=500",), Vocabulary(503, None, True)),
        (("model.vocab_size=9000",), Vocabulary(9_000, None, False)),
        (("data.shared_vocabulary=false",), Vocabulary(8_003, 8_003, True)),
        (("data.shared_vocabulary=false", "model.vocab_size=9000"), Vocabulary(9_000, 8_003, True)),
        (
            ("data.shared_vocabulary=false", "model.vocab_size=9000", "model.source_vocab_size=8500"),
            Vocabulary(9_000, 8_500, False),
        ),
        (("data.tokenizer=characters",), None),
        (("data.tokenizer=characters", "model.vocab_size=300"), Vocabulary(300)),
        (("data.tokenizer=characters", "data.shared_vocabulary=false", "model.vocab_size=300"), None),
    ],
)
def test_byte_pairs_are_an_upper_bound_until_a_size_is_set(changes: tuple[str, ...], expected: Vocabulary) -> None:
    assert vocabulary(config("multi30k", *changes)) == expected


def test_characters_that_were_read_count_with_the_special_tokens_of_each_side() -> None:
    shared = config("multi30k", "data.tokenizer=characters")
    assert vocabulary(shared, VocabularySizes(110)) == Vocabulary(113)
    apart = config("multi30k", "data.tokenizer=characters", "data.shared_vocabulary=false")
    assert vocabulary(apart, VocabularySizes(99, 80)) == Vocabulary(102, 83)
    assert "83 for sources and 102 for targets" in Vocabulary(102, 83).description


def test_what_is_counted_is_what_is_built() -> None:
    from engine.model.transformer import build_model

    apart = config("multi30k", "data.shared_vocabulary=false", "data.bpe_size=300", "model.d_model=32", "model.d_ff=64")
    found = cost(apart)
    assert found is not None and found.vocabulary.at_most
    model = apart.model.model_copy(update={"source_vocab_size": found.vocabulary.sources})
    built = build_model(model, found.vocabulary.tokens, 1)
    assert sum(parameter.numel() for parameter in built.parameters()) == found.parameters


def test_a_budget_of_tokens_is_what_memory_is_estimated_for() -> None:
    small, large = (cost(config("multi30k", f"train.batch_tokens={n}")) for n in (4_096, 8_192))
    sentences = cost(config("multi30k", "train.batch_size=64"))
    assert small.memory < large.memory == sentences.memory  # 64 × 128 tokens
