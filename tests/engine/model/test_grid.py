"""Every legal network: no leak, cached = uncached, reference parity, padding changes nothing, counts, an effect."""

import itertools

import pytest
import torch

from engine import capabilities
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS
from engine.config.visibility import Visibility, self_attention
from engine.data.objectives import make_objective
from engine.evaluation.checks import leak_probe
from engine.model.decoding import Predictor, supports_fast_decoding
from engine.model.positions import Positions
from engine.model.size import parameter_count
from engine.model.transformer import NETWORKS, SkipInit, build_model
from engine.training.self_check import check_cache, check_reference, chunked_logits, small_copy
from engine.training.trial import switch_effect
from tests.engine.model.cells import (
    BASE,
    LENGTH,
    PADDINGS,
    SOURCE,
    VOCAB,
    as_read,
    cells,
    draw,
    half_of,
    logits,
    name,
    network,
    padded,
    rows_alone,
    some_of,
)
from tests.legal_cells import AXES, legal_cells

CELLS = cells()
# Attentions × positions: where there are no scores, none of the positions that add something to them.
MIXED = [
    (attention, position)
    for attention, position in itertools.product(ATTENTIONS, POSITIONS)
    if ATTENTIONS[attention].has_scores or not POSITIONS[position].adds
]
TOKENS, SOURCES = draw(5, LENGTH), draw(6, SOURCE)


def fast_and_slow() -> list[object]:
    """A slice of the grid for CI, the rest of it among the proofs."""
    fast = {id(cell) for cell in half_of(some_of(CELLS))}
    marks = {True: (pytest.mark.one_in(3),), False: (pytest.mark.slow,)}  # other cells in each proof
    return [pytest.param(cell, id=name(cell), marks=marks[id(cell) in fast]) for cell in CELLS]


@pytest.fixture(params=fast_and_slow())
def cell(request) -> RunConfig:
    return request.param


def test_the_grid_is_as_large_as_it_should_be() -> None:
    norms = sum(1 if name == "none" else 3 for name in NORMS)  # a norm and its place
    stacks = 4  # decoder, encoder causal or not, encoder-decoder
    print(f"{len(CELLS)} networks, {len(CELLS) * len(PADDINGS)} with padding")
    assert len(CELLS) == stacks * len(MIXED) * norms
    assert len(some_of(CELLS)) == stacks * len(MIXED)
    assert len(CELLS) >= 784 and len(MIXED) >= 3 * 8 + 4  # three attentions with all positions, linear with four
    assert len({(cell.model.norm, cell.model.norm_placement) for cell in some_of(CELLS)}) == norms


def test_the_probe_tells_who_sees_ahead(cell) -> None:
    objective = make_objective(cell, VOCAB - 1)  # the last token is the start token of a copy
    windows = draw(7, objective.window) % (VOCAB - 1)
    verdict = leak_probe(build_model(cell.model, VOCAB, 1), objective, windows, VOCAB - 1, when="before", step=0)
    if cell.task.copy_leak(cell) is None:
        assert verdict.verdict == "ok" and verdict.value == 0.0
    else:
        assert verdict.verdict == "LEAK" and verdict.value > 0.0


DOCUMENTS = [
    cell
    for cell in legal_cells(
        BASE, AXES | {"objective.kind": ("span-corruption", "question-answer"), "model.norm": ("layer",)}
    )
    if cell.model.norm_placement == "pre"
]


