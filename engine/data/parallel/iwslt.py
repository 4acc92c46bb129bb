"""The official files of IWSLT 2017 (TED talks): tagged training text, and development and test sets in XML.

Both formats pad sentences with spaces, which are removed; spaces within a sentence stay.
"""

import re
from xml.parsers import expat

from engine.data.parallel.lines import Lines, side_by_side, text_of, uneven
from engine.data.parallel.pairs import Pairs
from engine.errors import InputError

TAG = re.compile(r"\s*</?(url|speaker|talkid|title|description|keywords|reviewer|translator|doc|transcript)\b")
MAX_XML_BYTES = 64 * 1024**2  # the largest official file has 0.2 MiB
Segment = tuple[str, str]  # the ids of a talk and a sentence in it


def tagged(source: Lines, target: Lines) -> tuple[Pairs, int]:
    """Return the pairs of two lists of lines, and how many are dropped; tagged lines describe the talk."""
    ones, others = side_by_side(source, target)
    kept: list[tuple[str, str]] = []
    left_out = 0
    for number, (one, other) in enumerate(zip(ones, others, strict=False), start=1):
        tags = [match.group(1) if match else None for match in (TAG.match(one), TAG.match(other))]
        if tags[0] != tags[1]:
            shown = " and ".join(f"<{tag}>" if tag else "a sentence" for tag in tags)
            raise source.refuse(number, f"{shown} in {target.where}: the two files are not aligned here")
        if tags[0] is not None:
            continue
        one, other = one.strip(), other.strip()
        if one and other:
            kept.append((one, other))
        elif one or other:
            left_out += 1
    if len(ones) != len(others):
        raise uneven(source, target, len(ones), len(others))
    if not kept:
        raise InputError(f"{source.where}: holds tags and no sentences; is it the training text?")
    return Pairs(tuple(one for one, _ in kept), tuple(other for _, other in kept)), left_out


def joined(source: tuple[bytes, str], target: tuple[bytes, str]) -> Pairs:
    """Return the pairs of two XML files, each its content and its name in errors."""
    sources, targets = segments(*source), segments(*target)
    both = (sources, source[1]), (targets, target[1])
    for (here, where), (there, other) in (both, both[::-1]):
        alone = next((ids for ids in here if ids not in there), None)
        if alone is not None:
            raise InputError(
                f"{other}: has no sentence {alone[1]!r:.20} of talk {alone[0]!r:.20}, which {where} has; "
                f"{len(sources):,} and {len(targets):,} sentences: are they the same set?"
            )
    return Pairs(tuple(sources.values()), tuple(targets[ids] for ids in sources))


def segments(raw: bytes, where: str) -> dict[Segment, str]:
    """Return an XML file's sentences by talk and sentence, in file order."""
    if len(raw) > MAX_XML_BYTES:
        raise InputError(f"{where}: larger than {MAX_XML_BYTES:,} bytes, which no IWSLT set is")
    text = text_of(raw, where)
    reader = _Reader(where)
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        raise InputError(f"{where}: line {error.lineno}: damaged XML ({why}); take it from its source again") from None
    if not reader.found:
        raise InputError(f"{where}: has no <seg id=…> sentences; is this an IWSLT set?")
    return reader.found


class _Reader:
    """Collects `<doc docid><seg id>` without building a tree; a DTD, XML's attack vector, is refused."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: dict[Segment, str] = {}
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._talk: str | None = None
        self._open: Segment | None = None
        self._parts: list[str] = []

    def _refused(self, wrong: str) -> InputError:
        return InputError(f"{self.where}: line {self.parser.CurrentLineNumber}: {wrong}")

    def _doctype(self, *_: object) -> None:
        raise self._refused("a document type declaration (DTD), which these files never have; it is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "doc":
            self._talk = attributes.get("docid")
            if not self._talk:
                raise self._refused("a <doc> without docid")
        elif name == "seg":
            if self._talk is None or not attributes.get("id"):
                raise self._refused("a <seg> without " + ("id" if self._talk is not None else "a <doc> around it"))
            if self._open is not None:
                raise self._refused("a <seg> within a <seg>")
            self._open, self._parts = (self._talk, attributes["id"]), []
            if self._open in self.found:
                raise self._refused(f"sentence {self._open[1]!r:.20} of talk {self._talk!r:.20} is there twice")

    def _text(self, text: str) -> None:
        if self._open is not None:
            self._parts.append(text)

    def _end(self, name: str) -> None:
        if name == "doc":
            self._talk = None
        elif name == "seg" and self._open is not None:
            sentence = "".join(self._parts).replace("\n", " ").strip()  # a sentence is one line
            if not sentence:
                raise self._refused(f"sentence {self._open[1]!r:.20} of talk {self._open[0]!r:.20} is empty")
            self.found[self._open] = sentence
            self._open = None
