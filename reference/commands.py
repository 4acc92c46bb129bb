"""Every command with its options and examples, and what the exit codes mean."""

from collections.abc import Iterator, Mapping
from typing import Any

from reference.comments import field_comments
from reference.examples import PROGRAM, ROOT, guide_examples, page_title
from reference.markup import code, fence, heading, inline_html, page, paragraphs, table
from tui_transformer.cli.app import program
from tui_transformer.cli.commands import LazyCommand, examples_of
from tui_transformer.cli.output import ExitCode


def commands() -> str:
    group = program()
    root = group.make_context(PROGRAM, [], resilient_parsing=True)
    blocks = [
        paragraphs(group.help or ""),
        fence(f"{PROGRAM} [OPTIONS]\n{PROGRAM} COMMAND [OPTIONS]"),
        "Without a command, it opens the studio. `--runs-dir`, `--data-dir`, `--device` and `--json` work before or "
        "after a command's name; the later one wins. See [what the exit codes mean](exit-codes.md).",
        _options(group, root),
    ]
    for name, one in group.commands.items():
        command: Any = one.load() if isinstance(one, LazyCommand) else one
        if not command.hidden:
            blocks += _command(name, command, root, 2)
    return page("Commands", *blocks)


def _command(name: str, command: Any, parent: Any, level: int) -> Iterator[str]:
    """`Any`: typer ships a click of its own, whose types are private."""
    context = command.make_context(name.rpartition(" ")[2], [], parent=parent, resilient_parsing=True)
    below = {f"{name} {one.name}": one for one in getattr(command, "commands", {}).values() if not one.hidden}
    yield heading(level, name, name.replace(" ", "-"))
    yield paragraphs(command.help or "")
    if not below:
        yield fence(" ".join([PROGRAM, name, *command.collect_usage_pieces(context)]))
    yield _options(command, context)
    if not below:
        yield from _examples(name, examples_of(command))
    for other, one in below.items():
        yield from _command(other, one, context, level + 1)


def _options(command: Any, context: Any) -> str:
    """Arguments, then options, as `--help` shows them."""
    rows = []
    for parameter in sorted(command.get_params(context), key=lambda one: one.param_type_name):
        said = parameter.get_help_record(context)
        if said is not None and "--help" not in parameter.opts:
            rows.append((code(said[0]), inline_html(said[1])))
    return table(("argument or option", "meaning"), rows) if rows else ""


def _examples(name: str, shown: Mapping[str, str]) -> Iterator[str]:
    """Those of `--help`, then those of the guides."""
    own = [f"{PROGRAM} {line}  # {what}" for line, what in shown.items()]
    yield fence("\n".join(own))
    found = guide_examples(name)
    if not found:
        return
    pages = (f"[{page_title(path)}](../{path.relative_to(ROOT / 'docs').as_posix()})" for path in found)
    yield fence("\n".join(line for lines in found.values() for line in lines))
    yield f"From {', '.join(pages)}."


def exit_codes() -> str:
    said = field_comments(ExitCode)
    return page(
        "Exit codes",
        "What a command returns to the shell. `check`, `doctor` and `verify` return 1 if they find something wrong.",
        table(("code", "meaning"), [(code(int(one)), inline_html(said[one.name])) for one in ExitCode]),
    )
