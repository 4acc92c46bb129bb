"""One Playground run: its model, and what it wrote, read or attended to.

Work on a text happens in the engine's thread, one task at a time; a new request cancels the last.
"""

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from rich.text import Text
from textual import message
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.widgets import Static

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.generation.output import AnswerToken, BeamResult, ScoredText
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writers import ModelWriter, WriterCache, checkpoint_stamps
from tui_transformer.lab.play.written import AttentionView, answer_probabilities_text, probability_level
from tui_transformer.studio.playground.likeliest import LIKELIEST
from tui_transformer.studio.playground.token_text import WEIGHTS, Token, TokenText
from tui_transformer.studio.shared.engine_thread import FAILURES, run_in_engine_thread
from tui_transformer.studio.shared.palette import Palette

BEST = 8  # answers of a beam search that are listed
OTHERS = 3  # other answers listed beside the one given
FAINT = 0.02  # share of a row's largest weight under which a token is not shaded
SLICE = 0.04  # seconds between updates of the text
PAUSE = 0.04  # pause after each, seconds: training in this process needs the GIL too


async def stream_batches(writer: ModelWriter, text: str, settings: Settings) -> AsyncIterator[list[AnswerToken]]:
    """Yield a model's output on a text: its first token at once, then a batch per time slice.

    It is generated in the engine's own thread, so that others get their turn.
    """
    source = writer.stream(text, settings, 0, LIKELIEST)
    seconds = 0.0
    while True:
        some, more = await run_in_engine_thread(lambda seconds=seconds: _next_batch_and_has_more(source, seconds))  # type: ignore[misc]
        if some:
            yield some
        if not more:
            return
        if seconds:
            await asyncio.sleep(PAUSE)
        seconds = SLICE


def _next_batch_and_has_more(source: Iterator[AnswerToken], seconds: float) -> tuple[list[AnswerToken], bool]:
    """At least one piece, plus what comes in so many seconds; and whether there is more."""
    until, some = time.monotonic() + seconds, []
    for piece in source:
        some.append(piece)
        if time.monotonic() >= until:
            return some, True
    return some, False


async def _beam_search(writer: ModelWriter, text: str, settings: Settings) -> tuple[BeamResult, ...]:
    """Return what a beam search finds; when this is cancelled, the search ends as well."""
    over = threading.Event()

    def between() -> None:
        if over.is_set():
            raise InputError(Message("stopped"))

    try:
        return await run_in_engine_thread(lambda: writer.search(text, settings, between))
    finally:
        over.set()


def _ranked_lines(found: Sequence[BeamResult]) -> list[str]:
    """The best answers with their scores, and how many more there are."""
    more = len(found) - BEST
    lines = [f"{one.score:8.3f}  {' '.join(one.text.split())}" for one in found[:BEST]]
    return [*lines, tr("and {n} more", n=more)] if more > 0 else lines


