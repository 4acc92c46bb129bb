"""RunConfig and its sections: every setting of a run, with its type, default and bounds.

The defaults are the `baseline` preset. A field marked *bookkeeping* changes nothing about the function that is
learned (where to print, how often to save), so comparisons and the inert-switch alarm ignore it. A derived default
(`d_ff` = 4 · `d_model`) is a `default_factory` over the fields before it, so a dumped config is always complete.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from engine.config.duration import Duration, in_steps
from engine.config.exclusive import EXCLUSIVE
from engine.config.span_counts import corrupted_lengths, span_counts

SCHEMA: Literal[1] = 1

PAD, START, END, MASK = "[pad]", "[start]", "[end]", "[mask]"
SPECIAL_TOKENS: dict[str, tuple[str, ...]] = {
    "masked": (MASK,),
    "copy": (START,),
    "reverse": (START,),
    "translation": (PAD, START, END),
    "span-corruption": (PAD, MASK),
    "question-answer": (PAD, MASK),
}
MASKS_IN_A_ROW = 3  # of the assignment's span corruption: where the span stood, before it, and after it
SHORTEST_DOCUMENT = 4  # tokens; shorter ones are left out

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(strict=True, ge=0, le=10**12)]
Positive = Annotated[int, Field(strict=True, ge=1, le=10**12)]
Width = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Depth = Annotated[int, Field(strict=True, ge=1, le=1_000)]
Rate = Annotated[float, Field(ge=0.0, le=1e3)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


def bookkeeping(default: Any, **bounds: Any) -> Any:
    """A field that does not change what is learned (see the module's docstring)."""
    return Field(default, json_schema_extra={"bookkeeping": True}, **bounds)


def same_as(name: str, default: Any) -> Any:
    """A field that takes the value of an earlier field unless it is set."""
    factory: Callable[[dict[str, Any]], Any] = lambda earlier: earlier.get(name, default)
    return Field(default_factory=factory)


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values are finite, nothing changes after it is built."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


class ModelConfig(Section):
    """The network. Widths in features, lengths in tokens.

    `causal` follows the architecture: decoders may not see their future, encoders may. `window` counts keys with the
    query's own when causal, else |q − k| ≤ window // 2. Positions and attention are those of self-attention; the
    cross-attention of an encoder-decoder sees all of the source.
    """

    architecture: Literal["decoder", "encoder", "encoder-decoder"] = "decoder"
    causal: StrictBool = Field(default_factory=lambda earlier: earlier.get("architecture") != "encoder")
    n_layers: Depth = 4
    n_encoder_layers: Depth | None = None  # as n_layers
    d_model: Width = 256
    n_heads: Depth = 4
    n_kv_heads: Depth | None = None  # as n_heads
    d_ff: Width = Field(default_factory=lambda earlier: 4 * earlier.get("d_model", 256))
    context_length: Positive = 128
    source_length: Positive | None = None  # as context_length
    vocab_size: Width | None = None
    source_vocab_size: Width | None = None  # where source and target do not share one vocabulary

    position: Literal["none", "sinusoidal", "learned", "rope", "relative", "alibi", "t5", "xl"] = "sinusoidal"
    position_init: Literal["normal", "zero"] = "normal"
    rope_base: Annotated[float, Field(gt=1.0, le=1e12)] = 10_000.0
    rope_pairing: Literal["half", "adjacent"] = "half"
    relative_max_distance: Positive = 64
    t5_buckets: Annotated[int, Field(strict=True, ge=4, le=10_000)] = 32
    t5_max_distance: Positive = 128
    embedding_scale: StrictBool = False

    attention: Literal["global", "window", "sparse", "linear"] = "global"
    window: Positive = 16
    link_every: Annotated[int, Field(strict=True, ge=2, le=10**9)] = 16
    backend: Literal["auto", "reference", "sdpa", "dense", "banded", "chunked"] = bookkeeping("auto")

    norm: Literal["layer", "rms", "none"] = "layer"
    norm_placement: Literal["pre", "post"] = "pre"
    final_norm: StrictBool = Field(
        default_factory=lambda earlier: earlier.get("norm_placement") == "pre" and earlier.get("norm") != "none"
    )
    norm_eps: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-5
    residual: StrictBool = True
    activation: Literal["gelu", "gelu-tanh", "relu", "swiglu"] = "gelu"
    bias: StrictBool = True
    head_bias: StrictBool = False
    tie_embeddings: StrictBool = False

    dropout: Fraction = 0.1
    attention_dropout: Fraction = Field(  # linear attention has no weights to drop
        default_factory=lambda earlier: 0.0 if earlier.get("attention") == "linear" else earlier.get("dropout", 0.1)
    )
    attention_output_dropout: Fraction = same_as("dropout", 0.1)
    embedding_dropout: Fraction = same_as("dropout", 0.1)
    ff_dropout: Fraction = same_as("dropout", 0.1)

    init: Literal["scaled-normal", "normal", "xavier", "torch"] = "scaled-normal"
    init_std: Annotated[float, Field(gt=0.0, le=10.0)] = 0.02
    embedding_std: Annotated[float, Field(gt=0.0, le=10.0)] | None = None  # as `init` says

    @property
    def head_width(self) -> int:
        """Features per head, Dh = d_model / n_heads."""
        return self.d_model // self.n_heads

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.n_kv_heads or self.n_heads

    @property
    def encoder_layers(self) -> int:
        """Layers of an encoder-decoder's encoder."""
        return self.n_encoder_layers or self.n_layers

    @property
    def source_tokens(self) -> int:
        """The longest source of an encoder-decoder."""
        return self.source_length or self.context_length

    @property
    def ff_expansion(self) -> int:
        """Features of the feed-forward's first map: SwiGLU needs a gate for each of `d_ff`."""
        return 2 * self.d_ff if self.activation == "swiglu" else self.d_ff

    @property
    def kv_width(self) -> int:
        """Features of all key heads together; of the value heads as many."""
        return self.kv_heads * self.head_width


class DataConfig(Section):
    """The text: which corpus, how it is cut into splits and tokens.

    `corpus_size` is of generated corpora: characters of playlets, sentences of phrasebook, people of biographies.
    `bpe_size` is the vocabulary of byte-pair encoding, of each side where `shared_vocabulary` is off. `max_length`
    leaves out longer sentences, in tokens of either side: of training only, what is scored is never left out.
    """

    corpus: Annotated[str, Field(min_length=1, max_length=4096)] = "playlets"
    corpus_seed: Seed = 1
    corpus_size: Annotated[int, Field(strict=True, ge=20, le=10**8)] | None = None
    tokenizer: Literal["characters", "bpe", "words"] = "characters"
    bpe_size: Annotated[int, Field(strict=True, ge=257, le=1_000_000)] = 8_000
    shared_vocabulary: StrictBool = True
    max_length: Positive | None = None
    validation_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    test_fraction: Fraction = 0.0
    window_stride: Positive | None = None

    @model_validator(mode="after")
    def _some_text_is_left_to_train_on(self) -> Self:
        if self.validation_fraction + self.test_fraction >= 1.0:
            raise ValueError("validation_fraction + test_fraction must leave some text to train on (< 1)")
        return self


class ObjectiveConfig(Section):
    """What is predicted from what; `engine.data.objectives` says it kind by kind.

    `mask_fraction` is the share of a window that `masked` predicts, and of a document that `span-corruption` in the
    form `t5` takes out, in spans of `span_mean` tokens. Its other forms cut a document to at most `cut_fraction` of
    the context, and take out one span: `span_fraction` of what is left on average, or half of that in `cs224n-half`.
    `label_smoothing` moves that share of each target to all other tokens (Szegedy et al. 2016, §7), in what is
    minimised; losses are reported without it.
    """

    kind: Literal[
        "next-token",
        "masked",
        "copy",
        "reverse",
        "continuation",
        "shifted",
        "translation",
        "span-corruption",
        "question-answer",
    ] = "next-token"
    mask_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    span_form: Literal["cs224n", "cs224n-half", "t5"] = "cs224n"
    span_mean: Annotated[float, Field(ge=1.0, le=1e6)] = 3.0
    span_fraction: Annotated[float, Field(gt=0.0, le=0.5)] = 0.25
    cut_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 0.875
    label_smoothing: Fraction = 0.0


class TrainConfig(Section):
    """The loop: how long, how much at once.

    Either `steps` or `epochs`, either `batch_size` or `batch_tokens`. A run's own config has steps and batch_size; one
    of rows may have batch_tokens: so many of the longer side with its padding, whatever the rows' number.
    `init_from` is the run whose weights and tokenizer this one starts with: NAME, NAME@last, NAME@1500, or a path.
    """

    steps: Count = 2000
    epochs: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    batch_size: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 64
    batch_tokens: Positive | None = None
    accumulation: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    clip: Rate = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    fp32_matmul: Literal["exact", "fast"] = "exact"
    auto_batch: StrictBool = False
    activation_checkpointing: StrictBool = False
    compile: Literal["auto", "never", "always"] = "auto"
    allow_leak: StrictBool = False
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    init_from: Annotated[str, Field(min_length=1, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _one_of_each_pair(self) -> Self:
        for one, other in EXCLUSIVE["train"]:
            if {one, other} <= self.model_fields_set and getattr(self, other) is not None:
                raise ValueError(f"{one} and {other} say the same thing twice; keep one of them")
        return self


class OptimizerConfig(Section):
    """AdamW (Loshchilov and Hutter 2019) or Adam with coupled decay, and the learning-rate schedule.

    Durations are steps, or a text such as "5 epochs" or "10240 tokens". `decay_every` holds the rate of any schedule
    still between its multiples, as a scheduler stepped once an epoch does; `decay_over` is how long a cosine takes.
    `inverse-sqrt` falls with 1/√step from the end of warm-up (Vaswani et al. 2017, §5.3).
    """

    kind: Literal["adamw", "adam"] = "adamw"
    lr: Rate = 3e-4
    min_lr: Rate = 0.0
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-8
    weight_decay: Rate = 0.01
    decay: Literal["matrices", "linear-weights", "all"] = "matrices"
    schedule: Literal["constant", "cosine", "step", "inverse-sqrt"] = "cosine"
    warmup: Duration = 100
    decay_every: Duration | None = None
    decay_over: Duration | None = None
    decay_factor: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5

    @model_validator(mode="after")
    def _step_schedule_says_when(self) -> Self:
        if self.schedule == "step" and self.decay_every is None:
            raise ValueError("schedule = 'step' needs decay_every, the time between two decays, e.g. \"5 epochs\"")
        if self.decay_every == 0 or self.decay_over == 0:
            raise ValueError("decay_every and decay_over must be longer than 0 steps; leave them out for none")
        if self.min_lr > self.lr:
            raise ValueError(f"min_lr {self.min_lr} is above lr {self.lr}")
        return self


class EvaluationConfig(Section):
    """When and how the validation split is scored. `every` and `sample_every` 0 mean: only at the end.

    `select` says by which score the best checkpoint is chosen. `patience` stops a run after that many evaluations
    without a new best; 0 never does. Translations are written with a beam of `beam` (1: greedily), of the first
    `translations` sentences of the split (0: all).
    """

    every: Count = 250
    stride: Positive | None = None
    batch_size: Positive | None = bookkeeping(None)
    nanogpt_batches: Annotated[int, Field(strict=True, ge=0, le=100_000)] = bookkeeping(0)
    probes: StrictBool = bookkeeping(True)
    sample_every: Count = bookkeeping(500)
    sample_prompt: Annotated[str, Field(max_length=10_000)] = bookkeeping("")
    sample_length: Annotated[int, Field(strict=True, ge=0, le=100_000)] = bookkeeping(200)
    select: Literal["loss", "bleu", "exact_match"] = "loss"
    patience: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 0
    beam: Annotated[int, Field(strict=True, ge=1, le=1_000)] = bookkeeping(1)
    translations: Count = bookkeeping(0)


class CheckpointConfig(Section):
    """How often the state is saved; `every` 0 means only at the start and the end.

    `average_last` = k also saves and scores the mean of the last k checkpoints' weights (Vaswani et al. 2017, §6.1).
    """

    every: Count = bookkeeping(500)
    keep_last: Annotated[int, Field(strict=True, ge=1, le=10_000)] = bookkeeping(2)
    average_last: Annotated[int, Field(strict=True, ge=0, le=1_000)] = 0


class GenerationConfig(Section):
    """How text is sampled, unless the prompt says otherwise; `length_penalty` and `alpha` are beam search's."""

    temperature: Annotated[float, Field(ge=0.0, le=100.0)] = bookkeeping(0.8)
    top_k: Annotated[int, Field(strict=True, ge=0, le=10_000_000)] = bookkeeping(40)
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = bookkeeping(1.0)
    overflow: Literal["restart", "stop"] = bookkeeping("restart")
    length_penalty: Literal["gnmt", "power"] = bookkeeping("gnmt")
    alpha: Annotated[float, Field(ge=0.0, le=10.0)] = bookkeeping(0.6)


class LogConfig(Section):
    """How often a train record is written, in steps."""

    every: Positive = bookkeeping(10)


@dataclass(frozen=True)
class Rows:
    """What only a corpus of rows says: of sentence pairs, documents or questions.

    Args:
        steps_per_epoch: optimizer steps to see every row once.
        source_vocab_size: tokens of a source, special ones too; None where the target's are the same.
    """

    steps_per_epoch: int
    source_vocab_size: int | None = None


class RunConfig(Section):
    """Everything a run was asked to do; running it again repeats the run."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema", json_schema_extra={"bookkeeping": True})
    preset: Annotated[str, Field(max_length=200)] = bookkeeping("")
    description: Annotated[str, Field(max_length=2000)] = bookkeeping("")
    seed: Seed = 1
    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    objective: ObjectiveConfig = ObjectiveConfig()
    train: TrainConfig = TrainConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    generation: GenerationConfig = GenerationConfig()
    log: LogConfig = LogConfig()

    def dump(self) -> dict[str, Any]:
        """The complete config as plain nested data; unset optional keys are left out."""
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for section, pairs in EXCLUSIVE.items():
            for usual, other in pairs:
                if other in data[section]:
                    del data[section][usual]
        return data

    @property
    def window_tokens(self) -> int:
        """Tokens of text that the objective makes one example of."""
        target, source = self.model.context_length, self.model.source_tokens
        return {
            "next-token": target + 1,
            "masked": target,
            "copy": source,
            "reverse": source,
            "continuation": source + target,
            "shifted": source + 1,
            "translation": min(source, target),
            "span-corruption": source if self.has_sentinels else self._longest_cut,
            "question-answer": source + target - 1 if self.has_source else target - 1,
        }[self.objective.kind]

    @property
    def window_targets(self) -> int:
        """Places of one example that predict something, or could."""
        target, source = self.model.context_length, self.model.source_tokens
        special = {
            "copy": source,
            "reverse": source,
            "shifted": source - 1,
            "translation": min(source, target),
            "span-corruption": self._corrupted_targets,
        }
        return special.get(self.objective.kind, target)

    @property
    def _longest_cut(self) -> int:
        context = self.model.context_length
        return max(1, min(int(self.objective.cut_fraction * context), context - MASKS_IN_A_ROW + 1))

    @property
    def _corrupted_targets(self) -> int:
        longest, objective = self.window_tokens, self.objective
        if self.has_sentinels:
            return corrupted_lengths(max(longest, 2), objective.mask_fraction, objective.span_mean)[1]
        return longest + MASKS_IN_A_ROW - 1

    @property
    def translates(self) -> bool:
        """Whether it is trained on pairs of sentences."""
        return self.objective.kind == "translation"

    @property
    def answers(self) -> bool:
        """Whether it is trained on questions and their answers."""
        return self.objective.kind == "question-answer"

    @property
    def on_documents(self) -> bool:
        """Whether its corpus is one of documents and questions."""
        return self.objective.kind in ("span-corruption", "question-answer")

    @property
    def on_rows(self) -> bool:
        """Whether it is trained on rows, each as long as it is, and not on windows of one text."""
        return self.translates or self.on_documents

    @property
    def has_source(self) -> bool:
        """Whether something is read that is not written."""
        return self.model.architecture == "encoder-decoder"

    @property
    def has_sentinels(self) -> bool:
        """Whether a token of its own stands for each span that is taken out, as in T5."""
        return self.objective.kind == "span-corruption" and self.objective.span_form == "t5"

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """Tokens the objective needs besides the text's, numbered after them."""
        if self.has_sentinels:
            longest, objective = max(self.window_tokens, 2), self.objective
            spans = span_counts(longest, objective.mask_fraction, objective.span_mean)[1]
            return (PAD, START, *(f"[span {i}]" for i in range(1, spans + 2)))
        return SPECIAL_TOKENS.get(self.objective.kind, ())

    def needed_tokens(self, text_tokens: int) -> int:
        """Tokens a model needs at least: the text's and the objective's own."""
        return text_tokens + len(self.special_tokens)

    @property
    def stride(self) -> int:
        """Tokens between two evaluation windows; by default what one window predicts, as nanoGPT's windows are."""
        return min(self.evaluation.stride or self.window_targets, self.window_targets)

    @property
    def window_stride(self) -> int:
        """Tokens between the windows that an epoch counts; by default windows that do not overlap."""
        return self.data.window_stride or self.window_targets

    def steps_per_epoch(self, train_tokens: int, batch_size: int) -> int:
        """Optimizer steps that see every window of a text once; sentence pairs have batches of their own.

        Args:
            train_tokens: size of the training split.
            batch_size: windows of a batch.
        """
        windows = max(1, (train_tokens - self.window_tokens) // self.window_stride + 1)
        return -(-windows // (batch_size * self.train.accumulation))

    def resolved(self, *, vocab_size: int, threads: int, train_tokens: int, rows: Rows | None = None) -> "RunConfig":
        """This config with what only the start of a run knows filled in, and every duration in steps.

        Args:
            vocab_size: tokens that are needed, special ones too; a larger `model.vocab_size` stands.
            threads: CPU threads, part of a run's state (sums differ between counts).
            train_tokens: size of the training split.
            rows: what is known of these, where they are trained on.
        """
        data = self.dump()
        train, optimizer, targets = data["train"], data["optimizer"], self.window_targets
        data["model"].setdefault("vocab_size", vocab_size)
        train.setdefault("threads", threads)
        data["evaluation"]["stride"] = self.stride
        if rows is not None:
            if rows.source_vocab_size is not None:
                data["model"].setdefault("source_vocab_size", rows.source_vocab_size)
            units = {
                "steps_per_epoch": rows.steps_per_epoch,
                "tokens_per_step": max(1, train_tokens // rows.steps_per_epoch),
            }
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
        """The same function shrunk to seconds on a CPU: one definition for the grid, the resume test and CI."""
        data = self.dump()
        model = data["model"]
        heads = min(model["n_heads"], 4)
        model |= {"n_layers": min(model["n_layers"], 2), "n_heads": heads, "d_model": 8 * heads}
        model |= {"d_ff": 32, "context_length": 64 if self.on_documents else 40 if self.translates else 16}
        model.pop("source_length", None)
        if "n_encoder_layers" in model:
            model["n_encoder_layers"] = min(model["n_encoder_layers"], 2)
        if "n_kv_heads" in model:
            model["n_kv_heads"] = 1 if self.model.kv_heads < self.model.n_heads else heads
        if model["attention"] in ("window", "sparse"):
            model["window"] = min(model["window"], 5)
        if model["attention"] == "sparse":
            model["link_every"] = min(model["link_every"], 4)
        for key in ("vocab_size", "source_vocab_size"):
            model.pop(key, None)
        if self.on_documents:
            data["data"] |= {"corpus": "biographies", "corpus_size": 20}
        else:
            data["data"] |= {"corpus": "phrasebook" if self.translates else "playlets"}
            data["data"] |= {"corpus_size": 2_000 if self.translates else 20_000}
        data["data"] |= {"bpe_size": 300} if self.data.tokenizer == "bpe" else {}
        data["data"].pop("max_length", None)
        data["evaluation"]["translations"] = 8
        data["train"] |= {"steps": 8, "batch_size": 4, "threads": 1}
        for key in ("epochs", "batch_tokens", "init_from"):  # the other run's weights are of another shape
            data["train"].pop(key, None)
        data["data"].pop("window_stride", None)
        data["optimizer"] |= {"warmup": 2} | {k: 3 for k in ("decay_every", "decay_over") if k in data["optimizer"]}
        data["evaluation"] |= {"every": 4, "stride": 16, "sample_every": 8, "sample_length": 8}
        data["evaluation"]["sample_prompt"] = ""
        data["checkpoint"]["every"] = 4
        data["log"]["every"] = 1
        return RunConfig.model_validate(data)
