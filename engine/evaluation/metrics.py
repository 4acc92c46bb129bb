"""Loss, perplexity, bits per character, accuracy: Σ nll / Σ tokens over a whole split, never a mean of means.

Where a window starts matters (0.026 nats/char between two common choices), so a score's name includes context and
stride. Losses are in nats.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from engine.base.language import tr
from engine.data.loader import BatchStream, TextTokens
from engine.data.objectives import IGNORED, Batch
from engine.data.synthetic.grammar import TextProbe
from engine.model.transformer import evaluating
from engine.ranks import SCORE, SINGLE, Ranks

STRETCHES = 32


@dataclass(frozen=True)
class TargetScores:
    """The scores of m targets. For next-token: every token of a text but the first."""

    nll: NDArray[np.float64]  # (m,) float64, nats: −log p(target | its window)
    correct: NDArray[np.bool_]  # (m,) bool: the target was the likeliest token
    place: NDArray[np.int32]  # (m,) from 0: the target's place in its window
    context: int  # window length in tokens
    # tokens between two windows; each next token has at least context − stride tokens of history, once the text is that
    # old
    stride: int

    @property
    def total(self) -> float:
        """The nats of all targets together."""
        return math.fsum(self.nll)

    @property
    def loss(self) -> float:
        return self.total / len(self.nll)

    @property
    def perplexity(self) -> float:
        """e^loss; infinite where that overflows."""
        return math.exp(self.loss) if self.loss < 700 else math.inf

    @property
    def accuracy(self) -> float:
        return float(self.correct.mean())

    def profile(self) -> list[float | None]:
        """The mean nll by place in the window, in at most `STRETCHES` equal stretches; None if none is scored."""
        length = int(self.place.max()) + 1
        stretches = min(STRETCHES, length)
        stretch = self.place.astype(np.int64) * stretches // length
        counts = np.bincount(stretch, minlength=stretches)
        sums = np.bincount(stretch, weights=self.nll, minlength=stretches)
        return [float(total / n) if n else None for total, n in zip(sums, counts, strict=True)]

    def mean_at(self, places: NDArray[np.bool_]) -> float | None:
        """Return the mean nll over the targets at these places of their windows; None if there is none."""
        chosen = places[self.place]
        return math.fsum(self.nll[chosen]) / int(chosen.sum()) if chosen.any() else None

    def bits_per_character(self, n_characters: int) -> float:
        return self.total / math.log(2) / max(1, n_characters)


def confusion_matrix(truth: NDArray[np.int64], found: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """Return (C, C) how many texts of a class [row] were put into each class [column]."""
    return np.bincount(truth * n_classes + found, minlength=n_classes**2).reshape(n_classes, n_classes)


def macro_f1(counts: NDArray[np.int64]) -> float:
    """Return F1 averaged over classes, each of the same weight, from a confusion table (C, C). A class that neither
    occurs nor was found is left out.
    """
    right, all_ = np.diag(counts), counts.sum(0) + counts.sum(1)
    return float((2.0 * right[all_ > 0] / all_[all_ > 0]).mean())


def scoring_windows(n_tokens: int, context: int, stride: int) -> list[tuple[int, int, int]]:
    """Cut a text for scoring: (start, length, scored); the last `scored` of `length` targets count, each of the n − 1
    targets once, in the first window that has it. Window k starts at k · stride.
    """
    plan, done = [], 0
    for start in range(0, max(n_tokens - 1, 0), stride):
        stop = min(start + context, n_tokens - 1)
        if stop > done:
            plan.append((start, stop - start, stop - done))
            done = stop
    return plan


def score_tokens(
    model: nn.Module,
    tokens: TextTokens,
    *,
    context: int,
    stride: int,
    batch_size: int,
    between: Callable[[], None] = lambda: None,
    document_ends: Tensor | None = None,
    unknown: int | None = None,
    ranks: Ranks = SINGLE,
) -> TargetScores:
    """Score every token (n,) of a text but the first, once, deterministically. `batch_size` changes speed, not the
    score; `between` is called between batches and may raise to stop. No window sees across `ends`, (m,) places: each
    document is scored from the token that ends the one before. `unknown` as in `score_batches`.
    """
    if not 1 <= stride <= context:
        problem = tr("stride {stride} must be between 1 and the context, {context}", stride=stride, context=context)
        raise ValueError(problem)

    def batches() -> Iterator[Batch]:
        for (length, scored), group in groupby(scoring_windows(tokens.numel(), context, stride), key=lambda w: w[1:]):
            all_starts = torch.tensor([start for start, _, _ in group], device=tokens.device)
            for starts in torch.split(all_starts, batch_size):
                rows = tokens[starts[:, None] + torch.arange(length + 1, device=tokens.device)].long()  # (B, T + 1)
                targets = rows[:, 1:].clone()
                targets[:, : length - scored] = IGNORED
                yield Batch(rows[:, :-1], targets, scored * len(starts))

    def apart() -> Iterator[Batch]:
        """Windows of one length: what follows a document's end is no target, and nothing before sees it."""
        assert document_ends is not None
        plan = [
            (first + start, length - scored, length)
            for first, last in pairwise([0, *document_ends.tolist(), tokens.numel() - 1])
            for start, length, scored in scoring_windows(last - first + 1, context, stride)
        ]
        whole = lambda one: min(context, tokens.numel() - 1 - one[0])
        for length, group in groupby(plan, key=whole):
            for rows in torch.split(torch.tensor(list(group), device=tokens.device), batch_size):
                start, begin, end = rows[:, :, None].unbind(1)
                place = torch.arange(length + 1, device=tokens.device)
                read = tokens[start + place].long()
                inside = (place[:-1] >= begin) & (place[:-1] < end)
                yield Batch(read[:, :-1], read[:, 1:].masked_fill(~inside, IGNORED), int(inside.sum()))

    made = batches() if document_ends is None else apart()
    return score_batches(model, made, context=context, stride=stride, unknown=unknown, between=between, ranks=ranks)


