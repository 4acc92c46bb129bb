"""What a construction returns: a sentence told in both languages at once."""

from collections.abc import Callable
from typing import NamedTuple

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import english, german
from engine.data.synthetic.phrasebook.clause import Clause
from engine.data.synthetic.phrasebook.words import Address


class Told(NamedTuple):
    """A sentence without capital, mark and vocative; and the clauses it was made from."""

    english: str
    german: str
    mark: str
    clauses: tuple[Clause, ...]


Construction = Callable[[Draws, Address], Told]


def told_statement(clause: Clause, address: Address, front: str | None = None) -> Told:
    """Tell one clause as a statement; `front` is "time" or "place" for what opens it."""
    return Told(english.statement(clause, front), german.statement(clause, address, front), ".", (clause,))


def told_question(clause: Clause, address: Address, asked: tuple[str, str] = ("", "")) -> Told:
    """Tell one clause as a question; `asked` has the English and the German question word."""
    return Told(english.question(clause, asked[0]), german.question(clause, address, asked[1]), "?", (clause,))
