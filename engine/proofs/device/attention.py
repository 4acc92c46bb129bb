"""Compare the values and gradients of every attention backend with a float64 reference on the CPU."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.base.language import Message
from engine.config.model import PARTS, ModelConfig, active_parts
from engine.config.schemes import ATTENTIONS, POSITIONS
from engine.config.visibility import Visibility, self_attention
from engine.model.attention import BACKENDS, AttentionCall, Softmax, softmax_attention
from engine.model.linear_attention import linear_attention
from engine.model.positions import Positions, PositionScheme, make_schemes
from engine.proofs.device.proof import Context, Proof
from engine.runs.verdict import CheckResult, passed_if
from engine.training.self_check import relative_error

ROWS, HEADS, WIDTH, TOKENS = 2, 4, 32, 160
# Largest difference relative to the largest entry; bf16 has 8 significant bits. Measured on a CPU: 4e-6 and 0.042.
ALLOWED = {torch.float32: 3e-5, torch.bfloat16: 0.1}
DTYPE_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}


def attention_proofs() -> list[Proof]:
    return [
        Proof(Message("attention, {name}", name=name), "attention", partial(compare_backends, name), seconds=1.5)
        for name in POSITIONS
    ]


@dataclass(frozen=True)
class _Case:
    model: ModelConfig
    causal: bool
    padded: bool

    @property
    def name(self) -> str:
        parts = [name.replace("_", " ") for name in active_parts(self.model)]
        return ", ".join([self.model.attention, *["causal"] * self.causal, *["padded"] * self.padded, *parts])

    @property
    def visibility(self) -> Visibility:
        return self_attention(self.model, causal=self.causal)

    def positions(self, device: torch.device) -> Positions:
        if not self.padded:
            return Positions.consecutive(TOKENS, 0, device)
        keep = torch.ones(ROWS, TOKENS, dtype=torch.bool)
        keep[-1, :37] = False
        return Positions.of_tokens(keep.to(device), one_side=True)

    def scheme(self, dtype: torch.dtype, device: torch.device) -> PositionScheme:
        scheme = make_schemes(self.model, 1, TOKENS, causal=self.causal)[0]
        draw = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in scheme.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=draw) * 0.3)
        return scheme.to(device=device, dtype=torch.promote_types(dtype, torch.float32))  # parameters are never bf16

    def softmax(self, dtype: torch.dtype, device: torch.device) -> Softmax | None:
        made = Softmax.from_config(self.model)
        if made is None:
            return None
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.copy_(torch.linspace(-1.0, 2.0, parameter.numel()).view(parameter.shape))
        return made.to(device=device, dtype=torch.promote_types(dtype, torch.float32))

    def call(
        self, q: Tensor, k: Tensor, at: Positions, scheme: PositionScheme, softmax: Softmax | None
    ) -> AttentionCall:
        return AttentionCall(q, k, at, at, self.visibility, scheme, softmax=softmax)


def compare_backends(position: str, context: Context) -> CheckResult:
    """Compare every backend that applies to a position scheme's case with the reference."""
    device, wrong = torch.device(context.device), []
    worst = dict.fromkeys(ALLOWED, 0.0)
    tried = 0
    for case in _cases(position):
        for dtype, allowed in ALLOWED.items():
            # Queries, keys, values and the gradient of the output, (B, H, T, Dh), rounded to the dtype.
            draw = torch.Generator().manual_seed(1)
            inputs = [torch.randn(ROWS, HEADS, TOKENS, WIDTH, generator=draw).to(dtype) for _ in range(4)]
            expected = _outcome(case, inputs, torch.float64, torch.device("cpu"), "reference")
            for backend in _backends(case, inputs, device):
                found = _outcome(case, inputs, dtype, device, backend)
                error = max(relative_error(one, other) for one, other in zip(found, expected, strict=True))
                worst[dtype], tried = max(worst[dtype], error), tried + 1
                if not error <= allowed:
                    name = DTYPE_NAMES[dtype]
                    text = Message(
                        "{backend} for {case} in {precision} has a relative error of {error:.2g}",
                        backend=backend,
                        case=case.name,
                        precision=name,
                        error=error,
                    )
                    wrong.append(text)
    said = Message("every applicable backend matches the reference's values and gradients")
    figures = {f"attention_difference_{DTYPE_NAMES[dtype]}": value for dtype, value in worst.items()}
    return passed_if(not wrong, said, "; ".join(wrong[:6]), comparisons=tried, **figures)


def _cases(position: str) -> Iterator[_Case]:
    for name in ATTENTIONS:
        if not ATTENTIONS[name].has_scores and POSITIONS[position].adds:
            continue
        tables = {"n_heads": HEADS, "d_model": HEADS * WIDTH, "context_length": TOKENS, "position": position}
        tables |= {"attention": name, "window": 9, "link_every": 8, "relative_max_distance": 16}
        parts: list[dict[str, Any]] = [{}]
        if ATTENTIONS[name].has_scores:
            parts += [{setting: row.on_values[-1]} for setting, row in PARTS.items() if row.fused_support != "as it is"]
        for causal, part in itertools.product((True, False), parts):
            model = ModelConfig.model_validate({**tables, **part, "architecture": "encoder", "causal": causal})
            yield from (_Case(model, causal, padded) for padded in (False, True))


def _backends(case: _Case, inputs: list[Tensor], device: torch.device) -> list[str]:
    if not ATTENTIONS[case.model.attention].has_scores:
        return ["chunked", "reference"]
    q, k = (part.to(device) for part in inputs[:2])
    at = case.positions(device)
    situation = case.call(q, k, at, case.scheme(q.dtype, device), case.softmax(q.dtype, device))
    return [backend.name for backend in BACKENDS if backend.why_not(situation) is None]


def _outcome(case: _Case, inputs: list[Tensor], dtype: torch.dtype, device: torch.device, backend: str) -> list[Tensor]:
    """Return the output and the gradients of queries, keys, values and parameters, float64 on the CPU."""
    *texts, weight = (part.to(device=device, dtype=dtype) for part in inputs)
    q, k, v = (text.detach().clone().requires_grad_() for text in texts)
    at, scheme, softmax = case.positions(device), case.scheme(dtype, device), case.softmax(dtype, device)
    leaves = [q, k, v, *scheme.parameters(), *(softmax.parameters() if softmax is not None else ())]
    if not ATTENTIONS[case.model.attention].has_scores:
        out = linear_attention(q, k, v, at, scheme, causal=case.causal, backend=backend)
    else:
        turned_q, turned_k = (scheme.rotate(part, at.index) for part in (q, k))
        out = softmax_attention(case.call(turned_q, turned_k, at, scheme, softmax), v, backend)
    if case.padded:  # outputs at padding are never used
        weight = weight * (at.index >= 0)[:, None, :, None]
        out = out * (at.index >= 0)[:, None, :, None]
    gradients = torch.autograd.grad((out * weight).sum(), leaves, allow_unused=True)
    kept = [out, *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients, strict=True))]
    return [part.detach().cpu().double() for part in kept]
