"""Scores of translations: BLEU and chrF through sacreBLEU, exact matches, and the sentences that went best and worst.

Detokenised, cased text is scored against the original references, never against tokenised ones, which inflates BLEU
(34.5 of tokenised text is 33.1). Scores without a signature are not comparable. No torch here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from engine.base.errors import InputError
from engine.base.language import Message
from engine.data.tokenizers.tagged import target_language_of
from engine.runs.record_version import RECORD_VERSION

# sacreBLEU's tokenizers for languages written without spaces, by name and ISO 639 codes; 13a for all others, such as
# Korean, whose words its `ko-mecab` would split further.
BLEU_WORDS = {
    "zh": ("zh", "zho", "chi", "cmn", "yue", "chinese", "mandarin", "cantonese"),
    "ja-mecab": ("ja", "jpn", "japanese"),
    "char": ("th", "tha", "thai", "lo", "lao", "km", "khm", "khmer", "my", "mya", "bur", "burmese"),
}
EARLIER_CODES = ("zh", "chinese", "ja", "japanese")  # known before version 3 of a run's records
CHARACTER_BLEU_NOTE = Message(
    "for Japanese, BLEU counts characters; to count words, as published scores do, pip install 'sacrebleu[ja]'"
)


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence, its reference, the translation (detokenised), and its `metric`, 0 to 100; or an article and its
    summary.
    """

    source: str
    reference: str
    output: str
    score: float


class OutputScores:
    """Scores of the texts that a model wrote."""

    metric: ClassVar[str]  # of one text
    n: int
    rows: tuple[ScoredSentence, ...]

    @property
    def scores(self) -> dict[str, float | str]:
        return {name: value for name, value in vars(self).items() if name not in ("n", "rows", "by_target")}

    def scores_by_target(self) -> Mapping[str, tuple[float, float, int]]:
        """Return BLEU, the share exactly right and the number of sentences by target language, if there are several."""
        return {}

    def best(self, most: int) -> list[ScoredSentence]:
        return sorted(self.rows, key=lambda row: -row.score)[:most]

    def worst(self, most: int) -> list[ScoredSentence]:
        return sorted(self.rows, key=lambda row: row.score)[:most]


@dataclass(frozen=True)
class TranslationScores(OutputScores):
    metric = "chrF"  # BLEU counts runs of four words, which a short sentence may lack
    # Corpus BLEU, 0 to 100 (Papineni et al. 2002; Post 2018): cased, exponential smoothing. With several target
    # languages, the mean of theirs: no words of two languages are counted together.
    bleu: float
    bleu_signature: str  # sacreBLEU's, with its version
    chrf: float  # corpus chrF2, 0 to 100 (Popović 2015)
    chrf_signature: str  # sacreBLEU's, with its version
    exact_match: float  # share of outputs equal to their reference, except for white space at the ends; 0 to 1
    n: int  # sentences
    rows: tuple[ScoredSentence, ...]  # the sentences in their order
    by_target: Mapping[str, tuple[float, float, int]]  # as `apart` returns it

    def scores_by_target(self) -> Mapping[str, tuple[float, float, int]]:
        return self.by_target


def bleu_tokenizer(language: str, record_version: int = RECORD_VERSION, *, installed: bool = True) -> str:
    """Return the name of sacreBLEU's tokenizer for a language, for runs with this version of the records; without
    `installed`, the preferred one, even if its package is missing.
    """
    code = language.lower().replace("_", "-").partition("-")[0]
    found = next((words for words, codes in BLEU_WORDS.items() if code in codes), "13a")
    found = found if record_version >= 3 or code in EARLIER_CODES else "13a"
    if installed and found == "ja-mecab" and not (find_spec("MeCab") and find_spec("ipadic")):
        return "char"
    return found


