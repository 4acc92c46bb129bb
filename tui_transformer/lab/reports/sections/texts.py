"""What the models write: samples, or translations beside their references with the scores of all of them."""

from collections.abc import Iterator

from engine.clean import clean, clean_line
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.facts import Record, number, rows, table, text
from tui_transformer.lab.reports.document import Block, Cell, Code, Heading, Listing, Paragraph, Table
from tui_transformer.lab.reports.told import NONE, Told, cells

MOST = 8  # variants
SENTENCES = 5  # of each
HEADS_OF_TRANSLATIONS = ("source", "reference", "translation")
HEADS_OF_ANSWERS = ("question", "reference", "answer")
LONGEST = 600  # characters of a sample


def texts(told: Told) -> Iterator[Block]:
    """The section; none where nothing was written."""
    standings = told.gathered.standings[:MOST]
    written = [(s, run, sample) for s in standings for run in s.runs[:1] if (sample := _newest(told, run)) is not None]
    if not written:
        return
    yield Heading(told.say("section.texts"))
    translated = [(s, run, sample) for s, run, sample in written if rows(sample.get("translations"))]
    if translated:
        yield from _translated(told, translated)
    samples = [(s, run, sample) for s, run, sample in written if not rows(sample.get("translations"))]
    if samples:
        yield Paragraph((told.say("texts.chosen"),))
    for standing, run, sample in samples:
        yield _sample(told, standing, run, sample)


def _newest(told: Told, run: Entry) -> Record | None:
    found = told.gathered.samples(run)
    return found[-1] if found else None


def _sample(told: Told, standing: VariantResult, run: Entry, sample: Record) -> Listing:
    how = [
        told.say(f"texts.{key}", value=f"{value:g}")
        for key in ("temperature", "top_k", "top_p")
        if (value := number(sample.get(key))) is not None and not (key == "top_p" and value == 1.0)
    ]
    step = f"{number(sample.get('step')) or 0:,.0f}"
    title = told.say("texts.title", name=told.gathered.name(standing), run=run.name, step=step)
    details = told.say("join.comma").join(how)
    titled = told.say("bracketed", text=title, facts=details) if details else title
    prompt, wrote = clean(text(sample.get("prompt"))), clean(text(sample.get("text")))
    between = "" if run.protocol.objective == "next-token" else "\n→ "
    shown = prompt + between + wrote
    return Listing(shown[:LONGEST] + ("…" if len(shown) > LONGEST else ""), clean_line(titled))


def _translated(told: Told, written: list[tuple[VariantResult, Entry, Record]]) -> Iterator[Block]:
    for standing, run, sample in written:
        last = table(table(told.gathered.facts(run, "summary")).get("last"))
        yield Paragraph((told.sentences(_scored(told, standing, run, last)), *_signature(told, last)))
        yield _sentences(told, standing, sample)


def _scored(told: Told, standing: VariantResult, run: Entry, last: Record) -> Iterator[str]:
    step = f"{number(last.get('step')) or 0:,.0f}"
    yield told.say("texts.translated", name=told.gathered.name(standing), run=run.name, step=step)
    bleu, chrf, exact = (number(last.get(key)) for key in ("bleu", "chrf", "exact_match"))
    if bleu is None or chrf is None or exact is None:
        return
    count = [f"{number(last.get(key)) or 0:,.0f}" for key in ("translated", "sentences")]
    values = {"bleu": f"{bleu:.2f}", "chrf": f"{chrf:.1f}", "exact": f"{exact:.1%}", "n": count[0], "total": count[1]}
    beam = number(last.get("beam"))
    how = told.say("texts.greedy") if beam in (None, 1.0) else told.say("texts.beam", n=f"{beam:g}")
    yield told.say("texts.scores", how=how, **values)


def _signature(told: Told, last: Record) -> tuple[str | Code, ...]:
    signature = clean_line(text(last.get("bleu_signature")))
    return (" ", told.say("texts.signature"), Code(signature), told.say("full-stop")) if signature else ()


def _sentences(told: Told, standing: VariantResult, sample: Record) -> Table:
    made = []
    for row in rows(sample.get("translations"))[:SENTENCES]:
        source, reference, wrote = (clean_line(text(row.get(key)))[:LONGEST] for key in ("source", "reference", "text"))
        right = reference != "" and reference.strip() == wrote.strip()
        made.append((*cells([source, reference]), Cell(wrote or NONE, strong=right)))
    asked = standing.protocol.objective == "question-answer"
    heads = tuple(told.say(f"head.{key}") for key in (HEADS_OF_ANSWERS if asked else HEADS_OF_TRANSLATIONS))
    caption = told.say("table.answers" if asked else "table.translations", name=told.gathered.name(standing))
    return Table(caption, heads, tuple(made), "lll", told.say("table.translations.note"))
