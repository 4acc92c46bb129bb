"""The setup: runs, model, data and settings, all decided before training began."""

from collections.abc import Iterator
from functools import partial

from engine.base.errors import InputError
from engine.config.keys import is_bookkeeping
from engine.config.lints import CONDITIONAL_SETTINGS
from engine.config.schema import RunConfig
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts
from tui_transformer.lab.analysis import columns as differences
from tui_transformer.lab.analysis.columns import setting_text
from tui_transformer.lab.analysis.detail import UNSET
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import PASSED, badge
from tui_transformer.lab.reports.context import ReportContext, corpus_name, shorten_absolute_paths
from tui_transformer.lab.reports.document import NONE, Block, Figure, Heading, Math, Paragraph, Table, TableCell, cells
from tui_transformer.lab.reports.figures.diagram import diagram
from tui_transformer.lab.reports.formulas import formulas

MOST_RUNS = 60  # rows of a table
MOST_DIAGRAMS = 2
# What changes a diagram's shape; what changes only inside a box goes into a table.
SHAPE_SETTINGS = (
    *("architecture", "n_layers", "n_encoder_layers"),
    *("norm", "norm_placement", "final_norm", "residual", "parallel"),
)
PARTS = ("documents", "questions")  # a document corpus has a hash per split of either
SPLIT_COUNTS = ("documents", "questions", "texts", "pairs", "characters", "tokens", "source_tokens", "unknown")
FEW_SETTINGS = 5  # side by side


def config_of(run: RunEntry) -> RunConfig | None:
    """Its config as this version reads it; None if it cannot."""
    try:
        return RunReader(run.path).config if run.config else None
    except (InputError, RecursionError):
        return None


def runs(context: ReportContext) -> Iterator[Block]:
    yield Heading(context.phrase("section.runs"))
    yield Paragraph((context.sentences(_what_was_run(context)),))
    say, language = context.phrase, context.language
    rows = []
    for standing in context.results:
        for run in standing.runs:
            state, why = language.translate(run.state), standing.group.exclusion_reasons.get(run.path, "")
            reason = language.translate(why) if why != run.state else ""
            step = f"{run.step:,} / {run.steps:,}" if run.step != run.steps else f"{run.step:,}"
            seed = run.seed_or_study_seed
            texts = [
                *(context.name(standing), run.name, NONE if seed is None else str(seed)),
                *(context.bracketed(state, reason if reason != state else ""), step),
                *(NONE if value is None else f"{value:.4f}" for value in (run.last, run.best)),
            ]
            checks = " ".join(badge(name).display_name for name in run.badges) or (PASSED if run.checked else NONE)
            rows.append((*map(TableCell, texts), TableCell(checks, strong=bool(run.badges))))
    heads = context.table_headings("variant", "run", "seed", "state", "step", "last", "best", "checks")
    notes = [say("runs.left-out")] if any(standing.group.exclusion_reasons for standing in context.results) else []
    notes += [say("table.cut", shown=MOST_RUNS, total=len(rows))] if len(rows) > MOST_RUNS else []
    yield Table(say("table.runs"), heads, tuple(rows[:MOST_RUNS]), "llrlrrrl", context.sentences(notes))


def _what_was_run(context: ReportContext) -> Iterator[str]:
    say, language = context.phrase, context.language
    counts = {"runs": len(context.runs), "variants": len(context.results)}
    key = "runs.several" if context.has_several_variants else "runs.one" if len(context.runs) == 1 else "runs.seeds"
    yield say(key, corpora=language.join_list(context.corpora), **counts)
    steps = dict.fromkeys(f"{run.steps:,}" for run in context.runs if run.steps)
    if steps:
        yield say("runs.steps", steps=language.join_list(steps))
    for standing in context.results:
        name, before = context.name(standing), standing.group.earlier_stages
        origins = dict.fromkeys(run.origin.label for run in standing.runs if run.origin is not None)
        if before:
            stages = language.join_list(dict.fromkeys(run.study.stage for run in before if run.study is not None))
            lengths = language.join_list(dict.fromkeys(f"{run.steps:,}" for run in before))
            kinds = language.join_list(dict.fromkeys(language.translate(run.protocol.objective) for run in before))
            yield say("runs.stages", name=name, stages=stages, steps=lengths, objectives=kinds, n=len(before))
        elif origins:
            yield say("runs.origins", name=name, origins=language.join_list(origins))
    for study in context.studies.values():
        yield say("runs.study", name=study.name)
        if study.description:
            yield say("runs.description", text=study.description)
        if study.baseline:
            yield say("runs.baseline", name=study.baseline)
    if not context.studies and context.has_several_variants:
        yield say("runs.first", name=context.name(context.representative))