def _quick(cell: RunConfig) -> bool:
    return cell.model.position == "learned" or (cell.model.position == "rope" and cell.model.attention == "window")


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(cell, id=f"{cell.objective.kind}-{name(cell)}", marks=() if _quick(cell) else (pytest.mark.slow,))
        for cell in DOCUMENTS
    ],
)
def test_the_probe_follows_a_text_that_is_rearranged(documents) -> None:
    """No leak in any network that masked documents and questions are for, and one where an answer is seen."""
    objective = make_objective(documents, VOCAB)
    windows = draw(7, objective.window)
    needed = documents.min_vocab_size(VOCAB)

    def verdict(model: torch.nn.Module) -> str:
        return leak_probe(model, objective, windows, VOCAB, when="before", step=0).verdict

    clean = build_model(documents.model, needed, 1)
    assert verdict(clean) == "ok"
    if ATTENTIONS[documents.model.attention].has_scores:
        seeing = build_model(documents.model.model_copy(update={"backend": "reference"}), needed, 1)
        for layer in seeing.stacks[-1].layers:
            layer.attention.visibility = Visibility(causal=False)
        assert verdict(seeing) == "LEAK"


def test_the_documents_grid_has_every_network() -> None:
    assert len(DOCUMENTS) == 2 * 2 * len(MIXED)  # objectives, decoder or encoder-decoder, attention and position


def test_cached_logits_equal_full_logits(cell) -> None:
    result = check_cache(cell, small_copy(cell, VOCAB))
    assert result.status == "passed" and result.figures.get("value", 0.0) <= 1e-10


def test_predictions_equal_those_of_a_second_implementation(cell) -> None:
    result = check_reference(small_copy(cell, VOCAB))
    assert result.status == "passed" and result.figures["value"] <= 1e-10


def test_a_cache_whose_rows_are_reordered_follows_the_rows(cell) -> None:
    model, rows = network(cell), torch.tensor([1, 0])
    with torch.no_grad():
        cache = model.new_cache(0, SOURCES)
        model.decode(TOKENS[:, :7], cache)
        cache.select(rows)
        after = model.decode(TOKENS[rows][:, 7:9], cache)
        assert torch.allclose(after, logits(model, TOKENS[rows, :9], SOURCES[rows])[:, 7:9], atol=1e-10)


@pytest.mark.parametrize("change", [{}, {"n_kv_heads": 1, "embedding_scale": True, "activation": "swiglu"}])
def test_steps_of_one_token_are_the_full_pass(cell, change: dict) -> None:
    """As sampling takes them: after a prefill, with more tokens than there was room for, and rows reordered."""
    cell = cell.model_copy(update={"model": cell.model.model_copy(update=change)})
    model = network(cell)
    rows = torch.tensor([1, 0])
    with torch.inference_mode():
        whole = as_read(model, TOKENS, SOURCES)
        predictor = Predictor(model, SOURCES)
        predictor.begin(8)
        for t in range(4, LENGTH):
            found = predictor.feed(TOKENS[:, :5] if t == 4 else TOKENS[:, t : t + 1])
            assert (found - whole[t]).abs().max() <= 1e-10
        assert predictor.cache.length == LENGTH
        predictor.begin(LENGTH)
        predictor.feed(TOKENS[:, :5])
        predictor.feed(TOKENS[:, 5:6])
        predictor.cache.select(rows)
        assert (predictor.feed(TOKENS[rows, 6:7]) - whole[6][rows]).abs().max() <= 1e-10
    scheme = model.stacks[-1].layers[0].attention.scheme
    bound = cell.model.attention in ("global", "window") and POSITIONS[cell.model.position].acts_on != "content"
    bound = bound and scheme.bias_by_distance
    assert supports_fast_decoding(model) == (bound and cell.model.architecture == "decoder")


