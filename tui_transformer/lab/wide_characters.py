"""What Rich, and Textual with it, does not do for Chinese and Japanese: break lines, and give an SVG's text its width.

Rich breaks lines at spaces only, and cuts what is too long for a line anywhere; text may break between any two such
characters, but not before a full stop or the like.
"""

import html
import re

_OPENING, _CLOSING = "（【《“‘", "，。：；、！？）】》”’…·％"  # not at the end of a line; not at its beginning
_WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_PART = rf"[{_OPENING}]*(?:[{_WIDE}]|[^\s{_OPENING}{_WIDE}]+)[{_CLOSING}]*"
WORD = re.compile(rf"\s*(?:{_PART}|\S+)\s*")  # with the space around it: a line ends after one
_SVG_TEXT = re.compile(r'textLength="([\d.]+)"([^>]*)>([^<]*)</text>')


def break_between_characters() -> None:
    """Make Rich break lines this way from now on; text without such characters is broken as before."""
    from rich import _wrap

    _wrap.re_word = WORD


def correct_svg_widths(svg: str) -> str:
    """Rich's SVG image, each text as wide as in a terminal: Rich counts its characters, not their columns."""
    return _SVG_TEXT.sub(_correct_width, svg)


def _correct_width(found: re.Match[str]) -> str:
    from rich.cells import cell_len

    length, options, text = found.groups()
    characters = html.unescape(text)
    if cell_len(characters) == len(characters):
        return found[0]
    return f'textLength="{float(length) * cell_len(characters) / len(characters):.1f}"{options}>{text}</text>'
