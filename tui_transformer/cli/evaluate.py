"""`evaluate`: score any checkpoint of any run, on any split, at any stride or context; the score records them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine import capabilities
from engine.clean import clean, clean_line
from engine.command_line import RUNS
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.config.toml import validate
from engine.errors import InputError, all_of, listed, one_of, reason, refused
from engine.evaluation.translation import TranslationScores
from engine.language import tr, trn
from engine.measures import MEASURE, MEASURES, ROUGE
from engine.retelling import told
from engine.runs.files import write_named
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, Lead
from tui_transformer.cli.commands import command
from tui_transformer.cli.options import DataDir, Device, Json, RunArgument, RunsDir
from tui_transformer.cli.output import loading, padded, stamp, tell
from tui_transformer.lab.formatting import confusion_lines

if TYPE_CHECKING:
    from engine.data.overlap import Overlap
    from engine.evaluation.scorers import AnswerScorer, Scorer, TranslationScorer
    from engine.evaluation.translation import Written
    from engine.model.transformer import Network

SPLITS = ("train", "validation", "test")
Scored = tuple[dict[str, Any], list[str]]  # as JSON, and as lines
SHOWN = 3  # questions with their answers
LABEL, NARROW = 18, 11  # columns of a score's name


@command(140)
def evaluate(
    run: RunArgument = "last",
    split: Annotated[
        str | None, typer.Option("--split", help=tr("validation, test or train; defaults to validation."))
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", help=tr("Score a text of your own instead: FILE, or FILE:FIELD for a table.")),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help=tr("Translate or summarize texts of your own, one per line, and score them.")),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help=tr("The right translations or summaries, one per line."))
    ] = None,
    csv: Annotated[
        str | None, typer.Option("--csv", help=tr("Classify texts of your own: a CSV file with their classes."))
    ] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help=tr("best, last, average, ema, or a step."))] = "best",
    stride: Annotated[
        int | None, typer.Option("--stride", help=tr("Tokens between window starts; defaults to the run's own."))
    ] = None,
    context: Annotated[
        int | None,
        typer.Option("--context", min=1, help=tr("Tokens read at once; defaults to the training context.")),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help=tr("Override a setting of the run, e.g. model.rope_scaling=yarn")),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help=tr("Windows at once; affects only speed."))
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option("--beam", min=1, max=1000, help=tr("Beam width for translation; defaults to the run's own.")),
    ] = None,
    sentences: Annotated[
        int,
        typer.Option("--sentences", min=0, max=1000, help=tr("How many of the best and worst translations to show.")),
    ] = 3,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help=tr("Output file for the answers to questions, one per line."))
    ] = None,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> None:
    """Score a checkpoint on a split or files of your own: translations by BLEU, summaries by ROUGE, classes by F1."""
    reader = RunReader.resolve(run, runs_dir)
    config = reader.config
    own = _own_files(reader, config, split, text=text, source=source, reference=reference, csv=csv)
    split = split or "validation"
    if config.task.corpus != "pairs" and split not in SPLITS:
        raise InputError(tr("--split {split!r}: must be {known}", split=split[:40], known=one_of(SPLITS)))
    beside = (
        ("--stride", stride, config.on_rows, tr("is scored row by row and has no windows")),
        ("--context", context, config.on_rows, tr("is scored row by row and has no windows")),
        ("--beam", beam, not config.task.uses("evaluation.beam", config), tr("does not translate")),
        ("--predictions", predictions, config.task.rows != "questions", tr("answers no questions")),
    )
    for option, value, is_wrong, why in beside:
        if value is not None and is_wrong:
            raise InputError(
                tr(
                    "{option} {value}: run '{name}' {why}; leave it out",
                    option=option,
                    value=str(value)[:80],
                    name=reader.name,
                    why=why,
                )
            )
    stamp(reader)
    changed = {} if context is None and not settings else _otherwise(config, context, settings or [])
    if changed:
        data = config.dump()
        data["model"] |= changed
        data["evaluation"].pop("stride", None)  # it was derived from the context
        config = validate(data, tr("with these settings"))
        capabilities.require(config, tr("with these settings"))
    if stride is not None and not 1 <= stride <= config.window_targets:
        raise InputError(
            tr("--stride {stride}: must be from 1 to the context, {most}", stride=stride, most=config.window_targets)
        )
    translates = config.task.corpus == "pairs"
    given = {"batch_size": batch_size, "stride": stride, "beam": beam, "translations": 0 if translates else None}
    for name, value in given.items():
        if value is not None:
            config = capabilities.with_value(config, f"evaluation.{name}", value)
    with loading(tr("loading the model and the corpus")):
        from engine.data.catalogue import load_corpus
        from engine.data.documents.corpus import DocumentCorpus
        from engine.evaluation.scorers import AnswerScorer, TranslationScorer
        from engine.training.checkpoint import load_network, parameter_shapes
        from engine.training.devices import resolve_device
        from engine.training.numerics import set_fp32_matmul
        from engine.training.task import task_class

        where, kind = resolve_device(device), task_class(config)
        set_fp32_matmul("exact")
        if parameter_shapes(config.model, 1) != parameter_shapes(reader.config.model, 1):
            raise InputError(
                tr(
                    "{value}: would change the parameters of '{name}'; only settings that its weights do "
                    "not depend on can be changed here",
                    value=all_of(f"model.{name}" for name in changed),
                    name=reader.name,
                )
            )
        model, tokenizer, step = load_network(reader, checkpoint, where, config.model)
        if own:
            corpus, scorer = None, kind.own_scorer(own, config, tokenizer, where, reader.data)
            seen = _also_trained_on(scorer, config, data_dir)
        else:
            corpus = load_corpus(kind.reads, config.data, data_dir)
            _require_same(reader, corpus.name, corpus.sha256, split, kind.part)
            afresh = translates and config.train.init_from is None  # pairs get their tokenizer from the corpus
            scorer = kind.of(corpus, config, None if afresh else tokenizer).scorer(config, where, split)
    if isinstance(scorer, TranslationScorer):
        record, words = _translated(scorer, model, sentences, every=bool(own))
    elif isinstance(scorer, AnswerScorer):
        assert isinstance(corpus, DocumentCorpus)
        record, words = _answered(scorer, model, corpus.majority(split), predictions)
    else:
        record, words = _scored(scorer, model)
    named: dict[str, Any] = {
        "run": reader.name,
        **(own or {"split": split}),
        "checkpoint": checkpoint,
        "badges": list(reader.badges),
        "step": step,
    }
    of = reader.raw("data").get("corpus")
    title = clean_line(
        tr(
            "{name}, checkpoint {checkpoint} (step {step:,}), {split} split of {of}",
            name=reader.name,
            checkpoint=checkpoint,
            step=step,
            split=split,
            of=of,
        )
    )
    if own:
        title = clean_line(
            tr(
                "{name}, checkpoint {checkpoint} (step {step:,}), {files}",
                name=reader.name,
                checkpoint=checkpoint,
                step=step,
                files=listed(own.values()),
            )
        )
        if seen is not None and seen.worth_saying:
            named["overlap"] = seen.to_json()
            words.append(f"  ⚠ {told(seen.said)}")
    if changed:
        named["read_as"] = {f"model.{name}": value for name, value in changed.items()}
        settings_read = listed(f"{name} = {value}" for name, value in changed.items())
        title += tr(", read with {settings}", settings=settings_read)
    tell({"kind": "evaluation", **named, **record}, "\n".join([title, *map(clean, words)]), as_json=json)


def _own_files(reader: RunReader, config: RunConfig, split: str | None, **given: str | None) -> dict[str, str]:
    """Return the files of your own that are to be scored, by option; refuse those that the task cannot score."""
    files = {option: file for option, file in given.items() if file is not None}
    if not files:
        return {}
    known = config.task.files
    for option, file in files.items():
        if option not in known:
            can = (
                tr("it can be scored with {options}", options=all_of(f"--{one} FILE" for one in known))
                if known
                else tr("it can only be scored on its own splits")
            )
            raise InputError(
                tr(
                    "--{option} {file}: run '{name}' {does}; {can}",
                    option=option,
                    file=file[:80],
                    name=reader.name,
                    does=config.task.does,
                    can=can,
                )
            )
    missing = [option for option in known if option not in files]
    if missing:
        raise InputError(
            tr("--{option} FILE is missing; it goes with --{other}", option=missing[0], other=next(iter(files)))
        )
    if split is not None:
        raise InputError(
            tr(
                "--split {split}: names a part of the run's own corpus; leave it out to score {file}",
                split=split[:40],
                file=next(iter(files.values()))[:80],
            )
        )
    return files


def _also_trained_on(scorer: "Scorer", config: RunConfig, data_dir: Path | None) -> "Overlap | None":
    """Return how much of a text of your own is also in the run's training text; None if that is not here, or large."""
    from engine.data import corpora
    from engine.data.catalogue import load_corpus
    from engine.data.overlap import text_overlap
    from engine.evaluation.scorers import TextsScorer

    if not isinstance(scorer, TextsScorer):
        return None
    try:
        train = load_corpus(corpora.TextCorpus, config.data, data_dir).splits["train"]
    except InputError:
        return None
    whole = "\n".join(text.split.text for text in scorer.texts)
    return None if train.length > corpora.LARGE else text_overlap(train.pieces(), whole, "given")


