"""The command palette: the commands that apply now with their keys, and runs, presets, studies and settings by name."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.actions import parse
from textual.command import Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from engine.base.clean import clean_line
from engine.base.language import tr
from engine.runs.reader import list_runs
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.design.preset_list import preset_entries
from tui_transformer.studio.settings_page import setting_choices, setting_description, setting_title
from tui_transformer.studio.shared.keys import PANE_BINDINGS, key_symbols
from tui_transformer.studio.shared.search import match_rank
from tui_transformer.studio.train.pane import TrainPane

if TYPE_CHECKING:
    from tui_transformer.studio.app import Studio


@dataclass(frozen=True)
class PaletteEntry:
    name: str
    description: str
    callback: Callable[[], object]
    key: str = ""
    kind: str = ""  # what it is, if not a command


class PaletteProvider(Provider):
    """Finds everything by name: an exact name first, then beginnings, parts, and descriptions."""

    async def startup(self) -> None:
        self._reading = asyncio.create_task(self._collect_entries())

    async def entries(self) -> list[PaletteEntry]:
        # Each letter cancels the search before it; that must not cancel the reading, which the next one waits for.
        return await asyncio.shield(self._reading)

    async def discover(self) -> Hits:
        offers = await self.entries()
        for at, offer in enumerate(offers):
            yield self._hit(offer, 1 - at / len(offers))

    async def search(self, query: str) -> Hits:
        offers, wanted = await self.entries(), query.lower().split()
        for at, offer in enumerate(offers):
            if all(word in f"{offer.name} {offer.kind} {offer.description}".lower() for word in wanted):
                yield self._hit(offer, 1 - (match_rank(offer.name, query) + at / len(offers)) / 4)

    async def _collect_entries(self) -> list[PaletteEntry]:
        app: Studio = self.app  # type: ignore[assignment]
        return [*command_entries(app), *await asyncio.to_thread(lambda: list(named_entries(app)))]

    def _hit(self, offer: PaletteEntry, score: float) -> Hit:
        name = clean_line(offer.name)
        line = Content.assemble(name, "  ", (offer.key, "$accent bold"), (offer.kind, "$foreground 60%"))
        # Textual reads markup in the help.
        return Hit(score, line, offer.callback, name, escape(clean_line(offer.description)))


def command_entries(app: "Studio") -> Iterator[PaletteEntry]:
    """The commands of the pane shown, then those of the studio; only those that apply."""
    pane = app.query_one(f"#{app.current_pane}")
    for owner, keys in ((pane, PANE_BINDINGS[app.current_pane]), (app, PANE_BINDINGS["everywhere"])):
        for key in keys:
            _, name, parameters = parse(key.action)
            if owner.check_action(name, parameters) and name != "command_palette":
                act = partial(app.call_later, app.run_action, key.action, owner)
                words = tr(key.description)
                title = words[:1].upper() + words[1:]
                yield PaletteEntry(title, tr(key.tooltip), act, key_symbols(key, app.settings.keys))


def named_entries(app: "Studio") -> Iterator[PaletteEntry]:
    """Everything that has a name; reads the disk."""

    def show_run(path: Path) -> None:
        app.query_one(TrainPane).show(path)
        app.action_show_pane("train")

    def show_preset(id: str) -> None:
        app.action_show_pane("design")
        app.query_one(DesignPane).choose(id)

    def show_study(name: str) -> None:
        app.action_show_pane("design")
        app.query_one(DesignPane).action_study(name)

    for reader in reversed(list_runs(app.runs_dir)):
        yield PaletteEntry(reader.name, tr("show this run in Train"), partial(show_run, reader.path), kind=tr("run"))
    for entry in preset_entries():
        if entry.preset is not None:
            yield PaletteEntry(entry.name, entry.description, partial(show_preset, entry.id), kind=tr("preset"))
    for study, name, _ in own_files.available_studies():
        if study is not None:
            yield PaletteEntry(name, tr(study.description), partial(show_study, name), kind=tr("study"))
    for name in setting_choices():
        act = partial(app.action_settings, name)
        yield PaletteEntry(setting_title(name), setting_description(name), act, kind=tr("setting"))
