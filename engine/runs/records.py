"""The files of a run directory as typed records. What others wrote is read, checked and cleaned here, and only here.

A value of another type than the field's, one that is not finite, or one no run could have measured, reads as if it were
missing: a damaged file hides nothing but its damaged values. Text comes without control characters. Fields that this
version does not know are kept (`Record.dump`), so that newer files lose nothing.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from engine.clean import clean
from engine.runs.files import read_json

LARGEST = 10**15  # of a count
MEASURED = 1e100  # of a number: the squares of larger ones overflow
MOST_PROBES = 64  # of a run; more mean damage, and each one gets a column, chart and verdict
LONGEST_CHAIN = 32  # runs that a run descends from
MOST_ERRORS = 1000  # damaged values in one file, beyond which whole fields are dropped
T = TypeVar("T")


def _first_entries(value: Any) -> Any:
    return dict(islice(value.items(), MOST_PROBES)) if isinstance(value, dict) else value


def _first_items(value: Any) -> Any:
    return value[:MOST_PROBES] if isinstance(value, list) else value


Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-MEASURED, le=MEASURED)]
Count = Annotated[int, Field(strict=True, ge=-LARGEST, le=LARGEST)]
Raw = Annotated[str, Field(strict=True)]  # as it was written: cleaned by whoever shows it
Text = Annotated[Raw, AfterValidator(clean)]
Flag = Annotated[bool, Field(strict=True)]
ByProbe = Annotated[dict[Text, T], BeforeValidator(_first_entries)]


class Record(BaseModel):
    """A file of a run directory, a line of one, or a part of it."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, protected_namespaces=())

    @classmethod
    def read(cls, data: object) -> Self:
        """Return the record that parsed JSON holds, without what is damaged in it.

        Args:
            data: parsed JSON; not modified. Anything but an object reads as an empty one.
        """
        while isinstance(data, Mapping):
            try:
                return cls.model_validate(data)
            except ValidationError as error:
                depth = 1 if error.error_count() > MOST_ERRORS else None
                places = {found["loc"][:depth] for found in error.errors(include_url=False, include_input=False)}
                data = _without(data, places) if () not in places else None
        return cls()

    def dump(self) -> dict[str, Any]:
        """The fields that were recorded, under the names that they have in the file."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class RunFile(Record):
    """A JSON file of a run directory."""

    file: ClassVar[str]


def _without(data: Any, places: Iterable[tuple[int | str, ...]]) -> Any:
    """A copy of nested objects and lists without the values at some places; where there is none, without its parent."""
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
    """A checkpoint that a run started from.

    Args:
        id: of the run, whatever it is called now.
        name: as it was called then.
        checkpoint: `best`, `last`, `average` or a step, as it was asked for.
        step: that this was.
        sha256: of its weights.
        before: what that run had started from; None where from weights of its own.
    """

    id: Text
    name: Text
    checkpoint: Text
    step: Count
    sha256: Text
    before: "Origin | None" = Field(None, alias="from")

    @property
    def shown(self) -> str:
        """`pretrain@best (step 1,500)`."""
        return f"{self.name}@{self.checkpoint} (step {self.step:,})"

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of all runs that led to it and its own, the first one first."""
        return (*(self.before.chain if self.before is not None else ()), self.name)


class StudyPlace(Record):
    """The place of a run in its study."""

    name: Text = ""
    variant: Text = ""
    seed: Count = 0
    stage: Text = ""
    after: Text = ""


class QueuePlace(Record):
    """The queue that a run waits in."""

    device: Text = ""
    data_dir: Raw | None = None  # a path: cleaned, it would be another one


def _cut_chain(value: Any) -> Any:
    """A copy of nested origins up to `LONGEST_CHAIN`: a longer chain is damage."""
    chain: list[dict[str, Any]] = []
    while isinstance(value, dict) and len(chain) < LONGEST_CHAIN:
        chain.append(value)
        value = value.get("from")
    before = None
    for one in reversed(chain):
        before = one | {"from": before}
    return before


