"""The course of training: curves, and every evaluation as a row."""

from collections.abc import Iterator, Sequence

from engine.measures import MEASURE, MEASURES
from tui_transformer.lab.analysis.curves import MOST, Metrics, band, scored
from tui_transformer.lab.analysis.entry import LAST, Entry
from tui_transformer.lab.analysis.statistics import Mean
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.charts.curves import Curve, curve_of
from tui_transformer.lab.records.facts import Record, number, table
from tui_transformer.lab.records.floors import Floor
from tui_transformer.lab.reports.document import Block, Figure, Heading, Paragraph, Table
from tui_transformer.lab.reports.figures.curves import Panels, curves, floor_of, lines_of
from tui_transformer.lab.reports.sections.model import config_of
from tui_transformer.lab.reports.told import NONE, Told, cells

ROWS = 24  # of a table of evaluations


def training(told: Told) -> Iterator[Block]:
    """The section; variants on another text or in another unit have pictures of their own."""
    yield Heading(told.say("section.training"))
    parts = told.gathered.parts
    drawn = False
    for i, part in enumerate(parts):
        for block in _part(told, part, "" if len(parts) == 1 else f"-{i + 1}"):
            drawn = True
            yield block
    if not drawn:
        yield Paragraph((told.say("training.nothing"),))


def _part(told: Told, part: Sequence[VariantResult], ending: str) -> Iterator[Block]:
    gathered, run = told.gathered, part[0].group.representative
    shown = part[:MOST]
    lines = lines_of(gathered, shown, told.drawn)
    if not lines:
        return
    floor = floor_of(gathered, shown)
    panels = Panels(lines, run.protocol.unit, floor)
    yield Figure(f"curves{ending}", _caption(told, part, shown, floor), lambda: curves(panels, told.drawn))
    if len(part) == 1 and len(part[0].runs) == 1:
        yield from _of_run(told, part[0])
    else:
        yield from _of_variants(told, shown)


def _caption(told: Told, part: Sequence[VariantResult], shown: Sequence[VariantResult], floor: Floor | None) -> str:
    seeds = any(len(s.group.drawn) > 1 for s in shown)
    void = any(s.group.void for s in shown)
    alone = len(shown) == 1
    keys = ["caption.curves" if alone else "caption.curves.several"]
    keys += [key for key, wanted in (("caption.band", seeds),) if wanted]
    if floor is not None:
        keys.append("caption.floor.window" if floor.context else "caption.floor")
    keys += ["caption.void"] if void else []
    cut = told.say("figure.cut", shown=MOST, total=len(part)) if len(part) > MOST else ""
    return told.sentences([*(told.say(key) for key in keys), cut])


def _thinned(steps: Sequence[float], kept: set[float]) -> tuple[list[float], bool]:
    """At most `ROWS` of them at equal distances, with the first, the last and those that must stay."""
    if len(steps) <= ROWS:
        return list(steps), False
    every = (len(steps) - 1) / (ROWS - 1)
    chosen = {steps[round(i * every)] for i in range(ROWS)} | (kept & set(steps))
    return sorted(chosen), True


def _of_run(told: Told, standing: VariantResult) -> Iterator[Block]:
    """Every evaluation of one run, with its epoch where the text has epochs."""
    run = standing.runs[0]
    metrics = told.gathered.metrics.get(run.path, Metrics())
    by_step = {int(step): r for r in metrics.validation if (step := number(r.get("step"))) is not None}
    best = {float(run.best_step)} if run.best_step is not None else set()
    steps, cut = _thinned(sorted(by_step), best)
    if not steps:
        return
    per_epoch = _per_epoch(told, standing)
    columns = [key for key in _TABLED if any(number(by_step[int(s)].get(key)) is not None for s in steps)]
    train, rate = (curve_of(metrics.train, "step", key) for key in ("loss", "lr"))
    rows = []
    for step in steps:
        record = by_step[int(step)]
        epoch = [f"{step / per_epoch:.2f}"] if per_epoch else []
        shown = [_shown(record, key) for key in columns]
        beside = [_at(train, step, "{:.4f}"), _at(rate, step, "{:.2e}")]
        rows.append(cells([f"{step:,.0f}", *epoch, *shown, *beside], strong=step in best))
    heads = [told.say("head.step"), *([told.say("head.epoch")] if per_epoch else [])]
    heads += [told.say(f"head.{key}") for key in (*columns, "train_loss", "lr")]
    notes = [told.say("table.evaluations.best")] if best else []
    notes += [told.say("table.evaluations.cut", shown=len(steps), total=len(by_step))] if cut else []
    caption = told.say("table.evaluations")
    yield Table(caption, tuple(heads), tuple(rows), "r" * len(heads), told.sentences(notes))


_TABLED = [measure.key for measure in MEASURES if measure.tabled]


def _shown(record: Record, key: str) -> str:
    value = number(record.get(key))
    return "" if value is None else MEASURE[key].brief.format(value)


def _at(curve: Curve, step: float, form: str) -> str:
    """The record at that very step, or the last before it."""
    before = [y for x, y in zip(curve.x, curve.y, strict=True) if x <= step]
    return form.format(before[-1]) if before else NONE


def _per_epoch(told: Told, standing: VariantResult) -> int | None:
    """Steps of an epoch; None where it is not known, as of pairs, whose batches are of like lengths."""
    run = standing.group.representative
    config, found = config_of(run), told.gathered.facts(run, "data")
    tokens = number(table(table(found.get("splits")).get("train")).get("tokens"))
    if config is None or tokens is None or config.translates:
        return None
    return config.steps_per_epoch(int(tokens), config.train.batch_size)


def _of_variants(told: Told, shown: Sequence[VariantResult]) -> Iterator[Block]:
    """The mean loss of each variant at each step that all its seeds were scored at."""
    found: list[dict[float, str]] = []
    for standing in shown:
        seeds = {i: scored(_validation(told, run), "step") for i, run in enumerate(standing.group.drawn)}
        made = band(seeds)
        halves = made.half or (None,) * len(made.curve.x)
        points = zip(made.curve.x, made.curve.y, halves, strict=True)
        found.append({x: LAST.spread(Mean(y, half, made.n, None)) for x, y, half in points})
    steps, cut = _thinned(sorted({step for points in found for step in points}), set())
    if not steps:
        return
    rows = [cells([f"{step:,.0f}", *(points.get(step, "") for points in found)]) for step in steps]
    heads = (told.say("head.step"), *(told.gathered.name(standing) for standing in shown))
    total = len({step for points in found for step in points})
    note = told.say("table.evaluations.cut", shown=len(steps), total=total) if cut else ""
    yield Table(told.say("table.means"), heads, tuple(rows), "r" * len(heads), note)


def _validation(told: Told, run: Entry) -> Sequence[Record]:
    return told.gathered.metrics.get(run.path, Metrics()).validation
