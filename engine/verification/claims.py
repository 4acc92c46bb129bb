"""All claims of a run in one table, with their findings. Nothing is ever written to the run's directory."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from engine.errors import InputError, damaged
from engine.language import plain, tr
from engine.runs.reader import LIVE_STATES, RunReader
from engine.verification import inputs, records, repeats
from engine.verification.evidence import Evidence
from engine.verification.finding import Difference, Finding, Outcome, Result, Unknown

STEPS = 20  # that are repeated

CLAIMS: dict[str, Callable[[Evidence], Outcome]] = {
    plain("config"): inputs.config,
    plain("tokenizer"): inputs.tokenizer,
    plain("data"): inputs.data,
    plain("lineage"): inputs.lineage,
    plain("checkpoints"): inputs.checkpoints,
    plain("states"): inputs.states,
    plain("metrics"): records.metrics,
    plain("values"): records.values,
    plain("metrics hash"): records.metrics_hash,
    plain("summary"): records.summary,
    plain("events"): records.events,
    plain("sample records"): records.samples_kept,
    plain("best score"): partial(repeats.score, which="best"),
    plain("last score"): partial(repeats.score, which="last"),
    plain("averaged score"): repeats.averages,
    plain("samples"): repeats.samples,
    plain("steps"): repeats.steps,
    plain("verdicts"): repeats.verdicts,
}


def verify(
    reader: RunReader, *, data_dir: Path | None = None, device: str = "auto", steps: int = STEPS
) -> Iterator[Finding]:
    """Check every claim of a run that has ended; `InputError`: it is alive, or there is no such device here. `steps`
    training steps are repeated, at least as far as the next record.
    """
    if reader.state in LIVE_STATES or reader.state == "queued":
        raise InputError(
            tr("run '{name}' is {state}; verify it when it has ended", name=reader.name, state=reader.state)
        )
    evidence = Evidence(reader, data_dir, device, steps)
    _ = evidence.device
    for name, check in CLAIMS.items():
        try:
            text, found = check(evidence)
        except (Unknown, InputError) as error:
            yield Finding(name, Result.UNCHECKED, str(error))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, OSError) as error:
            # An honest run's records have all their fields: missing ones were lost or removed.
            damage = Difference("records", damaged(error), tr("intact ones"))
            yield Finding(name, Result.DIFFERS, tr("a record it relies on is damaged"), (damage,))
        except (RuntimeError, MemoryError) as error:  # torch's own, such as no room on the device
            why = tr("it could not be computed here: {error}", error=" ".join(str(error).split())[:200])
            yield Finding(name, Result.UNCHECKED, why)
        else:
            yield Finding(name, Result.DIFFERS if found else Result.CONFIRMED, text, tuple(found))
