"""A run in words and numbers: the lines above its charts, and its machine's gauges below."""

from collections.abc import Callable, Sequence
from datetime import datetime

from rich.cells import cell_len
from textual.content import Content
from textual.events import MouseMove
from textual.widgets import Static

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr, trn
from engine.runs.lineage import chain_text
from engine.runs.reader import WAITING_FOR_SPACE
from tui_transformer.lab.analysis.chart_lines import curve_of
from tui_transformer.lab.formatting import BARS, DOT, fit_to_width, memory, si_number
from tui_transformer.lab.records.badges import badge, explain, mark_if_seen
from tui_transformer.lab.records.run_lines import run_time_left_text, speed_text, step_text, time_left_text
from tui_transformer.lab.records.run_states import phase_text, run_state
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.lab.records.study_row import TIMING, StudyRow
from tui_transformer.studio.shared.name_line import NameSpans, name_at
from tui_transformer.studio.shared.run_states import next_steps_text, notice

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
BEHIND = 1e-3  # seconds that a rank is behind, shown from here on


class RunHeader(Static):
    def __init__(self) -> None:
        super().__init__("", id="run-header")
        self._shown: Content | None = None
        self._shown_run: tuple[RunRow, RunView | None, str] | StudyRow | None = None
        self._badge_spans: NameSpans = []  # of the badges

    def on_mouse_move(self, event: MouseMove) -> None:
        at = event.get_content_offset(self)
        name = name_at(event, self, self._badge_spans) if at is not None and at.y == 0 else None
        self.tooltip = Content(explain([name])) if name is not None else None

    def show(self, row: RunRow, view: RunView | None, pending: str) -> None:
        """Show a run and its pending command; redraw only if the text changes."""
        self._shown_run = row, view, pending
        width = max(30, self.content_size.width)
        first, self._badge_spans = _first_line(row, view, pending, width)
        lines = [first, _progress_line(row.share, run_state(row.state).style, _progress_facts(row, view), width)]
        if view is not None and view.origin is not None:
            origin = tr("from {shown}", shown=view.origin.label)
            chain = f"{chain_text(view.origin, row.name)}, {origin}" if view.origin.before is not None else origin
            lineage = clean_line(chain if cell_len(clean_line(chain)) <= width else origin)
            lines.append(Content.styled(fit_to_width(lineage, width).rstrip(), COLOURS["dim"]))
        said = notice(row, view)
        words = [part for line in said.text.splitlines() for part in wrap_facts(clean_line(line), width)]
        lines += [Content.styled(line, COLOURS[said.style]) for line in words]
        if following := next_steps_text(row, width):
            lines.append(Content.styled(following, "$accent"))
        if view is not None and view.problems:
            damaged = tr("damaged: {files}", files=comma_separated(view.problems))
            lines.append(Content.styled(damaged, COLOURS["warning"]))
        self._update_lines(lines)

    def show_study(self, study: StudyRow) -> None:
        self._shown_run, self._badge_spans = study, []
        width = max(30, self.content_size.width)
        state = run_state(study.state)
        said = f"{state.sign} {tr(study.state)}"
        first = _title_line(study.name, _study_counts(study), [(said, COLOURS[state.style])], width)
        parts = [f"{study.share:.0%}", trn("{done} of {n} run", "{done} of {n} runs", study.total, done=study.finished)]
        forms = [parts]
        if study.eta is not None:
            forms = [[*parts, time_left_text(study.eta, local_time())], [*parts, time_left_text(study.eta)]]
        lines = [first, _progress_line(study.share, state.style, forms, width)]
        if study.is_remote or study.waits_for:
            words = wrap_facts(clean_line(DOT.join(_worker_facts(study))), width)
            lines += [Content.styled(line, COLOURS["dim"]) for line in words]
        failed = [run.study.variant + f".s{run.study.seed}" for run in study.runs if run.state in ("failed", "lost")]
        if failed:
            more = tr(" and {n} more", n=len(failed) - 3) if len(failed) > 3 else ""
            text = tr("failed: {runs}{more}", runs=comma_separated(failed[:3]), more=more)
            lines.append(Content.styled(clean_line(text), COLOURS["error"]))
        keys = tr("space pauses all of its runs, s stops them") if study.live else tr("r resumes its unfinished runs")
        if study.state == "finished":
            keys = tr("next: 3 compare its variants")
        keys = tr("{keys} · enter lists its runs", keys=keys)
        if study.state == TIMING:
            keys = tr("timing one step of each variant; the runs start after that")
        lines.append(Content.styled(keys, COLOURS["dim"]))
        self._update_lines(lines)

    def _update_lines(self, lines: list[Content]) -> None:
        shown = Content("\n").join(lines)
        if self._shown is None or not shown.is_same(self._shown):
            self._shown = shown
            self.update(shown)

    def on_resize(self) -> None:
        if isinstance(self._shown_run, StudyRow):
            self.show_study(self._shown_run)
        elif self._shown_run is not None:
            self.show(*self._shown_run)


