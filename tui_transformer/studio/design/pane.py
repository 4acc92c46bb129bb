"""Design: choose a preset, change its switches, see what it costs and means, launch it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import Worker

from engine.clean import clean_line
from engine.command_line import options
from engine.config.schema import RunConfig
from engine.errors import InputError
from tui_transformer.lab.design import processes
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.design.processes import Benchmarks, LaunchTarget
from tui_transformer.lab.design.study_draft import StudyDraft
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.corpus_preview import (
    CorpusPreview,
    anywhere,
    corpus_key,
    preview_corpus,
    wrong_corpus,
)
from tui_transformer.studio.design.dialogs import (
    FILE,
    ask_to_overwrite,
    design_page,
    translates,
    which_base,
    which_file,
    which_number,
    which_setting,
    which_value,
)
from tui_transformer.studio.design.preset_list import PresetList
from tui_transformer.studio.design.preview import DesignFacts, Preview
from tui_transformer.studio.design.study_builder import BuilderResult, DesignContext, StudyBuilder, free_study_name
from tui_transformer.studio.design.switches import Switches
from tui_transformer.studio.keys import DESIGN, bindings
from tui_transformer.studio.shared.dialog import AskText
from tui_transformer.studio.shared.palette import Palette

BROAD = 150  # columns
TICK = 1.0  # seconds between updates on a measurement


class DesignPane(Vertical):
    """The first pane: a draft for each preset, kept while another is shown."""

    SCOPED_CSS = False  # `narrow` is a class of the app
    DEFAULT_CSS = """
    DesignPane { height: 1fr; }
    DesignPane #columns { height: 1fr; }
    DesignPane PresetList { width: 26; }
    DesignPane #middle { width: 34; height: 1fr; }
    DesignPane.broad PresetList { width: 32; }
    DesignPane.broad #middle { width: 40; }
    DesignPane #hint { height: auto; max-height: 4; padding: 0 2; background: $panel; color: $foreground 80%; }
    DesignPane #hint.wrong { color: $error; }
    .narrow DesignPane PresetList { width: 19; }
    .narrow DesignPane Preview { padding: 0 0 0 1; }
    .narrow DesignPane #middle { width: 32; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings(DESIGN)

    class Launch(Message):
        """A design is to be trained: `how` is usual, process or queue."""

        def __init__(self, config: RunConfig, command: str, how: str) -> None:
            super().__init__()
            self.config, self.command, self.how = config, command, how

    def __init__(self, *, runs_dir: Path, data_dir: Path | None, device: str) -> None:
        super().__init__(id="design")
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self._drafts: dict[str, Draft] = {}  # by entry of the list: going elsewhere and back keeps what was changed
        self._studies: dict[str, StudyDraft] = {}  # by entry as well
        self._at = ""
        self._hinted = ""
        self._benchmarks = Benchmarks(device, data_dir, runs_dir)
        self._corpora: dict[str, CorpusPreview] = {}
        self._measuring: Draft | None = None
        self._since = 0.0  # when it began
        self._tick: Timer | None = None
        self._failed: tuple[Draft, str] | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="columns"):
            yield PresetList()
            with Vertical(id="middle"):
                yield Switches()
                yield Static("", id="hint")
            yield Preview()

    def on_mount(self) -> None:
        self.query_one(PresetList).reload("demo")
        self.watch(self.app, "theme", self._redraw, init=False)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BROAD, "broad")

    def focus_first(self) -> None:
        self.query_one(PresetList).to_list()

    def choose(self, preset: str) -> None:
        self.query_one(PresetList).choose(preset)

    # The draft

    @property
    def draft(self) -> Draft | None:
        return self._drafts.get(self._at)

    def on_preset_list_shown(self, event: PresetList.Shown) -> None:
        entry = event.entry
        assert entry.preset is not None
        self._at = entry.id
        self._show(self._drafts.get(entry.id) or Draft(entry.preset, path=entry.path))

    def on_preset_list_chosen(self) -> None:
        self.screen.set_focus(self.query_one(Switches))

    def on_switches_changed(self, event: Switches.Changed) -> None:
        self._show(event.draft)

    def on_switches_said(self, event: Switches.Said) -> None:
        hint, words = self.query_one("#hint", Static), clean_line(event.text)
        if words != self._hinted:
            self._hinted = words
            hint.update(Text(words))
        hint.set_class(event.wrong, "wrong")

    def _show(self, draft: Draft) -> None:
        if self._measuring is not None and draft != self._measuring:
            self._stop_measuring()
        self._drafts[self._at] = draft
        self.query_one(PresetList).mark(frozenset(at for at, d in self._drafts.items() if d.changes or d.on))
        self.query_one(Switches).show(draft)
        if draft.config is not None and corpus_key(draft.config) not in self._corpora:
            self.run_worker(self._look(draft.config), group="corpus", exclusive=True)
        self._preview()

    def _preview(self) -> None:
        draft = self.draft
        if draft is None or not self.query(Preview):  # a worker may come back while the pane is being taken down
            return
        failed = self._failed[1] if self._failed and self._failed[0] == draft else ""
        measuring = monotonic() - self._since if self._measuring is not None and self._measuring == draft else None
        benchmark = self._benchmarks.known(draft) if draft.config is not None else None
        self.query_one(Preview).show(draft, DesignFacts(benchmark, measuring, failed, self._corpus(draft)))

    def _redraw(self) -> None:
        self.query_one(PresetList).redraw()
        self.query_one(Switches).redraw()
        self.query_one(Preview).redraw()

    # The corpus

    def _corpus(self, draft: Draft) -> CorpusPreview | None:
        return self._corpora.get(corpus_key(draft.config)) if draft.config is not None else None

    async def _look(self, config: RunConfig) -> None:
        await asyncio.sleep(0.1)
        self._corpora[corpus_key(config)] = await asyncio.to_thread(preview_corpus, config, self.data_dir)
        self._preview()

    # Choosing a value

    def on_switches_pick(self, event: Switches.Pick) -> None:
        draft, switch = self.draft, event.switch
        if draft is None:
            return
        if switch.ladder is None:
            self.app.push_screen(which_value(draft, switch), self._picked)
            return
        take = lambda text: None if text is None else self._show(switch.typed(draft, text))
        self.app.push_screen(which_number(draft, switch), take)

    def _picked(self, changes: dict[str, Any] | None) -> None:
        draft = self.draft
        if changes is None or draft is None:
            return
        if FILE in changes:
            self.app.push_screen(which_file(draft), self._file_named)
            return
        for name, value in changes.items():
            draft = draft.with_change(name, value)
        self._show(draft)

    def _file_named(self, path: str | None) -> None:
        if path and path.strip():
            self.run_worker(self._take_file(path.strip()), group="file", exclusive=True)

    async def _take_file(self, path: str) -> None:
        draft = self.draft
        if draft is None:
            return
        try:
            changed = draft.with_change("data.corpus", anywhere(path, pairs=translates(draft)))
        except InputError as error:
            self._say(str(error), "error")
            return
        config = changed.config
        problem = changed.problem if config is None else await asyncio.to_thread(wrong_corpus, config, self.data_dir)
        if problem:
            self._say(problem, "error")
        elif self.draft == draft:
            self._show(changed)

    def action_any_setting(self) -> None:
        draft = self.draft
        if draft is not None:
            self.app.push_screen(which_setting(draft), lambda text: self._show(draft.with_text(text)) if text else None)

    def action_search(self) -> None:
        self.query_one(PresetList).search()

    def action_to_presets(self) -> None:
        """Back to the list of presets; a running measurement is cancelled first."""
        if self._measuring is not None:
            self.action_measure()
        else:
            self.focus_first()

    def action_undo(self) -> None:
        if self.draft is not None and (self.draft.changes or self.draft.on):
            self._show(replace(self.draft.unchanged, on=None))

    def action_base(self) -> None:
        draft = self.draft
        if draft is None:
            return
        try:
            question = which_base(draft)
        except InputError as error:
            self._say(str(error))
            return
        self.app.push_screen(question, lambda at: None if at is None else self._show(draft.on_base(at[0])))

    # What becomes of it

    def _options(self) -> list[str]:
        """What this studio was started with, as the command line says it."""
        return options(runs_dir=self.runs_dir, data_dir=self.data_dir, device=self.device)

    def _say(self, text: str, severity: Any = "information") -> None:
        self.app.notify(clean_line(text), severity=severity, markup=False)

    def action_launch(self, how: str) -> None:
        draft = self.draft
        if draft is None:
            return
        seen = self._corpus(draft)
        problem = draft.problem or (seen.problem if seen is not None else "")
        if problem or draft.config is None:
            self._say(problem, "error")
            return
        self.post_message(self.Launch(draft.config, draft.command(self._options()), how))

    def action_copy_command(self) -> None:
        if self.draft is not None:
            command = self.draft.command(self._options())
            self.app.copy_to_clipboard(command)
            self._say(f"in the clipboard, where the terminal allows it: {command}")

    def action_toml(self) -> None:
        draft = self.draft
        if draft is None or draft.config is None:
            self._say(draft.problem if draft else "", "error")
            return
        self.app.push_screen(design_page(draft, Palette.of(self.app.theme_variables)))

    def action_save_preset(self) -> None:
        draft = self.draft
        if draft is None or draft.problem:
            self._say(draft.problem if draft else "", "error")
            return
        words = f"It is written to {own_files.presets_folder()} and listed under your own."
        asked = AskText("Save as a preset", text=words, placeholder="name", wrong=own_files.wrong_preset_name)
        self.app.push_screen(asked, lambda name: self._save_as(draft, name))

    def _save_as(self, draft: Draft, name: str | None) -> None:
        if name is None:
            return
        if own_files.preset_file(name).exists():
            question = ask_to_overwrite("preset", name)
            self.app.push_screen(question, lambda yes: self._save(draft, name) if yes else None)
        else:
            self._save(draft, name)

    def _save(self, draft: Draft, name: str) -> None:
        try:
            path = own_files.save_preset(draft, name)
        except InputError as error:
            self._say(str(error), "error")
            return
        self._drafts.pop(str(path), None)
        self.query_one(PresetList).reload(str(path))
        self._say(f"saved {path}")

    # A study of it

    def action_study(self) -> None:
        draft, at = self.draft, self._at
        if draft is None or draft.problem:
            self._say(draft.problem if draft else "", "error")
            return
        study = self._studies.get(at) or StudyDraft.of(draft)
        study = replace(study, design=draft, name=free_study_name(study.name, self.runs_dir))
        seen = self._corpus(draft)
        target = LaunchTarget(self.runs_dir, self.data_dir, self.device)
        characters = seen.characters if seen else None
        context = DesignContext(self._benchmarks.known(draft), characters, self._options(), target)

        def left(result: BuilderResult | None) -> None:
            if result is not None:
                self._studies[at] = result.draft
                if result.launch:
                    self.run_worker(self._start(result.draft, target), group="study")

        self.app.push_screen(StudyBuilder(study, context), left)

    async def _start(self, draft: StudyDraft, target: LaunchTarget) -> None:
        study = draft.study
        if study is None:
            return
        self._say(f"{study.name}: timing a step of every variant; its {draft.runs} runs begin after that")
        try:
            self._say(await processes.start(study, target))
        except InputError as error:
            self._say(str(error), "error")

    def action_measure(self) -> None:
        """Train a few steps in a separate process; pressed again, cancel it."""
        draft = self.draft
        if self._measuring is not None:
            self._stop_measuring()
            self._preview()
        elif draft is not None and not draft.problem:
            self._measuring, self._failed, self._since = draft, None, monotonic()
            self._tick = self.set_interval(TICK, self._preview)
            self.run_worker(self._measure(draft), group="fit", exclusive=True)
            self._preview()

    def _stop_measuring(self) -> None:
        self.workers.cancel_group(self, "fit")
        self._measured()

    def _measured(self) -> None:
        self._measuring = None
        if self._tick is not None:
            self._tick.stop()

    async def _measure(self, draft: Draft) -> None:
        try:
            await self._benchmarks.measure(draft)
        except InputError as error:
            self._failed = (draft, str(error))
        if self._measuring is not None and self._measuring == draft:
            self._measured()
        self._preview()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Nothing above needs to hear of it."""
        event.stop()
