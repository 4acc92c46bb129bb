import random

import pytest
from phrasebook_checker import check
from phrasebook_mutations import MUTATIONS, apart, together

from engine.data.synthetic.draws import Draws
from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.data.synthetic.phrasebook.sentences import draw_sentence

RIGHT = """
Ich sehe den Hund.
Heute sieht der Mann den Hund nicht.
Ich habe keinen Hund.
Dem Kind hat er nicht geholfen.
Wir fahren morgen mit dem Zug in die Stadt.
Er steht auf.
Ich weiß, dass er die Tür aufmacht.
Wenn es regnet, bleiben wir zu Hause.
Welchem Studenten hilfst du?
Sie geben ihr Wasser.
Sehen Sie das Haus, mein Herr?
Vielen Dank.
"""
WRONG = """
Ich sehe der Hund. | no subject and objects
Ich sehe die Hund. | no agreement
Ich helfe den Mann. | no subject and objects
Ich sehe ein schöne Hund. | no agreement
Das Kind spielen. | no subject and objects
Der Mann hat gegangen. | a noun is expected
Der Mann gestern hat den Hund gesehen. | 2 things before the verb
Ich habe nicht einen Hund. | kein alone
Ich sehe nicht den Hund. | 'den Hund' after 'nicht'
Ich gebe Anna ihn. | 'ihn' after 'Anna'
Wir wissen, dass er kommt heute. | no verb
Wenn es regnet, wir bleiben zu Hause. | no verb
Er fährt in die Stadt mit dem Zug. | 'mit dem Zug' after 'in die Stadt'
Er geht im Garten. | 'gehen' with
Das Kind spielt in den Garten. | 'spielen' with
Er macht die Tür. | no verb
Ich denke an dem Vater. | no subject and objects
Ich warte auf den Hund, kommt er. | without a conjunction
Wo du wohnst? | 2 things before the verb
Ich wohne. Hier | not a sentence
Du siehst das Haus, mein Herr. | not spoken to so
Ich sehe hund. | a noun is expected
Ich sehe Hund. | no agreement
Ich weiß. | without a clause
"""


@pytest.mark.parametrize("sentence", RIGHT.strip().splitlines())
def test_german_is_accepted(sentence):
    assert check(sentence) == []


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_what_is_not_german_is_refused_with_a_reason(line):
    sentence, reason = line.split(" | ")
    assert any(reason in fault for fault in check(sentence)), check(sentence)


def test_sentences_pass():
    draws = Draws(17)
    for _ in range(2_000):
        sentence = draw_sentence(draws)
        assert check(sentence.target) == [], sentence


@pytest.mark.slow
def test_the_default_corpus_and_20000_further_sentences_pass():
    for pairs in phrasebook.generate().values():
        for pair in pairs:
            assert check(pair.target) == [], pair
    draws = Draws(2_026)
    for _ in range(20_000):
        sentence = draw_sentence(draws)
        assert check(sentence.target) == [], sentence


@pytest.mark.parametrize("name", MUTATIONS)
def test_spoiled_sentences_are_caught(name):
    rng, draws = random.Random(3), Draws(3)
    made: list[tuple[str, str]] = []
    while len(made) < 120:
        sentence = draw_sentence(draws).target
        assert together(apart(sentence)) == sentence
        spoiled = MUTATIONS[name](rng, apart(sentence))
        if spoiled is not None:
            made.append((sentence, together(spoiled)))
    missed = [pair for pair in made if not check(pair[1])]
    assert len(missed) <= 0.05 * len(made), missed