def _otherwise(config: RunConfig, context: int | None, settings: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the network that are asked for; {} if it was trained with all of them.

    Rope that is slowed here and was not in training slows for the context: by how many times longer it is than the one
    trained at.
    """
    asked: dict[str, Any] = {} if context is None else {"context_length": context}
    for table in parse_overrides(settings):
        for section, values in table.items():
            if section != "model":
                raise InputError(
                    tr(
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
                    tr(
                        "--set model.rope_scaling={scaling}: only for contexts longer than the {trained:,} tokens of "
                        "training; add --context {longer}",
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
            tr(
                "run '{name}' has no {split} split; choose {known}",
                name=reader.name,
                split=split[:40],
                known=one_of(known),
            )
        )
    if reader.data.sha256.get(part + split) != known[split]:
        raise InputError(
            tr(
                "corpus {corpus}: its {split} split differs from the one run '{name}' was trained with "
                "(SHA-256 mismatch); restore the original text, or train a new run on this text",
                corpus=corpus,
                split=split,
                name=reader.name,
            )
        )


def _scored(scorer: "Scorer", model: "Network") -> Scored:
    """Score a split as in training, with the lines that suit every task."""
    with loading(scorer.work):
        record = scorer.record(model).dump()
    words = [
        _line(tr("loss"), tr("{loss:.4f} nats per {per}", loss=record["loss"], per=scorer.per)),
        _line(tr("perplexity"), f"{record['perplexity']:.4f}"),
    ]
    told_of = {"loss", "perplexity", "accuracy"}
    if "bits_per_character" in record:
        told_of.add("bits per character")
        words.append(_line(tr("bits per character"), f"{record['bits_per_character']:.4f}"))
    words.append(_line(tr("accuracy"), f"{record['accuracy']:.2%}"))
    more = [measure for measure in MEASURES if measure.key in record and measure.charted and not measure.of_loss]
    more = [measure for measure in more if measure.name not in told_of]
    words += [_line(told(measure.name), measure.exact.format(record[measure.key])) for measure in more]
    if record.get("honest_loss") is not None:
        said = tr("{loss:.4f} nats; all other answers are in the model's input", loss=record["honest_loss"])
        words.append(_line(tr("cannot be copied"), said))
    if "excess" in record:
        record["floor"] = scorer.floor()
        said = tr("{excess:+.4f} nats per character", excess=record["excess"])
        words.append(_line(tr("above the floor"), said))
        words += [f"    {floor.amount}  {floor.words}" for floor in DataFacts.read(record).floors]
        if "windows" in (reachable := record["floor"].get("reachable", {})):
            some, every = reachable["windows"]
            words.append(tr("    computed on {some:,} of {every:,} windows, evenly spaced", some=some, every=every))
    if "nanogpt_loss" in record:
        words.append(_line(tr("nanoGPT's batches"), f"{record['nanogpt_loss']:.4f}"))
    places = record.get("probe_places", {})
    words += [_line(name, scorer.probe_words(share, places[name])) for name, share in record["probes"].items()]
    if "confusion" in record:
        words += ["", *(f"  {line}" for line in confusion_lines(scorer.classes, record["confusion"]))]
    rows = [dict(row) for row in scorer.rows()]
    if (len(rows) > 1 and "document" in rows[0]) or record.get("left_out"):
        words.append(_line(tr("documents"), _documents(rows, record.get("left_out", 0))))
    return record | ({"rows": rows} if rows else {}), words


def _documents(rows: Sequence[Mapping[str, Any]], left_out: int) -> str:
    ordered = sorted(rows, key=lambda row: row["loss"])
    said = tr(
        "{n:,}; losses range from {least:.4f} (document {first:,}) to {most:.4f} (document {last:,}); --json has all",
        n=len(rows),
        least=ordered[0]["loss"],
        first=ordered[0]["document"],
        most=ordered[-1]["loss"],
        last=ordered[-1]["document"],
    )
    return said + (tr("; {n:,} too short to be scored", n=left_out) if left_out else "")


def _line(label: str, value: str, width: int = LABEL) -> str:
    return f"  {padded(label, width)}  {value}"


BY_TARGET = ("bleu", "exact_match", "sentences")  # of each of several target languages, in JSON


def _translated(scorer: "TranslationScorer", model: "Network", shown: int, *, every: bool) -> Scored:
    """Translate and score a split; the record has `every` sentence in its order, or only those that are shown."""
    with loading(scorer.work):
        tokens, written = scorer.token_scores(model), scorer.translations(model, scorer.split)
        lead = scorer.lead()
    best, worst, beam = written.best(shown), written.worst(shown), scorer.config.evaluation.beam
    apart = written.apart()
    record = {
        "loss": tokens.loss,
        "perplexity": tokens.perplexity,
        "accuracy": tokens.accuracy,
        "beam": beam,
        "sentences": written.n,
        **written.scores,
        **({"to": {one: dict(zip(BY_TARGET, found, strict=True)) for one, found in apart.items()}} if apart else {}),
        **({} if lead is None else {"lead": lead.dump()}),
        "rows": [asdict(row) for row in (*best, *reversed(worst))],
    }
    if every:
        losses = scorer.sentence_losses(tokens)
        record["rows"] = [
            {"sentence": number, **asdict(row), "tokens": n, "loss": loss}
            for number, (row, (n, loss)) in enumerate(zip(written.rows, losses, strict=True), start=1)
        ]
    how = tr("greedily") if beam == 1 else tr("with a beam of {beam}", beam=beam)
    words = [
        *(_by_bleu(written, how) if lead is None else _by_rouge(written, lead, how)),
        _line(tr("exact"), f"{written.scores['exact_match']:.2%}", NARROW),
        _line(
            tr("loss"),
            tr("{loss:.4f} nats per token, end tokens included, no label smoothing", loss=tokens.loss),
            NARROW,
        ),
        _line(tr("perplexity"), f"{tokens.perplexity:.4f}", NARROW),
    ]
    for title, some in ((tr("  best, {metric} {score:.1f}"), best), (tr("  worst, {metric} {score:.1f}"), worst)):
        for row in some:
            words += [
                title.format(metric=written.metric, score=row.score),
                f"    {row.source}",
                f"  → {row.output}",
                f"  = {row.reference}",
            ]
    return record, words


def _by_bleu(written: "Written", how: str) -> list[str]:
    assert isinstance(written, TranslationScores)
    return [
        _line(
            "BLEU",
            trn(
                "{bleu:.2f}   {n:,} sentence translated {how}",
                "{bleu:.2f}   {n:,} sentences translated {how}",
                written.n,
                bleu=written.bleu,
                how=how,
            ),
            NARROW,
        ),
        _line("", written.bleu_signature, NARROW),
        *(
            _line(
                tr("to {language}", language=language[:20]),
                tr("BLEU {bleu:.2f}, {exact:.2%} of {n:,} exactly right", bleu=bleu, exact=exact, n=n),
                NARROW,
            )
            for language, (bleu, exact, n) in written.apart().items()
        ),
        _line("chrF", f"{written.chrf:.2f}   {written.chrf_signature}", NARROW),
    ]


def _by_rouge(written: "Written", lead: Lead, how: str) -> list[str]:
    """The scores of summaries, beside those of each article's first sentence."""
    said = trn("{n:,} article summarized {how}", "{n:,} articles summarized {how}", written.n, how=how)
    beside = tr("{score:.2f}   the first sentence: {lead:.2f}")
    words = [
        _line(MEASURE[key].name, beside.format(score=written.scores[key], lead=getattr(lead, key)), NARROW)
        for key in ROUGE
    ]
    copied = tr(
        "{share:.2%} of the words occur in the article; of the right summaries' words, {right:.2%}",
        share=written.scores["copied"],
        right=lead.copied,
    )
    return [f"  {said}", *words, _line(tr("copied"), copied, NARROW)]


def _answered(
    scorer: "AnswerScorer", model: "Network", majority: tuple[str, int, int], predictions: Path | None
) -> Scored:
    """Score how many questions of a split are answered exactly; of a blind split, return the answers alone."""
    with loading(trn("answering {n:,} question", "answering {n:,} questions", len(scorer.questions))):
        record = scorer.record(model).dump()
    if predictions is not None:
        place = tr("--predictions {path}: cannot be written", path=str(predictions)[:200])
        try:
            write_named(predictions, scorer.predictions())
        except OSError as error:
            raise refused(place, error) from None
        except ValueError as error:  # a zero byte in its name
            raise InputError(f"{place}: {reason(error)}") from None
    if "exact_match" in record:
        always, right, of = majority
        words = [
            _line(
                tr("exact match"),
                tr(
                    "{share:.2%}   {right:,} of {questions:,} questions, answered greedily",
                    share=record["exact_match"],
                    right=record["right"],
                    questions=record["questions"],
                ),
                NARROW,
            ),
            tr(
                "  always answering “{always}” would score {right:.2%} ({right2:,} of {of:,})",
                always=always,
                right=right / of,
                right2=right,
                of=of,
            ),
            _line(
                tr("loss"),
                tr("{loss:.4f} nats per answer token, start and end marks included", loss=record["loss"]),
                NARROW,
            ),
            _line(tr("perplexity"), f"{record['perplexity']:.4f}", NARROW),
            _line(tr("accuracy"), tr("{share:.2%} of these tokens", share=record["accuracy"]), NARROW),
        ]
    else:
        words = [
            trn(
                "  {n:,} question answered; the split has no reference answers, so there is no score",
                "  {n:,} questions answered; the split has no reference answers, so there is no score",
                record["questions"],
            )
        ]
    answers = scorer.predictions().splitlines()
    for question, written in list(zip(scorer.questions, answers, strict=True))[:SHOWN]:
        words += [f"  {question.text}", f"  → {written}"]
        if question.answer is not None and question.answer != written:
            words.append(f"  = {question.answer}")
    if predictions is not None:
        words.append(
            trn(
                "  {n:,} answer written to {path}, one per line",
                "  {n:,} answers written to {path}, one per line",
                len(answers),
                path=predictions,
            )
        )
    return record, words
