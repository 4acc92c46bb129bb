"""Who reads a run's config before it trains: `python -m tests.config_reads [PRESET]`.

Prints each stay, a run of reads by one file, and how many of them return to a file that was left before. What a config
says of itself, in `engine/config/`, counts as part of the read that asked for it. The network has one layer, as all
layers read the same.
"""

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from engine.config import presets
from engine.config.fields import Section
from engine.training.assemble import assemble

ROOT = Path(__file__).parent.parent
PACKAGES, OWN = ("engine/", "tui_transformer/"), "engine/config/"


def reader(frame: FrameType | None) -> str:
    """Return the file that a read of a config is for, "" if it is none of the program's."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            where = path.relative_to(ROOT).as_posix()
            if where.startswith(PACKAGES) and not where.startswith(OWN):
                return where
        frame = frame.f_back
    return ""


def reads(preset: str) -> list[str]:
    """Return the files that read the config of a preset's run until it is ready to train, once per stay."""
    stays: list[str] = []
    usual = Section.__getattribute__

    def watched(self: Section, name: str) -> Any:
        if not name.startswith("_") and (where := reader(sys._getframe(1))) and stays[-1:] != [where]:
            stays.append(where)
        return usual(self, name)

    config = presets.resolve(presets.find(preset), overrides=[{"model": {"n_layers": 1}}])
    with tempfile.TemporaryDirectory() as folder:
        Section.__getattribute__ = watched  # type: ignore[method-assign]
        try:
            ready = assemble(config, runs_dir=Path(folder), name="counted", device="cpu")
        finally:
            Section.__getattribute__ = usual  # type: ignore[method-assign]
        ready.trainer.writer.discard()
    return stays


def main() -> int:
    stays = reads(*sys.argv[1:2] or ["demo"])
    print("\n".join(stays))
    files = dict.fromkeys(stays)
    print(f"\n{len(stays)} stays in {len(files)} files, {len(stays) - len(files)} returns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
