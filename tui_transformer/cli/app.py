"""The command line: what each command is called and takes. What it does stands in the modules beside this one.

Here is what stands above all commands, and what looks at runs or uses them; what trains is in `cli_training`, data and
presets are in `cli_data`. Nothing heavy is imported in any of them: `--help` must not wait for torch.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.command_line import RUNS
from tui_transformer.cli.app_data import data_app, presets_app
from tui_transformer.cli.app_training import training_app
from tui_transformer.cli.options import (
    ConfigFile,
    Corpus,
    DataDir,
    Device,
    Group,
    Json,
    On,
    PresetName,
    RunArgument,
    RunsDir,
    Set,
)

if TYPE_CHECKING:
    from typer.core import TyperGroup

app = typer.Typer(
    name="tui-transformer",
    cls=Group,
    help="Build a Transformer from its parts, train it in your terminal, and trust what the comparison says.",
    epilog="Exit codes: 0 done · 1 the run failed · 2 bad input · 130, 143, 129 interrupted (ctrl-c, TERM, hang-up).",
    no_args_is_help=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
app.registered_commands += training_app.registered_commands
app.add_typer(presets_app, name="presets")
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def studio(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", "-v", help="Print the version.")] = False,
    device: Device = "auto",
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Without a command: the studio."""
    if version:
        from engine.release import version as number

        print(f"tui-transformer {number()}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        from tui_transformer.cli.studio import studio_command

        return studio_command(device=device, runs_dir=runs_dir, data_dir=data_dir)
    return 0


@app.command()
def sample(
    run: RunArgument = "last",
    prompt: Annotated[str | None, typer.Option("--prompt", help="Answer this once instead of asking.")] = None,
    vs: Annotated[str | None, typer.Option("--vs", help="A second run: same prompt, same seed.")] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=10_000, help="How many answers to --prompt.")] = 1,
    length: Annotated[int, typer.Option("--length", min=1, max=10_000_000, help="Tokens an answer.")] = 200,
    temperature: Annotated[float | None, typer.Option("--temperature", help="0 takes the likeliest.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Only the k likeliest tokens; 0: all.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Only the likeliest up to this mass.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Equal seeds give equal answers.")] = 1,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, or a step.")] = "best",
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Continue text with a trained model: an interactive prompt, or --prompt TEXT for one answer.

    At the prompt: /alternatives, /surprise TEXT, /vs RUN and more; /help lists them.
    """
    from tui_transformer.cli.sample import sample_command
    from tui_transformer.lab.play.prompt import Settings

    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "length": length, "seed": seed}
    settings: Settings = {key: value for key, value in given.items() if value is not None}
    return sample_command(
        run, prompt, n, settings, vs=vs, checkpoint=checkpoint, device=device, as_json=json, runs_dir=runs_dir
    )


@app.command()
def translate(
    run: RunArgument = "last",
    text: Annotated[str | None, typer.Option("--text", help="Translate this once instead of asking.")] = None,
    input_: Annotated[Path | None, typer.Option("--input", help="Translate each line of this file.")] = None,
    beam: Annotated[int | None, typer.Option("--beam", help="Hypotheses that are followed; 1 is greedy.")] = None,
    nbest: Annotated[int | None, typer.Option("--nbest", help="Translations of each sentence.")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Of the length penalty.")] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, average, or a step.")] = "best",
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Translate with a trained model: an interactive prompt, --text, --input FILE, or a pipe, a line each.

    At the prompt: examples, /beam, /nbest, /align and more; /help lists them.
    """
    from tui_transformer.cli.translate import translate_command

    given = {"beam": beam, "nbest": nbest, "alpha": alpha}
    settings = {key: value for key, value in given.items() if value is not None}
    return translate_command(
        run, text, input_, settings, checkpoint=checkpoint, device=device, as_json=json, runs_dir=runs_dir
    )


