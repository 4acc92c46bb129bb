"""Sentences of a comparison before and after they are put into a language: a phrase's key with what stands in it.

What is said, and when, is decided once, in the modules that know the numbers. A language is a table of phrases; the
English one stands here, others bring their own. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tui_transformer.lab.analysis.statistics import Judgement
from tui_transformer.lab.records.badges import Badge, badge


@dataclass(frozen=True)
class Said:
    """A few words in no language yet.

    Args:
        key: of the phrase.
        values: what stands in it; a `Said` among them is put into the language first, a `Word` is looked up.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


class Word(str):
    """A word that this program uses for something, such as a state or a score's name: a language may have its own."""

    __slots__ = ()


@dataclass(frozen=True)
class Language:
    """How a comparison speaks.

    Args:
        code: as `--language` has it.
        phrases: key -> text with named gaps.
        words: the program's English words -> this language's; the same word where it has none.
        badges: badge -> what it means, what to do; English where it has none.
    """

    code: str
    phrases: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    badges: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, key: str, /, **values: Any) -> str:
        """The phrase of that key with its gaps filled."""
        return self.phrases[key].format(**{name: self._said(value) for name, value in values.items()})

    def tell(self, said: Said) -> str:
        """The same of what was said in no language."""
        return self.say(said.key, **said.values)

    def _said(self, value: Any) -> Any:
        if isinstance(value, Said):
            return self.tell(value)
        return self.word(value) if isinstance(value, Word) else value

    def word(self, english: str) -> str:
        """A word of the program's; names that people gave are never looked up."""
        return self.words.get(english, english)

    def badge(self, name: str) -> Badge:
        """What a badge means, in this language."""
        known = self.badges.get(name)
        return replace(badge(name), means=known[0], advice=known[1]) if known is not None else badge(name)

    def judgement(self, found: Judgement, form: str = "judged") -> str:
        """A verdict in words; in form `brief`, where its numbers stand beside it."""
        none = found.kind == "same" and not found.amounts
        key = f"{form}.{found.kind}" + (".none" if none else f".{found.reason}" if found.reason else "")
        numbers = {"seeds": found.seeds, "fewest": found.fewest, "most": found.most}
        known = {name: f"{n or 0:,}" for name, n in numbers.items()}
        return self.phrases[key].format(*found.amounts, text=found.text, **known)

    def joined(self, parts: Iterable[str]) -> str:
        """`a, b and c`."""
        *most, last = list(parts) or [""]
        comma, final = self.phrases["list.comma"], self.phrases["list.and"]
        return f"{comma.join(most)}{final}{last}" if most else last

    def counted(self, key: str, n: int, /, **values: Any) -> str:
        """A phrase with a number: that of `KEY.one` for 1, else of `KEY`."""
        return self.say(f"{key}.one" if n == 1 else key, n=f"{n:,}", **values)


