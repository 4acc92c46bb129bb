"""How much of a run's held-out text another run was trained on: what was seen before is no test of anything."""

from collections.abc import Iterator

from engine.training.task import Task
from engine.training.text_task import TextTask
from engine.training.translation_task import TranslationTask

PIECES = 200  # of a text that are looked for
LENGTH = 100  # characters of a piece: too long to be the same by chance
MOST = 50_000_000  # characters that are searched; a larger text would take minutes


def seen_before(trained: Task, task: Task) -> float | None:
    """The share of a task's validation split that stands in another one's training split; None where nobody can say.

    Args:
        trained: of the run that was trained.
        task: of the run that starts from it.
    """
    if isinstance(trained, TextTask) and isinstance(task, TextTask):
        text = trained.corpus.splits["train"].text
        pieces = list(_pieces(task.corpus.splits["validation"].text))
        return sum(piece in text for piece in pieces) / len(pieces) if pieces and len(text) <= MOST else None
    if isinstance(trained, TranslationTask) and isinstance(task, TranslationTask):
        known, held_out = (t.corpus.splits[name] for t, name in ((trained, "train"), (task, "validation")))
        there = set(zip(known.sources, known.targets, strict=True))
        pairs = list(zip(held_out.sources, held_out.targets, strict=True))
        return sum(pair in there for pair in pairs) / len(pairs) if pairs else None
    return None


def _pieces(text: str) -> Iterator[str]:
    """Evenly spread over a text; a short one is all of itself."""
    last = max(0, len(text) - LENGTH)
    for start in dict.fromkeys(last * i // (PIECES - 1) for i in range(PIECES)):
        yield text[start : start + LENGTH]
