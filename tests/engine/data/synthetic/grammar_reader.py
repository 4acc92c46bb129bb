"""An oracle: the grammar that writes a text reads it, by finding out what was drawn."""

from collections.abc import Callable, Sequence

from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import Choice, GeneratedText, GrammarWriter, TextProbe

Unit = Callable[[GrammarWriter], None]


class UnexpectedCharacterError(ValueError):
    """A text leaves the grammar at `offset`, where only the characters in `expected` can stand."""

    def __init__(self, text: str, offset: int, expected: dict[str, float]) -> None:
        found = repr(text[offset]) if offset < len(text) else "the end of the text"
        super().__init__(f"offset {offset}: expected {' or '.join(map(repr, expected))}, found {found}")
        self.offset = offset
        self.expected = expected


class Reader(GrammarWriter):
    """Derives a text from itself."""

    def __init__(self, text: str) -> None:
        super().__init__(seed=0)
        self.text = text

    def draw(self, choice: Choice) -> str:
        """Return the literal that the text goes on with."""
        match = choice.pattern.match(self.text, self.position)
        if match is None:
            raise self._unexpected(choice)
        literal = match.group()
        self._advance(literal, choice.log_probabilities[literal])
        return literal

    def write_certain(self, literal: str) -> None:
        """Check that the text goes on with `literal`."""
        if not self.text.startswith(literal, self.position):
            raise self._unexpected(Choice({literal: 1.0}))
        super().write_certain(literal)

    def _unexpected(self, choice: Choice) -> UnexpectedCharacterError:
        typed = ""
        while True:
            expected = choice.next_characters(typed)
            offset = self.position + len(typed)
            found = self.text[offset : offset + 1]
            if found not in expected:
                return UnexpectedCharacterError(self.text, offset, expected)
            typed += found


def read(version: str, unit: Unit, probes: Sequence[TextProbe], text: str) -> GeneratedText:
    """Recover probabilities, units and probes from a text of whole units.

    Raises:
        UnexpectedCharacterError: the text leaves the grammar, or ends within a unit.
    """
    reader = Reader(text)
    while reader.position < len(text):
        reader.units.append(reader.position)
        unit(reader)
    return reader.finish(version, probes)


def next_character_distribution(unit: Unit, prefix: str) -> dict[str, float]:
    """Return the probability of every character that can follow `prefix`, which may end anywhere.

    Raises:
        UnexpectedCharacterError: the prefix itself leaves the grammar.
    """
    reader = Reader(prefix)
    while True:
        try:
            unit(reader)
        except UnexpectedCharacterError as error:  # sooner or later the prefix is used up
            if error.offset < len(prefix):
                raise
            return error.expected


def read_playlets(text: str) -> GeneratedText:
    return read(playlets.VERSION, playlets.write_scene, playlets.PROBES, text)


def next_in_playlets(prefix: str) -> dict[str, float]:
    return next_character_distribution(playlets.write_scene, prefix)
