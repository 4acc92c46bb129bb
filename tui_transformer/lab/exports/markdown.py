"""Text that others wrote inside Markdown: it stays text, whatever it holds."""

from engine.clean import clean, clean_line
from tui_transformer.lab.analysis.export import escaped

INDENT = "    "


def inline(text: str) -> str:
    """On one line, every sign that Markdown knows escaped."""
    return escaped(clean_line(text))


def block(text: str) -> str:
    """An indented code block. Unlike a fence, no text can end it."""
    return "\n".join(f"{INDENT}{line}" for line in clean(text).split("\n"))
