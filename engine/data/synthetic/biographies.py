"""Biographies: invented people, what is told of them, and where they were born.

Half of the people are asked about in training, the others are not. What is held out is the question, never the fact:
every birthplace stands in the training documents of its person, in eight wordings. A ninth is held back, for a
validation loss that asks for known facts in sentences that are new for that person. No two people share a surname, and
nothing about a person gives away another thing about them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.data.synthetic.draws import Draws

VERSION = "biographies@1"
DOCUMENTS_EACH = 8  # training documents a person
FEWEST, MOST = 20, 5_000  # people

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("biographies.toml").read_text(encoding="utf-8"))
HER, HIS, JOBS, HOBBIES = (tuple(_TABLES[name].split()) for name in ("her", "his", "jobs", "hobbies"))
TEMPLATES: tuple[str, ...] = tuple(_TABLES["templates"])
PLACES: Mapping[str, int] = _TABLES["places"]  # and how many of a hundred people were born there


@dataclass(frozen=True)
class Person:
    """Somebody, and what there is to know of them.

    Attributes:
        he: "he" or "she"; `his` goes with it.
    """

    given: str
    surname: str
    he: str
    his: str
    place: str
    job: str
    hobby: str

    @property
    def name(self) -> str:
        return f"{self.given} {self.surname}"


@dataclass(frozen=True)
class Biography:
    """A document about a person.

    Attributes:
        template: its place in TEMPLATES.
        prefix: the text before the birthplace.
        suffix: the text behind it.
    """

    person: Person
    template: int
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        return self.prefix + self.person.place + self.suffix


@dataclass(frozen=True)
class Biographies:
    """A generated corpus.

    Attributes:
        asked: people whose questions are for training.
        held_out: people whose questions are for validation and test.
        train: training documents, in any order.
        validation: the held-back document of each person, in any order.
    """

    asked: tuple[Person, ...]
    held_out: tuple[Person, ...]
    train: tuple[Biography, ...]
    validation: tuple[Biography, ...]


@cache
def surnames() -> tuple[str, ...]:
    """Return all there are, in alphabetical order; none is a town, a trade or a pastime."""
    beginnings, endings = _TABLES["beginnings"].split(), _TABLES["endings"].split()
    made = {first + link + last for first in beginnings for link in _TABLES["links"] for last in endings}
    return tuple(sorted(made - set(PLACES) - {word.capitalize() for word in JOBS + HOBBIES}))


def apportioned(count: int) -> list[str]:
    """Return the birthplaces of so many people, each as often as its share says (largest remainders)."""
    total = sum(PLACES.values())
    times = {place: count * share // total for place, share in PLACES.items()}
    by_remainder = sorted(PLACES, key=lambda place: -(count * PLACES[place] % total))
    for place in by_remainder[: count - sum(times.values())]:
        times[place] += 1
    return [place for place, often in times.items() for _ in range(often)]


def _people(draws: Draws, family_names: list[str]) -> tuple[Person, ...]:
    people = []
    places = draws.shuffled(apportioned(len(family_names)))
    for surname, place in zip(family_names, places, strict=True):
        given = draws.pick(HER + HIS)
        he, his = ("she", "her") if given in HER else ("he", "his")
        people.append(Person(given, surname, he, his, place, draws.pick(JOBS), draws.pick(HOBBIES)))
    return tuple(people)


def _biography(person: Person, template: int) -> Biography:
    """Return what a template says of a person, after their name and a full stop."""
    words = {
        "name": person.name,
        "surname": person.surname,
        "he": person.he,
        "He": person.he.capitalize(),
        "his": person.his,
        "His": person.his.capitalize(),
        "job": person.job,
        "hobby": person.hobby,
    }
    prefix, suffix = (part.format(**words) for part in TEMPLATES[template].split("{place}"))
    return Biography(person, template, f"{person.name}. {prefix}", suffix)


def generate(seed: int, people: int) -> Biographies:
    """Return the corpus of a seed.

    Args:
        seed: any whole number; the same gives the same corpus with every version of Python.
        people: how many, FEWEST to MOST.

    Raises:
        ValueError: fewer or more people than that.
    """
    if not FEWEST <= people <= MOST:
        raise ValueError(f"{people} people; {FEWEST} to {MOST} can be drawn")
    draws = Draws(seed)
    # Two halves, the first at least as large; in each the places have the shares of PLACES.
    chosen = draws.shuffled(surnames())[:people]
    middle = (people + 1) // 2
    asked, held_out = _people(draws, chosen[:middle]), _people(draws, chosen[middle:])
    train, validation = [], []
    for person in asked + held_out:
        *told, kept_back = draws.shuffled(range(len(TEMPLATES)))[: DOCUMENTS_EACH + 1]
        train += [_biography(person, template) for template in told]
        validation.append(_biography(person, kept_back))
    return Biographies(asked, held_out, tuple(draws.shuffled(train)), tuple(draws.shuffled(validation)))
