"""Doors of what works with a run that was trained: whatever became of its files, it is scored, written with, exported,
or refused in one line."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from hypothesis import strategies as st

from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.tokenizers import CharacterTokenizer
from tests.fuzz.door import Door, command
from tests.fuzz.file_doors import BYTES, put
from tests.fuzz.mutations import EDITS, Edit, damaged
from tests.fuzz.run_doors import Given, files_of

ON_CPU = ("--device", "cpu")
EVALUATED = MappingProxyType(
    {
        "text": (
            ("evaluate", "text", *ON_CPU),
            ("evaluate", "text", *ON_CPU, "--json", "--checkpoint", "best"),
            ("evaluate", "text", *ON_CPU, "--split", "test", "--checkpoint", "3"),
        ),
        "pairs": (("evaluate", "pairs", *ON_CPU), ("evaluate", "pairs", *ON_CPU, "--json", "--sentences", "3")),
        "asked": (("evaluate", "asked", *ON_CPU, "--sentences", "5"), ("evaluate", "asked", *ON_CPU, "--json")),
    }
)
WRITTEN = MappingProxyType(
    {
        "text": (
            ("sample", "text", *ON_CPU, "--prompt", "the", "--length", "5"),
            ("sample", "text", *ON_CPU, "--json", "--length", "5", "--checkpoint", "best"),
        ),
        "pairs": (
            ("translate", "pairs", *ON_CPU, "--text", "I see the dog"),
            ("translate", "pairs", *ON_CPU, "--json", "--text", "x"),
        ),
        "asked": (("sample", "asked", *ON_CPU, "--prompt", "Where was Ada born?"),),
    }
)
EXPORTED = MappingProxyType(
    {
        run: tuple(("export", run, "--to", tool) for tool in ("csv", "json", "tensorboard", "huggingface"))
        for run in ("text", "pairs", "asked")
    }
)


def working(lines: "MappingProxyType[str, tuple[tuple[str, ...], ...]]") -> Callable[[Path, Given], None]:
    """One of these commands about a run with damaged files; what it makes goes away again."""
    every: Sequence[tuple[str, tuple[str, ...]]] = [(run, line) for run, found in lines.items() for line in found]

    def knock(folder: Path, given: Given) -> None:
        edits, how = given
        run, line = every[how % len(every)]
        root, out = folder / "trained", folder / "exported"
        into = ("--out", str(out)) if line[0] == "export" else ()
        with damaged(files_of(root / run), edits):
            command(*line, *into, "--runs-dir", str(root))
        if out.is_dir():
            shutil.rmtree(out)
        else:
            out.unlink(missing_ok=True)

    return knock


def text_file(folder: Path, raw: bytes) -> None:
    """A file of somebody, as the text to train on: read, or refused."""
    from engine.config.sections import DataConfig

    found = load_corpus(TextCorpus, DataConfig(corpus=str(put(folder, "some.txt", raw))))
    text = "".join(part.text for part in found.splits.values())
    tokenizer = CharacterTokenizer.from_texts(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


EVALUATED_FAULTS = (([Edit("value", 714, 335, "ok")], 335), ([Edit("value", 664, 430730, 573815)], 314))
_GIVEN = st.tuples(EDITS, st.integers(0, 1000))
WORK_DOORS = {
    "runs: evaluate": Door(_GIVEN, working(EVALUATED), once=EVALUATED_FAULTS),
    "runs: sample and translate": Door(_GIVEN, working(WRITTEN)),
    "runs: export": Door(_GIVEN, working(EXPORTED)),
    "texts": Door(st.tuples(BYTES, st.integers(1, 40)).map(lambda given: given[0] * given[1]), text_file),
}
