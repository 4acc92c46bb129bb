"""The second implementation of the way from a file to scores agrees in every cell, and hears every planted fault."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import capabilities
from engine.base.errors import InputError
from engine.config import presets
from engine.config.keys import parse_override
from engine.config.schema import RunConfig
from engine.config.tasks import TASKS
from engine.data import corpora, objectives, rows
from engine.data.corpora import TextCorpus
from engine.data.corpus import Corpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.objectives import Batch
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.splits import Split
from engine.evaluation import metrics
from engine.tasks import classification, spans, task, text, translation
from engine.tasks.classification import PooledBatch
from engine.tasks.task import Task, make_task
from engine.training.self_check import check_examples_against_files, full_vocabulary_copy
from engine.training.small_corpora import write_like
from engine.training.written_out import MOST_FILES, ExampleInverter

pytestmark = pytest.mark.usefixtures("cached_corpora")

TEXT = ("data.corpus_size=20000", "model.d_model=16", "model.n_heads=2", "model.context_length=32")
BPE = (*TEXT, "data.tokenizer=bpe", "data.bpe_size=300")
PAIRS = ("data.corpus_size=600", "data.bpe_size=400", "model.d_model=32")
ROWS = ("data.corpus_size=600", "model.d_model=32")


def verdict(preset: str, *changes: str) -> str:
    config = presets.resolve(presets.find(preset), overrides=[parse_override(change) for change in changes])
    task = make_task(config, None)
    config = task.resolve_config(config, "", 1)
    found = check_examples_against_files(config, task, full_vocabulary_copy(config, task.vocab_size))
    return found.why if found.status != "passed" else ""


Plant = Callable[[pytest.MonkeyPatch], None]


def unshifted(patch: pytest.MonkeyPatch) -> None:
    """The decoder reads its own labels (transformers#31673)."""
    right = rows.source_target_batch

    def wrong(*given, **more) -> Batch:
        batch = right(*given, **more)
        return replace(batch, tokens=batch.targets.clamp(min=0))

    patch.setattr(rows, "source_target_batch", wrong)


def class_appended(patch: pytest.MonkeyPatch) -> None:
    right = classification.ClassificationObjective.class_batch

    def wrong(self, texts, classes, device="cpu"):
        texts = [np.append(text, label) for text, label in zip(texts, classes, strict=True)]
        return right(self, texts, classes, device)

    patch.setattr(classification.ClassificationObjective, "class_batch", wrong)


def boundary_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(text, "boundary_token", lambda config, tokenizer: None)


def boundary_ignored_in_training(patch: pytest.MonkeyPatch) -> None:
    right = text.training_batches
    patch.setattr(text, "training_batches", lambda *given: right(*given[:-1], None))


def trains_on_validation(patch: pytest.MonkeyPatch) -> None:
    """The training split is scored as validation."""
    right = corpora.remaining_split_spans

    def wrong(length, data, official):
        found = right(length, data, official)
        start, stop = found["validation"]
        return found | {"validation": (0, stop - start)}

    patch.setattr(corpora, "remaining_split_spans", wrong)


def scores_training(patch: pytest.MonkeyPatch) -> None:
    right = text.TextTask.scorer
    patch.setattr(text.TextTask, "scorer", lambda self, config, device, split="": right(self, config, device, "train"))


def bits_by_characters(patch: pytest.MonkeyPatch) -> None:
    right = text.sum_sizes

    def wrong(sizes):
        found = right(sizes)
        return found._replace(bytes=found.characters)

    patch.setattr(text, "sum_sizes", wrong)


def top_five(patch: pytest.MonkeyPatch) -> None:
    right = metrics.score_batches

    def wrong(model, batches, **more):
        batches = list(batches)
        found = right(model, batches, **more)
        with torch.no_grad():
            near = [
                (batch.target_logits(model(*batch.inputs)).topk(5).indices == batch.targets[..., None]).any(-1)[
                    batch.targets != objectives.IGNORED
                ]
                for batch in batches
            ]
        return replace(found, correct=torch.cat(near).numpy())

    for module in (metrics, task, text):
        patch.setattr(module, "score_batches", wrong)


def padding_votes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PooledBatch, "target_logits", lambda self, logits: logits.mean(1, keepdim=True))


