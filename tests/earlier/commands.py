"""What is asked of the runs that are kept: command lines by name. What one writes goes to `out/NAME`."""

from collections.abc import Mapping

CPU = ("--device", "cpu")
OTHERS = ("--runs-dir", "others")
TASKS = ("masked", "copied", "reversed", "continued", "leaking", "translated", "spans", "questions")
HALF_WAY = ("stopped", "masked-killed", "copied-ended", "translated-ended", "spans-t5-ended", "questions-ended")

Commands = Mapping[str, tuple[str, ...]]

LISTS: Commands = {
    "runs": ("runs",),
    "runs-json": ("runs", "--json"),
    "runs-others": ("runs", *OTHERS),
    "runs-none": ("runs", "--runs-dir", "home"),
    "note": ("note", "another-name"),
    "note-json": ("note", "another-name", "--json"),
    "watch-plain": ("watch", "plain"),
    "watch-plain-json": ("watch", "plain", "--json"),
    "watch-translated": ("watch", "translated"),
    "watch-questions": ("watch", "questions"),
    "watch-leaking": ("watch", "leaking"),
    "watch-diverged": ("watch", "diverged"),
    "watch-killed": ("watch", "masked-killed"),
    "watch-stopped": ("watch", "stopped"),
    "watch-own-text": ("watch", "own-text", *OTHERS),
    "doctor-plain": ("doctor", "plain"),
    "doctor-diverged": ("doctor", "diverged", "--json"),
    "doctor-killed": ("doctor", "masked-killed"),
    "compare": ("compare",),
    "compare-json": ("compare", "--json"),
    "compare-csv": ("compare", "--csv"),
    "compare-markdown": ("compare", "--markdown"),
    "compare-all-settings": ("compare", "plain", "stopped", "--all-settings"),
    "compare-pair": ("compare", "plain", "another-name"),
    "compare-pair-latex": ("compare", "plain", "another-name", "--latex"),
    "compare-filter": ("compare", "--filter", "loss<3.3 -badge:LEAK", "--sort", "-loss", "--baseline", "plain"),
    "compare-tag": ("compare", "--filter", "tag:kept"),
    "compare-documents": ("compare", "questions", "questions-ended", "spans", "--json"),
    "compare-others": ("compare", *OTHERS),
    "positions": ("compare", "positions"),
    "positions-json": ("compare", "positions", "--json"),
    "positions-csv": ("compare", "positions", "--csv"),
    "positions-markdown": ("compare", "positions", "--markdown"),
    "positions-latex": ("compare", "positions", "--latex"),
    "positions-latex-document": ("compare", "positions", "--latex-document"),
    "positions-by-run": ("compare", "positions", "--by", "run"),
    "positions-other-baseline": ("compare", "positions", "--baseline", "none"),
    "stages": ("compare", "stages"),
    "stages-json": ("compare", "stages", "--json"),
    "by-distance": ("compare", "--by-distance", "rhyme", "positions"),
    "by-distance-svg": ("compare", "--by-distance", "rhyme", "positions", "--out", "out/by-distance-svg/a.svg"),
}
REPORTS: Commands = {
    "report-positions": ("report", "positions"),
    "report-positions-html": ("report", "positions", "--format", "html"),
    "report-positions-latex": ("report", "positions", "--format", "latex"),
    "report-positions-chinese": ("report", "positions", "--language", "zh"),
    "report-stages": ("report", "stages"),
    "report-runs": ("report", "plain", "another-name", "stopped", "diverged", "leaking"),
    "report-translated": ("report", "translated", "translated-ended"),
    "report-questions": ("report", "questions", "questions-ended", "spans"),
    "report-others": ("report", "own-text", *OTHERS),
}
EXPORTS: Commands = {
    "csv": ("export", "plain", "stopped", "translated", "--to", "csv"),
    "json": ("export", "plain", "questions", "masked-killed", "--to", "json"),
    "huggingface": ("export", "plain", "--to", "huggingface"),
    "huggingface-translated": ("export", "translated", "--to", "huggingface", "--checkpoint", "average"),
    "huggingface-spans": ("export", "spans", "--to", "huggingface", "--checkpoint", "last"),
}
SCORES: Commands = {
    "evaluate-plain": ("evaluate", "plain", *CPU),
    "evaluate-translated": ("evaluate", "translated", *CPU),
    "evaluate-questions": ("evaluate", "questions", "--json", *CPU),
    "sample-plain": ("sample", "plain", "--prompt", "== the", "--n", "2", "--length", "40", "--seed", "7", *CPU),
    "translate": ("translate", "translated", "--text", "The cat is in the garden.", "--beam", "2", *CPU),
    "verify-plain": ("verify", "plain", "--steps", "5", *CPU),
}
MORE_SCORES: Commands = {
    **{f"evaluate-{run}": ("evaluate", run, *CPU) for run in TASKS if run not in ("translated", "questions")},
    **{f"evaluate-{run}-json": ("evaluate", run, "--json", *CPU) for run in ("plain", *TASKS) if run != "questions"},
    "evaluate-test-split": ("evaluate", "plain", "--split", "test", "--checkpoint", "last", "--stride", "4", *CPU),
    "evaluate-average": ("evaluate", "translated", "--checkpoint", "average", "--beam", "3", *CPU),
    "evaluate-half-way": ("evaluate", "copied-ended", "--checkpoint", "last", *CPU),
    "evaluate-own-text": ("evaluate", "own-text", *OTHERS, *CPU),
    "sample-vs": ("sample", "plain", "--vs", "another-name", "--prompt", "enter", "--length", "30", "--json", *CPU),
    "sample-copied": ("sample", "copied-ended", "--prompt", "enter", "--length", "20", *CPU),
    "translate-json": (
        "translate",
        "translated",
        "--text",
        "A man sees a dog.",
        "--nbest",
        "2",
        "--beam",
        "3",
        "--json",
        *CPU,
    ),
    "translate-average": ("translate", "translated", "--text", "I am here.", "--checkpoint", "average", *CPU),
    **{f"verify-{run}": ("verify", run, "--steps", "5", *CPU) for run in (*TASKS, *HALF_WAY, "diverged")},
    "verify-json": ("verify", "another-name", "--steps", "3", "--json", *CPU),
    "verify-own-text": ("verify", "own-text", "--steps", "3", *OTHERS, *CPU),
    "verify-cell": ("verify", "stages.read.s1", "--steps", "3", *CPU),
}
# One's own preset and study, as the studio wrote them; and what is not trained yet.
PLANS: Commands = {
    "check-own-preset": ("check", "--config", "home/config/tui-transformer/presets/my-preset.toml", *CPU),
    "check-init-from": ("check", "--config", "runs/questions-ended/config.toml", "--json", *CPU),
    "check-own-text": ("check", "--config", "others/own-text/config.toml", *CPU),
    "plan-own-study": (
        *("ablate", "--study", "home/config/tui-transformer/studies/my-study.toml", "--dry-run", "--jobs", "1"),
        *("--set", "data.corpus_size=20000", "--set", "train.steps=10", "--set", "train.threads=1", *CPU),
    ),
    "plan-stages": ("ablate", "--study", "stages", "--dry-run", "--jobs", "1", *CPU),
    "plan-positions": ("ablate", "--study", "runs/positions.study.toml", "--dry-run", "--jobs", "1", "--json", *CPU),
    "plan-shipped-name": ("ablate", "--study", "positions", "--dry-run", "--jobs", "1", *CPU),
}
GROUPS = {
    "lists": LISTS,
    "reports": REPORTS,
    "scores": {**SCORES, **EXPORTS},
    "more-scores": MORE_SCORES,
    "plans": PLANS,
}
WRITE = {**REPORTS, **EXPORTS}


def words(name: str, commands: Commands) -> list[str]:
    """A command line; one that writes a report or an export says where to."""
    return [*commands[name], *(("--out", f"out/{name}") if name in WRITE and name not in ("csv", "json") else ())]
