"""A sentence's meaning, independent of either language: nominals and clauses, and how they are drawn.

`english` and `german` turn these values into words. Only meanings that make sense in both languages are drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.data.synthetic.draws import Draws, Weighted, draw_until
from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.lexicon import Adjective, Case, Modal, Noun, Time, Verb


@dataclass(frozen=True)
class Pronoun:
    """A pronoun, by its English subject form; `it_m`, `it_f`, `it_n` carry their antecedent's German gender."""

    name: str
    noun: Noun | None = None  # the antecedent of "it", if it has one


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class NounPhrase:
    noun: Noun
    determiner: str  # the English word, singular: the, a, this, which, no, two, my … or "" for none
    plural: bool = False
    adjective: Adjective | None = None

    @property
    def indefinite(self) -> bool:
        """Return whether it introduces something new: such an object comes late in German, and is negated by kein."""
        return self.determiner in ("a", "", "no", "two")


Nominal = Pronoun | Name | NounPhrase


@dataclass(frozen=True)
class Adverbial:
    english: str  # the preposition, or the whole adverbial if there is no nominal
    german: str  # likewise
    case: Case = "dative"  # after the German preposition
    nominal: Nominal | None = None


@dataclass(frozen=True)
class Clause:
    subject: Nominal
    verb: Verb
    tense: str  # "present", "habit", "simple" (present after "if"), "past", "modal" or "modal past"
    modal: Modal | None = None
    object: Nominal | None = None  # the object that the verb's frame requires
    recipient: Nominal | None = None  # the dative object of verbs like "give"
    time: Time | None = None
    manner: str | None = None
    circumstance: Adverbial | None = None  # with, by, for
    place: Adverbial | None = None
    predicate: Adjective | NounPhrase | None = None  # what the subject is, after "be"
    negated: bool = False


# --- drawing nominals

Shape = tuple[str, bool]  # determiner, and whether it is plural
_POSSESSIVES = Weighted(*((word, 1.0) for word in lexicon.DETERMINERS["mine"].split()))


def _shapes(table: str) -> Weighted[Shape]:
    words = lexicon.DETERMINERS[table].split()
    weighted = zip(words[::2], words[1::2], strict=True)
    return Weighted(*(((word.strip("+-"), word.endswith("+")), float(n)) for word, n in weighted))


_COUNTABLE, _MASS, _UNOWNED, _KIN, _PARENT, _PLACE, INDEFINITE_SHAPES, DEFINITE_SHAPES = (
    _shapes(table) for table in ("countable", "mass", "nobodys", "kin", "parent", "place", "new", "known")
)
_PRONOUNS = Weighted(("I", 3), ("you", 5), ("he", 2), ("she", 2), ("we", 2), ("they", 2))
# Nobody sees himself here: that would need a reflexive.
_REFLEXIVE_OBJECTS = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",)}
_SUBJECT_KIND = Weighted(("pronoun", 42), ("name", 9), ("noun", 49))

_PEOPLE = lexicon.nouns_of_kinds("person", "kin")
_CREATURES = lexicon.nouns_of_kinds("person", "kin", "animal")
FAR_NOUNS = lexicon.nouns_of_kinds("town", "village", "market", "station", "forest", "park")
_FAR_PLACES = tuple(place for place in lexicon.PLACES if place[0] in FAR_NOUNS)
_NAMES = tuple(lexicon.NAMES)
_P_ADJECTIVE = {"subject": 0.5, "object": 0.55}


def _shapes_of(noun: Noun) -> Weighted[Shape]:
    if noun.kind == "place":
        return _PLACE
    if noun.kind == "kin":
        return _KIN if noun.plural else _PARENT
    if noun.mass:
        return _MASS
    return _UNOWNED if noun in lexicon.UNOWNED else _COUNTABLE


def draw_phrase(
    draws: Draws, nouns: Sequence[Noun], role: str, without: Sequence[str] = (), shapes: Weighted[Shape] | None = None
) -> NounPhrase:
    """Return a noun phrase with a determiner of these `shapes`, else the noun's; `role`: the odds of an adjective."""
    noun = draws.pick(nouns)
    while True:
        determiner, plural = draws.pick_weighted(shapes or _shapes_of(noun))
        if determiner == "own":
            determiner = draws.pick_weighted(_POSSESSIVES)
        if determiner not in without:
            break
    adjectives = lexicon.ADJECTIVES_OF[noun]
    adjective = draws.pick(adjectives) if adjectives and draws.chance(_P_ADJECTIVE[role]) else None
    return NounPhrase(noun, determiner, plural, adjective)


