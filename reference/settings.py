"""Every key of a config, and every scheme and part that its values name."""

from collections.abc import Iterator, Mapping, Sequence
from inspect import getdoc
from typing import Any

from engine.config.fields import Section
from engine.config.keys import flatten, is_bookkeeping, sentence_of
from engine.config.model import PARTS, ModelConfig
from engine.config.schema import RunConfig
from engine.config.schemes import SCHEMES, Scheme
from engine.config.sections import OptimizerConfig
from reference.markup import Html, code, heading, inline_html, mathml, page, paragraphs, sentence_html, table
from reference.schemas import describe_type
from tui_transformer.lab.design.draft import toml_argument

TITLES = {
    "model.position": "Positions",
    "model.attention": "Attention",
    "model.norm": "Norms",
    "model.activation": "Activations",
    "optimizer.kind": "Optimizers",
    "optimizer.schedule": "Learning-rate schedules",
}


def settings() -> str:
    usual, schema = flatten(RunConfig().dump()), RunConfig.model_json_schema(by_alias=True)
    blocks = [
        "Every key of a config, in a preset file, in a run's `config.toml`, or with `--set KEY=VALUE`. A key that is "
        "left out has its default value. A key marked *bookkeeping* does not affect what is learned, so comparisons "
        "ignore it. A key marked *editable* may be changed in a run's `config.toml` before the run is resumed; any "
        "other change is refused.",
        "Values that exclude each other are refused with the reason. [Schemes and parts](schemes.md) has papers and "
        "formulas; `tui-transformer presets schema` prints this page as a JSON schema, for editors.",
        heading(2, "The run", "run", as_code=False),
    ]
    sections: list[str] = []
    for name, field in RunConfig.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            sections += [heading(2, name), paragraphs(getdoc(section) or "")]
            said = schema["$defs"][section.__name__]["properties"]
            for key, one in section.model_fields.items():
                sections += _key(f"{name}.{key}", said[key], one, usual)
        else:
            key = field.alias or name
            blocks += _key(key, schema["properties"][key], field, usual)
    return page("Settings", *blocks, *sections)


def _key(key: str, schema: Mapping[str, Any], field: Any, usual: Mapping[str, Any]) -> Iterator[str]:
    default = code(toml_argument(usual[key])) if usual.get(key) not in (None, "") else "unset"
    if usual.get(key) is not None and field.default_factory is not None:
        default += ", which follows from other settings"
    facts, named = [f"Default: {default}"], schema.get("enum", ())
    if not named:
        facts.append(f"Values: {_values(schema)}")
    facts += [f"Acts only with {' or with '.join(each)}" for each in [_required_settings(key)] if each]
    if is_bookkeeping(key):
        facts.append("<em>bookkeeping</em>")
    if schema.get("editable"):
        facts.append("<em>editable</em>")
    yield heading(3, key)
    yield f"<p>{sentence_html(sentence_of(key))}</p>"
    yield f"<p>{'<br>'.join(facts)}</p>"
    if named:
        yield table(("value", "what it does"), [_value(key, str(one)) for one in named])


def _values(schema: Mapping[str, Any]) -> Html:
    each = schema.get("anyOf", ())
    if {one.get("type") for one in each} >= {"integer", "string"}:  # a duration
        return f"steps, or text such as {code('5 epochs')} or {code('10240 tokens')}"
    return describe_type(schema)


def _value(key: str, value: str) -> tuple[Html, Html]:
    said = sentence_of(key, value)
    row = PARTS.get(key.removeprefix("model."))
    if not said and row is not None:
        said = "off" if value == "none" else row.sentence
    scheme = SCHEMES.get(key, {}).get(value)
    paper = f" ({scheme.citation})" if scheme is not None and scheme.citation else ""
    return code(value), inline_html(said + paper)


def _required_settings(key: str) -> list[Html]:
    """The schemes and parts without which a setting does nothing: settings and their values."""
    section, _, name = key.partition(".")
    found: dict[str, Sequence[Any]] = {}
    for other, schemes in SCHEMES.items():
        values = [value for value, scheme in schemes.items() if name in scheme.settings]
        if values and other.partition(".")[0] == section:
            found[other] = values
    if section == "model":
        found |= {f"model.{part}": row.settings[name] for part, row in PARTS.items() if name in row.settings}
    return [code(other) + (f" = {', '.join(map(code, values))}" if values else "") for other, values in found.items()]


def schemes() -> str:
    blocks = [
        "A scheme is a value of the setting in its heading; a part is a setting of its own that is off by default. "
        "Formulas use the numbers of the default config. [Networks](networks.md) explains how all of them are tested.",
    ]
    for key, rows in SCHEMES.items():
        blocks += [heading(2, TITLES[key], key, as_code=False), f"<p>Values of {code(key)}.</p>"]
        for name, scheme in rows.items():
            config = (ModelConfig if key.startswith("model.") else OptimizerConfig)(**_valid_settings(key, name))
            blocks += _scheme(f"{key}.{name}", name, scheme, [scheme.formula(config)])
    blocks += [heading(2, "Optional parts", "parts", as_code=False)]
    for name, part in PARTS.items():
        given = [ModelConfig(**{name: value}) for value in (part.on_values if part.options else part.on_values[:1])]
        blocks += _scheme(f"model.{name}", f"model.{name}", part, [part.formula(config) for config in given])
        if part.options:
            blocks.append(table(("value", "what it does"), [_value(f"model.{name}", value) for value in part.options]))
    return page("Schemes and parts", *blocks)


def _valid_settings(key: str, name: str) -> dict[str, Any]:
    """The scheme's setting, with the other settings that it needs to be valid."""
    needs = {"decay_every": "5 epochs"} if getattr(SCHEMES[key][name], "needs", {}) else {}
    return {key.partition(".")[2]: name, **needs}


def _scheme(id: str, name: str, scheme: Scheme, formulas: list[str]) -> Iterator[str]:
    yield heading(3, name, id)
    yield f"<p>{sentence_html(scheme.sentence)}{inline_html(f' {scheme.citation}.') if scheme.citation else ''}</p>"
    for formula in dict.fromkeys(filter(None, formulas)):
        yield f'<div class="formula">{mathml(formula)}</div>'
