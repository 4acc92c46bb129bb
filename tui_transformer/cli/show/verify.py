"""`verify`: confirm a run's numbers, one line per claim, and a conclusion."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.language import tr, trn
from engine.runs.reader import RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import DataDir, Device, Json, RunArgument, RunsDir
from tui_transformer.cli.output import (
    ExitCode,
    is_terminal,
    pad_to_width,
    print_answer,
    print_badges,
    print_check_result,
    print_json,
    show_progress,
)

RESULTS = {"passed": "confirmed", "failed": "differs", "skipped": "unchecked"}  # as `--json` has them


@command(240)
@examples(
    {
        "verify demo": "Verify a run's numbers.",
        "verify demo --steps 100 --device cpu": "Repeat more steps, on the CPU.",
    }
)
def verify(
    run: RunArgument = "last",
    steps: Annotated[int, typer.Option("--steps", min=0, max=100_000, help="Training steps to repeat.")] = 20,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Rescore, retrain and rehash a run to confirm its numbers. Exit code 1 if anything differs."""
    reader = RunReader.resolve(run, runs_dir)
    print_badges(reader)
    with show_progress(tr("loading the engine")):
        from engine.proofs.verify.claims import verify as claims_of

    claims = claims_of(reader, data_dir=data_dir, device=device, steps=steps)
    counts = dict.fromkeys(RESULTS.values(), 0)
    while True:
        # Show activity on a terminal: scoring again takes as long as it first did.
        with show_progress(tr("checking")) if is_terminal(sys.stdout) and not json else nullcontext():
            claim, found = next(claims, ("", None))
        if found is None:
            break
        result = RESULTS[found.status]
        counts[result] += 1
        if json:
            differences = [asdict(one) for one in found.figures.get("differences", ())]
            record = {"claim": claim, "result": result, "text": found.why, "differences": differences}
            print_json({"kind": "claim", "run": reader.name, **record})
        else:
            print_check_result(found.status, f"{pad_to_width(tr(claim), 14)}  {found.why}")
    if json:
        print_json({"kind": "conclusion", "run": reader.name, **counts})
        return ExitCode.FAILED if counts["differs"] else ExitCode.DONE
    not_here = tr("; {counts} could not be checked here", counts=counts["unchecked"]) if counts["unchecked"] else ""
    if counts["differs"]:
        said = trn(
            "{name}: {n} of {total} claims differs from what was found{unchecked}; do not rely on this run",
            "{name}: {n} of {total} claims differ from what was found{unchecked}; do not rely on this run",
            counts["differs"],
            name=reader.name,
            total=sum(counts.values()),
            unchecked=not_here,
        )
    else:
        said = trn(
            "{name}: no differences, {n} claim confirmed{unchecked}",
            "{name}: no differences, {n} claims confirmed{unchecked}",
            counts["confirmed"],
            name=reader.name,
            unchecked=not_here,
        )
    print_answer(clean_line(said))
    return ExitCode.FAILED if counts["differs"] else ExitCode.DONE
