"""The studio's themes: dark, light, and one whose colours people with any kind of colour vision can tell apart."""

from textual.theme import Theme

from tui_transformer.lab.charts.colours import ON_DARK, ON_LIGHT, run_colours

# Okabe and Ito (2008): eight colours that stay apart for every common kind of colour blindness.
ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION = "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00"
PURPLE, PALE = "#CC79A7", "#e8e8e8"  # the seventh; and, on a dark ground, what is their black on a white one

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
