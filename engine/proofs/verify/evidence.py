"""Evidence for claims: the run's files and, built from them on first use, its data, model and device."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine import capabilities
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.model.devices import environment, resolve_device
from engine.model.numerics import set_fp32_matmul
from engine.model.transformer import Network
from engine.proofs.verify.comparison import COARSE, Record, Uncheckable
from engine.runs.lineage import INIT_FROM, find_origin_run
from engine.runs.reader import RunReader
from engine.runs.record_version import redefined_fields
from engine.tasks.task import Task, task_of_run
from engine.training import checkpoint
from engine.training.assemble import EXACT_IF_SAME, build_network
from engine.training.init_from import ParentCheckpoint


class Evidence:
    def __init__(self, reader: RunReader, data_dir: Path | None, device: str, steps: int) -> None:
        self.reader, self.data_dir, self.requested_device, self.steps = reader, data_dir, device, steps
        self.status, self.summary, self.state = reader.status, reader.raw("summary"), reader.state
        self.origin, self.attempts = reader.run.origin, reader.environment.attempts
        self.scores_by_checkpoint: dict[Path, Record] = {}  # checkpoint → its scores, computed once

    @property
    def config(self) -> RunConfig:
        return self.reader.config

    @cached_property
    def redefined_fields(self) -> frozenset[str]:
        """Fields and checks that the version which recorded the run defined differently; they are not compared."""
        return redefined_fields(self.reader.run.records, self.config.task.name, self.config.data.tokenizer)

    def redefinition_note(self, *fields: str) -> str:
        """Return a note that names those of these fields that were redefined; else ""."""
        found = [field for field in fields if field in self.redefined_fields]
        if not found:
            return ""
        return tr("; not compared (defined differently by an older version): {found}", found=", ".join(found))

    @cached_property
    def metrics(self) -> list[Record]:
        return list(self.reader.raw_lines("metrics"))

    @cached_property
    def train(self) -> list[Record]:
        return [record for record in self.metrics if record.get("kind") == "train"]

    @cached_property
    def validation(self) -> list[Record]:
        return [record for record in self.metrics if record.get("kind") == "validation"]

    @property
    def finished(self) -> bool:
        return self.state == "finished"

    @property
    def end_step(self) -> int:
        if "step" not in self.status.model_fields_set:
            raise Uncheckable(Message("status.json does not say at which step the run ended"))
        return self.status.step

    @cached_property
    def verification_device(self) -> torch.device:
        wished = self.requested_device
        if wished == "auto" and self.attempts:
            with_index = (self.attempts[-1].device or "auto").split(" ")[0]
            try:
                return resolve_device(with_index)
            except InputError:
                pass  # another machine's
        return resolve_device(wished)

    @cached_property
    def why_not_exact(self) -> str:
        """Return what changed since the run, so results need not be bit-identical; "" if they must be."""
        if not self.attempts:
            return tr("environment.json does not say where the run was trained")
        now = environment(self.verification_device, self.config, 0, 1)
        for attempt in self.attempts:
            for key in EXACT_IF_SAME:
                was, found = getattr(attempt, key), getattr(now, key)
                if was != found:
                    return tr("{key} was {was} and is now {found}", key=key, was=_shown(was), found=_shown(found))
        if self.verification_device.type != "cpu":  # some of its kernels sum in nondeterministic order
            return tr(
                "sums on {device} may be computed in a different order each time", device=self.verification_device
            )
        return ""

    @property
    def exact(self) -> bool:
        return not self.why_not_exact

    @property
    def how_exact(self) -> str:
        if self.exact:
            return tr("to the last bit")
        return tr("within rounding error ({why_not_exact})", why_not_exact=self.why_not_exact)

    @property
    def score_tolerance_factor(self) -> float:
        """Return the factor that widens score tolerances: scoring is fp32, except for its products."""
        return COARSE if self.config.train.fp32_matmul == "fast" else 1.0

    @cached_property
    def task(self) -> Task:
        return task_of_run(self.reader, self.data_dir)

    @cached_property
    def parent(self) -> ParentCheckpoint:
        """The run that it started from, found by name or id; `Uncheckable` if it or the checkpoint is missing."""
        origin = self.origin
        assert origin is not None
        reader = find_origin_run(origin, self.config.train.init_from, self.reader.path.parent)
        if reader is None:
            raise Uncheckable(Message("parent run '{name}' cannot be found", name=origin.name))
        step = origin.checkpoint if origin.checkpoint == checkpoint.AVERAGE else origin.step
        asked = capabilities.with_value(self.config, INIT_FROM, f"{reader.path.resolve()}@{step}")
        try:
            found = ParentCheckpoint.find(asked, self.reader.path.parent)
        except InputError as error:
            text = Message(
                "parent run '{name}' no longer has the checkpoint this run started from: {error}",
                name=reader.name,
                error=error,
            )
            raise Uncheckable(text) from None
        assert found is not None
        return found

    @cached_property
    def intact_checkpoints(self) -> list[Path]:
        folders = checkpoint.step_folders(self.reader.path)
        return [folder for folder in folders if checkpoint.find_damage(folder) is None]

    def folder_of(self, step: int) -> Path | None:
        wanted = checkpoint.folder_name(step)
        return next((folder for folder in self.intact_checkpoints if folder.name == wanted), None)

    def network(self, which: str) -> tuple[Network, int]:
        model, _, step = checkpoint.load_network(self.reader, which, self.verification_device)
        return model, step

    def initial_network(self) -> Network:
        """The model before its first step: from the seed, or from the run that it started from. `Uncheckable`: neither
        the other run's weights nor its own first checkpoint is available.
        """
        capabilities.require_valid(self.config, str(self.reader.path / "config.toml"))
        model = build_network(self.config, self.config.min_vocab_size(self.task.vocab_size), self.verification_device)
        if self.origin is None:
            return model
        first = self.folder_of(0)
        try:
            self.parent.copy_weights(model, self.config)
        except Uncheckable:
            if first is None:
                raise
            checkpoint.load_weights(model, first / checkpoint.WEIGHTS)
        return model

    @contextmanager
    def process_settings(self) -> Iterator[None]:
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(self.config.train.threads or threads)
            set_fp32_matmul(self.config.train.fp32_matmul)
            yield
        except InputError as error:
            raise Uncheckable(str(error)) from None
        finally:
            torch.set_num_threads(threads)
            set_fp32_matmul("exact")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key} {text}" for key, text in value.items())
    return str(value)
