"""How pictures look, and how they become bytes: the same for the same runs, whoever draws them and when."""

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.clean import clean_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008), without the yellow that white paper swallows; then two greys.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D31")
_LONG, _MIXED, _SHORT = (0, (6, 1.5)), (0, (4, 1, 1, 1)), (0, (2.5, 1))
DASHES: tuple[Any, ...] = ("-", _LONG, _MIXED, _SHORT, "-", _LONG, _MIXED, _SHORT)
INK, FAINT, FLOOR = "#22262e", "#8a8f99", "#3b7d23"
WIDTH = 7.2  # inches: the text of an A4 page, about
DOTS = 200  # of a PNG, an inch
CHINESE_FONTS = (
    *(
        "Noto Sans CJK SC",
        "Source Han Sans SC",
        "Noto Sans SC",
        "Source Han Sans CN",
        "PingFang SC",
        "Hiragino Sans GB",
    ),
    *(
        "Microsoft YaHei",
        "SimHei",
        "WenQuanYi Micro Hei",
        "WenQuanYi Zen Hei",
        "Noto Sans CJK JP",
        "Droid Sans Fallback",
    ),
    *("Noto Serif CJK SC", "Noto Serif CJK JP", "SimSun", "Arial Unicode MS"),
)
SANS = "DejaVu Sans"  # comes with matplotlib


@dataclass(frozen=True)
class Fonts:
    """What letters are drawn with.

    Args:
        chinese: a font with Chinese letters; "" where this machine has none.
    """

    chinese: str = ""

    @classmethod
    def found(cls) -> "Fonts":
        """Those of this machine."""
        with _quiet():
            from matplotlib import font_manager

            known = {font.name for font in font_manager.fontManager.ttflist}
        return cls(next((name for name in CHINESE_FONTS if name in known), ""))


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither a missing letter nor a font that cannot be read is worth a line on the terminal."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def styled(fonts: Fonts) -> Iterator[None]:
    """Draw with these settings, whatever the reader's own matplotlibrc says."""
    with _quiet():
        import matplotlib

        families = [SANS, *([fonts.chinese] if fonts.chinese else [])]
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(
                {
                    "font.family": families,
                    "font.size": 8.5,
                    "text.parse_math": False,  # a name with two dollar signs is no formula
                    "text.color": INK,
                    "axes.edgecolor": FAINT,
                    "axes.labelcolor": INK,
                    "axes.titlesize": 9.5,
                    "axes.titleweight": "bold",
                    "axes.titlelocation": "left",
                    "axes.spines.top": False,
                    "axes.spines.right": False,
                    "axes.grid": True,
                    "axes.axisbelow": True,
                    "axes.unicode_minus": True,
                    "grid.color": "#d9dce1",
                    "grid.linewidth": 0.6,
                    "xtick.color": INK,
                    "ytick.color": INK,
                    "legend.frameon": False,
                    "legend.fontsize": 8,
                    "lines.linewidth": 1.5,
                    "hatch.linewidth": 0.6,
                    "svg.hashsalt": "tui-transformer",
                    "svg.fonttype": "none",
                    "savefig.dpi": DOTS,
                    "path.simplify": True,
                }
            )
            yield


def figure(height: float, width: float = WIDTH) -> "Figure":
    """An empty picture, in inches, that no window knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def label(text: str, longest: int = 60) -> str:
    """Return text that others gave, for a picture."""
    return clean_line(text)[:longest]


def minus(amount: str) -> str:
    """A number with a minus, not a hyphen."""
    return amount.replace("-", "\u2212")


def thousands(axes: "Axes") -> None:
    """Steps with commas, and no more of them than there is room for."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def legend_below(made: "Figure", handles: Sequence[Any], columns: int = 4) -> None:
    """One legend for all of a picture's panels."""
    if handles:
        made.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))


FOLDER = "figures"  # beside a report that has its pictures in files
SVG, PNG = "svg", "png"
METADATA = {SVG: {"Date": None, "Creator": None}, PNG: {"Software": None}}  # neither dates nor names of programs


@dataclass(frozen=True)
class Image:
    """A picture as bytes; b"" in a form that was not asked for.

    Args:
        svg: text in it stays text, so that it can be searched and read aloud.
        png: the same in dots.
    """

    svg: bytes = b""
    png: bytes = b""


def rendered(draw: "Callable[[], Figure]", fonts: Fonts, forms: Sequence[str] = (SVG, PNG)) -> Image:
    """Draw it once and write it in each form: the same bytes each time."""
    found: dict[str, bytes] = {}
    with styled(fonts):
        made = draw()
        for form in forms:
            out = io.BytesIO()
            made.savefig(out, format=form, metadata=METADATA[form])
            made.set_layout_engine("none")  # what stands where is decided once
            found[form] = _plain(out.getvalue()) if form == SVG else out.getvalue()
    return Image(**found)


def _plain(svg: bytes) -> bytes:
    """Without the metadata that says nothing, and without spaces at the ends of lines."""
    text = svg.decode("utf-8")
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).encode("utf-8") + b"\n"