REASONS = ("", ".open", ".never", ".identical", ".questions")  # why a verdict is inconclusive, as endings of keys
PHRASES = {
    "list.comma": ", ",
    "list.and": " and ",
    "join.comma": ", ",
    "join.semicolon": "; ",
    "name": "{name}: {text}",
    # Why a variant is not judged.
    "whose.own": "",
    "whose.baseline": "baseline ",
    "no.badge": "{whose}{badge}: not comparable",
    "no.other": "{what}: not comparable",
    "no.diverged": "{whose}diverged",
    "no.all-diverged": "{whose}diverged in all {n} seeds",
    "no.training": "{whose}still training: cannot tell",
    "no.seed": "{whose}no finished seed: cannot tell",
    "other": "other {what}",
    # Seeds.
    "seeds": "{n} seeds",
    "seeds.one": "{n} seed",
    "seeds.of": "{n} of {total} seeds",
    "seeds.left-out": "{n} {why}",
    "seeds.not-begun": "{n} not begun",
    # A verdict, and what it rests on.
    **{f"judged.{kind}": "{text}" for kind in ("better", "worse", "same", "same.none", "one-seed", "nothing")},
    **{f"judged.inconclusive{reason}": "{text}" for reason in REASONS},
    "no-baseline": "no baseline to compare to",
    "baseline": "the baseline",
    "no-loss": "no loss in common: cannot tell",
    "bracketed": "{text} ({facts})",
    "in-common": "{n} of them in common with {baseline}",
    "p-adjusted": "adjusted p {p} (Holm over {n} comparisons, two looks)",
    "p-flip": "exact sign-flip test p {p}",
    "correlation": "seed correlation r = {r}",
    # What has to be known beside it.
    "has-badge": "{name} has the badge {badge}: {means}",
    "per-cent": "Loss {cent}, perplexity {perplexity}.",
    "diverged": "{n} of {total} seeds diverged and are excluded, so this mean looks better than it is.",
    "overfit": "{name} has the badge {badge}; at its best: {text}.",
    "falling": "Training stopped while the loss was still falling; this ranks the runs at this budget only.",
    "parameters.more": "It has {n} more parameters ({own} against {other}).",
    "parameters.fewer": "It has {n} fewer parameters ({own} against {other}).",
    "measures": "{a} was scored {own}, {b} {others}: the two losses are different measures.",
    "scored.corpus": "on {value}",
    "scored.split": "on the text with SHA-256 {value}…",
    "scored.cut": "on a text that was cut otherwise",
    "scored.objective": "by {value}",
    "scored.unit": "in nats per {value}",
    "scored.tokens": "over tokens of vocabulary {value}",
    "scored.context": "with context {value}",
    "scored.stride": "with stride {value}",
    "points": "{text} points",
    # What was expected.
    "the-loss": "the loss",
    "expected": "expected {what} {said}: {outcome}",
    "expected.unknown": "{what}: {outcome}",
    "expected.nothing": "nothing to judge",
    "counts": "{right} of {known} as expected, {wrong} not as expected, {open} open",
    "counts.unknown": ", {n} unknown beforehand",
    # What the numbers of a table mean.
    "note.interval": "± is half of the 95 % t interval over seeds; Δ is the variant minus the baseline on the same "
    "seeds.",
    "note.shares": "Shares have their 95 % interval in brackets; it covers the variation over seeds "
    "and, where their number is known, over questions.",
    "note.corrected": "Verdicts share one error rate of 5 % over {n} comparisons (Holm), with most weight on "
    "{primary}, and allow for judging once more after adding seeds. Each interval is for one comparison alone.",
    "note.exploratory": "{n} seeds can miss small differences; use 5 or more for a firm verdict.",
    "note.handed-in": "Percentages of loss and ranks ignore noise; included because some assignments ask for them.",
    "note.bleu": "± over seeds says nothing of the noise of the sentences: for BLEU that is the p given seed by seed.",
    "note.stages": "{n} runs of earlier stages ({stages}) are not in this table; see the view by run.",
    "note.majority": "{name} would be right in {share} of the questions: the trivial baseline to beat.",
    "note.not-begun": "Not begun yet: {names}.",
    "note.unread": "Its baseline and what was expected are not known: {why}",
    "sentences": "the noise of the sentences, seed by seed ({samples} draws of {n} test sentences, sacreBLEU's paired "
    "bootstrap): {each}",
    "sentences.seed": "seed {seed} {difference} BLEU, p {p}",
    # Few words, where the numbers stand beside them.
    **{f"brief.{kind}": kind for kind in ("better", "worse")},
    "brief.one-seed": "one seed: cannot tell",
    "brief.nothing": "no seed in common",
    **{f"brief.inconclusive{reason}": "inconclusive" for reason in REASONS},
    "brief.same": "no difference > {0}",
    "brief.same.none": "no difference at all",
}
ENGLISH = Language("en", PHRASES)
