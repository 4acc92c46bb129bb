"""A report as one page of HTML that needs nothing else: styles, pictures and formulas are in it; no script is."""

import re
from collections.abc import Iterator, Mapping
from html import escape

from engine.clean import clean, clean_line
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
from tui_transformer.lab.reports.formats.page import HEAD, STYLE

FILE = "report.html"
SECTION = "section"  # what is counted for the table of contents
_LONG = 36  # characters from which a cell may be broken


def html(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """Its one file."""
    counts = {"figure": 0, "table": 0, SECTION: 0}
    body = [part for found in document.blocks for part in _block(found, document, images, counts)]
    first, rest = body[:1], body[1:]
    parts = [
        HEAD.format(language=_attribute(document.language), title=text(document.title), style=STYLE),
        f"<header><h1>{text(document.title)}</h1><p>{text(document.subtitle)}</p></header>",
        *first,
        _contents(document),
        *rest,
        "</main></body></html>",
    ]
    return {FILE: ("\n".join(parts) + "\n").encode("utf-8")}


def text(found: str) -> str:
    """Text on one line."""
    return escape(typeset(clean_line(found)), quote=False)


def _attribute(found: str) -> str:
    return escape(clean_line(found), quote=True)


def _contents(document: Document) -> str:
    titles = [found.text for found in document.blocks if isinstance(found, Heading) and found.level == 1]
    items = "".join(f'<li><a href="#s{i}">{text(title)}</a></li>' for i, title in enumerate(titles, 1))
    return f'<nav aria-label="{_attribute(document.contents)}"><ol>{items}</ol></nav>'


def _block(found: Block, document: Document, images: Mapping[str, Image], counts: dict[str, int]) -> Iterator[str]:
    match found:
        case Heading(words, 1):
            counts[SECTION] += 1
            yield f'<h2 id="s{counts[SECTION]}">{text(words)}</h2>'
        case Heading(words):
            yield f"<h3>{text(words)}</h3>"
        case Paragraph(spans):
            yield f"<p>{_line(spans)}</p>"
        case Verdict(spans, alarm):
            kind = "verdict alarm" if alarm else "verdict"
            yield f'<p class="{kind}">{_line(spans)}</p>'
        case Bullets(items):
            listed = "".join(f"<li>{_line(item)}</li>" for item in items)
            yield f"<ul>{listed}</ul>"
        case Formula():
            source = f' <span class="source">({text(found.source)})</span>' if found.source else ""
            yield f'<div class="formula"><p>{text(found.what)}{source}</p>{mathml(found.latex, display="block")}</div>'
        case Listing():
            yield _listing(found)
        case Figure():
            counts["figure"] += 1
            number = text(document.numbered[0].format(n=counts["figure"]))
            caption = f"<figcaption><b>{number}.</b> {text(found.caption)}</figcaption>"
            kind = "wide" if found.wide else "narrow"
            yield f'<figure class="{kind}">{_svg(images[found.name].svg, found)}{caption}</figure>'
        case Table():
            counts["table"] += 1
            yield _table(found, text(document.numbered[1].format(n=counts["table"])))


def _line(spans: Spans) -> str:
    return "".join(map(_span, spans))


def _span(span: Inline) -> str:
    match span:
        case Strong(words):
            return f"<strong>{text(words)}</strong>"
        case Code(words):
            return f"<code>{text(words)}</code>"
        case Math(latex):
            return mathml(latex, display="inline")
    return text(span)


def mathml(latex: str, *, display: str) -> str:
    """A formula that browsers draw themselves."""
    from latex2mathml.converter import convert

    return str(convert(latex, display=display))


def _listing(found: Listing) -> str:
    inner = f"<pre>{escape(clean(found.text), quote=False)}</pre>"
    if found.long:
        return f"<details><summary>{text(found.title)}</summary>{inner}</details>"
    title = f'<p class="title">{text(found.title)}</p>' if found.title else ""
    return f"{title}{inner}"


def _table(found: Table, number: str) -> str:
    caption = f"<figcaption><b>{number}.</b> {text(found.caption)}</figcaption>"
    sides = [' class="r"' if side == "r" else "" for side in found.align]
    titles = zip(found.heads, sides, strict=True)
    heads = "".join(f'<th scope="col"{side}>{text(head)}</th>' for head, side in titles)
    lines = ("".join(_cell(cell, side) for cell, side in zip(row, found.align, strict=True)) for row in found.rows)
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    note = f'<p class="note">{text(found.note)}</p>' if found.note else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<figure class="tab">{caption}<div class="table" tabindex="0">{table}</div>{note}</figure>'


def _cell(cell: Cell, side: str) -> str:
    inner = text(cell.text)
    if cell.code and inner:
        inner = f"<code>{inner}</code>"
    wanted = (("r", side == "r"), ("b", cell.strong), ("w", len(cell.text) > _LONG))
    kinds = " ".join(kind for kind, is_wanted in wanted if is_wanted)
    return f'<td class="{kinds}">{inner}</td>' if kinds else f"<td>{inner}</td>"


def _svg(svg: bytes, found: Figure) -> str:
    """A picture within the page: its identifiers are its own, its size is the page's."""
    body = svg.decode("utf-8")
    body = body[body.index("<svg") :]
    mark = re.sub(r"[^a-z0-9-]", "", found.name)
    body = re.sub(r'\bid="', f'id="{mark}-', body)
    body = body.replace("url(#", f"url(#{mark}-").replace('xlink:href="#', f'xlink:href="#{mark}-')
    head, end, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    size = re.search(r'width="([\d.]+)pt"', body)
    wide = f' style="max-width:{float(size[1]) * 96 / 72:.0f}px"' if size is not None and not found.wide else ""
    return f'{head} role="img" aria-label="{_attribute(found.caption)}"{wide}{end}{rest.rstrip()}'
