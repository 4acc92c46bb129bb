"""A report from its runs: which sections there are, and in which order."""

from collections.abc import Callable, Iterator

from engine.clean import clean_line
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.reports.document import Block, Document, Paragraph
from tui_transformer.lab.reports.gathered import Gathered, corpus_name
from tui_transformer.lab.reports.sections.data import data
from tui_transformer.lab.reports.sections.first_paragraph import first_paragraph
from tui_transformer.lab.reports.sections.limits import limits
from tui_transformer.lab.reports.sections.model import model
from tui_transformer.lab.reports.sections.probing import probing
from tui_transformer.lab.reports.sections.repeat import environment, made_with, repeat
from tui_transformer.lab.reports.sections.results import results
from tui_transformer.lab.reports.sections.runs import runs
from tui_transformer.lab.reports.sections.settings import settings
from tui_transformer.lab.reports.sections.texts import texts
from tui_transformer.lab.reports.sections.training import training
from tui_transformer.lab.reports.told import Told

SECTIONS: tuple[Callable[[Told], Iterator[Block]], ...] = (
    *(runs, model, data, settings, training, results, probing, texts, limits, environment, repeat),
)


def report(gathered: Gathered, language: Language, drawn: Language) -> Document:
    """The whole report.

    Args:
        gathered: what it is of.
        language: of its words.
        drawn: of the words in its pictures.
    """
    told = Told(gathered, language, drawn)
    blocks: list[Block] = [first_paragraph(told)]
    if language is not drawn:
        blocks.append(Paragraph((told.say("figures-in-english"),)))
    for section in SECTIONS:
        blocks += section(told)
    blocks.append(made_with(told))
    return Document(
        clean_line(_title(told)),
        clean_line(_subtitle(told)),
        told.say("html-language"),
        told.say("contents"),
        (language.phrases["numbered.figure"], language.phrases["numbered.table"]),
        tuple(blocks),
    )


def name_of(gathered: Gathered) -> str:
    """What the report's folder is called: its studies, or its first runs."""
    names = list(gathered.studies) or [run.name for run in gathered.runs]
    return "-".join(names[:3]) + (f"-and-{len(names) - 3}-more" if len(names) > 3 else "")


def _title(told: Told) -> str:
    gathered = told.gathered
    if gathered.studies:
        return told.say("title.study", names=told.language.joined(gathered.studies))
    if len(gathered.standings) == 1:
        return told.say("title.run", name=gathered.standings[0].name)
    return told.say("title.runs", names=told.language.joined(s.name for s in gathered.standings[:4]))


def _subtitle(told: Told) -> str:
    gathered = told.gathered
    description = next((study.description for study in gathered.studies.values() if study.description), "")
    return description or told.language.counted("subtitle", len(gathered.runs), corpora=_corpora(told))


def _corpora(told: Told) -> str:
    return told.language.joined(dict.fromkeys(corpus_name(run) for run in told.gathered.runs))
