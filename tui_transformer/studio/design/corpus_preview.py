"""A corpus preview: its beginning, its characters, or why it is missing. Slow: call it in a thread."""

import json
from dataclasses import replace
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.config.sections import DataConfig
from engine.data import sources
from engine.data.corpus import CorpusPreview, data_folders
from engine.data.known import CORPORA, kind_by_name
from engine.data.text_files import Reading
from tui_transformer.studio.shared.engine_thread import FAILURES, IMPORT_LOCK

LINES, WIDEST = 24, 160  # of the shown text
LARGEST = 64 * 1024**2  # bytes; larger files are only read in part
PART = 1024**2  # characters
LARGEST_PAIRS = 16 * 1024**2  # bytes; reading more at once would block the screen for over 50 ms
TOO_LARGE = Message("too large for a preview")
UNPACKED = 4  # ratio of unpacked to compressed bytes


def corpus_key(config: RunConfig) -> str:
    return json.dumps([config.task.row_name, config.data.model_dump(mode="json")], sort_keys=True)


def preview_corpus(config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    """Preview a config's corpus; problems with it are an answer too."""
    with IMPORT_LOCK:  # every corpus, and numpy: not before the first paint
        from engine.data.catalogue import KINDS, load_corpus

    corpus, kind = config.data.corpus, config.task.corpus
    try:
        seen = _preview_large(config.data, kind, data_dir)
        if seen is None:
            loaded = load_corpus(KINDS[kind].corpus_class, config.data, data_dir)
            seen = loaded.preview(config.data, config.task.row_name, LINES)
    except FAILURES as error:
        return CorpusPreview(corpus, problem=str(error) or type(error).__name__)
    return replace(seen, corpus=corpus, lines=tuple(clean_line(line[:WIDEST]) for line in seen.lines))


def _preview_large(data: DataConfig, kind: str, data_dir: Path | None) -> CorpusPreview | None:
    """Return the preview of a corpus too large to be read at once; None for other corpora."""
    corpus = data.corpus
    if kind == "text" and kind_by_name(corpus) is None:
        source = sources.find_source(corpus, Reading.of(data))
        if source.approximate_bytes > LARGEST:
            beginning = ""
            for piece in source.pieces(next(iter(source.files))):
                beginning += piece
                if len(beginning) > PART:
                    break
            if not beginning.strip():
                raise InputError(Message("corpus {corpus}: its beginning is all whitespace", corpus=corpus))
            return CorpusPreview(corpus, beginning[: 40 * LINES * WIDEST].lstrip("\n").split("\n")[:LINES])
    if kind == "pairs":
        from engine.data.parallel.by_path import split_comma_joined_paths, split_selector

        base = split_selector(corpus)[0]
        entry = CORPORA.get(base)
        found = entry.find_files(data_folders(data_dir)) if entry is not None else None
        paths = (
            [found]
            if found is not None
            else [Path(file.strip()).expanduser() for file in split_comma_joined_paths(base)]
        )
        files = [file for path in paths for file in (path.iterdir() if path.is_dir() else [path]) if file.is_file()]
        # About their unpacked size.
        if sum(f.stat().st_size * (UNPACKED if f.suffix in (".gz", ".zip") else 1) for f in files) > LARGEST_PAIRS:
            return CorpusPreview(corpus, [tr(TOO_LARGE)])
    return None


def absolute_corpus_path(path: str, *, pairs: bool) -> str:
    """A path made independent of the current folder."""
    if pairs:
        from engine.data.parallel.by_path import make_absolute

        return make_absolute(path)
    try:
        base, field = sources.split_field(path)
        return str(Path(base).expanduser().absolute()) + (f":{field}" if field else "")
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody
        raise InputError(Message("corpus '{path}': not a valid path: {error}", path=path[:80], error=error)) from None
