"""The previews of corpora that the program writes itself: each is made once for all studios of a process.

The text of one preset's corpus takes a third of a second to write, and every studio begins with it.
"""

from pathlib import Path

import pytest

from engine.base import language
from engine.config.schema import RunConfig
from engine.data.corpus import CorpusPreview
from engine.data.known import CORPORA
from tui_transformer.studio.design import corpus_preview
from tui_transformer.studio.design import pane as design

_made: dict[tuple[str, str, Path | None], CorpusPreview] = {}


def be_seen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design, "preview_corpus", preview)


def preview(config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    """Stands for `preview_corpus`. What is read from files or is refused is looked at anew each time."""
    entry = CORPORA.get(config.data.corpus.partition("#")[0])
    if entry is None or entry.needs_download:
        return corpus_preview.preview_corpus(config, data_dir)
    key = (corpus_preview.corpus_key(config), language.language_code(), data_dir)
    seen = _made.get(key) or corpus_preview.preview_corpus(config, data_dir)
    if not seen.problem:
        _made[key] = seen
    return seen
