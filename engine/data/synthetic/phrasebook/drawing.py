"""Making up nominals and clauses: what a sentence could say.

Everything drawn here makes sense in both languages whatever the sentence around it does with it; which
combinations would not is said where they are left out.
"""

from collections.abc import Sequence

from engine.data.synthetic.phrasebook import adverbials, lexicon
from engine.data.synthetic.phrasebook.clause import (
    Circumstance,
    Clause,
    Name,
    Nominal,
    NounPhrase,
    Place,
    Pronoun,
)
from engine.data.synthetic.phrasebook.draws import Draws, Weighted
from engine.data.synthetic.phrasebook.words import Adjective, Modal, Noun, Time, Verb

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

_SUBJECT_PRONOUNS = ("I", "you", "he", "she", "we", "they")
_OBJECT_PRONOUNS = {  # nobody sees himself here: that would need a reflexive
    "I": ("you", "he", "she", "they"),
    "you": ("I", "he", "she", "we", "they"),
    "we": ("you", "he", "she", "they"),
    "": ("I", "you", "he", "she", "we", "they"),
}
_SUBJECT_KIND = Weighted(("pronoun", 45), ("name", 12), ("noun", 43))

_PEOPLE = lexicon.of_kinds("person", "kin")
_CREATURES = lexicon.of_kinds("person", "kin", "animal")
_BELONGINGS = tuple(
    noun
    for noun in lexicon.of_kinds("animal", "thing", "vehicle", "clothing", "reading")
    if noun not in lexicon.NOBODYS
)
_VEHICLES = tuple(NounPhrase(noun, "the") for noun in lexicon.of_kinds("vehicle", "transport"))
_FAR = lexicon.of_kinds("town", "village", "market", "station", "forest", "park")
_FAR_PLACES = tuple(place for place in adverbials.PLACES if place[0] in _FAR)
_HUMAN_KINDS = ("person", "kin")
_NAMES = tuple(lexicon.NAMES)

_TENSES = Weighted(("present", 34), ("past", 28), ("modal", 22), ("habit", 16))
_EVENT_TENSES = Weighted(("past", 3), ("modal", 2))
_STATE_TENSES = Weighted(("present", 3), ("past", 1))  # no modal, no adverbial of time
_P_TIME, _P_PLACE, _P_CIRCUMSTANCE, _P_MANNER = 0.35, 0.25, 0.3, 0.12
_P_ADJECTIVE = {"subject": 0.15, "object": 0.35}
_P_OBJECT_PRONOUN = 0.2
_P_RECIPIENT_PRONOUN = 0.4

# By frame first, so that the many verbs with an accusative do not crowd out the others.
_BY_FRAME = Weighted(("accusative", 50), ("dative", 9), ("ditransitive", 12), ("preposition", 8), ("none", 21))


def _frame_of(verb: Verb) -> str:
    if verb.ditransitive:
        return "ditransitive"
    return "preposition" if verb.object_preposition else verb.frame


VERBS_BY_FRAME = {
    frame: tuple(verb for verb in lexicon.VERBS if _frame_of(verb) == frame) for frame in _BY_FRAME.options
}


def draw_verb(draws: Draws) -> Verb:
    """Return any verb."""
    return draws.pick(VERBS_BY_FRAME[draws.weighted(_BY_FRAME)])


def draw_dynamic_verb(draws: Draws) -> Verb:
    """Return a verb that can have a time and a modal."""
    verb = draw_verb(draws)
    while "timeless" in verb.traits:
        verb = draw_verb(draws)
    return verb


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
        return Pronoun(draws.pick(_SUBJECT_PRONOUNS))
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


def draw_tense(draws: Draws, verb: Verb) -> tuple[str, Modal | None]:
    """Return the tense, and the modal verb where there is one."""
    traits = verb.traits
    tense = draws.weighted(_STATE_TENSES if "timeless" in traits else _EVENT_TENSES if "event" in traits else _TENSES)
    if tense != "modal":
        return tense, None
    modal = draws.pick(lexicon.MODALS)
    return ("modal past" if modal.preterite and draws.chance(0.3) else "modal"), modal


