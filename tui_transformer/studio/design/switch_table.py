"""The switches of the Design pane, as a table: which keys, in what order, and by what steps their numbers go."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.config.schema import RunConfig
from engine.lints import ACTS
from tui_transformer.lab.design.draft import Draft, shown

Ladder = Callable[[Draft, float, int], Iterator[float]]  # values from one on, up (1) or down (-1)
TRIES = 16
_ACTS = {key: acts for key, acts, _ in ACTS}


def _doubling(_: Draft, value: float, way: int) -> Iterator[float]:
    while value >= 1:
        value = value * 2 if way > 0 else value // 2
        yield value


def _by_one(_: Draft, value: float, way: int) -> Iterator[float]:
    while True:
        value += way
        yield value


def _round_numbers(*digits: int) -> Ladder:
    """1, 2, 5, 10 … for the digits 1, 2, 5; below 1 too; under the lowest whole one is 0."""

    def ladder(_: Draft, value: float, way: int) -> Iterator[float]:
        exponent = math.floor(math.log10(value)) if value > 0 else 0
        near = [float(f"{d}e{e}") for e in range(exponent - 3, exponent + 4) for d in digits]
        whole = [int(n) if n >= 1 else n for n in near]
        beyond = [n for n in whole if n > value] if way > 0 else [n for n in reversed(whole) if n < value]
        yield from beyond

    return ladder


def _whole_round_numbers(draft: Draft, value: float, way: int) -> Iterator[float]:
    for number in _round_numbers(1, 2, 5)(draft, value, way):
        if number >= 1:
            yield number
    if way < 0 and value > 0:
        yield 0


def _of(*values: float) -> Ladder:
    def ladder(_: Draft, value: float, way: int) -> Iterator[float]:
        yield from (v for v in values[::way] if (v - value) * way > 0)

    return ladder


def _divisors(of: str) -> Ladder:
    """Divisors of another key's value."""

    def ladder(draft: Draft, value: float, way: int) -> Iterator[float]:
        whole = int(draft.values.get(of) or 1)
        divisors = [n for n in range(1, min(whole, 256) + 1) if whole % n == 0]
        yield from (n for n in divisors[::way] if (n - value) * way > 0)

    return ladder


@dataclass(frozen=True)
class Switch:
    """One line of the pane.

    Args:
        key: dotted.
        label: its name, short.
        ladder: by which its numbers go; None where it has few values.
        when: shown only there; else always.
        stands_for: the key whose value an unset one takes.
        note: a few words on the value.
    """

    key: str
    label: str
    ladder: Ladder | None = None
    when: Callable[[RunConfig], bool] | None = None
    stands_for: str = ""
    note: Callable[[RunConfig], str] | None = None

    def visible(self, draft: Draft) -> bool:
        """Whether it acts, or was changed and should say so."""
        if self.when is None or self.key in draft.changes:
            return True
        config = draft.config or draft.unchanged.config
        return config is not None and self.when(config)

    def value(self, draft: Draft) -> str:
        """As it is shown."""
        value = draft.values.get(self.key)
        if value is None and self.stands_for:
            return f"as {self.stands_for.split('.')[-1].removeprefix('n_')}"
        return shown(value)

    def step(self, draft: Draft, way: int) -> Any:
        """The next value that can be chosen, up (1) or down (-1); None if there is none."""
        value = draft.values.get(self.key)
        if self.ladder is None:
            return _next_choice(draft, self.key, way)
        if value is None and self.stands_for:
            value = draft.values.get(self.stands_for)
        if not isinstance(value, int | float):
            return None
        for candidate in islice(self.ladder(draft, value, way), TRIES):
            if not draft.objection(self.key, candidate):
                return candidate
        return None

    def typed(self, draft: Draft, text: str) -> Draft:
        """The draft with a value that was typed; a whole number may be written 2e3.

        Raises:
            InputError: it is no value of this key.
        """
        return draft.with_text(f"{self.key}={_whole(text.strip()) if self.whole(draft) else text.strip()}")

    def whole(self, draft: Draft) -> bool:
        """Whether its numbers are whole."""
        value = draft.values.get(self.key)
        return isinstance(value, int) or (value is None and bool(self.stands_for))


