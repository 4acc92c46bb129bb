"""The studio, which opens when no command is given."""

import sys
from pathlib import Path

from engine.command_line import command_line
from engine.errors import InputError, refused
from tui_transformer.cli.output import is_terminal, say
from tui_transformer.lab.launch.logs import stderr_into

LOG = ".studio.log"


def studio_command(*, device: str, runs_dir: Path, data_dir: Path | None) -> int:
    """Open the studio; on exit report the outcome of a run trained in it."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        demo = command_line("run", "--preset", "demo", runs_dir=runs_dir, data_dir=data_dir, device=device)
        raise InputError(f"the studio needs a terminal; `{demo}` trains without it")
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        log = runs_dir / LOG
        log.open("ab").close()
    except OSError as error:
        raise refused(f"--runs-dir {str(runs_dir)[:200]}: cannot be written", error) from None
    from tui_transformer.studio.app import Studio

    studio = Studio(runs_dir=runs_dir, data_dir=data_dir, device=device)
    with stderr_into(log):
        studio.run()
        if studio.launches.here is not None:  # the studio broke: its run goes on
            studio.last_words.append(studio.launches.hand_over())
    for line in studio.last_words:
        say(line)
    return studio.return_code or 0
