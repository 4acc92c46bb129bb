"""Design: choose a preset, change its switches, see what it costs and means, launch it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import message, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.timer import Timer

from engine.base.clean import clean_line
from engine.base.command_line import options
from engine.base.errors import comma_separated
from engine.base.language import Message, tr
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.corpus import CorpusPreview, data_folders, fetch_destination
from engine.data.known import CORPORA, is_missing
from engine.runs.names import free_name
from tui_transformer.lab.design.benchmarks import Benchmarks
from tui_transformer.lab.design.draft import GENERIC, SMALL, Draft, describe_setting, format_value
from tui_transformer.lab.design.forecast import Forecast, Machine, base_trained_last
from tui_transformer.lab.design.history import UndoHistory
from tui_transformer.lab.design.kept import restore_draft, to_kept_draft
from tui_transformer.lab.work import async_commands
from tui_transformer.lab.work.async_commands import LaunchTarget
from tui_transformer.settings import KeptDesign
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.corpus_preview import absolute_corpus_path, corpus_key, preview_corpus
from tui_transformer.studio.design.launch_line import LaunchLine
from tui_transformer.studio.design.measuring import BackgroundWork
from tui_transformer.studio.design.preset_list import PresetList, preset_entries
from tui_transformer.studio.design.preview import DesignFacts, Download, Preview
from tui_transformer.studio.design.switches import BASE, CORPUS, SIGNS, Switches
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextDialog, confirm_overwrite
from tui_transformer.studio.shared.keys import PANE_BINDINGS
from tui_transformer.studio.shared.line_list import SearchLine
from tui_transformer.studio.shared.messages import LaunchChoice, StudyTiming, notify, show_errors
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.panel import panel
from tui_transformer.studio.shared.words import CachedText

if TYPE_CHECKING:  # imported where it is used: the first screen waits for all other imports
    from tui_transformer.lab.design.study_draft import Estimate, StudyDraft

BROAD, TALL = 150, 28  # columns, lines
KEEP = 2.0  # seconds from a change until the design is kept
FILE = "FILE"  # a corpus requested by path
FILES = {
    "pairs": Message("your own sentence pairs …"),
    "labelled": Message("your own labelled texts …"),
}
A_TEXT_FILE = Message("a text file …")  # for other kinds
OF_DOCUMENTS = Message(
    "A text file with one document per line, or a folder with documents.txt and, for questions, "
    "train.tsv and validation.tsv."
)
OF_LABELLED = Message(
    "A CSV file, or a folder with train.csv; the class is in the first column, or in a column named class, label "
    "or category."
)
OF_PAIRS = Message("A TSV table, two file names separated by a comma, or a folder with train.en, train.de and so on.")


def _corpus_kind(draft: Draft) -> str:
    return "text" if draft.config_or_preset_config is None else draft.config_or_preset_config.task.corpus


class DesignPane(Vertical):
    """The first pane: a draft per preset, kept while another is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["design"]]

    @dataclass
    class LaunchRequested(message.Message):
        config: RunConfig
        command: str
        how: LaunchChoice
        name: str
        ranks: int = 1

    @dataclass
    class SaveRequested(message.Message):
        """Save this design, to show it again at the next start."""

        design: KeptDesign

    def __init__(self, *, runs_dir: Path, data_dir: Path | None, device: str, was: KeptDesign | None = None) -> None:
        super().__init__(id="design")
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        was = was or KeptDesign()
        self._saved_drafts = dict(was.drafts)  # by entry, until it is shown
        self._entry_id, first = SMALL, Draft.from_preset(SMALL)  # the current list entry
        for entry in preset_entries() if was.at not in ("", SMALL) else ():
            if entry.id == was.at and entry.preset is not None:
                self._entry_id, first = entry.id, self._with_last_trained_base(Draft(entry.preset, path=entry.path))
        # By entry: leaving and returning keeps changes.
        self._histories = {self._entry_id: self._new_history(self._entry_id, first)}
        self._keeping: Timer | None = None
        self._typed_names: dict[str, str] = {}  # a run's name where it was typed, by entry
        self._machine = Machine(device)
        self._switch = ""  # the key of the current one
        self._studies: dict[str, StudyDraft] = {}  # also by entry
        self._options = options(runs_dir=runs_dir, data_dir=data_dir, device=device)  # as on the command line
        self._benchmarks = Benchmarks(device, data_dir, runs_dir)
        self._plans: dict[str, Estimate] = {}  # of measured studies, by the study as a file
        self._corpora: dict[str, CorpusPreview] = {}
        self._was_shown = asyncio.Event()
        self._measuring = BackgroundWork(self, self._update_preview)
        self._fetching = BackgroundWork(self, self._update_preview, "download")  # of a corpus, by name

    def compose(self) -> ComposeResult:
        with Horizontal(id="columns"):
            yield panel(PresetList(), tr("Presets"))
            with panel(Vertical(id="middle"), tr("Settings")):
                yield Switches(self.draft)
                yield CachedText(id="hint")
            yield panel(Preview(), tr("Network and cost"))
        yield LaunchLine(self.runs_dir)

    def on_mount(self) -> None:
        self.query_one(PresetList).reload(self._entry_id)
        self.watch(self.app, "theme", self._redraw, init=False)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BROAD, "broad")
        self.call_after_refresh(self._update_preview)
        self.query_one(Switches).post_hint()  # there may be room for more words

    def on_show(self) -> None:
        self._was_shown.set()
        self.run_worker(self._read_speed_from_runs(), group="machine", exclusive=True)

    async def _read_speed_from_runs(self) -> None:
        """Learn this machine's speed from its runs, which may be many."""
        self._machine = await asyncio.to_thread(Machine.from_runs, self.runs_dir, self.device)
        self._update_preview()

    def focus_first(self) -> None:
        self.query_one(PresetList).focus_list()

    def choose(self, preset: str) -> None:
        self.query_one(PresetList).choose(preset)

    # The draft

    @property
    def draft(self) -> Draft:
        return self._histories[self._entry_id].current

    def on_preset_list_preset_highlighted(self, event: PresetList.PresetHighlighted) -> None:
        entry = event.entry
        assert entry.preset is not None
        self._entry_id = entry.id
        if entry.id not in self._histories:
            self._histories[entry.id] = self._new_history(
                entry.id, self._with_last_trained_base(Draft(entry.preset, path=entry.path))
            )
        self._record_and_show(self.draft)

    def _new_history(self, entry_id: str, first: Draft) -> UndoHistory[Draft]:
        history, was = UndoHistory(first), self._saved_drafts.pop(entry_id, None)
        if was is not None:
            history.record_change(restore_draft(first, was))
        return history

    @property
    def kept_design(self) -> KeptDesign:
        """What is shown and what is changed, to be shown again at the next start."""
        changed = {at: to_kept_draft(one.current) for at, one in self._histories.items() if one.current != one.original}
        return KeptDesign(at="" if self._entry_id == SMALL else self._entry_id, drafts=self._saved_drafts | changed)

    def _with_last_trained_base(self, draft: Draft) -> Draft:
        """Put a change for any base on the base trained last, which it will be compared with."""
        if draft.preset_base != GENERIC:
            return draft
        on = [draft.with_base(base) for base in dict.fromkeys((base_trained_last(self.runs_dir), SMALL))]
        return next((one for one in on if not one.problem), draft)

    def on_option_list_option_selected(self) -> None:  # of the presets
        self.screen.set_focus(self.query_one(Switches))

    def on_switches_changed(self, event: Switches.Changed) -> None:
        self._record_and_show(event.draft)

    def on_switches_hint_changed(self, event: Switches.HintChanged) -> None:
        hint, lines = self.query_one("#hint", CachedText), [clean_line(line) for line in event.text.split("\n")]
        said = Text("\n".join(lines if self.size.height >= TALL else lines[-1:]))
        if event.key:
            keys = f" {SIGNS}" if self.query_one(Switches).has_focus else ""
            said.append(f"\n{event.key}{keys}" if self.size.height >= TALL else "", "dim")
            if event.key != self._switch:
                self._switch = event.key
                self.query_one(Preview).prioritise_picture(event.key)
        hint.show(said)
        hint.set_class(event.wrong, "wrong")

    def _record_and_show(self, draft: Draft) -> None:
        if self._measuring.subject is not None and draft != self._measuring.subject:
            self._measuring.stop()
        self._histories[self._entry_id].record_change(draft)
        if self._keeping is not None:
            self._keeping.stop()
        self._keeping = self.set_timer(KEEP, lambda: self.post_message(self.SaveRequested(self.kept_design)))
        changed = (at for at, history in self._histories.items() if history.current != history.original)
        self.query_one(PresetList).set_changed_entries(frozenset((*changed, *self._saved_drafts)))
        self.query_one(Switches).show(draft)
        if draft.config is not None and corpus_key(draft.config) not in self._corpora:
            self.run_worker(self._load_corpus_preview(draft.config), group="corpus", exclusive=True)
        self._update_preview()

    def _update_preview(self) -> None:
        draft = self.draft
        if not self.query("Preview Page"):  # a worker may finish while the pane is being removed
            return
        failed, measuring = self._measuring.failure(draft), self._measuring.elapsed(draft)
        benchmark = self._benchmarks.cached(draft) if draft.config is not None else None
        forecast = self._forecast(draft)
        name, corpus = self._run_name, self._corpus_preview(draft)
        facts = DesignFacts(
            benchmark,
            measuring,
            self._measuring.activity,
            failed,
            corpus,
            forecast,
            name,
            self._missing_corpus_download,
        )
        self.query_one(Preview).show(draft, facts)
        line = self.query_one(LaunchLine)
        if not line.naming:
            palette = Palette.from_app(self.app)
            line.show(name, forecast, palette, problem=bool(draft.problem))

    def _redraw(self) -> None:
        self.query_one(PresetList).redraw()
        self.query_one(Switches).redraw()
        self.query_one(Preview).redraw()

    # The corpus

    def _corpus_preview(self, draft: Draft) -> CorpusPreview | None:
        return self._corpora.get(corpus_key(draft.config)) if draft.config is not None else None

    async def _load_corpus_preview(self, config: RunConfig) -> None:
        await self._was_shown.wait()  # it takes a second, during which nothing else would be fast
        await asyncio.sleep(0.1)
        self._corpora[corpus_key(config)] = await asyncio.to_thread(preview_corpus, config, self.data_dir)
        self._update_preview()

    @property
    def _missing_corpus_download(self) -> Download | None:
        """How the draft's corpus can be fetched; None if it is here, or no fixed address has it."""
        seen = self._corpus_preview(self.draft)
        entry = CORPORA.get(seen.corpus.partition("#")[0]) if seen is not None and seen.problem else None
        if entry is None or not entry.remotes or entry.needs_manual_download:
            return None
        if entry.find_files(data_folders(self.data_dir)) is not None:
            return None
        name, files = entry.name, [fetch_destination(self.data_dir) / remote.file for remote in entry.remotes]
        parts = [path for file in files for path in (file, file.with_name(file.name + ".part")) if path.is_file()]
        done = sum(path.stat().st_size for path in parts)
        return Download(
            name, entry.max_download_bytes, self._fetching.elapsed(name), done, self._fetching.failure(name)
        )

    def action_download(self) -> None:
        wanted = self._missing_corpus_download
        if self._fetching.subject is not None:
            self._fetching.stop()
            self._update_preview()
        elif wanted is None:
            notify(self, tr("nothing to download for this design"))
        else:
            self._fetching.begin(wanted.corpus, self._fetch(wanted.corpus))

    async def _fetch(self, corpus: str) -> None:
        await async_commands.fetch_corpus(corpus, self.data_dir)
        self._corpora = {key: seen for key, seen in self._corpora.items() if not seen.problem}
        licence = CORPORA[corpus].licence
        terms = tr("; licence: {licence}", licence=licence) if licence else ""
        notify(self, tr("downloaded {corpus}", corpus=corpus) + terms)
        self._record_and_show(self.draft)

    # What it takes

    def _forecast(self, draft: Draft) -> Forecast | None:
        seen = self._corpus_preview(draft)
        cost = draft.cost(seen.characters if seen else None)
        if draft.config is None or cost is None:
            return None
        benchmark = self._benchmarks.cached(draft)
        return self._machine.forecast(draft.config, cost, seen.train_tokens if seen else None, benchmark)

    # The name of its run

    @property
    def _run_name(self) -> str:
        return self._typed_names.get(self._entry_id) or free_name(self.runs_dir, self.draft.run_name)

    def action_rename(self) -> None:
        self.query_one(LaunchLine).edit_name(self._run_name)

    def on_launch_line_name_entered(self, event: LaunchLine.NameEntered) -> None:
        self._finish_naming(event.name)

    def _finish_naming(self, name: str | None) -> None:
        line = self.query_one(LaunchLine)
        if not line.naming:  # its line has lost the focus as well
            return
        line.stop_naming()
        if line.has_pseudo_class("focus-within"):
            self.focus_first()
        if name is not None:
            self._typed_names.pop(self._entry_id, None)
            if name != self._run_name:
                self._typed_names[self._entry_id] = name
        self._update_preview()

    # Choosing a value

    @work(group="pick", exclusive=True)
    async def on_switches_pick_requested(self, event: Switches.PickRequested) -> None:
        draft, switch = self.draft, event.switch
        if switch.key == BASE:
            self.action_base()
            return
        if switch.value_steps is not None:
            from tui_transformer.studio.design.dialogs import number_dialog

            text = await self.app.push_screen_wait(number_dialog(draft, switch))
            if text is not None:
                self._record_and_show(switch.with_typed_value(draft, text))
            return
        # Its values, as changes; a refused one is followed by the changes that would allow it.
        answers: list[Answer[Mapping[str, Any]]] = []
        choices = draft.values_with_refusals(switch.key)
        if switch.key == CORPUS:  # two kinds, only one selectable
            choices.sort(key=lambda choice: bool(choice[1]))
        folders = data_folders(self.data_dir)
        for value, reason in choices:
            missing = [tr("not here")] if switch.key == CORPUS and is_missing(value, folders) else []
            about = " · ".join(filter(None, [*missing, describe_setting(switch.key, value)]))
            answers.append(Answer({switch.key: value}, format_value(value), reason, about))
            changes = draft.changes_to_allow(switch.key, value) if reason else None
            if changes is not None:
                others = comma_separated(
                    f"{key} = {format_value(one)}" for key, one in changes.items() if key != switch.key
                )
                label = tr("  ↳ {value}, with {changes}", value=format_value(value), changes=others)
                answers.append(Answer(changes, " · ".join([label, *missing])))
        if switch.key == CORPUS:
            possible = sum(not reason for _, reason in choices)
            answers.insert(possible, Answer({FILE: FILE}, tr(FILES.get(_corpus_kind(draft), A_TEXT_FILE))))
        at = {switch.key: draft.values.get(switch.key)}
        about = describe_setting(switch.key)
        name = tr(switch.label).strip()
        question = ChoiceDialog(tr("{name}: {text}", name=name, text=about) if about else name, answers, at=at)
        chosen = await self.app.push_screen_wait(question)
        if chosen is None:
            return
        if FILE in chosen:
            await self._ask_for_file(draft)
            return
        for name, value in chosen.items():
            draft = draft.with_change(name, value)
        self._record_and_show(draft)

    async def _ask_for_file(self, draft: Draft) -> None:
        kind = _corpus_kind(draft)
        if kind == "documents":
            example = tr("path/to/documents.txt or a folder")
            question = TextDialog(tr("Documents"), placeholder=example, text=tr(OF_DOCUMENTS))
        elif kind == "pairs":
            example = tr("pairs.tsv or text.en,text.de or a folder")
            question = TextDialog(tr("Sentence pairs"), placeholder=example, text=tr(OF_PAIRS))
        elif kind == "labelled":
            example = tr("path/to/texts.csv or a folder")
            question = TextDialog(tr("Labelled texts"), placeholder=example, text=tr(OF_LABELLED))
        else:
            question = TextDialog(tr("A UTF-8 text file"), placeholder=tr("path/to/text.txt"))
        path = (await self.app.push_screen_wait(question) or "").strip()
        if not path:
            return
        with show_errors(self):
            changed = draft.with_change(CORPUS, absolute_corpus_path(path, pairs=kind == "pairs"))
            problem = changed.problem
            if changed.config is not None:
                seen = await asyncio.to_thread(preview_corpus, changed.config, self.data_dir)
                self._corpora[corpus_key(changed.config)] = seen
                problem = seen.problem
            if problem:
                notify(self, problem, "error")
            elif self.draft == draft:
                self._record_and_show(changed)

    @work
    async def action_any_setting(self) -> None:
        from tui_transformer.studio.design.dialogs import setting_dialog

        text = await self.app.push_screen_wait(setting_dialog(self.draft))
        if text:
            self._record_and_show(self.draft.with_override_text(text))
            self.query_one(Preview).prioritise_picture(text.partition("=")[0])

    def action_search(self) -> None:
        self.screen.set_focus(self.query_one(SearchLine))  # now: the next keys are meant for it

    def action_to_presets(self) -> None:
        if self._measuring.subject is not None:
            self.action_measure()
        else:
            self.focus_first()

    def action_undo(self) -> None:
        if self._histories[self._entry_id].undo():
            self._record_and_show(self.draft)
        else:
            notify(self, tr("nothing to undo"))

    def action_redo(self) -> None:
        if self._histories[self._entry_id].redo():
            self._record_and_show(self.draft)
        else:
            notify(self, tr("nothing to redo"))

    def action_reset(self) -> None:
        self._record_and_show(self._histories[self._entry_id].original)

    @work
    async def action_base(self) -> None:
        draft = self.draft
        if draft.preset_base is None:
            why = tr("{name} is a base preset; only one-change presets can be applied to another base", name=draft.name)
            notify(self, why)
            return
        answers: list[Answer[Draft]] = []
        for on, problem in draft.drafts_by_base_with_problems():
            cost = self._forecast(on) if not problem else None
            words = [tr("its own base") if on.on is None else "", cost.time_text if cost is not None else ""]
            words.append(tr(presets.find(on.base or "").description))
            answers.append(Answer(on, on.base or "", problem, " · ".join(filter(None, words))))
        question = tr('Apply "{name}" to which base?', name=draft.preset.name)
        chosen = await self.app.push_screen_wait(ChoiceDialog(question, answers, at=draft))
        if chosen is not None:
            self._record_and_show(chosen)

    # What to do with it

    def _trainable_draft(self) -> Draft | None:
        """The draft, or a note on why it cannot be trained."""
        if self.draft.problem:
            notify(self, self.draft.problem, "error")
            return None
        return self.draft

    def action_launch(self, how: LaunchChoice) -> None:
        draft, line = self.draft, self.query_one(LaunchLine)
        if line.naming:
            if line.name_problem(line.typed_name):
                return
            self._finish_naming(line.typed_name)
        seen = self._corpus_preview(draft)
        problem = draft.problem or (seen.problem if seen is not None else "")
        if not draft.problem and (missing := self._missing_corpus_download) is not None:
            problem = tr("{corpus} is not on this machine; ctrl+d downloads it", corpus=missing.corpus)
        if problem or draft.config is None:
            notify(self, problem, "error")
            return
        forecast = self._forecast(draft)
        if how == "usual" and forecast is not None and forecast.is_long:
            self._confirm_long_run(draft, forecast)
        else:
            self._request_launch(draft, how)

    @work(group="launch", exclusive=True)
    async def _confirm_long_run(self, draft: Draft, forecast: Forecast) -> None:
        """Before a long run: at this size, the same change on a small base, in the background, or not at all."""
        answers: list[Answer[tuple[Draft, LaunchChoice] | None]] = []
        answers.append(Answer((draft, "usual"), tr("Train it at this size ({time})", time=forecast.time_text)))
        small = draft.on_small_base()
        less = self._forecast(small) if small is not None else None
        if small is not None and small.differences_from_parent() and less is not None and not less.is_long:
            words = tr("Apply the same change to {base} instead ({time})", base=SMALL, time=less.time_text)
            answers.append(Answer((small, "usual"), words))
        words = tr("Train it in the background; it keeps running after the studio closes")
        answers += [Answer((draft, "process"), words), Answer(None, tr("Cancel"))]
        name, time, device = self._run_name, forecast.time_text[2:], forecast.device
        title = tr("{run_name} takes about {time} on {device}", run_name=name, time=time, device=device)
        ask: ChoiceDialog[tuple[Draft, LaunchChoice] | None] = ChoiceDialog(
            title, answers, text=tr("The time is {source}.", source=forecast.source)
        )
        chosen = await self.app.push_screen_wait(ask)
        if chosen is not None:
            if chosen[0] != draft:
                self._record_and_show(chosen[0])
            self._request_launch(*chosen)

    def _request_launch(self, draft: Draft, how: LaunchChoice) -> None:
        assert draft.config is not None
        typed, name = self._typed_names.pop(self._entry_id, None), self._run_name
        words = draft.command([*(("--name", typed) if typed else ()), *self._options])
        self.post_message(self.LaunchRequested(draft.config, words, how, typed or name, draft.ranks))

    def action_copy_command(self) -> None:
        command = self.draft.command(self._options)
        self.app.copy_to_clipboard(command)
        notify(self, tr("copied to the clipboard (if your terminal allows it): {command}", command=command))

    def action_toml(self) -> None:
        draft = self.draft
        if draft.config is None:
            notify(self, draft.problem, "error")
            return
        title, palette = tr("{name}: the complete config", name=draft.name), Palette.from_app(self.app)
        from tui_transformer.studio.design.dialogs import TomlPage

        self.app.push_screen(TomlPage(title, draft.toml(), palette, changed=draft.changes))

    @work
    async def action_save_preset(self) -> None:
        draft = self._trainable_draft()
        if draft is None:
            return
        folder, wrong = own_files.presets_folder(), own_files.preset_name_problem
        words = tr('The preset will be saved to {presets_folder} and listed under "your own".', presets_folder=folder)
        asked = TextDialog(tr("Save as a preset"), text=words, placeholder=tr("name"), wrong=wrong)
        name = await self.app.push_screen_wait(asked)
        if name is None:
            return
        file, question = own_files.preset_file(name), tr("A preset named {name} already exists.", name=name)
        if not await confirm_overwrite(self.app, file, question):
            return
        with show_errors(self):
            path = own_files.save_preset(draft, name)
            self._histories.pop(str(path), None)
            self._saved_drafts.pop(str(path), None)
            self.query_one(PresetList).reload(str(path))
            notify(self, tr("saved {path}", path=path))

    # A study of it

    @work(group="study")
    async def action_study(self, take: str = "") -> None:
        """Build a study of the design; or take the variants of one that there is."""
        draft, at = self._trainable_draft(), self._entry_id
        if draft is None:
            return
        from tui_transformer.lab.design.study_draft import StudyDraft
        from tui_transformer.studio.design.study_builder import StudyBuilder, free_study_name

        study = self._studies.get(at) or StudyDraft.from_design(draft)
        study = study.with_design(draft)
        for offered, name, _ in own_files.available_studies() if take else ():
            study = study.with_study(offered) if name == take and offered is not None else study
        study = replace(study, name=free_study_name(study.name, self.runs_dir))
        seen = self._corpus_preview(draft)
        target = LaunchTarget(self.runs_dir, self.data_dir, self.device)
        known = self._benchmarks.cached(draft)
        builder = StudyBuilder(study, known, seen, self._machine, self._options, target, self._plans)
        self._studies[at], launched = await self.app.push_screen_wait(builder)
        if launched is not None:
            runs, plan = self._studies[at].runs, self._plans.get(launched.to_toml())
            words = tr("{name}: its {runs} runs are starting", name=launched.name, runs=runs)
            if plan is None:
                words = tr(
                    "{name}: its {runs} runs start once one step of each variant has been timed",
                    name=launched.name,
                    runs=runs,
                )
            notify(self, words)
            # Where its runs will appear; now, since nobody expects the pane to change when the start is done.
            await self.run_action("app.show_pane('train')")
            timing = StudyTiming(launched.name, runs)
            if plan is None:
                self.post_message(timing)
            with show_errors(self):
                over = replace(timing, state="failed")
                try:
                    said = await async_commands.start_study(launched, target, plan)
                    over = replace(timing, state="done")
                finally:
                    self.post_message(over)
                notify(self, said)

    def action_measure(self) -> None:
        draft = self.draft
        if self._measuring.subject is not None:
            self._measuring.stop()
            self._update_preview()
        elif not draft.problem:
            self._measuring.begin(draft, self._benchmarks.measure(draft, self._measuring.set_activity))
