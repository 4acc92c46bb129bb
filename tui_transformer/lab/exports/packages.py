"""Clients of other tools are extras: where one is missing, a line says what to install."""

from importlib.util import find_spec

from engine.errors import InputError


def require(tool: str, packages: tuple[str, ...]) -> None:
    """See that the packages of an extra are here.

    Raises:
        InputError: one is not; names the extra.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(
            f"export --to {tool} needs {' and '.join(missing)}: pip install 'tui-transformer[{tool}]' brings it; "
            "--to csv and --to json need nothing"
        )
