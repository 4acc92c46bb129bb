"""A study's files in the runs folder: `NAME.study.toml`, which fixes what a resumed study runs, and beside it the lock
of its runner and the file that stops it.
"""

from pathlib import Path

SUFFIX = ".study.toml"


def study_file(runs_dir: Path, name: str) -> Path:
    return runs_dir / f"{name}{SUFFIX}"


def study_lock(runs_dir: Path, name: str) -> Path:
    return runs_dir / f".{name}.study.lock"


def stop_file(runs_dir: Path, name: str) -> Path:
    """Its existence asks whoever runs the study to stop: on this machine or another one."""
    return runs_dir / f".{name}.study.stop"


def started_studies(runs_dir: Path) -> dict[str, Path]:
    return {path.name.removesuffix(SUFFIX): path for path in sorted(runs_dir.glob(f"*{SUFFIX}"))}
