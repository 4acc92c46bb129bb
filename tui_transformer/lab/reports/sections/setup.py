"""The setup: runs, model, data and settings, all decided before training began."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.keys import is_bookkeeping
from engine.config.lints import CONDITIONAL_SETTINGS
from engine.config.schema import RunConfig
from engine.config.tasks import TASKS
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts
from tui_transformer.lab.analysis import columns as differences
from tui_transformer.lab.analysis.columns import setting_text
from tui_transformer.lab.analysis.detail import UNSET
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.lists import in_brackets, join_names
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import PASSED, badge
from tui_transformer.lab.reports.context import FULL_STOP, ReportContext, corpus_name, shorten_absolute_paths
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
SPLIT_COUNTS = {
    "documents": Message("documents"),
    "questions": Message("questions"),
    "texts": Message("texts"),
    "pairs": Message("pairs"),
    "characters": Message("characters"),
    "tokens": Message("tokens"),
    "source_tokens": Message("source tokens"),
    "unknown": Message("unknown tokens"),
}
LEVELS = {  # of a loss: its name, and what it means
    "floor": (
        Message("floor given the whole past"),
        Message("what the grammar itself would score; no model gets below it except by luck"),
    ),
    "window": (
        Message("floor reachable at this context and stride"),
        Message(
            "what the grammar would score if it saw only the model's window; “above floor” is relative to this level"
        ),
    ),
    "bigram": (Message("bigram"), Message("knowing only the previous token")),
    "unigram": (Message("unigram"), Message("knowing only how often each token occurs")),
}
ARCHITECTURES = {
    "decoder": Message("a decoder-only Transformer"),
    "encoder": Message("an encoder-only Transformer"),
    "encoder-decoder": Message("an encoder-decoder Transformer"),
}
TOKENS = {"bpe": Message("byte pairs (BPE)")}  # by kind of tokenizer, where the kind is no word
FEW_SETTINGS = 5  # side by side


def config_of(run: RunEntry) -> RunConfig | None:
    """Its config as this version reads it; None if it cannot."""
    try:
        return RunReader(run.path).config if run.config else None
    except (InputError, RecursionError):
        return None


def runs(context: ReportContext) -> Iterator[Block]:
    yield Heading(context.say("What was run"))
    yield Paragraph((context.sentences(_what_was_run(context)),))
    say = context.say
    rows = []
    for standing in context.results:
        for run in standing.runs:
            state, why = say(run.state), standing.group.exclusion_reasons.get(run.path, "")
            reason = say(why) if why != run.state else ""
            step = f"{run.step:,} / {run.steps:,}" if run.step != run.steps else f"{run.step:,}"
            seed = run.seed_or_study_seed
            texts = [
                *(context.name(standing), run.name, NONE if seed is None else str(seed)),
                *(say(in_brackets(state, reason if reason != state else "")), step),
                *(NONE if value is None else f"{value:.4f}" for value in (run.last, run.best)),
            ]
            checks = " ".join(badge(name).display_name for name in run.badges) or (PASSED if run.checked else NONE)
            rows.append((*map(TableCell, texts), TableCell(checks, strong=bool(run.badges))))
    heads = context.headings("variant", "run", "seed", "state", "step", "last loss", "best loss", "checks")
    notes = (
        [say("Where a run is excluded, the reason follows its state in parentheses.")]
        if any(standing.group.exclusion_reasons for standing in context.results)
        else []
    )
    notes += (
        [say("{shown} of {total} rows are shown.", shown=MOST_RUNS, total=len(rows))] if len(rows) > MOST_RUNS else []
    )
    yield Table(
        say("Every run, with its last and best validation losses and any problems the checks found (✓: none)."),
        heads,
        tuple(rows[:MOST_RUNS]),
        "llrlrrrl",
        context.sentences(notes),
    )


def _aim(run: RunEntry) -> str:
    """What it trains for, in words; its objective's name if this version does not know it."""
    name = run.protocol.objective
    return Message(TASKS[name].aim if name in TASKS else name)


def _what_was_run(context: ReportContext) -> Iterator[str]:
    say = context.say
    counts = {"runs": len(context.runs), "variants": len(context.results)}
    if context.has_several_variants:
        text = Message("{runs} runs of {variants} variants were trained on {corpora}.")
    elif len(context.runs) == 1:
        text = Message("One run was trained on {corpora}.")
    else:
        text = Message("{runs} runs of one variant, differing only in their seed, were trained on {corpora}.")
    yield say(text, corpora=join_names(context.corpora), **counts)
    steps = dict.fromkeys(f"{run.steps:,}" for run in context.runs if run.steps)
    if steps:
        yield say("Each was configured for {steps} optimizer steps.", steps=join_names(steps))
    for standing in context.results:
        name, before = context.name(standing), standing.group.earlier_stages
        origins = dict.fromkeys(run.origin.label for run in standing.runs if run.origin is not None)
        if before:
            stages = join_names(dict.fromkeys(run.study.stage for run in before if run.study is not None))
            lengths = join_names(dict.fromkeys(f"{run.steps:,}" for run in before))
            kinds = join_names(dict.fromkeys(_aim(run) for run in before))
            yield say(
                "{name} started from the weights of an earlier stage, {stages}, trained with the same seeds ({n} runs "
                "of {steps} steps, {objectives}).",
                name=name,
                stages=stages,
                steps=lengths,
                objectives=kinds,
                n=len(before),
            )
        elif origins:
            yield say("{name} started from the weights of {origins}.", name=name, origins=join_names(origins))
    for study in context.studies.values():
        yield say("The runs belong to the study {name}.", name=study.name)
        if study.description:
            yield say("Its description: {text}.", text=study.description)
        if study.baseline:
            yield say("Its baseline is {name}.", name=study.baseline)
    if not context.studies and context.has_several_variants:
        yield say(
            "Differences are relative to {name}, which was named first.", name=context.name(context.representative)
        )


