"""A run directory's files as typed records. Untrusted content is read, checked and cleaned here, and only here.

A value of the wrong type, one that is not finite, or one no run could have measured reads as missing: a damaged file
loses only its damaged values. Control characters are removed from text. Fields unknown to this version are kept
(`Record.dump`), so that newer files lose nothing.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from engine.clean import clean
from engine.language import tr
from engine.runs.files import read_json

LARGEST = 10**15  # of a count
MEASURED = 1e100  # of a number: the squares of larger ones overflow
MOST_PROBES = 64  # of a run; more mean damage, and each one gets a column, chart and verdict
LONGEST_CHAIN = 32  # ancestors of a run
MOST_ERRORS = 1000  # damaged values per file, beyond which whole fields are dropped
T = TypeVar("T")


def _first_probes(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(islice(value.items(), MOST_PROBES))
    return value[:MOST_PROBES] if isinstance(value, list) else value


Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-MEASURED, le=MEASURED)]
Count = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Raw = Annotated[str, Field(strict=True)]  # as written: cleaned when displayed
Text = Annotated[Raw, AfterValidator(clean)]
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
                return cls.model_validate(data)
            except ValidationError as error:
                depth = 1 if error.error_count() > MOST_ERRORS else None
                places = {found["loc"][:depth] for found in error.errors(include_url=False, include_input=False)}
                data = _without(data, places) if () not in places else None
        return cls()

    @classmethod
    def made(cls, /, **values: Any) -> Self:
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

    id: Text  # the run's id, whatever its name now
    name: Text  # its name then
    checkpoint: Text  # `best`, `last`, `average`, `ema` or a step, as requested
    step: Count  # that this was
    sha256: Text  # of its weights
    before: "Origin | None" = Field(None, alias="from")  # that run's own origin, if not its seed

    @property
    def shown(self) -> str:
        """`pretrain@best (step 1,500)`."""
        return tr("{name}@{checkpoint} (step {step:,})", name=self.name, checkpoint=self.checkpoint, step=self.step)

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of its ancestors and its own, oldest first."""
        return (*(self.before.chain if self.before is not None else ()), self.name)


class StudyPlace(Record):
    name: Text = ""
    variant: Text = ""
    seed: Count = 0
    stage: Text = ""
    after: Text = ""


class QueuePlace(Record):
    device: Text = ""
    data_dir: Raw | None = None  # a path: cleaning would change it


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

    id: Text = ""
    created: Text = ""
    preset: Text | None = None
    records: Annotated[Count, Field(ge=1)] = 1
    command: Text = ""
    study: StudyPlace = StudyPlace()
    queue: QueuePlace | None = None
    origin: Annotated[Origin | None, BeforeValidator(_cut_chain)] = Field(None, alias="from")


class Process(Record):
    pid: Count | None = None
    process_started: Number = 0.0  # seconds since the boot named by `boot`; since 1970 where that is empty
    boot: Text = ""
    host: Text = ""


class Owner(Process, RunFile, file=".owner.json"):
    """.owner.json: the process that holds a run's lock."""


class Status(Process, RunFile, file="status.json"):
    """status.json: a run's progress, and the process that owns it."""

    state: Text = ""
    phase: Text = ""
    reason: Text = ""
    step: Count = 0
    steps: Count = 0
    device: Text = ""
    beat: Count = 0  # incremented by every write
    control_id: Count = 0  # of the last command executed
    checkpoint: Text | None = None
    attempt: Count = 0
    launch: Text = ""  # `thread` or `process`


class LargestBatch(Record):
    rows: Count = 0
    target: Count = 0
    source: Count = 0


class ModelFacts(RunFile, file="model.json"):
    """model.json: the network's size, and what was actually built."""

    parameters: Count | None = None
    components: dict[Text, Count] = {}
    flops_per_token: Count | None = None
    memory_bytes: Count | None = None
    largest_batch: LargestBatch | None = None
    built: dict[Text, Any] = {}


