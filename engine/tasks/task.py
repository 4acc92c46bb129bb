"""What every task provides: an encoded corpus and its tokenizer, its batches, scorer and sampler; and its factory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import nn

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.lints import Lint, lint
from engine.config.measures import MEASURES
from engine.config.schema import RowFacts, RunConfig
from engine.config.toml import resolve_config
from engine.data.corpora import TextCorpus
from engine.data.corpus import Corpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.loader import BatchStream
from engine.data.objectives import Batch
from engine.data.overlap import Overlap
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.rows import BucketedBatches
from engine.data.text_files import LATEST, Reading
from engine.data.tokenizers import AnyTokenizer, Tokenizer, read_tokenizer
from engine.evaluation.metrics import TargetScores, score_batches
from engine.model.transformer import Network
from engine.ranks import SINGLE
from engine.runs.reader import RunReader
from engine.runs.record_version import RECORD_VERSION
from engine.runs.records import DataFacts, EvaluationScores, ModelOutput, OverlapFacts, Sample, Translations
from engine.runs.verdict import Verdict
from engine.tasks.pipeline import Pipeline

OWN_SPLIT = "test"  # the split that files of your own count as
N_SAMPLES = 5  # sentences, documents or questions
SEPARATE_MEASURES = ("loss", "perplexity", "accuracy", "bits per character")  # measures with a line of their own
AnyTask = TypeVar("AnyTask", bound="Task")
ReportLine = tuple[str, str] | str  # a label and its value, or a line without a label


class OwnFiles(NamedTuple):
    """Files of your own to score, and the run that scores them."""

    files: Mapping[str, str]  # by the option of `evaluate` that names each: `TaskKind.files`
    reading: Reading
    config: RunConfig
    tokenizer: AnyTokenizer
    device: torch.device
    facts: DataFacts  # the run's, with its classes and languages
    data_dir: Path | None


class Scorer(ABC):
    """Scores one split; `between` is called between batches and may raise to stop."""

    config: RunConfig
    probe_format: ClassVar[str] = tr("{share:>6.1%} of {places:,} places")  # what is said of a probe
    scores_own_files = False  # whether it scores files of your own, whose rows are listed one by one
    _rows: Sequence[Mapping[str, Any]] = ()  # the last record's scores of each
    ranks = SINGLE  # that score together
    overlap: Overlap | None = None  # of your own files with the run's training data, if known

    @abstractmethod
    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        """Return the scores of a model, be it in training or evaluation mode."""

    @abstractmethod
    def batches(self) -> Iterable[Batch]:
        """Return the split's examples, the same each time."""

    @property
    def activity(self) -> str:
        """What is being done while a record is computed, in words."""
        return tr("scoring the split")

    @property
    def loss_unit(self) -> str:
        """The unit that the loss is averaged over, and how it was measured."""
        return tr(self.config.task.unit)

    def floor(self) -> dict[str, Any]:
        """Return the floors that a record's `excess` is measured from, in the format of data.json."""
        return {}

    def evaluate(self, model: Network, n_shown: int) -> tuple[dict[str, Any], list[ReportLine]]:
        """Return the scores of a model as JSON and in words, and the `shown` best and worst of its texts."""
        record = self.score_model(model).dump()
        if "excess" in record:
            record["floor"] = self.floor()
        lines = [*self.report_lines(record)]
        if self._rows:
            record["rows"] = [*map(dict, self._rows)]
        return record, lines

    def report_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        """Yield what a record says, as it suits every task."""
        yield tr("loss"), tr("{loss:.4f} nats per {per}", loss=record["loss"], per=self.loss_unit)
        yield tr("perplexity"), f"{record['perplexity']:.4f}"
        if "bits_per_character" in record:
            yield tr("bits per character"), f"{record['bits_per_character']:.4f}"
        yield tr("accuracy"), f"{record['accuracy']:.2%}"
        for measure in MEASURES:
            apart = measure.of_loss or measure.name in SEPARATE_MEASURES
            if measure.key in record and measure.charted and not apart:
                yield tr(measure.name), measure.exact_format.format(record[measure.key])
        yield from self.extra_lines(record)
        for name, share in record["probes"].items():
            yield name, self.probe_format.format(share=share, places=record["probe_places"][name])

    def extra_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        """Yield what else its record says."""
        yield from ()

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TargetScores:
        """Return the nll of every target, ends and marks included, without smoothing."""
        context = self.config.model.context_length
        return score_batches(model, self.batches(), context=context, stride=context, between=between, ranks=self.ranks)

    def outputs(self) -> Translations | None:
        """Return the outputs scored for the last record, if any."""
        return None

    def predictions(self) -> str | None:
        """Return the last record's answers, one per line (predictions.txt), if questions are asked."""
        return None


@dataclass
class RowScorer(Scorer, Generic[AnyTask]):
    """Scores the rows of one split of a task."""

    task: AnyTask
    config: RunConfig
    device: torch.device
    split: str
    scores_own_files: bool = False
    overlap: Overlap | None = None


def evaluation_batch(config: RunConfig) -> int:
    return config.evaluation.batch_size or 2 * config.train.batch_size


