"""Biographies: invented people, what is told of them, and where they were born."""

from engine.data.synthetic.biographies.corpus import (
    DOCUMENTS_EACH,
    VERSION,
    Biographies,
    generate,
)
from engine.data.synthetic.biographies.people import FEWEST, MOST, PLACES, Person
from engine.data.synthetic.biographies.templates import Told

__all__ = ["DOCUMENTS_EACH", "FEWEST", "MOST", "PLACES", "VERSION", "Biographies", "Person", "Told", "generate"]
