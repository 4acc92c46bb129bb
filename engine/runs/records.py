"""A run directory's files as typed records. Untrusted content is read, checked and cleaned here, and only here.

A value of the wrong type, one that is not finite, or one no run could have measured reads as missing: a damaged file
loses only its damaged values. Control characters are removed from text. Fields unknown to this version are kept
(`Record.dump`), so that newer files lose nothing.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from engine.base.clean import clean
from engine.base.language import MESSAGES, Message, recorded_message, tr
from engine.base.matched_messages import MatchedMessage
from engine.runs.files import read_json

MAX_COUNT = 10**15  # of a count
MAX_NUMBER = 1e100  # of a number: the squares of larger ones overflow
MOST_PROBES = 64  # of a run; more mean damage, and each one gets a column, chart and verdict
LONGEST_CHAIN = 32  # ancestors of a run
MOST_ERRORS = 1000  # damaged values per file, beyond which whole fields are dropped
T = TypeVar("T")


def _first_probes(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(islice(value.items(), MOST_PROBES))
    return value[:MOST_PROBES] if isinstance(value, list) else value


Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-MAX_NUMBER, le=MAX_NUMBER)]
Count = Annotated[int, Field(strict=True, ge=-MAX_COUNT, le=MAX_COUNT)]
Raw = Annotated[str, Field(strict=True)]  # as written: cleaned when displayed
Text = Annotated[Raw, AfterValidator(clean)]


def _read_sentence(text: str, info: ValidationInfo) -> str:
    return recorded_message(text, info.context) if info.context else MatchedMessage(clean(text))


Sentence = Annotated[Raw, AfterValidator(_read_sentence)]  # a message of the program, which `tr` translates
Flag = Annotated[bool, Field(strict=True)]
ByProbe = Annotated[dict[Text, T], BeforeValidator(_first_probes)]


class Record(BaseModel):
    """A file of a run directory, a line of one, or a part of it."""

    # A class is built when it is first used: most commands use a few, and building all takes 50 ms.
    model_config = ConfigDict(
        frozen=True, extra="allow", populate_by_name=True, protected_namespaces=(), defer_build=True
    )

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the record in parsed JSON, without damaged values; anything but an object reads as empty."""
        while isinstance(data, Mapping):
            try:
                return cls.model_validate(data, context=data.get(MESSAGES))
            except ValidationError as error:
                depth = 1 if error.error_count() > MOST_ERRORS else None
                places = {found["loc"][:depth] for found in error.errors(include_url=False, include_input=False)}
                data = _without(data, places) if () not in places else None
        return cls()

    @classmethod
    def create(cls, /, **values: Any) -> Self:
        """Make a record to write: unchecked, in this order. NaN and infinity become null in the file."""
        record = cls.model_construct()
        given = {key: value for key, value in values.items() if key in cls.model_fields}
        others = {key: value for key, value in values.items() if key not in given}
        object.__setattr__(record, "__dict__", given | {k: v for k, v in record.__dict__.items() if k not in given})
        object.__setattr__(record, "__pydantic_extra__", others)
        object.__setattr__(record, "__pydantic_fields_set__", set(values))
        return cast(Self, record)

    def dump(self) -> dict[str, Any]:
        """Return the recorded fields, under their names in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)


class RunFile(Record):
    """A JSON file of a run directory."""

    file: ClassVar[str]

    def __init_subclass__(cls, file: str, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        cls.file = file


def _without(data: Any, places: Iterable[tuple[int | str, ...]]) -> Any:
    """Copy nested objects and lists without the values at some places; a missing value removes its parent."""
    below: dict[int | str, list[tuple[int | str, ...]]] = {}
    for first, *rest in places:
        below.setdefault(first, []).append(tuple(rest))

    def kept(key: int | str, value: Any) -> bool:
        known = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
        return all(rest and rest[0] in known for rest in below.get(key, ()))

    items = list(data.items() if isinstance(data, Mapping) else enumerate(data))
    left = {k: _without(v, below[k]) if k in below else v for k, v in items if kept(k, v)}
    return left if isinstance(data, Mapping) else list(left.values())


class Origin(Record):
    """A checkpoint that a run started from."""

    id: Text  # the run's id, which stays when it is renamed
    name: Text  # the run's name at that time
    checkpoint: Text  # `best`, `last`, `average`, `ema` or a step, as requested
    step: Count  # the step of that checkpoint
    sha256: Text  # SHA-256 of its weights
    before: "Origin | None" = Field(None, alias="from")  # that run's own origin

    @property
    def label(self) -> str:
        """`pretrain@best (step 1,500)`."""
        return tr("{name}@{checkpoint} (step {step:,})", name=self.name, checkpoint=self.checkpoint, step=self.step)

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of its ancestors and its own, oldest first."""
        return (*(self.before.chain if self.before is not None else ()), self.name)


