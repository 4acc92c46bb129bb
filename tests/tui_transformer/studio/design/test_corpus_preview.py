"""What Design shows of a file that is not UTF-8."""

import subprocess
import sys

import pytest

from engine.config import presets
from engine.config.schema import RunConfig
from tui_transformer.studio.design import corpus_preview
from tui_transformer.studio.design.corpus_preview import preview_corpus

LINES = ["第一回 甄士隐梦幻识通灵", "此开卷第一回也。作者自云。"] * 200


def config(corpus: str, encoding: str) -> RunConfig:
    tables = {"data": {"corpus": corpus, "encoding": encoding}}
    return presets.resolve(presets.find("demo"), overrides=[tables])


@pytest.mark.parametrize("large", [False, True])
def test_an_encoding_is_offered_and_the_text_shown_once_it_is_set(tmp_path, monkeypatch, large: bool) -> None:
    if large:
        monkeypatch.setattr(corpus_preview, "LARGEST", 1000)
    (tmp_path / "novel.txt").write_bytes("\r\n".join(LINES).encode("gb18030"))
    corpus = str(tmp_path / "novel.txt")
    problem = preview_corpus(config(corpus, "auto"), None).problem
    assert problem.endswith("it seems to be gb18030: set data.encoding = gb18030")
    seen = preview_corpus(config(corpus, "gb18030"), None)
    assert not seen.problem and list(seen.lines[:2]) == LINES[:2]


IMPORTS = """
import sys, threading, time
from engine.config import presets
from tui_transformer.studio.design.corpus_preview import preview_corpus
from tui_transformer.studio.shared.engine_thread import IMPORT_LOCK
with IMPORT_LOCK:
    reading = threading.Thread(target=preview_corpus, args=(presets.resolve(presets.find("demo")), None))
    reading.start()
    time.sleep(0.5)
    assert "engine.data.catalogue" not in sys.modules
reading.join()
assert "engine.data.catalogue" in sys.modules
"""


def test_a_preview_imports_nothing_while_the_app_imports_panes() -> None:
    """Two threads that import one package at once can fail, each for want of what the other has not finished."""
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
