"""A reproduction package: a folder to hand in, with readable source, the run's results and a report.

Before the folder takes its place, the program in it trains the first steps, which must be those of the run's engine.
"""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import capabilities
from engine.base.clean import clean, clean_line
from engine.base.errors import InputError, write_error
from engine.base.language import Message, language_code, tr
from engine.base.release import version
from engine.config.measures import MEASURES
from engine.config.schema import RunConfig
from engine.data.known import CORPORA
from engine.runs.files import atomic_folder, write_atomic
from engine.runs.records import Sample, TrainRecord, ValidationRecord
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.escaping import markdown_prose
from tui_transformer.lab.exports.recorded import ExportedRun, scalars
from tui_transformer.lab.exports.source import ProgramFacts, program_files, refusal
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.reports.figures.style import PNG
from tui_transformer.lab.reports.paper import Package, compile_paper, model_and_curve_figures
from tui_transformer.lab.template import render_template

if TYPE_CHECKING:
    from engine.data.tokenizers import Tokenizer
    from engine.tasks.task import Task

FIRST = 10  # losses that the package must repeat
TOLERANCE = 1e-4  # nats, by which they may differ
LARGEST = 512 * 1024**2  # characters of text in a package
LONGEST_PROMPT = 60  # characters
PROOF_TIMEOUT = 3600  # seconds for the first steps


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """Write a run's package into a new folder, all of it or nothing. No weights are in it: its program computes them.

    Raises `InputError` for a setting that the program does not cover, a text that has changed, or a folder that is not
    empty or cannot be written.
    """
    if (why := refusal(run.config)) is not None:
        raise InputError(why)
    folder = out / run.name
    if folder.exists() and any(folder.iterdir()):
        raise InputError(Message("{folder} is not empty; choose another --out", folder=folder))
    task = _task_of(run)
    losses = recompute_first_losses(run, task)
    try:
        with atomic_folder(folder) as staged:
            for name, content in _files(run, task, losses):
                path = staged / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, bytes):
                    path.write_bytes(content)
                else:
                    write_atomic(path, content)
            (staged / "scripts" / "run.sh").chmod(0o755)
            _prove(staged, run.name, len(losses))
    except OSError as error:
        raise write_error(tr("{filename} cannot be written", filename=error.filename or folder), error) from None
    return folder, tr("train it again with: cd {folder} && bash scripts/run.sh", folder=folder)


def _task_of(run: ExportedRun) -> "Task":
    """Load the corpus that a run was trained on, and refuse another."""
    from engine.tasks.task import task_of_run

    task = task_of_run(run, None)
    if run.data.sha256 != task.corpus.sha256 or run.data.tokenizer_sha256 != task.tokenizer.sha256:
        raise InputError(
            Message(
                "corpus {name}: this is not the text that run '{name2}' started with; restore the original text",
                name=task.corpus.name,
                name2=run.name,
            )
        )
    if (size := sum(counts.get("characters", 0) for counts in run.data.splits.values())) > LARGEST:
        raise InputError(
            Message(
                "export --to package also writes the data, but {size:,} characters are too many; at most {most:,} "
                "are allowed",
                size=size,
                most=LARGEST,
            )
        )
    return task


def recompute_first_losses(run: ExportedRun, task: "Task") -> list[float]:
    """The losses of a run's first steps in nats per token, computed again on the CPU in fp32; fewer if it diverges."""
    import torch

    from engine.model.transformer import build_model
    from engine.runs.control import Diverged
    from engine.training.step import Stepper

    config = capabilities.with_value(run.config, "train.compile", "never")
    device = torch.device("cpu")
    model = build_model(config.model, config.min_vocab_size(task.vocab_size), config.seed, device)
    stepper = Stepper(config, model, task.batches(config, device))
    found = []
    for step in range(1, min(FIRST, config.train.steps) + 1):
        try:
            result = stepper.step(step)
        except Diverged:  # as the run did
            break
        found.append(result.read()[0] / result.n_targets)
    return found