class StudyPlace(Record):
    """A run's place in a study."""

    name: Text = ""  # the study
    variant: Text = ""  # the variant
    seed: Count = 0  # the run's seed
    stage: Text = ""  # name of an earlier stage; "" for the run that is compared
    after: Text = ""  # the run whose weights it starts from


class QueuePlace(Record):
    """A run's place in a queue."""

    device: Text = ""  # the device it waits for
    data_dir: Raw | None = None  # the data folder; as given, because cleaning would change a path


def _cut_chain(value: Any) -> Any:
    """Copy nested origins up to `LONGEST_CHAIN`: a longer chain is damage."""
    chain: list[dict[str, Any]] = []
    while isinstance(value, dict) and len(chain) < LONGEST_CHAIN:
        chain.append(value)
        value = value.get("from")
    before = None
    for one in reversed(chain):
        before = one | {"from": before}
    return before


class Run(RunFile, file="run.json"):
    """run.json: facts that never change while the run exists."""

    id: Text = ""  # kept when the run is renamed
    created: Text = ""  # when, in UTC
    preset: Text | None = None  # the preset of its config
    records: Annotated[Count, Field(ge=1)] = 1  # version of the definitions of its numbers
    command: Text = ""  # the command that started it
    study: StudyPlace = StudyPlace()  # its place in a study
    queue: QueuePlace | None = None  # the queue it was added to
    # the checkpoint whose weights it started from
    origin: Annotated[Origin | None, BeforeValidator(_cut_chain)] = Field(None, alias="from")


class Process(Record):
    pid: Count | None = None  # process id
    process_started: Number = 0.0  # seconds since the boot named by `boot`, or since 1970 if that is empty
    boot: Text = ""  # id of the boot
    host: Text = ""  # name of the machine


class Owner(Process, RunFile, file=".owner.json"):
    """.owner.json: the process that holds a run's lock."""


class Status(Process, RunFile, file="status.json"):
    """status.json: a run's progress, and the process that owns it."""

    state: Text = ""  # queued, preparing, running, paused, finished, stopped …
    phase: Text = ""  # training, evaluating, checkpointing, compiling …
    reason: Sentence = ""  # why it is in this state
    step: Count = 0  # updates so far
    steps: Count = 0  # updates in total
    device: Text = ""  # the device it trains on
    ranks: Count = 1  # processes that train it together
    slowest: Count | None = None  # the rank that the others waited for longest in the last step
    behind: Number | None = None  # seconds that they waited
    beat: Count = 0  # incremented with every write
    control_id: Count = 0  # number of the last command executed
    checkpoint: Text | None = None  # folder of the newest checkpoint
    attempt: Count = 0  # number of the attempt, from 1; every resume starts a new one
    launch: Text = ""  # `thread` or `process`


class LargestBatch(Record):
    """The batch that takes the most memory."""

    rows: Count = 0  # examples in it
    target: Count = 0  # target tokens of each
    source: Count = 0  # source tokens of each; 0 without a source


class ModelFacts(RunFile, file="model.json"):
    """model.json: the network's size, and what was actually built."""

    parameters: Count | None = None  # number of parameters in total
    components: dict[Text, Count] = {}  # parameters by component
    flops_per_token: Count | None = None  # floating-point operations per training token
    memory_bytes: Count | None = None  # estimated memory for training
    largest_batch: LargestBatch | None = None  # the batch that the estimate is for
    built: dict[Text, Any] = {}  # what was actually built: classes, backend, precision, compiled or not


