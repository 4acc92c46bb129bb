"""Escape untrusted text for Markdown, LaTeX and spreadsheet cells, so that it stays text."""

import re
import unicodedata

from engine.base.clean import clean, clean_line

_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]()#+-.!|~$^>:@&"} | {"<": "&lt;"})
_PROSE = str.maketrans({c: f"\\{c}" for c in "\\`*_[]#|~$^"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})
# What GitHub turns into links, mentions or images; and what begins a list, a quotation or a title underline.
_LINKED = re.compile(r"://|(?i:\bwww(?=\.))|(?<!\w)@|:(?=\w+:)")
_BROKEN = {"://": ":\\//", "@": "@\u200b", "www": "ww\u200bw"}
_BEGINS = re.compile(r"\s*(?:[-+=:](?=\s|[-+=]|\Z)|\d+(?=[.)]))")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula
_NAMED = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum", '"': "char34", "…": "ldots"}
_NAMED |= {"ß": "ss", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "OE", "å": "aa", "Å": "AA", "ı": "i"}
_MATH = {"Δ": r"\Delta", "×": r"\times", "·": r"\cdot", "±": r"\pm", "→": r"\to", "≤": r"\le", "≥": r"\ge", "−": "-"}
LATEX_SIGNS = {
    **{sign: rf"\{sign}" for sign in "{}$&#%_"},
    # In pairs, `''` is a quotation mark, `--` a dash, ?` and !` Spanish; `[` and `*` bind to a command before them.
    **{sign: f"{{{sign}}}" for sign in "'`-[]*?!"},
    **{sign: rf"\{name}{{}}" for sign, name in _NAMED.items()},
    **{sign: f"${name}$" for sign, name in (_MATH | {sign: sign for sign in "<>|"}).items()},
    "–": "--",
    "—": "---",
}
_ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}


def markdown_text(text: str) -> str:
    """On one line, every Markdown character escaped."""
    return clean_line(text).translate(_MARKDOWN)


def markdown_prose(text: str) -> str:
    """On one line; characters that mean nothing mid-line stay, so that the source is readable."""
    plain = clean_line(text).translate(_PROSE)
    return _LINKED.sub(lambda found: _BROKEN.get(found[0].lower(), f"\\{found[0]}"), plain)


def markdown_line(line: str) -> str:
    """A line of escaped Markdown that can only begin a paragraph."""
    begins = _BEGINS.match(line)
    if begins is None:
        return line
    at = begins.end() - (0 if begins[0][-1].isdigit() else 1)
    return f"{line[:at]}\\{line[at:]}"


def markdown_code(text: str) -> str:
    """Code between two runs of backticks, longer than any run in the text."""
    plain = clean_line(text)
    longest = max(map(len, re.findall("`+", plain)), default=0)
    fence, air = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{air}{plain}{air}{fence}" if plain else ""


def markdown_block(text: str) -> str:
    """An indented code block. Unlike a fence, no text can end it."""
    return "\n".join(f"    {line}" for line in clean(text).split("\n"))


def csv_cell(text: str) -> str:
    """Text as a cell no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def latex_text(text: str) -> str:
    """ASCII text for any LaTeX, without packages: an unknown character as its code point, `[U+4E2D]`.

    pdflatex stops at a character that its fonts lack; a table that names it beats one that does not compile. (A table
    of all of Unicode, such as pylatexenc has, would need packages, and its commands would be no shorter to check.)
    """
    return "".join(LATEX_SIGNS.get(c) or (c if " " <= c <= "~" else _letter(c)) for c in text)


def _letter(character: str) -> str:
    """An accented letter by its accent, others by code point."""
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        base = rf"\{parts[0]}{{}}" if parts[0] in "ij" else parts[0]
        return rf"\{_ACCENTS[parts[1]]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"
