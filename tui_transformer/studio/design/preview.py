"""The third column: the attention mask, what positions add, the cost, the differences, the corpus's beginning."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.strip import Strip
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.command_line import command_line
from engine.base.language import language_code, tr, translate
from engine.capabilities import check
from engine.config.model import ModelConfig, active_parts
from engine.config.schema import RunConfig
from engine.data.corpus import CorpusPreview, VocabularySizes
from engine.model import size
from tui_transformer.lab.design.draft import Benchmark, Differences, Draft, format_value
from tui_transformer.lab.design.drawing import GUTTER, draw_network
from tui_transformer.lab.design.forecast import Forecast
from tui_transformer.lab.formatting import bar, duration, fit_to_width, memory, si_number
from tui_transformer.lab.play.pictures import KIND, PictureFormat, mask_picture, position_picture, stack_plans
from tui_transformer.lab.reports.languages import load_report_language
from tui_transformer.lab.work.plan import PROCESS
from tui_transformer.studio.design.launch_line import time_colour
from tui_transformer.studio.shared.engine_thread import run_in_engine_thread
from tui_transformer.studio.shared.keys import COMMAND_KEYS
from tui_transformer.studio.shared.palette import Palette

BESIDE_FROM, COLUMNS_FROM = 46, 88  # columns: two pictures side by side, two columns of words
GAP, FRAME = 2, 6
LEAST_LINES, MOST_LINES = 8, 30  # of a picture
WORDS, NARROW_WORDS = 18, 13  # lines below it
SHARES = {  # of the columns, a mask's share: by (several of them, few columns)
    (False, False): 0.5,
    (False, True): 0.6,
    (True, False): 1 / 3,
    (True, True): 0.5,
}
NETWORK, THREE_FROM = 40, 110  # columns of the drawn network, and from how many on it is beside the other pictures
SIGHTS = ("position", "attention", "window", "link", "rope", "layers", "context", "causal")  # in keys: seen in them
COMPONENT = 16  # columns of a component's name
BAR = 12  # columns of a component's bar
CORPUS_LINES = 10  # shown of the corpus; more where there is room
TABLE_FROM = 40  # least columns for the table of components
REST = 0.06  # idle seconds before torch is asked
LONGEST_WORDS = (110, 80)  # characters above a picture, so that these always take as many lines
WRAP_CONSOLE = Console()  # needed by `Text.wrap`
PICTURED = tuple[str, int, PictureFormat]


@dataclass(frozen=True)
class Download:
    """A corpus that is not on this machine, and can be fetched."""

    corpus: str
    most: int  # bytes
    seconds: float | None = None  # since it began; None if it is not under way
    done_bytes: int = 0  # bytes
    failure: str = ""  # why the last try failed

    def describe(self, palette: Palette) -> Text:
        text = Text()
        text.append("✗ ", palette.bad).append(tr("{corpus} is not on this machine\n", corpus=clean_line(self.corpus)))
        if self.seconds is not None:
            text.append(
                tr(
                    "downloading … {duration}, {done:.1f} MB  ",
                    duration=duration(self.seconds),
                    done=self.done_bytes / 1e6,
                ),
                palette.accent,
            )
            return text.append(f" {COMMAND_KEYS['download']} ", "reverse").append(tr(" cancels\n"), palette.dim)
        if self.failure:
            text.append("✗ ", palette.bad).append(clean_line(self.failure) + "\n")
        again = tr("downloads it (at most {memory})", memory=memory(self.most))
        if self.failure:
            command = command_line("data", "fetch", self.corpus)
            again = tr("tries again; `{command_line}` explains what to do offline", command_line=command)
        return text.append(f" {COMMAND_KEYS['download']} ", "reverse").append(f" {again}\n", palette.dim)


@dataclass(frozen=True)
class DesignFacts:
    benchmark: Benchmark | None = None
    measuring: float | None = None  # seconds since measuring began; None if none is running
    activity: str = ""  # what it does now
    failure: str = ""  # why the last one failed
    corpus: CorpusPreview | None = None
    forecast: Forecast | None = None
    run_name: str = ""  # what f5 would call its run
    download: Download | None = None  # of its corpus, where that is missing

    @property
    def characters(self) -> VocabularySizes | None:
        return self.corpus.characters if self.corpus else None


class Page(Widget):
    """Drawn once, at full height: Textual would rerender a Rich table to measure it, and for every part."""

    def __init__(self) -> None:
        super().__init__(id="page")
        self._lines: list[Strip] = []

    def render_strips(self, renderable: RenderableType, width: int) -> list[Strip]:
        console = self.app.console
        lines = console.render_lines(renderable, console.options.update(width=width, height=None), pad=True)
        return [Strip([Segment(s.text, s.style) for s in line], width) for line in lines]

    def show(self, lines: list[Strip]) -> None:
        if lines == self._lines:
            return
        self._lines = lines
        if self.styles.height is None or self.styles.height.value != len(lines):
            self.styles.height = len(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        return self._lines[y].adjust_cell_length(self.size.width).apply_style(self.rich_style)


class Preview(VerticalScroll, can_focus=True):
    def __init__(self) -> None:
        super().__init__(id="preview")
        self._draft: Draft | None = None
        self._facts = DesignFacts()
        self._page = Page()
        self._sights = False  # whether the masks and positions come first
        self._positions: tuple[PICTURED, Text] | None = None
        self._requested_picture: PICTURED | None = None

    def compose(self) -> ComposeResult:
        yield self._page

    def show(self, draft: Draft, facts: DesignFacts) -> None:
        self._draft, self._facts = draft, facts
        self.redraw()

    def prioritise_picture(self, key: str) -> None:
        """Where there is no room for all, show first the picture that a setting changes."""
        sights = any(word in key for word in SIGHTS)
        if sights != self._sights:
            self._sights = sights
            self.redraw()

    def on_resize(self, event: Resize) -> None:
        self.redraw()

    def redraw(self) -> None:
        """Draw what needs no torch, and request what does."""
        draft, width = self._draft, self.scrollable_content_region.width
        if draft is None or width < 16:
            return
        palette = Palette.from_app(self.app)
        pictures = self._pictures(draft, draft.config, width, palette) if draft.config is not None else []
        words = [
            cost_text(draft, self._facts, palette, width),
            differences_text(draft, palette),
            parameter_counts_text(draft, self._facts, palette, width),
        ]

        def drawn(lines: int) -> list[Strip]:
            corpus = corpus_text(self._facts, palette, width if width < COLUMNS_FROM else width // 2, lines)
            cost_first = bool(draft.problem) or width < BESIDE_FROM
            made = _page_table(pictures, [*words, corpus], width, cost_first=cost_first)
            return self._page.render_strips(made, width)

        page = drawn(CORPUS_LINES)
        free = (self.scrollable_content_region.height - len(page)) // 2 * 2  # whole pairs
        if free > 0 and self._facts.corpus is not None and len(self._facts.corpus.lines) > CORPUS_LINES:
            page = drawn(CORPUS_LINES + free)
        self._page.show(page)

    # Pictures

    def _pictures(self, draft: Draft, config: RunConfig, width: int, palette: Palette) -> list[Table]:
        """The network, masks and positions, laid out: what comes before the words, and after."""
        name, before = draft.reference
        if width >= THREE_FROM:
            first, *rest = self._scheme_pictures(config, width - NETWORK - GAP, palette)
            both = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
            both.add_column(width=NETWORK)
            both.add_column()
            both.add_row(network_drawing(config.model, before, name, NETWORK, palette), first)
            return [both, *rest]
        whole, sights = (
            network_drawing(config.model, before, name, width, palette),
            self._scheme_pictures(config, width, palette),
        )
        return [*sights, whole] if self._sights else [whole, *sights]

    def _scheme_pictures(self, config: RunConfig, width: int, palette: Palette) -> list[Table]:
        """Masks and positions, laid out: what comes before the words, and perhaps after."""
        plans = stack_plans(config.model)
        if len(plans) > 2:  # kinds of layers: there is room for one of each stack
            plans = list({plan.name: plan for plan in reversed(plans)}.values())[::-1]
        brief, several = width < COLUMNS_FROM, len(plans) > 1
        share = 1.0 if width < BESIDE_FROM else SHARES[several, brief]
        room = int(width * share) - (GAP if share < 1 else 0)
        # A mask's room: what the words under it leave, at most a square.
        columns = room - (room - FRAME) % 2
        left = self.size.height - (WORDS if columns < self.scrollable_content_region.width else NARROW_WORDS)
        lines = max(LEAST_LINES, min(left, MOST_LINES, (columns - FRAME + 1) // 2))
        colour = self.app.console.color_system in ("256", "truecolor") and not self.app.no_color
        canvas = PictureFormat(columns, lines, colour, brief)
        masks = [mask_picture(plan, canvas) for plan in plans]
        for mask in masks:
            mask.highlight_regex("[█▀▄]+", palette.calm)
        if check(config) is not None:  # a scheme may not even be constructible
            return [_picture_row(masks[-1:], [width], palette, brief=brief)]
        narrower = canvas.width if several or share == 1.0 else width - canvas.width - GAP
        position = self._position_picture_or_placeholder(config, replace(canvas, width=narrower))
        if share == 1.0:  # the decoder's mask, the one that can leak, and the rest under the words
            return [_picture_row([picture], [width], palette, brief=True) for picture in (masks[-1], position)]
        if several and brief:
            below = _picture_row([position], [width], palette, brief=True)
            return [_picture_row(masks, [canvas.width] * 2, palette, brief=True), below]
        return [_picture_row([*masks, position], [*[canvas.width] * len(masks), narrower], palette, brief=brief)]

    def _position_picture_or_placeholder(self, config: RunConfig, canvas: PictureFormat) -> Text:
        wanted = (config.model.model_dump_json(), config.seed, canvas)
        if self._positions is not None and self._positions[0] == wanted:
            return self._positions[1].copy()
        if self._requested_picture != wanted:
            self._requested_picture = wanted
            self.run_worker(self._draw_position(config, wanted), group="positions", exclusive=True)
        if self._positions is not None and self._positions[0][2] == canvas:
            return self._positions[1].copy()  # the previous one, until the new one is ready
        return Text(tr("position {position}: loading the engine …", position=config.model.position))

    async def _draw_position(self, config: RunConfig, wanted: PICTURED) -> None:
        await asyncio.sleep(REST)
        plan = stack_plans(config.model, KIND[1:])[-1]
        try:
            work = partial(position_picture, config.model, plan, config.seed, wanted[2])
            picture = await run_in_engine_thread(work)
        except (ImportError, OSError, RuntimeError, MemoryError, ValueError) as error:
            kind = config.model.position
            picture = Text(tr("position {position} cannot be drawn: {error}", position=kind, error=error))
        if self._requested_picture == wanted:
            self._positions = (wanted, picture)
            self.redraw()


def network_drawing(model: ModelConfig, before: RunConfig | None, name: str, width: int, palette: Palette) -> Table:
    """A network in text; what differs from the one before, which has this name, is lit."""
    stacks_ = draw_network(model, before.model if before is not None else None, min(width, NETWORK))
    beside = width >= len(stacks_) * (NETWORK - GAP) > NETWORK
    pictures = []
    differs = any(row.state for rows in stacks_ for row in rows)
    styles = {"new": f"bold {palette.accent}".strip(), "gone": f"strike {palette.dim}".strip(), "": ""}
    for rows in stacks_:
        picture = Text(no_wrap=True)
        for row in rows:
            style = styles[row.state]
            picture.append({"new": "●", "gone": "−", "": " "}[row.state], style.removeprefix("strike "))
            picture.append(f"{row.lines:<{GUTTER}}"[1:], style if row.state == "new" else palette.calm)
            picture.append(f"{row.words}\n", style)
        picture.rstrip()
        pictures.append(picture)
    made = Table.grid(padding=(0, GAP if beside else 0, 0, 0), pad_edge=False)
    legend = Text.assemble(("● ", palette.accent), (tr("differs from {name}", name=clean_line(name)), palette.dim))
    made.add_row(legend if differs else Text(tr("the network"), palette.dim))
    if beside:
        made.add_row(*pictures)
    else:
        for picture in pictures:
            made.add_row(picture)
    return made


def _picture_row(pictures: list[Text], widths: list[int], palette: Palette, *, brief: bool) -> Table:
    parts = [split_caption(picture) for picture in pictures]
    row = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for width in widths:
        row.add_column(width=width)
    lines = sum(-(-longest // max(1, min(widths))) for longest in LONGEST_WORDS[: 1 if brief else 2])
    heads = (wrapped_caption(words, width, lines, palette.dim) for (words, _), width in zip(parts, widths, strict=True))
    row.add_row(*heads)
    row.add_row(*(body for _, body in parts))
    return row


def _page_table(pictures: list[Table], words: list[Text], width: int, *, cost_first: bool) -> Table:
    page = Table.grid(expand=True)
    page.add_column(ratio=1, overflow="fold")
    if cost_first:
        page.add_row(words[0])
        words = [Text(), *words[1:]]
    for picture in pictures[:1]:
        page.add_row(picture)
        page.add_row("")
    if width >= COLUMNS_FROM:
        columns = Table.grid(expand=True, padding=(0, GAP, 0, 0))
        columns.add_column(ratio=1, overflow="fold")
        columns.add_column(ratio=1, overflow="fold")
        columns.add_row(_join_texts(words[0::2]), _join_texts(words[1::2]))
        page.add_row(columns)
    else:
        page.add_row(_join_texts(words))
    for picture in pictures[1:]:
        page.add_row(picture)
    return page


def _join_texts(words: list[Text]) -> Text:
    return Text("\n").join(text for text in words if text.plain)


def split_caption(picture: Text) -> tuple[list[Text], Text]:
    """Split a picture's lines of words from the picture, which begins at the first indented line."""
    lines = list(picture.split("\n"))
    at = next((i for i, line in enumerate(lines) if line.plain.startswith("  ")), len(lines))
    return lines[:at], Text("\n", no_wrap=True).join(lines[at:])


