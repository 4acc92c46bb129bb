"""Sanitize untrusted text (corpora, model output, names) before it reaches the terminal."""

# C0 but tab and line feed, DEL, C1, direction marks and overrides, line separators.
_REMOVED = [
    *(c for c in range(0x20) if c not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
]
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # bytes of a name that are not UTF-8: it stays visible
_TABLE = dict.fromkeys(_REMOVED) | _SURROGATES
_ONE_LINE = _TABLE | {0x09: " ", 0x0A: " "}


def clean(text: str) -> str:
    """Remove control characters and direction overrides; U+FFFD for surrogates. Tabs and line feeds stay."""
    return text if text.isprintable() else text.translate(_TABLE)  # everything removed is unprintable


def clean_line(text: str) -> str:
    """Clean a text as `clean` does, onto one line."""
    return text if text.isprintable() else text.translate(_ONE_LINE)
