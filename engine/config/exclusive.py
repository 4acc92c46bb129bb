"""Keys that say the same thing in two ways, by section: setting one over a preset takes the other out."""

EXCLUSIVE: dict[str, tuple[tuple[str, str], ...]] = {"train": (("steps", "epochs"), ("batch_size", "batch_tokens"))}
