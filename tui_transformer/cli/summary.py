"""What came out of a run, on stdout: chart, verdicts, probes, a sample, and what to type next."""

import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from engine.clean import clean, clean_line
from engine.command_line import command_line
from engine.errors import damaged
from engine.runs.lineage import drawn
from engine.runs.reader import RunReader
from tui_transformer.cli.output import emit, is_terminal, stdout
from tui_transformer.lab.charts.canvas import Series, line_chart, usual_top
from tui_transformer.lab.formatting import count, duration, short, sparkline, unit
from tui_transformer.lab.records.facts import MOST_PROBES, first_probes, number
from tui_transformer.lab.records.findings import findings
from tui_transformer.lab.records.floors import floors

Part = Text | RichTable
CHART_HEIGHT = 16
STYLES = {"good": "green", "bad": "bold red", "warn": "yellow"}  # of findings
MAX_WIDTH = 100
SHOWN_ROWS = {"span-corruption": "documents", "question-answer": "questions"}  # what samples are, if not sentences


def print_summary(reader: RunReader, *, as_json: bool, data_dir: Path | None = None) -> None:
    """The summary of a run that has ended."""
    if as_json:
        status = reader.status
        emit(
            {
                "kind": "end",
                "name": reader.name,
                "state": status.state or None,
                "from": reader.raw("run").get("from"),
                "summary": reader.raw("summary"),
                "verdicts": [verdict.dump() for verdict in reader.verdicts],
            }
        )
        return
    console = stdout()
    colour = is_terminal(sys.stdout) and not console.no_color
    width = min(console.width, MAX_WIDTH)
    _ = reader.config  # a run without one cannot be told of at all
    chart = lambda reader: Text.from_ansi(loss_chart(reader, width, CHART_HEIGHT, colour=colour))
    console.print(_whole("the curves", chart, reader), soft_wrap=True)
    for what, of in PARTS.items():
        if part := _whole(what, of, reader):
            console.print()
            # On paper (a pipe) lines stay whole; on a screen they break between words.
            console.print(part, soft_wrap=not is_terminal(sys.stdout) and isinstance(part, Text))
    console.print()
    console.print(_next(reader, data_dir), soft_wrap=True)  # a wrapped command cannot be pasted


def _whole(what: str, of: Callable[[RunReader], Part | None], reader: RunReader) -> Part | None:
    """A part of the summary, or one line that says why there is none: it rests on a damaged record."""
    try:
        return of(reader)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        file, words = "samples.jsonl" if of is _sample else "summary.json or data.json", damaged(error)
        why = f"{what}: {file} is damaged: {words}; {reader.command('doctor')}"
        return Text(clean_line(why), style="bold yellow")


def loss_chart(reader: RunReader, width: int, height: int, *, colour: bool) -> str:
    """Train and validation loss over steps, with the corpus's floors if known."""
    columns = reader.follow().load()
    data = reader.raw("data")
    known = floors(data)
    train, validation = _series("train", columns.train, "cyan"), _series("validation", columns.validation, "orange1")
    losses = [*train.y, *validation.y]
    return line_chart(
        [train, validation],
        title=f"loss, nats per {unit(reader.config.objective.kind)}",
        x_label="step",
        width=width,
        height=height,
        levels=[(floor.words, floor.nats, "green") for floor in known[:1]],
        top=usual_top(losses, min((floor.nats for floor in known), default=min(losses, default=0.0))),
        colour=colour,
    )


def _series(label: str, records: list[dict[str, Any]], colour: str) -> Series:
    found = [(number(r.get("step")), number(r.get("loss"))) for r in records]
    known = [(step, loss) for step, loss in found if step is not None and loss is not None]
    return Series(label, [step for step, _ in known], [loss for _, loss in known], colour)


def _scores(reader: RunReader) -> Text | None:
    summary = reader.raw("summary")
    last, best = summary.get("last"), summary.get("best")
    if not last or not best:
        return None
    data = reader.raw("data")
    bits = last.get("bits_per_character")
    translates = reader.config.translates
    windows = "" if reader.config.on_rows else f", context {last['context']}, stride {last['stride']}"
    lines = [
        f"validation loss {last['loss']:.4f} nats per {unit(reader.config.objective.kind)}",
        f"  perplexity {last['perplexity']:.3f}, "
        + (f"{bits:.3f} bits per character, " if bits is not None else "")
        + f"accuracy {last['accuracy']:.1%}",
        f"  scored over the whole split{windows}"
        + (f"; best {best['loss']:.4f} at step {best['step']:,}" if best["step"] != last["step"] else ""),
    ]
    if translates:
        lines.append(_translated(last))
    if reader.config.answers:
        lines.append("  " + clean_line(answered(best, data.get("majority"))))
    if "excess" in last:
        floor, *others = floors(data)
        lines.append(f"  {last['excess']:+.4f} from the {floor.words}, {floor.amount}")
        lines += [f"  {other.words} {other.amount}" for other in others]
    if last.get("honest_loss") is not None:
        lines.append(f"  {last['honest_loss']:.4f} over the answers that cannot be copied from its input")
    profile = [value for value in last.get("profile") or [] if isinstance(value, int | float)]
    if len(profile) > 1:
        lines.append(f"  by place in the window {sparkline(profile)} {profile[0]:.2f} → {profile[-1]:.2f}")
    counts = [f"{name} {data[name]:.3f}" for name in ("unigram", "bigram") if data.get(name) is not None]
    lines.append(f"  knowing only counts would score: {', '.join(counts)}")
    if "nanogpt_loss" in last:
        lines.append(f"  by nanoGPT's random batches: {last['nanogpt_loss']:.4f}")
    steps, tokens, took = count(summary["step"], "step"), short(summary["tokens"]), duration(summary["seconds"])
    lines.append(f"  {steps}, {tokens} tokens, {took} of training")
    origin = reader.run.origin
    if origin is not None:
        lines.append(f"  {drawn(origin, clean_line(reader.name))}: from {origin.shown}")
    return Text("\n".join(lines))


