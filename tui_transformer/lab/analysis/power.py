"""What a study can detect, before it runs and after: the differences that it most likely calls better or worse."""

import math
from collections.abc import Iterable
from pathlib import Path

from engine.base.language import Message
from engine.config.keys import flatten
from engine.config.schema import RunConfig
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.statistics import PairedDifference, detectable_difference
from tui_transformer.lab.analysis.verdict import VariantEvaluator

ALIKE = ("data.corpus", "objective.kind", "train.steps")  # in studies whose differences vary about as much


def pooled_sd(pairs: Iterable[PairedDifference | None]) -> float | None:
    """Return the pooled standard deviation of differences over seeds; None if none varies."""
    known = [(pair.n - 1, pair.sd**2) for pair in pairs if pair is not None and pair.sd]
    degrees = sum(n for n, _ in known)
    return math.sqrt(sum(n * variance for n, variance in known) / degrees) if degrees else None


def similar_studies_sd(runs_dir: Path, config: RunConfig) -> float | None:
    """Return the `pooled_sd`, in nats, of paired differences in loss in a folder's studies that are like a config's."""
    look, asked = RunsFolder(runs_dir).scan(), flatten(config.dump())
    results = VariantEvaluator().evaluate(Grouping().group(look.entries), look.studies)
    compared = ((base.representative.config, r) for r in results if (base := r.family.baseline) is not None)
    return pooled_sd(r.difference(LAST) for ran, r in compared if all(ran.get(key) == asked.get(key) for key in ALIKE))


def power_sentence(seeds: int, variants: int, sd: float | None = None) -> str:
    """Return what so many seeds of so many variants, baseline included, can detect, in nats if `sd` is known; "" with
    one seed or nothing to compare.
    """
    if min(seeds, variants) < 2:
        return ""
    size = detectable_difference(seeds, variants)
    if sd is None:
        return Message(
            "With {n} seeds, this study has 80 % power to detect a difference of {size:.1f} sd.", n=seeds, size=size
        )
    return Message(
        "With {n} seeds, this study has 80 % power to detect a difference of {nats} nats ({size:.1f} sd).",
        n=seeds,
        nats=LAST.format_value(size * sd),
        size=size,
    )
