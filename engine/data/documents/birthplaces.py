"""The birthplaces of Stanford CS224N's assignment on pretraining: one document a person, and where they were born.

The assignment pretrains on all of wiki.txt. Here a hundred documents are held back for a validation loss: of people
who are asked about in training, so that nothing which validation or test asks for is lost.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.data.corpora import find_file
from engine.data.documents.corpus import DocumentCorpus, Question, Recall
from engine.data.documents.questions import read_questions
from engine.data.documents.split import drawn
from engine.data.download import Remote
from engine.data.parallel.lines import read_lines

NAME = "cs224n-birthplaces"
DOCUMENTS = "wiki.txt"
QUESTIONS = {"train": "birth_places_train.tsv", "validation": "birth_dev.tsv", "test": "birth_test_inputs.tsv"}
HELD_BACK = 100  # documents
ASKED = re.compile(r"Where was (?P<name>.+) born\?")
HASHES = {
    "wiki.txt": "823bb536fca77c8b5a15b34b0dead6355d0cf1f806e822464bca28806c2fd055",
    "birth_places_train.tsv": "521f7f42bbd9065525edc1eb4353b6706215e76bd683653e36bacace2c8bb409",
    "birth_dev.tsv": "101a56073eba0db9aad5e2aaf1aa9bf8bdae966ae3aaed8fc8cda5edfa7856da",
    "birth_test_inputs.tsv": "5ccd3b2a1682e0daf90d59488aef8805ef21b9d35795cc3bdabdea79d293aa1f",
}
# No address: the files come with the assignment's starting code, which moves every year.
REMOTES = tuple(Remote("", f"{NAME}/{file}", sha256, 2_000_000) for file, sha256 in HASHES.items())


def load_birthplaces(folders: Sequence[Path]) -> DocumentCorpus | None:
    """The corpus from the first data folder that has all of its files; None if there is none.

    Raises:
        InputError: a file that cannot be read; names the line.
    """
    for folder in folders:
        if all(find_file(remote, [folder]) for remote in REMOTES):
            return _read(folder / NAME)
    return None


def _read(place: Path) -> DocumentCorpus:
    documents = [line for line in read_lines(place / DOCUMENTS).lines if line.strip()]
    questions = {split: read_questions(place / file, blind=split == "test") for split, file in QUESTIONS.items()}
    back = drawn(_of_training_alone(documents, questions), HELD_BACK)
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
    return DocumentCorpus(NAME, NAME, str(place.resolve()), notes, parts, questions, recalls)


def _of_training_alone(documents: Sequence[str], questions: Mapping[str, tuple[Question, ...]]) -> list[str]:
    """The documents about people whom only training asks about."""
    about = _About(documents)
    found = {split: {text for one in asked for text in about(one)} for split, asked in questions.items()}
    return sorted(found["train"] - found["validation"] - found["test"])


def _recalls(documents: Sequence[str], questions: Sequence[Question]) -> Iterator[Recall]:
    """The answers that stand, as whole words, in a document about the person who is asked about."""
    about = _About(documents)
    for question in questions:
        answer = question.answer or ""
        whole = re.compile(rf"(?<![\w-]){re.escape(answer)}(?![\w-])")
        for text in about(question):
            match = whole.search(text, text.index(". ") + 2)
            if match is not None:
                yield Recall(text[: match.start()], text[match.end() :], answer)
                break


class _About:
    """Finds documents by how they begin: with the name of the person, and a full stop."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._sorted = sorted(documents)

    def __call__(self, question: Question) -> list[str]:
        match = ASKED.fullmatch(question.text)
        if match is None:
            return []
        begins = f"{match['name']}. "
        first = last = bisect_left(self._sorted, begins)
        while last < len(self._sorted) and self._sorted[last].startswith(begins):
            last += 1
        return self._sorted[first:last]
