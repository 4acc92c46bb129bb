"""The README's pictures, from recorded runs: `python -m tests.tui_transformer.draw_pictures` writes docs/*.svg."""

import asyncio
import os
import tempfile
from pathlib import Path

from tests.tui_transformer.recorded import everything
from tui_transformer.app import Studio

SIZE = (120, 36)
PICTURES = {  # name → keys, and words to wait for
    "design": (("slash", *"win16", "enter"), "what win16 changes"),
    "train": (("2", "down"), "tok/s"),
}


async def draw(name: str, folder: Path) -> None:
    """One picture."""
    keys, words = PICTURES[name]
    app = Studio(runs_dir=folder / "runs", device="cpu")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(4.0)  # the engine is there, positions are drawn
        await pilot.press(*keys)
        for _ in range(100):
            await pilot.pause(0.1)
            screen = "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())
            if words in screen:
                break
        await pilot.pause(1.0)
        Path("docs", f"{name}.svg").write_text(app.export_screenshot(title="tui-transformer"), encoding="utf-8")


def main() -> None:
    """All of them."""
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "settings.toml"
        settings.write_text("welcomed = true\n")
        os.environ["TUI_TRANSFORMER_SETTINGS"] = str(settings)
        everything(folder / "runs")
        for picture in PICTURES:
            asyncio.run(draw(picture, folder))


if __name__ == "__main__":
    main()
