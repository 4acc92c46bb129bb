"""A run's results on stdout: chart, scores, verdicts, probes, a sample, and what to type next."""

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.table import Table as RichTable
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.command_line import command_line
from engine.base.errors import InputError, damage_description
from engine.base.language import Message, tr
from engine.config.keys import diff
from engine.config.schema import RunConfig
from engine.runs.reader import RunReader
from tui_transformer.cli.output import is_terminal, print_json, stdout
from tui_transformer.lab.analysis.chart_lines import curve_of
from tui_transformer.lab.analysis.charts.canvas import ChartLine, line_chart, usual_top
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.records.badges import findings
from tui_transformer.lab.records.run_lines import score_lines
from tui_transformer.lab.records.run_view import probe_results

Part = Text | RichTable
CHART_HEIGHT = 16
STYLES = {"good": "green", "bad": "bold red", "warn": "yellow"}  # of findings
MAX_WIDTH = 100

ABLATION, MOST_CHANGES = "no-pe", 8  # a preset to try next, and most settings that it carries over


def print_summary(reader: RunReader, *, as_json: bool, data_dir: Path | None = None) -> None:
    if as_json:
        print_json(
            {
                "kind": "end",
                "name": reader.name,
                "state": reader.status.state or None,
                "from": reader.raw("run").get("from"),
                "summary": reader.raw("summary"),
                "verdicts": [verdict.dump() for verdict in reader.verdicts],
            }
        )
        return
    console, unit = (
        stdout(),
        tr(reader.config.english_loss_unit),
    )  # a run without a config cannot be summarized at all
    columns, floors = reader.follow().load(), reader.data.floors
    train, validation = (curve_of(records, "step", "loss") for records in (columns.train, columns.validation))
    losses = [*train.y, *validation.y]
    chart = line_chart(
        [
            ChartLine(train.x, train.y, "cyan", label=tr("train")),
            ChartLine(validation.x, validation.y, "orange1", dots=True, label=tr("validation")),
        ],
        title=tr("loss, nats per {unit}", unit=unit),
        width=min(console.width, MAX_WIDTH),
        height=CHART_HEIGHT,
        levels=[(floor.description, floor.known_nats_per_char, "green") for floor in floors[:1]],
        top=usual_top(
            (train, validation), min((floor.known_nats_per_char for floor in floors), default=min(losses, default=0.0))
        ),
        colour=is_terminal(sys.stdout) and not console.no_color,
    )
    console.print(Text.from_ansi(chart), soft_wrap=True)
    for what, file, part_of in PARTS:
        part: Part | None
        try:
            part = part_of(reader)
        except (TypeError, ValueError, ArithmeticError) as error:  # a value is missing
            why = tr(
                "{what}: {file} is damaged: {damaged}; run {command}",
                what=what,
                file=file,
                damaged=damage_description(error),
                command=reader.command("doctor"),
            )
            part = Text(clean_line(why), style="bold yellow")
        if part:
            console.print()
            # On paper (a pipe) lines stay whole; on a screen they break between words.
            console.print(part, soft_wrap=not is_terminal(sys.stdout) and isinstance(part, Text))
    console.print()
    console.print(_next(reader, data_dir), soft_wrap=True)  # a wrapped command cannot be pasted


def _scores(reader: RunReader) -> Text:
    return Text("\n".join(score_lines(reader)))


def _verdicts(reader: RunReader) -> Text | None:
    text = Text()
    for finding in findings(reader.verdicts):
        text.append(f"{finding.sign} ", style=STYLES[finding.style])
        text.append(clean_line(tr("{words}: {why}", words=finding.words, why=finding.why)) + "\n")
    text.rstrip()
    return text if text else None


def _probes(reader: RunReader) -> RichTable | None:
    last = reader.summary.last
    if last is None or not last.probes:
        return None
    grid = RichTable(box=None, pad_edge=False, header_style="bold")
    grid.add_column(tr("probe"), no_wrap=True)
    for column in (tr("right"), tr("places"), tr("chance"), tr("shortcut")):
        grid.add_column(column, justify="right", no_wrap=True)
    grid.add_column(tr("what must be remembered"))
    for probe in probe_results(last, reader.data):
        levels = [f"{value:.0%}" if value is not None else "" for value in (probe.chance, probe.shortcut)]
        places = f"{last.probe_places[probe.name]:,}" if probe.name in last.probe_places else ""
        grid.add_row(
            Text(clean_line(probe.name)), f"{probe.accuracy:.0%}", places, *levels, Text(tr(probe.description))
        )
    if last.probes_recorded > len(last.probes):
        grid.add_row(tr("and {n:,} more", n=last.probes_recorded - len(last.probes)), "", "", "", "", tr("not shown"))
    return grid


def _sample(reader: RunReader) -> Text | None:
    newest = deque(reader.samples(), maxlen=1)
    if not newest:
        return None
    last, task = newest[0], reader.config.task
    if last.translations:
        text = Text(tr("held-out {rows} at step {step:,}:", rows=tr(task.row_name) or tr("texts"), step=last.step))
        for row in last.translations:
            text.append(f"\n{clean_line(row.source)}", "bold").append(f"\n→ {clean_line(row.text)}")
            if row.reference and not row.right:
                text.append(f"\n= {clean_line(row.reference)}", "dim")
        return text
    title = tr("sample at step {step:,}, temperature {temperature}:", step=last.step, temperature=last.temperature)
    text = Text(title + "\n")
    text.append(last.prompt, style="bold")
    if not task.continues:  # the prompt is a source, or a text with gaps
        text.append("\n→ ")
    text.append(last.text)
    return text


PARTS: tuple[tuple[str, str, Callable[[RunReader], Part | None]], ...] = (
    (Message("the scores"), Message("summary.json or data.json"), _scores),
    (Message("the verdicts"), Message("summary.json or data.json"), _verdicts),
    (Message("the probes"), Message("summary.json or data.json"), _probes),
    (Message("the sample"), "samples.jsonl", _sample),
)


def ablation_arguments(config: RunConfig) -> list[str]:
    """Return the arguments of `run` that train the same without position encoding; none if there was none anyway, if no
    preset was trained, or if too many of its settings were changed.
    """
    try:
        trained = Draft.from_preset(config.preset or "")
        without = replace(Draft.from_preset(ABLATION), on=trained.name)
    except InputError:
        return []
    if trained.config is None or config.model.position == "none":
        return []
    # What a run fills in where its preset leaves it open is not a change.
    changes = {key: now for key, (then, now) in diff(trained.config, config).items() if then is not None}
    without = without.with_changes({key: value for key, value in changes.items() if value is not None})
    return without.arguments() if without.config is not None and len(changes) <= MOST_CHANGES else []


def _next(reader: RunReader, data_dir: Path | None) -> Text:
    task = reader.config.task
    command, what_for = task.next_step
    where = {"data_dir": data_dir} if command == "evaluate" else {}
    rows = [(reader.command(command, **where), what_for)]
    if words := ablation_arguments(reader.config):
        another = command_line("run", *words, runs_dir=reader.path.parent, data_dir=data_dir)
        rows.append((another, tr("train without position encoding")))
    rows.append((command_line("presets", "list"), tr("other presets")))
    width = max(len(command) for command, _ in rows)
    text = Text(clean_line(tr("next (this run is in {path})", path=reader.path)), style="bold")
    for command, what in rows:
        text.append("\n" + clean_line(f"{command.ljust(width)}  {what}"), style="not bold")
    return text
