"""What should be faster but compute the same: decoding as a CUDA graph, compiled steps, steps that never wait."""

import importlib.util
import os
import shutil
import sysconfig
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from engine.benchmark.cases import PRECISIONS, VOCABULARY, BenchmarkSpec, Effort, steps_of
from engine.benchmark.measure import Contender, interleaved
from engine.config import presets
from engine.config.schema import RunConfig
from engine.generation.sampling import DecoderPredictor, Sampling, stream_batch
from engine.model.decoding import Decoding
from engine.model.transformer import DecoderLM, build_model
from engine.proof.attention import POSITIONS
from engine.proof.result import Context, Figure, Proof, Result, judged, passed, skipped
from engine.training.numerics import set_fp32_matmul
from engine.training.self_check import NO_DROPOUT
from engine.training.step import Stepper

PROMPT, WRITTEN, ROWS = 7, 90, 3
DECODED = 1e-4  # relative difference of logits
COMPILED = {"fp32": 1e-4, "bf16": 1e-2, "fp32-fast": 1e-2}  # relative difference of losses
PARITY_STEPS = 5
SECONDS, ROUNDS = 0.6, 3  # of each contender


def speed_proofs() -> list[Proof]:
    """Parity first, then speed."""
    return [
        Proof("decoding in fixed-shape steps", "decoding", decodes_alike, seconds=2.0),
        Proof("decoding as a CUDA graph", "decoding", decodes_as_graph, seconds=8.0),
        *(
            Proof(f"no wait for the device between log points, {precision}", "waiting", partial(waits, precision))
            for precision in PRECISIONS
        ),
        *(
            Proof(f"compiled steps, {precision}", "compile", partial(compiles, precision), seconds=40.0, limit=200.0)
            for precision in COMPILED
        ),
    ]


def _demo(compile_: str = "never", **model: object) -> RunConfig:
    """The demo's network without dropout."""
    tables = presets.resolve(presets.find("demo")).dump()
    tables["model"] |= NO_DROPOUT | model
    tables["train"]["compile"] = compile_
    return RunConfig.model_validate(tables)


def _decoder(context: Context, position: str) -> tuple[DecoderLM, Tensor]:
    """Return a decoder in evaluation mode and (B, T) tokens to read."""
    config = _demo(position=position)
    model = build_model(config.model, VOCABULARY, 1, context.device).eval()
    assert isinstance(model, DecoderLM)
    drawn = torch.randint(VOCABULARY, (ROWS, WRITTEN), generator=torch.Generator().manual_seed(0))
    return model, drawn.to(context.device)


