"""What a design costs and what is odd about it, in words: parameters, FLOPs, memory, time, lints, differences."""

from dataclasses import dataclass

from rich.text import Text

from engine.clean import clean_line
from tui_transformer.lab.design.cost import Characters, Cost
from tui_transformer.lab.design.draft import Differences, Draft, shown
from tui_transformer.lab.design.fit import Fit
from tui_transformer.lab.formatting import duration, memory, short
from tui_transformer.studio.design.corpus_glimpse import Glimpse
from tui_transformer.studio.shared.palette import Palette

BAR = 12  # columns of a component's bar
TABLE_FROM = 40  # columns from which on there is room for the table of components
EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Known:
    """All that is known of a draft besides itself.

    Args:
        fit: what was measured.
        measuring: seconds since a measurement began; None if none is running.
        failed: why the last one gave nothing.
        glimpse: of its corpus.
    """

    fit: Fit | None = None
    measuring: float | None = None
    failed: str = ""
    glimpse: Glimpse | None = None

    @property
    def characters(self) -> Characters | None:
        """Different ones of the corpus."""
        return self.glimpse.characters if self.glimpse else None


def cost_words(draft: Draft, known: Known, palette: Palette, width: int) -> Text:
    """What it costs, whether it holds, and what is surely not meant."""
    if draft.problem:
        text = Text("✗ this cannot be trained\n", f"bold {palette.bad}".strip())
        return text.append(clean_line(draft.problem) + "\n")
    cost = draft.cost(known.characters)
    text = Text()
    if cost is None:
        text.append("parameters: known once the corpus is read\n", palette.dim)
    else:
        most = ("at most " if width >= TABLE_FROM else "≤ ") if cost.vocabulary.at_most else ""
        text.append(most, palette.dim).append(f"{cost.parameters:,}", "bold").append(" parameters\n")
        text.append(f"{short(cost.flops, 'FLOP')}", "bold").append(
            " a token, forward and backward\n" if width >= TABLE_FROM else " a token\n"
        )
    text.append_text(_time_and_memory(cost, known, palette, width))
    if known.glimpse is not None and known.glimpse.problem:
        text.append("✗ ", palette.bad).append(clean_line(known.glimpse.problem) + "\n")
    for found in draft.lints(known.glimpse.train_tokens if known.glimpse else None):
        text.append("⚠ ", palette.warn).append(clean_line(f"{found.key}: {found.text}") + "\n")
    return text


def _time_and_memory(cost: Cost | None, known: Known, palette: Palette, width: int) -> Text:
    text, fit = Text(), known.fit
    if fit is not None:
        text.append(fit.peak, "bold").append(" of memory\n")
        text.append(fit.words + "\n", "bold")
        for verdict in fit.verdicts:
            sign, colour = ("✓ ", palette.good) if verdict.good else ("✗ ", palette.bad)
            text.append(sign, colour).append(clean_line(verdict.check), "" if verdict.good else "bold")
            text.append(clean_line(f": {verdict.why}") + "\n", palette.dim if verdict.good else "")
        return text
    if cost is not None:
        text.append(f"{'at most' if cost.at_most else 'about'} {memory(cost.memory)}", "bold").append(" of memory\n")
    if known.measuring is not None:
        text.append(f"measuring … {duration(known.measuring)}  ", palette.accent)
        text.append(" m ", "reverse").append(" stops it\n", palette.dim)
    elif known.failed:
        text.append("✗ ", palette.bad).append(clean_line(known.failed) + "\n")
    else:
        text.append(" m ", "reverse").append(
            " measures time and memory\n" if width >= TABLE_FROM else " measures the time\n", palette.dim
        )
    return text


def components(draft: Draft, known: Known, palette: Palette, width: int) -> Text:
    """Parameters by component, where there is room for a table."""
    cost = draft.cost(known.characters) if width >= TABLE_FROM else None
    text = Text()
    for name, count in cost.parts.items() if cost is not None else ():
        if count:
            share = count / max(1, cost.parameters) if cost else 0
            text.append(f"{name:<16}", palette.dim).append(f"{count:>14,}")
            text.append(f" {share:>4.0%} ", palette.dim).append(f"{_bar(share)}\n", palette.calm)
    return text


def _bar(share: float) -> str:
    full, part = divmod(round(share * BAR * 8), 8)
    return "█" * full + (EIGHTHS[part] if part else "")


def differences(draft: Draft, palette: Palette) -> Text:
    """What was changed in the preset, and what the preset itself changes."""
    text = Text()
    own = draft.against_preset()
    if own:
        text.append(f"changed in {clean_line(draft.name)}\n", "bold")
        _lines(text, own, palette, "● ")
    parent = {key: pair for key, pair in draft.against_parent().items() if key not in own}
    if parent and draft.parent:
        text.append(f"what {clean_line(draft.preset.name)} changes in {clean_line(draft.parent)}\n", "bold")
        _lines(text, parent, palette, "  ")
    return text


def _lines(text: Text, found: Differences, palette: Palette, mark: str) -> None:
    for key, (before, after) in found.items():
        text.append(mark, palette.accent).append(f"{key}: ", palette.dim)
        text.append(clean_line(shown(before))).append(" → ", palette.dim).append(
            clean_line(shown(after)) + "\n", "bold"
        )


def corpus_words(known: Known, palette: Palette, width: int) -> Text:
    """The corpus's first lines."""
    seen = known.glimpse
    if seen is None or seen.problem or not seen.lines:
        return Text()
    text = Text().append(_short(clean_line(seen.corpus)), "bold")
    rows = seen.train_rows or (f"{seen.train_pairs:,} pairs" if seen.train_pairs is not None else "")
    if rows:
        text.append(f", {rows} to train on\n", palette.dim)
        for at, line in enumerate(seen.lines):  # a source, then its target; a question, then its answer
            text.append(line[:width] + "\n") if at % 2 == 0 else text.append(f"  {line[: width - 2]}\n", palette.dim)
        return text
    text.append(f", {seen.train_tokens:,} characters to train on\n" if seen.train_tokens else "\n", palette.dim)
    for line in seen.lines:
        text.append(clean_line(line)[:width] + "\n", palette.dim)
    return text


def _short(corpus: str) -> str:
    """A name, or the ends of paths."""
    return ",".join(("…/" if "/" in part else "") + part.rsplit("/", 1)[-1] for part in corpus.split(","))
