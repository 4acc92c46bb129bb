"""`compare STUDY` and `compare --by variant`: variants over their seeds, with what may be concluded."""

import shutil
import sys
from collections.abc import Mapping, Sequence

from engine.errors import InputError, nearest, one_of
from tui_transformer.cli.output import is_terminal
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import ALIASES, Column
from tui_transformer.lab.analysis.detail import text_of
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.export import DATA, Table, group_table
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.query import Query, sort
from tui_transformer.lab.analysis.verdict import VariantResult, VariantResults


def standings(
    entries: Sequence[Entry],
    files: Mapping[str, StudyFile],
    *,
    query: Query,
    sort_by: str,
    pinned: Entry | None,
) -> tuple[VariantResult, ...]:
    """The variants to show. A variant of which any run matches is shown whole: a filter takes no seeds away.

    Args:
        entries: all runs; verdicts are corrected over the whole study, whatever is shown of it.
        files: of studies, by name.
        query: a filter.
        sort_by: a column's key, with `-` before it the other way round; "" for the study's own order.
        pinned: a run of the baseline.

    Raises:
        InputError: no such column.
    """
    found = VariantResults().of(Grouping().of(entries), files, pinned.path if pinned is not None else None)
    matching = {entry.path for entry in query(entries, pinned)}
    shown = [standing for standing in found if any(run.path in matching for run in standing.runs)]
    return sort(shown, _column(sort_by.removeprefix("-"), shown), None, reverse=sort_by.startswith("-"))


def _column(key: str, shown: Sequence[VariantResult]) -> Column | None:
    if not key:
        return None
    known = {column.key: column for column in group_columns.columns(shown, all_settings=True)}
    meant = ALIASES.get(key, key)
    full = [name for name in known if name.rpartition(".")[2] == meant]
    name = {"run": "variant"}.get(meant, meant if meant in known else full[0] if len(full) == 1 else meant)
    if name not in known:
        hint = nearest(key, known) or f"; try {one_of(list(known)[:5])}"
        raise InputError(f"--sort: variants have no column '{key[:80]}'{hint}")
    return known[name]


def variants_table(shown: Sequence[VariantResult], kind: str, *, all_settings: bool) -> Table:
    """For a format."""
    return group_table(shown, data=kind in DATA, all_settings=all_settings)


def print_variants(shown: Sequence[VariantResult], *, all_settings: bool) -> None:
    """On a terminal as wide as it is, in a pipe every table in one piece."""
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    sys.stdout.write(text_of(shown, all_settings=all_settings, width=width))
