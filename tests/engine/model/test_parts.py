"""Every part of a network alone, and every two together: the proofs of the grid, generated from the table of parts."""

import itertools
from collections.abc import Iterator

import pytest
import torch

from engine import capabilities
from engine.config.keys import sentence_of
from engine.config.model import PARTS, ModelConfig
from engine.config.schema import RunConfig
from engine.data.objectives import make_objective
from engine.evaluation.checks import leak_probe
from engine.model import size
from engine.model.decoding import Predictor
from engine.model.transformer import build_model
from engine.training.self_check import DROPOUTS, check_cache, check_reference, small_copy
from engine.training.trial import switch_effect
from tests.engine.model.cells import BASE, LENGTH, SOURCE, VOCAB, as_read, draw, logits, network, padded, rows_alone
from tests.engine.model.test_estimates import counted

NONE = {name: 0.0 for name in DROPOUTS if name not in PARTS}
TOKENS, SOURCES = draw(5, LENGTH), draw(6, SOURCE)
# What the parts are put into. Each pair meets one of them; alone, each part meets all.
BASES: tuple[dict[str, object], ...] = (
    {},
    {"position": "rope", "norm": "rms", "activation": "swiglu", "n_kv_heads": 1, "bias": False},
    {"attention": "window", "position": "rope", "norm": "rms"},
    {"attention": "sparse", "position": "t5"},
    {"attention": "linear", "position": "rope"},
    {"position": "xl", "norm_placement": "post"},
    {"layers": ("window rope", "linear none"), "position": "none", "n_layers": 3},
    {"norm": "rms", "norm_placement": "sandwich"},
    {"architecture": "encoder", "position": "learned"},
    {"architecture": "encoder-decoder", "position": "relative", "n_encoder_layers": 1},
    {"position": "rope", "layers": ["window", "global none"]},
)
Change = dict[str, object]
ON: list[Change] = [{name: value} for name, row in PARTS.items() for value in row.on_values]


def config_of(change: Change) -> RunConfig | None:
    """The config of a legal network, or None."""
    data = BASE.dump()
    for derived in ("final_norm", "attention_dropout", "causal"):  # follow what is changed
        data["model"].pop(derived)
    data["model"] |= change
    config = RunConfig.model_validate(data)
    if config.model.architecture == "encoder":
        config = capabilities.with_value(config, "objective.kind", "masked")
    if config.model.architecture == "encoder-decoder":
        config = capabilities.with_value(config, "objective.kind", "copy")
    return config if capabilities.check(config) is None else None


def _cells() -> Iterator[Change]:
    for base, one in itertools.product(BASES, ON):
        yield base | one
    pairs = [one | other for one, other in itertools.combinations(ON, 2) if not one.keys() & other.keys()]
    for turn, pair in enumerate(pairs):
        for base in (*BASES[turn % len(BASES) :], *BASES[: turn % len(BASES)]):  # the first that allows both
            if config_of(base | pair) is not None:
                yield base | pair
                break


CELLS = [change for change in _cells() if config_of(change) is not None]
EVERY = 1 if len(CELLS) < 400 else 24  # CI runs one in so many of the pairs


def _in_ci(turn: int, alone: int) -> bool:
    """Each part alone in every other network, and one in so many of the pairs."""
    return sum(divmod(turn, len(ON))) % 2 == 0 if turn < alone else turn % EVERY == 0


def _marked() -> list[object]:
    alone = len(BASES) * len(ON)
    return [
        pytest.param(
            change,
            id="-".join(f"{name}={value}" for name, value in change.items()),
            marks=() if _in_ci(turn, alone) else (pytest.mark.slow,),
        )
        for turn, change in enumerate(CELLS)
    ]


@pytest.fixture(params=_marked())
def cell(request) -> RunConfig:
    config = config_of(request.param)
    assert config is not None
    return config


@pytest.mark.parametrize("name", PARTS)
def test_every_part_says_what_it_is(name: str) -> None:
    row, off = PARTS[name], ModelConfig.model_fields[name].default
    assert len(name) <= 13  # as wide as Design shows
    assert row.sentence and row.sentence[-1] not in ".:" and row.citation[-4:].isdigit()
    assert row.on_values and off not in row.on_values and off in (0.0, False, "none", 1.0, ())
    for value in row.on_values:
        model = BASE.model.model_copy(update={name: value})
        assert row.formula(model) and row.title and row.label.format(**dict(model))
        assert sentence_of(f"model.{name}", str(value)) or sentence_of(f"model.{name}")
        assert any(base | {name: value} in CELLS for base in BASES), "no base allows it"


