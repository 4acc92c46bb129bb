"""What a sentence says before either language has said it: nominals and clauses, and how they are made up.

`english` and `german` turn these values into words. Whatever is drawn makes sense in both languages; what would not is
left out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.data.synthetic.draws import Draws, Weighted
from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.lexicon import Adjective, Modal, Noun, Time, Verb


@dataclass(frozen=True)
class Pronoun:
    """A pronoun, by its English subject form; `it_m`, `it_f`, `it_n` carry their antecedent's German gender."""

    name: str


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what stands before it.

    Attributes:
        determiner: the English word in its singular: the, a, this, which, no, two, my … or "" for none.
    """

    noun: Noun
    determiner: str
    plural: bool = False
    adjective: Adjective | None = None

    @property
    def indefinite(self) -> bool:
        """Whether it brings up something new: such an object comes late in German, and is negated by kein."""
        return self.determiner in ("a", "", "no", "two")


Nominal = Pronoun | Name | NounPhrase


@dataclass(frozen=True)
class Place:
    """Where, or where to.

    Attributes:
        english: the preposition, or the whole adverbial where there is no nominal.
        german: likewise.
        goal: whether it says where to.
        accusative: the case after the German preposition, else dative.
    """

    english: str
    german: str
    goal: bool
    accusative: bool = False
    nominal: NounPhrase | None = None


@dataclass(frozen=True)
class Circumstance:
    preposition: str  # with, by, for
    nominal: Nominal


@dataclass(frozen=True)
class Clause:
    """A subject and what is said about it.

    Attributes:
        tense: "present", "habit", "simple" (present after "if"), "past", "modal" or "modal past".
        object: the object that the verb's frame asks for.
        recipient: the dative object of "give" and its like.
        predicate: what the subject is, after "be".
    """

    subject: Nominal
    verb: Verb
    tense: str
    modal: Modal | None = None
    object: Nominal | None = None
    recipient: Nominal | None = None
    predicate: Adjective | NounPhrase | None = None
    time: Time | None = None
    manner: str | None = None
    circumstance: Circumstance | None = None
    place: Place | None = None
    negated: bool = False


# --- drawing nominals

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
NEW: Weighted[Shape] = Weighted((("a", False), 6), (("no", False), 1), (("two", True), 2), (("", True), 1))
KNOWN: Weighted[Shape] = Weighted((("the", False), 5), (("this", False), 3), (("the", True), 2), (("this", True), 1))

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
FAR = lexicon.of_kinds("town", "village", "market", "station", "forest", "park")
_FAR_PLACES = tuple(place for place in lexicon.PLACES if place[0] in FAR)
_NAMES = tuple(lexicon.NAMES)
_P_ADJECTIVE = {"subject": 0.5, "object": 0.55}


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
    while True:
        determiner, plural = draws.weighted(shapes or _shapes_of(noun))
        if determiner is _OWN:
            determiner = draws.weighted(_MINE)
        if determiner not in without:
            break
    adjectives = lexicon.ADJECTIVES_OF[noun]
    adjective = draws.pick(adjectives) if adjectives and draws.chance(_P_ADJECTIVE[role]) else None
    return NounPhrase(noun, determiner, plural, adjective)


def draw_subject(draws: Draws, animals: bool = False, without: Sequence[str] = ()) -> Nominal:
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


def noun_of(nominal: Nominal | None) -> Noun | None:
    return nominal.noun if isinstance(nominal, NounPhrase) else None


def draw_object(draws: Draws, verb: Verb, subject: Nominal | None, without: Sequence[str] = ()) -> Nominal:
    """Return an object that the verb can have, other than its subject."""
    can_be_human = any(noun.kind in ("person", "kin") for noun in verb.objects)
    if can_be_human and "some" not in verb.traits and draws.chance(0.2):
        return draw_object_pronoun(draws, subject)
    while True:
        phrase = draw_phrase(draws, verb.objects, "object", without, NEW if "some" in verb.traits else None)
        if phrase.noun is not noun_of(subject):
            return phrase


def draw_recipient(draws: Draws, subject: Nominal, other_than: Nominal | None = None) -> Nominal:
    """Return somebody known, other than the subject: who is given something, or is there too."""
    if draws.chance(0.4):
        return draw_object_pronoun(draws, subject)
    if draws.chance(0.15):
        names = [name for name in _NAMES if Name(name) != subject]
        return Name(draws.pick(names))
    while True:
        phrase = draw_phrase(draws, _PEOPLE, "subject", ("a", "no", "two", ""))
        if phrase.noun not in (noun_of(subject), noun_of(other_than)):
            return phrase


def draw_place(draws: Draws, goal: bool, far: bool = False) -> Place:
    """Return where, or where to; `far` ones are out of doors."""
    fixed = lexicon.FIXED_GOALS if goal else lexicon.FIXED_PLACES
    if draws.chance(0.15):
        english = draws.pick(tuple(fixed))
        return Place(english, fixed[english], goal)
    noun, english, where, to = draws.pick(_FAR_PLACES if far else lexicon.PLACES)
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
    about = noun_of(subject) or lexicon.NOUN["sister"]  # stands for any person
    excluded = {known, *(each for family in lexicon.FAMILIES if known in family for each in family)}
    return draws.pick([each for each in lexicon.ADJECTIVES_OF[about] if each not in excluded])


# --- drawing clauses

_TENSES = Weighted(("present", 38), ("past", 26), ("modal", 20), ("habit", 16))
_EVENT_TENSES = Weighted(("past", 3), ("modal", 2))
_STATE_TENSES = Weighted(("present", 3), ("past", 1))  # no modal, no adverbial of time
_P_TIME, _P_PLACE, _P_GOAL, _P_CIRCUMSTANCE, _P_MANNER = 0.35, 0.25, 0.75, 0.3, 0.12
_MOST_ADVERBIALS = 2
_VEHICLES = tuple(NounPhrase(noun, "the") for noun in lexicon.of_kinds("vehicle", "transport"))

# By frame first, so that the many verbs with an accusative do not crowd out the others.
_BY_FRAME = Weighted(("accusative", 50), ("dative", 9), ("ditransitive", 12), ("preposition", 8), ("none", 21))


VERBS_BY_FRAME: dict[str, list[Verb]] = {frame: [] for frame in _BY_FRAME.options}
for _each in lexicon.VERBS:
    _frame = "ditransitive" if _each.ditransitive else "preposition" if _each.object_preposition else _each.frame
    VERBS_BY_FRAME[_frame].append(_each)


def draw_verb(draws: Draws) -> Verb:
    return draws.pick(VERBS_BY_FRAME[draws.weighted(_BY_FRAME)])


def draw_dynamic_verb(draws: Draws) -> Verb:
    verb = draw_verb(draws)
    while "timeless" in verb.traits:
        verb = draw_verb(draws)
    return verb


def draw_tense(draws: Draws, verb: Verb, habits: bool) -> tuple[str, Modal | None]:
    """Return the tense, and the modal verb where there is one.

    Args:
        habits: whether "habit" fits: every day, often.
    """
    tenses = _STATE_TENSES if "timeless" in verb.traits else _EVENT_TENSES if "event" in verb.traits else _TENSES
    tense = draws.weighted(tenses)
    while tense == "habit" and not habits:
        tense = draws.weighted(tenses)
    if tense != "modal":
        return tense, None
    modal = draws.pick(lexicon.MODALS)
    return ("modal past" if modal.preterite and draws.chance(0.3) else "modal"), modal


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
        tense: "simple" for the present after "if"; "modal" for any modal; None for what fits the verb.
        need: "time" or "place": an adverbial that must be there, because it opens the sentence.
        gap: for a question: "object", "time" or "place", which it asks for, or "none".
        bare: without any adverbial that the verb can do without.
    """
    while (
        verb is None
        or (need == "time" and "timeless" in verb.traits)
        or (need == "place" and "place" not in verb.traits and verb.english != "stay")
    ):
        verb = draw_verb(draws)
    modal: Modal | None = None
    if tense is None:
        tense, modal = draw_tense(draws, verb, habits=not (negated or gap))
    elif tense == "modal":
        modal = draws.pick(lexicon.MODALS)
    if subject is None:
        unfit = ("a", "no", "two") if gap else ("no", "two") if negated else ()
        subject = draw_subject(draws, "a" in verb.traits, unfit)
        while gap and modal is None and subject == Pronoun("I"):  # what one does, one knows oneself
            subject = draw_subject(draws, "a" in verb.traits, unfit)
    without: tuple[str, ...] = ("no", "two") if negated else ("no",) if gap or tense == "habit" else ()
    if isinstance(subject, NounPhrase) and subject.determiner == "no":
        without = ("no", *without)
    given = draw_object(draws, verb, subject, without) if verb.objects and gap != "object" else None
    recipient = draw_recipient(draws, subject, given) if verb.ditransitive else None
    clause = Clause(subject, verb, tense, modal, given, recipient, negated=negated)
    return _with_adverbials(draws, clause, need, gap, 0 if bare else _MOST_ADVERBIALS)


