"""The model card: what is wrong with the scores first, then the scores and what they were taken over. No torch."""

from collections.abc import Iterator
from typing import Any

from engine.data.catalogue import catalogue
from engine.measures import MEASURES
from tui_transformer.lab.exports.markdown import block, inline
from tui_transformer.lab.exports.recorded import Recorded
from tui_transformer.lab.formatting import unit
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.records.facts import first_probes, number, table, text
from tui_transformer.lab.records.floors import floors

FRONT = """---
library_name: tui-transformer
license: unknown
tags:
- tui-transformer
- {task}
---
"""
LOADING = """```python
from pathlib import Path
from engine.training.pretrained import load_pretrained  # of the package tui-transformer

model, tokenizer = load_pretrained(Path("."))
```

`tokenizers.Tokenizer.from_file("tokenizer.json")` gives the same token ids{source}; the ids of special tokens are
in `config.json`. `transformers.AutoModel` cannot load the network, which is written from scratch."""
LOADED_BY = (
    "Load it with `engine.training.pretrained.load_pretrained` of the package `tui-transformer`, **not** with "
    "`transformers.AutoModel`; `tokenizers` reads `tokenizer.json`."
)


def card(run: Recorded, which: str, step: int) -> str:
    """README.md of an exported model.

    Args:
        run: the run.
        which: the checkpoint as it was asked for.
        step: its step.
    """
    task = "translation" if run.config.translates else "text-generation"
    sections = [
        f"# {inline(run.name)}",
        LOADED_BY,
        *_warnings(run),
        _about(run, which, step),
        "## Scores",
        *_scores(run, which, step),
        "## Data",
        *_data(run),
        "## Loading",
        LOADING.format(source=" for the target" if run.config.has_source else ""),
        "## Licence",
        "Unknown: whoever trained this model has not said.",
        *_samples(run, step),
    ]
    return FRONT.format(task=task) + "\n" + "\n\n".join(sections) + "\n"


def _warnings(run: Recorded) -> Iterator[str]:
    """Badges, those that make a score void before the others."""
    for name in sorted(run.badges, key=lambda name: (not badge(name).void, name != "LEAK")):
        yield f"> **{inline(name)}** {inline(badge(name).means)} {inline(run.badges[name])}"


def _about(run: Recorded, which: str, step: int) -> str:
    config, model = run.config, run.config.model
    parameters = number(table(run.reader.raw("model")).get("parameters"))
    size = "" if parameters is None else f", {int(parameters):,} parameters"
    preset = f" Preset {inline(config.preset)}." if config.preset else ""
    about = (
        f"A Transformer ({inline(model.architecture)}{size}): {model.n_layers} layers, {model.n_heads} heads, width "
        f"{model.d_model}, context {model.context_length}, {inline(model.position)} positions, "
        f"{inline(model.attention)} attention; trained for {inline(config.objective.kind)} by tui\\-transformer."
        f"{preset} Seed {config.seed}, checkpoint {inline(which)} \\(step {step:,} of {config.train.steps:,}\\); the "
        f"run is {inline(run.state)}."
    )
    notes = f"\n\nNotes:\n\n{block(run.notes.text)}" if run.notes.text else ""
    return about + notes


def _scores(run: Recorded, which: str, step: int) -> Iterator[str]:
    records = [r for r in run.metrics if r.get("kind") == "validation"]
    found = [record for record in records if record["step"] == step]
    if not found:
        yield f"This checkpoint \\(step {step:,}\\) was not scored."
        return
    record, of = found[-1], unit(run.config.objective.kind)
    floor = next((floor.words for floor in floors(run.data)), "floor")
    rows = ["| score | value |", "|:---|---:|"]
    for measure in MEASURES:
        value = None if measure.probe else number(record.get(measure.key))
        if value is not None:
            name, amount = (measure.about or measure.name).format(unit=of, floor=floor), measure.exact.format(value)
            rows.append(f"| {inline(name)} | {amount.replace('-', chr(0x2212))} |")
    places = table(record.get("probe_places"))
    for name, value in first_probes(record.get("probes")).items():
        share, of_places = number(value), number(places.get(name))
        if share is not None:
            said = "" if of_places is None else f" of {of_places:,.0f} places"
            rows.append(f"| {inline(str(name))} | {share:.1%}{said} |")
    yield "\n".join(rows)
    yield _taken_over(run, record, which, len(records))


def _taken_over(run: Recorded, record: dict[str, Any], which: str, evaluations: int) -> str:
    """What the scores are of; without it they mean nothing."""
    split = table(table(run.data.get("splits")).get("validation"))
    tokens = number(split.get("tokens"))
    size = "" if tokens is None else f" \\({int(tokens):,} tokens\\)"
    how = f"Taken over the whole validation split{size} of {inline(text(run.data.get('corpus')))}, without smoothing"
    if "stride" in record:
        how += f", in windows of {inline(str(record.get('context')))} tokens every {inline(str(record['stride']))}"
    if "beam" in record:
        how += f", translated with a beam of {inline(str(record['beam']))}"
        how += f" \\({inline(str(record.get('translated')))} sentences; {inline(str(record.get('bleu_signature')))}\\)"
    chosen = ""
    if which == "best" and evaluations > 1:
        chosen = (
            f" This checkpoint was chosen by that very split, as the best of {evaluations} evaluations by "
            f"{inline(run.config.evaluation.select)}: such a score flatters, and only a test split says how much."
        )
    return f"{how}.{chosen}"


def _data(run: Recorded) -> Iterator[str]:
    corpus = text(run.data.get("corpus"))
    listed = catalogue().get(corpus.split("@")[0])
    yield f"{inline(corpus)}" + (f": {inline(listed.description)}" if listed is not None else "")
    if listed is not None and not listed.remotes:
        yield "Licence of the data: none is needed, tui\\-transformer generates it from a seed."
    else:
        licence = listed.licence if listed is not None else ""
        yield f"Licence of the data: {inline(licence) if licence else 'unknown'}."
    hashes = table(run.data.get("sha256"))
    yield "\n".join(f"* {inline(str(split))}: SHA\\-256 {inline(str(found))}" for split, found in hashes.items())


def _samples(run: Recorded, step: int) -> Iterator[str]:
    """What it wrote at that step."""
    found = [sample for sample in run.samples if sample["step"] == step]
    if found:
        yield "## A sample"
        yield f"{block(text(found[-1].get('prompt')))}\n\n→\n\n{block(text(found[-1].get('text')))}"