def _prove(folder: Path, name: str, steps: int) -> None:
    """Let the package train its first steps; it ends with an error if its losses are others."""
    if not steps:
        return
    out = folder / ".proof"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [sys.executable, "-B", "src/train.py", "--steps", str(steps), "--out", out.name]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PROOF_TIMEOUT
        )
        failed, said = done.returncode != 0, (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
    except subprocess.TimeoutExpired as error:
        failed, said = True, str(error)
    if failed:
        said = clean_line(said[:300])
        why = Message(
            "export --to package: the program for {name} does not train the same model: {said}", name=name, said=said
        )
        raise InputError(why)
    for path in out.iterdir():
        path.unlink()
    out.rmdir()


def _files(run: ExportedRun, task: "Task", losses: list[float]) -> Iterator[tuple[str, str | bytes]]:
    """Yield the files of the package by name."""
    language = language_code()
    found = program_data_facts(task, run.config)
    source = program_files(run.config, found)
    yield from source.items()
    yield from _data(task, run.config)
    yield "requirements.txt", requirements(run)
    yield "results/first-losses.csv", _csv(("step", "loss"), enumerate(losses, 1))
    yield "results/metrics.csv", _metrics(run)
    if run.texts:
        yield "results/sample.txt", _sample_text(run.texts[-1])
    folders = sorted({name.split("/")[0] for name in source} | {"data", "results", "report"})
    whole = Package(source, tuple(folders), documents=found.boundary is not None)
    document, files, images, compiled = compile_paper(read_entry(run.path), whole, language)
    for figure in model_and_curve_figures(document):
        yield f"results/{figure.name}.png", images[figure.name][PNG]
    for name, content in files.items():
        yield f"report/{name}", content
    if compiled is not None:
        yield "report/report.pdf", compiled
    yield "README.md", readme(run, task, losses, language, pdf=compiled is not None)


def program_data_facts(task: "Task", config: RunConfig) -> ProgramFacts:
    """Return what the program needs to know of a task's data."""
    from engine.data.loader import boundary_token

    target = task.tokenizer.target
    kind = target.untagged.kind
    found = ProgramFacts(
        words=task.vocab_size,
        characters=target.kind == "characters",
        tokenizer={"bpe": "by byte pairs", "text-words": "by words"}.get(kind, f"by {kind}"),
        sources=task.tokenizer.source.vocab_size,
        in_bytes=bool(target.untagged.token_bytes),
    )
    if config.trains_on_rows:
        return found
    text: Any = task
    prompt = config.evaluation.sample_prompt or text.corpus.splits["validation"].head(LONGEST_PROMPT)
    if not config.evaluation.sample_prompt:
        prompt = prompt.lstrip("\n").split("\n")[0] or prompt
    two = text.tokens["validation"][:2].tolist()
    apart = [target.decode([token]) for token in two]
    between = " " if target.decode(two) == " ".join(apart) else ""
    return replace(found, boundary=boundary_token(config, target), prompt=prompt, between=between)


def _data(task: "Task", config: RunConfig) -> Iterator[tuple[str, str | bytes]]:
    """Yield the texts of each split, their tokens where these are not characters of one text, and the vocabulary."""
    import numpy as np

    target, on_rows = task.tokenizer.target, config.trains_on_rows
    own: Any = task  # of a text, pairs or labelled texts
    if classes := getattr(own.corpus, "classes", ()):
        yield "data/classes.json", json.dumps(classes, ensure_ascii=False) + "\n"
    for name, split in own.corpus.splits.items():
        if on_rows:
            yield f"data/{name}.jsonl", _json_lines(task.rows(name))
            continue
        yield f"data/{name}.txt", split.text.encode("utf-8", "surrogatepass")
        if target.kind != "characters":
            out = io.BytesIO()
            np.save(out, own.tokens[name].numpy().astype(np.int32))
            yield f"data/{name}.npy", out.getvalue()
    if on_rows or target.kind != "characters":
        yield "data/vocabulary.json", json.dumps(_vocabulary(target), ensure_ascii=False) + "\n"


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """JSON, one row a line."""
    found = (json.dumps(row, ensure_ascii=False, default=lambda tokens: tokens.tolist()) for row in rows)
    return "".join(f"{row}\n" for row in found).encode()


def _vocabulary(tokenizer: "Tokenizer") -> list[str]:
    """The text of each token; in bytes, a Latin-1 character for each byte."""
    found, plain = [tokenizer.decode([token]) for token in range(tokenizer.vocab_size)], tokenizer.untagged
    if plain.token_bytes:
        found[: plain.vocab_size] = [piece.decode("latin-1") for piece in plain.token_bytes]
    return found


def _sample_text(last: Sample) -> str:
    """The last text that the run wrote, or its last answers with the right ones."""
    rows = [(one.source, one.reference, one.text) for one in last.translations]
    written = [f"{source}\n    reference: {right}\n    model:     {text}\n" for source, right, text in rows]
    return f"[{last.step:,}]\n{clean(''.join(written) or f'{last.prompt}{last.text}' + chr(10))}"


def requirements(run: ExportedRun) -> str:
    """Return requirements.txt: the versions that the run had, without what a build adds to them."""
    attempts = run.environment.attempts
    had = attempts[-1].versions if attempts else {}
    names = ("torch", "numpy", "matplotlib")
    return "".join(f"{name}=={(had.get(name) or installed(name)).split('+')[0]}\n" for name in names)


def _csv(heads: tuple[str, ...], rows: "Iterator[tuple[object, ...]] | enumerate[float]") -> str:
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(heads)
    table.writerows(rows)
    return out.getvalue()


def _metrics(run: ExportedRun) -> str:
    """The run's metrics, a row for each record."""
    rows = [(step, dict(scalars(line))) for step, line in run.metrics_lines]
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    return _csv(("step", *names), iter((step, *(row.get(name) for name in names)) for step, row in rows))


def readme(run: ExportedRun, task: "Task", losses: list[float], language: str, *, pdf: bool) -> str:
    """README.md: what is here, how to repeat it, on which machine it was made, and what this program wrote."""
    records = [record for record in run.metrics() if isinstance(record, ValidationRecord)]
    train = [record for record in run.metrics() if isinstance(record, TrainRecord)]
    attempts = run.environment.attempts
    corpus = CORPORA.get(task.corpus.name)
    machine = attempts[-1] if attempts else None
    # Whether steps have as many targets each.
    even = not run.config.trains_on_rows and program_data_facts(task, run.config).boundary is None
    own = next((record.loss for record in train if record.step == len(losses) and len(losses) == FIRST), None)
    return render_template(
        "exports",
        f"package/README.{language}.md.j2",
        markdown_prose,
        {"number": lambda number: f"{number:,}", "nats": lambda loss: f"{loss:.4f}"},
        run=run,
        config=run.config,
        version=version(),
        machine=machine,
        memory="" if machine is None or machine.memory_bytes is None else memory(machine.memory_bytes),
        seconds=duration(run.summary.seconds) if run.summary.seconds else "",
        best=min((record.loss for record in records if record.loss is not None), default=None),
        last=records[-1] if records else None,
        parameters=run.model.parameters,
        mean=sum(losses) / len(losses) if losses else None,
        own=own if run.config.log.every == FIRST and even else None,
        first=len(losses),
        on_cpu=machine is None or machine.device.startswith("cpu"),
        licence=corpus.licence if corpus is not None else "",
        generated=corpus is not None and not corpus.remotes,
        corpus=task.corpus.name,
        splits=run.data.splits,
        units=_unit_keys_and_words(run.data.splits.values()),
        scores=_scores(records[-1]) if records else [],
        sha256=task.corpus.sha256,
        pdf=pdf,
    )


def _unit_keys_and_words(splits: Iterable[Mapping[str, int]]) -> list[tuple[str, str]]:
    """What is counted of splits, as keys and as words in the language in use."""
    said = {
        "pairs": tr("pairs"),
        "texts": tr("texts"),
        "characters": tr("characters"),
        "source_tokens": tr("source tokens"),
        "tokens": tr("tokens"),
    }
    return [(key, word) for key, word in said.items() if any(key in counts for counts in splits)]


def _scores(last: ValidationRecord) -> list[tuple[str, str]]:
    """The other scores of the last evaluation, by name."""
    others = [measure for measure in MEASURES if (measure.tabled or measure.selects) and measure.key != "loss"]
    found = [(measure, last.value(measure.key)) for measure in others]
    return [(tr(measure.name), measure.exact_format.format(value)) for measure, value in found if value is not None]
