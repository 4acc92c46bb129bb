"""The entry point: parse, run, and turn each expected error into one line and an exit code."""

import gc
import io
import os
import re
import sys
from collections.abc import Sequence

from engine.base.command_line import PROGRAM
from engine.base.language import tr
from engine.base.starter import end_with_starter
from tui_transformer import languages


def _open_streams() -> None:
    """Point streams that were closed at startup to nowhere: a file opened later would take their descriptors.

    Python sets them to None, and what C libraries write to descriptor 2 would land in that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
            os.set_inheritable(number, True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the process
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return its exit code (see `ExitCode`)."""
    _open_streams()
    end_with_starter()
    gc.set_threshold(200_000, 10, 10)  # importing makes no garbage: a search each 700 objects takes 30 ms of `watch`
    for name in ("COLUMNS", "LINES"):  # libraries would stumble over an invalid size
        if not re.fullmatch("[1-9][0-9]{0,8}", os.environ.get(name, "1")):
            del os.environ[name]
    words = list(sys.argv[1:] if arguments is None else arguments)
    from engine.base.errors import InputError, MachineFault, RunTakenOver, reason

    try:
        words = languages.apply_language_option(words)
    except InputError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 2
    from typer.exceptions import Abort, Exit, TyperException

    from tui_transformer.cli.app import program
    from tui_transformer.cli.output import ExitCode, print_error

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character the terminal lacks is no failure
            stream.reconfigure(errors="replace")
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    try:
        os.getcwd()  # noqa: PTH109
    except OSError as error:  # torch would exit with a message of its own
        print_error(tr("cannot use the current folder: {error}; cd to another one", error=reason(error)))
        return ExitCode.FAILED
    try:
        # Not through typer's own main, which hides a broken pipe behind exit code 1.
        group = program()
        variable = f"_{PROGRAM.replace('-', '_').upper()}_COMPLETE"
        if variable in os.environ:  # by a shell, for completion
            from typer.completion import shell_complete

            return shell_complete(group, {}, PROGRAM, variable, os.environ[variable])
        with group.make_context(PROGRAM, words) as context:
            result = group.invoke(context)
        sys.stdout.flush()
    except Exit as leaving:
        result = leaving.exit_code
    except SystemExit as leaving:  # as typer's completion does
        result = leaving.code
    except InputError as error:
        print_error(str(error))
        codes = {MachineFault: ExitCode.FAILED, RunTakenOver: ExitCode.TAKEN_OVER}
        return codes.get(type(error), ExitCode.BAD_INPUT)
    except TyperException as error:
        from tui_transformer.cli.mistyped import usage_error_line

        print_error(usage_error_line(error, words))
        return ExitCode.BAD_INPUT
    except (Abort, KeyboardInterrupt):
        print_error(tr("interrupted"))
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left (`| head`): write no more, not even in python's own flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.READER_LEFT
    except OSError as error:  # a full or broken disk, a folder that vanished
        where = error.filename or tr("the output cannot be written")
        print_error(f"{where}: {tr(reason(error))}")
        return ExitCode.FAILED
    return int(result or ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
