"""The text task: batches of windows, exact scores, samples that continue a prompt."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

import torch

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.lints import Lint
from engine.config.measures import MOST_UNKNOWN
from engine.config.schema import RunConfig
from engine.config.toml import resolve_config
from engine.data import sources
from engine.data.baselines import bigram_loss, unigram_loss
from engine.data.corpora import TextCorpus, cached_text_overlap
from engine.data.corpus import END_OF_TEXT
from engine.data.framing import beginnings
from engine.data.known import CORPORA
from engine.data.loader import BatchStream, TextTokens, boundary_token, occurrences, training_batches, wrap_tokens
from engine.data.objectives import make_objective
from engine.data.shards import encodable_parts
from engine.data.splits import Split
from engine.data.tokenizers import (
    AnyTokenizer,
    BpeTokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    TextWordTokenizer,
    Tokenizer,
    describe,
    read_any_tokenizer,
)
from engine.data.tokenizers.bpe import cached_bpe_by_hash
from engine.data.tokenizers.text_words import UNK, has_unknown
from engine.runs.records import DataFacts, ExamplePrompt, Floor, ProbeFacts
from engine.tasks.samples import RowSampler, TextSampler
from engine.tasks.scorers import TextScorer, TextsScorer
from engine.tasks.task import OwnFiles, Task, require_encodable, require_min_vocab_size

HEAD = 1 << 16  # characters of a text that a prompt is taken from
# The kind that each tokenizer of a config makes; a loaded one may be of any.
TOKENIZER_KINDS = {
    "characters": CharacterTokenizer.kind,
    "bpe": BpeTokenizer.kind,
    "words": TextWordTokenizer.kind,
    "bytes": ByteTokenizer.kind,
}
N_PROMPTS = 3  # to try
MAX_PROMPT = 32  # characters of the validation text that samples continue, where no prompt is set


@dataclass(frozen=True)
class TextTask(Task):
    """A text corpus with its tokenizer and encoded splits, (n,) whole numbers each."""

    corpus: TextCorpus
    tokenizer: Tokenizer
    tokens: dict[str, TextTokens]
    corpus_class = TextCorpus
    overlap_between = staticmethod(cached_text_overlap)

    @classmethod
    def from_corpus(cls, corpus: TextCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None) -> Self:
        found = make_tokenizer(corpus, config) if given_tokenizer is None else given_tokenizer
        wanted = TOKENIZER_KINDS.get(config.data.tokenizer)
        if found.is_pair or wanted not in (None, found.kind):
            problem = Message(
                "train.init_from: '{name}' reads text with the '{tokenizer}' tokenizer, but the parent's is "
                "'{kind}' ({described}): its weights were trained on different tokens",
                name=config.task.name,
                tokenizer=config.data.tokenizer,
                kind=found.kind,
                described=tr(describe(found)),
            )
            raise InputError(problem)
        tokenizer = found.target
        if given_tokenizer is not None:
            for name, split in corpus.splits.items():
                where = tr("corpus {corpus}: its {split} split", corpus=corpus.name, split=name)
                for piece in split.pieces():
                    require_encodable(tokenizer, piece, where)
        tokens = {name: wrap_tokens(split.tokens(tokenizer)) for name, split in corpus.splits.items()}
        context = config.model.context_length
        for name in ("train", "validation"):
            have = tokens[name].numel() if name in tokens else 0
            shorter_will_do = name == "validation" and config.task.continues
            needed = 2 if shorter_will_do else config.window_tokens
            if have < needed:
                problem = Message(
                    "corpus {name}: its {name2} split has {have:,} tokens, fewer than the {needed:,} that a "
                    "context of {context:,} needs; use a longer text or "
                    "--set model.context_length={max}",
                    name=corpus.name,
                    name2=name,
                    have=have,
                    needed=needed,
                    context=context,
                    max=max(1, have // 4),
                )
                raise InputError(problem)
        return cls(corpus, tokenizer, tokens)

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> TextsScorer:
        source, config, tokenizer = (
            sources.find_source(user_files.files["text"], user_files.reading),
            user_files.config,
            user_files.tokenizer.target,
        )
        whole = "".join(piece for split in source.files for piece in source.pieces(split))
        where, needed = str(source.path)[:200], 2 if config.task.continues else config.window_tokens
        texts, train = list[TextScorer](), cls.reload_training_split(user_files)
        found = [text for text in whole.split(END_OF_TEXT) if text and not text.isspace()]
        for number, text in enumerate(found, start=1):
            try:
                tokens = torch.from_numpy(tokenizer.encode(text)).to(user_files.device)
            except InputError as error:
                place = where if len(found) == 1 else tr("{file}: document {n:,}", file=where, n=number)
                raise InputError(f"{place}: {error}") from None
            if len(tokens) >= needed:
                texts.append(TextScorer(config, Split(text), tokens, tokenizer, train=train))
        if not texts:
            problem = Message(
                "{file}: too short to be scored; this model needs at least {n:,} tokens", file=where, n=needed
            )
            raise InputError(problem)
        given = Split(END_OF_TEXT.join(text.split.text for text in texts))
        return TextsScorer(config, texts, len(found) - len(texts), cls.user_files_overlap(train, given))

    def corpus_only_tokenizer(self) -> Tokenizer | None:
        return _character_tokenizer(self.corpus) if self.tokenizer.per_character else None

    def n_predicted(self, split: str) -> int:
        return self.tokens[split].numel()

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from super().lints(config)
        shares = ((self._count_unknown(name) / self.n_predicted(name), name) for name in ("train", "validation"))
        share, split = max(shares)
        if share > MOST_UNKNOWN:
            text = Message(
                "{share:.0%} of the tokens in the {split} split are <unk>, words that the model does not know: most of "
                "its bits per byte go into spelling them, so they are not compared; use a larger data.words_size, or "
                "byte pairs (--set data.tokenizer=bpe)",
                share=share,
                split=split,
            )
            yield Lint("data.tokenizer", text)

    def _count_unknown(self, split: str) -> int:
        """Return how many tokens of a split are `<unk>`."""
        token = self.tokenizer.unknown
        return 0 if token is None else occurrences(self.tokens[split], token)

    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        of = "characters" if self.tokenizer.per_character else Message("tokens")
        needed = require_min_vocab_size(config, self.vocab_size, of)
        return resolve_config(config, where, vocab_size=needed, threads=threads, train_tokens=self.n_predicted("train"))

    def facts(self, config: RunConfig) -> DataFacts:
        train, held_out = (self.tokens[name].numpy() for name in ("train", "validation"))
        examples = self._prompts(config)
        # With a given source or both sides of a gap, a lower loss than the floor is possible.
        floor = self.corpus.splits["validation"].floor_mean if config.task.predicts_from_past else None
        reachable = None if floor is None else self.scorer(config, torch.device("cpu")).reachable
        above = {} if reachable is None else {"reachable": reachable.facts}
        by_character = self.tokenizer.per_character
        return DataFacts.create(
            corpus=self.corpus.version,
            source=self.corpus.source,
            notes=self.corpus.all_notes,
            reading=self.corpus.reading.version,
            encodings=self.corpus.reading.findings.encodings,
            sha256=self.corpus.sha256,
            splits={name: self._split_counts(name) for name in self.corpus.splits},
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            overlap=self.overlap_facts,
            floor=None if floor is None else Floor.create(nats_per_char=floor[0], se=floor[1], **above),
            plausible=CORPORA[self.corpus.name].plausible if by_character and self.corpus.name in CORPORA else None,
            unigram=unigram_loss(train, held_out, self.vocab_size),
            bigram=bigram_loss(train, held_out, self.vocab_size),
            examples=examples,
            probes=tuple(
                ProbeFacts.create(
                    name=probe.name,
                    description=probe.description,
                    n=int(probe.at.size),
                    chance=probe.chance,
                    shortcut=probe.shortcut,
                )
                for probe in self.corpus.splits["validation"].probes
            ),
        )

    def _prompts(self, config: RunConfig) -> tuple[ExamplePrompt, ...]:
        """Return prompts to try, from the held-out text."""
        found = beginnings(self.corpus.splits["validation"].head(HEAD)) if config.task.continues else ()
        some = islice((one for one in found if len(self.tokenizer.encode(one))), N_PROMPTS)
        return tuple(ExamplePrompt.create(source=one, origin=Message("held out")) for one in some)

    def batches(self, config: RunConfig, device: torch.device) -> BatchStream:
        objective = make_objective(config, self.vocab_size)
        boundary = boundary_token(config, self.tokenizer)
        return training_batches(self.tokens["train"], config, objective, device, boundary)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> TextScorer:
        tokens = self.tokens[split].to(device)
        train, scored = self.corpus.splits["train"], self.corpus.splits[split]
        return TextScorer(config, scored, tokens, self.tokenizer, self.records, train)

    def _split_counts(self, split: str) -> dict[str, int]:
        """The sizes of a split; words and bytes where tokens are not characters."""
        found, tokenizer = self.corpus.splits[split], self.tokenizer
        counts = {"characters": found.length, "tokens": self.n_predicted(split)}
        if tokenizer.per_character:
            return counts
        counts |= {"words": found.text_sizes.words, "bytes": found.text_sizes.bytes}
        if tokenizer.unknown is not None:
            counts["unknown"] = self._count_unknown(split)
        return counts

    def sampler(self, config: RunConfig) -> TextSampler | RowSampler:
        prompt = config.evaluation.sample_prompt
        if prompt:
            if not len(self.tokenizer.encode(prompt)):  # refused now, not at step 500
                raise InputError(Message("evaluation.sample_prompt: has no tokens; give it a word"))
            return TextSampler(config, self.tokenizer, prompt)
        held_out = self.corpus.splits["validation"].head(HEAD)
        if not config.task.continues:  # a source, or a text to hide parts of
            most = min(config.window_tokens, config.model.source_tokens)
            if not self.tokenizer.per_character:
                ids = self.tokens["validation"][:most].long()
                return TextSampler(config, self.tokenizer, self.tokenizer.decode(ids.tolist()), ids)
            prompt = held_out[:most]
        elif not self.tokenizer.per_character:  # whole words of the first line that has some
            line = next((line.strip() for line in held_out.split("\n") if line.strip()), "")
            first, more = line[:MAX_PROMPT], line[MAX_PROMPT : MAX_PROMPT + 1].strip()
            prompt = (first.rpartition(" ")[0] if more else first) or first
            if not len(self.tokenizer.encode(prompt)):
                prompt = self.tokenizer.decode([0])
        else:
            first = held_out.lstrip("\n")[:MAX_PROMPT]
            prompt = first.split("\n", 1)[0] or first[:1] or self.tokenizer.decode([0])
        return TextSampler(config, self.tokenizer, prompt)


def make_tokenizer(corpus: TextCorpus, config: RunConfig) -> Tokenizer:
    """Return the tokenizer that a config asks for; only `characters` look at more than the training split."""
    data, train = config.data, corpus.splits["train"]
    if data.tokenizer == "loaded":
        return read_any_tokenizer(Path(data.tokenizer_from or "").expanduser())
    if data.tokenizer == "bpe":
        return cached_bpe_by_hash(train.sha256, encodable_parts(train.pieces(), BpeTokenizer(())), data.bpe_size)
    if data.tokenizer == "words":
        spaced = has_unknown(train.pieces())
        parts = encodable_parts(train.pieces(), TextWordTokenizer([UNK], spaced=spaced))
        return TextWordTokenizer.from_parts(parts, data.words_size, spaced=spaced)
    return ByteTokenizer() if data.tokenizer == "bytes" else _character_tokenizer(corpus)


def _character_tokenizer(corpus: TextCorpus) -> CharacterTokenizer:
    """Return a tokenizer of every character of every split, as in nanoGPT."""
    return CharacterTokenizer(sorted(set[str]().union(*(split.characters for split in corpus.splits.values()))))
