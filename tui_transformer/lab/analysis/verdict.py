"""What may be concluded from a run and the baseline: the one place where a comparison speaks.

Every variant has one run for now, and with one seed each the best of five variants without any effect beats the
baseline five times in six. So nothing is ever called better here. Statistics over seeds replace `_judged`.
"""

from tui_transformer.lab.analysis.comparable import other, void
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.majority import NO_RUN

BASELINE = "—"
ENDED_EARLY = ("stopped", "interrupted", "failed", "lost")


def verdict(entry: Entry, baseline: Entry | None) -> str:
    """A few words; "" where no baseline is pinned."""
    if baseline is None:
        return ""
    if entry.path == baseline.path:
        return BASELINE
    if entry.state == NO_RUN:
        return NO_RUN
    return _cannot_compare(entry, baseline) or _too_early(entry, baseline) or _judged(entry, baseline)


def _cannot_compare(entry: Entry, baseline: Entry) -> str:
    if void(entry):
        return f"{void(entry)}: not comparable"
    if void(baseline):
        return f"baseline {void(baseline)}: not comparable"
    reason = other(entry, baseline)
    return f"{reason}: not comparable" if reason else ""


def _too_early(entry: Entry, baseline: Entry) -> str:
    if entry.last is None:
        return "no score yet"
    if baseline.last is None:
        return "baseline has no score yet"
    if entry.live or baseline.live:
        return "still training: cannot tell"
    if entry.state in ENDED_EARLY:
        return "ended early: cannot tell"
    if baseline.state in ENDED_EARLY:
        return "baseline ended early: cannot tell"
    if "STILL-FALLING" in entry.badges or "STILL-FALLING" in baseline.badges:
        return "still falling: cannot tell"
    return ""


def _judged(entry: Entry, baseline: Entry) -> str:
    """The seam for statistics over the seeds of a variant."""
    return "one seed: cannot tell"
