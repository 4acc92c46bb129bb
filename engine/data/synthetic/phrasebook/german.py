"""Render clauses in German: case, agreement, and verb position.

A German clause is built from a frame, the two halves of the verb, and a middle field in a fixed order:

    front | finite verb | subject, middle field | right bracket        a statement, a question
    conjunction | subject, middle field | right bracket | finite verb  a subordinate clause
"""

from dataclasses import replace
from functools import cache
from itertools import chain

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.clause import Clause, Name, Nominal, NounPhrase, Place, Pronoun
from engine.data.synthetic.phrasebook.lexicon import ER, SIE, Address, Adjective, Case, Verb

_ENDINGLESS = {("nominative", "m"), ("nominative", "n"), ("accusative", "n")}  # ein, kein, mein: no ending here
_WEAK_E = {("nominative", "m"), ("nominative", "f"), ("nominative", "n"), ("accusative", "f"), ("accusative", "n")}

_DER_WORDS = {"this": "dies", "which": "welch"}
_EIN_WORDS = {"a": "ein", "no": "kein", "my": "mein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}
_YOUR = {"du": "dein", "Sie": "Ihr", "ihr": "euer"}
_UNBENT = {"": "", "two": "zwei"}

_CIRCUMSTANCES: dict[str, tuple[str, Case]] = {
    "with": ("mit", "dative"),
    "by": ("mit", "dative"),
    "for": ("für", "accusative"),
}


def _pronoun(pronoun: Pronoun, address: Address) -> list[str]:
    """Return a pronoun's nominative, accusative and dative, and its grammatical person."""
    return lexicon.PRONOUNS[f"you:{address}" if pronoun.name == "you" else pronoun.name][2:]


def nominal(of: Nominal, case: Case, address: Address) -> str:
    if isinstance(of, Pronoun):
        return _pronoun(of, address)[("nominative", "accusative", "dative").index(case)]
    return of.name if isinstance(of, Name) else _noun_phrase(of, case, address)


@cache
def _noun_phrase(phrase: NounPhrase, case: Case, address: Address) -> str:
    column = "p" if phrase.plural else phrase.noun.gender
    determiner, adjective_ending = _determiner(phrase.determiner, case, column, address)
    adjective = phrase.adjective.stem + adjective_ending if phrase.adjective else ""
    return " ".join(filter(None, (determiner, adjective, phrase.noun.form(case, phrase.plural))))


def _determiner(english: str, case: Case, column: str, address: Address) -> tuple[str, str]:
    """Return a determiner's form and the ending of an adjective after it: one of them must show the case."""
    strong = lexicon.STRONG[case][column]
    weak = "e" if (case, column) in _WEAK_E else "en"
    if english in _UNBENT:
        return _UNBENT[english], strong
    if english == "the":
        return lexicon.DEFINITE[case][column], weak
    if english in _DER_WORDS:
        return _DER_WORDS[english] + strong, weak
    stem = _YOUR[address] if english == "your" else _EIN_WORDS[english]
    if (case, column) in _ENDINGLESS:
        return stem, strong
    return ("eur" if stem == "euer" else stem) + strong, weak


def _prepositional(preposition: str, of: Nominal, case: Case, address: Address) -> str:
    """Return a preposition and its nominal, contracted where German does: im Garten."""
    first, _, rest = nominal(of, case, address).partition(" ")
    definite = isinstance(of, NounPhrase) and of.determiner == "the"
    drawn_together = lexicon.CONTRACTIONS.get(f"{preposition} {first}") if definite else None
    return f"{drawn_together or f'{preposition} {first}'} {rest}".rstrip()


def place(of: Place, address: Address) -> str:
    if of.nominal is None:
        return of.german
    return _prepositional(of.german, of.nominal, "accusative" if of.accusative else "dative", address)


def _verb(clause: Clause, address: Address) -> tuple[str, str, str]:
    """Return the finite verb, its separable prefix, and the participle or infinitive that goes with it."""
    verb, subject = clause.verb, clause.subject
    if isinstance(subject, Pronoun):
        who = getattr(lexicon, _pronoun(subject, address)[3])
    else:
        who = SIE if isinstance(subject, NounPhrase) and subject.plural else ER
    if clause.modal:
        forms = clause.modal.preterite if clause.tense == "modal past" else clause.modal.present
        return forms[who], "", verb.prefix + verb.infinitive
    if clause.tense != "past":
        return verb.present[who], verb.prefix, ""
    if verb.preterite:
        return verb.preterite[who], "", ""
    auxiliary: Verb = lexicon.HABEN if verb.auxiliary == "haben" else lexicon.SEIN
    return auxiliary.present[who], "", verb.participle


def _with_kein(of: Nominal) -> Nominal:
    return replace(of, determiner="no") if isinstance(of, NounPhrase) else of


def _middle(clause: Clause, address: Address, front: str) -> list[str]:
    """Return the middle field in the order of the fields below, without what stands in `front`."""
    pronouns: list[str] = []  # the accusative before the dative
    dative: list[str] = []
    known: list[str] = []
    new: list[str] = []
    after_preposition: list[str] = []
    predicate: list[str] = []
    verb = clause.verb
    # Kein negates an object that is new and has no preposition.
    about = clause.predicate if clause.object is None else clause.object
    is_new = isinstance(about, NounPhrase) and about.determiner in ("a", "")
    kein = clause.negated and is_new and not verb.object_preposition
    if clause.object is not None:
        given = _with_kein(clause.object) if kein else clause.object
        if verb.object_preposition:
            after_preposition.append(_prepositional(verb.object_preposition, given, verb.object_case, address))
        else:
            indefinite = isinstance(given, NounPhrase) and given.indefinite
            waits = clause.recipient is not None and not clause.negated
            field = pronouns if isinstance(given, Pronoun) else new if indefinite or waits else known
            field.append(nominal(given, verb.object_case, address))
    if clause.recipient is not None:
        field = pronouns if isinstance(clause.recipient, Pronoun) else dative
        field.append(nominal(clause.recipient, "dative", address))
    if isinstance(clause.predicate, Adjective):
        predicate.append(clause.predicate.german)
    elif clause.predicate is not None:
        what = _with_kein(clause.predicate) if kein else clause.predicate
        predicate.append(nominal(what, "nominative", address))
    time = [clause.time.german] if clause.time and front != "time" else []
    nicht = ["nicht"] if clause.negated and not kein else []
    manner = [lexicon.MANNERS[clause.manner]] if clause.manner else []
    company = []
    if clause.circumstance:
        preposition, case = _CIRCUMSTANCES[clause.circumstance.preposition]
        company.append(_prepositional(preposition, clause.circumstance.nominal, case, address))
    where = [place(clause.place, address)] if clause.place and front != "place" else []
    known_place, last_place = (where, []) if new else ([], where)  # im Park einen Hund, but: den Hund im Park
    subject = [nominal(clause.subject, "nominative", address)] if front != "subject" else []
    before = chain(subject, pronouns, dative, known, time, known_place, new)
    after = chain(nicht, manner, company, last_place, after_preposition, predicate)
    return [*before, *after]


def statement(clause: Clause, address: Address, front: str = "subject") -> str:
    """Return a main clause, verb second; `front`: "subject", "time" or "place" opens it."""
    opening = nominal(clause.subject, "nominative", address)
    if front == "time" and clause.time:
        opening = clause.time.german
    elif front == "place" and clause.place:
        opening = place(clause.place, address)
    return question(clause, address, opening, front)


def question(clause: Clause, address: Address, opening: str = "", front: str = "") -> str:
    """Return a main clause after its `opening`, a question word or what stands in `front`; without one, verb first."""
    finite, prefix, rest = _verb(clause, address)
    return " ".join(filter(None, (opening, finite, *_middle(clause, address, front), prefix, rest)))


def subordinate(conjunction: str, clause: Clause, address: Address) -> str:
    finite, prefix, rest = _verb(clause, address)
    return " ".join(filter(None, (conjunction, *_middle(clause, address, ""), rest, prefix + finite)))
