"""The sections of a config except the network's (`engine.config.model`): settings, types, defaults and bounds.

The defaults are the `baseline` preset. A field marked *bookkeeping* does not affect the learned function (where to
print, how often to save), so comparisons and the inert-switch alarm ignore it. A derived default (`d_ff` = 4 ·
`d_model`) is a `default_factory` over the fields before it, so a dumped config is always complete.
"""

from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, model_validator

from engine.config.fields import Count, Duration, Fraction, Positive, Rate, Says, Section, Seed, bookkeeping, later
from engine.language import tr
from engine.schemes import OPTIMIZERS, SCHEDULES

if TYPE_CHECKING:  # a name of the table; the names are known only at run time
    OptimizerName: TypeAlias = str
    ScheduleName: TypeAlias = str
else:
    OptimizerName, ScheduleName = Literal[*OPTIMIZERS], Literal[*SCHEDULES]

# Alternative keys for one setting, by section: setting one over a preset removes the other.
EXCLUSIVE: dict[str, tuple[tuple[str, str], ...]] = {"train": (("steps", "epochs"), ("batch_size", "batch_tokens"))}

PAD, START, END, MASK = "[pad]", "[start]", "[end]", "[mask]"
MASKS_IN_A_ROW = 3  # of the assignment's span corruption: at the gap, before the span, and after it
SHORTEST_DOCUMENT = 4  # tokens; shorter documents are left out


class DataConfig(Section):
    """The corpus, its splits and its tokenizer.

    `corpus_size` is for generated corpora: characters of playlets, sentences of phrasebook, people of biographies.
    `bpe_size` is the byte-pair vocabulary, per side if `shared_vocabulary` is off. `max_length` drops longer training
    sentences, in tokens of either side; scored sentences are never dropped.
    """

    corpus: Annotated[str, Field(min_length=1, max_length=4096), Says("the text to train on")] = "playlets"
    corpus_seed: Seed = 1
    corpus_size: Annotated[int, Field(strict=True, ge=20, le=10**8)] | None = None
    tokenizer: Annotated[
        Literal["characters", "bpe", "words"],
        Says(
            "what a token is",
            {
                "characters": "one token per character: small vocabulary, long sequences",
                "bpe": "byte pairs: frequent pieces of words become tokens, learned from the training split",
                "words": "one token per word: large vocabulary, short sequences, some words unknown",
            },
        ),
    ] = "characters"
    bpe_size: Annotated[int, Field(strict=True, ge=257, le=1_000_000), Says("size of the byte-pair vocabulary")] = 8_000
    shared_vocabulary: Annotated[StrictBool, Says("whether source and target share one vocabulary")] = True
    max_length: Positive | None = None
    validation_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    test_fraction: Fraction = 0.0
    window_stride: Positive | None = None

    @model_validator(mode="after")
    def _some_text_is_left_to_train_on(self) -> Self:
        if self.validation_fraction + self.test_fraction >= 1.0:
            raise ValueError(tr("validation_fraction + test_fraction must leave some text to train on (< 1)"))
        return self


class ObjectiveConfig(Section):
    """What is predicted from what; `engine.config.tasks` describes each kind.

    `mask_fraction` is the share of a window that `masked` predicts, and of a document that `span-corruption` in the
    form `t5` removes, in spans of `span_mean` tokens. Its other forms cut a document to at most `cut_fraction` of
    the context, and remove one span: `span_fraction` of what is left on average, or half of that in `cs224n-half`.
    `label_smoothing` spreads that share of each target evenly over all tokens that may follow, including the target
    (Szegedy et al. 2016, §7), in the training loss. `z_loss` is the weight of the mean of log² Z in it, which keeps the
    softmax normaliser Z near 1 (Chowdhery et al. 2022, §5). Reported losses include neither.
    """

    kind: Annotated[
        Literal[
            "next-token",
            "masked",
            "copy",
            "reverse",
            "continuation",
            "shifted",
            "translation",
            "span-corruption",
            "question-answer",
        ],
        Says(
            "what is predicted from what",
            {
                "next-token": "each token from those before it, as in GPT",
                "masked": "hidden tokens from both sides, as in BERT",
                "copy": "the source itself: does information get across?",
                "reverse": "the source backwards: does each position find its counterpart?",
                "continuation": "the text that follows the source",
                "shifted": "the source moved by one token: a common mistake, to see what it does",
                "translation": "a sentence in another language",
                "span-corruption": "a removed span from the text around it, as in T5",
                "question-answer": "the answer to a question about the documents",
            },
        ),
    ] = "next-token"
    mask_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    span_form: Annotated[
        Literal["cs224n", "cs224n-half", "t5"],
        Says(
            "how removed spans are written",
            {
                "cs224n": "prefix, suffix, then the span, for decoders",
                "cs224n-half": "the same with spans half as long",
                "t5": "a numbered mark for each span in the source; the target lists them, for encoder-decoders",
            },
        ),
    ] = "cs224n"
    span_mean: Annotated[float, Field(ge=1.0, le=1e6)] = 3.0
    span_fraction: Annotated[float, Field(gt=0.0, le=0.5)] = 0.25
    cut_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 0.875
    label_smoothing: Annotated[
        Fraction, Says("share of each target spread over all tokens, so that the model is less overconfident")
    ] = 0.0
    z_loss: Rate = later(0.0)

    @property
    def has_sentinels(self) -> bool:
        """Return whether each span that `span-corruption` removes has its own sentinel token, as in T5."""
        return self.span_form == "t5"


