"""The colours and letters of runs that are drawn over each other."""

LETTERS = "abcdefgh"  # as many as people can tell apart


def run_colours(*colours: str) -> dict[str, str]:
    """Return a colour for each letter as a variable of a theme: `$run-a` to `$run-h`."""
    return {f"run-{letter}": colour for letter, colour in zip(LETTERS, colours, strict=True)}


# For themes of Textual's own, which know no runs.
ON_DARK = run_colours("#7aa2f7", "#ff9e64", "#9ece6a", "#f7768e", "#2ac3de", "#e0af68", "#bb9af7", "#d5d9e6")
ON_LIGHT = run_colours("#2e5aac", "#b15c00", "#3b7d23", "#b3261e", "#00728c", "#8a6100", "#7a3e9d", "#3a3f4b")