def wrapped_caption(words: list[Text], width: int, lines: int, style: str) -> Text:
    """A picture's words, wrapped to exactly so many lines: what is below stays where it is.

    Where there are too many, the last are kept: they say what its rows, columns and shades are.
    """
    above = [line for text in words[:-1] or words for line in text.wrap(WRAP_CONSOLE, width)]
    below = list(words[-1].wrap(WRAP_CONSOLE, width)) if len(words) > 1 else []
    room = max(1, lines - len(below))
    if len(above) > room:
        last = above[room - 1]
        last.rstrip()
        last.truncate(width - 1)
        above[room - 1 :] = [Text.assemble(last, "…")]
    wrapped = [*above, *below][:lines]
    return Text("\n", style=style).join([*wrapped, *[Text()] * (lines - len(wrapped))])


# In words


def cost_text(draft: Draft, facts: DesignFacts, palette: Palette, width: int) -> Text:
    if draft.problem:
        text = Text(tr("✗ this design cannot be trained\n"), f"bold {palette.bad}".strip())
        return text.append(clean_line(draft.problem) + "\n")
    cost = draft.cost(facts.characters)
    text = Text()
    if cost is None:
        text.append(tr("parameters: known once the corpus is read\n"), palette.dim)
    else:
        most = (tr("at most ") if width >= TABLE_FROM else "≤ ") if cost.vocabulary.at_most else ""
        text.append(most, palette.dim).append(f"{cost.parameters:,}", "bold").append(tr(" parameters\n"))
        text.append(f"{si_number(cost.flops, 'FLOP')}", "bold").append(
            tr(" per token, forward and backward\n") if width >= TABLE_FROM else tr(" per token\n")
        )
    benchmark = facts.benchmark
    device = benchmark.device if benchmark is not None else facts.forecast.device if facts.forecast is not None else ""
    # Train shows all that a process on a CPU holds.
    of_tensors = tr(" for model and activations")
    of_tensors += tr("; process overhead ≈ {memory}\n", memory=memory(PROCESS)) if device.startswith("cpu") else "\n"
    if benchmark is not None:
        text.append(memory(benchmark.memory_bytes), "bold").append(of_tensors)
        text.append(benchmark.description + "\n", "bold")
        for verdict in benchmark.verdicts:
            good = verdict.verdict == "ok"
            sign, colour = ("✓ ", palette.good) if good else ("✗ ", palette.bad)
            text.append(sign, colour).append(clean_line(verdict.check), "" if good else "bold")
            text.append(clean_line(tr(": {why}", why=verdict.why)) + "\n", palette.dim if good else "")
    elif cost is not None and width >= TABLE_FROM:  # else the line at the foot has to do
        most = tr("at most {size}") if cost.at_most else tr("about {size}")
        text.append(most.format(size=memory(cost.memory)), "bold").append(of_tensors)
    if benchmark is None and facts.forecast is not None and width >= TABLE_FROM:
        text.append(facts.forecast.time_text, f"bold {time_colour(facts.forecast, palette)}".strip())
        source = clean_line(facts.forecast.source)
        text.append(tr(" on {device}, {source}\n", device=facts.forecast.device, source=source), palette.dim)
    if benchmark is None and facts.measuring is not None:
        text.append(f"{facts.activity} … {duration(facts.measuring)}  ", palette.accent)
        text.append(f" {COMMAND_KEYS['fit']} ", "reverse").append(tr(" cancels\n"), palette.dim)
    elif benchmark is None and facts.failure:
        text.append("✗ ", palette.bad).append(clean_line(facts.failure) + "\n")
    elif benchmark is None:
        what = tr("time and memory") if width >= TABLE_FROM else tr("the time")
        text.append(f" {COMMAND_KEYS['fit']} ", "reverse").append(tr(" measures {what}\n", what=what), palette.dim)
    if facts.download is not None:
        text.append_text(facts.download.describe(palette))
    elif facts.corpus is not None and facts.corpus.problem:
        text.append("✗ ", palette.bad).append(clean_line(facts.corpus.problem) + "\n")
    if draft.preset_base is not None and draft.config is not None and not draft.differences_from_parent():
        why = no_difference_text(draft.parent or "", facts.run_name)
        text.append("⚠ ", palette.warn).append(clean_line(why) + "\n")
    for found in draft.lints(facts.corpus.train_tokens if facts.corpus else None):
        text.append("⚠ ", palette.warn).append(clean_line(tr(found.message)) + "\n")
    return text


