"""A run on questions: batches of like length, the loss of the answers and how many are exactly right, examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.config.schema import RunConfig
from engine.data.objectives import Batch, QuestionAnswer
from engine.data.overlap import Overlap, question_overlap
from engine.data.questions import EncodedQuestions, QuestionBatches, scored_questions
from engine.data.tokenizers import AnyTokenizer
from engine.errors import InputError
from engine.evaluation.scorers import AnswerScorer, evaluation_batch
from engine.generation.samples import QuestionSampler
from engine.training.on_documents import OnDocuments, counts_of
from engine.training.task import Task

NEEDED = ("train", "validation")


@dataclass(frozen=True)
class QuestionTask(OnDocuments):
    """Questions about documents with the documents' tokenizer; encoded are those whose answer is told."""

    encoded: Mapping[str, EncodedQuestions]

    @classmethod
    def load(cls, config: RunConfig, data_dir: Path | None, given: AnyTokenizer | None = None) -> "QuestionTask":
        """Corpus and tokens of a config.

        Args:
            config: of the run.
            data_dir: where named corpora are looked for first.
            given: the tokenizer of the run that this one starts from; else the corpus gets one of its own.

        Raises:
            InputError: no such corpus, something wrong with it, no questions, or one that is longer than the context.
        """
        corpus, tokenizer = cls.opened(config, data_dir, given)
        encoded = {}
        for split, questions in corpus.questions.items():
            told = [(q.text, q.answer) for q in questions if q.answer is not None]
            asked, answers = ([pair[side] for pair in told] for side in (0, 1))
            encoded[split] = EncodedQuestions(tokenizer.encode_all(asked), cls.encoded_answers(tokenizer, answers))
        for split in NEEDED:
            if split not in encoded or not len(encoded[split]):
                raise InputError(
                    f"corpus {corpus.name}: it has no {split} questions with answers; a folder with documents.txt, "
                    "train.tsv and validation.tsv has (question, tab, answer), and objective.kind = 'span-corruption' "
                    "needs none"
                )
        task = cls(corpus, tokenizer, encoded)
        task._require_room(config)
        return task

    @cached_property
    def overlap(self) -> Overlap | None:
        """See `Task`."""
        return self.seen_by(self)

    def seen_by(self, trained: Task) -> Overlap | None:
        """See `Task`. Only questions count: the documents are meant to contain the answers."""
        if not isinstance(trained, QuestionTask):
            return None
        known, asked = (t.corpus.questions[name] for t, name in ((trained, "train"), (self, "validation")))
        return question_overlap([q.text for q in known], [q.text for q in asked], "validation")

    @cached_property
    def longest_answer(self) -> int:
        """Tokens of any answer that is told, its end included."""
        return 1 + max(len(answer) for asked in self.encoded.values() for answer in asked.answers)

    @property
    def train_tokens(self) -> int:
        """Of the training answers, with the marks around them."""
        return sum(len(answer) + 2 for answer in self.encoded["train"].answers)

    @property
    def validation_tokens(self) -> int:
        """Of the validation questions and their answers."""
        held_out = self.encoded["validation"]
        return sum(map(len, held_out.questions)) + sum(map(len, held_out.answers))

    def resolved(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """See `Task`."""
        steps = self.batches(config, torch.device("cpu")).steps_per_epoch
        return self._resolved(config, where, threads, steps, self.train_tokens)

    def facts(self, config: RunConfig) -> dict[str, Any]:
        """The content of data.json; `majority` is what always giving the same answer scores on the validation split."""
        answer, right, of = self.corpus.majority("validation")
        return self._facts(config, self._scored("train", config), self._scored("validation", config)) | {
            "splits": {
                split: {"questions": len(questions)}
                | counts_of([q.answer for q in questions if q.answer is not None], self.encoded[split].answers)
                for split, questions in self.corpus.questions.items()
            },
            "majority": {"answer": answer, "right": right, "of": of},
            "padding": round(self.batches(config, torch.device("cpu")).padding, 4),
            "overlap": self.overlap and self.overlap.to_json(),
            "probes": [],
        }

    def batches(self, config: RunConfig, device: torch.device) -> QuestionBatches:
        """Questions of like length with their answers."""
        return QuestionBatches(self.encoded["train"], config, QuestionAnswer(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> AnswerScorer:
        """Of a split, by default the validation one."""
        questions, encoded = self.corpus.questions[split], self.encoded[split]
        return AnswerScorer(config, questions, encoded, self.tokenizer, device, self.longest_answer)

    def shower(self, config: RunConfig) -> QuestionSampler:
        """Some held-out questions, answered."""
        return QuestionSampler(config, self.tokenizer, self.corpus.questions["validation"], self.longest_answer)

    def _scored(self, split: str, config: RunConfig) -> list[Batch]:
        """What is asked of a split, on the CPU."""
        objective = QuestionAnswer(config, self.vocab_size)
        return list(scored_questions(self.encoded[split], objective, evaluation_batch(config), "cpu"))

    def _require_room(self, config: RunConfig) -> None:
        """Every question and its answer must fit: one that is cut could not be answered."""
        objective, model = QuestionAnswer(config, self.vocab_size), config.model
        room = (model.source_tokens, model.context_length) if config.has_source else (model.context_length,)
        for split, asked in self.encoded.items():
            if not len(asked):
                continue
            for key, longest, most in zip(
                ("source_length", "context_length")[-len(room) :],
                objective.sides(asked.questions, asked.answers).max(0).tolist(),
                room,
                strict=True,
            ):
                if longest > most:
                    raise InputError(
                        f"corpus {self.name}: a {split} question with its answer has {longest} tokens, and "
                        f"model.{key} is {most}; --set model.{key}={longest}"
                    )
