"""A corpus of documents and questions; `catalogue.load_documents` loads one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from engine.data.framing import sha256_of_texts


@dataclass(frozen=True)
class Question:
    text: str  # as it is asked, such as "Where was Ada Lovelace born?"
    answer: str | None  # the right answer; None if withheld, as in a blind test split


@dataclass(frozen=True)
class Recall:
    """A fact of the documents, to be recalled by filling a mask or continuing a text."""

    prefix: str  # the text before it, such as "Ada Lovelace was born in "
    # The text after it, such as "."; may be empty. None: nothing is masked, the prefix is continued
    suffix: str | None
    answer: str  # the fact itself


@dataclass(frozen=True)
class DocumentCorpus:
    """A loaded corpus: documents to pretrain on, and perhaps questions to finetune with."""

    name: str  # the registered name, or the file's
    version: str  # changes when the name means other texts
    source: str  # where it came from
    notes: tuple[str, ...]  # notes for users of the data
    documents: Mapping[str, tuple[str, ...]]  # `train` and `validation`
    # `train` and `validation`, perhaps `test`, none about the same person; empty where there are none
    questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    # Facts of the training documents, by the name of their probe
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
        """Return the most frequent training answer (on a tie the alphabetically first), how many of the split's answers
        it matches, and of how many: the baseline that knowledge has to beat.
        """
        counts = Counter(question.answer for question in self.questions.get("train", ()) if question.answer is not None)
        if not counts:
            raise ValueError(f"corpus {self.name} has no training questions")
        answer = min(counts, key=lambda one: (-counts[one], one))
        told = [question.answer for question in self.questions[split] if question.answer is not None]
        return answer, told.count(answer), len(told)

    def texts(self) -> Iterator[str]:
        """All texts a tokenizer must cover: documents, questions, answers and probes."""
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
