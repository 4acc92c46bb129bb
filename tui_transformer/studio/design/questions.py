"""What the Design pane asks: a switch's value, a number, any key, another base. What is impossible says why."""

import re
from typing import Any

from textual.suggester import SuggestFromList

from engine.config import presets
from engine.config.keys import all_keys, unknown_key
from engine.errors import InputError
from tui_transformer.lab.design.draft import Draft, as_set, shown, values_of
from tui_transformer.studio.design.switch_table import Switch
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText

CORPUS = "data.corpus"
FILE = "FILE"  # a corpus that is asked for by its path
FILES = {False: "a text file …", True: "sentence pairs of yours …"}
NUMBER_BEGUN = re.compile(r"[+-]?[\d_]*\.?\d*(e[+-]?\d*)?", re.IGNORECASE)


def which_value(draft: Draft, switch: Switch) -> Ask[dict[str, Any]]:
    """A switch's values; a refused one is followed by what would make it possible. Gives back changes."""
    answers: list[Answer[dict[str, Any]]] = []
    choices = draft.choices(switch.key)
    if switch.key == CORPUS:  # of two kinds, of which one can be chosen
        choices.sort(key=lambda choice: bool(choice[1]))
    for value, reason in choices:
        answers.append(Answer({switch.key: value}, shown(value), reason))
        way = draft.way(switch.key, value) if reason else None
        if way is not None:
            others = ", ".join(f"{key} = {shown(other)}" for key, other in way.items() if key != switch.key)
            answers.append(Answer(way, f"  ↳ {shown(value)}, with {others}"))
    if switch.key == CORPUS:
        possible = sum(not reason for _, reason in choices)
        answers.insert(possible, Answer({FILE: FILE}, FILES[translates(draft)]))
    at = {switch.key: draft.values.get(switch.key)}
    return Ask(switch.label.strip(), answers, text=switch.key, at=at)


def translates(draft: Draft) -> bool:
    """Whether its corpus is to be sentence pairs."""
    config = draft.config or draft.unchanged.config
    return config is not None and config.translates


def which_file(draft: Draft) -> AskText:
    """The path of a corpus."""
    config = draft.config or draft.unchanged.config
    if config is not None and config.on_documents:
        words = (
            "A text, each line a document, or a folder with documents.txt, train.tsv and validation.tsv (questions)."
        )
        return AskText("Documents", placeholder="path/to/documents.txt or a folder", text=words)
    if not translates(draft):
        return AskText("A text file, UTF-8", placeholder="path/to/text.txt")
    words = "A table, two files with a comma between them, or a folder with train.en, train.de and so on."
    return AskText("Sentence pairs", placeholder="pairs.tsv or text.en,text.de or a folder", text=words)


def which_number(draft: Draft, switch: Switch) -> AskText:
    """A switch's number, as text that `switch.typed` takes."""

    def wrong(text: str) -> str:
        try:
            return switch.typed(draft, text).problem if text.strip() else "a number is needed"
        except InputError as error:
            return str(error)

    value = draft.values.get(switch.key)
    written = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    def hopeless(text: str) -> str:
        return "" if NUMBER_BEGUN.fullmatch(text.strip()) else wrong(text)

    return AskText(f"{switch.label.strip()} ({switch.key})", written, wrong=wrong, hopeless=hopeless)


def which_setting(draft: Draft) -> AskText:
    """KEY=VALUE, as text that `draft.with_text` takes."""

    def wrong(text: str) -> str:
        try:
            return draft.with_text(text).problem
        except InputError as error:
            return str(error)

    def hopeless(text: str) -> str:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            return "" if any(name.startswith(key) for name in all_keys()) else unknown_key(key)
        if key not in all_keys():
            return wrong(text)
        few = values_of(key) if key != CORPUS else ()  # a corpus may be a path as well
        begun = not few or any(as_set(one).startswith(value.strip("\"'")) for one in few)
        return "" if begun else wrong(text)

    return AskText(
        "Set any key of the config",
        placeholder="KEY=VALUE",
        text="as --set does, e.g. model.rope_base=50000; → completes a key",
        wrong=wrong,
        hopeless=hopeless,
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
