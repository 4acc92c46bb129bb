"""A Hugging Face model folder: weights, config, tokenizer and a model card. Nothing is uploaded.

The card states problems with the scores first, then the scores and what they were measured on.
"""

from collections.abc import Iterator
from pathlib import Path

from engine.data.catalogue import CORPORA
from engine.measures import MEASURES
from engine.runs.records import ValidationRecord
from tui_transformer.lab.escaping import markdown_block as block
from tui_transformer.lab.escaping import markdown_text as text
from tui_transformer.lab.exports.recorded import ExportedRun
from tui_transformer.lab.records.badges import badge

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


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    from engine.training.pretrained import write_pretrained

    folder = out / run.name
    write_pretrained(run, checkpoint, folder, lambda step: {"README.md": card(run, checkpoint, step)})
    return folder, LOADED_BY.replace("`", "").replace("**", "")


def card(run: ExportedRun, which: str, step: int) -> str:
    """README.md of an exported model, for checkpoint `which`, as requested, at this step."""
    config, model, parameters = run.config, run.config.model, run.model.parameters
    size = "" if parameters is None else f", {parameters:,} parameters"
    preset = f" Preset {text(config.preset)}." if config.preset else ""
    notes = f"\n\nNotes:\n\n{block(run.notes.text)}" if run.notes.text else ""
    # Badges, those that void a score first.
    badges = sorted(run.badges, key=lambda name: (not badge(name).void, name != "LEAK"))
    sections = [
        f"# {text(run.name)}",
        LOADED_BY,
        *(f"> **{text(name)}** {text(badge(name).means)} {text(run.badges[name])}" for name in badges),
        f"A Transformer ({text(model.architecture)}{size}): {model.n_layers} layers, {model.n_heads} heads, width "
        f"{model.d_model}, context {model.context_length}, {text(model.position)} positions, "
        f"{text(model.attention)} attention; trained for {text(config.task.name)} by tui\\-transformer."
        f"{preset} Seed {config.seed}, checkpoint {text(which)} \\(step {step:,} of {config.train.steps:,}\\); the "
        f"run is {text(run.state)}.{notes}",
        "## Scores",
        *_scores(run, which, step),
        "## Data",
        *_data(run),
        "## Loading",
        LOADING.format(source=" for the target" if run.config.has_source else ""),
        "## Licence",
        "Unknown: whoever trained this model has not said.",
    ]
    written = [sample for sample in run.texts if sample.step == step][-1:]
    sections += (f"## A sample\n\n{block(one.prompt)}\n\n→\n\n{block(one.text)}" for one in written)
    front = FRONT.format(task=run.config.task.pipeline)
    return front + "\n" + "\n\n".join(sections) + "\n"


def _scores(run: ExportedRun, which: str, step: int) -> Iterator[str]:
    records = [r for r in run.metrics() if isinstance(r, ValidationRecord) and "step" in r.model_fields_set]
    found = [record for record in records if record.step == step]
    if not found:
        yield f"This checkpoint \\(step {step:,}\\) was not scored."
        return
    record, of = found[-1], run.config.task.unit
    floor = next((floor.words for floor in run.data.floors), "floor")
    rows = ["| score | value |", "|:---|---:|"]
    for measure in MEASURES:
        value = None if measure.probe else record.value(measure.key)
        if value is not None:
            name = (measure.about or measure.name).format(unit=of, floor=floor)
            amount = measure.exact.format(value).replace("-", "\u2212")
            rows.append(f"| {text(name)} | {amount} |")
    for name, share in record.probes.items():
        places = record.probe_places.get(name)
        rows.append(f"| {text(name)} | {share:.1%}{'' if places is None else f' of {places:,} places'} |")
    yield "\n".join(rows)

    # What the scores were measured on: they mean nothing without it.
    tokens = run.data.splits.get("validation", {}).get("tokens")
    size = "" if tokens is None else f" \\({tokens:,} tokens\\)"
    how = f"Taken over the whole validation split{size} of {text(run.data.corpus)}, without smoothing"
    if record.stride is not None:
        how += f", in windows of {text(str(record.context))} tokens every {text(str(record.stride))}"
    if record.beam is not None:
        how += f", translated with a beam of {text(str(record.beam))}"
        how += f" \\({record.translated} sentences; {text(record.bleu_signature)}\\)"
    chosen = ""
    if which == "best" and len(records) > 1:
        chosen = (
            f" This checkpoint was chosen by that very split, as the best of {len(records)} evaluations by "
            f"{text(run.config.evaluation.select)}: such a score flatters, and only a test split says how much."
        )
    yield f"{how}.{chosen}"


def _data(run: ExportedRun) -> Iterator[str]:
    listed = CORPORA.get(run.data.corpus.split("@")[0])
    yield text(run.data.corpus) + (f": {text(listed.description)}" if listed is not None else "")
    if listed is not None and not listed.remotes:
        yield "Licence of the data: none is needed, tui\\-transformer generates it from a seed."
    else:
        licence = listed.licence if listed is not None else ""
        yield f"Licence of the data: {text(licence) if licence else 'unknown'}."
    yield "\n".join(f"* {text(split)}: SHA\\-256 {text(found)}" for split, found in run.data.sha256.items())
