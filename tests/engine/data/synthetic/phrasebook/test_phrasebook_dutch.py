"""The Dutch of the phrasebook: sentences translated by hand, and rules that hold for every sentence."""

import re
from collections import defaultdict

import pytest

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.data.synthetic.phrasebook import dutch, lexicon
from engine.data.synthetic.phrasebook.clause import Adverbial, Clause, Name, NounPhrase, Pronoun
from engine.data.synthetic.phrasebook.corpus import SPLITS
from engine.data.synthetic.phrasebook.sentences import CONSTRUCTIONS, draw_sentence

NOUN, VERB = lexicon.NOUN, {verb.english_lemma: verb for verb in lexicon.VERBS}
ADJECTIVE = {adjective.english: adjective for adjective in lexicon.ADJECTIVES}
MODAL = {modal.english: modal for modal in lexicon.MODALS}
TIME = {time.english: time for time in lexicon.TIMES}
ANNA, DOG, YOU = Name("Anna"), NounPhrase(NOUN["dog"], "the"), Pronoun("you")
HOUSE = Adverbial("to", "in", "accusative", NounPhrase(NOUN["house"], "the"))


@pytest.mark.parametrize(
    ("determiner", "noun", "plural", "adjective", "form"),
    [
        ("the", "man", False, "old", "de oude man"),
        ("the", "child", False, "old", "het oude kind"),
        ("the", "child", True, "old", "de oude kinderen"),
        ("a", "child", False, "old", "een oud kind"),
        ("a", "lamp", False, "red", "een rode lamp"),
        ("no", "house", False, "white", "geen wit huis"),
        ("no", "house", True, "white", "geen witte huizen"),
        ("", "water", False, "fresh", "vers water"),
        ("", "milk", False, "fresh", "verse melk"),
        ("", "child", True, "tired", "vermoeide kinderen"),
        ("my", "house", False, "small", "mijn kleine huis"),
        ("our", "house", False, "small", "ons kleine huis"),
        ("our", "lamp", False, "small", "onze kleine lamp"),
        ("this", "shirt", False, "expensive", "dit dure hemd"),
        ("this", "hat", False, "expensive", "deze dure hoed"),
        ("which", "village", False, "big", "welk groot dorp"),
        ("which", "town", False, "big", "welke grote stad"),
        ("two", "egg", True, "good", "twee goede eieren"),
        ("your", "car", True, "", "je auto's"),
    ],
)
def test_articles_and_adjectives_agree_with_the_noun(determiner, noun, plural, adjective, form) -> None:
    phrase = NounPhrase(NOUN[noun], determiner, plural, ADJECTIVE.get(adjective))
    assert dutch.nominal(phrase, dutch.SUBJECT, "du") == form


@pytest.mark.parametrize(
    ("clause", "main", "subordinate"),
    [
        (Clause(YOU, VERB["buy"], "present", object=DOG), "je koopt de hond", "dat je de hond koopt"),
        (Clause(ANNA, VERB["open"], "present", object=DOG), "Anna maakt de hond open", "dat Anna de hond openmaakt"),
        (
            Clause(ANNA, VERB["close"], "past", object=DOG),
            "Anna heeft de hond dichtgedaan",
            "dat Anna de hond heeft dichtgedaan",
        ),
        (
            Clause(ANNA, VERB["close"], "modal", MODAL["should"], DOG),
            "Anna zou de hond moeten dichtdoen",
            "dat Anna de hond zou moeten dichtdoen",
        ),
        (Clause(ANNA, VERB["fall asleep"], "past"), "Anna is in slaap gevallen", "dat Anna in slaap is gevallen"),
        (
            Clause(ANNA, VERB["need"], "present", object=DOG, negated=True),
            "Anna heeft de hond niet nodig",
            "dat Anna de hond niet nodig heeft",
        ),
        (
            Clause(ANNA, VERB["like"], "present", object=NounPhrase(NOUN["soup"], "the")),
            "Anna vindt de soep lekker",
            "dat Anna de soep lekker vindt",
        ),
        (Clause(ANNA, VERB["like"], "past", object=DOG), "Anna heeft de hond leuk gevonden", ""),
        (Clause(ANNA, VERB["love"], "present", object=Pronoun("you")), "Anna houdt van jou", "dat Anna van jou houdt"),
        (Clause(ANNA, VERB["travel"], "past", place=HOUSE), "Anna is naar het huis gereisd", ""),
        (Clause(ANNA, VERB["travel"], "past"), "Anna heeft gereisd", "dat Anna heeft gereisd"),
        (
            Clause(ANNA, VERB["give"], "past", object=DOG, recipient=Pronoun("they"), time=TIME["yesterday"]),
            "Anna heeft hun gisteren de hond gegeven",
            "",
        ),
        (
            Clause(ANNA, VERB["give"], "modal", MODAL["will"], Pronoun("it_m", NOUN["hat"]), Pronoun("they")),
            "Anna zal hem aan hen geven",
            "",
        ),
        (
            Clause(ANNA, VERB["have"], "past", object=NounPhrase(NOUN["dog"], "a"), negated=True),
            "Anna had geen hond",
            "dat Anna geen hond had",
        ),
    ],
)
def test_clauses_are_those_of_a_grammar_book(clause, main, subordinate) -> None:
    assert dutch.statement(clause, "du") == main
    assert not subordinate or dutch.subordinate("dat", clause, "du") == subordinate


