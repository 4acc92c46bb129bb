"""The phrasebook's words: `lexicon.toml` lists their principal parts, rules derive the rest.

Nothing here knows about sentences.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Gender = Literal["m", "f", "n"]
Case = Literal["nominative", "accusative", "dative"]
Address = Literal["du", "Sie", "ihr"]  # how German says "you"
PERSONS = ("ICH", "DU", "ER", "WIR", "IHR", "SIE")
Paradigm = tuple[str, ...]  # one form for each of PERSONS

GENDERS: Mapping[str, Gender] = {"der": "m", "die": "f", "das": "n"}


@dataclass(frozen=True, eq=False)
class Noun:
    english: str
    english_plural: str
    german: str
    gender: Gender
    plural: str  # the German nominative plural, "" if none
    weak: str  # ending of the singular outside the nominative: den Junge*n*, dem Student*en*
    kind: str  # semantic class, which determines the verbs and adjectives that fit

    @property
    def mass(self) -> bool:
        return not self.plural and self.kind in ("food", "drink")

    def form(self, case: Case, plural: bool) -> str:
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
    english: str
    particle: str  # what follows the English verb unchanged: look *for*, get *up*
    third: str  # writes
    past: str  # wrote
    ing: str  # writing
    infinitive: str  # German, without its separable prefix
    prefix: str
    present: Paradigm  # without the prefix
    participle: str  # whole: aufgemacht
    auxiliary: Literal["haben", "sein"]
    frame: str  # "accusative", "dative", "preposition", "ditransitive" (with a recipient) or "none"
    object_case: Case
    object_preposition: str  # auf, an, von; "" if none
    preterite: Paradigm = ()  # if spoken German prefers it to the perfect: war, hatte
    objects: tuple[Noun, ...] = ()  # nouns that can be the verb's (direct) object
    traits: frozenset[str] = frozenset()  # what else the verb allows: see `lexicon.toml`

    @property
    def english_lemma(self) -> str:
        return f"{self.english} {self.particle}".strip()


@dataclass(frozen=True, eq=False)
class Modal:
    """A modal verb or the future: it takes an infinitive."""

    english: str
    to: bool  # whether English has "to" before the infinitive and inflects the verb (wants to), or neither (can)
    infinitive: str
    present: Paradigm
    preterite: Paradigm = ()


@dataclass(frozen=True, eq=False)
class Time:
    """An adverbial of time, with the `tenses` it fits; English puts `middle` ones before the verb."""

    english: str
    german: str
    tenses: frozenset[str]
    middle: bool


def third_person(base: str) -> str:
    """Return the English form with -s: tidies, washes, plays. Regular plurals are the same: ladies, dresses, boxes."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")


