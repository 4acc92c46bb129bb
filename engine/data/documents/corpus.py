"""A corpus of documents and questions; `catalogue.load_corpus` loads one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import Corpus, CorpusPreview, Description, VocabularySizes, format_counts
from engine.data.framing import sha256_of_texts
from engine.data.overlap import Overlap, document_overlap, question_overlap

N_EXAMPLES, MAX_EXAMPLE_LENGTH = 4, 300  # documents and questions that `data show` prints, and characters of each


@dataclass(frozen=True)
class Question:
    text: str  # as it is asked, such as "Where was Ada Lovelace born?"
    answer: str | None  # the right answer; None if withheld, as in a blind test split


@dataclass(frozen=True)
class RecallFact:
    """A fact of the documents, to be recalled by filling a mask or continuing a text."""

    prefix: str  # the text before it, such as "Ada Lovelace was born in "
    # The text after it, such as "."; may be empty. None: nothing is masked, the prefix is continued
    suffix: str | None
    answer: str  # the fact itself


@dataclass(frozen=True)
class DocumentCorpus(Corpus):
    """A loaded corpus: documents to pretrain on, and perhaps questions to finetune with."""

    kind = "documents"
    notes: tuple[str, ...]  # notes for users of the data
    documents: Mapping[str, tuple[str, ...]]  # `train` and `validation`
    # `train` and `validation`, perhaps `test`, none about the same person; empty where there are none
    questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    # Facts of the training documents, by the name of their probe
    recall_facts: Mapping[str, tuple[RecallFact, ...]] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each part: `documents-train`, `questions-validation`, `recalls-recall` …"""
        hashes = {f"documents-{split}": sha256_of_texts(texts) for split, texts in self.documents.items()}
        for split, asked in self.questions.items():
            hashes[f"questions-{split}"] = sha256_of_texts((q.text for q in asked), (q.answer or "" for q in asked))
        for probe, facts in self.recall_facts.items():
            columns = ((f.prefix for f in facts), (f.suffix or "" for f in facts), (f.answer for f in facts))
            hashes[f"recalls-{probe}"] = sha256_of_texts(*columns)
        return hashes

    def majority_baseline(self, split: str) -> tuple[str, int, int]:
        """Return the most frequent training answer (on a tie the alphabetically first), how many of the split's answers
        it matches, and of how many: the baseline that knowledge has to beat.
        """
        counts = Counter(question.answer for question in self.questions.get("train", ()) if question.answer is not None)
        if not counts:
            raise ValueError(tr("corpus {name} has no training questions", name=self.name))
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
        for facts in self.recall_facts.values():
            for fact in facts:
                yield from (fact.prefix, fact.suffix or "", fact.answer)

    def overlaps(self) -> list[Overlap | None]:
        train, asked = self.documents["train"], {split: [q.text for q in qs] for split, qs in self.questions.items()}
        return [
            *(document_overlap(train, found, split) for split, found in self.documents.items() if split != "train"),
            *(question_overlap(asked["train"], found, split) for split, found in asked.items() if split != "train"),
        ]

    def describe(self, licence: str) -> Description:
        from engine.data.tokenizers import CharacterTokenizer, WordTokenizer

        train, texts = self.documents["train"], list(self.texts())
        questions = [question for found in self.questions.values() for question in found]
        majority = {split: self.majority_baseline(split) for split in self.questions}
        right = {split: {"right": right, "of": of} for split, (_, right, of) in majority.items() if of}
        overlap, overlap_lines = self.overlap_report()
        shown = self.questions.get("train", ())[:N_EXAMPLES]
        documents = {split: len(found) for split, found in self.documents.items()}
        counts = {split: len(found) for split, found in self.questions.items()}
        mean, longest = fmean(map(len, train)), max(map(len, train))
        answers = len({question.answer for question in questions if question.answer is not None})
        different = len({question.text for question in questions})
        words, characters = WordTokenizer.from_texts(texts).vocab_size, CharacterTokenizer.from_texts(texts).vocab_size
        recalls = {probe: len(found) for probe, found in self.recall_facts.items()}
        record = {
            "documents": documents,
            "characters_mean": mean,
            "characters_longest": longest,
            "questions": counts,
            "different_questions": different,
            "different_answers": answers,
            "majority": {"answer": majority["train"][0], "splits": right} if majority else None,
            "vocabulary": {"characters": characters, "words": words},
            "recalls": recalls,
            "sha256": self.sha256,
            "notes": self.all_notes,
            "examples": {
                "documents": train[:N_EXAMPLES],
                "questions": [(question.text, question.answer) for question in shown],
            },
            "licence": licence,
            "overlap": overlap,
        }
        told = tr(
            "{counted}; {different:,} distinct questions, {answers:,} distinct answers",
            counted=format_counts(counts),
            different=different,
            answers=answers,
        )
        if not counts:
            told = tr("none")
        lines = [
            (tr("documents"), format_counts(documents)),
            (tr("length"), tr("{mean:.1f} characters on average, {longest:,} at most", mean=mean, longest=longest)),
            (tr("questions"), told),
        ]
        if counts:
            shares = (
                tr("{n:.1%} of {split} questions ({n2:,} of {of:,})", n=n / of, split=split, n2=n, of=of)
                for split, (_, n, of) in majority.items()
                if of
            )
            label, always = tr("baseline"), majority["train"][0]
            said = tr("always answering {majority!r} is right for {shares}", majority=always, shares=", ".join(shares))
            lines.append((label, said))
        label = tr("vocabulary")
        size = tr(
            "{characters:,} characters, {words:,} words and punctuation marks", characters=characters, words=words
        )
        lines += [
            (label, size),
            *((tr("probe"), tr("{probe}: {count:,} facts", probe=name, count=n)) for name, n in recalls.items()),
            *self.hash_licence_note_lines(licence),
            *overlap_lines,
        ]
        examples = ["", *(clean_line(text[:MAX_EXAMPLE_LENGTH]) for text in train[:N_EXAMPLES])]
        if shown:
            pairs = ((q.text[:MAX_EXAMPLE_LENGTH], (q.answer or "")[:MAX_EXAMPLE_LENGTH]) for q in shown)
            examples += ["", *(clean_line(f"{text}  →  {answer}") for text, answer in pairs)]
        return Description(record, lines, examples)

    def preview(self, data: DataConfig, row_name: str, rows: int) -> CorpusPreview:
        """Return questions with answers, or documents with their second half masked and the missing text."""
        from engine.data.tokenizers import WordTokenizer

        train, asked = self.documents["train"], self.questions.get("train", ())
        lines, size = list[str](), tr("{n:,} documents", n=len(train))
        if row_name == "questions":
            if not asked:
                raise InputError(Message("corpus {name} has no questions: it is for span-corruption", name=self.name))
            size = tr("{n:,} questions", n=len(asked))
            lines = [part for one in asked[: rows // 2] for part in (one.text, one.answer or "")]
        else:
            for text in train[: rows // 2]:
                words = text.split(" ")
                start, end = len(words) // 2, len(words) // 2 + max(1, len(words) // 4)
                lines += [" ".join((*words[:start], "⁇", *words[end:])), " ".join(words[start:end])]
        by_word = data.tokenizer == "words"
        tokens = WordTokenizer.from_texts(self.texts()).vocab_size if by_word else len(set().union(*self.texts()))
        return CorpusPreview(self.name, lines, VocabularySizes(tokens), size, paired=True)
