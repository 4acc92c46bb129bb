"""`verify`: can a run's numbers be confirmed? One line a claim, and a conclusion."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.clean import clean_line
from engine.runs.reader import RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit, is_terminal, stamp, stdout
from tui_transformer.cli.run import loading

if TYPE_CHECKING:
    from engine.verification.finding import Difference, Finding

SIGNS = {"confirmed": ("✓", "green"), "differs": ("✗", "bold red"), "unchecked": ("–", "dim")}
LISTED = 4  # differences of a claim
WIDTH = 14  # columns of the longest claim's name
LONGEST = 60  # characters of a value


def verify_command(run: str, *, steps: int, device: str, as_json: bool, runs_dir: Path, data_dir: Path | None) -> int:
    """Print what becomes of each claim; exit code 1 if something differs."""
    reader = RunReader.resolve(run, runs_dir)
    stamp(reader)
    with loading("loading the engine"):
        from engine.verification.claims import verify

    findings = verify(reader, data_dir=data_dir, device=device, steps=steps)
    counts: Counter[str] = Counter()
    while (finding := _next(findings, as_json)) is not None:
        counts[finding.result.value] += 1
        if as_json:
            emit({"kind": "claim", "run": reader.name, **finding.to_json()})
        else:
            _show(finding)
    if as_json:
        emit({"kind": "conclusion", "run": reader.name, **{name: counts[name] for name in SIGNS}})
    else:
        answer(clean_line(conclusion(reader.name, counts)))
    return ExitCode.FAILED if counts["differs"] else ExitCode.DONE


def conclusion(name: str, counts: Counter[str]) -> str:
    """What may be said of the run, in a sentence."""
    differs, confirmed, unchecked = counts["differs"], counts["confirmed"], counts["unchecked"]
    not_here = f"; {unchecked} could not be checked here" if unchecked else ""
    if differs:
        differ = f"{differs} of {sum(counts.values())} claims {'differs' if differs == 1 else 'differ'}"
        return f"{name}: {differ} from what is found{not_here}: do not rely on it"
    return f"{name}: nothing differs, {confirmed} claims confirmed{not_here}"


def _next(findings: Any, as_json: bool) -> "Finding | None":
    """The next finding; a terminal shows that something goes on, since scoring again takes as long as it did."""
    if as_json or not is_terminal(sys.stdout):
        return next(findings, None)
    with loading("checking"):
        return next(findings, None)


def _show(finding: "Finding") -> None:
    from rich.text import Text

    sign, style = SIGNS[finding.result.value]
    text = Text()
    text.append(f"{sign} ", style=style)
    wrong = finding.differences
    words = "" if wrong else finding.text
    text.append(clean_line(f"{finding.claim:{WIDTH}}  {words}{'; '.join(map(_words, wrong[:LISTED]))}"))
    if len(wrong) > LISTED:
        text.append(f"; and {len(wrong) - LISTED} more")
    stdout().print(text)


def _words(difference: "Difference") -> str:
    return f"{difference.what}: recorded {_shown(difference.recorded)}, found {_shown(difference.found)}"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