def draw_time(draws: Draws, tense: str, verb: Verb, negated: bool, frontable: bool) -> Time | None:
    """Return an adverbial of time, or None where none fits."""
    if "timeless" in verb.traits:
        return None
    times = adverbials.TIMES_OF[{"modal past": "past"}.get(tense, tense)]
    if negated or frontable:  # "not every day" negates the time; "often" does not open a sentence
        times = tuple(time for time in times if not time.middle)
    return draws.pick(times)


def draw_clause(
    draws: Draws,
    verb: Verb | None = None,
    *,
    subject: Nominal | None = None,
    negated: bool = False,
    tense: str | None = None,
    need: str = "",
    gap: str = "",
    bare: bool = False,
) -> Clause:
    """Return a clause.

    Args:
        verb: its verb, else any that fits the need.
        subject: its subject, else anybody.
        tense: "simple" for the present after "if"; "modal" or None for any that fits the verb.
        need: "time" or "place": an adverbial that must be there (and can open a sentence).
        gap: "object", "time" or "place": what must not be there, because a question asks for it.
        bare: without any adverbial that the verb can do without.
    """
    while verb is None or not _can(verb, need):
        verb = draw_verb(draws)
    traits = verb.traits
    asks = bool(gap)
    modal: Modal | None = None
    if tense is None:
        tense, modal = draw_tense(draws, verb)
        while (negated or asks) and tense == "habit":
            tense, modal = draw_tense(draws, verb)
    elif tense == "modal":
        modal = draws.pick(lexicon.MODALS)
    without = ("no", "two") if negated else ("no",) if asks or tense == "habit" else ()
    if subject is None:
        subject = draw_subject(draws, "a" in traits, ("a", "no", "two") if asks else ("no", "two") if negated else ())
        while asks and not modal and subject == Pronoun("I"):  # one knows that oneself
            subject = draw_subject(draws, "a" in traits, ("a", "no", "two"))
    if isinstance(subject, NounPhrase) and subject.determiner == "no":
        without = ("no", *without)
    given = draw_object(draws, verb, subject, without) if verb.objects and gap != "object" else None
    recipient = draw_recipient(draws, subject, given) if verb.ditransitive else None

    time = manner = circumstance = place = None
    room = 0 if bare else 2  # adverbials that the verb can do without
    wants_time = need == "time" or tense == "habit" or (room and gap != "time" and draws.chance(_P_TIME))
    if wants_time and tense != "simple":
        time = draw_time(draws, tense, verb, negated, need == "time")
        room -= 1
    can_say_where = "place" in traits or "placed" in traits
    if gap != "place" and (can_say_where or "to" in traits):
        must = need == "place" or "placed" in traits
        if must or (room > 0 and draws.chance(0.75 if "to" in traits else _P_PLACE)):
            place = draw_place(draws, "to" in traits, "far" in traits)
            room -= 1
    if room > 0 and draws.chance(_P_CIRCUMSTANCE):
        circumstance = _draw_circumstance(draws, verb, subject, given, place)
        room -= circumstance is not None
    if room > 0 and draws.chance(_P_MANNER) and not (isinstance(given, NounPhrase) and given.indefinite):
        manners = [manner for manner in adverbials.MANNERS if manner in traits]
        manner = draws.pick(manners) if manners else None
    return Clause(subject, verb, tense, modal, given, recipient, None, time, manner, circumstance, place, negated)


def _can(verb: Verb, need: str) -> bool:
    if need == "time":
        return "timeless" not in verb.traits
    return need != "place" or "place" in verb.traits or verb.english == "stay"


def _draw_circumstance(
    draws: Draws, verb: Verb, subject: Nominal, given: Nominal | None, place: Place | None
) -> Circumstance | None:
    possible = [preposition for preposition in ("with", "by", "for") if preposition in verb.traits]
    near = place is not None and (place.nominal is None or place.nominal.noun not in _FAR)
    if not possible or (preposition := draws.pick(possible)) in (("for", "by") if near else ("for",) if place else ()):
        return None
    if preposition == "by":
        return Circumstance("by", draws.pick(_VEHICLES))
    return Circumstance(preposition, draw_recipient(draws, subject, given))


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
