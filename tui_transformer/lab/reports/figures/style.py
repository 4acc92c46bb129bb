"""Picture style and rendering: the same runs give the same bytes, wherever and whenever drawn."""

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

from engine.base.clean import clean_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Okabe and Ito (2008), without the yellow, invisible on white paper; then two greys.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444", "#8C6D31")
_LONG, _MIXED, _SHORT = (0, (6, 1.5)), (0, (4, 1, 1, 1)), (0, (2.5, 1))
DASHES: tuple[Any, ...] = ("-", _LONG, _MIXED, _SHORT, "-", _LONG, _MIXED, _SHORT)
INK, FAINT, FLOOR = "#22262e", "#8a8f99", "#3b7d23"
WIDTH = 7.2  # inches: about an A4 page's text width
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "Noto Sans SC", "Source Han Sans CN", "PingFang SC", "Hiragino Sans GB",
    "Microsoft YaHei", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK JP", "Droid Sans Fallback",
    "Noto Serif CJK SC", "Noto Serif CJK JP", "SimSun", "Arial Unicode MS",
)  # fmt: skip
SANS = "DejaVu Sans"  # comes with matplotlib
FOLDER = "figures"  # beside a report that has its pictures in files
SVG, PNG = "svg", "png"
METADATA = {SVG: {"Date": None, "Creator": None}, PNG: {"Software": None}}  # neither dates nor program names


Image = dict[str, bytes]  # a picture by form; text in an SVG stays searchable text


def chinese_font() -> str:
    """Return the name of a font with Chinese characters; "" if none is installed."""
    with _quiet():
        from matplotlib import font_manager

        known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE_FONTS if name in known), "")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence terminal warnings about missing glyphs and unreadable fonts."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def render(draw: "Callable[[], Figure]", chinese: str, forms: Sequence[str]) -> Image:
    """Draw once, with a Chinese font if there is one, and save in each form; the bytes are the same every time."""
    found: Image = {}
    with _quiet():
        import matplotlib

        with matplotlib.rc_context(), resources.as_file(resources.files("tui_transformer.lab.reports")) as package:
            style = package / "templates" / "report.mplstyle"
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(matplotlib.rc_params_from_file(style, use_default_template=False))
            matplotlib.rcParams["font.family"] = [SANS, *([chinese] if chinese else [])]
            made = draw()
            for form in forms:
                out = io.BytesIO()
                made.savefig(out, format=form, metadata=METADATA[form])
                made.set_layout_engine("none")  # the layout is computed once
                found[form] = _strip_svg(out.getvalue()) if form == SVG else out.getvalue()
    return found


def _strip_svg(svg: bytes) -> bytes:
    """Strip meaningless metadata, trailing spaces and the name of the machine's Chinese font: a reader has others."""
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", svg.decode("utf-8"), flags=re.DOTALL)
    text = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text)
    text = re.sub(rf"(?<=font-family: '{SANS}')(?:, '[^']*')?", ", sans-serif", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).encode("utf-8") + b"\n"


def image_files(images: Mapping[str, Image]) -> dict[str, bytes]:
    """Return the picture files, by path, of a report that keeps them in a folder."""
    return {f"{FOLDER}/{name}.{form}": found for name, image in images.items() for form, found in image.items()}


def figure(height: float, width: float = WIDTH) -> "Figure":
    """An empty figure, in inches, attached to no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def clip_label(text: str, longest: int = 60) -> str:
    return clean_line(text)[:longest]


def floor_line(line: "Callable[..., Line2D]", at: float, words: str | None = None) -> "Line2D":
    """A floor, drawn by `axhline` or `axvline`; `words` in a legend."""
    return line(at, color=FLOOR, linestyle=(0, (6, 2)), linewidth=1.1, label=words)


def legend_below(made: "Figure", handles: Sequence[Any], columns: int = 4) -> None:
    if handles:
        made.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))
