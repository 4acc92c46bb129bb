"""The lines over the charts: which run, what it does, how far it is, and what there is to know of its state."""

from textual.content import Content
from textual.widgets import Static

from engine.clean import clean_line
from engine.runs.lineage import drawn
from engine.runs.records import Origin
from tui_transformer.lab.formatting import duration, short
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.records.facts import number
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.lab.records.run_view import RunView
from tui_transformer.studio.shared.run_words import look, notice

COLOURS = {
    "live": "$accent bold",
    "paused": "$warning bold",
    "queued": "$foreground 70%",
    "good": "$success bold",
    "ended": "$foreground 80% bold",
    "bad": "$error bold",
    "dim": "$foreground 75%",
    "warning": "$warning",
    "error": "$error",
}
ALARMS = {"bad": "$error bold", "warn": "$warning bold"}  # style by severity of a badge
LEAST_BAR = 8


class RunHeader(Static):
    """Name and state, progress, and one sentence."""

    DEFAULT_CSS = """
    RunHeader { height: auto; max-height: 5; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("", id="run-header")
        self._shown: tuple[object, ...] = ()
        self._of: tuple[RunRow, RunView | None, str] | None = None

    def show(self, row: RunRow, view: RunView | None, pending: str) -> None:
        """Show a run; nothing is redrawn if it says the same."""
        self._of = row, view, pending
        width = max(30, self.content_size.width)
        lines = [_first(row, view, pending, width), _progress(row, view, width)]
        if view is not None and view.origin is not None:
            lines.append(Content.styled(_lineage(row, view.origin, width), COLOURS["dim"]))
        said = notice(row, view)
        if said.text:
            lines.append(Content.styled(clean_line(said.text), COLOURS[said.style]))
        if view is not None and view.problems:
            lines.append(Content.styled(f"damaged: {', '.join(view.problems)}", COLOURS["warning"]))
        shown = tuple(lines)
        if shown != self._shown:
            self._shown = shown
            self.update(Content("\n").join(lines))

    def on_resize(self) -> None:
        """The same at another width."""
        if self._of is not None:
            self.show(*self._of)


def _first(row: RunRow, view: RunView | None, pending: str, width: int) -> Content:
    seen = look(row.state)
    words = row.state if row.state != "running" or row.phase in ("", "training") else row.phase.replace("-", " ")
    state = f"{seen.sign} {clean_line(pending or words)}"
    badges = [(clean_line(name) + "  ", ALARMS[badge(name).severity]) for name in row.badges]
    facts = [clean_line(view.corpus)] if view is not None and view.corpus else []
    if view is not None and view.parameters:
        facts.append(f"{short(view.parameters)} parameters")
    if row.device:
        facts.append(clean_line(row.device))
    fixed = len(state) + sum(len(text) for text, _ in badges) + 2
    name = clean_line(row.name)
    while facts and len(name) + sum(len(fact) + 3 for fact in facts) + fixed > width:
        facts.pop()
    room = width - fixed - sum(len(fact) + 3 for fact in facts)
    if len(name) > room:
        name = name[: max(1, room - 1)] + "…"
    left = Content.assemble((name, "bold"), *((f" · {fact}", "$foreground 75%") for fact in facts))
    right = Content.assemble(*badges, (state, "$warning bold" if pending else COLOURS[seen.style]))
    return Content.assemble(left, " " * max(1, width - left.cell_length - right.cell_length), right)


def _lineage(row: RunRow, origin: Origin, width: int) -> str:
    """Where its first weights come from: the checkpoint, and where there were more runs before, the whole chain."""
    whole = f"{drawn(origin, row.name)}, from {origin.shown}" if origin.before is not None else ""
    said = [clean_line(text) for text in (whole, f"from {origin.shown}") if text]
    fits = next((text for text in said if len(text) <= width), said[-1])
    return fits if len(fits) <= width else fits[: width - 1] + "…"


def _progress(row: RunRow, view: RunView | None, width: int) -> Content:
    parts = [f"{row.share:.0%}", f"step {row.step:,} / {row.steps:,}"]
    if row.live and view is not None:
        speed = number((view.newest or {}).get("tokens_per_second"))
        if speed:
            parts.append(f"{short(speed).replace(' ', '')} tok/s")
        if row.state == "running":
            parts.append(_left(row, view))
    text = " · ".join(parts)
    if len(text) + LEAST_BAR + 2 > width and len(parts) > 2:
        text = " · ".join([parts[0], f"{row.step:,} / {row.steps:,}", *parts[2:]])
    while len(text) + LEAST_BAR + 2 > width and len(parts) > 1:
        parts.pop(1)
        text = " · ".join(parts)
    room = max(LEAST_BAR, width - len(text) - 2)
    full = row.share * room
    colour = {"bad": "$error", "good": "$success", "paused": "$warning"}.get(look(row.state).style, "$accent")
    done = "━" * int(full) + ("╸" if full % 1 >= 0.5 and int(full) < room else "")
    return Content.assemble((done, colour), ("━" * (room - len(done)), "$foreground 20%"), f"  {text}")


def _left(row: RunRow, view: RunView) -> str:
    if row.step >= row.steps:
        return "finishing"
    return f"{duration(view.eta)} left" if view.eta is not None else "warming up…"
