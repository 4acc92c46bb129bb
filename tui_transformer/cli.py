"""The command line: what each command is called and takes. What it does stands in `tui_transformer.commands`.

Nothing heavy is imported here: `--help` must not wait for torch.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from typer.core import TyperGroup

app = typer.Typer(
    name="tui-transformer",
    help="Build a Transformer from its parts, train it, watch it learn, and trust what the comparison says.",
    epilog="Exit codes: 0 done · 1 the run failed · 2 bad input · 130, 143, 129 interrupted (ctrl-c, TERM, hang-up).",
    no_args_is_help=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
presets_app = typer.Typer(help="Named settings to start from.", rich_markup_mode=None)
app.add_typer(presets_app, name="presets")
data_app = typer.Typer(help="The corpora to train on.", rich_markup_mode=None)
app.add_typer(data_app, name="data")

RunsDir = Annotated[
    Path, typer.Option("--runs-dir", envvar="TUI_TRANSFORMER_RUNS", help="Where runs are.", show_default=True)
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where named corpora are looked for first.")]
PresetName = Annotated[str | None, typer.Option("--preset", "-p", help="A preset; `presets list` shows them.")]
On = Annotated[str | None, typer.Option("--on", help="Apply the preset's change to this base, e.g. demo.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file instead of a preset.")]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", help="Change one setting: model.n_heads=2")]
Corpus = Annotated[str | None, typer.Option("--corpus", help="A corpus by name, or any UTF-8 text file.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
Detach = Annotated[bool, typer.Option("--detach", help="Train in a process of its own and return at once.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:0 or mps.")]
RunArgument = Annotated[str, typer.Argument(help="A run's name, its path, or `last`.")]
RUNS = Path("runs")


@app.callback(invoke_without_command=True)
def studio(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    device: Device = "auto",
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Without a command: the studio."""
    if version:
        from importlib.metadata import version as installed

        print(f"tui-transformer {installed('tui-transformer')}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        from tui_transformer.commands.studio import studio_command

        return studio_command(device=device, runs_dir=runs_dir, data_dir=data_dir)
    return 0


@app.command()
def run(
    preset: PresetName = None,
    config: ConfigFile = None,
    on: On = None,
    set_: Set = None,
    corpus: Corpus = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The run's seed.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; by default the preset's.")] = None,
    detach: Detach = False,
    queue: Annotated[bool, typer.Option("--queue", help="Train it when the device is free; returns at once.")] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Train a model. Ctrl-c stops at the next step and keeps a checkpoint."""
    from tui_transformer.commands.run import Request, run_command

    request = Request(preset, config, on, tuple(set_ or ()), corpus, seed)
    if queue:
        from tui_transformer.commands.detached import run_queued

        return run_queued(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    if detach:
        from tui_transformer.commands.detached import run_detached

        return run_detached(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    return run_command(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@app.command()
def ablate(
    study: Annotated[str | None, typer.Option("--study", help="A study: NAME of --list, or a TOML file.")] = None,
    preset: PresetName = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", help="An axis: model.n_heads=1,2,4,8; several: a grid.")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="Another base for the variants, e.g. demo.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="3: the seeds 1, 2 and 3; 1,5,9: these.")] = None,
    set_: Set = None,
    corpus: Corpus = None,
    name: Annotated[str | None, typer.Option("--name", help="The study's name, with which its runs' begin.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, or several: cuda:0,cuda:1.")] = "auto",
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=256, help="Runs at a time.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only the plan: runs, time, disk, what differs.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Take up again what failed.")] = False,
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="What failed is no failure of the study.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Run it in a process of its own; returns at once.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="The studies that come with this.")] = False,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Train variants of one base with several seeds. Stopped or killed, the same command goes on with it."""
    from engine.errors import InputError
    from tui_transformer.commands import ablate as command
    from tui_transformer.studies.asked import Asked
    from tui_transformer.studies.ready import How

    if list_:
        return command.list_command(as_json=json)
    if retry_failed and skip_failed:
        raise InputError("--retry-failed and --skip-failed exclude each other")
    asked = Asked(study, preset, tuple(vary or ()), on, seeds, tuple(set_ or ()), corpus, name)
    failed = "retry" if retry_failed else "skip" if skip_failed else ""
    how = How(device, jobs, failed, json, runs_dir, data_dir)
    if dry_run:
        return command.plan_command(asked, how)
    return command.detached_command(asked, how) if detach else command.ablate_command(asked, how)


@app.command("measure-study", hidden=True)
def measure_study(data_dir: DataDir = None) -> int:
    """Plan the study on stdin; what `ablate` starts."""
    from tui_transformer.commands.ablate import measure_command

    return measure_command(data_dir)


@app.command()
def resume(
    run: RunArgument = "last",
    detach: Detach = False,
    handed_over: Annotated[bool, typer.Option("--handed-over", hidden=True)] = False,
    paused: Annotated[bool, typer.Option("--paused", hidden=True)] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Go on with a stopped, interrupted, failed or lost run, bit for bit."""
    if detach:
        from tui_transformer.commands.detached import resume_detached

        return resume_detached(run, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    from tui_transformer.commands.run import resume_command

    return resume_command(
        run,
        device=device,
        as_json=json,
        runs_dir=runs_dir,
        data_dir=data_dir,
        handed_over=handed_over,
        paused=paused,
    )


@app.command()
def queue(device: Device = "auto", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Train what `run --queue` left, one after the other; that starts this by itself in the background."""
    from tui_transformer.commands.detached import queue_command

    return queue_command(device=device, as_json=json, runs_dir=runs_dir)


@app.command(hidden=True)
def begin(run: RunArgument, device: Device = "auto", runs_dir: RunsDir = RUNS, data_dir: DataDir = None) -> int:
    """Train a queued run; what `run --detach` starts."""
    from tui_transformer.commands.run import begin_command

    return begin_command(run, device=device, runs_dir=runs_dir, data_dir=data_dir)


@app.command()
def pause(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a run wait at its next step; its process stays."""
    return _control(run, "pause", json, runs_dir)


@app.command("continue")
def continue_(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a paused run go on."""
    return _control(run, "continue", json, runs_dir)


@app.command()
def stop(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """End a run at its next step, with a checkpoint to resume from."""
    return _control(run, "stop", json, runs_dir)


@app.command()
def checkpoint(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a run save a checkpoint at its next step, and go on."""
    return _control(run, "checkpoint", json, runs_dir)


def _control(run: str, command: str, as_json: bool, runs_dir: Path) -> int:
    from engine.runs.commands import Command
    from tui_transformer.commands.control import control_command

    return control_command(run, Command(command), as_json=as_json, runs_dir=runs_dir)


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
    from tui_transformer.commands.sample import sample_command
    from tui_transformer.prompt import Settings

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
    from tui_transformer.commands.translate import translate_command

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
    data_dir: DataDir = None,
) -> int:
    """Try a model without training it: leaks, cache parity, whether its switches do something, time and memory."""
    from tui_transformer.commands.check import check_command
    from tui_transformer.commands.run import Request

    request = Request(preset, config, on, tuple(set_ or ()), corpus, None)
    return check_command(request, device=device, as_json=json, data_dir=data_dir)


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
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Score a checkpoint over a whole split; a translation by BLEU and chrF too."""
    from tui_transformer.commands.evaluate import Asked, evaluate_command

    asked = Asked(split, checkpoint, stride, batch_size, beam, sentences, device, json, data_dir)
    return evaluate_command(run, asked, runs_dir=runs_dir)


@app.command()
def bench(
    case: Annotated[
        str, typer.Option("--case", help="Of training, trainer, evaluation, sampling, attention, studio; with commas.")
    ] = "",
    size: Annotated[str, typer.Option("--size", help="A preset that says how large.")] = "baseline",
    precision: Annotated[str, typer.Option("--precision", help="Of fp32, fp32-fast, bf16, with commas.")] = "fp32,bf16",
    against: Annotated[str, typer.Option("--against", help="Of transformers, x-transformers, torch.")] = "",
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Turns of each contender.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, max=600, help="The least a turn takes.")] = 2.0,
    device: Device = "auto",
    json: Json = False,
    write: Annotated[Path | None, typer.Option("--write", help="A Markdown file to put the tables into.")] = None,
) -> int:
    """Time training, evaluation, sampling and attention beside other libraries, in turns."""
    from tui_transformer.commands.bench import bench_command

    def several(text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())

    return bench_command(
        several(case),
        size=size,
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
    from tui_transformer.commands.runs import runs_command

    return runs_command(as_json=json, runs_dir=runs_dir)


@app.command()
def compare(
    runs: Annotated[list[str] | None, typer.Argument(help="Runs; all if left out. The first is the baseline.")] = None,
    filter_: Annotated[str, typer.Option("--filter", help="Such as: rope n_heads>=2 loss<1.3 -badge:LEAK")] = "",
    sort: Annotated[str, typer.Option("--sort", help="By a column, e.g. loss; -loss is the other way round.")] = "",
    baseline: Annotated[str, typer.Option("--baseline", help="The run that differences are to.")] = "",
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
    from tui_transformer.commands.compare import compare_command

    formats = {"json": json, "csv": csv, "markdown": markdown, "latex": latex, "latex-document": latex_document}
    if by_distance:
        from tui_transformer.commands.distance import distance_command

        return distance_command(runs or [], probe=by_distance, out=out, runs_dir=runs_dir)
    return compare_command(
        runs or [],
        query=filter_,
        sort_by=sort,
        baseline=baseline,
        all_settings=all_settings,
        written_as=[name for name, wanted in formats.items() if wanted],
        out=out,
        runs_dir=runs_dir,
    )


@app.command()
def rename(
    run: Annotated[str, typer.Argument(help="A run's name, its path, or `last`.")],
    name: Annotated[str, typer.Argument(help="Its new name.")],
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Give a run another name. A live one is refused."""
    from tui_transformer.commands.manage import rename_command

    return rename_command(run, name, as_json=json, runs_dir=runs_dir)


@app.command()
def delete(
    run: Annotated[list[str], typer.Argument(help="Runs' names.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Delete runs with their checkpoints. A live one is refused."""
    from tui_transformer.commands.manage import delete_command

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
    from tui_transformer.commands.manage import note_command

    return note_command(run, text, tag or [], untag or [], as_json=json, runs_dir=runs_dir)


@app.command()
def watch(
    run: RunArgument = "last",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    """Follow a run, wherever it was started. Leaving does not stop it."""
    from tui_transformer.commands.watch import watch_command

    return watch_command(run, as_json=json, runs_dir=runs_dir)


@app.command()
def doctor(
    run: Annotated[str | None, typer.Argument(help="A run to look through; without it, this machine.")] = None,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """What this machine (or a run) has, what is missing, what to do."""
    from tui_transformer.commands.doctor import doctor_command

    return doctor_command(run, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@data_app.callback(invoke_without_command=True)
def data_default(context: typer.Context) -> int:
    """The corpora to train on."""
    return int(data_list()) if context.invoked_subcommand is None else 0


@data_app.command("list")
def data_list(json: Json = False, data_dir: DataDir = None) -> int:
    """All corpora that have a name, and where they are."""
    from tui_transformer.commands.data import list_command

    return list_command(as_json=json, data_dir=data_dir)


@data_app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(help="A corpus by name, a text file, or the path of sentence pairs.")],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """One corpus: its sizes, its characters, what to hold a score against, how it begins."""
    from tui_transformer.commands.data import show_command

    return show_command(name, as_json=json, data_dir=data_dir)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A corpus by name.")],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """Download a corpus, checked by its SHA-256 where that is known."""
    from tui_transformer.commands.fetch import fetch_command

    return fetch_command(name, as_json=json, data_dir=data_dir)


@presets_app.callback(invoke_without_command=True)
def presets_default(context: typer.Context) -> int:
    """Named settings to start from."""
    return int(presets_list()) if context.invoked_subcommand is None else 0


@presets_app.command("list")
def presets_list(json: Json = False) -> int:
    """All presets, a line each."""
    from tui_transformer.commands.presets import list_command

    return list_command(as_json=json)


@presets_app.command("show")
def presets_show(
    name: Annotated[str, typer.Argument(help="A preset's name.")],
    on: On = None,
    set_: Set = None,
    mask: Annotated[
        bool, typer.Option("--mask", help="Draw who may look at whom and what positions add, instead of the settings.")
    ] = False,
    json: Json = False,
) -> int:
    """One preset: what it changes, its complete settings, parameters, cost."""
    from tui_transformer.commands.presets import show_command

    return show_command(name, on, tuple(set_ or ()), as_json=json, mask=mask)


@presets_app.command("diff")
def presets_diff(
    a: Annotated[str, typer.Argument(help="A preset's name.")],
    b: Annotated[str, typer.Argument(help="Another preset's name.")],
    json: Json = False,
) -> int:
    """The settings in which two presets differ."""
    from tui_transformer.commands.presets import diff_command

    return diff_command(a, b, as_json=json)


@presets_app.command("schema")
def presets_schema() -> int:
    """The JSON schema of a config file, for editors."""
    from tui_transformer.commands.presets import schema_command

    return schema_command()


def command() -> "TyperGroup":
    """The whole command line as one object."""
    return typer.main.get_command(app)  # type: ignore[return-value]
