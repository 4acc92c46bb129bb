"""The claim that the run was trained as it says: some of its steps, taken again in a temporary folder, come out alike.

Steps are repeated from a checkpoint that is kept before the end, else from the seed: the first ones.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from engine import capabilities
from engine.config.schema import RunConfig
from engine.runs.reader import RunReader
from engine.runs.writer import RunWriter
from engine.training.control import Control, Diverged, Leaking
from engine.training.task import RunParts
from engine.training.trainer import Trainer
from engine.verification.closeness import differences
from engine.verification.evidence import Evidence, Record
from engine.verification.finding import Difference, Outcome, Unknown

COMPARED = ("loss", "grad_norm", "lr", "tokens")
LOOKS = ("evaluation.every", "evaluation.sample_every", "checkpoint.every")  # what changes nothing that is learned


def steps(evidence: Evidence) -> Outcome:
    """Training steps, repeated, have the losses and gradient norms that were recorded."""
    if not evidence.train:
        raise Unknown("no step was recorded")
    if evidence.steps == 0:
        raise Unknown("--steps 0: none was asked for")
    last = evidence.train[-1]["step"]
    with evidence.process():
        before = [folder for folder in evidence.saved if 0 < int(folder.name[5:]) < last]
        folder = before[-1] if before else None
        start = int(folder.name[5:]) if folder is not None else 0
        until = _until(evidence, start)
        found = repeated(evidence, folder, until - start)
    recorded = {record["step"]: record for record in evidence.train if start < record["step"] <= until}
    wrong = [Difference(f"train record at step {step:,}", "there", None) for step in recorded.keys() - found.keys()]
    for step, record in sorted(found.items()):
        said = {key: recorded.get(step, {}).get(key) for key in COMPARED}
        wrong += differences(
            said, record, f"at step {step:,}", exact=evidence.exact, factor=evidence.step_factor, skip=frozenset()
        )
    whence = f"from the checkpoint of step {start:,}" if folder is not None else _start(evidence)
    return Outcome(
        f"steps {start + 1:,} to {until:,} taken again {whence}: {len(found):,} records, {evidence.how_exact}",
        tuple(wrong),
    )


def repeated(evidence: Evidence, folder: Path | None, count: int) -> dict[int, Record]:
    """Train records of some steps, taken in a temporary folder.

    Args:
        evidence: of the run.
        folder: the checkpoint to begin from; None for the start.
        count: steps to take.

    Raises:
        Unknown: it fails here, as the run may have.
    """
    config, task = _quiet(evidence.config), evidence.task
    with TemporaryDirectory(prefix="tui-transformer-verify-") as root:
        writer = RunWriter.create(Path(root), "repeated", config, {})
        try:
            parts = RunParts(config, task, evidence.fresh(), task.sampler(config))
            trainer = Trainer(parts, {}, writer, Control())
            if folder is not None:
                trainer.restore(folder)
            trainer.begin()
            for _ in range(count):
                trainer.advance()
        except (Diverged, Leaking) as error:
            raise Unknown(f"training ended here: {error}") from None
        finally:
            writer.release()
        records = RunReader(writer.path).records("metrics")
        return {record["step"]: record for record in records if record.get("kind") == "train"}


def _start(evidence: Evidence) -> str:
    return "from the seed" if evidence.origin is None else f"from the weights of {evidence.origin.shown}"


def _until(evidence: Evidence, start: int) -> int:
    """The last step to repeat: as many as wanted, but far enough to reach a record."""
    after: list[int] = [record["step"] for record in evidence.train if record["step"] > start]
    within = [step for step in after if step <= start + evidence.steps]
    return (within or after[:1])[-1]


def _quiet(config: RunConfig) -> RunConfig:
    for key in LOOKS:
        config = capabilities.with_value(config, key, 0)
    return capabilities.with_value(config, "checkpoint.average_last", 0)
