"""Ways to spoil a German sentence of the phrasebook, each ungrammatical by construction.

They work on the words alone. Where a change might by chance be German after all (die Lehrer, den Jungen, "die
Frau sieht die Hunde"), it is not made.
"""

import random
from collections.abc import Callable

from phrasebook_readings import (
    ADJECTIVE_ENDINGS,
    DETERMINERS,
    FINITE,
    INFINITIVES,
    NOUN_FORMS,
    PARTICIPLES,
    PREDICATES,
    VERBS,
)

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.lexicon import DU, ICH, IHR, SIE

Words = list[str]
PLURALS = {form for noun in lexicon.NOUNS if noun.plural for form in (noun.plural, noun.plural + "n")}
IMPOSSIBLE_ARTICLES = {"m": ("die", "das"), "f": ("das", "den", "dem"), "n": ("der", "die", "den")}
TWO_WAY = ("in", "an", "auf")
PREPOSITIONS = (*TWO_WAY, "mit", "von", "zu", "für", "im", "ins", "am", "zum", "zur", "vom")
PREFIXES = {verb.prefix for verb in VERBS if verb.prefix}
OTHER_CASE = {"mich": "mir", "dich": "dir", "ihn": "ihm"} | {"mir": "mich", "dir": "dich", "ihm": "ihn"}
SAID_BY = {ICH: "ich", DU: "du", IHR: "ihr"}
SAME_AUXILIARY = {
    a: b
    for one, other in ((lexicon.HABEN, lexicon.SEIN), (lexicon.SEIN, lexicon.HABEN))
    for a, b in zip(one.present[:3], other.present[:3], strict=True)
}


def _noun_at(words: Words, at: int) -> int | None:
    """Where the noun stands that the determiner at `at` belongs to."""
    for n in (at + 1, at + 2):
        if n < len(words) and words[n] in NOUN_FORMS:
            return n
        if n < len(words) and words[n] not in ADJECTIVE_ENDINGS:
            return None
    return None


def _changed(words: Words, at: int, word: str) -> Words:
    return [*words[:at], word, *words[at + 1 :]]


def _somewhere(rng: random.Random, ways: list[Words]) -> Words | None:
    return rng.choice(ways) if ways else None


def wrong_gender(rng: random.Random, words: Words) -> Words | None:
    """Das Mann, die Hund: an article that no case of the noun has."""
    ways = []
    for at, word in enumerate(words):
        noun = _noun_at(words, at)
        if word in ("der", "die", "das", "den", "dem") and noun and words[noun] not in PLURALS:
            gender = NOUN_FORMS[words[noun]][0][0].gender
            ways += [_changed(words, at, other) for other in IMPOSSIBLE_ARTICLES[gender] if other != word]
    return _somewhere(rng, ways)


def wrong_case(rng: random.Random, words: Words) -> Words | None:
    """Ich sehe dem Hund, ich helfe meinen Bruder."""
    ways = []
    for at, word in enumerate(words):
        noun = _noun_at(words, at)
        if word in DETERMINERS and noun and words[noun] not in PLURALS and not (at and words[at - 1] in TWO_WAY):
            stem, ending = word[:-2], word[-2:]
            if ending in ("en", "em"):
                ways.append(_changed(words, at, stem + {"en": "em", "em": "en"}[ending]))
    return _somewhere(rng, ways)


def wrong_adjective_ending(rng: random.Random, words: Words) -> Words | None:
    """Der alter Mann, ein alte Mann."""
    ways = []
    for at, word in enumerate(words[:-1]):
        ending = ADJECTIVE_ENDINGS.get(words[at + 1])
        if ending is None or _noun_at(words, at) is None or _noun_at(words, at) == at + 1:
            continue
        stem = words[at + 1].removesuffix(ending)
        if word in ("der", "die", "das", "den", "dem"):
            ways += [_changed(words, at + 1, stem + wrong) for wrong in ("er", "es", "em")]
        elif word in ("ein", "kein", "mein", "dein", "sein", "unser"):
            ways += [_changed(words, at + 1, stem + wrong) for wrong in ("e", "en", "em")]
    return _somewhere(rng, ways)


def wrong_noun_ending(rng: random.Random, words: Words) -> Words | None:
    """Den Junge, dem Herr, mit den Kinder."""
    ways = []
    for at, word in enumerate(words):
        for noun in lexicon.NOUNS:
            before = words[at - 1] if at else ""
            one = word != noun.plural or before in ("einen", "einem", "dem", "diesem")
            if noun.weak and word == noun.german + noun.weak and one:
                ways.append(_changed(words, at, noun.german))
            elif noun.plural and word == noun.plural + "n" and noun.plural[-1] not in "ns" and before != "und":
                ways.append(_changed(words, at, noun.plural))
    return _somewhere(rng, ways)


def wrong_pronoun_case(rng: random.Random, words: Words) -> Words | None:
    """Ich sehe dir, ich helfe ihn."""
    return _somewhere(
        rng, [_changed(words, at, OTHER_CASE[word]) for at, word in enumerate(words) if word in OTHER_CASE]
    )


