"""The model: its diagram, its parts, its formulas."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.config.toml import validate
from engine.errors import InputError
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.facts import number, table
from tui_transformer.lab.reports.document import Block, Cell, Figure, Heading, Math, Paragraph, Table
from tui_transformer.lab.reports.figures.diagram import diagram
from tui_transformer.lab.reports.formulas import formulas
from tui_transformer.lab.reports.told import Told

DRAWN = ("architecture", "n_layers", "n_encoder_layers", "norm", "norm_placement", "final_norm", "residual")
MOST = 2  # diagrams


def config_of(run: Entry) -> RunConfig | None:
    """Its config as this version understands it; None where it does not."""
    if not run.config:
        return None
    tables: dict[str, Any] = {}
    for key, value in run.config.items():
        section, _, name = key.rpartition(".")
        tables.setdefault(section, {})[name] = value
    top = tables.pop("", {})
    try:
        return validate({**top, **tables}, run.name)
    except InputError:
        return None


def model(told: Told) -> Iterator[Block]:
    """The section."""
    gathered = told.gathered
    configs = {s: config_of(s.group.representative) for s in gathered.standings}
    known = {s: config for s, config in configs.items() if config is not None}
    yield Heading(told.say("section.model"))
    if not known:
        yield Paragraph((told.say("model.unknown"),))
        return
    first = gathered.first if gathered.first in known else next(iter(known))
    yield Paragraph((_sentence(told, known[first].model, first),))
    yield from _diagrams(told, known, first)
    parts = _components(told, first)
    if parts is not None:
        yield parts
    yield Heading(told.say("section.formulas"), 2)
    yield Paragraph(
        (
            *(told.say("formulas.notation"), " "),
            *(Math(r"q_i, k_j, v_j"), told.say("formulas.qkv"), Math(r"d_h = d / H"), told.say("formulas.width")),
        )
    )
    variants = [(gathered.name(s), config.model) for s, config in known.items()]
    yield from formulas(variants, known[first], told.language)


def _sentence(told: Told, found: ModelConfig, standing: VariantResult) -> str:
    run, say = standing.group.representative, told.say
    parameters = say("model.parameters", n=f"{run.parameters:,}") if run.parameters is not None else ""
    kind = say(f"model.{found.architecture}")
    layers = str(found.n_layers)
    if found.architecture == "encoder-decoder":
        layers = f"{found.encoder_layers} + {found.n_layers}"
    shape = say(
        "model.shape",
        kind=kind,
        layers=layers,
        heads=found.n_heads,
        d=found.d_model,
        ff=found.d_ff,
        context=f"{found.context_length:,}",
    )
    whose = say("model.of-baseline", name=told.gathered.name(standing)) if told.gathered.several else ""
    return told.sentences([shape + parameters + say("full-stop"), whose])


def _diagrams(told: Told, known: Mapping[VariantResult, RunConfig], first: VariantResult) -> Iterator[Figure]:
    """That of the first, and one of each other shape; what only changes inside a box stands in the table."""
    shapes: dict[tuple[Any, ...], VariantResult] = {}
    for standing in (first, *known):
        config = known[standing].model
        shapes.setdefault(tuple(getattr(config, key) for key in DRAWN), standing)
    for i, standing in enumerate(list(shapes.values())[:MOST]):
        found = known[standing].model
        key = "figure.model.of" if len(shapes) > 1 or told.gathered.several else "figure.model"
        caption = told.say(key, name=told.gathered.name(standing))
        name = "model" if i == 0 else f"model-{i + 1}"
        yield Figure(name, caption, partial(diagram, found, told.drawn), wide=False)


def _components(told: Told, standing: VariantResult) -> Table | None:
    """Parameters by component, of every variant where they differ."""
    gathered = told.gathered
    found = {s: table(gathered.facts(s.group.representative, "model").get("components")) for s in gathered.standings}
    found = {s: parts for s, parts in found.items() if parts}
    if standing not in found:
        return None
    shown: list[VariantResult] = []
    for s, parts in found.items():
        if all(parts != found[other] for other in shown):
            shown.append(s)
    names = list(dict.fromkeys(name for s in shown for name in found[s]))
    counts = [[number(found[s].get(name)) or 0.0 for s in shown] for name in names]
    rows = [_row(told.language.word(name), count) for name, count in zip(names, counts, strict=True)]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    rows.append(tuple(Cell(cell.text, strong=True) for cell in _row(told.say("head.total"), totals)))
    heads = [gathered.name(s) for s in shown] if len(shown) > 1 else [told.say("head.parameters")]
    note = told.say("model.same-size") if len(shown) == 1 and len(found) > 1 else ""
    return Table(
        told.say("table.components"), (told.say("head.component"), *heads), tuple(rows), "l" + "r" * len(shown), note
    )


def _row(name: str, counts: Sequence[float]) -> tuple[Cell, ...]:
    return (Cell(name), *(Cell(f"{count:,.0f}") for count in counts))
