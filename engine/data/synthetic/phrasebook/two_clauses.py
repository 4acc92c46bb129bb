"""Constructions of two clauses: subordinate ones with the verb last, and "it" with its antecedent's gender."""

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import english, german, lexicon
from engine.data.synthetic.phrasebook.clause import Clause, Name, Nominal, NounPhrase, Place, Pronoun
from engine.data.synthetic.phrasebook.draw_clauses import (
    VERBS_BY_FRAME,
    draw_clause,
    draw_dynamic_verb,
)
from engine.data.synthetic.phrasebook.draw_nominals import (
    draw_adjective,
    draw_object_pronoun,
    draw_place,
    draw_recipient,
    draw_subject,
)
from engine.data.synthetic.phrasebook.told import Told
from engine.data.synthetic.phrasebook.words import Address, Verb

_IT = {"m": Pronoun("it_m"), "f": Pronoun("it_f"), "n": Pronoun("it_n")}
_WEATHER = (lexicon.REGNEN, lexicon.SCHNEIEN)
_WITHOUT_OBJECT = VERBS_BY_FRAME["none"]  # for second clauses: a sentence has one verb and object to record
_THINGS = ("thing", "clothing", "vehicle")  # what "it" stands for
_MODAL = {modal.english: modal for modal in lexicon.MODALS}
_PLANS = tuple(_MODAL[word] for word in ("want", "have", "will"))
_REFUSALS = tuple(_MODAL[word] for word in ("can", "want", "may", "will"))
_HOPES = (None, _MODAL["can"], _MODAL["will"])
_DUTIES = tuple(_MODAL[word] for word in ("want", "have"))  # these have a past
_DEFINITE_SOMEBODY = ("a", "no", "two")  # determiners that are left out


def that_clause(draws: Draws, address: Address) -> Told:
    """I know that he sold the house. · Ich weiß, dass er das Haus verkauft hat."""
    verb = draws.pick(lexicon.CLAUSE_VERBS)
    past = verb.english == "say" and draws.chance(0.4)
    matrix = Clause(draw_subject(draws, without=_DEFINITE_SOMEBODY), verb, "past" if past else "present")
    clause = draw_clause(draws)
    while (past and clause.tense != "past") or (verb.english == "hope" and clause.modal not in _HOPES):
        clause = draw_clause(draws)  # English would shift any other tense; nobody hopes that somebody should
    return _subordinated(matrix, "that", "dass", clause, address)


def whether_clause(draws: Draws, address: Address) -> Told:
    """We do not know whether she is coming. · Wir wissen nicht, ob sie kommt."""
    subject = draw_subject(draws, without=_DEFINITE_SOMEBODY)
    matrix = Clause(subject, lexicon.WISSEN, "present", negated=True)
    return _subordinated(matrix, "whether", "ob", draw_clause(draws, gap="none"), address)


def because_clause(draws: Draws, address: Address) -> Told:
    """We are staying at home because it is raining. · Wir bleiben zu Hause, weil es regnet."""
    main = draw_clause(draws, draw_dynamic_verb(draws), negated=draws.chance(0.2))
    return _subordinated(main, "because", "weil", _reason(draws, main), address)


def _reason(draws: Draws, main: Clause) -> Clause:
    again = _pronoun_for(main.subject)
    past = main.tense in ("past", "modal past")
    tense = "past" if past else "present"
    if draws.chance(0.1):
        return Clause(_IT["n"], draws.pick(_WEATHER), tense)
    if again is None:
        return draw_clause(draws, _verb_without_object(draws, main.verb), bare=True)
    if draws.chance(0.6):
        return Clause(again, lexicon.SEIN, tense, predicate=draws.pick(lexicon.STATES))
    verb = _verb_without_object(draws, main.verb)
    modal = draws.pick(_DUTIES if past else _PLANS)
    return Clause(again, verb, "modal past" if past else "modal", modal, place=_needed_place(draws, verb))


def _needed_place(draws: Draws, verb: Verb) -> Place | None:
    return draw_place(draws, goal=False) if "placed" in verb.traits else None


def _verb_without_object(draws: Draws, other_than: Verb) -> Verb:
    while True:
        verb = draws.pick(_WITHOUT_OBJECT)
        if "timeless" not in verb.traits and verb is not other_than:
            return verb


