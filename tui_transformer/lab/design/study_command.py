"""A study in the making as a command line that runs exactly that. No widget, no torch."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from engine.command_line import program
from engine.errors import InputError
from tui_transformer.lab.design.study_draft import StudyDraft
from tui_transformer.lab.studies.arguments import StudyArgs


def command(draft: StudyDraft, file: Path, options: Sequence[str] = ()) -> tuple[str, bool]:
    """The command line, quoted for a shell, and whether it needs the study to be saved first.

    Args:
        draft: the study.
        file: where it is saved.
        options: come last.
    """
    words = _words(draft)
    needed = words is None
    return shlex.join([program(), "ablate", *(words or ["--study", str(file)]), *options]), needed


def _words(draft: StudyDraft) -> list[str] | None:
    """What says the study without a file; None where nothing does. It is read back to be sure."""
    study, seeds = draft.study, as_seeds(draft.seeds)
    if not draft.said_as or study is None or draft.design.path is not None:
        return None
    if draft.said_as[0] == "--study":
        shipped = draft.said_as[1]
        asked = StudyArgs(study=shipped, seeds=seeds, name=draft.name if draft.name != shipped else None)
        words = list(draft.said_as)
    else:
        changes = {key: v for key, v in draft.design.changes.items() if key not in ("seed", "description")}
        arguments = replace(draft.design, changes=changes).arguments()
        asked = StudyArgs(
            preset=draft.design.preset.name,
            vary=tuple(word for word in draft.said_as if word != "--vary"),
            on=draft.design.on,
            seeds=seeds,
            overrides=tuple(value for option, value in pairwise(arguments) if option == "--set"),
            corpus=changes.get("data.corpus"),
            name=draft.name,
        )
        words = [*arguments, *draft.said_as]
    try:
        if asked.resolve(Path()) != study:
            return None
    except InputError:
        return None
    return [*words, "--seeds", seeds, *(["--name", draft.name] if asked.name is not None else [])]


def as_seeds(seeds: Sequence[int]) -> str:
    """Seeds as `--seeds` takes them."""
    if tuple(seeds) == tuple(range(1, len(seeds) + 1)):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")
