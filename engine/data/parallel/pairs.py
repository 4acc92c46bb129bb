"""Sentence pairs, statistics and warnings about them, and how to split them so that no sentence is in two splits.

Many corpora repeat a sentence with other translations, so a random split tests on training sentences. So pairs that
share a source or a target stay together, and groups are ordered by the hash of their text: neither reordering the
file nor appending to it moves the others.
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice, zip_longest

import numpy as np

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import Corpus, CorpusPreview, Description, VocabularySizes, direction, format_counts
from engine.data.framing import fold_case_and_spaces, sha256_of_texts
from engine.data.overlap import Overlap, pair_overlap
from engine.data.tokenizers.tagged import add_tag, remove_tag, target_language_of

N_EXAMPLES, MAX_EXAMPLE_LENGTH = 5, 300  # pairs that `data show` prints, and characters of each sentence
RATIO = 3.0  # times the median length ratio; a pair beyond that is rarely a translation
SMOOTHING = 10  # characters added to both sides, so that "Hi." and "Guten Tag!" are not an outlier
LIMIT, UNIT = 100, "words"  # above which a sentence counts as long, and the unit


@dataclass(frozen=True)
class Pairs:
    """Sentences with their translations: `targets[i]` translates `sources[i]`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    has_tags: bool = field(default=False, compare=False)  # of each source, see `interleave_targets`

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def sha256(self) -> str:
        return sha256_of_texts(self.sources, self.targets)

    def select(self, places: Iterable[int]) -> "Pairs":
        places = list(places)
        sources, targets = (tuple(side[i] for i in places) for side in (self.sources, self.targets))
        return replace(self, sources=sources, targets=targets)

    def reversed(self) -> "Pairs":
        return Pairs(self.targets, self.sources)

    def for_language(self, language: str) -> "Pairs":
        """Return those of one target language, without its tag."""
        found = self.select(i for i, source in enumerate(self.sources) if target_language_of(source) == language)
        return replace(found, sources=tuple(map(remove_tag, found.sources)), has_tags=False)


def complete_pairs(rows: Iterable[tuple[str, str]], most: int | None = None) -> tuple[Pairs, int]:
    """Return the first `most` pairs of some rows, or all, and how many rows among them were left out because a
    side was empty.
    """
    sources: list[str] = []
    targets: list[str] = []
    left_out = 0
    for source, target in rows:
        if len(sources) == most:
            break
        if source.strip() and target.strip():
            sources.append(source)
            targets.append(target)
        else:
            left_out += 1
    return Pairs(tuple(sources), tuple(targets)), left_out


def interleave_targets(by_target: Mapping[str, Pairs]) -> Pairs:
    """Return pairs with several target languages, interleaved; each source starts with a tag that says which."""
    parts = [
        [(add_tag(source, language), target) for source, target in zip(pairs.sources, pairs.targets, strict=True)]
        for language, pairs in by_target.items()
    ]
    found = [pair for row in zip_longest(*parts) for pair in row if pair is not None]
    return Pairs(tuple(source for source, _ in found), tuple(target for _, target in found), has_tags=True)


@dataclass(frozen=True)
class PairStatistics:
    """Statistics of a split. Shares are of all its pairs, 0 to 1."""

    pairs: int  # number of pairs
    unit: str  # of the lengths
    source_mean: float  # mean length of a source
    target_mean: float  # mean length of a target
    source_longest: int  # length of the longest source
    target_longest: int  # length of the longest target
    limit: int  # in the same unit
    longer: float  # share with a side longer than `limit`
    duplicates: float  # share of pairs that repeat an earlier one, ignoring case and spaces
    copies: float  # share whose source equals its target, ignoring case and spaces
    outliers: float  # share whose length ratio differs from the median by a factor of more than `RATIO`


