"""One run as a comparison knows it: an immutable row, read from its small files and never from its metrics."""

import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from engine.config.keys import flatten
from engine.config.toml import MAX_BYTES, parse, read
from engine.errors import InputError
from engine.measures import MEASURE, MEASURES, Measure, probe
from engine.plain_files import read_plain
from engine.runs.files import read_json
from engine.runs.lineage import INIT_FROM
from engine.runs.reader import LIVE_STATES, RunReader, badges_of, softened
from engine.runs.record_version import redefined
from engine.runs.records import (
    LARGEST,
    MOST_PROBES,
    Checks,
    DataFacts,
    ModelFacts,
    Notes,
    Origin,
    Record,
    Run,
    Status,
    StudyPlace,
    Summary,
    ValidationRecord,
)
from tui_transformer.lab.formatting import unit

DAMAGED, DAMAGED_FILES = "damaged", "DAMAGED"
ENDED_EARLY = ("stopped", "interrupted", "failed", "lost")
NO_RUN = "no run"  # the state of a row that stands for always giving the same answer
CONFIG = "config.toml"
READ = (Run.file, CONFIG, Status.file, Summary.file, Checks.file, ModelFacts.file, DataFacts.file, Notes.file)
REDEFINED_HERE = ("excess", "probes", "flops_per_token")  # those shown here, of all that can be redefined
ASKED = ("corpus", "corpus_seed", "corpus_size", "validation_fraction", "test_fraction")
LOSS = MEASURE["loss"]
LAST = replace(LOSS, key="last", name="validation loss")
BEST = replace(LOSS, key="best", name="best validation loss")
EXCESS = MEASURE["excess"]
LOSSES = (LAST, BEST, EXCESS)
# Scores of an evaluation beside its loss and how far that is above the floor.
SCORES = {measure.key: measure for measure in MEASURES if not measure.probe and measure not in (LOSS, EXCESS)}
EXACT_MATCH = "exact_match"
_NO_NUMBER = re.compile(r"not a number|not finite|\bnan\b|\binf", re.IGNORECASE)
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Protocol:
    """How a score was taken: two losses can be held against each other only where all of this is equal.

    Args:
        corpus: with its version; "" where data.json does not say it.
        split: SHA-256 of the validation text; "" where data.json does not say it.
        asked: the settings that name and cut the text, for where it does not; the corpus first.
        unit: what the loss is a mean over.
        objective: what is predicted from what.
        tokens: what tells one tokenizer from another; "" where tokens are characters.
        context: tokens of a window; None before the first score.
        stride: tokens between two windows.
    """

    corpus: str = ""
    split: str = ""
    asked: tuple[Any, ...] = ()
    unit: str = "character"
    objective: str = "next-token"
    tokens: str = ""
    context: int | None = None
    stride: int | None = None


@dataclass(frozen=True)
class Majority:
    """Always giving the most frequent answer of the training questions. Knowledge is what a run is right in beyond it.

    Args:
        answer: which.
        share: of the held-out questions that it is right in, 0 to 1.
    """

    answer: str
    share: float

    @property
    def name(self) -> str:
        """`always 'Arlow'`."""
        return f"always '{self.answer[:40]}'"


