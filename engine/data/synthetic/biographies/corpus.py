"""The corpus: documents about all people; half of the people are asked about in training, the others are not.

What is held out is the question, never the fact: every birthplace stands in the training documents of its person, in
eight wordings. A ninth is held back, for a validation loss that asks for known facts in sentences that are new for
that person.
"""

from dataclasses import dataclass

from engine.data.synthetic.biographies.people import FEWEST, MOST, Person, draw_people
from engine.data.synthetic.biographies.templates import TEMPLATES, Told, tell
from engine.data.synthetic.draws import Draws

VERSION = "biographies@1"
DOCUMENTS_EACH = 8  # training documents a person


@dataclass(frozen=True)
class Biographies:
    """A generated corpus.

    Attributes:
        asked: people whose questions are for training.
        held_out: people whose questions are for validation and test.
        train: training documents, in any order.
        validation: the held-back document of each person, in any order.
    """

    asked: tuple[Person, ...]
    held_out: tuple[Person, ...]
    train: tuple[Told, ...]
    validation: tuple[Told, ...]


def generate(seed: int, people: int) -> Biographies:
    """Return the corpus of a seed.

    Args:
        seed: any whole number; the same gives the same corpus with every version of Python.
        people: how many, FEWEST to MOST.

    Raises:
        ValueError: fewer or more people than that.
    """
    if not FEWEST <= people <= MOST:
        raise ValueError(f"{people} people; {FEWEST} to {MOST} can be drawn")
    draws = Draws(seed)
    asked, held_out = draw_people(draws, people)
    train, validation = [], []
    for person in asked + held_out:
        *told, kept_back = draws.shuffled(range(len(TEMPLATES)))[: DOCUMENTS_EACH + 1]
        train += [tell(person, template) for template in told]
        validation.append(tell(person, kept_back))
    return Biographies(asked, held_out, tuple(draws.shuffled(train)), tuple(draws.shuffled(validation)))
