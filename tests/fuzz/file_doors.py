"""Doors for files of their own: tokenizers, corpora, studies, presets, checkpoints, commands, settings."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from textual.app import App

from engine.base.errors import InputError
from engine.config import presets, toml
from engine.config.sections import DataConfig
from engine.data.documents import by_path as documents
from engine.data.parallel import by_path as parallel
from engine.data.tokenizers import BpeTokenizer, CharacterTokenizer, PairTokenizer, WordTokenizer, read_tokenizer
from engine.runs import commands
from engine.runs.reader import RunReader
from engine.runs.records import ValidationRecord
from engine.training import checkpoint
from engine.training.checkpoint import TrainerState
from tests.fuzz.door import Door
from tests.fuzz.mutations import EDITS, TEXT_EDITS, Edit, damaged, edited
from tui_transformer import settings
from tui_transformer.lab.analysis.folder import read_study_file
from tui_transformer.lab.work.study import find_study, read_study, shipped_studies
from tui_transformer.settings import Settings

TEXTS = ["the cat sat on the mat", "die Katze saß auf der Matte"] * 4
_BPE = BpeTokenizer.train(TEXTS, 270)
_WORDS = WordTokenizer.from_texts(["abc", "cab, abc."])
TOKENIZERS = [
    one.to_json().encode()
    for one in (
        _BPE,
        CharacterTokenizer.from_texts("abc é"),
        _WORDS,
        PairTokenizer(_BPE, _BPE),
        PairTokenizer(_WORDS, _BPE),
    )
]
PRESETS = [path.read_bytes() for path in sorted(presets.folder().glob("*.toml"))]
STUDIES = [path.read_bytes() for path in shipped_studies().values()]
PAIRS = "".join(f"a dog {i} runs.\tein Hund {i} läuft.\n" for i in range(12)).encode()
PIECES = st.sampled_from(
    [
        *(b"\t", b"\n", b"\r\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xe4", b" ", b"\xc2\xa0", b'"', b'""'),
        *(
            b"\xff\xfe",
            b"\xfe\xff",
            b"\x1b[2J",
            b"\xe2\x80\xa8",
            b"\x0c",
            b"\x85",
            b"a",
            b"dog",
            b"ein Hund",
            b"en\tde\n",
        ),
        *(
            "é界".encode(),
            b"source\ttarget\n",
            b"question\tanswer\n",
            b"\x1f\x8b\x08\x00",
            b"a\tb\n",
            b"c\td\n",
            b"e\tf\n",
        ),
    ]
)
BYTES = st.one_of(
    st.lists(PIECES, max_size=30).map(b"".join),
    st.binary(max_size=60),
    TEXT_EDITS.map(lambda edits: edited(PAIRS, edits)),
)


def put(folder: Path, name: str, raw: bytes) -> Path:
    """A file of these bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    return path


def of_texts(known: list[bytes]) -> st.SearchStrategy[bytes]:
    """One of these texts, damaged."""
    return st.builds(lambda i, edits: edited(known[i], edits), st.integers(0, len(known) - 1), TEXT_EDITS)


def tokenizer(folder: Path, raw: bytes) -> None:
    found = read_tokenizer(put(folder, "tokenizer.json", raw))
    sides = (found.source, found.target) if isinstance(found, PairTokenizer) else (found,)
    for side in sides:
        ids = [*range(min(side.vocab_size, 40))]
        assert isinstance(side.decode(ids), str) and isinstance(found.sha256, str)


def config_file(folder: Path, raw: bytes) -> None:
    path = put(folder, "preset.toml", raw)
    made = presets.resolve(presets.load(path), where=str(path))
    assert toml.validate(toml.parse(toml.config_toml(made).encode(), "again"), "again") == made


def study_file(folder: Path, raw: bytes) -> None:
    path = put(folder, "some.study.toml", raw)
    assert read_study_file(path).name
    study = read_study(path)
    again = read_study(put(folder, "again.study.toml", study.to_toml().encode()))
    assert again.to_toml() == study.to_toml()
    find_study(str(path))
    if len(study.variants) * len(study.seeds) <= 12:
        study.cells()


def table_of_pairs(folder: Path, given: tuple[bytes, str]) -> None:
    raw, behind = given
    path = put(folder, "some.tsv", raw)
    parallel.load_path(DataConfig(corpus=f"{path}{behind}")).describe("")


def aligned_files(folder: Path, given: tuple[bytes, bytes]) -> None:
    files = [put(folder, f"text.{language}", raw) for language, raw in zip(("en", "de"), given, strict=True)]
    parallel.load_path(DataConfig(corpus=",".join(map(str, files)))).describe("")


def folder_of_pairs(folder: Path, given: dict[str, bytes]) -> None:
    with _only(folder / "languages", given) as path:
        parallel.load_path(DataConfig(corpus=str(path))).describe("")


def folder_of_documents(folder: Path, given: dict[str, bytes]) -> None:
    with _only(folder / "notes", given) as path:
        documents.load_path(DataConfig(corpus=str(path)))


class _only:  # noqa: N801
    """A folder with these files and no others."""

    def __init__(self, folder: Path, files: dict[str, bytes]) -> None:
        self._folder, self._files = folder, files

    def __enter__(self) -> Path:
        self._folder.mkdir(exist_ok=True)
        for name, raw in self._files.items():
            put(self._folder, name, raw)
        return self._folder

    def __exit__(self, *_: object) -> None:
        for path in self._folder.iterdir():
            path.unlink()


def text_documents(folder: Path, raw: bytes) -> None:
    documents.load_path(DataConfig(corpus=str(put(folder, "notes.txt", raw))))