@app.command()
def check(
    preset: PresetName = None,
    config: ConfigFile = None,
    on: On = None,
    set_: Set = None,
    corpus: Corpus = None,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Try a model without training it: leaks, cache parity, whether its switches do something, time and memory."""
    from tui_transformer.cli.check import check_command
    from tui_transformer.cli.run import Request

    request = Request(preset, config, on, tuple(set_ or ()), corpus, None)
    return check_command(request, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@app.command()
def evaluate(
    run: RunArgument = "last",
    split: Annotated[str, typer.Option("--split", help="validation, test or train.")] = "validation",
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, or a step.")] = "best",
    stride: Annotated[
        int | None, typer.Option("--stride", help="Tokens between windows; the run's own if left out.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Windows at once; only speed.")] = None,
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, max=1000, help="Beam of a translation; the run's own if left out.")
    ] = None,
    sentences: Annotated[
        int, typer.Option("--sentences", min=0, max=1000, help="Best and worst translations to show.")
    ] = 3,
    predictions: Annotated[
        Path | None, typer.Option("--predictions", help="A file for the answers to questions, a line each.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Score a checkpoint over a whole split; a translation by BLEU and chrF too, questions by exact answers."""
    from tui_transformer.cli.evaluate import Asked, evaluate_command

    asked = Asked(split, checkpoint, stride, batch_size, beam, sentences, device, json, data_dir, predictions)
    return evaluate_command(run, asked, runs_dir=runs_dir)


@app.command()
def bench(
    case: Annotated[
        str,
        typer.Option(
            "--case",
            help="Any of training, trainer, evaluation, sampling, attention, studio, separated by commas; or memory.",
        ),
    ] = "",
    size: Annotated[
        str, typer.Option("--size", help="Presets to measure, comma-separated; for memory, also all.")
    ] = "",
    precision: Annotated[str, typer.Option("--precision", help="Any of fp32, fp32-fast, bf16, comma-separated.")] = "",
    against: Annotated[
        str,
        typer.Option("--against", help="Any of transformers, x-transformers, torch; or installed, for all of them."),
    ] = "",
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Turns of each contender.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, max=600, help="The least a turn takes.")] = 2.0,
    device: Device = "auto",
    json: Json = False,
    write: Annotated[Path | None, typer.Option("--write", help="A Markdown file to put the tables into.")] = None,
) -> int:
    """Time training, evaluation, sampling and attention beside other libraries, in turns.

    Defaults depend on the device. On a CPU: the baseline in fp32 and bf16, without other libraries. On a GPU: baseline,
    nanogpt, gpt2-small, win16 and linear, in every precision, beside all libraries that are installed.
    """
    from tui_transformer.cli.bench import bench_command

    def several(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())

    return bench_command(
        several(case),
        sizes=several(size),
        precisions=several(precision),
        against=several(against),
        rounds=rounds,
        seconds=seconds,
        device=device,
        as_json=json,
        write=write,
    )