def wrap_facts(line: str, width: int) -> list[str]:
    """A line of facts in as many lines as it takes, broken between two facts where that is possible."""
    lines: list[str] = []
    for fact in line.split(DOT):
        longer = f"{lines[-1]}{DOT}{fact}" if lines else fact
        lines = [*lines[:-1], longer] if cell_len(longer) <= width else [*lines, fact]
    return lines


def _title_line(name: str, facts: Sequence[str], right: Sequence[tuple[str, str]], width: int) -> Content:
    """Name and facts at the left, styled parts at the right; facts are dropped first if space is short."""
    end = Content.assemble(*right)
    facts, name, room = list(facts), clean_line(name), width - end.cell_length - 2
    while facts and cell_len(DOT.join((name, *facts))) > room:
        facts.pop()
    name = fit_to_width(name, max(2, room - cell_len(DOT.join(("", *facts))))).rstrip()
    line = Content.assemble((name, "bold"), *((DOT + fact, "$foreground 75%") for fact in facts))
    return Content.assemble(line, " " * max(1, width - line.cell_length - end.cell_length), end)


def _first_line(row: RunRow, view: RunView | None, pending: str, width: int) -> tuple[Content, NameSpans]:
    """A run's name, facts, badges and state, and the columns of each badge."""
    style = run_state(row.state)
    words = tr(row.state)
    waits = row.state == "paused" and row.phase == WAITING_FOR_SPACE
    if waits or (row.state == "running" and row.phase not in ("", "training")):
        words = phase_text(row.phase)
    state = f"{style.sign} {clean_line(pending or words)}"
    badges = [
        (
            clean_line(mark_if_seen(badge(n).word, seen=n in row.seen)) + "  ",
            COLOURS["dim"] if n in row.seen else ALARMS[badge(n).severity],
        )
        for n in row.badges
    ]
    facts = [clean_line(view.corpus)] if view is not None and view.corpus else []
    if view is not None and view.parameters:
        facts.append(tr("{n} parameters", n=si_number(view.parameters)))
    if row.device:
        facts.append(f"{row.ranks} × {clean_line(row.device)}" if row.ranks > 1 else clean_line(row.device))
    right = [*badges, (state, "$warning bold" if pending else COLOURS[style.style])]
    line = _title_line(row.name, facts, right, width)
    places, start = [], line.cell_length - sum(cell_len(text) for text, _ in right)
    for name, (text, _) in zip(row.badges, badges, strict=True):
        places.append((start, start + cell_len(text), name))
        start += cell_len(text)
    return line, places


def _progress_facts(row: RunRow, view: RunView | None) -> list[list[str]]:
    """How far a run is, in full, and in shorter forms for less room."""
    share, step, facts = f"{row.share:.0%}", step_text(row.step, row.steps), list[str]()
    if view is None or not row.live:
        return [[share, step]]
    if speed := speed_text(view.newest):
        facts.append(speed)
    if row.slowest is not None and row.behind is not None and row.behind >= BEHIND:
        facts.append(tr("rank {rank} is {seconds:.0f} ms behind", rank=row.slowest, seconds=1000 * row.behind))
    short = f"{row.step:,} / {row.steps:,}"
    if row.state != "running":
        return [[share, step, *facts], [share, short, *facts]]
    left, brief = (run_time_left_text(row.step, row.steps, view.eta, now) for now in (local_time(), None))
    return [[share, step, *facts, left], [share, short, *facts, left], [share, short, *facts, brief]]


