"""The study builder, over the Design pane: variants of the design, seeds, the plan; and its text."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr, trn
from engine.config import presets
from engine.config.keys import all_keys
from engine.data.corpus import CorpusPreview
from tui_transformer.lab.analysis.lists import PHRASES, join
from tui_transformer.lab.design import benchmarks
from tui_transformer.lab.design.draft import Benchmark, describe_setting, format_value
from tui_transformer.lab.design.forecast import Machine
from tui_transformer.lab.design.study_draft import (
    NOT_OF_A_STUDY,
    Estimate,
    StudyDraft,
    VariantLine,
    estimate_study,
    numbered_name,
    seeds_argument,
    study_command,
)
from tui_transformer.lab.formatting import duration, fit_to_width, memory, rough_duration
from tui_transformer.lab.work.async_commands import LaunchTarget
from tui_transformer.lab.work.plan import RunCost
from tui_transformer.lab.work.study import Study
from tui_transformer.lab.work.study_files import started_studies
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.dialogs import PresetChecklist, TomlPage
from tui_transformer.studio.design.measuring import BackgroundWork
from tui_transformer.studio.design.preview import NETWORK, WRAP_CONSOLE, network_drawing
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextDialog, confirm_overwrite, error_text
from tui_transformer.studio.shared.key_line import KeyLine
from tui_transformer.studio.shared.keys import COMMAND_KEYS, PANE_BINDINGS, SPARE
from tui_transformer.studio.shared.messages import notify, show_errors
from tui_transformer.studio.shared.palette import Palette

LEAST = 20  # columns to draw in
DRAWN_FROM = 90  # and to draw the network beside the words
GAP = 2  # columns
PARAMETERS, TIME = 12, 11
LONGEST_NAME = 26
ROOMY = 64  # least columns for parameters and time
LONG_KEYS = 96  # and for keys with their sections
MOST_SEEDS = 8  # listed at most
EMPTY = {  # what to do first, by the command's id
    "study-presets": Message("pick presets that change one thing"),
    "study-values": Message("type values for a setting: model.n_heads=1,2,4,8"),
    "study-take": Message("use the variants of a built-in study"),
}


class StudyBuilder(ModalScreen[tuple[StudyDraft, Study | None]]):
    """Edits a study draft; returns it as it was left, and what to launch."""

    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["study"]]

    def __init__(
        self,
        draft: StudyDraft,
        benchmark: Benchmark | None,  # of its design
        corpus: CorpusPreview | None,  # of the design
        machine: Machine,
        options: list[str],  # what the studio was started with, as command-line arguments
        target: LaunchTarget,
        measured: dict[str, Estimate],  # by the study as a file; a new measurement is added
    ) -> None:
        super().__init__()
        self._draft, self._benchmark, self._machine = draft, benchmark, machine
        self._characters, self._train_tokens = (corpus.characters, corpus.train_tokens) if corpus else (None, None)
        self._options, self._target, self._measured = options, target, measured
        self._measuring = BackgroundWork(self, self._redraw)
        self._ids: list[str] = []
        self._started = started_names(target.runs_dir)

    def compose(self) -> ComposeResult:
        with Vertical(id="study"):
            yield Static("", id="study-title")
            yield Static("", id="study-heading")
            yield OptionList(id="study-variants")
            yield Static("", id="at-hand")
            yield Static("", id="plan")
            yield Static("", id="command")
            yield KeyLine(palette=False, spare=SPARE)
        yield Static("", id="too-small")  # the studio shows it if nothing fits

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._set_draft(self._draft)

    def on_resize(self, event: Resize) -> None:
        width, height = event.size
        words = tr("The study builder does not fit in {width} × {height} characters.", width=width, height=height)
        self.query_one("#too-small", Static).update(Text(words))
        self.call_after_refresh(self._redraw)

    # Showing it

    def _set_draft(self, draft: StudyDraft) -> None:
        if self._measuring.subject is not None and draft.toml() != self._measuring.subject:
            self._measuring.stop()
        self._draft = draft = draft.with_proposed_seeds(self._estimate(draft).seconds)
        ids = [line.variant.name for line in draft.lines]
        if ids != self._ids:
            names = self.query_one(OptionList)
            at = names.highlighted or 0
            before, self._ids = self._ids[at] if self._ids else "", ids
            invited = first_steps_lines(Palette.from_app(self.app)) if len(ids) == 1 else []
            names.set_options([*(Option("", id=name) for name in ids), *(Option(t, disabled=True) for t in invited)])
            names.highlighted = ids.index(before) if before in ids else min(at, len(ids) - 1)
        self._redraw()

    def _estimate(self, draft: StudyDraft) -> Estimate:
        return estimate_study(draft, self._benchmark, self._characters, self._machine, self._train_tokens)

    @property
    def _current_line(self) -> VariantLine | None:
        """The current variant."""
        at = self.query_one(OptionList).highlighted
        return self._draft.lines[at] if at is not None else None

    def _redraw(self) -> None:
        draft, palette, names = self._draft, Palette.from_app(self.app), self.query_one(OptionList)
        width = names.scrollable_content_region.width
        if width < LEAST:
            return
        estimate = self._measured.get(draft.toml()) if draft.study is not None else None
        estimate = estimate or self._estimate(draft)
        of = tr("a study of {name} with changes") if draft.design.changes else tr("a study of {name}")
        title = Text(clean_line(draft.name), "bold")
        title = Text.assemble(title, ("   " + clean_line(of.format(name=draft.design.name)), palette.dim))
        all_keys = tr("? all keys")
        title.append(" " * (width - title.cell_len - cell_len(all_keys))).append(all_keys, palette.dim)
        self.query_one("#study-title", Static).update(title)
        head = variants_heading(width, name_width(draft, width), palette)
        self.query_one("#study-heading", Static).update(head)
        for at, line in enumerate(draft.lines):
            colours = Palette() if at == names.highlighted else palette  # unreadable on its background
            names.replace_option_prompt_at_index(at, variant_line(line, draft, estimate, width, colours))
        self.query_one("#at-hand", Static).update(variant_detail(self._current_line, draft, width, palette))
        self.query_one("#plan", Static).update(self._plan_text(estimate, palette, width))
        command = Text()
        if draft.study is not None:
            said, unsaved = self._command_with_unsaved_flag()
            command.append(tr("once saved (ctrl+s): ") if unsaved else "", palette.dim)
            command.append("$ ", palette.dim).append(clean_line(said), palette.calm)
        self.query_one("#command", Static).update(command)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._redraw()

    @property
    def _study_path(self) -> Path:
        return own_files.study_file(self._draft.name)

    def _command_with_unsaved_flag(self) -> tuple[str, bool]:
        """The command line that runs the study, and whether it names a file that is yet to be saved."""
        command, saved = study_command(self._draft, self._study_path, self._options)
        return command, saved and not self._study_path.exists()

    def _plan_text(self, estimate: Estimate, palette: Palette, width: int) -> Text:
        """The runs, time, disk, and what to know beforehand."""
        draft, toml, text = self._draft, self._draft.toml(), Text()
        kept, seeds = len(draft.included_lines), len(draft.seeds)
        numbers = (
            comma_separated(map(str, draft.seeds)) if seeds <= MOST_SEEDS else f"{draft.seeds[0]} … {draft.seeds[-1]}"
        )
        counts = trn("{n} variant", "{n} variants", kept), trn("{n} seed", "{n} seeds", seeds)
        text.append(tr("{variants} × {seeds} ({listed})", variants=counts[0], seeds=counts[1], listed=numbers))
        if draft.stages:
            text.append(clean_line(tr(", in stages {value}", value=" → ".join(stage.name for stage in draft.stages))))
        text.append(" = ")
        text.append(tr("{runs:,} runs", runs=draft.runs), "bold")
        left_out = len(draft.lines) - kept
        text.append(tr("   {n} left out\n", n=left_out) if left_out else "\n", palette.dim)

        measuring = self._measuring.elapsed(toml)
        timing = ""
        if measuring is not None:
            timing = tr("timing one step of every variant … {duration}; m cancels", duration=duration(measuring))
        if estimate.seconds is None:
            text.append(timing or tr("time unknown; m measures it"), palette.accent if timing else palette.dim)
        else:
            text.append(f"≈ {rough_duration(estimate.seconds)}", "bold")
            devices = clean_line(comma_separated(estimate.devices))
            text.append(tr(" on {device}", device=devices) if devices else "")
        if estimate.seconds is not None and estimate.measured:
            threads = trn(", {n} thread each", ", {n} threads each", estimate.threads) if estimate.threads else ""
            text.append(tr(", {n} at a time", n=estimate.jobs) + threads, palette.dim)
        elif estimate.seconds is not None:
            text.append(tr(", one at a time, "), palette.dim)
            source = tr("estimated") if self._benchmark is None else tr("from the design's measured step time")
            text.append(source, palette.dim)
            more = timing or tr("m measures each variant")
            text.append(tr("; {more}", more=more), palette.accent if timing else palette.dim)
        if estimate.disk_bytes is not None:
            text.append(" · ", palette.dim).append(memory(estimate.disk_bytes), "bold").append(tr(" on disk"))
        text.append("\n")
        text.append(f"{draft.power_text}\n" if draft.power_text else "", palette.dim)

        problems = filter(None, (self._measuring.failure(toml), draft.problem))
        started = tr(
            "{name} has already been started: f5 resumes it if the study is unchanged; n renames this study",
            name=draft.name,
        )
        warnings = [*([started] if draft.name in self._started else []), *draft.warnings]
        for sign, colour, said in (("✗ ", palette.bad, problems), ("⚠ ", palette.warn, warnings)):
            for words in said:
                lines = Text(clean_line(words)).wrap(WRAP_CONSOLE, width - 2)
                text.append(sign, colour).append("\n  ".join(line.plain.rstrip() for line in lines) + "\n")
        text.rstrip()
        return text

    # Variants

    @work
    async def action_presets(self) -> None:
        draft = self._draft
        with show_errors(self):
            offered = draft.overlays([preset for _, preset, _ in own_files.user_presets() if preset is not None])
            ticked = await self.app.push_screen_wait(PresetChecklist(draft, offered))
            if ticked is not None:
                self._set_draft(ticked)

    @work
    async def action_values(self) -> None:
        draft = self._draft
        question = TextDialog(
            tr("Values for a setting, one variant each"),
            placeholder="model.n_heads=1,2,4,8",
            text=tr("KEY=VALUE,VALUE; for a grid, separate the keys with spaces; → completes the key"),
            wrong=lambda text: (
                error_text(lambda: draft.with_variants_along_axes(text)).removeprefix("--vary ").removeprefix("--set ")
            ),
            suggester=SuggestFromList([f"{name}=" for name in all_keys() if name not in NOT_OF_A_STUDY]),
        )
        text = await self.app.push_screen_wait(question)
        if text and text.strip():
            with show_errors(self):
                self._set_draft(self._draft.with_variants_along_axes(text))

    @work
    async def action_take(self) -> None:
        draft = self._draft
        answers: list[Answer[StudyDraft]] = []
        for study, name, where in own_files.available_studies():
            if study is None:
                answers.append(Answer(draft, name, where))
                continue
            words = tr(study.description) or tr("{n} variants of {base}", n=len(study.variants), base=study.base)
            taken = draft.with_study(study)
            answers.append(Answer(taken, name, taken.problem, words + (f"  ({where})" if where else "")))
        text = tr("Its variants replace the current ones; {name} stays the base.", name=draft.design.name)
        question = ChoiceDialog(tr("Use the variants of which study?"), answers, text=text)
        chosen = await self.app.push_screen_wait(question)
        if chosen is not None:
            self._set_draft(replace(chosen, name=free_study_name(chosen.name, self._target.runs_dir)))

    def action_remove(self) -> None:
        line = self._current_line
        if len(self._ids) > 1 and line is not None:
            self._set_draft(self._draft.without_variant(line.variant.name))

    def action_baseline(self) -> None:
        line = self._current_line
        if line is None:
            return
        if line.config is None:
            why = tr("{name} cannot be trained: {why_not}", name=line.variant.name, why_not=line.why_not)
            notify(self, why, "error")
            return
        self._set_draft(replace(self._draft, baseline=line.variant.name, variant_arguments=()))

    # Seeds and name

    @work
    async def action_seeds(self) -> None:
        draft = self._draft
        words = tr(
            "A count (3 means 1, 2 and 3) or a list (1,5,9). One seed proves nothing; use 5 or more for a firm verdict."
        )
        wrong = lambda text: error_text(lambda: draft.with_seeds(text)).removeprefix("--seeds ")
        question = TextDialog(tr("Seeds for every variant"), seeds_argument(draft.seeds), text=words, wrong=wrong)
        text = await self.app.push_screen_wait(question)
        if text is not None:
            with show_errors(self):
                self._set_draft(self._draft.with_seeds(text))

    def action_more_seeds(self, more: int) -> None:
        self._set_draft(self._draft.with_seed_added_or_removed(more))

    @work
    async def action_rename(self) -> None:
        words, wrong = tr("Its runs are named NAME.VARIANT.sSEED."), own_files.study_name_problem
        name = await self.app.push_screen_wait(TextDialog(tr("Study name"), self._draft.name, text=words, wrong=wrong))
        if name:
            self._set_draft(replace(self._draft, name=name))

    # The plan

    def action_measure(self) -> None:
        if self._measuring.subject is not None:
            self._measuring.stop()
            self._redraw()
            return
        study, toml = self._valid_study(), self._draft.toml()
        if study is not None and toml not in self._measured:
            self._measuring.begin(toml, self._measure(study))

    async def _measure(self, study: Study) -> None:
        self._measured[study.to_toml()] = await benchmarks.time_study_steps(study, self._target)

    # What to do with it

    def _valid_study(self) -> Study | None:
        if self._draft.study is None:
            notify(self, self._draft.problem, "error")
        return self._draft.study

    def action_launch(self) -> None:
        study = self._valid_study()
        if study is not None:
            self.dismiss((self._draft, study))

    def action_back(self) -> None:
        self.dismiss((self._draft, None))

    def action_copy(self) -> None:
        if self._valid_study() is None:
            return
        command, unsaved = self._command_with_unsaved_flag()
        self.app.copy_to_clipboard(command)
        first = tr("; press ctrl+s to save the study file first") if unsaved else ""
        words = tr("copied to the clipboard (if your terminal allows it): {command}{hint}", command=command, hint=first)
        notify(self, words)

    def action_toml(self) -> None:
        if self._valid_study() is None:
            return
        (command, unsaved), palette = self._command_with_unsaved_flag(), Palette.from_app(self.app)
        hint = tr(", once saved with ctrl+s\n") if unsaved else "\n"
        above = Text().append(tr("the command that runs this study") + hint, palette.dim)
        above.append(clean_line(command) + "\n\n", palette.calm)
        title = tr("{name}: the whole study", name=self._draft.name)
        self.app.push_screen(TomlPage(title, self._draft.toml(), palette, above=above))

    @work
    async def action_save(self) -> None:
        study = self._valid_study()
        if study is None or not await confirm_overwrite(
            self.app, self._study_path, tr("A study named {name} already exists.", name=study.name)
        ):
            return
        with show_errors(self):
            notify(self, tr("saved {path}; C copies the command that runs it", path=own_files.save_study(study)))
            self._redraw()


def free_study_name(wanted: str, runs_dir: Path) -> str:
    """`wanted`, numbered if a study of that name was already started."""
    return numbered_name(wanted, started_names(runs_dir))


def started_names(runs_dir: Path) -> frozenset[str]:
    try:
        return frozenset(started_studies(runs_dir))
    except OSError:
        return frozenset()


# In words


def variants_heading(width: int, names_width: int, palette: Palette) -> Text:
    text = Text("  ").append(fit_to_width(tr("VARIANT"), names_width)).append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures_width(width))
    text.append(fit_to_width(tr("CHANGES"), rest))
    if width >= ROOMY:
        text.append(fit_to_width(tr("PARAMETERS"), PARAMETERS, right=True))
        text.append(fit_to_width(tr("PER RUN"), TIME, right=True))
    text.stylize(palette.dim)
    return text


def name_width(draft: StudyDraft, width: int) -> int:
    longest = max((cell_len(clean_line(line.variant.name)) for line in draft.lines), default=0)
    return max(8, min(longest, LONGEST_NAME, width // 3))


def variant_line(line: VariantLine, draft: StudyDraft, estimate: Estimate, width: int, palette: Palette) -> Text:
    name = line.variant.name
    held = name == draft.effective_baseline
    mark, colour = ("✗ ", palette.bad) if line.why_not else ("◆ ", palette.accent) if held else ("  ", "")
    if line.why_not and line.config is not None:  # not wrong, only a duplicate
        mark, colour = "= ", palette.dim
    text = Text(mark, colour, no_wrap=True)
    text.append(fit_to_width(clean_line(name), name_width(draft, width)), palette.dim if line.why_not else "bold")
    text.append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures_width(width))
    if line.why_not:
        text.append(fit_to_width(clean_line(line.why_not), width - text.cell_len), palette.dim)
        return text
    changes = draft.differences(line)
    names = {key: key if width >= LONG_KEYS else key.rpartition(".")[2] for key in changes}
    said = [draft.initial_weights_source_text(line.variant)]
    said += [f"{names[key]} = {format_value(after)}" for key, (_, after) in changes.items()]
    words = tr("the baseline") if held else comma_separated(filter(None, said))
    text.append(fit_to_width(clean_line(words), rest), palette.accent if held else "")
    if width >= ROOMY:
        price = estimate.prices.get(name, RunCost())
        parameters = f"{price.parameters:,}" if price.parameters else ""
        seconds = f"≈ {rough_duration(price.seconds)}" if price.seconds else ""
        text.append(f"{parameters:>{PARAMETERS}}", palette.dim).append(fit_to_width(seconds, TIME, right=True))
    return text


def first_steps_lines(palette: Palette) -> list[Text]:
    lines = [Text(), Text(tr("  Compare this design to what?"))]
    style = f"reverse {palette.dim}".strip()
    lines += [Text("  ").append(f" {COMMAND_KEYS[id]} ", style).append(f" {tr(what)}") for id, what in EMPTY.items()]
    return lines


def variant_detail(line: VariantLine | None, draft: StudyDraft, width: int, palette: Palette) -> RenderableType:
    """One variant: its changes and what they do, what is expected, and its network; or why it is left out."""
    if line is None:
        return Text()
    name, baseline = clean_line(line.variant.name), draft.baseline_config
    held = line.variant.name == draft.effective_baseline
    if line.why_not:
        return Text().append(tr("{name} is left out: ", name=name), "bold").append(clean_line(line.why_not))
    words = Text().append(name, "bold")
    words.append(tr(" is the baseline: the other variants are compared to it\n") if held else "\n", palette.dim)
    if begins := draft.initial_weights_source_text(line.variant):
        words.append(f"{clean_line(begins)}\n")
    for key, (before, after) in draft.differences(line).items():
        words.append("● ", palette.accent).append(f"{key}: ", palette.dim)
        words.append(f"{clean_line(format_value(before))} → ")
        words.append(clean_line(format_value(after)), "bold")
        if says := describe_setting(key, after) or describe_setting(key):
            words.append(f"  {clean_line(says)}", palette.dim)
        words.append("\n")
    if said := expectation_text(line):
        words.append(tr("expected: ") if has_expectation(line) else "", palette.dim).append(f"{said}\n")
    others = [one for one in draft.included_lines if one is not line and one.variant.name != draft.effective_baseline]
    drawn = line.config is not None and width >= DRAWN_FROM
    names, room = name_width(draft, width), width - (NETWORK + GAP if drawn else 0)
    foretold = [other for other in others if has_expectation(other)]
    told = [other for other in others if other not in foretold and expectation_text(other)]
    for title, these in ((tr("\nexpected from the others\n"), foretold), (tr("\nwhat the others do\n"), told)):
        words.append(title if these else "", f"bold {palette.dim}".strip())
        for other in these:  # a line each
            words.append(fit_to_width(clean_line(other.variant.name), names) + " " * GAP)
            words.append(fit_to_width(expectation_text(other), room - names - GAP) + "\n", palette.dim)
    if line.config is None or not drawn:
        return words
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False, expand=True)
    table.add_column(ratio=1)
    table.add_column(width=NETWORK)
    table.add_row(words, network_drawing(line.config.model, baseline, draft.effective_baseline, NETWORK, palette))
    return table


def has_expectation(line: VariantLine) -> bool:
    return bool(line.variant.expect or line.variant.why)


def expectation_text(line: VariantLine) -> str:
    """What a variant is expected to do, by its study or its preset; "" if neither says."""
    variant = line.variant
    known = [
        tr("{measure} {outcome}", measure=tr(measure), outcome=tr(outcome))
        for measure, outcome in variant.expect.items()
        if outcome != "unknown"
    ]
    found = [tr(join(PHRASES, known)) or tr("unknown")] if variant.expect else []
    found.append(tr(variant.why or (presets.find(variant.preset).description if variant.preset else "")))
    return clean_line(tr(". ").join(filter(None, found)))


def _figures_width(width: int) -> int:
    return PARAMETERS + TIME if width >= ROOMY else 0
