"""Making up nominals: who and what a sentence is about, and where.

Whatever is drawn makes sense in both languages; what would not is left out here.
"""

from collections.abc import Sequence

from engine.data.synthetic.draws import Draws, Weighted
from engine.data.synthetic.phrasebook import adverbials, lexicon
from engine.data.synthetic.phrasebook.clause import Name, Nominal, NounPhrase, Place, Pronoun
from engine.data.synthetic.phrasebook.words import Adjective, Noun, Verb

# Determiner and number, by what kind of noun it is.
Shape = tuple[str, bool]
_MINE = Weighted(*((word, 1.0) for word in ("my", "your", "his", "her", "our", "their")))
_OWN = "own"  # stands for a draw from _MINE
_COUNTABLE: Weighted[Shape] = Weighted(
    (("the", False), 30), (("a", False), 20), ((_OWN, False), 15), (("this", False), 7), (("no", False), 3),
    (("the", True), 10), ((_OWN, True), 6), (("", True), 6), (("two", True), 5), (("this", True), 4),
)  # fmt: skip
_MASS: Weighted[Shape] = Weighted((("the", False), 4), (("", False), 4), ((_OWN, False), 2))
_COUNTABLE_NOBODYS: Weighted[Shape] = Weighted(
    (("the", False), 38), (("a", False), 22), (("this", False), 9), (("no", False), 3),
    (("the", True), 12), (("", True), 6), (("two", True), 6), (("this", True), 4),
)  # fmt: skip
_KIN: Weighted[Shape] = Weighted(((_OWN, False), 7), (("the", False), 1), ((_OWN, True), 2))
_PARENT: Weighted[Shape] = Weighted(((_OWN, False), 9), (("the", False), 1))
_PLACE: Weighted[Shape] = Weighted((("the", False), 6), (("a", False), 2), (("this", False), 2))
_NEW: Weighted[Shape] = Weighted((("a", False), 6), (("no", False), 1), (("two", True), 2), (("", True), 1))
_KNOWN: Weighted[Shape] = Weighted((("the", False), 5), (("this", False), 3), (("the", True), 2), (("this", True), 1))

_SUBJECT_PRONOUNS = Weighted(("I", 3), ("you", 5), ("he", 2), ("she", 2), ("we", 2), ("they", 2))
_OBJECT_PRONOUNS = {  # nobody sees himself here: that would need a reflexive
    "I": ("you", "he", "she", "they"),
    "you": ("I", "he", "she", "we", "they"),
    "we": ("you", "he", "she", "they"),
    "": ("I", "you", "he", "she", "we", "they"),
}
_SUBJECT_KIND = Weighted(("pronoun", 42), ("name", 9), ("noun", 49))

_PEOPLE = lexicon.of_kinds("person", "kin")
_CREATURES = lexicon.of_kinds("person", "kin", "animal")
_BELONGINGS = tuple(
    noun
    for noun in lexicon.of_kinds("animal", "thing", "vehicle", "clothing", "reading")
    if noun not in lexicon.NOBODYS
)
FAR = lexicon.of_kinds("town", "village", "market", "station", "forest", "park")
_FAR_PLACES = tuple(place for place in adverbials.PLACES if place[0] in FAR)
_HUMAN_KINDS = ("person", "kin")
_NAMES = tuple(lexicon.NAMES)
_P_ADJECTIVE = {"subject": 0.5, "object": 0.55}
_P_OBJECT_PRONOUN = 0.2
_P_RECIPIENT_PRONOUN = 0.4


def _shape(draws: Draws, shapes: Weighted[Shape]) -> Shape:
    determiner, plural = draws.weighted(shapes)
    return (draws.weighted(_MINE) if determiner is _OWN else determiner), plural


def _shapes_of(noun: Noun) -> Weighted[Shape]:
    if noun.kind == "place":
        return _PLACE
    if noun.kind == "kin":
        return _KIN if noun.plural else _PARENT
    if noun.mass:
        return _MASS
    return _COUNTABLE_NOBODYS if noun in lexicon.NOBODYS else _COUNTABLE


def draw_phrase(
    draws: Draws, nouns: Sequence[Noun], role: str, without: Sequence[str] = (), shapes: Weighted[Shape] | None = None
) -> NounPhrase:
    """Return a noun phrase.

    Args:
        role: "subject" or "object", which decides how often there is an adjective.
        without: determiners that do not fit here.
        shapes: the determiners to draw from, else those of the noun.
    """
    noun = draws.pick(nouns)
    choice = shapes or _shapes_of(noun)
    determiner, plural = _shape(draws, choice)
    while determiner in without:
        determiner, plural = _shape(draws, choice)
    adjectives = lexicon.ADJECTIVES_OF[noun]
    adjective = draws.pick(adjectives) if adjectives and draws.chance(_P_ADJECTIVE[role]) else None
    return NounPhrase(noun, determiner, plural, adjective)


