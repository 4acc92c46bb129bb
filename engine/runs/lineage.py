"""Where a run's first weights come from: a checkpoint of another run. No torch.

`train.init_from` names it as a person does; `from` in run.json says once and for all which run and which weights these
were, with what they came from in turn: the whole chain stays known when the other runs are gone.
"""

from contextlib import suppress
from pathlib import Path

from engine.errors import InputError, nearest, one_of
from engine.runs.reader import RunReader, list_runs
from engine.runs.records import LONGEST_CHAIN, Origin

INIT_FROM = "train.init_from"
BEST = "best"
CHECKPOINTS = (BEST, "last", "average")  # or a step
ARROW = " ─▶ "


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
        if reader.run.id == origin.id:
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
    born = reader.run
    before = born.origin
    if before is not None and len(before.chain) >= LONGEST_CHAIN - 1:
        before = before.model_copy(update={"before": None})
    return Origin(id=born.id, name=reader.name, checkpoint=checkpoint, step=step, sha256=sha256, before=before)


def _where(text: str) -> str:
    return f"{INIT_FROM} = '{text[:120]}'"
