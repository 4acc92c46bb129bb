"""One run as comparisons see it: an immutable row read from its small files, never from its metrics."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import SkipValidation

from engine.base.language import Message, tr
from engine.config.measures import MEASURES, MEASURES_BY_KEY, Measure, probe_measure
from engine.config.tasks import NextToken, TaskKind, task_named
from engine.runs.lineage import INIT_FROM
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.record_version import redefined_fields
from engine.runs.records import MAX_COUNT, DataFacts, LeadBaseline, MajorityFacts, Origin, StudyPlace, ValidationRecord
from tui_transformer.lab.records.badges import acknowledged_badges
from tui_transformer.lab.records.run_files import RunFiles
from tui_transformer.lab.records.run_lines import classification_baseline_lines

DAMAGED = Message("damaged")
ENDED_EARLY = (Message("stopped"), Message("interrupted"), Message("failed"), Message("lost"))
NO_RUN = Message("no run")  # the state of the row for always giving the same answer
REDEFINED_HERE = ("excess", "probes", "flops_per_token")  # the redefinable numbers shown here besides scores
TEXT_SETTINGS = ("corpus", "corpus_seed", "corpus_size", "validation_fraction", "test_fraction")
LOSS = MEASURES_BY_KEY["loss"]
LAST = replace(LOSS, key="last", name=Message("validation loss"))
BEST = replace(LOSS, key="best", name=Message("best validation loss"))
EXCESS = MEASURES_BY_KEY["excess"]
LOSSES = (LAST, BEST, EXCESS)
# Scores of an evaluation besides its loss and its excess over the floor.
SCORES = {measure.key: measure for measure in MEASURES if not measure.is_probe and measure not in (LOSS, EXCESS)}
# Compares runs with different tokenizers; judged only there, so that no other study is corrected for it.
BITS_PER_BYTE = replace(MEASURES_BY_KEY["bits_per_byte"], margin=0.01)
EXACT_MATCH = "exact_match"
_NO_NUMBER = re.compile(r"not a number|not finite|\bnan\b|\binf", re.IGNORECASE)


@dataclass(frozen=True)
class ScoringProtocol:
    """How a score was taken: two losses are comparable only if all of this is equal."""

    corpus: str = ""  # with its version; "" where data.json does not say it
    split: str = ""  # SHA-256 of the validation text; "" where data.json does not say it
    text_settings: tuple[Any, ...] = ()  # fallback: the settings that name and cut the text, the corpus first
    unit: str = "character"  # the unit the loss is averaged over
    objective: str = NextToken.name  # what is predicted from what
    tokens: str = ""  # identifies the tokenizer; "" where tokens are characters
    context: int | None = None  # tokens of a window; None before the first score
    stride: int | None = None  # tokens between window starts

    @property
    def task(self) -> TaskKind:
        return task_named(self.objective)


@dataclass(frozen=True)
class RunEntry:
    path: SkipValidation[Path]  # set by whoever reads the entry from a kept row
    # the state to show: `lost` if its process is gone, `damaged` if status.json is unreadable
    state: str = DAMAGED
    reason: str = ""
    created: str = ""
    preset: str = ""
    step: int = 0
    steps: int = 0
    best: float | None = None  # the lowest validation loss, nats per `protocol.unit`; `last` the newest
    best_step: int | None = None
    last: float | None = None
    last_step: int | None = None
    averages: tuple[tuple[str, float], ...] = ()  # losses of averaged weights, by what they are
    gap: float | None = None  # last − best, nats
    excess: float | None = None  # the last loss minus the floor reachable at its context and stride, in nats, if known
    redefined: tuple[str, ...] = ()  # numbers an older version defined differently; left out
    parameters: int | None = None
    flops_per_token: int | None = None  # one forward and backward pass, derived from model size
    tokens: int | None = None  # seen in training; `tokens_per_second` over `seconds` of it, without evaluations
    seconds: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)  # other scores of the last evaluation, by name
    # last evaluation, by name, shares from 0 to 1; `chances` are those of guessing
    probes: Mapping[str, float] = field(default_factory=dict)
    chances: Mapping[str, float] = field(default_factory=dict)
    # questions behind a share, by score or probe name, where known
    places: Mapping[str, int] = field(default_factory=dict)
    badges: Mapping[str, str] = field(default_factory=dict)  # what is wrong with its scores, and why
    badges_acknowledged: tuple[str, ...] = ()  # badges that its owner has acknowledged
    checked: bool = False  # both the model and a score have been checked
    notes: str = ""
    tags: tuple[str, ...] = ()
    seed: int | None = None
    study: StudyPlace | None = None  # its place in a study; `stage` is "" for the run that is compared
    origin: Origin | None = None  # the checkpoint it started from; None for fresh weights
    protocol: ScoringProtocol = ScoringProtocol()
    # every setting by its dotted key; in a study `train.init_from` names the stage, not its run, so that the seeds
    # of a variant share their settings
    config: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()  # files that are damaged
    # score of always giving the same answer or class; None without questions or classes
    majority: MajorityFacts | None = None
    classification: "ClassificationResult | None" = None  # its last evaluation, if it gives texts classes
    lead: LeadBaseline | None = None  # what the first sentences of its articles score as their summaries

    def value(self, measure: Measure) -> float | None:
        if measure.is_probe:
            return self.probes.get(measure.key)
        if measure.key in SCORES:
            return self.scores.get(measure.key)
        return {"last": self.last, "best": self.best, "excess": self.excess}[measure.key]

    @property
    def over_majority(self) -> float | None:
        own = None if self.majority is None else self.scores.get(self.majority.score)
        return own - self.majority.share if own is not None and self.majority is not None else None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def corpus(self) -> str:
        return self.protocol.corpus or setting_if_text(self.config, "data.corpus")

    @property
    def tokens_per_second(self) -> float | None:
        return self.tokens / self.seconds if self.tokens and self.seconds and self.seconds > 0 else None

    @property
    def seed_or_study_seed(self) -> int | None:
        """Its seed, from its config or, if that is damaged, its study."""
        return self.seed if self.seed is not None or self.study is None else self.study.seed


def setting_if_text(config: Mapping[str, Any], key: str) -> str:
    """Return a setting if it is text, else ""."""
    found = config.get(key)
    return found if isinstance(found, str) else ""


def probe_measures(entries: Iterable[RunEntry]) -> tuple[Measure, ...]:
    return tuple(map(probe_measure, dict.fromkeys(name for entry in entries for name in entry.probes)))


def score_measures(entries: Sequence[RunEntry]) -> tuple[Measure, ...]:
    present = {key for entry in entries for key in entry.scores}
    return tuple(measure for key, measure in SCORES.items() if key in present)


def judged_measures(entries: Sequence[RunEntry]) -> tuple[Measure, ...]:
    return (
        LAST,
        BEST,
        *probe_measures(entries),
        *(measure for measure in score_measures(entries) if measure.is_compared),
    )


def majority_rows(entries: Sequence[RunEntry]) -> list[RunEntry]:
    """Return baseline rows, no real runs: one per answer that, always given, is right on some runs' questions."""
    beside = {entry.majority: entry for entry in reversed(entries) if entry.majority is not None}
    return [
        RunEntry(  # its path does not exist, and no run can have this name
            path=beside[one].path.parent / f"{NO_RUN}: {one.baseline_name.replace('/', '∕')}",
            state=NO_RUN,
            scores={one.score: one.share},
            protocol=beside[one].protocol,
            majority=one,
        )
        for one in majorities(entries)
    ]


