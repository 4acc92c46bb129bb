"""The measures of an evaluation, in one table that every chart, table, verdict and export reads.

Imports neither torch nor any drawing code. A probe is measured like any other share; `probe_measure` makes the row for
a corpus's own probes, which are not listed here.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from engine.base.language import Message, tr

_BAND = re.compile(r"[<>=\s@]")
_DISTANCE_BAND = re.compile(r"([\w-]+)(<|>=)(\d+)")  # a probe's questions whose answer stands so many characters back
MOST_UNKNOWN = 0.25  # of a split's tokens: above this, most of a word model's bits go into spelling unknown words


@dataclass(frozen=True)
class Mean:
    mean: float  # in the unit of the values
    half: float | None  # half the width of its 95 % t interval; None with one value
    n: int  # values
    sd: float | None  # standard deviation over seeds, with n - 1; None with one value
    interval: tuple[float, float] | None = None  # for a share, its 95 % interval within 0 and 1; None if unknown


@dataclass(frozen=True)
class Measure:
    key: str  # its field in an evaluation's record, or the probe's name
    name: str  # in English, in tables, charts and sentences; `tr` translates it
    # what the number means when shown by itself, with placeholders `{unit}` and `{floor}`; "" if the name says it all
    about: str = ""
    lower_is_better: bool = False  # whether lower is better
    is_share: bool = False  # whether it lies between 0 and 1 and is shown as a percentage
    is_probe: bool = False  # whether it is the share of a probe's questions answered correctly
    question: str = ""  # what a probe asks; "" if unknown
    digits: int = 4  # decimals in a comparison
    exact_format: str = "{:.4f}"  # its format when shown by itself
    brief_format: str = "{:.4f}"  # its format in a table, or in a line with other measures
    margin: float = 0.0  # the smallest difference that matters; 0.0 if variants are not compared on it
    charted: bool = False  # whether a run's charts offer it
    tabled: bool = False  # whether a report's table of evaluations includes it
    of_loss: Callable[[float], float] | None = None  # computes it from a loss; None if only an evaluation can tell
    selects: str = ""  # the checkpoint that it chooses as the best; "" if it cannot
    tolerance: tuple[float, float] = (0.0, 0.0)  # (relative, absolute) allowed when another machine computes it again

    @property
    def key_without_band(self) -> str:
        return name_without_band(self.key)

    @property
    def title(self) -> str:
        """The title of its column: `near recall` for `recall<110`."""
        return probe_display_name(self.key)

    @property
    def is_compared(self) -> bool:
        """Whether variants are compared on it, and so corrected for multiple comparisons."""
        return self.margin > 0.0

    @property
    def unit(self) -> str:
        """The unit of `format_value`; "" if it has none."""
        return "%" if self.is_share else ""

    def format_value(self, value: float, *, sign: bool = False) -> str:
        """Return a value formatted for a comparison, without its unit."""
        scaled = value * 100 if self.is_share else value
        shown = f"{scaled:{'+' if sign else ''}.{self.digits}f}"
        return shown if abs(scaled) < 1e6 else f"{scaled:{'+' if sign else ''}.4g}"

    def format_mean(self, found: Mean, *, sign: bool = False) -> str:
        """Return `1.2431 ± 0.0031`, or `97.1 [90.2, 99.8]` for a share; just the value if there is no interval."""
        own = self.format_value(found.mean, sign=sign)
        if not self.is_share:
            return own if found.half is None else f"{own} ± {self.format_value(found.half)}"
        if found.interval is None:
            return own
        low, high = (self.format_value(end, sign=sign) for end in found.interval)
        return f"{own} [{low}, {high}]"


_loss_measure = partial(Measure, lower_is_better=True, tolerance=(1e-4, 0.0))


def _share_measure(key: str, name: str, *, exact: str = "{:.2%}", **more: Any) -> Measure:
    return Measure(key, name, is_share=True, digits=1, exact_format=exact, brief_format="{:.1%}", **more)


def probe_measure(key: str, name: str = "", **more: Any) -> Measure:
    """Return the measure of a probe; its name says what the key does unless given."""
    return _share_measure(key, name or probe_display_name(key), is_probe=True, margin=0.02, **more)


ROUGE = (Message("rouge_1"), Message("rouge_2"), Message("rouge_l"))
BANDS = (Message("near recall"), Message("far recall"))  # of the built-in corpora


def probe_display_name(key: str) -> str:
    """Return a probe's name in English: `near recall` for `recall<110`, `far recall` for `recall>=110`."""
    found = _DISTANCE_BAND.fullmatch(key)
    return key if found is None else f"{'near' if found[2] == '<' else 'far'} {found[1]}"


