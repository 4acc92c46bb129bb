"""One run as a comparison knows it: an immutable row, read from its small files and never from its metrics."""

import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import InputError
from engine.measures import MEASURES, Measure
from engine.runs.files import read_json
from engine.runs.lineage import INIT_FROM
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.record_version import redefined
from engine.runs.records import Origin, Run
from tui_transformer.lab.analysis.config_table import config_table
from tui_transformer.lab.analysis.majority import NO_RUN, SCORE, Majority, different, path_of, read_majority
from tui_transformer.lab.formatting import unit
from tui_transformer.lab.records.facts import MOST_PROBES, Record, first_probes, number, rows, table, text, whole

DAMAGED, DAMAGED_FILES = "damaged", "DAMAGED"
READ = (
    *("run.json", "config.toml", "status.json", "summary.json", "checks.json", "model.json", "data.json"),
    "notes.json",
)
# Scores of an evaluation beside its loss and how far that is above the floor.
SCORES = {m.key: m for m in MEASURES if not m.probe and m.key not in ("loss", "excess")}
REDEFINED_HERE = ("excess", "probes", "flops_per_token")  # those shown here, of all that can be redefined
ASKED = ("corpus", "corpus_seed", "corpus_size", "validation_fraction", "test_fraction")
_NO_NUMBER = re.compile(r"not a number|not finite|\bnan\b|\binf", re.IGNORECASE)


@dataclass(frozen=True)
class Study:
    """The place of a run in a study.

    Args:
        stage: of an earlier stage its name; "" for the run that is compared.
        after: the stage whose weights it started with; "" where it began anew.
    """

    name: str
    variant: str
    seed: int
    stage: str = ""
    after: str = ""


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


class Listed(typing.Protocol):
    """What a line of the table is of: a run, or a variant."""

    @property
    def path(self) -> Path:
        """What it is known by."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def state(self) -> str:
        """How far it is."""

    @property
    def badges(self) -> Mapping[str, str]:
        """What is wrong with its scores, and why."""

    @property
    def protocol(self) -> Protocol:
        """How it was scored."""


@dataclass(frozen=True)
class Entry:
    """A run. Texts are as they were read: whoever shows them cleans them.

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
    study: Study | None = None
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
        own = self.scores.get(SCORE)
        return own - self.majority.share if own is not None and self.majority is not None else None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def live(self) -> bool:
        """Whether a process has it."""
        return self.state in LIVE_STATES

    @property
    def corpus(self) -> str:
        """With its version, where it is known."""
        return self.protocol.corpus or text(self.config.get("data.corpus"))

    @property
    def tokens_per_second(self) -> float | None:
        """Over all of its training."""
        return self.tokens / self.seconds if self.tokens and self.seconds and self.seconds > 0 else None


def read_entry(path: Path) -> Entry:
    """A run directory now. Never raises: what is damaged is left out, and named in `problems`."""
    return _Reading(path).entry()


def majority_rows(entries: Sequence[Entry]) -> list[Entry]:
    """A row for each answer that always given would be right in some of these runs' questions: no runs."""
    found = []
    for one in different(entry.majority for entry in entries):
        beside = next(entry for entry in entries if entry.majority == one)
        found.append(
            Entry(
                path=path_of(beside.path, one),
                state=NO_RUN,
                scores={SCORE: one.share},
                protocol=beside.protocol,
                majority=one,
            )
        )
    return found


