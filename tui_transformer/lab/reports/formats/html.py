"""A report as one self-contained HTML page: styles, pictures and formulas inline, no scripts."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.clean import clean, clean_line
from tui_transformer.lab.reports.document import Document, Figure, typeset
from tui_transformer.lab.reports.figures.style import SVG, Image

if TYPE_CHECKING:
    from jinja2 import Template


def html(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """Its one file; the template escapes all its input except formulas and pictures."""
    pictures = {figure.name: svg_of(images[figure.name][SVG], figure) for figure in document.figures}
    page = _template().render(document=document, pictures=pictures, mathml=mathml)
    return {"report.html": page.encode("utf-8")}


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def one_line(value: Any) -> Any:
        return typeset(clean_line(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    loader = PackageLoader("tui_transformer.lab.reports")
    made = Environment(
        loader=loader, autoescape=True, finalize=one_line, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters |= {"kind": lambda found: type(found).__name__, "pre": lambda text: Markup(escape(clean(text)))}
    return made.get_template("report.html.j2")


def mathml(latex: str, *, display: str) -> str:
    from latex2mathml.converter import convert
    from markupsafe import Markup

    return Markup(convert(latex, display=display))  # formulas contain no untrusted text


def svg_of(svg: bytes, figure: Figure) -> str:
    """An inline picture with unique ids, sized by the page. Its texts are escaped already."""
    from markupsafe import Markup, escape

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
    return Markup(f"{head} {label}{wide}{end}{rest.rstrip()}")