def majorities(entries: Iterable[RunEntry]) -> list[MajorityFacts]:
    return list(dict.fromkeys(entry.majority for entry in entries if entry.majority is not None))


def read_entry(path: Path) -> RunEntry:
    """Read a run directory as it is now. Never raises: damaged parts are left out and listed in `problems`."""
    reader, files = RunReader(path), RunFiles(path)
    born, status, summary, config = files.run_record, files.status, files.summary, files.config
    model, data, notes = files.model, files.data, reader.notes
    study = born.study if born.study.name else None
    if study is not None and study.after and INIT_FROM in config:
        _, at, checkpoint = setting_if_text(config, INIT_FROM).rpartition("@")
        config[INIT_FROM] = f"{study.after}{at}{checkpoint if at else ''}"
    best, last = summary.best or ValidationRecord(), summary.last or ValidationRecord()
    state = reader.state if status.state in LIVE_STATES else status.state or DAMAGED
    objective = setting_if_text(config, "objective.kind") or NextToken.name
    task = task_named(objective)
    # A translation's BLEU may be compared with an older one: only outputs that hit the length limit differ.
    # A word model's numbers are as they were where every word was known, whether or not it loaded its words.
    words = "words" if last.unknown or data.splits.get("validation", {}).get("unknown") else ""
    names = redefined_fields(born.records, "" if "bleu" in task.scores else objective, words)
    known = {name: last.value(name) is not None for name in SCORES}
    known |= {"excess": last.excess is not None, "flops_per_token": model.flops_per_token is not None}
    known["probes"] = "probes" in last.model_fields_set
    older = tuple(name for name in (*REDEFINED_HERE, *SCORES) if name in names and known[name])
    badges = files.badges
    if state == "failed" and _NO_NUMBER.search(status.reason):
        badges.setdefault("DIVERGED", tr(status.reason))
    gap = last.loss - best.loss if last.loss is not None and best.loss is not None else None
    majority, characters = data.majority, config.get("data.tokenizer", "characters") == "characters"
    return RunEntry(
        path=path,
        state=state,
        reason=tr(status.reason),
        created=born.created,
        preset=born.preset or "",
        step=status.step,
        steps=status.steps,
        best=best.loss,
        best_step=best.step if summary.best is not None else None,
        last=last.loss,
        last_step=last.step if summary.last is not None else None,
        averages=summary.averages,
        gap=gap if summary.gap is None else summary.gap,
        excess=None if "excess" in older else last.excess,
        redefined=older,
        parameters=model.parameters,
        flops_per_token=None if "flops_per_token" in older else model.flops_per_token,
        tokens=summary.tokens or last.tokens,
        seconds=summary.seconds,
        scores={name: value for name in SCORES if name not in older and (value := last.value(name)) is not None},
        probes={} if "probes" in older else last.probes,
        chances={one.name: one.chance for one in data.probes if one.chance is not None},
        places=_question_counts(data, last, task),
        badges=badges,
        badges_acknowledged=acknowledged_badges(badges, notes),
        checked=bool(files.verdicts) and last.loss is not None,
        notes=notes.text,
        tags=notes.tags,
        seed=seed if type(seed := config.get("seed")) is int and abs(seed) <= MAX_COUNT else None,
        study=study,
        origin=born.origin,
        protocol=ScoringProtocol(  # from the data trained on, if known, else from the settings
            corpus=data.corpus,
            split=data.sha256.get("validation", ""),
            text_settings=tuple(config.get(f"data.{key}") for key in TEXT_SETTINGS),
            unit=task.unit if characters else "token",
            objective=objective,
            tokens="" if characters else data.tokenizer_sha256,
            context=last.context,
            stride=last.stride,
        ),
        config=config,
        problems=tuple(files.damaged),
        majority=majority if _is_valid_majority(majority) else None,
        classification=ClassificationResult.from_records(data, last),
        lead=data.lead,
    )