def _next_choice(draft: Draft, key: str, way: int) -> Any:
    choices = draft.choices(key)
    values = [value for value, _ in choices]
    here = values.index(draft.values[key]) if draft.values.get(key) in values else -1
    for distance in range(1, len(values) + 1):
        value, reason = choices[(here + way * distance) % len(values)]
        if not reason and value != draft.values.get(key):
            return value
    return None


def _whole(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else text


def _ratio(config: RunConfig) -> str:
    times = config.model.d_ff / config.model.d_model
    return f"  {times:g} × d_model" if times in (1, 2, 3, 4, 8) else ""


def _translates(config: RunConfig) -> bool:
    return config.translates


SWITCHES: dict[str, tuple[Switch, ...]] = {
    "model": (
        Switch("model.architecture", "architecture"),
        Switch("model.position", "position"),
        Switch("model.attention", "attention"),
        Switch("model.window", "  window", _doubling, _ACTS["model.window"]),
        Switch("model.link_every", "  link every", _doubling, _ACTS["model.link_every"]),
        Switch("model.norm", "norm"),
        Switch("model.norm_placement", "placement", None, lambda c: c.model.norm != "none"),
        Switch("model.residual", "residual"),
        Switch("model.activation", "activation"),
        Switch("model.n_encoder_layers", "encoder", _by_one, _ACTS["model.n_encoder_layers"], "model.n_layers"),
        Switch("model.n_layers", "layers", _by_one),
        Switch("model.d_model", "d_model", _doubling),
        Switch("model.n_heads", "heads", _divisors("model.d_model")),
        Switch("model.n_kv_heads", "kv heads", _divisors("model.n_heads"), stands_for="model.n_heads"),
        Switch("model.d_ff", "d_ff", _doubling, note=_ratio),
        Switch("model.context_length", "context", _doubling),
        Switch("model.dropout", "dropout", _of(0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)),
    ),
    "data": (
        Switch("data.corpus", "corpus"),
        Switch("objective.kind", "objective"),
        Switch("objective.span_form", "span form", None, lambda c: c.objective.kind == "span-corruption"),
        Switch("data.tokenizer", "tokenizer", None, lambda c: c.on_rows),
        Switch("data.bpe_size", "  byte pairs", _round_numbers(1, 2, 3, 4, 6, 8), _ACTS["data.bpe_size"]),
        Switch("data.shared_vocabulary", "shared vocab", None, _translates),
        Switch("objective.label_smoothing", "smoothing", _of(0.0, 0.05, 0.1, 0.15, 0.2), _translates),
    ),
    "training": (
        Switch("train.steps", "steps", _whole_round_numbers, lambda c: c.train.epochs is None),
        Switch("train.epochs", "epochs", _by_one, lambda c: c.train.epochs is not None),
        Switch("train.batch_size", "batch", _doubling, lambda c: c.train.batch_tokens is None),
        Switch("train.batch_tokens", "batch tokens", _doubling, lambda c: c.train.batch_tokens is not None),
        Switch("optimizer.lr", "lr", _round_numbers(1, 2, 3, 5)),
        Switch("optimizer.schedule", "schedule"),
        Switch("optimizer.warmup", "warm-up", _whole_round_numbers),
        Switch("seed", "seed", _by_one),
        Switch("train.precision", "precision"),
    ),
    "evaluation": (
        Switch("evaluation.beam", "beam", _by_one, _translates),
        Switch("evaluation.select", "best by", None, lambda c: c.translates or c.answers),
    ),
}
BY_KEY = {switch.key: switch for switches in SWITCHES.values() for switch in switches}
