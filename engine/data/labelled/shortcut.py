"""Whether one word per class gives the class of a text away: for labelled texts of your own, the only known bound."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.base.clean import clean_line
from engine.base.language import Message
from engine.data.synthetic.draws import Draws
from engine.runs.verdict import OK, SUSPICIOUS, Verdict

if TYPE_CHECKING:
    from engine.data.labelled.corpus import LabelledCorpus

SUSPICIOUS_SHARE = 0.99  # share of texts that single words classify
N_SHOWN_WORDS = 3  # of the words
MAX_TEXTS = 5_000  # texts of a split that are read
MIN_TEXTS = 20  # texts of either split outside the largest class: some word fits fewer by chance


@dataclass(frozen=True)
class Shortcut:
    """A rule: a text belongs to the class of the first of these words that it has, or else to `other`."""

    words: tuple[tuple[str, str], ...]  # each with its class
    other: str
    share: float  # of texts that it classifies correctly: the least of both splits, with and without the largest class

    @property
    def verdict(self) -> Verdict:
        """Return whether one word per class classifies nearly every text: the texts may then contain their class."""
        if self.share < SUSPICIOUS_SHARE:
            return Verdict("shortcut", "before", 0, OK, self.share, Message("no word per class gives the classes away"))
        words = [f"'{word}' → '{name}'" for word, name in self.words[:N_SHOWN_WORDS]]
        words += ["…"] * (len(self.words) > N_SHOWN_WORDS)
        why = Message(
            "one word per class is enough to classify {share:.1%} of the texts ({words}; any other text → '{other}'): "
            "if the texts contain their class, the score only measures whether the model finds it",
            share=self.share,
            words=", ".join(words),
            other=self.other,
        )
        return Verdict("shortcut", "before", 0, SUSPICIOUS, self.share, why)


def find_best_word_rule(corpus: "LabelledCorpus") -> list[Shortcut]:
    """Return the rule of the words, ignoring case, that occur in the most training texts of their class and the fewest
    others; none if there are too few texts.
    """
    from engine.data.tokenizers.words import word_tokens

    read = []
    for split in (corpus.splits["train"], corpus.splits["validation"]):
        drawn = Draws(0).shuffled([*zip(split.texts, split.classes, strict=True)])[:MAX_TEXTS]
        read.append([(set(word_tokens(text.casefold())), label) for text, label in drawn])
    counts = {label: Counter[str]() for _, label in read[0]}
    for has, label in read[0]:
        counts[label].update(has)
    total, sizes = Counter(word for has, _ in read[0] for word in has), Counter(label for _, label in read[0])
    best = {label: max((2 * n - total[word], word) for word, n in count.items()) for label, count in counts.items()}
    *told, other = sorted(best, key=lambda label: (-best[label][0] / sizes[label], label))
    shares, largest = list[float](), max(sizes, key=lambda label: (sizes[label], label))
    for texts in read:
        right = [(next((one for one in told if best[one][1] in has), other) == label, label) for has, label in texts]
        rarer = [hit for hit, label in right if label != largest]
        if len(rarer) < MIN_TEXTS:
            return []
        shares += [sum(rarer) / len(rarer), sum(hit for hit, _ in right) / len(right)]
    names = [clean_line(name)[:40] for name in corpus.classes]
    words = tuple((clean_line(best[label][1])[:40], names[label]) for label in told)
    return [Shortcut(words, names[other], min(shares))]
