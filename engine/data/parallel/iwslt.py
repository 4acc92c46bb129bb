"""The official files of IWSLT 2017 (TED talks): tagged training text, and development and test sets in XML.

Both formats pad sentences with spaces, which are removed; spaces within a sentence stay.
"""

import re
from xml.parsers import expat

from engine.base.errors import InputError, join_and
from engine.base.language import Message, tr
from engine.data.parallel.lines import NumberedLines, trim_both, uneven_error
from engine.data.parallel.pairs import Pairs, complete_pairs

TAG = re.compile(r"\s*</?(url|speaker|talkid|title|description|keywords|reviewer|translator|doc|transcript)\b")
MAX_XML_LENGTH = 64 * 1024**2  # characters; the largest official file has 0.2 million
SegmentId = tuple[str, str]  # the ids of a talk and a sentence in it


def parse_tagged(source: NumberedLines, target: NumberedLines) -> tuple[Pairs, int]:
    """Return the pairs of two lists of lines, and how many are dropped; tagged lines describe the talk."""
    ones, others = trim_both(source, target)
    rows: list[tuple[str, str]] = []
    for number, (one, other) in enumerate(zip(ones, others, strict=False), start=1):
        tags = [match.group(1) if match else None for match in (TAG.match(one), TAG.match(other))]
        if tags[0] != tags[1]:
            shown = join_and(f"<{tag}>" if tag else tr("a sentence") for tag in tags)
            problem = tr(
                "{shown}, the latter in {where}: the two files are not aligned here", shown=shown, where=target.where
            )
            raise source.error_at(number, problem)
        if tags[0] is not None:
            continue
        row = one.strip(), other.strip()
        if any(row):
            rows.append(row)
    if len(ones) != len(others):
        raise uneven_error(source, target, len(ones), len(others))
    pairs, left_out = complete_pairs(rows)
    if not len(pairs):
        raise InputError(
            Message("{where}: found tags but no sentences; is this the training text?", where=source.where)
        )
    return pairs, left_out


def parse_xml_pair(source: tuple[str, str], target: tuple[str, str]) -> Pairs:
    """Return the pairs of two XML files, each given as its text and its name for errors."""
    sources, targets = parse_segments(*source), parse_segments(*target)
    both = (sources, source[1]), (targets, target[1])
    for (here, where), (there, other) in (both, both[::-1]):
        alone = next((ids for ids in here if ids not in there), None)
        if alone is not None:
            problem = Message(
                "{other}: no sentence {alone!r:.20} of talk {alone2!r:.20}, although {where} has one (sentences: "
                "{n:,} and {n2:,}); are the files from the same set?",
                other=other,
                alone=alone[1],
                alone2=alone[0],
                where=where,
                n=len(there),
                n2=len(here),
            )
            raise InputError(problem)
    return Pairs(tuple(sources.values()), tuple(targets[ids] for ids in sources))


def parse_segments(text: str, where: str) -> dict[SegmentId, str]:
    """Return an XML file's sentences, `<doc docid><seg id>`, by talk and sentence, in file order. No tree is built; a
    DTD, XML's attack vector, is refused.
    """
    if len(text) > MAX_XML_LENGTH:
        problem = tr(
            "{where}: larger than {most:,} characters; no IWSLT set is that large",
            where=where,
            most=MAX_XML_LENGTH,
        )
        raise InputError(problem)
    found: dict[SegmentId, str] = {}
    talk: str | None = None
    opened: SegmentId | None = None
    parts: list[str] = []
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def refused(wrong: str) -> InputError:
        problem = Message(
            "{where}: line {current_line_number}: {wrong}",
            where=where,
            current_line_number=parser.CurrentLineNumber,
            wrong=wrong,
        )
        return InputError(problem)

    def doctype(*_: object) -> None:
        raise refused(tr("a document type declaration (DTD), which these files never have; the file is rejected"))

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal talk, opened
        if name == "doc":
            talk = attributes.get("docid")
            if not talk:
                raise refused(tr("a <doc> without docid"))
        elif name == "seg":
            if talk is None:
                raise refused(tr("a <seg> without a <doc> around it"))
            if not attributes.get("id"):
                raise refused(tr("a <seg> without id"))
            if opened is not None:
                raise refused(tr("a <seg> within a <seg>"))
            opened = (talk, attributes["id"])
            parts.clear()
            if opened in found:
                problem = tr("sentence {opened!r:.20} of talk {talk!r:.20} appears twice", opened=opened[1], talk=talk)
                raise refused(problem)

    def end(name: str) -> None:
        nonlocal talk, opened
        if name == "doc":
            talk = None
        elif name == "seg" and opened is not None:
            sentence = "".join(parts).replace("\n", " ").strip()  # a sentence is one line
            if not sentence:
                raise refused(
                    tr("sentence {opened!r:.20} of talk {opened2!r:.20} is empty", opened=opened[1], opened2=opened[0])
                )
            found[opened] = sentence
            opened = None

    parser.StartDoctypeDeclHandler, parser.CharacterDataHandler = doctype, parts.append
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        problem = tr(
            "{where}: line {lineno}: damaged XML ({why}); get a fresh copy from its source",
            where=where,
            lineno=error.lineno,
            why=why,
        )
        raise InputError(problem) from None
    if not found:
        raise InputError(Message("{where}: no <seg id=…> sentences found; is this an IWSLT set?", where=where))
    return found
