"""The third column: who may look at whom, what positions add, what it costs, what differs, how the corpus begins."""

import asyncio
import re
from dataclasses import dataclass, replace
from functools import partial

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.worker import Worker

from engine.capabilities import check
from engine.clean import clean_line
from engine.config.schema import RunConfig
from tui_transformer.lab.design.draft import Benchmark, Characters, Cost, Differences, Draft, shown
from tui_transformer.lab.formatting import duration, memory, short
from tui_transformer.lab.play.pictures import Canvas, mask_picture, position_picture, stacks
from tui_transformer.studio.design.corpus_preview import CorpusPreview
from tui_transformer.studio.shared.engine_thread import in_engine_thread
from tui_transformer.studio.shared.page import Page
from tui_transformer.studio.shared.palette import Palette

BESIDE_FROM, COLUMNS_FROM = 46, 88  # columns: two pictures side by side, two columns of words
GAP, FRAME = 2, 6
LEAST_LINES, MOST_LINES = 8, 30  # of a picture
WORDS, NARROW_WORDS = 18, 13  # lines of what stands under it
SHARES = {  # of the columns, that a mask gets: by (several of them, few columns)
    (False, False): 0.5,
    (False, True): 0.6,
    (True, False): 1 / 3,
    (True, True): 0.5,
}
BAR = 12  # columns of a component's bar
TABLE_FROM = 40  # columns from which on there is room for the table of components
EIGHTHS = " ▏▎▍▌▋▊▉█"
REST = 0.06  # seconds without a change before torch is asked
SHARE = re.compile(r"first [\d,]+ of [\d,]+")
PICTURED = tuple[str, int, Canvas]


@dataclass(frozen=True)
class DesignFacts:
    """All that is known of a draft besides itself."""

    benchmark: Benchmark | None = None
    measuring: float | None = None  # seconds since a measurement began; None if none is running
    failed: str = ""  # why the last one gave nothing
    corpus: CorpusPreview | None = None

    @property
    def characters(self) -> Characters | None:
        return self.corpus.characters if self.corpus else None