class Listed(typing.Protocol):
    """A row of a table: a run, or a variant."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def badges(self) -> Mapping[str, str]: ...
    @property
    def protocol(self) -> Protocol: ...


@dataclass(frozen=True)
class Entry:
    """A run.

    Args:
        state: the one to show: `lost` where its process is gone, `damaged` where status.json cannot be read.
        best: the lowest validation loss, nats per `protocol.unit`; `last` the newest.
        gap: last − best, nats.
        excess: the last loss minus the floor reachable at its context and stride, in nats, if known.
        redefined: numbers that an older version defined differently; they are left out.
        flops_per_token: of one pass forward and back, as the model's size implies.
        tokens: seen in training; `tokens_per_second` over `seconds` of it, without evaluations.
        scores: other scores of the last evaluation, by name.
        probes: of the last evaluation, by name, shares from 0 to 1; `chances` of guessing them.
        places: questions behind a share, by the name of the score or probe, where known.
        badges: what is wrong with its scores, and why.
        checked: both the model and a score have been checked.
        study: its place in a study; `stage` is "" for the run that is compared.
        origin: the checkpoint that it started from; None where from weights of its own.
        config: every setting, by its dotted key; in a study `train.init_from` names the stage and not its run, so that
            the seeds of a variant have their settings in common.
        problems: files that are damaged.
        majority: what always giving the same answer scores on its questions; None where it asks none.
    """

    path: Path
    state: str = DAMAGED
    reason: str = ""
    created: str = ""
    preset: str = ""
    step: int = 0
    steps: int = 0
    best: float | None = None
    best_step: int | None = None
    last: float | None = None
    last_step: int | None = None
    gap: float | None = None
    excess: float | None = None
    redefined: tuple[str, ...] = ()
    parameters: int | None = None
    flops_per_token: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    probes: Mapping[str, float] = field(default_factory=dict)
    chances: Mapping[str, float] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)
    badges: Mapping[str, str] = field(default_factory=dict)
    checked: bool = False
    notes: str = ""
    tags: tuple[str, ...] = ()
    seed: int | None = None
    study: StudyPlace | None = None
    origin: Origin | None = None
    protocol: Protocol = Protocol()
    config: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    majority: Majority | None = None

    def value(self, measure: Measure) -> float | None:
        """Return what it scored in a measure."""
        if measure.probe:
            return self.probes.get(measure.key)
        if measure.key in SCORES:
            return self.scores.get(measure.key)
        return {"last": self.last, "best": self.best, "excess": self.excess}[measure.key]

    @property
    def over_majority(self) -> float | None:
        """Exact match − that of always the same answer."""
        own = self.scores.get(EXACT_MATCH)
        return own - self.majority.share if own is not None and self.majority is not None else None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def corpus(self) -> str:
        return self.protocol.corpus or setting(self.config, "data.corpus")

    @property
    def tokens_per_second(self) -> float | None:
        return self.tokens / self.seconds if self.tokens and self.seconds and self.seconds > 0 else None

    @property
    def seed_of_study(self) -> int | None:
        """Its seed by its config; where that is damaged, by its study."""
        return self.seed if self.seed is not None or self.study is None else self.study.seed


def setting(config: Mapping[str, Any], key: str) -> str:
    """Return a setting that is a text; "" where it is none."""
    found = config.get(key)
    return found if isinstance(found, str) else ""


def probes(entries: Iterable[Entry]) -> tuple[Measure, ...]:
    """Return the probes that any of these runs has, in their order."""
    return tuple(map(probe, dict.fromkeys(name for entry in entries for name in entry.probes)))


def scores(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Return the other scores that any of these runs has."""
    return tuple(measure for key, measure in SCORES.items() if any(key in entry.scores for entry in entries))


