"""The sections of a config except the network's (`engine.config.model`): settings, types, defaults and bounds.

The defaults are the `baseline` preset. A field marked *bookkeeping* does not affect the learned function (where to
print, how often to save), so comparisons and the inert-switch alarm ignore it. A derived default (`d_ff` = 4 ·
`d_model`) is a `default_factory` over the fields before it, so a dumped config is always complete.
"""

from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, StrictBool, model_validator

from engine.base.language import tr
from engine.config.fields import (
    Count,
    Doc,
    Duration,
    Fraction,
    Positive,
    Rate,
    Section,
    Seed,
    bookkeeping_field,
    later_field,
)
from engine.config.measures import SELECTS
from engine.config.schemes import OPTIMIZERS, SCHEDULES
from engine.config.tasks import TASKS

if TYPE_CHECKING:  # a name of the table; the names are known only at run time
    OptimizerName: TypeAlias = str
    ScheduleName: TypeAlias = str
    SelectName: TypeAlias = str
    ObjectiveName: TypeAlias = str
else:
    OptimizerName, ScheduleName = Literal[*OPTIMIZERS], Literal[*SCHEDULES]
    SelectName, ObjectiveName = Literal[*SELECTS], Literal[*TASKS]

# Alternative keys for one setting, by section: setting one over a preset removes the other.
EXCLUSIVE: dict[str, tuple[tuple[str, str], ...]] = {"train": (("steps", "epochs"), ("batch_size", "batch_tokens"))}


class DataConfig(Section):
    """The corpus, its splits and its tokenizer."""

    corpus: Annotated[str, Field(min_length=1, max_length=4096), Doc("the text to train on")] = Field(
        "playlets", json_schema_extra={"editable": True}
    )
    corpus_seed: Annotated[Seed, Doc("the seed from which a generated corpus is drawn")] = 1
    corpus_size: Annotated[
        Annotated[int, Field(strict=True, ge=20, le=10**8)] | None,
        Doc(
            "size: characters in playlets, sentences in phrasebook, people in biographies, items in bulletins; "
            "training pairs in gigaword"
        ),
    ] = None
    tokenizer: Annotated[
        Literal["characters", "bpe", "words", "bytes", "loaded"],
        Doc(
            "what a token is",
            {
                "characters": "one token per character: small vocabulary, long sequences",
                "bpe": "byte pairs: frequent pieces of words become tokens, learned from the training split",
                "words": "one token per word: large vocabulary, short sequences, some words unknown",
                "bytes": "one token per byte of UTF-8: 256 tokens for any text",
                "loaded": "the tokens of another tokenizer, such as GPT-2's or another run's, named by tokenizer_from",
            },
        ),
    ] = "characters"
    bpe_size: Annotated[int, Field(strict=True, ge=257, le=1_000_000), Doc("size of the byte-pair vocabulary")] = 8_000
    words_size: Annotated[
        int,
        Field(strict=True, ge=2, le=1_000_000),
        Doc("maximum number of words in a text's vocabulary; the most frequent are kept, all others are <unk>"),
    ] = later_field(50_000)
    tokenizer_from: Annotated[
        Annotated[str, Field(min_length=1, max_length=4096)] | None,
        Doc(
            "tokenizer to load: path to tokenizer.json or GPT-2's merges.txt, or a folder with either, such as a run's"
        ),
    ] = later_field(None)
    lowercase: Annotated[
        StrictBool, Doc("whether a classifier lowercases its texts: fewer distinct words, each seen more often")
    ] = later_field(False)
    encoding: Annotated[
        Literal["auto", "utf-16-le", "utf-16-be", "gb18030", "big5", "shift_jis", "cp1252"],
        Doc(
            "the encoding of your own files",
            {
                "auto": "UTF-8, unless a byte-order mark says otherwise",
                "utf-16-le": "UTF-16, little-endian",
                "utf-16-be": "UTF-16, big-endian",
                "gb18030": "Chinese, also GBK and GB 2312",
                "big5": "traditional Chinese",
                "shift_jis": "Japanese",
                "cp1252": "Windows-1252: Western European languages",
            },
        ),
    ] = later_field("auto")
    line_ends: Annotated[
        Literal["lf", "keep"],
        Doc(
            "how CR LF, the Windows line ending, is read in your own files",
            {"lf": "as LF", "keep": "as it is: the model learns CR too"},
        ),
    ] = later_field("lf")
    shared_vocabulary: Annotated[StrictBool, Doc("whether source and target share one vocabulary")] = True
    max_length: Annotated[
        Positive | None,
        Doc("training pairs with more tokens than this on either side are left out; scored pairs never are"),
    ] = None
    validation_fraction: Annotated[float, Field(gt=0.0, lt=1.0), Doc("share of the text held out for validation")] = 0.1
    test_fraction: Annotated[Fraction, Doc("share of the text held out for testing")] = 0.0
    window_stride: Annotated[
        Positive | None, Doc("tokens between the starts of training windows; unset: windows start at random positions")
    ] = None
    across_documents: Annotated[
        StrictBool, Doc("whether tokens may see across <|endoftext|>, the token that ends a document")
    ] = later_field(False)

    @model_validator(mode="after")
    def _check_splits(self) -> Self:
        if self.validation_fraction + self.test_fraction >= 1.0:
            raise ValueError(tr("validation_fraction + test_fraction must be below 1, to leave text to train on"))
        return self


