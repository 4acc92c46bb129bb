"""The data: which text, cut how, and the losses that a model can be held against without any other model."""

from collections.abc import Iterator

from engine.clean import clean_line
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.records.facts import Record, number, table, text
from tui_transformer.lab.records.floors import floors
from tui_transformer.lab.reports.document import Block, Cell, Heading, Paragraph, Table
from tui_transformer.lab.reports.gathered import corpus_name
from tui_transformer.lab.reports.told import Told, cells

PARTS = ("documents", "questions")  # a corpus of documents has a hash for each split of either
SPLIT_COUNTS = ("documents", "questions", "pairs", "characters", "tokens", "source_tokens")


def data(told: Told) -> Iterator[Block]:
    """The section: each text once."""
    yield Heading(told.say("section.data"))
    seen: list[Record] = []
    for part in told.gathered.parts:
        run = part[0].group.representative
        found = told.gathered.facts(run, "data")
        if not found:
            yield Paragraph((told.say("data.unknown", name=run.name, corpus=corpus_name(run)),))
        elif found not in seen:
            seen.append(found)
            yield from _one(told, run, found)


def _one(told: Told, run: Entry, found: Record) -> Iterator[Block]:
    yield Paragraph((told.sentences(_said(told, run, found)),))
    splits = _splits(told, found)
    if splits.rows:
        yield splits
    levels = _levels(told, run, found)
    if levels.rows:
        yield levels


def _said(told: Told, run: Entry, found: Record) -> Iterator[str]:
    say, language = told.say, told.language
    objective = language.word(run.protocol.objective)
    yield say("data.corpus", corpus=clean_line(corpus_name(run)), objective=objective)
    if found.get("source") == "generated":
        yield say("data.generated")
    if table(found.get("floor")):
        yield say("data.floor")
    vocabulary, tokenizer = number(found.get("vocabulary")), text(run.config.get("data.tokenizer")) or "characters"
    if vocabulary is not None:
        yield say("data.vocabulary", n=f"{vocabulary:,.0f}", tokenizer=language.word(tokenizer))
    hashed = text(found.get("tokenizer_sha256"))
    if hashed:
        yield say("data.tokenizer-hash", hash=clean_line(hashed[:16]))
    if run.protocol.context is not None:
        yield say("data.windows", context=run.protocol.context, stride=run.protocol.stride or run.protocol.context)
    notes = found.get("notes")
    for note in notes if isinstance(notes, list) else []:
        said = clean_line(text(note))
        yield said[:1].upper() + said[1:] + say("full-stop")


def _splits(told: Told, found: Record) -> Table:
    splits, hashes = table(found.get("splits")), table(found.get("sha256"))
    keys = [key for key in SPLIT_COUNTS if any(key in table(split) for split in splits.values())]
    rows = []
    for name, split in splits.items():
        counts = [number(table(split).get(key)) for key in keys]
        hashed = (
            name
            if name in hashes
            else next((f"{kind}-{name}" for kind in PARTS if f"{kind}-{name}" in hashes and kind in split), "")
        )
        said = [told.language.word(clean_line(name)), *("" if n is None else f"{n:,.0f}" for n in counts)]
        rows.append((*cells(said), Cell(clean_line(text(hashes.get(hashed)))[:64] or "–", code=hashed in hashes)))
    heads = [told.say("head.split"), *(told.say(f"head.{key}") for key in keys), "SHA-256"]
    return Table(told.say("table.splits"), tuple(heads), tuple(rows), f"l{'r' * len(keys)}l")


def _levels(told: Told, run: Entry, found: Record) -> Table:
    """The floors, and the scores of counting tokens."""
    unit = told.language.word(run.protocol.unit)
    known = [
        *(("level.window" if floor.context else "level.floor", floor.nats, floor.se) for floor in floors(found)),
        ("level.bigram", number(found.get("bigram")), None),
        ("level.unigram", number(found.get("unigram")), None),
    ]
    rows = []
    for key, value, error in known:
        if value is not None:
            amount = f"{value:.4f}" + (f" ± {error:.4f}" if error is not None else "")
            rows.append(cells([told.say(key), amount, told.say(f"{key}.means")]))
    heads = (told.say("head.level"), told.say("figure.loss.unit", unit=unit), told.say("head.means"))
    return Table(told.say("table.levels"), heads, tuple(rows), "lrl")
