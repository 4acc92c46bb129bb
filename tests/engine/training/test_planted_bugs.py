"""Every bug planted in the code is caught by a named check, in `check` and in a run, and no check fails without it.

Each is planted alone, by replacing a function. A leak refuses to start; what else is wrong is a badge of the run.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.config import presets
from engine.config.keys import parse_override
from engine.config.schema import RunConfig
from engine.config.visibility import Visibility
from engine.data import loader, objectives, rows
from engine.evaluation import metrics
from engine.model import attention, decoding, dropout, heads, initialisation, layers, positions, transformer
from engine.model.cache import Cache, KeyValueCache
from engine.ranks import Ranks
from engine.runs.control import Leaking
from engine.runs.reader import RunReader
from engine.tasks import classification, text
from engine.training import assemble, checkpoint, inspector, optimizer, self_check, step, trainer
from tests.engine.training.test_resume import StopAt, miniature, outcome
from tests.run_checks import minimal_leak_probe
from tui_transformer.__main__ import main

pytestmark = pytest.mark.usefixtures("cached_corpora")

Plant = Callable[[pytest.MonkeyPatch], None]

SMALL = (  # a context that caches grow in more than once
    *("model.d_model=16", "model.n_heads=2", "model.context_length=160", "evaluation.stride=80", "evaluation.every=0"),
    *("train.batch_size=8", "train.steps=2", "train.threads=1", "data.corpus_size=20000", "optimizer.warmup=1"),
    *("evaluation.sample_every=0", "evaluation.sample_length=4", "evaluation.probes=false", "optimizer.min_lr=1e-5"),
)
TRANSLATING = (
    *("model.d_model=32", "model.d_ff=64", "train.threads=1", "train.steps=2", "train.batch_tokens=256"),
    *("data.corpus_size=600", "data.bpe_size=400", "evaluation.every=0", "evaluation.sample_every=0"),
    *("evaluation.translations=4", "optimizer.warmup=1"),
)
CLASSIFYING = ("train.threads=1", "train.steps=2", "data.corpus_size=600", "evaluation.every=0", "optimizer.warmup=1")
SETTINGS_OF = {"demo": SMALL, "bulletins": CLASSIFYING}  # else TRANSLATING
DROPPING = tuple(f"model.{name}=0.2" for name in self_check.DROPOUTS)
WINDOW = ("model.attention=window", "model.window=16")


@cache
def configured(preset: str, changes: tuple[str, ...]) -> RunConfig:
    wanted = SETTINGS_OF.get(preset, TRANSLATING) + changes
    return presets.resolve(presets.find(preset), overrides=[parse_override(change) for change in wanted])


def _seeing(when: Callable[[nn.Module, torch.Tensor], bool]) -> Plant:
    """Attention that sees everything where `when(module, queries)`."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = heads.SoftmaxSelfAttention.attend

        def mix(self, q, k, v, at, state):
            causal = self.visibility
            self.visibility = Visibility(causal=False) if when(self, q) else causal
            try:
                return real(self, q, k, v, at, state)
            finally:
                self.visibility = causal

        patch.setattr(heads.SoftmaxSelfAttention, "attend", mix)

    return plant


