"""A door: where input of people or files comes in, and what is tried at it."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from tui_transformer.__main__ import main


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
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(words)
        except SystemExit as leaving:
            code = leaving.code or 0
    said = out.getvalue() + err.getvalue()
    assert code in codes and "Traceback" not in said, (words, code, said[-500:])
    if code == 2:
        assert err.getvalue().strip(), words
    return said
