"""Named corpora of documents: what is in them, and what they promise."""

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.documents.corpus import DocumentCorpus, Question, RecallFact
from engine.data.known import CORPORA, names_of
from engine.data.synthetic import biographies
from engine.data.tokenizers import CharacterTokenizer, WordTokenizer

GOLDEN = {  # of the usual corpora; change the version when one of these changes
    "biographies": {
        "documents-train": "7b169af635c75855",
        "documents-validation": "de50333f44cc2c0b",
        "questions-train": "d92d4bd252022ab5",
        "questions-validation": "0b2acd59603a04aa",
        "recalls-recall": "c2369c684cffe997",
        "recalls-recall-reworded": "5bdf782bef0c5bf6",
        "recalls-recall-continued": "06546cc2af6ac262",
    },
    "biographies-named": {
        "documents-train": "191d5f2394698bb3",
        "documents-validation": "4ed0b1d42837be1d",
        "questions-train": "59130cc51d5e71d6",
        "questions-validation": "a20a80a7dcc9c4e2",
        "recalls-recall": "d37245529d380993",
        "recalls-recall-reworded": "4bf76d72703fef72",
        "recalls-recall-continued": "aad1467b59a9817a",
    },
}
GENERATED = tuple(GOLDEN)


def load(name: str, **changes: object) -> DocumentCorpus:
    return load_corpus(DocumentCorpus, DataConfig.model_validate({"corpus": name, **changes}))


def small(**changes: object) -> DocumentCorpus:
    corpus = {
        "name": "small",
        "version": "small",
        "source": "here",
        "notes": (),
        "documents": {"train": ("Ada. Ada is from Rome.",), "validation": ("Bo. Bo is from Oslo.",)},
        "questions": {
            "train": (Question("Ada?", "Rome"), Question("Cy?", "Oslo"), Question("Di?", "Oslo")),
            "validation": (Question("Ed?", "Oslo"), Question("Fi?", "Rome")),
            "test": (Question("Gu?", None),),
        },
        "recall_facts": {"recall": (RecallFact("Ada. Ada is from ", ".", "Rome"),)},
    }
    return DocumentCorpus(**(corpus | changes))


def test_the_majority_is_of_training_and_is_scored_on_the_split() -> None:
    assert small().majority_baseline("train") == ("Oslo", 2, 3)
    assert small().majority_baseline("validation") == ("Oslo", 1, 2)
    assert small().majority_baseline("test") == ("Oslo", 0, 0)


def test_of_equally_frequent_answers_the_first_in_the_alphabet_is_the_majority() -> None:
    asked = {"train": (Question("a?", "Rome"), Question("b?", "Oslo"))}
    assert small(questions=asked).majority_baseline("train")[0] == "Oslo"


def test_documents_alone_have_no_majority() -> None:
    with pytest.raises(ValueError, match="no training questions"):
        small(questions={}).majority_baseline("train")


def test_a_tokenizer_is_told_every_text() -> None:
    told = set(small().texts())
    assert {"Ada. Ada is from Rome.", "Bo. Bo is from Oslo.", "Gu?", "Oslo", "Ada. Ada is from "} <= told
    assert None not in told


def test_every_part_has_a_hash_of_its_own() -> None:
    hashes = small().sha256
    assert list(hashes) == [
        *("documents-train", "documents-validation"),
        *("questions-train", "questions-validation", "questions-test"),
        "recalls-recall",
    ]
    assert len(set(hashes.values())) == len(hashes)
    other = small(questions={"train": (Question("Ada?Rome", ""),)}).sha256["questions-train"]
    assert other != small(questions={"train": (Question("Ada?", "Rome"),)}).sha256["questions-train"]


# biographies


@pytest.mark.parametrize("name", GENERATED)
def test_a_config_always_gives_the_same_corpus(name: str) -> None:
    assert {part: sha256[:16] for part, sha256 in load(name).sha256.items()} == GOLDEN[name]
    assert load(name).version == f"{name}@1"
    assert load(name, corpus_seed=2).sha256 != load(name).sha256


def test_both_forms_ask_about_the_same_people_whose_documents_are_the_same() -> None:
    plain, named = load("biographies", corpus_size=60), load("biographies-named", corpus_size=60)
    assert plain.documents == named.documents and plain.recall_facts == named.recall_facts
    for split in ("train", "validation"):
        for one, other in zip(plain.questions[split], named.questions[split], strict=True):
            person = one.text.removeprefix("Where was ").removesuffix(" born?")
            assert other.text == f"{person}. {one.text}" and one.answer == other.answer


def test_corpus_size_is_the_number_of_people() -> None:
    assert sum(map(len, load("biographies").questions.values())) == 500
    assert sum(map(len, load("biographies-named").questions.values())) == 300
    assert sum(map(len, load("biographies", corpus_size=41).questions.values())) == 41


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_no_two_splits_ask_about_the_same_person(fraction: float) -> None:
    corpus = load("biographies", test_fraction=fraction)
    assert {split: len(asked) for split, asked in corpus.questions.items()} == (
        {"train": 250, "validation": 150, "test": 100} if fraction else {"train": 250, "validation": 250}
    )
    asked = [question.text for questions in corpus.questions.values() for question in questions]
    assert len(set(asked)) == len(asked) == 500