def _pronoun_for(nominal: Nominal) -> Pronoun | None:
    """Return the pronoun that takes up somebody; None where German and English might see it differently."""
    if isinstance(nominal, Pronoun):
        return nominal
    if isinstance(nominal, Name):
        return Pronoun("he" if lexicon.NAMES[nominal.name] == "m" else "she")
    noun = nominal.noun
    if nominal.determiner == "no" or noun.kind == "animal" or (noun.gender == "n" and not nominal.plural):
        return None
    return Pronoun("they" if nominal.plural else "he" if noun.gender == "m" else "she")


def if_first(draws: Draws, address: Address) -> Told:
    """If Anna comes, I will help you. · Wenn Anna kommt, werde ich dir helfen."""
    condition, main = _condition(draws)
    told = f"{english.subordinate('if', condition)}, {english.statement(main)}"
    erzaehlt = f"{german.subordinate('wenn', condition, address)}, {german.question(main, address)}"
    return Told(told, erzaehlt, ".", (condition, main))


def if_last(draws: Draws, address: Address) -> Told:
    """You may sleep if you are tired. · Du darfst schlafen, wenn du müde bist."""
    condition, main = _condition(draws)
    return _subordinated(main, "if", "wenn", condition, address)


def _condition(draws: Draws) -> tuple[Clause, Clause]:
    """Return a condition and what follows from it; only the condition may have a noun as its object."""
    kind = draws.random()
    if kind < 0.12:
        condition = Clause(_IT["n"], draws.pick(_WEATHER), "simple")
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


def it_is(draws: Draws, address: Address) -> Told:
    """She likes the hat, but it is expensive. · Sie mag den Hut, aber er ist teuer."""
    first, it = _about_a_thing(draws)
    assert isinstance(first.object, NounPhrase)
    adjective = draw_adjective(draws, first.object, first.object.adjective)
    second = Clause(it, lexicon.SEIN, "past" if first.tense == "past" else "present", predicate=adjective)
    if draws.chance(0.5):
        return _subordinated(first, "because", "weil", second, address)
    return _coordinated(first, "but", "aber", second, address)


def it_again(draws: Draws, address: Address) -> Told:
    """Paul has a bicycle, but he does not need it. · Paul hat ein Fahrrad, aber er braucht es nicht."""
    first, it = _about_a_thing(draws)
    while (again := _pronoun_for(first.subject)) is None:
        first, it = _about_a_thing(draws)
    if draws.chance(0.2):
        verb, recipient = draws.pick(VERBS_BY_FRAME["ditransitive"]), draw_recipient(draws, again)
        second = Clause(again, verb, "modal", draws.pick(_PLANS), it, recipient)
        return _coordinated(first, "and", "und", second, address)
    assert isinstance(first.object, NounPhrase)
    verbs = [
        verb
        for verb in VERBS_BY_FRAME["accusative"]
        if first.object.noun in verb.objects and verb is not first.verb and "some" not in verb.traits
    ]
    verb, negated = draws.pick(verbs), draws.chance(0.5)
    modal = None if "timeless" in verb.traits else draws.pick(_REFUSALS if negated else _PLANS)
    second = Clause(again, verb, "modal" if modal else "present", modal, it, negated=negated)
    return _coordinated(first, *(("but", "aber") if negated else ("and", "und")), second, address)


def _about_a_thing(draws: Draws) -> tuple[Clause, Pronoun]:
    """Return a clause whose object is one thing, and the pronoun that takes it up."""
    while True:
        clause = draw_clause(draws, draws.pick(VERBS_BY_FRAME["accusative"]), bare=True)
        thing = clause.object
        if (
            isinstance(thing, NounPhrase)
            and thing.noun.kind in _THINGS
            and not thing.plural
            and thing.determiner != "no"
            and not _could_be_it(clause.subject)
        ):
            return clause, _IT[thing.noun.gender]


def _could_be_it(nominal: Nominal) -> bool:
    return isinstance(nominal, NounPhrase) and nominal.noun.kind == "animal"


def _subordinated(main: Clause, word: str, wort: str, clause: Clause, address: Address) -> Told:
    told = f"{english.statement(main)} {english.subordinate(word, clause)}"
    erzaehlt = f"{german.statement(main, address)}, {german.subordinate(wort, clause, address)}"
    return Told(told, erzaehlt, ".", (main, clause))


def _coordinated(first: Clause, word: str, wort: str, second: Clause, address: Address) -> Told:
    told = f"{english.statement(first)}, {word} {english.statement(second)}"
    erzaehlt = f"{german.statement(first, address)}, {wort} {german.statement(second, address)}"
    return Told(told, erzaehlt, ".", (first, second))
