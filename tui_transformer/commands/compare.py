"""`compare`: runs side by side on stdout or in a file, as the studio's third pane shows and exports them."""

import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from engine.errors import InputError, one_of
from engine.runs.reader import RunReader
from tui_transformer.clean import clean_line
from tui_transformer.columns import print_columns
from tui_transformer.comparison.columns import Column, columns
from tui_transformer.comparison.comparable import unit_of
from tui_transformer.comparison.entry import Entry, read_entry
from tui_transformer.comparison.export import FORMATS, save
from tui_transformer.comparison.folder import Folder
from tui_transformer.comparison.order import sort
from tui_transformer.comparison.query import Known, parse
from tui_transformer.comparison.table import table
from tui_transformer.output import emit, is_terminal, say, stdout

GAP = 2  # columns between two


def compare_command(
    runs: Sequence[str],
    *,
    query: str,
    sort_by: str,
    baseline: str,
    all_settings: bool,
    written_as: Sequence[str],
    out: Path | None,
    runs_dir: Path,
) -> int:
    """Compare runs.

    Args:
        runs: those meant; all of the folder if there are none. The first of several is the baseline.
        query: a filter; "" lets all through.
        sort_by: a column, the other way round with a `-` before it; "" leaves them as they come.
        baseline: another run that differences are to.
        all_settings: every setting, not only those that differ.
        written_as: at most one key of `FORMATS`.
        out: a file instead of stdout.
        runs_dir: where runs are.

    Raises:
        InputError: no such run, a filter or column that is none, two formats, a file that cannot be written.
    """
    if len(written_as) > 1:
        raise InputError(f"one format at a time, not --{' and --'.join(written_as)}")
    kind = next(iter(written_as), "") or _by_ending(out)
    named = [read_entry(RunReader.resolve(run, runs_dir).path) for run in dict.fromkeys(runs)]
    entries: Sequence[Entry] = named or _all(runs_dir)
    pinned = read_entry(RunReader.resolve(baseline, runs_dir).path) if baseline else None
    if pinned is None and len(named) > 1:
        pinned = named[0]
    if not entries:
        say(f"there is no run in {runs_dir} yet; `tui-transformer run --preset demo` makes one")
        return 0
    filtered = parse(query, entries)
    shown = filtered(entries, pinned)
    order, reverse = _order(sort_by, entries)
    shown = sort(shown, order, pinned, reverse=reverse)
    if not shown:
        say(filtered.why_none(entries, pinned))
    if kind == "json" and out is None:
        _print_json(shown, pinned, all_settings)
    elif kind or out is not None:
        made = FORMATS[kind].write(table(shown, pinned, all_settings=all_settings))
        _deliver(made, out, len(shown))
    elif shown:
        _print(columns(shown, pinned, all_settings=all_settings), shown, pinned)
    return 0


def _all(runs_dir: Path) -> Sequence[Entry]:
    look = Folder(runs_dir).look()
    if look.problem:
        raise InputError(look.problem)
    return look.entries


def _by_ending(out: Path | None) -> str:
    """The format that a file's name asks for."""
    if out is None:
        return ""
    endings = {f".{kind.ending}": key for key, kind in reversed(FORMATS.items()) if key != "latex-document"}
    found = endings.get(out.suffix.lower())
    if found is None:
        raise InputError(f"--out {out}: end the name in {one_of(endings)}, or say the format")
    return found


def _order(sort_by: str, entries: Sequence[Entry]) -> tuple[Column | None, bool]:
    key = sort_by.removeprefix("-")
    return (Known(entries).column(key) if key else None), sort_by.startswith("-")


def _print_json(shown: Sequence[Entry], baseline: Entry | None, all_settings: bool) -> None:
    made = table(shown, baseline, all_settings=all_settings)
    keys = [column.key for column in made.columns]
    for values in made.values:
        emit(dict(zip(keys, values, strict=True)))


def _deliver(text: str, out: Path | None, count: int) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    save(text, out)
    say(f"{count:,} runs written to {out}")


def _print(shown: Sequence[Column], entries: Sequence[Entry], baseline: Entry | None) -> None:
    """A table: on a terminal of the columns that it has room for, in a pipe of all."""
    say(f"loss in {unit_of(entries)}" + (f"; differences are to {baseline.name}" if baseline is not None else ""))
    rows = [[clean_line(column.title) for column in shown]]
    rows += [[clean_line(column.shown(entry, baseline)) for column in shown] for entry in entries]
    if is_terminal(sys.stdout):
        _print_grid(shown, rows)
    else:
        print_columns(rows)


def _print_grid(shown: Sequence[Column], rows: list[list[str]]) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    ends = accumulate(max(map(cell_len, cells)) + GAP for cells in zip(*rows, strict=True))
    room = sum(end - GAP <= stdout().width for end in ends)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column, title in zip(shown[:room], rows[0], strict=False):
        grid.add_column(Text(title), justify="right" if column.right else "left", no_wrap=True)
    for row in rows[1:]:
        grid.add_row(*(Text(cell) for cell in row[:room]))
    stdout().print(grid)
    if room < len(shown):
        say(f"{len(shown) - room} more columns: in a wider terminal, a pipe, or with --csv --out comparison.csv")
