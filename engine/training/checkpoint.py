"""Checkpoints: weights, optimizer moments, trainer state and tokenizer in one folder, written atomically.

`checkpoints/step-NNNNNNNN/` is written as a hidden folder, synced, then renamed. Tensors are safetensors, the rest is
JSON: no pickle is ever written or loaded. `last` and `best` are one-line text files that name a step's folder. Tensors
are fp32; their names, types and shapes are checked before any value is read.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine import capabilities
from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated, reason
from engine.base.language import Message, tr
from engine.base.plain_files import open_regular_file, read_regular_file
from engine.config import Tables
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.data.tokenizers import AnyTokenizer, read_tokenizer
from engine.model.transformer import NETWORKS, Network, SkipInit, build_model
from engine.runs.files import SCHEMA, read_json, replace_non_finite, sync_file, sync_folder, write_atomic
from engine.runs.reader import RunReader
from engine.runs.records import AverageScores, Record, ValidationRecord
from engine.training.optimizer import EMA, state_names

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
TOKENIZER, MANIFEST = "tokenizer.json", "manifest.json"
PARTS = {WEIGHTS, OPTIMIZER, STATE, TOKENIZER}
STATE_SCHEMA = 1
LARGEST_TEXT = 64 << 20  # bytes of state.json or tokenizer.json; a longer one is damaged
LONGEST_HEADER = 16 << 20  # bytes of names and shapes
Shape = tuple[int, ...]
# These have only weights and tokenizer: they cannot be resumed.
AVERAGE, MOVING_AVERAGE = "average", "ema"
AVERAGES = (AVERAGE, MOVING_AVERAGE)


@dataclass
class TrainerState:
    """The training state besides weights and moments, at a step boundary before its evaluation.

    Random numbers need no state: every draw is seeded by (run seed, purpose, step, micro-batch).
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    # The validation records of the best, the newest and the averaged weights; evaluations since the best.
    best: ValidationRecord | None = None
    last: ValidationRecord | None = None
    average: AverageScores | None = None
    evaluations_since_best: int = 0
    # The train record being gathered: Σ nll and scored tokens since the last one.
    interval_nll: float = 0.0
    interval_tokens: int = 0
    interval_seconds: float = 0.0
    # Pieces per micro-batch, cut to fit into memory.
    pieces: int = 1
    # Length of each stream of the run directory, bytes.
    offsets: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        fields = {name: value.dump() if isinstance(value, Record) else value for name, value in vars(self).items()}
        return json.dumps(replace_non_finite({"schema": STATE_SCHEMA, **fields}), allow_nan=False)

    @classmethod
    def from_json(cls, data: Any) -> "TrainerState":
        """Return the state as saved; raise `ValueError` for a field that is missing, unknown or of the wrong type."""
        if not isinstance(data, dict) or data.get("schema") != STATE_SCHEMA:
            raise ValueError(tr("this trainer state was written by a different version"))
        names = {f.name for f in fields(cls)}
        wrong = names ^ (data.keys() - {"schema"})
        if wrong:
            raise ValueError(f"'{min(wrong)}' is {'missing' if min(wrong) in names else 'unknown'}")
        scored: dict[str, type[Record]]
        fresh, scored = vars(cls()), {"best": ValidationRecord, "last": ValidationRecord, "average": AverageScores}
        for name in names:
            kind = dict | None if name in scored else type(fresh[name])
            if not isinstance(data[name], int | float if kind is float else kind):
                raise ValueError(f"'{name}' is {data[name]!r}")
        if not all(isinstance(length, int) and length >= 0 for length in data["offsets"].values()):
            raise ValueError(tr("'offsets' is {data!r}", data=data["offsets"]))
        records = {name: kind.create(**data[name]) for name, kind in scored.items() if data[name] is not None}
        return cls(**{name: data[name] for name in names} | records)


