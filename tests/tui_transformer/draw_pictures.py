"""The pictures in README.md and docs/: `make pictures`, or `python -m tests.tui_transformer.draw_pictures [RUNS]`.

The studio itself is opened over runs that were really trained: `demo` and `no-pe` on it. Those that RUNS (by default
`runs/`) does not have are trained first, a few minutes each. Where RUNS has a study called `attention`, its recall by
distance and its variants are drawn as well; `tui-transformer ablate --study attention --on demo --seeds 3` trains it.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SIZE = (120, 36)
TRAINED = {"demo": ("--preset", "demo"), "no-pe-demo": ("--preset", "no-pe", "--on", "demo")}
STUDY = "attention"
FONT = "font-family: Fira Code, monospace;"  # which draws >= as one sign; a terminal does not

Steps = Sequence[tuple[Sequence[str], str]]  # keys, and words that the screen shows once they have been obeyed


def keys(text: str) -> list[str]:
    """The keys that type a text."""
    return [{" ": "space", "&": "ampersand"}.get(sign, sign) for sign in text]


FIRST = (("2", "down"), "100%")  # Train, with the run that was trained first
DESIGN: Steps = [(("slash", *keys("win16"), "enter"), "what win16 changes")]
TRAIN: Steps = [FIRST, (("b",), "no leak")]
COMPARE: Steps = [(("3",), "at the end")]
PLAYGROUND: Steps = [
    FIRST,
    (("w",), "temperature"),
    ((*keys("enter & Hero"), "enter"), "tokens at step"),
    (("escape", "exclamation_mark", "exclamation_mark"), "0."),
]
VARIANTS: Steps = [(("3",), "n3")]


def command(*words: str) -> None:
    """One command of the program, whose words are seen.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    subprocess.run([sys.executable, "-m", "tui_transformer", *words], check=True)


def train(runs: Path) -> None:
    """Train the runs missing from `runs`, or finish them."""
    for name, preset in TRAINED.items():
        if not (runs / name).exists():
            command("run", *preset, "--name", name, "--runs-dir", str(runs))
        elif not (runs / name / "summary.json").exists():
            command("resume", name, "--runs-dir", str(runs))


def copied(names: Sequence[str], runs: Path, folder: Path) -> Path:
    """A folder with only these, so that other runs in `runs` appear in no picture."""
    folder.mkdir()
    for name in names:
        (shutil.copytree if (runs / name).is_dir() else shutil.copy2)(runs / name, folder / name)
    return folder


async def draw(name: str, runs: Path, steps: Steps) -> None:
    """Type the steps into a studio over `runs` and save its screen as docs/NAME.svg.

    Raises:
        SystemExit: the words that a step leads to did not come within a minute.
    """
    from tui_transformer.studio.app import Studio

    app = Studio(runs_dir=runs, device="cpu")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(4.0)  # the engine is imported, the positions are drawn
        for typed, words in steps:
            await pilot.press(*typed)
            for _ in range(300):
                await pilot.pause(0.1)
                shown = "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())
                if words in shown:
                    break
            else:
                raise SystemExit(f"{name}: {' '.join(typed)} did not lead to {words!r}; the screen:\n{shown}")
        await pilot.pause(1.5)  # charts are at rest
        picture = app.export_screenshot(title="tui-transformer").replace(FONT, f"{FONT} font-variant-ligatures: none;")
        (DOCS / f"{name}.svg").write_text(picture, encoding="utf-8")
    print(f"docs/{name}.svg")


def main() -> None:
    """All that can be drawn."""
    runs = Path(sys.argv[1] if sys.argv[1:] else "runs").resolve()
    os.environ.pop("NO_COLOR", None)
    train(runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "settings.toml"
        settings.write_text("welcomed = true\n", encoding="utf-8")
        os.environ["TUI_TRANSFORMER_SETTINGS"] = str(settings)
        two = copied(list(TRAINED), runs, folder / "runs")
        for picture, steps in (("design", DESIGN), ("train", TRAIN), ("compare", COMPARE), ("playground", PLAYGROUND)):
            asyncio.run(draw(picture, two, steps))
        if study := [path.name for path in runs.glob(f"{STUDY}.*")]:
            asyncio.run(draw("variants", copied(study, runs, folder / "study"), VARIANTS))
            recall = ("--by-distance", "recall", "--out", str(DOCS / "recall.svg"))
            command("compare", STUDY, *recall, "--runs-dir", str(runs))


if __name__ == "__main__":
    main()
