"""What the Compare pane says over and under the table, and where there is none. Pure; what is in it is cleaned."""

from rich.text import Text

from tui_transformer.clean import clean_line
from tui_transformer.comparison.comparable import unit_of
from tui_transformer.comparison.view import Options, Shown


def title(shown: Shown, options: Options, problem: str) -> Text:
    """How many runs, what they are held against, in which order, and what a loss is the mean over."""
    count = f"{len(shown.rows):,} of {shown.total:,}" if len(shown.rows) != shown.total else f"{shown.total:,}"
    parts = [f"RUNS  {count}"]
    if options.selected:
        parts.append(f"{len(options.selected)} selected")
    if shown.baseline is not None:
        parts.append(f"◆ {shown.baseline.name}")
    if shown.sorted_by is not None:
        parts.append(f"by {shown.sorted_by.title} {'↓' if options.reverse else '↑'}")
    if shown.rows:
        parts.append(f"loss: {unit_of([row.entry for row in shown.rows])}")
    return Text(clean_line(problem or " · ".join(parts)), no_wrap=True, overflow="ellipsis")


def hint(shown: Shown, options: Options) -> Text:
    """What to do next, while nothing is selected."""
    words = ""
    if shown.rows and not options.selected:
        words = "space draws a run's curves   p pins the baseline   ← → columns   / filters"
        if shown.total == 1:
            words = "a comparison needs two runs: 1 designs another, 2 shows it learn"
    return Text(words, no_wrap=True, overflow="ellipsis")


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
