"""Recorded runs of a study: variants with several seeds, whose probes are counted by distance."""

import json
import math
import random
from pathlib import Path
from typing import Any

from tests.tui_transformer.lab.analysis.variants import AT, change, variant
from tests.tui_transformer.recorded import lines

EDGES = (48, 60, 70, 80, 95, 110, 130, 150, 170, 202)
PLACES = (88, 153, 52, 32, 19, 79, 13, 7, 12)
PROBES = [
    {"name": "recall<110", "chance": 0.083, "description": "who is speaking", "n": 344},
    {"name": "recall>=110", "chance": 0.083, "description": "who is speaking", "n": 118},
    {"name": "rhyme", "chance": 0.2, "description": "the rhyme", "n": 1208},
]
WINDOW = ("model.attention=window", "model.window=16", "model.n_layers=2")
SPREAD = 0.012  # nats between seeds


def seeded(
    root: Path,
    name: str,
    seed: int,
    *settings: str,
    by: float = 0.0,
    recall: float = 0.95,
    fade: float = 400,
    **more: Any,
) -> Path:
    """One cell of a study.

    Args:
        root: the runs folder.
        name: of the variant.
        seed: of the run.
        settings: as `--set` takes them.
        by: nats that the variant is worse.
        recall: the share right of what stands near.
        fade: characters over which it falls to chance.
        more: of `variant`.
    """
    draw = random.Random(f"{name}.{seed}")
    luck = draw.gauss(0, 1)
    run = variant(
        root,
        f"attention.{name}.s{seed}",
        "model.n_layers=2",
        "model.context_length=256",
        f"seed={seed}",
        *settings,
        by=by + SPREAD * (random.Random(seed).gauss(0, 1) + luck / 3),
        data={"probes": PROBES},
        **more,
    )
    change(run / "run.json", study={"name": "attention", "variant": name, "seed": seed})
    metrics = run / "metrics.jsonl"
    if metrics.exists():
        records = [json.loads(line) for line in metrics.read_text().splitlines()]
        for found in records:
            if found["kind"] == "validation":
                found["loss"] += 2 * SPREAD * draw.gauss(0, 1) * math.exp(-found["step"] / 500)
                found["by_distance"] = counted(recall + 0.03 * luck, fade, random.Random(f"{name}.{seed}"))
        metrics.write_text(lines(records), encoding="utf-8")
    return run


def counted(recall: float, fade: float, draw: random.Random) -> dict[str, list[list[int]]]:
    """As an evaluation counts them."""
    stretches = []
    for start, stop, of in zip(EDGES, EDGES[1:], PLACES, strict=False):
        share = 0.083 + (recall - 0.083) * math.exp(-(((start - 48) / fade) ** 2)) + 0.02 * draw.gauss(0, 1)
        stretches.append([start, stop, round(of * min(1.0, max(0.0, share))), of])
    rhyme = [[start, start + 2, 9, 10] for start in range(20, 34, 2)]
    return {"recall": stretches, "rhyme": rhyme}


def attention(root: Path, seeds: int = 3) -> None:
    """A study of attention: global, a window too short for what recall needs, linear; the last with one seed."""
    for seed in range(1, seeds + 1):
        seeded(root, "global", seed, created=AT(seed))
        seeded(root, "win16", seed, *WINDOW, by=0.035, recall=0.09, created=AT(10 + seed))
        seeded(root, "sparse", seed, "model.attention=sparse", by=0.004, fade=120, created=AT(20 + seed))
    seeded(root, "linear", 1, "model.attention=linear", by=0.1, recall=0.4, fade=60, created=AT(30))
