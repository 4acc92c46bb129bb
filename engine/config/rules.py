"""A rule: settings that exclude each other, when they do, why, and the way out.

The rules of a scheme or a part are in its row (`schemes`, `model`), those of a task in its class (`tasks`), and the
others in the table of `engine.capabilities`, which checks them all.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from engine.base.language import tr


class Refusal(NamedTuple):
    """Why a config cannot be built."""

    keys: tuple[str, ...]  # the settings involved
    reason: str  # one sentence


class Rule:
    """A combination of settings that is ruled out, checked on the config section of its scheme, or on the config."""

    def __init__(
        self,
        keys: tuple[str, ...],  # the settings involved
        broken: Callable[[Any], object],
        reason: str | Callable[[Any], str],  # why, and the way out; the gaps of a text are settings in `keys`
    ) -> None:
        self.keys, self.broken, self.reason = keys, broken, reason

    def __call__(self, settings: Any) -> Iterator[Refusal]:
        """Yield the refusal if the rule is broken."""
        if self.broken(settings):
            yield Refusal(self.keys, self._filled(settings))

    def _filled(self, settings: Any) -> str:
        if callable(self.reason):
            return self.reason(settings)
        values = {}
        for section, name in (key.split(".") for key in self.keys):
            values[name] = getattr(getattr(settings, section, settings), name)
        return tr(self.reason, **values)


def refusals(rules: Iterable[Callable[[Any], Iterator[Refusal]]], settings: Any) -> Iterator[Refusal]:
    """Yield the refusals of the rules that are broken, in their order."""
    for rule in rules:
        yield from rule(settings)