def _finite_places(words: Words) -> list[int]:
    """Where words stand that can be nothing but finite verbs."""
    return [
        at
        for at, word in enumerate(words)
        if word in FINITE
        and not any(word in table for table in (INFINITIVES, PARTICIPLES, DETERMINERS, PREDICATES))
        and not word.endswith("en")
    ]


def wrong_person(rng: random.Random, words: Words) -> Words | None:
    """Der Mann lese: a form of the first or second person where nobody says ich, du or ihr."""
    ways = []
    there = [person for person, pronoun in SAID_BY.items() if pronoun in words]
    for at in _finite_places(words):
        for reading in FINITE[words[at]]:
            forms = (reading.verb.preterite if reading.preterite else reading.verb.present) or ()
            right = {forms[person] for person in range(SIE + 1) if person not in SAID_BY or person in there}
            ways += [
                _changed(words, at, forms[person])
                for person in SAID_BY
                if person not in there and forms[person] not in right
            ]
    return _somewhere(rng, ways)


def wrong_auxiliary(rng: random.Random, words: Words) -> Words | None:
    """Er hat gegangen, er ist gelesen."""
    auxiliaries = [at for at, word in enumerate(words) if word in SAME_AUXILIARY]
    participles = [word for word in words if word in PARTICIPLES]
    if len(auxiliaries) != 1 or len(participles) != 1 or participles[0] in FINITE or "Kinder" in words:
        return None
    verb = PARTICIPLES[participles[0]][0]
    at = auxiliaries[0]
    if (words[at] in lexicon.HABEN.present) != (verb.auxiliary == "haben"):
        return None
    return _changed(words, at, SAME_AUXILIARY[words[at]])


def _one_statement(words: Words) -> bool:
    return words[-1] == "." and "," not in words


def verb_last(rng: random.Random, words: Words) -> Words | None:
    """Ich den Hund sehe: a statement with its verb at the end."""
    places = _finite_places(words)
    if not _one_statement(words) or len(places) != 1 or not 1 <= places[0] < len(words) - 2:
        return None
    at = places[0]
    return [*words[:at], *words[at + 1 : -1], words[at], "."]


def verb_third(rng: random.Random, words: Words) -> Words | None:
    """Heute ich sehe den Hund: two things before the verb."""
    places = _finite_places(words)
    times = ("heute", "gestern", "morgen", "jetzt")
    if not _one_statement(words) or len(places) != 1 or any(word.lower() in times for word in words):
        return None
    return [rng.choice(times), *words]


def verb_second_in_a_subordinate_clause(rng: random.Random, words: Words) -> Words | None:
    """Ich weiß, dass kommt er heute."""
    for conjunction in ("dass", "ob", "weil", "wenn"):
        if conjunction in words[1:] and words[-1] == "." and words.count(",") == 1:
            at = words.index(conjunction)
            if len(words) - at > 4:
                return [*words[: at + 1], words[-2], *words[at + 1 : -2], "."]
    return None


def other_half_too_early(rng: random.Random, words: Words) -> Words | None:
    """Ich habe gesehen den Hund, ich mache auf die Tür."""
    places = _finite_places(words)
    last = words[-2] if len(words) > 2 else ""
    if not _one_statement(words) or len(places) != 1 or places[0] > len(words) - 5:
        return None
    at = places[0]
    if any(word.lower() in PREPOSITIONS for word in words[:-2]):  # after the verb, a preposition may follow
        return None
    if last not in PREFIXES and last not in PARTICIPLES and last not in INFINITIVES:
        return None
    subject_after = [*words[: at + 1], last, *words[at + 1 : -2], "."]
    return subject_after


def kein_for_nicht(rng: random.Random, words: Words) -> Words | None:
    """Ich sehe den Hund kein."""
    return _changed(words, words.index("nicht"), "kein") if "nicht" in words else None


MUTATIONS: dict[str, Callable[[random.Random, Words], Words | None]] = {
    mutation.__name__: mutation
    for mutation in (
        wrong_gender,
        wrong_case,
        wrong_adjective_ending,
        wrong_noun_ending,
        wrong_pronoun_case,
        wrong_person,
        wrong_auxiliary,
        verb_last,
        verb_third,
        verb_second_in_a_subordinate_clause,
        other_half_too_early,
        kein_for_nicht,
    )
}


def apart(sentence: str) -> Words:
    """The words and marks of a sentence, its first word as it would stand within."""
    words = [*sentence[:-1].replace(",", " ,").split(), sentence[-1]]
    if words[0] not in NOUN_FORMS and words[0] not in lexicon.NAMES:
        words[0] = words[0][0].lower() + words[0][1:]
    return words


def together(words: Words) -> str:
    """The sentence again."""
    text = " ".join(words).replace(" ,", ",")
    text = text[:-2] + text[-1]
    return text[0].upper() + text[1:]
