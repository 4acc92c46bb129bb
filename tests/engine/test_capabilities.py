import pytest

from engine import capabilities
from engine.config import presets
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.data.catalogue import KINDS
from engine.data.known import CORPORA, names_of
from tests.legal_cells import AXES, legal_cells

REFUSED = {
    "heads that do not divide": {"d_model": 64, "n_heads": 3},
    "rope on an odd head": {"d_model": 9, "n_heads": 3, "position": "rope"},
    "odd sinusoidal": {"d_model": 9, "n_heads": 3},
    "initialising a table that is not there": {"position": "rope", "position_init": "zero"},
    "groups that do not divide": {"n_kv_heads": 3},
    "a decoder that sees ahead": {"causal": False},
    "alibi without scores": {"attention": "linear", "position": "alibi"},
    "weights to drop where there are none": {"attention": "linear", "attention_dropout": 0.1},
    "a band of everything": {"backend": "banded"},
    "chunks of softmax": {"backend": "chunked"},
    "a fused kernel for linear attention": {"attention": "linear", "backend": "sdpa"},
    "a fused kernel for xl": {"position": "xl", "backend": "sdpa"},
    "matrix products for xl": {"position": "xl", "backend": "dense"},
    "a place for no norm": {"norm": "none", "norm_placement": "post"},
    "no norm at the end": {"norm": "none", "final_norm": True},
    "buckets without distances": {"position": "t5", "t5_max_distance": 8},
    "xl with odd width": {"d_model": 9, "n_heads": 3, "position": "xl"},
}


@pytest.mark.parametrize("model", REFUSED.values(), ids=REFUSED.keys())
def test_impossible_models_are_refused_with_a_reason(model: dict) -> None:
    refusal = capabilities.check(RunConfig.model_validate({"model": model}))
    assert refusal is not None and len(refusal.reason) > 30
    assert all(key.startswith("model.") for key in refusal.keys)


CROSSED = {
    "next token of an encoder": ({"model": {"architecture": "encoder"}}, "sees the tokens after it"),
    "masks for a decoder": ({"objective": {"kind": "masked"}}, "never looks ahead"),
    "two texts for one stack": ({"objective": {"kind": "copy"}}, "it needs architecture"),
    "one text for two stacks": ({"model": {"architecture": "encoder-decoder"}}, "reads a source"),
    "a shifted source": (
        {"model": {"architecture": "encoder-decoder"}, "objective": {"kind": "shifted"}},
        "is in the source, one place further on",
    ),
    "a target too long": (
        {"model": {"architecture": "encoder-decoder", "source_length": 200}, "objective": {"kind": "copy"}},
        "context_length=200",
    ),
}


@pytest.mark.parametrize(("tables", "says"), CROSSED.values(), ids=CROSSED.keys())
def test_an_objective_needs_its_network(tables: dict, says: str) -> None:
    refusal = capabilities.check(RunConfig.model_validate(tables))
    assert refusal is not None and says in refusal.reason


def test_a_share_of_a_head_is_said_as_it_is_rounded() -> None:
    model = {"position": "rope", "d_model": 128, "n_heads": 4, "rope_part": 0.3}
    refusal = capabilities.check(RunConfig.model_validate({"model": model}))
    assert refusal is not None and "0.3 of a head's 32 features, rounded down, is 9" in refusal.reason


def test_the_kernel_of_matrix_products_needs_texts_without_padding() -> None:
    assert capabilities.check(RunConfig.model_validate({"model": {"backend": "dense"}})) is None
    tables = {"model": {"backend": "dense", "architecture": "encoder-decoder"}, "objective": {"kind": "translation"}}
    tables["data"] = {"corpus": "phrasebook"}
    refusal = capabilities.check(RunConfig.model_validate(tables))
    assert refusal is not None and "does not support padding" in refusal.reason


DOCUMENTS = {
    "spans of an encoder": (
        {"model": {"architecture": "encoder"}},
        "span-corruption",
        "an encoder fills gaps in place",
    ),
    "answers of an encoder": ({"model": {"architecture": "encoder"}}, "question-answer", "an answer is written"),
    "a form for a source": ({"objective": {"span_form": "t5"}}, "span-corruption", "--set objective.span_form=cs224n"),
    "a form without a source": (
        {"model": {"architecture": "encoder-decoder"}},
        "span-corruption",
        "--set objective.span_form=t5",
    ),
    "no room for marks": ({"model": {"context_length": 5}}, "span-corruption", "at least 6 tokens"),
    "windows of documents": ({"data": {"window_stride": 3}}, "span-corruption", "which are not cut into windows"),
    "the BLEU of answers": ({"evaluation": {"select": "bleu"}}, "question-answer", "questions have exact_match"),
    "exact matches of spans": ({"evaluation": {"select": "exact_match"}}, "span-corruption", "has no exact_match"),
    "a text as documents": ({"data": {"corpus": "playlets"}}, "question-answer", "needs documents with questions"),
}