def model(context: ReportContext) -> Iterator[Block]:
    say = context.say
    configs = {s: config for s in context.results if (config := config_of(s.group.representative)) is not None}
    yield Heading(say("The model"))
    if not configs:
        yield context.paragraph("The settings of these runs cannot be read, so the model is unknown.")
        return
    first = context.representative if context.representative in configs else next(iter(configs))
    found, parameters = configs[first].model, first.group.representative.parameters
    both = found.architecture == "encoder-decoder"
    shape = say(
        "The model is {kind} with {layers} layers, {heads} heads, width {d}, feed-forward width {ff} and a context of "
        "{context} tokens",
        kind=ARCHITECTURES[found.architecture],
        layers=f"{found.encoder_layers} + {found.n_layers}" if both else found.n_layers,
        heads=found.n_heads,
        d=found.d_model,
        ff=found.d_ff,
        context=f"{found.context_length:,}",
    )
    size = say("; it has {n} parameters", n=f"{parameters:,}") if parameters is not None else ""
    whose = (
        say(
            "This describes {name}; see “Hyperparameters” for how the other variants differ from it.",
            name=context.name(first),
        )
        if context.has_several_variants
        else ""
    )
    yield Paragraph((context.sentences([say(FULL_STOP, sentence=shape + size), whose]),))

    # A diagram of the first, and one per other shape.
    shapes: dict[object, VariantResult] = {}
    for standing in (first, *configs):
        shapes.setdefault(tuple(getattr(configs[standing].model, key) for key in SHAPE_SETTINGS), standing)
    text = Message(
        "The model of {name} as built: every box is a component, every ⊕ a residual sum."
        if len(shapes) > 1 or context.has_several_variants
        else "The model as built: every box is a component, every ⊕ a residual sum."
    )
    for i, standing in enumerate(list(shapes.values())[:MOST_DIAGRAMS]):
        draw = partial(diagram, configs[standing].model, context.picture_language)
        name = "model" if i == 0 else f"model-{i + 1}"
        yield Figure(name, say(text, name=context.name(standing)), draw, wide=False)

    yield from _parameters_by_component(context, first)
    yield Heading(say("Formulas"), 2)
    heads = (
        Math(r"q_i, k_j, v_j"),
        say(" are a query, a key and a value; "),
        Math(r"d_h = d / H"),
        say(
            " is the width of each of the H heads, d the width of the model, T the number of tokens and L the number "
            "of layers."
        ),
    )
    yield Paragraph((say("Positions are counted from 0. In each head:"), " ", *heads))
    models = [(context.name(s), config.model) for s, config in configs.items()]
    yield from (replace(one, what=say(one.what)) for one in formulas(models, configs[first]))


def _parameters_by_component(context: ReportContext, standing: VariantResult) -> Iterator[Table]:
    say = context.say
    found = {s: parts for s in context.results if (parts := RunReader(s.group.representative.path).model.components)}
    if standing not in found:
        return
    shown: list[VariantResult] = []
    for s, parts in found.items():
        if all(parts != found[other] for other in shown):
            shown.append(s)
    names = dict.fromkeys(name for s in shown for name in found[s])
    rows = [cells([say(n), *(f"{found[s].get(n, 0):,}" for s in shown)]) for n in names]
    rows.append(cells([*context.headings("total"), *(f"{sum(found[s].values()):,}" for s in shown)], strong=True))
    heads = [context.name(s) for s in shown] if len(shown) > 1 else context.headings("parameters")
    note = say("All variants have the same parameter counts.") if len(shown) == 1 and len(found) > 1 else ""
    align = "l" + "r" * len(shown)
    yield Table(say("Parameters by component."), (*context.headings("component"), *heads), tuple(rows), align, note)