class Floor(Record):
    """The loss of a predictor that knows the grammar, in nats per character; `context` 0 stands for the whole past."""

    nats_per_char: Number | None = None  # the loss
    se: Number | None = None  # its standard error
    luck: Number | None = None  # how far below it a model can get by chance
    context: Count = 0  # tokens that the predictor sees
    stride: Count = 0  # tokens between scored windows
    reachable: "Floor | None" = None  # the floor of a predictor that sees only the model's context

    @property
    def known_nats_per_char(self) -> float:
        assert self.nats_per_char is not None  # see `DataFacts.floors`
        return self.nats_per_char

    @property
    def description(self) -> str:
        """`floor reachable at context 256, stride 128`, or `floor given the whole past`."""
        if not self.context:
            return tr("floor given the whole past")
        return tr("floor reachable at context {context:,}, stride {stride:,}", context=self.context, stride=self.stride)

    @property
    def loss_text(self) -> str:
        """`0.3688 ± 0.0014`."""
        return f"{self.known_nats_per_char:.4f}" + (f" ± {self.se:.4f}" if self.se is not None else "")


class ProbeFacts(Record):
    """A probe of a corpus: its question, its number of positions, and the accuracy of guessing."""

    name: Text  # the probe
    description: Sentence = ""  # what it asks
    n: Count | None = None  # positions in the validation split
    chance: Number | None = None  # accuracy of guessing
    shortcut: Number | None = None  # accuracy of the best rule that never looks back


class MajorityFacts(Record):
    """The score of giving the same answer to every question, or the same class to every text."""

    answer: Text  # the most frequent training answer, or class
    right: Count  # held-out questions it answers correctly, or texts of that class
    of: Count  # held-out questions or texts in total
    score: Text = "exact_match"  # the measure that their share is compared with

    @property
    def share(self) -> float:
        return self.right / self.of

    @property
    def baseline_name(self) -> str:
        """`always 'Arlow'`."""
        return f"always '{self.answer[:40]}'"


class BestReaderScores(Record):
    """What readers who know the grammar of a generated corpus get right in the validation split."""

    accuracy: Number  # share of texts that the best reader puts into the right class
    expected: Number  # the same over all texts that the grammar can make
    unordered: Number | None = None  # that of the best reader without word order; None if a bag of tokens reveals it


class LeadBaseline(Record):
    """Scores of the first sentence of each held-out article as its summary."""

    rouge_1: Number  # mean F1 of the words it shares with the right summary, 0 to 100
    rouge_2: Number  # the same for pairs of words
    rouge_l: Number  # the same for the longest common subsequence
    copied: Number  # share of the words of the right summaries that occur in their article
    articles: Count  # how many were scored


class ExamplePrompt(Record):
    """A prompt to try."""

    source: Text = ""  # a prompt to try
    origin: Text = Field("", alias="from")  # whether it is a training sentence or held out


class OverlapFacts(Record):
    """The share of the held-out text that is also in the training text; see `engine.data.overlap`."""

    share: Number = 0.0  # share of the held-out data that is also in the training data: seen / total
    of: Text = ""  # what is counted: bytes of text or documents, pairs, or questions
    split: Text = ""  # the held-out split
    seen: Count = 0  # number of items that are also in the training data
    total: Count = 0  # number of items looked up
    example: Text = ""  # an item that is in both
    both: Count = 0  # pairs that match on both sides
    documents: Count = 0  # distinct documents looked up
    documents_seen: Count = 0  # how many are also documents of the training data
    lines: Count = 0  # distinct lines of a text looked up
    lines_seen: Count = 0  # how many are also lines of the training text
    sampled: Flag = False  # whether only a sample of the documents or lines was looked up
    generated: Flag = False  # whether a grammar writes the text, so that its lines may repeat


