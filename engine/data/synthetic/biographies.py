"""Biographies: invented people, facts about them, and where they were born.

Half of the people are asked about in training, the others are not. Only the question is held out, never the fact: each
person's training documents state the birthplace in eight wordings. A ninth is held back, for a validation loss on known
facts in sentences that are new for that person. No two people share a surname, and no fact about a person gives away
another.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.data.synthetic.draws import Draws

VERSION = "biographies@1"
DOCUMENTS_EACH = 8  # training documents per person
MIN_PEOPLE, MAX_PEOPLE = 20, 5_000  # people

_TABLES = tomllib.loads(Path(__file__).with_name("biographies.toml").read_text(encoding="utf-8"))
FEMALE_NAMES, MALE_NAMES, JOBS, HOBBIES = (tuple(_TABLES[name].split()) for name in ("her", "his", "jobs", "hobbies"))
TEMPLATES: tuple[str, ...] = tuple(_TABLES["templates"])
PLACES: Mapping[str, int] = _TABLES["places"]  # and people per hundred born there


@dataclass(frozen=True)
class Person:
    given: str
    surname: str
    he: str  # "he" or "she"; `his` goes with it
    his: str
    place: str
    job: str
    hobby: str

    @property
    def name(self) -> str:
        return f"{self.given} {self.surname}"


@dataclass(frozen=True)
class Biography:
    person: Person
    template: int  # its place in TEMPLATES
    prefix: str  # the text before the birthplace
    suffix: str  # the text after it

    @property
    def text(self) -> str:
        return self.prefix + self.person.place + self.suffix


@dataclass(frozen=True)
class Biographies:
    training_people: tuple[Person, ...]  # people whose questions are for training
    held_out_people: tuple[Person, ...]  # people whose questions are for validation and test
    train: tuple[Biography, ...]  # training documents, in any order
    validation: tuple[Biography, ...]  # the held-back document of each person, in any order


@cache
def surnames() -> tuple[str, ...]:
    """Return all surnames, in alphabetical order; none is a town, a trade or a pastime."""
    beginnings, endings = _TABLES["beginnings"].split(), _TABLES["endings"].split()
    made = {first + link + last for first in beginnings for link in _TABLES["links"] for last in endings}
    return tuple(sorted(made - set(PLACES) - {word.capitalize() for word in JOBS + HOBBIES}))


def apportion_birthplaces(count: int) -> list[str]:
    """Return the birthplaces of that many people, in proportion to their shares (largest remainders)."""
    total = sum(PLACES.values())
    times = {place: count * share // total for place, share in PLACES.items()}
    by_remainder = sorted(PLACES, key=lambda place: -(count * PLACES[place] % total))
    for place in by_remainder[: count - sum(times.values())]:
        times[place] += 1
    return [place for place, often in times.items() for _ in range(often)]


def _people(draws: Draws, family_names: list[str]) -> tuple[Person, ...]:
    people = []
    places = draws.shuffled(apportion_birthplaces(len(family_names)))
    for surname, place in zip(family_names, places, strict=True):
        given = draws.pick(FEMALE_NAMES + MALE_NAMES)
        he, his = ("she", "her") if given in FEMALE_NAMES else ("he", "his")
        people.append(Person(given, surname, he, his, place, draws.pick(JOBS), draws.pick(HOBBIES)))
    return tuple(people)


def _biography(person: Person, template: int) -> Biography:
    words = {"name": person.name, "He": person.he.capitalize(), "His": person.his.capitalize(), **vars(person)}
    prefix, suffix = (part.format(**words) for part in TEMPLATES[template].split("{place}"))
    return Biography(person, template, f"{person.name}. {prefix}", suffix)


def generate(seed: int, people: int) -> Biographies:
    """Generate the corpus of a seed, with FEWEST to MOST people."""
    draws = Draws(seed)
    # Two halves, the first at least as large; in each, places have the shares of PLACES.
    chosen = draws.shuffled(surnames())[:people]
    middle = (people + 1) // 2
    asked, held_out = _people(draws, chosen[:middle]), _people(draws, chosen[middle:])
    train, validation = [], []
    for person in asked + held_out:
        *told, kept_back = draws.shuffled(range(len(TEMPLATES)))[: DOCUMENTS_EACH + 1]
        train += [_biography(person, template) for template in told]
        validation.append(_biography(person, kept_back))
    return Biographies(asked, held_out, tuple(draws.shuffled(train)), tuple(draws.shuffled(validation)))