class _Reading:
    """One reading of a run's files."""

    def __init__(self, path: Path) -> None:
        self._path, self._reader = path, RunReader(path)
        self._problems: list[str] = []

    def entry(self) -> Entry:
        """What they say."""
        born, status, summary = self._json("run"), self._json("status"), self._json("summary")
        study, config = _study(table(born.get("study"))), self._config()
        if study is not None and study.after and INIT_FROM in config:
            _, at, checkpoint = text(config[INIT_FROM]).rpartition("@")
            config[INIT_FROM] = f"{study.after}{at}{checkpoint if at else ''}"
        best, last = table(summary.get("best")), table(summary.get("last"))
        said = text(status.get("state"))
        state = self._reader.state if said in LIVE_STATES else said or DAMAGED
        reason, notes = text(status.get("reason")), self._reader.notes
        model, data = self._json("model"), self._json("data")
        older = _older(born, text(config.get("objective.kind")) or "next-token", model | last)
        badges = _badges(self._reader, state, reason) or self._unchecked()
        if self._problems:
            badges[DAMAGED_FILES] = f"{', '.join(self._problems)} cannot be read"
        if (found := len(table(last.get("probes")))) > MOST_PROBES:
            badges[DAMAGED_FILES] = f"summary.json has {found:,} probes; the first {MOST_PROBES} are read"
        return Entry(
            path=self._path,
            state=state,
            reason=reason,
            created=text(born.get("created")),
            preset=text(born.get("preset")),
            step=whole(status.get("step")),
            steps=whole(status.get("steps")),
            best=number(best.get("loss")),
            best_step=_count(best.get("step")),
            last=number(last.get("loss")),
            last_step=_count(last.get("step")),
            gap=_gap(summary, number(best.get("loss")), number(last.get("loss"))),
            excess=None if "excess" in older else number(last.get("excess")),
            redefined=older,
            parameters=_count(model.get("parameters")),
            flops_per_token=None if "flops_per_token" in older else _count(model.get("flops_per_token")),
            tokens=_count(summary.get("tokens")) or _count(last.get("tokens")),
            seconds=number(summary.get("seconds")),
            scores=_numbers({name: last.get(name) for name in SCORES}),
            probes={} if "probes" in older else _numbers(first_probes(last.get("probes"))),
            chances=_numbers(
                {text(probe.get("name")): probe.get("chance") for probe in rows(data.get("probes"))[:MOST_PROBES]}
            ),
            places=_places(data, last, text(config.get("objective.kind")) or "next-token"),
            badges=badges,
            checked=self._reader.checked,
            notes=notes.text,
            tags=notes.tags,
            seed=_count(config.get("seed")),
            study=study,
            origin=Run.read(born).origin,
            protocol=_protocol(config, data, last),
            config=config,
            problems=tuple(self._problems),
            majority=read_majority(data),
        )

    def _json(self, name: str) -> Record:
        path = self._path / f"{name}.json"
        found = read_json(path)
        if not isinstance(found, dict) and path.exists():
            self._problems.append(path.name)
        return table(found)

    def _unchecked(self) -> dict[str, str]:
        """No badge; that nothing is wrong is not to be concluded from a file that cannot be read."""
        self._json("checks")
        return {}

    def _config(self) -> dict[str, Any]:
        try:
            return config_table(self._path / "config.toml")
        except (InputError, RecursionError):
            self._problems.append("config.toml")
            return {}


def _older(born: Record, objective: str, found: Record) -> tuple[str, ...]:
    """Which numbers of a run must not be compared with newer ones, because an older version defined them differently.

    A translation's BLEU may be compared: only outputs that hit the length limit differ.
    """
    names = redefined(Run.read(born).records, "" if objective == "translation" else objective)
    return tuple(name for name in REDEFINED_HERE if name in names and found.get(name) is not None)


def _gap(summary: Record, best: float | None, last: float | None) -> float | None:
    said = number(summary.get("gap"))
    return last - best if said is None and best is not None and last is not None else said


def _count(value: Any) -> int | None:
    return None if number(value) is None else whole(value)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    found = {name: number(value) for name, value in values.items()}
    return {name: value for name, value in found.items() if value is not None}


def _places(data: Record, last: Record, objective: str) -> dict[str, int]:
    """Questions behind each share of the last evaluation. Tokens of one answer or sentence count as one question."""
    asked = next((n for key in ("questions", "translated", "sentences") if (n := _count(last.get(key)))), None)
    tokens = _count(table(table(data.get("splits")).get("validation")).get("tokens"))
    of_text = tokens if objective == "next-token" else None
    found = {text(probe.get("name")): _count(probe.get("n")) for probe in rows(data.get("probes"))[:MOST_PROBES]}
    found |= {name: _count(n) for name, n in first_probes(last.get("probe_places")).items()}  # older: whole text
    if asked and "translated" in last:  # as many are translated as test sentences
        found = {name: min(n, asked) if n else None for name, n in found.items()}
    found |= {"exact_match": asked, "accuracy": asked or of_text}
    return {name: n for name, n in found.items() if n and n > 0}


def _badges(reader: RunReader, state: str, reason: str) -> dict[str, str]:
    """What the checks found, and what follows from how the run ended."""
    badges = reader.badges
    if state == "failed" and _NO_NUMBER.search(reason):
        badges.setdefault("DIVERGED", reason)
    return badges


def _study(born: Record) -> Study | None:
    name = text(born.get("name"))
    if not name:
        return None
    stage, after = text(born.get("stage")), text(born.get("after"))
    return Study(name, text(born.get("variant")), whole(born.get("seed")), stage, after)


def _protocol(config: Mapping[str, Any], data: Record, last: Record) -> Protocol:
    """From what was trained on, where that is known; before, from what was asked for."""
    asked = tuple(config.get(f"data.{key}") for key in ASKED)
    characters = config.get("data.tokenizer", "characters") == "characters"
    objective = text(config.get("objective.kind")) or "next-token"
    return Protocol(
        corpus=text(data.get("corpus")),
        split=text(table(data.get("sha256")).get("validation")),
        asked=asked,
        unit=unit(objective) if characters else "token",
        objective=objective,
        tokens="" if characters else text(data.get("tokenizer_sha256")),
        context=_count(last.get("context")),
        stride=_count(last.get("stride")),
    )
