"""`data show` of documents: how many, how long, what is asked about them, what always guessing scores, and some."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from engine.clean import clean_line
from engine.config.sections import DataConfig
from engine.data.catalogue import catalogue
from engine.data.documents.corpus import DocumentCorpus
from engine.data.documents.registry import load_documents
from engine.data.overlap import Overlap, document_overlap, question_overlap
from engine.data.tokenizers import CharacterTokenizer, WordTokenizer
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit
from tui_transformer.cli.overlap_shown import overlap_facts, overlap_lines

EXAMPLES = 4  # documents, and questions
WIDEST = 300  # characters of a document that are printed
LABEL = 12  # columns


def show_documents(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Documents and questions by split, the majority baseline, vocabularies, probes, hashes, notes, and examples."""
    corpus = load_documents(DataConfig(corpus=name), data_dir)
    entry = catalogue().get(corpus.name)
    facts = _facts(corpus) | {"licence": entry.licence if entry else ""}
    overlaps = list(_overlaps(corpus))
    if as_json:
        emit(facts | {"overlap": overlap_facts(overlaps)})
        return ExitCode.DONE
    answer(clean_line(f"{corpus.version}, {corpus.source}"))
    for label, line in (*_lines(facts), *overlap_lines(overlaps)):
        answer(clean_line(f"  {label:<{LABEL}}{line}"))
    answer()
    for text in facts["examples"]["documents"]:
        answer(clean_line(text[:WIDEST]))
    answer(end="\n" if facts["examples"]["questions"] else "")
    for question, right in facts["examples"]["questions"]:
        answer(clean_line(f"{question[:WIDEST]}  →  {right[:WIDEST]}"))
    return ExitCode.DONE


def _facts(corpus: DocumentCorpus) -> dict[str, Any]:
    train = corpus.documents["train"]
    asked = [question for questions in corpus.questions.values() for question in questions]
    texts = list(corpus.texts())
    return {
        "name": corpus.name,
        "kind": "documents",
        "version": corpus.version,
        "source": corpus.source,
        "documents": {split: len(found) for split, found in corpus.documents.items()},
        "characters_mean": fmean(map(len, train)),
        "characters_longest": max(map(len, train)),
        "questions": {split: len(found) for split, found in corpus.questions.items()},
        "different_questions": len({question.text for question in asked}),
        "different_answers": len({question.answer for question in asked if question.answer is not None}),
        "majority": _majority(corpus),
        "vocabulary": {
            "characters": CharacterTokenizer.of(texts).vocab_size,
            "words": WordTokenizer.of(texts).vocab_size,
        },
        "recalls": {probe: len(facts) for probe, facts in corpus.recalls.items()},
        "sha256": corpus.sha256,
        "notes": corpus.notes,
        "examples": {
            "documents": train[:EXAMPLES],
            "questions": [(q.text, q.answer) for q in corpus.questions.get("train", ())[:EXAMPLES]],
        },
    }


def _overlaps(corpus: DocumentCorpus) -> Iterator[Overlap]:
    """The overlap of documents and questions, for each held-out split."""
    for split, documents in corpus.documents.items():
        if split != "train" and (found := document_overlap(corpus.documents["train"], documents, split)) is not None:
            yield found
    asked = {split: [question.text for question in questions] for split, questions in corpus.questions.items()}
    for split, questions in asked.items():
        if split != "train" and (found := question_overlap(asked["train"], questions, split)) is not None:
            yield found


def _majority(corpus: DocumentCorpus) -> dict[str, Any] | None:
    """The answer that training has most often, and how many of each split's answers it is; None without questions."""
    if not corpus.questions:
        return None
    found = {split: corpus.majority(split) for split in corpus.questions}
    told = {split: {"right": right, "of": of} for split, (_, right, of) in found.items() if of}
    return {"answer": found["train"][0], "splits": told}


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Labels and what stands beside them."""
    yield "documents", _counts(facts["documents"])
    yield "length", f"{facts['characters_mean']:.1f} characters on average, {facts['characters_longest']:,} at most"
    if facts["questions"]:
        different = f"{facts['different_questions']:,} different ones, {facts['different_answers']:,} different answers"
        yield "questions", f"{_counts(facts['questions'])}; {different}"
        majority = facts["majority"]
        shares = [
            f"{one['right'] / one['of']:.1%} of {split} ({one['right']:,} of {one['of']:,})"
            for split, one in majority["splits"].items()
        ]
        yield "baseline", f"always answering {majority['answer']!r} is right in {', '.join(shares)}"
    else:
        yield "questions", "none"
    vocabulary = facts["vocabulary"]
    yield "vocabulary", f"{vocabulary['characters']:,} characters, {vocabulary['words']:,} words and marks"
    for probe, count in facts["recalls"].items():
        yield "probe", f"{probe}: {count:,} facts"
    for part, sha256 in facts["sha256"].items():
        yield "SHA-256", f"{part} {sha256[:16]}…"
    if facts["licence"]:
        yield "licence", facts["licence"]
    for note in facts["notes"]:
        yield "note", note


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{split} {count:,}" for split, count in counts.items())