def pair_statistics(pairs: Pairs) -> PairStatistics:
    count = len(pairs)
    if count == 0:
        return PairStatistics(0, UNIT, 0.0, 0.0, 0, 0, LIMIT, 0.0, 0.0, 0.0, 0.0)
    lengths = [np.array([len(sentence.split()) for sentence in side]) for side in (pairs.sources, pairs.targets)]
    sources, targets = ([fold_case_and_spaces(one) for one in side] for side in (pairs.sources, pairs.targets))
    smoothed = [np.array([len(one) for one in side]) + SMOOTHING for side in (pairs.targets, pairs.sources)]
    ratios = np.log(smoothed[0] / smoothed[1])
    return PairStatistics(
        pairs=count,
        unit=UNIT,
        source_mean=float(lengths[0].mean()),
        target_mean=float(lengths[1].mean()),
        source_longest=int(lengths[0].max()),
        target_longest=int(lengths[1].max()),
        limit=LIMIT,
        longer=float(np.mean((lengths[0] > LIMIT) | (lengths[1] > LIMIT))),
        duplicates=1.0 - len(set(zip(sources, targets, strict=True))) / count,
        copies=sum(one == other for one, other in zip(sources, targets, strict=True)) / count,
        outliers=float(np.mean(np.abs(ratios - np.median(ratios)) > np.log(RATIO))),
    )


# Field, the share at which to warn, and the warning.
WARNINGS: tuple[tuple[str, float, str], ...] = (
    ("duplicates", 0.10, Message("{split}: {share:.1%} of the pairs are duplicates of others")),
    ("copies", 0.02, Message("{split}: {share:.1%} of the pairs have a target identical to the source")),
    (
        "outliers",
        0.01,
        Message("{split}: {share:.1%} of the pairs have sides of very different lengths: are the files aligned?"),
    ),
    ("longer", 0.01, Message("{split}: {share:.1%} of the pairs have a side longer than {limit} words")),
)
FEW = 100  # pairs; a score on fewer means little


def pair_warnings(split: str, numbers: PairStatistics) -> list[str]:
    lines: list[str] = []
    if split != "train" and numbers.pairs < FEW:
        few = Message("{split}: only {pairs} pairs; a score on so few means little", split=split, pairs=numbers.pairs)
        lines.append(few)
    for name, share, text in WARNINGS:
        value = getattr(numbers, name)
        if value > share:
            lines.append(text.format(split=split, share=value, limit=LIMIT))
    return lines


