"""The claim that a run's first weights are what it says: of its own seed, or of the checkpoint that it names."""

from pathlib import Path

from engine.data.tokenizers import difference, read_tokenizer
from engine.errors import InputError
from engine.runs.lineage import drawn, split_init_from
from engine.runs.records import Origin
from engine.training import checkpoint, tensors
from engine.verification.evidence import Evidence
from engine.verification.finding import Difference, Outcome, Unknown


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
    """Whether config.toml names the checkpoint that run.json does."""
    try:
        _, which = split_init_from(asked)
    except InputError as error:
        return (Difference("train.init_from in config.toml", asked, str(error)),)
    if which in (origin.checkpoint, str(origin.step)):
        return ()
    return (Difference("checkpoint in train.init_from", which, f"{origin.checkpoint} in run.json"),)


def _of_parent(evidence: Evidence, origin: Origin) -> tuple[Difference, ...]:
    """Whether the other run has these weights and this tokenizer, and what it started from itself.

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
    """Whether the checkpoint of step 0, where it is kept, has them: in words, and what differs."""
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
