"""The path from a file to scores, written out by hand: sound for every cell, and deaf to none of the planted faults."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.config import presets
from engine.config.keys import parse_override
from engine.config.schema import RunConfig
from engine.data import corpora, loader, objectives, rows
from engine.data.corpora import AnySplit, Split
from engine.data.objectives import Batch, PooledBatch
from engine.evaluation import metrics, scorers
from engine.generation import classifying
from engine.training import classification_task, text_task, translation_task
from engine.training.self_check import check_examples, reading_copy
from engine.training.task import Task, make_task
from engine.training.written_out import check_own_batches

pytestmark = pytest.mark.usefixtures("cached_corpora")

TEXT = ("data.corpus_size=20000", "model.d_model=16", "model.n_heads=2", "model.context_length=32")
BPE = (*TEXT, "data.tokenizer=bpe", "data.bpe_size=300")
PAIRS = ("data.corpus_size=600", "data.bpe_size=400", "model.d_model=32")
ROWS = ("data.corpus_size=600", "model.d_model=32")


def verdict(preset: str, *changes: str) -> str:
    config = presets.resolve(presets.find(preset), overrides=[parse_override(change) for change in changes])
    task = make_task(config, None)
    config = task.resolved(config, "", 1)
    found = check_examples(config, task, reading_copy(config, task.vocab_size))
    return found.why if found.verdict != "ok" else ""


Plant = Callable[[pytest.MonkeyPatch], None]


def unshifted(patch: pytest.MonkeyPatch) -> None:
    """The decoder reads its own labels (transformers#31673)."""
    right = rows.written_from

    def wrong(*given, **more) -> Batch:
        batch = right(*given, **more)
        return replace(batch, tokens=batch.targets.clamp(min=0))

    patch.setattr(rows, "written_from", wrong)


def class_appended(patch: pytest.MonkeyPatch) -> None:
    right = objectives.Classification.classified

    def wrong(self, texts, classes, device="cpu"):
        texts = [np.append(text, label) for text, label in zip(texts, classes, strict=True)]
        return right(self, texts, classes, device)

    patch.setattr(objectives.Classification, "classified", wrong)


def boundary_ignored(patch: pytest.MonkeyPatch) -> None:
    for module in (scorers, text_task):
        patch.setattr(module, "boundary_of", lambda config, tokenizer: None)


def boundary_ignored_in_training(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(text_task, "boundary_of", lambda config, tokenizer: None)


def trains_on_validation(patch: pytest.MonkeyPatch) -> None:
    """The training split is scored as validation."""
    right = corpora.split_text
    cuts = corpora.cuts

    def wrong(length, data, official):
        found = cuts(length, data, official)
        start, stop = found["validation"]
        return found | {"validation": (0, stop - start)}

    patch.setattr(corpora, "cuts", wrong)
    assert right


def scores_training(patch: pytest.MonkeyPatch) -> None:
    right = text_task.TextTask.scorer
    patch.setattr(text_task.TextTask, "scorer", lambda self, config, device, split="": right(self, config, device, "train"))


def bits_by_characters(patch: pytest.MonkeyPatch) -> None:
    right = scorers.by_text
    patch.setattr(scorers, "by_text", lambda s, sizes, *more: right(s, sizes._replace(bytes=sizes.characters), *more))


def top_five(patch: pytest.MonkeyPatch) -> None:
    right = metrics.score_batches

    def wrong(model, batches, **more):
        batches = list(batches)
        found = right(model, batches, **more)
        with torch.no_grad():
            near = [
                (batch.at_targets(model(*batch.inputs)).topk(5).indices == batch.targets[..., None]).any(-1)[
                    batch.targets != objectives.IGNORED
                ]
                for batch in batches
            ]
        return replace(found, correct=torch.cat(near).numpy())

    for module in (metrics, scorers):
        patch.setattr(module, "score_batches", wrong)


def padding_votes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PooledBatch, "at_targets", lambda self, logits: logits.mean(1, keepdim=True))


def source_padding_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Batch, "inputs", property(lambda self: self.texts))