class DataFacts(RunFile, file="data.json"):
    """data.json: a run's training data, and reference losses."""

    corpus: Text = ""  # name and version
    source: Text = ""  # where it was read from
    languages: tuple[Text, ...] = ()  # of the source and the target, or targets
    notes: tuple[Sentence, ...] = ()  # what to know about the corpus
    reading: Count = 1  # version of the rules by which its files were read
    encodings: dict[Text, Text] = {}  # by file, of those that are not UTF-8
    sha256: dict[Text, Text] = {}  # SHA-256 by split
    splits: dict[Text, dict[Text, Count]] = {}  # sizes by split
    left_out: Count | None = None  # training examples that are too long or too short
    padding: Number | None = None  # share of a batch that is padding
    vocabulary: Count | None = None  # tokens, special ones included
    source_vocabulary: Count | None = None  # the source's tokens, if it has its own
    tokenizer_sha256: Text = ""  # SHA-256 of tokenizer.json
    overlap: OverlapFacts | None = None  # held-out data that is also training data
    floor: Floor | None = None  # lowest loss that any model can reach, where known
    plausible: Number | None = None  # lowest loss ever reported on this corpus
    unigram: Number | None = None  # loss of knowing how often each token occurs
    bigram: Number | None = None  # loss of knowing which token follows which
    majority: MajorityFacts | None = None  # score of the same answer to every question, or class to every text
    classes: tuple[Text, ...] = ()  # names of the classes, in order
    bag_of_words: Number | None = None  # accuracy of naive Bayes on word counts
    best_reader: BestReaderScores | None = None  # the highest possible accuracy, where the grammar is known
    lead: LeadBaseline | None = None  # what the first sentences of articles score as their summaries
    probes: Annotated[tuple[ProbeFacts, ...], BeforeValidator(_first_probes)] = ()  # the corpus's probes
    examples: tuple[ExamplePrompt, ...] = ()  # prompts to try

    @property
    def floors(self) -> tuple[Floor, ...]:
        """The known floors, the one that `excess` refers to first; runs of earlier versions have only one."""
        if self.floor is None:
            return ()
        past, reachable, found = self.floor, self.floor.reachable, []
        if reachable is not None and reachable.nats_per_char is not None:
            windows = {"context": reachable.context, "stride": reachable.stride}
            found.append(Floor(nats_per_char=reachable.nats_per_char, se=reachable.se, **windows))
        if past.nats_per_char is not None:
            found.append(Floor(nats_per_char=past.nats_per_char, se=past.se))
        return tuple(found)


class Attempt(Record):
    """The machine and software of one attempt at a run."""

    attempt: Count = 0  # its number, from 1
    host: Text = ""  # name of the machine
    python: Text = ""  # version of Python
    platform: Text = ""  # operating system
    processor: Text = ""  # the processor's model
    versions: dict[Text, Text] = {}  # versions of packages
    device: Text = ""  # the device it trained on
    threads: Count | None = None  # CPU threads, of each rank
    wait_policy: dict[Text, Text] = {}  # OpenMP variables in force: how threads wait for each other
    ranks: Count | None = None  # processes that trained it together; none recorded: gradients were added up in sequence
    cores: Count | None = None  # CPU cores
    memory_bytes: Count | None = None  # memory of the machine
    # whether it continues the attempt before it bit for bit; of the first, whether any number of ranks has its bits
    bit_exact: Flag | None = None
    why_not: Sentence | None = None  # what differed


class Environment(RunFile, file="environment.json"):
    """environment.json: every attempt, oldest first."""

    attempts: tuple[Attempt, ...] = ()  # oldest first


class VerdictRecord(Record):
    """The result of a check: see `engine.runs.verdict.Verdict`."""

    check: Text = ""  # the check's name
    when: Text = ""  # before, evaluation or after
    step: Count = 0  # the step it checked
    verdict: Text = ""  # ok, or a badge
    value: Number | None = None  # the number it is based on
    why: Sentence = ""  # one sentence of explanation


class Checks(RunFile, file="checks.json"):
    """checks.json: every verdict, oldest first."""

    verdicts: tuple[VerdictRecord, ...] = ()  # oldest first


class NumericRecord(Record):
    """A record whose numbers can be looked up by name."""

    def value(self, key: str) -> float | None:
        """Return a field's number by name, even if this version does not know the field; None if not a number."""
        found = getattr(self, key) if key in self.model_fields_set else None
        measured = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= MAX_NUMBER
        return found if measured else None


class TrainRecord(NumericRecord):
    """A line of metrics.jsonl about the steps since the previous one."""

    kind: Literal["train"] = "train"  # always `train`
    step: Count = 0  # number of the newest update
    tokens: Count | None = None  # tokens trained on so far
    seconds: Number | None = None  # seconds of training so far, without evaluations
    loss: Number | None = None  # mean over those steps, in nats per target
    lr: Number | None = None  # learning rate
    grad_norm: Number | None = None  # gradient norm before clipping
    tokens_per_second: Number | None = None  # speed over those steps
    device_load: Number | None = None  # use of the device, 0 to 1
    memory_bytes: Count | None = None  # memory in use on the device