def score_translations(
    sources: Sequence[str],
    references: Sequence[str],
    outputs: Sequence[str],
    language: str = "",
    record_version: int = RECORD_VERSION,
) -> TranslationScores:
    """Score detokenised translations to a language as `sacrebleu` would, or to several, if the sources start with
    their tags; `records` as for `bleu_tokenizer`. `InputError` for none, or not as many of each.
    """
    if not len(sources) == len(references) == len(outputs):
        problem = Message(
            "{n} sources, {n2} references and {n3} outputs: each source needs one reference and one output",
            n=len(sources),
            n2=len(references),
            n3=len(outputs),
        )
        raise InputError(problem)
    if not sources:
        raise InputError(Message("no sentences to score"))
    from sacrebleu import BLEU, CHRF  # imported here: takes 0.1 s

    chrf = CHRF()
    shown, expected = _single_lines(outputs), _single_lines(references)
    corpus_chrf = chrf.corpus_score(shown, [expected])
    targets = [language or target_language_of(source) for source in sources]
    apart, signatures = {}, {}
    for target in sorted(set(targets)):
        here = [i for i, one in enumerate(targets) if one == target]
        # force: no terminal warnings about text that looks tokenised
        bleu = BLEU(force=True, tokenize=bleu_tokenizer(target, record_version))
        found = bleu.corpus_score([shown[i] for i in here], [[expected[i] for i in here]]).score
        # a perfect score comes out as 100.00000000000004
        exact = exact_match([references[i] for i in here], [outputs[i] for i in here])
        apart[target] = min(100.0, found), exact, len(here)
        signatures[target] = str(bleu.get_signature())
    same = len(set(signatures.values())) == 1
    rows = tuple(
        ScoredSentence(source, reference, output, chrf.sentence_score(written, [right]).score)
        for source, reference, output, written, right in zip(sources, references, outputs, shown, expected, strict=True)
    )
    return TranslationScores(
        bleu=sum(score for score, *_ in apart.values()) / len(apart),
        bleu_signature=next(iter(signatures.values()))
        if same
        else "; ".join(f"{target}: {signature}" for target, signature in signatures.items()),
        chrf=corpus_chrf.score,
        chrf_signature=str(chrf.get_signature()),
        exact_match=exact_match(references, outputs),
        n=len(rows),
        rows=rows,
        by_target=apart if len(apart) > 1 else {},
    )


def exact_match(references: Sequence[str], outputs: Sequence[str]) -> float:
    """Return the share of outputs equal to their reference, except for white space at the ends."""
    pairs = zip(references, outputs, strict=True)
    return sum(output.strip() == reference.strip() for reference, output in pairs) / len(references)


SAMPLES = 1_000  # drawn sets of sentences, by sacreBLEU's own seed: the same p each time


@dataclass(frozen=True)
class BootstrapResult:
    """How much of two systems' difference on the same sentences may come from the choice of sentences.

    This is sampling noise of the test set, not seed noise, beside which it is shown; the two are never added.
    """

    difference: float  # BLEU − the baseline's
    p: float  # of the paired bootstrap (Koehn 2004), two-sided
    half: float  # half the width of the 95 % bootstrap interval of our own BLEU
    n: int  # sentences
    signature: str  # of the scores and the test


def paired_bootstrap(
    references: Sequence[str], ours: Sequence[str], baseline: Sequence[str], language: str = ""
) -> BootstrapResult:
    """Resample the sentences, the same for both systems, with sacreBLEU's paired bootstrap; `InputError` as above."""
    if not references or not len(references) == len(ours) == len(baseline):
        problem = Message(
            "{n} references, {n2} and {n3} outputs: both systems must be scored on the same sentences",
            n=len(references),
            n2=len(ours),
            n3=len(baseline),
        )
        raise InputError(problem)
    from sacrebleu import BLEU
    from sacrebleu.significance import PairedTest, Result

    bleu = BLEU(force=True, references=[_single_lines(references)], tokenize=bleu_tokenizer(language))
    systems: list[tuple[str, Sequence[str]]] = [("baseline", _single_lines(baseline)), ("ours", _single_lines(ours))]
    test = PairedTest(systems, {"BLEU": bleu}, references=None, test_type="bs", n_samples=SAMPLES)
    signatures, results = test()
    before, after = results["BLEU"]
    assert isinstance(before, Result) and isinstance(after, Result)
    assert after.p_value is not None and after.ci is not None
    return BootstrapResult(
        difference=after.score - before.score,
        p=1.0 if list(ours) == list(baseline) else float(after.p_value),  # sacreBLEU would say 0.001
        half=float(after.ci),
        n=len(references),
        signature=str(signatures["BLEU"]),
    )


def _single_lines(texts: Sequence[str]) -> list[str]:
    """Return texts as single lines of a file: a model may write line breaks."""
    return [text.replace("\n", " ") for text in texts]
