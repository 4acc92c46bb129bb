"""Documents with questions that have a name, and the one door to all of them: a name, or a path (`by_path.py`)."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from engine.config.sections import DataConfig
from engine.data.documents.by_path import by_hash, load_path, read_documents, read_questions
from engine.data.documents.corpus import DocumentCorpus, Question, Recall
from engine.data.download import Remote
from engine.data.entry import CorpusEntry, data_folders, is_there
from engine.data.synthetic import biographies
from engine.data.synthetic.biographies import Biography
from engine.errors import InputError, nearest

Entry = CorpusEntry[DocumentCorpus]


# --- generated biographies, asked about in two forms


class Form(NamedTuple):
    question: str  # with `{name}` in it
    people: int  # where `data.corpus_size` does not say


FORMS: dict[str, Form] = {
    "biographies": Form("Where was {name} born?", 500),
    # The name where documents have it, at the beginning: what a model of characters needs to find its memory by.
    "biographies-named": Form("{name}. Where was {name} born?", 300),
}
# Words besides surnames, of which everybody has one of their own, and different characters; fewer where people are few.
WORDS, CHARACTERS, ALL_FROM = 154, 53, 300


def _vocabulary(name: str, data: DataConfig) -> dict[str, tuple[int, bool]]:
    people = data.corpus_size or FORMS[name].people
    at_most = people < ALL_FROM
    return {"words": (WORDS + people, at_most), "characters": (CHARACTERS, at_most)}


def _load_biographies(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> DocumentCorpus:
    """Biographies from `data.corpus_seed`; `data.corpus_size` is the number of people.

    Of the people with held-out questions `data.test_fraction` (of all people) are for the test. The documents depend
    neither on that nor on the form of the questions.
    """
    name, form = entry.name, FORMS[entry.name]
    people = data.corpus_size or form.people
    if not biographies.FEWEST <= people <= biographies.MOST:
        raise InputError(
            f"data.corpus_size = {people}: '{name}' has {biographies.FEWEST} to {biographies.MOST:,} people; "
            f"{form.people} is usual"
        )
    made = biographies.generate(data.corpus_seed, people)
    tested = round(people * data.test_fraction)
    if tested >= len(made.held_out):
        raise InputError(
            f"data.test_fraction = {data.test_fraction:g}: half of the people are held out, for validation and test "
            "together; leave some for validation (below 0.5)"
        )
    border = len(made.held_out) - tested
    asked = {"train": made.asked, "validation": made.held_out[:border], "test": made.held_out[border:]}
    notes = (
        f"every birthplace stands in {biographies.DOCUMENTS_EACH} training documents of its person; what is held out "
        f"is the question, of {len(made.held_out):,} of the {people:,} people",
        "a validation document tells what training documents do, in a wording that is new for its person",
    )

    def recalls(documents: Iterable[Biography]) -> tuple[Recall, ...]:
        """Return the birthplace of each person, in the first of these documents that is about them."""
        first: dict[str, Biography] = {}
        for told in documents:
            first.setdefault(told.person.name, told)
        found = (first[person.name] for person in made.asked + made.held_out)
        return tuple(Recall(told.prefix, told.suffix, told.person.place) for told in found)

    # The beginning of a training document of each person, up to the birthplace, where that says what is to come.
    leading = (told for told in made.train if told.prefix != f"{told.person.name}. ")
    return DocumentCorpus(
        name,
        biographies.VERSION.replace("biographies", name),
        "generated",
        notes,
        {split: tuple(told.text for told in getattr(made, split)) for split in ("train", "validation")},
        {
            split: tuple(Question(form.question.format(name=person.name), person.place) for person in group)
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
# The assignment pretrains on all of wiki.txt. Here a hundred documents are held back for a validation loss: of people
# who are asked about in training, so that nothing which validation or test asks for is lost.

BIRTHPLACES = "cs224n-birthplaces"
BIRTHPLACE_QUESTIONS = {
    "train": "birth_places_train.tsv",
    "validation": "birth_dev.tsv",
    "test": "birth_test_inputs.tsv",
}
HELD_BACK = 100  # documents
ASKED = re.compile(r"Where was (?P<name>.+) born\?")
HASHES = {
    "wiki.txt": "823bb536fca77c8b5a15b34b0dead6355d0cf1f806e822464bca28806c2fd055",
    "birth_places_train.tsv": "521f7f42bbd9065525edc1eb4353b6706215e76bd683653e36bacace2c8bb409",
    "birth_dev.tsv": "101a56073eba0db9aad5e2aaf1aa9bf8bdae966ae3aaed8fc8cda5edfa7856da",
    "birth_test_inputs.tsv": "5ccd3b2a1682e0daf90d59488aef8805ef21b9d35795cc3bdabdea79d293aa1f",
}


def _load_birthplaces(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> DocumentCorpus:
    place = entry.found(folders)
    if place is None:
        raise entry.not_here(folders, "--corpus biographies works now")
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
        f"{len(parts['validation']):,} of the {len(documents):,} documents are held back for a validation loss, all "
        "about people whose birthplace is told in training; nobody can know what only they say, so a model that "
        "learns more by heart scores worse on them: finetune from the last checkpoint, not from the best one",
    )
    recalls = {"recall": tuple(_recalls(parts["train"], questions["validation"]))}
    return DocumentCorpus(entry.name, entry.name, str(place.resolve()), notes, parts, questions, recalls)


def _recalls(documents: Sequence[str], questions: Sequence[Question]) -> Iterator[Recall]:
    """Yield the answers that stand, as whole words, in a document about the person who is asked about."""
    in_order = sorted(documents)
    for question in questions:
        answer = question.answer or ""
        whole = re.compile(rf"(?<![\w-]){re.escape(answer)}(?![\w-])")
        for text in _about(question, in_order):
            match = whole.search(text, text.index(". ") + 2)
            if match is not None:
                yield Recall(text[: match.start()], text[match.end() :], answer)
                break


def _about(question: Question, in_order: Sequence[str]) -> Sequence[str]:
    """Return the documents that begin with the name of the person who is asked about, and a full stop."""
    match = ASKED.fullmatch(question.text)
    if match is None:
        return ()
    begins = f"{match['name']}. "
    first = last = bisect_left(in_order, begins)
    while last < len(in_order) and in_order[last].startswith(begins):
        last += 1
    return in_order[first:last]


# --- all of them

DOCUMENTS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "biographies",
            "documents",
            "generated lives of invented people, and where they were born",
            _load_biographies,
            vocabulary=partial(_vocabulary, "biographies"),
        ),
        Entry(
            "biographies-named",
            "documents",
            "the same, asked with the name first, as the documents have it: what characters need",
            _load_biographies,
            vocabulary=partial(_vocabulary, "biographies-named"),
        ),
        Entry(
            BIRTHPLACES,
            "documents",
            "birthplaces of people on Wikipedia: the files of Stanford CS224N's assignment on pretraining",
            _load_birthplaces,
            # No address: the files come with the assignment's starting code, which moves every year.
            tuple(Remote("", f"{BIRTHPLACES}/{file}", sha256, 2_000_000) for file, sha256 in HASHES.items()),
            origin="they come with Stanford CS224N's assignment on pretraining",
        ),
    )
}


def load_documents(data: DataConfig, data_dir: Path | None = None) -> DocumentCorpus:
    """Return the corpus of documents that a config names: a registered name, or the path of a text file or a folder.

    Args:
        data: `corpus` is what is asked for; `validation_fraction` cuts documents of your own.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: no such corpus or file, or something wrong with it; names the file and the line.
    """
    entry = DOCUMENTS.get(data.corpus)
    if entry is not None:
        return entry.load(entry, data, data_folders(data_dir))
    if not any(sign in data.corpus for sign in "/\\.~") and not is_there(data.corpus):
        hint = nearest(data.corpus, DOCUMENTS) or (
            f"; known: {', '.join(DOCUMENTS)}; or the path of a text file or a folder"
        )
        raise InputError(f"no corpus of documents is called '{data.corpus[:80]}'{hint}")
    return load_path(data)
