"""Choose the writer for a run, and keep loaded writers in memory."""

from collections.abc import Mapping
from pathlib import Path

from engine.errors import InputError
from engine.runs.reader import RunReader
from engine.runs.tail import stamp
from tui_transformer.lab.play.document_writer import QuestionWriter, SpanWriter
from tui_transformer.lab.play.text_writer import MaskedWriter, TextWriter
from tui_transformer.lab.play.translation_writer import TranslationWriter
from tui_transformer.lab.play.writer import Writer

# The writers of objectives that `TextWriter` does not fit.
WRITERS: Mapping[str, type[Writer]] = {
    "masked": MaskedWriter,
    "translation": TranslationWriter,
    "span-corruption": SpanWriter,
    "question-answer": QuestionWriter,
}
KEPT = 3  # models kept in memory


def load_writer(reader: RunReader, checkpoint: str, device: str) -> Writer:
    return WRITERS.get(reader.config.task.name, TextWriter)(reader, checkpoint, device)


class Writers:
    """Loaded models, by run and checkpoint; one is reloaded only when its files change."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._kept: dict[tuple[Path, object], Writer] = {}

    def get(self, run: Path, which: str) -> Writer:
        """Return the model of a run's checkpoint; blocks while it loads. Raises InputError as `load_writer`."""
        try:
            return self._get(run, which)
        except OSError as error:
            raise InputError(f"{run.name}: its checkpoint cannot be read: {error.strerror or error}") from None
        except InputError:
            if RunReader(run).status.state not in ("running", "paused", "handing-over"):
                raise
            return self._get(run, which)  # training may have replaced it with a newer checkpoint meanwhile

    def _get(self, run: Path, which: str) -> Writer:
        from engine.training.checkpoint import MANIFEST, find

        reader = RunReader(run)
        folder = find(reader, which)
        key = (folder, stamp(folder / MANIFEST))
        found = self._kept.pop(key, None) or load_writer(reader, which, self.device)
        self._kept[key] = found  # newest last
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def checkpoints(run: Path) -> tuple[object, ...]:
    """Return a value that changes with each new checkpoint; looks at two files."""
    return tuple(stamp(run / "checkpoints" / name) for name in ("last", "best"))