class Provenance(NamedTuple):
    """What every checkpoint says of its run: its tokenizer and its `fixed_settings`."""

    tokenizer: AnyTokenizer
    settings: Tables


def folder_name(step: int) -> str:
    return f"step-{step:08d}"


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters by name, shared ones once, on the CPU."""
    return {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}


@torch.no_grad()
def copy_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])


def moments_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    moments = {}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            moments[f"{name}/{key}"] = value.detach().cpu().contiguous()
    return moments


def save(
    run: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainerState,
    provenance: Provenance,
    check: Callable[[], None] = lambda: None,
) -> str:
    """Write the checkpoint of the state's step, point `last` at it and return its folder's name.

    `check` is called when all is written but nothing is in its place, and may raise to leave it so.
    """
    parent = run / "checkpoints"
    name = folder_name(state.step)
    final = parent / name
    if final.exists():
        if find_damage(final) is None:
            set_pointer(run, "last", state.step)
            return name
        final.rename(parent / f"damaged-{name}-{time.time_ns()}")  # never deleted: it may be worth inspecting
    tensors = {WEIGHTS: weights_of(model), OPTIMIZER: moments_of(model, optimizer)}
    _write(final, state.step, tensors, {STATE: state.to_json()}, provenance, check)
    set_pointer(run, "last", state.step)
    return name


def _write(
    final: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    texts: Mapping[str, str],
    provenance: Provenance,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Write a checkpoint folder: staged, every file synced and hashed, then renamed into place and that synced."""
    parent = final.parent
    staged = parent / f".{final.name}.new"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        for file, values in tensors.items():
            save_tensors(staged / file, values)
        for file, text in {TOKENIZER: provenance.tokenizer.to_json(), **texts}.items():
            write_atomic(staged / file, text)
        files = {path.name: _sha256(path) for path in sorted(staged.iterdir())}
        manifest = {"schema": SCHEMA, "step": step, "sha256": files, "settings": provenance.settings}
        manifest["settings_sha256"] = _settings_sha256(provenance.settings)
        write_atomic(staged / MANIFEST, _manifest_text(manifest))
        for path in staged.iterdir():
            sync_file(path)
        sync_folder(staged)
    except OSError:
        shutil.rmtree(staged, ignore_errors=True)  # frees space on a full disk
        raise
    check()
    staged.rename(final)
    sync_folder(parent)


def load_average_and_save(run: Path, model: nn.Module, provenance: Provenance, how_many: int) -> list[int]:
    """Put the mean of the newest checkpoints' weights into a model, save it as `average` and return their steps."""
    folders = step_folders(run)[-how_many:]
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in weights_of(model).items()}
    for folder in folders:
        for name, value in load_tensors(folder / WEIGHTS).items():
            total[name] += value.double()
    mean = {name: (value / len(folders)).float() for name, value in total.items()}
    steps = [int(folder.name[5:]) for folder in folders]
    _load_and_save_averaged(run, AVERAGE, steps[-1], model, mean, provenance)
    return steps


def load_moving_average_and_save(
    run: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int, provenance: Provenance
) -> None:
    """Put the weights' moving average into a model and save it as `ema`; before the first step, it is the weights."""
    average = {
        name: optimizer.state.get(weight, {}).get(EMA, weight).detach().cpu().contiguous()
        for name, weight in model.named_parameters()
    }
    _load_and_save_averaged(run, MOVING_AVERAGE, step, model, average, provenance)


def _load_and_save_averaged(
    run: Path, name: str, step: int, model: nn.Module, weights: Mapping[str, Tensor], provenance: Provenance
) -> None:
    copy_weights(model, weights)
    final = run / "checkpoints" / name
    shutil.rmtree(final, ignore_errors=True)
    _write(final, step, {WEIGHTS: weights}, {}, provenance)


def set_pointer(run: Path, which: Literal["last", "best"], step: int) -> None:
    """Name the checkpoint of a step as the newest or the best; a kill may come between writing one and this."""
    write_atomic(run / "checkpoints" / which, folder_name(step) + "\n")


