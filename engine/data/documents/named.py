"""The kind of documents with questions, and loaders for the named ones: generated biographies, CS224N's birthplaces."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind
from engine.data.documents.by_path import (
    accepts_path,
    distinct_sorted_by_hash,
    load_path,
    read_documents,
    read_questions,
)
from engine.data.documents.corpus import DocumentCorpus, Question, RecallFact
from engine.data.synthetic import biographies
from engine.data.synthetic.biographies import Biography

# --- generated biographies, asked about in two forms


QUESTIONS = {
    "biographies": "Where was {name} born?",
    # The name comes first, as in the documents: a character model needs it there to recall the fact.
    "biographies-named": "{name}. Where was {name} born?",
}
PEOPLE = {"biographies": 500, "biographies-named": 300}  # if `data.corpus_size` is not set
# Words besides surnames (one per person), and distinct characters; fewer if there are few people.
N_OTHER_WORDS, N_CHARACTERS, MIN_PEOPLE_FOR_ALL = 154, 53, 300


def vocabulary_bounds_by_tokenizer(name: str, data: DataConfig) -> dict[str, tuple[int, bool]]:
    people = data.corpus_size or PEOPLE[name]
    at_most = people < MIN_PEOPLE_FOR_ALL
    return {"words": (N_OTHER_WORDS + people, at_most), "characters": (N_CHARACTERS, at_most)}


def load_biographies(entry: CorpusEntry, data: DataConfig, place: None) -> DocumentCorpus:
    """Biographies from `data.corpus_seed`; `data.corpus_size` is the number of people.

    Of the people with held-out questions, `data.test_fraction` (of all people) go to the test. The documents depend
    neither on that nor on the form of the questions.
    """
    name = entry.name
    people = data.corpus_size or PEOPLE[name]
    if people > biographies.MAX_PEOPLE:  # the config already refuses too few
        problem = Message(
            "data.corpus_size = {people}: '{name}' can have {fewest} to {most:,} people; the default is {people2}",
            people=people,
            name=name,
            fewest=biographies.MIN_PEOPLE,
            most=biographies.MAX_PEOPLE,
            people2=PEOPLE[name],
        )
        raise InputError(problem)
    made = biographies.generate(data.corpus_seed, people)
    tested = round(people * data.test_fraction)
    if tested >= len(made.held_out_people):
        problem = Message(
            "data.test_fraction = {test_fraction:g}: half of the people are held out for validation and "
            "test together; use less than 0.5 to leave some for validation",
            test_fraction=data.test_fraction,
        )
        raise InputError(problem)
    held_out, border = made.held_out_people, len(made.held_out_people) - tested
    asked = {"train": made.training_people, "validation": held_out[:border], "test": held_out[border:]}
    notes = (
        Message(
            "each person's birthplace appears in {documents_each} training documents about them; only "
            "the question is held out, for {n:,} of the {people:,} people",
            documents_each=biographies.DOCUMENTS_EACH,
            n=len(made.held_out_people),
            people=people,
        ),
        tr(
            "a validation document states facts from the training documents, in wording that they do not use for "
            "that person"
        ),
    )

    def recalls(documents: Iterable[Biography]) -> tuple[RecallFact, ...]:
        """Return each person's birthplace, from the first of these documents about them."""
        first: dict[str, Biography] = {}
        for told in documents:
            first.setdefault(told.person.name, told)
        found = (first[person.name] for person in made.training_people + made.held_out_people)
        return tuple(RecallFact(told.prefix, told.suffix, told.person.place) for told in found)

    # The start of each person's training document up to the birthplace, if it announces the birthplace.
    leading = (told for told in made.train if told.prefix != f"{told.person.name}. ")
    return DocumentCorpus(
        name,
        biographies.VERSION.replace("biographies", name),
        "generated",
        notes,
        {split: tuple(told.text for told in getattr(made, split)) for split in ("train", "validation")},
        {
            split: tuple(Question(QUESTIONS[name].format(name=person.name), person.place) for person in group)
            for split, group in asked.items()
            if group
        },
        {
            "recall": recalls(made.train),
            "recall-reworded": recalls(made.validation),
            "recall-continued": tuple(RecallFact(fact.prefix, None, fact.answer) for fact in recalls(leading)),
        },
    )


# --- the birthplaces of Stanford CS224N's assignment on pretraining: one document a person, and where they were born
#
# The assignment pretrains on all of wiki.txt. Here a hundred documents are held back for a validation loss: about
# people asked about in training, so validation and test lose no facts.

BIRTHPLACE_FILES = {"train": "birth_places_train.tsv", "validation": "birth_dev.tsv", "test": "birth_test_inputs.tsv"}
N_HELD_OUT_DOCUMENTS = 100  # documents
QUESTION_PATTERN = re.compile(r"Where was (?P<name>.+) born\?")


def load_birthplaces(entry: CorpusEntry, data: DataConfig, place: Path) -> DocumentCorpus:
    documents = read_documents(place / "wiki.txt")
    questions = {
        split: read_questions(place / file, may_lack_answers=split == "test")
        for split, file in BIRTHPLACE_FILES.items()
    }
    in_order = sorted(documents)
    asked = {
        split: {text for one in group for text in _documents_about(one, in_order)} for split, group in questions.items()
    }
    back = set(distinct_sorted_by_hash(asked["train"] - asked["validation"] - asked["test"])[:N_HELD_OUT_DOCUMENTS])
    parts = {
        "train": tuple(text for text in documents if text not in back),
        "validation": tuple(text for text in documents if text in back),
    }
    notes = (
        Message(
            "{n:,} of the {n2:,} documents are held out for a validation loss, all about people whose birthplace is "
            "given in training; facts found only in these documents cannot be learned, so the more a model "
            "memorizes, the worse it scores on them: finetune from the last checkpoint, not the best one",
            n=len(parts["validation"]),
            n2=len(documents),
        ),
    )
    recalls = []  # the answers that occur, as whole words, in a document about the person in question
    in_order = sorted(parts["train"])
    for question in questions["validation"]:
        answer = question.answer or ""
        whole = re.compile(rf"(?<![\w-]){re.escape(answer)}(?![\w-])")
        for text in _documents_about(question, in_order):
            if match := whole.search(text, text.index(". ") + 2):
                recalls.append(RecallFact(text[: match.start()], text[match.end() :], answer))
                break
    source = str(place.resolve())
    return DocumentCorpus(entry.name, entry.name, source, notes, parts, questions, {"recall": tuple(recalls)})


def _documents_about(question: Question, in_order: Sequence[str]) -> Sequence[str]:
    """Return the documents that begin with the name of the person in question, and a full stop."""
    match = QUESTION_PATTERN.fullmatch(question.text)
    if match is None:
        return ()
    begins = f"{match['name']}. "
    last = bisect_right(in_order, begins, key=lambda text: text[: len(begins)])
    return in_order[bisect_left(in_order, begins) : last]


DOCUMENTS_KIND = CorpusKind(
    DocumentCorpus,
    noun=tr("corpus of documents"),
    description=tr("documents with questions"),
    names_heading=tr("known"),
    path_hint=tr("the path to a text file or a folder"),
    own_files_hint=tr("a folder with documents.txt"),
    path_characters="/\\.~",
    offline_hint=tr("biographies needs no download"),
    accepts_path=accepts_path,
    load_path=load_path,
    named_loaders=dict.fromkeys(QUESTIONS, load_biographies) | {"cs224n-birthplaces": load_birthplaces},
    vocabularies={name: partial(vocabulary_bounds_by_tokenizer, name) for name in QUESTIONS},
)
