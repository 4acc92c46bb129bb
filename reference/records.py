"""Every file of a run directory and its fields, every measure, and every badge."""

from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import Any

from pydantic import TypeAdapter

from engine.config.measures import MEASURES, Measure
from engine.runs import records
from engine.runs.records import SCHEMAS, Record
from reference.comments import field_comments
from reference.markup import Html, code, heading, inline_html, link, page, paragraphs, sentence_html, table
from reference.schemas import describe_type, is_nullable
from tui_transformer.lab.records.badges import BADGES

OTHERS = {  # files without records
    "config.toml": "the complete config; `run --config` repeats the run with it",
    "tokenizer.json": "the tokens of the vocabulary, also in every checkpoint",
    "predictions.txt": "answers of the best evaluation, one per line, if questions are asked",
    "log.txt": "what a background process printed",
    "checkpoints/step-NNNNNNNN/": "a checkpoint: `model.safetensors`, `optimizer.safetensors`, `state.json`, "
    "`tokenizer.json`, and `manifest.json` with the `sha256` of each, the `step`, and the `settings` that the run "
    "keeps, with their `settings_sha256` (of JSON with sorted keys and no spaces)",
    "checkpoints/best, last": "the step of the best and of the newest checkpoint",
    "checkpoints/average/, ema/": "averaged weights, if the config asks for them; these cannot be resumed",
}


def run_directory() -> str:
    schemas = {name: TypeAdapter(one).json_schema(by_alias=True) for name, one in SCHEMAS.items()}
    parts: dict[str, Mapping[str, Any]] = {}
    for schema in schemas.values():
        parts |= schema.get("$defs", {})
    files = {name: _file_description(one) for name, one in SCHEMAS.items()}
    blocks = [
        "A run is a folder of plain files that you can copy. A `.jsonl` file has one JSON object per line, and its "
        "table lists the fields of a line. Readers should ignore fields they do not know; a damaged value is read as "
        "missing. `tui-transformer schema` prints these tables as JSON schemas.",
        table(
            ("file", "what is in it"),
            [(link(code(name), name), sentence_html(said)) for name, said in files.items()]
            + [(code(name), sentence_html(said)) for name, said in OTHERS.items()],
        ),
    ]
    for name, schema in schemas.items():
        blocks += [heading(2, name), f"<p>{sentence_html(files[name])}</p>"]
        if "properties" in schema:
            blocks.append(_fields(schema, record_type(name)))
        else:
            blocks.append(f"<p>Each line is one of {describe_type(schema)}.</p>")
    blocks.append(heading(2, "Parts", "parts", as_code=False))
    for name in sorted(parts):
        own = getattr(records, name)
        blocks += [heading(3, name), paragraphs(getdoc(own) or ""), _fields(parts[name], own)]
    return page("Run directory", *blocks)


def record_type(file: str) -> type[Record]:
    found: type[Record] = SCHEMAS[file]
    return found


def _file_description(kind: Any) -> str:
    """The docstring of a file's class, without the file's name."""
    said = getdoc(kind) if isinstance(kind, type) else "the curves: training and evaluation records"
    return (said or "").partition(": ")[2] or said or ""


def _fields(schema: Mapping[str, Any], own: type) -> str:
    said = field_comments(own)
    names = {field.alias or name: name for name, field in own.model_fields.items()}  # type: ignore[attr-defined]
    return table(
        ("field", "value", "meaning"),
        [
            (
                code(key),
                f"{describe_type(one)}{', or null' if is_nullable(one) else ''}",
                sentence_html(said.get(names[key], "")),
            )
            for key, one in schema["properties"].items()
        ],
    )


def measures() -> str:
    return page(
        "Measures",
        "Every score and probe that an evaluation records. Variants are compared on a measure that has a smallest "
        "difference that matters: *no difference* means that the whole interval lies within it. Probes are scored only "
        "where the model can see the evidence; [what a number means](../explanation/numbers.md) explains each of them.",
        table(
            ("measure", "name", "what it is", "better if", "unit", "smallest difference that matters"),
            [_measure(one) for one in MEASURES],
        ),
    )


def _measure(measure: Measure) -> tuple[Html, ...]:
    about = f"share of right answers: {measure.question}" if measure.question else measure.about
    unit = "%" if measure.is_share else "nats" if "nats" in measure.about else ""
    margin = f"{measure.margin * 100:g} % points" if measure.is_share else f"{measure.margin:g} {unit}"
    return (
        code(measure.key),
        inline_html(measure.name),
        inline_html(about.format(unit="token", floor="floor reachable at its context")),
        "lower" if measure.lower_is_better else "higher",
        inline_html(unit),
        inline_html(margin.strip()) if measure.is_compared else "not compared",
    )


def badges() -> str:
    blocks = [
        "A badge is a warning about a run's scores. A red one means that the score is void: the run is not compared. "
        "See [when each is checked](networks.md#alarms).",
        table(
            ("badge", "colour", "what it means"),
            [(link(code(name), name), _colour(name), inline_html(one.means)) for name, one in BADGES.items()],
        ),
        *(block for name in BADGES for block in _badge(name)),
    ]
    return page("Badges", *blocks)


def _colour(name: str) -> Html:
    return "red" if BADGES[name].void else "amber"


def _badge(name: str) -> Iterator[str]:
    badge = BADGES[name]
    yield heading(2, name)
    if badge.full:
        yield f"<p>Shown as {code(badge.full)}; files and commands call it {code(name)}.</p>"
    elif badge.word != name:
        yield f"<p>Shown as {code(badge.word)} in tables.</p>"
    yield f"<p>{_colour(name).capitalize()}. {inline_html(badge.means)}</p>"
    yield f"<p>{inline_html(badge.advice)}</p>"
