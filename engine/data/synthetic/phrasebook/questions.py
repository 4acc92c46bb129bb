"""Constructions that ask."""

from dataclasses import replace

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import english, german
from engine.data.synthetic.phrasebook.clause import NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.draw_clauses import (
    draw_clause,
    draw_dynamic_verb,
    draw_verb,
)
from engine.data.synthetic.phrasebook.told import Told, told_question
from engine.data.synthetic.phrasebook.words import Address, Verb


def yes_no_question(draws: Draws, address: Address) -> Told:
    """Did she open the window? · Hat sie das Fenster aufgemacht?"""
    clause = draw_clause(draws, gap="none")
    return told_question(clause, address)


def who_question(draws: Draws, address: Address) -> Told:
    """Who is helping the child? · Wer hilft dem Kind?"""
    clause = draw_clause(draws, subject=Pronoun("who"), gap="none")
    return Told(english.statement(clause), german.statement(clause, address), "?", (clause,))


def object_question(draws: Draws, address: Address) -> Told:
    """Who are you helping? What did he buy? · Wem hilfst du? Was hat er gekauft?"""
    verb = _verb_with_object(draws)
    people = sum(noun.kind in ("person", "kin") for noun in verb.objects)
    only_people = people == len(verb.objects) or verb.frame == "dative"
    of_people = only_people or (people and "some" not in verb.traits and draws.chance(0.5))
    about = Pronoun("who" if of_people else "what")
    asked = (about.name, german.nominal(about, verb.object_case, address))
    return told_question(draw_clause(draws, verb, gap="object"), address, asked)


def which_question(draws: Draws, address: Address) -> Told:
    """Which newspaper is he reading? · Welche Zeitung liest er?"""
    verb = _verb_with_object(draws)
    while "some" in verb.traits:
        verb = _verb_with_object(draws)
    noun = draws.pick([noun for noun in verb.objects if noun.plural or noun.mass])
    phrase = NounPhrase(noun, "which", not (noun.mass or noun.kind == "place") and draws.chance(0.25))
    clause = draw_clause(draws, verb, gap="object")
    while isinstance(clause.subject, NounPhrase) and clause.subject.noun is noun:
        clause = draw_clause(draws, verb, gap="object")
    asked = (english.nominal(phrase), german.nominal(phrase, verb.object_case, address))
    told = told_question(clause, address, asked)
    return told._replace(clauses=(replace(clause, object=phrase),))  # it is asked for, but it is there


def _verb_with_object(draws: Draws) -> Verb:
    while True:
        verb = draw_verb(draws)
        if verb.frame in ("accusative", "dative"):
            return verb


def where_question(draws: Draws, address: Address) -> Told:
    """Where is she going? Where does he live? · Wohin geht sie? Wo wohnt er?"""
    verb = draw_verb(draws)
    while verb.traits.isdisjoint(("place", "placed", "to")) or verb.english == "come":
        verb = draw_verb(draws)
    wo = "wohin" if "to" in verb.traits else "wo"
    return told_question(draw_clause(draws, verb, gap="place"), address, ("where", wo))


def when_question(draws: Draws, address: Address) -> Told:
    """When did you sell the car? · Wann hast du das Auto verkauft?"""
    return told_question(draw_clause(draws, draw_dynamic_verb(draws), gap="time"), address, ("when", "wann"))


def why_question(draws: Draws, address: Address) -> Told:
    """Why is the girl laughing? · Warum lacht das Mädchen?"""
    return told_question(draw_clause(draws, gap="time"), address, ("why", "warum"))
