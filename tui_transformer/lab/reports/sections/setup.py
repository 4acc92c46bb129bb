"""What was run, the model, the data, the settings: all that was decided before training began."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from engine.config.keys import is_bookkeeping
from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.config.toml import validate
from engine.errors import InputError
from engine.lints import ACTS
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts
from tui_transformer.lab.analysis import columns as differences
from tui_transformer.lab.analysis.columns import setting_text
from tui_transformer.lab.analysis.detail import UNSET
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import PASSED
from tui_transformer.lab.records.floors import floors
from tui_transformer.lab.reports.context import NONE, ReportContext, cells, pairs_table
from tui_transformer.lab.reports.document import Block, Cell, Figure, Heading, Math, Paragraph, Table
from tui_transformer.lab.reports.figures.diagram import diagram
from tui_transformer.lab.reports.formulas import formulas
from tui_transformer.lab.reports.report_data import base_name, corpus_name

MOST_RUNS = 60  # rows of a table
MOST_DIAGRAMS = 2
# What changes the shape of a diagram; what only changes inside a box stands in a table.
DRAWN = ("architecture", "n_layers", "n_encoder_layers", "norm", "norm_placement", "final_norm", "residual")
PARTS = ("documents", "questions")  # a corpus of documents has a hash for each split of either
SPLIT_COUNTS = ("documents", "questions", "pairs", "characters", "tokens", "source_tokens")
FEW_SETTINGS = 5  # that stand beside each other


def config_of(run: Entry) -> RunConfig | None:
    """Its config as this version understands it; None where it does not."""
    tables: dict[str, Any] = {}
    for key, value in run.config.items():
        section, _, name = key.rpartition(".")
        (tables.setdefault(section, {}) if section else tables)[name] = value
    try:
        return validate(tables, run.name) if tables else None
    except InputError:
        return None


def runs(context: ReportContext) -> Iterator[Block]:
    """What was run: in a paragraph, and every run with what became of it."""
    yield Heading(context.say("section.runs"))
    yield Paragraph((context.sentences(_what_was_run(context)),))
    say, language, data = context.say, context.language, context.data
    rows = []
    for standing in data.standings:
        for run in standing.runs:
            state, why = language.word(run.state), standing.group.left_out.get(run.path, "")
            reason = language.word(why) if why != run.state else ""
            step = f"{run.step:,} / {run.steps:,}" if run.step != run.steps else f"{run.step:,}"
            seed = run.seed_of_study
            texts = [
                *(data.name(standing), run.name, NONE if seed is None else str(seed)),
                *(context.bracketed(state, reason if reason != state else ""), step),
                *(NONE if value is None else f"{value:.4f}" for value in (run.last, run.best)),
            ]
            checks = " ".join(run.badges) or (PASSED if run.checked else NONE)
            rows.append((*map(Cell, texts), Cell(checks, strong=bool(run.badges))))
    heads = context.heads("variant", "run", "seed", "state", "step", "last", "best", "checks")
    notes = [say("runs.left-out")] if any(standing.group.left_out for standing in data.standings) else []
    notes += [say("table.cut", shown=MOST_RUNS, total=len(rows))] if len(rows) > MOST_RUNS else []
    yield Table(say("table.runs"), heads, tuple(rows[:MOST_RUNS]), "llrlrrrl", context.sentences(notes))


def _what_was_run(context: ReportContext) -> Iterator[str]:
    say, language, data = context.say, context.language, context.data
    values = {"runs": len(data.runs), "variants": len(data.standings), "corpora": context.corpora()}
    yield say("runs.several" if data.several else "runs.one" if len(data.runs) == 1 else "runs.seeds", **values)
    steps = dict.fromkeys(f"{run.steps:,}" for run in data.runs if run.steps)
    if steps:
        yield say("runs.steps", steps=language.joined(steps))
    for standing in data.standings:
        name, before = data.name(standing), standing.group.earlier
        origins = dict.fromkeys(run.origin.shown for run in standing.runs if run.origin is not None)
        if before:
            stages = language.joined(dict.fromkeys(run.study.stage for run in before if run.study is not None))
            lengths = language.joined(dict.fromkeys(f"{run.steps:,}" for run in before))
            kinds = language.joined(dict.fromkeys(language.word(run.protocol.objective) for run in before))
            yield say("runs.stages", name=name, stages=stages, steps=lengths, objectives=kinds, n=len(before))
        elif origins:
            yield say("runs.origins", name=name, origins=language.joined(origins))
    for study in data.studies.values():
        yield say("runs.study", name=study.name)
        if study.description:
            yield say("runs.description", text=study.description)
        if study.baseline:
            yield say("runs.baseline", name=study.baseline)
    if not data.studies and data.several:
        yield say("runs.first", name=data.name(data.first))


def model(context: ReportContext) -> Iterator[Block]:
    """The model: a sentence, its diagram, its parts, its formulas."""
    say, data = context.say, context.data
    configs = {s: config for s in data.standings if (config := config_of(s.group.representative)) is not None}
    yield Heading(say("section.model"))
    if not configs:
        yield Paragraph((say("model.unknown"),))
        return
    first = data.first if data.first in configs else next(iter(configs))
    yield Paragraph((_model_sentence(context, configs[first].model, first),))
    yield from _diagrams(context, configs, first)
    yield from _components(context, first)
    yield Heading(say("section.formulas"), 2)
    heads = Math(r"q_i, k_j, v_j"), say("formulas.qkv"), Math(r"d_h = d / H"), say("formulas.width")
    yield Paragraph((say("formulas.notation"), " ", *heads))
    models = [(data.name(s), config.model) for s, config in configs.items()]
    yield from formulas(models, configs[first], context.language)


def _model_sentence(context: ReportContext, found: ModelConfig, standing: VariantResult) -> str:
    say, parameters = context.say, standing.group.representative.parameters
    both = found.architecture == "encoder-decoder"
    shape = say(
        "model.shape",
        kind=say(f"model.{found.architecture}"),
        layers=f"{found.encoder_layers} + {found.n_layers}" if both else found.n_layers,
        heads=found.n_heads,
        d=found.d_model,
        ff=found.d_ff,
        context=f"{found.context_length:,}",
    )
    size = say("model.parameters", n=f"{parameters:,}") if parameters is not None else ""
    whose = say("model.of-baseline", name=context.data.name(standing)) if context.data.several else ""
    return context.sentences([shape + size + say("full-stop"), whose])


def _diagrams(
    context: ReportContext, configs: Mapping[VariantResult, RunConfig], first: VariantResult
) -> Iterator[Figure]:
    """That of the first, and one of each other shape."""
    shapes: dict[tuple[Any, ...], VariantResult] = {}
    for standing in (first, *configs):
        shapes.setdefault(tuple(getattr(configs[standing].model, key) for key in DRAWN), standing)
    key = "figure.model.of" if len(shapes) > 1 or context.data.several else "figure.model"
    for i, standing in enumerate(list(shapes.values())[:MOST_DIAGRAMS]):
        caption = context.say(key, name=context.data.name(standing))
        draw = partial(diagram, configs[standing].model, context.drawn)
        yield Figure("model" if i == 0 else f"model-{i + 1}", caption, draw, wide=False)


def _components(context: ReportContext, standing: VariantResult) -> Iterator[Table]:
    """Parameters by component, of every variant where they differ."""
    say, data = context.say, context.data
    found = {s: parts for s in data.standings if (parts := RunReader(s.group.representative.path).model.components)}
    if standing not in found:
        return
    shown: list[VariantResult] = []
    for s, parts in found.items():
        if all(parts != found[other] for other in shown):
            shown.append(s)
    names = list(dict.fromkeys(name for s in shown for name in found[s]))
    counts = [[found[s].get(name, 0) for s in shown] for name in names]
    rows = [
        cells([context.language.word(name), *(f"{n:,}" for n in count)])
        for name, count in zip(names, counts, strict=True)
    ]
    totals = [f"{sum(column):,}" for column in zip(*counts, strict=True)]
    rows.append(cells([say("head.total"), *totals], strong=True))
    heads = [data.name(s) for s in shown] if len(shown) > 1 else [say("head.parameters")]
    note = say("model.same-size") if len(shown) == 1 and len(found) > 1 else ""
    align = "l" + "r" * len(shown)
    yield Table(say("table.components"), (say("head.component"), *heads), tuple(rows), align, note)


def data(context: ReportContext) -> Iterator[Block]:
    """The data, each text once: how it was cut, and the losses to hold any model against."""
    yield Heading(context.say("section.data"))
    seen: list[DataFacts] = []
    for part in context.data.parts:
        run = part[0].group.representative
        facts = context.data.facts(run)
        if not facts.model_fields_set:
            yield Paragraph((context.say("data.unknown", name=run.name, corpus=corpus_name(run)),))
        elif facts not in seen:
            seen.append(facts)
            yield Paragraph((context.sentences(_data_sentences(context, run, facts)),))
            tables = _splits(context, facts), _levels(context, run, facts)
            yield from (table for table in tables if table.rows)


def _data_sentences(context: ReportContext, run: Entry, facts: DataFacts) -> Iterator[str]:
    say, language, protocol = context.say, context.language, run.protocol
    yield say("data.corpus", corpus=corpus_name(run), objective=language.word(protocol.objective))
    if facts.source == "generated":
        yield say("data.generated")
    if facts.floor is not None:
        yield say("data.floor")
    if facts.vocabulary is not None:
        tokenizer = language.word(str(run.config.get("data.tokenizer") or "characters"))
        yield say("data.vocabulary", n=f"{facts.vocabulary:,}", tokenizer=tokenizer)
    if facts.tokenizer_sha256:
        yield say("data.tokenizer-hash", hash=facts.tokenizer_sha256[:16])
    if protocol.context is not None:
        yield say("data.windows", context=protocol.context, stride=protocol.stride or protocol.context)
    for note in facts.notes:
        yield note[:1].upper() + note[1:] + say("full-stop")


def _splits(context: ReportContext, facts: DataFacts) -> Table:
    keys = [key for key in SPLIT_COUNTS if any(key in split for split in facts.splits.values())]
    rows = []
    for name, split in facts.splits.items():
        of_parts = (f"{part}-{name}" for part in PARTS if part in split)
        hashed = next((key for key in (name, *of_parts) if key in facts.sha256), "")
        counts = [f"{split[key]:,}" if key in split else "" for key in keys]
        sha256 = facts.sha256.get(hashed, "")[:64]
        rows.append((*cells([context.language.word(name), *counts]), Cell(sha256 or NONE, code=bool(hashed))))
    heads = (*context.heads("split", *keys), "SHA-256")
    return Table(context.say("table.splits"), heads, tuple(rows), f"l{'r' * len(keys)}l")


def _levels(context: ReportContext, run: Entry, facts: DataFacts) -> Table:
    """The floors, and the scores of counting tokens."""
    known = [("level.window" if floor.context else "level.floor", floor.amount) for floor in floors(facts)]
    counted = (("level.bigram", facts.bigram), ("level.unigram", facts.unigram))
    known += [(key, f"{loss:.4f}") for key, loss in counted if loss is not None]
    rows = tuple(cells([context.say(key), amount, context.say(f"{key}.means")]) for key, amount in known)
    unit = context.say("figure.loss.unit", unit=context.language.word(run.protocol.unit))
    heads = (context.say("head.level"), unit, context.say("head.means"))
    return Table(context.say("table.levels"), heads, rows, "lrl")


def settings(context: ReportContext) -> Iterator[Block]:
    """The settings: those in which variants differ, and those that all runs share."""
    data, say = context.data, context.say
    among = [standing.group.representative for standing in data.standings]
    yield Heading(say("section.settings"))
    if not any(run.config for run in among):
        yield Paragraph((say("model.unknown"),))
        return
    varied = [key for key in differences.differing(among) if key != "seed"]
    if data.several:
        yield _differing(context, varied) if varied else Paragraph((say("settings.no-difference"),))
    run = data.first.group.representative
    config = config_of(run)
    hidden = {*varied, "seed", *(key for key, acts, _ in ACTS if config is not None and not acts(config))}
    shared = [key for key in differences.settings(among) if key not in hidden and not is_bookkeeping(key)]
    rows = [(key, _setting(run.config[key])) for key in shared if run.config.get(key) is not None]
    caption = say("table.shared" if data.several else "table.settings")
    yield pairs_table(caption, context.heads("setting", "value"), rows, across=2, code=True)


def _setting(value: object) -> str:
    if value is None:
        return UNSET
    return base_name(value) if isinstance(value, str) else setting_text(value)


def _differing(context: ReportContext, keys: list[str]) -> Table:
    """Variants down and settings across where these are few, else the other way round."""
    caption = context.say("table.differing")
    named = [(context.data.name(s), s.group.representative.config) for s in context.data.standings]
    if len(keys) <= FEW_SETTINGS:
        shown = differences.short_names(keys)
        rows = [(Cell(name), *(Cell(_setting(config.get(key)), code=True) for key in keys)) for name, config in named]
        heads = (context.say("head.variant"), *(shown[key] for key in keys))
    else:
        rows = [(Cell(key, code=True), *(Cell(_setting(config.get(key))) for _, config in named)) for key in keys]
        heads = (context.say("head.setting"), *(name for name, _ in named))
    return Table(caption, heads, tuple(rows), "l" * len(heads))