class Preview(VerticalScroll, can_focus=True):
    """What a draft looks like and comes to."""

    DEFAULT_CSS = """
    Preview { width: 1fr; height: 1fr; padding: 0 1; background: $background; border-left: vkey $panel;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable; scrollbar-color: $foreground 20%;
        scrollbar-background: $background; }
    Preview:focus { border-left: vkey $primary; }
    """

    def __init__(self) -> None:
        super().__init__(id="preview")
        self._draft: Draft | None = None
        self._facts = DesignFacts()
        self._positions: tuple[PICTURED, Text] | None = None
        self._asked: PICTURED | None = None

    def compose(self) -> ComposeResult:
        yield Page()

    def show(self, draft: Draft, facts: DesignFacts) -> None:
        self._draft, self._facts = draft, facts
        self.redraw()

    def on_resize(self, event: Resize) -> None:
        self.redraw()

    def redraw(self) -> None:
        """Draw everything that needs no torch, and ask for what does."""
        draft, width = self._draft, self.scrollable_content_region.width
        if draft is None or width < 16:
            return
        palette = Palette.of(self.app.theme_variables)
        pictures = self._pictures(draft.config, width, palette) if draft.config is not None else []
        words = [
            cost_words(draft, self._facts, palette, width),
            differences(draft, palette),
            components(draft, self._facts, palette, width),
            corpus_words(self._facts, palette, width if width < COLUMNS_FROM else width // 2),
        ]
        page = _page(pictures, words, width, wrong=bool(draft.problem))
        self.query_one(Page).show(page, width)

    # Pictures

    def _canvas(self, width: int) -> Canvas:
        """The room of a mask in so many columns: what the words under it leave, and no more than a square needs."""
        left = self.size.height - (WORDS if width < self.scrollable_content_region.width else NARROW_WORDS)
        lines = max(LEAST_LINES, min(left, MOST_LINES, (width - FRAME + 1) // 2))
        colour = self.app.console.color_system in ("256", "truecolor") and not self.app.no_color
        return Canvas(width, lines, colour)

    @property
    def settled(self) -> bool:
        """Whether nothing is still being drawn or read."""
        return self._positions is not None and self._positions[0] == self._asked and self._facts.corpus is not None

    def _pictures(self, config: RunConfig, width: int, palette: Palette) -> list[Table]:
        """Masks and positions, already arranged: what comes before the words, and perhaps after."""
        plans = stacks(config.model)
        brief, several = width < COLUMNS_FROM, len(plans) > 1
        share = 1.0 if width < BESIDE_FROM else SHARES[several, brief]
        room = int(width * share) - (GAP if share < 1 else 0)
        canvas = self._canvas(room - (room - FRAME) % 2)
        masks = [mask_picture(plan, canvas) for plan in plans]
        for mask in masks:
            mask.highlight_regex("[█▀▄]+", palette.calm)
        if check(config) is not None:  # a scheme may not even be made
            return [_row(masks[-1:], [width], palette, brief=brief)]
        narrower = canvas.width if several or share == 1.0 else width - canvas.width - GAP
        position = self._position(config, replace(canvas, width=narrower))
        if share == 1.0:  # the decoder's mask, the one that can leak, and the rest under the words
            return [_row([picture], [width], palette, brief=True) for picture in (masks[-1], position)]
        if several and brief:
            below = _row([position], [width], palette, brief=True)
            return [_row(masks, [canvas.width] * 2, palette, brief=True), below]
        return [_row([*masks, position], [*[canvas.width] * len(masks), narrower], palette, brief=brief)]

    def _position(self, config: RunConfig, canvas: Canvas) -> Text:
        """The picture of the positions, or that it is being made."""
        wanted = (config.model.model_dump_json(), config.seed, canvas)
        if self._positions is not None and self._positions[0] == wanted:
            return self._positions[1].copy()
        if self._asked != wanted:
            self._asked = wanted
            self.run_worker(self._draw(config, wanted), group="positions", exclusive=True)
        if self._positions is not None and self._positions[0][2] == canvas:
            return self._positions[1].copy()  # the one before, for the moment that the new one takes
        return Text(f"position {config.model.position}: loading the engine …")

    async def _draw(self, config: RunConfig, wanted: PICTURED) -> None:
        await asyncio.sleep(REST)
        plan = stacks(config.model)[-1]
        try:
            work = partial(position_picture, config.model, plan, config.seed, wanted[2])
            picture = await in_engine_thread(work)
        except (ImportError, OSError, RuntimeError, MemoryError, ValueError) as error:
            picture = Text(f"position {config.model.position}: cannot be drawn: {error}")
        if self._asked == wanted:
            self._positions = (wanted, picture)
            self.redraw()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Nothing above needs to hear of it."""
        event.stop()


def _row(pictures: list[Text], widths: list[int], palette: Palette, *, brief: bool) -> Table:
    """Pictures side by side, their words above them."""
    parts = [cut(picture) for picture in pictures]
    row = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for width in widths:
        row.add_column(width=width)
    row.add_row(*(heading(words, palette.dim, brief=brief) for words, _ in parts))
    row.add_row(*(body for _, body in parts))
    return row


def _page(pictures: list[Table], words: list[Text], width: int, *, wrong: bool) -> Table:
    """Pictures, words, and what did not find room at the top, one under the other; what is wrong comes first."""
    page = Table.grid(expand=True)
    page.add_column(ratio=1, overflow="fold")
    if wrong:
        page.add_row(words[0])
        words = [Text(), *words[1:]]
    for picture in pictures[:1]:
        page.add_row(picture)
        page.add_row("")
    if width >= COLUMNS_FROM:
        columns = Table.grid(expand=True, padding=(0, GAP, 0, 0))
        columns.add_column(ratio=1, overflow="fold")
        columns.add_column(ratio=1, overflow="fold")
        columns.add_row(_stacked(words[0::2]), _stacked(words[1::2]))
        page.add_row(columns)
    else:
        page.add_row(_stacked(words))
    for picture in pictures[1:]:
        page.add_row(picture)
    return page


def _stacked(words: list[Text]) -> Text:
    return Text("\n").join(text for text in words if text.plain)


def cut(picture: Text) -> tuple[list[Text], Text]:
    """A picture's lines of words, and the picture itself, which begins at its first indented line."""
    lines = list(picture.split("\n"))
    at = next((i for i, line in enumerate(lines) if line.plain.startswith("  ")), len(lines))
    return lines[:at], Text("\n", no_wrap=True).join(lines[at:])


def heading(words: list[Text], style: str, *, brief: bool) -> Text:
    """A picture's words; brief: what it is, and how much of it is drawn."""
    if brief and len(words) > 1:
        part = SHARE.search(words[-1].plain)
        words = [Text.assemble(words[-2], f", {part[0]}" if part else "")]
    dimmed = Text(style=style)
    return dimmed.append_text(Text("\n").join(words))


# In words


def cost_words(draft: Draft, facts: DesignFacts, palette: Palette, width: int) -> Text:
    """What it costs, whether it holds, and what is surely not meant."""
    if draft.problem:
        text = Text("✗ this cannot be trained\n", f"bold {palette.bad}".strip())
        return text.append(clean_line(draft.problem) + "\n")
    cost = draft.cost(facts.characters)
    text = Text()
    if cost is None:
        text.append("parameters: known once the corpus is read\n", palette.dim)
    else:
        most = ("at most " if width >= TABLE_FROM else "≤ ") if cost.vocabulary.at_most else ""
        text.append(most, palette.dim).append(f"{cost.parameters:,}", "bold").append(" parameters\n")
        text.append(f"{short(cost.flops, 'FLOP')}", "bold").append(
            " a token, forward and backward\n" if width >= TABLE_FROM else " a token\n"
        )
    text.append_text(_time_and_memory(cost, facts, palette, width))
    if facts.corpus is not None and facts.corpus.problem:
        text.append("✗ ", palette.bad).append(clean_line(facts.corpus.problem) + "\n")
    for found in draft.lints(facts.corpus.train_tokens if facts.corpus else None):
        text.append("⚠ ", palette.warn).append(clean_line(f"{found.key}: {found.text}") + "\n")
    return text


def _time_and_memory(cost: Cost | None, facts: DesignFacts, palette: Palette, width: int) -> Text:
    text, benchmark = Text(), facts.benchmark
    if benchmark is not None:
        text.append(memory(benchmark.memory), "bold").append(" of memory\n")
        text.append(benchmark.words + "\n", "bold")
        for verdict in benchmark.verdicts:
            sign, colour = ("✓ ", palette.good) if verdict.good else ("✗ ", palette.bad)
            text.append(sign, colour).append(clean_line(verdict.check), "" if verdict.good else "bold")
            text.append(clean_line(f": {verdict.why}") + "\n", palette.dim if verdict.good else "")
        return text
    if cost is not None:
        text.append(f"{'at most' if cost.at_most else 'about'} {memory(cost.memory)}", "bold").append(" of memory\n")
    if facts.measuring is not None:
        text.append(f"measuring … {duration(facts.measuring)}  ", palette.accent)
        text.append(" m ", "reverse").append(" stops it\n", palette.dim)
    elif facts.failed:
        text.append("✗ ", palette.bad).append(clean_line(facts.failed) + "\n")
    else:
        text.append(" m ", "reverse").append(
            " measures time and memory\n" if width >= TABLE_FROM else " measures the time\n", palette.dim
        )
    return text


def components(draft: Draft, facts: DesignFacts, palette: Palette, width: int) -> Text:
    """Parameters by component, where there is room for a table."""
    cost = draft.cost(facts.characters) if width >= TABLE_FROM else None
    text = Text()
    for name, count in cost.parts.items() if cost is not None else ():
        if count:
            share = count / max(1, cost.parameters) if cost else 0
            text.append(f"{name:<16}", palette.dim).append(f"{count:>14,}")
            full, part = divmod(round(share * BAR * 8), 8)
            bar = "█" * full + (EIGHTHS[part] if part else "")
            text.append(f" {share:>4.0%} ", palette.dim).append(f"{bar}\n", palette.calm)
    return text


def differences(draft: Draft, palette: Palette) -> Text:
    """What was changed in the preset, and what the preset itself changes."""
    text = Text()
    own = draft.against_preset()
    if own:
        text.append(f"changed in {clean_line(draft.name)}\n", "bold")
        _lines(text, own, palette, "● ")
    parent = {key: pair for key, pair in draft.against_parent().items() if key not in own}
    if parent and draft.parent:
        text.append(f"what {clean_line(draft.preset.name)} changes in {clean_line(draft.parent)}\n", "bold")
        _lines(text, parent, palette, "  ")
    return text


def _lines(text: Text, found: Differences, palette: Palette, mark: str) -> None:
    for key, (before, after) in found.items():
        text.append(mark, palette.accent).append(f"{key}: ", palette.dim)
        text.append(clean_line(shown(before))).append(" → ", palette.dim).append(
            clean_line(shown(after)) + "\n", "bold"
        )


def corpus_words(facts: DesignFacts, palette: Palette, width: int) -> Text:
    seen = facts.corpus
    if seen is None or seen.problem or not seen.lines:
        return Text()
    text = Text().append(_short(clean_line(seen.corpus)), "bold")
    rows = seen.train_rows or (f"{seen.train_pairs:,} pairs" if seen.train_pairs is not None else "")
    if rows:
        text.append(f", {rows} to train on\n", palette.dim)
        for at, line in enumerate(seen.lines):  # a source, then its target; a question, then its answer
            text.append(line[:width] + "\n") if at % 2 == 0 else text.append(f"  {line[: width - 2]}\n", palette.dim)
        return text
    text.append(f", {seen.train_tokens:,} characters to train on\n" if seen.train_tokens else "\n", palette.dim)
    for line in seen.lines:
        text.append(clean_line(line)[:width] + "\n", palette.dim)
    return text


def _short(corpus: str) -> str:
    """A name, or the ends of paths."""
    return ",".join(("…/" if "/" in part else "") + part.rsplit("/", 1)[-1] for part in corpus.split(","))
