"""This program's version, found without git: its number and a hash of its source files."""

import hashlib
import tomllib
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from engine.base.command_line import PROGRAM

ROOT = Path(__file__).resolve().parents[2]


def release_facts() -> dict[str, str]:
    """Return `version`, and `sources_sha256` over all modules' names and contents."""
    digest = hashlib.sha256()
    for package in ("engine", "tui_transformer"):
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return {"version": version(), "sources_sha256": digest.hexdigest()}


def version() -> str:
    """Return the program's number, as in `--version`; a checkout need not be installed."""
    try:
        return installed(PROGRAM)
    except PackageNotFoundError:
        try:
            return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
        except (OSError, ValueError, KeyError):
            return "unknown"