def _mask_also(extra: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Plant:
    """A mask that also lets through `extra(queries, keys)`, in the first head."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = attention.AttentionCall.visible

        def visible(self):
            seen = real(self).expand(-1, self.q.shape[1], -1, -1).clone()
            more = extra(self.q_at.index[:, :, None], self.k_at.index[:, None, :])
            seen[:, 0] |= more & (self.q_at.index[:, :, None] >= 0) & (self.k_at.index[:, None, :] >= 0)
            return seen

        patch.setattr(attention.AttentionCall, "visible", visible)

    return plant


def _sink_of_the_whole_text(patch: pytest.MonkeyPatch) -> None:
    real = heads.SoftmaxSelfAttention._call

    def call(self, q, k, *rest):
        made = real(self, q, k, *rest)
        leaky = copy(made.softmax)
        leaky._parameters = {}
        leaky.sinks = made.softmax.sinks + k.mean((0, 2, 3))
        return replace(made, softmax=leaky)

    patch.setattr(heads.SoftmaxSelfAttention, "_call", call)


def _sink_keeps_its_share(patch: pytest.MonkeyPatch) -> None:
    real = attention.Softmax.weights

    def given_back(self, scores):
        found = real(self, scores)
        return found / found.sum(-1, keepdim=True)

    patch.setattr(attention.Softmax, "weights", given_back)


def _cap_after_the_mask(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention.Softmax, "cap_scores", lambda self, scores: scores)
    patch.setattr(attention.Softmax, "weights", lambda self, scores: (2.0 * torch.tanh(scores / 2.0)).softmax(-1))


def _layers_in_turn(patch: pytest.MonkeyPatch) -> None:
    real = layers.Layer.__init__

    def made(self, *arguments, **settings):
        real(self, *arguments, **settings)
        self.parallel = False

    patch.setattr(layers.Layer, "__init__", made)


def _embedding_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layers.EmbeddingMix, "forward", lambda self, x, embedded: self.weight.sum() * x)


def _gain_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layers.LayerScale, "forward", lambda self, x: x)


def _rows_dropped_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dropout.RowDropout, "forward", lambda self, x: x * dropout.dropout(x.new_ones(len(x), 1, 1), self.p))


def _no_row_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dropout.RowDropout, "forward", lambda self, x: x)


def _gate_always_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(heads.SelfAttention, "apply_gate", lambda self, mixed, x: mixed)


def _first_values_ignored(patch: pytest.MonkeyPatch) -> None:
    real = heads.SelfAttention.mix_first_values
    patch.setattr(
        heads.SelfAttention,
        "mix_first_values",
        lambda self, v, shared: real(self, v, {"values": v} if shared else shared),
    )


def _tokens_before_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = layers.ShortConvolution.forward
    patch.setattr(layers.ShortConvolution, "forward", lambda self, x, at, state: real(self, x, at, None))


def _convolution_of_the_whole_text(patch: pytest.MonkeyPatch) -> None:
    real = layers.ShortConvolution.forward
    patch.setattr(
        layers.ShortConvolution, "forward", lambda self, x, at, state: real(self, x.flip(1), at, state).flip(1)
    )


def _key_norm_ignored(patch: pytest.MonkeyPatch) -> None:
    real = heads.SelfAttention.__init__

    def init(self, model, *rest, **more):
        real(self, model, *rest, **more)
        self.key_norm = nn.Identity()

    patch.setattr(heads.SelfAttention, "__init__", init)


def _finite_mask(patch: pytest.MonkeyPatch) -> None:
    def soft(call):
        return (call.q @ call.k.transpose(-2, -1) * call.scale).masked_fill(~call.visible(), -10.0).softmax(-1)

    patch.setattr(attention, "attention_weights", soft)


def _shifted_target(patch: pytest.MonkeyPatch) -> None:
    def current(self, windows, generator):
        return objectives.Batch(windows[:, :-1], windows[:, :-1], windows[:, 1:].numel())

    patch.setattr(text.NextTokenObjective, "batch", current)


def _norm_over(dim: int) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def forward(self, x):
            apart = x - x.mean(dim, keepdim=True)
            return apart / (apart.square().mean(dim, keepdim=True) + self.eps).sqrt()

        patch.setattr(nn.LayerNorm, "forward", forward)

    return plant


def _rope_on_queries_in_the_layer(patch: pytest.MonkeyPatch) -> None:
    def mix(self, q, k, v, at, state):
        q, k_at = self.scheme.rotate(q, at.index), at
        if state is not None:
            k, v, k_at = state.extend(k, v, at)
        call = attention.AttentionCall(q, k, at, k_at, self.visibility, self.scheme)
        return attention.softmax_attention(call, v, self.backend)

    patch.setattr(heads.SoftmaxSelfAttention, "attend", mix)


def _rope_on_queries_in_the_scheme(patch: pytest.MonkeyPatch) -> None:
    real, calls = positions.Rope.rotate, []

    def rotate(self, x, pos):
        if pos.shape[-1] == 1:
            return real(self, x, pos)  # a decoding step turns queries and keys in one call
        calls.append(x)
        return real(self, x, pos) if len(calls) % 2 else x

    patch.setattr(positions.Rope, "rotate", rotate)


def _window_one_wider(patch: pytest.MonkeyPatch) -> None:
    real = Visibility.__call__

    def wider(self, q, k):
        reach = self.window
        return real(self, q, k) if reach is None else (q >= 0) & (k >= 0) & (k <= q) & (q - k <= reach)

    patch.setattr(Visibility, "__call__", wider)


def _tying_broken(patch: pytest.MonkeyPatch) -> None:
    def untied(*arguments):
        network = transformer.build_model(*arguments)
        network.head.weight = nn.Parameter(network.head.weight.detach().clone())
        return network

    patch.setattr(assemble, "build_model", untied)


def _residual_dropped(patch: pytest.MonkeyPatch) -> None:
    def around(self, x, branch):
        return branch.sublayer(branch.norm(x)) if self.pre_norm else branch.norm(branch.sublayer(x))

    patch.setattr(layers.Layer, "add_residual", around)


def _last_layer_dead(patch: pytest.MonkeyPatch) -> None:
    real = transformer.Stack.run_layers

    def run(self, *arguments):
        all_layers = self.layers
        self.layers = all_layers[:-1]
        try:
            return real(self, *arguments)
        finally:
            self.layers = all_layers

    patch.setattr(transformer.Stack, "run_layers", run)


def _steps_at(place: Callable[[int], int]) -> Plant:
    """Decoding steps with a wrong position."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def take(self, tokens):
            at = self._cache.length
            if at >= self._capacity - 1:
                self._tables(2 * at)
            self._cache.length = place(at)
            logits = real(self, tokens)
            self._cache.length = at + 1
            return logits

        real = decoding._FastDecoder.step
        patch.setattr(decoding._FastDecoder, "step", take)

    return plant


def _chunks_one_ahead_from(place: int) -> Plant:
    """Decoding of several tokens at once with positions that are one too large from a place on."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = positions.Positions.consecutive.__func__

        def consecutive(cls, length, start=0, device=None):
            return real(cls, length, start + (start >= place), device)

        patch.setattr(positions.Positions, "consecutive", classmethod(consecutive))

    return plant


def _beams_not_reordered(patch: pytest.MonkeyPatch) -> None:
    real = Cache.select

    def select(self, rows, *, same_sources=False):
        real(self, torch.arange(len(rows)) if rows.any() and rows.max() == len(rows) - 1 else rows)

    patch.setattr(Cache, "select", select)


def _padding_votes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(classification.PooledBatch, "target_logits", lambda self, logits: logits.mean(1, keepdim=True))


def _padding_is_seen(patch: pytest.MonkeyPatch) -> None:
    real = Visibility.__call__
    patch.setattr(
        Visibility, "__call__", lambda self, q, k: real(self, q, k) | ((not self.causal) & (q >= 0) & (k < 0))
    )


def _cache_forgets_as_it_grows(patch: pytest.MonkeyPatch) -> None:
    real = KeyValueCache._buffer_for

    def room_for(self, *arguments):
        before = self._buffer
        buffer = real(self, *arguments)
        if before is not None and buffer is not before:
            buffer.zero_()
        return buffer

    patch.setattr(KeyValueCache, "_buffer_for", room_for)


def _heads_ignored(patch: pytest.MonkeyPatch) -> None:
    real = heads.SelfAttention.__init__

    def init(self, model, *rest):
        real(self, model, *rest)
        if model.position != "rope":  # which would turn heads of another width
            self.n_heads, self.head_width = 1, model.d_model

    patch.setattr(heads.SelfAttention, "__init__", init)


def _no_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(positions.PositionScheme, "scale", 1.0)


def _alibi_upside_down(patch: pytest.MonkeyPatch) -> None:
    real = positions.Alibi.bias
    patch.setattr(positions.Alibi, "bias", lambda self, q, k: -real(self, q, k))


def _dropout_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dropout.Dropout, "forward", lambda self, x: x)


def _attention_dropout_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "dropout", lambda x, p: x)


def _dropout_always(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dropout.Dropout, "forward", lambda self, x: dropout.dropout(x, self.p))


def _scoring_in_training_mode(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(metrics, "evaluating", lambda model: torch.inference_mode())


def _source_ignored(patch: pytest.MonkeyPatch) -> None:
    real = heads.CrossAttention.forward

    def forward(self, x, at, source, source_at):
        return real(self, x, at, tuple(torch.zeros_like(part) for part in source), source_at)

    patch.setattr(heads.CrossAttention, "forward", forward)


def _source_ignored_by_the_last_layer(patch: pytest.MonkeyPatch) -> None:
    real = transformer.Stack.keys_and_values

    def keys_and_values(self, hidden):
        *first, (k, v) = real(self, hidden)
        return [*first, (torch.zeros_like(k), torch.zeros_like(v))]

    patch.setattr(transformer.Stack, "keys_and_values", keys_and_values)


def _smoothing_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step.Stepper, "_smoothed_loss", lambda self, total, log_p, targets: total)


def _z_loss_ignored(patch: pytest.MonkeyPatch) -> None:
    real = step.Stepper._nll_and_training_loss

    def losses(self, piece):
        total, _ = real(self, piece)
        return total, total

    patch.setattr(step.Stepper, "_nll_and_training_loss", losses)


def _z_loss_of_padding(patch: pytest.MonkeyPatch) -> None:
    real = step.Stepper._nll_and_training_loss

    def losses(self, piece):
        total, _ = real(self, piece)
        log_z = self._forward(*piece.inputs).logsumexp(-1)
        return total, total + self._z_loss * log_z.square().sum()

    patch.setattr(step.Stepper, "_nll_and_training_loss", losses)


def _micro_batches_apart(patch: pytest.MonkeyPatch) -> None:
    def gradients(self, number, pieces, between):
        self.optimizer.zero_grad(set_to_none=True)
        batches = [self.batches.batch(number, micro) for micro in range(self.config.train.accumulation)]
        totals = []
        for batch in batches:
            logits = self._forward(*batch.inputs).float().flatten(0, 1)
            loss = nn.functional.cross_entropy(logits, batch.targets.flatten(), ignore_index=objectives.IGNORED)
            torch.autograd.backward(loss / len(batches))
            totals.append(loss.detach() * batch.n_targets)
        return totals, sum(batch.n_targets for batch in batches)

    patch.setattr(step.Stepper, "_accumulate_gradients", gradients)


def _the_same_on_both_ranks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ranks, "own_micro_batch_range", lambda self, shards: self.block(0, shards))


def _live_weights_for_the_average(patch: pytest.MonkeyPatch) -> None:
    real = checkpoint._load_and_save_averaged

    def put_and_write(run, name, step, model, weights, common):
        real(run, name, step, model, checkpoint.weights_of(model), common)

    patch.setattr(checkpoint, "_load_and_save_averaged", put_and_write)


def _average_upside_down(patch: pytest.MonkeyPatch) -> None:
    real = step.Stepper.__init__

    def init(self, *arguments, **settings):
        real(self, *arguments, **settings)
        self._ema = 1.0 - self._ema

    patch.setattr(step.Stepper, "__init__", init)


def _gains_decay(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(optimizer.DECAYED, "matrices", optimizer.DECAYED["all"])


def _starts(change: Callable[[torch.Tensor], torch.Tensor]) -> Plant:
    """Windows of a text that start elsewhere."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = loader.TextBatches.starts
        patch.setattr(loader.TextBatches, "starts", lambda self, *at: change(real(self, *at)))

    return plant


def _repeated(module) -> Plant:
    """Seeds of batches that ignore the step and the epoch."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = module.seed_for

        def seed_for(seed, *rest):
            return real(seed, *(part if isinstance(part, str) else 0 for part in rest))

        patch.setattr(module, "seed_for", seed_for)

    return plant


def _clipping_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nn.utils, "clip_grad_norm_", lambda weights, most: nn.utils.get_total_norm(w.grad for w in weights))


def _clipped_after_the_step(patch: pytest.MonkeyPatch) -> None:
    real, clip = step.Stepper._update, nn.utils.clip_grad_norm_

    def update(self: step.Stepper, *given: object) -> torch.Tensor:
        with pytest.MonkeyPatch.context() as inner:
            _clipping_ignored(inner)
            norm = real(self, *given)
        clip(self._parameters, self.config.train.clip)
        return norm

    patch.setattr(step.Stepper, "_update", update)


def _momentum_normalised_in_place(patch: pytest.MonkeyPatch) -> None:
    real = optimizer.Muon.update

    def update(self: optimizer.Muon, group: dict) -> None:
        real(self, group)
        for weight in group["params"] if "rows" in group else ():
            moment = self.state[weight]["momentum_buffer"]
            moment.div_(moment.norm() + 1e-7)

    patch.setattr(optimizer.Muon, "update", update)


def _decay_ignored(patch: pytest.MonkeyPatch) -> None:
    real = step.make_optimizer
    without = {"weight_decay": 0.0}
    patch.setattr(step, "make_optimizer", lambda model, config: real(model, config.model_copy(update=without)))


def _own_rate_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(optimizer, "_group_lr", lambda config, at: None)


def _orthogonalised_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(optimizer, "fused_rows", lambda model, name: [])


def _schedule_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(step, "learning_rate", lambda config, number, steps: config.lr)


def _seed_ignored_by(*modules) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in modules:
            patch.setattr(module, "seed_for", lambda seed, *rest, real=module.seed_for: real(1, *rest))

    return plant


@dataclass(frozen=True)
class Bug:
    """The bug, the settings it needs, and the checks that must fail."""

    plant: Plant
    checks: set[str]
    changes: tuple[str, ...] = ()
    preset: str = "demo"


STRIDE = ("data.window_stride=40", "train.steps=150")
WRITTEN_OUT = ("model.backend=reference",)
LEAK = {"leak"}
BUGS = {
    "mask off by one in one head from token 100 on": Bug(
        _mask_also(lambda q, k: (q >= 100) & (k == q + 1)), LEAK, WRITTEN_OUT
    ),
    "the same at the single place 137": Bug(_mask_also(lambda q, k: (q == 137) & (k == 138)), LEAK, WRITTEN_OUT),
    "mask leak in evaluation mode": Bug(_seeing(lambda part, q: not part.training), LEAK),
    "mask leak in training mode, with dropout": Bug(_seeing(lambda part, q: part.training), LEAK, DROPPING),
    "mask leak in training mode, without dropout": Bug(_seeing(lambda part, q: part.training), LEAK),
    "mask leak in inference mode": Bug(_seeing(lambda part, q: torch.is_inference_mode_enabled()), LEAK),
    "mask leak in batches of 16 rows and more": Bug(_seeing(lambda part, q: q.shape[0] >= 16), LEAK),
    "mask leak in batches above 16 rows": Bug(_seeing(lambda part, q: q.shape[0] > 16), LEAK, ("train.batch_size=12",)),
    "target is the current token": Bug(_shifted_target, LEAK),
    "layer norm over time": Bug(_norm_over(1), LEAK),
    "layer norm over the batch": Bug(_norm_over(0), LEAK),
    "a sink of the whole text": Bug(_sink_of_the_whole_text, LEAK, ("model.sinks=true",)),
    "a sink without its share": Bug(_sink_keeps_its_share, {"reference", "cache parity"}, ("model.sinks=true",)),
    "a cap after the mask": Bug(_cap_after_the_mask, LEAK, ("model.score_cap=2.0",)),
    "mask leak in training mode, past layers that begin as the identity": Bug(
        _seeing(lambda part, q: part.training), LEAK, ("model.zero_init=outputs-and-head",)
    ),
    "mask leak in training mode, past layers that begin close to it": Bug(
        _seeing(lambda part, q: part.training), LEAK, ("model.layer_scale=1e-5",)
    ),
    "parallel layers in turn": Bug(_layers_in_turn, {"reference"}, ("model.parallel=true",)),
    "the embedding forgotten": Bug(_embedding_forgotten, {"reference"}, ("model.embedding_mix=true",)),
    "a layer's scale ignored": Bug(_gain_ignored, {"parameters", "reference"}, ("model.layer_scale=0.1",)),
    "rows dropped in evaluation": Bug(_rows_dropped_always, {"dropout"}, ("model.layer_drop=0.2",)),
    "no row dropped": Bug(_no_row_dropped, {"dropout"}, ("model.layer_drop=0.2",)),
    "a gate that is always open": Bug(_gate_always_open, {"reference", "parameters"}, ("model.gate=head",)),
    "values mixed with themselves": Bug(_first_values_ignored, {"reference"}, ("model.value_mix=true",)),
    "a cache that forgets the tokens before": Bug(
        _tokens_before_forgotten, {"cache parity", "sampling"}, ("model.conv=4",)
    ),
    "a convolution that looks ahead": Bug(_convolution_of_the_whole_text, LEAK, ("model.conv=4",)),
    "keys without their norm": Bug(_key_norm_ignored, {"parameters", "reference"}, ("model.qk_norm=before",)),
    "finite mask": Bug(_finite_mask, LEAK, WRITTEN_OUT),
    "rotary positions on queries only, in the layer": Bug(
        _rope_on_queries_in_the_layer, {"reference", "cache parity", "sampling"}
    ),
    "rotary positions on queries only, in the scheme": Bug(
        _rope_on_queries_in_the_scheme, {"reference", "cache parity", "sampling"}
    ),
    "window one wider in the mask": Bug(_window_one_wider, {"reference", "cache parity", "sampling"}, WINDOW),
    "weight tying broken": Bug(_tying_broken, {"parameters"}, ("model.tie_embeddings=true",)),
    "residual dropped in the code": Bug(_residual_dropped, {"reference"}),
    "last layer dead": Bug(_last_layer_dead, {"parameters", "reference", "cache parity", "sampling"}),
    "decoding one position ahead": Bug(_steps_at(lambda at: at + 1), {"cache parity", "sampling"}),
    "decoding stuck at position 100": Bug(_steps_at(lambda at: min(at, 100)), {"cache parity", "sampling"}),
    "decoding one position ahead from token 1,060 on": Bug(
        _steps_at(lambda at: at + (at >= 1060)), {"cache parity"}, ("model.context_length=1200",)
    ),
    "the same of several tokens at once": Bug(
        _chunks_one_ahead_from(1060), {"cache parity"}, ("model.context_length=1200",)
    ),
    "beam search does not reorder its cache": Bug(_beams_not_reordered, {"beams"}, preset="phrasebook"),
    "the same in a decoder": Bug(_beams_not_reordered, {"beams"}, preset="headlines-decoder"),
    "padding has a vote": Bug(_padding_votes, {"padding", "examples"}, preset="bulletins"),
    "padding of a source is seen": Bug(_padding_is_seen, {"padding", "beams", "examples"}, preset="phrasebook"),
    "cache forgets as it grows past 64": Bug(_cache_forgets_as_it_grows, {"cache parity"}),
    "n_heads ignored": Bug(_heads_ignored, {"reference"}, ("model.position=sinusoidal", "model.qk_norm=none")),
    "1/√Dh missing": Bug(_no_scale, {"reference"}),
    "sign of ALiBi": Bug(_alibi_upside_down, {"reference"}, ("model.position=alibi",)),
    "dropout ignored": Bug(_dropout_ignored, {"dropout"}, DROPPING),
    "attention dropout ignored": Bug(_attention_dropout_ignored, {"dropout"}, DROPPING),
    "dropout in evaluation": Bug(_dropout_always, {"dropout"}, DROPPING),
    "scoring in training mode": Bug(_scoring_in_training_mode, {"dropout"}, DROPPING),
    "cross-attention ignores the source": Bug(
        _source_ignored, {"source", "reference", "parameters"}, preset="phrasebook"
    ),
    "the last layer ignores it": Bug(
        _source_ignored_by_the_last_layer, {"source", "reference", "parameters"}, preset="phrasebook"
    ),
    "label smoothing ignored": Bug(_smoothing_ignored, {"gradient"}, preset="phrasebook"),
    "z-loss ignored": Bug(_z_loss_ignored, {"gradient"}, ("objective.z_loss=1e-4",)),
    "z-loss over padding too": Bug(_z_loss_of_padding, {"gradient"}, ("objective.z_loss=1e-4",), "phrasebook"),
    "micro-batches divided by their own targets": Bug(_micro_batches_apart, {"gradient"}, ("train.accumulation=2",)),
    "clipping ignored": Bug(_clipping_ignored, {"update"}),
    "clipping after the step": Bug(_clipped_after_the_step, {"gradient", "update"}),
    "Muon normalises its momentum in place": Bug(_momentum_normalised_in_place, {"update"}, ("optimizer.kind=muon",)),
    "weight decay ignored": Bug(_decay_ignored, {"update"}),
    "a group's rate ignored": Bug(_own_rate_ignored, {"update"}, ("optimizer.head_lr=1e-4",)),
    "Muon takes queries, keys and values for one matrix": Bug(
        _orthogonalised_together, {"update"}, ("optimizer.kind=muon",)
    ),
    "every rank has the same micro-batches": Bug(_the_same_on_both_ranks, {"gradient"}, ("train.accumulation=2",)),
    "the moving average is the weights": Bug(_live_weights_for_the_average, {"update"}, ("train.ema=0.9",)),
    "the moving average with its decay upside down": Bug(
        _average_upside_down, {"update"}, ("train.ema=0.9", "train.steps=40")
    ),
    "gains decay": Bug(_gains_decay, {"update"}),
    "windows from half of the text": Bug(_starts(lambda starts: starts // 2), {"batches"}, ("train.steps=60",)),
    "windows of half a stride": Bug(_starts(lambda starts: starts // 2), {"batches"}, STRIDE),
    "the second window for the first": Bug(_starts(lambda starts: starts.clamp(min=40)), {"batches"}, STRIDE),
    "the same random windows at every step": Bug(_repeated(loader), {"batches"}, ("train.steps=60",)),
    "the same order in every epoch": Bug(_repeated(loader), {"batches"}, STRIDE),
    "the same order of sentences in every epoch": Bug(
        _repeated(rows), {"batches"}, ("train.steps=300",), preset="phrasebook"
    ),
    "schedule ignored": Bug(_schedule_ignored, {"update"}),
    "seed ignored": Bug(_seed_ignored_by(initialisation, loader), {"seed"}),
    "seed ignored by the batches": Bug(_seed_ignored_by(loader), {"seed"}),
    "seed ignored by the weights": Bug(_seed_ignored_by(initialisation), {"seed"}),
}
PLANTED = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())


def begun(config: RunConfig, root: Path) -> tuple[RunReader, bool]:
    """A run up to its first step, and whether it refused to begin."""
    ready = assemble.assemble(config, runs_dir=root, name="run", device="cpu")
    try:
        ready.trainer.begin()
        ready.trainer.advance()
    except Leaking:
        return RunReader(ready.path), True
    finally:
        ready.trainer.writer.release_lock()
    return RunReader(ready.path), False


def wrong(reader: RunReader) -> set[str]:
    """The checks that failed before the first step."""
    return {v.check for v in reader.verdicts if v.when == "before" and v.verdict != "ok"}


@pytest.mark.one_in(3)
@PLANTED
def test_a_run_detects_a_planted_bug(bug: Bug, tmp_path, monkeypatch) -> None:
    bug.plant(monkeypatch)
    with nullcontext() if bug.checks == LEAK else minimal_leak_probe():  # a leak may be at a single place
        reader, refused = begun(configured(bug.preset, bug.changes), tmp_path)
    assert wrong(reader) == bug.checks
    assert set(reader.badges) == {"LEAK" if refused else "BROKEN"} and refused == (bug.checks == LEAK)


@pytest.mark.slow
@PLANTED
def test_check_detects_a_planted_bug(bug: Bug, tmp_path, monkeypatch, capsys) -> None:
    bug.plant(monkeypatch)
    changes = SETTINGS_OF.get(bug.preset, TRANSLATING) + bug.changes
    words = [word for change in changes for word in ("--set", change)]
    arguments = ["check", "--preset", bug.preset, *words, "--device", "cpu", "--json", "--runs-dir", str(tmp_path)]
    assert main(arguments) == 1
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["check"] for one in said if one["kind"] == "verdict" and one["verdict"] != "ok"} >= bug.checks


SETTINGS = sorted({(bug.preset, bug.changes) for bug in BUGS.values()})


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("preset", "changes"), SETTINGS, ids=str)
def test_the_same_settings_without_a_bug_raise_nothing(preset: str, changes: tuple[str, ...], tmp_path) -> None:
    reader, _ = begun(configured(preset, changes), tmp_path)
    assert reader.badges == {}
    asked = {"leak", "order", "parameters", "reference", "cache parity", "sampling", "gradient", "update", "dropout"}
    assert {v.check for v in reader.verdicts if v.when == "before"} >= asked | {"seed"}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", [preset.name for preset in presets.list_presets()])
def test_no_shipped_preset_raises_an_alarm_that_is_not_its_point(name: str, tmp_path) -> None:
    config = miniature(name)
    reader, refused = begun(config, tmp_path)
    assert set(reader.badges) == (set() if config.task.copy_leak(config) is None else {"LEAK"}) and not refused


@pytest.mark.usefixtures("minimal_leak_probe")
@pytest.mark.parametrize("name", ["baseline", "phrasebook"])
def test_a_run_is_the_same_to_the_last_bit_with_and_without_its_self_check(name: str, tmp_path, monkeypatch) -> None:
    found, size = [], {"baseline": 20_000, "phrasebook": 400}[name]
    config = miniature(name, "train.steps=4", f"data.corpus_size={size}")
    for folder in ("with", "without"):
        ready = assemble.assemble(config, runs_dir=tmp_path, name=folder, device="cpu")
        assert ready.trainer.run().state == "finished"
        found.append(outcome(ready.path))
        monkeypatch.setattr(inspector, "self_check", lambda *_: [])
    assert len(found[0].pop("verdicts")) > len(found[1].pop("verdicts"))
    assert found[0] == found[1]


def _average_scored_for_the_weights(patch: pytest.MonkeyPatch) -> None:
    real = trainer.Trainer._evaluate

    def evaluate(self):
        own = {name: value.clone() for name, value in checkpoint.weights_of(self.model).items()}
        kept = self.stepper.optimizer.state
        checkpoint.copy_weights(self.model, {name: kept[p]["ema"] for name, p in self.model.named_parameters()})
        real(self)
        checkpoint.copy_weights(self.model, own)

    patch.setattr(trainer.Trainer, "_evaluate", evaluate)


@pytest.mark.usefixtures("minimal_leak_probe")
@pytest.mark.parametrize("plant", [None, _live_weights_for_the_average, _average_scored_for_the_weights])
def test_weights_taken_for_their_average_are_noticed_at_the_end(plant: Plant | None, tmp_path, monkeypatch) -> None:
    if plant is not None:
        plant(monkeypatch)
    monkeypatch.setattr(inspector, "self_check", lambda *_: [])
    ready = assemble.assemble(miniature("baseline", "train.ema=0.9"), runs_dir=tmp_path, name="run", device="cpu")
    assert ready.trainer.run().state == "finished"
    found = [v.verdict for v in RunReader(ready.path).verdicts if v.check == "moving average"]
    assert found == ([] if plant is None else ["BROKEN"])


@pytest.mark.usefixtures("minimal_leak_probe")
def test_a_resumed_run_does_not_check_itself_again(tmp_path, monkeypatch) -> None:
    ready = assemble.assemble(miniature("baseline"), runs_dir=tmp_path, name="run", device="cpu", control=StopAt(3))
    assert ready.trainer.run().state == "stopped"
    before = RunReader(ready.path).verdicts
    monkeypatch.setattr(inspector, "self_check", lambda *_: pytest.fail("asked again"))
    assert assemble.resume(ready.path, device="cpu").trainer.run().state == "finished"
    assert RunReader(ready.path).verdicts[: len(before)] == before


@pytest.mark.usefixtures("minimal_leak_probe")
def test_a_full_disk_is_no_bug(tmp_path, monkeypatch) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(self_check, "load_moving_average_and_save", full)
    reader, _ = begun(configured("demo", ("train.ema=0.9",)), tmp_path)
    assert reader.badges == {}
    assert "out of memory or disk" in next(v.why for v in reader.verdicts if v.check == "update")


def test_a_network_of_any_size_is_checked_on_a_small_copy() -> None:
    copy = self_check.small_copy(presets.resolve(presets.find("gpt2-small")), self_check.WORDS)
    assert sum(p.numel() for p in copy.network.parameters()) < 200_000 and copy.length == 1024
    assert copy.size_note == ", tried with 2 of 12 layers, 64 of 768 features"
    assert self_check.small_copy(configured("demo", ()), self_check.WORDS).size_note == ""


@pytest.mark.parametrize("preset", ["demo", "reverse"])
@pytest.mark.parametrize("place", [1_060, 4_090, 90_000, 99_999])
def test_a_wrong_position_is_heard_at_the_end_of_a_long_context(preset: str, place: int, monkeypatch) -> None:
    longer = ("model.context_length=100000", *(("model.source_length=64",) if preset == "reverse" else ()))
    config = presets.resolve(presets.find(preset), overrides=[parse_override(change) for change in longer])
    small = self_check.small_copy(config, self_check.WORDS)
    (_steps_at(lambda at: at + (at >= place)) if preset == "demo" else _chunks_one_ahead_from(place))(monkeypatch)
    with torch.no_grad():
        assert self_check._long_cache_difference(config, small)[0] > self_check.LIMIT