def _with_adverbials(draws: Draws, clause: Clause, need: str, gap: str, room: int) -> Clause:
    """Return the clause with what it says about time, place and the rest.

    Args:
        need, gap: as for `draw_clause`.
        room: how many there may be that the clause can do without.
    """
    verb, traits, given = clause.verb, clause.verb.traits, clause.object
    time = manner = circumstance = place = None
    wants_time = need == "time" or clause.tense == "habit" or (room and gap != "time" and draws.chance(_P_TIME))
    if wants_time and clause.tense != "simple":
        if "timeless" not in traits:
            times = lexicon.TIMES_OF["past" if clause.tense == "modal past" else clause.tense]
            if need == "time" or clause.negated:  # "often" neither opens a sentence nor is negated
                times = tuple(time for time in times if not time.middle)
            if clause.tense == "habit" and verb.past == verb.english:  # "read in the evening": every one, or that one?
                times = tuple(time for time in times if "past" not in time.tenses)
            time = draws.pick(times)
        room -= 1
    if gap != "place" and not traits.isdisjoint(("place", "placed", "to")):
        must = need == "place" or "placed" in traits
        if must or (room > 0 and draws.chance(_P_GOAL if "to" in traits else _P_PLACE)):
            place = draw_place(draws, "to" in traits, "far" in traits)
            room -= 1
    if room > 0 and draws.chance(_P_CIRCUMSTANCE):
        circumstance = _draw_circumstance(draws, clause, place)
        room -= circumstance is not None
    if room > 0 and draws.chance(_P_MANNER) and not (isinstance(given, NounPhrase) and given.indefinite):
        manners = [manner for manner in lexicon.MANNERS if manner in traits]
        manner = draws.pick(manners) if manners else None
    return replace(clause, time=time, manner=manner, circumstance=circumstance, place=place)


def _draw_circumstance(draws: Draws, clause: Clause, place: Place | None) -> Circumstance | None:
    possible = [preposition for preposition in ("with", "by", "for") if preposition in clause.verb.traits]
    if not possible:
        return None
    preposition = draws.pick(possible)
    near = place is not None and (place.nominal is None or place.nominal.noun not in FAR)
    if (preposition == "for" and place) or (preposition == "by" and near):  # nobody takes the train to the kitchen
        return None
    if preposition == "by":
        return Circumstance("by", draws.pick(_VEHICLES))
    return Circumstance(preposition, draw_recipient(draws, clause.subject, clause.object))