class ObjectiveConfig(Section):
    """What is predicted from what; `engine.config.tasks` describes each kind.

    Label smoothing (Szegedy et al. 2016, §7) counts the target among the tokens that its share is spread over. It and
    the z-loss (Chowdhery et al. 2022, §5) are part of the training loss only: reported losses include neither.
    """

    kind: Annotated[
        ObjectiveName, Doc("what is predicted from what", {name: kind.sentence for name, kind in TASKS.items()})
    ] = "next-token"
    mask_fraction: Annotated[
        float, Field(gt=0.0, lt=1.0), Doc("share of a window that `masked` predicts, or that `t5` spans remove")
    ] = 0.15
    span_form: Annotated[
        Literal["cs224n", "cs224n-half", "t5"],
        Doc(
            "how removed spans are written",
            {
                "cs224n": "prefix, suffix, then the span; for decoders",
                "cs224n-half": "like cs224n, with spans half as long",
                "t5": "a numbered sentinel for each span in the source, and the spans in the target; for "
                "encoder-decoders",
            },
        ),
    ] = "cs224n"
    span_mean: Annotated[float, Field(ge=1.0, le=1e6), Doc("mean length of the spans that `t5` removes, in tokens")] = (
        3.0
    )
    span_fraction: Annotated[
        float, Field(gt=0.0, le=0.5), Doc("average share of the truncated document that `cs224n` removes")
    ] = 0.25
    cut_fraction: Annotated[
        float,
        Field(gt=0.0, le=1.0),
        Doc("maximum length of a truncated document in `cs224n`, as a share of the context"),
    ] = 0.875
    label_smoothing: Annotated[
        Fraction, Doc("share of each target spread over all tokens, so that the model is less overconfident")
    ] = 0.0
    z_loss: Annotated[
        Rate, Doc("weight of the mean log² Z in the training loss, which keeps the softmax normalizer Z near 1")
    ] = later_field(0.0)

    @property
    def has_sentinels(self) -> bool:
        """Return whether each span that `span-corruption` removes has its own sentinel token, as in T5."""
        return self.span_form == "t5"


