"""A corpus of texts with a class each; `catalogue.load_corpus` loads one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from statistics import fmean

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import tr
from engine.config.sections import DataConfig
from engine.data.corpus import Corpus, CorpusPreview, Description, VocabularySizes, format_counts
from engine.data.framing import sha256_of_texts
from engine.data.labelled.shortcut import find_best_word_rule
from engine.data.overlap import Overlap, labelled_overlap
from engine.runs.verdict import OK

N_EXAMPLES, MAX_EXAMPLE_LENGTH = 4, 300  # texts that `data show` prints, and characters of each


@dataclass(frozen=True)
class LabelledTexts:
    texts: tuple[str, ...]
    classes: tuple[int, ...]  # of each text

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class ReaderAccuracies:
    """What readers who know how the texts are made get right."""

    best: float  # share of a split's texts that the best reader classifies correctly
    expected: float  # the same over all possible texts
    unordered: float  # share of a split's texts that the best reader without word order classifies correctly
    chance: float  # the same among the texts of `LabelledCorpus.order_only_classes`


@dataclass(frozen=True)
class LabelledCorpus(Corpus):
    kind = "labelled"
    notes: tuple[str, ...]  # notes for users of the data
    classes: tuple[str, ...]  # their names
    splits: Mapping[str, LabelledTexts]  # `train` and `validation`, perhaps `test`
    order_only_classes: tuple[int, ...] = ()  # classes told apart by the order of words alone
    # By split; empty where the grammar is unknown
    reader_accuracies: Mapping[str, ReaderAccuracies] = field(default_factory=dict)
    refusal: str = ""  # why no run may start on it; earlier runs stay verifiable
    shortcuts = cached_property(find_best_word_rule)

    @cached_property
    def sha256(self) -> dict[str, str]:
        return {
            split: sha256_of_texts(found.texts, (self.classes[i] for i in found.classes))
            for split, found in self.splits.items()
        }

    def majority_baseline(self, split: str) -> tuple[str, int, int]:
        """Return the most frequent class in training (on a tie the first), how many of the split's texts have it, and
        of how many.
        """
        train, held_out = self.splits["train"].classes, self.splits[split].classes
        often = max(range(len(self.classes)), key=train.count)
        return self.classes[often], held_out.count(often), len(held_out)

    def overlaps(self) -> list[Overlap | None]:
        train = self.splits["train"].texts
        return [labelled_overlap(train, found.texts, name) for name, found in self.splits.items() if name != "train"]

    def describe(self, licence: str) -> Description:
        if self.refusal:
            raise InputError(self.refusal)
        train, found = self.splits["train"], [one.verdict for one in self.shortcuts]
        overlap, overlap_lines = self.overlap_report()
        answer, right, of = self.majority_baseline("validation")
        counts = {name: train.classes.count(i) for i, name in enumerate(self.classes)}
        shown = [(train.texts[i], self.classes[train.classes[i]]) for i in range(min(N_EXAMPLES, len(train)))]
        texts = {split: len(found) for split, found in self.splits.items()}
        mean, longest = fmean(map(len, train.texts)), max(map(len, train.texts))
        record = {
            "texts": texts,
            "characters_mean": mean,
            "characters_longest": longest,
            "classes": counts,
            "majority": {"answer": answer, "right": right, "of": of},
            "sha256": self.sha256,
            "notes": self.all_notes,
            "shortcuts": [asdict(one) for one in self.shortcuts],
            "examples": shown,
            "licence": licence,
            "overlap": overlap,
        }
        lines = [
            (tr("texts"), format_counts(texts)),
            (tr("length"), tr("{mean:.1f} characters on average, {longest:,} at most", mean=mean, longest=longest)),
            (tr("classes"), format_counts(counts)),
            (
                tr("baseline"),
                tr(
                    "always answering {answer!r} is right for {share:.1%} of the validation texts",
                    answer=answer,
                    share=right / of,
                ),
            ),
            *self.hash_licence_note_lines(licence),
            *overlap_lines,
            *((f"⚠ {tr('shortcut')}", tr(one.why)) for one in found if one.verdict != OK),
        ]
        examples = ["", *(clean_line(f"{text[:MAX_EXAMPLE_LENGTH]}  →  {name}") for text, name in shown)]
        return Description(record, lines, examples)

    def preview(self, data: DataConfig, row_name: str, rows: int) -> CorpusPreview:
        from engine.data.tokenizers import WordTokenizer

        train = self.splits["train"]
        shown = zip(train.texts[: rows // 2], train.classes, strict=False)
        lines = [part for text, label in shown for part in (text, self.classes[label])]
        if data.tokenizer == "words":
            tokens = WordTokenizer.from_frequent(train.texts).vocab_size
        else:
            tokens = len(set().union(*train.texts))
        return CorpusPreview(self.name, lines, VocabularySizes(tokens), tr("{n:,} texts", n=len(train)), paired=True)
