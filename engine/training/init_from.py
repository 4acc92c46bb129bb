"""Start a run from another run's checkpoint: its weights and tokenizer, with a fresh optimizer and step count.

Weights are copied by name and shape. Rows indexed by token (embeddings, the head) are matched by the token's name:
special tokens are numbered after the text's, and differ between objectives. The rest keeps the initial weights of the
run's own seed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine import capabilities
from engine.base.errors import InputError, comma_separated
from engine.base.language import Message, tr
from engine.config.keys import diff
from engine.config.lints import Lint
from engine.config.model import PARTS
from engine.config.schema import RunConfig
from engine.config.schemes import POSITIONS
from engine.data.tokenizers import AnyTokenizer, describe, difference, read_tokenizer
from engine.model.transformer import Network
from engine.runs.files import read_json
from engine.runs.lineage import INIT_FROM, child_origin, find_init_run, init_from_setting_text, portable_init_from
from engine.runs.reader import RunReader
from engine.runs.records import Origin
from engine.runs.verdict import BROKEN, DIVERGED, IMPLAUSIBLE, INERT, LEAK, NO_ORDER, NOT_LEARNING
from engine.tasks.task import Task, task_of_run
from engine.training import checkpoint
from engine.training.checkpoint import Shape
from engine.training.self_check import DROPOUTS

MAX_SHOWN = 4  # weights that do not fit, each named
MUCH_SEEN = 0.01  # share of the held-out text that the other run was trained on
# Parameters whose rows are tokens; those of a source that has a vocabulary of its own.
TOKEN_ROWS, SOURCE_ROWS = ("token_embedding.weight", "head.weight", "head.bias"), "source_embedding.weight"
# Model settings that may differ silently: they affect only training, or the initial weights.
HARMLESS = (
    *(*DROPOUTS, "init", "init_std", "embedding_std", "position_init"),
    *(name for name, row in PARTS.items() if row.acts_when == "at the start"),
    *("vocab_size", "source_vocab_size", "classes"),
)
POSITION = "model.position"
SCHEME_SETTINGS = tuple(
    f"model.{name}" for name in ("rope_base", "rope_pairing", "relative_max_distance", "t5_buckets", "t5_max_distance")
)
# In the names of a scheme's parameters.
SCHEME_MODULES, POSITION_TABLE = {"positions", "scheme"}, "positions.table.weight"
LENGTHS = ("model.context_length", "model.source_length")
TOKENIZER_SETTINGS = ("tokenizer", "bpe_size", "words_size", "shared_vocabulary")  # in `data`: what the tokens are
RowMapping = tuple[list[int] | slice, list[int] | slice]  # of a parameter: in the new model, in the saved one
Report = tuple[list[str], list[Lint]]  # notes on a new run's initial weights: sentences for events, and lints
# Badges the next run should know about.
SERIOUS_BADGES = (LEAK, BROKEN, NO_ORDER, INERT, IMPLAUSIBLE, DIVERGED, NOT_LEARNING)


@dataclass(frozen=True)
class ParentCheckpoint:
    """The run that another starts from, and its checkpoint to copy."""

    reader: RunReader
    folder: Path
    origin: Origin
    tokenizer: AnyTokenizer
    portable: str  # `train.init_from`, valid from any folder

    @property
    def parent_run_name(self) -> str:
        return self.reader.name

    @classmethod
    def find(cls, config: RunConfig, runs_dir: Path) -> "ParentCheckpoint | None":
        """Return the run that a config starts from, if any; `InputError`: it, or an intact checkpoint, is missing."""
        if config.train.init_from is None:
            return None
        reader, which = find_init_run(config.train.init_from, runs_dir)
        try:
            capabilities.require_valid(reader.config, str(reader.path / "config.toml"))
            folder = checkpoint.find_intact(reader, which)
            tokenizer = read_tokenizer(folder / checkpoint.TOKENIZER)
        except InputError as error:
            raise InputError(f"{init_from_setting_text(config.train.init_from)}: {error}") from None
        require_same_tokenizer(config, reader.config, reader.name, tokenizer)
        manifest = read_json(folder / checkpoint.MANIFEST)
        step, sha256 = int(manifest["step"]), str(manifest["sha256"][checkpoint.WEIGHTS])
        settled = reader.state == "finished" or which == checkpoint.AVERAGE  # else its best may move
        portable = portable_init_from(reader, which if settled else str(step), runs_dir)
        return cls(reader, folder, child_origin(reader, which, step, sha256), tokenizer, portable)

    def initialize(self, model: Network, config: RunConfig, task: Task, data_dir: Path | None) -> Report:
        """Copy the weights into a model, and compare the data that the two runs are trained on."""
        (said, lints), name = self.copy_weights(model, config), self.parent_run_name
        own = task.corpus_only_tokenizer()
        if own is not None and (differs := difference(self.tokenizer, own)):
            said.append(Message("a tokenizer made from this text alone would differ: {difference}", difference=differs))
        mild = [badge for badge in self.reader.badges if badge not in SERIOUS_BADGES]
        said += [Message("parent '{name}' is marked {badge}", name=name, badge=badge) for badge in mild]
        alike = self.reader.config.task.task == config.task.task
        if alike and self.reader.data.sha256 != task.corpus.sha256:  # the same text has the same splits
            try:
                seen = task.overlap_with(task_of_run(self.reader, data_dir))
            except InputError:
                seen = None  # its text is not on this machine, or no longer
            share = 0.0
            if seen is not None:
                share = max(seen.score_voiding_share, seen.repeated_line_share if seen.repeats_many_lines else 0.0)
            if share >= MUCH_SEEN:
                text = Message(
                    "parent '{name}' was trained on {share:.0%} of the data held out here: scores will look better "
                    "than they are",
                    name=name,
                    share=share,
                )
                lints.append(Lint(INIT_FROM, text))
        return said, lints

    def copy_weights(self, model: Network, config: RunConfig) -> Report:
        """Copy the checkpoint's weights into a new model, and say what was not copied. Raise `InputError` for another
        shape (names the weights one by one and the settings that differ), or weights that are not finite.
        """
        path, before = self.folder / checkpoint.WEIGHTS, self.reader.config
        saved = checkpoint.saved_shapes(path)
        rows, lints = match_shapes(config, checkpoint.shapes_of(model), before, saved, self.tokenizer)
        copied, values = 0, checkpoint.load_tensors(path)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name not in rows:
                    continue
                if not torch.isfinite(values[name]).all():
                    text = Message(
                        "{path}: '{name}' contains NaN or infinite values; try another checkpoint", path=path, name=name
                    )
                    raise InputError(text)
                here, there = rows[name]
                parameter[here] = values[name][there].to(parameter.device)
                copied += values[name][there].numel()
        total = sum(parameter.numel() for parameter in model.parameters())
        of = self.origin
        shown = Message("{name}@{checkpoint} (step {step:,})", name=of.name, checkpoint=of.checkpoint, step=of.step)
        said = Message(
            "weights and tokenizer of {shown}: {copied:,} of {total:,} "
            "parameters, {described}; SHA-256 {sha256}…{special_tokens}",
            shown=shown,
            copied=copied,
            total=total,
            described=describe(self.tokenizer),
            sha256=self.origin.sha256[:12],
            special_tokens=_special_tokens(config, before),
        )
        return [said], [*self._lints(config), *lints]

    def _lints(self, config: RunConfig) -> Iterator[Lint]:
        """Yield settings that fit but differ from the weights' training, and problems of the other run."""
        name, state, changed = self.parent_run_name, self.reader.state, _changed_settings(config, self.reader.config)
        for key, (was, now) in changed.items():
            values = {"key": key, "now": now, "was": was, "name": name}
            if key in LENGTHS:
                if was is not None and now is not None and now > was:
                    text = Message(
                        "{key} is {now}, but was {was} in '{name}': its weights have never seen the later positions",
                        **values,
                    )
                    yield Lint(INIT_FROM, text)
            elif key != POSITION and (POSITION not in changed or key not in SCHEME_SETTINGS):
                text = Message("{key} is {now}, but the weights of '{name}' were trained with {was}", **values)
                yield Lint(INIT_FROM, text)
        if state != "finished":
            text = Message(
                "'{name}' has not finished ({state}): starting from its step {step:,}",
                name=name,
                state=state,
                step=self.origin.step,
            )
            yield Lint(INIT_FROM, text)
        for badge in self.reader.badges:
            if badge in SERIOUS_BADGES:
                text = Message(
                    "parent '{name}' is marked {badge}: what it learned may be worthless", name=name, badge=badge
                )
                yield Lint(INIT_FROM, text)