@app.command("runs")
def runs(json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """List the runs: state, score, and what is wrong with it."""
    from tui_transformer.cli.runs import runs_command

    return runs_command(as_json=json, runs_dir=runs_dir)


@app.command()
def compare(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Runs, or a study; all if left out. The first run is the baseline.")
    ] = None,
    filter_: Annotated[str, typer.Option("--filter", help="Such as: rope n_heads>=2 loss<1.3 -badge:LEAK")] = "",
    sort: Annotated[str, typer.Option("--sort", help="By a column, e.g. loss; -loss is the other way round.")] = "",
    baseline: Annotated[str, typer.Option("--baseline", help="The run or variant that differences are to.")] = "",
    by: Annotated[str, typer.Option("--by", help="run, or variant: over its seeds, as a study is.")] = "",
    all_settings: Annotated[bool, typer.Option("--all-settings", help="Not only the settings that differ.")] = False,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="For a spreadsheet.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="A table for a README.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help=r"A tabular for \input.")] = False,
    latex_document: Annotated[bool, typer.Option("--latex-document", help="A page that pdflatex compiles.")] = False,
    by_distance: Annotated[
        str,
        typer.Option("--by-distance", metavar="PROBE", help="Draw how often a probe (recall) is right by distance."),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file; its ending says the format.")] = None,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Runs side by side: what differs, what they score, and whether anything can be concluded."""
    from tui_transformer.cli.compare import compare_command

    formats = {"json": json, "csv": csv, "markdown": markdown, "latex": latex, "latex-document": latex_document}
    if by_distance:
        from tui_transformer.cli.distance import distance_command

        return distance_command(runs or [], probe=by_distance, out=out, runs_dir=runs_dir)
    return compare_command(
        runs or [],
        query=filter_,
        sort_by=sort,
        baseline=baseline,
        by=by,
        all_settings=all_settings,
        written_as=[name for name, wanted in formats.items() if wanted],
        out=out,
        runs_dir=runs_dir,
    )


@app.command()
def report(
    runs: Annotated[list[str], typer.Argument(help="Runs, or a study. The first of several runs is the baseline.")],
    format_: Annotated[str, typer.Option("--format", "-f", help="markdown, latex or html.")] = "markdown",
    language: Annotated[str, typer.Option("--language", help="en or zh.")] = "en",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Its folder; reports/NAME if left out.")] = None,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """A report to hand in: verdict, model, data, settings, curves, tables, limits, and how to repeat it."""
    from tui_transformer.cli.report import report_command

    return report_command(runs, kind=format_, language=language, out=out, as_json=json, runs_dir=runs_dir)


@app.command()
def rename(
    run: Annotated[str, typer.Argument(help="A run's name, its path, or `last`.")],
    name: Annotated[str, typer.Argument(help="Its new name.")],
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Give a run another name. A live one is refused."""
    from tui_transformer.cli.manage import rename_command

    return rename_command(run, name, as_json=json, runs_dir=runs_dir)


@app.command()
def delete(
    run: Annotated[list[str], typer.Argument(help="Runs' names.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Delete runs with their checkpoints. A live one is refused."""
    from tui_transformer.cli.manage import delete_command

    return delete_command(run, yes=yes, as_json=json, runs_dir=runs_dir)


@app.command()
def note(
    run: RunArgument = "last",
    text: Annotated[str | None, typer.Argument(help="The new note; without it, the old one is shown.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to add.")] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", help="A tag to take away.")] = None,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Show or change a run's notes and tags."""
    from tui_transformer.cli.manage import note_command

    return note_command(run, text, tag or [], untag or [], as_json=json, runs_dir=runs_dir)


@app.command()
def watch(
    run: RunArgument = "last",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Follow a run, wherever it was started. Leaving does not stop it."""
    from tui_transformer.cli.watch import watch_command

    return watch_command(run, as_json=json, runs_dir=runs_dir)


@app.command()
def doctor(
    run: Annotated[str | None, typer.Argument(help="A run to look through; without it, this machine.")] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Prove that training works on a GPU: up to ten minutes.")] = False,
    device: Annotated[str, typer.Option("--device", help="With --gpu: auto, cpu, cuda, cuda:0 or mps.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --gpu: the file to write, by default gpu-proof.json.")
    ] = None,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """What this machine (or a run) has, what is missing, what to do; with --gpu, proof that training works on it."""
    from engine.errors import InputError

    if gpu:
        if run is not None:
            raise InputError(f"doctor --gpu: tests this machine, not a run; leave out '{run[:80]}'")
        from tui_transformer.cli.prove import FILE, prove_command

        return prove_command(device=device, out=out if out is not None else FILE, as_json=json)
    for option, given in (("--device", device != "auto"), ("--out", out is not None)):
        if given:
            raise InputError(f"doctor {option}: only works with --gpu")
    from tui_transformer.cli.doctor import doctor_command

    return doctor_command(run, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@app.command()
def verify(
    run: RunArgument = "last",
    steps: Annotated[int, typer.Option("--steps", min=0, max=100_000, help="Training steps to repeat.")] = 20,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Score, repeat and hash a run again: can its numbers be confirmed? Exit code 1 if something differs."""
    from tui_transformer.cli.verify import verify_command

    return verify_command(run, steps=steps, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@app.command()
def export(
    runs: Annotated[list[str], typer.Argument(help="Runs' names, paths, or `last`.")],
    to: Annotated[str, typer.Option("--to", help="csv, json, tensorboard, wandb, mlflow or huggingface.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder; for csv and json, a file too.")] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, or a step: whose weights.")] = "best",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Write runs down for another tool. Nothing leaves this machine unless your own environment says so."""
    from tui_transformer.cli.export import export_command

    return export_command(runs, to=to, out=out, checkpoint=checkpoint, as_json=json, runs_dir=runs_dir)


@cache
def command() -> "TyperGroup":
    """The whole command line as one object, which takes 10 ms to build."""
    return typer.main.get_command(app)  # type: ignore[return-value]