class EvaluationScores(NumericRecord):
    """The scores of one evaluation; which are present depends on the objective."""

    context: Count | None = None  # tokens read at once
    stride: Count | None = None  # tokens between scored windows
    sentences: Count | None = None  # pairs scored
    questions: Count | None = None  # questions asked
    documents: Count | None = None  # documents scored
    texts: Count | None = None  # texts classified
    translated: Count | None = None  # sentences that were translated
    beam: Count | None = None  # hypotheses kept; 1 is greedy
    loss: Number | None = None  # nats per target
    perplexity: Number | None = None  # e^loss
    bits_per_character: Number | None = None  # loss / ln 2 per character, plus the cost of spelling `<unk>`
    bits_per_byte: Number | None = None  # the same per byte of the text's UTF-8
    word_perplexity: Number | None = None  # e to the nats per word, where tokens are not characters
    unknown: Number | None = None  # share of the scored tokens that are `<unk>`
    accuracy: Number | None = None  # share of tokens, or texts, whose likeliest prediction is right
    macro_f1: Number | None = None  # F1 averaged over classes
    confusion: tuple[tuple[Count, ...], ...] = ()  # texts of each class, by the class they were put into
    excess: Number | None = None  # loss minus the floor reachable at this context and stride
    honest_loss: Number | None = None  # loss on answers that cannot be copied from the input
    nanogpt_loss: Number | None = None  # loss over random batches, as nanoGPT computes it
    bleu: Number | None = None  # BLEU by sacreBLEU
    bleu_signature: Text = ""  # sacreBLEU's signature
    bleu_to: ByProbe[Number] = {}  # BLEU by target language, if there are several; `bleu` is their mean
    chrf: Number | None = None  # chrF by sacreBLEU
    rouge_1: Number | None = None  # ROUGE-1 by rouge-score: mean F1, 0 to 100
    rouge_2: Number | None = None  # ROUGE-2
    rouge_l: Number | None = None  # ROUGE-L
    copied: Number | None = None  # share of the summaries' words that occur in their article
    exact_match: Number | None = None  # share of answers, translations or summaries that match exactly
    right: Count | None = None  # number of exact matches
    profile: tuple[Number | None, ...] = ()  # loss by position in the window
    probes: dict[Text, Number] = {}  # share of right answers, 0 to 1
    probe_places: ByProbe[Count] = {}  # number of answers behind each share
    by_distance: ByProbe[tuple[tuple[Number, ...], ...]] = {}  # (from, to, right, of) by range of distances
    probes_recorded: Count = 0  # number of probes recorded, if there are too many to keep
    _written: Mapping[str, object] = {}

    @classmethod
    def read(cls, data: object) -> Self:
        found = super().read(data)
        found._written = data if isinstance(data, dict) else {}
        return found

    @property
    def bleu_and_exact_by_target(self) -> list[tuple[str, float, float]]:
        """Of several target languages: each one's name, BLEU and share exactly right."""
        return [(one, bleu, self.probes.get(f"to_{one}", 0.0)) for one, bleu in self.bleu_to.items()]

    def dump(self) -> dict[str, Any]:
        """Dump it as written: the objective determines the scores and their order."""
        return dict(self._written) or super().dump()

    @model_validator(mode="before")
    @classmethod
    def _limit_probes(cls, data: Any) -> Any:
        probes = data.get("probes") if isinstance(data, dict) else None
        if not isinstance(probes, dict) or len(probes) <= MOST_PROBES:
            return data
        return data | {"probes": _first_probes(probes), "probes_recorded": len(probes)}


class ValidationRecord(EvaluationScores):
    """A line of metrics.jsonl about an evaluation at a step."""

    kind: Literal["validation"] = "validation"  # always `validation`
    step: Count = 0  # number of the newest update
    tokens: Count | None = None  # tokens trained on so far
    seconds: Number | None = None  # seconds of training so far, without evaluations


class AverageScores(EvaluationScores):
    """The scores of the mean of the last checkpoints' weights."""

    steps: tuple[Count, ...] = ()  # the steps of these checkpoints


