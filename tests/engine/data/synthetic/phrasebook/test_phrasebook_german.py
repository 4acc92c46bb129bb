import pytest

from engine.data.synthetic.phrasebook import german, lexicon
from engine.data.synthetic.phrasebook.clause import Adverbial, Clause, Name, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.lexicon import Modal

NOUN, VERB = lexicon.NOUN, {verb.english_lemma: verb for verb in lexicon.VERBS}
ADJECTIVE = {adjective.english: adjective for adjective in lexicon.ADJECTIVES}
MODAL = {modal.english: modal for modal in lexicon.MODALS}
DOG = NounPhrase(NOUN["dog"], "the")
ANNA = Name("Anna")
ME, YOU = Pronoun("I"), Pronoun("you")


@pytest.mark.parametrize(
    ("determiner", "noun", "plural", "adjective", "forms"),
    [
        ("the", "man", False, "old", "der alte Mann / den alten Mann / dem alten Mann"),
        ("the", "woman", False, "old", "die alte Frau / die alte Frau / der alten Frau"),
        ("the", "child", False, "old", "das alte Kind / das alte Kind / dem alten Kind"),
        ("the", "child", True, "old", "die alten Kinder / die alten Kinder / den alten Kindern"),
        ("a", "hat", False, "expensive", "ein teurer Hut / einen teuren Hut / einem teuren Hut"),
        ("a", "bag", False, "expensive", "eine teure Tasche / eine teure Tasche / einer teuren Tasche"),
        ("a", "shirt", False, "expensive", "ein teures Hemd / ein teures Hemd / einem teuren Hemd"),
        ("no", "shirt", True, "red", "keine roten Hemden / keine roten Hemden / keinen roten Hemden"),
        ("", "potato", True, "good", "gute Kartoffeln / gute Kartoffeln / guten Kartoffeln"),
        ("", "coffee", False, "cold", "kalter Kaffee / kalten Kaffee / kaltem Kaffee"),
        ("", "milk", False, "cold", "kalte Milch / kalte Milch / kalter Milch"),
        ("", "water", False, "cold", "kaltes Wasser / kaltes Wasser / kaltem Wasser"),
        ("two", "boy", True, "hungry", "zwei hungrige Jungen / zwei hungrige Jungen / zwei hungrigen Jungen"),
        ("this", "gentleman", False, "", "dieser Herr / diesen Herrn / diesem Herrn"),
        ("which", "student", False, "", "welcher Student / welchen Studenten / welchem Studenten"),
        ("our", "neighbour", False, "", "unser Nachbar / unseren Nachbarn / unserem Nachbarn"),
        ("her", "sister", False, "", "ihre Schwester / ihre Schwester / ihrer Schwester"),
        ("the", "car", True, "new", "die neuen Autos / die neuen Autos / den neuen Autos"),
        ("the", "girl", True, "", "die Mädchen / die Mädchen / den Mädchen"),
    ],
)
def test_articles_adjectives_and_nouns_decline_together(determiner, noun, plural, adjective, forms):
    phrase = NounPhrase(NOUN[noun], determiner, plural, ADJECTIVE.get(adjective))
    declined = [german.nominal(phrase, case, "du") for case in ("nominative", "accusative", "dative")]
    assert " / ".join(declined) == forms


@pytest.mark.parametrize(
    ("address", "forms"),
    [("du", "dein Hund / deine Katze"), ("Sie", "Ihr Hund / Ihre Katze"), ("ihr", "euer Hund / eure Katze")],
)
def test_your_follows_how_somebody_is_spoken_to(address, forms):
    yours = [german.nominal(NounPhrase(NOUN[noun], "your"), "nominative", address) for noun in ("dog", "cat")]
    assert " / ".join(yours) == forms


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("see", "sehe siehst sieht sehen seht sehen"),
        ("read", "lese liest liest lesen lest lesen"),
        ("eat", "esse isst isst essen esst essen"),
        ("wash", "wasche wäschst wäscht waschen wascht waschen"),
        ("invite", "lade lädst lädt laden ladet laden"),
        ("work", "arbeite arbeitest arbeitet arbeiten arbeitet arbeiten"),
        ("find", "finde findest findet finden findet finden"),
        ("feed", "füttere fütterst füttert füttern füttert füttern"),
        ("travel", "fahre fährst fährt fahren fahrt fahren"),
        ("give", "gebe gibst gibt geben gebt geben"),
        ("like", "mag magst mag mögen mögt mögen"),
        ("have", "habe hast hat haben habt haben"),
    ],
)
def test_verbs_conjugate(verb, forms):
    assert " ".join(VERB[verb].present) == forms


@pytest.mark.parametrize(
    ("clause", "main", "last"),
    [
        (Clause(ME, VERB["see"], "modal", MODAL["can"], DOG), "ich kann den Hund sehen", "ich den Hund sehen kann"),
        (Clause(ME, VERB["go"], "past"), "ich bin gegangen", "ich gegangen bin"),
        (Clause(ANNA, VERB["get up"], "present"), "Anna steht auf", "Anna aufsteht"),
        (Clause(ANNA, VERB["get up"], "past"), "Anna ist aufgestanden", "Anna aufgestanden ist"),
        (Clause(ANNA, VERB["get up"], "modal", MODAL["have"]), "Anna muss aufstehen", "Anna aufstehen muss"),
        (Clause(ME, VERB["see"], "past", object=DOG, negated=True), "ich habe den Hund nicht gesehen", ""),
        (
            Clause(ME, VERB["have"], "past", object=NounPhrase(NOUN["dog"], "a"), negated=True),
            "ich hatte keinen Hund",
            "",
        ),
        (Clause(ME, VERB["wait for"], "present", object=DOG, negated=True), "ich warte nicht auf den Hund", ""),
        (Clause(YOU, VERB["help"], "present", object=ANNA, negated=True), "du hilfst Anna nicht", ""),
        (Clause(ME, VERB["give"], "present", object=DOG, recipient=ANNA), "ich gebe Anna den Hund", ""),
        (Clause(ME, VERB["give"], "present", object=Pronoun("it_m"), recipient=Pronoun("she")), "ich gebe ihn ihr", ""),
    ],
)
def test_the_verb_stands_second_or_last_with_its_other_half(clause, main, last):
    assert german.statement(clause, "du") == main
    assert not last or german.subordinate("dass", clause, "du") == f"dass {last}"


def test_what_opens_a_statement_pushes_the_subject_behind_the_verb():
    garden = Adverbial("in", "in", nominal=NounPhrase(NOUN["garden"], "the"))
    clause = Clause(ANNA, VERB["play"], "present", place=garden)
    assert german.statement(clause, "du", "place") == "im Garten spielt Anna"
    assert german.main_clause(clause, "du") == "spielt Anna im Garten"


def test_motion_has_the_accusative_where_rest_has_the_dative():
    school = NounPhrase(NOUN["school"], "my")
    assert german.adverbial(Adverbial("to", "in", "accusative", school), "du") == "in meine Schule"
    assert german.adverbial(Adverbial("at", "in", "dative", school), "du") == "in meiner Schule"


def test_modals_say_one_form_for_wir_and_sie():
    assert all(isinstance(modal, Modal) and modal.present[3] == modal.present[5] for modal in lexicon.MODALS)