class TrainConfig(Section):
    """The training loop: its length and batch size.

    Set `steps` or `epochs`, and `batch_size` or `batch_tokens`. A run's resolved config has steps and batch_size; a run
    on rows may have batch_tokens: that many tokens of the longer side, padding included, in any number of rows.
    """

    steps: Annotated[Count, Doc("number of weight updates")] = 2000
    epochs: Annotated[Annotated[float, Field(gt=0.0, le=1e6)] | None, Doc("passes over the training split")] = None
    batch_size: Annotated[
        int, Field(strict=True, ge=1, le=1_000_000), Doc("examples per batch; more make a step less noisy but slower")
    ] = 64
    batch_tokens: Annotated[Positive | None, Doc("tokens per batch, in any number of rows")] = None
    accumulation: Annotated[
        int, Field(strict=True, ge=1, le=100_000), Doc("batches whose gradients are added up in one step")
    ] = 1
    exact_sum: Annotated[
        Literal["on", "off"],
        Doc(
            "whether several ranks add up gradients in an order that does not depend on how many there are",
            {
                "on": "bit-identical on any number of ranks",
                "off": "as DistributedDataParallel does, while gradients are still being computed",
            },
        ),
    ] = later_field("on")
    clip: Annotated[
        Rate, Doc("maximum norm of a step's gradient; larger gradients are scaled down to it; 0: no clipping")
    ] = 1.0
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Doc(
            "the number format of matrix products",
            {
                "auto": "bf16 on a GPU that supports it, fp32 elsewhere",
                "fp32": "32 bits: exact enough to reproduce and compare runs",
                "bf16": "16 bits with fp32's range: faster on GPUs, but precise to only about three digits",
            },
        ),
    ] = "auto"
    fp32_matmul: Annotated[
        Literal["exact", "fast"],
        Doc(
            "how fp32 matrices are multiplied",
            {"exact": "in fp32", "fast": "with rounded inputs: TF32 on a GPU, bf16 pieces on a CPU"},
        ),
    ] = "exact"
    auto_batch: Annotated[
        StrictBool, Doc("whether a batch that does not fit into memory is computed in several parts")
    ] = False
    activation_checkpointing: Annotated[
        StrictBool, Doc("whether each layer is recomputed in the backward pass: less memory, more time")
    ] = False
    compile: Annotated[
        Literal["auto", "never", "always"],
        Doc(
            "whether torch compiles the training step",
            {"auto": "large models on a GPU, if the run is long enough", "never": "no", "always": "yes, on any device"},
        ),
    ] = "auto"
    allow_leak: Annotated[
        StrictBool, Doc("whether a model that can see its answers may train; the run is marked LEAK")
    ] = False
    threads: Annotated[
        Annotated[int, Field(strict=True, ge=1, le=1024)] | None, Doc("CPU threads; unset: one per physical core")
    ] = None
    init_from: Annotated[
        Annotated[str, Field(min_length=1, max_length=4096)] | None,
        Doc("the run whose weights and tokenizer this one starts from: NAME, NAME@last, NAME@1500, or a path"),
    ] = None
    ema: Annotated[
        Fraction,
        Doc("decay of a moving average of the weights (the `ema` checkpoint); 0.999 averages over about 1,000 steps"),
    ] = later_field(0.0)

    @model_validator(mode="after")
    def _check_exclusive_keys(self) -> Self:
        for one, other in EXCLUSIVE["train"]:
            if {one, other} <= self.model_fields_set and getattr(self, other) is not None:
                raise ValueError(tr("set {one} or {other}, not both", one=one, other=other))
        return self


