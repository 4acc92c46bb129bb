"""Playground: write with a trained run; see its alternatives, what surprises it, and where it looks.

One or two runs share a prompt and seed. Models are loaded and run in the engine's thread; sampling has its own
generators, so concurrent training stays bit-identical.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.generation.output import AnswerToken
from engine.runs.reader import RunReader
from tui_transformer.lab.play.prompt import PLAYING, SEARCH, WRITING, CommandPrompt, Settings
from tui_transformer.lab.play.writers import WriterCache, best_or_newest_run
from tui_transformer.lab.records.feed import Feed
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.studio.playground.attention_map import AttentionMap
from tui_transformer.studio.playground.column import RunColumn
from tui_transformer.studio.playground.likeliest import TokenAlternatives
from tui_transformer.studio.playground.lines import Controls, PromptLine, example_line, mode_line
from tui_transformer.studio.playground.surprises import Surprises, rank_by_surprise
from tui_transformer.studio.playground.token_text import TokenText
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextScreen
from tui_transformer.studio.shared.keys import PANE_BINDINGS
from tui_transformer.studio.shared.messages import notify
from tui_transformer.studio.shared.name_line import NameLine
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.panel import panel
from tui_transformer.studio.shared.words import CachedText, empty_pane_text

WIDE = 150  # least screen columns for details beside the text
FIRST_KEYS = 0.1  # seconds for the pane and the first keys, before loading competes with them
REST = 0.35  # idle seconds of a control before the answer is rewritten
NEWER = 2.0  # seconds between looks for runs and newer checkpoints
NOBODY = "none"
EACH_ITS_OWN = Message(
    "the two runs read different texts, so these numbers are not comparable; use /surprise "
    "TEXT to give both the same text"
)
HELD = Message("esc, then arrow keys: inspect a token and its alternatives")
LOADING = Message("you can type now; the model writes once it has loaded")


class PlaygroundPane(Vertical):
    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["playground"]]

    def __init__(self, *, runs_dir: Path, device: str = "auto", keys_heard: Callable[[], int] = lambda: 0) -> None:
        """`keys_heard` counts the keys typed so far, wherever they went."""
        super().__init__(id="playground")
        self.runs_dir, self._keys_heard = runs_dir, keys_heard
        writers = WriterCache(device)
        self._first, self._second = panel(RunColumn(writers, id="first")), panel(RunColumn(writers, id="second"))
        self._active = self._first
        modes = lambda width: mode_line(self._mode, Palette.from_app(self.app), width)
        self._controls, self._modes = Controls(), NameLine(modes, self.action_mode, id="modes")
        tries = lambda width: example_line(self._first.prompts, Palette.from_app(self.app), width)
        self._tries = NameLine(tries, self._submit_in_write_mode, id="tries")
        self._likeliest = panel(TokenAlternatives(), tr("Alternatives"))
        self._map = panel(AttentionMap(), tr("Attention"))
        self._surprises, self._nothing = panel(Surprises(), tr("Most surprising")), CachedText(id="nothing")
        # The available runs
        self._feed = Feed(runs_dir)
        self._rows: tuple[RunRow, ...] = ()
        self._looking = self._has_polled = False
        self._run_question: tuple[RunColumn, ChoiceDialog[Path | str]] | None = None  # the last question
        self._shown_key_count = 0  # key count when the pane was shown, or found to have no run
        # What they are asked
        self._mode: str = "write"  # or surprise, attention
        self._layer, self._head, self._kind = 1, 1, "self"
        self._user_settings: dict[Path | None, Settings] = {}  # settings made by hand, per run
        self._held = ""  # a line waiting for its model to load
        self._rewrite_timer: Timer | None = None
        self._surprised: int | None = None  # the last surprising token jumped to
        self.session = CommandPrompt(
            {"temperature": 0.8, "top_k": 40, "top_p": 1.0, "seed": 1, "length": 200},
            self.write_answers,
            {
                "alternatives": self.action_surprising,
                "surprise": self._show_surprise,
                "attention": self._show_attention,
                "run": lambda name: self._load_named_run(self._first, name),
                "vs": lambda name: self._load_named_run(self._second, name),
                "checkpoint": self._load_checkpoint_in_all_columns,
                "to": self._set_target,
                "examples": lambda _: self._show_examples(),
                "copy": lambda _: self.action_copy_answer(),
                "history": lambda _: self._show_history(),
                "help": lambda _: self._show_help(),
            },
            place="pane",
            show_reply=self._notify_setting,
            remark=lambda words: notify(self, words),
            show_error=lambda words: notify(self, words, "warning"),
        )
        self._line = panel(PromptLine(self.session), tr("Prompt"))

    def compose(self) -> ComposeResult:
        with panel(Vertical(id="settings"), tr("Settings")):
            yield self._controls
            yield self._modes
        with Container(id="parts"):
            with Container(id="run-columns"):
                yield self._first
                yield self._second
            with Vertical(id="detail"):
                yield self._likeliest
                yield self._surprises
                yield self._map
        yield self._tries
        yield self._line
        yield self._nothing

    def on_mount(self) -> None:
        self._line.placeholder = tr(LOADING)
        self._show_settings()
        self.watch(self.app, "theme", self._redraw, init=False)
        self._activate(self._first)
        self.set_interval(NEWER, self._poll_runs_and_checkpoints)

    # The runs: found automatically, requested, named; one, or a second beside it

    @property
    def columns_with_run(self) -> list[RunColumn]:
        return [column for column in (self._first, self._second) if column.run_path is not None]

    def choose(self, run: Path, vs: Path | None = None) -> None:
        self._load_run(self._first, run)
        self._load_run(self._second, vs)

    def _load_run(self, column: RunColumn, run: Path | None) -> None:
        if column is self._first and run is not None:
            self.remove_class("-empty")
            self.refresh_bindings()
            column.load_run(run)
            if self._held:  # typed before a run was found
                column.show_prompt(self._held)
        elif run is not None:
            self.add_class("-two")
            column.load_run(run)
        else:
            self.remove_class("-two")
            column.run_path, column.writer = None, None
            column.clear_output()
            self._show_settings()
            self._activate(self._first)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, if there is no run to write with; only choosing one stays possible."""
        first = (action, parameters) == ("choose", ("first",))
        return None if self.has_class("-empty") and not first else True

    def focus_first(self) -> None:
        self.screen.set_focus(self if self.has_class("-empty") else self._line)  # now: the next keys are for it
        self._shown_key_count = self._keys_heard()
        self.run_worker(self._poll_later(), group="look")

    async def _poll_later(self) -> None:
        await asyncio.sleep(FIRST_KEYS)
        await self._poll_runs_and_checkpoints()

    async def _poll_runs_and_checkpoints(self) -> None:
        """Find runs while there is none; else take newer checkpoints."""
        if not self.display or self._looking:
            return
        self._looking = True
        try:
            self._rows = (await asyncio.to_thread(self._feed.poll, full=False)).rows
        finally:
            self._looking = False
        self._has_polled = True
        if self._run_question is not None:
            column, question = self._run_question
            question.show(self._run_choices(column))
        if self.columns_with_run:
            for column in self.columns_with_run:
                await column.load_newer_checkpoint()
            return
        found = await asyncio.to_thread(best_or_newest_run, self._rows)
        if self.columns_with_run:  # chosen by hand meanwhile
            return
        if found is None:
            self._show_empty()
            return
        self._load_run(self._first, found)
        # Leave the focus alone if keys were pressed meanwhile.
        if self.has_focus and self._shown_key_count == self._keys_heard():
            self.screen.set_focus(self._line)

    def _show_empty(self) -> None:
        if not self.has_class("-empty"):
            self._shown_key_count = self._keys_heard()
            if self._line.has_focus:
                self.screen.set_focus(self)
            self.add_class("-empty")
            self.refresh_bindings()
        hint = tr("Runs in {runs_dir} appear here automatically.", runs_dir=self.runs_dir)
        words = empty_pane_text(tr("Nothing has been trained yet"), hint)
        if self._rows:
            words = Text(justify="center").append(tr("No run has a checkpoint yet\n\n"), "bold")
            words.append(tr("A run saves its first checkpoint as it starts.\n\n"))
            words.append(hint, "dim")
        self._nothing.show(words)

    def on_run_column_title_clicked(self, event: RunColumn.TitleClicked) -> None:
        self.action_choose(event.column.id)

    @work
    async def action_choose(self, id: str | None) -> None:
        """Ask at once; runs found meanwhile become choices."""
        column = self._first if id == "first" else self._second
        title = tr("Run") if column is self._first else tr("Compare with")
        question: ChoiceDialog[Path | str] = ChoiceDialog(title, self._run_choices(column), at=column.run_path)
        self._run_question = column, question
        self.run_worker(self._poll_runs_and_checkpoints(), group="look")
        run = await self.app.push_screen_wait(question)
        self._run_question = None
        if isinstance(run, Path):
            self._load_run(column, run)
        elif run is not None and column is self._second:
            self._load_run(column, None)

    def _run_choices(self, column: RunColumn) -> list[Answer[Path | str]]:
        answers: list[Answer[Path | str]] = [Answer(NOBODY, tr("none"))] if column is self._second else []
        if not self._has_polled:
            return [*answers, Answer("", tr("reading the runs …"), tr("one moment"))]
        for row in self._rows:
            parts = [row.name, tr(row.state), tr("step {step:,}", step=row.step)]
            if row.loss is not None:
                said = tr("loss {loss:.3f}") if row.scored else tr("train loss {loss:.3f}")
                parts.append(said.format(loss=row.loss))
            why_not = "" if row.last_checkpoint_step is not None else tr("no checkpoint yet")
            answers.append(Answer(row.path, " · ".join(parts), why_not))
        return answers

    def _load_named_run(self, column: RunColumn, name: str) -> None:
        async def find() -> None:
            try:
                found = await asyncio.to_thread(RunReader.resolve, name.strip(), self.runs_dir)
            except InputError as error:
                notify(self, str(error), "warning")
            else:
                self._load_run(column, found.path)

        if column is self._second and not name.strip():
            self._load_run(column, None)
        else:
            self.run_worker(find(), group="ask", exclusive=True)

    def _load_checkpoint_in_all_columns(self, which: str) -> None:
        if not which.strip():
            raise InputError(Message("/checkpoint: give best, last or a step"))
        asked = self._first.prompt_text if self._mode == "write" else ""
        for column in self.columns_with_run:
            assert column.run_path is not None
            column.load_run(column.run_path, which.strip())
        self._held = self._held or asked

    def _set_target(self, language: str) -> None:
        for column in self.columns_with_run:
            if column.writer is not None:
                column.set_target(language)
        if self._mode == "write" and self._first.prompt_text:
            self.write_answers(self._first.prompt_text)

    def action_turn_checkpoint(self) -> None:
        self._load_checkpoint_in_all_columns("best" if self._first.checkpoint == "last" else "last")

    def _activate(self, column: RunColumn) -> None:
        self._active = column
        for one in (self._first, self._second):
            one.set_class(one is column and self.has_class("-two"), "-active")

    # Prompts

    def on_prompt_line_line_submitted(self, event: PromptLine.LineSubmitted) -> None:
        if event.line.startswith("/") or self._first.writer is not None:
            self._handle_line(event.line)
            return
        self._held = event.line
        self._first.show_prompt(event.line)
        if self._first.run_path is not None and not self._first.busy:  # the last attempt failed
            self._first.load_run(self._first.run_path, self._first.checkpoint)

    def _handle_line(self, line: str) -> None:
        made: Settings = {}
        if line.startswith("/") or self._mode == "write":
            made = self.session.handle_line(line)
        else:
            self.session.history.append(line)
            self._show_analysis(line)
        self._add_user_settings(made)
        if made.keys() & SEARCH.keys() and self._mode == "write" and self._first.prompt_text:
            self.write_answers(self._first.prompt_text)

    def _notify_setting(self, words: str) -> None:
        """Say a setting, unless the controls show it."""
        if words.split(" ")[0] in SEARCH:
            notify(self, words)

    def _add_user_settings(self, made: Settings) -> None:
        self._user_settings.setdefault(self._first.run_path, {}).update(made)
        self._show_settings()

    def _submit_in_write_mode(self, text: str) -> None:
        """Ask for a text as if it had been typed, even one that begins with a slash."""
        self._set_mode("write")
        self.session.history.append(text)
        self.write_answers(text)

    def on_prompt_line_escaped(self, event: PromptLine.Escaped) -> None:
        if not self.action_stop_writing():
            self.screen.set_focus(self._active.text)

    def _settings_for(self, column: RunColumn) -> Settings:
        """The settings of a model's answer: those made by hand, else its own, beam settings as well."""
        by_hand = self._user_settings.get(self._first.run_path, {})
        settings = {name: value for name, value in self.session.settings.items() if name not in SEARCH}
        own = {} if column is self._first or column.writer is None else column.writer.defaults
        return settings | own | by_hand

    def _show_settings(self) -> None:
        self._controls.show(
            self.session.settings, self._settings_for(self._second) if len(self.columns_with_run) > 1 else {}
        )

    def write_answers(self, text: str) -> None:
        self._set_mode("write")
        for column in self.columns_with_run:
            column.write_answer(text, self._settings_for(column))

    def on_controls_changed(self, event: Controls.Changed) -> None:
        self.session.settings[event.setting] = event.value
        self._add_user_settings({event.setting: event.value})
        if self._rewrite_timer is not None:
            self._rewrite_timer.stop()
        if self._mode == "write" and self._first.prompt_text:
            self._rewrite_timer = self.set_timer(REST, lambda: self.write_answers(self._first.prompt_text))

    def action_again(self) -> None:
        self._handle_line("/again")

    def action_stop_writing(self) -> bool:
        stopped = [column.stop() for column in self.columns_with_run]
        return any(stopped)

    def action_prompt(self) -> None:
        self.screen.set_focus(self._line)

    def action_command(self) -> None:
        self.screen.set_focus(self._line)
        self._line.value = "/"
        self._line.cursor_position = 1

    def action_copy_answer(self) -> None:
        if not self._active.full_text:
            notify(self, tr("there is nothing to copy yet"), "warning")
            return
        self.app.copy_to_clipboard(self._active.full_text)
        notify(self, tr("copied to the clipboard (if your terminal allows it)"))

    def _show_help(self) -> None:
        self.app.push_screen(TextScreen(tr("Commands at the prompt"), Text(self.session.help)))

    def _show_history(self) -> None:
        asked = list(dict.fromkeys(reversed(self.session.history)))
        if not asked:
            raise InputError(Message("/history: there are no prompts yet"))
        self._choose_prompt(tr("Prompts so far"), asked)

    def _show_examples(self) -> None:
        if not self._first.prompts:
            raise InputError(Message("/examples: this run has no prompts to try yet"))
        self._choose_prompt(tr("Prompts to try"), self._first.prompts)

    def _choose_prompt(self, title: str, prompts: Sequence[str]) -> None:
        take = lambda text: None if text is None else self._submit_in_write_mode(text)
        self.app.push_screen(ChoiceDialog(title, [Answer(text, text) for text in prompts]), take)

    # Looking

    def action_mode(self, mode: str) -> None:
        self._set_mode(mode)
        if mode == "write":
            for column in self.columns_with_run:
                column.show_answer()
        else:
            self._show_analysis()
        self._show_detail()
        if self._active.text.tokens:
            self.screen.set_focus(self._active.text)

    def _set_mode(self, mode: str) -> None:
        self._mode = mode
        self.set_class(mode == "attention", "-attention")
        self._modes.refresh()

    def _show_analysis(self, text: str | None = None) -> None:
        """Show surprise or attention for a text, or else for each run's output."""
        if text is not None:
            for column in self.columns_with_run:
                column.prompt_text, column.answer_tokens = text, []
        columns = [column for column in self.columns_with_run if column.prompt_text]
        notice = tr(EACH_ITS_OWN) if len({column.full_text for column in columns}) > 1 else ""
        for column in columns:
            if self._mode == "surprise":
                column.score_text(column.full_text, notice)
            else:
                column.show_attention(column.prompt_text, column.answer_text, self._layer, self._head, self._kind)

    def _show_surprise(self, text: str) -> None:
        if not text:
            raise InputError(Message("/surprise: needs some text, e.g. /surprise to be or not"))
        self._set_mode("surprise")
        self._show_analysis(text)

    def _show_attention(self, argument: str) -> None:
        parts = argument.split()
        if len(parts) not in (2, 3) or not all(part.isdecimal() and len(part) < 6 for part in parts[:2]):
            raise InputError(Message("/attention: give a layer and a head, counted from 1, e.g. /attention 2 1"))
        self._layer, self._head = int(parts[0]), int(parts[1])
        self._kind = parts[2] if len(parts) > 2 else self._kind
        self.action_mode("attention")

    def action_turn_kind(self) -> None:
        writer = self._active.writer
        if writer is not None:
            kinds = writer.attention_kinds
            self._kind = kinds[(kinds.index(self._kind) + 1) % len(kinds)] if self._kind in kinds else kinds[0]
            self.action_mode("attention")

    def action_turn(self, layers: int, heads: int) -> None:
        """Move on by this many layers and heads; from another mode, return to the attention shown last."""
        writer = self._active.writer
        if writer is None:
            return
        if self._kind not in writer.attention_kinds:
            self._kind = "self"
        if self._mode == "attention":
            all_layers, all_heads = writer.attention_layer_and_head_counts(self._kind)
            self._layer = (self._layer - 1 + layers) % all_layers + 1
            self._head = (self._head - 1 + heads) % all_heads + 1
        self.action_mode("attention")

    def action_surprising(self, argument: str = "") -> None:
        """Go to the next most surprising token, or the one at a given rank."""
        column = self._active
        places = rank_by_surprise(column.inspectable_tokens)
        if not places or column.mode == "attention":
            notify(self, tr("nothing to inspect yet; type a prompt first"), "warning")
            return
        place = argument.strip()
        wanted = int(place) - 1 if place.isdecimal() and len(place) < 10 else None
        if wanted is None:
            at = column.cursor_index
            wanted = places.index(at) + 1 if at in places and at == self._surprised else 0
        self._move_cursor(places[wanted % len(places)])

    def on_surprises_chosen(self, event: Surprises.Chosen) -> None:
        event.stop()
        self._move_cursor(event.at)

    def _move_cursor(self, at: int) -> None:
        """Put the cursor on a token that can be asked about."""
        column = self._active
        column.text.move_cursor(at + column.lead_length)
        self._surprised = column.cursor_index
        self.screen.set_focus(column.text)
        self._show_detail()

    # Display

    def on_run_column_changed(self, event: RunColumn.Changed) -> None:
        column = event.column
        if event.loaded and column is self._first and column.writer is not None:
            by_hand = self._user_settings.setdefault(column.run_path, {}) | self._user_settings.pop(None, {})
            self._user_settings[column.run_path] = by_hand
            for name in SEARCH if not column.writer.beam_settings else ():
                self.session.settings.pop(name, None)  # of a model before it
            self.session.settings |= column.writer.defaults | column.writer.beam_settings | by_hand
            self.session.table = PLAYING if column.writer.beam_settings else WRITING
            self._line.suggest_commands()
        if event.loaded and column.writer is not None:
            self._show_settings()
            if column is self._first:
                self._line.placeholder = column.writer.invitation
                self._line.show_run(column.writer.name, column.prompts)
                self._tries.display = bool(column.prompts)
                self._tries.refresh()
            self._copy_prompt_to(column)
            if column is self._first and not self._held and not column.prompt_text and self._mode == "write":
                for prompt in column.prompts[:1]:
                    self._submit_in_write_mode(prompt)
        if column is self._first and self._held:
            held, self._held = self._held, ""
            if column.writer is not None:
                self._handle_line(held)
            elif not self._line.value:  # so that it can be sent again
                self._line.value = held
        self._show_detail()

    def _copy_prompt_to(self, column: RunColumn) -> None:
        """Give a run added beside another the text shown there."""
        other = self._second if column is self._first else self._first
        if column.prompt_text or column.busy or not other.prompt_text or other.writer is None:
            return
        if self._mode == "write":
            column.write_answer(other.prompt_text, self._settings_for(column))
        else:
            column.prompt_text = other.full_text if other.writer.continues else other.prompt_text
            self._show_analysis()

    def on_token_text_moved(self, event: TokenText.Moved) -> None:
        column = self._first if event.text is self._first.text else self._second
        self._activate(column)
        column.redraw_attention()
        self._show_detail()

    def on_descendant_focus(self) -> None:
        for column in self.columns_with_run:
            if column.text.has_focus:
                self._activate(column)
        self._show_detail()

    def _show_detail(self) -> None:
        column = self._active
        if self._mode == "attention":
            row = column.cursor_index if column.cursor_index is not None else 10**9
            self._map.show(column.attention, row, tr("type a prompt to see its attention"))
            return
        at = column.cursor_index
        tokens = column.inspectable_tokens
        piece: AnswerToken | None = tokens[at] if at is not None and at < len(tokens) else None
        takes = column.mode == "write" and column.writer is not None and column.writer.continues
        self._likeliest.show(piece, can_continue=takes, nothing=tr(HELD))
        self._surprises.show(column.inspectable_tokens, at)

    def on_token_alternatives_alternative_chosen(self, event: TokenAlternatives.AlternativeChosen) -> None:
        column, at = self._active, self._active.cursor_index
        if at is not None:
            one = event.alternative
            token = AnswerToken(one.text, one.probability, one.chance, column.answer_tokens[at].alternatives)
            column.write_answer(column.prompt_text, self._settings_for(column), [*column.answer_tokens[:at], token])

    def on_resize(self) -> None:
        self.set_class(self.app.size.width >= WIDE, "-wide")

    def _redraw(self) -> None:
        self._show_settings()
        self._modes.refresh()
        self._tries.refresh()
        self._show_detail()