def local_time() -> datetime:
    """The time of day where the machine is."""
    return datetime.now().astimezone()


def _progress_line(share: float, style: str, forms: Sequence[list[str]], width: int) -> Content:
    """A progress bar, and at its right the first form that fits; of the last one, what fits besides the share."""

    def fits(facts: list[str]) -> bool:
        return cell_len(DOT.join(facts)) + LEAST_BAR + 2 <= width

    facts = next(filter(fits, forms), forms[-1])
    while len(facts) > 1 and not fits(facts):
        facts = [facts[0], *facts[2:]]
    text = DOT.join(facts)
    room = max(LEAST_BAR, width - cell_len(text) - 2)
    colour = {"bad": "$error", "good": "$success", "paused": "$warning"}.get(style, "$accent")
    return Content.assemble(*_bar_segments(share, room, colour), f"  {text}")


def _bar_segments(share: float, room: int, colour: str) -> tuple[tuple[str, str], tuple[str, str]]:
    full = max(0.0, min(1.0, share)) * room
    done = "━" * int(full) + ("╸" if full % 1 >= 0.5 and int(full) < room else "")
    return (done, colour), ("─" * (room - len(done)), "$foreground 30%")


def _worker_facts(study: StudyRow) -> list[str]:
    """`3 workers: node1 cuda:0, node2 cpu × 2`, what waits for them, and their pace."""
    where = [f"{host} {device} × {n}" if n > 1 else f"{host} {device}" for (host, device), n in study.workers.items()]
    workers, rest = sum(study.workers.values()), study.unclaimed
    facts = [trn("{n} worker: {where}", "{n} workers: {where}", workers, where=comma_separated(where))] if where else []
    facts += [trn("{n:,} run waiting for a worker", "{n:,} runs waiting for a worker", rest)] if rest > 0 else []
    facts += [tr("workers queued in Slurm: {why}", why=study.waits_for)] if study.waits_for else []
    return [*facts, *([tr("{n:.3g} runs an hour", n=study.per_hour)] if study.per_hour is not None else [])]


def _study_counts(study: StudyRow) -> list[str]:
    if not study.runs:
        return []
    variants, seeds = ({getattr(run.study, key) for run in study.runs} for key in ("variant", "seed"))
    counts = trn("{n} variant", "{n} variants", len(variants)), trn("{n} seed", "{n} seeds", len(seeds))
    said = " × ".join(counts)
    return [tr("{counts} so far", counts=said) if len(study.runs) < study.total else said]


GAP, MARK = 2, "◆"
LEAST_PICTURE = 7  # columns of a gauge beside its words
ROOMY = 88  # least columns for all gauges in one row
MACHINE = "cpu"  # a device whose memory is the machine's
ABOUT = Message(
    "learning rate: over the whole run; {mark} marks the current step\ngradient norm: over recent "
    "steps, before clipping\nprocess memory: on a CPU, everything the process holds, including "
    "PyTorch itself; Design estimates what the model and its activations add",
    mark=MARK,
)


class Gauges(Static):
    """What the run does now, against what there is: its schedule, its gradients, the processor, the memory."""

    def __init__(self) -> None:
        super().__init__("", id="gauges")
        self.tooltip = tr(ABOUT)
        self._shown_run: tuple[RunRow, RunView] | None = None
        self._shown_key: object = None

    def show(self, row: RunRow, view: RunView | None) -> None:
        """Show a run's gauges; redraw only for a new record."""
        seen = (row.path, row.device, row.step, None if view is None else view.version, self.content_size)
        if seen != self._shown_key:
            self._shown_key = seen
            self._shown_run = (row, view) if view is not None else None
            self.on_resize()

    def on_resize(self) -> None:
        width = self.content_size.width
        if self._shown_run is None or self._shown_run[1].newest is None or width < 20:
            self.update("")
            return
        row, view = self._shown_run
        each = (width - GAP * 3) // 4 if width >= ROOMY else (width - GAP) // 2
        words = each if width >= ROOMY else each - LEAST_PICTURE
        made = [
            gauge(row, view, words) for gauge in (_learning_rate_gauge, _gradient_gauge, _load_gauge, _memory_gauge)
        ]
        if width >= ROOMY:
            lines = [_side_by_side([label for label, _ in made], each)]
            lines += [_side_by_side([picture(each) for _, picture in made], each)]
        else:  # each on one line, two by two
            cells = [
                Content.assemble(label, " ", picture(max(0, each - label.cell_length - 1))) for label, picture in made
            ]
            lines = [_side_by_side(cells[:2], each), _side_by_side(cells[2:], each)]
        self.update(Content("\n").join(lines))


