"""Every preset, built-in study and named corpus, and the file format of a study."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from engine.config import presets as shipped
from engine.config.keys import flatten
from engine.data.known import CORPORA
from reference.comments import field_comments
from reference.examples import PROGRAM
from reference.markup import Html, code, fence, heading, inline_html, link, page, sentence_html, table
from reference.schemas import describe_type
from tui_transformer.lab.design.draft import toml_argument
from tui_transformer.lab.work.study import (
    EXPECTABLE,
    OUTCOMES,
    Stage,
    Study,
    StudyFileModel,
    Variant,
    read_study,
    shipped_studies,
)

HUB = "https://huggingface.co/"
EXPECTED = {"worse": "worse", "better": "better", "same": "no different", "unknown": "open"}


def presets() -> str:
    found = shipped.list_presets()
    bases = [preset for preset in found if preset.extends is None]
    changes = [preset for preset in found if preset.extends is not None]
    blocks = [
        "A preset is a named config. A *base* is complete; a *change* alters its base, or another with `--on BASE`. "
        f"`{PROGRAM} presets show NAME` prints all settings of one, its parameters and cost.",
        heading(2, "Bases", "bases", as_code=False),
        table(
            ("preset", "what it is"), [(link(code(one.name), one.name), inline_html(one.description)) for one in bases]
        ),
        heading(2, "Changes", "changes", as_code=False),
        table(
            ("preset", "of", "what it is"),
            [(link(code(one.name), one.name), code(one.extends), inline_html(one.description)) for one in changes],
        ),
        heading(2, "Files", "files", as_code=False),
    ]
    for preset in [*bases, *changes]:
        text = (shipped.folder() / f"{preset.name}.toml").read_text(encoding="utf-8")
        blocks += [heading(3, preset.name), f"<p>{sentence_html(preset.description)}</p>", fence(text, "toml")]
    return page("Presets", *blocks)


def studies() -> str:
    found = {name: read_study(path) for name, path in shipped_studies().items()}
    blocks = [
        "A study trains variants of one base with the same seeds, and gives each a verdict. "
        f"`{PROGRAM} ablate --study NAME` runs one; [Run an ablation](../how-to/ablate.md) explains how.",
        table(
            ("study", "what it asks"),
            [(link(code(name), name), inline_html(one.description)) for name, one in found.items()],
        ),
    ]
    for name, study in found.items():
        blocks += [heading(2, name), *_study(study)]
    return page("Studies", *blocks, *_file_format())


def _study(study: Study) -> Iterator[str]:
    facts = {
        "Base": code(study.base),
        "Baseline": code(study.baseline),
        "Seeds": ", ".join(map(str, study.seeds)),
        "Primary measure": code(study.primary) if study.primary else "",
        "For all variants": _changes("", study.changes),
    }
    yield f"<p>{sentence_html(study.description)}</p>"
    yield f"<p>{'<br>'.join(f'{name}: {said}' for name, said in facts.items() if said)}</p>"
    if study.stages:
        rows = [
            (code(one.name), code(one.starts_from) if one.starts_from else "–", _changes(one.preset, one.changes))
            for one in study.stages
        ]
        yield table(("stage", "starts from", "changes"), rows)
    yield table(
        ("variant", "changes", "stages", "expected", "why"),
        [
            (
                code(one.name),
                _changes(one.preset, one.changes),
                ", ".join(map(code, one.stages)),
                "<br>".join(f"{code(measure)} {EXPECTED[outcome]}" for measure, outcome in one.expect.items()),
                inline_html(one.why),
            )
            for one in study.variants
        ],
    )


def _changes(preset: str, changes: Mapping[str, Any]) -> Html:
    own = [code(f"{key} = {toml_argument(value)}") for key, value in flatten(dict(changes)).items()]
    return "<br>".join([*([f"preset {code(preset)}"] if preset else []), *own])


def _file_format() -> Iterator[str]:
    """The format of a study's file; its fields are described where they are declared."""
    schema = TypeAdapter(StudyFileModel).json_schema(by_alias=True)
    tables: dict[str, tuple[type, Mapping[str, Any]]] = {"the study": (Study, schema)}
    tables |= {
        f"[[{name}s]]": (described, schema["$defs"][file])
        for name, described, file in (("stage", Stage, "StageFile"), ("variant", Variant, "VariantFile"))
    }
    yield heading(2, "The study file", "file", as_code=False)
    outcomes, judged = (", ".join(f"`{one}`" for one in ones) for ones in (OUTCOMES, EXPECTABLE))
    yield (
        "A study of your own is a TOML file; `v` in Design writes one. A variant's expectations name an outcome "
        f"({outcomes}) for a measure ({judged})."
    )
    for name, (described, said) in tables.items():
        notes = {"schema": "version of this format"} | field_comments(described)
        notes["from"] = notes.get("starts_from", "")
        rows = [
            (
                code(key),
                _value_type(one),
                "required" if key in said.get("required", ()) else "",
                inline_html(notes.get(key, "")),
            )
            for key, one in said["properties"].items()
        ]
        yield f"<p>{code(name) if '[' in name else 'Of the whole study:'}</p>"
        yield table(("key", "value", "", "meaning"), rows)


def _value_type(schema: Mapping[str, Any]) -> Html:
    """Its own tables are shown below."""
    return "tables" if "$ref" in schema.get("items", {}) else describe_type(schema).replace("object", "table")


def corpora() -> str:
    rows = [
        (
            code(entry.name),
            inline_html(entry.kind_label),
            inline_html(entry.description),
            _origin([remote.url for remote in entry.remotes] or [entry.hub and HUB], entry.origin),
            inline_html(entry.licence),
            code(entry.preset) if entry.preset else "",
        )
        for entry in CORPORA.values()
    ]
    return page(
        "Corpora",
        f"All named texts, sentence pairs and documents. `{PROGRAM} data list` shows where each is on this machine, "
        f"`{PROGRAM} data show NAME` its size and an excerpt. For your own text, see [Train on your own "
        "text](../how-to/own-text.md).",
        table(("corpus", "kind", "what it is", "comes from", "licence", "preset"), rows),
    )


def _origin(urls: Sequence[str], origin: str) -> Html:
    if not any(urls) and not origin:
        return "generated"
    hosts = dict.fromkeys(url.partition("//")[2].partition("/")[0] for url in urls if url)
    return "<br>".join([inline_html(origin)] if origin else [inline_html(host) for host in hosts])
