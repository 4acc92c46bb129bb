"""What a German word form can be: the checker's dictionary.

The forms of nouns and verbs come from the lexicon's principal parts. Articles and endings are written down here
a second time and the other way round, from the form to what it can mean, so that a slip in `german` does not
excuse itself.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.lexicon import DU, ER, ICH, IHR, SIE, WIR, Modal, Noun, Verb

VERBS = tuple(dict.fromkeys((*lexicon.VERBS, *lexicon.SPECIAL.values())))

Feature = tuple[str, str]  # case and column: "dative", "p"
Features = frozenset[Feature]

CASES = ("nominative", "accusative", "dative")
EVERY: Features = frozenset((case, column) for case in CASES for column in "mfnp")


def _features(text: str) -> Features:
    cases = dict(zip("nad", CASES, strict=True))
    return frozenset((cases[each[0]], each[1]) for each in text.split())


# n, a, d: case; m, f, n, p: gender, plural. The same five endings show both in articles and in adjectives.
SHOWS = {
    "er": _features("nm df"),
    "e": _features("nf af np ap"),
    "es": _features("nn an"),
    "en": _features("am dp"),
    "em": _features("dm dn"),
}
SHOWS_NOTHING = _features("nm nn an")  # ein, kein, mein without an ending
WEAK_E = _features("nm nf nn af an")  # after an article that shows the case: der alt-e, else alt-en
WEAK_EN = EVERY - WEAK_E


@dataclass(frozen=True)
class Determiner:
    """A reading of a determiner.

    Attributes:
        bent: whether it shows the case, so that an adjective after it need not.
        new: whether it brings up something new: ein, kein, zwei.
    """

    features: Features
    bent: bool
    new: bool
    lemma: str


@dataclass(frozen=True)
class PronounReading:
    """One case and person that a pronoun can be."""

    case: str
    person: int


@dataclass(frozen=True)
class Finite:
    """A finite form: whose, for which persons, and whether it is a preterite."""

    verb: Verb | Modal
    persons: frozenset[int]
    preterite: bool


def _determiners() -> dict[str, Determiner]:
    table = {"zwei": Determiner(frozenset(each for each in EVERY if each[1] == "p"), False, True, "zwei")}
    for form, ending in {"der": "er", "die": "e", "das": "es", "den": "en", "dem": "em"}.items():
        table[form] = Determiner(SHOWS[ending], True, False, "der")
    for ending, features in SHOWS.items():
        for stem in ("dies", "welch"):
            table[stem + ending] = Determiner(features, True, False, stem)
    for lemma in ("ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer", "Ihr"):
        new = lemma in ("ein", "kein")
        table[lemma] = Determiner(SHOWS_NOTHING, False, new, lemma)
        for ending in ("e", "en", "em", "er"):
            features = SHOWS[ending] if ending != "er" else _features("df")
            if lemma == "ein":
                features = frozenset(each for each in features if each[1] != "p")
            table[("eur" if lemma == "euer" else lemma) + ending] = Determiner(features, True, new, lemma)
    return table


def _pronouns() -> dict[str, tuple[PronounReading, ...]]:
    readings: dict[str, list[PronounReading]] = defaultdict(list)
    for person, forms in (
        (ICH, "ich mich mir"),
        (DU, "du dich dir"),
        (ER, "er ihn ihm"),
        (ER, "sie sie ihr"),
        (ER, "es es ihm"),
        (WIR, "wir uns uns"),
        (IHR, "ihr euch euch"),
        (SIE, "sie sie ihnen"),
        (SIE, "Sie Sie Ihnen"),
        (ER, "wer wen wem"),
        (ER, "was was -"),
    ):
        for form, case in zip(forms.split(), CASES, strict=True):
            readings[form].append(PronounReading(case, person))
    return {form: tuple(found) for form, found in readings.items()}


def _noun_forms() -> dict[str, list[tuple[Noun, Features]]]:
    table: dict[str, list[tuple[Noun, Features]]] = defaultdict(list)
    for noun in lexicon.NOUNS:
        others = [("accusative", noun.gender), ("dative", noun.gender)]
        first: list[Feature] = [("nominative", noun.gender)]
        if noun.weak:
            table[noun.german + noun.weak].append((noun, frozenset(others)))
        else:
            first += others
        table[noun.german].append((noun, frozenset(first)))
        if not noun.plural:
            continue
        takes_n = not noun.plural.endswith(("n", "s"))
        table[noun.plural].append((noun, _features("np ap") if takes_n else _features("np ap dp")))
        if takes_n:
            table[noun.plural + "n"].append((noun, _features("dp")))
    return dict(table)


def _adjective_endings() -> dict[str, str]:
    return {each.stem + ending: ending for each in lexicon.ADJECTIVES for ending in SHOWS}


def _finite_forms() -> tuple[dict[str, list[Finite]], dict[str, list[Finite]]]:
    """Return finite forms as they stand alone, and as they stand at the end of a clause, prefix and all."""
    alone: dict[str, list[Finite]] = defaultdict(list)
    last: dict[str, list[Finite]] = defaultdict(list)
    verbs: tuple[Verb | Modal, ...] = (*VERBS, *lexicon.MODALS)
    for verb in verbs:
        for forms, preterite in ((verb.present, False), (verb.preterite, True)):
            for form in dict.fromkeys(forms):
                persons = frozenset(person for person, each in enumerate(forms) if each == form)
                reading = Finite(verb, persons, preterite)
                alone[form].append(reading)
                last[(verb.prefix if isinstance(verb, Verb) else "") + form].append(reading)
    return dict(alone), dict(last)


def _of_verbs(form: Literal["infinitive", "participle"]) -> dict[str, list[Verb]]:
    table: dict[str, list[Verb]] = defaultdict(list)
    for verb in VERBS:
        table[verb.prefix + verb.infinitive if form == "infinitive" else verb.participle].append(verb)
    return dict(table)


DETERMINERS = _determiners()
PRONOUNS = _pronouns()
NOUN_FORMS = _noun_forms()
ADJECTIVE_ENDINGS = _adjective_endings()
PREDICATES = frozenset(each.german for each in lexicon.ADJECTIVES)
FINITE, FINITE_LAST = _finite_forms()
INFINITIVES, PARTICIPLES = _of_verbs("infinitive"), _of_verbs("participle")