class Summary(RunFile, file="summary.json"):
    """summary.json: the best and the newest evaluation, and hashes that identify equal runs."""

    step: Count | None = None  # number of the last update
    tokens: Count | None = None  # tokens trained on in total
    seconds: Number | None = None  # seconds of training, without evaluations
    best: ValidationRecord | None = None  # the evaluation that selected the checkpoint `best`
    last: ValidationRecord | None = None  # the newest evaluation
    gap: Number | None = None  # last loss minus best
    average: AverageScores | None = None  # scores of the mean of the last checkpoints
    ema: EvaluationScores | None = None  # scores of the weights' moving average
    fingerprint: Text | None = None  # SHA-256 of losses and gradient norms
    scores_sha256: Text | None = None  # SHA-256 of the validation losses alone

    @property
    def averages(self) -> tuple[tuple[str, float], ...]:
        """The averaged weights that were scored, with their losses in nats per target."""
        scored = (
            (Message("moving average of the weights"), self.ema),
            (Message("mean of the last checkpoints"), self.average),
        )
        return tuple((name, of.loss) for name, of in scored if of is not None and of.loss is not None)


class Event(Record):
    """A line of events.jsonl: something that happened to the run."""

    time: Text = ""  # when, in UTC
    attempt: Count = 0  # the attempt it belongs to
    step: Count = 0  # number of the newest update
    event: Text = ""  # started, checkpoint, paused, leak …
    text: Sentence = ""  # details


class ModelOutput(Record):
    """What the model wrote about one source."""

    source: Text = ""  # sentence, question or document
    reference: Text = ""  # the right text; "" if not given
    text: Text = ""  # what the model wrote
    probabilities: dict[Text, Number] = {}  # of each class, likeliest first

    @property
    def right(self) -> bool:
        return bool(self.reference) and self.text.strip() == self.reference.strip()


class Sample(Record):
    """A line of samples.jsonl: the model's text at a step."""

    step: Count = 0  # number of the newest update
    temperature: Number | None = None  # sampling temperature
    top_k: Count | None = None  # top-k of sampling
    top_p: Number | None = None  # top-p of sampling
    prompt: Text = ""  # the text it continues
    text: Text = ""  # what the model wrote
    chances: tuple[Number | None, ...] = ()  # probability of each token
    translations: tuple[ModelOutput, ...] = ()  # or answers, one row each


class Translations(RunFile, file="translations.json"):
    """translations.json: the newest evaluation's outputs, as scored."""

    step: Count = 0  # number of the newest update
    split: Text = ""  # the split that was scored
    beam: Count = 1  # hypotheses kept; 1 is greedy
    references: tuple[Raw, ...] = ()  # the right translations
    outputs: tuple[Raw, ...] = ()  # what the model wrote


class Notes(RunFile, file="notes.json"):
    """notes.json: the owner's note, tags, and what they have seen."""

    text: Text = ""  # the note
    tags: tuple[Text, ...] = ()  # the run's tags
    seen: tuple[Text, ...] = ()  # badges that the owner has acknowledged; only warnings count


class ControlEntry(Record):
    """A command to a run."""

    id: Count  # number of the command, counting up
    command: Literal["pause", "continue", "stop", "checkpoint"]  # what the run should do


class ControlFile(RunFile, file="control.json"):
    """control.json: the pending commands."""

    commands: tuple[ControlEntry, ...] = ()  # commands not yet obeyed


MetricRecord = TrainRecord | ValidationRecord
# The files of a run directory: a JSON file, or a line of a .jsonl file.
SCHEMAS: dict[str, Any] = {
    **{kind.file: kind for kind in (Run, Status, ModelFacts, DataFacts, Environment, Checks, Summary)},
    **{kind.file: kind for kind in (Translations, Notes, ControlFile)},
    "metrics.jsonl": MetricRecord,
    "events.jsonl": Event,
    "samples.jsonl": Sample,
}
F = TypeVar("F", bound=RunFile)


def read_file(run: Path, kind: type[F]) -> F:
    """Read a file of a run directory; an empty record if it is missing or not a JSON object."""
    return kind.read(read_json(run / kind.file))


def metric_record(data: Mapping[str, Any]) -> MetricRecord | None:
    """Return a line of metrics.jsonl; None for a kind that this version does not know."""
    kind = data.get("kind")
    if kind == "train":
        return TrainRecord.read(data)
    return ValidationRecord.read(data) if kind == "validation" else None
