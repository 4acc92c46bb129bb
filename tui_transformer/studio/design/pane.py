"""Design: choose a preset, change its switches, see what it costs and means, launch it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer

from engine.base.clean import clean_line
from engine.base.command_line import options
from engine.base.errors import listed
from engine.base.language import tr
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.corpus import CorpusPreview, data_folders, fetch_folder
from engine.data.known import CORPORA, is_missing
from engine.runs.names import free_name
from tui_transformer.lab.design import processes
from tui_transformer.lab.design.draft import GENERIC, SMALL, Draft, sentence, shown
from tui_transformer.lab.design.forecast import Forecast, Machine, base_trained_last
from tui_transformer.lab.design.history import History
from tui_transformer.lab.design.kept import kept, restored
from tui_transformer.lab.design.processes import Benchmarks, LaunchTarget
from tui_transformer.settings import KeptDesign
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.corpus_preview import anywhere, corpus_key, preview_corpus
from tui_transformer.studio.design.launch_line import LaunchLine
from tui_transformer.studio.design.measuring import Measurement
from tui_transformer.studio.design.preset_list import PresetList, entries
from tui_transformer.studio.design.preview import DesignFacts, Download, Preview
from tui_transformer.studio.design.switches import BASE, CORPUS, SIGNS, Switches
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText, may_replace
from tui_transformer.studio.shared.keys import PANES
from tui_transformer.studio.shared.line_list import SearchLine
from tui_transformer.studio.shared.messages import How, Timing, errors_said, say
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.panel import panel
from tui_transformer.studio.shared.words import Words

if TYPE_CHECKING:  # imported where it is used: the first screen waits for all other imports
    from tui_transformer.lab.design.study_draft import Estimate, StudyDraft

BROAD, TALL = 150, 28  # columns, lines
KEEP = 2.0  # seconds from a change until the design is kept
FILE = "FILE"  # a corpus requested by path
FILES = {
    "pairs": tr("your own sentence pairs …"),
    "labelled": tr("your own labelled texts …"),
}  # for other kinds: a text file
OF_DOCUMENTS = tr(
    "A text file with one document per line, or a folder with documents.txt and, for questions, "
    "train.tsv and validation.tsv."
)
OF_LABELLED = tr(
    "A CSV file, or a folder with train.csv; the class is in the first column, or in a column named class, label "
    "or category."
)
OF_PAIRS = tr("A TSV table, two file names separated by a comma, or a folder with train.en, train.de and so on.")


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
        name: str
        ranks: int = 1

    @dataclass
    class Keep(Message):
        """To be shown again at the next start."""

        design: KeptDesign

    def __init__(self, *, runs_dir: Path, data_dir: Path | None, device: str, was: KeptDesign | None = None) -> None:
        super().__init__(id="design")
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        was = was or KeptDesign()
        self._was = dict(was.drafts)  # by entry, until it is shown
        self._at, first = SMALL, Draft.of(SMALL)  # the current list entry
        for entry in entries() if was.at not in ("", SMALL) else ():
            if entry.id == was.at and entry.preset is not None:
                self._at, first = entry.id, self._landed(Draft(entry.preset, path=entry.path))
        self._histories = {self._at: self._history(self._at, first)}  # by entry: leaving and returning keeps changes
        self._keeping: Timer | None = None
        self._named: dict[str, str] = {}  # a run's name where it was typed, by entry
        self._machine = Machine(device)
        self._switch = ""  # the key of the current one
        self._studies: dict[str, StudyDraft] = {}  # also by entry
        self._options = options(runs_dir=runs_dir, data_dir=data_dir, device=device)  # as on the command line
        self._benchmarks = Benchmarks(device, data_dir, runs_dir)
        self._plans: dict[str, Estimate] = {}  # of measured studies, by the study as a file
        self._corpora: dict[str, CorpusPreview] = {}
        self._measuring = Measurement(self, self._preview)
        self._fetching = Measurement(self, self._preview, "download")  # of a corpus, by name

    def compose(self) -> ComposeResult:
        with Horizontal(id="columns"):
            yield panel(PresetList(), tr("Presets"))
            with panel(Vertical(id="middle"), tr("Settings")):
                yield Switches(self.draft)
                yield Words(id="hint")
            yield panel(Preview(), tr("Network and cost"))
        yield LaunchLine(self.runs_dir)

    def on_mount(self) -> None:
        self.query_one(PresetList).reload(self._at)
        self.watch(self.app, "theme", self._redraw, init=False)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BROAD, "broad")
        self.call_after_refresh(self._preview)
        self.query_one(Switches).say()  # there may be room for more words

    def on_show(self) -> None:
        self.run_worker(self._look_at_runs(), group="machine", exclusive=True)

    async def _look_at_runs(self) -> None:
        """Learn this machine's speed from its runs, which may be many."""
        self._machine = await asyncio.to_thread(Machine.of, self.runs_dir, self.device)
        self._preview()

    def focus_first(self) -> None:
        self.query_one(PresetList).to_list()

    def choose(self, preset: str) -> None:
        self.query_one(PresetList).choose(preset)

    # The draft

    @property
    def draft(self) -> Draft:
        return self._histories[self._at].now

    def on_preset_list_shown(self, event: PresetList.Shown) -> None:
        entry = event.entry
        assert entry.preset is not None
        self._at = entry.id
        if entry.id not in self._histories:
            self._histories[entry.id] = self._history(entry.id, self._landed(Draft(entry.preset, path=entry.path)))
        self._show(self.draft)

    def _history(self, at: str, first: Draft) -> History[Draft]:
        history, was = History(first), self._was.pop(at, None)
        if was is not None:
            history.put(restored(first, was))
        return history

    @property
    def kept(self) -> KeptDesign:
        """What is shown and what is changed, to be shown again at the next start."""
        changed = {at: kept(history.now) for at, history in self._histories.items() if history.now != history.first}
        return KeptDesign(at="" if self._at == SMALL else self._at, drafts=self._was | changed)

    def _landed(self, draft: Draft) -> Draft:
        """A change to any base, on the base trained last: what one compares it to."""
        if draft.own_base != GENERIC:
            return draft
        on = [draft.with_base(base) for base in dict.fromkeys((base_trained_last(self.runs_dir), SMALL))]
        return next((one for one in on if not one.problem), draft)

    def on_option_list_option_selected(self) -> None:  # of the presets
        self.screen.set_focus(self.query_one(Switches))

    def on_switches_changed(self, event: Switches.Changed) -> None:
        self._show(event.draft)

    def on_switches_said(self, event: Switches.Said) -> None:
        hint, lines = self.query_one("#hint", Words), [clean_line(line) for line in event.text.split("\n")]
        said = Text("\n".join(lines if self.size.height >= TALL else lines[-1:]))
        if event.key:
            keys = f" {SIGNS}" if self.query_one(Switches).has_focus else ""
            said.append(f"\n{event.key}{keys}" if self.size.height >= TALL else "", "dim")
            if event.key != self._switch:
                self._switch = event.key
                self.query_one(Preview).look_at(event.key)
        hint.show(said)
        hint.set_class(event.wrong, "wrong")

    def _show(self, draft: Draft) -> None:
        if self._measuring.of is not None and draft != self._measuring.of:
            self._measuring.stop()
        self._histories[self._at].put(draft)
        if self._keeping is not None:
            self._keeping.stop()
        self._keeping = self.set_timer(KEEP, lambda: self.post_message(self.Keep(self.kept)))
        changed = (at for at, history in self._histories.items() if history.now != history.first)
        self.query_one(PresetList).mark(frozenset((*changed, *self._was)))
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
        forecast = self._forecast(draft)
        name, corpus = self._run_name, self._corpus(draft)
        facts = DesignFacts(benchmark, measuring, self._measuring.doing, failed, corpus, forecast, name, self._download)
        self.query_one(Preview).show(draft, facts)
        line = self.query_one(LaunchLine)
        if not line.naming:
            palette = Palette.of(self.app.theme_variables)
            line.show(name, forecast, palette, problem=bool(draft.problem))

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

    @property
    def _download(self) -> Download | None:
        """How the draft's corpus can be fetched; None if it is here, or no fixed address has it."""
        seen = self._corpus(self.draft)
        entry = CORPORA.get(seen.corpus.partition("#")[0]) if seen is not None and seen.problem else None
        if entry is None or not entry.remotes or entry.by_hand or entry.found(data_folders(self.data_dir)) is not None:
            return None
        name, files = entry.name, [fetch_folder(self.data_dir) / remote.file for remote in entry.remotes]
        parts = [path for file in files for path in (file, file.with_name(file.name + ".part")) if path.is_file()]
        done = sum(path.stat().st_size for path in parts)
        return Download(name, entry.most_bytes, self._fetching.seconds(name), done, self._fetching.failure(name))

    def action_download(self) -> None:
        wanted = self._download
        if self._fetching.of is not None:
            self._fetching.stop()
            self._preview()
        elif wanted is None:
            say(self, tr("nothing to download for this design"))
        else:
            self._fetching.begin(wanted.corpus, self._fetch(wanted.corpus))

    async def _fetch(self, corpus: str) -> None:
        await processes.fetch(corpus, self.data_dir)
        self._corpora = {key: seen for key, seen in self._corpora.items() if not seen.problem}
        licence = CORPORA[corpus].licence
        say(
            self,
            tr("downloaded {corpus}", corpus=corpus) + (tr("; licence: {licence}", licence=licence) if licence else ""),
        )
        self._show(self.draft)

    # What it takes

    def _forecast(self, draft: Draft) -> Forecast | None:
        seen = self._corpus(draft)
        cost = draft.cost(seen.characters if seen else None)
        if draft.config is None or cost is None:
            return None
        benchmark = self._benchmarks.known(draft)
        return self._machine.forecast(draft.config, cost, seen.train_tokens if seen else None, benchmark)

    # The name of its run

    @property
    def _run_name(self) -> str:
        return self._named.get(self._at) or free_name(self.runs_dir, self.draft.run_name)

    def action_rename(self) -> None:
        self.query_one(LaunchLine).ask(self._run_name)

    def on_launch_line_named(self, event: LaunchLine.Named) -> None:
        self._take_name(event.name)

    def _take_name(self, name: str | None) -> None:
        line = self.query_one(LaunchLine)
        if not line.naming:  # its line has lost the focus as well
            return
        line.finish()
        if line.has_pseudo_class("focus-within"):
            self.focus_first()
        if name is not None:
            self._named.pop(self._at, None)
            if name != self._run_name:
                self._named[self._at] = name
        self._preview()

    # Choosing a value

    @work(group="pick", exclusive=True)
    async def on_switches_pick(self, event: Switches.Pick) -> None:
        draft, switch = self.draft, event.switch
        if switch.key == BASE:
            self.action_base()
            return
        if switch.ladder is not None:
            from tui_transformer.studio.design.dialogs import which_number

            text = await self.app.push_screen_wait(which_number(draft, switch))
            if text is not None:
                self._show(switch.typed(draft, text))
            return
        # Its values, as changes; a refused one is followed by the changes that would allow it.
        answers: list[Answer[Mapping[str, Any]]] = []
        choices = draft.choices(switch.key)
        if switch.key == CORPUS:  # two kinds, only one selectable
            choices.sort(key=lambda choice: bool(choice[1]))
        folders = data_folders(self.data_dir)
        for value, reason in choices:
            missing = [tr("not here")] if switch.key == CORPUS and is_missing(value, folders) else []
            about = " · ".join(filter(None, [*missing, sentence(switch.key, value)]))
            answers.append(Answer({switch.key: value}, shown(value), reason, about))
            changes = draft.way(switch.key, value) if reason else None
            if changes is not None:
                others = listed(f"{key} = {shown(one)}" for key, one in changes.items() if key != switch.key)
                label = tr("  ↳ {value}, with {changes}", value=shown(value), changes=others)
                answers.append(Answer(changes, " · ".join([label, *missing])))
        if switch.key == CORPUS:
            possible = sum(not reason for _, reason in choices)
            answers.insert(possible, Answer({FILE: FILE}, FILES.get(_corpus_kind(draft), tr("a text file …"))))
        at = {switch.key: draft.values.get(switch.key)}
        about = sentence(switch.key)
        name = switch.label.strip()
        question = Ask(tr("{name}: {text}", name=name, text=about) if about else name, answers, at=at)
        chosen = await self.app.push_screen_wait(question)
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
            question = AskText(tr("Documents"), placeholder=tr("path/to/documents.txt or a folder"), text=OF_DOCUMENTS)
        elif kind == "pairs":
            example = tr("pairs.tsv or text.en,text.de or a folder")
            question = AskText(tr("Sentence pairs"), placeholder=example, text=OF_PAIRS)
        elif kind == "labelled":
            question = AskText(tr("Labelled texts"), placeholder=tr("path/to/texts.csv or a folder"), text=OF_LABELLED)
        else:
            question = AskText(tr("A UTF-8 text file"), placeholder=tr("path/to/text.txt"))
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
        from tui_transformer.studio.design.dialogs import which_setting

        text = await self.app.push_screen_wait(which_setting(self.draft))
        if text:
            self._show(self.draft.with_text(text))
            self.query_one(Preview).look_at(text.partition("=")[0])

    def action_search(self) -> None:
        self.screen.set_focus(self.query_one(SearchLine))  # now: the next keys are meant for it

    def action_to_presets(self) -> None:
        if self._measuring.of is not None:
            self.action_measure()
        else:
            self.focus_first()

    def action_undo(self) -> None:
        if self._histories[self._at].undo():
            self._show(self.draft)
        else:
            say(self, tr("nothing to undo"))

    def action_redo(self) -> None:
        if self._histories[self._at].redo():
            self._show(self.draft)
        else:
            say(self, tr("nothing to redo"))

    def action_reset(self) -> None:
        self._show(self._histories[self._at].first)

    @work
    async def action_base(self) -> None:
        draft = self.draft
        if draft.own_base is None:
            say(
                self,
                tr("{name} is a base preset; only one-change presets can be applied to another base", name=draft.name),
            )
            return
        answers: list[Answer[Draft]] = []
        for on, problem in draft.bases():
            cost = self._forecast(on) if not problem else None
            words = [tr("its own base") if on.on is None else "", cost.time if cost is not None else ""]
            words.append(tr(presets.find(on.base or "").description))
            answers.append(Answer(on, on.base or "", problem, " · ".join(filter(None, words))))
        chosen = await self.app.push_screen_wait(
            Ask(tr('Apply "{name}" to which base?', name=draft.preset.name), answers, at=draft)
        )
        if chosen is not None:
            self._show(chosen)

    # What to do with it

    def _trainable(self) -> Draft | None:
        """The draft, or a note on why it cannot be trained."""
        if self.draft.problem:
            say(self, self.draft.problem, "error")
            return None
        return self.draft

    def action_launch(self, how: How) -> None:
        draft, line = self.draft, self.query_one(LaunchLine)
        if line.naming:
            if line.wrong(line.typed):
                return
            self._take_name(line.typed)
        seen = self._corpus(draft)
        problem = draft.problem or (seen.problem if seen is not None else "")
        if not draft.problem and (missing := self._download) is not None:
            problem = tr("{corpus} is not on this machine; ctrl+d downloads it", corpus=missing.corpus)
        if problem or draft.config is None:
            say(self, problem, "error")
            return
        forecast = self._forecast(draft)
        if how == "usual" and forecast is not None and forecast.long:
            self._ask_before(draft, forecast)
        else:
            self._train(draft, how)

    @work(group="launch", exclusive=True)
    async def _ask_before(self, draft: Draft, forecast: Forecast) -> None:
        """Before a long run: at this size, the same change on a small base, in the background, or not at all."""
        answers: list[Answer[tuple[Draft, How] | None]] = []
        answers.append(Answer((draft, "usual"), tr("Train it at this size ({time})", time=forecast.time)))
        small = draft.small()
        less = self._forecast(small) if small is not None else None
        if small is not None and small.against_parent() and less is not None and not less.long:
            answers.append(
                Answer(
                    (small, "usual"),
                    tr("Apply the same change to {base} instead ({time})", base=SMALL, time=less.time),
                )
            )
        answers.append(
            Answer((draft, "process"), tr("Train it in the background; it keeps running after the studio closes"))
        )
        answers.append(Answer(None, tr("Cancel")))
        title = tr(
            "{run_name} takes about {time} on {device}",
            run_name=self._run_name,
            time=forecast.time[2:],
            device=forecast.device,
        )
        ask: Ask[tuple[Draft, How] | None] = Ask(
            title, answers, text=tr("The time is {source}.", source=forecast.source)
        )
        chosen = await self.app.push_screen_wait(ask)
        if chosen is not None:
            if chosen[0] != draft:
                self._show(chosen[0])
            self._train(*chosen)

    def _train(self, draft: Draft, how: How) -> None:
        assert draft.config is not None
        typed, name = self._named.pop(self._at, None), self._run_name
        words = draft.command([*(("--name", typed) if typed else ()), *self._options])
        self.post_message(self.Launch(draft.config, words, how, typed or name, draft.ranks))

    def action_copy_command(self) -> None:
        command = self.draft.command(self._options)
        self.app.copy_to_clipboard(command)
        say(self, tr("copied to the clipboard (if your terminal allows it): {command}", command=command))

    def action_toml(self) -> None:
        draft = self.draft
        if draft.config is None:
            say(self, draft.problem, "error")
            return
        title, palette = tr("{name}: the complete config", name=draft.name), Palette.of(self.app.theme_variables)
        from tui_transformer.studio.design.dialogs import TomlPage

        self.app.push_screen(TomlPage(title, draft.toml(), palette, changed=draft.changes))

    @work
    async def action_save_preset(self) -> None:
        draft = self._trainable()
        if draft is None:
            return
        words = tr(
            'The preset will be saved to {presets_folder} and listed under "your own".',
            presets_folder=own_files.presets_folder(),
        )
        asked = AskText(tr("Save as a preset"), text=words, placeholder=tr("name"), wrong=own_files.wrong_preset_name)
        name = await self.app.push_screen_wait(asked)
        if name is None:
            return
        file, question = own_files.preset_file(name), tr("A preset named {name} already exists.", name=name)
        if not await may_replace(self.app, file, question):
            return
        with errors_said(self):
            path = own_files.save_preset(draft, name)
            self._histories.pop(str(path), None)
            self._was.pop(str(path), None)
            self.query_one(PresetList).reload(str(path))
            say(self, tr("saved {path}", path=path))

    # A study of it

    @work(group="study")
    async def action_study(self, take: str = "") -> None:
        """Build a study of the design; or take the variants of one that there is."""
        draft, at = self._trainable(), self._at
        if draft is None:
            return
        from tui_transformer.lab.design.study_draft import StudyDraft
        from tui_transformer.studio.design.study_builder import StudyBuilder, free_study_name

        study = self._studies.get(at) or StudyDraft.of(draft)
        study = study.with_design(draft)
        for offered, name, _ in own_files.offered_studies() if take else ():
            study = study.with_study(offered) if name == take and offered is not None else study
        study = replace(study, name=free_study_name(study.name, self.runs_dir))
        seen = self._corpus(draft)
        target = LaunchTarget(self.runs_dir, self.data_dir, self.device)
        known = self._benchmarks.known(draft)
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
            say(self, words)
            # Where its runs will appear; now, since nobody expects the pane to change when the start is done.
            await self.run_action("app.show_pane('train')")
            timing = Timing(launched.name, runs)
            if plan is None:
                self.post_message(timing)
            with errors_said(self):
                over = replace(timing, state="failed")
                try:
                    said = await processes.start(launched, target, plan)
                    over = replace(timing, state="done")
                finally:
                    self.post_message(over)
                say(self, said)

    def action_measure(self) -> None:
        draft = self.draft
        if self._measuring.of is not None:
            self._measuring.stop()
            self._preview()
        elif not draft.problem:
            self._measuring.begin(draft, self._benchmarks.measure(draft, self._measuring.tell))
