"""What a command line asks for, as a study."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.command_line import command_line
from engine.config.keys import flatten, parse_overrides
from engine.config.toml import validate
from engine.data.catalogue import kind_by_name
from engine.data.parallel.by_path import absolute
from engine.errors import InputError, one_of
from tui_transformer.lab.studies.axes import baseline_of, grid, parse_axis
from tui_transformer.lab.studies.cells import base_tables
from tui_transformer.lab.studies.stages import said_by_all
from tui_transformer.lab.studies.study import Study, find_study

MOST_SEEDS = 1_000


@dataclass(frozen=True)
class Asked:
    """The words of a command line that say what is to be studied; each as it was typed."""

    study: str | None = None
    preset: str | None = None
    vary: tuple[str, ...] = ()
    on: str | None = None
    seeds: str | None = None
    overrides: tuple[str, ...] = ()
    corpus: str | None = None
    name: str | None = None

    def resolve(self, runs_dir: Path) -> Study:
        """The study that is meant.

        Raises:
            InputError: neither or both ways to say it, or anything wrong with it.
        """
        if self.study is None and self.preset is None:
            raise InputError(
                f"say what to study: --study NAME (`{command_line('ablate', '--list')}` lists them), "
                "or --preset NAME --vary KEY=VALUE,VALUE"
            )
        if self.study is not None and (self.preset is not None or self.vary):
            raise InputError("--study says base and variants; leave out --preset and --vary")
        study = self._named() if self.study is None else self._found(self.study, runs_dir)
        for key in said_by_all(study.stages, self._changes()):
            names = one_of(stage.name for stage in study.stages).replace(" or ", " and ")
            raise InputError(f"--set {key}: stages {names} each say it themselves; change it in a file of your own")
        changes = {**study.changes, **self._changes()}
        seeds = parse_seeds(self.seeds) if self.seeds is not None else study.seeds
        return replace(study, changes=_found_anywhere(changes, study.base), seeds=seeds)

    def _found(self, study: str, runs_dir: Path) -> Study:
        found = find_study(study, runs_dir)
        if self.on is not None:
            found = replace(found, base=self.on)
        return replace(found, name=self.name) if self.name is not None else found

    def _named(self) -> Study:
        """Axes over a preset."""
        preset = str(self.preset)
        if not self.vary:
            raise InputError(f"say what to vary, e.g. --preset {preset[:80]} --vary model.n_heads=1,2,4,8")
        axes = dict(parse_axis(text) for text in self.vary)
        if len(axes) < len(self.vary):
            raise InputError("--vary names one key twice; give all its values at once, with commas between")
        base = f"{preset}@{self.on}" if self.on is not None else preset
        config = validate(base_tables(base), f"preset '{preset}'")
        variants = grid(axes)
        lasts = "-".join(key.rpartition(".")[2] for key in axes)
        name = self.name if self.name is not None else f"{re.sub('[^A-Za-z0-9._-]+', '-', base)}-{lasts}"
        return Study(name, base, variants, baseline_of(variants, config))

    def _changes(self) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for table in parse_overrides(self.overrides):
            changes |= flatten(table)
        return changes | ({"data.corpus": self.corpus} if self.corpus is not None else {})


def parse_seeds(text: str) -> tuple[int, ...]:
    """`3` is 1, 2 and 3; `1,5,9` are these; `42,` is 42 alone.

    Raises:
        InputError: no whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    if not all(part.isascii() and part.isdecimal() and len(part) <= 19 for part in parts):
        raise InputError(f"--seeds {text[:40]!r}: a number of seeds, e.g. 3, or the seeds themselves, e.g. 1,5,9")
    numbers = [int(part) for part in parts]
    if "," in text:
        return tuple(numbers)
    if not 1 <= numbers[0] <= MOST_SEEDS:
        raise InputError(
            f"--seeds {text[:40]}: from 1 to {MOST_SEEDS:,}; the seed {text[:40]} alone is --seeds {text[:40]},"
        )
    return tuple(range(1, numbers[0] + 1))


def _found_anywhere(changes: Mapping[str, Any], base: str) -> dict[str, Any]:
    """A corpus that is a file is named by its whole path: whoever goes on with the study may stand elsewhere."""
    changes, corpus = dict(changes), changes.get("data.corpus")
    if isinstance(corpus, str) and kind_by_name(corpus) is None:
        translates = base_tables(base).get("objective", {}).get("kind") == "translation"
        if changes.get("objective.kind", "translation" if translates else "") == "translation":
            changes["data.corpus"] = absolute(corpus)
        elif Path(corpus).exists():
            changes["data.corpus"] = str(Path(corpus).resolve())
    return changes
