"""`compare`: runs, or a study's variants over their seeds, as in the studio's Compare pane."""

import shutil
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, did_you_mean, join_and, join_or
from engine.base.language import Message, tr, trn
from engine.runs.reader import RunReader, no_runs
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.names import resolve_names
from tui_transformer.cli.options import Json, RunsDir, run_and_study_names, run_names
from tui_transformer.cli.output import (
    has_colour,
    is_terminal,
    print_answer,
    print_columns,
    print_info,
    print_json,
    show_progress,
    stdout,
    wrap_text,
)
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.answer import StudyConclusion, study_conclusions
from tui_transformer.lab.analysis.columns import ALIASES, Column, columns
from tui_transformer.lab.analysis.detail import results_text
from tui_transformer.lab.analysis.entry import RunEntry, majority_rows, read_entry
from tui_transformer.lab.analysis.export import DATA_FORMATS, FORMATS, comparison_table, save, variant_comparison_table
from tui_transformer.lab.analysis.folder import RunsFolder, study_files
from tui_transformer.lab.analysis.groups import Grouping, unit_of
from tui_transformer.lab.analysis.query import FilterKeys, parse, sort
from tui_transformer.lab.analysis.sentences import conclusion_sentences
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult

RUN, VARIANT = BY = ("run", "variant")
GAP = 2  # spaces between columns
LEAST_DRAWN, READABLE = 56, 110  # columns of a forest plot at least, and of a line of text