class OptimizerConfig(Section):
    """The optimizer and the learning-rate schedule.

    `lr` applies to all weights that have no rate of their own; all rates follow the same schedule in proportion. With
    Muon, `matrix_lr` is Muon's rate and `lr` AdamW's. A tied head counts as the embedding.

    Durations are steps, or text like "5 epochs" or "10240 tokens". `inverse-sqrt` decays as 1/√step after warm-up
    (Vaswani et al. 2017, §5.3). `wsd` decays over the last fifth by default (Hägele et al. 2024), like the trapezoid of
    Zhai et al. 2022.
    """

    kind: Annotated[OptimizerName, Doc("how gradients become weight updates")] = "adamw"
    lr: Annotated[Rate, Doc("step size; too large, and training diverges; too small, and it is slow")] = 3e-4
    min_lr: Annotated[Rate, Doc("the learning rate that a schedule decays to")] = 0.0
    betas: Annotated[
        tuple[Fraction, Fraction],
        Doc("decay rates of the running averages of the gradient and its square; for Lion, its β1 and β2"),
    ] = (0.9, 0.98)
    eps: Annotated[float, Field(gt=0.0, le=1.0), Doc("added to Adam's divisor, so that it is never 0")] = 1e-8
    weight_decay: Annotated[Rate, Doc("how strongly weights are pulled towards 0")] = 0.01
    decay: Annotated[
        Literal["matrices", "matrices-and-positions", "linear-weights", "all"],
        Doc(
            "which weights decay",
            {
                "matrices": "linear maps and embeddings",
                "matrices-and-positions": "linear maps, embeddings and learned positions, as in nanoGPT",
                "linear-weights": "linear maps only, as in minGPT",
                "all": "every parameter, including biases and gains",
            },
        ),
    ] = "matrices"
    schedule: Annotated[ScheduleName, Doc("how the learning rate changes over the run")] = "cosine"
    warmup: Annotated[Duration, Doc("steps over which the learning rate rises from 0")] = 100
    decay_every: Annotated[
        Duration | None,
        Doc("interval between changes to the learning rate, as with a scheduler stepped once per epoch"),
    ] = None
    decay_over: Annotated[Duration | None, Doc("length of a cosine or linear decay; unset: to the end of the run")] = (
        None
    )
    decay_factor: Annotated[
        float, Field(gt=0.0, le=1.0), Doc("factor by which the `step` schedule multiplies the rate at each interval")
    ] = 0.5
    decay_from: Annotated[Fraction, Doc("fraction of the run at which `wsd` begins to decay")] = later_field(0.8)
    momentum: Annotated[
        Fraction, Doc("share of the previous update direction that Muon and SGD keep (Sutskever et al. 2013)")
    ] = later_field(0.95)
    nesterov: Annotated[
        StrictBool,
        Doc("whether Muon and SGD use Nesterov momentum, which looks one step ahead (Sutskever et al. 2013)"),
    ] = later_field(True)
    matrix_lr: Annotated[Rate | None, Doc("learning rate of the layers' matrices; unset: lr")] = later_field(None)
    embedding_lr: Annotated[Rate | None, Doc("learning rate of the embedding; unset: lr")] = later_field(None)
    head_lr: Annotated[Rate | None, Doc("learning rate of the head; unset: lr")] = later_field(None)

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        for key, what in SCHEDULES[self.schedule].needs.items():
            if getattr(self, key) is None:
                message = tr("schedule = '{schedule}' needs {key}, {what}", schedule=self.schedule, key=key, what=what)
                raise ValueError(message)
        if self.decay_every == 0 or self.decay_over == 0:
            raise ValueError(tr("decay_every and decay_over must be at least 1 step, or left out"))
        if self.min_lr > self.lr:
            raise ValueError(tr("min_lr {min_lr} is above lr {lr}", min_lr=self.min_lr, lr=self.lr))
        for key in ("matrix_lr", "embedding_lr", "head_lr"):
            if self.lr == 0.0 and getattr(self, key) is not None:
                raise ValueError(tr("{key} follows the schedule in proportion to lr, so lr must be above 0", key=key))
        return self