def model(context: ReportContext) -> Iterator[Block]:
    say = context.phrase
    configs = {s: config for s in context.results if (config := config_of(s.group.representative)) is not None}
    yield Heading(say("section.model"))
    if not configs:
        yield Paragraph((say("model.unknown"),))
        return
    first = context.representative if context.representative in configs else next(iter(configs))
    found, parameters = configs[first].model, first.group.representative.parameters
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
    whose = say("model.of-baseline", name=context.name(first)) if context.has_several_variants else ""
    yield Paragraph((context.sentences([shape + size + say("full-stop"), whose]),))

    # A diagram of the first, and one per other shape.
    shapes: dict[object, VariantResult] = {}
    for standing in (first, *configs):
        shapes.setdefault(tuple(getattr(configs[standing].model, key) for key in SHAPE_SETTINGS), standing)
    key = "figure.model.of" if len(shapes) > 1 or context.has_several_variants else "figure.model"
    for i, standing in enumerate(list(shapes.values())[:MOST_DIAGRAMS]):
        draw = partial(diagram, configs[standing].model, context.picture_language)
        name = "model" if i == 0 else f"model-{i + 1}"
        yield Figure(name, say(key, name=context.name(standing)), draw, wide=False)

    yield from _parameters_by_component(context, first)
    yield Heading(say("section.formulas"), 2)
    heads = Math(r"q_i, k_j, v_j"), say("formulas.qkv"), Math(r"d_h = d / H"), say("formulas.width")
    yield Paragraph((say("formulas.notation"), " ", *heads))
    models = [(context.name(s), config.model) for s, config in configs.items()]
    yield from formulas(models, configs[first], context.language)


def _parameters_by_component(context: ReportContext, standing: VariantResult) -> Iterator[Table]:
    say = context.phrase
    found = {s: parts for s in context.results if (parts := RunReader(s.group.representative.path).model.components)}
    if standing not in found:
        return
    shown: list[VariantResult] = []
    for s, parts in found.items():
        if all(parts != found[other] for other in shown):
            shown.append(s)
    names = dict.fromkeys(name for s in shown for name in found[s])
    rows = [cells([context.language.translate(n), *(f"{found[s].get(n, 0):,}" for s in shown)]) for n in names]
    rows.append(cells([say("head.total"), *(f"{sum(found[s].values()):,}" for s in shown)], strong=True))
    heads = [context.name(s) for s in shown] if len(shown) > 1 else [say("head.parameters")]
    note = say("model.same-size") if len(shown) == 1 and len(found) > 1 else ""
    align = "l" + "r" * len(shown)
    yield Table(say("table.components"), (say("head.component"), *heads), tuple(rows), align, note)


def data(context: ReportContext) -> Iterator[Block]:
    """The data, each text once: its splits, and the losses to compare any model with."""
    yield Heading(context.phrase("section.data"))
    seen: list[DataFacts] = []
    for part in context.parts:
        run = part[0].group.representative
        facts = context.facts(run)
        if not facts.model_fields_set:
            yield Paragraph((context.phrase("data.unknown", name=run.name, corpus=corpus_name(run)),))
        elif facts not in seen:
            seen.append(facts)
            yield Paragraph((context.sentences(_data_sentences(context, run, facts)),))
            if facts.splits:
                yield _splits(context, facts)

            # The floors, and the scores of counting tokens.
            known = [("level.window" if floor.context else "level.floor", floor.loss_text) for floor in facts.floors]
            counted = (("level.bigram", facts.bigram), ("level.unigram", facts.unigram))
            known += [(key, f"{loss:.4f}") for key, loss in counted if loss is not None]
            rows = tuple(cells([context.phrase(key), amount, context.phrase(f"{key}.means")]) for key, amount in known)
            unit = context.phrase("figure.loss.unit", unit=context.language.translate(run.protocol.unit))
            heads = (context.phrase("head.level"), unit, context.phrase("head.means"))
            if rows:
                yield Table(context.phrase("table.levels"), heads, rows, "lrl")