GaugePicture = Callable[[int], Content]  # in so many columns


def _label(name: str, value: str) -> Content:
    return Content.assemble((name, "$foreground 65%"), " ", (value, "bold"))


def _side_by_side(cells: list[Content], cell_width: int) -> Content:
    padded = [Content.assemble(cell, " " * max(0, cell_width - cell.cell_length)) for cell in cells]
    return Content(" " * GAP).join(padded)


def _bars(values: Sequence[float], high: float) -> str:
    return "".join(BARS[round(min(1.0, max(0.0, value / high)) * (len(BARS) - 1))] for value in values)


def _learning_rate_gauge(row: RunRow, view: RunView, width: int) -> tuple[Content, GaugePicture]:
    """The learning rate over the whole run, with a mark where it is now."""

    def picture(room: int) -> Content:
        high = max(view.rates, default=0.0)
        if room < 4 or not high > 0:
            return Content("")
        bars = _bars([view.rates[i * len(view.rates) // room] for i in range(room)], high)
        at = min(room - 1, int(row.share * room))
        return Content.assemble(
            (bars[:at], "$primary 70%"), (MARK, "$accent bold"), (bars[at + 1 :], "$foreground 30%")
        )

    now = view.newest.lr if view.newest is not None else None
    return _label(tr("learning rate") if width >= 22 else tr("lr"), "–" if now is None else f"{now:.2g}"), picture


def _gradient_gauge(row: RunRow, view: RunView, width: int) -> tuple[Content, GaugePicture]:
    """The gradient's norm lately, as bars from zero."""

    def picture(room: int) -> Content:
        values = curve_of(view.train[-room:] if room > 0 else (), "step", "grad_norm").y
        high = max(values, default=0.0)
        return Content.styled(_bars(values, high) if high > 0 else "", "$primary 70%")

    now = view.newest.grad_norm if view.newest is not None else None
    return _label(tr("gradient norm") if width >= 22 else tr("grad"), "–" if now is None else f"{now:.3g}"), picture


def _load_gauge(row: RunRow, view: RunView, width: int) -> tuple[Content, GaugePicture]:
    """How busy the device is, of 100 %."""
    now = view.newest.device_load if view.newest is not None else None
    name = "CPU" if row.device.startswith(MACHINE) or not row.device else "GPU"
    return _label(name, "–" if now is None else f"{now:.0%}"), _share_picture(now, "$primary")


def _memory_gauge(row: RunRow, view: RunView, width: int) -> tuple[Content, GaugePicture]:
    """What is in use, of what the machine has; a GPU's total is not recorded."""
    now = view.newest.memory_bytes if view.newest is not None else None
    total = view.memory_total if row.device.startswith(MACHINE) else None
    value = "–" if now is None else memory(now)
    if total and width >= 24:
        value = tr("{used} of {total}", used=value, total=memory(total))
    share = now / total if now and total else None
    colour = "$error" if share and share > 0.95 else "$warning" if share and share > 0.8 else "$primary"
    process = row.device.startswith(MACHINE)  # all of it; Design says what the model and its activations take
    if process:
        whose = tr("process memory") if width >= 32 else tr("process")
    else:
        whose = tr("memory") if width >= 24 else tr("mem")
    return _label(whose, value), _share_picture(share, colour)


def _share_picture(share: float | None, colour: str) -> GaugePicture:
    if share is None:
        return lambda room: Content("")
    return lambda room: Content.assemble(*_bar_segments(share, room, colour)) if room >= 4 else Content("")