def draw_subject(draws: Draws, animals: bool = False, without: Sequence[str] = ()) -> Nominal:
    kind = draws.pick_weighted(_SUBJECT_KIND)
    if kind == "pronoun":
        return Pronoun(draws.pick_weighted(_PRONOUNS))
    if kind == "name":
        return Name(draws.pick(_NAMES))
    return draw_phrase(draws, _CREATURES if animals else _PEOPLE, "subject", ("", *without))


def draw_object_pronoun(draws: Draws, subject: Nominal) -> Pronoun:
    oneself = _REFLEXIVE_OBJECTS.get(subject.name, ()) if isinstance(subject, Pronoun) else ()
    return Pronoun(draws.pick([name for name in _PRONOUNS.options if name not in oneself]))


def noun_of(nominal: Nominal | None) -> Noun | None:
    return nominal.noun if isinstance(nominal, NounPhrase) else None


def draw_object(draws: Draws, verb: Verb, subject: Nominal, without: Sequence[str]) -> Nominal:
    can_be_human = any(noun.kind in ("person", "kin") for noun in verb.objects)
    if can_be_human and "some" not in verb.traits and draws.chance(0.2):
        return draw_object_pronoun(draws, subject)
    shapes = INDEFINITE_SHAPES if "some" in verb.traits else None
    draw = lambda: draw_phrase(draws, verb.objects, "object", without, shapes)
    return draw_until(draw, lambda phrase: phrase.noun is not noun_of(subject))


def draw_other_person(draws: Draws, subject: Nominal, other_than: Nominal | None = None) -> Nominal:
    """Return a known person other than the subject: a recipient or a companion."""
    if draws.chance(0.4):
        return draw_object_pronoun(draws, subject)
    if draws.chance(0.15):
        return Name(draws.pick([name for name in _NAMES if Name(name) != subject]))
    draw = lambda: draw_phrase(draws, _PEOPLE, "subject", ("a", "no", "two", ""))
    return draw_until(draw, lambda phrase: phrase.noun not in (noun_of(subject), noun_of(other_than)))


def draw_place(draws: Draws, goal: bool, far: bool = False) -> Adverbial:
    fixed = lexicon.FIXED_GOALS if goal else lexicon.FIXED_PLACES
    if draws.chance(0.15):
        english = draws.pick(tuple(fixed))
        return Adverbial(english, fixed[english])
    noun, english, where, to = draws.pick(_FAR_PLACES if far else lexicon.PLACES)
    determiner = "the"
    if draws.chance(0.25):
        determiner = draws.pick_weighted(_POSSESSIVES) if noun not in lexicon.UNOWNED and draws.chance(0.7) else "this"
    adjectives = lexicon.ADJECTIVES_OF[noun]
    adjective = draws.pick(adjectives) if draws.chance(0.2) else None
    phrase = NounPhrase(noun, determiner, False, adjective)
    if goal:
        return Adverbial("to", to, "dative" if to == "zu" else "accusative", phrase)
    return Adverbial(english, where, "dative", phrase)


def draw_adjective(draws: Draws, subject: Nominal) -> Adjective:
    """Return an adjective that fits a person or thing, and any adjective it already has."""
    about = noun_of(subject) or lexicon.NOUN["sister"]  # stands for any person
    known = subject.adjective if isinstance(subject, NounPhrase) else None
    excluded = {known, *(each for family in lexicon.FAMILIES if known in family for each in family)}
    return draws.pick([each for each in lexicon.ADJECTIVES_OF[about] if each not in excluded])


# --- drawing clauses

_TENSES = Weighted(("present", 38), ("past", 26), ("modal", 20), ("habit", 16))
_EVENT_TENSES = Weighted(("past", 3), ("modal", 2))
_STATE_TENSES = Weighted(("present", 3), ("past", 1))  # no modal, no adverbial of time
_P_TIME, _P_PLACE, _P_GOAL, _P_CIRCUMSTANCE, _P_MANNER = 0.35, 0.25, 0.75, 0.3, 0.12
_MOST_ADVERBIALS = 2
_VEHICLES = tuple(NounPhrase(noun, "the") for noun in lexicon.nouns_of_kinds("vehicle", "transport"))

# By frame first, so that the many verbs with an accusative do not crowd out the others.
_BY_FRAME = Weighted(("accusative", 50), ("dative", 9), ("ditransitive", 12), ("preposition", 8), ("none", 21))
VERBS_BY_FRAME = {frame: [verb for verb in lexicon.VERBS if verb.frame == frame] for frame in _BY_FRAME.options}


