"""Human-readable numbers, and texts and bars of an exact width."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.cells import cell_len, set_cell_size

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr

DOT = " · "  # between facts
BARS = "▁▂▃▄▅▆▇█"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DURATION = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?")
UNITS = (86_400, 3_600, 60, 1)  # seconds in each of its parts
EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")


def duration(seconds: float) -> str:
    """`0:48`, `12:05`, `3:20:00`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def parse_duration(text: str) -> float:
    """Read `0:48`, `12:05` or `3:20:00`, as `duration` writes them, or `90s`, `30m` or `3h50m`.

    Raises InputError for anything else, including zero.
    """
    parts, found = text.split(":"), DURATION.fullmatch(text)
    seconds = 0
    if len(parts) in (2, 3) and all(part.isdecimal() and len(part) < 6 for part in parts):
        seconds = sum(int(part) * 60**power for power, part in enumerate(reversed(parts)))
    elif found is not None:
        seconds = sum(int(part or 0) * unit for part, unit in zip(found.groups(), UNITS, strict=True))
    if not seconds:
        raise InputError(Message("'{text}' is not a duration; write e.g. 30m or 1h30m", text=text[:40]))
    return float(seconds)


def done_at(seconds: float, now: datetime) -> str:
    """`done at 14:32`, on another day `done Thu 09:10`, after a week `done 3 Dec 09:10`."""
    try:
        end = now + timedelta(seconds=seconds)
    except OverflowError:
        return ""
    days = (end.date() - now.date()).days
    if days < 1:
        return tr("done at {end:%H:%M}", end=end)
    return tr(
        "done {days} {end:%H:%M}",
        days=DAYS[end.weekday()] if days < 7 else f"{end.day} {MONTHS[end.month - 1]}",
        end=end,
    )


def rough_duration(seconds: float) -> str:
    """`50 s`, `4 min`, `3 h 20 min`, `5 days`: an estimate's precision."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return tr("{minutes} min", minutes=minutes)
    hours, rest = divmod(round(minutes, -1), 60)
    if hours < 48:
        return tr("{hours} h {rest} min", hours=hours, rest=rest) if rest else f"{hours} h"
    return tr("{hours} days", hours=round(hours / 24))


_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def si_number(value: float, unit: str = "") -> str:
    """`41.2 k`, `3.19 M`: three digits and a prefix."""
    for size, prefix in _STEPS:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def count(number: int, thing: str) -> str:
    """`1 step`, `2,000 steps`, for nouns whose plural ends in s."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def memory(n_bytes: float) -> str:
    """`61 MB`, `2.1 GB` (powers of 1000)."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def signed_per_cent(share: float) -> str:
    """`+5.6%`, signed unless it rounds to zero."""
    shown = f"{share:+.1%}" if abs(share) < 100 else f"{100 * share:+.2g}%"
    return "0.0%" if shown in ("-0.0%", "+0.0%") else shown


def sparkline(values: Sequence[float]) -> str:
    """Numbers as a row of bars, full at the largest."""
    low, high = min(values), max(values)
    spread = high - low or 1.0
    return "".join(BARS[round((value - low) / spread * (len(BARS) - 1))] for value in values)


def bar(share: float, room: int) -> str:
    """A share as a bar of up to so many columns, to 1/8 column."""
    full, rest = divmod(round(max(0.0, min(1.0, share)) * room * 8), 8)
    return "█" * full + EIGHTHS[rest]


def fit_to_width(text: str, width: int, *, right: bool = False) -> str:
    """Return a text exactly this wide; a longer one ends in an ellipsis."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    return " " * (width - size) + text if right else text + " " * (width - size)


def elide_middle(text: str, width: int) -> str:
    """Exactly this wide; a longer text loses its middle, because names differ at their ends."""
    if cell_len(text) <= width or width < 3:
        return fit_to_width(text, max(0, width))
    head = set_cell_size(text, (width - 1) // 3).rstrip()
    tail = text
    while cell_len(tail) > width - 1 - cell_len(head):
        tail = tail[1:]
    return set_cell_size(f"{head}…{tail}", width)


WIDEST_CLASS = 14  # columns of a class's name in a confusion table


def confusion_lines(classes: Sequence[str], counts: Sequence[Sequence[int]]) -> Iterator[str]:
    """A confusion table: a line per class, a column per class that its texts were put into."""
    names = [clean_line(name) for name in classes]
    head = min(WIDEST_CLASS, max(cell_len(name) for name in names))
    widths = [
        max(min(WIDEST_CLASS, cell_len(name)), *(len(f"{row[i]:,}") for row in counts)) for i, name in enumerate(names)
    ]
    cells = "  ".join(fit_to_width(name, width, right=True) for name, width in zip(names, widths, strict=True))
    yield f"{fit_to_width('', head)}  {cells}  {tr('right')}"
    for i, (name, row) in enumerate(zip(names, counts, strict=True)):
        cells = "  ".join(f"{n:{width},}" for n, width in zip(row, widths, strict=True))
        share = f"{row[i] / sum(row):.1%}" if sum(row) else ""
        yield f"{fit_to_width(name, head)}  {cells}  {share}"
