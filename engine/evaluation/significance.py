"""How far a difference of BLEU may come from the choice of test sentences: sacreBLEU's paired bootstrap.

It is another noise than that of seeds: it says what other sentences would have given these two models, never what
other seeds would have given these sentences. The two are shown side by side and never added. No torch here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import InputError

SAMPLES = 1_000  # drawn sets of sentences, by sacreBLEU's own seed: the same p each time


@dataclass(frozen=True)
class SentenceNoise:
    """Two systems on the same sentences.

    Args:
        difference: BLEU − the baseline's.
        p: of the paired bootstrap (Koehn 2004), two-sided.
        half: half the width of the 95 % bootstrap interval of our own BLEU.
        n: sentences.
        signature: of the scores and the test.
    """

    difference: float
    p: float
    half: float
    n: int
    signature: str


def paired_bootstrap(references: Sequence[str], ours: Sequence[str], baseline: Sequence[str]) -> SentenceNoise:
    """Draw the sentences anew, the same for both systems, and see how often the difference comes from that.

    Args:
        references: the original translations.
        ours: what one system wrote, detokenised.
        baseline: what the other wrote.

    Raises:
        InputError: no sentences, or not as many of each.
    """
    if not references or not len(references) == len(ours) == len(baseline):
        raise InputError(
            f"{len(references)} references, {len(ours)} and {len(baseline)} outputs: two systems are compared on the "
            "same sentences"
        )
    from sacrebleu import BLEU
    from sacrebleu.significance import PairedTest, Result

    bleu = BLEU(force=True, references=[_lines(references)])
    systems: list[tuple[str, Sequence[str]]] = [("baseline", _lines(baseline)), ("ours", _lines(ours))]
    test = PairedTest(systems, {"BLEU": bleu}, references=None, test_type="bs", n_samples=SAMPLES)
    signatures, results = test()
    before, after = results["BLEU"]
    assert isinstance(before, Result) and isinstance(after, Result)
    assert after.p_value is not None and after.ci is not None
    return SentenceNoise(
        difference=after.score - before.score,
        p=1.0 if list(ours) == list(baseline) else float(after.p_value),  # sacreBLEU would say 0.001
        half=float(after.ci),
        n=len(references),
        signature=str(signatures["BLEU"]),
    )


def _lines(texts: Sequence[str]) -> list[str]:
    return [text.replace("\n", " ") for text in texts]
