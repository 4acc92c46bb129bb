"""The study builder: variants of the design, seeds, and the plan, over the Design pane; and its words."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from time import monotonic
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from engine.clean import clean_line
from engine.errors import InputError
from tui_transformer.lab.design import processes
from tui_transformer.lab.design.draft import Benchmark, Characters, shown
from tui_transformer.lab.design.processes import LaunchTarget
from tui_transformer.lab.design.study_draft import Estimate, StudyDraft, VariantLine, estimated
from tui_transformer.lab.design.study_draft import command as study_command
from tui_transformer.lab.formatting import about, duration, memory
from tui_transformer.lab.studies.study import Study, started_studies
from tui_transformer.studio import settings as user
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.dialogs import (
    ask_to_overwrite,
    study_page,
    which_name,
    which_overlays,
    which_seeds,
    which_study,
    which_values,
)
from tui_transformer.studio.keys import STUDY, bindings
from tui_transformer.studio.shared.help import help_screen
from tui_transformer.studio.shared.palette import Palette

KEYS = "? all keys"
LEAST = 20  # columns to draw in
TICK = 1.0  # seconds between updates on a measurement
GAP = 2  # columns
PARAMETERS, TIME = 12, 11
LONGEST_NAME = 26
ROOMY = 64  # columns from which on there is room for parameters and time
LONG_KEYS = 96  # and for keys with their sections
MOST_SEEDS = 8  # that are listed
EMPTY = (
    ("p", "tick presets that change one thing each"),
    ("v", "type values of a setting: model.n_heads=1,2,4,8"),
    ("l", "take the variants of a study that comes with this"),
)


@dataclass(frozen=True)
class DesignContext:
    """What is known of the design that a study is made of."""

    benchmark: Benchmark | None
    characters: Characters | None  # of its corpus
    options: list[str]  # what the studio was started with, as the command line says it
    target: LaunchTarget  # where and on what studies are run


@dataclass(frozen=True)
class BuilderResult:
    """The draft as the builder was left: to be launched, or only kept."""

    draft: StudyDraft
    launch: bool = False


class StudyBuilder(ModalScreen[BuilderResult]):
    """One study in the making."""

    DEFAULT_CSS = """
    StudyBuilder #study { width: 100%; max-width: 150; height: 100%; max-height: 44; background: $panel;
        border: round $primary; padding: 0 1; }
    StudyBuilder #study-title { height: 1; }
    StudyBuilder #study-heading { height: 1; margin-top: 1; }
    StudyBuilder OptionList { height: 1fr; min-height: 4; border: none; padding: 0; background: $panel;
        scrollbar-size-vertical: 1; scrollbar-color: $foreground 30%;
        scrollbar-background: $panel; }
    StudyBuilder OptionList:focus { border: none; background-tint: $foreground 0%; }
    StudyBuilder #at-hand { height: auto; max-height: 4; color: $foreground 80%; margin-top: 1; }
    StudyBuilder #plan { height: auto; max-height: 9; margin-top: 1; }
    StudyBuilder #command { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    StudyBuilder OptionList > .option-list--option-disabled { color: $foreground 80%; }
    .narrow StudyBuilder #at-hand { margin-top: 0; }
    .narrow StudyBuilder #plan { max-height: 7; }
    """
    SCOPED_CSS = False  # `narrow` is a class of the app
    BINDINGS: ClassVar[list[BindingType]] = bindings(STUDY)

    def __init__(self, draft: StudyDraft, context: DesignContext) -> None:
        super().__init__()
        self._draft, self._known = draft, context
        self._measured: dict[str, Estimate] = {}  # by the study as a file
        self._measuring = ""
        self._since = 0.0  # when it began
        self._tick: Timer | None = None
        self._failed: tuple[str, str] = ("", "")
        self._ids: list[str] = []
        self._started = started_names(context.target.runs_dir)

    def compose(self) -> ComposeResult:
        with Vertical(id="study"):
            yield Static("", id="study-title")
            yield Static("", id="study-heading")
            yield OptionList(id="study-variants")
            yield Static("", id="at-hand")
            yield Static("", id="plan")
            yield Static("", id="command")
            yield Footer(compact=True, show_command_palette=False)
        yield Static("", id="too-small")  # the studio shows it where nothing fits

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._show(self._draft)

    def on_resize(self, event: Resize) -> None:
        words = f"A study does not fit into {event.size.width} × {event.size.height} characters."
        self.query_one("#too-small", Static).update(Text(words))
        self.call_after_refresh(self._redraw)

    # Showing it

    def _show(self, draft: StudyDraft) -> None:
        if self._measuring and draft.toml() != self._measuring:
            self._stop_measuring()
        self._draft = draft
        ids = [line.variant.name for line in draft.lines]
        if ids != self._ids:
            names, before = self.query_one(OptionList), self._at_hand
            at = names.highlighted or 0
            self._ids = ids
            invited = invitation(Palette.of(self.app.theme_variables)) if len(ids) == 1 else []
            names.set_options([*(Option("", id=name) for name in ids), *(Option(t, disabled=True) for t in invited)])
            names.highlighted = ids.index(before) if before in ids else min(at, len(ids) - 1)
        self._redraw()

    @property
    def _at_hand(self) -> str:
        option = self.query_one(OptionList).highlighted_option
        return (option.id or "") if option is not None else ""

    @property
    def _line(self) -> VariantLine | None:
        return next((line for line in self._draft.lines if line.variant.name == self._at_hand), None)

    @property
    def _estimate(self) -> Estimate:
        found = self._measured.get(self._draft.toml()) if self._draft.study is not None else None
        return found or estimated(self._draft, self._known.benchmark, self._known.characters)

    def _redraw(self) -> None:
        draft, palette, names = self._draft, Palette.of(self.app.theme_variables), self.query_one(OptionList)
        width = names.scrollable_content_region.width
        if width < LEAST:
            return
        estimate = self._estimate
        changed = ", changed" if draft.design.changes else ""
        title = Text(clean_line(draft.name), "bold")
        title = Text.assemble(title, (clean_line(f"   a study of {draft.design.name}{changed}"), palette.dim))
        title.append(" " * (width - title.cell_len - len(KEYS))).append(KEYS, palette.dim)
        self.query_one("#study-title", Static).update(title)
        head = heading(width, name_width(draft, width), palette)
        self.query_one("#study-heading", Static).update(head)
        self._draw_lines(estimate, width, palette)
        self._describe()
        measuring = monotonic() - self._since if self._measuring else None
        failed = self._failed[1] if self._failed[0] == draft.toml() else ""
        started = draft.name in self._started
        plan = plan_words(draft, estimate, palette, width, measuring=measuring, failed=failed, started=started)
        self.query_one("#plan", Static).update(plan)
        command = command_words(draft, self._file, self._known.options, palette)
        self.query_one("#command", Static).update(command)

    def _draw_lines(self, estimate: Estimate, width: int, palette: Palette) -> None:
        names, draft = self.query_one(OptionList), self._draft
        for at, line in enumerate(draft.lines):
            colours = Palette() if at == names.highlighted else palette  # they would not be read on its background
            prompt = variant_line(line, draft, estimate, width, colours)
            names.replace_option_prompt_at_index(at, prompt)

    def _describe(self) -> None:
        words = at_hand(self._line, self._draft) if len(self._ids) > 1 else Text()
        self.query_one("#at-hand", Static).update(words)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        width = event.option_list.scrollable_content_region.width
        if width >= LEAST:
            self._draw_lines(self._estimate, width, Palette.of(self.app.theme_variables))
            self._describe()

    @property
    def _file(self) -> Path:
        return own_files.study_file(self._draft.name)

    def _say(self, text: str, severity: Any = "information") -> None:
        self.app.notify(clean_line(text), severity=severity, markup=False)

    def _take(self, change: Callable[[], StudyDraft]) -> None:
        try:
            self._show(change())
        except InputError as error:
            self._say(str(error), "error")

    # Variants

    def action_presets(self) -> None:
        draft = self._draft
        try:
            own = [found.preset for found in own_files.own_presets() if found.preset is not None]
            offered = draft.overlays(own)
        except InputError as error:
            self._say(str(error), "error")
            return

        def ticked(places: frozenset[int] | None) -> None:
            if places is not None:
                chosen = [overlay.variant for at, overlay in enumerate(offered) if at in places]
                self._show(draft.with_overlays(chosen, offered))

        self.app.push_screen(which_overlays(draft, offered), ticked)

    def action_values(self) -> None:
        take = lambda text: self._take(lambda: self._draft.with_axes(text)) if text and text.strip() else None
        self.app.push_screen(which_values(self._draft), take)

    def action_take(self) -> None:

        def taken(study: Study | None) -> None:
            if study is not None:
                draft = self._draft.with_study(study)
                self._show(replace(draft, name=free_study_name(draft.name, self._known.target.runs_dir)))

        self.app.push_screen(which_study(self._draft), taken)

    def action_remove(self) -> None:
        if len(self._ids) > 1 and self._at_hand:
            self._show(self._draft.without(self._at_hand))

    def action_baseline(self) -> None:
        line = self._line
        if line is None:
            return
        if line.config is None:
            self._say(f"{line.variant.name} cannot be trained: {line.why_not}", "error")
            return
        self._show(replace(self._draft, baseline=line.variant.name, said_as=()))

    # Seeds and name

    def action_seeds(self) -> None:
        take = lambda text: self._take(lambda: self._draft.with_seeds(text)) if text is not None else None
        self.app.push_screen(which_seeds(self._draft), take)

    def action_more_seeds(self, more: int) -> None:
        self._show(self._draft.with_more_seeds(more))

    def action_rename(self) -> None:
        take = lambda name: self._show(replace(self._draft, name=name)) if name else None
        self.app.push_screen(which_name(self._draft), take)

    # The plan

    def action_measure(self) -> None:
        """Time a step of every variant in a separate process; pressed again, cancel it."""
        if self._measuring:
            self._stop_measuring()
            self._redraw()
            return
        study = self._study()
        if study is None or self._draft.toml() in self._measured:
            return
        self._measuring, self._failed, self._since = self._draft.toml(), ("", ""), monotonic()
        self._tick = self.set_interval(TICK, self._redraw)
        self.run_worker(self._measure(study), group="plan", exclusive=True)
        self._redraw()

    async def _measure(self, study: Study) -> None:
        asked = study.to_toml()
        try:
            self._measured[asked] = await processes.plan(study, self._known.target)
        except InputError as error:
            self._failed = (asked, str(error))
        if self._measuring == asked:
            self._timed()
        if self.is_attached:
            self._redraw()

    def _stop_measuring(self) -> None:
        self.workers.cancel_group(self, "plan")
        self._timed()

    def _timed(self) -> None:
        self._measuring = ""
        if self._tick is not None:
            self._tick.stop()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Nothing above needs to hear of it."""
        event.stop()

    # What becomes of it

    def _study(self) -> Study | None:
        """The study, or a word on why there is none."""
        if self._draft.study is None:
            self._say(self._draft.problem, "error")
        return self._draft.study

    def action_launch(self) -> None:
        if self._study() is not None:
            self.dismiss(BuilderResult(self._draft, launch=True))

    def action_back(self) -> None:
        self.dismiss(BuilderResult(self._draft))

    def action_help(self) -> None:
        keys = getattr(getattr(self.app, "settings", None), "keys", {})
        self.app.push_screen(help_screen("study", keys, user.settings_file()))

    def action_copy(self) -> None:
        if self._study() is None:
            return
        command, saved = study_command(self._draft, self._file, self._known.options)
        self.app.copy_to_clipboard(command)
        first = "; s saves the file that it names" if saved and not self._file.exists() else ""
        self._say(f"in the clipboard, where the terminal allows it: {command}{first}")

    def action_toml(self) -> None:
        if self._study() is None:
            return
        command, saved = study_command(self._draft, self._file, self._known.options)
        palette, unsaved = Palette.of(self.app.theme_variables), saved and not self._file.exists()
        self.app.push_screen(study_page(self._draft, command, palette, unsaved=unsaved))

    def action_save(self) -> None:
        """Write it as a file of one's own; asks before it is written over another."""
        study = self._study()
        if study is None:
            return
        if self._file.exists():
            question = ask_to_overwrite("study", study.name)
            self.app.push_screen(question, lambda yes: self._save(study) if yes else None)
        else:
            self._save(study)

    def _save(self, study: Study) -> None:
        try:
            path = own_files.save_study(study)
        except InputError as error:
            self._say(str(error), "error")
            return
        self._say(f"saved {path}; c copies the command that runs it")
        self._redraw()