def no_difference_text(parent: str, run: str) -> str:
    """What a design without a difference from its base is."""
    again = tr("a copy, {run}", run=run) if run and run != parent else tr("{parent} itself", parent=parent)
    return tr("the same settings as {parent}: f5 trains {again}", parent=parent, again=again)


def parameter_counts_text(draft: Draft, facts: DesignFacts, palette: Palette, width: int) -> Text:
    cost = draft.cost(facts.characters) if width >= TABLE_FROM else None
    text = Text()
    for name, count in cost.parts.items() if cost is not None else ():
        if count:
            name = _optional_parts_label(draft) if name == "parts" else name
            share = count / max(1, cost.parameters) if cost else 0
            term = translate(name, load_report_language(language_code()))
            text.append(fit_to_width(term, COMPONENT), palette.dim).append(f"{count:>14,}")
            text.append(f" {share:>4.0%} ", palette.dim).append(f"{bar(share, BAR)}\n", palette.calm)
    return text


def _optional_parts_label(draft: Draft) -> str:
    """The optional part that has parameters; a word for all if there are several."""
    assert draft.config is not None
    model = draft.config.model
    rows, stacks_ = active_parts(model).values(), size.stacks(model)
    found = [tr(row.label, **dict(model)) for row in rows if any(row.parameters(model, stack) for stack in stacks_)]
    return found[0] if len(found) == 1 and cell_len(found[0]) <= COMPONENT else tr("optional parts")