def prune(run: Path, keep_last: int) -> None:
    parent = run / "checkpoints"
    kept = {_pointer(parent, "best"), _pointer(parent, "last")}
    for path in step_folders(run)[:-keep_last]:
        if path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def step_folders(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-????????"))


def newest_intact(run: Path) -> tuple[Path, list[str]]:
    """Return the newest intact checkpoint, and what is wrong with newer ones; raise `InputError` if there is none."""
    wrong: list[str] = []
    for folder in reversed(step_folders(run)):
        found = find_damage(folder)
        if found is None:
            return folder, wrong
        wrong.append(f"{folder.name}: {found}")
    text = "; ".join((tr("run '{name}' has no intact checkpoint to resume from", name=run.name), *wrong))
    again = command_line("run", "--config", run / "config.toml", runs_dir=run.parent)
    raise InputError(text + tr("; `{command_line}` trains it from the start", command_line=again))


def never_saved(reader: RunReader) -> bool:
    """Return whether a run ended before its first checkpoint, so starting it over loses no step."""
    metrics = reader.path / "metrics.jsonl"
    saved = reader.status.checkpoint is not None or step_folders(reader.path)
    return not saved and not (metrics.exists() and metrics.stat().st_size)


def load_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainerState:
    """Load a checkpoint's weights and moments; return the rest. `InputError`: a piece is missing or another model's."""
    load_weights(model, folder / WEIGHTS)
    try:
        state = TrainerState.from_json(read_json(folder / STATE))
    except (OSError, ValueError) as error:
        raise InputError(
            Message("{folder}: cannot resume from this state: {error}", folder=folder, error=error)
        ) from None
    path = folder / OPTIMIZER
    moments = load_tensors(path)
    parameters = dict(model.named_parameters())
    keys = state_names(optimizer)
    kept = {name: keys[parameter] if state.step else () for name, parameter in parameters.items()}
    expected = {f"{name}/{key}" for name, those in kept.items() for key in those}
    if moments.keys() != expected:
        odd = min(moments.keys() ^ expected)
        raise InputError(Message("{folder}: '{moments}' is missing or does not belong here", folder=path, moments=odd))
    for name, parameter in parameters.items():
        own = {key: moments[f"{name}/{key}"] for key in kept[name]}
        for key, moment in own.items():
            if moment.shape != (() if key == "step" else parameter.shape):
                text = Message(
                    "{folder}: '{name}/{key}' does not match the shape of its weight", folder=path, name=name, key=key
                )
                raise InputError(text)
        if own:
            optimizer.state[parameter] = {key: moment.to(parameter.device) for key, moment in own.items()}
    return state


def find(reader: RunReader, which: str) -> Path:
    """Return the folder of `best`, `last`, `average`, `ema` or a step; raise `InputError` naming those that exist."""
    parent = reader.path / "checkpoints"
    name = _pointer(parent, which) if which in ("best", "last") else None
    if name is None and which == "best":  # nothing has been evaluated yet, so the last is the best there is
        name = _pointer(parent, "last")
    if name is None and which.isascii() and which.isdecimal() and len(which) <= 8:
        name = folder_name(int(which))
    if which in AVERAGES:
        name = which
    if name is not None and (parent / name / WEIGHTS).is_file():
        return parent / name
    steps = [str(int(path.name[5:])) for path in step_folders(reader.path) if path.name[5:].isdecimal()]
    there = tr("it has none at all")
    if steps:
        there = tr("it has best, last and steps {steps}", steps=comma_separated(steps[-8:]))
    text = Message("run '{name}' has no checkpoint '{which}'; {there}", name=reader.name, which=which[:40], there=there)
    raise InputError(text)


def find_intact(reader: RunReader, which: str) -> Path:
    """`find`; raise `InputError` if the checkpoint is damaged."""
    folder = find(reader, which)
    if (wrong := find_damage(folder)) is not None:
        text = Message(
            "{folder}: {wrong}; `{command}` shows which checkpoints are intact",
            folder=folder,
            wrong=wrong,
            command=reader.command("doctor"),
        )
        raise InputError(text)
    return folder


def find_damage(folder: Path) -> str | None:
    """Return briefly what is wrong with a checkpoint's files; None if all are as written."""
    manifest = read_json(folder / MANIFEST)
    hashes = manifest.get("sha256") if isinstance(manifest, dict) else None
    parts = {WEIGHTS, TOKENIZER} if folder.name in AVERAGES else PARTS
    if not isinstance(hashes, dict) or hashes.keys() != parts or manifest.get("schema") != SCHEMA:
        return tr("{manifest} is missing or damaged", manifest=MANIFEST)
    try:
        as_written = (folder / MANIFEST).read_text(encoding="utf-8") == _manifest_text(manifest)
        settings = manifest.get("settings")  # earlier versions saved none
        as_written &= manifest.get("settings_sha256") == (None if settings is None else _settings_sha256({**settings}))
        if not as_written or folder.name not in (folder_name(manifest["step"]), *AVERAGES):
            return tr("{manifest} is damaged: it has changed since it was written", manifest=MANIFEST)
    except (OSError, ValueError, KeyError, TypeError):
        return tr("{manifest} is damaged", manifest=MANIFEST)
    for name in sorted(parts):
        path = folder / name
        if not path.is_file():
            return tr("{name} is missing", name=name)
        most = file_bytes_by_header(path) if name in (WEIGHTS, OPTIMIZER) else LARGEST_TEXT
        if path.stat().st_size > most:
            return tr("{name} is damaged: larger than its header says", name=name)
        if _sha256(path) != hashes[name]:
            return tr("{name} is damaged: its SHA-256 has changed since it was written", name=name)
    return None


def settings_of(folder: Path) -> Tables | None:
    """Return the `fixed_settings` that an intact checkpoint was saved with; None if by an earlier version."""
    found: Tables | None = read_json(folder / MANIFEST).get("settings")
    return found


def _settings_sha256(settings: Tables) -> str:
    """Return the SHA-256 of settings as JSON in the order of their keys, without spaces."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _manifest_text(manifest: Mapping[str, object]) -> str:
    return json.dumps(manifest, indent=1, sort_keys=True) + "\n"


def load_network(
    reader: RunReader, which: str = "best", device: torch.device | str = "cpu", read_as: ModelConfig | None = None
) -> tuple[Network, AnyTokenizer, int]:
    """Load a run's model, in evaluation mode, its tokenizer and step; `InputError`: no intact checkpoint. `read_as`:
    another network that takes the same weights, for a longer context say.
    """
    folder = find_intact(reader, which)
    tokenizer = read_tokenizer(folder / TOKENIZER)
    config, said = reader.config, reader.path / "config.toml"
    capabilities.require_valid(config, str(said))
    if tokenizer.is_pair != (config.task.corpus == "pairs"):
        text = Message(
            "{folder}: does not belong to a run that {does}", folder=folder / TOKENIZER, does=config.task.action
        )
        raise InputError(text)
    if read_as is not None:
        config = config.model_copy(update={"model": read_as})
    size = config.model.vocab_size or config.min_vocab_size(tokenizer.vocab_size)
    model = network_with_weights(config, size, folder / WEIGHTS, device, said)
    return model, tokenizer, int(read_json(folder / MANIFEST)["step"])


def network_with_weights(
    config: RunConfig, vocab_size: int, weights: Path, device: torch.device | str, config_file: Path
) -> Network:
    """Build a model in evaluation mode and load its weights; raise `InputError` if it cannot be built (names `said`,
    the config's file), or the weights are damaged or another model's.
    """
    try:
        check_shapes(weights, parameter_shapes(config.model, vocab_size))  # before anything large is built
        model = build_model(config.model, vocab_size, config.seed, device)  # any seed: every weight is replaced
    except (ValueError, RuntimeError, MemoryError) as error:
        raise InputError(Message("{said}: cannot build this model: {error}", said=config_file, error=error)) from None
    load_weights(model, weights)
    return model.eval()


def parameter_shapes(model: ModelConfig, vocab_size: int) -> dict[str, Shape]:
    with torch.device("meta"), SkipInit():
        return shapes_of(NETWORKS[model.architecture](model, model.vocab_size or vocab_size))


def _pointer(parent: Path, which: str) -> str | None:
    try:
        name = read_regular_file(parent / which, 100).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return name if name.startswith("step-") and name[5:].isdecimal() else None


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(Message("{path}: cannot be read: {strerror}", path=path, strerror=reason(error))) from None


# Tensor files


def save_tensors(path: Path, values: Mapping[str, Tensor]) -> None:
    """Write tensors; a full or broken disk raises OSError, unlike with safetensors."""
    path.touch()
    mode = stat.S_IMODE(path.stat().st_mode)  # by umask; safetensors would let only the owner read it
    try:
        save_file(dict(values), path)
        path.chmod(mode)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def shapes_of(model: nn.Module) -> dict[str, Shape]:
    """Return the shape of each parameter by name, shared ones once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def check_shapes(path: Path, expected: Mapping[str, Shape]) -> None:
    """Compare names and shapes of saved weights with a model's; raise `InputError` for the first that differs."""
    saved = saved_shapes(path)
    for name in sorted(expected.keys() ^ saved.keys()):
        text = Message("{path}: weights of another model: '{name}' is only in the config's model", path=path, name=name)
        if name in saved:
            text = Message("{path}: weights of another model: '{name}' is only in this file", path=path, name=name)
        raise InputError(text)
    for name, shape in expected.items():
        if saved[name] != shape:
            found = list(saved[name])
            text = Message(
                "{path}: weights of another model: '{name}' is {found} here but {list} in the config's model",
                path=path,
                name=name,
                found=found,
                list=list(shape),
            )
            raise InputError(text)


def saved_shapes(path: Path) -> dict[str, Shape]:
    """Return the shape of each saved tensor without reading one; raise `InputError` if unreadable or not fp32."""
    try:
        with safe_open(path, framework="numpy") as file:
            told = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            types = {name: told[name].get_dtype() for name in told}
            shapes = {name: tuple(told[name].get_shape()) for name in told}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(Message("{path}: cannot be read: {error}", path=path, error=error)) from None
    for name, found in types.items():
        if found != "F32":
            text = Message(
                "{path}: cannot be read: '{name}' is {found}, must be F32", path=path, name=name, found=found
            )
            raise InputError(text)
    return shapes


def file_bytes_by_header(path: Path) -> int:
    """Return the most bytes that a safetensors file can have by its header; if that is damaged, the header's own."""
    length = 0
    try:
        with open_regular_file(path) as file:
            length = min(int.from_bytes(file.read(8), "little"), LONGEST_HEADER)
            header = json.loads(file.read(length))
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        return int(8 + length + max(ends, default=0))
    except (OSError, ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError, OverflowError):
        return 8 + length


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file, by name; raise `InputError` if unreadable or not fp32."""
    saved_shapes(path)  # before any of it is read
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(Message("{path}: cannot be read: {error}", path=path, error=error)) from None


def load_weights(model: nn.Module, path: Path) -> None:
    """Load saved weights into a model; raise `InputError` if damaged, from another model, or not finite."""
    check_shapes(path, shapes_of(model))
    saved = load_tensors(path)
    for name, _ in model.named_parameters():
        if not torch.isfinite(saved[name]).all():
            text = Message(
                "{path}: '{name}' contains NaN or infinite values; try another checkpoint", path=path, name=name
            )
            raise InputError(text)
    copy_weights(model, saved)
