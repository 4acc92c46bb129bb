"""Who holds the runs of a folder: what tests of claims assert on."""

import json
from pathlib import Path

from engine.runs.claims import FOLDER, Holder, liveness


def claim_holders(runs_dir: Path) -> dict[str, Holder]:
    """Return the runs whose holders are alive, or may be, with those holders."""
    found = {}
    for folder in sorted((runs_dir / FOLDER).glob("*")):
        if liveness(runs_dir, folder.name) != "dead":
            newest = max(folder.iterdir(), key=lambda path: int(path.name))
            found[folder.name] = Holder.read(json.loads(newest.read_bytes().splitlines()[0]))
    return found
