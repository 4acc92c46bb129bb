"""The switches: their keys, the steps of their numbers, and their list on the screen.

Up and down choose a switch, left and right change it, digits type into it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import message
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config import presets
from engine.config.lints import CONDITIONAL_SETTINGS
from engine.config.model import PARTS, ModelConfig
from engine.config.schema import RunConfig
from tui_transformer.lab.design.draft import MOST_RANKS, Draft, describe_setting, format_value
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.typing_order import accepts_as_text

LABEL = 14  # columns
SIGNS = "←→ ⏎"  # the keys that change it
STARTS = "0123456789."  # characters that start typing a number
ValueSteps = Callable[[Draft, float], Sequence[float]]  # values below and above one, ascending
TRIES = 16
_ACTS = {key: acts for key, acts, _ in CONDITIONAL_SETTINGS}


def _doubling(_: Draft, value: float) -> Sequence[float]:
    return [*(value // 2**n for n in range(TRIES, 0, -1)), *(value * 2**n for n in range(1, TRIES + 1))]


def _by_one(_: Draft, value: float) -> Sequence[float]:
    return [value + n for n in range(-TRIES, TRIES + 1)]


def _round_numbers(*digits: int) -> ValueSteps:
    """1, 2, 5, 10 … for the digits 1, 2, 5; below 1 too."""

    def ladder(_: Draft, value: float) -> Sequence[float]:
        exponent = math.floor(math.log10(value)) if value > 0 else 0
        near = [float(f"{d}e{e}") for e in range(exponent - 3, exponent + 4) for d in digits]
        return [int(n) if n >= 1 else n for n in near]

    return ladder


def _whole_round_numbers(draft: Draft, value: float) -> Sequence[float]:
    return [0, *(number for number in _round_numbers(1, 2, 5)(draft, value) if number >= 1)]


def _fixed_values(*values: float) -> ValueSteps:
    return lambda draft, value: values


def _divisors(of: str) -> ValueSteps:
    def ladder(draft: Draft, _: float) -> Sequence[float]:
        whole = int(draft.values.get(of) or 1)
        return [n for n in range(1, min(whole, 256) + 1) if whole % n == 0]

    return ladder


@dataclass(frozen=True)
class Switch:
    key: str  # dotted
    label: str
    value_steps: ValueSteps | None = None  # steps of its numbers; None if it is enumerable
    when: Callable[[RunConfig], bool] | None = None  # shown only there; else always
    fallback_key: str = ""  # the key whose value an unset one takes
    note: Callable[[RunConfig], str] | None = None  # a few words on the value

    def is_visible(self, draft: Draft) -> bool:
        """Whether it has an effect, or was changed."""
        if self.when is None or self.key in draft.changes:
            return True
        return draft.config_or_preset_config is not None and self.when(draft.config_or_preset_config)

    def is_changed(self, draft: Draft) -> bool:
        """Whether it was changed."""
        return self.key in draft.changes

    def value_text(self, draft: Draft) -> str:
        value = draft.values.get(self.key)
        if value is None and self.fallback_key:
            return tr("as {label}", label=tr(BY_KEY[self.fallback_key].label))
        return format_value(value)

    def descriptions(self, draft: Draft) -> tuple[str, str]:
        """What it does, and what its value does."""
        value = draft.values.get(self.key)
        said = describe_setting(self.key, value) if value is not None else ""
        return describe_setting(self.key), _labelled(format_value(value), said) if said else ""

    def next_value(self, draft: Draft, way: int) -> Any:
        """The next valid value, up (1) or down (-1); None if there is none."""
        value = draft.values.get(self.key)
        if self.value_steps is None:
            choices = draft.values_with_refusals(self.key)
            values = [choice for choice, _ in choices]
            here = values.index(value) if value in values else -1
            turn = [choices[(here + way * distance) % len(values)] for distance in range(1, len(values) + 1)]
            return next((choice for choice, reason in turn if not reason and choice != value), None)
        if value is None and self.fallback_key:
            value = draft.values.get(self.fallback_key)
        if not isinstance(value, int | float):
            return None
        beyond = dict.fromkeys(n for n in self.value_steps(draft, value)[::way] if (n - value) * way > 0)
        return next((n for n in list(beyond)[:TRIES] if not draft.why_refused(self.key, n)), None)

    def with_value(self, draft: Draft, value: Any) -> Draft:
        return draft.with_change(self.key, value)

    def with_typed_value(self, draft: Draft, text: str) -> Draft:
        """The draft with a typed value; a whole number may be written 2e3."""
        return draft.with_override_text(f"{self.key}={text.strip()}")


class BaseSwitch(Switch):
    """The preset that a one-change preset is applied to."""

    def is_visible(self, draft: Draft) -> bool:
        return draft.base is not None

    def value_text(self, draft: Draft) -> str:
        return draft.base or ""

    def descriptions(self, draft: Draft) -> tuple[str, str]:
        base = draft.base or ""
        return tr("the preset that this change is applied to"), _labelled(base, tr(presets.find(base).description))

    def next_value(self, draft: Draft, way: int) -> Any:
        bases = [on.base for on, problem in draft.drafts_by_base_with_problems() if not problem or on == draft]
        return bases[(bases.index(draft.base) + way) % len(bases)] if len(bases) > 1 else None

    def with_value(self, draft: Draft, value: Any) -> Draft:
        return draft.with_base(value)


class RanksSwitch(Switch):
    """How many devices or processes train it together."""

    def is_changed(self, draft: Draft) -> bool:
        return draft.ranks > 1

    def value_text(self, draft: Draft) -> str:
        return str(draft.ranks)

    def descriptions(self, draft: Draft) -> tuple[str, str]:
        about = tr("how many GPUs, or processes on a CPU, share each step; the result is bit-identical for any number")
        return about, tr("f5 and f6 train it in the background") if draft.ranks > 1 else ""

    def next_value(self, draft: Draft, way: int) -> Any:
        n = draft.ranks * 2 if way > 0 else draft.ranks // 2
        return n if 1 <= n <= MOST_RANKS else None

    def with_value(self, draft: Draft, value: Any) -> Draft:
        return draft.with_ranks(value)

    def with_typed_value(self, draft: Draft, text: str) -> Draft:
        if not text.strip().isdecimal() or not 1 <= int(text) <= MOST_RANKS:
            raise InputError(
                Message("{label}: type a whole number from 1 to {most}", label=self.label, most=MOST_RANKS)
            )
        return draft.with_ranks(int(text))


def _labelled(name: str, text: str) -> str:
    return tr("{name}: {text}", name=name, text=text)


def _d_ff_ratio(config: RunConfig) -> str:
    times = config.model.d_ff / config.model.d_model
    return f"  {times:g} × d_model" if times in (1, 2, 3, 4, 8) else ""


def _used_by_objective(key: str) -> Callable[[RunConfig], bool]:
    """Return the condition for showing a setting that only some objectives use."""
    return lambda config: config.task.uses(key, config)


def _part_switches() -> Iterator[Switch]:
    """Yield a switch for each optional part of the network."""
    for name, row in PARTS.items():
        off = ModelConfig.model_fields[name].default
        ladder = None if isinstance(off, str | bool) else _fixed_values(off, *sorted(row.on_values))
        yield Switch(f"model.{name}", row.display_name, ladder)


BASE, RANKS = "base", "devices"  # the switches that are no settings
CORPUS = "data.corpus"
SWITCHES: dict[str, tuple[Switch, ...]] = {
    Message("start from"): (BaseSwitch(BASE, Message("base")),),
    Message("model"): (
        Switch("model.architecture", Message("architecture")),
        Switch("model.position", Message("position")),
        Switch("model.attention", Message("attention")),
        Switch("model.window", Message("  window"), _doubling, _ACTS["model.window"]),
        Switch("model.link_every", Message("  link every"), _doubling, _ACTS["model.link_every"]),
        Switch("model.norm", Message("norm")),
        Switch("model.norm_placement", Message("placement"), None, lambda c: c.model.norm != "none"),
        Switch("model.residual", Message("residual")),
        Switch("model.activation", Message("activation")),
        Switch(
            "model.n_encoder_layers",
            Message("encoder layers"),
            _by_one,
            _ACTS["model.n_encoder_layers"],
            "model.n_layers",
        ),
        Switch("model.n_layers", Message("layers"), _by_one),
        Switch("model.d_model", "d_model", _doubling),
        Switch("model.n_heads", Message("heads"), _divisors("model.d_model")),
        Switch("model.n_kv_heads", Message("kv heads"), _divisors("model.n_heads"), fallback_key="model.n_heads"),
        Switch("model.d_ff", "d_ff", _doubling, note=_d_ff_ratio),
        Switch("model.context_length", Message("context"), _doubling),
        Switch("model.dropout", "dropout", _fixed_values(0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)),
    ),
    Message("data"): (
        Switch("data.corpus", Message("corpus")),
        Switch("objective.kind", Message("objective")),
        Switch("objective.span_form", Message("span form"), None, _used_by_objective("objective.span_form")),
        Switch("data.tokenizer", Message("tokenizer"), None, lambda c: c.trains_on_rows or c.data.corpus != "playlets"),
        Switch("data.bpe_size", Message("  byte pairs"), _round_numbers(1, 2, 3, 4, 6, 8), _ACTS["data.bpe_size"]),
        Switch("data.words_size", Message("  words"), _round_numbers(1, 2, 3, 4, 6, 8), _ACTS["data.words_size"]),
        Switch("data.shared_vocabulary", Message("shared vocab"), None, _used_by_objective("data.shared_vocabulary")),
        Switch(
            "objective.label_smoothing",
            Message("smoothing"),
            _fixed_values(0.0, 0.05, 0.1, 0.15, 0.2),
            _used_by_objective("objective.label_smoothing"),
        ),
    ),
    Message("training"): (
        Switch("train.steps", Message("steps"), _whole_round_numbers, lambda c: c.train.epochs is None),
        Switch("train.epochs", Message("epochs"), _by_one, lambda c: c.train.epochs is not None),
        Switch("train.batch_size", Message("batch"), _doubling, lambda c: c.train.batch_tokens is None),
        Switch("train.batch_tokens", Message("batch tokens"), _doubling, lambda c: c.train.batch_tokens is not None),
        Switch("optimizer.lr", Message("lr"), _round_numbers(1, 2, 3, 5)),
        Switch("optimizer.schedule", Message("schedule")),
        Switch("optimizer.warmup", Message("warm-up"), _whole_round_numbers),
        Switch("seed", Message("seed"), _by_one),
        Switch("train.precision", Message("precision")),
        RanksSwitch(RANKS, Message("devices"), _fixed_values()),
    ),
    Message("evaluation"): (
        Switch("evaluation.beam", Message("beam"), _by_one, _used_by_objective("evaluation.beam")),
        Switch("evaluation.select", Message("best by"), None, lambda c: len(c.task.scores) > 1),
    ),
    Message("parts"): tuple(_part_switches()),
}
BY_KEY = {switch.key: switch for switches in SWITCHES.values() for switch in switches}


class Switches(OptionList):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "less", show=False),
        Binding("right", "step(1)", "more", show=False),
        Binding("space", "select", "choose", show=False),
    ]

    @dataclass
    class Changed(message.Message):
        draft: Draft

    @dataclass
    class PickRequested(message.Message):
        switch: Switch

    @dataclass
    class HintChanged(message.Message):
        """A sentence on the current switch; `wrong` if it reports a mistake."""

        text: str
        wrong: bool = False
        key: str = ""  # of the setting

    def __init__(self, draft: Draft) -> None:
        super().__init__(id="switches")
        self._draft = draft
        self._typed: str | None = None  # what is being typed into the current switch
        self._shown: list[str] = []  # keys, headings as "# model"
        self._takes_digits = False  # as the top bar was last told

    @property
    def current(self) -> Switch | None:
        option = self.highlighted_option
        return BY_KEY.get(option.id or "") if option is not None else None

    def show(self, draft: Draft) -> None:
        self._draft = draft
        self._typed = None
        ids: list[str] = []
        for group, switches in SWITCHES.items():
            seen = [switch.key for switch in switches if switch.is_visible(draft)]
            ids += [f"# {group}", *seen] if seen else []
        if ids != self._shown:
            at = self.current
            self._shown = ids
            self.set_options(Option("", id=name, disabled=name.startswith("#")) for name in ids)
            self.highlighted = ids.index(at.key) if at is not None and at.key in ids else 1
        self.redraw()
        if self.current is not None:
            self.post_hint()

    def redraw(self) -> None:
        palette = Palette.from_app(self.app)
        for at, name in enumerate(self._shown):
            self.replace_option_prompt_at_index(at, self._line(name, at == self.highlighted, palette))
        if (takes := accepts_as_text(self, "1")) != self._takes_digits:
            self._takes_digits = takes
            self.refresh_bindings()

    def _line(self, name: str, here: bool, palette: Palette) -> Text:
        draft = self._draft
        if name.startswith("#"):
            return Text(f"  {tr(name[2:])}")
        switch, plain = BY_KEY[name], here and self.has_focus
        changed = switch.is_changed(draft)
        broken = draft.refusal is not None and name in draft.refusal.keys
        colour = palette.bad if broken else palette.accent if changed else ""
        mark = "✗ " if broken else "● " if changed else "  "
        line = Text()
        line.append(mark, "" if plain else colour)
        line.append(fit_to_width(tr(switch.label), LABEL), "" if plain else palette.dim)
        width = self.size.width - self.styles.scrollbar_size_vertical  # the bar may appear later, without a resize
        value = clean_line(switch.value_text(draft))
        if "/" in value and line.cell_len + cell_len(value) > width:  # the end of a path says more
            value = "…/" + value.rsplit("/", 1)[1]
        if here and self._typed is not None:
            line.append(f"{clean_line(self._typed)}▏", "underline")
        elif plain:
            arrows = cell_len(value) + line.cell_len + 4 <= width
            line.append(f"‹ {value} ›" if arrows else value, "bold")
        else:
            line.append(value, colour)
            note = switch.note(draft.config) if switch.note and draft.config else ""
            if line.cell_len + cell_len(note) <= width:
                line.append(note, palette.dim)
        if width > 0:
            line.truncate(width, overflow="ellipsis")
        return line

    # Keys

    def action_step(self, way: int) -> None:
        switch, draft = self.current, self._draft
        if switch is None:
            return
        if self._typed is not None:
            self._leave_typing()
            return
        value = switch.next_value(draft, way)
        if value is None:
            said = (
                tr("{label} has no other valid value; press enter to see why", label=tr(switch.label).strip())
                if switch.value_steps is None
                else tr(
                    "{label} is at its limit in this direction; type a number, or press enter",
                    label=tr(switch.label).strip(),
                )
            )
            self.post_message(self.HintChanged(said))
            return
        self.post_message(self.Changed(switch.with_value(draft, value)))

    def action_select(self) -> None:
        switch = self.current
        if self._typed is not None:
            self._accept_typed()
        elif switch is not None:
            self.post_message(self.PickRequested(switch))

    def _accept_typed(self) -> bool:
        switch, typed = self.current, self._typed
        if switch is None or typed is None:
            return True
        try:
            changed = switch.with_typed_value(self._draft, typed)
        except InputError as error:
            self.post_message(self.HintChanged(str(error), wrong=True))
            return False
        self._leave_typing()
        self.post_message(self.Changed(changed))
        return True

    def _leave_typing(self) -> None:
        self._typed = None
        self.redraw()
        self.post_hint()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Digits start a number; the switch also gets the keys that continue and end it."""
        switch = self.current
        if switch is None or switch.value_steps is None:
            return False
        if self._typed is None:
            return character is not None and character in STARTS
        return key in ("escape", "backspace", "up", "down") or (character is not None and character.isprintable())

    async def _on_key(self, event: Key) -> None:
        if not self.check_consume_key(event.key, event.character):
            return
        if event.key in ("up", "down"):
            if self._accept_typed():
                return
        elif event.key == "escape":
            self._leave_typing()
        else:
            typed = self._typed or ""
            self._typed = typed[:-1] if event.key == "backspace" else (typed + (event.character or ""))[:40]
            self.redraw()
            self.post_hint()
        event.stop()
        event.prevent_default()

    def post_hint(self) -> None:
        switch, draft = self.current, self._draft
        if switch is None:
            return
        if self._typed is None:
            said = "\n".join(filter(None, switch.descriptions(draft)))
            self.post_message(self.HintChanged(said, key=switch.key))
            return
        try:
            problem = switch.with_typed_value(draft, self._typed).problem if self._typed else ""
        except InputError as error:
            problem = str(error)
        self.post_message(self.HintChanged(problem or tr("enter: accept · esc: cancel"), wrong=bool(problem)))

    # Other causes of redrawing

    def watch_highlighted(self, highlighted: int | None) -> None:
        super().watch_highlighted(highlighted)
        self._typed = None
        if len(self._shown) == self.option_count:
            self.redraw()
            self.post_hint()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._leave_typing()

    def on_resize(self, event: Resize) -> None:
        self.redraw()
        self.scroll_to_highlight()  # the words below may have taken its line
