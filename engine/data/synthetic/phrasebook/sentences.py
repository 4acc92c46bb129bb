"""The table of constructions, and sentences drawn from it."""

import re
from dataclasses import dataclass

from engine.data.synthetic.draws import Draws, Weighted
from engine.data.synthetic.phrasebook import lexicon, questions, simple, two_clauses
from engine.data.synthetic.phrasebook.clause import Clause
from engine.data.synthetic.phrasebook.told import Construction
from engine.data.synthetic.phrasebook.words import Address

CONSTRUCTIONS: dict[str, tuple[Construction, float]] = {
    "statement": (simple.statement, 18),
    "negation": (simple.negation, 9),
    "modal": (simple.modal, 7),
    "time first": (simple.time_first, 7),
    "place first": (simple.place_first, 4),
    "copula": (simple.copula, 3),
    "copula question": (simple.copula_question, 2),
    "that is": (simple.that_is, 3),
    "existential": (simple.existential, 2),
    "belonging": (simple.belonging, 3),
    "yes-no question": (questions.yes_no_question, 7),
    "who question": (questions.who_question, 3),
    "object question": (questions.object_question, 3),
    "which question": (questions.which_question, 3),
    "where question": (questions.where_question, 2),
    "when question": (questions.when_question, 2),
    "why question": (questions.why_question, 2),
    "that clause": (two_clauses.that_clause, 6),
    "whether clause": (two_clauses.whether_clause, 3),
    "because": (two_clauses.because_clause, 4),
    "if first": (two_clauses.if_first, 3),
    "if last": (two_clauses.if_last, 2),
    "it is": (two_clauses.it_is, 3),
    "it again": (two_clauses.it_again, 3),
}
_CHOICE = Weighted(*((name, weight) for name, (_, weight) in CONSTRUCTIONS.items()))
_ADDRESS: Weighted[Address] = Weighted(("du", 62), ("Sie", 20), ("ihr", 18))
_YOU = re.compile(r"\b[Yy]ou(r)?\b")


@dataclass(frozen=True)
class Sentence:
    """A finished sentence.

    Attributes:
        construction: its name in CONSTRUCTIONS.
        clauses: what it says; in these the verb and its object can be looked up.
    """

    source: str
    target: str
    construction: str
    clauses: tuple[Clause, ...]


def draw_sentence(draws: Draws) -> Sentence:
    """Return a sentence of any construction.

    "You" is du. Where it is Sie or ihr, a vocative says so at the end, so that the English decides the German.
    """
    address = draws.weighted(_ADDRESS)
    name = draws.weighted(_CHOICE)
    told = CONSTRUCTIONS[name][0](draws, address)
    endings = ("", "")
    if address != "du" and _YOU.search(told.english):
        who, wer = draws.pick(lexicon.VOCATIVES[address])
        endings = (f", {who}", f", {wer}")
    source, target = (
        text[0].upper() + text[1:] + ending + told.mark
        for text, ending in zip((told.english, told.german), endings, strict=True)
    )
    return Sentence(source, target, name, told.clauses)
