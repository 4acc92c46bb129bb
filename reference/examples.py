"""The commands that the guides show: examples for the reference, and what the tests of the documentation read."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAM = "tui-transformer"
FENCE = re.compile(r"^(`{3,})\w*\n(.*?)^\1", re.MULTILINE | re.DOTALL)
GUIDES = ("how-to", "tutorials")
MOST = 8  # examples of a command


def fenced_text(page: Path) -> str:
    """Return what is in the page's fences; a line that ends in a backslash goes on in the next."""
    text = "\n".join(text for _, text in FENCE.findall(page.read_text(encoding="utf-8")))
    return re.sub(r"\s*\\\n\s*", " ", text)


def simple_commands(line: str) -> Iterator[list[str]]:
    """The commands of a shell line, without what they are redirected to."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set(";&|"):
            yield words
            words = []
        else:
            words.append(word)


def program_commands(page: Path) -> list[str]:
    """Every command of this program that the page shows in a fence, as its words after the program's name."""
    found = []
    for line in fenced_text(page).splitlines():
        if line.startswith(PROGRAM):
            for words in simple_commands(line):
                if words[:1] == [PROGRAM]:
                    found.append(shlex.join(words[1 : words.index(">") if ">" in words else None]))
    return found


def page_title(page: Path) -> str:
    """Return the page's first heading."""
    return next(line[2:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))


def guide_pages() -> list[Path]:
    return [path for folder in GUIDES for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


def guide_examples(command: str) -> dict[Path, list[str]]:
    """Return the lines of the guides that show a command, by page; each line once, of the first page that has it."""
    found: dict[Path, list[str]] = {}
    known: set[str] = set()
    for page in guide_pages():
        for line in fenced_text(page).splitlines():
            shown = (
                [words for words in simple_commands(line) if words[:1] == [PROGRAM]] if line.startswith(PROGRAM) else []
            )
            if not any(words[1 : 1 + len(command.split())] == command.split() for words in shown):
                continue
            bare = line.partition("  #")[0].strip()
            if bare not in known and len(known) < MOST:
                known.add(bare)
                found.setdefault(page, []).append(re.sub(r"\s+#", "  #", line))
    return found