def _data_sentences(context: ReportContext, run: RunEntry, facts: DataFacts) -> Iterator[str]:
    say, language, protocol = context.phrase, context.language, run.protocol
    yield say("data.corpus", corpus=corpus_name(run), objective=language.translate(protocol.objective))
    if facts.source == "generated":
        yield say("data.generated")
    if facts.floor is not None:
        yield say("data.floor")
    if facts.vocabulary is not None:
        tokenizer = language.translate(str(run.config.get("data.tokenizer") or "characters"))
        yield say("data.vocabulary", n=f"{facts.vocabulary:,}", tokenizer=tokenizer)
    if facts.tokenizer_sha256:
        yield say("data.tokenizer-hash", hash=facts.tokenizer_sha256[:16])
    if protocol.context is not None:
        yield say("data.windows", context=protocol.context, stride=protocol.stride or protocol.context)
    if facts.classes:
        yield say("data.classes", n=len(facts.classes), names=language.join_list(facts.classes))
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
        rows.append((*cells([context.language.translate(name), *counts]), TableCell(sha256 or NONE, code=bool(hashed))))
    heads = (*context.table_headings("split", *keys), "SHA-256")
    return Table(context.phrase("table.splits"), heads, tuple(rows), f"l{'r' * len(keys)}l")


def settings(context: ReportContext) -> Iterator[Block]:
    say = context.phrase
    among = [standing.group.representative for standing in context.results]
    yield Heading(say("section.settings"))
    if not any(run.config for run in among):
        yield Paragraph((say("model.unknown"),))
        return
    varied = [key for key in differences.differing_keys(among) if key != "seed"]
    if context.has_several_variants:
        yield _differing(context, varied) if varied else Paragraph((say("settings.no-difference"),))
    run = context.representative.group.representative
    config = config_of(run)
    idle = {key for key, acts, _ in CONDITIONAL_SETTINGS if config is not None and not acts(config)}
    hidden = {*varied, "seed", *idle}
    shared = [key for key in differences.setting_keys(among) if key not in hidden and not is_bookkeeping(key)]
    known = [(key, run.config[key]) for key in shared if run.config.get(key) is not None]
    pairs = [(TableCell(key, code=True), TableCell(_setting(value))) for key, value in known]
    down = -(-len(pairs) // 2)  # in two columns
    pairs += [(TableCell(""), TableCell(""))] * (2 * down - len(pairs))
    rows = tuple((*left, *right) for left, right in zip(pairs[:down], pairs[down:], strict=True))
    caption = say("table.shared" if context.has_several_variants else "table.settings")
    yield Table(caption, context.table_headings("setting", "value") * 2, rows, "llll")


def _setting(value: object) -> str:
    if value is None:
        return UNSET
    return shorten_absolute_paths(value) if isinstance(value, str) else setting_text(value)


def _differing(context: ReportContext, keys: list[str]) -> Table:
    """Variants down and settings across if these are few, else transposed."""
    caption = context.phrase("table.differing")
    named = [(context.name(s), s.group.representative.config) for s in context.results]
    if len(keys) <= FEW_SETTINGS:
        shown = differences.short_names(keys)
        rows = [
            (TableCell(name), *(TableCell(_setting(config.get(key)), code=True) for key in keys))
            for name, config in named
        ]
        heads = (context.phrase("head.variant"), *(shown[key] for key in keys))
    else:
        rows = [
            (TableCell(key, code=True), *(TableCell(_setting(config.get(key))) for _, config in named)) for key in keys
        ]
        heads = (context.phrase("head.setting"), *(name for name, _ in named))
    return Table(caption, heads, tuple(rows), "l" * len(heads))
