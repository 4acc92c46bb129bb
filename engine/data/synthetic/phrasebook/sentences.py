"""The phrasebook's constructions, each in all languages at once, and sentences drawn from their table.

A construction's docstring is an example of it, which tests compare with the checker and the documentation.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.data.synthetic.draws import Draws, Weighted, draw_until
from engine.data.synthetic.phrasebook import dutch, english, german, lexicon
from engine.data.synthetic.phrasebook.clause import (
    DEFINITE_SHAPES,
    INDEFINITE_SHAPES,
    VERBS_BY_FRAME,
    Clause,
    Name,
    Nominal,
    NounPhrase,
    Pronoun,
    draw_adjective,
    draw_clause,
    draw_dynamic_verb,
    draw_object_pronoun,
    draw_other_person,
    draw_phrase,
    draw_place,
    draw_subject,
    draw_verb,
    noun_of,
)
from engine.data.synthetic.phrasebook.lexicon import Address, Verb

VerbObject = tuple[str, str]  # English: look for, key


@dataclass(frozen=True)
class Sentence:
    source: str  # English
    target: str  # German
    construction: str = ""  # its name in CONSTRUCTIONS, or "phrase"
    clauses: tuple[Clause, ...] = ()  # what it says
    dutch: str = ""

    def translation(self, language: str) -> str:
        return self.dutch if language == "nl" else self.target

    @property
    def verb_object(self) -> VerbObject | None:
        pairs = ((clause.verb, noun_of(clause.object)) for clause in self.clauses)
        return next(((verb.english_lemma, noun.english) for verb, noun in pairs if noun is not None), None)


def _statement_sentence(clause: Clause, address: Address, front: str = "subject", mark: str = ".") -> Sentence:
    """Return one clause as a statement; `front`: "subject", "time" or "place" opens it."""
    told, erzaehlt = english.statement(clause, front), german.statement(clause, address, front)
    verteld = dutch.statement(clause, address, front)
    return Sentence(told + mark, erzaehlt + mark, clauses=(clause,), dutch=verteld + mark)


def _question_sentence(
    clause: Clause, address: Address, word: str = "", wort: str = "", about: Nominal | None = None
) -> Sentence:
    """Return one clause as a question, with an English and a German question word, or `about` an object."""
    asked, gefragt = english.question(clause, word), german.main_clause(clause, address, wort)
    gevraagd = dutch.question(clause, address, about or word)
    return Sentence(f"{asked}?", f"{gefragt}?", clauses=(clause,), dutch=f"{gevraagd}?")


# --- one main clause

# Things found in a place; outdoors, only living things.
_EXISTENTIAL_NOUNS = tuple(
    noun
    for noun in lexicon.nouns_of_kinds("person", "animal", "food", "book", "letter", "newspaper", "clothing", "thing")
    if not noun.mass
)
_BELONGINGS = tuple(
    noun
    for noun in lexicon.nouns_of_kinds("animal", "thing", "vehicle", "clothing", "reading")
    if noun not in lexicon.UNOWNED
)
_LIVING_KINDS = ("person", "animal")
_COPULA_TENSES = Weighted(("present", 3), ("past", 1))


def statement(draws: Draws, address: Address) -> Sentence:
    """The woman is buying a red hat. · Die Frau kauft einen roten Hut."""
    return _statement_sentence(draw_clause(draws), address)


def negation(draws: Draws, address: Address) -> Sentence:
    """I do not have a dog. · Ich habe keinen Hund."""
    return _statement_sentence(draw_clause(draws, negated=True), address)


def modal(draws: Draws, address: Address) -> Sentence:
    """I can see the dog. · Ich kann den Hund sehen."""
    clause = draw_clause(draws, need="time" if draws.chance(0.3) else "", tense="modal", verb=draw_dynamic_verb(draws))
    return _statement_sentence(clause, address)


def time_first(draws: Draws, address: Address) -> Sentence:
    """Yesterday Paul visited the doctor. · Gestern hat Paul den Arzt besucht."""
    return _statement_sentence(draw_clause(draws, need="time", negated=draws.chance(0.15)), address, "time")


def place_first(draws: Draws, address: Address) -> Sentence:
    """In the garden the child is playing. · Im Garten spielt das Kind."""
    return _statement_sentence(draw_clause(draws, need="place"), address, "place")


def copula(draws: Draws, address: Address) -> Sentence:
    """My brother is not tired. · Mein Bruder ist nicht müde."""
    return _statement_sentence(_copula_clause(draws, negated=draws.chance(0.3)), address)


def copula_question(draws: Draws, address: Address) -> Sentence:
    """Is the coffee cold? · Ist der Kaffee kalt?"""
    return _question_sentence(_copula_clause(draws), address)


def _copula_clause(draws: Draws, negated: bool = False) -> Clause:
    if draws.chance(0.5):
        subject: Nominal = draw_subject(draws, animals=True, without=("a", "no", "two"))
    else:
        subject = draw_phrase(draws, lexicon.NOUNS, "subject", ("a", "no", "two", ""))
    predicate = draw_adjective(draws, subject)
    return Clause(subject, lexicon.SEIN, draws.pick_weighted(_COPULA_TENSES), predicate=predicate, negated=negated)


def that_is(draws: Draws, address: Address) -> Sentence:
    """That is a good book. · Das ist ein gutes Buch."""
    draw = lambda: draw_phrase(draws, lexicon.NOUNS, "object", ("", "two", "no", "this"))
    what = draw_until(draw, lambda what: not what.plural)
    clause = Clause(Pronoun("that"), lexicon.SEIN, "present", predicate=what, negated=draws.chance(0.25))
    asks = not clause.negated and draws.chance(0.3)
    return (_question_sentence if asks else _statement_sentence)(clause, address)


def existential(draws: Draws, address: Address) -> Sentence:
    """There is a cat in the kitchen. · In der Küche ist eine Katze."""
    what = draw_phrase(draws, _EXISTENTIAL_NOUNS, "object", ("",), INDEFINITE_SHAPES)
    place = draw_place(draws, goal=False)
    while (where := noun_of(place.nominal)) is None or (where.kind == "place" and what.noun.kind not in _LIVING_KINDS):
        place = draw_place(draws, goal=False)
    clause = Clause(what, lexicon.SEIN, draws.pick_weighted(_COPULA_TENSES), place=place)
    told, erzaehlt = english.question(clause, "there"), german.statement(clause, address, "place")
    return Sentence(f"{told}.", f"{erzaehlt}.", clauses=(clause,), dutch=f"{dutch.question(clause, address, 'er')}.")


def belonging(draws: Draws, address: Address) -> Sentence:
    """This key belongs to the old woman. · Dieser Schlüssel gehört der alten Frau."""
    what = draw_phrase(draws, _BELONGINGS, "object", shapes=DEFINITE_SHAPES)
    owner = draw_other_person(draws, what)
    clause = Clause(what, lexicon.GEHOEREN, "present", object=owner, negated=draws.chance(0.2))
    asks = not clause.negated and draws.chance(0.3)
    return (_question_sentence if asks else _statement_sentence)(clause, address)


# --- questions


def yes_no_question(draws: Draws, address: Address) -> Sentence:
    """Did she open the window? · Hat sie das Fenster aufgemacht?"""
    return _question_sentence(draw_clause(draws, gap="none"), address)


def who_question(draws: Draws, address: Address) -> Sentence:
    """Who is helping the child? · Wer hilft dem Kind?"""
    return _statement_sentence(draw_clause(draws, subject=Pronoun("who"), gap="none"), address, mark="?")


def object_question(draws: Draws, address: Address) -> Sentence:
    """Who are you helping? What did he buy? · Wem hilfst du? Was hat er gekauft?"""
    verb = _verb_with_object(draws)
    people = sum(noun.kind in ("person", "kin") for noun in verb.objects)
    only_people = people == len(verb.objects) or verb.frame == "dative"
    of_people = only_people or (people and "some" not in verb.traits and draws.chance(0.5))
    about = Pronoun("who" if of_people else "what")
    wen = german.nominal(about, verb.object_case, address)
    return _question_sentence(draw_clause(draws, verb, gap="object"), address, about.name, wen, about)


def which_question(draws: Draws, address: Address) -> Sentence:
    """Which newspaper is he reading? · Welche Zeitung liest er?"""
    verb = draw_until(lambda: _verb_with_object(draws), lambda verb: "some" not in verb.traits)
    noun = draws.pick([noun for noun in verb.objects if noun.plural or noun.mass])
    phrase = NounPhrase(noun, "which", not (noun.mass or noun.kind == "place") and draws.chance(0.25))
    clause = draw_until(lambda: draw_clause(draws, verb, gap="object"), lambda told: noun_of(told.subject) is not noun)
    which, welche = english.nominal(phrase), german.nominal(phrase, verb.object_case, address)
    told = _question_sentence(clause, address, which, welche, phrase)
    return replace(told, clauses=(replace(clause, object=phrase),))  # it is the answer, but must exist


def _verb_with_object(draws: Draws) -> Verb:
    return draw_until(lambda: draw_verb(draws), lambda verb: verb.frame in ("accusative", "dative"))


def where_question(draws: Draws, address: Address) -> Sentence:
    """Where is she going? Where does he live? · Wohin geht sie? Wo wohnt er?"""
    verb = draw_verb(draws)
    while verb.traits.isdisjoint(("place", "placed", "to")) or verb.english == "come":
        verb = draw_verb(draws)
    wo = "wohin" if "to" in verb.traits else "wo"
    return _question_sentence(draw_clause(draws, verb, gap="place"), address, "where", wo)


def when_question(draws: Draws, address: Address) -> Sentence:
    """When did you sell the car? · Wann hast du das Auto verkauft?"""
    return _question_sentence(draw_clause(draws, draw_dynamic_verb(draws), gap="time"), address, "when", "wann")


def why_question(draws: Draws, address: Address) -> Sentence:
    """Why is the girl laughing? · Warum lacht das Mädchen?"""
    return _question_sentence(draw_clause(draws, gap="time"), address, "why", "warum")


# --- two clauses: subordinate ones have the verb last, and "it" the gender of what it stands for

_SUBORDINATING = {"that": "dass", "whether": "ob", "because": "weil", "if": "wenn"}
_COORDINATING = {"but": "aber", "and": "und"}
_THINGS = ("thing", "clothing", "vehicle")  # what "it" stands for
_PLANS = lexicon.modals_by_english("want", "have", "will")
_REFUSALS = lexicon.modals_by_english("can", "want", "may", "will")
_HOPES = (None, *lexicon.modals_by_english("can", "will"))
_DUTIES = lexicon.modals_by_english("want", "have")  # these have a past
_DEFINITE_SOMEBODY = ("a", "no", "two")  # excluded determiners


def that_clause(draws: Draws, address: Address) -> Sentence:
    """I know that he sold the house. · Ich weiß, dass er das Haus verkauft hat."""
    verb = draws.pick(lexicon.CLAUSE_VERBS)
    past = verb.english == "say" and draws.chance(0.4)
    matrix = Clause(draw_subject(draws, without=_DEFINITE_SOMEBODY), verb, "past" if past else "present")
    clause = draw_clause(draws)
    while (past and clause.tense != "past") or (verb.english == "hope" and clause.modal not in _HOPES):
        clause = draw_clause(draws)  # English would shift any other tense; nobody hopes that somebody should
    return _join_clauses(matrix, "that", clause, address)


def whether_clause(draws: Draws, address: Address) -> Sentence:
    """We do not know whether she is coming. · Wir wissen nicht, ob sie kommt."""
    subject = draw_subject(draws, without=_DEFINITE_SOMEBODY)
    matrix = Clause(subject, lexicon.WISSEN, "present", negated=True)
    return _join_clauses(matrix, "whether", draw_clause(draws, gap="none"), address)


def because_clause(draws: Draws, address: Address) -> Sentence:
    """We are staying at home because it is raining. · Wir bleiben zu Hause, weil es regnet."""
    main = draw_clause(draws, draw_dynamic_verb(draws), negated=draws.chance(0.2))
    again = _pronoun_for(main.subject)
    past = main.tense in ("past", "modal past")
    tense = "past" if past else "present"
    if draws.chance(0.1):
        reason = Clause(Pronoun("it_n"), draws.pick(lexicon.WEATHER_VERBS), tense)
    elif again is None:
        reason = draw_clause(draws, _verb_without_object(draws, main.verb), bare=True)
    elif draws.chance(0.6):
        reason = Clause(again, lexicon.SEIN, tense, predicate=draws.pick(lexicon.STATES))
    else:
        verb = _verb_without_object(draws, main.verb)
        modal = draws.pick(_DUTIES if past else _PLANS)
        place = draw_place(draws, goal=False) if "placed" in verb.traits else None
        reason = Clause(again, verb, "modal past" if past else "modal", modal, place=place)
    return _join_clauses(main, "because", reason, address)


def _verb_without_object(draws: Draws, other_than: Verb) -> Verb:
    """Return a verb without an object, for a second clause: a sentence records only one verb with an object."""
    draw = lambda: draws.pick(VERBS_BY_FRAME["none"])
    return draw_until(draw, lambda verb: "timeless" not in verb.traits and verb is not other_than)


def _pronoun_for(nominal: Nominal) -> Pronoun | None:
    """Return the pronoun for a person; None where German and English might differ."""
    if isinstance(nominal, Pronoun):
        return nominal
    if isinstance(nominal, Name):
        return Pronoun("he" if lexicon.NAMES[nominal.name] == "m" else "she")
    noun = nominal.noun
    if nominal.determiner == "no" or noun.kind == "animal" or (noun.gender == "n" and not nominal.plural):
        return None
    return Pronoun("they" if nominal.plural else "he" if noun.gender == "m" else "she")


def if_first(draws: Draws, address: Address) -> Sentence:
    """If Anna comes, I will help you. · Wenn Anna kommt, werde ich dir helfen."""
    condition, main = _condition(draws)
    told = f"if {english.statement(condition)}, {english.statement(main)}."
    erzaehlt = f"{german.subordinate('wenn', condition, address)}, {german.main_clause(main, address)}."
    verteld = f"{dutch.subordinate('als', condition, address)}, {dutch.question(main, address)}."
    return Sentence(told, erzaehlt, clauses=(condition, main), dutch=verteld)


def if_last(draws: Draws, address: Address) -> Sentence:
    """You may sleep if you are tired. · Du darfst schlafen, wenn du müde bist."""
    condition, main = _condition(draws)
    return _join_clauses(main, "if", condition, address)


def _condition(draws: Draws) -> tuple[Clause, Clause]:
    """Return a condition and its consequence; only the condition may have a noun as its object."""
    kind = draws.random()
    if kind < 0.12:
        condition = Clause(Pronoun("it_n"), draws.pick(lexicon.WEATHER_VERBS), "simple")
    elif kind < 0.4:
        somebody = draw_subject(draws, animals=True, without=_DEFINITE_SOMEBODY)
        condition = Clause(somebody, lexicon.SEIN, "simple", predicate=draws.pick(lexicon.STATES))
    else:
        condition = draw_clause(draws, tense="simple")
    subject = draw_subject(draws, without=_DEFINITE_SOMEBODY)
    if draws.chance(0.35):
        verb = draws.pick(VERBS_BY_FRAME["dative"])
        other = draw_object_pronoun(draws, subject)
        return condition, Clause(subject, verb, "modal", draws.pick(lexicon.MODALS), other)
    verb = _verb_without_object(draws, condition.verb)
    return condition, draw_clause(draws, verb, subject=subject, tense="modal", bare=draws.chance(0.6))


def anaphoric_it_subject(draws: Draws, address: Address) -> Sentence:
    """She likes the hat, but it is expensive. · Sie mag den Hut, aber er ist teuer."""
    first, thing, it = _about_a_thing(draws)
    adjective = draw_adjective(draws, thing)
    second = Clause(it, lexicon.SEIN, "past" if first.tense == "past" else "present", predicate=adjective)
    return _join_clauses(first, "because" if draws.chance(0.5) else "but", second, address)


def anaphoric_it_object(draws: Draws, address: Address) -> Sentence:
    """Paul has a bicycle, but he does not need it. · Paul hat ein Fahrrad, aber er braucht es nicht."""
    first, thing, it = _about_a_thing(draws)
    while (again := _pronoun_for(first.subject)) is None:
        first, thing, it = _about_a_thing(draws)
    if draws.chance(0.2):
        verb, recipient = draws.pick(VERBS_BY_FRAME["ditransitive"]), draw_other_person(draws, again)
        second = Clause(again, verb, "modal", draws.pick(_PLANS), it, recipient)
        return _join_clauses(first, "and", second, address)
    fits = lambda verb: thing.noun in verb.objects and verb is not first.verb and "some" not in verb.traits
    verb, negated = draws.pick(list(filter(fits, VERBS_BY_FRAME["accusative"]))), draws.chance(0.5)
    modal = None if "timeless" in verb.traits else draws.pick(_REFUSALS if negated else _PLANS)
    second = Clause(again, verb, "modal" if modal else "present", modal, it, negated=negated)
    return _join_clauses(first, "but" if negated else "and", second, address)


def _about_a_thing(draws: Draws) -> tuple[Clause, NounPhrase, Pronoun]:
    """Return a clause whose object is one thing, that thing, and the pronoun for it."""
    while True:
        clause = draw_clause(draws, draws.pick(VERBS_BY_FRAME["accusative"]), bare=True)
        thing = clause.object
        if (
            isinstance(thing, NounPhrase)
            and thing.noun.kind in _THINGS
            and not thing.plural
            and thing.determiner != "no"
            and not (isinstance(clause.subject, NounPhrase) and clause.subject.noun.kind == "animal")
        ):
            return clause, thing, Pronoun(f"it_{thing.noun.gender}", thing.noun)


def _join_clauses(first: Clause, conjunction: str, second: Clause, address: Address) -> Sentence:
    told, erzaehlt = english.statement(first), german.statement(first, address)
    verteld, word = dutch.statement(first, address), dutch.WORDS[conjunction]
    if conjunction in _COORDINATING:
        told, verteld = told + ",", verteld + ","
        zweitens = f"{_COORDINATING[conjunction]} {german.statement(second, address)}"
        tweede = f"{word} {dutch.statement(second, address)}"
    else:
        zweitens = german.subordinate(_SUBORDINATING[conjunction], second, address)
        tweede = dutch.subordinate(word, second, address)
    told = f"{told} {conjunction} {english.statement(second)}."
    return Sentence(told, f"{erzaehlt}, {zweitens}.", clauses=(first, second), dutch=f"{verteld} {tweede}.")


# --- the table

CONSTRUCTIONS: dict[str, tuple[Callable[[Draws, Address], Sentence], float]] = {
    "statement": (statement, 18),
    "negation": (negation, 9),
    "modal": (modal, 7),
    "time first": (time_first, 7),
    "place first": (place_first, 4),
    "copula": (copula, 3),
    "copula question": (copula_question, 2),
    "that is": (that_is, 3),
    "existential": (existential, 2),
    "belonging": (belonging, 3),
    "yes-no question": (yes_no_question, 7),
    "who question": (who_question, 3),
    "object question": (object_question, 3),
    "which question": (which_question, 3),
    "where question": (where_question, 2),
    "when question": (when_question, 2),
    "why question": (why_question, 2),
    "that clause": (that_clause, 6),
    "whether clause": (whether_clause, 3),
    "because": (because_clause, 4),
    "if first": (if_first, 3),
    "if last": (if_last, 2),
    "it is": (anaphoric_it_subject, 3),
    "it again": (anaphoric_it_object, 3),
}
_CHOICE = Weighted(*((name, weight) for name, (_, weight) in CONSTRUCTIONS.items()))
_ADDRESS: Weighted[Address] = Weighted(("du", 62), ("Sie", 20), ("ihr", 18))
_YOU = re.compile(r"\b[Yy]ou(r)?\b")


def draw_sentence(draws: Draws) -> Sentence:
    """Return a sentence of any construction.

    "You" is du. Where it is Sie or ihr, a vocative says so at the end, so that the English decides the German.
    """
    address = draws.pick_weighted(_ADDRESS)
    name = draws.pick_weighted(_CHOICE)
    told = CONSTRUCTIONS[name][0](draws, address)
    endings = ("", "", "")
    if address != "du" and _YOU.search(told.source):
        who, wer = draws.pick(lexicon.VOCATIVES[address])
        endings = (f", {who}", f", {wer}", f", {dutch.WORDS[who]}")
    source, target, verteld = (
        text[0].upper() + text[1:-1] + ending + text[-1]
        for text, ending in zip((told.source, told.target, told.dutch), endings, strict=True)
    )
    return Sentence(source, target, name, told.clauses, verteld)
