"""Render clauses in German: case, agreement, and verb position.

A German clause is built from a frame, the two halves of the verb, and a middle field in a fixed order:

    front | finite verb | middle field | right bracket        a statement, a question
    conjunction | middle field | right bracket | finite verb  a subordinate clause
"""

from dataclasses import replace
from functools import cache

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.clause import Adverbial, Clause, Name, Nominal, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.lexicon import Address, Adjective, Case

_ENDINGLESS = {("nominative", "m"), ("nominative", "n"), ("accusative", "n")}  # ein, kein, mein: no ending here
_DER_WORDS = {"this": "dies", "which": "welch"}
_EIN_WORDS = {"a": "ein", "no": "kein", "my": "mein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}
_YOUR = {"du": "dein", "Sie": "Ihr", "ihr": "euer"}
_UNINFLECTED = {"": "", "two": "zwei"}

_MIDDLE_FIELD = (
    *("subject", "pronoun", "dative pronoun", "dative", "known", "time"),
    *("early place", "new"),  # im Park einen Hund, but: den Hund im Park
    *("nicht", "manner", "company", "place", "prepositional object", "predicate"),
)


def _pronoun_cases_and_person(pronoun: Pronoun, address: Address) -> list[str]:
    """Return a pronoun's nominative, accusative and dative, and its grammatical person."""
    return lexicon.PRONOUNS[f"you:{address}" if pronoun.name == "you" else pronoun.name][2:]


def nominal(of: Nominal, case: Case, address: Address) -> str:
    if isinstance(of, Pronoun):
        return _pronoun_cases_and_person(of, address)[("nominative", "accusative", "dative").index(case)]
    return of.name if isinstance(of, Name) else _noun_phrase(of, case, address)


@cache
def _noun_phrase(phrase: NounPhrase, case: Case, address: Address) -> str:
    column = "p" if phrase.plural else phrase.noun.gender
    determiner, adjective_ending = _determiner(phrase.determiner, case, column, address)
    adjective = phrase.adjective.stem + adjective_ending if phrase.adjective else ""
    return " ".join(filter(None, (determiner, adjective, phrase.noun.form(case, phrase.plural))))


def _determiner(english: str, case: Case, column: str, address: Address) -> tuple[str, str]:
    """Return a determiner's form and the ending of an adjective after it: one of them must show the case."""
    strong, weak = lexicon.STRONG[case][column], lexicon.WEAK[case][column]
    if english in _UNINFLECTED:
        return _UNINFLECTED[english], strong
    if english == "the":
        return lexicon.DEFINITE[case][column], weak
    if english in _DER_WORDS:
        return _DER_WORDS[english] + strong, weak
    stem = _YOUR[address] if english == "your" else _EIN_WORDS[english]
    if (case, column) in _ENDINGLESS:
        return stem, strong
    return ("eur" if stem == "euer" else stem) + strong, weak


def adverbial(of: Adverbial, address: Address) -> str:
    """Return a preposition and its nominal, contracted where German does: im Garten."""
    if of.nominal is None:
        return of.german
    first, _, rest = nominal(of.nominal, of.case, address).partition(" ")
    first = f"{of.german} {first}"
    if isinstance(of.nominal, NounPhrase) and of.nominal.determiner == "the":
        first = lexicon.CONTRACTIONS.get(first, first)
    return f"{first} {rest}".rstrip()


def _finite_prefix_nonfinite(clause: Clause, address: Address) -> tuple[str, str, str]:
    """Return the finite verb, its separable prefix, and the participle or infinitive that goes with it."""
    verb, subject = clause.verb, clause.subject
    if isinstance(subject, Pronoun):
        person = _pronoun_cases_and_person(subject, address)[3]
    else:
        person = "SIE" if isinstance(subject, NounPhrase) and subject.plural else "ER"
    who = lexicon.PERSONS.index(person)
    if clause.modal:
        forms = clause.modal.preterite if clause.tense == "modal past" else clause.modal.present
        return forms[who], "", verb.prefix + verb.infinitive
    if clause.tense != "past":
        return verb.present[who], verb.prefix, ""
    if verb.preterite:
        return verb.preterite[who], "", ""
    auxiliary = lexicon.HABEN if verb.auxiliary == "haben" else lexicon.SEIN
    return auxiliary.present[who], "", verb.participle


def _middle_field(clause: Clause, address: Address, front: str) -> list[str]:
    """Return the middle field, in the order of _MIDDLE_FIELD, without the constituent in `front`."""
    verb, recipient = clause.verb, clause.recipient
    about = clause.predicate if clause.object is None else clause.object
    kein = False  # it negates an object that is new and has no preposition
    if isinstance(about, NounPhrase) and clause.negated and not verb.object_preposition:
        kein = about.determiner in ("a", "")
        about = replace(about, determiner="no") if kein else about
    found: dict[str, str] = {}
    if front != "subject":
        found["subject"] = nominal(clause.subject, "nominative", address)
    if isinstance(about, Adjective):
        found["predicate"] = about.german
    elif about is not None and clause.object is None:
        found["predicate"] = nominal(about, "nominative", address)
    elif about is not None and verb.object_preposition:
        of = Adverbial("", verb.object_preposition, verb.object_case, about)
        found["prepositional object"] = adverbial(of, address)
    elif about is not None:
        indefinite = isinstance(about, NounPhrase) and about.indefinite
        waits = recipient is not None and not clause.negated
        role = "pronoun" if isinstance(about, Pronoun) else "new" if indefinite or waits else "known"
        found[role] = nominal(about, verb.object_case, address)
    if recipient is not None:
        role = "dative pronoun" if isinstance(recipient, Pronoun) else "dative"
        found[role] = nominal(recipient, "dative", address)
    if clause.time and front != "time":
        found["time"] = clause.time.german
    if clause.negated and not kein:
        found["nicht"] = "nicht"
    if clause.manner:
        found["manner"] = lexicon.MANNERS[clause.manner]
    if clause.circumstance:
        found["company"] = adverbial(clause.circumstance, address)
    if clause.place and front != "place":
        found["early place" if "new" in found else "place"] = adverbial(clause.place, address)
    return [found[role] for role in _MIDDLE_FIELD if role in found]


def statement(clause: Clause, address: Address, front: str = "subject") -> str:
    """Return a main clause, verb second; `front`: "subject", "time" or "place" opens it."""
    opening = nominal(clause.subject, "nominative", address)
    if front == "time" and clause.time:
        opening = clause.time.german
    elif front == "place" and clause.place:
        opening = adverbial(clause.place, address)
    return main_clause(clause, address, opening, front)


def main_clause(clause: Clause, address: Address, opening: str = "", front: str = "") -> str:
    """Return a main clause after its `opening`, a question word or the `front` constituent; without one, verb first."""
    finite, prefix, rest = _finite_prefix_nonfinite(clause, address)
    return " ".join(filter(None, (opening, finite, *_middle_field(clause, address, front), prefix, rest)))


def subordinate(conjunction: str, clause: Clause, address: Address) -> str:
    finite, prefix, rest = _finite_prefix_nonfinite(clause, address)
    return " ".join(filter(None, (conjunction, *_middle_field(clause, address, ""), rest, prefix + finite)))
