"""All formats of a report, in one table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tui_transformer.lab.reports.document import Document
from tui_transformer.lab.reports.figures.style import PNG, SVG, Image
from tui_transformer.lab.reports.formats.html import html
from tui_transformer.lab.reports.formats.latex import latex
from tui_transformer.lab.reports.formats.markdown import markdown


@dataclass(frozen=True)
class ReportFormat:
    """An output format: whom it is for, its main file, and its picture forms."""

    name: str
    what: str
    file: str
    forms: tuple[str, ...]
    write: Callable[[Document, Mapping[str, Image]], dict[str, bytes]]


FORMATS = {
    "markdown": ReportFormat("Markdown", "for a repository; pictures beside it", "report.md", (SVG, PNG), markdown),
    "latex": ReportFormat("LaTeX", "for a paper or a lab report; pdflatex or xelatex", "report.tex", (PNG,), latex),
    "html": ReportFormat("HTML", "one page with everything in it, to read, send or print", "report.html", (SVG,), html),
}
