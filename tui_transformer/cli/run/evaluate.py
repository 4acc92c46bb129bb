"""`evaluate`: score any checkpoint of any run, on any split, at any stride or context; the score records them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from engine import capabilities
from engine.base.clean import clean, clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, comma_separated, join_and, join_or, reason, write_error
from engine.base.language import Message, tr, trn
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.config.toml import validate
from engine.runs.files import write_user_file
from engine.runs.reader import RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import DataDir, Device, Encoding, Json, RunArgument, RunsDir, make_reading
from tui_transformer.cli.output import pad_to_width, print_badges, print_result, show_progress
from tui_transformer.lab.formatting import confusion_lines
from tui_transformer.lab.records.run_files import RunFiles

SPLITS = ("train", "validation", "test")


@command(140)
@examples(
    {
        "evaluate demo": "Score the best checkpoint on the validation split.",
        "evaluate demo --text my-text.txt": "Score a text of your own.",
        "evaluate phrasebook --beam 5 --sentences 10": "Score translations and show the ten best and ten worst.",
    }
)
def evaluate(
    run: RunArgument = "last",
    split: Annotated[
        str | None, typer.Option("--split", help="validation, test or train; defaults to validation.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help="Score a text of your own instead: FILE, or FILE:FIELD for a table."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Translate or summarize texts of your own, one per line, and score them."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Reference translations or summaries, one per line.")
    ] = None,
    csv: Annotated[
        str | None, typer.Option("--csv", help="Classify texts of your own: a CSV file with their classes.")
    ] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, average, ema, or a step.")] = "best",
    stride: Annotated[
        int | None, typer.Option("--stride", help="Tokens between window starts; defaults to the run's stride.")
    ] = None,
    context: Annotated[
        int | None, typer.Option("--context", min=1, help="Tokens read at once; defaults to the training context.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="Override a setting of the run, e.g. model.rope_scaling=yarn"),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Windows per batch; affects only speed.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option("--beam", min=1, max=1000, help="Beam width for translation; defaults to the run's setting."),
    ] = None,
    sentences: Annotated[
        int,
        typer.Option("--sentences", min=0, max=1000, help="How many of the best and worst translations to show."),
    ] = 3,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="Output file for the answers to questions, one per line.")
    ] = None,
    encoding: Encoding = "auto",
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> None:
    """Score a checkpoint on a split or files of your own: translations by BLEU, summaries by ROUGE, classes by F1."""
    reader = RunReader.resolve(run, runs_dir)
    config = reader.config
    own = _user_files_by_option(reader, config, split, text=text, source=source, reference=reference, csv=csv)
    reading = make_reading(encoding, keeps_cr=config.data.line_ends == "keep")
    split = split or "validation"
    if config.task.corpus != "pairs" and split not in SPLITS:
        raise InputError(Message("--split {split!r}: must be {known}", split=split[:40], known=join_or(SPLITS)))
    beside = (
        ("--stride", stride, config.trains_on_rows, tr("is scored row by row and has no windows")),
        ("--context", context, config.trains_on_rows, tr("is scored row by row and has no windows")),
        ("--beam", beam, not config.task.uses("evaluation.beam", config), tr("does not use beam search")),
        ("--predictions", predictions, config.task.row_name != "questions", tr("does not answer questions")),
    )
    for option, value, is_wrong, why in beside:
        if value is not None and is_wrong:
            raise InputError(
                Message(
                    "{option} {value}: run '{name}' {why}; leave it out",
                    option=option,
                    value=str(value)[:80],
                    name=reader.name,
                    why=why,
                )
            )
    print_badges(reader)
    changed = {} if context is None and not settings else _model_overrides(config, context, settings or [])
    if changed:
        data = config.dump()
        data["model"] |= changed
        data["evaluation"].pop("stride", None)  # it was derived from the context
        config = validate(data, tr("with these settings"))
        capabilities.require_valid(config, tr("with these settings"))
    if stride is not None and not 1 <= stride <= config.window_targets:
        raise InputError(
            Message(
                "--stride {stride}: must be from 1 to the context, {most}", stride=stride, most=config.window_targets
            )
        )
    translates = config.task.corpus == "pairs"
    given = {"batch_size": batch_size, "stride": stride, "beam": beam, "translations": 0 if translates else None}
    for name, value in given.items():
        if value is not None:
            config = capabilities.with_value(config, f"evaluation.{name}", value)
    with show_progress(tr("loading the model and the corpus")):
        from engine.data.catalogue import load_corpus
        from engine.model.devices import resolve_device
        from engine.model.numerics import set_fp32_matmul
        from engine.tasks.task import OwnFiles, task_class
        from engine.training.checkpoint import load_network, parameter_shapes

        where, kind = resolve_device(device), task_class(config)
        set_fp32_matmul("exact")
        if parameter_shapes(config.model, 1) != parameter_shapes(reader.config.model, 1):
            raise InputError(
                Message(
                    "{value}: would change the parameters of '{name}'; only settings that its weights do "
                    "not depend on can be changed here",
                    value=join_and(f"model.{name}" for name in changed),
                    name=reader.name,
                )
            )
        model, tokenizer, step = load_network(reader, checkpoint, where, config.model)
        if own:
            scorer = kind.user_files_scorer(OwnFiles(own, reading, config, tokenizer, where, reader.data, data_dir))
        else:
            corpus = load_corpus(kind.corpus_class, config.data, data_dir, reader.data.reading)
            _require_same(reader, corpus.name, corpus.sha256, split, kind.hash_prefix)
            afresh = translates and config.train.init_from is None  # pairs get their tokenizer from the corpus
            scorer = kind.from_corpus(corpus, config, None if afresh else tokenizer).scorer(config, where, split)
    with show_progress(scorer.activity):
        record, lines = scorer.evaluate(model, sentences)
    if notes := reading.findings.notes:
        record["notes"] = notes
        lines += [f"  {tr('note')}: {tr(note)}" for note in notes]
    if scorer.overlap is not None:
        record["overlap"] = scorer.overlap.to_json()
        lines += [f"  ⚠ {tr(scorer.overlap.sentence)}"] if scorer.overlap.is_reportable else []
    width = 11 if "exact_match" in config.task.scores else 18  # columns of the labels
    words = [line if isinstance(line, str) else f"  {pad_to_width(line[0], width)}  {line[1]}" for line in lines]
    if "confusion" in record:
        words += ["", *(f"  {line}" for line in confusion_lines(reader.data.classes, record["confusion"]))]
    if predictions is not None:
        words.append(_write_predictions(scorer.predictions() or "", predictions))
    named: dict[str, Any] = {
        "run": reader.name,
        **(own or {"split": split}),
        "checkpoint": checkpoint,
        "badges": list(RunFiles(reader.path).badges),
        "step": step,
    }
    whole = tr("{split} split of {of}", split=split, of=reader.raw("data").get("corpus"))
    title = clean_line(
        tr(
            "{name}, checkpoint {checkpoint} (step {step:,}), {files}",
            name=reader.name,
            checkpoint=checkpoint,
            step=step,
            files=comma_separated(own.values()) if own else whole,
        )
    )
    if changed:
        named["read_as"] = {f"model.{name}": value for name, value in changed.items()}
        settings_read = comma_separated(f"{name} = {value}" for name, value in changed.items())
        title += tr(", scored with {settings}", settings=settings_read)
    print_result({"kind": "evaluation", **named, **record}, "\n".join([title, *map(clean, words)]), as_json=json)


def _user_files_by_option(
    reader: RunReader, config: RunConfig, split: str | None, **given: str | None
) -> dict[str, str]:
    """Return the files of your own that are to be scored, by option; refuse those that the task cannot score."""
    files = {option: file for option, file in given.items() if file is not None}
    if not files:
        return {}
    known = config.task.file_options
    for option, file in files.items():
        if option not in known:
            can = (
                tr("it can be scored with {options}", options=join_and(f"--{one} FILE" for one in known))
                if known
                else tr("it can only be scored on its own splits")
            )
            raise InputError(
                Message(
                    "--{option} {file}: run '{name}' {does}; {can}",
                    option=option,
                    file=file[:80],
                    name=reader.name,
                    does=config.task.action,
                    can=can,
                )
            )
    missing = [option for option in known if option not in files]
    if missing:
        raise InputError(Message("--{other} also needs --{option} FILE", option=missing[0], other=next(iter(files))))
    if split is not None:
        raise InputError(
            Message(
                "--split {split}: names a part of the run's own corpus; leave it out to score {file}",
                split=split[:40],
                file=next(iter(files.values()))[:80],
            )
        )
    return files


def _model_overrides(config: RunConfig, context: int | None, settings: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the network that are asked for; {} if it was trained with all of them.

    Rope that is slowed here and was not in training slows for the context: by how many times longer it is than the one
    trained at.
    """
    asked: dict[str, Any] = {} if context is None else {"context_length": context}
    for table in parse_overrides(settings):
        for section, values in table.items():
            if section != "model":
                raise InputError(
                    Message(
                        "--set {section}…: only model.… settings of a trained run can be overridden, and only those "
                        "its weights do not depend on",
                        section=section,
                    )
                )
            asked |= values
    trained, now = config.model.context_length, asked.get("context_length", config.model.context_length)
    if asked.get("rope_scaling", "none") != "none" and config.model.rope_scaling == "none" and isinstance(now, int):
        asked.setdefault("rope_original", trained)
        if "rope_factor" not in asked:
            if now <= trained:
                raise InputError(
                    Message(
                        "--set model.rope_scaling={scaling}: only for contexts longer than the training context of "
                        "{trained:,} tokens; add --context {longer}",
                        scaling=asked["rope_scaling"],
                        trained=trained,
                        longer=4 * trained,
                    )
                )
            asked["rope_factor"] = now / trained
    return asked if any(getattr(config.model, name) != value for name, value in asked.items()) else {}


