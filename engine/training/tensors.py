"""Tensor files: safetensors, fp32 only; names, types and shapes are checked before any value is read."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.errors import InputError
from engine.plain_files import open_plain

Shape = tuple[int, ...]
LONGEST_HEADER = 16 << 20  # bytes of names and shapes


def save_tensors(path: Path, values: Mapping[str, Tensor]) -> None:
    """Write tensors; a full or broken disk raises OSError, unlike in safetensors."""
    try:
        save_file(dict(values), path)
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
        where = "it" if name in saved else "the config's model"
        raise InputError(f"{path}: weights of another model: '{name}' is only in {where}")
    for name, shape in expected.items():
        if saved[name] != shape:
            found = list(saved[name])
            raise InputError(f"{path}: weights of another model: '{name}' is {found}, the config's {list(shape)}")


def saved_shapes(path: Path) -> dict[str, Shape]:
    """Return the shape of each saved tensor without reading one; raise `InputError` if unreadable or not fp32."""
    try:
        with safe_open(path, framework="numpy") as file:
            told = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            types = {name: told[name].get_dtype() for name in told}
            shapes = {name: tuple(told[name].get_shape()) for name in told}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    for name, found in types.items():
        if found != "F32":
            raise InputError(f"{path}: cannot be read: '{name}' is {found}; F32 is what is saved")
    return shapes


def tensor_file_bytes(path: Path) -> int:
    """Return the largest length of a safetensors file that its header allows; if that is damaged, the header's own."""
    length = 0
    try:
        with open_plain(path) as file:
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
        raise InputError(f"{path}: cannot be read: {error}") from None


def load_weights(model: nn.Module, path: Path) -> None:
    """Put saved weights into a model; raise `InputError` if damaged, of another model, or not finite."""
    check_shapes(path, shapes_of(model))
    saved = load_tensors(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not torch.isfinite(saved[name]).all():
                raise InputError(f"{path}: '{name}' has values that are not numbers; try another checkpoint")
            parameter.copy_(saved[name])
