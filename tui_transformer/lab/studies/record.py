"""A started study's file beside its runs, `RUNS/NAME.study.toml`: what is gone on with, and held to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engine.config.keys import is_bookkeeping
from engine.config.toml import shown
from engine.errors import InputError, refused
from engine.runs.files import write_atomic
from tui_transformer.lab.studies.study import SUFFIX, Stage, Study, read_study

THREADS = "train.threads"  # sums differ between counts, so every cell has the same


def study_file(runs_dir: Path, name: str) -> Path:
    """Where a started study's file stands."""
    return runs_dir / f"{name}{SUFFIX}"


def recorded(runs_dir: Path, name: str) -> Study | None:
    """A study as it was started, None where it was not.

    Raises:
        InputError: its file cannot be read.
    """
    path = study_file(runs_dir, name)
    return read_study(path) if path.exists() else None


def write(study: Study, runs_dir: Path) -> None:
    """Write a study's file in one step.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        write_atomic(study_file(runs_dir, study.name), study.to_toml())
    except OSError as error:
        raise refused(f"cannot write {error.filename or runs_dir}", error) from None


@contextmanager
def only_runner(runs_dir: Path, name: str) -> Iterator[None]:
    """The right to run a study's cells; it ends with this process, however that ends.

    Raises:
        InputError: another process has it, or the folder cannot be written.
    """
    lock = _lock(runs_dir, name)
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise InputError(
            f"study '{name}' is being run by another process in {runs_dir}; wait for it, or use another --name"
        ) from None
    except OSError as error:
        raise refused(f"cannot write {error.filename or runs_dir}", error) from None
    try:
        yield
    finally:
        lock.release()


def is_run(runs_dir: Path, name: str) -> bool:
    """Whether a process runs the study's cells now."""
    lock = _lock(runs_dir, name)
    try:
        lock.acquire()
    except (Timeout, OSError):
        return True
    lock.release()
    return False


def _lock(runs_dir: Path, name: str) -> FileLock:
    return FileLock(runs_dir / f".{name}.study.lock", timeout=0)


def gone_on_with(asked: Study, before: Study) -> Study:
    """The study to go on with: as it was started, with the seeds that were added since.

    Args:
        asked: for now.
        before: as it was started.

    Raises:
        InputError: something else than more seeds; says what differs.
    """
    if THREADS in before.changes and THREADS not in asked.changes:  # the plan chose it
        asked = replace(asked, changes={**asked.changes, THREADS: before.changes[THREADS]})
    changed = list(_differences(asked, before))
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise InputError(
            f"study '{asked.name}' was started otherwise: {'; '.join(changed[:3])}{more}; "
            "give this one another --name, or go on with the old one"
        )
    return replace(before, seeds=tuple(dict.fromkeys([*before.seeds, *asked.seeds])))


def _differences(asked: Study, before: Study) -> Iterator[str]:
    """In words. What is written of a variant is no difference; what was expected of it is one."""
    yield from _changed("base", asked.base, before.base)
    yield from _changed("baseline", asked.baseline, before.baseline)
    yield from _changed("primary", asked.primary, before.primary)
    missing = [seed for seed in before.seeds if seed not in asked.seeds]
    if missing:
        yield f"seed {missing[0]} is left out"
    yield from _changes("", asked.changes, before.changes)
    yield from _stages(asked.stages, before.stages)
    ours, theirs = ({variant.name: variant for variant in study.variants} for study in (asked, before))
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if name not in theirs or name not in ours:
            yield f"variant '{name}' is {'new' if name in ours else 'left out'}"
            continue
        one, other = ours[name], theirs[name]
        yield from _changed(f"variant '{name}': preset", one.preset, other.preset)
        yield from _changes(f"variant '{name}': ", one.changes, other.changes)
        yield from _changed(f"variant '{name}': stages", list(one.stages), list(other.stages))
        yield from _changed(f"variant '{name}': what is expected", dict(one.expect), dict(other.expect))


def _stages(asked: Sequence[Stage], before: Sequence[Stage]) -> Iterator[str]:
    names = [stage.name for stage in asked]
    yield from _changed("the list of stages", names, [stage.name for stage in before])
    for one, other in zip(asked, before, strict=False):
        yield from _changed(f"stage '{one.name}': from", one.starts_from, other.starts_from)
        yield from _changed(f"stage '{one.name}': preset", one.preset, other.preset)
        yield from _changes(f"stage '{one.name}': ", one.changes, other.changes)


def _changes(where: str, asked: Any, before: Any) -> Iterator[str]:
    for key in dict.fromkeys([*asked, *before]):
        if not is_bookkeeping(key):
            yield from _changed(where + key, asked.get(key), before.get(key))


def _changed(what: str, asked: Any, before: Any) -> Iterator[str]:
    if asked != before:
        yield f"{what} is {_said(asked)}, was {_said(before)}"


def _said(value: Any) -> str:
    return "unset" if value is None or value in ("", {}, []) else shown(value)
