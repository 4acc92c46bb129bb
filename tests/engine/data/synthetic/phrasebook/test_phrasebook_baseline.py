import pytest
from phrasebook_baseline import nearest_neighbour_baseline

from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.data.synthetic.phrasebook.sentences import Sentence

TRAIN = (
    Sentence("I see the dog.", "Ich sehe den Hund.", "statement"),
    Sentence("I see the cat.", "Ich sehe die Katze.", "statement"),
    Sentence("You see the cat.", "Du siehst die Katze.", "statement"),
)


def test_a_known_sentence_is_translated_to_the_letter():
    score = nearest_neighbour_baseline(TRAIN, TRAIN)
    assert (score.exact_match, score.token_accuracy) == (1.0, 1.0)


def test_an_unknown_sentence_gets_the_translation_of_its_neighbour():
    unknown = (Sentence("You see the dog.", "Du siehst den Hund.", "statement"),)
    score = nearest_neighbour_baseline(TRAIN, unknown)
    assert (score.exact_match, score.token_accuracy) == (0.0, 3 / 5)  # den Hund and the full stop, from the first


def test_order_decides_between_sentences_of_the_same_words():
    train = (
        Sentence("Is the dog old?", "Ist der Hund alt?", "q"),
        Sentence("The dog is old?", "Der Hund ist alt?", "q"),
    )
    assert nearest_neighbour_baseline(train, train).exact_match == 1.0


def test_nothing_to_compare_is_an_error():
    with pytest.raises(ValueError, match="0 training pairs"):
        nearest_neighbour_baseline((), TRAIN)


@pytest.mark.parametrize("split", ["validation", "unseen_pairs"])
def test_remembering_does_not_solve_the_corpus(split):
    splits = phrasebook.generate(1, 3_000)
    score = nearest_neighbour_baseline(splits["train"], splits[split])
    assert score.exact_match <= 0.2
    assert score.token_accuracy < 0.5