class TrainConfig(Section):
    """The training loop: its length and batch size.

    Set `steps` or `epochs`, and `batch_size` or `batch_tokens`. A run's resolved config has steps and batch_size; a run
    on rows may have batch_tokens: that many tokens of the longer side, padding included, in any number of rows.
    `init_from` is the run whose weights and tokenizer this one starts from: NAME, NAME@last, NAME@1500, or a path.
    `ema` is the decay of a moving average of the weights (Polyak and Juditsky 1992), saved and scored at the end as the
    checkpoint `ema`; 0.999 averages over about the last 1,000 steps, 0.0 keeps no average.
    """

    steps: Annotated[Count, Says("number of weight updates")] = 2000
    epochs: Annotated[Annotated[float, Field(gt=0.0, le=1e6)] | None, Says("passes over the training split")] = None
    batch_size: Annotated[
        int, Field(strict=True, ge=1, le=1_000_000), Says("examples per step; more make it less noisy and slower")
    ] = 64
    batch_tokens: Annotated[Positive | None, Says("tokens per step, in any number of rows")] = None
    accumulation: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 1
    clip: Rate = 1.0
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Says(
            "the number format of matrix products",
            {
                "auto": "bf16 on a GPU that has it, fp32 elsewhere",
                "fp32": "32 bits: exact enough to repeat and compare",
                "bf16": "16 bits with fp32's range: faster on GPUs, about three digits",
            },
        ),
    ] = "auto"
    fp32_matmul: Literal["exact", "fast"] = "exact"
    auto_batch: StrictBool = False
    activation_checkpointing: StrictBool = False
    compile: Literal["auto", "never", "always"] = "auto"
    allow_leak: StrictBool = False
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] | None = None
    init_from: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    ema: Fraction = later(0.0)

    @model_validator(mode="after")
    def _one_of_each_pair(self) -> Self:
        for one, other in EXCLUSIVE["train"]:
            if {one, other} <= self.model_fields_set and getattr(self, other) is not None:
                raise ValueError(tr("set {one} or {other}, not both", one=one, other=other))
        return self


