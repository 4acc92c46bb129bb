"""A report as one self-contained HTML page: styles, pictures and formulas inline, no scripts."""

import re
from collections.abc import Mapping

from engine.clean import clean, clean_line
from tui_transformer.lab.reports.document import Document, Figure, typeset
from tui_transformer.lab.reports.figures.style import SVG, Image
from tui_transformer.lab.template import filled


def html(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """Its one file; the template escapes all its input except formulas and pictures."""
    from markupsafe import escape

    filters = {
        "pre": lambda text: escape(clean(text)),
        "mathml": mathml,
        "picture": lambda figure: svg_of(images[figure.name][SVG], figure),
    }
    escaped = lambda text: escape(typeset(clean_line(text)))
    page = filled("reports", "report.html.j2", escaped, filters, document=document)
    return {"report.html": page.encode("utf-8")}


def mathml(latex: str, display: str) -> str:
    """A formula; it contains no untrusted text."""
    from latex2mathml.converter import convert

    return convert(latex, display=display)


def svg_of(svg: bytes, figure: Figure) -> str:
    """An inline picture with unique ids, sized by the page. Its texts are escaped already."""
    from markupsafe import escape

    body = svg.decode("utf-8")
    body = body[body.index("<svg") :]
    mark = re.sub(r"[^a-z0-9-]", "", figure.name)
    body = re.sub(r'\bid="', f'id="{mark}-', body)
    body = body.replace("url(#", f"url(#{mark}-").replace('xlink:href="#', f'xlink:href="#{mark}-')
    head, end, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    size = re.search(r'width="([\d.]+)pt"', body)
    wide = f' style="max-width:{float(size[1]) * 96 / 72:.0f}px"' if size is not None and not figure.wide else ""
    label = f'role="img" aria-label="{escape(clean_line(figure.caption))}"'
    return f"{head} {label}{wide}{end}{rest.rstrip()}"