def learns_from_validation(patch: pytest.MonkeyPatch) -> None:
    """Byte pairs of both splits."""
    right = text_task.made_for

    def wrong(corpus, config):
        whole = Split(corpus.splits["train"].text + corpus.splits["validation"].text)
        return right(replace(corpus, splits=corpus.splits | {"train": whole}), config)

    patch.setattr(text_task, "made_for", wrong)


def pairs_learn_from_validation(patch: pytest.MonkeyPatch) -> None:
    right = translation_task.make_tokenizer

    def wrong(corpus, config):
        both = [corpus.splits[split] for split in ("train", "validation")]
        whole = replace(
            both[0], sources=both[0].sources + both[1].sources, targets=both[0].targets + both[1].targets
        )
        return right(replace(corpus, splits=corpus.splits | {"train": whole}), config)

    patch.setattr(translation_task, "make_tokenizer", wrong)


def mean_of_means(patch: pytest.MonkeyPatch) -> None:
    def wrong(self) -> float:
        thirds = np.array_split(self.nll, range(7, len(self.nll), 7))
        return float(np.mean([part.mean() for part in thirds]))

    patch.setattr(metrics.TokenScores, "loss", property(wrong))


def lowercased(patch: pytest.MonkeyPatch) -> None:
    """Every text is lowercased, asked or not."""
    wrong = lambda config, texts: [text.lower() for text in texts]
    for module in (classifying, classification_task):
        patch.setattr(module, "in_case", wrong)


def first_token_lost(patch: pytest.MonkeyPatch) -> None:
    right = rows.pair_batch

    def wrong(pairs, *given, **more):
        return right(replace(pairs, targets=[target[1:] for target in pairs.targets]), *given, **more)

    for module in (rows, scorers):
        patch.setattr(module, "pair_batch", wrong)


def end_not_scored(patch: pytest.MonkeyPatch) -> None:
    """The last token of each answer counts for nothing."""
    right = objectives.shifted_rows

    def wrong(*given):
        batch = right(*given)
        last = (batch.targets != objectives.IGNORED).sum(1)
        for row, n in enumerate(last.tolist()):
            place = (batch.targets[row] != objectives.IGNORED).nonzero()[-1]
            batch.targets[row, place] = objectives.IGNORED if n > 1 else batch.targets[row, place]
        return batch

    patch.setattr(objectives, "shifted_rows", wrong)


FAULTS: list[tuple[Plant, str, tuple[str, ...]]] = [
    (unshifted, "phrasebook", PAIRS),
    (first_token_lost, "phrasebook", PAIRS),
    (source_padding_seen, "phrasebook", PAIRS),
    (pairs_learn_from_validation, "phrasebook", PAIRS),
    (end_not_scored, "headlines-decoder", ("data.corpus_size=600", "model.d_model=32")),
    (class_appended, "bulletins", ROWS),
    (padding_votes, "bulletins", ROWS),
    (lowercased, "bulletins", ROWS),
    (boundary_ignored, "demo", BPE),
    (boundary_ignored_in_training, "demo", BPE),
    (trains_on_validation, "demo", TEXT),
    (scores_training, "demo", TEXT),
    (bits_by_characters, "demo", (*TEXT, "data.tokenizer=bytes")),
    (top_five, "demo", TEXT),
    (learns_from_validation, "demo", BPE),
    (mean_of_means, "demo", TEXT),
]


@pytest.mark.parametrize("plant,preset,changes", FAULTS, ids=[f"{plant.__name__}-{preset}" for plant, preset, _ in FAULTS])
def test_a_planted_fault_is_heard(plant: Plant, preset: str, changes: tuple[str, ...]) -> None:
    assert verdict(preset, *changes) == ""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert verdict(preset, *changes)