@pytest.mark.parametrize(("tables", "kind", "says"), DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_what_documents_and_questions_are_not_for_has_its_reason(tables: dict, kind: str, says: str) -> None:
    usual = {"data": {"corpus": "biographies"}, "objective": {"kind": kind}}
    merged = {section: usual.get(section, {}) | tables.get(section, {}) for section in usual | tables}
    refusal = capabilities.check(RunConfig.model_validate(merged))
    assert refusal is not None and says in refusal.reason


@pytest.mark.parametrize("tokenizer", ["characters", "words", "bpe"])
@pytest.mark.parametrize("kind", ["span-corruption", "question-answer"])
def test_documents_are_read_by_any_tokens(kind: str, tokenizer: str) -> None:
    data = {"corpus": "biographies", "tokenizer": tokenizer}
    select = {"select": "exact_match"} if kind == "question-answer" else {}
    tables = {"data": data, "objective": {"kind": kind}, "evaluation": select}
    assert capabilities.check(RunConfig.model_validate(tables)) is None


TRANSLATION = {"model": {"architecture": "encoder-decoder"}, "objective": {"kind": "translation"}}


@pytest.mark.parametrize("tokenizer", ["characters", "words", "bpe", "bytes", "loaded"])
def test_texts_are_read_by_any_tokens(tokenizer: str) -> None:
    data = {"corpus": "tiny-shakespeare", "tokenizer": tokenizer}
    data |= {"tokenizer_from": "runs/other"} if tokenizer == "loaded" else {}
    assert capabilities.check(RunConfig.model_validate({"data": data})) is None


TOKENS = {
    "other tokens of playlets": ({"data": {"tokenizer": "bpe"}}, "playlets works only with character tokens"),
    "words of sentences": ({**TRANSLATION, "data": {"corpus": "multi30k", "tokenizer": "words"}}, "translations use"),
    "bytes of sentences": ({**TRANSLATION, "data": {"corpus": "multi30k", "tokenizer": "bytes"}}, "is for texts"),
    "loaded from nowhere": ({"data": {"corpus": "ptb", "tokenizer": "loaded"}}, "needs a path to load it from"),
    "a place that is not asked for": (
        {"data": {"corpus": "ptb", "tokenizer_from": "x"}},
        "is for tokenizer = 'loaded'",
    ),
}


@pytest.mark.parametrize(("tables", "says"), TOKENS.values(), ids=TOKENS.keys())
def test_tokens_that_do_not_fit_have_their_reason(tables: dict, says: str) -> None:
    refusal = capabilities.check(RunConfig.model_validate(tables))
    assert refusal is not None and says in refusal.reason and "data.tokenizer" in refusal.keys


@pytest.mark.parametrize(
    ("tables", "corpus", "says"),
    [
        ({}, "multi30k", "--preset multi30k trains on it"),
        ({}, "phrasebook", "--preset phrasebook trains on it"),
        ({}, "tatoeba-en-de#de,en", "--preset multi30k --corpus tatoeba-en-de#de,en trains on it"),
        (TRANSLATION, "playlets", "--preset demo trains on it"),
        (TRANSLATION, "tiny-shakespeare", "--preset shakespeare-cpu trains on it"),
    ],
)
def test_a_corpus_of_the_other_kind_is_refused_with_what_trains_on_it(tables: dict, corpus: str, says: str) -> None:
    refusal = capabilities.check(RunConfig.model_validate(tables | {"data": {"corpus": corpus}}))
    assert refusal is not None and refusal.reason.endswith(says)
    assert refusal.keys == ("data.corpus", "objective.kind")


@pytest.mark.parametrize("corpus", ["my.txt", "a.en,a.de", "pairs.tsv#1,2", "nobody"])
def test_a_path_is_left_to_who_reads_it(corpus: str) -> None:
    for tables in ({}, TRANSLATION):
        assert capabilities.check(RunConfig.model_validate(tables | {"data": {"corpus": corpus}})) is None


def test_what_is_said_to_train_on_a_corpus_does() -> None:
    told = {name: entry.preset for name, entry in CORPORA.items() if entry.preset}
    assert len(told) >= 5
    for corpus, preset in told.items():
        config = presets.resolve(presets.find(preset))
        assert capabilities.check(config) is None and config.data.corpus == corpus
    for kind, preset in ((kind, one.preset) for kind, one in KINDS.items() if one.preset):
        for corpus in names_of(kind):
            told = presets.resolve(presets.find(preset), overrides=[{"data": {"corpus": corpus}}])
            assert capabilities.check(told) is None


@pytest.mark.parametrize("kind", ["next-token", "shifted"])
def test_a_leak_can_be_allowed(kind: str) -> None:
    architecture = "encoder" if kind == "next-token" else "encoder-decoder"
    tables = {"model": {"architecture": architecture}, "objective": {"kind": kind}, "train": {"allow_leak": True}}
    config = RunConfig.model_validate(tables)
    assert capabilities.check(config) is None and config.task.copy_leak(config) is not None


def test_a_window_of_one_sees_nothing_ahead() -> None:
    for window, leaks in ((1, False), (2, True), (3, True)):
        model = {"architecture": "encoder", "attention": "window", "window": window}
        config = RunConfig.model_validate({"model": model})
        assert (config.task.copy_leak(config) is not None) is leaks


def test_derived_settings_follow_what_they_derive_from() -> None:
    assert ModelConfig(architecture="encoder").causal is False
    assert ModelConfig(attention="linear").attention_dropout == 0.0
    assert ModelConfig(norm="none").final_norm is False
    assert ModelConfig(attention_dropout=0.3, attention="window").attention_dropout == 0.3


def test_what_cannot_be_chosen_has_its_reason() -> None:
    config = RunConfig.model_validate({"model": {"d_model": 6, "n_heads": 2}})
    offered = {
        value: capabilities.check(capabilities.with_value(config, "model.position", value))
        for value in AXES["model.position"]
    }
    assert offered["sinusoidal"] is None
    assert offered["rope"] is not None and "pairs" in offered["rope"].reason


def test_the_grid_covers_every_value_of_every_axis() -> None:
    cells = list(legal_cells(RunConfig()))
    assert len(cells) >= 1_680  # of 10,368 combinations of what there was first
    for key, values in AXES.items():
        section, name = key.split(".")
        found = {getattr(getattr(cell, section), name) for cell in cells}
        assert found == set(values) - {"shifted"}  # which needs allow_leak
