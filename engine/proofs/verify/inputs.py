"""Claims about a run's inputs and checkpoints: settings, tokenizer, data, and checkpoint contents."""

import re

from engine.base.errors import InputError
from engine.base.language import MESSAGES, Message, tr, trn
from engine.config.keys import changed_settings, fixed_settings
from engine.data.tokenizers import difference, read_tokenizer
from engine.model import size
from engine.model.size import BatchShape, memory_bytes
from engine.model.transformer import NETWORKS
from engine.proofs.verify.comparison import Difference, Outcome, Uncheckable, as_recorded, differences
from engine.proofs.verify.evidence import Evidence
from engine.runs.files import read_json
from engine.runs.lineage import chain_text, split_init_from
from engine.training import checkpoint
from engine.training.checkpoint import TrainerState

ELSEWHERE = frozenset(("schema", "source", "notes", MESSAGES))  # of data.json: the corpus's location, not its content
WORDED = re.compile(r"probes\.\d+\.description ")  # of data.json: another version may word it differently
ALWAYS = ("sha256", "vocabulary", "tokenizer_sha256", "splits")


def config(evidence: Evidence) -> Outcome:
    """config.toml is the config of the model that model.json describes and the checkpoints hold."""
    try:
        asked = evidence.config
    except InputError as error:
        return "", (Difference("config.toml", fault=str(error)),)
    recorded = evidence.reader.raw("model")
    vocabulary = asked.model.vocab_size or 0
    built = {"architecture": NETWORKS[asked.model.architecture].__name__, "fp32_matmul": asked.train.fp32_matmul}
    parameters = size.parameter_count(asked.model, vocabulary)
    measured = "largest_batch" in recorded and "memory_bytes" not in evidence.redefined_fields
    largest = BatchShape(**recorded["largest_batch"]) if measured else None
    computed = {
        "parameters": parameters,
        "components": size.parameters(asked.model, vocabulary),
        "built": built,
        "flops_per_token": size.training_flops_per_token(asked.model, vocabulary, BatchShape.from_config(asked).rows),
        "memory_bytes": memory_bytes(asked, vocabulary, largest),
    }
    found = {key: value for key, value in computed.items() if key not in evidence.redefined_fields}
    of_built = {key: value for key, value in recorded.get("built", {}).items() if key in built}
    kept = {key: value for key, value in recorded.items() if key in found}
    wrong = [*differences(kept | {"built": of_built}, found, tr("in model.json"), exact=True, skip=frozenset())]
    wrong += [Difference(tr("{key} in model.json", key=key), None, found[key]) for key in found if key not in recorded]
    said = {"preset": evidence.reader.raw("run").get("preset"), "steps": evidence.status.steps}
    here = {"preset": asked.preset, "steps": asked.train.steps}
    changed = [(key, (said[key], here[key])) for key in said if said[key] != here[key]]
    for folder in evidence.intact_checkpoints[-1:]:
        changed += changed_settings(checkpoint.settings_of(folder) or fixed_settings(asked), asked).items()
    for key, (was, now) in changed:
        wrong.append(Difference(tr("{key} in config.toml", key=key), now, was, expected=True))
    for folder in evidence.intact_checkpoints[-1:]:
        try:
            checkpoint.check_shapes(folder / checkpoint.WEIGHTS, checkpoint.parameter_shapes(asked.model, 1))
        except (InputError, ValueError, RuntimeError) as error:
            wrong.append(Difference(tr("weights of {checkpoint}", checkpoint=folder.name), fault=str(error)))
    for attempt in evidence.attempts:
        threads = asked.train.threads or 1
        if attempt.threads != threads:
            wrong.append(Difference(tr("threads in environment.json"), attempt.threads, threads, expected=True))
    older = evidence.redefinition_note("flops_per_token", "memory_bytes")
    text = tr("{parameters:,} parameters, as built; checkpoint shapes match{older}", parameters=parameters, older=older)
    return text, wrong


def tokenizer(evidence: Evidence) -> Outcome:
    """The run's tokenizer has the SHA-256 of data.json, and so has every checkpoint's."""
    noted = evidence.reader.raw("data").get("tokenizer_sha256")
    paths = [evidence.reader.path / checkpoint.TOKENIZER]
    paths += [folder / checkpoint.TOKENIZER for folder in checkpoint.step_folders(evidence.reader.path)]
    wrong = []
    for path in paths:
        where = path.relative_to(evidence.reader.path)
        try:
            found = read_tokenizer(path).sha256
        except InputError as error:
            wrong.append(Difference(str(where), fault=str(error)))
            continue
        if found != noted:
            wrong.append(Difference(tr("SHA-256 of {path}", path=where), noted, found))
    return trn(
        "SHA-256 {noted}…, in the run and in {n} checkpoint",
        "SHA-256 {noted}…, in the run and in {n} checkpoints",
        len(paths) - 1,
        noted=str(noted)[:12],
    ), wrong


def data(evidence: Evidence) -> Outcome:
    """The corpus, made or read again, has the hashes, sizes and floors of data.json."""
    with evidence.process_settings():
        found = as_recorded(evidence.task.facts(evidence.config).dump())
    recorded = evidence.reader.raw("data")
    wrong = [Difference(tr("{key} in data.json", key=key), None, found[key]) for key in ALWAYS if key not in recorded]
    skip = ELSEWHERE | {"sha256"} | evidence.redefined_fields
    facts = differences(recorded, found, tr("in data.json"), exact=evidence.exact, skip=skip)
    wrong += [one for one in facts if not WORDED.match(one.what)]
    for split in sorted(found["sha256"].keys() | recorded.get("sha256", {}).keys()):
        said, now = recorded.get("sha256", {}).get(split), found["sha256"].get(split)
        if said != now:
            wrong.append(Difference(tr("SHA-256 of the {split} split", split=split), said, now))
    splits = ", ".join(f"{name} {found['sha256'][name][:12]}…" for name in found["sha256"])
    return f"{found['corpus']}: {splits}", wrong