@dataclass(frozen=True)
class ParallelCorpus(Corpus):
    """Loaded sentence pairs: `train`, `validation` and perhaps `test`."""

    kind = "pairs"
    # Of sources and targets; `("source", "target")` if unknown. With several targets, each source starts with a tag.
    languages: tuple[str, ...]
    splits: Mapping[str, Pairs]  # their pairs
    notes: tuple[str, ...] = ()  # notes for users of the data, such as how many pairs were dropped and why
    examples: tuple[str, ...] = ()  # sources of training pairs worth trying

    @property
    def sha256(self) -> dict[str, str]:
        return {name: pairs.sha256 for name, pairs in self.splits.items()}

    @property
    def title_parts(self) -> list[str]:
        return [self.version, direction(self.languages), self.source]

    @property
    def tagged_languages(self) -> tuple[str, ...]:
        """The target languages, if there are several."""
        return self.languages[1:] if len(self.languages) > 2 else ()

    def for_language(self, language: str) -> "ParallelCorpus":
        """Return the pairs of one of several target languages."""
        splits = {name: pairs.for_language(language) for name, pairs in self.splits.items()}
        return replace(self, languages=(self.languages[0], language), splits=splits)

    def reversed(self) -> "ParallelCorpus":
        first, second = self.languages
        splits = {name: pairs.reversed() for name, pairs in self.splits.items()}
        return replace(self, languages=(second, first), splits=splits)

    def overlaps(self) -> list[Overlap | None]:
        held_out = [(split, pairs) for split, pairs in self.splits.items() if split in ("validation", "test")]
        return [pair_overlap(self.splits["train"], pairs, split) for split, pairs in held_out]

    def describe(self, licence: str) -> Description:
        splits = {name: pair_statistics(pairs) for name, pairs in self.splits.items()}
        warned = [line for split, numbers in splits.items() for line in pair_warnings(split, numbers)]
        sources, targets = (len(set().union(*side)) for side in self._sides())
        examples = self._first_distinct_pairs(N_EXAMPLES)
        overlap, overlap_lines = self.overlap_report()
        record = {
            "languages": self.languages,
            "licence": licence,
            "splits": {split: asdict(numbers) for split, numbers in splits.items()},
            "warnings": warned,
            "overlap": overlap,
            "characters": [sources, targets],
            "sha256": self.sha256,
            "notes": self.all_notes,
            "examples": examples,
        }

        def lengths(mean: float, longest: int, characters: int) -> str:
            return tr(
                "{mean:.1f} words on average, {longest:,} at most; {characters:,} distinct characters",
                mean=mean,
                longest=longest,
                characters=characters,
            )

        train = splits["train"]
        lines = [
            (tr("pairs"), format_counts({split: numbers.pairs for split, numbers in splits.items()})),
            (tr("sources"), lengths(train.source_mean, train.source_longest, sources)),
            (tr("targets"), lengths(train.target_mean, train.target_longest, targets)),
            *self.hash_licence_note_lines(licence),
            *overlap_lines,
            *(("⚠", tr(line)) for line in warned),
        ]
        most = MAX_EXAMPLE_LENGTH
        shown = [f"\n{clean_line(source[:most])}\n  {clean_line(target[:most])}" for source, target in examples]
        return Description(record, lines, shown)

    def preview(self, data: DataConfig, row_name: str, rows: int) -> CorpusPreview:
        lines = [sentence for pair in self._first_distinct_pairs(rows // 2) for sentence in pair]
        sources, targets = self._sides()
        if data.shared_vocabulary:
            characters = VocabularySizes(len(set().union(*sources, *targets)))
        else:
            characters = VocabularySizes(len(set().union(*targets)), len(set().union(*sources)))
        return CorpusPreview(self.name, lines, characters, tr("{n:,} pairs", n=len(self.splits["train"])), paired=True)

    def _first_distinct_pairs(self, count: int) -> list[tuple[str, str]]:
        """Return the first different training pairs."""
        train = self.splits["train"]
        return list(islice(dict.fromkeys(zip(train.sources, train.targets, strict=True)), count))

    def _sides(self) -> tuple[list[str], list[str]]:
        """Return the sources and the targets of all splits."""
        found = self.splits.values()
        return [text for pairs in found for text in pairs.sources], [text for pairs in found for text in pairs.targets]


def grouped_split(pairs: Pairs, validation: int, test: int, where: str) -> dict[str, Pairs]:
    """Return training, validation and perhaps test pairs that share no sentence on either side, whatever its tag, in
    file order. `validation` and `test` are numbers of pairs, 0 for none; fewer only if no group is small enough to fit.
    """
    # The indices of pairs linked by shared sentences, in groups by the smallest hash of their sources.
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        top = key
        while (above := parents.setdefault(top, top)) != top:
            top = above
        while key != top:  # path compression: the next lookup takes one step
            parents[key], key = top, parents[key]
        return top

    keys = [(0, fold_case_and_spaces(remove_tag(source) if pairs.has_tags else source)) for source in pairs.sources]
    for key, target in zip(keys, pairs.targets, strict=True):
        parents[root(key)] = root((1, fold_case_and_spaces(target)))
    members: dict[Hashable, list[int]] = {}
    order: dict[Hashable, bytes] = {}
    for place, key in enumerate(keys):
        top = root(key)
        members.setdefault(top, []).append(place)
        drawn = hashlib.sha256(key[1].encode("utf-8", "surrogatepass")).digest()
        order[top] = min(order.get(top, drawn), drawn)
    groups = [members[top] for top in sorted(members, key=order.__getitem__)]

    wanted = {"test": test, "validation": validation}
    taken: dict[str, list[int]] = {name: [] for name, size in wanted.items() if size > 0}
    rest: list[int] = []
    for group in groups:
        for name, places in taken.items():
            if len(places) + len(group) <= wanted[name]:
                places.extend(group)
                break
        else:
            rest.extend(group)
    taken["train"] = rest
    for name, places in taken.items():
        if not places:
            problem = Message(
                "{where}: its {n:,} pairs form {n2:,} groups that share no sentence, which "
                "leaves nothing for {name}; use more pairs, or separate files for each split",
                where=where,
                n=len(pairs),
                n2=len(groups),
                name=name,
            )
            raise InputError(problem)
    return {name: pairs.select(sorted(taken[name])) for name in ("train", "validation", "test") if name in taken}