def score_batches(
    model: nn.Module,
    batches: Iterable[Batch],
    *,
    context: int,
    stride: int,
    unknown: int | None = None,
    between: Callable[[], None] = lambda: None,
    ranks: Ranks = SINGLE,
) -> TargetScores:
    """Score all batches, at least one; `context` and `stride` only label the score. Predicting the token `unknown` does
    not say which word comes next, so it is never right. Ranks take turns at the batches, and rank 0 has the scores.
    """
    parts: list[NDArray[np.float64]] = []

    def own() -> None:
        with evaluating(model):
            for batch in islice(batches, ranks.rank, None, ranks.size):
                between()
                scored = batch.targets != IGNORED
                logits, targets = batch.target_logits(model(*batch.inputs))[scored].float(), batch.targets[scored]
                nll = F.cross_entropy(logits, targets, reduction="none")
                correct = logits.argmax(-1) == targets
                if unknown is not None:
                    correct &= targets != unknown
                columns = (nll, correct, scored.nonzero()[:, 1])
                parts.append(torch.stack([column.cpu().double() for column in columns], 1).numpy())

    if ranks.leads:
        ranks.broadcast_instruction(SCORE)
    ranks.run_collectively(own)
    nll, correct, place = np.concatenate([np.empty((0, 3)), *ranks.gather_round_robin(parts)]).T
    return TargetScores(nll.copy(), correct.astype(np.bool_), place.astype(np.int32), context, stride)


def nanogpt_loss(model: nn.Module, batches: BatchStream, n_batches: int) -> float:
    """NanoGPT's `estimate_loss`: the mean over random batches of their mean loss, nats per token. Comparable with
    published nanoGPT figures only: 20 batches of its CPU recipe have a standard error of 0.017.
    """
    losses = []
    with evaluating(model):
        for i in range(n_batches):
            batch = batches.batch(i, 0)
            logits = model(*batch.inputs).float()
            losses.append(F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).item())
    return math.fsum(losses) / len(losses)


def places_with_minimum_history(scores: TargetScores, probe: TextProbe) -> NDArray[np.bool_]:
    """Return (n,) the places that count in version 1 records: those with context − stride tokens of history."""
    counted: NDArray[np.bool_] = probe.at > scores.context - scores.stride
    return counted


def places_with_evidence(scores: TargetScores, probe: TextProbe) -> NDArray[np.bool_]:
    """Return (n,) the places of a probe that count: those with their evidence inside the window."""
    shown: NDArray[np.bool_] = probe.distance <= scores.place[probe.at - 1] + 1
    return shown


PlaceFilter = Callable[[TargetScores, TextProbe], NDArray[np.bool_]]


def probe_counts(
    scores: TargetScores, probes: tuple[TextProbe, ...], place_filter: PlaceFilter = places_with_evidence
) -> dict[str, tuple[int, int]]:
    """(right, counted) places of each probe that has any, one token a character."""
    result = {}
    for probe in probes:
        at = probe.at[place_filter(scores, probe)]
        if at.size:
            result[probe.name] = (int(scores.correct[at - 1].sum()), int(at.size))
    return result


def excess_over_floor(scores: TargetScores, floor: NDArray[np.float64]) -> float:
    """Return the nats per character above a perfect predictor, whose nll is `floor` (n,); nan where unknown."""
    known = np.isfinite(floor[1:])
    n = int(known.sum())
    return math.fsum(scores.nll[known]) / n - math.fsum(floor[1:][known]) / n


DistanceScore = list[int]  # [distance from, distance to, right, of]: characters, from ≤ distance < to; places


def scores_by_distance(
    scores: TargetScores, probes: tuple[TextProbe, ...], place_filter: PlaceFilter = places_with_evidence
) -> dict[str, list[DistanceScore]]:
    """Return the accuracy on the places in `probe_counts` by how far back the evidence is: a model's reach.

    Only places whose evidence lies inside the window count: at a stride of half the context, a third of what is 170
    characters back would otherwise be wrong because it is cut off. The stretches are the probe's own, so the counts of
    other texts and seeds can be added up. Parts of one family (near and far recall) are counted together; probes
    without borders are left out. Places outside all borders count in the nearest stretch.
    """
    found: dict[str, np.ndarray] = {}
    borders: dict[str, tuple[int, ...]] = {}
    for probe in probes:
        if len(probe.edges) < 2:
            continue
        family, last = probe.family or probe.name, len(probe.edges) - 2
        places = place_filter(scores, probe)
        stretch = np.searchsorted(probe.edges, probe.distance[places], side="right") - 1
        stretch = stretch.clip(0, last)
        right = scores.correct[probe.at[places] - 1]
        sums = np.stack([np.bincount(of, minlength=last + 1) for of in (stretch[right], stretch)])
        borders[family] = probe.edges
        found[family] = found.get(family, 0) + sums
    return {
        family: [
            [start, stop, int(right), int(of)]
            for start, stop, right, of in zip(borders[family], borders[family][1:], *sums, strict=False)
            if of
        ]
        for family, sums in found.items()
    }
