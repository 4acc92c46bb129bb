"""Cutting a German clause without its verbs into chunks: nominals, adverbials, nicht.

Within a chunk everything has to agree: an article, an adjective and a noun that share no case, gender and number
are a fault.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from phrasebook_readings import (
    ADJECTIVE_ENDINGS,
    CASES,
    DETERMINERS,
    ER,
    EVERY,
    NOUN_FORMS,
    PREDICATES,
    PRONOUNS,
    SHOWS,
    SIE,
    WEAK_E,
    WEAK_EN,
    Determiner,
    Features,
    PronounReading,
)

from engine.data.synthetic.phrasebook import lexicon

TIMES = frozenset(tuple(time.german.split()) for time in lexicon.TIMES)
WHERE = frozenset(tuple(place.split()) for place in lexicon.FIXED_PLACES.values())
WHERE_TO = frozenset(tuple(place.split()) for place in lexicon.FIXED_GOALS.values())
MANNERS = frozenset(lexicon.MANNERS.values())
QUESTION_ADVERBS = {"wo": "place", "wohin": "goal", "wann": "time", "warum": "reason"}
PREPOSITIONS = {
    "mit": ("dative",),
    "von": ("dative",),
    "zu": ("dative",),
    "für": ("accusative",),
    "in": ("accusative", "dative"),
    "an": ("accusative", "dative"),
    "auf": ("accusative", "dative"),
}
DRAWN_TOGETHER = {joined: tuple(parts.split()) for parts, joined in lexicon.CONTRACTIONS.items()}


class Fault(Exception):
    """Something that German does not allow."""


@dataclass(frozen=True)
class Chunk:
    """A part of a clause that moves as one.

    Attributes:
        kind: nominal, prepositional, time, place, goal, reason, manner, nicht or predicate.
        text: its words.
        readings: the cases and persons that a nominal can be; the cases after a preposition.
        preposition: "" but for prepositional chunks.
        pronoun, new: whether a nominal is a pronoun, and whether it brings up something new.
        kein: whether it is negated by kein.
    """

    kind: str
    text: str
    readings: frozenset[PronounReading] = frozenset()
    preposition: str = ""
    pronoun: bool = False
    new: bool = False
    kein: bool = False
    question: bool = False


def cut(tokens: Sequence[str]) -> list[list[Chunk]]:
    """Return the ways to cut a clause without its verbs: "ihr Wasser" is one thing, or somebody and a thing.

    Raises:
        Fault: a word does not belong anywhere, or does not agree with its neighbours.
    """
    if not tokens:
        return [[]]
    ways: list[list[Chunk]] = []
    faults: list[Fault] = []
    for chunk, length in _first(tokens):
        try:
            ways += [[chunk, *others] for others in cut(tokens[length:])]
        except Fault as fault:
            faults.append(fault)
    if not ways:
        raise faults[0]
    return ways


def _first(tokens: Sequence[str]) -> list[tuple[Chunk, int]]:
    """Return the chunks that the tokens can begin with, and their lengths."""
    for kind, known in (("time", TIMES), ("place", WHERE), ("goal", WHERE_TO)):
        for words in known:
            if tuple(tokens[: len(words)]) == words:
                return [(Chunk(kind, " ".join(words)), len(words))]
    word = tokens[0]
    if word in QUESTION_ADVERBS:
        return [(Chunk(QUESTION_ADVERBS[word], word, question=True), 1)]
    if word in MANNERS:
        return [(Chunk("manner", word), 1)]
    if word == "nicht":
        return [(Chunk("nicht", word), 1)]
    if word in DRAWN_TOGETHER:
        preposition, article = DRAWN_TOGETHER[word]
        return _after(preposition, _nominals([article, *tokens[1:]]), 0)
    if word in PREPOSITIONS:
        return _after(word, _nominals(tokens[1:]), 1)
    if word in PREDICATES and not (len(tokens) > 1 and tokens[1] in NOUN_FORMS):
        return [(Chunk("predicate", word), 1)]
    return _nominals(tokens)


def _after(preposition: str, nominals: Sequence[tuple[Chunk, int]], more: int) -> list[tuple[Chunk, int]]:
    """Return prepositional chunks of those nominals that can be in a case that the preposition takes."""
    chunks = []
    for nominal, length in nominals:
        allowed = frozenset(each for each in nominal.readings if each.case in PREPOSITIONS[preposition])
        if allowed:
            text = f"{preposition} {nominal.text}"
            chunks.append((Chunk("prepositional", text, allowed, preposition), length + more))
    if not chunks:
        raise Fault(f"'{preposition}' does not take the case of '{nominals[0][0].text}'")
    return chunks


def _nominals(tokens: Sequence[str]) -> list[tuple[Chunk, int]]:
    """Return the noun phrase or the pronoun that the tokens begin with; both, where they could be either."""
    if not tokens:
        raise Fault("a preposition without a noun")
    word = tokens[0]
    if word in lexicon.NAMES:
        return [(Chunk("nominal", word, frozenset(PronounReading(case, ER) for case in CASES)), 1)]
    alone: list[tuple[Chunk, int]] = []
    if word in PRONOUNS:
        asks = word in ("wer", "wen", "wem", "was")
        alone.append((Chunk("nominal", word, frozenset(PRONOUNS[word]), pronoun=not asks, question=asks), 1))
    elif word == "das":
        that = frozenset(PronounReading("nominative", person) for person in (ER, SIE))
        alone.append((Chunk("nominal", word, that), 1))
    if alone and word not in DETERMINERS:
        return alone
    try:
        return [_noun_phrase(tokens), *alone]
    except Fault:
        if alone:
            return alone
        raise


def _noun_phrase(tokens: Sequence[str]) -> tuple[Chunk, int]:
    determiner = DETERMINERS.get(tokens[0])
    length = 1 if determiner else 0
    ending = ADJECTIVE_ENDINGS.get(tokens[length]) if length < len(tokens) else None
    length += ending is not None
    noun = tokens[length] if length < len(tokens) else "nothing"
    text = " ".join(tokens[: length + 1])
    if noun not in NOUN_FORMS:
        raise Fault(f"'{noun}' where a noun is expected")
    features = _agreement(determiner, ending, noun)
    if not features:
        raise Fault(f"no agreement within '{text}'")
    readings = frozenset(PronounReading(case, SIE if column == "p" else ER) for case, column in features)
    lemma = determiner.lemma if determiner else ""
    new = determiner is None or determiner.new
    return Chunk("nominal", text, readings, "", False, new, lemma == "kein", lemma == "welch"), length + 1


def _agreement(determiner: Determiner | None, ending: str | None, noun: str) -> Features:
    """Return the cases, genders and numbers that an article, an adjective's ending and a noun share."""
    shared = determiner.features if determiner else EVERY
    if ending and determiner and determiner.bent:
        shared &= WEAK_E if ending == "e" else WEAK_EN if ending == "en" else frozenset()
    elif ending:
        shared &= SHOWS[ending]
    possible: Features = frozenset()
    for lemma, features in NOUN_FORMS[noun]:
        if determiner is None and not lemma.mass:
            features = frozenset(each for each in features if each[1] == "p")  # one thing needs an article
        possible |= shared & features
    return possible