def _translated(last: dict[str, Any]) -> str:
    how = "greedily" if last["beam"] == 1 else f"with a beam of {last['beam']}"
    return (
        f"  BLEU {last['bleu']:.2f}, chrF {last['chrf']:.1f}, {last['exact_match']:.1%} exactly right: "
        f"{last['translated']:,} of {last['sentences']:,} sentences, {how}\n  {clean_line(str(last['bleu_signature']))}"
    )


def answered(record: dict[str, Any], majority: Any) -> str:
    """`exact match 91.2 % at step 60 (228 of 250 questions); always “Arlow” would be right in 12.4 %`."""
    said = f"exact match {record['exact_match']:.1%} at step {record['step']:,}"
    said += f" ({record['right']:,} of {record['questions']:,} questions)"
    if not isinstance(majority, dict) or not majority.get("of"):
        return said
    return f"{said}; always “{majority['answer']}” would be right in {majority['right'] / majority['of']:.1%}"


def _verdicts(reader: RunReader) -> Text | None:
    text = Text()
    for finding in findings(reader.verdicts):
        text.append(f"{finding.sign} ", style=STYLES[finding.style])
        text.append(clean_line(f"{finding.words}: {finding.why}") + "\n")
    text.rstrip()
    return text if text else None


def _probes(reader: RunReader) -> RichTable | None:
    given = (reader.raw("summary").get("last") or {}).get("probes") or {}
    scores = first_probes(given)
    described = {p["name"]: p for p in reader.raw("data").get("probes", [])[:MOST_PROBES]}
    places = (reader.raw("summary").get("last") or {}).get("probe_places") or {}
    if not scores:
        return None
    grid = RichTable(box=None, pad_edge=False, header_style="bold")
    for column, justify in (
        ("probe", "left"),
        ("right", "right"),
        ("places", "right"),
        ("chance", "right"),
        ("shortcut", "right"),
    ):
        grid.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    grid.add_column("what must be remembered")
    for name, score in scores.items():
        probe = described.get(name, {})
        levels = [f"{probe[key]:.0%}" if probe.get(key) is not None else "" for key in ("chance", "shortcut")]
        what = Text(clean(str(probe.get("description", ""))))
        counted = f"{places[name]:,}" if name in places else ""
        grid.add_row(Text(clean_line(name)), f"{score:.0%}", counted, *levels, what)
    if len(given) > len(scores):
        grid.add_row(f"and {len(given) - len(scores):,} more", "", "", "", "", "not shown")
    return grid


def _sample(reader: RunReader) -> Text | None:
    newest = deque(reader.raw_lines("samples"), maxlen=1)
    if not newest:
        return None
    last = newest[0]
    if last.get("translations"):
        return _translations(last, SHOWN_ROWS.get(reader.config.objective.kind, "sentences"))
    text = Text(f"sample at step {last.get('step', 0):,}, temperature {last.get('temperature')}:\n")
    text.append(clean(str(last.get("prompt", ""))), style="bold")
    if reader.config.objective.kind != "next-token":  # the prompt is a source, or a text with gaps
        text.append("\n→ ")
    text.append(clean(str(last.get("text", ""))))
    return text


def _translations(sample: dict[str, Any], what: str) -> Text:
    text = Text(f"held-out {what} at step {sample.get('step', 0):,}:")
    for row in sample["translations"]:
        source, reference, written = (clean_line(str(row.get(key, ""))) for key in ("source", "reference", "text"))
        text.append(f"\n{source}", "bold").append(f"\n→ {written}")
        if reference and reference.strip() != written.strip():
            text.append(f"\n= {reference}", "dim")
    return text


def _next(reader: RunReader, data_dir: Path | None) -> Text:
    def another(base: str) -> str:
        return command_line("run", "--preset", "no-pe", "--on", base, runs_dir=reader.path.parent, data_dir=data_dir)

    if reader.config.on_documents:
        rows = [(reader.command("evaluate", data_dir=data_dir), "score its best checkpoint again")]
    elif reader.config.translates:
        rows = [
            (reader.command("translate"), "translate with it"),
            (another("phrasebook"), "the same without positions"),
        ]
    else:
        rows = [
            (reader.command("sample"), "write with it"),
            (another("demo"), "the same without positions"),
        ]
    rows.append((command_line("presets", "list"), "other presets"))
    width = max(len(command) for command, _ in rows)
    text = Text(clean_line(f"next (this run is in {reader.path})"), style="bold")
    for command, what in rows:
        text.append("\n" + clean_line(f"{command.ljust(width)}  {what}"), style="not bold")
    return text


PARTS: dict[str, Callable[[RunReader], Part | None]] = {
    "the scores": _scores,
    "the verdicts": _verdicts,
    "the probes": _probes,
    "the sample": _sample,
}
