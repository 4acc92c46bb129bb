"""Questions about documents, and their answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Generator, Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config.schema import RunConfig
from engine.config.tasks import MASK, PAD
from engine.data.documents.corpus import DocumentCorpus, Question
from engine.data.objectives import Batch, Objective, TokenPrompt, joined_batch, source_target_batch
from engine.data.overlap import Overlap, question_overlap
from engine.data.padding import AnyDevice, Counts, Tokens
from engine.data.rows import BucketedBatches, EncodedPairs, Relabel, identity
from engine.data.tokenizers import AnyTokenizer
from engine.generation.answering import greedy_answers
from engine.model.transformer import Network
from engine.runs.records import DataFacts, EvaluationScores, MajorityFacts
from engine.tasks.documents import REQUIRED_SPLITS, DocumentPipeline, DocumentTask, count_tokens, encode_answers
from engine.tasks.task import ReportLine, RowSampler, RowScorer, evaluation_batch, sample_prompts, spread_indices

N_SHOWN_QUESTIONS = 3  # questions that `evaluate` prints with their answers


class QuestionObjective(Objective):
    """`question ⁇ answer ⁇`, as the assignment's NameDataset has it: scored are the first mark and all after it.

    In an encoder-decoder the question is the source, `⁇ answer` the decoder's input, and `answer ⁇` is scored.
    """

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.mask = self.special[PAD], self.special[MASK]
        self.conditional, self.reorders_text = config.has_source, not config.has_source
        # Of a text that is made into a question.
        self.n_read = config.model.source_tokens if config.has_source else max(1, self.window // 2)

    def side_lengths(self, questions: Sequence[Tokens], answers: Sequence[Tokens]) -> Counts:
        lengths = np.array([(len(q), len(a) + 1) for q, a in zip(questions, answers, strict=True)], dtype=np.int64)
        return lengths if self.conditional else lengths.sum(1, keepdims=True)

    def answer_batch(self, questions: Sequence[Tokens], answers: Sequence[Tokens], device: AnyDevice = "cpu") -> Batch:
        ended = [np.append(answer, self.mask) for answer in answers]
        if self.conditional:
            return source_target_batch(questions, ended, self.mask, self.pad, device)
        return joined_batch(questions, ended, self.mask, self.pad, device, scored_before_mark=1)

    def make_prompt(self, question: Tokens) -> TokenPrompt:
        """`question ⁇`; the answer ends with ⁇."""
        mark = np.array([self.mask], dtype=np.int64)
        if self.conditional:
            return TokenPrompt(mark, self.mask, question)
        return TokenPrompt(np.concatenate((question, mark)), self.mask)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """Return the batch of (B, L) texts: the first part is the question, the rest the answer."""
        rows = windows.cpu().numpy()
        return self.answer_batch(list(rows[:, : self.n_read]), list(rows[:, self.n_read :]), windows.device)


class QuestionBatches(BucketedBatches[QuestionObjective]):
    """The batch stream of questions, of which there is at least one."""

    def __init__(
        self, asked: EncodedPairs, config: RunConfig, objective: QuestionObjective, device: AnyDevice = "cpu"
    ) -> None:
        self.questions, self.objective, self.device = asked, objective, device
        lengths = objective.side_lengths(asked.sources, asked.targets)
        super().__init__(lambda epoch: lengths, config, tr("question"))

    def _make_batch(self, rows: Sequence[int], step: int, micro: int, relabel: Relabel = identity) -> Batch:
        chosen = self.questions.select(rows)
        return self.objective.answer_batch(chosen.sources, [*map(relabel, chosen.targets)], self.device)


@dataclass
class AnswerScorer(RowScorer["QuestionTask"]):
    """Exact scores of one split of questions."""

    _answers: Sequence[str] = ()

    @property
    def activity(self) -> str:
        return trn("answering {n:,} question", "answering {n:,} questions", len(self.questions))

    @property
    def questions(self) -> Sequence[Question]:
        return self.task.corpus.questions[self.split]

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        answers = self.task.answer(model, self.config, [question.text for question in self.questions], between)
        self._answers = answers
        if not len(self.task.encoded[self.split]):
            return EvaluationScores.create(questions=len(answers))
        scores = self.token_scores(model, between)
        answered = [(q.answer, given) for q, given in zip(self.questions, answers, strict=True) if q.answer is not None]
        right = sum(given == answer.strip() for answer, given in answered)
        return EvaluationScores.create(
            questions=len(answered),
            loss=scores.loss,
            perplexity=scores.perplexity,
            accuracy=scores.accuracy,
            right=right,
            exact_match=right / len(answered),
            probes={},
            profile=scores.profile(),
        )

    def report_lines(self, record: Mapping[str, Any]) -> Iterator[ReportLine]:
        if "exact_match" in record:
            always, right, of = self.task.corpus.majority_baseline(self.split)
            said = tr(
                "{share:.2%}   {right:,} of {questions:,} questions, answered greedily",
                share=record["exact_match"],
                right=record["right"],
                questions=record["questions"],
            )
            yield tr("exact match"), said
            yield tr(
                "  always answering “{always}” would score {right:.2%} ({right2:,} of {of:,})",
                always=always,
                right=right / of,
                right2=right,
                of=of,
            )
            loss = tr("{loss:.4f} nats per answer token, start and end marks included", loss=record["loss"])
            yield tr("loss"), loss
            yield tr("perplexity"), f"{record['perplexity']:.4f}"
            yield tr("accuracy"), tr("{share:.2%} of answer tokens, marks included", share=record["accuracy"])
        else:
            yield trn(
                "  {n:,} question answered; the split has no reference answers, so there is no score",
                "  {n:,} questions answered; the split has no reference answers, so there is no score",
                record["questions"],
            )
        # of the file, as an answer may have line breaks
        rows = list(zip(self.questions, self.predictions().splitlines(), strict=True))
        for question, written in rows[:N_SHOWN_QUESTIONS]:
            yield f"  {question.text}"
            yield f"  → {written}"
            if question.answer is not None and question.answer != written:
                yield f"  = {question.answer}"

    def predictions(self) -> str:
        return "".join(f"{answer}\n" for answer in self._answers)

    def batches(self) -> Iterator[Batch]:
        """Yield all questions with known answers, shortest first."""
        objective, asked = QuestionObjective(self.config, self.task.vocab_size), self.task.encoded[self.split]
        order = np.argsort(objective.side_lengths(asked.sources, asked.targets).sum(1), kind="stable").tolist()
        size = evaluation_batch(self.config)
        for start in range(0, len(order), size):
            chosen = asked.select(order[start : start + size])
            yield objective.answer_batch(chosen.sources, chosen.targets, self.device)


class QuestionPipeline(DocumentPipeline):
    def prompt(self, text: str) -> TokenPrompt:
        question = self.tokenizer.encode(text.strip())
        if not len(question):
            raise InputError(
                Message("prompt '': enter a question, e.g. {example}", example=self.config.task.prompt_example)
            )
        return QuestionObjective(self.config, self.size).make_prompt(question)


@dataclass(frozen=True)
class QuestionTask(DocumentTask):
    """Questions about documents with the documents' tokenizer; those with known answers are encoded."""

    encoded: Mapping[str, EncodedPairs]
    hash_prefix = "questions-"

    @classmethod
    def from_corpus(
        cls, corpus: DocumentCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = cls.tokenizer_for(corpus, config, given_tokenizer)
        encoded = {}
        for split, questions in corpus.questions.items():
            answered = [(q.text, q.answer) for q in questions if q.answer is not None]
            asked, answers = ([pair[side] for pair in answered] for side in (0, 1))
            encoded[split] = EncodedPairs(tokenizer.encode_all(asked), encode_answers(tokenizer, answers))
        for split in REQUIRED_SPLITS:
            if split not in encoded or not len(encoded[split]):
                problem = Message(
                    "corpus {name}: no {split} questions with answers; use a folder with documents.txt, "
                    "train.tsv and validation.tsv (question, tab, answer), or objective.kind = "
                    "'span-corruption', which needs none",
                    name=corpus.name,
                    split=split,
                )
                raise InputError(problem)
        # Every question and answer must fit: a truncated one could not be answered.
        objective = QuestionObjective(config, tokenizer.vocab_size)
        room = {"context_length": config.model.context_length}
        if config.has_source:
            room = {"source_length": config.model.source_tokens} | room
        for split, pairs in encoded.items():
            if not len(pairs):
                continue
            sides = objective.side_lengths(pairs.sources, pairs.targets).max(0).tolist()
            for (key, most), longest in zip(room.items(), sides, strict=True):
                if longest > most:
                    problem = Message(
                        "corpus {name}: the {split} questions and answers need model.{key} = {longest}, but it is "
                        "{most}; --set model.{key}={longest}",
                        name=corpus.name,
                        split=split,
                        longest=longest,
                        key=key,
                        most=most,
                    )
                    raise InputError(problem)
        return cls(corpus, tokenizer, encoded)

    def overlap_with(self, trained: Self) -> Overlap | None:
        # Only questions count: the documents are meant to contain the answers.
        known, asked = (t.corpus.questions[name] for t, name in ((trained, "train"), (self, "validation")))
        return question_overlap([q.text for q in known], [q.text for q in asked], "validation")

    @cached_property
    def longest_answer_tokens(self) -> int:
        """Tokens of the longest known answer, its end included."""
        return 1 + max(len(answer) for asked in self.encoded.values() for answer in asked.targets)

    def n_predicted(self, split: str) -> int:
        asked = self.encoded[split]
        if split == "train":
            return sum(len(answer) + 2 for answer in asked.targets)  # with the marks around them
        return sum(map(len, asked.sources)) + sum(map(len, asked.targets))

    def facts(self, config: RunConfig) -> DataFacts:
        # `majority` is what always giving the most frequent answer scores on the validation split.
        answer, right, of = self.corpus.majority_baseline("validation")
        cpu = torch.device("cpu")
        train, held_out = (list(self.scorer(config, cpu, split).batches()) for split in REQUIRED_SPLITS)
        splits = {
            split: {"questions": len(questions)}
            | count_tokens([q.answer for q in questions if q.answer is not None], self.encoded[split].targets)
            for split, questions in self.corpus.questions.items()
        }
        majority = MajorityFacts.create(answer=answer, right=right, of=of)
        return self._facts(config, train, held_out, splits=splits, majority=majority)

    def batches(self, config: RunConfig, device: torch.device) -> QuestionBatches:
        return QuestionBatches(self.encoded["train"], config, QuestionObjective(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> AnswerScorer:
        return AnswerScorer(self, config, device, split)

    def sampler(self, config: RunConfig) -> RowSampler:
        """Answer the lines of `evaluation.sample_prompt`, or some questions of the validation split.
        `InputError`: a prompt with characters or words the model will never know.
        """
        prompts, held_out = sample_prompts(config), self.corpus.questions["validation"]
        self.tokenizer.encode_all(prompts)  # refused now, not at step 500
        asked = [Question(line, None) for line in prompts] or [held_out[i] for i in spread_indices(held_out)]
        texts = [question.text for question in asked]

        def write(model: Network, between: Callable[[], None]) -> list[dict[str, str]]:
            return [{"text": text} for text in self.answer(model, config, texts, between)]

        return RowSampler(texts, [question.answer or "" for question in asked], write)

    def answer(
        self, model: Network, config: RunConfig, questions: Sequence[str], between: Callable[[], None]
    ) -> list[str]:
        """Answer each question greedily, on one line, at most as long as the longest known answer. `InputError`: a
        question that the tokenizer cannot read or the context has no room for.
        """
        objective, size, most = QuestionObjective(config, self.vocab_size), self.vocab_size, self.longest_answer_tokens
        prompts = [objective.make_prompt(question) for question in self.tokenizer.encode_all(questions)]
        found = greedy_answers(model, prompts, text_vocab_size=size, most=most, between=between)
        return [" ".join(self.tokenizer.decode(answer.tokens).splitlines()).strip() for answer in found]
