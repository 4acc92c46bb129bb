"""What each badge means and what to do about it: one table for every pane, command and export. No Textual, no torch."""

from dataclasses import dataclass


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


def badge(name: str) -> Badge:
    """What a badge means; one of a later version is shown by its name."""
    found = BADGES.get(name)
    unknown = "This version does not know this badge.", "Read its reason; a newer version may say more."
    return found if found is not None else Badge(name, name[:9], *unknown)