def checkpoint_files(folder: Path, edits: list[Edit]) -> None:
    """Damage of a checkpoint: found by its hashes; past them (hashes that agree), still refused in one line."""
    run = RunReader(folder / "trained" / "text")
    files = sorted(path for path in (run.path / "checkpoints").rglob("*") if path.is_file())
    model, _, _ = LOADED.get(run.path) or LOADED.setdefault(run.path, checkpoint.load_network(run, "last"))
    for honest in (False, True):
        with damaged(files, edits):
            for path in checkpoint.step_folders(run.path):
                manifest = path / checkpoint.MANIFEST
                before = manifest.read_bytes() if honest and manifest.is_file() else None
                if before is not None:
                    _agree(path)
                try:
                    for attempt in (checkpoint.find_damage, _weights, _state(model)):
                        _refused(attempt, path)
                finally:
                    if before is not None:
                        manifest.write_bytes(before)
            for which in ("best", "last", "6", "average"):
                _refused(lambda which: checkpoint.load_network(run, which), which)
            _refused(checkpoint.newest_intact, run.path)


LOADED: dict[Path, Any] = {}


def _weights(path: Path) -> object:
    return checkpoint.saved_shapes(path / checkpoint.WEIGHTS)


def _state(model: torch.nn.Module) -> Callable[[Path], object]:
    optimizer = torch.optim.AdamW(model.parameters())
    return lambda path: checkpoint.load_state(path, model, optimizer)


def _refused(attempt: Callable[[Any], object], value: object) -> None:
    try:
        attempt(value)
    except InputError as error:
        assert "\n" not in str(error)


def _agree(path: Path) -> None:
    """A manifest whose hashes are those of the files as they are: damage that a hash does not find."""
    files = {name: path / name for name in checkpoint.PARTS}
    if all(file.is_file() for file in files.values()):
        hashes = {name: checkpoint._sha256(file) for name, file in files.items()}
        text = checkpoint._manifest_text({"schema": 1, "step": int(path.name[5:]), "sha256": hashes})
        (path / checkpoint.MANIFEST).write_text(text, encoding="utf-8")


STATE = TrainerState(6, best=ValidationRecord(loss=1.0), offsets={"metrics": 9}).to_json().encode()


def state_file(folder: Path, raw: bytes) -> None:
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return
    try:
        state = TrainerState.from_json(data)
    except ValueError:
        return
    state.to_json()


CONTROL = json.dumps(
    {"schema": 1, "commands": [{"id": 1, "command": "pause"}, {"id": 2, "command": "continue"}]}
).encode()


def control_file(folder: Path, edits: list[Edit]) -> None:
    run = folder / "controlled"
    put(run, "control.json", CONTROL)
    put(run, "status.json", b'{"schema": 1, "state": "running", "control_id": 1, "attempt": 1}')
    with damaged([run / "control.json", run / "status.json"], edits):
        assert all(isinstance(number, int) for number, _ in commands.read_commands(run))
        if not (run / "control.json").is_dir():
            sent = commands.send(run, commands.RunCommand.STOP)
            assert (sent, commands.RunCommand.STOP) in commands.read_commands(run)


SETTINGS = b"""launch = "thread"
on_quit = "ask"
theme = "studio-dark"
welcomed = true
[keys]
train = "f3"
pause = "p,space"
"""


def settings_file(folder: Path, edits: list[Edit]) -> None:
    path = put(folder, "settings.toml", SETTINGS)
    try:
        with damaged([path], edits):
            found, wrong = settings.load()
            assert isinstance(found, Settings) and "\n" not in wrong
            before = path.read_bytes() if path.is_file() else b""
            said = settings.save(found)
            assert not wrong or (said and (path.is_dir() or path.read_bytes() == before))
            App().set_keymap(found.keys)
    finally:
        path.unlink(missing_ok=True)


_NAMES = ("train.en", "train.de", "val.en", "val.de", "test.en", "test.de", "train.fr", "train.en.gz", "README")
_NOTES = ("documents.txt", "train.tsv", "validation.tsv", "test.tsv", "documents-validation.txt", "dev.tsv")
CONTROL_FAULTS = tuple([Edit("value", file, where, odd)] for file, where, odd in ((0, 12, []), (1, 126, math.nan)))
SETTINGS_FAULTS = tuple([Edit("whole", 0, 0, text)] for text in ("launch = " + "9" * 5000, "launch = " + "[" * 5000))
FILE_DOORS = {
    "configs: a preset's file": Door(of_texts(PRESETS), config_file),
    "tokenizers": Door(of_texts(TOKENIZERS), tokenizer),
    "studies": Door(of_texts(STUDIES), study_file),
    "pairs: a table": Door(st.tuples(BYTES, st.sampled_from(["", "", "", "#1,2", "#en,de", "#2,9"])), table_of_pairs),
    "pairs: aligned files": Door(st.tuples(BYTES, BYTES), aligned_files),
    "pairs: a folder": Door(st.dictionaries(st.sampled_from(_NAMES), BYTES, max_size=5), folder_of_pairs),
    "documents: a file": Door(BYTES, text_documents),
    "documents: a folder": Door(st.dictionaries(st.sampled_from(_NOTES), BYTES, max_size=5), folder_of_documents),
    "checkpoints": Door(EDITS, checkpoint_files),
    "state.json": Door(TEXT_EDITS.map(lambda edits: edited(STATE, edits)), state_file),
    "control.json": Door(EDITS, control_file, once=CONTROL_FAULTS),
    "settings": Door(EDITS, settings_file, once=SETTINGS_FAULTS),
}
