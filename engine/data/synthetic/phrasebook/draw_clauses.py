"""Making up clauses: a verb, what goes with it, and the adverbials it allows."""

from dataclasses import replace
from typing import NamedTuple

from engine.data.synthetic.draws import Draws, Weighted
from engine.data.synthetic.phrasebook import adverbials, lexicon
from engine.data.synthetic.phrasebook.clause import Circumstance, Clause, Nominal, NounPhrase, Place, Pronoun
from engine.data.synthetic.phrasebook.draw_nominals import (
    FAR,
    draw_object,
    draw_place,
    draw_recipient,
    draw_subject,
)
from engine.data.synthetic.phrasebook.words import Modal, Time, Verb

_TENSES = Weighted(("present", 38), ("past", 26), ("modal", 20), ("habit", 16))
_EVENT_TENSES = Weighted(("past", 3), ("modal", 2))
_STATE_TENSES = Weighted(("present", 3), ("past", 1))  # no modal, no adverbial of time
_P_TIME, _P_PLACE, _P_GOAL, _P_CIRCUMSTANCE, _P_MANNER = 0.35, 0.25, 0.75, 0.3, 0.12
_MOST_ADVERBIALS = 2
_VEHICLES = tuple(NounPhrase(noun, "the") for noun in lexicon.of_kinds("vehicle", "transport"))

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


def _draw_time(draws: Draws, tense: str, verb: Verb, opens: bool) -> Time | None:
    """Return an adverbial of time, or None where none fits; "often" neither opens a sentence nor is negated."""
    if "timeless" in verb.traits:
        return None
    times = [
        time for time in adverbials.TIMES_OF[{"modal past": "past"}.get(tense, tense)] if not (opens and time.middle)
    ]
    if tense == "habit" and verb.past == verb.english:  # "you read it in the evening": every evening, or that one?
        times = [time for time in times if "past" not in time.tenses]
    return draws.pick(times)


class _Adverbials(NamedTuple):
    time: Time | None = None
    manner: str | None = None
    circumstance: Circumstance | None = None
    place: Place | None = None


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
    while verb is None or not _can(verb, need):
        verb = draw_verb(draws)
    modal: Modal | None = None
    if tense is None:
        tense, modal = draw_tense(draws, verb, habits=not (negated or gap))
    elif tense == "modal":
        modal = draws.pick(lexicon.MODALS)
    if subject is None:
        subject = _draw_doer(draws, verb, negated, asks=bool(gap), modal=modal)
    without = ("no", "two") if negated else ("no",) if gap or tense == "habit" else ()
    if isinstance(subject, NounPhrase) and subject.determiner == "no":
        without = ("no", *without)
    given = draw_object(draws, verb, subject, without) if verb.objects and gap != "object" else None
    recipient = draw_recipient(draws, subject, given) if verb.ditransitive else None
    clause = Clause(subject, verb, tense, modal, given, recipient, negated=negated)
    extras = _draw_adverbials(draws, clause, need, gap, 0 if bare else _MOST_ADVERBIALS)
    return replace(clause, **extras._asdict())


def _can(verb: Verb, need: str) -> bool:
    if need == "time":
        return "timeless" not in verb.traits
    return need != "place" or "place" in verb.traits or verb.english == "stay"


def _draw_doer(draws: Draws, verb: Verb, negated: bool, asks: bool, modal: Modal | None) -> Nominal:
    without = ("a", "no", "two") if asks else ("no", "two") if negated else ()
    while True:
        subject = draw_subject(draws, "a" in verb.traits, without)
        if not (asks and modal is None and subject == Pronoun("I")):  # what one does, one knows oneself
            return subject


def _draw_adverbials(draws: Draws, clause: Clause, need: str, gap: str, room: int) -> _Adverbials:
    """Return what a clause says about time, place and the rest.

    Args:
        need, gap: as for `draw_clause`.
        room: how many there may be that the clause can do without.
    """
    verb, traits, given = clause.verb, clause.verb.traits, clause.object
    time = manner = circumstance = place = None
    wants_time = need == "time" or clause.tense == "habit" or (room and gap != "time" and draws.chance(_P_TIME))
    if wants_time and clause.tense != "simple":
        time = _draw_time(draws, clause.tense, verb, opens=need == "time" or clause.negated)
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
        manners = [manner for manner in adverbials.MANNERS if manner in traits]
        manner = draws.pick(manners) if manners else None
    return _Adverbials(time, manner, circumstance, place)


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