class Run(RunFile):
    """run.json: what stays the same for as long as the run exists."""

    file: ClassVar[str] = "run.json"

    id: Text = ""
    created: Text = ""
    preset: Text | None = None
    records: Annotated[Count, Field(ge=1)] = 1
    command: Text = ""
    study: StudyPlace = StudyPlace()
    queue: QueuePlace | None = None
    origin: Annotated[Origin | None, BeforeValidator(_cut_chain)] = Field(None, alias="from")


class Process(Record):
    """The process that has a run.

    Args:
        process_started: seconds since the boot named by `boot`; since 1970 where that is empty.
    """

    pid: Count | None = None
    process_started: Number = 0.0
    boot: Text = ""
    host: Text = ""


class Owner(Process, RunFile):
    """.owner.json: the process that holds a run's lock."""

    file: ClassVar[str] = ".owner.json"


class Status(Process, RunFile):
    """status.json: where a run is, and which process has it.

    Args:
        beat: counts up with every write.
        control_id: of the last command that was obeyed.
        launch: `thread` or `process`.
    """

    file: ClassVar[str] = "status.json"

    state: Text = ""
    phase: Text = ""
    reason: Text = ""
    step: Count = 0
    steps: Count = 0
    device: Text = ""
    beat: Count = 0
    control_id: Count = 0
    checkpoint: Text | None = None
    attempt: Count = 0
    launch: Text = ""


class LargestBatch(Record):
    """The largest batch of a run, in rows and tokens a row."""

    rows: Count = 0
    target: Count = 0
    source: Count = 0


class ModelFacts(RunFile):
    """model.json: the size of the network, and what was built of what was asked for."""

    file: ClassVar[str] = "model.json"

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


class ProbeFacts(Record):
    """A probe of a corpus: what it asks, how often, and how often a guess is right."""

    name: Text
    description: Text = ""
    n: Count | None = None
    chance: Number | None = None
    shortcut: Number | None = None


class MajorityFacts(Record):
    """The answer that is right most often, and how often."""

    answer: Text
    right: Count
    of: Count


class Example(Record):
    """A source sentence to try, and where it is from."""

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


class DataFacts(RunFile):
    """data.json: what a run is trained on, and the losses to compare its loss with."""

    file: ClassVar[str] = "data.json"

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
    probes: Annotated[tuple[ProbeFacts, ...], BeforeValidator(_first_items)] = ()
    examples: tuple[Example, ...] = ()


class Attempt(Record):
    """Where one attempt at a run was trained."""

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


class Environment(RunFile):
    """environment.json: every attempt, oldest first."""

    file: ClassVar[str] = "environment.json"

    attempts: tuple[Attempt, ...] = ()


class VerdictRecord(Record):
    """What a check found: see `engine.evaluation.verdict.Verdict`."""

    check: Text = ""
    when: Text = ""
    step: Count = 0
    verdict: Text = ""
    value: Number | None = None
    why: Text = ""


class Checks(RunFile):
    """checks.json: every verdict, oldest first."""

    file: ClassVar[str] = "checks.json"

    verdicts: tuple[VerdictRecord, ...] = ()


class TrainRecord(Record):
    """A line of metrics.jsonl about the steps since the one before it.

    Args:
        seconds: of training so far, without evaluations.
        loss: nats per target, a mean over those steps.
        grad_norm: before clipping.
        device_load: 0 to 1.
    """

    kind: Literal["train"] = "train"
    step: Count = 0
    tokens: Count | None = None
    seconds: Number | None = None
    loss: Number | None = None
    lr: Number | None = None
    grad_norm: Number | None = None
    tokens_per_second: Number | None = None
    device_load: Number | None = None
    memory_bytes: Count | None = None


