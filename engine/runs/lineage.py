"""Where a run's first weights come from: a checkpoint of another run. No torch.

`train.init_from` names it as a person does; `from` in run.json says once and for all which run and which weights these
were, with what they came from in turn: the whole chain stays known when the other runs are gone.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import InputError, nearest, one_of
from engine.runs.reader import RunReader, list_runs

INIT_FROM = "train.init_from"
BEST = "best"
CHECKPOINTS = (BEST, "last", "average")  # or a step
LONGEST_CHAIN = 32  # runs; more are a damaged file
ARROW = " ─▶ "


@dataclass(frozen=True)
class Origin:
    """A checkpoint that a run started from.

    Args:
        id: of the run, whatever it is called now.
        name: as it was called then.
        checkpoint: `best`, `last`, `average` or a step, as it was asked for.
        step: that this was.
        sha256: of its weights.
        before: what that run had started from; None where from weights of its own.
    """

    id: str
    name: str
    checkpoint: str
    step: int
    sha256: str
    before: "Origin | None" = None

    @property
    def shown(self) -> str:
        """`pretrain@best (step 1,500)`; not cleaned."""
        return f"{self.name}@{self.checkpoint} (step {self.step:,})"

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of all runs that led to it and its own, the first one first; not cleaned."""
        return (*(self.before.chain if self.before is not None else ()), self.name)

    def to_json(self) -> dict[str, Any]:
        """The entry `from` of run.json."""
        said = {"id": self.id, "name": self.name, "checkpoint": self.checkpoint, "step": self.step}
        return said | {"sha256": self.sha256, "from": None if self.before is None else self.before.to_json()}


def read_origin(born: Any, longest: int = LONGEST_CHAIN) -> Origin | None:
    """What run.json says a run started from; None where from weights of its own, or where that is damaged."""
    said = born.get("from") if isinstance(born, Mapping) else None
    if not isinstance(said, Mapping) or longest == 0:
        return None
    texts = [said.get(key) for key in ("id", "name", "checkpoint", "sha256")]
    step = said.get("step")
    if not all(isinstance(text, str) for text in texts) or isinstance(step, bool) or not isinstance(step, int):
        return None
    number, name, checkpoint, sha256 = map(str, texts)
    return Origin(number, name, checkpoint, step, sha256, read_origin(said, longest - 1))


def drawn(origin: Origin, name: str) -> str:
    """`pretrain ─▶ finetune`: all that led to a run, and it; not cleaned."""
    return ARROW.join((*origin.chain, name))


def split_init_from(text: str) -> tuple[str, str]:
    """`NAME@CHECKPOINT` as run and checkpoint; without one the best is meant.

    Raises:
        InputError: what follows the @ is no checkpoint, or nothing stands before it.
    """
    run, at, checkpoint = text.rpartition("@")
    if not at or "/" in checkpoint:  # a folder may have an @ in its name
        run, checkpoint = text, BEST
    if checkpoint not in CHECKPOINTS and not (checkpoint.isascii() and checkpoint.isdecimal()):
        hint = nearest(checkpoint, CHECKPOINTS) or f"; it is {one_of((*CHECKPOINTS, 'a step'))}"
        raise InputError(f"{_where(text)}: '{checkpoint[:40]}' is no checkpoint{hint}")
    if not run:
        raise InputError(f"{_where(text)}: names no run; write NAME, NAME@last or NAME@1500")
    return run, checkpoint


def located(text: str, runs_dir: Path) -> tuple[RunReader, str]:
    """The run that `train.init_from` means, and which of its checkpoints.

    Raises:
        InputError: there is no such run; says where it was looked for.
    """
    run, checkpoint = split_init_from(text)
    try:
        return RunReader.resolve(run, runs_dir), checkpoint
    except InputError as error:
        raise InputError(f"{_where(text)}: {error}; train that one first, or name its folder") from None


def found_again(reader: RunReader, checkpoint: str, runs_dir: Path) -> str:
    """What `train.init_from` must say to be understood wherever one stands: a name, or the whole path of a folder."""
    beside = reader.path.resolve().parent == runs_dir.resolve()
    return f"{reader.name if beside else reader.path.resolve()}@{checkpoint}"


def at_hand(origin: Origin, init_from: str | None, runs_dir: Path) -> RunReader | None:
    """The run of an origin, by its id whatever it is called now; else what has its name; None where nothing has.

    Args:
        origin: of a run.
        init_from: of that run's config; it may name a folder elsewhere.
        runs_dir: where the run is.
    """
    for reader in list_runs(runs_dir):
        born = reader.facts("run")
        if isinstance(born, Mapping) and born.get("id") == origin.id:
            return reader
    with suppress(InputError):
        return located(init_from or origin.name, runs_dir)[0]
    return None


def origin_of(reader: RunReader, checkpoint: str, step: int, sha256: str) -> Origin:
    """The entry of a run that starts from this one.

    Args:
        reader: the run whose weights are taken.
        checkpoint: as it was asked for.
        step: that this is.
        sha256: of the weights.
    """
    born = reader.facts("run")
    number = born.get("id") if isinstance(born, Mapping) else None
    before = read_origin(born)
    if before is not None and len(before.chain) >= LONGEST_CHAIN - 1:
        before = replace(before, before=None)
    return Origin(str(number or ""), reader.name, checkpoint, step, sha256, before)


def _where(text: str) -> str:
    return f"{INIT_FROM} = '{text[:120]}'"