def test_every_part_alone_is_in_the_slice_for_ci_in_several_networks() -> None:
    alone = len(BASES) * len(ON)
    found = [change for turn, change in enumerate(CELLS[:alone]) if _in_ci(turn, alone)]
    assert all(sum(one.items() <= change.items() for change in found) >= 2 for one in ON)


def test_every_two_parts_meet() -> None:
    """Or a rule says why they cannot."""
    for (one, two), (row, other) in zip(
        itertools.combinations(PARTS, 2), itertools.combinations(PARTS.values(), 2), strict=True
    ):
        met = any(one in change and two in change for change in CELLS)
        ruled = any(f"model.{two}" in rule.keys for rule in row.rules) or any(
            f"model.{one}" in rule.keys for rule in other.rules
        )
        assert met or ruled, (one, two)


def test_no_leak(cell) -> None:
    objective = make_objective(cell, VOCAB - 1)
    windows = draw(7, objective.window) % (VOCAB - 1)
    verdict = leak_probe(build_model(cell.model, VOCAB, 1), objective, windows, VOCAB - 1, when="before", step=0)
    assert verdict.verdict == "ok" and verdict.value == 0.0


def test_a_cache_and_single_steps_give_the_full_pass(cell) -> None:
    copy = small_copy(cell, VOCAB)
    result = check_cache(cell, copy)
    assert result.status == "passed" and result.figures.get("value", 0.0) <= 1e-10
    model = network(cell)
    with torch.inference_mode():
        whole = as_read(model, TOKENS, SOURCES)
        predictor = Predictor(model, SOURCES)
        predictor.begin(8)
        for t in range(4, LENGTH):
            found = predictor.feed(TOKENS[:, :5] if t == 4 else TOKENS[:, t : t + 1])
            assert (found - whole[t]).abs().max() <= 1e-10


def test_the_second_implementation_agrees(cell) -> None:
    result = check_reference(small_copy(cell, VOCAB))
    assert result.status == "passed" and result.figures["value"] <= 1e-10


def test_every_backend_agrees_in_values_and_gradients(cell) -> None:
    found = []
    for backend in ("auto", "reference", "dense", "sdpa", "banded"):
        config = capabilities.with_value(cell, "model.backend", backend)
        if capabilities.check(config) is not None:
            continue
        model = network(config)
        try:
            out = logits(model, TOKENS, SOURCES)
        except ValueError as error:  # it says why it cannot
            assert "cannot be used here" in str(error) or "no attention backend" in str(error)
            continue
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad for p in model.parameters())])
    assert len(found) >= 2
    for other in found[1:]:
        for fast, slow in zip(found[0], other, strict=True):
            assert (fast - slow).abs().max() <= 1e-9 * max(1.0, float(slow.abs().max()))


@pytest.mark.parametrize("padding", ["left", "right"])
def test_padding_changes_nothing(cell, padding: str) -> None:
    model, lengths = network(cell), [LENGTH, 9]
    tokens, at = padded(TOKENS, lengths, padding)
    source, source_at = padded(SOURCES, [SOURCE, 9], padding)
    out = model(source, tokens, source_at, at) if model.reads_source else model(tokens, at)
    for row, alone in enumerate(rows_alone(model, TOKENS, SOURCES, lengths)):
        assert (out[row][at.index[row] >= 0] - alone).abs().max() <= 1e-10
    out[at.index >= 0].square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_what_is_counted_is_what_is_built(cell) -> None:
    built = build_model(cell.model, VOCAB, 1)
    assert sum(p.numel() for p in built.parameters()) == size.parameter_count(cell.model, VOCAB)
    if not cell.has_source:
        config = capabilities.with_value(cell, "model.backend", "reference")
        config = config.model_copy(update={"model": config.model.model_copy(update={"vocab_size": 50})})
        assert size.training_flops_per_token(config.model, 50, 3) == pytest.approx(counted(config), rel=2e-3)


@pytest.mark.parametrize("change", ON, ids=str)
def test_every_part_has_an_effect(change: Change) -> None:
    for base in BASES:
        before, after = config_of(base), config_of(base | change)
        if before is None or after is None:
            continue
        if change.keys() <= set(DROPOUTS):  # it has none but in training
            text = (SOURCES, TOKENS) if after.has_source else (TOKENS,)
            passes = [build_model(c.model.model_copy(update=NONE), VOCAB, 1)(*text) for c in (before, before, after)]
            assert torch.equal(*passes[:2]) and not torch.equal(*passes[1:])
        else:
            verdicts = switch_effect(after, before, VOCAB)
            assert verdicts and all(v.verdict == "ok" for v in verdicts), (base, verdicts)