def require_same_tokenizer(config: RunConfig, before: RunConfig, name: str, tokenizer: AnyTokenizer) -> None:
    """Refuse a config with a different tokenizer from `before`, the config of the run it starts from."""
    for key in TOKENIZER_SETTINGS:
        asked, was = getattr(config.data, key), getattr(before.data, key)
        if asked != was and key in (f"{config.data.tokenizer}_size", "tokenizer", "shared_vocabulary"):
            value = str(was).lower() if isinstance(was, bool) else was
            text = Message(
                "{setting}: data.{key} = {asked}, but '{name}' was trained with {value} ({described}), and "
                "its weights fit only its own tokens; --set data.{key}={value}",
                setting=init_from_setting_text(config.train.init_from),
                key=key,
                asked=str(asked).lower(),
                name=name,
                value=value,
                described=tr(describe(tokenizer)),
            )
            raise InputError(text)


def match_shapes(
    config: RunConfig, own: Mapping[str, Shape], before: RunConfig, saved: Mapping[str, Shape], tokenizer: AnyTokenizer
) -> tuple[dict[str, RowMapping], list[Lint]]:
    """Match the shapes of the saved weights of another run, `before` its config, with `own`, those of a new model.

    Return the rows to copy, by parameter, leaving out another position scheme's, and lints on positions that the saved
    weights lack. Raise `InputError` if any does not fit, naming each of them and the settings that differ.
    """
    changed, tokens = _changed_settings(config, before), _token_rows(config, before, tokenizer)
    names = dict.fromkeys([*own, *saved])
    learned = POSITIONS[config.model.position].bounded  # a position table has a row per place, not per distance
    fresh = {name for name in names if POSITION in changed and not SCHEME_MODULES.isdisjoint(name.split("."))}
    rows: dict[str, RowMapping] = {}
    lints, misfits = list[Lint](), list[str]()
    if config.model.classes != before.model.classes:
        fresh |= {name for name in names if name.startswith("head.")}
        lints.append(Lint(INIT_FROM, Message("the head starts fresh: it predicts something different from before")))
    if POSITION in changed:
        was, now = changed[POSITION]
        begins = "" if fresh.isdisjoint(own) else Message("; its learned weights start fresh")
        text = Message(
            "{key} is '{now}', but the weights were trained with '{was}'{begins}",
            key=POSITION,
            now=now,
            was=was,
            begins=begins,
        )
        lints.append(Lint(INIT_FROM, text))
    for name in (name for name in names if name not in fresh):
        here, there, table = own.get(name), saved.get(name), learned and name.endswith(POSITION_TABLE)
        if here is None:
            misfits.append(tr("{name}: is {there}, should not exist", name=name, there=there))
        elif there is None:
            misfits.append(tr("{name}: is missing, must be {here}", name=name, here=here))
        elif name in tokens and here[1:] == there[1:]:
            rows[name] = tokens[name]
        elif here == there:
            rows[name] = slice(None), slice(None)
        elif table and here[1:] == there[1:] and here[0] > there[0]:
            rows[name] = slice(there[0]), slice(None)
            left = Message(
                "rows {there:,} to {here:,} of the position table start fresh", there=there[0], here=here[0] - 1
            )
            lints.append(Lint(INIT_FROM, Message("{name}: {text}", name=name, text=left)))
        else:
            cut = tr(" (a position table is never truncated)") if table and here[1:] == there[1:] else ""
            misfits.append(tr("{name}: is {there}, must be {here}{cut}", name=name, there=there, here=here, cut=cut))
    if misfits:
        more = tr("; and {n:,} more", n=len(misfits) - MAX_SHOWN) if len(misfits) > MAX_SHOWN else ""
        differs = comma_separated(
            tr("{key} differs ({was} there, {now} here)", key=key, was=was, now=now)
            for key, (was, now) in changed.items()
        )
        shown = "; ".join(misfits[:MAX_SHOWN])
        text = Message(
            "{setting}: its weights do not fit: {shown}{more}: {differs}",
            setting=init_from_setting_text(config.train.init_from),
            shown=shown,
            more=more,
            differs=differs or tr("damaged"),
        )
        raise InputError(text)
    return rows, lints


