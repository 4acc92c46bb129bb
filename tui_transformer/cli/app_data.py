"""The command line, what there is to train on and to start from: `data` and `presets`."""

from typing import Annotated

import typer

from tui_transformer.cli.options import DataDir, Group, Json, On, Set

presets_app = typer.Typer(cls=Group, help="Named settings to start from.", rich_markup_mode=None)
data_app = typer.Typer(cls=Group, help="The corpora to train on.", rich_markup_mode=None)


@data_app.callback(invoke_without_command=True)
def data_default(context: typer.Context, data_dir: DataDir = None) -> int:
    """The corpora to train on."""
    return int(data_list(data_dir=data_dir)) if context.invoked_subcommand is None else 0


@data_app.command("list")
def data_list(json: Json = False, data_dir: DataDir = None) -> int:
    """All corpora that have a name, and where they are."""
    from tui_transformer.cli.data import list_command

    return list_command(as_json=json, data_dir=data_dir)


@data_app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(help="A corpus by name, a text file, or the path of sentence pairs.")],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """One corpus: its sizes, its characters, what to hold a score against, how it begins."""
    from tui_transformer.cli.data import show_command

    return show_command(name, as_json=json, data_dir=data_dir)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="A corpus by name.")],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """Download a corpus, checked by its SHA-256 where that is known."""
    from tui_transformer.cli.fetch import fetch_command

    return fetch_command(name, as_json=json, data_dir=data_dir)


@presets_app.callback(invoke_without_command=True)
def presets_default(context: typer.Context) -> int:
    """Named settings to start from."""
    return int(presets_list()) if context.invoked_subcommand is None else 0


@presets_app.command("list")
def presets_list(json: Json = False) -> int:
    """All presets, a line each."""
    from tui_transformer.cli.presets import list_command

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
    from tui_transformer.cli.presets import show_command

    return show_command(name, on, tuple(set_ or ()), as_json=json, mask=mask)


@presets_app.command("diff")
def presets_diff(
    a: Annotated[str, typer.Argument(help="A preset's name.")],
    b: Annotated[str, typer.Argument(help="Another preset's name.")],
    json: Json = False,
) -> int:
    """The settings in which two presets differ."""
    from tui_transformer.cli.presets import diff_command

    return diff_command(a, b, as_json=json)


@presets_app.command("schema")
def presets_schema() -> int:
    """The JSON schema of a config file, for editors."""
    from tui_transformer.cli.presets import schema_command

    return schema_command()