def judged(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Return all measures in which variants of these runs are compared."""
    return (LAST, BEST, *probes(entries), *(measure for measure in scores(entries) if measure.judged))


def majority_rows(entries: Sequence[Entry]) -> list[Entry]:
    """Return a row for each answer that always given would be right in some of these runs' questions: no runs."""
    beside = {entry.majority: entry for entry in reversed(entries) if entry.majority is not None}
    return [
        Entry(  # nothing is at its path, and no run can be called so
            path=beside[one].path.parent / f"{NO_RUN}: {one.name.replace('/', '∕')}",
            state=NO_RUN,
            scores={EXACT_MATCH: one.share},
            protocol=beside[one].protocol,
            majority=one,
        )
        for one in majorities(entries)
    ]


def majorities(entries: Iterable[Entry]) -> list[Majority]:
    """Return what always answering the same scores on these runs' questions, each once."""
    return list(dict.fromkeys(entry.majority for entry in entries if entry.majority is not None))


def read_entry(path: Path) -> Entry:
    """Read a run directory as it is now. Never raises: what is damaged is left out, and named in `problems`."""
    reader, problems = RunReader(path), []

    def read_record(kind: type[R], file: str) -> R:
        data = read_json(path / file)
        if not isinstance(data, dict) and (path / file).exists():
            problems.append(file)
        return kind.read(data)

    born, status = read_record(Run, Run.file), read_record(Status, Status.file)
    summary = read_record(Summary, Summary.file)
    try:
        config = config_table(path / CONFIG)
    except (InputError, RecursionError):
        problems.append(CONFIG)
        config = {}
    study = born.study if born.study.name else None
    if study is not None and study.after and INIT_FROM in config:
        _, at, checkpoint = setting(config, INIT_FROM).rpartition("@")
        config[INIT_FROM] = f"{study.after}{at}{checkpoint if at else ''}"
    best, last = summary.best or ValidationRecord(), summary.last or ValidationRecord()
    state = reader.state if status.state in LIVE_STATES else status.state or DAMAGED
    model, data, notes = read_record(ModelFacts, ModelFacts.file), read_record(DataFacts, DataFacts.file), reader.notes
    objective = setting(config, "objective.kind") or "next-token"
    # A translation's BLEU may be compared with an older one: only outputs that hit the length limit differ.
    names = redefined(born.records, "" if objective == "translation" else objective)
    known = {"excess": last.excess is not None, "flops_per_token": model.flops_per_token is not None}
    known["probes"] = "probes" in last.model_fields_set
    older = tuple(name for name in REDEFINED_HERE if name in names and known[name])
    verdicts = softened(read_record(Checks, Checks.file).verdicts, data)
    badges = badges_of(verdicts)
    if state == "failed" and _NO_NUMBER.search(status.reason):
        badges.setdefault("DIVERGED", status.reason)
    if problems:  # that nothing is wrong is not to be concluded from a file that cannot be read
        badges[DAMAGED_FILES] = f"{', '.join(problems)} cannot be read"
    if last.probes_recorded > MOST_PROBES:
        badges[DAMAGED_FILES] = f"summary.json has {last.probes_recorded:,} probes; the first {MOST_PROBES} are read"
    gap = last.loss - best.loss if last.loss is not None and best.loss is not None else None
    majority = data.majority
    return Entry(
        path=path,
        state=state,
        reason=status.reason,
        created=born.created,
        preset=born.preset or "",
        step=status.step,
        steps=status.steps,
        best=best.loss,
        best_step=best.step if summary.best is not None else None,
        last=last.loss,
        last_step=last.step if summary.last is not None else None,
        gap=gap if summary.gap is None else summary.gap,
        excess=None if "excess" in older else last.excess,
        redefined=older,
        parameters=model.parameters,
        flops_per_token=None if "flops_per_token" in older else model.flops_per_token,
        tokens=summary.tokens or last.tokens,
        seconds=summary.seconds,
        scores={name: value for name in SCORES if (value := last.value(name)) is not None},
        probes={} if "probes" in older else last.probes,
        chances={one.name: one.chance for one in data.probes if one.chance is not None},
        places=_places(data, last, objective),
        badges=badges,
        checked=bool(verdicts) and last.loss is not None,
        notes=notes.text,
        tags=notes.tags,
        seed=seed if type(seed := config.get("seed")) is int and abs(seed) <= LARGEST else None,
        study=study,
        origin=born.origin,
        protocol=_protocol(config, data, last, objective),
        config=config,
        problems=tuple(problems),
        majority=Majority(majority.answer, majority.right / majority.of)
        if majority is not None and majority.of and 0 <= majority.right <= majority.of
        else None,
    )


def _places(data: DataFacts, last: ValidationRecord, objective: str) -> dict[str, int]:
    """Questions behind each share of the last evaluation. Tokens of one answer or sentence count as one question."""
    asked = next((n for n in (last.questions, last.translated, last.sentences) if n is not None), None)
    of_text = data.splits.get("validation", {}).get("tokens") if objective == "next-token" else None
    found: dict[str, int | None] = {one.name: one.n for one in data.probes}  # older versions: of the whole text
    if "probe_places" in last.model_fields_set:
        found |= dict.fromkeys(last.probes, None) | last.probe_places
    if asked and last.translated is not None:  # as many are translated as test sentences
        found = {name: min(n, asked) if n else None for name, n in found.items()}
    found |= {EXACT_MATCH: asked, "accuracy": asked or of_text}
    return {name: n for name, n in found.items() if n and n > 0}


def _protocol(config: Mapping[str, Any], data: DataFacts, last: ValidationRecord, objective: str) -> Protocol:
    """From what was trained on, where that is known; before, from what was asked for."""
    characters = config.get("data.tokenizer", "characters") == "characters"
    return Protocol(
        corpus=data.corpus,
        split=data.sha256.get("validation", ""),
        asked=tuple(config.get(f"data.{key}") for key in ASKED),
        unit=unit(objective) if characters else "token",
        objective=objective,
        tokens="" if characters else data.tokenizer_sha256,
        context=last.context,
        stride=last.stride,
    )


# The settings of a run as a flat table, straight from config.toml: to validate five hundred configs takes seconds. Most
# runs of a folder share most sections, letter for letter. So a file is parsed a section at a time, and each text of a
# section only once; a file for which that is not safe is parsed whole.

_HEADER = re.compile(rb"^(?=\[\w+\]\r?$)", re.MULTILINE)
_KEPT = 4096  # texts of sections


def config_table(path: Path) -> dict[str, Any]:
    """Return the settings by their dotted keys.

    Raises:
        InputError: unreadable, too large, or not TOML.
    """
    try:
        raw = read_plain(path, MAX_BYTES)
    except OSError:
        return flatten(read(path))  # says why
    if len(raw) > MAX_BYTES or b'"""' in raw or b"'''" in raw:
        return flatten(read(path))
    sections = _HEADER.split(raw)
    names = [section.partition(b"]")[0][1:].decode("ascii", "replace") for section in sections[1:]]
    try:
        tables = [_section(section) for section in sections]
    except InputError:
        return flatten(read(path))
    above = {key.partition(".")[0] for key in tables[0]}
    if len(set(names)) < len(names) or above.intersection(names):  # TOML forbids both: let the parser say so
        return flatten(read(path))
    return {key: value for table in tables for key, value in table.items()}


@lru_cache(_KEPT)
def _section(raw: bytes) -> dict[str, Any]:
    return flatten(parse(raw, CONFIG))