class RunColumn(Vertical):
    @dataclass
    class Changed(message.Message):
        column: "RunColumn"
        loaded: bool = False

    @dataclass
    class TitleClicked(message.Message):
        column: "RunColumn"

    def __init__(self, writers: WriterCache, *, id: str) -> None:
        super().__init__(id=id)
        self.writers = writers
        self.run_path: Path | None = None
        self.checkpoint = "best"
        self.writer: ModelWriter | None = None
        self.target_language = ""  # the language that was chosen, of several
        self.prompts: tuple[str, ...] = ()  # some to try
        self.mode = "write"  # or surprise, attention
        self.prompt_text = ""
        self.answer_tokens: list[AnswerToken] = []
        self.scored_text: ScoredText | None = None
        self.attention: AttentionView | None = None
        self.writing = False
        self._files: tuple[object, ...] = ()
        self._heading, self._status = Static("", classes="run-name"), Static("", classes="run-words")
        self.text = TokenText()

    def compose(self) -> ComposeResult:
        yield self._heading
        yield self.text
        yield self._status

    # Its model

    def load_run(self, run: Path, which: str = "") -> None:
        """Take a run, `which` as on the command line; "" is a training run's newest checkpoint, else the best.

        Another run's output is cleared.
        """
        self.target_language = self.target_language if run == self.run_path else ""
        self.run_path, self.checkpoint, self.writer = run, which, None
        self.clear_output()
        self._show_title()
        self._start_work(self._load)

    async def _load(self) -> None:
        run = self.run_path
        assert run is not None
        if not self.checkpoint:
            live = await asyncio.to_thread(lambda: RunReader(run).state in LIVE_STATES)
            self.checkpoint = "last" if live else "best"
        torch = "torch" in sys.modules
        self._show_title()
        said = (
            tr("loading the model of {name} @{checkpoint} …")
            if torch
            else tr("loading the engine, then the model of {name} @{checkpoint} …")
        )
        self._show_status(said.format(name=run.name, checkpoint=self.checkpoint))
        self._files = await asyncio.to_thread(checkpoint_stamps, run)
        await self._load_writer()
        self._show_status("")

    async def _load_writer(self) -> None:
        run, which = self.run_path, self.checkpoint
        assert run is not None
        writer = await run_in_engine_thread(lambda: self.writers.get(run, which))
        if self.target_language:
            writer.set_target(self.target_language)
        first, self.writer = self.writer is None, writer
        if first:
            self.prompts = await run_in_engine_thread(writer.prompts)
        self._show_title()
        self.post_message(self.Changed(self, loaded=first))

    def set_target(self, language: str) -> None:
        """Translate to this language from now on, with newer checkpoints too."""
        self._loaded_writer().set_target(language)
        self.target_language = language

    async def load_newer_checkpoint(self) -> None:
        """Take a checkpoint that training has saved since, unless busy."""
        if self.run_path is None or self.busy or not self._files:
            return
        files = await asyncio.to_thread(checkpoint_stamps, self.run_path)
        if files != self._files and not self.busy:
            self._start_work(self._load_if_changed)

    async def _load_if_changed(self) -> None:
        if self.run_path is None:
            return
        if self.writer is None:
            await self._load()
            return
        files = await asyncio.to_thread(checkpoint_stamps, self.run_path)
        if files != self._files:
            self._files = files
            await self._load_writer()

    @property
    def busy(self) -> bool:
        return any(one.group == "work" and one.node is self and not one.is_finished for one in self.workers)

    def _start_work(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task in place of the last one; show failures."""
        self.stop()

        async def guarded() -> None:
            try:
                await work()
            except FAILURES as error:
                self.writing = False
                self._show_status(str(error) or type(error).__name__, "wrong")
                self.post_message(self.Changed(self))

        self.run_worker(guarded(), group="work", exclusive=True, exit_on_error=False)

    # What it does to a text

    def show_prompt(self, text: str) -> None:
        self.text.show([Token(character, "given") for character in text])

    def write_answer(self, text: str, settings: Settings, keep: Sequence[AnswerToken] = ()) -> None:
        """Generate from a text, followed by `keep`, already written."""
        settings, kept = dict(settings), list(keep)

        async def work() -> None:
            await self._load_if_changed()
            writer = self._loaded_writer()
            self.mode, self.prompt_text, self.answer_tokens, self.writing = "write", text, kept, True
            self.scored_text, self.attention = None, None
            self.text.move_cursor(None)
            self.text.show(self._shown_tokens(), follow=True)
            self._show_status(tr("writing … (esc: stop)"))
            self.post_message(self.Changed(self))
            settings["length"] = max(1, int(settings["length"]) - len(kept))
            begun = monotonic()
            before = text + "".join(piece.text for piece in kept)
            found: tuple[BeamResult, ...] = ()
            if writer.beam_settings and max(settings.get("beam", 1), settings.get("nbest", 1)) > 1:
                found = await _beam_search(writer, text, settings)
                self.answer_tokens = list(found[0].tokens)
                self.text.append_tokens([_display_token(piece) for piece in self.answer_tokens])
            else:
                async for some in stream_batches(writer, before, settings):
                    self.answer_tokens += some
                    self.text.append_tokens([_display_token(piece) for piece in some])
            self.writing = False
            self._move_cursor_to_most_surprising()
            seconds = max(1e-3, monotonic() - begun)
            ask = lambda: writer.answer_and_likeliest_others(before, self.answer_text, OTHERS)
            wholes = await run_in_engine_thread(ask) if writer.ranks_answers else ()
            done = trn(
                "{n:,} token in {seconds:.1f} s, step {step:,}, seed {settings}",
                "{n:,} tokens in {seconds:.1f} s, step {step:,}, seed {settings}",
                len(self.answer_tokens),
                step=writer.step,
                seconds=seconds,
                settings=settings["seed"],
            )
            if found:
                done = trn(
                    "{n:,} token in {seconds:.1f} s, step {step:,}, beam {beam}",
                    "{n:,} tokens in {seconds:.1f} s, step {step:,}, beam {beam}",
                    len(self.answer_tokens),
                    step=writer.step,
                    seconds=seconds,
                    beam=settings["beam"],
                )
            done = "\n".join([done, *_ranked_lines(found)]) if len(found) > 1 else done
            done = f"{answer_probabilities_text(wholes)}\n{done}" if wholes else done
            notice = writer.length_warning(before, settings)
            kind = "notice" if notice else "list" if len(found) > 1 else ""
            self._show_status(f"{done} · {notice}" if notice else done, kind)
            self.post_message(self.Changed(self))

        self._start_work(work)

    def _move_cursor_to_most_surprising(self) -> None:
        """Put the cursor on the most surprising token in view, unless it is already somewhere."""
        pieces = enumerate(self.answer_tokens, self.lead_length)
        known = [(one.nats, at) for at, one in pieces if one.nats is not None and self.text.is_token_visible(at)]
        if self.text.cursor is None and known:
            self.text.cursor = max(known)[1]
            self.text.refresh()

    def stop(self) -> bool:
        was, self.writing = self.writing, False
        if was:
            self.workers.cancel_group(self, "work")
            self._show_status(trn("stopped after {n:,} token", "stopped after {n:,} tokens", len(self.answer_tokens)))
            self.post_message(self.Changed(self))
        return was

    def score_text(self, text: str, notice: str = "") -> None:
        """Score a text token by token; `notice` is a caveat on the numbers."""

        async def work() -> None:
            writer = self._loaded_writer()
            self.mode, self.scored_text = "surprise", None
            self._show_status("reading …")
            try:
                found = await run_in_engine_thread(lambda: writer.surprise(text, LIKELIEST))
            except FAILURES:
                self.show_prompt(text)
                raise
            self.scored_text = found
            self.text.move_cursor(None)
            self.text.show(self._shown_tokens())
            self._show_status(f"{found.summary}\n{notice or found.rule}", "notice" if notice else "")
            self.post_message(self.Changed(self))

        self._start_work(work)

    def show_attention(self, text: str, written: str, layer: int, head: int, which: str) -> None:
        async def work() -> None:
            writer = self._loaded_writer()
            self.mode = "attention"
            try:
                looks = await run_in_engine_thread(lambda: writer.attention(text, written, layer, head, which))
            except FAILURES:
                self.attention = None
                self.show_prompt(text + written)
                raise
            kept = self.text.cursor if self.attention is not None and self.attention.queries == looks.queries else None
            self.attention = looks
            at = len(self._shown_tokens()) - 1 if kept is None else kept
            self.text.cursor = at
            self.text.show(self._shown_tokens())
            self.text.move_cursor(at)
            left = len(text + written) - len(looks.queries) if which == "self" and writer.continues else 0
            cut = tr("the last {n} tokens: the model's whole context", n=len(looks.queries))
            self._show_status(cut if left > 0 else "")
            self.post_message(self.Changed(self))

        self._start_work(work)

    def _loaded_writer(self) -> ModelWriter:
        if self.writer is None:
            name = self.run_path.name if self.run_path else "–"
            raise InputError(Message("{name}: no model is loaded", name=name))
        return self.writer

    # What is shown

    def clear_output(self) -> None:
        self.stop()
        self.mode, self.prompt_text, self.answer_tokens, self.scored_text, self.attention = "write", "", [], None, None
        self.text.show([])

    def show_answer(self) -> None:
        self.mode = "write"
        self.text.show(self._shown_tokens())
        if self.answer_tokens:
            self._show_status(trn("{n:,} token", "{n:,} tokens", len(self.answer_tokens)))

    def redraw_attention(self) -> None:
        if self.mode == "attention" and self.attention is not None:
            self.text.show(self._shown_tokens())

    @property
    def answer_text(self) -> str:
        return "".join(piece.text for piece in self.answer_tokens)

    @property
    def full_text(self) -> str:
        """The answer, after its prompt if it continues that."""
        continues = self.writer is not None and self.writer.continues
        return self.prompt_text + self.answer_text if continues else self.answer_text or self.prompt_text

    @property
    def lead_length(self) -> int:
        """Tokens shown before those that can be asked about."""
        if self.mode == "attention":
            return len(self.attention.keys) + 1 if self.attention is not None and self.attention.is_cross else 0
        if self.mode == "surprise":
            return len(self.scored_text.source) + 1 if self.scored_text is not None and self.scored_text.source else 0
        continues = self.writer is not None and self.writer.continues
        return len(self.prompt_text) + (0 if continues or not self.prompt_text else 1)

    @property
    def inspectable_tokens(self) -> Sequence[AnswerToken]:
        scored = self.scored_text if self.mode == "surprise" else None
        return scored.tokens if scored is not None else self.answer_tokens

    @property
    def cursor_index(self) -> int | None:
        """The index in `inspectable_tokens` of the token under the cursor."""
        cursor = self.text.cursor
        return None if cursor is None or cursor < self.lead_length else cursor - self.lead_length

    def _shown_tokens(self) -> list[Token]:
        if self.mode == "attention":
            return self._attention_tokens()
        scored = self.scored_text if self.mode == "surprise" else None
        source = scored.source if scored is not None else self.prompt_text
        given = [Token(one, "given") for one in source]
        gap = [Token("\n", "given")] * (self.lead_length - len(given))
        return [*given, *gap, *map(_display_token, self.inspectable_tokens)]

    def _attention_tokens(self) -> list[Token]:
        looks = self.attention
        if looks is None:
            return []
        cursor = self.text.cursor
        row = max(0, (len(looks.queries) + self.lead_length - 1 if cursor is None else cursor) - self.lead_length)
        row = min(row, len(looks.queries) - 1)
        weights, seen = looks.weights[row].tolist(), looks.visible[row].tolist()
        largest = max(weights) or 1.0
        shades = [max(1, round(w / largest * WEIGHTS)) if w / largest > FAINT else 0 for w in weights]
        cells = zip(looks.keys, shades, seen, strict=True)
        keys = [Token(text, f"w{shade}" if let else "unseen") for text, shade, let in cells]
        if not looks.is_cross:
            return keys
        return [*keys, Token("\n", "given"), *(Token(text, "p0") for text in looks.queries)]

    def _show_title(self) -> None:
        run, writer = self.run_path, self.writer
        palette = Palette.from_app(self.app)
        words = Text(no_wrap=True, overflow="ellipsis")
        if run is not None:
            words.append(clean_line(run.name), "bold").append(f"  @{self.checkpoint}", palette.dim)
            words.append(tr("  step {step:,}", step=writer.step) if writer is not None else "", palette.dim)
        self._heading.update(words)
        self.border_title = words

    def _show_status(self, words: str, style: str = "") -> None:
        shown = "\n".join(clean_line(line) for line in words.split("\n"))
        self._status.update(Text(shown))
        self._status.set_class(style == "wrong", "-wrong")
        self._status.set_class(style == "notice", "-notice")
        self._status.set_class(style == "list", "-list")

    def on_click(self, event: Click) -> None:
        if event.widget is self._heading or (event.widget is self and event.y == 0):
            self.post_message(self.TitleClicked(self))


def _display_token(piece: AnswerToken) -> Token:
    return Token(piece.text, "given" if piece.probability is None else f"p{probability_level(piece.probability)}")
