"""What a run is asked to do: the typed config, its TOML, presets, overrides and lints. No torch here."""