def source_padding_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Batch, "inputs", property(lambda self: self.texts))


def learns_from_validation(patch: pytest.MonkeyPatch) -> None:
    """Byte pairs of both splits."""
    right = text.make_tokenizer

    def wrong(corpus, config):
        whole = Split(corpus.splits["train"].text + corpus.splits["validation"].text)
        return right(replace(corpus, splits=corpus.splits | {"train": whole}), config)

    patch.setattr(text, "make_tokenizer", wrong)


def pairs_learn_from_validation(patch: pytest.MonkeyPatch) -> None:
    right = translation.make_tokenizer

    def wrong(corpus, config):
        both = [corpus.splits[split] for split in ("train", "validation")]
        whole = replace(both[0], sources=both[0].sources + both[1].sources, targets=both[0].targets + both[1].targets)
        return right(replace(corpus, splits=corpus.splits | {"train": whole}), config)

    patch.setattr(translation, "make_tokenizer", wrong)


def mean_of_means(patch: pytest.MonkeyPatch) -> None:
    def wrong(self) -> float:
        thirds = np.array_split(self.nll, range(7, len(self.nll), 7))
        return float(np.mean([part.mean() for part in thirds]))

    patch.setattr(metrics.TargetScores, "loss", property(wrong))


def lowercased(patch: pytest.MonkeyPatch) -> None:
    """Every text is lowercased, asked or not."""
    wrong = lambda config, texts: [text.lower() for text in texts]
    patch.setattr(classification, "apply_case", wrong)


def first_token_lost(patch: pytest.MonkeyPatch) -> None:
    right = rows.pair_batch

    def wrong(pairs, *given, **more):
        return right(replace(pairs, targets=[target[1:] for target in pairs.targets]), *given, **more)

    patch.setattr(translation, "pair_batch", wrong)


def end_not_scored(patch: pytest.MonkeyPatch) -> None:
    """The last token of each answer counts for nothing."""
    right = objectives.shifted_batch

    def wrong(*given):
        batch = right(*given)
        last = (batch.targets != objectives.IGNORED).sum(1)
        for row, n in enumerate(last.tolist()):
            place = (batch.targets[row] != objectives.IGNORED).nonzero()[-1]
            batch.targets[row, place] = objectives.IGNORED if n > 1 else batch.targets[row, place]
        return batch

    for module in (objectives, spans):
        patch.setattr(module, "shifted_batch", wrong)


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


@pytest.mark.parametrize(
    "plant,preset,changes", FAULTS, ids=[f"{plant.__name__}-{preset}" for plant, preset, _ in FAULTS]
)
def test_a_planted_fault_is_heard(plant: Plant, preset: str, changes: tuple[str, ...]) -> None:
    assert verdict(preset, *changes) == ""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert verdict(preset, *changes)


# Cells: every objective with every tokenizer that it allows, on every kind of data that it reads.

TOKENIZERS = ("characters", "bpe", "words", "bytes")
FORMATS = {
    "text": (".txt", ".jsonl", ".csv", ".parquet", "large", "generated"),
    "pairs": (".tsv", ".jsonl", ".csv", ".parquet", "generated"),
    "documents": ("folder", "generated"),
    "labelled": (".csv", "generated"),
}
BASES = {  # a preset of each objective, and what makes it so
    "next-token": ("demo", ()),
    "masked": ("encoder-mlm", ()),
    "copy": ("copy", ()),
    "reverse": ("reverse", ()),
    "continuation": ("copy", ("objective.kind=continuation",)),
    "shifted": ("copy", ("objective.kind=shifted", "train.allow_leak=true")),
    "translation": ("phrasebook", ()),
    "summarization": ("headlines", ()),
    "span-corruption": ("biographies-pretrain", ()),
    "question-answer": ("biographies-scratch", ()),
    "classification": ("bulletins", ()),
}
GENERATED = {"text": 20_000, "pairs": 600, "documents": 40, "labelled": 600}
CELLS = [(kind, tokenizer, form) for kind in TASKS for tokenizer in TOKENIZERS for form in FORMATS[TASKS[kind].corpus]]


