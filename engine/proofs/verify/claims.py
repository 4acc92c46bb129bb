"""All claims of a run in one table, and their results. Nothing is ever written to the run's directory."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from engine.base.errors import InputError, damage_description
from engine.base.language import Message, tr
from engine.proofs.verify import inputs, records, repeats
from engine.proofs.verify.comparison import Difference, Outcome, Uncheckable, differing
from engine.proofs.verify.evidence import Evidence
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.verdict import CheckResult, passed, skipped

CLAIMS: dict[str, Callable[[Evidence], Outcome]] = {
    Message("config"): inputs.config,
    Message("tokenizer"): inputs.tokenizer,
    Message("data"): inputs.data,
    Message("lineage"): inputs.lineage,
    Message("checkpoints"): inputs.checkpoints,
    Message("states"): inputs.states,
    Message("metrics"): records.metrics,
    Message("values"): records.values,
    Message("metrics hash"): records.metrics_hash,
    Message("summary"): records.summary,
    Message("events"): records.events,
    Message("sample records"): records.sample_records,
    Message("best score"): partial(repeats.score, which="best"),
    Message("last score"): partial(repeats.score, which="last"),
    Message("averaged score"): repeats.averages,
    Message("samples"): repeats.samples,
    Message("steps"): repeats.steps,
    Message("verdicts"): repeats.verdicts,
}


def verify(
    reader: RunReader, *, data_dir: Path | None = None, device: str = "auto", steps: int = 20
) -> Iterator[tuple[str, CheckResult]]:
    """Check every claim of a run that has ended; yield its name, and what was compared and how closely it agrees, or
    what differs, or why it cannot be checked. `InputError`: the run is alive, or there is no such device here. `steps`
    training steps are repeated, at least as far as the next record.
    """
    if reader.state in LIVE_STATES or reader.state == "queued":
        message = Message(
            "run '{name}' is {state}; verify it once it has ended", name=reader.name, state=tr(reader.state)
        )
        raise InputError(message)
    evidence = Evidence(reader, data_dir, device, steps)
    _ = evidence.verification_device
    for name, check in CLAIMS.items():
        try:
            text, found = check(evidence)
        except (Uncheckable, InputError) as error:
            yield name, skipped(str(error))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, OSError) as error:
            # An honest run's records have all their fields: missing ones were lost or removed.
            text = tr("a record this claim relies on is damaged")
            yield name, differing([Difference(text, fault=damage_description(error))])
        except (RuntimeError, MemoryError) as error:  # torch's own, such as no room on the device
            yield name, skipped(tr("could not be computed here: {error}", error=" ".join(str(error).split())[:200]))
        else:
            yield name, differing(found) if found else passed(text)