def free_study_name(wanted: str, runs_dir: Path) -> str:
    """`wanted`, or with a number where a study of that name was started already."""
    taken, count, name = started_names(runs_dir), 1, wanted
    while name in taken:
        count += 1
        name = f"{wanted}-{count}"
    return name


def started_names(runs_dir: Path) -> frozenset[str]:
    """The names of the studies that were started in a runs folder."""
    try:
        return frozenset(started_studies(runs_dir))
    except OSError:
        return frozenset()


# In words


def heading(width: int, names: int, palette: Palette) -> Text:
    text = Text("  ").append(_cut("VARIANT", names)).append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures(width))
    text.append(_cut("DIFFERS FROM THE BASELINE BY", rest))
    if width >= ROOMY:
        text.append(f"{'PARAMETERS':>{PARAMETERS}}{'A RUN':>{TIME}}")
    text.stylize(palette.dim)
    return text


def name_width(draft: StudyDraft, width: int) -> int:
    longest = max((cell_len(clean_line(line.variant.name)) for line in draft.lines), default=0)
    return max(8, min(longest, LONGEST_NAME, width // 3))


def variant_line(line: VariantLine, draft: StudyDraft, estimate: Estimate, width: int, palette: Palette) -> Text:
    """One variant: its mark, its name, what it changes, what it costs."""
    name = line.variant.name
    held = name == draft.held_against
    mark, colour = ("✗ ", palette.bad) if line.why_not else ("◆ ", palette.accent) if held else ("  ", "")
    if line.why_not and line.config is not None:  # not wrong, only there already
        mark, colour = "= ", palette.dim
    text = Text(mark, colour, no_wrap=True)
    text.append(_cut(clean_line(name), name_width(draft, width)), palette.dim if line.why_not else "bold")
    text.append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures(width))
    if line.why_not:
        text.append(_cut(clean_line(line.why_not), width - text.cell_len), palette.dim)
        return text
    changes = draft.differences(line)
    names = {key: key if width >= LONG_KEYS else key.rpartition(".")[2] for key in changes}
    said = [draft.begins(line.variant), *(f"{names[key]} = {shown(after)}" for key, (_, after) in changes.items())]
    words = "the baseline" if held else ", ".join(filter(None, said))
    text.append(_cut(clean_line(words), rest), palette.accent if held else "")
    if width >= ROOMY:
        count, seconds = estimate.parameters.get(name), estimate.each.get(name)
        text.append(f"{f'{count:,}' if count else '':>{PARAMETERS}}", palette.dim)
        text.append(f"{f'≈ {about(seconds)}' if seconds is not None else '':>{TIME}}")
    return text


def invitation(palette: Palette) -> list[Text]:
    lines = [Text(), Text("  What is it to be compared with?")]
    lines += [Text("  ").append(f" {key} ", f"reverse {palette.dim}".strip()).append(f" {what}") for key, what in EMPTY]
    return lines


def at_hand(line: VariantLine | None, draft: StudyDraft) -> Text:
    """More on one variant: why it is left out, or what it changes in full and what is expected of it."""
    if line is None:
        return Text()
    name = clean_line(line.variant.name)
    if line.why_not:
        return Text().append(f"{name} is left out: ", "bold").append(clean_line(line.why_not))
    expect = line.variant.expect
    known = [f"{measure} {outcome}" for measure, outcome in expect.items() if outcome != "unknown"]
    words = ["expected: " + (", ".join(known) or "unknown")] if expect else []
    words += [draft.why[line.variant.name]] if line.variant.name in draft.why else []
    if not words:
        changes = draft.differences(line)
        said = [draft.begins(line.variant), *(f"{key}: {shown(a)} → {shown(b)}" for key, (a, b) in changes.items())]
        words = [", ".join(filter(None, said)) or "the others are held against it"]
    return Text().append(f"{name}: ", "bold").append(clean_line(". ".join(words)))


def plan_words(
    draft: StudyDraft,
    estimate: Estimate,
    palette: Palette,
    width: int,
    *,
    measuring: float | None,
    failed: str,
    started: bool,
) -> Text:
    """How many runs, how long, how much, and what to know before.

    `measuring` is the seconds since timing began, None if not timing; `failed` why the last timing gave nothing;
    `started` whether a study of this name was started already.
    """
    text = Text()
    count, seeds = len(draft.kept), len(draft.seeds)
    listed = ", ".join(map(str, draft.seeds)) if seeds <= MOST_SEEDS else f"{draft.seeds[0]} … {draft.seeds[-1]}"
    text.append(f"{count} variant{'s' * (count != 1)} × {seeds} seed{'s' * (seeds != 1)} ({listed})")
    text.append(clean_line(f", in stages {' → '.join(stage.name for stage in draft.stages)}") if draft.stages else "")
    text.append(" = ")
    text.append(f"{draft.runs:,} runs", "bold")
    left_out = len(draft.lines) - count
    text.append(f"   {left_out} left out\n" if left_out else "\n", palette.dim)
    text.append_text(_cost(estimate, palette, measuring))
    started_words = f"{draft.name} was started already: f5 goes on with it if it is the same; r renames this one"
    problems = [words for words in (failed, draft.problem) if words]
    warnings = [*([started_words] if started else []), *draft.warnings]
    for sign, colour, said in (("✗ ", palette.bad, problems), ("⚠ ", palette.warn, warnings)):
        for words in said:
            text.append(sign, colour).append("\n  ".join(wrap(clean_line(words), width - 2)) + "\n")
    text.rstrip()
    return text


def _cost(estimate: Estimate, palette: Palette, measuring: float | None) -> Text:
    text = Text()
    timing = "" if measuring is None else f"timing a step of every variant … {duration(measuring)}, m stops it"
    if estimate.seconds is None:
        text.append(timing or "time: m measures it", palette.accent if timing else palette.dim)
    else:
        text.append(f"≈ {about(estimate.seconds)}", "bold")
        text.append(f" on {clean_line(', '.join(estimate.devices))}" if estimate.devices else "")
        if estimate.measured:
            threads = f", {estimate.threads} thread{'s' * (estimate.threads > 1)} each" if estimate.threads else ""
            text.append(f", {estimate.at_once} at a time{threads}", palette.dim)
        else:
            text.append(" one after the other, from the design's measured step", palette.dim)
            text.append(
                f"; {timing}" if timing else "; m times every variant", palette.accent if timing else palette.dim
            )
    if estimate.disk is not None:
        text.append(" · ", palette.dim).append(memory(estimate.disk), "bold").append(" of disk")
    return text.append("\n")


def command_words(draft: StudyDraft, file: Path, options: list[str], palette: Palette) -> Text:
    if draft.study is None:
        return Text()
    command, saved = study_command(draft, file, options)
    text = Text("once saved (s): " if saved and not file.exists() else "", palette.dim)
    return text.append("$ ", palette.dim).append(clean_line(command), palette.calm)


def _figures(width: int) -> int:
    return PARAMETERS + TIME if width >= ROOMY else 0


def _cut(text: str, width: int) -> str:
    """As wide as that, with … where something is missing."""
    cut = Text(text)
    cut.truncate(max(0, width), overflow="ellipsis", pad=True)
    return cut.plain
