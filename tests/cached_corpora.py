"""Generated corpora, made once each, for tests that load the same one again and again and whose claim is not that it is
the same again: that has tests of its own in `tests/engine/data`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any
from unittest import mock

from engine.config.sections import DataConfig
from engine.data.catalogue import KINDS
from engine.data.corpus import CorpusEntry
from engine.data.known import CORPORA

MOST = 32  # corpora that are kept


@contextmanager
def cached() -> Iterator[None]:
    """Such a corpus depends on nothing but its settings, and nobody changes it. Errors are raised anew each time."""
    with ExitStack() as stack:
        for row in KINDS.values():
            named: Any = row.named_loaders
            generated = {name: load for name, load in named.items() if not CORPORA[name].needs_download}
            again = {name: once(load, CORPORA[name]) for name, load in generated.items()}
            stack.enter_context(mock.patch.dict(named, again))
        yield


LOADERS: dict[str, Callable[[DataConfig], Any]] = {}  # for the whole test run


def once(load: Callable[..., Any], entry: CorpusEntry) -> Callable[..., Any]:
    if entry.name not in LOADERS:
        LOADERS[entry.name] = lru_cache(MOST)(lambda data: load(entry, data, None))
    loaded = LOADERS[entry.name]
    return lambda entry, data, place: loaded(data)
