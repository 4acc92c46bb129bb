"""One table of schemes: every row is complete and true of its class, all have a proof, and there is no second table."""

import ast
import math
from pathlib import Path
from typing import get_args

import pytest
import torch

from engine import capabilities
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.config.schemes import (
    ACTIVATIONS,
    ATTENTIONS,
    NORMS,
    OPTIMIZERS,
    POSITIONS,
    SCHEDULES,
    SCHEMES,
    Scheme,
    describe_scheme,
    learning_rate,
)
from engine.config.sections import OptimizerConfig
from engine.model.heads import SELF_ATTENTION
from engine.model.layers import ACTIVATION_FUNCTIONS, NORM_BUILDERS
from engine.model.positions import BUILDERS, PositionScheme, make_schemes
from engine.model.size import optimizer_state_numbers, parameters, stacks, training_kernel
from engine.model.transformer import build_model
from engine.runs.reader import RunReader
from engine.training.assemble import assemble
from engine.training.optimizer import OPTIMIZER_BUILDERS, state_names
from engine.training.self_check import check_reference, scheduled_rate, small_copy
from tests.engine.model.cells import BASE, VOCAB

ROOT = Path(__file__).parents[3]
ALL = [pytest.param(key, name, id=f"{key}-{name}") for key, schemes in SCHEMES.items() for name in schemes]
NOTHING = {("model.position", "none"), ("model.norm", "none")}
# Where a scheme is computed, by name, and where it is computed a second time; nowhere else may the names be listed.
REGISTRIES = {
    "model.position": BUILDERS,
    "model.attention": SELF_ATTENTION,
    "model.norm": NORM_BUILDERS,
    "model.activation": ACTIVATION_FUNCTIONS,
    "optimizer.kind": OPTIMIZER_BUILDERS,
    "optimizer.schedule": {name: schedule.rate for name, schedule in SCHEDULES.items()},
}
LISTED = {
    "engine/config/schemes.py",
    "engine/model/positions.py",
    "engine/model/heads.py",
    "engine/model/layers.py",
    "engine/training/optimizer.py",
    "engine/model/reference.py",
    "tui_transformer/lab/exports/source.py",  # what the templates of a package compute
}
MOST = 2  # names of one kind in one literal; more is a table


@pytest.mark.parametrize("key", SCHEMES)
def test_the_table_has_what_a_config_takes_and_what_is_computed(key: str) -> None:
    section, name = key.split(".")
    legal = get_args({"model": ModelConfig, "optimizer": OptimizerConfig}[section].model_fields[name].annotation)
    assert legal == tuple(SCHEMES[key]) and set(REGISTRIES[key]) == set(SCHEMES[key])


@pytest.mark.parametrize(("key", "name"), ALL)
def test_every_scheme_has_a_sentence_a_paper_a_formula_a_drawing_and_a_cost(key: str, name: str) -> None:
    scheme: Scheme = SCHEMES[key][name]
    nothing = (key, name) in NOTHING
    assert scheme.sentence and scheme.sentence[-1] not in ".:" and scheme.sentence in describe_scheme(key, name)
    assert bool(scheme.citation) or nothing
    assert not scheme.citation or scheme.citation[-4:].isdigit()
    model = BASE.model
    assert bool(scheme.formula(model if key.startswith("model.") else BASE.optimizer)) == (not nothing)
    if key in ("model.position", "model.attention", "model.norm"):  # drawn, and titled
        assert bool(scheme.title) == (not nothing)
        assert bool(scheme.label) == (not nothing and name != "global")
    if isinstance(scheme, type(ATTENTIONS["global"])):
        assert bool(scheme.visible_title and scheme.visible_formula(model, True)) == scheme.has_scores
        assert scheme.visible_text(model, True) != scheme.visible_text(model, False)
        least = scheme.break_even_context(model)
        assert (least == 0) == (name == "global") and (least is None or least >= 0)
        assert {"auto", "reference"} < set(scheme.backends) | {"chunked"} and training_kernel(model, True, 20)
    if key == "model.norm":
        assert scheme.parameters(model) >= 0 and scheme.saved_tensors >= 1
    if key == "model.activation":
        assert scheme.expansion >= 1 and (scheme.saved_numbers >= 1 or scheme.saves_output)
    if key == "optimizer.kind":
        assert min(scheme.moments(BASE.optimizer)) >= 0


