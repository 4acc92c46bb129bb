"""A recorded study: variants over seeds, one that leaks, one of which a seed diverged, and its file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.tui_transformer.lab.analysis.variants import LEAK, change, variant
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.folder import RequestedStudy, study_files
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult

NOISE = (0.0031, -0.0042, 0.0011, 0.0027, -0.0019)  # of a seed, whatever the variant
OWN = {
    "win16": (0.002, -0.001, 0.0015),
    "heads2": (0.001, -0.002, 0.0005),
    "hot": (0.001, 0.0, -0.0015),
    "wide": (0.001, -0.0005, 0.0015),
}  # of a seed of a variant
FILE = """
name = "att"
base = "demo"
baseline = "global"
seeds = [1, 2, 3]

[[variants]]
name = "global"

[[variants]]
name = "win16"
preset = "win16"
expect = { loss = "worse", recall = "worse", rhyme = "same", counter = "unknown" }
why = "Two layers with a window of 16 reach 30 characters."

[[variants]]
name = "heads2"
expect = { loss = "better" }
"""


def cell(root: Path, study: str, name: str, seed: int, *settings: str, loss: float = 0.0, **more: Any) -> Path:
    """One run of a study."""
    own = OWN.get(name, (0.0,) * 9)[seed - 1] if seed <= 3 else 0.0
    by = loss + NOISE[(seed - 1) % len(NOISE)] + own
    run = variant(root, f"{study}.{name}.s{seed}", f"seed={seed}", *settings, by=by, **more)
    change(run / "run.json", study={"name": study, "variant": name, "seed": seed})
    return run


def probed(recall: float, seed: int) -> dict[str, Any]:
    """Scores of the probes."""
    shift = (0.01, -0.02, 0.015)[seed - 1] * (0.9 + recall / 5)  # the differences vary as well
    found = {"recall<110": recall + shift, "recall>=110": recall - 0.05 - shift, "rhyme": 0.98}
    return {"probes": found, "probe_places": dict.fromkeys(found, 2_000)}


def attention(root: Path, seeds: Sequence[int] = (1, 2, 3)) -> None:
    """The study."""
    for seed in seeds:
        cell(root, "att", "global", seed, scored=probed(0.62, seed))
        window = ("model.attention=window", "model.window=16")
        cell(root, "att", "win16", seed, *window, loss=0.05, scored=probed(0.09, seed))
        cell(root, "att", "heads2", seed, "model.n_heads=2", loss=0.0005, scored=probed(0.61, seed))
        cell(root, "att", "leaky", seed, "model.causal=false", loss=-0.8, verdicts=[LEAK], scored=probed(0.99, seed))
        hot: Mapping[str, Any] = {"state": "failed", "step": 310, "reason": "the loss is not a number"}
        cell(root, "att", "hot", seed, "optimizer.lr=0.3", loss=0.3, **(hot if seed == 2 else {}))
    (root / "att.study.toml").write_text(FILE, encoding="utf-8")


def entries(root: Path) -> list[RunEntry]:
    """All runs, by name."""
    return [read_entry(path) for path in sorted(root.iterdir()) if path.is_dir()]


def standings(
    root: Path, pinned: str = "", files: Mapping[str, RequestedStudy] | None = None
) -> dict[str, VariantResult]:
    """Every variant beside its baseline, by name."""
    known = study_files(root) if files is None else files
    made = VariantEvaluator().evaluate(Grouping().group(entries(root)), known, root / pinned if pinned else None)
    return {standing.name: standing for standing in made}
