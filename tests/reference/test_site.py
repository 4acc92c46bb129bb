"""The site builds without a warning, has every page, and fetches nothing from the network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reference.examples import ROOT
from reference.links import DOCS, OUTSIDE, rewrite_links
from reference.pages import PAGES

# What a browser fetches by itself: scripts, styles, pictures, fonts; not what a reader may click.
FETCHED = re.compile(
    r"""(?:<(?:script|img|iframe|source)\b[^>]*\bsrc|<link\b(?![^>]*\brel="?canonical)[^>]*\bhref)=["']?(?:https?:)?//"""
)
IMPORTED = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//""")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0 and "WARNING  -" not in built.stderr, built.stderr

    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(PAGES) | set(OUTSIDE)
    assert {page.removesuffix(".md") + ".html" for page in pages} <= {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")
    }
    for path in tmp_path.rglob("*.html"):
        assert not FETCHED.search(path.read_text(encoding="utf-8")), path
    for path in tmp_path.rglob("*.css"):
        assert not IMPORTED.search(path.read_text(encoding="utf-8")), path
    report = (tmp_path / "report-attention/en/report.html").read_text(encoding="utf-8")
    assert "<math" in report and "arithmatex" not in report
    assert "model.n_kv_heads" in (tmp_path / "search/search_index.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("link", "file", "place", "there"),
    [
        ("../../SECURITY.md", "docs/how-to/a.md", "how-to/a.md", "../project/security.md"),
        ("docs/how-to/a.md#b", "CONTRIBUTING.md", "project/contributing.md", "../how-to/a.md#b"),
        ("ARCHITECTURE.md", "CONTRIBUTING.md", "project/contributing.md", "architecture.md"),
        ("../README.md", "docs/index.md", "index.md", "index.md"),
        ("../design.svg", "docs/how-to/a.md", "how-to/a.md", "../design.svg"),
        ("#here", "docs/how-to/a.md", "how-to/a.md", "#here"),
        ("https://example.org/a.md", "docs/how-to/a.md", "how-to/a.md", "https://example.org/a.md"),
    ],
)
def test_a_link_to_a_file_leads_to_its_page(link: str, file: str, place: str, there: str) -> None:
    assert rewrite_links(f"see [it]({link}).", file, place) == f"see [it]({there})."