@pytest.mark.parametrize(("backend", "attention"), [("dense", "global"), ("banded", "window")])
def test_a_backend_of_whole_texts_decodes_too(backend: str, attention: str) -> None:
    config = RunConfig.model_validate({"model": {"backend": backend, "attention": attention, "dropout": 0.0}})
    model = build_model(config.model, 20, 1).eval()
    predictor = Predictor(model)
    predictor.begin(8)
    whole = logits(model, TOKENS[:, :6] % 20, SOURCES)
    predictor.feed(TOKENS[:, :5] % 20)
    assert (predictor.feed(TOKENS[:, 5:6] % 20) - whole[:, -1]).abs().max() <= 1e-4


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("packs", [True, False])
def test_steps_of_several_rows_in_fp32_are_the_full_pass(rows: int, packs: bool, monkeypatch) -> None:
    """With weights packed for oneDNN where torch can; rows may become more, as a beam's do."""
    monkeypatch.setattr("engine.model.decoding.CAN_PACK", packs)
    config = RunConfig.model_validate({"model": {"dropout": 0.0, "bias": rows != 2}})
    model = build_model(config.model, 20, 1).eval()
    texts = TOKENS[torch.arange(rows) % len(TOKENS)] % 20
    predictor = Predictor(model)
    predictor.begin(8)
    predictor.feed(texts[:, :4])
    assert (predictor.feed(texts[:, 4:5]) - logits(model, texts[:, :5], SOURCES)[:, -1]).abs().max() <= 1e-5
    wider = torch.arange(3 * rows) % rows
    predictor.cache.select(wider)
    whole = logits(model, texts[wider, :6], SOURCES)[:, -1]
    assert (predictor.feed(texts[wider, 5:6]) - whole).abs().max() <= 1e-5


def test_the_fast_backend_equals_the_reference(cell) -> None:
    """Predictions, and the gradient of every parameter."""
    wanted = ["auto", "reference"] + (["banded"] if self_attention(cell.model).reach(1) is not None else [])
    fused = "sdpa" in ATTENTIONS[cell.model.attention].backends and POSITIONS[cell.model.position].acts_on != "content"
    wanted += ["dense"] if fused else []
    found = []
    for backend in wanted:
        model = network(capabilities.with_value(cell, "model.backend", backend))
        out = logits(model, TOKENS, SOURCES)
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad for p in model.parameters())])
    for other in found[1:]:
        for fast, slow in zip(found[0], other, strict=True):
            assert (fast - slow).abs().max() <= 1e-9 * max(1.0, float(slow.abs().max()))


@pytest.mark.parametrize("padding", PADDINGS[1:])
def test_padding_changes_nothing(cell, padding: str) -> None:
    """A padded row's logits are the row's own, its gradients are finite, and no gradient comes from padding."""
    model, lengths = network(cell), [LENGTH, 9]
    tokens, at = padded(TOKENS, lengths, padding)
    source, source_at = padded(SOURCES, [SOURCE, 9], padding)
    over_source = model.reads_source
    out = model(source, tokens, source_at, at) if over_source else model(tokens, at)
    expected = list(rows_alone(model, TOKENS, SOURCES, lengths))
    for row, alone in enumerate(expected):
        assert (out[row][at.index[row] >= 0] - alone).abs().max() <= 1e-10
    out[at.index >= 0].square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("padding", PADDINGS[1:])
def test_padded_rows_decode_with_a_cache_as_they_would_alone(cell, padding: str) -> None:
    model, lengths = network(cell), [LENGTH, 9]
    if model.reads_source or not model.has_cache:
        return
    tokens, at = padded(TOKENS, lengths, padding)
    cache, parts = model.new_cache(), []
    with torch.no_grad():
        for start, stop in ((0, 11), (11, 12), (12, LENGTH)):
            parts.append(model(tokens[:, start:stop], Positions(at.index[:, start:stop]), cache))
        out = torch.cat(parts, dim=1)
        for row, alone in enumerate(rows_alone(model, TOKENS, SOURCES, lengths)):
            assert (out[row][at.index[row] >= 0] - alone).abs().max() <= 1e-10


def test_rows_of_a_padded_source_are_reordered_with_it(cell) -> None:
    """As beam search does, here with more rows after than before."""
    model, rows = network(cell), torch.tensor([1, 0, 1])
    if not model.reads_source:
        return
    source, source_at = padded(SOURCES, [SOURCE, 9], "right")
    with torch.no_grad():
        cache = model.new_cache(0, source, source_at)
        model.decode(TOKENS[:, :7], cache)
        cache.select(rows)
        after = model.decode(TOKENS[rows][:, 7:9], cache)
        whole = model(source[rows], TOKENS[rows], Positions(source_at.index[rows], one_sided_padding=True))
        assert (after - whole[:, 7:9]).abs().max() <= 1e-10


