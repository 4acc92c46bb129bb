"""Where lines of Chinese and Japanese text may break: between two characters, but not before a full stop or the like.

Rich, and Textual with it, breaks lines at spaces only, and cuts what is too long for a line anywhere.
"""

import re

from rich import _wrap

_OPENING, _CLOSING = "（【《“‘", "，。：；、！？）】》”’…·％"  # not at the end of a line; not at its beginning
_WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_PART = rf"[{_OPENING}]*(?:[{_WIDE}]|[^\s{_OPENING}{_WIDE}]+)[{_CLOSING}]*"
WORD = re.compile(rf"\s*(?:{_PART}|\S+)\s*")


def between_characters() -> None:
    """Have Rich break lines so from now on; text without such characters is broken as before."""
    _wrap.re_word = WORD