def differences_text(draft: Draft, palette: Palette) -> Text:
    text = Text()
    own = draft.differences_from_preset()
    if own:
        text.append(tr("changed in {name}\n", name=clean_line(draft.name)), "bold")
        _append_differences(text, own, palette, "● ")
    parent = {key: pair for key, pair in draft.differences_from_parent().items() if key not in own}
    if parent and draft.parent:
        name, base = clean_line(draft.preset.name), clean_line(draft.parent)
        text.append(tr("what {name} changes in {parent}\n", name=name, parent=base), "bold")
        _append_differences(text, parent, palette, "  ")
    return text


def _append_differences(text: Text, found: Differences, palette: Palette, mark: str) -> None:
    for key, (before, after) in found.items():
        text.append(mark, palette.accent).append(f"{key}: ", palette.dim)
        text.append(clean_line(format_value(before))).append(" → ", palette.dim)
        text.append(clean_line(format_value(after)) + "\n", "bold")


def corpus_text(facts: DesignFacts, palette: Palette, width: int, lines: int) -> Text:
    seen = facts.corpus
    if seen is None or seen.problem or not seen.lines:
        return Text()
    names = ("…/" * ("/" in part) + part.rsplit("/", 1)[-1] for part in clean_line(seen.corpus).split(","))
    text = Text().append(",".join(names), "bold")
    text.append(tr(", {size} to train on\n", size=seen.train) if seen.train else "\n", palette.dim)
    for at, line in enumerate(seen.lines[:lines]):  # in pairs: a source, then its target; a question, then its answer
        if seen.paired and at % 2 == 0:
            text.append(_truncated(line, width) + "\n")
        else:
            indent = "  " if seen.paired else ""
            text.append(f"{indent}{_truncated(line, width - len(indent))}\n", palette.dim)
    return text


def _truncated(line: str, width: int) -> str:
    return line if cell_len(line) <= width else set_cell_size(line, width)
