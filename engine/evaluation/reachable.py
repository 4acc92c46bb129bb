"""The floor reachable at a context and stride: the loss of a Bayes-optimal predictor that sees only its window.

The entropy floor of a generated text assumes the whole past. A model of context T scored every S characters sees
between T − S and T characters of it, and no training makes up for the rest.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.data.cache import cached_numbers
from engine.data.splits import AnySplit
from engine.data.synthetic import playlets
from engine.data.synthetic.belief import WindowFilter
from engine.data.synthetic.grammar import GeneratedText
from engine.evaluation.metrics import scoring_windows
from engine.runs.records import Floor

VERSION = 1  # of the filters; cached floors of other versions are ignored
FILTERS: Mapping[str, Callable[[], WindowFilter[Any]]] = {playlets.VERSION: playlets.window_filter}
MOST_READ = 2_000_000  # most characters read in windows, about ten seconds; beyond that, evenly spaced windows
ERROR_PROBABILITY = 1e-6  # probability that an honest model is below the bound


@dataclass(frozen=True)
class ReachableFloor:
    """The optimal window predictor's loss on each character of a text, in nats."""

    # (n,) −log p(character | its window); nan for the first character, and where no window was read
    nats: NDArray[np.float64]
    # Their mean; its standard error as an estimate for all texts of the grammar, clustered by scene; and how far, in
    # nats per character, a model can fall below `nats` by luck, at odds of one in a million.
    facts: Floor


def reachable_floor(split: AnySplit, context: int, stride: int) -> ReachableFloor | None:
    """Return a split's floor in the windows of `score_tokens`; None without a filter for its text.

    If there are too many windows, evenly spaced ones are read, and their mean above the floor given the whole past is
    used for all.
    """
    generated = split.generated
    if generated is None or generated.version not in FILTERS or len(generated.text) < 2:
        return None
    plan = scoring_windows(len(generated.text), context, stride)
    every = -(-len(plan) * min(context, len(generated.text)) // MOST_READ)
    chosen = plan[every // 2 :: every]
    parts = (VERSION, generated.version, split.sha256, context, stride, every)
    nats = cached_numbers("floors", parts, lambda: _window_losses(generated, chosen))
    whole_past = -generated.log_probability
    whole_past[0] = np.nan  # the first character is not predicted
    mean, se = generated.clustered_mean(nats)
    missing, missing_se = generated.clustered_mean(nats - whole_past)  # the cost of what the window does not show
    if every > 1:
        whole, whole_se = generated.clustered_mean(whole_past)
        mean, se = whole + missing, math.hypot(whole_se, missing_se)
    luck = _lower_confidence_margin(generated, missing, int(np.isfinite(nats).sum()), context, stride * every)
    some = {"windows": [len(chosen), len(plan)]} if every > 1 else {}
    facts = Floor.create(nats_per_char=mean, se=se, luck=luck, context=context, stride=stride, **some)
    return ReachableFloor(nats, facts)


def _window_losses(generated: GeneratedText, plan: Sequence[tuple[int, int, int]]) -> NDArray[np.float64]:
    reads, whole_past = FILTERS[generated.version](), -generated.log_probability
    found = np.full(len(generated.text), np.nan)
    for start, length, scored in plan:
        stop = start + length + 1
        found[stop - scored : stop] = reads.nats(generated.text, start, stop, whole_past)[-scored:]
    return found


def _lower_confidence_margin(generated: GeneratedText, missing: float, n: int, context: int, apart: int) -> float:
    """The nats per character by which an honest model can be below the reachable floor, except once in a million: the
    tighter of two bounds by Ville's inequality (1939); see "How far luck goes" in docs/explanation/playlets.md.
    """
    nats = -math.log(ERROR_PROBABILITY)
    longest = int(np.diff(generated.units, append=len(generated.text)).max())
    sets = -(-(context + longest) // apart)
    return min(sets * nats / n, max(0.0, missing) + nats / n)
