"""`compare`: runs side by side on stdout or in a file, as the studio's third pane shows and exports them."""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from engine.clean import clean_line
from engine.errors import InputError, nearest, one_of
from engine.runs.reader import RunReader, no_runs
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.compare_variants import print_variants, standings, variants_table
from tui_transformer.cli.meant import Meant, find
from tui_transformer.cli.output import emit, is_terminal, say, stdout
from tui_transformer.lab.analysis.columns import Column, columns
from tui_transformer.lab.analysis.entry import Entry, majority_rows, read_entry
from tui_transformer.lab.analysis.export import FORMATS, Table, save, table
from tui_transformer.lab.analysis.folder import Folder, study_files
from tui_transformer.lab.analysis.groups import unit_of
from tui_transformer.lab.analysis.query import Known, parse, sort

RUN, VARIANT = BY = ("run", "variant")
GAP = 2  # columns between two


def compare_command(
    runs: Sequence[str],
    *,
    query: str,
    sort_by: str,
    baseline: str,
    by: str,
    all_settings: bool,
    written_as: Sequence[str],
    out: Path | None,
    runs_dir: Path,
) -> int:
    """Compare runs, or variants over their seeds.

    Args:
        runs: those meant, or studies; all of the folder if there are none. The first of several runs is the baseline.
        query: a filter; "" lets all through.
        sort_by: a column, the other way round with a `-` before it; "" leaves them as they come.
        baseline: another run, or a variant of the study, that differences are to.
        by: "run", "variant", or "" for variants where a study is meant.
        all_settings: every setting, not only those that differ.
        written_as: at most one key of `FORMATS`.
        out: a file instead of stdout.
        runs_dir: where runs are.

    Raises:
        InputError: no such run, a filter or column that is none, two formats, a file that cannot be written.
    """
    if len(written_as) > 1:
        raise InputError(f"one format at a time, not --{' and --'.join(written_as)}")
    if by not in ("", *BY):
        raise InputError(f"--by {by[:40]}: runs are compared by {one_of(BY)}{nearest(by, BY)}")
    kind = next(iter(written_as), "") or _by_ending(out)
    meant = find(runs, runs_dir)
    entries: Sequence[Entry] = meant.entries if runs else _all(runs_dir)
    by_variant = by == VARIANT or (not by and bool(meant.studies))
    pinned = _pinned(baseline, meant, runs_dir)
    if pinned is None and len(runs) > 1 and not meant.studies:
        pinned = entries[0]
    if not entries:
        say(no_runs(runs_dir))
        return 0
    filtered = parse(query, entries)
    if by_variant:
        files = meant.studies or study_files(runs_dir)
        found = standings(entries, files, query=filtered, sort_by=sort_by, pinned=pinned)
        made = variants_table(found, kind, all_settings=all_settings) if kind else None
        count, show = len(found), partial(print_variants, found, all_settings=all_settings)
    else:
        order, reverse = _order(sort_by, entries)
        matching = filtered(entries, pinned)
        shown = [*sort(matching, order, pinned, reverse=reverse), *majority_rows(matching)]
        made = table(shown, pinned, all_settings=all_settings) if kind else None
        count, show = len(matching), partial(_print, columns(shown, pinned, all_settings=all_settings), shown, pinned)
    if not count:
        say(filtered.why_none(entries, pinned))
    if made is not None and kind == "json" and out is None:
        _print_json(made)
    elif made is not None:
        _deliver(FORMATS[kind].write(made), out, f"{count:,} {VARIANT if by_variant else RUN}s")
    elif count:
        show()
    return 0


def _pinned(baseline: str, meant: Meant, runs_dir: Path) -> Entry | None:
    """The run that differences are to: by its name, or the first of the variant of that name."""
    if not baseline:
        return None
    of_variant = [run for run in meant.entries if run.study is not None and run.study.variant == baseline]
    return of_variant[0] if of_variant else read_entry(RunReader.resolve(baseline, runs_dir).path)


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


def _print_json(made: Table) -> None:
    keys = [column.key for column in made.columns]
    for values in made.values:
        emit(dict(zip(keys, values, strict=True)))


def _deliver(text: str, out: Path | None, what: str) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    save(text, out)
    say(f"{what} written to {out}")


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
