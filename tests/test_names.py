"""No two public classes share a name, so that an import says which one is meant."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def public_classes() -> dict[str, set[str]]:
    """The files that define each public class at module level, by its name."""
    found = defaultdict(set)
    for package in ("engine", "tui_transformer", "reference"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(path.relative_to(ROOT).as_posix())
    return found


def test_no_two_public_classes_share_a_name() -> None:
    classes = public_classes()
    assert len(classes) > 400
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}
