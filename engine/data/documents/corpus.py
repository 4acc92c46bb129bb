"""What a corpus of documents and questions is; `registry.load_documents` gives one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from engine.data.framing import sha256_of_texts


@dataclass(frozen=True)
class Question:
    """A question about the documents.

    Args:
        text: as it is asked, such as "Where was Ada Lovelace born?".
        answer: what is right; None where it is not told, as in a blind test split.
    """

    text: str
    answer: str | None


@dataclass(frozen=True)
class Recall:
    """A fact of the documents, to be recalled where it is masked, or by going on with a text.

    Args:
        prefix: what stands before it, such as "Ada Lovelace was born in ".
        suffix: what stands behind it, such as "."; may be empty. None: nothing is masked, the prefix is gone on with.
        answer: the fact itself.
    """

    prefix: str
    suffix: str | None
    answer: str


@dataclass(frozen=True)
class DocumentCorpus:
    """A loaded corpus: documents to pretrain on, and perhaps questions to finetune with.

    Args:
        name: as it is asked for, or the file's name.
        version: changes where the same name means other texts.
        source: where it came from.
        notes: what a reader of the data should know.
        documents: `train` and `validation`.
        questions: `train` and `validation`, perhaps `test`, none about the same person; empty where there are none.
        recalls: facts of the training documents by the name of the probe that asks for them.
    """

    name: str
    version: str
    source: str
    notes: tuple[str, ...]
    documents: Mapping[str, tuple[str, ...]]
    questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    recalls: Mapping[str, tuple[Recall, ...]] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each part: `documents-train`, `questions-validation`, `recalls-recall` …"""
        hashes = {f"documents-{split}": sha256_of_texts(texts) for split, texts in self.documents.items()}
        for split, asked in self.questions.items():
            hashes[f"questions-{split}"] = sha256_of_texts((q.text for q in asked), (q.answer or "" for q in asked))
        for probe, facts in self.recalls.items():
            columns = ((f.prefix for f in facts), (f.suffix or "" for f in facts), (f.answer for f in facts))
            hashes[f"recalls-{probe}"] = sha256_of_texts(*columns)
        return hashes

    def majority(self, split: str) -> tuple[str, int, int]:
        """What always giving the same answer scores: the baseline that knowledge has to beat.

        Args:
            split: of the questions.

        Returns:
            The most frequent answer of the training questions (of equally frequent ones the first in the alphabet),
            how many of the split's answers it is, and of how many: questions whose answer is told.

        Raises:
            ValueError: there are no training questions.
        """
        counts = Counter(question.answer for question in self.questions.get("train", ()) if question.answer is not None)
        if not counts:
            raise ValueError(f"corpus {self.name} has no training questions")
        answer = min(counts, key=lambda one: (-counts[one], one))
        told = [question.answer for question in self.questions[split] if question.answer is not None]
        return answer, told.count(answer), len(told)

    def texts(self) -> Iterator[str]:
        """Everything that a tokenizer must know: all documents, questions and answers, and what probes ask."""
        for documents in self.documents.values():
            yield from documents
        for questions in self.questions.values():
            for question in questions:
                yield question.text
                if question.answer is not None:
                    yield question.answer
        for facts in self.recalls.values():
            for fact in facts:
                yield from (fact.prefix, fact.suffix or "", fact.answer)