@pytest.mark.parametrize("name", GENERATED)
def test_no_question_gives_its_answer_away(name: str) -> None:
    corpus = load(name)
    towns = {question.answer for question in corpus.questions["train"]}
    for questions in corpus.questions.values():
        assert not any(town in question.text for question in questions for town in towns)


def test_every_fact_that_is_asked_for_stands_in_a_training_document() -> None:
    corpus = load("biographies", test_fraction=0.1)
    for questions in corpus.questions.values():
        for question in questions:
            person = question.text.removeprefix("Where was ").removesuffix(" born?")
            told = [text for text in corpus.documents["train"] if text.startswith(f"{person}. ")]
            assert len(told) == 8 and all(question.answer in text for text in told)


def test_the_probes_ask_for_the_birthplace_of_everybody_in_known_and_in_new_wordings() -> None:
    corpus = load("biographies", corpus_size=60)
    known, new = (
        [fact.prefix + fact.answer + (fact.suffix or "") for fact in corpus.recall_facts[probe]]
        for probe in ("recall", "recall-reworded")
    )
    assert set(known) <= set(corpus.documents["train"]) and set(new) == set(corpus.documents["validation"])
    assert len({text.split(".")[0] for text in known}) == len(known) == len(new) == 60
    for fact in corpus.recall_facts["recall-continued"]:
        assert fact.suffix is None and fact.prefix.count(" ") > 2
        assert any(text.startswith(fact.prefix + fact.answer) for text in corpus.documents["train"])
    assert len(corpus.recall_facts["recall-continued"]) == 60


def test_always_the_same_town_is_right_in_twelve_of_a_hundred() -> None:
    assert load("biographies").majority_baseline("validation") == ("Arlow", 30, 250)
    town, right, of = load("biographies-named").majority_baseline("validation")
    assert town == "Arlow" and abs(right / of - 0.12) < 0.01


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"corpus_size": 5_001}, "5001: .* 20 to 5,000 people; the default is 500"),
        ({"test_fraction": 0.5}, "use less than 0.5"),
        ({"test_fraction": 0.8}, "use less than 0.5"),
    ],
)
def test_people_that_cannot_be_drawn_or_dealt_out_are_refused(changes: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load("biographies", **changes)


def test_fewer_people_than_can_be_drawn_are_refused_as_a_setting() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 20"):
        load("biographies", corpus_size=biographies.MIN_PEOPLE - 1)


# names


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ("biografies", "did you mean 'biographies'?"),
        ("nobody", "known: biographies, biographies-named, cs224n-birthplaces"),
        ("x" * 300, "known: biographies"),
    ],
)
def test_an_unknown_name_is_one_line_with_the_known_ones(corpus: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        load(corpus)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_files_that_are_not_here_are_named_with_their_place(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda _: tmp_path / "user")
    with pytest.raises(
        InputError, match=r"wiki\.txt.*birth_dev\.tsv.* in .*cs224n-birthplaces.*biographies needs no download"
    ):
        load("cs224n-birthplaces")


# CS224N's birthplaces


@pytest.fixture
def birthplaces(real_data) -> DocumentCorpus:
    if not (real_data / "cs224n-birthplaces" / "wiki.txt").is_file():
        pytest.skip("cs224n-birthplaces is not in the folder of real corpora")
    return load_corpus(DocumentCorpus, DataConfig(corpus="cs224n-birthplaces"), real_data)


def test_london_is_right_in_91_of_2000_and_25_of_500(birthplaces) -> None:
    assert birthplaces.majority("train") == ("London", 91, 2000)
    assert birthplaces.majority("validation") == ("London", 25, 500)
    assert birthplaces.majority("test") == ("London", 0, 0)


def test_the_blind_test_asks_without_answers(birthplaces) -> None:
    assert len(birthplaces.questions["test"]) == 437
    assert {question.answer for question in birthplaces.questions["test"]} == {None}
    assert all(question.text.endswith(" born?") for question in birthplaces.questions["test"])


def test_no_document_that_validation_or_test_needs_is_held_back(birthplaces) -> None:
    assert {split: len(texts) for split, texts in birthplaces.documents.items()} == {"train": 2837, "validation": 100}
    for split in ("validation", "test"):
        for question in birthplaces.questions[split]:
            person = question.text.removeprefix("Where was ").removesuffix(" born?")
            assert not any(text.startswith(f"{person}. ") for text in birthplaces.documents["validation"])


def test_the_probe_asks_for_answers_that_a_training_document_tells(birthplaces) -> None:
    facts = birthplaces.recall_facts["recall"]
    assert len(facts) == 477
    assert {fact.prefix + fact.answer + fact.suffix for fact in facts} <= set(birthplaces.documents["train"])


def test_real_documents_come_back_from_words_and_from_characters(birthplaces) -> None:
    texts = [*birthplaces.documents["train"], *(question.text for question in birthplaces.questions["test"])]
    for tokenizer in (
        WordTokenizer.from_texts(birthplaces.texts()),
        CharacterTokenizer.from_texts(birthplaces.texts()),
    ):
        assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)


def test_every_named_corpus_is_described() -> None:
    assert set(names_of("documents")) == {"biographies", "biographies-named", "cs224n-birthplaces"}
    assert all(len(entry.description) > 30 for entry in CORPORA.values())
