"""Hooks for mkdocs: add the generated pages and the Markdown files outside docs/, and draw formulas."""

import re
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # whoever starts mkdocs, and from wherever

from reference.links import OUTSIDE, ROOT, rewrite_links
from reference.markup import mathml
from reference.pages import PAGES

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: "Files", config: Any, **_: Any) -> "Files":
    from mkdocs.structure.files import File

    made = {name: make() for name, make in PAGES.items()}
    for place, name in OUTSIDE.items():
        made[place] = rewrite_links((ROOT / name).read_text(encoding="utf-8"), name, place)
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    place = page.file.src_uri
    return markdown if place in PAGES or place in OUTSIDE else rewrite_links(markdown, f"docs/{place}", place)


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML, so that no page needs a script for them."""
    return FORMULA.sub(lambda found: mathml(unescape(found[2]), "block" if found[1] == "div" else "inline"), html)
