"""Checkpoints of others: tensors that are none, or a tokenizer that is not its run's, beside a manifest that agrees
with them, are one clear line.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.training import checkpoint
from engine.training.assemble import assemble, resume
from tests.conftest import TINY
from tests.engine.training.test_resume import StopAt
from tests.fuzz.door import command
from tests.hostile.poisoned_runs import rehash

Change = Callable[[Path], None]


def rewritten(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    def damage(path: Path) -> None:
        save_file({name: change(value).contiguous() for name, value in load_file(path).items()}, path)

    return damage


def header(change: Callable[[dict, str], object]) -> Change:
    """Change the description of the tensors, the name of the first of which is told."""

    def damage(path: Path) -> None:
        raw = path.read_bytes()
        end = 8 + int.from_bytes(raw[:8], "little")
        told = json.loads(raw[8:end])
        change(told, min(name for name in told if name != "__metadata__"))
        text = json.dumps(told).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw[end:])

    return damage


def of_length(length: int, text: bytes = b"") -> Change:
    return lambda path: path.write_bytes(length.to_bytes(8, "little") + text)


DAMAGES: dict[str, Change] = {
    "a header of 2^60 bytes": of_length(2**60),
    "a header 100,000 deep": of_length(100_000, b"[" * 100_000),
    "a shape beyond all counting": header(lambda told, name: told[name].update(shape=[2**40, 2**20])),
    "a side of length 0": header(lambda told, name: told[name].update(shape=[0, 2**62])),
    "many tensors more": header(
        lambda told, name: told.update(
            {f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(10_000)}
        )
    ),
    "a type that nobody knows": header(lambda told, name: told[name].update(dtype="\x1b[31mF3")),
    "names that command": lambda path: save_file({f"\x1b[2J{k}": v for k, v in load_file(path).items()}, path),
    "whole numbers": rewritten(lambda value: value.to(torch.int8)),
    "fp64": rewritten(lambda value: value.double()),
    "eight bits": rewritten(lambda value: value.to(torch.float8_e4m3fn)),
    "complex numbers": rewritten(lambda value: value.to(torch.complex64)),
    "another shape": rewritten(lambda value: value[None]),
}
COMMANDS = (("sample", "--prompt", "the", "--length", "3"), ("evaluate",), ("export", "--to", "huggingface"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("stopped")
    tables = TINY | {"checkpoint": {"every": 1}}
    ready = assemble(RunConfig.model_validate(tables), runs_dir=root, name="run", device="cpu", control=StopAt(4))
    assert ready.trainer.run().state == "stopped"
    return root / "run"


def damaged(run: Path, root: Path, file: str, change: Change) -> Path:
    copy = Path(shutil.copytree(run, root / "run"))
    for folder in checkpoint.step_folders(copy):
        if (folder / file).stat().st_size > 100:  # no moments yet at step 0
            change(folder / file)
        rehash(folder)
        assert checkpoint.find_damage(folder) is None
    return copy


@pytest.mark.parametrize("what", DAMAGES)
def test_odd_weights_are_one_line(stopped, tmp_path, what: str) -> None:
    run = damaged(stopped, tmp_path, checkpoint.WEIGHTS, DAMAGES[what])
    for words in (*COMMANDS, ("resume",)):
        out = ["--out", str(tmp_path / "out")] if words[0] == "export" else []
        device = ["--device", "cpu"] if words[0] != "export" else []
        said = command(*words[:1], run.name, *words[1:], "--runs-dir", str(tmp_path), *out, *device, codes=(2,))
        assert len(said.strip().splitlines()) == 1 and "\x1b" not in said and len(said) < 1000
    said = command("verify", run.name, "--steps", "1", "--runs-dir", str(tmp_path), "--device", "cpu", codes=(1,))
    assert "\x1b" not in said


@pytest.mark.parametrize("what", [*DAMAGES, "one number for all"])
def test_odd_moments_are_one_line(stopped, tmp_path, what: str) -> None:
    change = DAMAGES.get(what, rewritten(lambda value: value.new_zeros(1) if value.dim() else value))
    run = damaged(stopped, tmp_path, checkpoint.OPTIMIZER, change)
    with pytest.raises(InputError, match=r"optimizer\.safetensors"):
        resume(run, device="cpu")


def test_the_tokenizer_of_a_translation_in_a_text_run_is_one_line(stopped, tmp_path) -> None:
    def paired(path: Path) -> None:
        one = json.loads(path.read_text())
        path.write_text(json.dumps({"schema": 1, "kind": "pair", "source": one, "target": None}))

    run = damaged(stopped, tmp_path, checkpoint.TOKENIZER, paired)
    for words in COMMANDS:
        out = ["--out", str(tmp_path / "out")] if words[0] == "export" else []
        said = command(*words[:1], run.name, *words[1:], "--runs-dir", str(tmp_path), *out, codes=(2,))
        assert len(said.strip().splitlines()) == 1 and "tokenizer.json" in said
