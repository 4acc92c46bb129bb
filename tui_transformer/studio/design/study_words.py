"""A study in the making in words: its variants as lines, and its plan."""

from pathlib import Path
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

from engine.clean import clean_line
from tui_transformer.lab.design.draft import shown
from tui_transformer.lab.design.fit import about
from tui_transformer.lab.design.study_command import command as study_command
from tui_transformer.lab.design.study_draft import Line, StudyDraft
from tui_transformer.lab.design.study_estimate import Estimate
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.studies.study import Change
from tui_transformer.studio.shared.palette import Palette

MARK, GAP = 2, 2  # columns
PARAMETERS, TIME = 12, 11
LONGEST_NAME = 26
ROOMY = 64  # columns from which on there is room for parameters and time
LONG_KEYS = 96  # and for keys with their sections
MOST_SEEDS = 8  # that are listed
EMPTY = (
    ("p", "tick presets that change one thing each"),
    ("v", "type values of a setting: model.n_heads=1,2,4,8"),
    ("l", "take the variants of a study that comes with this"),
)


def heading(width: int, names: int, palette: Palette) -> Text:
    """Titles over the lines."""
    text = Text("  ").append(_cut("VARIANT", names)).append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures(width))
    text.append(_cut("DIFFERS FROM THE BASELINE BY", rest))
    if width >= ROOMY:
        text.append(f"{'PARAMETERS':>{PARAMETERS}}{'A RUN':>{TIME}}")
    text.stylize(palette.dim)
    return text