def distance_text(key: str) -> str:
    """Return where the answers of a probe stand: `under 110 characters back`; "" if anywhere."""
    found = _DISTANCE_BAND.fullmatch(key)
    if found is None:
        return ""
    if found[2] == "<":
        return tr("under {found} characters back", found=found[3])
    return tr("{found} or more characters back", found=found[3])


MEASURES = (
    _loss_measure(
        "loss",
        Message("loss"),
        Message("loss, nats per {unit}"),
        margin=0.01,  # nats: one percent of perplexity
        charted=True,
        tabled=True,
        of_loss=lambda loss: loss,
        selects=Message("the lowest validation loss"),
    ),
    _loss_measure(
        "perplexity",
        Message("perplexity"),
        brief_format="{:.3f}",
        charted=True,
        tabled=True,
        of_loss=lambda loss: math.exp(loss) if loss < 50.0 else math.nan,  # else too large to show
        tolerance=(1e-3, 0.0),
    ),
    _loss_measure(Message("bits_per_character"), Message("bits per character"), charted=True, tabled=True),
    _loss_measure(Message("bits_per_byte"), Message("bits per byte"), charted=True, tabled=True),
    _loss_measure(
        Message("word_perplexity"),
        Message("word perplexity"),
        digits=2,
        exact_format="{:.2f}",
        brief_format="{:.2f}",
        charted=True,
        tabled=True,
        tolerance=(1e-3, 0.0),
    ),
    _share_measure(
        "unknown", Message("<unk> share"), lower_is_better=True, charted=True, tabled=True, tolerance=(0.0, 1e-9)
    ),
    _share_measure(
        "accuracy",
        Message("accuracy"),
        about=Message("accuracy of the most likely token"),
        margin=0.01,
        charted=True,
        tabled=True,
        selects=Message("the most texts classified correctly"),
        tolerance=(0.0, 2e-3),
    ),
    _share_measure(
        Message("macro_f1"),
        Message("macro F1"),
        about=Message("F1, averaged over classes"),
        margin=0.01,
        selects=Message("the best F1, averaged over classes"),
        charted=True,
        tabled=True,
        tolerance=(0.0, 5e-3),
    ),
    _loss_measure(
        "excess",
        Message("loss above the floor"),
        Message("above the {floor}, nats per character"),
        exact_format="{:+.4f}",
        brief_format="{:+.4f}",
        tabled=True,
        tolerance=(0.0, 1e-3),
    ),
    _loss_measure(
        Message("honest_loss"),
        Message("honest loss"),
        Message("loss on answers that cannot be copied, nats"),
        tolerance=(1e-4, 1e-3),
    ),
    _loss_measure(Message("nanogpt_loss"), Message("nanoGPT loss"), Message("loss on nanoGPT's random batches, nats")),
    *(
        Measure(
            key,
            name,
            digits=1,
            exact_format="{:.2f}",
            brief_format=brief,
            margin=0.5,
            charted=True,
            tabled=True,
            selects=selects,
            tolerance=(0.0, 1.0),
        )
        for key, name, brief, selects in (
            ("bleu", "BLEU", "{:.2f}", Message("the best BLEU")),
            ("chrf", "chrF", "{:.1f}", ""),
            (ROUGE[0], "ROUGE-1", "{:.1f}", Message("the best ROUGE-1")),
            (ROUGE[1], "ROUGE-2", "{:.1f}", Message("the best ROUGE-2")),
            (ROUGE[2], "ROUGE-L", "{:.1f}", Message("the best ROUGE-L")),
        )
    ),
    _share_measure(
        "copied",
        Message("copied words"),
        about=Message("words that occur in the article"),
        charted=True,
        tabled=True,
        tolerance=(0.0, 0.02),
    ),
    _share_measure(
        Message("exact_match"),
        Message("exact match"),
        about=Message("exactly right"),
        margin=0.02,
        selects=Message("the most exact matches"),
        charted=True,
        tolerance=(0.0, 0.02),
    ),
    probe_measure(Message("recall"), charted=True, question=tr("who is speaking, or a fact from a document")),
    probe_measure("recall-reworded", Message("recall, reworded"), charted=True),
    probe_measure("recall-continued", Message("recall, continued"), charted=True),
    probe_measure(Message("counter"), question=tr("the number after the previous speech's")),
    probe_measure(Message("rhyme"), question=tr("the vowel that ends a couplet")),
    probe_measure(Message("bracket"), question=tr("which bracket closes the open one")),
    probe_measure(Message("order"), question=tr("the class of a text when only word order reveals it")),
    probe_measure(Message("bind"), question=tr("whose sign this is")),
)
MEASURES_BY_KEY = {measure.key: measure for measure in MEASURES}
SELECTS = {measure.key: measure.selects for measure in MEASURES if measure.selects}  # for `evaluation.select`


def name_without_band(name: str) -> str:
    """Return the name that all bands of a probe share: `recall` for `recall<110`."""
    return _BAND.split(name, maxsplit=1)[0] or name