class EvaluationConfig(Section):
    """When and how the validation split is scored.

    `stride` is by default as many tokens as a window predicts, on playlets half of that, so that the evidence of a
    probe is rarely cut off. Evaluation has a `seed` of its own, so that runs with different seeds are evaluated on the
    same draws.
    """

    every: Annotated[Count, Doc("steps between evaluations; 0: only at the end")] = 250
    stride: Annotated[Positive | None, Doc("tokens between the starts of scored windows")] = None
    batch_size: Annotated[Positive | None, Doc("windows scored at once; unset: twice the training batch")] = (
        bookkeeping_field(None)
    )
    nanogpt_batches: Annotated[
        int,
        Field(strict=True, ge=0, le=100_000),
        Doc("random batches scored as in nanoGPT, in addition to the whole split"),
    ] = bookkeeping_field(0)
    seed: Annotated[Seed, Doc("seed for everything random in an evaluation: masks and nanoGPT's batches")] = (
        bookkeeping_field(1)
    )
    probes: Annotated[StrictBool, Doc("whether the corpus's probes are scored")] = bookkeeping_field(True)
    sample_every: Annotated[Count, Doc("steps between samples; 0: only at the end")] = bookkeeping_field(500)
    sample_prompt: Annotated[
        str, Field(max_length=10_000), Doc("what samples begin with; empty: the start of the held-out text")
    ] = bookkeeping_field("")
    sample_length: Annotated[int, Field(strict=True, ge=0, le=100_000), Doc("tokens per sample")] = bookkeeping_field(
        200
    )
    select: Annotated[SelectName, Doc("the score used to choose the best checkpoint", SELECTS)] = "loss"
    patience: Annotated[
        int,
        Field(strict=True, ge=0, le=1_000_000),
        Doc("the run ends after this many evaluations without a new best; 0: never"),
    ] = 0
    beam: Annotated[
        int, Field(strict=True, ge=1, le=1_000), Doc("hypotheses kept during beam search; 1: greedy decoding")
    ] = bookkeeping_field(1)
    translations: Annotated[Count, Doc("how many sentences of the split are translated at each evaluation; 0: all")] = (
        bookkeeping_field(0)
    )


class CheckpointConfig(Section):
    """How often the state is saved."""

    every: Annotated[Count, Doc("steps between checkpoints; 0: only at the start and the end")] = bookkeeping_field(
        500, editable=True
    )
    keep_last: Annotated[
        int, Field(strict=True, ge=1, le=10_000), Doc("how many of the newest checkpoints are kept, besides the best")
    ] = bookkeeping_field(2, editable=True)
    average_last: Annotated[
        int,
        Field(strict=True, ge=0, le=1_000),
        Doc(
            "how many of the last checkpoints to average into one, which is saved and scored too "
            "(Vaswani et al. 2017, §6.1)"
        ),
    ] = 0


class GenerationConfig(Section):
    """Sampling defaults, which a prompt can override."""

    temperature: Annotated[
        float, Field(ge=0.0, le=100.0), Doc("0: always the most likely token; 1: the model's own distribution")
    ] = bookkeeping_field(0.8)
    top_k: Annotated[
        int, Field(strict=True, ge=0, le=10_000_000), Doc("sample only from the k likeliest tokens; 0: from all")
    ] = bookkeeping_field(40)
    top_p: Annotated[
        float, Field(gt=0.0, le=1.0), Doc("sample only from the likeliest tokens whose probabilities add up to this")
    ] = bookkeeping_field(1.0)
    overflow: Annotated[
        Literal["restart", "stop"],
        Doc(
            "what happens when the context is full",
            {"restart": "generation continues from the newer half of the context", "stop": "generation ends"},
        ),
    ] = bookkeeping_field("restart")
    length_penalty: Annotated[
        Literal["gnmt", "power"],
        Doc(
            "what beam search divides a score by, so that long texts are not at a disadvantage",
            {"gnmt": "((5 + length) / 6) to the power alpha (Wu et al. 2016)", "power": "length to the power alpha"},
        ),
    ] = bookkeeping_field("gnmt")
    alpha: Annotated[
        float, Field(ge=0.0, le=10.0), Doc("strength of the length penalty; 0: none; higher values favour longer texts")
    ] = bookkeeping_field(0.6)


class LogConfig(Section):
    """How often training is recorded."""

    every: Annotated[Positive, Doc("steps between training records")] = bookkeeping_field(10)