def name_width(draft: StudyDraft, width: int) -> int:
    """Columns of the longest name."""
    longest = max((cell_len(clean_line(line.variant.name)) for line in draft.lines), default=0)
    return max(8, min(longest, LONGEST_NAME, width // 3))


def variant_line(line: Line, draft: StudyDraft, estimate: Estimate, width: int, palette: Palette) -> Text:
    """One variant: its mark, its name, what it changes, what it costs."""
    name = line.variant.name
    held = name == draft.held_against
    mark, colour = ("✗ ", palette.bad) if line.why_not else ("◆ ", palette.accent) if held else ("  ", "")
    if line.why_not and line.config is not None:  # not wrong, only there already
        mark, colour = "= ", palette.dim
    text = Text(mark, colour, no_wrap=True)
    text.append(_cut(clean_line(name), name_width(draft, width)), palette.dim if line.why_not else "bold")
    text.append(" " * GAP)
    rest = max(0, width - text.cell_len - _figures(width))
    if line.why_not:
        text.append(_cut(clean_line(line.why_not), width - text.cell_len), palette.dim)
        return text
    changes = draft.differences(line)
    said = [draft.begins(line.variant), *(_change(key, change, width) for key, change in changes.items())]
    words = "the baseline" if held else ", ".join(filter(None, said))
    text.append(_cut(clean_line(words), rest), palette.accent if held else "")
    if width >= ROOMY:
        count, seconds = estimate.parameters.get(name), estimate.each.get(name)
        text.append(f"{f'{count:,}' if count else '':>{PARAMETERS}}", palette.dim)
        text.append(f"{f'≈ {about(seconds)}' if seconds is not None else '':>{TIME}}")
    return text


def invitation(palette: Palette) -> list[Text]:
    """What to do while there is only the design."""
    lines = [Text(), Text("  What is it to be compared with?")]
    lines += [Text("  ").append(f" {key} ", f"reverse {palette.dim}".strip()).append(f" {what}") for key, what in EMPTY]
    return lines


def at_hand(line: Line | None, draft: StudyDraft) -> Text:
    """More on one variant: why it is left out, or what it changes in full and what is expected of it."""
    if line is None:
        return Text()
    name = clean_line(line.variant.name)
    if line.why_not:
        return Text().append(f"{name} is left out: ", "bold").append(clean_line(line.why_not))
    expect = line.variant.expect
    known = [f"{measure} {outcome}" for measure, outcome in expect.items() if outcome != "unknown"]
    words = ["expected: " + (", ".join(known) or "unknown")] if expect else []
    words += [draft.why[line.variant.name]] if line.variant.name in draft.why else []
    if not words:
        changes = draft.differences(line)
        said = [draft.begins(line.variant), *(f"{key}: {shown(a)} → {shown(b)}" for key, (a, b) in changes.items())]
        words = [", ".join(filter(None, said)) or "the others are held against it"]
    return Text().append(f"{name}: ", "bold").append(clean_line(". ".join(words)))


def plan_words(
    draft: StudyDraft,
    estimate: Estimate,
    palette: Palette,
    width: int,
    *,
    measuring: float | None,
    failed: str,
    started: bool,
) -> Text:
    """How many runs, how long, how much, and what to know before.

    Args:
        draft: the study.
        estimate: of its cost.
        palette: colours.
        width: columns.
        measuring: seconds since timing began; None if not timing.
        failed: why that gave nothing.
        started: whether a study of this name was started already.
    """
    text = Text()
    count, seeds = len(draft.kept), len(draft.seeds)
    listed = ", ".join(map(str, draft.seeds)) if seeds <= MOST_SEEDS else f"{draft.seeds[0]} … {draft.seeds[-1]}"
    text.append(f"{count} variant{'s' * (count != 1)} × {seeds} seed{'s' * (seeds != 1)} ({listed})")
    text.append(clean_line(f", in stages {' → '.join(stage.name for stage in draft.stages)}") if draft.stages else "")
    text.append(" = ")
    text.append(f"{draft.runs:,} runs", "bold")
    left_out = len(draft.lines) - count
    text.append(f"   {left_out} left out\n" if left_out else "\n", palette.dim)
    text.append_text(_cost(estimate, palette, measuring))
    started_words = f"{draft.name} was started already: f5 goes on with it if it is the same; r renames this one"
    problems = [words for words in (failed, draft.problem) if words]
    warnings = [*([started_words] if started else []), *draft.warnings]
    for sign, colour, said in (("✗ ", palette.bad, problems), ("⚠ ", palette.warn, warnings)):
        for words in said:
            text.append(sign, colour).append("\n  ".join(wrap(clean_line(words), width - 2)) + "\n")
    text.rstrip()
    return text


def _cost(estimate: Estimate, palette: Palette, measuring: float | None) -> Text:
    text = Text()
    timing = "" if measuring is None else f"timing a step of every variant … {duration(measuring)}, m stops it"
    if estimate.seconds is None:
        text.append(timing or "time: m measures it", palette.accent if timing else palette.dim)
    else:
        text.append(f"≈ {about(estimate.seconds)}", "bold")
        text.append(f" on {clean_line(', '.join(estimate.devices))}" if estimate.devices else "")
        if estimate.measured:
            threads = f", {estimate.threads} thread{'s' * (estimate.threads > 1)} each" if estimate.threads else ""
            text.append(f", {estimate.at_once} at a time{threads}", palette.dim)
        else:
            text.append(" one after the other, from the design's measured step", palette.dim)
            text.append(
                f"; {timing}" if timing else "; m times every variant", palette.accent if timing else palette.dim
            )
    if estimate.disk is not None:
        text.append(" · ", palette.dim).append(memory(estimate.disk), "bold").append(" of disk")
    return text.append("\n")


def command_words(draft: StudyDraft, file: Path, options: list[str], palette: Palette) -> Text:
    """The command line that runs the same."""
    if draft.study is None:
        return Text()
    command, saved = study_command(draft, file, options)
    text = Text("once saved (s): " if saved and not file.exists() else "", palette.dim)
    return text.append("$ ", palette.dim).append(clean_line(command), palette.calm)


def _figures(width: int) -> int:
    return PARAMETERS + TIME if width >= ROOMY else 0


def _change(key: str, change: Change, width: int) -> str:
    name = key if width >= LONG_KEYS else key.rpartition(".")[2]
    return f"{name} = {shown(change[1])}"


def _cut(text: str, width: int) -> str:
    """As wide as that, with … where something is missing."""
    cut = Text(text)
    cut.truncate(max(0, width), overflow="ellipsis", pad=True)
    return cut.plain
