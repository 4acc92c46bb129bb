"""What the choice of test sentences does to a difference of BLEU: kept apart from what the choice of seeds does."""

from collections.abc import Iterator
from pathlib import Path

from engine.evaluation.translation import SAMPLES, paired_bootstrap
from engine.runs.files import read_json
from tui_transformer.lab.analysis.language import ENGLISH, Language
from tui_transformer.lab.analysis.standing import Standing
from tui_transformer.lab.records.facts import table

Translated = tuple[list[str], list[str]]  # references, outputs


def noise_of_sentences(standing: Standing, language: Language = ENGLISH) -> Iterator[str]:
    """A sentence for a translation's variant, of all seeds that the baseline has too; about a second for each seed."""
    baseline = standing.family.baseline
    if baseline is None or standing.is_baseline or standing.why_not:
        return
    said, n = [], 0
    for seed, run in standing.group.counted.items():
        other = baseline.counted.get(seed)
        ours, theirs = _translated(run.path), _translated(other.path) if other is not None else None
        if ours is None or theirs is None or ours[0] != theirs[0]:
            continue
        found = paired_bootstrap(ours[0], ours[1], theirs[1])
        n = found.n
        each = {"seed": seed, "difference": f"{found.difference:+.2f}", "p": f"{found.p:.3f}"}
        said.append(language.say("sentences.seed", **each))
    if said:
        told = language.say("join.semicolon").join(said)
        yield language.say("sentences", samples=f"{SAMPLES:,}", n=f"{n:,}", each=told)


def _translated(run: Path) -> Translated | None:
    """What the newest evaluation wrote; None where the file is missing or damaged."""
    found = table(read_json(run / "translations.json"))
    references, outputs = found.get("references"), found.get("outputs")
    if not (isinstance(references, list) and isinstance(outputs, list) and len(references) == len(outputs) > 0):
        return None
    if not all(isinstance(text, str) for text in (*references, *outputs)):
        return None
    return references, outputs
