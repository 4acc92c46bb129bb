"""Constructions of one main clause: statements of all kinds, and what something is."""

from engine.data.synthetic.draws import Draws, Weighted
from engine.data.synthetic.phrasebook import english, german, lexicon
from engine.data.synthetic.phrasebook.clause import Clause, Nominal, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.draw_clauses import (
    draw_clause,
    draw_dynamic_verb,
)
from engine.data.synthetic.phrasebook.draw_nominals import (
    draw_adjective,
    draw_belonging,
    draw_new,
    draw_phrase,
    draw_place,
    draw_recipient,
    draw_subject,
)
from engine.data.synthetic.phrasebook.told import Told, told_question, told_statement
from engine.data.synthetic.phrasebook.words import Address

# What one can come upon somewhere; out of doors only what lives.
_FINDS = tuple(
    noun
    for noun in lexicon.of_kinds("person", "animal", "food", "book", "letter", "newspaper", "clothing", "thing")
    if not noun.mass
)
_BEING = Weighted(("present", 3), ("past", 1))


def statement(draws: Draws, address: Address) -> Told:
    """The woman is buying a red hat. · Die Frau kauft einen roten Hut."""
    clause = draw_clause(draws)
    return told_statement(clause, address)


def negation(draws: Draws, address: Address) -> Told:
    """I do not have a dog. · Ich habe keinen Hund."""
    clause = draw_clause(draws, negated=True)
    return told_statement(clause, address)


def modal(draws: Draws, address: Address) -> Told:
    """I can see the dog. · Ich kann den Hund sehen."""
    clause = draw_clause(draws, need="time" if draws.chance(0.3) else "", tense="modal", verb=draw_dynamic_verb(draws))
    return told_statement(clause, address)


def time_first(draws: Draws, address: Address) -> Told:
    """Yesterday Paul visited the doctor. · Gestern hat Paul den Arzt besucht."""
    clause = draw_clause(draws, need="time", negated=draws.chance(0.15))
    return told_statement(clause, address, "time")


def place_first(draws: Draws, address: Address) -> Told:
    """In the garden the child is playing. · Im Garten spielt das Kind."""
    clause = draw_clause(draws, need="place")
    return told_statement(clause, address, "place")


def copula(draws: Draws, address: Address) -> Told:
    """My brother is not tired. · Mein Bruder ist nicht müde."""
    clause = _being(draws, negated=draws.chance(0.3))
    return told_statement(clause, address)


def copula_question(draws: Draws, address: Address) -> Told:
    """Is the coffee cold? · Ist der Kaffee kalt?"""
    clause = _being(draws)
    return told_question(clause, address)


def _being(draws: Draws, negated: bool = False) -> Clause:
    if draws.chance(0.5):
        subject: Nominal = draw_subject(draws, animals=True, without=("a", "no", "two"))
    else:
        subject = draw_phrase(draws, lexicon.NOUNS, "subject", ("a", "no", "two", ""))
    adjective = subject.adjective if isinstance(subject, NounPhrase) else None
    predicate = draw_adjective(draws, subject, adjective)
    return Clause(subject, lexicon.SEIN, draws.weighted(_BEING), predicate=predicate, negated=negated)


def that_is(draws: Draws, address: Address) -> Told:
    """That is a good book. · Das ist ein gutes Buch."""
    what = draw_phrase(draws, lexicon.NOUNS, "object", ("", "two", "no", "this"))
    while what.plural:
        what = draw_phrase(draws, lexicon.NOUNS, "object", ("", "two", "no", "this"))
    clause = Clause(Pronoun("that"), lexicon.SEIN, "present", predicate=what, negated=draws.chance(0.25))
    if not clause.negated and draws.chance(0.3):
        return told_question(clause, address)
    return told_statement(clause, address)


def existential(draws: Draws, address: Address) -> Told:
    """There is a cat in the kitchen. · In der Küche ist eine Katze."""
    what = draw_new(draws, _FINDS, ("",))
    place = draw_place(draws, goal=False)
    while place.nominal is None or (place.nominal.noun.kind == "place" and what.noun.kind not in ("person", "animal")):
        place = draw_place(draws, goal=False)
    clause = Clause(what, lexicon.SEIN, draws.weighted(_BEING), place=place)
    told = f"there {english.be(clause)} {english.nominal(what)} {english.place(place)}"
    return Told(told, german.statement(clause, address, "place"), ".", (clause,))


def belonging(draws: Draws, address: Address) -> Told:
    """This key belongs to the old woman. · Dieser Schlüssel gehört der alten Frau."""
    owner = draw_recipient(draws, what := draw_belonging(draws))
    clause = Clause(what, lexicon.GEHOEREN, "present", object=owner, negated=draws.chance(0.2))
    if not clause.negated and draws.chance(0.3):
        return told_question(clause, address)
    return told_statement(clause, address)
