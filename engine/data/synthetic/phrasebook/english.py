"""Render clauses in English: the continuous form, do-support, and what follows the verb."""

from collections.abc import Sequence
from functools import cache

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.clause import Adverbial, Clause, Name, Nominal, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.lexicon import Adjective

_BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}  # I · third person singular · all others


def nominal(of: Nominal, as_object: bool = False) -> str:
    if isinstance(of, Pronoun):
        return lexicon.PRONOUNS["you:du" if of.name == "you" else of.name][as_object]
    return of.name if isinstance(of, Name) else _noun_phrase(of)


@cache
def _noun_phrase(phrase: NounPhrase) -> str:
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [*([phrase.adjective.english] if phrase.adjective else []), noun]
    determiner = phrase.determiner
    if determiner == "a":
        determiner = "an" if words[0][0] in "aeiou" else "a"
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    return " ".join([determiner, *words] if determiner else words)


def _adverbial(of: Adverbial) -> str:
    if of.english == "by" and isinstance(of.nominal, NounPhrase):
        return f"by {of.nominal.noun.english}"  # by train, where German has an article: mit dem Zug
    return f"{of.english} {nominal(of.nominal, True)}" if of.nominal else of.english


def _auxiliary_and_rest(clause: Clause, needs_auxiliary: bool) -> tuple[str, str]:
    """Return the auxiliary ("" if none is needed) and the rest of the verb; a subject or "not" may `split` the two."""
    subject, verb, modal = clause.subject, clause.verb, clause.modal
    if isinstance(subject, Pronoun):
        agreement = 0 if subject.name == "I" else 2 if subject.name in ("you", "we", "they") else 1
    else:
        agreement = 2 if isinstance(subject, NounPhrase) and subject.plural else 1
    past = clause.tense in ("past", "modal past")
    if modal and not modal.to:
        return modal.english, verb.english
    if modal:
        base, third = modal.english, lexicon.third_person(modal.english)
        was = "had" if base == "have" else f"{base}ed"
        forms = (f"{base} to {verb.english}", f"{third} to {verb.english}", f"{was} to {verb.english}")
    elif verb is lexicon.SEIN:
        return _BE["past" if past else "present"][agreement], ""
    elif clause.tense == "present" and "stative" not in verb.traits:
        return _BE["present"][agreement], verb.ing
    else:
        forms = (verb.english, verb.third, verb.past)
    if needs_auxiliary:
        return ("did" if past else "does" if agreement == 1 else "do"), forms[0]
    return "", forms[2] if past else forms[1] if agreement == 1 else forms[0]


def _sentence(clause: Clause, before: Sequence[str], rest: str, front: str = "") -> str:
    often = clause.time.english if clause.time and clause.time.middle else ""
    words = [*before, often, rest, clause.verb.particle]
    objects = [nominal(of, True) for of in (clause.recipient, clause.object) if of is not None]
    if clause.recipient and (isinstance(clause.object, Pronoun) or "to-only" in clause.verb.traits):
        objects = [objects[1], "to", objects[0]]  # give it to him
    words += objects
    if isinstance(clause.predicate, Adjective):
        words.append(clause.predicate.english)
    elif clause.predicate is not None:
        words.append(nominal(clause.predicate))
    words.append(clause.manner or "")
    if clause.circumstance:
        words.append(_adverbial(clause.circumstance))
    if clause.place and front != "place":
        words.append(_adverbial(clause.place))
    if clause.time and not clause.time.middle and front != "time":
        words.append(clause.time.english)
    return " ".join(filter(None, words))


def statement(clause: Clause, front: str = "subject") -> str:
    """Return a statement; `front`: "subject", "time" or "place" opens it."""
    auxiliary, rest = _auxiliary_and_rest(clause, needs_auxiliary=clause.negated)
    negation = "not" if clause.negated else ""
    if negation and auxiliary == "can":
        auxiliary, negation = "cannot", ""
    opening = ""
    if front == "time" and clause.time:
        opening = clause.time.english
    elif front == "place" and clause.place:
        opening = _adverbial(clause.place)
    return _sentence(clause, (opening, nominal(clause.subject), auxiliary, negation), rest, front)


def question(clause: Clause, asked: str = "") -> str:
    """Return a question; a question word that is the subject needs `statement` instead."""
    auxiliary, rest = _auxiliary_and_rest(clause, needs_auxiliary=True)
    negation = "not" if clause.negated else ""
    return _sentence(clause, (asked, auxiliary, nominal(clause.subject), negation), rest)
