"""Claims about what a run was made of: its settings, its tokenizer, its data, and what its checkpoints hold."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from engine.data.tokenizers import difference, read_tokenizer
from engine.errors import InputError
from engine.model import size
from engine.model.size import BatchShape, memory_bytes
from engine.model.transformer import NETWORKS
from engine.runs.files import read_json
from engine.runs.lineage import drawn, split_init_from
from engine.runs.records import Origin
from engine.training import checkpoint, tensors
from engine.training.checkpoint import TrainerState
from engine.verification.evidence import Evidence
from engine.verification.finding import Difference, Outcome, Unknown, as_recorded, differences

ELSEWHERE = frozenset(("schema", "source", "notes"))  # of data.json: where the corpus lay, not what it is
ALWAYS = ("sha256", "vocabulary", "tokenizer_sha256", "splits")


def config(evidence: Evidence) -> Outcome:
    """config.toml is the config of the model that model.json describes and the checkpoints hold."""
    try:
        asked = evidence.config
    except InputError as error:
        return Outcome("", (Difference("config.toml", str(error), "a config of this version"),))
    recorded = evidence.reader.raw("model")
    vocabulary = asked.model.vocab_size or 0
    built = {
        "architecture": NETWORKS[asked.model.architecture].__name__,
        "fp32_matmul": asked.train.fp32_matmul,
    }
    parameters = size.parameter_count(asked.model, vocabulary)
    found: dict[str, Any] = {
        "parameters": parameters,
        "components": size.parameters(asked.model, vocabulary),
        "built": built,
    }
    if "flops_per_token" not in evidence.redefined:
        found["flops_per_token"] = size.flops_per_token(asked.model, vocabulary, BatchShape.of(asked).rows)
    if "memory_bytes" not in evidence.redefined:
        largest = BatchShape(**recorded["largest_batch"]) if "largest_batch" in recorded else None
        found["memory_bytes"] = memory_bytes(asked, vocabulary, largest)
    of_built = {key: value for key, value in recorded.get("built", {}).items() if key in built}
    kept = {key: value for key, value in recorded.items() if key in found}
    wrong = [*differences(kept | {"built": of_built}, found, "in model.json", exact=True, skip=frozenset())]
    wrong += [Difference(f"{key} in model.json", None, "a value") for key in found if key not in recorded]
    said = {"preset": evidence.reader.raw("run").get("preset"), "steps": evidence.status.steps}
    here = {"preset": asked.preset, "steps": asked.train.steps}
    wrong += [Difference(f"{key} in config.toml", here[key], said[key]) for key in said if said[key] != here[key]]
    wrong += _shapes(evidence)
    for attempt in evidence.attempts:
        if attempt.get("threads") != (asked.train.threads or 1):
            wrong.append(Difference("threads in environment.json", attempt.get("threads"), asked.train.threads))
    older = evidence.not_compared("flops_per_token", "memory_bytes")
    return Outcome(f"{parameters:,} parameters, as built; checkpoints have these shapes{older}", tuple(wrong))


def tokenizer(evidence: Evidence) -> Outcome:
    """The run's tokenizer has the SHA-256 of data.json, and so has every checkpoint's."""
    noted = evidence.reader.raw("data").get("tokenizer_sha256")
    paths = [evidence.reader.path / checkpoint.TOKENIZER]
    paths += [folder / checkpoint.TOKENIZER for folder in checkpoint.steps_saved(evidence.reader.path)]
    wrong = []
    for path in paths:
        try:
            found: Any = read_tokenizer(path).sha256
        except InputError as error:
            found = str(error)
        if found != noted:
            where = path.relative_to(evidence.reader.path)
            wrong.append(Difference(f"SHA-256 of {where}", noted, found))
    return Outcome(f"SHA-256 {str(noted)[:12]}…, in the run and in {len(paths) - 1} checkpoints", tuple(wrong))


def data(evidence: Evidence) -> Outcome:
    """The corpus, made or read again, has the hashes, sizes and lines of data.json."""
    with evidence.process():
        found = as_recorded(evidence.task.facts(evidence.config))
    recorded = evidence.reader.raw("data")
    wrong = [Difference(f"{key} in data.json", None, found[key]) for key in ALWAYS if key not in recorded]
    skip = ELSEWHERE | {"sha256"} | evidence.redefined
    wrong += differences(recorded, found, "in data.json", exact=evidence.exact, skip=skip)
    for split in sorted(found["sha256"].keys() | recorded.get("sha256", {}).keys()):
        said, now = recorded.get("sha256", {}).get(split), found["sha256"].get(split)
        if said != now:
            wrong.append(Difference(f"SHA-256 of the {split} split", said, now))
    splits = ", ".join(f"{name} {found['sha256'][name][:12]}…" for name in found["sha256"])
    return Outcome(f"{found['corpus']}: {splits}", tuple(wrong))


def checkpoints(evidence: Evidence) -> Outcome:
    """Every checkpoint's files have the SHA-256 they were written with, and its tensors can be read."""
    folders = checkpoint.steps_saved(evidence.reader.path)
    average = evidence.reader.path / "checkpoints" / checkpoint.AVERAGE
    folders += [average] if average.is_dir() else []
    if not folders:
        raise Unknown("the run has no checkpoint")
    damaged = [(folder.name, checkpoint.damage(folder) or _unreadable(folder)) for folder in folders]
    wrong = tuple(Difference(name, "as it was written", found) for name, found in damaged if found is not None)
    return Outcome(f"{len(folders)} checkpoints, every file with the SHA-256 it was written with", wrong)


