"""The generated pages, by their place under docs/."""

from collections.abc import Callable, Mapping

from reference.commands import commands, exit_codes
from reference.presets import corpora, presets, studies
from reference.records import badges, measures, run_directory
from reference.settings import schemes, settings
from reference.studio import keys, prompt

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/exit-codes.md": exit_codes,
    "reference/settings.md": settings,
    "reference/schemes.md": schemes,
    "reference/presets.md": presets,
    "reference/studies.md": studies,
    "reference/corpora.md": corpora,
    "reference/run-directory.md": run_directory,
    "reference/measures.md": measures,
    "reference/badges.md": badges,
    "reference/keys.md": keys,
    "reference/prompt.md": prompt,
}