def _parity(context: Context) -> tuple[float, str]:
    """Return the largest difference between fixed and full-pass logits, over position schemes, and where."""
    worst, where = 0.0, ""
    for position in ("sinusoidal", "learned", "rope", "alibi", "t5"):
        model, tokens = _decoder(context, position)
        with torch.inference_mode():
            full = model(tokens)[:, PROMPT - 1 :]
            decoding = Decoding(model, WRITTEN // 2, fixed=True)  # too small at first, so it has to grow
            fed = [decoding.feed(tokens[:, :PROMPT])]  # then token by token
            fed += [decoding.feed(tokens[:, at : at + 1]) for at in range(PROMPT, WRITTEN)]
        apart = float((torch.stack(fed, dim=1) - full).abs().max() / full.abs().max())
        if not apart <= worst:
            worst, where = apart, position
    return worst, where


def decodes_alike(context: Context) -> Result:
    """Fixed-shape steps, which always compute the whole buffer, give the logits of a full pass."""
    worst, where = _parity(context)
    right = f"the logits of {WRITTEN} tokens match a full pass"
    return judged(worst <= DECODED, right, f"logits differ by {worst:.2g} with {where}", decoding_difference=worst)


def decodes_as_graph(context: Context) -> Result:
    """The same steps replayed as a CUDA graph give the same logits; both ways are timed."""
    if not context.on_cuda:
        return skipped("CUDA graphs need CUDA")
    worst, where = _parity(context)
    if not worst <= DECODED:
        return judged(False, "", f"replayed logits differ by {worst:.2g} with {where}", decoding_difference=worst)
    model, tokens = _decoder(context, "rope")
    length, how = 200, Sampling()

    def write(*, fixed: bool) -> int:
        writer, start = DecoderPredictor(model, fixed=fixed), tokens[:1, :1]
        return sum(1 for _ in stream_batch(writer, start, length, how, [1], context=model.config.context_length))

    contenders = [Contender("graph", partial(write, fixed=True)), Contender("plain", partial(write, fixed=False))]
    graph, plain = interleaved(contenders, rounds=ROUNDS, seconds=SECONDS, device=context.device)
    ratio = graph.median / plain.median
    return passed(
        f"the same logits; {graph.median:,.0f} tokens/s as a graph, {plain.median:,.0f} without: {ratio:.2f} ×",
        decoding_difference=worst,
        graph_tokens_per_second=graph.median,
        plain_tokens_per_second=plain.median,
    )


def without_compiler(context: Context) -> str:
    """Why torch cannot compile here, or "" if it can."""
    compilers = [os.environ.get("CXX" if context.device == "cpu" else "CC", ""), "g++", "gcc", "clang++", "clang"]
    if not any(shutil.which(name) for name in compilers if name):
        return "no C compiler on PATH, which torch.compile needs"
    if context.on_cuda and importlib.util.find_spec("triton") is None:
        return "triton is not installed, which torch.compile needs on CUDA"
    if context.on_cuda and not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "Python's headers are not installed, which triton needs"
    return ""


def compiles(precision: str, context: Context) -> Result:
    """Compiled steps give the losses of plain ones; compiling and both kinds of step are timed."""
    if why := without_compiler(context):
        return skipped(why)
    plain, compiled = (_stepper(precision, compile_, context) for compile_ in ("never", "always"))
    expected = _losses(plain, PARITY_STEPS)
    started = time.perf_counter()
    found = _losses(compiled, 1)
    compiling = time.perf_counter() - started
    found += _losses(compiled, PARITY_STEPS - 1, first=2)
    apart = max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))
    figures: dict[str, Figure] = {"compiled_loss_difference": apart, "compiling_seconds": round(compiling, 1)}
    if not apart <= COMPILED[precision]:
        return judged(False, "", f"compiled losses differ by {apart:.2g} (relative)", **figures)
    contenders = [
        Contender("compiled", steps_of(compiled, PARITY_STEPS)),
        Contender("plain", steps_of(plain, PARITY_STEPS)),
    ]
    fast, slow = interleaved(contenders, rounds=ROUNDS, seconds=SECONDS, device=context.device)
    ratio = fast.median / slow.median
    figures |= {"compiled_tokens_per_second": fast.median, "plain_tokens_per_second": slow.median}
    return passed(f"the same losses after {compiling:.0f} s of compiling; {ratio:.2f} × as fast", **figures)


def _stepper(precision: str, compile_: str, context: Context, **model: object) -> Stepper:
    threads, effort = torch.get_num_threads(), Effort(ROUNDS, SECONDS)
    config, device = _demo(compile_, **model), torch.device(context.device)
    spec = BenchmarkSpec(config, (precision,), (), device, threads, effort)
    config = spec.resolved(config, precision)
    set_fp32_matmul(config.train.fp32_matmul)
    return spec.stepper(config)


def _losses(stepper: Stepper, steps: int, *, first: int = 1) -> list[float]:
    results = [stepper.step(step) for step in range(first, first + steps)]
    return [result.read()[0] / result.n_targets for result in results]


def waits(precision: str, context: Context) -> Result:
    """Steps between two log points never make the host wait for the device; CUDA raises an error where one would."""
    if not context.on_cuda:
        return skipped("only CUDA reports where the host waits")
    for position in POSITIONS:
        stepper = _stepper(precision, "never", context, position=position)
        _losses(stepper, 2)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            results = [stepper.step(step) for step in range(3, 9)]
        finally:
            torch.cuda.set_sync_debug_mode("default")
        for result in results:
            result.read()
    return passed(f"no wait in {len(results)} steps with each of {len(POSITIONS)} position schemes")
