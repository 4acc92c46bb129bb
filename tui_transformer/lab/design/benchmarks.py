"""Measure a design with `check` and a study with `ablate --dry-run`, each in its own process."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.base.errors import InputError, reason
from engine.base.language import Message, tr
from engine.config.keys import flatten
from tui_transformer.lab.design.draft import Benchmark, Draft
from tui_transformer.lab.work.async_commands import LaunchTarget, objects_of_kind, run_ablate, run_process
from tui_transformer.lab.work.study import Study

if TYPE_CHECKING:
    from tui_transformer.lab.design.study_draft import Estimate

LEFT_OUT = ("train.steps", "seed", "preset", "description")  # not part of a step's time


@dataclass
class Benchmarks:
    """Benchmarks of designs, so that none runs twice."""

    device: str  # to measure on, as on the command line
    data_dir: Path | None  # searched first for named corpora
    runs_dir: Path | None = None  # searched for a run that the design starts from; None for the usual folder
    _known: dict[str, Benchmark] = field(default_factory=dict)

    def cached(self, draft: Draft) -> Benchmark | None:
        """Return a design's measurement; a different number of steps only changes the total."""
        found = self._known.get(self._cache_key(draft))
        config = draft.config
        if found is None or config is None or config.train.epochs is not None:
            return found
        return found.model_copy(update={"seconds": found.seconds_per_step * config.train.steps})

    async def measure(self, draft: Draft, on_progress_line: Callable[[str], None] = lambda line: None) -> Benchmark:
        """Measure a design; cancelling this kills the process. `hears` is told what it does. Raises as `run_check`."""
        found = self.cached(draft)
        if found is None:
            found = self._known[self._cache_key(draft)] = await run_check(self.command(draft), on_progress_line)
        return found

    @staticmethod
    def _cache_key(draft: Draft) -> str:
        data = flatten(draft.config.dump()) if draft.config else {"problem": draft.problem}
        data = {key: value for key, value in data.items() if key not in LEFT_OUT}
        return json.dumps([str(draft.path or draft.preset.name), draft.on, data], sort_keys=True)

    def command(self, draft: Draft) -> list[str]:
        """Return `check` with the draft's arguments, which compares its switches with its preset's."""
        words = [sys.executable, "-m", "tui_transformer", "check", *draft.arguments(), "--json", "--progress"]
        words += ["--device", self.device]
        words += ["--runs-dir", str(self.runs_dir)] if self.runs_dir is not None else []
        return [*words, "--data-dir", str(self.data_dir)] if self.data_dir is not None else words


async def run_check(command: list[str], on_progress_line: Callable[[str], None] = lambda line: None) -> Benchmark:
    """Run `check … --json`; problems it finds are an answer. Raises InputError only if there is none."""
    try:
        _, lines, complaint = await run_process(command, on_error_line=on_progress_line)
    except OSError as error:
        raise InputError(Message("measurement failed: {strerror}", strerror=reason(error))) from None
    costs = objects_of_kind("cost", lines)
    if not costs:
        raise InputError(complaint or tr("check returned no result"))
    verdicts = [one | {"why": tr(str(one.get("why", "")))} for one in objects_of_kind("verdict", lines)]
    return Benchmark.read(costs[0] | {"verdicts": verdicts})


async def time_study_steps(study: Study, target: LaunchTarget) -> "Estimate":
    """Time a step of each variant; cancelling this ends the process. Raises as `start_study`."""
    from tui_transformer.lab.design.study_draft import Estimate

    for one in objects_of_kind("plan", await run_ablate(study, target, "--dry-run")):
        found = Estimate.read(one | {"measured": True})
        if found.seconds is not None:
            return found
    raise InputError(Message("measurement failed: ablate returned no plan"))
