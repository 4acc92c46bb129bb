"""`presets list | show | diff | schema`."""

import json as json_text
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from engine.base.clean import clean
from engine.base.errors import comma_separated
from engine.base.language import tr, trn
from engine.config import presets
from tui_transformer.cli.commands import CommandGroup, command, examples
from tui_transformer.cli.options import Json, On, Set, preset_names
from tui_transformer.cli.output import is_terminal, print_answer, print_columns, print_json, setting_text, stdout

if TYPE_CHECKING:
    from engine.config.schema import RunConfig


app = typer.Typer(cls=CommandGroup, add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@command(270)
@examples({"presets show demo": "Show what a preset sets."})
def presets_(context: typer.Context, json: Json = False) -> None:
    """Named settings to start from."""
    if context.invoked_subcommand is None:
        list_presets(json=json)


@app.command("list")
@examples({"presets list": "List all presets."})
def list_presets(json: Json = False) -> None:
    """List all presets, one per line."""
    found = presets.list_presets()
    if json:
        for preset in found:
            print_json({"name": preset.name, "extends": preset.extends, "description": preset.description})
        return
    found.sort(key=lambda p: (p.extends is not None, p.extends or "", p.name))
    rows = [(preset.name, preset.extends or "", tr(preset.description)) for preset in found]
    print_columns([(tr("PRESET"), tr("CHANGES"), tr("DESCRIPTION")), *rows])


@app.command()
@examples(
    {
        "presets show rope --on demo": "Show a change applied to the demo.",
        "presets show win16 --mask": "Show which positions can see which.",
    }
)
def show(
    name: Annotated[str, typer.Argument(help="A preset's name.", autocompletion=preset_names)],
    on: On = None,
    set_: Set = None,
    mask: Annotated[
        bool,
        typer.Option(
            "--mask",
            help="Draw the attention mask and the effect of the position encoding instead of listing the settings.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show one preset: what it changes, its complete settings, parameters, cost."""
    from engine import capabilities
    from engine.config.keys import diff, flatten, parse_overrides, sentence_of
    from engine.config.model import active_parts, layer_ranges
    from engine.config.schemes import SCHEMES, describe_scheme
    from engine.config.toml import config_toml
    from tui_transformer.lab.design.draft import cost
    from tui_transformer.lab.formatting import memory, si_number

    preset = presets.find(name)
    config = presets.resolve(preset, on=on, overrides=parse_overrides(set_ or ()))
    capabilities.require_valid(config, tr("preset '{name}'", name=name))
    parent = presets.parent_config(preset, on)
    changes = diff(parent, config) if parent is not None else {}
    found = cost(config)
    if json:
        known = found and {
            "vocabulary": found.vocabulary.tokens,
            "source_vocabulary": found.vocabulary.sources,
            "vocabulary_at_most": found.vocabulary.at_most,
            "parameters": found.parameters,
            "components": found.parts,
            "flops_per_token": found.flops,
            "memory_bytes": found.memory,
        }
        pictured = _mask_and_bias(config) if mask else ()
        about = {"name": config.preset, "config": config.dump(), "changes": changes}
        print_json(about | (known or {}) | dict(pictured))
        return
    if mask:
        print_columns([("#", f"{config.preset}: {tr(config.description)}")])
        from tui_transformer.lab.play.pictures import PictureFormat, mask_and_position_pictures

        canvas, console, screen = PictureFormat(), stdout(), is_terminal(sys.stdout)
        if screen:
            grey = console.color_system in ("256", "truecolor") and not console.no_color
            canvas = PictureFormat(console.width, max(4, min(canvas.lines, console.height - 4)), grey)
        for picture in mask_and_position_pictures(config.model, config.seed, canvas):
            console.print()
            console.print(picture, soft_wrap=not screen)
        return
    lines = [f"{config.preset}: {tr(config.description)}"]
    lines += [
        tr(
            "changes {key}: {setting_text} → {setting_text2}",
            key=key,
            setting_text=setting_text(a),
            setting_text2=setting_text(b),
        )
        for key, (a, b) in changes.items()
    ]
    settings = flatten(config.dump())
    kinds: dict[str, list[str]] = {
        "model.attention": config.model.distinct_attentions,
        "model.position": config.model.distinct_positions,
    }
    lines += [describe_scheme(key, name) for key in SCHEMES for name in kinds.get(key, [settings[key]])]
    for kind, places in config.model.layer_kinds() if config.model.layers else ():
        which = trn("layer {numbered}", "layers {numbered}", len(places), numbered=layer_ranges(places))
        lines.append(
            tr(
                "{layers}: {attention} attention, position {position}",
                layers=which,
                attention=kind.attention,
                position=kind.position,
            )
        )
    for name, row in active_parts(config.model).items():
        value = str(settings[f"model.{name}"])
        lines.append(f"{name} {value}: {sentence_of(f'model.{name}', value) or tr(row.sentence)} ({row.citation})")
    if found is None:
        lines += [tr("parameters: unknown until the corpus's vocabulary is known; the run's model.json will list them")]
    else:
        parts = comma_separated(f"{tr(name)} {count:,}" for name, count in found.parts.items() if count)
        said: dict[str, object] = {
            "parameters": found.parameters,
            "words": found.vocabulary.description,
            "parts": parts,
        }
        lines += [
            tr("at most {parameters:,} parameters with {words}: {parts}", **said)
            if found.vocabulary.at_most
            else tr("{parameters:,} parameters with {words}: {parts}", **said),
            tr(
                "{short} per training token, about {memory} of memory",
                short=si_number(found.flops, "FLOP"),
                memory=memory(found.memory),
            ),
        ]
    print_columns([("#", line) for line in lines])
    print_answer()
    print_answer(clean(config_toml(config)), end="")


def _mask_and_bias(config: "RunConfig") -> Iterator[tuple[str, object]]:
    """`mask`, a 0/1 row per query, and the first head's `bias`, null where unseen; an encoder's separately, and each
    kind of layer's.
    """
    from tui_transformer.lab.play.pictures import (
        KIND,
        PictureFormat,
        drawn_positions,
        first_head_bias,
        initial_scheme,
        stack_plans,
        visibility_matrix,
    )

    for stack in stack_plans(config.model, KIND):
        n = drawn_positions(stack.length, PictureFormat())
        scheme = initial_scheme(config.model, stack, config.seed)
        bias = None if scheme is None else first_head_bias(scheme, stack.visibility, n)
        prefix = "encoder_" if stack.name == "encoder" else ""
        of = f" of {stack.layers_text}" if stack.layers_text else ""
        mask = ["".join("01"[cell] for cell in row) for row in visibility_matrix(stack.visibility, n)]
        yield f"{prefix}mask{of}", mask
        yield f"{prefix}bias{of}", bias and [[None if v is None else round(v, 4) for v in row] for row in bias]


@app.command("diff")
@examples({"presets diff demo nanogpt": "Show where two presets differ."})
def diff_presets(
    a: Annotated[str, typer.Argument(help="A preset's name.", autocompletion=preset_names)],
    b: Annotated[str, typer.Argument(help="Another preset's name.", autocompletion=preset_names)],
    json: Json = False,
) -> None:
    """Show the settings in which two presets differ."""
    from engine.config.keys import diff

    changes = diff(presets.resolve(presets.find(a)), presets.resolve(presets.find(b)))
    if json:
        for key, (left, right) in changes.items():
            print_json({"key": key, a: left, b: right})
        return
    if not changes:
        print_answer(tr("{a} and {b} train the same model in the same way", a=a, b=b))
        return
    rows = [(key, setting_text(left), setting_text(right)) for key, (left, right) in changes.items()]
    print_columns([("", a, b), *rows])


@app.command()
@examples({"presets schema > config.schema.json": "Write the schema to a file for your editor."})
def schema() -> None:
    """Print the JSON schema of a config file, for editors."""
    from engine.config.schema import RunConfig

    found = RunConfig.model_json_schema(by_alias=True)
    found["properties"]["extends"] = {"type": "string", "description": tr("the preset that this config is based on")}
    print_answer(json_text.dumps(found, indent=2))
