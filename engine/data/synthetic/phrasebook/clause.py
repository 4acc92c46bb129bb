"""What a sentence says, before either language has said it: nominals and clauses.

These are plain values. `english` and `german` turn them into words; `draw_nominals` and `draw_clauses` make them up.
"""

from dataclasses import dataclass

from engine.data.synthetic.phrasebook.words import Adjective, Modal, Noun, Time, Verb


@dataclass(frozen=True)
class Pronoun:
    """A pronoun, by its English subject form; `it_m`, `it_f`, `it_n` carry their antecedent's German gender."""

    name: str


@dataclass(frozen=True)
class Name:
    """A first name."""

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
    """With whom, by what, for whom: a preposition of each language and its nominal."""

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
