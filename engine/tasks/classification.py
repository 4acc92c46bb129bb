"""The class of a text: tokens learned from the training texts, and what readers of words alone get right."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config.lints import Lint
from engine.config.schema import RunConfig
from engine.config.tasks import PAD, UNK
from engine.data.baselines import class_prior_loss, naive_bayes
from engine.data.labelled.by_path import read_labelled
from engine.data.labelled.corpus import LabelledCorpus, LabelledTexts
from engine.data.objectives import Batch, Objective
from engine.data.overlap import Overlap, labelled_overlap
from engine.data.padding import AnyDevice, Tokens, copy_to_device, pad_rows, right_padded_positions
from engine.data.rows import BucketedBatches, Relabel, identity, lengths_of
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, cached_bpe
from engine.evaluation.metrics import confusion_matrix, macro_f1
from engine.generation.output import Alternative, AnswerToken, FullAnswer, ScoredText
from engine.generation.sampling import Sampling
from engine.model.transformer import Network, evaluating
from engine.runs.records import (
    BestReaderScores,
    DataFacts,
    EvaluationScores,
    MajorityFacts,
    ProbeFacts,
)
from engine.runs.verdict import Verdict
from engine.tasks.pipeline import MARK, Pipeline
from engine.tasks.task import (
    OWN_SPLIT,
    OwnFiles,
    RowSampler,
    RowScorer,
    RowTask,
    evaluation_batch,
    require_tokenizer_kind,
    sample_prompts,
    spread_indices,
)

AT_ONCE = 256  # texts


class PooledBatch(Batch):
    """Texts with one target each (B, 1): the logits of a text are the mean of its tokens'.

    The head is linear, so this is a head on the mean of the last hidden states. Unlike the last token's, the mean does
    not have to carry the whole text through one position, and every token learns from every text. Padding is left out;
    the positions are those of the tokens.
    """

    def target_logits(self, logits: Tensor) -> Tensor:
        """(B, T, C) → (B, 1, C)"""
        if self.source_positions is None or self.source_positions.index.shape[1] != logits.shape[1]:
            return logits.mean(1, keepdim=True)
        real = (self.source_positions.index >= 0)[..., None]
        return torch.where(real, logits, 0.0).sum(1, keepdim=True) / real.sum(1, keepdim=True)


class ClassificationObjective(Objective):
    """The class of a text. In a window for the leak probe, the first token stands for the class, the rest is read."""

    conditional = pools_logits = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.unknown = self.special[PAD], self.special[UNK]

    def class_batch(self, texts: Sequence[Tokens], classes: Sequence[int], device: AnyDevice = "cpu") -> PooledBatch:
        """Return the batch of texts, at least one token each, and their classes."""
        targets = torch.tensor(list(classes), dtype=torch.int64)[:, None]
        at = right_padded_positions([len(text) for text in texts], device)
        tokens = copy_to_device(pad_rows(texts, self.pad), device)
        return PooledBatch(tokens, copy_to_device(targets, device), len(texts), None, at)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        rows = windows.cpu().numpy()
        return self.class_batch(list(rows[:, 1:]), rows[:, 0].tolist(), windows.device)


class LabelledBatches(BucketedBatches[ClassificationObjective]):
    """The batch stream of labelled texts, of which there is at least one."""

    def __init__(
        self,
        texts: Sequence[Tokens],
        classes: Sequence[int],
        config: RunConfig,
        objective: ClassificationObjective,
        device: AnyDevice = "cpu",
    ) -> None:
        self.texts, self.classes, self.objective, self.device = texts, classes, objective, device
        lengths = lengths_of(texts)[:, None]
        super().__init__(lambda epoch: lengths, config, tr("text"))

    def _make_batch(self, rows: Sequence[int], step: int, micro: int, relabel: Relabel = identity) -> Batch:
        classes = [int(relabel(np.array([self.classes[i]]))[0]) for i in rows]
        return self.objective.class_batch([self.texts[i] for i in rows], classes, self.device)


def encode_texts(tokenizer: Tokenizer, config: RunConfig, texts: Sequence[str]) -> list[Tokens]:
    """Return the tokens of each text, cut to the context; what has no token is unknown. `InputError`: an empty text."""
    unknown = ClassificationObjective(config, tokenizer.vocab_size).unknown
    texts = apply_case(config, texts)
    found = [tokens[: config.model.context_length] for tokens in tokenizer.encode_with_unknown(texts, unknown)]
    if any(not len(tokens) for tokens in found):
        raise InputError(Message("an empty text has no class; enter at least one word"))
    return found


def apply_case(config: RunConfig, texts: Sequence[str]) -> Sequence[str]:
    return [text.lower() for text in texts] if config.data.lowercase else texts


def class_probabilities(
    model: Network,
    tokenizer: Tokenizer,
    config: RunConfig,
    texts: Sequence[str],
    between: Callable[[], None] = lambda: None,
) -> Tensor:
    """Return (B, C) the probability of each class; `between` is called between batches and may raise to stop."""
    objective, device = ClassificationObjective(config, tokenizer.vocab_size), next(model.parameters()).device
    read, found = encode_texts(tokenizer, config, texts), []
    with evaluating(model):
        for start in range(0, len(read), AT_ONCE):
            between()
            some = read[start : start + AT_ONCE]
            batch = objective.class_batch(some, [0] * len(some), device)
            found.append(batch.target_logits(model(*batch.inputs))[:, 0].float().softmax(-1).cpu())
    return torch.cat(found)


@dataclass
class ClassScorer(RowScorer["ClassificationTask"]):
    """Exact scores of one split of labelled texts, cut to the context."""

    probe_format = tr("{share:.1%} of {places:,} texts")

    @property
    def activity(self) -> str:
        return trn("classifying {n:,} text", "classifying {n:,} texts", self.task.n_predicted(self.split))

    def batches(self) -> Iterator[Batch]:
        return (batch for _, batch in self._numbered_batches())

    def _numbered_batches(self) -> Iterator[tuple[list[int], Batch]]:
        """Yield all texts with their numbers, shortest first."""
        texts, classes = self.task.encoded[self.split], self.task.corpus.splits[self.split].classes
        objective = ClassificationObjective(self.config, self.task.vocab_size)
        order, size = np.argsort(lengths_of(texts), kind="stable").tolist(), evaluation_batch(self.config)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            yield rows, objective.class_batch([texts[i] for i in rows], [classes[i] for i in rows], self.device)

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        corpus, truth = self.task.corpus, self.task.class_ids(self.split)
        nll, found = np.zeros(len(truth)), np.zeros(len(truth), dtype=np.int64)
        with evaluating(model):
            for rows, batch in self._numbered_batches():
                between()
                log_p = batch.target_logits(model(*batch.inputs))[:, 0].float().log_softmax(-1)
                nll[rows] = -log_p.gather(1, batch.targets)[:, 0].cpu().double().numpy()
                found[rows] = log_p.argmax(-1).cpu().numpy()
        loss, counts = math.fsum(nll) / len(nll), confusion_matrix(truth, found, len(corpus.classes))
        if self.scores_own_files:
            parts = zip(truth.tolist(), found.tolist(), nll.tolist(), strict=True)
            self._rows = [
                {"text": number, "class": corpus.classes[right], "predicted": corpus.classes[given], "loss": loss}
                for number, (right, given, loss) in enumerate(parts, start=1)
            ]
        asked = np.isin(truth, corpus.order_only_classes if corpus.reader_accuracies else ())
        probed = self.config.evaluation.probes and bool(asked.any())
        return EvaluationScores.create(
            texts=len(truth),
            loss=loss,
            perplexity=math.exp(loss) if loss < 700 else math.inf,
            accuracy=float((found == truth).mean()),
            macro_f1=macro_f1(counts),
            confusion=tuple(tuple(row) for row in counts.tolist()),
            probes={"order": float((found == truth)[asked].mean())} if probed else {},
            probe_places={"order": int(asked.sum())} if probed else {},
        )


class ClassPipeline(Pipeline):
    """Says which class a text has: an answer of one word, the class, with its probability."""

    def length_warning(self, text: str, length: int) -> str:
        context = self.config.model.context_length
        longer = len(self.tokenizer.encode_with_unknown([text], 0)[0]) > context
        return tr("only the first {context} tokens of the text are read", context=context) if longer else ""

    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        first, *others = self.ranked_classes(text)
        rest = tuple(Alternative(one.text, one.probability, one.probability) for one in others[:alternatives])
        yield AnswerToken(first.text, first.probability, None, rest)

    def likeliest_answers(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        return tuple(self.ranked_classes(text)[: others + 1])

    def surprise(self, text: str, alternatives: int) -> ScoredText:
        raise InputError(Message("surprise: this model classifies texts and does not predict their tokens"))

    def ranked_classes(self, text: str) -> list[FullAnswer]:
        """Return every class with its probability, the likeliest first."""
        found = class_probabilities(self.model, self.tokenizer, self.config, [text])[0].tolist()
        # Without data.json, classes only have numbers.
        names = self.classes if len(self.classes) == len(found) else [str(i + 1) for i in range(len(found))]
        pairs = sorted(zip(names, found, strict=True), key=lambda pair: -pair[1])
        return [FullAnswer(name, probability) for name, probability in pairs]

    def model_input(self, text: str, written: str) -> tuple[Tensor, Tensor | None]:
        return torch.from_numpy(encode_texts(self.tokenizer, self.config, [text])[0]).to(self.device), None

    def token_labels(self, ids: Tensor, *, is_source: bool) -> tuple[str, ...]:
        return tuple(self.decode_token(token) if token < self.size else MARK for token in ids.tolist())


@dataclass(frozen=True)
class ClassificationTask(RowTask):
    corpus: LabelledCorpus
    tokenizer: Tokenizer
    encoded: Mapping[str, Sequence[Tokens]]  # by split, cut to the context
    corpus_class = LabelledCorpus

    @classmethod
    def from_corpus(
        cls, corpus: LabelledCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = _tokenizer(corpus, config, given_tokenizer)
        encoded = {split: encode_texts(tokenizer, config, found.texts) for split, found in corpus.splits.items()}
        return cls(corpus, tokenizer, encoded)

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> ClassScorer:
        classes, tokenizer = user_files.facts.classes, user_files.tokenizer.target
        found = read_labelled(Path(user_files.files["csv"]).expanduser(), classes, user_files.reading)
        encoded = encode_texts(tokenizer, user_files.config, found.texts)
        task = cls(LabelledCorpus("", "", "", (), classes, {OWN_SPLIT: found}), tokenizer, {OWN_SPLIT: encoded})
        seen = cls.user_files_overlap(cls.reload_training_split(user_files), found)
        return ClassScorer(task, user_files.config, user_files.device, OWN_SPLIT, scores_own_files=True, overlap=seen)

    def data_verdicts(self) -> list[Verdict]:
        return [*super().data_verdicts(), *(one.verdict for one in self.corpus.shortcuts)]

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from super().lints(config)
        yield from (Lint("data.corpus", note) for note in self.corpus.notes if not self.corpus.reader_accuracies)

    def check_sizes(self, config: RunConfig) -> dict[str, int | None]:
        if self.corpus.refusal:
            raise InputError(self.corpus.refusal)
        n, wanted = len(self.corpus.classes), config.model.classes
        if wanted not in (None, n):
            problem = Message(
                "model.classes = {wanted}: corpus {name} has {n} classes; leave it out",
                wanted=wanted,
                name=self.corpus.name,
                n=n,
            )
            raise InputError(problem)
        return {"classes": n}

    def rows(self, split: str) -> Iterator[dict[str, Any]]:
        names, texts = self.corpus.classes, self.corpus.splits[split]
        found = zip(texts.texts, texts.classes, self.encoded[split], strict=True)
        return ({"text": text, "label": names[i], "class": i, "tokens": tokens} for text, i, tokens in found)

    def n_predicted(self, split: str) -> int:
        return len(self.encoded[split])

    @staticmethod
    def overlap_between(train: LabelledTexts, held_out: LabelledTexts, split: str) -> Overlap | None:
        return labelled_overlap(train.texts, held_out.texts, split)

    def facts(self, config: RunConfig) -> DataFacts:
        corpus, n = self.corpus, len(self.corpus.classes)
        train, held_out = (self.class_ids(split) for split in ("train", "validation"))
        answer, right, of = corpus.majority_baseline("validation")
        words = self.bag_of_words_accuracy("validation")
        reader = corpus.reader_accuracies.get("validation")
        ordered = int(np.isin(held_out, corpus.order_only_classes).sum())
        # A text's first word has no space before it, so a bag of such tokens reveals who is named first.
        unordered = not self.tokenizer.joins_spaces or self.records < 3
        probes: tuple[ProbeFacts, ...] = ()
        if reader is not None and ordered:
            said = Message("texts whose class only word order reveals; chance: the best reader that ignores order")
            if not unordered:
                said = Message("texts whose class only word order reveals")
            # By one constant answer.
            guess = max(np.bincount(held_out[np.isin(held_out, corpus.order_only_classes)])) / ordered
            best = reader.chance if self.records < 3 else max(reader.chance, float(guess))
            chance = round(best, 6) if unordered else None
            probes = (ProbeFacts.create(name="order", description=said, n=ordered, chance=chance),)
        return DataFacts.create(
            **self.corpus_facts(),
            splits={split: self._counts(config, split) for split in corpus.splits},
            padding=self.padding_share(config),
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            overlap=self.overlap_facts,
            floor=None,
            plausible=None,
            unigram=class_prior_loss(train, held_out, n),
            majority=MajorityFacts.create(answer=answer, right=right, of=of, score="accuracy"),
            classes=corpus.classes,
            bag_of_words=words,
            best_reader=None
            if reader is None
            else BestReaderScores.create(
                accuracy=reader.best, expected=reader.expected, unordered=reader.unordered if unordered else None
            ),
            probes=probes,
        )

    def bag_of_words_accuracy(self, split: str) -> float:
        """Return the accuracy of naive Bayes on the words of a split, without case, whatever the tokens are."""
        texts = {name: [text.casefold() for text in self.corpus.splits[name].texts] for name in ("train", split)}
        words = WordTokenizer.from_texts(texts["train"])
        train, held_out = (
            [ids[ids >= 0] for ids in words.encode_with_unknown(texts[name], -1)] for name in ("train", split)
        )
        found = naive_bayes(train, self.class_ids("train"), held_out, words.vocab_size, len(self.corpus.classes))
        return float((found == self.class_ids(split)).mean())

    def batches(self, config: RunConfig, device: torch.device) -> LabelledBatches:
        objective = ClassificationObjective(config, self.vocab_size)
        return LabelledBatches(self.encoded["train"], self.corpus.splits["train"].classes, config, objective, device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> ClassScorer:
        return ClassScorer(self, config, device, split)

    def sampler(self, config: RunConfig) -> RowSampler:
        """Classify the lines of `evaluation.sample_prompt`, or some texts of the validation split."""
        prompts, held_out, names = sample_prompts(config), self.corpus.splits["validation"], self.corpus.classes
        at = spread_indices(held_out.texts)
        texts = prompts or [held_out.texts[i] for i in at]
        right = [""] * len(prompts) if prompts else [names[held_out.classes[i]] for i in at]

        def write(model: Network, between: Callable[[], None]) -> list[dict[str, Any]]:
            outputs = []
            for chances in class_probabilities(model, self.tokenizer, config, texts, between).tolist():
                ranked = sorted(zip(names, chances, strict=True), key=lambda one: -one[1])
                probabilities = {name: round(chance, 4) for name, chance in ranked}
                outputs.append({"text": ranked[0][0], "probabilities": probabilities})
            return outputs

        return RowSampler(texts, right, write)

    def class_ids(self, split: str) -> NDArray[np.int64]:
        return np.array(self.corpus.splits[split].classes, dtype=np.int64)

    def _counts(self, config: RunConfig, split: str) -> dict[str, int]:
        encoded, context = self.encoded[split], config.model.context_length
        unknown = self.vocab_size + config.special_tokens.index(UNK)
        return {
            "texts": len(encoded),
            "characters": sum(map(len, self.corpus.splits[split].texts)),
            "tokens": sum(map(len, encoded)),
            "unknown": sum(int((tokens == unknown).sum()) for tokens in encoded),
            "at_context": sum(len(tokens) == context for tokens in encoded),
        }


def _tokenizer(corpus: LabelledCorpus, config: RunConfig, given: AnyTokenizer | None) -> Tokenizer:
    """Return the given tokenizer, or one of the training texts alone."""
    wanted, texts = config.data.tokenizer, apply_case(config, corpus.splits["train"].texts)
    if given is not None:
        require_tokenizer_kind(given, config)
        return given.target
    made: Mapping[str, Any] = {
        "bpe": lambda: cached_bpe(texts, config.data.bpe_size),
        "words": lambda: WordTokenizer.from_frequent(texts),
        "characters": lambda: CharacterTokenizer.from_texts(texts),
    }
    found: Tokenizer = made[wanted]()
    return found