def _unreadable(folder: Path) -> str | None:
    """Return what is wrong with the tensors of a checkpoint whose hashes agree."""
    try:
        for path in sorted(folder.glob("*.safetensors")):
            tensors.saved_shapes(path)
    except InputError as error:
        return str(error)
    return None


def states(evidence: Evidence) -> Outcome:
    """What each checkpoint says of its step is what the metrics say."""
    if not evidence.saved:
        raise Unknown("the run has no intact checkpoint")
    wrong: list[Difference] = []
    tokens = {record["step"]: record.get("tokens") for record in evidence.train}
    scored = {record["step"]: record for record in evidence.validation}
    for folder in evidence.saved:
        state = TrainerState.from_json(read_json(folder / checkpoint.STATE))
        if checkpoint.folder_name(state.step) != folder.name:
            wrong.append(Difference(f"step of {folder.name}", state.step, folder.name))
        if state.step in tokens and tokens[state.step] != state.tokens:
            wrong.append(Difference(f"tokens at step {state.step}", tokens[state.step], state.tokens))
        for name in ("best", "last"):
            said = getattr(state, name)
            if said is not None:
                there = scored.get(said["step"], {})
                wrong += differences(there or {"step": None}, said, f"of the {name} score in {folder.name}", exact=True)
    return Outcome(
        f"steps, tokens and scores in {len(evidence.saved)} checkpoints are those of the metrics", tuple(wrong)
    )


def _shapes(evidence: Evidence) -> Iterator[Difference]:
    """Whether the newest checkpoint's weights are those of the config's model."""
    for folder in evidence.saved[-1:]:
        model = evidence.config.model
        try:
            with torch.device("meta"):
                network = NETWORKS[model.architecture](model, model.vocab_size or 1)
            shapes = {name: parameter.shape for name, parameter in network.named_parameters()}
            tensors.check_shapes(folder / checkpoint.WEIGHTS, shapes)
        except (InputError, ValueError, RuntimeError) as error:
            yield Difference(f"weights of {folder.name}", str(error), "those of the config's model")


def lineage(evidence: Evidence) -> Outcome:
    """The first weights are those of the seed, or those that run.json says they are, by their SHA-256."""
    asked, origin = evidence.config.train.init_from, evidence.origin
    if (asked is None) != (origin is None):
        found = Difference("`from` in run.json", None if origin is None else origin.shown, asked)
        return Outcome("", (found,))
    if origin is None:
        kept, wrong = _first(evidence)
        return Outcome(f"weights of its own seed{kept}", wrong)
    wrong = (*_asked(origin, str(asked)), *_of_parent(evidence, origin))
    kept, first = _first(evidence)
    chain = drawn(origin, evidence.reader.name)
    said = f"weights of {origin.shown}, SHA-256 {origin.sha256[:12]}…, and its tokenizer{kept}: {chain}"
    return Outcome(said, (*wrong, *first))


def _asked(origin: Origin, asked: str) -> tuple[Difference, ...]:
    try:
        _, which = split_init_from(asked)
    except InputError as error:
        return (Difference("train.init_from in config.toml", asked, str(error)),)
    if which in (origin.checkpoint, str(origin.step)):
        return ()
    return (Difference("checkpoint in train.init_from", which, f"{origin.checkpoint} in run.json"),)


def _of_parent(evidence: Evidence, origin: Origin) -> tuple[Difference, ...]:
    """Check that the other run has these weights, this tokenizer and this origin.

    Raises:
        Unknown: it is not at hand, or what is there is another run.
    """
    parent = evidence.parent
    now = parent.origin
    if now.sha256 != origin.sha256:
        if now.id != origin.id:
            raise Unknown(f"run '{parent.name}' is not the one that it started from, but another of that name")
        return (Difference(f"SHA-256 of the weights of {origin.shown}", origin.sha256, now.sha256),)
    own = read_tokenizer(evidence.reader.path / checkpoint.TOKENIZER)
    differs = difference(own, parent.tokenizer)
    found = [Difference(f"tokenizer, taken over from '{parent.name}'", differs, "the same")] if differs else []
    if now.id == origin.id and now.before != origin.before:
        said, there = (o.shown if o is not None else None for o in (origin.before, now.before))
        found.append(Difference(f"what '{parent.name}' started from", said, there))
    return tuple(found)


def _first(evidence: Evidence) -> tuple[str, tuple[Difference, ...]]:
    """Check the checkpoint of step 0, where it is kept; return a note and what differs."""
    folder = evidence.folder_of(0)
    if folder is None or not evidence.exact:
        return "", ()
    differs = _other_weights(evidence, folder)
    return "; the checkpoint of step 0 has them", tuple(
        Difference(f"'{name}' at step 0", "other values", "those it started from") for name in differs
    )


def _other_weights(evidence: Evidence, folder: Path) -> list[str]:
    """Weights of the first checkpoint that are not those of a model made anew."""
    saved = tensors.load_tensors(folder / checkpoint.WEIGHTS)
    with evidence.process():
        made = checkpoint.weights_of(evidence.fresh())
    return [name for name, value in made.items() if name not in saved or not value.equal(saved[name])]
