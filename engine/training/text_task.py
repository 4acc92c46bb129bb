"""A run on a text: its tokens, the lines its loss is held against, batches of windows, exact scores, samples."""

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from engine.config.schema import RunConfig
from engine.config.toml import resolved
from engine.data.cache import tokens_of
from engine.data.corpora import REGISTRY, TextCorpus, load_corpus
from engine.data.loader import Examples, training_batches
from engine.data.objectives import make_objective
from engine.data.overlap import Overlap, text_overlap
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, described
from engine.errors import InputError
from engine.evaluation.baselines import bigram_loss, unigram_loss
from engine.evaluation.scorers import TextScorer
from engine.generation.samples import TextSampler
from engine.lints import Lint
from engine.runs.record_version import RECORDS
from engine.training.task import Task, require_known, require_vocabulary

MAX_PROMPT = 32  # characters of the validation text that samples continue, where no prompt is set


@dataclass(frozen=True)
class TextTask:
    """A text corpus with its tokenizer and encoded splits, (n,) whole numbers each.

    Args:
        records: version of the run's records, see `TextScorer`.
    """

    corpus: TextCorpus
    tokenizer: CharacterTokenizer
    tokens: dict[str, torch.Tensor]
    records: int = RECORDS

    @classmethod
    def load(cls, config: RunConfig, data_dir: Path | None, given: AnyTokenizer | None = None) -> "TextTask":
        """Corpus and tokens of a config. The vocabulary is every character of every split, as nanoGPT's is.

        Args:
            config: of the run.
            data_dir: where named corpora are looked for first.
            given: the tokenizer of the run that this one starts from; its vocabulary is used then.

        Raises:
            InputError: no such corpus, bad text, splits too short for the context, or text that is not in the
                vocabulary.
        """
        corpus = load_corpus(config.data, data_dir)
        tokenizer = CharacterTokenizer.of(split.text for split in corpus.splits.values()) if given is None else given
        if not isinstance(tokenizer, CharacterTokenizer):
            raise InputError(
                f"train.init_from: '{config.objective.kind}' reads a text by characters, and that run's tokenizer is "
                f"of kind '{tokenizer.kind}' ({described(tokenizer)}): its weights mean other tokens"
            )
        if given is not None:
            for name, split in corpus.splits.items():
                require_known(tokenizer, split.text, f"corpus {corpus.name}: its {name} split")
        tokens = {
            name: torch.from_numpy(
                tokens_of(len(split.text), corpus.sha256[name], tokenizer.sha256, partial(tokenizer.pieces, split.text))
            )
            for name, split in corpus.splits.items()
        }
        context = config.model.context_length
        for name in ("train", "validation"):
            have = tokens[name].numel() if name in tokens else 0
            shorter_will_do = name == "validation" and config.objective.kind == "next-token"
            needed = 2 if shorter_will_do else config.window_tokens
            if have < needed:
                raise InputError(
                    f"corpus {corpus.name}: its {name} split has {have:,} tokens, fewer than the {needed:,} that a "
                    f"context of {context:,} needs; use a longer text or "
                    f"--set model.context_length={max(1, have // 4)}"
                )
        return cls(corpus, tokenizer, tokens)

    @property
    def name(self) -> str:
        """The corpus's."""
        return self.corpus.name

    def found_again(self, config: RunConfig) -> str:
        """A registered name, or the file's full path."""
        return config.data.corpus if config.data.corpus in REGISTRY else self.corpus.source

    @property
    def sha256(self) -> dict[str, str]:
        """The hash of each split."""
        return self.corpus.sha256

    @property
    def vocab_size(self) -> int:
        """Different characters."""
        return self.tokenizer.vocab_size

    @property
    def train_tokens(self) -> int:
        """Of the training split."""
        return self.tokens["train"].numel()

    @property
    def validation_tokens(self) -> int:
        """Of the validation split."""
        return self.tokens["validation"].numel()

    @cached_property
    def overlap(self) -> Overlap | None:
        """See `Task`."""
        return self.seen_by(self)

    def seen_by(self, trained: Task) -> Overlap | None:
        """See `Task`."""
        if not isinstance(trained, TextTask):
            return None
        return text_overlap([trained.corpus.splits["train"].text], self.corpus.splits["validation"].text, "validation")

    def resolved(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """See `Task`."""
        needed = require_vocabulary(config, self.vocab_size, "characters")
        return resolved(config, where, vocab_size=needed, threads=threads, train_tokens=self.train_tokens)

    def facts(self, config: RunConfig) -> dict[str, Any]:
        """The content of data.json: what the run was trained on, and the lines its loss should be held against.

        The floors are for a text predicted from its past: with a given source or both sides of a gap, less is possible.
        """
        train, held_out = (self.tokens[name].numpy() for name in ("train", "validation"))
        from_its_past = config.objective.kind in ("next-token", "continuation", "shifted")
        floor = self.corpus.splits["validation"].floor_mean if from_its_past else None
        return {
            "corpus": self.corpus.version,
            "source": self.corpus.source,
            "sha256": self.corpus.sha256,
            "splits": {
                name: {"characters": len(split.text), "tokens": self.tokens[name].numel()}
                for name, split in self.corpus.splits.items()
            },
            "vocabulary": self.vocab_size,
            "tokenizer_sha256": self.tokenizer.sha256,
            "overlap": self.overlap and self.overlap.to_json(),
            "floor": None if floor is None else {"nats_per_char": floor[0], "se": floor[1]} | self._reachable(config),
            "plausible": REGISTRY[self.corpus.name].plausible if self.corpus.name in REGISTRY else None,
            "unigram": unigram_loss(train, held_out, self.vocab_size),
            "bigram": bigram_loss(train, held_out, self.vocab_size),
            "probes": [
                {
                    "name": probe.name,
                    "description": probe.description,
                    "n": int(probe.at.size),
                    "chance": probe.chance,
                    "shortcut": probe.shortcut,
                }
                for probe in self.corpus.splits["validation"].probes
            ],
        }

    def _reachable(self, config: RunConfig) -> dict[str, Any]:
        found = self.scorer(config, torch.device("cpu")).reachable
        return {} if found is None else {"reachable": found.facts()}

    def lints(self, config: RunConfig) -> list[Lint]:
        """See `Task`."""
        return []

    def batches(self, config: RunConfig, device: torch.device) -> Examples:
        """Windows of the training split."""
        return training_batches(self.tokens["train"], config, make_objective(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device) -> TextScorer:
        """Of the validation split."""
        return TextScorer(
            config,
            self.corpus.splits["validation"],
            self.tokens["validation"].to(device),
            self.vocab_size,
            self.records,
        )

    def shower(self, config: RunConfig) -> TextSampler:
        """Samples that go on from the config's prompt."""
        return TextSampler(config, self.tokenizer, self._prompt(config))

    def _prompt(self, config: RunConfig) -> str:
        wanted = config.evaluation.sample_prompt
        if wanted:
            self.tokenizer.encode(wanted)  # refused now, not at step 500
            return wanted
        held_out = self.corpus.splits["validation"].text
        if config.objective.kind != "next-token":  # a source, or a text to hide parts of
            return held_out[: min(config.window_tokens, config.model.source_tokens)]
        first = held_out.lstrip("\n")[:MAX_PROMPT]
        return first.split("\n", 1)[0] or first[:1] or self.tokenizer.characters[0]