def _changed_settings(config: RunConfig, before: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the model settings that differ and matter, as (there, here)."""
    found = diff(before, config).items()
    return {key: pair for key, pair in found if key.startswith("model.") and key.removeprefix("model.") not in HARMLESS}


def _token_rows(config: RunConfig, before: RunConfig, tokenizer: AnyTokenizer) -> dict[str, RowMapping]:
    """Rows of the tokens that both have, by parameter: the text's are numbered alike, special ones go by name."""
    rows: dict[str, RowMapping] = {}
    sizes = dict.fromkeys(TOKEN_ROWS, tokenizer.vocab_size)
    if tokenizer.is_pair:  # otherwise a source's ids are the text's, modulo a limit
        sizes[SOURCE_ROWS] = tokenizer.source.vocab_size
    for name, text in sizes.items():
        here, there = ({token: text + i for i, token in enumerate(c.special_tokens)} for c in (config, before))
        both = [token for token in here if token in there]
        rows[name] = [*range(text), *(here[t] for t in both)], [*range(text), *(there[t] for t in both)]
    if config.model.classes is not None:  # the head's rows are classes
        rows = {name: found for name, found in rows.items() if not name.startswith("head.")}
    return rows


def _special_tokens(config: RunConfig, before: RunConfig) -> str:
    here, there = config.special_tokens, before.special_tokens
    parts = (
        (Message("kept"), [token for token in here if token in there]),
        ("new", [token for token in here if token not in there]),
        (Message("left out"), [token for token in there if token not in here]),
    )
    said = ", ".join(f"{' '.join(tokens)} {what}" for what, tokens in parts if tokens)
    return Message("; special tokens: {said}", said=said) if said else ""
