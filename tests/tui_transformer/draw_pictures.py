"""The README's pictures: `python -m tests.tui_transformer.draw_pictures [RUNS]` writes docs/*.svg.

From recorded runs; that of the Playground needs a folder with trained ones. Recall by distance comes from the runs of
a study: `tui-transformer compare attention --by-distance recall --out docs/recall.svg`.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from tests.tui_transformer.comparison.variants import study
from tests.tui_transformer.recorded import everything
from tui_transformer.app import Studio

SIZE = (120, 36)
SELECT = ("3", "end", "p", "up", "space", "up", "space", "up", "up", "space", "up", "space")
PROMPT = ("e", "n", "t", "e", "r", "space", "ampersand", "space", "H", "e", "r", "o")
PICTURES = {  # name → runs, and what is typed, each with the words that it brings
    "design": ("recorded", [(("slash", *"win16", "enter"), "what win16 changes")]),
    "train": ("recorded", [(("2", "down"), "tok/s")]),
    "compare": ("study", [(SELECT, "at the end")]),
    "playground": (
        "trained",
        [(("4",), "type a text"), ((*PROMPT, "enter"), "tokens at step"), (("escape", "u", "u"), "0.")],
    ),
}


async def draw(name: str, runs: Path) -> None:
    """One picture."""
    _, steps = PICTURES[name]
    app = Studio(runs_dir=runs, device="cpu")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(4.0)  # the engine is there, positions are drawn
        for keys, words in steps:
            await pilot.press(*keys)
            for _ in range(100):
                await pilot.pause(0.1)
                screen = "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())
                if words in screen:
                    break
        await pilot.pause(1.0)
        Path("docs", f"{name}.svg").write_text(app.export_screenshot(title="tui-transformer"), encoding="utf-8")


def main() -> None:
    """All that can be drawn."""
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "settings.toml"
        settings.write_text("welcomed = true\n")
        os.environ["TUI_TRANSFORMER_SETTINGS"] = str(settings)
        everything(folder / "recorded")
        study(folder / "study")
        if sys.argv[1:]:
            (folder / "trained").symlink_to(Path(sys.argv[1]).resolve())
        for picture, (runs, *_) in PICTURES.items():
            if (folder / runs).exists():
                asyncio.run(draw(picture, folder / runs))


if __name__ == "__main__":
    main()
