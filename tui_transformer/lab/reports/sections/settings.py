"""The settings: those that all runs share, and those in which variants differ."""

from collections.abc import Iterator

from engine.clean import clean_line
from engine.config.keys import is_bookkeeping
from engine.lints import ACTS
from tui_transformer.lab.analysis import differences
from tui_transformer.lab.analysis.columns import setting_text
from tui_transformer.lab.analysis.detail import UNSET
from tui_transformer.lab.reports.document import Block, Cell, Heading, Paragraph, Table
from tui_transformer.lab.reports.places import base_name
from tui_transformer.lab.reports.sections.model import config_of
from tui_transformer.lab.reports.told import Told, pairs_table

ABOUT = ("train.threads",)  # of the machine more than of the model, but part of what repeats a run
FEW = 5  # settings that stand beside each other


def settings(told: Told) -> Iterator[Block]:
    """The section."""
    gathered, say = told.gathered, told.say
    standings = gathered.standings
    among = [standing.group.representative for standing in standings]
    yield Heading(say("section.settings"))
    if not any(run.config for run in among):
        yield Paragraph((say("model.unknown"),))
        return
    varied = [key for key in differences.differing(among) if key != "seed"]
    if gathered.several and varied:
        yield _differing(told, varied)
    elif gathered.several:
        yield Paragraph((say("settings.no-difference"),))
    run = gathered.first.group.representative
    config = config_of(run)
    idle = {key for key, acts, _ in ACTS if config is not None and not acts(config)}
    keys = [key for key in differences.settings(among) if key not in varied and key not in idle and key != "seed"]
    shared = [key for key in keys if not is_bookkeeping(key) and run.config.get(key) is not None]
    rows = [(key, _text(run.config.get(key))) for key in shared]
    caption = say("table.shared" if gathered.several else "table.settings")
    yield pairs_table(caption, (say("head.setting"), say("head.value")), rows, across=2, code=True)


def _text(value: object) -> str:
    if value is None:
        return UNSET
    return clean_line(base_name(value) if isinstance(value, str) else setting_text(value))


def _differing(told: Told, keys: list[str]) -> Table:
    """Variants down and settings across where these are few, else the other way round."""
    gathered = told.gathered
    named = [(gathered.name(s), s.group.representative.config) for s in gathered.standings]
    caption = told.say("table.differing")
    if len(keys) <= FEW:
        shown = differences.short_names(keys)
        rows = [(Cell(name), *(Cell(_text(config.get(key)), code=True) for key in keys)) for name, config in named]
        heads = (told.say("head.variant"), *(shown[key] for key in keys))
        return Table(caption, heads, tuple(rows), "l" * len(heads))
    rows = [(Cell(key, code=True), *(Cell(_text(config.get(key))) for _, config in named)) for key in keys]
    heads = (told.say("head.setting"), *(name for name, _ in named))
    return Table(caption, heads, tuple(rows), "l" * len(heads))