def checkpoints(evidence: Evidence) -> Outcome:
    """Every checkpoint's files have the SHA-256 they were written with, and its tensors can be read."""
    folders = checkpoint.step_folders(evidence.reader.path)
    averages = [evidence.reader.path / "checkpoints" / name for name in checkpoint.AVERAGES]
    folders += [folder for folder in averages if folder.is_dir()]
    if not folders:
        raise Uncheckable(Message("the run has no checkpoint"))
    wrong = []
    for folder in folders:
        found = checkpoint.find_damage(folder)
        try:
            for path in sorted(folder.glob("*.safetensors")) if found is None else ():
                checkpoint.saved_shapes(path)
        except InputError as error:
            found = str(error)
        if found is not None:
            wrong.append(Difference(folder.name, fault=found))
    return trn(
        "{n} checkpoint; every file still has the SHA-256 it was written with",
        "{n} checkpoints; every file still has the SHA-256 it was written with",
        len(folders),
    ), wrong


def states(evidence: Evidence) -> Outcome:
    """Each checkpoint agrees with the metrics about its step."""
    if not evidence.intact_checkpoints:
        raise Uncheckable(Message("the run has no intact checkpoint"))
    wrong: list[Difference] = []
    tokens = {record["step"]: record.get("tokens") for record in evidence.train}
    scored = {record["step"]: record for record in evidence.validation}
    for folder in evidence.intact_checkpoints:
        state = TrainerState.from_json(read_json(folder / checkpoint.STATE))
        if checkpoint.folder_name(state.step) != folder.name:
            named = int(folder.name.removeprefix("step-"))
            what = tr("step of {checkpoint}", checkpoint=folder.name)
            wrong.append(Difference(what, state.step, named, expected=True))
        if state.step in tokens and tokens[state.step] != state.tokens:
            wrong.append(Difference(tr("tokens at step {step}", step=state.step), tokens[state.step], state.tokens))
        for name in ("best", "last"):
            said = getattr(state, name)
            if said is not None:
                there = scored.get(said.step, {})
                where = tr("of the {name} score in {name2}", name=name, name2=folder.name)
                wrong += differences(there or {"step": None}, said.dump(), where, exact=True)
    return trn(
        "steps, tokens and scores in {n} checkpoint match the metrics",
        "steps, tokens and scores in {n} checkpoints match the metrics",
        len(evidence.intact_checkpoints),
    ), wrong


def lineage(evidence: Evidence) -> Outcome:
    """The first weights are those of the seed, or those that run.json says they are, by their SHA-256."""
    asked, origin = evidence.config.train.init_from, evidence.origin
    if (asked is None) != (origin is None):
        found = Difference(tr("`from` in run.json"), None if origin is None else origin.label, asked, expected=True)
        return "", (found,)
    said, wrong = tr("weights drawn from its own seed"), []
    if origin is not None:
        try:
            which = split_init_from(str(asked))[1]
            if which not in (origin.checkpoint, str(origin.step)):
                there = tr("{checkpoint} in run.json", checkpoint=origin.checkpoint)
                wrong.append(Difference(tr("checkpoint in train.init_from"), which, there))
        except InputError as error:
            wrong.append(Difference(tr("train.init_from in config.toml"), fault=str(error)))
        parent = evidence.parent
        now = parent.origin
        if now.sha256 != origin.sha256:
            if now.id != origin.id:
                text = tr(
                    "run '{name}' is not the parent, only another run with the same name", name=parent.parent_run_name
                )
                raise Uncheckable(text)
            text = tr("SHA-256 of the weights of {origin}", origin=origin.label)
            wrong.append(Difference(text, origin.sha256, now.sha256))
        else:
            own = read_tokenizer(evidence.reader.path / checkpoint.TOKENIZER)
            if differs := difference(own, parent.tokenizer):
                wrong.append(
                    Difference(tr("tokenizer taken from '{parent}'", parent=parent.parent_run_name), fault=differs)
                )
            if now.id == origin.id and now.before != origin.before:
                then, later = (one.label if one is not None else None for one in (origin.before, now.before))
                wrong.append(Difference(tr("what '{parent}' started from", parent=parent.parent_run_name), then, later))
        said = tr(
            "weights of {shown}, SHA-256 {sha256}…, and its tokenizer", shown=origin.label, sha256=origin.sha256[:12]
        )
    folder = evidence.folder_of(0)
    if folder is not None and evidence.exact:
        saved = checkpoint.load_tensors(folder / checkpoint.WEIGHTS)
        with evidence.process_settings():
            made = checkpoint.weights_of(evidence.initial_network())
        others = [name for name, value in made.items() if name not in saved or not value.equal(saved[name])]
        fault = tr("not the initial values")
        wrong += [Difference(tr("'{name}' at step 0", name=name), fault=fault) for name in others]
        said += tr("; the checkpoint at step 0 has them")
    return said if origin is None else f"{said}: {chain_text(origin, evidence.reader.name)}", wrong
