"""A run that starts from another run's checkpoint: its weights and its tokenizer; optimizer and step begin anew.

Weights are taken over by name and shape. What the vocabulary numbers (embeddings, the head) goes by the name of the
token: special tokens are numbered after the text's, and another objective has others. What is new keeps the initial
weights of the run's own seed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine import capabilities
from engine.config.keys import diff
from engine.config.schema import RunConfig
from engine.data.tokenizers import AnyTokenizer, PairTokenizer, described, read_tokenizer
from engine.errors import InputError
from engine.evaluation.verdict import BROKEN, DIVERGED, IMPLAUSIBLE, INERT, LEAK, NO_ORDER, NOT_LEARNING
from engine.lints import Lint
from engine.model.transformer import Network
from engine.runs.files import read_json
from engine.runs.lineage import INIT_FROM, found_again, located, origin_of
from engine.runs.reader import RunReader
from engine.runs.records import Origin
from engine.training import checkpoint, tensors

Shape = tuple[int, ...]
SHOWN = 4  # weights that do not fit, named one by one
# Parameters whose rows are tokens; those of a source that has a vocabulary of its own.
TOKEN_ROWS, SOURCE_ROWS = ("token_embedding.weight", "head.weight", "head.bias"), "source_embedding.weight"
# Settings of the model that may differ without a word: they act on training only, or on what is drawn at the start.
HARMLESS = (
    *("dropout", "attention_dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout"),
    *("init", "init_std", "embedding_std", "position_init", "vocab_size", "source_vocab_size"),
)
POSITION = "model.position"
OF_A_SCHEME = tuple(
    f"model.{name}" for name in ("rope_base", "rope_pairing", "relative_max_distance", "t5_buckets", "t5_max_distance")
)
PLACES, TABLE = {"positions", "scheme"}, "positions.table.weight"  # in the names of a scheme's parameters
LENGTHS = ("model.context_length", "model.source_length")
# How the text was read; of byte pairs their number too.
READ_BY = ("tokenizer", "bpe_size", "shared_vocabulary")
SERIOUS = (
    LEAK,
    BROKEN,
    NO_ORDER,
    INERT,
    IMPLAUSIBLE,
    DIVERGED,
    NOT_LEARNING,
)  # badges that the next run should know about


@dataclass(frozen=True)
class Parent:
    """The run that another one starts from.

    Args:
        reader: of the run.
        folder: the checkpoint that is taken.
        origin: the entry for the new run's run.json.
        tokenizer: of the checkpoint.
        said_as: what `train.init_from` must say to mean the same wherever one stands.
    """

    reader: RunReader
    folder: Path
    origin: Origin
    tokenizer: AnyTokenizer
    said_as: str

    @property
    def name(self) -> str:
        """Of the run."""
        return self.reader.name

    @property
    def config(self) -> RunConfig:
        """Of the run."""
        return self.reader.config


def find_parent(config: RunConfig, runs_dir: Path) -> Parent | None:
    """The run that a config starts from, its checkpoint found intact; None where it starts from its own seed.

    Args:
        config: of the new run.
        runs_dir: where names of runs are looked for.

    Raises:
        InputError: no such run or checkpoint, a damaged one, or one that reads text otherwise.
    """
    if config.train.init_from is None:
        return None
    reader, which = located(config.train.init_from, runs_dir)
    try:
        capabilities.require(reader.config, str(reader.path / "config.toml"))
        folder = checkpoint.find(reader, which)
        wrong = checkpoint.damage(folder)
        if wrong is not None:
            raise InputError(f"{folder}: {wrong}; `{reader.command('doctor')}` shows which checkpoints are intact")
        tokenizer = read_tokenizer(folder / checkpoint.TOKENIZER)
    except InputError as error:
        raise InputError(f"{_said(config)}: {error}") from None
    manifest = read_json(folder / checkpoint.MANIFEST)
    step, sha256 = int(manifest["step"]), str(manifest["sha256"][checkpoint.WEIGHTS])
    settled = which if reader.state == "finished" or which == checkpoint.AVERAGE else str(step)  # its best may move
    said_as = found_again(reader, settled, runs_dir)
    parent = Parent(reader, folder, origin_of(reader, which, step, sha256), tokenizer, said_as)
    require_same_reading(config, parent.config, parent.name, tokenizer)
    return parent


def _said(config: RunConfig) -> str:
    return f"{INIT_FROM} = '{str(config.train.init_from)[:120]}'"


def require_same_reading(config: RunConfig, before: RunConfig, name: str, tokenizer: AnyTokenizer) -> None:
    """The tokenizer is taken over, so a config must not ask for another kind of it.

    Args:
        config: of the new run.
        before: of the run it starts from.
        name: of that run.
        tokenizer: of that run.

    Raises:
        InputError: it does; says what would be right.
    """
    own, others = config.data, before.data
    for key in READ_BY:
        if key == "bpe_size" and own.tokenizer != "bpe":
            continue
        asked, was = getattr(own, key), getattr(others, key)
        if asked != was:
            value = str(was).lower() if isinstance(was, bool) else was
            raise InputError(
                f"{_said(config)}: data.{key} = {str(asked).lower()}, and '{name}' was trained with "
                f"{value} ({described(tokenizer)}): its weights mean its own tokens; --set data.{key}={value}"
            )


@dataclass(frozen=True)
class Inherited:
    """What became of another run's weights.

    Args:
        said: one sentence, for an event.
        lints: what is not as it was when they were trained.
    """

    said: str
    lints: tuple[Lint, ...] = ()


def inherit(model: Network, config: RunConfig, parent: Parent) -> Inherited:
    """Put a checkpoint's weights into a new model, and say what was not taken over.

    Args:
        model: with its initial weights; they stay where the other run has none.
        config: of the new run.
        parent: where the weights are.

    Raises:
        InputError: another shape; names the weights one by one and the settings that differ. Or not finite.
    """
    path = parent.folder / checkpoint.WEIGHTS
    fit = fitting(config, shapes_of(model), parent.config, tensors.saved_shapes(path), parent.tokenizer)
    taken, values = 0, tensors.load_tensors(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if fit.is_fresh(name):
                continue
            if not torch.isfinite(values[name]).all():
                raise InputError(f"{path}: '{name}' has values that are not numbers; try another checkpoint")
            here, there = fit.rows(name)
            parameter[here] = values[name][there].to(parameter.device)
            taken += values[name][there].numel()
    total = sum(parameter.numel() for parameter in model.parameters())
    said = (
        f"weights and tokenizer of {parent.origin.shown}: {taken:,} of {total:,} numbers, "
        f"{described(parent.tokenizer)}; SHA-256 {parent.origin.sha256[:12]}…{_special(config, parent.config)}"
    )
    return Inherited(said, (*_lints(fit.changed, parent), *fit.lints()))


def shapes_of(model: torch.nn.Module) -> dict[str, Shape]:
    """Of each parameter, shared ones once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def fitting(
    config: RunConfig,
    own: Mapping[str, Shape],
    before: RunConfig,
    saved: Mapping[str, Shape],
    tokenizer: AnyTokenizer,
) -> "Fit":
    """How another run's weights fit into a model.

    Args:
        config: of the new run.
        own: shapes of its parameters.
        before: of the run it starts from.
        saved: shapes of that one's.
        tokenizer: of both.

    Raises:
        InputError: they do not; names them one by one, and the settings that differ.
    """
    changed = _changed(config, before)
    rows, learned = _token_rows(config, before, tokenizer), config.model.position == "learned"
    fit = Fit(own, saved, changed, rows, learned=learned)
    misfits = list(fit.misfits())
    if misfits:
        more = f"; and {len(misfits) - SHOWN:,} more" if len(misfits) > SHOWN else ""
        differs = ", ".join(f"{key} differs ({was} there, {now} here)" for key, (was, now) in changed.items())
        raise InputError(
            f"{_said(config)}: its weights do not fit: {'; '.join(misfits[:SHOWN])}{more}: {differs or 'damaged'}"
        )
    return fit