def ing_form(base: str) -> str:
    """Return the English -ing form, except of verbs that double their last letter."""
    return (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"


def present_forms(infinitive: str, third: str) -> Paradigm:
    """Return a verb's present from its infinitive and er-form: tragen, trägt."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    bent = third.removesuffix("t")
    second = bent + ("t" if bent[-1] in "sßzx" else "st")
    regular = third if third.startswith(stem) else stem + ("et" if stem[-1] in "td" else "t")
    return (stem + "e", second, third, infinitive, regular, infinitive)


_TABLES = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text(encoding="utf-8"))


def _noun(line: str) -> Noun:
    words, article, german, plural, kind = line.split()
    english, _, english_plural = words.partition("/")
    lemma, _, weak = german.partition("+")
    plural = "" if plural == "-" else plural
    return Noun(english, english_plural or third_person(english), lemma, GENDERS[article], plural, weak, kind)


NOUNS = tuple(_noun(line) for line in _TABLES["nouns"].splitlines())
NOUN = {noun.english: noun for noun in NOUNS}


def nouns_of_kinds(*kinds: str) -> tuple[Noun, ...]:
    """Return the nouns of these kinds or names, in table order."""
    return tuple(noun for noun in NOUNS if noun.kind in kinds or noun.english in kinds)


def _noun_kinds(noun: Noun) -> set[str]:
    adult = noun.kind == "person" and noun.english not in ("child", "boy", "girl")
    return {noun.english, noun.kind, *(["adult"] if adult else [])}


UNOWNED = frozenset(nouns_of_kinds(*_TABLES["nobodys"].split()))
ADJECTIVES = tuple(
    Adjective(english, german, german if stem == "-" else stem, frozenset(kinds))
    for english, german, stem, *kinds in (line.split() for line in _TABLES["adjectives"].splitlines())
)
ADJECTIVES_OF = {noun: tuple(each for each in ADJECTIVES if each.kinds & _noun_kinds(noun)) for noun in NOUNS}
FAMILIES = tuple(frozenset(each for each in ADJECTIVES if each.english in line.split()) for line in _TABLES["families"])
STATES = tuple(adjective for adjective in ADJECTIVES if adjective.english in _TABLES["states"].split())


def _verb(line: str, frame: str = "none", present: str = "", preterite: str = "") -> Verb:
    english, german, objects, traits = (field.split() for field in line.split("|"))
    particle = english.pop()[1:] if english[-1].startswith("+") else ""
    base, past, *ing = english
    prefix, _, infinitive = german[0].rpartition("+")
    preposition, _, case = frame.rpartition("+")
    return Verb(
        english=base,
        particle=particle,
        third=third_person(base),
        past=past,
        ing=ing[0] if ing else ing_form(base),
        infinitive=infinitive,
        prefix=prefix,
        present=tuple(present.split()) or present_forms(infinitive, german[1]),
        participle=german[2],
        auxiliary="sein" if german[3:] == ["ist"] else "haben",
        frame="preposition" if preposition else frame,
        object_case="dative" if case == "dative" else "accusative",
        object_preposition=preposition,
        preterite=tuple(preterite.split()),
        objects=nouns_of_kinds(*objects),
        traits=frozenset(traits),
    )


SPECIAL = {name: _verb(**parts) for name, parts in _TABLES["special"].items()}
SEIN, HABEN, GEHOEREN, WISSEN = (SPECIAL[name] for name in ("sein", "haben", "gehoeren", "wissen"))
CLAUSE_VERBS = tuple(verb for verb in SPECIAL.values() if "clause" in verb.traits)  # a dass-clause follows
WEATHER_VERBS = tuple(verb for verb in SPECIAL.values() if "weather" in verb.traits)
_REGULAR = (_verb(line, frame) for frame, lines in _TABLES["verbs"].items() for line in lines.splitlines())
VERBS = (*_REGULAR, HABEN, SPECIAL["moegen"])
MODALS = tuple(
    Modal(english.removesuffix(" to"), english.endswith(" to"), infinitive, *(tuple(each.split()) for each in forms))
    for english, (infinitive, *forms) in _TABLES["modals"].items()
)


def modals_by_english(*english: str) -> tuple[Modal, ...]:
    return tuple(modal for modal in MODALS if modal.english in english)


NAMES: dict[str, Gender] = _TABLES["names"]
PRONOUNS: dict[str, list[str]] = {
    name: forms for name, *forms in (line.split() for line in _TABLES["pronouns"].splitlines())
}
DETERMINERS: dict[str, str] = _TABLES["determiners"]
# Case → gender or "p", the plural → ending, article.
STRONG, WEAK, DEFINITE = (
    {case: dict(zip("mfnp", forms.split(), strict=True)) for case, forms in _TABLES[table].items()}
    for table in ("strong", "weak", "definite")
)
VOCATIVES: dict[str, list[list[str]]] = _TABLES["vocatives"]
EVERYDAY: list[list[str]] = _TABLES["everyday"]
MANNERS: dict[str, str] = _TABLES["manners"]
FIXED_PLACES: dict[str, str] = _TABLES["fixed_places"]
FIXED_GOALS: dict[str, str] = _TABLES["fixed_goals"]
CONTRACTIONS: dict[str, str] = _TABLES["contractions"]
TIMES = tuple(
    Time(english, german, frozenset(tenses.removesuffix("+").split()), tenses.endswith("+"))
    for english, german, tenses in (re.split(r"\s*\| ", line) for line in _TABLES["times"].splitlines())
)
# Noun · English and German preposition for where · German one for where to
PLACES: tuple[tuple[Noun, str, str, str], ...] = tuple(
    (NOUN[noun], english, where, to)
    for noun, english, where, to in (line.split() for line in _TABLES["places"].splitlines())
)
