"""A checker of the corpus's German, which reads a sentence without knowing how it was made.

It looks for a way to read each clause so that everything is in order: agreement within nominals and of the verb
with its subject, the cases that the verb asks for, the place of the verb and of its other half, the auxiliary,
the order of the middle field, nicht and kein. Where there is none, it says what is wrong in the best reading.

It knows the words of the lexicon and the constructions of this corpus, and is stricter than German in one thing:
where German leaves the order open, it wants the order that this corpus keeps.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from phrasebook_chunks import Chunk, Fault, cut
from phrasebook_readings import (
    FINITE,
    FINITE_LAST,
    INFINITIVES,
    NOUN_FORMS,
    PARTICIPLES,
    Finite,
)

from engine.data.synthetic.phrasebook import lexicon
from engine.data.synthetic.phrasebook.lexicon import Modal, Verb

_IDIOMS = frozenset(target for _, target in lexicon.EVERYDAY)
_VOCATIVES = {tuple(german.split()): address for address, pairs in lexicon.VOCATIVES.items() for _, german in pairs}
_SUBORDINATING, _COORDINATING = ("dass", "ob", "weil", "wenn"), ("und", "aber")
_DU = re.compile(r"\b([Dd]u|dich|dir|[Dd]ein\w*)\b")
_IHR = re.compile(r"\b(euch|[Ee]uer|[Ee]ur\w+)\b")
_SIE = re.compile(r"(?<=[\w,] )(Sie|Ihnen|Ihr|Ihre\w?)\b")  # within the sentence, where a capital means something

_ROLES = (
    "subject", "accusative pronoun", "dative pronoun", "dative", "known", "time", "new", "nicht",
    "manner", "company", "place", "prepositional object", "predicate",
)  # fmt: skip
_LATE = ("nicht", "manner", "company", "place", "prepositional object", "predicate")
_COMES_BEFORE = {  # role → what it must not follow; what is open in German is open here
    "subject": _ROLES[1:],
    "accusative pronoun": _ROLES[2:],
    "dative pronoun": _ROLES[3:],
    "dative": ("known", "new", *_LATE),
    "known": _LATE,
    "time": ("new", *_LATE),
    "new": ("manner", "company", "prepositional object", "predicate"),
    "nicht": ("manner", "company", "place", "prepositional object", "predicate"),
    "manner": ("company", "place", "prepositional object", "predicate"),
    "company": ("place", "predicate"),
    "place": ("new", "prepositional object", "predicate"),
    "prepositional object": ("predicate",),
    "predicate": (),
}


def check(sentence: str) -> list[str]:
    """Return what is wrong with a German sentence of this corpus: nothing, if it is in order."""
    if sentence in _IDIOMS:
        return []
    try:
        return _check_sentence(sentence)
    except Fault as fault:
        return [str(fault)]


def _check_sentence(sentence: str) -> list[str]:
    if not re.fullmatch(r"[A-ZÄÖÜ][\w ,]*[.?]", sentence):
        raise Fault("not a sentence: a capital, words and commas, a full stop or a question mark")
    segments = [segment.split() for segment in sentence[:-1].split(", ")]
    opening = segments[0][0]
    if opening not in NOUN_FORMS and opening not in lexicon.NAMES:
        segments[0][0] = opening[0].lower() + opening[1:]
    vocative = _VOCATIVES.get(tuple(segments[-1])) if len(segments) > 1 else None
    if vocative:
        segments.pop()
    faults = _address_faults(sentence, vocative)
    clauses: list[tuple[str, str, list[str]]] = []  # conjunction, where the verb stands, words
    for n, words in enumerate(segments):
        first, shape = words[0], "first" if n and segments[0][0] == "wenn" else "second"
        if first in _SUBORDINATING:
            clauses.append((first, "last", words[1:]))
        elif n and first in _COORDINATING:
            clauses.append((first, "second", words[1:]))
        elif n and shape == "second":
            raise Fault(f"a second clause without a conjunction: '{' '.join(words)}'")
        else:
            clauses.append(("", "question" if sentence.endswith("?") else shape, words))
    if len(clauses) > 2:
        raise Fault("more than two clauses")
    if clauses[0][0] == "wenn" and len(clauses) == 1:
        raise Fault("a condition without a consequence")
    has_content = any(conjunction in ("dass", "ob") for conjunction, _, _ in clauses)
    for n, (_, shape, words) in enumerate(clauses):
        faults += _check_clause(words, shape, content=has_content and n == 0)
    return faults


def _address_faults(sentence: str, vocative: str | None) -> list[str]:
    """Return what does not fit how somebody is spoken to: du without a vocative, Sie to a Herr, ihr to Kinder."""
    wrong = {
        "Sie": (_DU, _IHR),
        "ihr": (_DU, _SIE),
        None: (_SIE, _IHR),
    }[vocative]
    body = sentence.rpartition(",")[0] if vocative else sentence
    return [f"'{found.group()}' to somebody who is not spoken to so" for each in wrong if (found := each.search(body))]


def _check_clause(words: Sequence[str], shape: str, content: bool) -> list[str]:
    """Return the faults of the best reading of a clause."""
    best: list[str] | None = None
    for verb, finite, front, middle in _brackets(words, shape):
        try:
            faults = _check_reading(verb, finite, front, middle, shape, content)
        except Fault as fault:
            faults = [str(fault)]
        if not faults:
            return []
        if best is None or len(faults) < len(best):
            best = faults
    return best or [f"no verb where one is expected in '{' '.join(words)}'"]


Bracket = tuple[Verb, Finite, Sequence[str], Sequence[str]]  # verb, finite form, words before it, middle field


def _brackets(words: Sequence[str], shape: str) -> Iterator[Bracket]:
    """Find the finite verb where the shape wants it, and its other half; yield every way to see them."""
    if shape == "last":
        for finite in FINITE_LAST.get(words[-1], ()) if words else ():
            yield from _other_half(finite, (), words[:-1], last=True)
        return
    starts = (0,) if shape == "first" else range(len(words)) if shape == "question" else range(1, len(words))
    for at in starts:
        for finite in FINITE.get(words[at], ()):
            yield from _other_half(finite, words[:at], words[at + 1 :], last=False)


def _other_half(finite: Finite, front: Sequence[str], rest: Sequence[str], last: bool) -> Iterator[Bracket]:
    end = rest[-1] if rest else ""
    if isinstance(finite.verb, Modal):
        for verb in INFINITIVES.get(end, ()):
            yield verb, finite, front, rest[:-1]
        return
    if finite.verb in (lexicon.HABEN, lexicon.SEIN) and not finite.preterite:
        for verb in PARTICIPLES.get(end, ()):
            if not verb.preterite and (verb.auxiliary == "haben") == (finite.verb is lexicon.HABEN):
                yield verb, finite, front, rest[:-1]
    if last or not finite.verb.prefix:
        yield finite.verb, finite, front, rest
    elif end == finite.verb.prefix:
        yield finite.verb, finite, front, rest[:-1]


def _check_reading(
    verb: Verb, finite: Finite, front: Sequence[str], middle: Sequence[str], shape: str, content: bool
) -> list[str]:
    if ("clause" in verb.traits) != content:
        raise Fault(f"{verb.infinitive} {'without' if not content else 'with'} a clause of what is known or said")
    return min((_check_cut(verb, finite, first, rest, shape) for first in cut(front) for rest in cut(middle)), key=len)


def _check_cut(verb: Verb, finite: Finite, front: Sequence[Chunk], middle: Sequence[Chunk], shape: str) -> list[str]:
    opening = ", ".join(chunk.text for chunk in front)
    if len(front) > 1:
        return [f"{len(front)} things before the verb: {opening}"]
    if front and (shape == "question") != front[0].question:
        return [f"'{opening}' does not open a {'question' if shape == 'question' else 'statement'}"]
    faults = [f"'{verb.infinitive}' with '{chunk.text}'" for chunk in middle if not _goes_with(chunk, verb)]
    faults += [f"'{chunk.text}' within a clause" for chunk in middle if chunk.question]
    nothing_fits = [*faults, f"no subject and objects for '{verb.infinitive}'"]
    return min(
        (
            faults + _order_faults(roles) + _negation_faults(roles)
            for roles in _assignments(verb, finite, front, middle)
        ),
        key=len,
        default=nothing_fits,
    )


def _goes_with(chunk: Chunk, verb: Verb) -> bool:
    """Whether an adverbial has the case and direction that the verb allows; objects are looked at elsewhere."""
    if chunk.kind == "goal":
        return "to" in verb.traits
    if chunk.kind == "predicate":
        return verb is lexicon.SEIN
    if chunk.kind != "prepositional" or chunk.preposition == verb.object_preposition:
        return True
    cases = {reading.case for reading in chunk.readings}
    if chunk.preposition in ("mit", "für"):
        return True
    if "to" in verb.traits:
        return chunk.preposition == "zu" or "accusative" in cases
    return chunk.preposition in ("in", "an", "auf") and "dative" in cases


def _assignments(
    verb: Verb, finite: Finite, front: Sequence[Chunk], rest: Sequence[Chunk]
) -> Iterator[list[tuple[str, Chunk]]]:
    """Yield the roles of the middle field's chunks, for every way to give the nominals the cases they need."""
    nominals = [chunk for chunk in (*front, *rest) if chunk.kind == "nominal"]
    needed = ["nominative"]
    if verb is lexicon.SEIN:
        adjectives = [chunk for chunk in rest if chunk.kind == "predicate"]
        somewhere = any(chunk.kind in ("place", "prepositional") for chunk in (*front, *rest))
        needed += ["nominative"] if len(nominals) > 1 else []
        if len(adjectives) + len(nominals) - 1 + somewhere != 1:
            return
    elif verb.frame == "ditransitive":
        needed += ["dative", "accusative"]
    elif verb.object_preposition:
        if not any(_is_object(chunk, verb) for chunk in rest):
            return
    elif verb.frame != "none":
        needed.append(verb.object_case)
    if len(nominals) != len(needed):
        return
    for order in permutations(nominals):
        fits = all(
            any(reading.case == case for reading in nominal.readings)
            for nominal, case in zip(order, needed, strict=True)
        )
        persons = {reading.person for reading in order[0].readings if reading.case == "nominative"}
        if fits and persons & finite.persons:
            cases = dict(zip(order, ("subject", *needed[1:]), strict=True))
            yield [(_role(chunk, cases.get(chunk, ""), verb), chunk) for chunk in rest]