class Sampler(ABC):
    """Writes samples during training: text with its own generator, seeded by the step, and everything else greedily."""

    @abstractmethod
    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        """Return what a model writes; `between` is called between tokens and may raise to stop."""


@dataclass(frozen=True)
class RowSampler(Sampler):
    """Writes a text for each of some fixed sources."""

    sources: Sequence[str]  # as they are shown
    references: Sequence[str]  # the right text for each; "" if unknown
    # for each source, returns the fields of its `ModelOutput` that are written; the callback is as in `sample`
    write: Callable[[Network, Callable[[], None]], Sequence[Mapping[str, Any]]]

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        written = zip(self.sources, self.references, self.write(model, between), strict=True)
        rows = [ModelOutput.create(source=source, reference=right, **output) for source, right, output in written]
        return Sample.create(step=step, prompt=rows[0].source, text=rows[0].text, translations=tuple(rows))


def sample_prompts(config: RunConfig) -> list[str]:
    return [line for line in config.evaluation.sample_prompt.splitlines() if line.strip()]


def spread_indices(held_out: Sequence[object]) -> list[int]:
    return [int(i) for i in np.linspace(0, len(held_out) - 1, min(N_SAMPLES, len(held_out)))]


@dataclass(frozen=True)
class Task(ABC):
    """An encoded corpus with its tokenizer, and all they determine; `records` as in `TextScorer`."""

    corpus: TextCorpus | ParallelCorpus | DocumentCorpus | LabelledCorpus
    tokenizer: AnyTokenizer
    records: int = field(default=RECORD_VERSION, kw_only=True)

    corpus_class: ClassVar[type[Corpus]]
    hash_prefix: ClassVar[str] = ""  # prefix of its keys in the corpus's `sha256`: this + split

    @classmethod
    def load(
        cls,
        config: RunConfig,
        data_dir: Path | None,
        given_tokenizer: AnyTokenizer | None = None,
        version: int = LATEST,
    ) -> Self:
        """Load and encode the corpus of a config; raise as `load_corpus` and `of` do."""
        from engine.data.catalogue import load_corpus  # with all kinds of corpora, which asking a model does without

        return cls.from_corpus(load_corpus(cls.corpus_class, config.data, data_dir, version), config, given_tokenizer)

    @classmethod
    @abstractmethod
    def from_corpus(cls, corpus: Any, config: RunConfig, given_tokenizer: AnyTokenizer | None = None) -> Self:
        """Encode a corpus with the `given` tokenizer, of the run that this one starts from, or else with its own.
        `InputError`: too little of it for the context, or text that the given tokenizer cannot encode.
        """

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> Scorer:
        """Return the scorer of files of your own. `InputError`: with the file's name, and where in it."""
        raise NotImplementedError

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    def rows(self, split: str) -> Iterator[dict[str, Any]]:
        """Yield a split's examples as they are read, each with its text and tokens; none where it is one text."""
        yield from ()

    @abstractmethod
    def n_predicted(self, split: str) -> int:
        """Return the number of tokens predicted in the training or validation split."""

    def corpus_facts(self, **more: Any) -> dict[str, Any]:
        """Return what data.json says first: which corpus it is, and `more` of it."""
        reading = self.corpus.reading
        return {
            "corpus": self.corpus.version,
            "source": self.corpus.source,
            **more,
            "notes": self.corpus.all_notes,
            "reading": reading.version,
            "encodings": reading.findings.encodings,
            "sha256": self.corpus.sha256,
        }

    @cached_property
    def overlap(self) -> Overlap | None:
        """The share of its validation split that is also in training."""
        return self.overlap_with(self)

    @property
    def overlap_facts(self) -> OverlapFacts | None:
        return None if self.overlap is None else OverlapFacts.create(**self.overlap.to_json())

    def data_verdicts(self) -> list[Verdict]:
        """Return the verdicts on its data, which are known before training."""
        return [] if self.overlap is None else [self.overlap.verdict]

    def overlap_with(self, trained: Self) -> Overlap | None:
        """Return how much of its validation split another task of the same kind trains on."""
        corpora: tuple[Any, Any] = (trained.corpus, self.corpus)
        return self.overlap_between(corpora[0].splits["train"], corpora[1].splits["validation"], "validation")

    @staticmethod
    def overlap_between(train: Any, held_out: Any, split: str) -> Overlap | None:
        """Return how much of a held-out split is also in a training split."""
        raise NotImplementedError

    @classmethod
    def reload_training_split(cls, user_files: OwnFiles) -> Any:
        """Return the run's training split; None if it is not here or has changed."""
        from engine.data.catalogue import load_corpus

        try:
            corpus: Any = load_corpus(
                cls.corpus_class, user_files.config.data, user_files.data_dir, user_files.facts.reading
            )
        except InputError:
            return None
        same = corpus.sha256.get(f"{cls.hash_prefix}train") == user_files.facts.sha256.get(f"{cls.hash_prefix}train")
        return corpus.splits["train"] if same else None

    @classmethod
    def user_files_overlap(cls, train: Any, user_split: Any) -> Overlap | None:
        """Return how much of the user's files is also in the run's training split; None if that is not here."""
        return None if train is None else cls.overlap_between(train, user_split, "given")

    def corpus_only_tokenizer(self) -> AnyTokenizer | None:
        """Return the tokenizer that its corpus alone would get, if that is known at once."""
        return None

    def with_records_version(self, records: int) -> Self:
        """Return the same task with the scoring rules of a run's version of the records."""
        return replace(self, records=records)

    @abstractmethod
    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """Return the config with vocabulary, threads and durations filled in; raise `InputError` if they do not fit."""

    @abstractmethod
    def facts(self, config: RunConfig) -> DataFacts:
        """Return the run's data facts, with the losses of count-based baselines."""

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from lint(config, self.n_predicted("train"), self.n_predicted("validation"))
        yield from (Lint("data.corpus", note) for note in self.corpus.reading.findings.notes)

    @abstractmethod
    def batches(self, config: RunConfig, device: torch.device) -> BatchStream:
        """Return the training batches."""

    @abstractmethod
    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> Scorer:
        """Return the scorer of a split."""

    @abstractmethod
    def sampler(self, config: RunConfig) -> Sampler:
        """Return the sampler; raise `InputError` if the prompt has characters the model will never know."""


