"""The parts of a run, which `assemble` builds and the trainer and its checks use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from engine.config.lints import Lint
from engine.config.schema import RunConfig
from engine.data.loader import BatchStream
from engine.model.numerics import Numerics
from engine.model.transformer import Network
from engine.runs.records import Origin
from engine.tasks.task import Sampler, Task


@dataclass(frozen=True)
class RunParts:
    """Everything a run needs besides its directory: config as in config.toml, resolved; model fp32, on its device, in
    training mode.
    """

    config: RunConfig
    task: Task
    model: Network
    sampler: Sampler
    lints: Sequence[Lint] = ()
    origin: Origin | None = None  # of its initial weights
    init_messages: Sequence[str] = ()  # messages about these
    recorded: Mapping[str, Any] = field(default_factory=dict)  # what "auto" meant when it began, if it is resumed

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def numerics(self) -> Numerics:
        return Numerics.choose(self.config, self.device, self.recorded)

    @cached_property
    def batches(self) -> BatchStream:
        return self.task.batches(self.config, self.device)
