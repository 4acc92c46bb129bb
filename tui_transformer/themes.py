"""The studio's themes: dark, light, and one whose colours people with any kind of colour vision can tell apart."""

from textual.theme import Theme

# Okabe and Ito (2008): eight colours that stay apart for every common kind of colour blindness.
ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION = "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00"
PURPLE, PALE = "#CC79A7", "#e8e8e8"  # the seventh; and, on a dark ground, what is their black on a white one


def run_colours(*colours: str) -> dict[str, str]:
    """Eight colours as variables, for runs that are drawn over each other: `$run-a` to `$run-h`."""
    return {f"run-{letter}": colour for letter, colour in zip("abcdefgh", colours, strict=True)}


# For themes of Textual's own, which know no runs.
ON_DARK = run_colours("#7aa2f7", "#ff9e64", "#9ece6a", "#f7768e", "#2ac3de", "#e0af68", "#bb9af7", "#d5d9e6")
ON_LIGHT = run_colours("#2e5aac", "#b15c00", "#3b7d23", "#b3261e", "#00728c", "#8a6100", "#7a3e9d", "#3a3f4b")

THEMES = (
    Theme(
        name="studio-dark",
        primary="#7aa2f7",
        secondary="#2ac3de",
        accent="#ff9e64",
        success="#9ece6a",
        warning="#e0af68",
        error="#f7768e",
        foreground="#c8d0e8",
        background="#16161e",
        surface="#1a1b26",
        panel="#24283b",
        dark=True,
        variables=ON_DARK,
    ),
    Theme(
        name="studio-light",
        primary="#2e5aac",
        secondary="#00728c",
        accent="#b15c00",
        success="#3b7d23",
        warning="#8a6100",
        error="#b3261e",
        foreground="#22262e",
        background="#f6f6f2",
        surface="#ffffff",
        panel="#e6e6df",
        dark=False,
        variables=ON_LIGHT,
    ),
    Theme(
        name="studio-colour-blind",
        primary=SKY,
        secondary=BLUE,
        accent=ORANGE,
        success=SKY,
        warning=YELLOW,
        error=VERMILION,
        foreground="#e8e8e8",
        background="#101010",
        surface="#181818",
        panel="#2a2a2a",
        dark=True,
        variables=run_colours(SKY, ORANGE, GREEN, YELLOW, VERMILION, PURPLE, PALE, BLUE),
    ),
)
