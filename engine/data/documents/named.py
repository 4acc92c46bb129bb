"""The kind of documents with questions, and loaders for the named ones: generated biographies, CS224N's birthplaces."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import tr
from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind
from engine.data.documents.by_path import by_hash, load_path, read_documents, read_questions, takes
from engine.data.documents.corpus import DocumentCorpus, Question, Recall
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
WORDS, CHARACTERS, ALL_FROM = 154, 53, 300


def vocabulary(name: str, data: DataConfig) -> dict[str, tuple[int, bool]]:
    people = data.corpus_size or PEOPLE[name]
    at_most = people < ALL_FROM
    return {"words": (WORDS + people, at_most), "characters": (CHARACTERS, at_most)}


def load_biographies(entry: CorpusEntry, data: DataConfig, place: None) -> DocumentCorpus:
    """Biographies from `data.corpus_seed`; `data.corpus_size` is the number of people.

    Of the people with held-out questions, `data.test_fraction` (of all people) go to the test. The documents depend
    neither on that nor on the form of the questions.
    """
    name = entry.name
    people = data.corpus_size or PEOPLE[name]
    if people > biographies.MOST:  # the config already refuses too few
        raise InputError(
            tr(
                "data.corpus_size = {people}: '{name}' can have {fewest} to {most:,} people; the default is {people2}",
                people=people,
                name=name,
                fewest=biographies.FEWEST,
                most=biographies.MOST,
                people2=PEOPLE[name],
            )
        )
    made = biographies.generate(data.corpus_seed, people)
    tested = round(people * data.test_fraction)
    if tested >= len(made.held_out):
        raise InputError(
            tr(
                "data.test_fraction = {test_fraction:g}: half of the people are held out for validation and "
                "test together; use less than 0.5 to leave some for validation",
                test_fraction=data.test_fraction,
            )
        )
    border = len(made.held_out) - tested
    asked = {"train": made.asked, "validation": made.held_out[:border], "test": made.held_out[border:]}
    notes = (
        tr(
            "each person's birthplace appears in {documents_each} training documents about them; only "
            "the question is held out, for {n:,} of the {people:,} people",
            documents_each=biographies.DOCUMENTS_EACH,
            n=len(made.held_out),
            people=people,
        ),
        tr(
            "a validation document states facts from the training documents, in wording that they do not use for "
            "that person"
        ),
    )

    def recalls(documents: Iterable[Biography]) -> tuple[Recall, ...]:
        """Return each person's birthplace, from the first of these documents about them."""
        first: dict[str, Biography] = {}
        for told in documents:
            first.setdefault(told.person.name, told)
        found = (first[person.name] for person in made.asked + made.held_out)
        return tuple(Recall(told.prefix, told.suffix, told.person.place) for told in found)

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
            "recall-continued": tuple(Recall(fact.prefix, None, fact.answer) for fact in recalls(leading)),
        },
    )


# --- the birthplaces of Stanford CS224N's assignment on pretraining: one document a person, and where they were born
#
# The assignment pretrains on all of wiki.txt. Here a hundred documents are held back for a validation loss: about
# people asked about in training, so validation and test lose no facts.

BIRTHPLACE_QUESTIONS = {
    "train": "birth_places_train.tsv",
    "validation": "birth_dev.tsv",
    "test": "birth_test_inputs.tsv",
}
HELD_BACK = 100  # documents
ASKED = re.compile(r"Where was (?P<name>.+) born\?")


def load_birthplaces(entry: CorpusEntry, data: DataConfig, place: Path) -> DocumentCorpus:
    documents = read_documents(place / "wiki.txt")
    questions = {
        split: read_questions(place / file, blind=split == "test") for split, file in BIRTHPLACE_QUESTIONS.items()
    }
    in_order = sorted(documents)
    asked = {split: {text for one in group for text in _about(one, in_order)} for split, group in questions.items()}
    back = set(by_hash(asked["train"] - asked["validation"] - asked["test"])[:HELD_BACK])
    parts = {
        "train": tuple(text for text in documents if text not in back),
        "validation": tuple(text for text in documents if text in back),
    }
    notes = (
        tr(
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
        for text in _about(question, in_order):
            if match := whole.search(text, text.index(". ") + 2):
                recalls.append(Recall(text[: match.start()], text[match.end() :], answer))
                break
    source = str(place.resolve())
    return DocumentCorpus(entry.name, entry.name, source, notes, parts, questions, {"recall": tuple(recalls)})


def _about(question: Question, in_order: Sequence[str]) -> Sequence[str]:
    """Return the documents that begin with the name of the person in question, and a full stop."""
    match = ASKED.fullmatch(question.text)
    if match is None:
        return ()
    begins = f"{match['name']}. "
    last = bisect_right(in_order, begins, key=lambda text: text[: len(begins)])
    return in_order[bisect_left(in_order, begins) : last]


DOCUMENTS = CorpusKind(
    DocumentCorpus,
    noun=tr("corpus of documents"),
    is_a=tr("documents with questions"),
    known=tr("known"),
    path=tr("the path to a text file or a folder"),
    yours=tr("a folder with documents.txt"),
    signs="/\\.~",
    meanwhile=tr("biographies needs no download"),
    takes=takes,
    load_path=load_path,
    named=dict.fromkeys(QUESTIONS, load_biographies) | {"cs224n-birthplaces": load_birthplaces},
    vocabularies={name: partial(vocabulary, name) for name in QUESTIONS},
)
