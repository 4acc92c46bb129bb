"""Design: choose a preset, change its switches, see what it costs and means, launch it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message

from engine.clean import clean_line
from engine.command_line import options
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.corpus import CorpusPreview
from tui_transformer.lab.design import processes
from tui_transformer.lab.design.draft import Draft, shown
from tui_transformer.lab.design.processes import Benchmarks, LaunchTarget
from tui_transformer.lab.design.study_draft import StudyDraft
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.corpus_preview import anywhere, corpus_key, preview_corpus
from tui_transformer.studio.design.dialogs import CORPUS, TomlPage, which_number, which_setting
from tui_transformer.studio.design.measuring import Measurement
from tui_transformer.studio.design.preset_list import PresetList
from tui_transformer.studio.design.preview import DesignFacts, Preview
from tui_transformer.studio.design.study_builder import StudyBuilder, free_study_name
from tui_transformer.studio.design.switches import Switches
from tui_transformer.studio.keys import PANES
from tui_transformer.studio.messages import How, errors_said, say
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText, may_replace
from tui_transformer.studio.shared.line_list import SearchLine
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.words import Words

FIRST = "demo"  # the preset shown first
BROAD = 150  # columns
FILE = "FILE"  # a corpus requested by path
FILES = {"pairs": "sentence pairs of yours …"}  # for other kinds: a text file
OF_DOCUMENTS = "A text, each line a document, or a folder with documents.txt, train.tsv and validation.tsv (questions)."
OF_PAIRS = "A table, two files with a comma between them, or a folder with train.en, train.de and so on."


def _corpus_kind(draft: Draft) -> str:
    return "text" if draft.nearest_config is None else draft.nearest_config.task.corpus


class DesignPane(Vertical):
    """The first pane: a draft per preset, kept while another is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [*PANES["design"]]

    @dataclass
    class Launch(Message):
        config: RunConfig
        command: str
        how: How

    def __init__(self, *, runs_dir: Path, data_dir: Path | None, device: str) -> None:
        super().__init__(id="design")
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self._at = FIRST  # the current list entry
        self._drafts = {FIRST: Draft.of(FIRST)}  # by entry: leaving and returning keeps changes
        self._studies: dict[str, StudyDraft] = {}  # also by entry
        self._options = options(runs_dir=runs_dir, data_dir=data_dir, device=device)  # as on the command line
        self._benchmarks = Benchmarks(device, data_dir, runs_dir)
        self._corpora: dict[str, CorpusPreview] = {}
        self._measuring = Measurement(self, self._preview)

    def compose(self) -> ComposeResult:
        with Horizontal(id="columns"):
            yield PresetList()
            with Vertical(id="middle"):
                yield Switches(self.draft)
                yield Words(id="hint")
            yield Preview()

    def on_mount(self) -> None:
        self.query_one(PresetList).reload(FIRST)
        self.watch(self.app, "theme", self._redraw, init=False)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BROAD, "broad")

    def focus_first(self) -> None:
        self.query_one(PresetList).to_list()

    def choose(self, preset: str) -> None:
        self.query_one(PresetList).choose(preset)

    # The draft

    @property
    def draft(self) -> Draft:
        return self._drafts[self._at]

    def on_preset_list_shown(self, event: PresetList.Shown) -> None:
        entry = event.entry
        assert entry.preset is not None
        self._at = entry.id
        self._show(self._drafts.get(entry.id) or Draft(entry.preset, path=entry.path))

    def on_option_list_option_selected(self) -> None:  # of the presets
        self.screen.set_focus(self.query_one(Switches))

    def on_switches_changed(self, event: Switches.Changed) -> None:
        self._show(event.draft)

    def on_switches_said(self, event: Switches.Said) -> None:
        hint = self.query_one("#hint", Words)
        hint.show(Text(clean_line(event.text)))
        hint.set_class(event.wrong, "wrong")

    def _show(self, draft: Draft) -> None:
        if self._measuring.of is not None and draft != self._measuring.of:
            self._measuring.stop()
        self._drafts[self._at] = draft
        self.query_one(PresetList).mark(frozenset(at for at, d in self._drafts.items() if d.changes or d.on))
        self.query_one(Switches).show(draft)
        if draft.config is not None and corpus_key(draft.config) not in self._corpora:
            self.run_worker(self._look(draft.config), group="corpus", exclusive=True)
        self._preview()

    def _preview(self) -> None:
        draft = self.draft
        if not self.query("Preview Page"):  # a worker may finish while the pane is being removed
            return
        failed, measuring = self._measuring.failure(draft), self._measuring.seconds(draft)
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

    @work(group="pick", exclusive=True)
    async def on_switches_pick(self, event: Switches.Pick) -> None:
        draft, switch = self.draft, event.switch
        if switch.ladder is not None:
            text = await self.app.push_screen_wait(which_number(draft, switch))
            if text is not None:
                self._show(switch.typed(draft, text))
            return
        # Its values, as changes; a refused one is followed by the changes that would allow it.
        answers: list[Answer[Mapping[str, Any]]] = []
        choices = draft.choices(switch.key)
        if switch.key == CORPUS:  # two kinds, only one selectable
            choices.sort(key=lambda choice: bool(choice[1]))
        for value, reason in choices:
            answers.append(Answer({switch.key: value}, shown(value), reason))
            changes = draft.way(switch.key, value) if reason else None
            if changes is not None:
                others = ", ".join(f"{key} = {shown(one)}" for key, one in changes.items() if key != switch.key)
                answers.append(Answer(changes, f"  ↳ {shown(value)}, with {others}"))
        if switch.key == CORPUS:
            possible = sum(not reason for _, reason in choices)
            answers.insert(possible, Answer({FILE: FILE}, FILES.get(_corpus_kind(draft), "a text file …")))
        at = {switch.key: draft.values.get(switch.key)}
        chosen = await self.app.push_screen_wait(Ask(switch.label.strip(), answers, text=switch.key, at=at))
        if chosen is None:
            return
        if FILE in chosen:
            await self._ask_for_file(draft)
            return
        for name, value in chosen.items():
            draft = draft.with_change(name, value)
        self._show(draft)

    async def _ask_for_file(self, draft: Draft) -> None:
        kind = _corpus_kind(draft)
        if kind == "documents":
            question = AskText("Documents", placeholder="path/to/documents.txt or a folder", text=OF_DOCUMENTS)
        elif kind == "pairs":
            example = "pairs.tsv or text.en,text.de or a folder"
            question = AskText("Sentence pairs", placeholder=example, text=OF_PAIRS)
        else:
            question = AskText("A text file, UTF-8", placeholder="path/to/text.txt")
        path = (await self.app.push_screen_wait(question) or "").strip()
        if not path:
            return
        with errors_said(self):
            changed = draft.with_change(CORPUS, anywhere(path, pairs=kind == "pairs"))
            problem = changed.problem
            if changed.config is not None:
                seen = await asyncio.to_thread(preview_corpus, changed.config, self.data_dir)
                self._corpora[corpus_key(changed.config)] = seen
                problem = seen.problem
            if problem:
                say(self, problem, "error")
            elif self.draft == draft:
                self._show(changed)

    @work
    async def action_any_setting(self) -> None:
        text = await self.app.push_screen_wait(which_setting(self.draft))
        if text:
            self._show(self.draft.with_text(text))

    def action_search(self) -> None:
        self.screen.set_focus(self.query_one(SearchLine))  # now: the next keys are meant for it

    def action_to_presets(self) -> None:
        if self._measuring.of is not None:
            self.action_measure()
        else:
            self.focus_first()

    def action_undo(self) -> None:
        if self.draft.changes or self.draft.on:
            self._show(replace(self.draft.unchanged, on=None))

    @work
    async def action_base(self) -> None:
        draft = self.draft
        name, links = draft.preset.name, presets.chain(draft.preset)
        if len(links) == 1:
            say(self, f"{name} is a base, not a change to one: there is nothing to put on another base")
            return
        answers: list[Answer[tuple[str | None]]] = []  # None is the preset's own
        for base in presets.list_presets():
            if base.extends is None:
                own = base.name == links[0].name
                on = None if own else base.name
                answers.append(Answer((on,), base.name + ("  (its own)" if own else ""), replace(draft, on=on).problem))
        question = Ask(f"Put what {name} changes on which base?", answers, at=(draft.on,))
        chosen = await self.app.push_screen_wait(question)
        if chosen is not None:
            self._show(replace(draft, on=chosen[0]))

    # What to do with it

    def _trainable(self) -> Draft | None:
        """The draft, or a note on why it cannot be trained."""
        if self.draft.problem:
            say(self, self.draft.problem, "error")
            return None
        return self.draft

    def action_launch(self, how: How) -> None:
        draft = self.draft
        seen = self._corpus(draft)
        problem = draft.problem or (seen.problem if seen is not None else "")
        if problem or draft.config is None:
            say(self, problem, "error")
            return
        self.post_message(self.Launch(draft.config, draft.command(self._options), how))

    def action_copy_command(self) -> None:
        command = self.draft.command(self._options)
        self.app.copy_to_clipboard(command)
        say(self, f"in the clipboard, where the terminal allows it: {command}")

    def action_toml(self) -> None:
        draft = self.draft
        if draft.config is None:
            say(self, draft.problem, "error")
            return
        title, palette = f"{draft.name}: the complete config", Palette.of(self.app.theme_variables)
        self.app.push_screen(TomlPage(title, draft.toml(), palette, changed=draft.changes))

    @work
    async def action_save_preset(self) -> None:
        draft = self._trainable()
        if draft is None:
            return
        words = f"It is written to {own_files.presets_folder()} and listed under your own."
        asked = AskText("Save as a preset", text=words, placeholder="name", wrong=own_files.wrong_preset_name)
        name = await self.app.push_screen_wait(asked)
        if name is None:
            return
        file, question = own_files.preset_file(name), f"You have a preset {name} already."
        if not await may_replace(self.app, file, question):
            return
        with errors_said(self):
            path = own_files.save_preset(draft, name)
            self._drafts.pop(str(path), None)
            self.query_one(PresetList).reload(str(path))
            say(self, f"saved {path}")

    # A study of it

    @work(group="study")
    async def action_study(self, take: str = "") -> None:
        """Build a study of the design; or take the variants of one that there is."""
        draft, at = self._trainable(), self._at
        if draft is None:
            return
        study = self._studies.get(at) or StudyDraft.of(draft)
        for offered, name, _ in own_files.offered_studies() if take else ():
            study = study.with_study(offered) if name == take and offered is not None else study
        study = replace(study, design=draft, name=free_study_name(study.name, self.runs_dir))
        seen = self._corpus(draft)
        target = LaunchTarget(self.runs_dir, self.data_dir, self.device)
        known = self._benchmarks.known(draft), seen.characters if seen else None
        builder = StudyBuilder(study, *known, self._options, target)
        self._studies[at], launched = await self.app.push_screen_wait(builder)
        if launched is not None:
            runs = self._studies[at].runs
            say(self, f"{launched.name}: timing a step of every variant; its {runs} runs begin after that")
            with errors_said(self):
                say(self, await processes.start(launched, target))

    def action_measure(self) -> None:
        draft = self.draft
        if self._measuring.of is not None:
            self._measuring.stop()
            self._preview()
        elif not draft.problem:
            self._measuring.begin(draft, self._benchmarks.measure(draft))
