"""Every use of typer's private parts, with its reason. `tests/test_private_parts.py` tries each.

typer carries its own copy of click, and offers none of it by a public name.
"""

from collections.abc import Callable

from typer import core
from typer._click import Command, Context
from typer._click.formatting import HelpFormatter

__all__ = ["Command", "Context", "HelpFormatter", "install_completion", "use_formatter", "use_translation"]


def use_translation(translate: Callable[[str], str]) -> None:
    """Translate what typer says by itself: it asks gettext, whose catalogues are not this program's."""
    setattr(core, "_", translate)  # noqa: B010


def use_formatter(formatter: type[HelpFormatter]) -> None:
    """Write the help of all commands by a formatter; typer has no option for it."""
    Context.formatter_class = formatter


def install_completion(shell: str | None) -> tuple[str, object]:
    """Install completion for a shell; return its name and the file. typer's own option prints in English."""
    from typer._completion_shared import install

    return install(shell)
