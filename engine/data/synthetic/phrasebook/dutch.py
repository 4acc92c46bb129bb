"""Render clauses in Dutch: de and het, adjective endings, and verb position. `dutch.toml` has the words.

The frame is the German one (`german.py`), but the finite verb of a subordinate clause stands before the participle or
infinitive, some verbs have another prefix or preposition, and nouns have no case.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from engine.data.synthetic.phrasebook.clause import Adverbial, Clause, Name, Nominal, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.lexicon import Address, Adjective, Verb

_TABLES = tomllib.loads(Path(__file__).with_name("dutch.toml").read_text(encoding="utf-8"))
_ROWS = {
    name: {key: words for key, *words in map(str.split, _TABLES[name].splitlines())}
    for name in ("nouns", "adjectives", "verbs", "modals", "pronouns")
}
WORDS: dict[str, str] = _TABLES["words"]
EVERYDAY: list[str] = _TABLES["everyday"]
_POSSESSIVES: dict[str, str] = _TABLES["own"]
_INDEFINITE = {"a": "een", "no": "geen", "": "", "which": "welk"}  # no adjective ending after these before a het-word

_MIDDLE_FIELD = (
    *("subject", "pronoun", "recipient", "known", "time", "early place", "new"),
    *("niet", "manner", "company", "place", "prepositional object", "predicate"),
)
SUBJECT, OBJECT, RECIPIENT, PREPOSITIONAL = range(4)  # columns of the pronouns


@dataclass(frozen=True)
class _Verb:
    prefix: str
    forms: tuple[str, ...]  # present: ik, je, hij, wij, and je after the verb
    infinitive: str
    participle: str
    traits: frozenset[str]

    @property
    def preposition(self) -> str:
        return next((trait[1:] for trait in self.traits if trait.startswith("+")), "")


@cache
def _verb(german: str) -> _Verb:
    *forms, participle = (words := _ROWS["verbs"][german])[: words.index("|")]
    prefix = forms.pop(0)[:-1] if forms[0].endswith("+") else ""
    ik, hij, wij = forms
    je = "hebt" if hij == "heeft" else "bent" if hij == "is" else hij
    traits = frozenset(words[words.index("|") + 1 :])
    return _Verb(prefix, (ik, je, hij, wij, ik), prefix + wij, prefix + participle, traits)


def nominal(of: Nominal, column: int, address: Address) -> str:
    if isinstance(of, Name):
        return of.name
    if isinstance(of, NounPhrase):
        return _noun_phrase(of, address)
    name = f"you:{address}" if of.name == "you" else of.name
    if name.startswith("it_"):
        name = f"it_{'het' if of.noun is None else _ROWS['nouns'][of.noun.english][0]}"
    return _ROWS["pronouns"][name][column]


@cache
def _noun_phrase(phrase: NounPhrase, address: Address) -> str:
    article, singular, plural = _ROWS["nouns"][phrase.noun.english]
    het, determiner = article == "het" and not phrase.plural, phrase.determiner
    bare = het and determiner in _INDEFINITE
    if determiner == "your":
        determiner = f"your:{address}"
    said = {
        **_INDEFINITE | _POSSESSIVES,
        "the": "het" if het else "de",
        "this": "dit" if het else "deze",
        "which": "welk" if het else "welke",
        "our": "ons" if het else "onze",
        "two": "twee",
    }[determiner]
    adjective = _ROWS["adjectives"][phrase.adjective.english][1 if bare else 2] if phrase.adjective else ""
    return " ".join(filter(None, (said, adjective, plural if phrase.plural else singular)))


def adverbial(of: Adverbial, address: Address) -> str:
    return WORDS[of.english] + (f" {nominal(of.nominal, PREPOSITIONAL, address)}" if of.nominal else "")


def _fixed_predicate_word(verb: _Verb, about: Nominal | None) -> str:
    """Return the word before the verb, if it has one: nodig hebben, leuk vinden, but lekker vinden of food."""
    word = next((trait for trait in ("leuk", "nodig", "in_slaap") if trait in verb.traits), "").replace("_", " ")
    food = isinstance(about, NounPhrase) and about.noun.kind in ("food", "drink")
    return "lekker" if word == "leuk" and food else word


def _finite_prefix_nonfinite(
    clause: Clause, verb: _Verb, address: Address, inverted: bool, goal: bool
) -> tuple[str, str, str]:
    """Return the finite verb, its separable prefix, and the participle or infinitive that goes with it; a subject that
    comes `after` the verb may change it.
    """
    subject, number = clause.subject, 2
    if isinstance(subject, NounPhrase):
        number = 3 if subject.plural else 2
    elif isinstance(subject, Pronoun):
        you = {"du": 4 if inverted else 1, "Sie": 1, "ihr": 3}[address]
        number = {"I": 0, "you": you, "we": 3, "they": 3}.get(subject.name, 2)
    if clause.modal:
        row = _ROWS["modals"][clause.modal.english]
        forms, more = row[: row.index("|")], row[row.index("|") + 1 :]
        if clause.tense == "modal past":
            return more[number == 3], "", verb.infinitive
        before = f"{more[0][1:]} " if more and more[0].startswith("+") else ""
        return forms[number], "", before + verb.infinitive
    if clause.tense != "past":
        return verb.forms[number], verb.prefix, ""
    if not verb.prefix and clause.verb.preterite:
        return {"zijn": ("was", "waren"), "hebben": ("had", "hadden")}[verb.infinitive][number == 3], "", ""
    auxiliary = _verb("sein" if "is" in verb.traits or ("to" in verb.traits and goal) else "haben")
    return auxiliary.forms[number], "", verb.participle


def _middle_field(clause: Clause, verb: _Verb, address: Address, front: str, about: Nominal | None) -> list[str]:
    """Return the middle field, in the order of _MIDDLE_FIELD, without what is in `front`; it asks for `about`."""
    found: dict[str, str] = {}
    thing, recipient = clause.predicate if clause.object is None else clause.object, clause.recipient
    geen = clause.negated and isinstance(thing, NounPhrase) and not verb.preposition and "leuk" not in verb.traits
    if geen and isinstance(thing, NounPhrase):
        geen = thing.determiner in ("a", "")
        thing = replace(thing, determiner="no") if geen else thing
    if front != "subject":
        found["subject"] = nominal(clause.subject, SUBJECT, address)
    if isinstance(thing, Adjective):
        found["predicate"] = _ROWS["adjectives"][thing.english][0]
    elif thing is not None and clause.object is None:
        found["predicate"] = nominal(thing, SUBJECT, address)
    elif thing is not None and verb.preposition:
        found["prepositional object"] = f"{verb.preposition} {nominal(thing, PREPOSITIONAL, address)}"
    elif thing is not None:
        indefinite = isinstance(thing, NounPhrase) and thing.indefinite
        waits = recipient is not None and not clause.negated
        role = "pronoun" if isinstance(thing, Pronoun) else "new" if indefinite or waits else "known"
        found[role] = nominal(thing, OBJECT, address)
    if recipient is not None and isinstance(thing, Pronoun):  # het aan haar geven
        found["prepositional object"] = f"aan {nominal(recipient, PREPOSITIONAL, address)}"
    elif recipient is not None:
        found["recipient"] = nominal(recipient, RECIPIENT, address)
    if clause.time and front != "time":
        found["time"] = WORDS[clause.time.english]
    if clause.negated and not geen:
        found["niet"] = "niet"
    if clause.manner:
        found["manner"] = WORDS[clause.manner]
    if clause.circumstance:
        found["company"] = adverbial(clause.circumstance, address)
    if clause.place and front != "place":
        found["early place" if "new" in found else "place"] = adverbial(clause.place, address)
    if word := _fixed_predicate_word(verb, about or thing if not isinstance(thing, Adjective) else None):
        found["predicate"] = word
    return [found[role] for role in _MIDDLE_FIELD if role in found]


def _dutch_verb(verb: Verb) -> _Verb:
    return _verb(verb.prefix + verb.infinitive)


def statement(clause: Clause, address: Address, front: str = "subject") -> str:
    """Return a main clause, verb second; `front`: "subject", "time" or "place" opens it."""
    opening = nominal(clause.subject, SUBJECT, address)
    if front == "time" and clause.time:
        opening = WORDS[clause.time.english]
    elif front == "place" and clause.place:
        opening = adverbial(clause.place, address)
    return _main_clause(clause, address, opening, front)


def question(clause: Clause, address: Address, asked: str | Nominal = "") -> str:
    """Return a question, with an English question word or the object that it asks about; with neither, verb first."""
    if isinstance(asked, str):
        goal = asked == "where" and "to" in clause.verb.traits
        opening = WORDS.get(asked, asked)
        return _main_clause(clause, address, opening, "", ("naartoe",) if goal else (), goal=goal)
    preposition = _dutch_verb(clause.verb).preposition
    opening = nominal(asked, PREPOSITIONAL, address)
    if preposition and asked == Pronoun("what"):
        return _main_clause(clause, address, "waar", "", (preposition,), asked)
    return _main_clause(clause, address, f"{preposition} {opening}".strip(), "", (), asked)


def _main_clause(
    clause: Clause,
    address: Address,
    opening: str,
    front: str,
    last: Sequence[str] = (),
    about: Nominal | None = None,
    goal: bool = False,
) -> str:
    verb = _dutch_verb(clause.verb)
    finite, prefix, rest = _finite_prefix_nonfinite(
        clause, verb, address, front != "subject", goal or clause.place is not None
    )
    middle = _middle_field(clause, verb, address, front, about)
    return " ".join(filter(None, (opening, finite, *middle, *last, prefix, rest)))


def subordinate(conjunction: str, clause: Clause, address: Address) -> str:
    verb = _dutch_verb(clause.verb)
    finite, prefix, rest = _finite_prefix_nonfinite(clause, verb, address, False, clause.place is not None)
    return " ".join(filter(None, (conjunction, *_middle_field(clause, verb, address, "", None), prefix + finite, rest)))
