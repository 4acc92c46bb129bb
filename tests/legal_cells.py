"""The grid: every value of what a user chooses from, and every legal combination of them."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from engine.capabilities import check, with_value
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.config.sections import ObjectiveConfig
from engine.config.tasks import SPAN_FORMS
from engine.data.known import kind_by_name, names_of


def _values(section: type[ModelConfig] | type[ObjectiveConfig], name: str) -> tuple[Any, ...]:
    return get_args(section.model_fields[name].annotation)


AXES: dict[str, tuple[Any, ...]] = {
    "model.architecture": _values(ModelConfig, "architecture"),
    "model.causal": (True, False),
    "model.position": _values(ModelConfig, "position"),
    "model.attention": _values(ModelConfig, "attention"),
    "model.norm": _values(ModelConfig, "norm"),
    "model.norm_placement": _values(ModelConfig, "norm_placement"),
    "objective.kind": _values(ObjectiveConfig, "kind"),
}


def legal_cells(base: RunConfig, axes: Mapping[str, tuple[Any, ...]] = AXES) -> Iterator[RunConfig]:
    """Every legal combination of the axes on top of a base config."""
    data = base.dump()
    for derived in ("final_norm", "attention_dropout"):  # follow what the axes say
        data["model"].pop(derived)
    for values in itertools.product(*axes.values()):
        for key, value in zip(axes, values, strict=True):
            section, name = key.split(".")
            data[section][name] = value
        cell = RunConfig.model_validate(data)
        wanted = cell.task.corpus
        if kind_by_name(cell.data.corpus) not in (None, wanted):  # corpora are no axis: any that fits will do
            cell = with_value(cell, "data.corpus", names_of(wanted)[0])
        if cell.objective.kind == "span-corruption" and (forms := SPAN_FORMS.get(cell.model.architecture)):
            cell = with_value(cell, "objective.span_form", forms[0])
        if check(cell) is None:
            yield cell
