"""Colours and letters for runs drawn in one chart."""

LETTERS = "abcdefgh"  # as many as can be told apart


def run_colour_variables(*colours: str) -> dict[str, str]:
    """Return each letter's colour as a theme variable: `$run-a` to `$run-h`."""
    return {f"run-{letter}": colour for letter, colour in zip(LETTERS, colours, strict=True)}


# For Textual's own themes, which lack run colours.
ON_DARK = run_colour_variables("#7aa2f7", "#ff9e64", "#9ece6a", "#f7768e", "#2ac3de", "#e0af68", "#bb9af7", "#d5d9e6")
ON_LIGHT = run_colour_variables("#2e5aac", "#b15c00", "#3b7d23", "#b3261e", "#00728c", "#8a6100", "#7a3e9d", "#3a3f4b")