class Scores(Record):
    """The scores of one evaluation; which of them are there depends on the objective.

    Args:
        loss: nats per target.
        excess: nats above the floor reachable at this context and stride.
        honest_loss: over the answers that cannot be copied from the input.
        profile: loss by position in the window.
        probes: share of right answers by probe, 0 to 1; `probe_places` the answers behind it.
        by_distance: by probe, (from, to, right, of) for each range of distances.
    """

    context: Count | None = None
    stride: Count | None = None
    sentences: Count | None = None
    questions: Count | None = None
    documents: Count | None = None
    translated: Count | None = None
    beam: Count | None = None
    loss: Number | None = None
    perplexity: Number | None = None
    bits_per_character: Number | None = None
    accuracy: Number | None = None
    excess: Number | None = None
    honest_loss: Number | None = None
    nanogpt_loss: Number | None = None
    bleu: Number | None = None
    bleu_signature: Text = ""
    chrf: Number | None = None
    exact_match: Number | None = None
    right: Count | None = None
    profile: tuple[Number | None, ...] = ()
    probes: dict[Text, Number] = {}
    probe_places: ByProbe[Count] = {}
    by_distance: ByProbe[tuple[tuple[Number, ...], ...]] = {}
    probes_recorded: Count = 0

    def value(self, key: str) -> float | None:
        """Return a score by its field's name, also of a field that this version does not know; None if it is none."""
        found = getattr(self, key, None)
        measured = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= MEASURED
        return found if measured else None

    @model_validator(mode="before")
    @classmethod
    def _cap(cls, data: Any) -> Any:
        probes = data.get("probes") if isinstance(data, dict) else None
        if not isinstance(probes, dict) or len(probes) <= MOST_PROBES:
            return data
        return data | {"probes": _first_entries(probes), "probes_recorded": len(probes)}


class ValidationRecord(Scores):
    """A line of metrics.jsonl about an evaluation at a step."""

    kind: Literal["validation"] = "validation"
    step: Count = 0
    tokens: Count | None = None
    seconds: Number | None = None


class AverageScores(Scores):
    """The scores of the mean of the last checkpoints' weights."""

    steps: tuple[Count, ...] = ()


class Summary(RunFile):
    """summary.json: the best and the newest evaluation, and hashes that tell equal runs."""

    file: ClassVar[str] = "summary.json"

    step: Count | None = None
    tokens: Count | None = None
    seconds: Number | None = None
    best: ValidationRecord | None = None
    last: ValidationRecord | None = None
    gap: Number | None = None
    average: AverageScores | None = None
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
    """A source, what a model wrote for it, and what was expected."""

    source: Text = ""
    reference: Text = ""
    text: Text = ""


class Sample(Record):
    """A line of samples.jsonl: text that the model wrote at a step."""

    step: Count = 0
    temperature: Number | None = None
    top_k: Count | None = None
    top_p: Number | None = None
    prompt: Text = ""
    text: Text = ""
    chances: tuple[Number | None, ...] = ()
    translations: tuple[WrittenRow, ...] = ()


class Translations(RunFile):
    """translations.json: the outputs of the newest evaluation, as they were scored."""

    file: ClassVar[str] = "translations.json"

    step: Count = 0
    split: Text = ""
    beam: Count = 1
    references: tuple[Raw, ...] = ()
    outputs: tuple[Raw, ...] = ()


class Notes(RunFile):
    """notes.json: what people wrote about a run."""

    file: ClassVar[str] = "notes.json"

    text: Text = ""
    tags: tuple[Text, ...] = ()


class ControlEntry(Record):
    """A command for the process that trains a run."""

    id: Count
    command: Literal["pause", "continue", "stop", "checkpoint"]


class Control(RunFile):
    """control.json: the commands that have not been obeyed yet."""

    file: ClassVar[str] = "control.json"

    commands: tuple[ControlEntry, ...] = ()


MetricRecord = TrainRecord | ValidationRecord
# What a run directory has: a JSON file, or a line of a .jsonl file.
SCHEMAS: dict[str, Any] = {
    **{kind.file: kind for kind in (Run, Status, ModelFacts, DataFacts, Environment, Checks, Summary)},
    **{kind.file: kind for kind in (Translations, Notes, Control)},
    "metrics.jsonl": MetricRecord,
    "events.jsonl": Event,
    "samples.jsonl": Sample,
}
F = TypeVar("F", bound=RunFile)


def read_file(run: Path, kind: type[F]) -> F:
    """Return a file of a run directory; an empty record where it is missing or no JSON object."""
    return kind.read(read_json(run / kind.file))


def metric_record(data: Mapping[str, Any]) -> MetricRecord | None:
    """Return a line of metrics.jsonl; None for a kind that this version does not know."""
    kind = data.get("kind")
    if kind == "train":
        return TrainRecord.read(data)
    return ValidationRecord.read(data) if kind == "validation" else None
