"""`compare --by-distance PROBE`: a probe's accuracy by distance to the text it needs, as a chart or SVG."""

from collections.abc import Sequence
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import Message, tr
from tui_transformer.cli.names import resolve_names
from tui_transformer.cli.output import print_answer, print_columns, print_info, stdout
from tui_transformer.lab.analysis.charts.overlay import (
    ChartedRuns,
    Overlay,
    distance_chart,
    draw_overlay,
    probes_scored_by_distance,
)
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.curves import MOST_CURVES, MetricsReader, group_seeds
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.export import save
from tui_transformer.lab.analysis.folder import RunsFolder

WIDEST, ROWS = 100, 20  # of a chart in characters


def draw_by_distance(runs: Sequence[str], *, probe: str, out: Path | None, runs_dir: Path) -> None:
    """Draw a probe family, such as recall, by distance: a line per variant, the mean over its seeds."""
    if out is not None and out.suffix.lower() != ".svg":
        raise InputError(Message("--out {path}: with --by-distance, end the name in .svg", path=out))
    if runs:  # variants in study order, else oldest first
        found = resolve_names(runs, runs_dir)
        place = {(study.name, name): i for study in found.studies.values() for i, name in enumerate(study.variants)}

        def order(entry: RunEntry) -> tuple[int, str]:
            return place.get((entry.study.name, entry.study.variant), 0) if entry.study else 0, entry.created

        entries = sorted(found.entries, key=order)
    else:
        entries = sorted(RunsFolder(runs_dir).scan().entries, key=lambda entry: entry.created)
    groups = group_seeds(entries, entries)
    if len(groups) > MOST_CURVES:
        raise InputError(
            Message(
                "{n} variants are too many to tell apart; a chart shows at most {most} lines, so name fewer runs",
                n=len(groups),
                most=MOST_CURVES,
            )
        )
    drawn = ChartedRuns(tuple(enumerate(groups)), None, MetricsReader().read([run.path for run in entries]))
    known = probes_scored_by_distance(drawn)
    if not known:
        raise InputError(
            Message("none of these runs has probe scores by distance; runs trained on playlets with this version do")
        )
    if probe not in known:
        hint = did_you_mean(probe, known) or tr("; the probes are {known}", known=comma_separated(known))
        raise InputError(
            Message("--by-distance {probe}: no such probe{hint}", probe=clean_line(probe)[:80], hint=clean_line(hint))
        )
    made = distance_chart(drawn, probe)
    if out is not None:
        from tui_transformer.lab.reports.figures.distances import probe_distance_svg  # takes a second

        save(probe_distance_svg(made), out)
        print_info(
            tr("{probe} by distance for {runs:,} runs written to {out}", probe=probe, runs=len(entries), out=out)
        )
    else:
        _print_chart_and_table(made)


def _print_chart_and_table(made: Overlay) -> None:
    print_info(tr("{title}; ┄ chance; ┊ how far back a model can look", title=made.title))
    canvas = draw_overlay(made, min(WIDEST, stdout().width), ROWS)
    for row in canvas.cells if canvas is not None else ():
        print_answer("".join(character for character, _ in row).rstrip())
    print_answer()
    places = sorted({x for stroke in made.drawn_strokes for x in stroke.curve.x})
    rows = [["", tr("variant"), "n", *(f"{x:,.0f}" for x in places)]]
    for stroke in made.drawn_strokes:
        values = dict(zip(stroke.curve.x, stroke.curve.y, strict=True))
        ends = dict(zip(stroke.curve.x, stroke.curve.ends, strict=False))
        shares = []
        for x in places:
            around = f" [{100 * ends[x][0]:.0f}, {100 * ends[x][1]:.0f}]" if ends.get(x) is not None else ""
            shares.append(f"{values[x]:.0%}{around}" if values.get(x) is not None else "–")
        rows.append([LETTERS[stroke.slot], clean_line(stroke.name), f"{stroke.seeds or 1}", *shares])
    print_columns(rows)
    for note in made.notes:
        print_info(note)
