"""`presets list | show | diff | schema`."""

import json
import sys
from typing import TYPE_CHECKING, Any

from engine.clean import clean, clean_line
from engine.config import presets
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.output import answer, emit, is_terminal, stdout

if TYPE_CHECKING:
    from engine.config.schema import RunConfig
    from tui_transformer.lab.design.draft import Cost


def list_command(*, as_json: bool) -> int:
    """A line a preset; overlays name what they change."""
    found = presets.list_presets()
    if as_json:
        for preset in found:
            emit({"name": preset.name, "extends": preset.extends, "description": preset.description})
        return 0
    found.sort(key=lambda p: (p.extends is not None, p.extends or "", p.name))
    rows = [(preset.name, preset.extends or "", preset.description) for preset in found]
    print_columns([("PRESET", "CHANGES", "WHAT IT IS"), *rows])
    return 0


def show_command(name: str, on: str | None, overrides: tuple[str, ...], *, as_json: bool, mask: bool = False) -> int:
    """The complete settings of a preset, what it changes, and what it costs; or its mask and positions, drawn."""
    from engine import capabilities
    from engine.config.keys import diff, parse_overrides
    from engine.config.toml import write
    from tui_transformer.lab.design.draft import cost

    preset = presets.find(name)
    config = presets.resolve(preset, on=on, overrides=parse_overrides(overrides))
    capabilities.require(config, f"preset '{name}'")
    parent = presets.parent_config(preset, on)
    changes = diff(parent, config) if parent is not None else {}
    found = cost(config)
    known: dict[str, Any] = {}
    if found is not None:
        known = {
            "vocabulary": found.vocabulary.tokens,
            "source_vocabulary": found.vocabulary.sources,
            "vocabulary_at_most": found.vocabulary.at_most,
            "parameters": found.parameters,
            "components": found.parts,
            "flops_per_token": found.flops,
            "memory_bytes": found.memory,
        }
    if as_json:
        pictured = _pictured(config) if mask else {}
        emit({"name": config.preset, "config": config.dump(), "changes": changes, **known, **pictured})
        return 0
    if mask:
        print_columns([("#", f"{config.preset}: {config.description}")])
        _draw(config)
        return 0
    print_columns(
        [
            ("#", f"{config.preset}: {config.description}"),
            *(("#", f"changes {key}: {_value(a)} → {_value(b)}") for key, (a, b) in changes.items()),
            *(("#", line) for line in _cost_lines(found)),
        ]
    )
    answer()
    answer(clean(write(config)), end="")
    return 0


def _draw(config: "RunConfig") -> None:
    """Print who may look at whom, and what the positions add."""
    from tui_transformer.lab.play.pictures import Canvas, pictures

    canvas, console, screen = Canvas(), stdout(), is_terminal(sys.stdout)
    if screen:
        grey = console.color_system in ("256", "truecolor") and not console.no_color
        canvas = Canvas(console.width, max(4, min(canvas.lines, console.height - 4)), grey)
    for picture in pictures(config.model, config.seed, canvas):
        console.print()
        console.print(picture, soft_wrap=not screen)


def _pictured(config: "RunConfig") -> dict[str, Any]:
    """`mask`, rows of 0 and 1 by query, and `bias` of the first head, null where unseen; of an encoder apart."""
    from tui_transformer.lab.play.pictures import Canvas, bias_values, drawn, stacks, starting_scheme, visible

    record: dict[str, Any] = {}
    for stack in stacks(config.model):
        n = drawn(stack.length, Canvas())
        scheme = starting_scheme(config.model, stack, config.seed)
        bias = None if scheme is None else bias_values(scheme, stack.see, n)
        prefix = "encoder_" if stack.name == "encoder" else ""
        record[f"{prefix}mask"] = ["".join("01"[cell] for cell in row) for row in visible(stack.see, n)]
        record[f"{prefix}bias"] = bias and [[None if v is None else round(v, 4) for v in row] for row in bias]
    return record


def _cost_lines(cost: "Cost | None") -> list[str]:
    from tui_transformer.lab.formatting import memory, short

    if cost is None:
        return ["parameters: known once the corpus's vocabulary is (the run's model.json)"]
    parts = ", ".join(f"{name} {count:,}" for name, count in cost.parts.items() if count)
    most = "at most " if cost.vocabulary.at_most else ""
    return [
        f"{most}{cost.parameters:,} parameters with {cost.vocabulary.words}: {parts}",
        f"{short(cost.flops, 'FLOP')} to train on a token, about {memory(cost.memory)} of memory",
    ]


def diff_command(a: str, b: str, *, as_json: bool) -> int:
    """The settings in which two presets differ."""
    from engine.config.keys import diff

    changes = diff(presets.resolve(presets.find(a)), presets.resolve(presets.find(b)))
    if as_json:
        for key, (left, right) in changes.items():
            emit({"key": key, a: left, b: right})
        return 0
    if not changes:
        answer(f"{a} and {b} train the same model in the same way")
        return 0
    print_columns([("", a, b), *((key, _value(left), _value(right)) for key, (left, right) in changes.items())])
    return 0


def schema_command() -> int:
    """The JSON schema of a config file."""
    from engine.config.schema import RunConfig

    schema = RunConfig.model_json_schema(by_alias=True)
    schema["properties"]["extends"] = {"type": "string", "description": "the preset that this one changes"}
    answer(json.dumps(schema, indent=2))
    return 0


def _value(value: Any) -> str:
    return "unset" if value is None else clean_line(json.dumps(value, ensure_ascii=False))
