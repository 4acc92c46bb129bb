"""What differs from `main`: files, and which of their lines."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
BOUND = re.compile(r"-\s*(?:async def|def|class) (\w+)|-(\w+)(?::[^=]+)? = ")  # what a removed line defined


@dataclass(frozen=True)
class Change:
    """A file that differs."""

    path: str  # from the root, with /
    lines: frozenset[int]  # as they are numbered now; beside a removed line, those around it
    removed: frozenset[str] = frozenset()  # names that removed lines defined


def git(root: Path, *words: str) -> str | None:
    """What git prints; None if it refuses."""
    command = ["git", "-c", "core.quotePath=off", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace")
    return done.stdout if done.returncode == 0 else None


def changes(root: Path) -> tuple[str, list[Change]]:
    """Find what differs.

    Returns:
        From what, in words, and the files. On a branch: from where it left `main`. On `main`: from `origin/main`. With
        no difference there, from the commit before the last.
    """
    for branch in ("main", "origin/main"):
        base = (git(root, "merge-base", branch, "HEAD") or "").strip()
        if base and (found := list(differing(root, base))):
            return f"{branch} ({base[:8]})", found
    before = (git(root, "rev-parse", "--verify", "--quiet", "HEAD~1") or "").strip()
    return f"the commit before the last ({before[:8]})", list(differing(root, before)) if before else []


def differing(root: Path, base: str) -> Iterator[Change]:
    """Yield the files that are not as they were in a commit, and those that git does not know yet."""
    options = ("--unified=0", "--no-renames", "--no-ext-diff", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    for part in re.split(r"^diff --git ", git(root, "diff", *options, base, "--") or "", flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^(?=@@ )", part, flags=re.MULTILINE)
        path = head.splitlines()[0].partition(" b/")[2]
        lines: set[int] = set()
        removed: set[str] = set()
        for hunk in hunks:
            start, count = HUNK.match(hunk).groups("1")
            lines |= set(range(int(start), int(start) + (int(count) or 2)))
            removed |= {name for line in hunk.splitlines() for name in BOUND.findall(line)[:1] for name in name if name}
        yield Change(path, frozenset(lines), frozenset(removed))
    for path in (git(root, "ls-files", "--others", "--exclude-standard", "-z") or "").split("\0"):
        if path and (root / path).is_file():
            yield Change(path, frozenset(range(1, (root / path).read_bytes().count(b"\n") + 2)))