class Floor(Record):
    """The loss of a predictor that knows the grammar, in nats per character; `context` 0 stands for the whole past."""

    nats_per_char: Number | None = None
    se: Number | None = None
    luck: Number | None = None
    context: Count = 0
    stride: Count = 0
    reachable: "Floor | None" = None

    @property
    def nats(self) -> float:
        assert self.nats_per_char is not None  # see `DataFacts.floors`
        return self.nats_per_char

    @property
    def words(self) -> str:
        """`floor reachable at context 256, stride 128`, or `floor given the whole past`."""
        if not self.context:
            return tr("floor given the whole past")
        return tr("floor reachable at context {context:,}, stride {stride:,}", context=self.context, stride=self.stride)

    @property
    def amount(self) -> str:
        """`0.3688 ± 0.0014`."""
        return f"{self.nats:.4f}" + (f" ± {self.se:.4f}" if self.se is not None else "")


class ProbeFacts(Record):
    """A probe of a corpus: its question, its number of places, and the accuracy of guessing."""

    name: Text
    description: Text = ""
    n: Count | None = None
    chance: Number | None = None
    shortcut: Number | None = None


class MajorityFacts(Record):
    answer: Text
    right: Count
    of: Count

    @property
    def share(self) -> float:
        return self.right / self.of

    @property
    def name(self) -> str:
        """`always 'Arlow'`."""
        return f"always '{self.answer[:40]}'"


class Example(Record):
    source: Text = ""
    origin: Text = Field("", alias="from")


class OverlapFacts(Record):
    """The share of the held-out text that is also in the training text; see `engine.data.overlap`."""

    share: Number = 0.0
    of: Text = ""
    split: Text = ""
    seen: Count = 0
    total: Count = 0
    example: Text = ""
    both: Count = 0


class DataFacts(RunFile, file="data.json"):
    """data.json: a run's training data, and reference losses."""

    corpus: Text = ""
    source: Text = ""
    languages: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()
    sha256: dict[Text, Text] = {}
    splits: dict[Text, dict[Text, Count]] = {}
    left_out: Count | None = None
    padding: Number | None = None
    vocabulary: Count | None = None
    source_vocabulary: Count | None = None
    tokenizer_sha256: Text = ""
    overlap: OverlapFacts | None = None
    floor: Floor | None = None
    plausible: Number | None = None
    unigram: Number | None = None
    bigram: Number | None = None
    majority: MajorityFacts | None = None
    probes: Annotated[tuple[ProbeFacts, ...], BeforeValidator(_first_probes)] = ()
    examples: tuple[Example, ...] = ()

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

    attempt: Count = 0
    host: Text = ""
    python: Text = ""
    platform: Text = ""
    processor: Text = ""
    versions: dict[Text, Text] = {}
    device: Text = ""
    threads: Count | None = None
    cores: Count | None = None
    memory_bytes: Count | None = None
    bit_exact: Flag | None = None
    why_not: Text | None = None


class Environment(RunFile, file="environment.json"):
    """environment.json: every attempt, oldest first."""

    attempts: tuple[Attempt, ...] = ()


class VerdictRecord(Record):
    """The result of a check: see `engine.evaluation.verdict.Verdict`."""

    check: Text = ""
    when: Text = ""
    step: Count = 0
    verdict: Text = ""
    value: Number | None = None
    why: Text = ""


class Checks(RunFile, file="checks.json"):
    """checks.json: every verdict, oldest first."""

    verdicts: tuple[VerdictRecord, ...] = ()


class Measured(Record):
    """A record whose numbers can be looked up by name."""

    def value(self, key: str) -> float | None:
        """Return a field's number by name, even if this version does not know the field; None if not a number."""
        found = getattr(self, key) if key in self.model_fields_set else None
        measured = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= MEASURED
        return found if measured else None


class TrainRecord(Measured):
    """A line of metrics.jsonl about the steps since the previous one."""

    kind: Literal["train"] = "train"
    step: Count = 0
    tokens: Count | None = None
    seconds: Number | None = None  # of training so far, without evaluations
    loss: Number | None = None  # nats per target, a mean over those steps
    lr: Number | None = None
    grad_norm: Number | None = None  # before clipping
    tokens_per_second: Number | None = None
    device_load: Number | None = None  # 0 to 1
    memory_bytes: Count | None = None