def _is_valid_majority(majority: MajorityFacts | None) -> bool:
    return majority is not None and majority.score in SCORES and majority.of > 0 and 0 <= majority.right <= majority.of


@dataclass(frozen=True)
class ClassificationResult:
    """How a run classified the validation texts, and what others get right of them."""

    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]  # texts of each class, by the class they were put into
    readers: tuple[str, ...]  # what always saying one class, counting words, and knowing the grammar score, in words

    @classmethod
    def from_records(cls, data: DataFacts, last: ValidationRecord) -> "ClassificationResult | None":
        n = len(data.classes)
        if not n or len(last.confusion) != n or any(len(row) != n for row in last.confusion):
            return None
        return cls(data.classes, last.confusion, tuple(classification_baseline_lines(data)))


def _question_counts(data: DataFacts, last: ValidationRecord, task: TaskKind) -> dict[str, int]:
    """Questions behind each share of the last evaluation. Tokens of one answer or sentence count as one question."""
    asked = next((n for n in (last.questions, last.translated, last.sentences) if n is not None), None)
    of_text = data.splits.get("validation", {}).get("tokens") if task.continues else None
    found: dict[str, int | None] = {one.name: one.n for one in data.probes}  # older versions: of the whole text
    if "probe_places" in last.model_fields_set:
        found |= dict.fromkeys(last.probes, None) | last.probe_places
    if asked and last.translated is not None:  # one translation per test sentence
        found = {name: min(n, asked) if n else None for name, n in found.items()}
    found |= {EXACT_MATCH: asked, "accuracy": asked or of_text}
    return {name: n for name, n in found.items() if n and n > 0}
