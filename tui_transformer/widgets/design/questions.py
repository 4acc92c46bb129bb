"""What the Design pane asks: a switch's value, a number, any key, another base. What is impossible says why."""

from typing import Any

from textual.suggester import SuggestFromList

from engine.config import presets
from engine.config.keys import all_keys
from engine.errors import InputError
from tui_transformer.draft import Draft, shown
from tui_transformer.widgets.design.switch_table import Switch
from tui_transformer.widgets.dialog import Answer, Ask, AskText

FILE = "a text file …"


def which_value(draft: Draft, switch: Switch) -> Ask[dict[str, Any]]:
    """A switch's values; a refused one is followed by what would make it possible. Gives back changes."""
    answers: list[Answer[dict[str, Any]]] = []
    for value, reason in draft.choices(switch.key):
        answers.append(Answer({switch.key: value}, shown(value), reason))
        way = draft.way(switch.key, value) if reason else None
        if way is not None:
            others = ", ".join(f"{key} = {shown(other)}" for key, other in way.items() if key != switch.key)
            answers.append(Answer(way, f"  ↳ {shown(value)}, with {others}"))
    if switch.key == "data.corpus":
        answers.append(Answer({FILE: FILE}, FILE))
    at = {switch.key: draft.values.get(switch.key)}
    return Ask(switch.label.strip(), answers, text=switch.key, at=at)


def which_number(draft: Draft, switch: Switch) -> AskText:
    """A switch's number, as text that `switch.typed` takes."""

    def wrong(text: str) -> str:
        try:
            return switch.typed(draft, text).problem if text.strip() else "a number is needed"
        except InputError as error:
            return str(error)

    value = draft.values.get(switch.key)
    written = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return AskText(f"{switch.label.strip()} ({switch.key})", written, wrong=wrong)


def which_setting(draft: Draft) -> AskText:
    """KEY=VALUE, as text that `draft.with_text` takes."""

    def wrong(text: str) -> str:
        try:
            return draft.with_text(text).problem
        except InputError as error:
            return str(error)

    return AskText(
        "Set any key of the config",
        placeholder="KEY=VALUE",
        text="as --set does, e.g. model.rope_base=50000; → completes a key",
        wrong=wrong,
        suggester=SuggestFromList([f"{name}=" for name in all_keys()]),
    )


def which_base(draft: Draft) -> Ask[tuple[str | None]]:
    """What `draft.on_base` takes; None is the preset's own.

    Raises:
        InputError: the preset is a base itself.
    """
    links = presets.chain(draft.preset)
    if len(links) == 1:
        name = draft.preset.name
        raise InputError(f"{name} is a base, not a change to one: there is nothing to put on another base")
    answers: list[Answer[tuple[str | None]]] = []
    for base in presets.list_presets():
        if base.extends is None:
            own = base.name == links[0].name
            on = None if own else base.name
            answers.append(Answer((on,), base.name + ("  (its own)" if own else ""), draft.on_base(on).problem))
    return Ask(f"Put what {draft.preset.name} changes on which base?", answers, at=(draft.on,))