def test_size_counts_what_is_built(cell) -> None:
    changes = [{}, {"tie_embeddings": True}, {"head_bias": True, "bias": False}, {"n_kv_heads": 1}]
    changes += [{"activation": "swiglu"}, {"n_encoder_layers": 1}, {"final_norm": not cell.model.final_norm}]
    for change in changes:
        model = cell.model.model_copy(update=change)
        with torch.device("meta"), SkipInit():  # shapes are enough
            built = NETWORKS[model.architecture](model, VOCAB)
        assert sum(p.numel() for p in built.parameters()) == parameter_count(model, VOCAB)


SWITCHES = {
    "activation": "relu",
    "embedding_scale": True,
    "n_heads": 1,
    "n_kv_heads": 1,
    "n_layers": 1,
    "init": "xavier",
    "bias": False,
    "residual": False,
}


def test_every_switch_changes_the_function_or_the_parameters(cell) -> None:
    for key, value in SWITCHES.items():
        changed = capabilities.with_value(cell, f"model.{key}", value)
        verdicts = switch_effect(changed, cell, VOCAB)
        assert verdicts and all(v.verdict == "ok" for v in verdicts), verdicts


@pytest.mark.parametrize("share", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_cells_differ_from_each_other(share: str) -> None:
    """No two networks of one kind are the same function with the same number of parameters.

    Some: every position with every attention, and one of each with every norm in every place.
    """
    chosen = {id(cell) for cell in some_of(CELLS)}
    chosen |= {id(cell) for cell in CELLS if (cell.model.position, cell.model.attention) == ("rope", "global")}
    chosen |= {id(cell) for cell in CELLS if (cell.model.position, cell.model.attention) == ("none", "linear")}
    seen: dict[tuple, dict[str, torch.Tensor]] = {}
    for cell in CELLS:
        if share == "some" and id(cell) not in chosen:
            continue
        model = network(cell)
        with torch.no_grad():
            out = logits(model, TOKENS, SOURCES)
        key = (cell.model.architecture, sum(p.numel() for p in model.parameters()))
        for other, values in seen.setdefault(key, {}).items():
            same = {other.replace("encoder-causal", "decoder"), name(cell).replace("encoder-causal", "decoder")}
            assert len(same) == 1 or (out - values).abs().max() > 1e-7, (other, name(cell))
        seen[key][name(cell)] = out


OPTIONS = [
    {"position": "rope", "rope_pairing": "adjacent"},
    {"position": "rope", "rope_base": 100.0},
    {"position": "relative", "relative_max_distance": 2},
    {"position": "t5", "t5_buckets": 16},
    {"position": "t5", "t5_max_distance": 9},
    {"attention": "window", "window": 4},
    {"attention": "sparse", "window": 3},
    {"attention": "sparse", "link_every": 3},
    {"norm": "rms", "norm_eps": 0.01},
    {"activation": "gelu-tanh"},
    {"activation": "swiglu"},
    {"norm_eps": 0.01},
    {"init_std": 0.1},
    {"final_norm": False},
    {"position": "learned", "position_init": "zero"},
]


@pytest.mark.parametrize("change", OPTIONS, ids=lambda c: "-".join(str(v) for v in c.values()))
def test_every_option_of_a_choice_has_an_effect(change) -> None:
    *choice, (key, value) = change.items()
    before = BASE
    for name_, chosen in choice:
        before = capabilities.with_value(before, f"model.{name_}", chosen)
    after = capabilities.with_value(before, f"model.{key}", value)
    assert [v.verdict for v in switch_effect(after, before, VOCAB)] == ["ok"]


def test_chunks_may_be_of_any_length() -> None:
    model = build_model(BASE.model, VOCAB, 1).double().eval()
    with torch.no_grad():
        assert (chunked_logits(model, TOKENS, [5, 1, 9, 5]) - model(TOKENS)).abs().max() <= 1e-10
