"""Blocks of a page. Texts of the code become escaped HTML, with `code` in backticks; headings hold only plain names."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from inspect import cleandoc

Html = str  # escaped
NAME = re.compile(r"[\w .,/@<>=:-]+")


def code(text: object) -> Html:
    return f"<code>{escape(str(text), quote=False)}</code>"


def inline_html(text: str) -> Html:
    """A text of the code as HTML: what is in backticks is code, and nothing else is markup."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(code(part) if i % 2 else escape(part, quote=False) for i, part in enumerate(parts))


def sentence_html(text: str) -> Html:
    """The same with a capital letter and a full stop."""
    text = text.strip()
    begun = text if text.startswith("`") else text[:1].upper() + text[1:]
    return inline_html(begun if not begun or begun[-1] in ".!?…" else f"{begun}.")


def paragraphs(text: str) -> str:
    """A docstring as paragraphs."""
    return "\n\n".join(f"<p>{inline_html(' '.join(part.split()))}</p>" for part in re.split(r"\n\s*\n", cleandoc(text)))


def heading(level: int, name: str, id: str = "", *, as_code: bool = True) -> str:
    """A heading with an anchor, by default its name.

    Raises:
        ValueError: the name could be taken for markup.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"not a plain name: {name!r}")
    return f"{'#' * level} {f'`{name}`' if as_code else name} {{ #{id or name} }}"


def link(text: Html, to: str) -> Html:
    """A link to a place on the same page."""
    return f'<a href="#{escape(to)}">{text}</a>'


def table(head: Sequence[str], rows: Iterable[Sequence[Html]]) -> str:
    """A table without the columns that are empty in every row."""
    found = [list(row) for row in rows]
    kept = [i for i in range(len(head)) if any(row[i] for row in found)]

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cells[i]}</{tag}>" for i in kept) + "</tr>"

    lines = ["<table>", "<thead>", line([inline_html(title) for title in head], "th"), "</thead>", "<tbody>"]
    return "\n".join([*lines, *(line(row, "td") for row in found), "</tbody>", "</table>"])


def listing(items: Iterable[Html]) -> str:
    return "\n".join(["<ul>", *(f"<li>{item}</li>" for item in items), "</ul>"])


def fence(text: str, language: str = "") -> str:
    """A block of code, in more backticks than it has in a row."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def mathml(latex: str, display: str = "block") -> Html:
    """A formula as MathML, which browsers draw without a script."""
    from latex2mathml.converter import convert

    return convert(latex, display=display)


def page(title: str, *blocks: str) -> str:
    return "\n\n".join([f"# {title}", *(block for block in blocks if block)]) + "\n"
