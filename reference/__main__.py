"""`python -m reference FOLDER` writes the generated pages, to look at them without mkdocs."""

import sys
from pathlib import Path

from reference.pages import PAGES


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m reference FOLDER", file=sys.stderr)
        return 2
    for name, make in PAGES.items():
        file = Path(sys.argv[1]) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make(), encoding="utf-8")
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
