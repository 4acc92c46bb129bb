"""What the Compare pane says over and under the table, and where there is none. Pure; what is in it is cleaned."""

from rich.text import Text

from engine.clean import clean_line
from tui_transformer.lab.analysis.groups import unit_of
from tui_transformer.lab.analysis.sentences import verdict_sentence
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import VARIANTS, Options, Row, Shown


def title(shown: Shown, options: Options, problem: str) -> Text:
    """How many runs, what they are held against, in which order, and what a loss is the mean over."""
    count = f"{shown.count:,} of {shown.total:,}" if shown.count != shown.total else f"{shown.total:,}"
    parts = [f"{shown.by.upper()}  {count}"]
    if options.selected:
        parts.append(f"{len(options.selected)} selected")
    baselines = dict.fromkeys(v.name for v in shown.variants if v.is_baseline)
    if shown.by == VARIANTS and len(baselines) > 1:
        parts.append(f"◆ {len(baselines)} baselines")
    elif shown.by == VARIANTS:
        parts += [f"◆ {name}" for name in baselines]
    elif shown.baseline is not None:
        parts.append(f"◆ {shown.baseline.name}")
    if shown.sorted_by is not None:
        parts.append(f"by {shown.sorted_by.title} {'↓' if options.reverse else '↑'}")
    if shown.rows:
        parts.append(f"loss: {unit_of([row.entry for row in shown.rows])}")
    return Text(clean_line(problem or " · ".join(parts)), no_wrap=True, overflow="ellipsis")


def hint(shown: Shown, options: Options) -> str:
    """What to do next, while nothing is selected."""
    if not shown.rows or options.selected:
        return ""
    if shown.by == VARIANTS:
        return "space draws its curves   enter opens it   p pins the baseline   v every run"
    if shown.total == 1:
        return "a comparison needs two runs: 1 designs another, 2 shows it learn"
    return "space draws a run's curves   p pins the baseline   ← → columns   / filters"


def said(row: Row | None, *, cut: bool) -> str:
    """The verdict on what is under the cursor, in full.

    Args:
        row: where the cursor is.
        cut: whether the table has no room for all of a run's verdict.
    """
    if row is None:
        return ""
    if isinstance(row.entry, VariantResult):
        return f"{row.entry.name}: {verdict_sentence(row.entry)}"
    return f"{row.entry.name}: {row.verdict}" if cut else ""


def nothing(shown: Shown, problem: str) -> Text:
    """Why no run is shown, and what to do about it."""
    words = Text(justify="center")
    if problem:
        words.append(f"{clean_line(problem)}\n\n", "bold")
        return words.append("The studio looks again every two seconds.")
    if shown.total:
        words.append(f"{clean_line(shown.nothing)}\n\n", "bold")
        words.append("escape", "bold").append("  shows all runs again      ")
        return words.append("/", "bold").append("  changes the filter")
    words.append("There is nothing to compare yet\n\n", "bold")
    words.append("1", "bold").append("  choose a design      ").append("f5", "bold").append("  train it\n\n")
    return words.append("Two runs make a comparison: the settings that differ, curves over each other.", "dim")