@dataclass(frozen=True)
class Fit:
    """How the shapes of saved weights go with those of a model.

    Args:
        own: of the model's parameters.
        saved: of the saved ones.
        changed: settings of the model that differ, (there, here).
        tokens: parameters whose rows are tokens: the rows here, and there, of the tokens they share.
        learned: a table of positions has a row for each place, and not for each distance.
    """

    own: Mapping[str, Shape]
    saved: Mapping[str, Shape]
    changed: Mapping[str, tuple[Any, Any]]
    tokens: Mapping[str, tuple[list[int], list[int]]]
    learned: bool

    def is_fresh(self, name: str) -> bool:
        """Whether a parameter keeps its initial weights: that of another position scheme."""
        return POSITION in self.changed and not PLACES.isdisjoint(name.split("."))

    def misfits(self) -> Iterator[str]:
        """Each weight that the two do not share, in words."""
        for name in dict.fromkeys([*self.own, *self.saved]):
            if self.is_fresh(name):
                continue
            own, saved = self.own.get(name), self.saved.get(name)
            if own is None or saved is None:
                yield f"{name}: is not there, must be {own}" if own else f"{name}: is {saved}, must not be there"
            elif own != saved and not (own[1:] == saved[1:] and (name in self.tokens or self._longer(name))):
                cut = self.learned and name.endswith(TABLE) and own[1:] == saved[1:]
                yield f"{name}: is {saved}, must be {own}" + (" (a table of positions is not cut)" if cut else "")

    def rows(self, name: str) -> tuple[list[int] | slice, list[int] | slice]:
        """Which rows of a parameter are taken over: here, and there."""
        return self.tokens.get(name) or (slice(self.saved[name][0]), slice(None))

    def lints(self) -> Iterator[Lint]:
        """What of the positions the saved weights have not."""
        if POSITION in self.changed:
            was, now = self.changed[POSITION]
            begins = "; what it learns begins afresh" if any(map(self.is_fresh, self.own)) else ""
            yield Lint(INIT_FROM, f"{POSITION} is '{now}', and the weights were trained with '{was}'{begins}")
        for name, shape in self.own.items():
            if not self.is_fresh(name) and self._longer(name):
                rows = f"rows {self.saved[name][0]:,} to {shape[0] - 1:,} of the table of positions"
                yield Lint(INIT_FROM, f"{name}: {rows} begin afresh")

    def _longer(self, name: str) -> bool:
        """Whether it is a table of more places than there are rows for."""
        return self.learned and name.endswith(TABLE) and self.own[name][0] > self.saved[name][0]


