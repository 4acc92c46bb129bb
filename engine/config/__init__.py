"""A run's configuration: the typed config, its TOML, presets, overrides and lints. No torch here.

Any invalid file or value raises a one-line `InputError`: where, what, and what would be valid.
"""

from typing import Any

Tables = dict[str, Any]  # what TOML holds and a config dumps: settings by section, unchecked