class OptimizerConfig(Section):
    """The optimizer and the learning-rate schedule.

    `momentum` and `nesterov` (Sutskever et al. 2013) are those of Muon and SGD. `lr` applies to all weights;
    `matrix_lr`, `embedding_lr` and `head_lr` override it for the layers' matrices, the embedding and the head, and
    follow the same schedule in proportion. With Muon, `matrix_lr` is Muon's rate and `lr` AdamW's. A tied head counts
    as the embedding.

    Durations are steps, or text like "5 epochs" or "10240 tokens". `decay_every` holds a schedule's rate constant
    between its multiples, like a scheduler stepped per epoch; `decay_over` is the length of a cosine or linear decay.
    `inverse-sqrt` decays as 1/√step after warm-up (Vaswani et al. 2017, §5.3). `wsd` starts to decay at the fraction
    `decay_from` of the run, by default for its last fifth (Hägele et al. 2024), like the trapezoid of Zhai et al. 2022.
    """

    kind: OptimizerName = "adamw"
    lr: Annotated[Rate, Says("size of the steps: too high diverges, too low is slow")] = 3e-4
    min_lr: Rate = 0.0
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-8
    weight_decay: Rate = 0.01
    decay: Literal["matrices", "matrices-and-positions", "linear-weights", "all"] = "matrices"
    schedule: Annotated[ScheduleName, Says("how the learning rate changes over the run")] = "cosine"
    warmup: Annotated[Duration, Says("steps in which the learning rate rises from 0")] = 100
    decay_every: Duration | None = None
    decay_over: Duration | None = None
    decay_factor: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5
    decay_from: Fraction = later(0.8)
    momentum: Fraction = later(0.95)
    nesterov: StrictBool = later(True)
    matrix_lr: Rate | None = later(None)  # None: lr, as for the next two
    embedding_lr: Rate | None = later(None)
    head_lr: Rate | None = later(None)

    @model_validator(mode="after")
    def _schedule_says_when(self) -> Self:
        for key, what in SCHEDULES[self.schedule].needs.items():
            if getattr(self, key) is None:
                raise ValueError(
                    tr("schedule = '{schedule}' needs {key}, {what}", schedule=self.schedule, key=key, what=what)
                )
        if self.decay_every == 0 or self.decay_over == 0:
            raise ValueError(tr("decay_every and decay_over must be longer than 0 steps; leave them out for none"))
        if self.min_lr > self.lr:
            raise ValueError(tr("min_lr {min_lr} is above lr {lr}", min_lr=self.min_lr, lr=self.lr))
        for key in ("matrix_lr", "embedding_lr", "head_lr"):
            if self.lr == 0.0 and getattr(self, key) is not None:
                raise ValueError(tr("{key} follows the schedule in proportion to lr, so lr must be above 0", key=key))
        return self


class EvaluationConfig(Section):
    """When and how the validation split is scored. With `every` or `sample_every` 0, only at the end.

    `select` is the score that picks the best checkpoint. `patience` stops a run after that many evaluations
    without a new best; 0 means never. `stride` is the distance in tokens between scored windows: by default as many
    as a window predicts, on playlets half of that, so that the evidence of a probe is rarely cut off.
    The first `translations` sentences of the split (0: all) are translated with beam size `beam` (1: greedy).
    Evaluation has its own `seed` for everything random (masks, nanoGPT's random batches), so that runs with different
    seeds are evaluated on the same draws.
    """

    every: Count = 250
    stride: Positive | None = None
    batch_size: Positive | None = bookkeeping(None)
    nanogpt_batches: Annotated[int, Field(strict=True, ge=0, le=100_000)] = bookkeeping(0)
    seed: Seed = bookkeeping(1)
    probes: StrictBool = bookkeeping(True)
    sample_every: Count = bookkeeping(500)
    sample_prompt: Annotated[str, Field(max_length=10_000)] = bookkeeping("")
    sample_length: Annotated[int, Field(strict=True, ge=0, le=100_000)] = bookkeeping(200)
    select: Annotated[
        Literal["loss", "bleu", "exact_match"],
        Says(
            "the score that chooses the best checkpoint",
            {
                "loss": "the lowest validation loss",
                "bleu": "the best BLEU of its translations",
                "exact_match": "the most answers that are right to the letter",
            },
        ),
    ] = "loss"
    patience: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 0
    beam: Annotated[int, Field(strict=True, ge=1, le=1_000), Says("hypotheses kept while decoding; 1 is greedy")] = (
        bookkeeping(1)
    )
    translations: Count = bookkeeping(0)


class CheckpointConfig(Section):
    """How often the state is saved; `every` 0 means only at the start and the end.

    `average_last` = k also saves and scores the mean of the last k checkpoints' weights (Vaswani et al. 2017, §6.1).
    """

    every: Count = bookkeeping(500)
    keep_last: Annotated[int, Field(strict=True, ge=1, le=10_000)] = bookkeeping(2)
    average_last: Annotated[int, Field(strict=True, ge=0, le=1_000)] = 0


class GenerationConfig(Section):
    """Sampling defaults, which a prompt can override; `length_penalty` and `alpha` are for beam search."""

    temperature: Annotated[float, Field(ge=0.0, le=100.0)] = bookkeeping(0.8)
    top_k: Annotated[int, Field(strict=True, ge=0, le=10_000_000)] = bookkeeping(40)
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = bookkeeping(1.0)
    overflow: Literal["restart", "stop"] = bookkeeping("restart")
    length_penalty: Literal["gnmt", "power"] = bookkeeping("gnmt")
    alpha: Annotated[float, Field(ge=0.0, le=10.0)] = bookkeeping(0.6)


class LogConfig(Section):
    """Steps between train records."""

    every: Positive = bookkeeping(10)
