import pytest

from engine.data.synthetic.phrasebook import english, lexicon
from engine.data.synthetic.phrasebook.clause import Clause, NounPhrase, Pronoun

NOUN, VERB = lexicon.NOUN, {verb.english_lemma: verb for verb in lexicon.VERBS}
ADJECTIVE = {adjective.english: adjective for adjective in lexicon.ADJECTIVES}
MODAL = {modal.english: modal for modal in lexicon.MODALS}
ME, SHE = Pronoun("I"), Pronoun("she")
BOOK = NounPhrase(NOUN["book"], "the")


@pytest.mark.parametrize(
    ("clause", "statement", "question"),
    [
        (Clause(SHE, VERB["read"], "present", object=BOOK), "she is reading the book", "is she reading the book"),
        (Clause(SHE, VERB["read"], "habit", object=BOOK), "she reads the book", "does she read the book"),
        (Clause(ME, VERB["see"], "past", object=BOOK), "I saw the book", "did I see the book"),
        (Clause(SHE, VERB["see"], "present", object=BOOK), "she sees the book", "does she see the book"),
        (
            Clause(SHE, VERB["see"], "modal", MODAL["want"], BOOK),
            "she wants to see the book",
            "does she want to see the book",
        ),
        (
            Clause(ME, VERB["read"], "modal past", MODAL["have"], BOOK),
            "I had to read the book",
            "did I have to read the book",
        ),
        (Clause(ME, VERB["look for"], "present", object=SHE), "I am looking for her", "am I looking for her"),
        (Clause(SHE, lexicon.SEIN, "past", predicate=ADJECTIVE["tired"]), "she was tired", "was she tired"),
    ],
)
def test_english_has_continuous_forms_and_do(clause, statement, question):
    assert english.statement(clause) == statement
    assert english.question(clause) == question


def test_negation_needs_an_auxiliary():
    assert (
        english.statement(Clause(SHE, VERB["read"], "past", object=BOOK, negated=True)) == "she did not read the book"
    )
    assert english.statement(Clause(ME, VERB["sleep"], "modal", MODAL["can"], negated=True)) == "I cannot sleep"


def test_an_stands_before_a_vowel_and_these_before_many():
    assert english.nominal(NounPhrase(NOUN["egg"], "a")) == "an egg"
    assert english.nominal(NounPhrase(NOUN["hat"], "a", adjective=ADJECTIVE["old"])) == "an old hat"
    assert english.nominal(NounPhrase(NOUN["hat"], "this", plural=True)) == "these hats"


def test_the_recipient_comes_first_unless_the_object_is_it():
    given = Clause(ME, VERB["give"], "past", object=BOOK, recipient=SHE)
    assert english.statement(given) == "I gave her the book"
    assert (
        english.statement(Clause(ME, VERB["give"], "past", object=Pronoun("it_n"), recipient=SHE)) == "I gave it to her"
    )
