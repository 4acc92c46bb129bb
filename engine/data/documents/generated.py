"""Generated documents and questions: biographies, asked about in two forms."""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.config.sections import DataConfig
from engine.data.documents.corpus import DocumentCorpus, Question, Recall
from engine.data.synthetic import biographies
from engine.data.synthetic.biographies import Biographies, Person, Told
from engine.errors import InputError


@dataclass(frozen=True)
class Form:
    """How people are asked about.

    Args:
        question: with `{name}` in it.
        people: how many there are where `data.corpus_size` does not say.
    """

    question: str
    people: int


FORMS: dict[str, Form] = {
    "biographies": Form("Where was {name} born?", 500),
    # The name where documents have it, at the beginning: what a model of characters needs to find its memory by.
    "biographies-named": Form("{name}. Where was {name} born?", 300),
}


# Words besides surnames, of which everybody has one of their own, and different characters; fewer where people are few.
WORDS, CHARACTERS, ALL_FROM = 154, 53, 300


def vocabulary(name: str, data: DataConfig) -> dict[str, tuple[int, bool]]:
    """Kind of tokenizer → how many tokens, and whether that is only an upper bound."""
    people = data.corpus_size or FORMS[name].people
    at_most = people < ALL_FROM
    return {"words": (WORDS + people, at_most), "characters": (CHARACTERS, at_most)}


def load_biographies(name: str, data: DataConfig) -> DocumentCorpus:
    """Biographies from `data.corpus_seed`; `data.corpus_size` is the number of people.

    Of the people with held-out questions `data.test_fraction` (of all people) are for the test. The documents depend
    neither on that nor on the form of the questions.

    Raises:
        InputError: a number of people that cannot be, or a test that takes all of the validation.
    """
    form = FORMS[name]
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
    return DocumentCorpus(
        name,
        biographies.VERSION.replace("biographies", name),
        "generated",
        _notes(made),
        {split: tuple(told.text for told in getattr(made, split)) for split in ("train", "validation")},
        {split: tuple(_question(form, person) for person in group) for split, group in asked.items() if group},
        {
            "recall": _recalls(made, made.train),
            "recall-reworded": _recalls(made, made.validation),
            "recall-continued": _continued(made),
        },
    )


def _notes(made: Biographies) -> tuple[str, ...]:
    return (
        f"every birthplace stands in {biographies.DOCUMENTS_EACH} training documents of its person; what is held out "
        f"is the question, of {len(made.held_out):,} of the {len(made.asked) + len(made.held_out):,} people",
        "a validation document tells what training documents do, in a wording that is new for its person",
    )


def _question(form: Form, person: Person) -> Question:
    return Question(form.question.format(name=person.name), person.place)


def _recalls(made: Biographies, documents: Iterable[Told]) -> tuple[Recall, ...]:
    """The birthplace of each person, in the first of these documents that is about them."""
    first: dict[str, Told] = {}
    for told in documents:
        first.setdefault(told.person.name, told)
    found = (first[person.name] for person in made.asked + made.held_out)
    return tuple(Recall(told.prefix, told.suffix, told.person.place) for told in found)


def _continued(made: Biographies) -> tuple[Recall, ...]:
    """The beginning of a training document of each person, up to the birthplace, where that says what is to come."""
    leading = [told for told in made.train if told.prefix != f"{told.person.name}. "]
    return tuple(Recall(fact.prefix, None, fact.answer) for fact in _recalls(made, leading))
