"""The grouped preset list, with a search line and a description of the current one."""

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text
from textual import message
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from engine.base.clean import clean_line
from engine.base.language import Message, tr
from engine.config import presets
from tui_transformer.lab.formatting import elide_middle
from tui_transformer.studio.design.own_files import user_presets
from tui_transformer.studio.shared.line_list import SearchLine
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.search import match_rank
from tui_transformer.studio.shared.words import CachedText

REPORT = "report-"
ROOMY = 29  # least columns for full names


@dataclass(frozen=True)
class PresetEntry:
    group: str  # the heading above it
    name: str
    preset: presets.Preset | None  # None for a file that cannot be read
    description: str  # or what is wrong
    path: Path | None = None  # of the user's own file

    @property
    def id(self) -> str:
        return str(self.path or self.name)


GROUPS = (Message("start from"), Message("one change each"), Message("course reports"), Message("your own"))


def preset_entries() -> list[PresetEntry]:
    found = []
    for preset in presets.list_presets():
        group = GROUPS[2 if preset.name.startswith(REPORT) else 0 if preset.extends is None else 1]
        found.append(PresetEntry(group, preset.name, preset, tr(preset.description)))
    for path, own, problem in user_presets():
        found.append(PresetEntry(GROUPS[3], path.stem, own, own.description if own is not None else problem, path))
    return sorted(found, key=lambda entry: (GROUPS.index(entry.group), entry.name != "baseline", entry.name))


class PresetList(Vertical):
    @dataclass
    class PresetHighlighted(message.Message):
        entry: PresetEntry

    def __init__(self) -> None:
        super().__init__(id="presets")
        self._all: list[PresetEntry] = []
        self._current_id: str = ""
        self._changed: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        yield SearchLine(tr("/ search"), self.focus_list)
        yield OptionList(id="preset-names")
        yield CachedText(id="about")

    @property
    def names(self) -> OptionList:
        return self.query_one("#preset-names", OptionList)

    def reload(self, choose: str) -> None:
        self._all, self._current_id = preset_entries(), choose
        self._fill()

    def choose(self, preset: str) -> None:
        self.query_one(SearchLine).value = ""
        self._current_id = preset
        self._fill()

    def set_changed_entries(self, changed: frozenset[str]) -> None:
        if changed != self._changed:
            self._changed = changed
            self.redraw()

    def focus_list(self) -> None:
        self.screen.set_focus(self.names)

    def _fill(self) -> None:
        words = self.query_one(SearchLine).value
        wanted = words.lower().split()
        found = [e for e in self._all if all(word in f"{e.name} {e.description}".lower() for word in wanted)]
        options: list[Option] = []
        for group in GROUPS:
            inside = [entry for entry in found if entry.group == group]
            if inside:
                options.append(Option(Text(f"  {tr(group)}"), id=f"# {group}", disabled=True))
            options += [Option("", id=entry.id, disabled=entry.preset is None) for entry in inside]
        if not found:
            options.append(Option(Text(tr("  no preset matches"), "italic"), id="# none", disabled=True))
        names = self.names
        names.set_options(options)
        ids = [option.id for option in options]
        usable = [at for at, option in enumerate(options) if not option.disabled]
        near = {entry.id: match_rank(entry.name, words) for entry in found} if words.strip() else {}
        likely = min(usable, key=lambda at: near.get(ids[at] or "", 0), default=None)
        names.highlighted = ids.index(self._current_id) if self._current_id in ids and not near else likely
        self.redraw()

    def redraw(self) -> None:
        palette, names = Palette.from_app(self.app), self.names
        by_id = {entry.id: entry for entry in self._all}
        for at, option in enumerate(names.options):
            entry = by_id.get(option.id or "")
            if entry is None:
                continue
            name = clean_line(entry.name)
            if self.size.width < ROOMY and entry.group == GROUPS[2]:
                name = name.removeprefix(REPORT)
            here, marked = entry.id == self._current_id, entry.preset is None or entry.id in self._changed
            width = names.scrollable_content_region.width - (4 if marked else 2)
            line = Text("▸ " if here else "  ").append(elide_middle(name, width).rstrip() if width > 0 else name)
            if entry.preset is None:
                line.append(" ✗")
            elif entry.id in self._changed:
                line.append(" ●", "" if here else palette.accent)
            names.replace_option_prompt_at_index(at, line)
        entry = by_id.get(self._current_id)
        if entry is None:
            return
        about = Text().append(clean_line(entry.name) + "\n", "bold")
        about.append(clean_line(entry.description) or tr("no description"), palette.dim)
        self.query_one("#about", CachedText).show(about)
        self.call_after_refresh(names.scroll_to_highlight)  # the words may have taken its line

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        now = self.names.highlighted
        if now is None or self.names.get_option_at_index(now).id != event.option_id:
            return  # posted before the list was refilled
        entry = next((entry for entry in self._all if entry.id == event.option_id), None)
        if entry is not None and entry.preset is not None:
            self._current_id = entry.id
            self.redraw()
            self.post_message(self.PresetHighlighted(entry))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._all:
            self._fill()

    def on_resize(self) -> None:
        if self._all:
            self.redraw()
