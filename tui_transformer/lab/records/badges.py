"""What each badge means and what to do about it: one table for every pane, command and export. No Textual, no torch."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

PASSED, NONE_YET = "✓", "–"  # all checks passed; no checks yet


@dataclass(frozen=True)
class Badge:
    """Something that is wrong with a run's scores.

    Args:
        name: as checks.json has it.
        word: where there is little room; at most nine columns.
        means: one sentence.
        advice: what to do about it, one sentence.
        void: whether its loss must not be held against another run's.
    """

    name: str
    word: str
    means: str
    advice: str
    void: bool = False

    @property
    def severity(self) -> Literal["bad", "warn"]:
        """Red (bad) if the score means nothing, else amber (warn)."""
        return "bad" if self.void else "warn"


_ALL = (
    Badge(
        "LEAK",
        "LEAK",
        "The model sees what it has to predict, so its loss says nothing.",
        "Leave it out of every comparison. Look at architecture, causal and the objective: a predicted token must not "
        "stand among the tokens that its place may look at.",
        void=True,
    ),
    Badge(
        "BROKEN",
        "BROKEN",
        "A self-check failed: the code does not do what the settings say.",
        "Do not compare it. Fix what the reason names, repeat the checks with `check`, then train again.",
        void=True,
    ),
    Badge(
        "OVERLAP",
        "OVERLAP",
        "Much of the held-out data also appears in the training data, so the loss measures memorization.",
        "Remove duplicates from the corpus or hold out different text, then train again; `data show` says how much "
        "overlaps.",
        void=True,
    ),
    Badge(
        "IMPLAUSIBLE",
        "IMPLAUS.",
        "The loss is lower than this text allows.",
        "Do not report it. Look for validation text in the training text, a mask that shows the answer, or a mean over "
        "the wrong tokens; `check` probes the model without training.",
        void=True,
    ),
    Badge(
        "DIVERGED",
        "DIVERGED",
        "The loss or a gradient became no number, or the training loss rose far above what it had reached.",
        "Lower the learning rate, lengthen the warm-up, or clip harder (optimizer.lr, optimizer.warmup, train.clip); "
        "compare nothing with it.",
        void=True,
    ),
    Badge(
        "SUSPICIOUS",
        "SUSPECT",
        "The loss is suspiciously low for natural text, and the lowest possible loss of this text is not known.",
        "Repetitive text, such as logs or templates, would explain it. If yours is not repetitive, look for held-out "
        "text in the training text and for a mask that shows the answer.",
    ),
    Badge(
        "NOT-LEARNING",
        "NO-LEARN",
        "The loss is no better than knowing how often each token occurs, or the answers than one answer to everything.",
        "Try a learning rate ten times larger, then ten times smaller, before concluding anything about the model.",
    ),
    Badge(
        "INERT",
        "INERT",
        "Another run with other settings has the same metrics to the last bit: what was changed has no effect.",
        "The two are one model, not a comparison. See what the switch needs in order to act (`check` tries each).",
    ),
    Badge(
        "NO-ORDER",
        "NO-ORDER",
        "Nothing tells the model in which order its tokens stand.",
        "Choose a position scheme, unless this is what the run is to show.",
    ),
    Badge(
        "SAME-TEXT",
        "SAME-TEXT",
        "Samples that should be independent are the same text.",
        "Do not show them as examples of what it writes; give each sample a seed of its own.",
    ),
    Badge(
        "OVERFIT",
        "OVERFIT",
        "The validation loss rose again after its best.",
        "Compare best losses, not last ones; a smaller model, more text, more dropout or an earlier end all help.",
    ),
    Badge(
        "STILL-FALLING",
        "FALLING",
        "The loss was still falling when training ended.",
        "Train longer before ranking it: runs that are cut off are compared in how fast they start.",
    ),
    Badge(
        "DAMAGED",
        "DAMAGED",
        "A file of this run cannot be read, so something about it is missing here.",
        "`doctor` with its name says what is whole; copy the run again from where it came.",
    ),
)

BADGES: dict[str, Badge] = {badge.name: badge for badge in _ALL}


def worst_first(names: Iterable[str]) -> tuple[str, ...]:
    """Badges, with those that make a score void first."""
    return tuple(sorted(names, key=lambda name: not badge(name).void))


def in_a_cell(names: Iterable[str], *, checked: bool) -> str:
    """Badges for a narrow cell; without any, whether checks have passed or there are none yet.

    Args:
        names: its badges.
        checked: both the model and a score have been checked.
    """
    return " ".join(badge(name).word for name in names) or (PASSED if checked else NONE_YET)


def badge(name: str) -> Badge:
    """What a badge means; one of a later version is shown by its name."""
    found = BADGES.get(name)
    unknown = "This version does not know this badge.", "Read its reason; a newer version may say more."
    return found if found is not None else Badge(name, name[:9], *unknown)