CONTEXT = {"text": 32, "pairs": 192, "documents": 96, "labelled": 48}


def like(on: str, source: Path) -> Corpus:
    """A corpus of a kind, read from that path."""
    known = ("like", "like", str(source))
    made = {
        "text": lambda: TextCorpus(*known, {}),
        "pairs": lambda: ParallelCorpus(*known, ("source", "target"), {}),
        "documents": lambda: DocumentCorpus(*known, (), {}),
        "labelled": lambda: LabelledCorpus(*known, (), (), {}),
    }
    return made[on]()


def cell(kind: str, tokenizer: str, form: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[RunConfig, Task]:
    preset, more = BASES[kind]
    on = TASKS[kind].corpus
    changes = [*more, f"data.tokenizer={tokenizer}", "model.d_model=16", "model.n_heads=2", "data.bpe_size=300"]
    changes += [f"model.context_length={CONTEXT[on]}"]
    if form == "generated":
        changes += [f"data.corpus_size={GENERATED[on]}"]
    else:
        example = folder / f"example{form if form.startswith('.') else '.txt'}"
        example.touch()
        (folder / "corpus").mkdir()
        changes += [f"data.corpus={write_like(like(on, example), folder / 'corpus', 0.9).corpus}"]
        if form == "large":
            patch.setattr(corpora, "LARGE", 0)
    config = presets.resolve(presets.find(preset), overrides=[parse_override(change) for change in changes])
    capabilities.require_valid(config, "here")
    task = make_task(config, None)
    return task.resolve_config(config, "", 1), task


def refused(tokenizer: str, on: str, form: str) -> str:
    """Why there is no such run; "" if there is."""
    if on == "pairs" and tokenizer == "words":
        return "translations use characters or byte pairs"
    if on != "text" and tokenizer == "bytes":
        return "is for texts"
    return "playlets" if on == "text" and form == "generated" and tokenizer != "characters" else ""


@pytest.mark.parametrize("kind,tokenizer,form", CELLS, ids=["-".join(one) for one in CELLS])
def test_every_cell_is_as_written_out(
    kind: str, tokenizer: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound code passes in every cell; those that are left out are refused, with a reason."""
    if form == ".parquet":
        pytest.importorskip("pyarrow")
    if why := refused(tokenizer, TASKS[kind].corpus, form):
        with pytest.raises(InputError, match=why):
            cell(kind, tokenizer, form, tmp_path, monkeypatch)
        return
    config, task = cell(kind, tokenizer, form, tmp_path, monkeypatch)
    found = check_examples_against_files(config, task, full_vocabulary_copy(config, task.vocab_size))
    assert found.status == "passed", found.why
    looked_up = "a second reading of the corpus" in found.why
    assert looked_up == (form != "large"), found.why  # a large text's own lines are not looked up


def test_many_files_and_one_that_cannot_be_read_are_not_looked_up(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 50):
        (tmp_path / f"{number:03}.txt").write_text(f"The {number}th of many short stories is about number {number}.\n")
    assert verdict("demo", *TEXT, f"data.corpus={tmp_path}", "data.tokenizer=bytes") == ""
    for number in range(MOST_FILES):
        (tmp_path / f"{number:03}.txt").unlink()
    (tmp_path / "other.gz").write_bytes(b"no archive")
    assert verdict("demo", *TEXT, f"data.corpus={tmp_path}", "data.tokenizer=bytes") == ""


def test_shares_are_rounded_as_the_splits_are() -> None:
    assert verdict("demo", *TEXT, "data.validation_fraction=0.3", "data.test_fraction=0.2") == ""


@pytest.mark.parametrize("preset", ["biographies-scratch", "phrasebook", "bulletins", "demo"])
def test_an_epoch_may_end_within_a_step(preset: str) -> None:
    small = {"biographies-scratch": "40", "demo": "20000"}.get(preset, "600")
    assert verdict(preset, f"data.corpus_size={small}", "train.accumulation=3", "model.d_model=32") == ""


def test_an_objective_that_is_not_written_out_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ExampleInverter, "copy")
    assert verdict("copy", *TEXT) == ""
