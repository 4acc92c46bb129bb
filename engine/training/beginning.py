"""How a run that starts from another one's weights begins: what it took over, and what is wrong with where from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.config.schema import RunConfig
from engine.data.tokenizers import CharacterTokenizer, difference
from engine.errors import InputError
from engine.lints import Lint
from engine.model.transformer import Network
from engine.runs.lineage import INIT_FROM
from engine.runs.records import Origin
from engine.training.init_from import SERIOUS, Parent, inherit
from engine.training.task import Task, load_task_of
from engine.training.text_task import TextTask

MUCH_SEEN = 0.01  # share of the held-out text that the other run was trained on


@dataclass(frozen=True)
class Beginning:
    """What a new run's directory says of it.

    Args:
        origin: for run.json.
        said: for events, a sentence each.
        lints: for events and for whoever started it.
    """

    origin: Origin
    said: tuple[str, ...]
    lints: tuple[Lint, ...]


def begun_from(model: Network, config: RunConfig, parent: Parent, task: Task, data_dir: Path | None) -> Beginning:
    """Put the other run's weights into a model, and look at what that run was trained on.

    Args:
        model: with its initial weights.
        config: of the new run.
        parent: where it starts from.
        task: of the new run, with the other one's tokenizer.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: the weights do not fit.
    """
    inherited = inherit(model, config, parent)
    mild = [name for name in parent.reader.badges if name not in SERIOUS]
    said = [inherited.said, *_reading(parent, task), *(f"parent '{parent.name}' is marked {name}" for name in mild)]
    return Beginning(parent.origin, tuple(said), (*inherited.lints, *_seen(parent, task, data_dir)))


def _reading(parent: Parent, task: Task) -> Iterator[str]:
    """Where the new text alone would have had another vocabulary."""
    if isinstance(task, TextTask):
        own = CharacterTokenizer.of(split.text for split in task.corpus.splits.values())
        differs = difference(parent.tokenizer, own)
        if differs:
            yield f"this text alone would be read otherwise: {differs}"


def _seen(parent: Parent, task: Task, data_dir: Path | None) -> Iterator[Lint]:
    """Whether what is held out here was trained on there."""
    if parent.reader.raw("data").get("sha256") == task.sha256:
        return  # the same text, cut at the same places
    try:
        seen = task.seen_by(load_task_of(parent.reader, data_dir))
    except InputError:
        return  # its text is not on this machine, or not any more
    if seen is not None and seen.share >= MUCH_SEEN:
        yield Lint(
            INIT_FROM,
            f"parent '{parent.name}' was trained on {seen.share:.0%} of the data held out here: scores will look "
            "better than they are",
        )