def _changed(config: RunConfig, before: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Settings of the model that are not what the weights were trained with: (there, here)."""
    found = diff(before, config)
    names = {key: key.removeprefix("model.") for key in found if key.startswith("model.")}
    return {key: found[key] for key, name in names.items() if name not in HARMLESS}


def _token_rows(
    config: RunConfig, before: RunConfig, tokenizer: AnyTokenizer
) -> dict[str, tuple[list[int], list[int]]]:
    """Rows of the tokens that both have, by parameter: the text's are numbered alike, special ones go by name."""
    rows = {}
    sizes = dict.fromkeys(TOKEN_ROWS, tokenizer.vocab_size)
    if isinstance(tokenizer, PairTokenizer):  # else a source's rows are numbers below a limit
        sizes[SOURCE_ROWS] = tokenizer.source_vocab_size
    for name, text in sizes.items():
        here, there = ({token: text + i for i, token in enumerate(c.special_tokens)} for c in (config, before))
        both = [token for token in here if token in there]
        rows[name] = [*range(text), *(here[t] for t in both)], [*range(text), *(there[t] for t in both)]
    return rows


def _special(config: RunConfig, before: RunConfig) -> str:
    """What became of the objectives' own tokens."""
    here, there = config.special_tokens, before.special_tokens
    parts = (
        ("taken over", [token for token in here if token in there]),
        ("new", [token for token in here if token not in there]),
        ("left out", [token for token in there if token not in here]),
    )
    said = ", ".join(f"{' '.join(tokens)} {what}" for what, tokens in parts if tokens)
    return f"; special tokens: {said}" if said else ""


def _lints(changed: Mapping[str, tuple[Any, Any]], parent: Parent) -> Iterator[Lint]:
    """What fits and yet is not what the weights were trained for, and what is wrong with the other run."""
    name = parent.name
    for key, (was, now) in changed.items():
        if key in LENGTHS:
            if was is not None and now is not None and now > was:
                yield Lint(INIT_FROM, f"{key} is {now} and was {was} in '{name}': later places are new to its weights")
        elif key != POSITION and (POSITION not in changed or key not in OF_A_SCHEME):
            yield Lint(INIT_FROM, f"{key} is {now} and was {was} in '{name}': its weights were trained for the other")
    if parent.reader.state != "finished":
        state, step = parent.reader.state, parent.origin.step
        yield Lint(INIT_FROM, f"'{name}' is {state}, not finished: its step {step:,} is taken")
    for badge in parent.reader.badges:
        if badge in SERIOUS:
            yield Lint(INIT_FROM, f"parent '{name}' is marked {badge}: what it has learned may be worth nothing")
