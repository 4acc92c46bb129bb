"""The entry point: parses, runs, and turns every expected error into one line and an exit code."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; gives back its exit code (see `tui_transformer.exit_codes`)."""
    from typer.exceptions import Abort, TyperException

    from engine.errors import InputError
    from tui_transformer.cli import command
    from tui_transformer.exit_codes import ExitCode
    from tui_transformer.output import complain, usage_line

    try:
        result = command().main(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name="tui-transformer",
            standalone_mode=False,
        )
    except InputError as error:
        complain(str(error))
        return ExitCode.BAD_INPUT
    except TyperException as error:
        complain(usage_line(error))
        return ExitCode.BAD_INPUT
    except (Abort, KeyboardInterrupt):
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader left; nobody wants to hear about it
        return ExitCode.DONE
    return int(result or ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