@pytest.mark.parametrize("name", POSITIONS)
def test_what_a_position_says_of_itself_is_what_its_class_does(name: str) -> None:
    position, model = POSITIONS[name], BASE.model.model_copy(update={"position": name})
    scheme = make_schemes(model, 1, 20, causal=True)[0]
    methods = {"embeddings": "embed", "queries and keys": "rotate", "scores": "bias", "content": "content_bias"}
    own, base = type(scheme), PositionScheme
    acts = {where for where, method in methods.items() if getattr(own, method) is not getattr(base, method)}
    assert acts == ({position.acts_on} - {"nothing"})
    assert position.learned == bool(list(scheme.parameters()))
    assert position.bounded == (scheme.longest is not None)
    assert position.scaled == (scheme.scale is None)
    assert bool(position.adds) == (position.acts_on in ("scores", "content"))
    near, far = torch.arange(9)[None], torch.arange(11, 20)[None]
    bias = scheme.bias(near, near)
    assert bias is None or torch.equal(bias, scheme.bias(far, far)) == scheme.bias_by_distance
    stack = stacks(model)[0]
    built = sum(p.numel() for p in make_schemes(model, 1, stack.longest, causal=True)[0].parameters())
    assert position.parameters(model, stack) == built * (1 if scheme.shared else stack.layers)
    assert (position.multiply_adds(model, training_kernel(model, True, 20)) > 0) <= position.learned


@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_attention_without_scores_has_no_bias_and_drops_no_weights(name: str) -> None:
    for position, row in POSITIONS.items():
        model = ModelConfig(attention=name, position=position)
        refusal = capabilities.check(BASE.model_copy(update={"model": model}))
        assert (refusal is None) == (ATTENTIONS[name].has_scores or not row.adds)
        assert (model.attention_dropout > 0.0) == ATTENTIONS[name].has_scores


@pytest.mark.parametrize("change", [*({"activation": n} for n in ACTIVATIONS), *({"norm": n} for n in NORMS)], ids=str)
def test_every_activation_and_norm_equals_its_second_implementation(change: dict) -> None:
    for placement in ("pre", "post", "sandwich"):
        data = BASE.dump()
        data["model"] |= {"norm_placement": placement, **change}
        del data["model"]["final_norm"]
        config = RunConfig.model_validate(data)
        if capabilities.check(config) is not None:
            continue
        result = check_reference(small_copy(config, VOCAB))
        assert result.status == "passed" and result.figures["value"] <= 1e-10
        built = sum(p.numel() for p in build_model(config.model, VOCAB, 1).parameters())
        assert built == sum(parameters(config.model, VOCAB).values())


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_equals_its_second_implementation(name: str) -> None:
    for over in ({"decay_every": 7}, {"decay_over": 60}, {"decay_every": 9, "decay_over": 50}, {"decay_from": 0.3}, {}):
        try:
            config = OptimizerConfig(schedule=name, warmup=10, min_lr=1e-5, **over)
        except ValueError:
            continue
        if any(rule.broken(config) for rule in SCHEDULES[name].rules):
            continue
        rates = [learning_rate(config, step, 100) for step in range(1, 101)]
        assert rates == pytest.approx([scheduled_rate(config, step, 100) for step in range(1, 101)], abs=1e-15)
        assert all(math.isfinite(rate) and config.min_lr <= rate <= config.lr for rate in rates[10:])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_the_steps_of_its_formula(name: str, tiny, tmp_path) -> None:
    config = tiny(f"optimizer.kind={name}", "optimizer.weight_decay=0.1", "train.steps=1")
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu")
    assert ready.trainer.run().state == "finished"
    (verdict,) = (verdict for verdict in RunReader(ready.path).verdicts if verdict.check == "update")
    assert verdict.verdict == "ok", verdict.why
    assert_keeps_what_its_row_says(ready.trainer.stepper.optimizer, ready.trainer.model, config)


def assert_keeps_what_its_row_says(optimizer: torch.optim.Optimizer, model: torch.nn.Module, config: RunConfig) -> None:
    kept, of_matrices, of_others = state_names(optimizer), *OPTIMIZERS[config.optimizer.kind].moments(config.optimizer)
    for name, weight in model.named_parameters():
        moments = [value for key, value in optimizer.state.get(weight, {}).items() if key != "step"]
        matrix = "layers." in name and name.endswith(".weight") and weight.dim() == 2
        assert len(moments) == (of_matrices if matrix else of_others), name
        assert all(moment.shape == weight.shape for moment in moments)
        assert set(optimizer.state.get(weight, {})) == set(kept[weight])
    all_kept = sum(v.numel() for state in optimizer.state.values() for key, v in state.items() if key != "step")
    assert optimizer_state_numbers(config, model.vocab_size) == all_kept


def test_the_documentation_names_every_scheme_with_its_paper() -> None:
    page = (ROOT / "docs/reference/networks.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for key, schemes in SCHEMES.items():
        (row,) = (row for row in rows if row.startswith(f"| `{key}`"))
        for name, scheme in schemes.items():
            assert f"`{name}`" in row and scheme.citation in row, (key, name)


def test_there_is_no_second_table_of_schemes() -> None:
    found = set()
    for path in sorted([*(ROOT / "engine").rglob("*.py"), *(ROOT / "tui_transformer").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
            names = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
            if any(len(names & set(schemes)) > MOST for schemes in SCHEMES.values()):
                found.add(path.relative_to(ROOT).as_posix())
    assert found <= LISTED, found - LISTED
