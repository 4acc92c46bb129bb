"""A door: where input of people or files comes in. What is tried at it, and how often."""

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy

from tui_transformer.__main__ import main

DEAR, DEAREST = 100, 20  # inputs in CI at a door where one takes 20 ms, or 50 and more


@dataclass(frozen=True)
class Door:
    """One of the product's inputs.

    Args:
        inputs: what is generated for it.
        knock: tries one input; raises nothing but an `InputError`.
        ci: inputs in CI.
        slow: inputs in the long run.
        seconds: of the processor, that one input may take.
        once: inputs that were faults.
    """

    inputs: SearchStrategy[Any]
    knock: Callable[[Path, Any], object]
    ci: int = 500
    slow: int = 10_000
    seconds: float = 1.0
    once: tuple[Any, ...] = field(default=())


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
