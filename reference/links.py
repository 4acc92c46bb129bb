"""Where a link leads: from a file of the repository to the same place on the site."""

import os
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages of the site that are not files of docs/, by their place on the site.
OUTSIDE = {
    "project/architecture.md": "ARCHITECTURE.md",
    "project/changelog.md": "CHANGELOG.md",
    "project/contributing.md": "CONTRIBUTING.md",
    "project/decisions.md": "DECISIONS.md",
    "project/security.md": "SECURITY.md",
}
ELSEWHERE = {"README.md": "index.md", "README.zh-CN.md": "zh/index.md"}  # files whose place another page takes
PLACES = {name: place for place, name in OUTSIDE.items()} | ELSEWHERE
LINK = re.compile(r"(?<=\]\()(?!https?://|mailto:|#)([^)\s#]+)")


def rewrite_links(markdown: str, file: str, place: str) -> str:
    """Return a page's Markdown with its links to files as they are on the site.

    Args:
        file: the page's own file, from the root of the repository.
        place: where the page is on the site.
    """

    def moved(link: re.Match[str]) -> str:
        target = os.path.normpath(PurePosixPath(file).parent / link[1])
        there = PLACES.get(target) or target.removeprefix("docs/")
        return os.path.relpath(there, PurePosixPath(place).parent)

    return LINK.sub(moved, markdown)
