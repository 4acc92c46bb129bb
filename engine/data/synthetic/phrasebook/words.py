"""The kinds of words, with the forms that German and English give them.

A line of the lexicon names a word's principal parts; the functions here spell out the rest by rule. Nothing
here knows about sentences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Gender = Literal["m", "f", "n"]
Case = Literal["nominative", "accusative", "dative"]
Address = Literal["du", "Sie", "ihr"]  # how German says "you"
Paradigm = tuple[str, str, str, str, str, str]  # ich, du, er, wir, ihr, sie
ICH, DU, ER, WIR, IHR, SIE = range(6)  # grammatical persons: places in a paradigm

GENDERS: Mapping[str, Gender] = {"der": "m", "die": "f", "das": "n"}


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun of both languages.

    Attributes:
        plural: the German nominative plural, "" where there is none.
        weak: ending of the singular outside the nominative: den Junge*n*, dem Student*en*.
        kind: semantic class, which decides about verbs and adjectives.
    """

    english: str
    english_plural: str
    german: str
    gender: Gender
    plural: str
    weak: str
    kind: str

    @property
    def mass(self) -> bool:
        """Whether it is something without a number: water, bread."""
        return not self.plural and self.kind in ("food", "drink")

    def form(self, case: Case, plural: bool) -> str:
        """Return the German form."""
        if plural:
            return self.plural + ("n" if case == "dative" and self.plural[-1] not in "ns" else "")
        return self.german + ("" if case == "nominative" else self.weak)


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective; `stem` takes the endings (teur-e), `german` stands alone (teuer)."""

    english: str
    german: str
    stem: str
    kinds: frozenset[str]


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb of both languages.

    Attributes:
        particle: what follows the English verb unchanged: look *for*, get *up*.
        third, past, ing: English forms: writes, wrote, writing.
        infinitive: German, without its separable prefix.
        present: the six present forms, without the prefix.
        participle: whole: aufgemacht.
        preterite: six forms where spoken German prefers them to the perfect (war, hatte), else None.
        frame: the German case of the object, "auf+accusative" and the like, "dative+accusative" with a
            recipient, or "none".
        objects: nouns that the verb can have as its (direct) object.
        traits: what else the verb allows: see `lexicon.VERBS`.
    """

    english: str
    particle: str
    third: str
    past: str
    ing: str
    infinitive: str
    prefix: str
    present: Paradigm
    participle: str
    auxiliary: Literal["haben", "sein"]
    frame: str
    preterite: Paradigm | None = None
    objects: tuple[Noun, ...] = ()
    traits: frozenset[str] = frozenset()

    @property
    def lemma(self) -> str:
        """The English verb as a dictionary has it."""
        return f"{self.english} {self.particle}".strip()

    @property
    def ditransitive(self) -> bool:
        """Whether it takes a recipient beside its object."""
        return self.frame == "dative+accusative"

    @property
    def object_case(self) -> Case:
        """The case of the (direct) object."""
        return "dative" if self.frame.endswith("dative") else "accusative"

    @property
    def object_preposition(self) -> str:
        """What German puts before the object, or ""."""
        return "" if self.ditransitive or "+" not in self.frame else self.frame.partition("+")[0]


@dataclass(frozen=True, eq=False)
class Modal:
    """A modal verb, or the future: what takes an infinitive.

    Attributes:
        to: whether English says "to" before the infinitive and bends the verb (wants to), or neither (can).
    """

    english: str
    to: bool
    infinitive: str
    present: Paradigm
    preterite: Paradigm | None = None


@dataclass(frozen=True, eq=False)
class Time:
    """An adverbial of time; `tenses` it goes with; English puts the `middle` ones before the verb."""

    english: str
    german: str
    tenses: frozenset[str]
    middle: bool = False


def present_of(infinitive: str, third: str) -> Paradigm:
    """Return the present of a verb from its infinitive and its er-form: tragen, trägt."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    first = stem + "e"
    bent = third.removesuffix("t")
    second = bent + ("t" if bent[-1] in "sßzx" else "st")
    regular = third if third.startswith(stem) else stem + ("et" if stem[-1] in "td" else "t")
    return (first, second, third, infinitive, regular, infinitive)


def third_person(base: str) -> str:
    """Return the English form with -s: tidies, washes, plays."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")


def plural_of(noun: str) -> str:
    """Return the regular English plural: ladies, dresses, boxes."""
    return third_person(noun)


def ing_form(base: str) -> str:
    """Return the English form with -ing, but for verbs that double their last letter."""
    return (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"