def _is_object(chunk: Chunk, verb: Verb) -> bool:
    return chunk.preposition == verb.object_preposition and any(
        reading.case == verb.object_case for reading in chunk.readings
    )


def _role(chunk: Chunk, case: str, verb: Verb) -> str:
    if chunk.kind == "prepositional":
        if verb.object_preposition and _is_object(chunk, verb):
            return "prepositional object"
        return "company" if chunk.preposition in ("mit", "für") else "place"
    if chunk.kind != "nominal":
        return "place" if chunk.kind == "goal" else chunk.kind
    if case == "subject":
        return case
    if case == "nominative":
        return "predicate"
    if chunk.pronoun:
        return f"{case} pronoun"
    if case == "dative" and verb.frame == "ditransitive":
        return "dative"
    return "new" if chunk.new else "known"


def _order_faults(roles: Sequence[tuple[str, Chunk]]) -> list[str]:
    return [
        f"'{later.text}' after '{earlier.text}'"
        for n, (role, later) in enumerate(roles)
        for before, earlier in roles[:n]
        if before in _COMES_BEFORE[role]
    ]


def _negation_faults(roles: Sequence[tuple[str, Chunk]]) -> list[str]:
    """Return what is wrong with nicht: nicht beside kein, or where it should be kein."""
    if not any(role == "nicht" for role, _ in roles):
        return []
    new = [chunk.text for role, chunk in roles if chunk.kein or (role in ("new", "predicate") and chunk.new)]
    return [f"nicht with '{text}', which wants kein alone" for text in new]
