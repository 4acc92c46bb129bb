"""What a report does not show: every reason to conclude less, from what the runs themselves say."""

from collections.abc import Iterator

from engine.clean import clean_line
from engine.lints import lint
from tui_transformer.lab.analysis.group_sentences import EXPLORATORY, FALLING, OVERFIT
from tui_transformer.lab.analysis.standing import Standing
from tui_transformer.lab.records.facts import MOST_PROBES, rows, table
from tui_transformer.lab.reports.document import Block, Bullets, Heading
from tui_transformer.lab.reports.gathered import corpus_name
from tui_transformer.lab.reports.sections.model import config_of
from tui_transformer.lab.reports.told import Told

FEW_PLACES = 100  # of a probe: a share of fewer is coarse
ABOUT_COST = "model.attention"  # a lint about time, which says nothing of scores


def limits(told: Told) -> Iterator[Block]:
    """The section."""
    items = [*_seeds(told), *_training(told), *_scores(told), *_scope(told), *_lints(told)]
    yield Heading(told.say("section.limits"))
    yield Bullets(tuple((clean_line(item),) for item in items))


def _names(told: Told, standings: list[Standing]) -> str:
    return told.language.joined(told.gathered.name(standing) for standing in standings)


def _seeds(told: Told) -> Iterator[str]:
    standings = told.gathered.standings
    counts = [len(standing.group.counted) for standing in standings]
    if max(counts) <= 1:
        yield told.say("limits.one-seed" if told.gathered.several else "limits.one-run")
    elif max(counts) < EXPLORATORY:
        yield told.say("limits.few-seeds", n=max(counts))
    left_out = [standing for standing in standings if standing.group.left_out]
    if left_out:
        yield told.say("limits.left-out", names=_names(told, left_out))
    judged = [(standing, standing.judgement(standing.primary)) for standing in standings]
    open_ended = [standing for standing, found in judged if found is not None and found.kind == "inconclusive"]
    if open_ended:
        yield told.say("limits.inconclusive", names=_names(told, open_ended))


def _training(told: Told) -> Iterator[str]:
    standings = told.gathered.standings
    for badge, key in ((FALLING, "limits.falling"), (OVERFIT, "limits.overfit")):
        having = [standing for standing in standings if badge in standing.badges]
        if having:
            yield told.language.counted(key, len(having), names=_names(told, having))
    if told.gathered.several:
        yield told.say("limits.untuned")
        sizes = {standing.group.representative.parameters for standing in standings} - {None}
        if len(sizes) > 1:
            yield told.say("limits.sizes", least=f"{min(filter(None, sizes)):,}", most=f"{max(filter(None, sizes)):,}")


def _scores(told: Told) -> Iterator[str]:
    runs = told.gathered.runs
    if any(run.best is not None for run in runs):
        yield told.say("limits.best")
    yield told.say("limits.no-test")
    few = [
        clean_line(str(probe.get("name")))
        for probe in rows(told.gathered.facts(runs[0], "data").get("probes"))[:MOST_PROBES]
        if (places := runs[0].places.get(str(probe.get("name")))) is not None and places < FEW_PLACES
    ]
    if few and any(run.probes for run in runs):
        yield told.say("limits.few-places", names=told.language.joined(few), most=FEW_PLACES)
    if any(run.scores.get("bleu") is not None for run in runs):
        yield told.say("limits.sentences")


def _scope(told: Told) -> Iterator[str]:
    runs = told.gathered.runs
    corpora = list(dict.fromkeys(corpus_name(run) for run in runs))
    key = "limits.corpus" if len(corpora) == 1 else "limits.corpora"
    yield told.say(key, names=told.language.joined(corpora))
    if any(table(told.gathered.facts(run, "data").get("floor")) for run in runs[:1]):
        yield told.say("limits.generated")
    sizes = dict.fromkeys(f"{run.parameters:,}" for run in runs if run.parameters is not None)
    steps = dict.fromkeys(f"{run.steps:,}" for run in runs if run.steps)
    if len(sizes) == 1 and len(steps) == 1:
        yield told.say("limits.scale", n=next(iter(sizes)), steps=next(iter(steps)))
    if any(run.state != "finished" for run in runs):
        yield told.say("limits.unfinished")


def _lints(told: Told) -> Iterator[str]:
    """Settings that were surely not meant, in the checker's own English."""
    seen = dict[str, list[str]]()
    for standing in told.gathered.standings:
        config = config_of(standing.group.representative)
        for found in lint(config) if config is not None else ():
            if found.key != ABOUT_COST:
                seen.setdefault(f"{found.key}: {found.text}", []).append(told.gathered.name(standing))
    for words, names in seen.items():
        yield told.say("limits.setting", names=told.language.joined(names), text=words)