def draw_verb(draws: Draws) -> Verb:
    return draws.pick(VERBS_BY_FRAME[draws.pick_weighted(_BY_FRAME)])


def draw_dynamic_verb(draws: Draws) -> Verb:
    return draw_until(lambda: draw_verb(draws), lambda verb: "timeless" not in verb.traits)


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
    """Return a clause with this verb, else any that fits the need, and this subject, else anybody.

    `tense`: "simple" for the present after "if", "modal" for any modal, None for what fits the verb. `need`: "time" or
    "place", an adverbial that must be there, because it opens the sentence. `gap`, for a question: "object", "time" or
    "place", which it asks for, or "none". `bare`: without any adverbial that the verb can do without.
    """
    while (
        verb is None
        or (need == "time" and "timeless" in verb.traits)
        or (need == "place" and "place" not in verb.traits and verb.english != "stay")
    ):
        verb = draw_verb(draws)
    traits = verb.traits
    modal: Modal | None = None
    if tense is None:
        tenses = _STATE_TENSES if "timeless" in traits else _EVENT_TENSES if "event" in traits else _TENSES
        # "Every day" and "often" fit neither a negation nor a question.
        tense = draw_until(lambda: draws.pick_weighted(tenses), lambda drawn: drawn != "habit" or not (negated or gap))
        if tense == "modal":
            modal = draws.pick(lexicon.MODALS)
            tense = "modal past" if modal.preterite and draws.chance(0.3) else "modal"
    elif tense == "modal":
        modal = draws.pick(lexicon.MODALS)
    if subject is None:
        unfit = ("a", "no", "two") if gap else ("no", "two") if negated else ()
        about_me = Pronoun("I") if gap and modal is None else None  # nobody asks what they themselves do
        subject = draw_until(lambda: draw_subject(draws, "a" in traits, unfit), lambda drawn: drawn != about_me)
    without: tuple[str, ...] = ("no", "two") if negated else ("no",) if gap or tense == "habit" else ()
    if isinstance(subject, NounPhrase) and subject.determiner == "no":
        without = ("no", *without)
    given = draw_object(draws, verb, subject, without) if verb.objects and gap != "object" else None
    recipient = draw_other_person(draws, subject, given) if verb.frame == "ditransitive" else None
    # Adverbials, at most `room` of them optional.
    room = 0 if bare else _MOST_ADVERBIALS
    time = manner = circumstance = place = None
    wants_time = need == "time" or tense == "habit" or (room and gap != "time" and draws.chance(_P_TIME))
    if wants_time and tense != "simple":
        if "timeless" not in traits:
            when = "past" if tense == "modal past" else tense
            times = [time for time in lexicon.TIMES if when in time.tenses]
            if need == "time" or negated:  # "often" neither opens a sentence nor is negated
                times = [time for time in times if not time.middle]
            if tense == "habit" and verb.past == verb.english:  # "read in the evening": every one, or that one?
                times = [time for time in times if "past" not in time.tenses]
            time = draws.pick(times)
        room -= 1
    if gap != "place" and not traits.isdisjoint(("place", "placed", "to")):
        must = need == "place" or "placed" in traits
        if must or (room > 0 and draws.chance(_P_GOAL if "to" in traits else _P_PLACE)):
            place = draw_place(draws, "to" in traits, "far" in traits)
            room -= 1
    if room > 0 and draws.chance(_P_CIRCUMSTANCE):
        fitting = [preposition for preposition in ("with", "by", "for") if preposition in traits]
        preposition = draws.pick(fitting) if fitting else ""
        near = place is not None and noun_of(place.nominal) not in FAR_NOUNS
        if preposition == "by" and not near:  # nobody takes the train to the kitchen
            circumstance = Adverbial("by", "mit", "dative", draws.pick(_VEHICLES))
        elif preposition == "with":
            circumstance = Adverbial("with", "mit", "dative", draw_other_person(draws, subject, given))
        elif preposition == "for" and place is None:
            circumstance = Adverbial("for", "für", "accusative", draw_other_person(draws, subject, given))
        room -= circumstance is not None
    if room > 0 and draws.chance(_P_MANNER) and not (isinstance(given, NounPhrase) and given.indefinite):
        manners = [manner for manner in lexicon.MANNERS if manner in traits]
        manner = draws.pick(manners) if manners else None
    return Clause(subject, verb, tense, modal, given, recipient, time, manner, circumstance, place, negated=negated)
