"""A report as Markdown of GitHub's flavour, with its pictures beside it."""

import re
from collections.abc import Iterator, Mapping

from engine.clean import clean, clean_line
from tui_transformer.lab.analysis.export import escaped
from tui_transformer.lab.exports.markdown import block
from tui_transformer.lab.reports.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Figure,
    Formula,
    Heading,
    Inline,
    Listing,
    Math,
    Paragraph,
    Spans,
    Strong,
    Table,
    Verdict,
    typeset,
)
from tui_transformer.lab.reports.figures.style import Image

FILE = "report.md"
FOLDER = "figures"
_PLAIN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>#|~$^&"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


# What GitHub makes links, mentions or pictures of; and what begins a list, a quotation or a line under a title.
_LINKED = re.compile(r"://|(?i:\bwww(?=\.))|(?<!\w)@|:(?=\w+:)")
_BEGINS = re.compile(r"\s*(?:[-+=:](?=\s|[-+=]|\Z)|\d+(?=[.)]))")


def inline(text: str) -> str:
    """Text that stays text; signs that mean nothing within a line are left alone, so that it can be read."""
    plain = typeset(clean_line(text)).translate(_PLAIN)
    return _LINKED.sub(lambda found: _BROKEN.get(found[0].lower(), f"\\{found[0]}"), plain)


_BROKEN = {"://": ":\\//", "@": "@\u200b", "www": "ww\u200bw"}


def markdown(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """Its files by their names."""
    counts = {"figure": 0, "table": 0}
    parts = [f"# {inline(document.title)}", inline(document.subtitle)]
    for found in document.blocks:
        parts += _block(found, document, counts)
    files = {FILE: ("\n\n".join(parts) + "\n").encode("utf-8")}
    for name, image in images.items():
        files |= {f"{FOLDER}/{name}.svg": image.svg, f"{FOLDER}/{name}.png": image.png}
    return files


def _block(found: Block, document: Document, counts: dict[str, int]) -> Iterator[str]:
    match found:
        case Heading(text, level):
            yield f"{'#' * (level + 1)} {inline(text)}"
        case Paragraph(spans):
            yield _line(spans)
        case Verdict(spans):
            yield f"> {_line(spans)}"
        case Bullets(items):
            yield "\n".join(f"* {_line(item)}" for item in items)
        case Formula():
            yield _formula(found)
        case Listing():
            title = [f"*{inline(found.title)}*"] if found.title else []
            yield "\n\n".join([*title, block(found.text)])
        case Figure():
            counts["figure"] += 1
            number = document.numbered[0].format(n=counts["figure"])
            alternative = inline(found.caption).replace("\n", " ")
            yield f"![{alternative}]({FOLDER}/{found.name}.png)"
            yield f"*{inline(number)}. {inline(found.caption)}*"
        case Table():
            counts["table"] += 1
            yield f"*{inline(document.numbered[1].format(n=counts['table']))}. {inline(found.caption)}*"
            yield _table(found)
            if found.note:
                yield f"<sub>{inline(found.note)}</sub>"


def _line(spans: Spans) -> str:
    """Spans as a line that begins nothing but a paragraph."""
    line = "".join(map(_span, spans)).strip()
    begins = _BEGINS.match(line)
    if begins is None:
        return line
    at = begins.end() - (0 if begins[0][-1].isdigit() else 1)
    return f"{line[:at]}\\{line[at:]}"


def _span(span: Inline) -> str:
    match span:
        case Strong(text):
            inner = inline(text).strip()
            return f"**{inner}**" if inner else ""
        case Code(text):
            return code(text)
        case Math(latex):
            return f"${latex}$"
    return inline(span)


def code(text: str) -> str:
    """Text between as many backticks as it does not have in a row."""
    plain = clean_line(text)
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in plain).split()), default=0)
    fence = "`" * (longest + 1)
    air = " " if longest else ""
    return f"{fence}{air}{plain}{air}{fence}" if plain else ""


def _formula(found: Formula) -> str:
    source = f" ({inline(found.source)})" if found.source else ""
    return f"{inline(found.what)}{source}:\n\n$$\n{clean(found.latex)}\n$$"


def _table(found: Table) -> str:
    rule = ["---:" if side == "r" else ":---" for side in found.align]
    lines = [[inline(head) for head in found.heads], rule, *([_cell(cell) for cell in row] for row in found.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    if cell.code:
        return code(cell.text) if not set(cell.text) & set("`|") else escaped(clean_line(cell.text))
    text = inline(cell.text)
    return f"**{text}**" if cell.strong and text.strip() else text