@dataclass(frozen=True)
class RowTask(Task):
    """A task whose examples are rows of any length."""

    @abstractmethod
    def batches(self, config: RunConfig, device: torch.device) -> BucketedBatches[Any]:
        """Return the training batches."""

    def padding_share(self, config: RunConfig) -> float:
        return round(self.batches(config, torch.device("cpu")).padding_share, 4)

    def check_sizes(self, config: RunConfig) -> dict[str, int | None]:
        """Return what `RowFacts` says besides the steps; raise `InputError` if the config's sizes do not fit."""
        return {}

    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        sizes = self.check_sizes(config)
        rows = RowFacts(self.batches(config, torch.device("cpu")).steps_per_epoch, **sizes)
        needed, tokens = require_min_vocab_size(config, self.vocab_size, self.tokenizer.kind), self.n_predicted("train")
        return resolve_config(config, where, vocab_size=needed, threads=threads, train_tokens=tokens, rows=rows)


def task_class(config: RunConfig) -> type[Task]:
    found: type[Task] = resolve_name(config.task.task)
    return found


def make_pipeline(model: Network, tokenizer: AnyTokenizer, config: RunConfig, classes: tuple[str, ...]) -> Pipeline:
    made: Pipeline = resolve_name(config.task.pipeline)(model, tokenizer, config, classes)
    return made


def make_task(
    config: RunConfig, data_dir: Path | None, tokenizer: AnyTokenizer | None = None, version: int = LATEST
) -> Task:
    return task_class(config).load(config, data_dir, tokenizer, version)


def task_of_run(reader: RunReader, data_dir: Path | None) -> Task:
    """Load a run's task with its scoring rules, and with its own tokenizer if that came from elsewhere."""
    config = reader.config
    foreign = config.train.init_from is not None or config.data.tokenizer == "loaded"
    kept = read_tokenizer(reader.path / "tokenizer.json") if foreign else None
    return make_task(config, data_dir, kept, reader.data.reading).with_records_version(reader.run.records)


def require_encodable(tokenizer: Tokenizer, text: str, where: str) -> None:
    """Refuse text that another run's tokenizer cannot encode; `where` says what it is, e.g. `its train split`."""
    place = tokenizer.first_unknown(text)
    if place is not None:
        character, line = text[place], text.count("\n", 0, place) + 1
        problem = Message(
            "{where} has {character!r} (U+{ord:04X}) at character {place:,} (line {line:,}), which the "
            "parent's tokenizer ({vocab_size} characters) does not have; remove it from the text, or "
            "leave out train.init_from",
            where=where,
            character=character,
            ord=ord(character),
            place=place + 1,
            line=line,
            vocab_size=tokenizer.vocab_size,
        )
        raise InputError(problem)


def require_tokenizer_kind(given_tokenizer: AnyTokenizer, config: RunConfig) -> None:
    """Refuse another run's tokenizer that is of another kind than the config's."""
    if given_tokenizer.kind != config.data.tokenizer:
        problem = Message(
            "train.init_from: data.tokenizer is '{tokenizer}', but the parent's tokenizer is '{kind}': its "
            "weights were trained on different tokens",
            tokenizer=config.data.tokenizer,
            kind=given_tokenizer.kind,
        )
        raise InputError(problem)


def require_min_vocab_size(config: RunConfig, n_tokens: int, token_noun: str) -> int:
    needed = config.min_vocab_size(n_tokens)
    if config.model.vocab_size is not None and config.model.vocab_size < needed:
        special = "".join(tr(" and {name}", name=name) for name in config.special_tokens)
        problem = Message(
            "model.vocab_size = {vocab_size}: the corpus has {found} different {of}{special}; leave it "
            "out, or set it to at least {needed}",
            vocab_size=config.model.vocab_size,
            found=n_tokens,
            of=tr(token_noun),
            special=special,
            needed=needed,
        )
        raise InputError(problem)
    return needed
