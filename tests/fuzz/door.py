"""A door: where input of people or files comes in, and what is tried at it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from tests.command import command as run


@dataclass(frozen=True)
class Door:
    """One of the product's inputs.

    Args:
        inputs: what is generated for it.
        knock: tries one input; raises nothing but an `InputError`.
        once: inputs that were faults.
    """

    inputs: SearchStrategy[Any]
    knock: Callable[[Path, Any], object]
    once: tuple[Any, ...] = ()


def command(*words: str, codes: tuple[int, ...] = (0, 1, 2)) -> str:
    """Run one command line here; gives back what it said on both streams.

    Raises:
        AssertionError: another exit code, or a traceback.
    """
    found = run(*words)
    said = found.out + found.err
    assert found.code in codes and "Traceback" not in said, (words, found.code, said[-500:])
    if found.code == 2:
        assert found.err.strip(), words
    return said