class Scores(Measured):
    """The scores of one evaluation; which are present depends on the objective."""

    context: Count | None = None
    stride: Count | None = None
    sentences: Count | None = None
    questions: Count | None = None
    documents: Count | None = None
    translated: Count | None = None
    beam: Count | None = None
    loss: Number | None = None  # nats per target
    perplexity: Number | None = None
    bits_per_character: Number | None = None
    accuracy: Number | None = None
    excess: Number | None = None  # nats above the floor reachable at this context and stride
    honest_loss: Number | None = None  # over answers that cannot be copied from the input
    nanogpt_loss: Number | None = None
    bleu: Number | None = None
    bleu_signature: Text = ""
    chrf: Number | None = None
    exact_match: Number | None = None
    right: Count | None = None
    profile: tuple[Number | None, ...] = ()  # loss by position in the window
    probes: dict[Text, Number] = {}  # share of right answers, 0 to 1
    probe_places: ByProbe[Count] = {}  # the answers behind it
    by_distance: ByProbe[tuple[tuple[Number, ...], ...]] = {}  # (from, to, right, of) by range of distances
    probes_recorded: Count = 0
    _written: Mapping[str, object] = {}

    @classmethod
    def read(cls, data: object) -> Self:
        found = super().read(data)
        found._written = data if isinstance(data, dict) else {}
        return found

    def dump(self) -> dict[str, Any]:
        """Dump it as written: the objective determines the scores and their order."""
        return dict(self._written) or super().dump()

    @model_validator(mode="before")
    @classmethod
    def _cap(cls, data: Any) -> Any:
        probes = data.get("probes") if isinstance(data, dict) else None
        if not isinstance(probes, dict) or len(probes) <= MOST_PROBES:
            return data
        return data | {"probes": _first_probes(probes), "probes_recorded": len(probes)}


class ValidationRecord(Scores):
    """A line of metrics.jsonl about an evaluation at a step."""

    kind: Literal["validation"] = "validation"
    step: Count = 0
    tokens: Count | None = None
    seconds: Number | None = None


class AverageScores(Scores):
    """The scores of the mean of the last checkpoints' weights."""

    steps: tuple[Count, ...] = ()


class Summary(RunFile, file="summary.json"):
    """summary.json: the best and the newest evaluation, and hashes that identify equal runs."""

    step: Count | None = None
    tokens: Count | None = None
    seconds: Number | None = None
    best: ValidationRecord | None = None
    last: ValidationRecord | None = None
    gap: Number | None = None
    average: AverageScores | None = None
    ema: Scores | None = None  # of the weights' moving average
    fingerprint: Text | None = None
    scores_sha256: Text | None = None


class Event(Record):
    """A line of events.jsonl."""

    time: Text = ""
    attempt: Count = 0
    step: Count = 0
    event: Text = ""
    text: Text = ""


class WrittenRow(Record):
    source: Text = ""
    reference: Text = ""  # the right text; "" if not given
    text: Text = ""

    @property
    def right(self) -> bool:
        return bool(self.reference) and self.text.strip() == self.reference.strip()


class Sample(Record):
    """A line of samples.jsonl: the model's text at a step."""

    step: Count = 0
    temperature: Number | None = None
    top_k: Count | None = None
    top_p: Number | None = None
    prompt: Text = ""
    text: Text = ""
    chances: tuple[Number | None, ...] = ()
    translations: tuple[WrittenRow, ...] = ()


class Translations(RunFile, file="translations.json"):
    """translations.json: the newest evaluation's outputs, as scored."""

    step: Count = 0
    split: Text = ""
    beam: Count = 1
    references: tuple[Raw, ...] = ()
    outputs: tuple[Raw, ...] = ()


class Notes(RunFile, file="notes.json"):
    text: Text = ""
    tags: tuple[Text, ...] = ()


class ControlEntry(Record):
    id: Count
    command: Literal["pause", "continue", "stop", "checkpoint"]


class Control(RunFile, file="control.json"):
    """control.json: the pending commands."""

    commands: tuple[ControlEntry, ...] = ()


MetricRecord = TrainRecord | ValidationRecord
# The files of a run directory: a JSON file, or a line of a .jsonl file.
SCHEMAS: dict[str, Any] = {
    **{kind.file: kind for kind in (Run, Status, ModelFacts, DataFacts, Environment, Checks, Summary)},
    **{kind.file: kind for kind in (Translations, Notes, Control)},
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
