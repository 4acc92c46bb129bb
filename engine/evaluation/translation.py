"""Scores of translations: BLEU and chrF through sacreBLEU, exact matches, and the sentences that went best and worst.

Scored is detokenised, cased text against the original references, never against what a tokenizer made of them: that
inflates BLEU (34.5 of tokenised text is 33.1). A score without its signature cannot be compared. No torch here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import InputError

SENTENCE_METRIC = "chrF"  # of one sentence; BLEU counts runs of four words, which a short one may not have


@dataclass(frozen=True)
class ScoredSentence:
    """One sentence.

    Args:
        source: as it was given.
        reference: as the corpus has it.
        output: the translation, detokenised.
        score: its `SENTENCE_METRIC`, 0 to 100.
    """

    source: str
    reference: str
    output: str
    score: float


@dataclass(frozen=True)
class TranslationScores:
    """The scores of a set of translations.

    Args:
        bleu: corpus BLEU, 0 to 100 (Papineni et al. 2002; Post 2018): cased, 13a tokens, exponential smoothing.
        bleu_signature: sacreBLEU's, with its version.
        chrf: corpus chrF2, 0 to 100 (Popović 2015).
        chrf_signature: sacreBLEU's, with its version.
        exact_match: share of outputs equal to their reference, but for white space at the ends; 0 to 1.
        n: sentences.
        rows: the sentences in their order.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    exact_match: float
    n: int
    rows: tuple[ScoredSentence, ...]

    def best(self, most: int) -> list[ScoredSentence]:
        """The sentences that score highest, best first; at a tie in their order."""
        return sorted(self.rows, key=lambda row: -row.score)[:most]

    def worst(self, most: int) -> list[ScoredSentence]:
        """The sentences that score lowest, worst first; at a tie in their order."""
        return sorted(self.rows, key=lambda row: row.score)[:most]


def score_translations(sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> TranslationScores:
    """Score translations as the `sacrebleu` command would.

    Args:
        sources: what was translated.
        references: the original translations, one a source.
        outputs: the model's, detokenised; may be empty texts.

    Raises:
        InputError: no sentences, or not as many of each.
    """
    if not len(sources) == len(references) == len(outputs):
        raise InputError(
            f"{len(sources)} sources, {len(references)} references and {len(outputs)} outputs: each source needs one "
            "of each"
        )
    if not sources:
        raise InputError("there is no sentence to score")
    from sacrebleu import BLEU, CHRF  # 0.1 s that a start need not take

    bleu, chrf = BLEU(force=True), CHRF()  # force: no warnings on the terminal about what looks tokenised
    shown, expected = ([_one_line(text) for text in texts] for texts in (outputs, references))
    corpus_bleu, corpus_chrf = (metric.corpus_score(shown, [expected]) for metric in (bleu, chrf))
    rows = tuple(
        ScoredSentence(*texts, score=chrf.sentence_score(_one_line(texts[2]), [_one_line(texts[1])]).score)
        for texts in zip(sources, references, outputs, strict=True)
    )
    return TranslationScores(
        bleu=min(100.0, corpus_bleu.score),  # which comes out at 100.00000000000004
        bleu_signature=str(bleu.get_signature()),
        chrf=corpus_chrf.score,
        chrf_signature=str(chrf.get_signature()),
        exact_match=exact_match(references, outputs),
        n=len(rows),
        rows=rows,
    )


def exact_match(references: Sequence[str], outputs: Sequence[str]) -> float:
    """The share of outputs equal to their reference, but for white space at the ends."""
    pairs = zip(references, outputs, strict=True)
    return sum(output.strip() == reference.strip() for reference, output in pairs) / len(references)


def _one_line(text: str) -> str:
    """A sentence as a line of a file would hold it: a model may write line ends."""
    return text.replace("\n", " ")
