"""A run's lineage: the checkpoint of another run that its weights started from. No torch.

`train.init_from` names it as the user did; `from` in run.json records the exact run and weights, and theirs in turn:
the whole chain stays known after the other runs are deleted.
"""

from contextlib import suppress
from pathlib import Path

from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, tr
from engine.runs.reader import RunReader, list_runs
from engine.runs.records import LONGEST_CHAIN, Origin

INIT_FROM = "train.init_from"
BEST = "best"
CHECKPOINTS = (BEST, "last", "average", "ema")  # or a step
ARROW = " ─▶ "


def chain_text(origin: Origin, name: str) -> str:
    """Return `pretrain ─▶ finetune`: a run's ancestors and itself; not cleaned."""
    return ARROW.join((*origin.chain, name))


def split_init_from(text: str) -> tuple[str, str]:
    """Split `NAME@CHECKPOINT` into run and checkpoint, by default the best; `InputError` for anything else."""
    run, at, checkpoint = text.rpartition("@")
    if not at or "/" in checkpoint:  # a folder may have an @ in its name
        run, checkpoint = text, BEST
    if checkpoint not in CHECKPOINTS and not (checkpoint.isascii() and checkpoint.isdecimal()):
        hint = did_you_mean(checkpoint, CHECKPOINTS) or tr(
            "; use {one_of}", one_of=join_or((*CHECKPOINTS, tr("a step")))
        )
        message = Message(
            "{setting}: '{checkpoint}' is not a checkpoint{hint}",
            setting=init_from_setting_text(text),
            checkpoint=checkpoint[:40],
            hint=hint,
        )
        raise InputError(message)
    if not run:
        message = Message(
            "{setting}: does not name a run; write NAME, NAME@last or NAME@1500", setting=init_from_setting_text(text)
        )
        raise InputError(message)
    return run, checkpoint


def find_init_run(text: str, runs_dir: Path) -> tuple[RunReader, str]:
    """Return the run and checkpoint that `train.init_from` names; `InputError` says where it was looked for."""
    run, checkpoint = split_init_from(text)
    try:
        return RunReader.resolve(run, runs_dir), checkpoint
    except InputError as error:
        message = Message(
            "{setting}: {error}; train that run first, or give its folder",
            setting=init_from_setting_text(text),
            error=error,
        )
        raise InputError(message) from None


def portable_init_from(reader: RunReader, checkpoint: str, runs_dir: Path) -> str:
    """Return `train.init_from` independent of the current folder: a name, or a folder's absolute path."""
    beside = reader.path.resolve().parent == runs_dir.resolve()
    return f"{reader.name if beside else reader.path.resolve()}@{checkpoint}"


def find_origin_run(origin: Origin, init_from: str | None, runs_dir: Path) -> RunReader | None:
    """Return an origin's run by id; else the run of its name, or at `init_from`'s path; else None."""
    for reader in list_runs(runs_dir):
        if reader.run.id == origin.id:
            return reader
    with suppress(InputError):
        return find_init_run(init_from or origin.name, runs_dir)[0]
    return None


def child_origin(reader: RunReader, checkpoint: str, step: int, sha256: str) -> Origin:
    """Return the origin entry for a run that starts from this one's `checkpoint`, as requested."""
    born = reader.run
    before = born.origin
    if before is not None and len(before.chain) >= LONGEST_CHAIN - 1:
        before = before.model_copy(update={"before": None})
    return Origin(id=born.id, name=reader.name, checkpoint=checkpoint, step=step, sha256=sha256, before=before)


def init_from_setting_text(init_from: str | None) -> str:
    return f"{INIT_FROM} = '{str(init_from)[:120]}'"