def data(context: ReportContext) -> Iterator[Block]:
    """The data, each text once: its splits, and the losses to compare any model with."""
    yield Heading(context.say("Data"))
    seen: list[DataFacts] = []
    for part in context.parts:
        run = part[0].group.representative
        facts = context.facts(run)
        if not facts.model_fields_set:
            yield context.paragraph(
                "{name} was to be trained on {corpus}; nothing else has been recorded about its data yet.",
                name=run.name,
                corpus=corpus_name(run),
            )
        elif facts not in seen:
            seen.append(facts)
            yield Paragraph((context.sentences(_data_sentences(context, run, facts)),))
            if facts.splits:
                yield _splits(context, facts)

            # The floors, and the scores of counting tokens.
            known = [(LEVELS["window" if floor.context else "floor"], floor.loss_text) for floor in facts.floors]
            counted = ((LEVELS["bigram"], facts.bigram), (LEVELS["unigram"], facts.unigram))
            known += [(level, f"{loss:.4f}") for level, loss in counted if loss is not None]
            rows = tuple(cells([context.say(name), amount, context.say(means)]) for (name, means), amount in known)
            unit = context.say("nats per {unit}", unit=Message(run.protocol.unit))
            heads = (*context.headings("level"), unit, *context.headings("meaning"))
            if rows:
                yield Table(context.say("Reference losses to compare the models with."), heads, rows, "lrl")


def _data_sentences(context: ReportContext, run: RunEntry, facts: DataFacts) -> Iterator[str]:
    say, protocol = context.say, run.protocol
    yield say("The corpus is {corpus}; the objective is {objective}.", corpus=corpus_name(run), objective=_aim(run))
    if facts.source == "generated":
        yield say("It is generated from a seed by a grammar, so its splits are fixed to the byte.")
    if facts.floor is not None:
        yield say("The grammar knows the probability of everything it writes, so the entropy of the text is known too.")
    if facts.vocabulary is not None:
        kind = str(run.config.get("data.tokenizer") or "characters")
        tokenizer = Message(TOKENS.get(kind, kind))
        yield say(
            "The tokens are {tokenizer}; there are {n} in the vocabulary.",
            n=f"{facts.vocabulary:,}",
            tokenizer=tokenizer,
        )
    if facts.tokenizer_sha256:
        yield say("The tokenizer's SHA-256 begins with {hash}.", hash=facts.tokenizer_sha256[:16])
    if protocol.context is not None:
        yield say(
            "The validation loss is Σ nll / Σ tokens over the whole split, in windows of {context} tokens with a "
            "stride of {stride}. A loss depends on both, so quote them with it.",
            context=protocol.context,
            stride=protocol.stride or protocol.context,
        )
    if facts.classes:
        yield say("There are {n} classes: {names}.", n=len(facts.classes), names=join_names(facts.classes))
    for note in facts.notes:
        yield say(FULL_STOP, sentence=note[:1].upper() + note[1:])


def _splits(context: ReportContext, facts: DataFacts) -> Table:
    keys = [key for key in SPLIT_COUNTS if any(key in split for split in facts.splits.values())]
    rows = []
    for name, split in facts.splits.items():
        of_parts = (f"{part}-{name}" for part in PARTS if part in split)
        hashed = next((key for key in (name, *of_parts) if key in facts.sha256), "")
        counts = [f"{split[key]:,}" if key in split else "" for key in keys]
        sha256 = facts.sha256.get(hashed, "")[:64]
        rows.append((*cells([context.say(name), *counts]), TableCell(sha256 or NONE, code=bool(hashed))))
    heads = (*context.headings("split"), *(context.say(SPLIT_COUNTS[key]) for key in keys), "SHA-256")
    return Table(context.say("The splits, with their sizes and hashes."), heads, tuple(rows), f"l{'r' * len(keys)}l")


def settings(context: ReportContext) -> Iterator[Block]:
    say = context.say
    among = [standing.group.representative for standing in context.results]
    yield Heading(say("Hyperparameters"))
    if not any(run.config for run in among):
        yield context.paragraph("The settings of these runs cannot be read, so the model is unknown.")
        return
    varied = [key for key in differences.differing_keys(among) if key != "seed"]
    if context.has_several_variants:
        yield (
            _differing(context, varied)
            if varied
            else context.paragraph("Apart from bookkeeping, these variants do not differ in any setting.")
        )
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
    caption = say(
        "The settings that all variants share."
        if context.has_several_variants
        else "All settings that take effect in this run."
    )
    yield Table(caption, context.headings("setting", "value") * 2, rows, "llll")


def _setting(value: object) -> str:
    if value is None:
        return UNSET
    return shorten_absolute_paths(value) if isinstance(value, str) else setting_text(value)


def _differing(context: ReportContext, keys: list[str]) -> Table:
    """Variants down and settings across if these are few, else transposed."""
    caption = context.say("The settings in which the variants differ.")
    named = [(context.name(s), s.group.representative.config) for s in context.results]
    if len(keys) <= FEW_SETTINGS:
        shown = differences.short_names(keys)
        rows = [
            (TableCell(name), *(TableCell(_setting(config.get(key)), code=True) for key in keys))
            for name, config in named
        ]
        heads = (*context.headings("variant"), *(shown[key] for key in keys))
    else:
        rows = [
            (TableCell(key, code=True), *(TableCell(_setting(config.get(key))) for _, config in named)) for key in keys
        ]
        heads = (*context.headings("setting"), *(name for name, _ in named))
    return Table(caption, heads, tuple(rows), "l" * len(heads))