@pytest.mark.parametrize(
    ("clause", "asked", "question"),
    [
        (Clause(YOU, VERB["buy"], "present"), Pronoun("what"), "wat koop je"),
        (Clause(YOU, VERB["go"], "present"), "where", "waar ga je naartoe"),
        (Clause(YOU, VERB["travel"], "past"), "where", "waar ben je naartoe gereisd"),
        (Clause(YOU, VERB["love"], "present"), Pronoun("who"), "van wie hou je"),
        (Clause(YOU, VERB["love"], "present"), Pronoun("what"), "waar hou je van"),
        (Clause(YOU, VERB["see"], "modal", MODAL["can"], DOG), "why", "waarom kun je de hond zien"),
    ],
)
def test_questions_turn_the_verb(clause, asked, question) -> None:
    assert dutch.question(clause, "du", asked) == question


def test_it_has_the_gender_of_the_dutch_noun() -> None:
    jacket, hat = (Pronoun("it_f", NOUN[one]) for one in ("jacket", "hat"))
    assert dutch.nominal(jacket, dutch.SUBJECT, "du") == "het" and dutch.nominal(hat, dutch.SUBJECT, "du") == "hij"
    assert dutch.nominal(hat, dutch.OBJECT, "du") == "hem"


def sentences(count: int = 20_000):
    draws = Draws(11)
    return [draw_sentence(draws) for _ in range(count)]


def test_every_word_of_the_lexicon_has_its_dutch_and_every_english_sentence_one_translation() -> None:
    found = defaultdict(set)
    constructions = set()
    for sentence in sentences():
        found[sentence.source].add(sentence.dutch)
        constructions.add(sentence.construction)
    assert constructions == set(CONSTRUCTIONS) and all(len(one) == 1 for one in found.values())


def test_every_article_fits_its_noun() -> None:
    """Independent of the grammar: each noun between an article and the next word, by a table of het-words."""
    neuter = "kind meisje paard ei brood water boek verhaal jasje hemd schilderij raam huis station park bos dorp"
    het = frozenset(neuter.split(" "))
    nouns = {rows[1]: "het" if rows[1] in het else "de" for rows in dutch._ROWS["nouns"].values()}
    adjectives = {form for rows in dutch._ROWS["adjectives"].values() for form in rows}
    inflected = {rows[2] for rows in dutch._ROWS["adjectives"].values()}
    articles = {"de": "de", "het": "het", "deze": "de", "dit": "het", "welk": "het", "onze": "de", "ons": "het"}
    seen = 0
    for sentence in sentences(5_000):
        words = re.findall(r"[\w']+", sentence.dutch.lower())
        for i, word in enumerate(words):
            if word not in nouns:
                continue
            adjective = words[i - 1] if words[i - 1] in adjectives else ""
            before = words[i - 2] if adjective else words[i - 1]
            if before in articles:
                seen += 1
                assert articles[before] == nouns[word], sentence.dutch
            if adjective and before in ("een", "geen", "welk"):
                assert (adjective in inflected) == (nouns[word] == "de"), sentence.dutch
    assert seen > 1_000


def test_no_split_has_a_sentence_of_another_in_any_language() -> None:
    found = phrasebook.generate(1, 5_000, ("de", "nl"))
    for language in ("source", "target", "dutch"):
        seen = [{getattr(pair, language) for pair in found[name]} for name in SPLITS]
        assert sum(map(len, seen)) == len(set().union(*seen))
    known = {word for pair in found["train"] for word in re.findall(r"\w+", pair.dutch)}
    for name in SPLITS[1:]:
        assert {word for pair in found[name] for word in re.findall(r"\w+", pair.dutch)} <= known
