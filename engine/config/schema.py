"""RunConfig: everything that defines a run, the constraints between its sections, and how it is resolved."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from engine.base.language import Message
from engine.config import Tables
from engine.config.fields import Doc, Section, Seed, bookkeeping_field, in_steps
from engine.config.model import ModelConfig
from engine.config.schemes import ATTENTIONS
from engine.config.sections import (
    EXCLUSIVE,
    CheckpointConfig,
    DataConfig,
    EvaluationConfig,
    GenerationConfig,
    LogConfig,
    ObjectiveConfig,
    OptimizerConfig,
    TrainConfig,
)
from engine.config.tasks import TASKS, TaskKind


@dataclass(frozen=True)
class RowFacts:
    """Facts of a corpus of rows: steps to see every row once, the source's vocabulary if it differs, and classes."""

    steps_per_epoch: int
    source_vocab_size: int | None = None
    classes: int | None = None


class RunConfig(Section):
    """Everything that defines a run; running it again repeats the run."""

    schema_version: Annotated[Literal[1], Doc("version of the config format")] = Field(
        1, alias="schema", json_schema_extra={"bookkeeping": True}
    )
    preset: Annotated[str, Field(max_length=200), Doc("the preset that the config came from")] = bookkeeping_field("")
    description: Annotated[str, Field(max_length=2000), Doc("what the config is for, in one line")] = bookkeeping_field(
        "", editable=True
    )
    seed: Annotated[
        Seed, Doc("seed for the initial weights and the order of examples; other seeds show what is due to chance")
    ] = 1
    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    train: TrainConfig = TrainConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    generation: GenerationConfig = GenerationConfig()
    log: LogConfig = LogConfig()

    def dump(self) -> Tables:
        """Return the complete config as plain nested data; unset optional keys are left out."""
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for section, pairs in EXCLUSIVE.items():
            for usual, other in pairs:
                if other in data[section]:
                    del data[section][usual]
        return data

    @property
    def task(self) -> TaskKind:
        """The description of the objective; see `engine.config.tasks`."""
        return TASKS[self.objective.kind]

    @property
    def english_loss_unit(self) -> str:
        """What the loss is averaged over, in English."""
        return self.task.unit if self.trains_on_rows or self.data.tokenizer == "characters" else Message("token")

    @property
    def window_tokens(self) -> int:
        """Tokens of text in one example of the objective."""
        return self.task.window_tokens(self)

    @property
    def window_targets(self) -> int:
        """Places of one example that predict, or could predict, a token."""
        return self.task.window_targets(self)

    @property
    def trains_on_rows(self) -> bool:
        """Return whether it trains on rows of their own length, not on windows of one text."""
        return self.task.row_name != ""

    @property
    def has_source(self) -> bool:
        return self.model.architecture == "encoder-decoder"

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Tokens the objective needs besides the text's, numbered after them."""
        return self.task.special_tokens(self)

    def min_vocab_size(self, text_tokens: int) -> int:
        """Return the smallest vocabulary a model needs: the text's tokens and the objective's."""
        return text_tokens + len(self.special_tokens)

    @property
    def evaluation_stride(self) -> int:
        """Tokens between the starts of two evaluation windows; see `EvaluationConfig` for the default."""
        targets = self.window_targets
        if self.evaluation.stride is not None:
            return min(self.evaluation.stride, targets)
        on_playlets = self.data.corpus == "playlets" and self.task.continues
        return max(1, targets // 2) if on_playlets else targets

    def steps_per_epoch(self, train_tokens: int, batch_size: int) -> int:
        """Return the optimizer steps that see every window of a text once; sentence pairs have batches of their own."""
        stride = self.data.window_stride or self.window_targets  # by default, windows do not overlap
        windows = max(1, (train_tokens - self.window_tokens) // stride + 1)
        return -(-windows // (batch_size * self.train.accumulation))

    def resolved(
        self, *, vocab_size: int, threads: int, train_tokens: int, rows: RowFacts | None = None
    ) -> "RunConfig":
        """Return this config with values known only at the start of a run, and every duration in steps. `vocab_size`
        counts special tokens too; a larger `model.vocab_size` is kept. A run's sums depend on the number of `threads`.
        """
        data = self.dump()
        train, optimizer, targets = data["train"], data["optimizer"], self.window_targets
        data["model"].setdefault("vocab_size", vocab_size)
        train.setdefault("threads", threads)
        data["evaluation"]["stride"] = self.evaluation_stride
        if rows is not None:
            if rows.source_vocab_size is not None:
                data["model"].setdefault("source_vocab_size", rows.source_vocab_size)
            if rows.classes is not None:
                data["model"].setdefault("classes", rows.classes)
            tokens = max(1, train_tokens // rows.steps_per_epoch)
            units = {"steps_per_epoch": rows.steps_per_epoch, "tokens_per_step": tokens}
        else:
            if "batch_tokens" in train:
                train["batch_size"] = max(1, train.pop("batch_tokens") // targets)
            per_step = train["batch_size"] * self.train.accumulation
            epoch = self.steps_per_epoch(train_tokens, train["batch_size"])
            units = {"steps_per_epoch": epoch, "tokens_per_step": per_step * targets}
        if "epochs" in train:
            train["steps"] = in_steps(f"{train.pop('epochs')} epochs", **units)
        for key in ("warmup", "decay_every", "decay_over"):
            if key in optimizer:
                optimizer[key] = in_steps(optimizer[key], **units)
        return RunConfig.model_validate(data)

    def miniature(self) -> "RunConfig":
        """Return the same network shrunk to train in seconds on a CPU, for proofs, the resume test and CI."""
        data = self.dump()
        model = data["model"]
        heads = min(model["n_heads"], 4)
        most = max(2, len(model["layers"]))  # every kind of layer
        model |= {"n_layers": min(model["n_layers"], most), "n_heads": heads, "d_model": 8 * heads}
        model |= {"d_ff": 32, "context_length": self.task.small_context}
        if model["rope_part"] < 1.0:  # an even share of 8 features
            model["rope_part"] = max(1, round(4 * model["rope_part"])) / 4
        if "n_encoder_layers" in model:
            model["n_encoder_layers"] = min(model["n_encoder_layers"], most)
        if "n_kv_heads" in model:
            model["n_kv_heads"] = 1 if self.model.kv_heads < self.model.n_heads else heads
        for key, limit in (("window", 5), ("link_every", 4)):
            if any(key in ATTENTIONS[name].settings for name in self.model.distinct_attentions):
                model[key] = min(model[key], limit)
        for key in ("source_length", "vocab_size", "source_vocab_size", "classes"):
            model.pop(key, None)
        corpus, size = self.task.small_corpus
        if self.task.corpus == "pairs" and self.data.corpus.startswith(corpus):  # perhaps with more languages
            corpus = self.data.corpus
        data["data"] |= {"corpus": corpus, "corpus_size": size}
        data["data"] |= {"bpe_size": 300} if self.data.tokenizer == "bpe" else {}
        if self.task.corpus == "text":  # the small corpus is playlets
            data["data"]["tokenizer"] = "characters"
            for key in ("tokenizer_from", "words_size"):
                data["data"].pop(key, None)
        for key in ("max_length", "window_stride"):
            data["data"].pop(key, None)
        data["train"] |= {"steps": 8, "batch_size": 4, "threads": 1}
        for key in ("epochs", "batch_tokens", "init_from"):  # the other run's weights have another shape
            data["train"].pop(key, None)
        data["optimizer"] |= {"warmup": 2} | {k: 3 for k in ("decay_every", "decay_over") if k in data["optimizer"]}
        data["evaluation"] |= {"every": 4, "stride": 16, "translations": 8}
        data["evaluation"] |= {"sample_every": 8, "sample_length": 8, "sample_prompt": ""}
        data["checkpoint"]["every"] = 4
        data["log"]["every"] = 1
        return RunConfig.model_validate(data)