@command(170)
@examples(
    {
        "compare demo no-pe-demo": "Compare runs; the first is the baseline.",
        "compare attention": "Compare a study's variants over their seeds.",
        'compare --filter "rope loss<1.3" --csv --out runs.csv': "Write the matching runs as CSV.",
    }
)
def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs, or a study; defaults to all. The first run is the baseline.",
            autocompletion=run_and_study_names,
        ),
    ] = None,
    filter_: Annotated[str, typer.Option("--filter", help="For example: rope n_heads>=2 loss<1.3 -badge:LEAK")] = "",
    sort_by: Annotated[str, typer.Option("--sort", help="Sort by a column, e.g. loss; -loss reverses the order.")] = "",
    baseline: Annotated[
        str, typer.Option("--baseline", help="The run or variant to compare against.", autocompletion=run_names)
    ] = "",
    by: Annotated[str, typer.Option("--by", help="run; or variant, to combine its seeds as a study does.")] = "",
    all_settings: Annotated[
        bool, typer.Option("--all-settings", help="Show every setting, not only those that differ.")
    ] = False,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV, for a spreadsheet.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="A Markdown table, for a README.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="A LaTeX table for \\input.")] = False,
    latex_document: Annotated[bool, typer.Option("--latex-document", help="A complete document for pdflatex.")] = False,
    by_distance: Annotated[
        str,
        typer.Option("--by-distance", metavar="PROBE", help="Plot the accuracy of a probe, e.g. recall, by distance."),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Output file; its extension sets the format.")] = None,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Compare runs side by side: what differs, how they score, and whether anything can be concluded."""
    if by_distance:
        from tui_transformer.cli.show.distance import draw_by_distance

        draw_by_distance(runs or [], probe=by_distance, out=out, runs_dir=runs_dir)
        return
    wanted = {"json": json, "csv": csv, "markdown": markdown, "latex": latex, "latex-document": latex_document}
    formats = [name for name, is_wanted in wanted.items() if is_wanted]
    if len(formats) > 1:
        raise InputError(
            Message("one format at a time, not {formats}", formats=join_and(f"--{name}" for name in formats))
        )
    if by not in ("", *BY):
        raise InputError(
            Message("--by {by}: must be {known}{nearest}", by=by[:40], known=join_or(BY), nearest=did_you_mean(by, BY))
        )
    kind = formats[0] if formats else ""
    if out is not None and not kind:
        endings = {f".{form.ending}": key for key, form in reversed(FORMATS.items()) if key != "latex-document"}
        kind = endings.get(out.suffix.lower(), "")
        if not kind:
            known = join_or(endings)
            raise InputError(
                Message("--out {path}: end the name in {endings}, or add a format, e.g. --csv", path=out, endings=known)
            )
    named = resolve_names(runs or [], runs_dir)
    entries: Sequence[RunEntry] = named.entries
    if not runs:
        with show_progress(tr("reading the runs")):
            look = RunsFolder(runs_dir).scan()
        if look.problem:
            raise InputError(look.problem)
        entries = look.entries
    pinned = None  # the run differences are taken from
    if baseline:
        of_variant = [run for run in named.entries if run.study is not None and run.study.variant == baseline]
        pinned = of_variant[0] if of_variant else read_entry(RunReader.resolve(baseline, runs_dir).path)
    elif runs and len(runs) > 1 and not named.studies:
        pinned = entries[0]
    if not entries:
        print_info(no_runs(runs_dir))
        return

    query, key, reverse = parse(filter_, entries), sort_by.removeprefix("-"), sort_by.startswith("-")
    by_variant = by == VARIANT or (not by and bool(named.studies))
    if by_variant:
        # Verdicts cover the whole study even under a filter, which shows a variant with all its seeds or not at all.
        files = named.studies or study_files(runs_dir)
        pinned_path = pinned.path if pinned is not None else None
        found = VariantEvaluator().evaluate(Grouping().group(entries), files, pinned_path)
        paths = {entry.path for entry in query(entries, pinned)}
        some = [result for result in found if any(run.path in paths for run in result.runs)]
        variants = sort(some, _sort_column(some, key) if key else None, None, reverse=reverse)
        made = (
            variant_comparison_table(variants, data=kind in DATA_FORMATS, all_settings=all_settings) if kind else None
        )
        count = len(variants)
    else:
        order = FilterKeys(entries).column(key) if key else None
        matching = query(entries, pinned)
        shown = [*sort(matching, order, pinned, reverse=reverse), *majority_rows(matching)]
        made = comparison_table(shown, pinned, all_settings=all_settings) if kind else None
        count = len(matching)
    if not count:
        print_info(query.why_no_match(entries, pinned))
    if made is not None and kind == "json" and out is None:
        for values in made.values:
            print_json(dict(zip((column.key for column in made.columns), values, strict=True)))
    elif made is not None and out is None:
        sys.stdout.write(FORMATS[kind].write(made))
    elif made is not None and out is not None:
        save(FORMATS[kind].write(made), out)
        said = (
            trn("{n:,} variant written to {path}", "{n:,} variants written to {path}", count, path=out)
            if by_variant
            else trn("{n:,} run written to {path}", "{n:,} runs written to {path}", count, path=out)
        )
        print_info(said)
    elif count and by_variant:
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        if width is not None and width >= LEAST_DRAWN:
            _draw(study_conclusions(variants), width)
        sys.stdout.write(results_text(variants, all_settings=all_settings, width=width))
    elif count:
        _print(columns(shown, pinned, all_settings=all_settings), shown, pinned)


def _draw(found: Sequence[StudyConclusion], width: int) -> None:
    """Draw each family of variants as a forest plot, and say what it shows."""
    from tui_transformer.lab.analysis.charts.forest import forest_text

    for answer in found:
        print(forest_text(answer, width, colour=has_colour()))
        said = clean_line(" ".join(map(tr, conclusion_sentences(answer))))
        print_answer("\n" + "\n".join(wrap_text(said, min(width, READABLE))) + "\n")


def _sort_column(shown: Sequence[VariantResult], key: str) -> Column:
    """Return the variant column that `--sort` names; raise InputError if there is none."""
    known = {column.key: column for column in group_columns.columns(shown, all_settings=True)}
    meant = ALIASES.get(key, key)
    full = [name for name in known if name.rpartition(".")[2] == meant]
    name = {"run": "variant"}.get(meant, meant if meant in known else full[0] if len(full) == 1 else meant)
    if name not in known:
        hint = did_you_mean(key, known) or tr("; try {list}", list=join_or(list(known)[:5]))
        raise InputError(Message("--sort: variants have no column '{key}'{hint}", key=key[:80], hint=hint))
    return known[name]


def _print(shown: Sequence[Column], entries: Sequence[RunEntry], baseline: RunEntry | None) -> None:
    """Print a table: on a terminal the columns that fit, in a pipe all of them."""
    unit = unit_of(entries)
    print_info(
        tr("loss in {unit}", unit=unit)
        if baseline is None
        else tr("loss in {unit}; differences are relative to {baseline}", unit=unit, baseline=baseline.name)
    )
    rows = [[clean_line(column.head) for column in shown]]
    rows += [[clean_line(column.screen_text(entry, baseline)) for column in shown] for entry in entries]
    if not is_terminal(sys.stdout):
        print_columns(rows)
        return
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    ends = accumulate(max(map(cell_len, cells)) + GAP for cells in zip(*rows, strict=True))
    room = sum(end - GAP <= stdout().width for end in ends)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column, title in zip(shown[:room], rows[0], strict=False):
        grid.add_column(Text(title), justify="right" if column.right_aligned else "left", no_wrap=True)
    for row in rows[1:]:
        grid.add_row(*(Text(cell) for cell in row[:room]))
    stdout().print(grid)
    if room < len(shown):
        print_info(
            trn(
                "{n} more column does not fit: use a wider terminal, a pipe, or --csv --out comparison.csv",
                "{n} more columns do not fit: use a wider terminal, a pipe, or --csv --out comparison.csv",
                len(shown) - room,
            )
        )
