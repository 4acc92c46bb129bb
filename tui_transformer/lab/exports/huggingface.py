"""A Hugging Face model folder: weights, config, tokenizer and a model card. Nothing is uploaded."""

from collections.abc import Iterator
from pathlib import Path

from engine.base.language import tr
from engine.config.measures import MEASURES
from engine.data.known import CORPORA
from engine.runs.records import ValidationRecord
from tui_transformer.lab.escaping import markdown_block, markdown_text
from tui_transformer.lab.exports.recorded import ExportedRun
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.template import render_template

LOADED_BY = tr(
    "Load the model with `engine.training.pretrained.load_pretrained` from the `tui-transformer` "
    "package, **not** with `transformers.AutoModel`; `tokenizers` reads `tokenizer.json`."
)


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    from engine.training.pretrained import write_pretrained

    folder = out / run.name
    write_pretrained(run, checkpoint, folder, lambda step: {"README.md": card(run, checkpoint, step)})
    return folder, LOADED_BY.replace("`", "").replace("**", "")


def card(run: ExportedRun, checkpoint: str, step: int) -> str:
    """README.md of an exported model, for checkpoint `which`, as requested, at this step."""
    records = [r for r in run.metrics() if isinstance(r, ValidationRecord) and "step" in r.model_fields_set]
    record = next((record for record in reversed(records) if record.step == step), None)
    filters = {"block": markdown_block, "number": lambda number: f"{number:,}"}
    return render_template(
        "exports",
        "card.md.j2",
        markdown_text,
        filters,
        run=run,
        model=run.config.model,
        parameters=run.model.parameters,
        which=checkpoint,
        step=step,
        loaded_by=LOADED_BY,
        badges=sorted(map(badge, run.badges), key=lambda one: (not one.void, one.name != "LEAK")),
        record=record,
        evaluations=len(records),
        scores=[] if record is None else list(_scores(run, record)),
        tokens=run.data.splits.get("validation", {}).get("tokens"),
        corpus=CORPORA.get(run.data.corpus.split("@")[0]),
        samples=[sample for sample in run.texts if sample.step == step][-1:],
    )


def _scores(run: ExportedRun, record: ValidationRecord) -> Iterator[tuple[str, str]]:
    floor = next((floor.description for floor in run.data.floors), "floor")
    for measure in MEASURES:
        value = None if measure.is_probe else record.value(measure.key)
        if value is not None:
            name = (measure.about or measure.name).format(unit=run.config.english_loss_unit, floor=floor)
            yield name, measure.exact_format.format(value).replace("-", "\u2212")
    for name, share in record.probes.items():
        places = record.probe_places.get(name)
        yield name, f"{share:.1%}{'' if places is None else f' of {places:,} places'}"