def _require_same(reader: RunReader, corpus: str, splits: Mapping[str, str], split: str, part: str = "") -> None:
    """Refuse a split that the corpus lacks, or that differs from the one the run was made with.

    `splits` maps splits to hashes; `part` prefixes the split's name there and in data.json.
    """
    known = {name.removeprefix(part): value for name, value in splits.items() if name.startswith(part)}
    if split not in known:
        raise InputError(
            Message(
                "run '{name}' has no {split} split; choose {known}",
                name=reader.name,
                split=split[:40],
                known=join_or(known),
            )
        )
    if reader.data.sha256.get(part + split) != known[split]:
        raise InputError(
            Message(
                "corpus {corpus}: its {split} split has changed since run '{name}' was trained (SHA-256 mismatch); "
                "restore the original text, or train a new run on this text",
                corpus=corpus,
                split=split,
                name=reader.name,
            )
        )


def _write_predictions(answers: str, path: Path) -> str:
    """Write answers, one per line, and return what was done."""
    place = tr("--predictions {path}: cannot be written", path=str(path)[:200])
    try:
        write_user_file(path, answers)
    except OSError as error:
        raise write_error(place, error) from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"{place}: {tr(reason(error))}") from None
    return trn(
        "  {n:,} answer written to {path}, one per line",
        "  {n:,} answers written to {path}, one per line",
        len(answers.splitlines()),
        path=path,
    )