def draw_subject(draws: Draws, animals: bool = False, without: Sequence[str] = ()) -> Nominal:
    """Return somebody who does something."""
    kind = draws.weighted(_SUBJECT_KIND)
    if kind == "pronoun":
        return Pronoun(draws.weighted(_SUBJECT_PRONOUNS))
    if kind == "name":
        return Name(draws.pick(_NAMES))
    return draw_phrase(draws, _CREATURES if animals else _PEOPLE, "subject", ("", *without))


def draw_object_pronoun(draws: Draws, subject: Nominal | None) -> Pronoun:
    """Return a pronoun for somebody other than the subject."""
    name = subject.name if isinstance(subject, Pronoun) else ""
    return Pronoun(draws.pick(_OBJECT_PRONOUNS.get(name, _OBJECT_PRONOUNS[""])))


def _noun_of(nominal: Nominal | None) -> Noun | None:
    return nominal.noun if isinstance(nominal, NounPhrase) else None


def draw_object(draws: Draws, verb: Verb, subject: Nominal | None, without: Sequence[str] = ()) -> Nominal:
    """Return an object that the verb can have, other than its subject."""
    can_be_human = any(noun.kind in _HUMAN_KINDS for noun in verb.objects)
    if can_be_human and "some" not in verb.traits and draws.chance(_P_OBJECT_PRONOUN):
        return draw_object_pronoun(draws, subject)
    while True:
        phrase = draw_phrase(draws, verb.objects, "object", without, _NEW if "some" in verb.traits else None)
        if phrase.noun is not _noun_of(subject):
            return phrase


def draw_recipient(draws: Draws, subject: Nominal, other_than: Nominal | None = None) -> Nominal:
    """Return somebody known, other than the subject: who is given something, or is there too."""
    if draws.chance(_P_RECIPIENT_PRONOUN):
        return draw_object_pronoun(draws, subject)
    if draws.chance(0.15):
        names = [name for name in _NAMES if Name(name) != subject]
        return Name(draws.pick(names))
    while True:
        phrase = draw_phrase(draws, _PEOPLE, "subject", ("a", "no", "two", ""))
        if phrase.noun not in (_noun_of(subject), _noun_of(other_than)):
            return phrase


def draw_place(draws: Draws, goal: bool, far: bool = False) -> Place:
    """Return where, or where to; `far` ones are out of doors."""
    fixed = adverbials.FIXED_GOALS if goal else adverbials.FIXED_PLACES
    if draws.chance(0.15):
        english = draws.pick(tuple(fixed))
        return Place(english, fixed[english], goal)
    noun, english, where, to = draws.pick(_FAR_PLACES if far else adverbials.PLACES)
    determiner = "the"
    if draws.chance(0.25):
        determiner = draws.weighted(_MINE) if noun not in lexicon.NOBODYS and draws.chance(0.7) else "this"
    adjectives = lexicon.ADJECTIVES_OF[noun]
    adjective = draws.pick(adjectives) if draws.chance(0.2) else None
    phrase = NounPhrase(noun, determiner, False, adjective)
    if goal:
        return Place("to", to, True, to != "zu", phrase)
    return Place(english, where, False, False, phrase)


def draw_adjective(draws: Draws, subject: Nominal, known: Adjective | None = None) -> Adjective:
    """Return what somebody or something can be, though it is `known` to be something already."""
    about = subject.noun if isinstance(subject, NounPhrase) else lexicon.NOUN["sister"]  # stands for any person
    excluded = {known, *(each for family in lexicon.FAMILIES if known in family for each in family)}
    return draws.pick([each for each in lexicon.ADJECTIVES_OF[about] if each not in excluded])


def draw_belonging(draws: Draws) -> NounPhrase:
    """Return something that can be somebody's, and is known."""
    return draw_phrase(draws, _BELONGINGS, "object", shapes=_KNOWN)


def draw_new(draws: Draws, nouns: Sequence[Noun], without: Sequence[str] = ()) -> NounPhrase:
    """Return something that is brought up for the first time."""
    return draw_phrase(draws, nouns, "object", without, _NEW)
