"""The tests of an earlier working copy that are gone, each with what proves its claim now.

`python -m tests.moved FOLDER` collects the tests of both copies. `moved.tsv` has a line for each test that was renamed,
merged or moved: its old id and a new one, in which `*` stands for anything. A test without a line, or with one that
names no test, is an error: its claim is lost.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOVED = Path(__file__).with_suffix(".tsv")


def collected(root: Path, *options: str) -> set[str]:
    """The ids of a working copy's tests, in the order of its files: which of them are slow depends on it."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-o", "addopts=", *options]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True)
    found = {line for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line}
    if done.returncode or not found:
        sys.exit(f"{root}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found


def is_named(test: str, pattern: str) -> bool:
    """Whether a pattern names a test, or all cases of it."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))) + r"(\[.*\])?", test) is not None


def main(earlier: Path) -> int:
    rows = [line.split("\t") for line in MOVED.read_text(encoding="utf-8").splitlines()]
    lost, everything = 0, collected(ROOT)
    for options in (("-m", "not slow or release"), ()):  # what CI runs, or whoever makes a release; then all
        now = collected(ROOT, *options) if options else everything
        before = collected(earlier, *options)
        gone = sorted(before - now)
        print(f"# {' '.join(options) or 'all'}: {len(before):,} before, {len(now):,} now, {len(gone):,} gone\n")
        for test in gone:
            successors = [pattern for old, pattern in rows if is_named(test, old)]
            good = [pattern for pattern in successors if any(is_named(one, pattern) for one in now)]
            if successors and good == successors:
                print(f"{test}\t{', '.join(good)}")
                continue
            lost += 1
            slow = " it is slow now;" if test in everything else ""
            print(f"LOST\t{test}\t{slow} {', '.join(set(successors) - set(good)) or 'no line'}")
        print()
    print(f"{lost} lost")
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
