"""Memory: a step that does not fit is split, and the estimate is close to the measured peak."""

from functools import partial
from typing import Any

import torch

from engine.base.language import Message
from engine.capabilities import with_value
from engine.config import presets
from engine.config.schema import RunConfig
from engine.proofs.bench.memory import measure_training_peak
from engine.proofs.device.proof import Context, Proof
from engine.proofs.device.resuming import small_run, train_run
from engine.runs.files import read_json, read_lines
from engine.runs.reader import RunReader
from engine.runs.verdict import CheckResult, failed, passed_if, skipped
from engine.training import checkpoint
from engine.training.assemble import assemble

FITS = 2  # windows that fit on the simulated device
WINDOWS = 8
LOSS = 1e-5  # nats, between a step in pieces and a whole one
NEAR = 0.25  # of the measured peak
# One of each kind of network. On a CPU, variants of the baseline become variants of the demo, which is quicker.
ESTIMATED = ("demo", "rope", "relative", "encoder-mlm", "win16", "phrasebook")


def memory_proofs() -> list[Proof]:
    said, group = Message("memory estimate, {name}"), Message("memory estimates")
    return [
        Proof(Message("out of memory (simulated), handled by auto_batch"), "memory", simulated_oom, seconds=4.0),
        Proof(Message("out of memory (limited allocator), handled by auto_batch"), "memory", real_oom, seconds=8.0),
        *(Proof(said.format(name=one), group, partial(memory_estimate, one), 8.0, 180.0) for one in ESTIMATED),
    ]


def simulated_oom(context: Context) -> CheckResult:
    """On a device with room for few windows, a run with auto_batch has the same losses; without it, the run fails."""

    def crowded(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if model.training and len(inputs[0]) > FITS:
            raise torch.OutOfMemoryError("CUDA out of memory")

    # With Muon in bf16, a rounding difference of one bit would grow beyond the tolerance.
    config = with_value(small_run(dropout=0.0, batch_size=WINDOWS), "optimizer.kind", "adamw")
    whole = train_run(context, "whole", config)
    pieces = train_run(context, "pieces", with_value(config, "train.auto_batch", True), hook=crowded)
    ready = assemble(config, runs_dir=context.folder, name="refused", device=context.device)
    ready.trainer.model.register_forward_pre_hook(crowded)
    refused = ready.trainer.run()
    if refused.state != "failed" or "auto_batch=true" not in refused.reason:
        text = Message("without auto_batch, the run {state}: {reason}", state=refused.state, reason=refused.reason)
        return failed(text)
    cut = int(read_json(checkpoint.find(RunReader(pieces), "last") / checkpoint.STATE)["pieces"])
    losses = [
        [record["loss"] for record in read_lines(run / "metrics.jsonl") if record["kind"] == "train"]
        for run in (whole, pieces)
    ]
    apart = max(abs(a - b) for a, b in zip(*losses, strict=True))
    right = Message(
        "{windows} windows give the same losses whole or in {cut} pieces; without auto_batch, the error says what to "
        "do",
        windows=WINDOWS,
        cut=cut,
    )
    wrong = Message("cut into {cut} pieces, the losses differ by {apart:.2g} nats", cut=cut, apart=apart)
    return passed_if(apart <= LOSS and cut == WINDOWS // FITS, right, wrong, loss_difference=apart, pieces=cut)


def real_oom(context: Context) -> CheckResult:
    """With torch's allocator limited to 60 % of a step's need, the step is cut into pieces."""
    if not context.on_cuda:
        return skipped(Message("only CUDA's allocator can be limited"))
    device = torch.device(context.device)
    tables = presets.resolve(presets.find("baseline")).dump()
    tables["train"] |= {"steps": 2, "auto_batch": True, "precision": "fp32"}
    tables["data"] |= {"corpus_size": 100_000}
    tables["evaluation"] |= {"every": 0, "sample_every": 0, "sample_length": 0}
    config = RunConfig.model_validate(tables)
    ready = assemble(config, runs_dir=context.folder, name="small", device=context.device)
    ready.trainer.begin()  # run the leak probe and the checks before the limit is set
    ready.trainer.stepper.records_steps = False  # a recorded graph would keep its memory
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    ready.trainer.stepper.step(1)
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device)
    ready.trainer.stepper.optimizer.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    held = torch.cuda.memory_allocated(device)
    torch.cuda.set_per_process_memory_fraction(min(1.0, (held + 0.6 * (peak - held)) / total), device)
    try:
        ready.trainer.advance()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
        torch.cuda.empty_cache()
    cut = ready.trainer.state.pieces
    ready.trainer.writer.close("stopped")
    right = Message("with 60 % of the memory, a step is cut into {cut} pieces", cut=cut)
    wrong = Message("the step was never cut into pieces")
    return passed_if(cut > 1, right, wrong, pieces=cut, peak_bytes=peak - before)


def memory_estimate(name: str, context: Context) -> CheckResult:
    """Compare the estimate of a preset's training memory with its measured peak."""
    preset = presets.find(name)
    config = presets.resolve(preset, on="demo" if context.device == "cpu" and preset.extends else None)
    peak = measure_training_peak(with_value(config, "train.precision", "fp32"), device=context.device)
    if peak.measured is None or peak.estimate_over_measured is None:
        return skipped(Message("the peak cannot be measured on this system"))
    figures: dict[str, Any] = {"estimate_bytes": peak.estimate, "measured_bytes": peak.measured}
    figures["estimate_over_measured"] = round(peak.estimate_over_measured, 3)
    said = Message(
        "estimate {estimate:,.0f} MiB, measured {measured:,.0f} MiB: ratio {ratio:.2f}",
        estimate=peak.estimate / 2**20,
        measured=peak.measured / 2**20,
        ratio=peak.estimate_over_measured,
    )
    text = Message("{said}, off by more than {near:.0%}", said=said, near=NEAR)
    return passed_if(abs(peak.estimate_over_measured - 1.0) <= NEAR, said, text, **figures)
