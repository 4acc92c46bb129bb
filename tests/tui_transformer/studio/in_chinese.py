"""The studio's screens in Chinese as text: `python -m tests.tui_transformer.studio.in_chinese WIDTH HEIGHT FOLDER`.

A process of its own, for module-level texts are translated when their module is imported. FOLDER is written to: the
runs that are shown, and each scene as NAME.txt.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tui_transformer import languages

Scenes = dict[str, tuple[str, ...]]  # by name, the keys that lead there

ALL: Scenes = {
    "design": (),
    "design-changed": ("slash", *"win16", "enter", "enter", "down", "right"),
    "design-values": ("tab", "enter"),
    "design-presets": ("slash", *"rope"),
    "design-network": ("d",),
    "design-launch": ("f5",),
    "design-study": ("S",),
    "train": ("2", "home"),
    "train-second": ("2", "home", "down"),
    "train-badges": ("2", "home", "b"),
    "train-bands": ("2", "home", "l"),
    "train-more": ("2", "home", "i"),
    "compare": ("3",),
    "compare-about": ("3", "f", "home", "enter"),
    "compare-filter": ("3", "f", "slash", *"loss<2"),
    "playground": ("4",),
    "help-design": ("question_mark",),
    "help-train": ("2", "question_mark"),
    "help-compare": ("3", "question_mark"),
    "help-playground": ("4", "escape", "question_mark"),
    "palette": ("ctrl+p",),
    "settings": ("comma",),
    "quit": ("2", "delete"),
}
STUDY: Scenes = {
    "study": ("3",),
    "study-table": ("3", "f", "down"),
    "study-about": ("3", "f", "down", "enter"),
    "study-train": ("2", "home"),
}
NONE: Scenes = {"no-run-train": ("2",), "no-run-compare": ("3",), "no-run-playground": ("4",)}


async def draw(name: str, keys: tuple[str, ...], size: tuple[int, int], runs: Path, folder: Path) -> None:
    """Open a studio, press the keys, and write what it shows once it is at rest."""
    from tests.tui_transformer.studio.on_screen import shown
    from tui_transformer.studio.app import PANE_NAMES, PaneSwitcher, Studio

    app = Studio(runs_dir=runs, device="cpu")

    async def rest() -> None:
        same, before = 0, ""
        for _ in range(200):
            await pilot.pause(0.1)
            now = shown(app)
            same, before = (same + 1 if now == before else 0), now
            if same == 6:
                return

    async with app.run_test(size=size) as pilot:
        while len(app.query_one(PaneSwitcher).children) < len(PANE_NAMES):
            await pilot.pause(0.01)
        await rest()
        for key in keys:
            await pilot.press(key)
            await (rest() if key in "1234" or key == keys[-1] else pilot.pause(0.05))
        (folder / f"{name}.txt").write_text(shown(app) + "\n", encoding="utf-8")


def main() -> None:
    """Every scene."""
    width, height, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).resolve()
    (folder / "settings.toml").write_text("welcomed = true\n")
    os.environ |= {languages.SETTINGS: str(folder / "settings.toml"), "TUI_TRANSFORMER_DATA": str(folder / "data")}
    os.chdir(folder)
    languages.use("zh")
    from tests.tui_transformer.lab.analysis.studies import attention
    from tests.tui_transformer.recorded import everything

    makers: dict[str, tuple[Scenes, Callable[[Path], object]]] = {
        "runs": (ALL, everything),
        "study": (STUDY, attention),
        "none": (NONE, Path.mkdir),
    }
    for name, (scenes, make) in makers.items():
        make(Path(name))
        for scene, keys in scenes.items():
            asyncio.run(draw(scene, keys, (width, height), Path(name), folder))


if __name__ == "__main__":
    main()
