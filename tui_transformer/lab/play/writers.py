"""The writer that a run needs, and the writers that are kept in memory."""

from collections.abc import Callable
from pathlib import Path

from engine.errors import InputError
from engine.runs.reader import RunReader
from engine.runs.tail import stamp
from tui_transformer.lab.play.document_writer import DocumentWriter
from tui_transformer.lab.play.text_writer import TextWriter
from tui_transformer.lab.play.translation_writer import TranslationWriter
from tui_transformer.lab.play.writer import Writer

KEPT = 3  # models that stay in memory


def load_writer(reader: RunReader, checkpoint: str, device: str) -> Writer:
    """Load what writes with a run's checkpoint.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """
    config = reader.config
    kind = DocumentWriter if config.on_documents else TranslationWriter if config.translates else TextWriter
    return kind(reader, checkpoint, device)


class Writers:
    """Loaded models, by run and checkpoint: what was loaded is not loaded again until its files are others.

    Args:
        device: as on the command line.
        load: makes a writer; called off the event loop.
    """

    def __init__(self, device: str, load: Callable[[RunReader, str, str], Writer] = load_writer) -> None:
        self.device, self._load = device, load
        self._kept: dict[tuple[Path, object], Writer] = {}

    def get(self, run: Path, which: str) -> Writer:
        """Return the model of a run's checkpoint; blocks while it loads.

        Args:
            run: its directory.
            which: best, last, or a step.

        Raises:
            InputError: no such checkpoint, or a damaged one.
        """
        try:
            return self._get(run, which)
        except OSError as error:
            raise InputError(f"{run.name}: its checkpoint cannot be read: {error.strerror or error}") from None
        except InputError:
            if RunReader(run).status.state not in ("running", "paused", "handing-over"):
                raise
            return self._get(run, which)  # training may have put a newer checkpoint in its place while it was read

    def _get(self, run: Path, which: str) -> Writer:
        from engine.training.checkpoint import MANIFEST, find

        reader = RunReader(run)
        folder = find(reader, which)
        key = (folder, stamp(folder / MANIFEST))
        found = self._kept.pop(key, None) or self._load(reader, which, self.device)
        self._kept[key] = found  # the newest last
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def checkpoints(run: Path) -> tuple[object, ...]:
    """Return what changes when a run has a newer checkpoint; looks at two files."""
    return tuple(stamp(run / "checkpoints" / name) for name in ("last", "best"))
