"""Documents and questions in the design: what is offered, what is shown of them, their cost before they are read."""

import pytest

from engine.config.sections import DataConfig
from engine.data.catalogue import KINDS, load_corpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.known import CORPORA, names_of
from engine.data.tokenizers import CharacterTokenizer, WordTokenizer
from tests.small_documents import config, folder
from tui_transformer.lab.design.draft import Draft, allowed_values, cost, vocabulary
from tui_transformer.studio.design.corpus_preview import corpus_key, preview_corpus


def test_corpora_of_documents_are_offered() -> None:
    assert set(names_of("documents")) <= set(allowed_values("data.corpus"))


@pytest.mark.parametrize("kind", ["span-corruption", "question-answer"])
def test_an_objective_on_documents_brings_its_corpus_along(kind) -> None:
    way = Draft.from_preset("demo").changes_to_allow("objective.kind", kind)
    assert way == {"objective.kind": kind, "data.corpus": "biographies"}
    assert not Draft.from_preset("demo").with_changes(way).problem


@pytest.mark.parametrize(("name", "people"), [("biographies", 300), ("biographies-named", None), ("biographies", 20)])
def test_the_vocabulary_is_known_without_loading_and_is_at_least_that_of_the_corpus(name, people) -> None:
    data = DataConfig(corpus=name, corpus_size=people)
    texts = list(load_corpus(DocumentCorpus, data).texts())
    for kind, tokenizer in (("words", WordTokenizer), ("characters", CharacterTokenizer)):
        tokens, at_most = KINDS[CORPORA[name].kind].vocabularies[name](data)[kind]
        found = tokenizer.from_texts(texts).vocab_size
        assert found < tokens if at_most else found == tokens


def test_the_cost_counts_words_and_the_tokens_of_the_objective() -> None:
    wanted = config("question-answer", data={"corpus_size": 300})
    found = vocabulary(wanted)
    assert found.tokens == wanted.min_vocab_size(454) and not found.at_most
    assert cost(wanted).parameters > 0
    assert vocabulary(config("question-answer", data={"corpus_size": 20})).at_most


def test_a_preview_of_documents_is_one_with_a_gap_and_of_questions_one_with_its_answer(tmp_path) -> None:
    own = {"corpus": str(folder(tmp_path / "own"))}
    documents = preview_corpus(config("span-corruption", data=own), None)
    assert "⁇" in documents.lines[0] and documents.train.endswith(" documents") and not documents.problem
    questions = preview_corpus(config("question-answer", data=own), None)
    assert questions.lines[:2] == ("Where was Ada born?", "London") and questions.train == "4 questions"
    assert questions.characters == documents.characters and questions.characters.text > 10
    assert corpus_key(config("span-corruption", data=own)) != corpus_key(config("question-answer", data=own))


def test_what_is_wrong_with_a_corpus_of_ones_own_is_said(tmp_path) -> None:
    (tmp_path / "documents.txt").write_text("Ada was born in London.\nBo was born in Rome.\n" * 20)
    own = {"corpus": str(tmp_path)}
    assert "has no questions" in preview_corpus(config("question-answer", data=own), None).problem
    assert not preview_corpus(config("span-corruption", data=own), None).problem
    assert preview_corpus(config("span-corruption", data={"corpus": str(tmp_path / "none")}), None).problem
