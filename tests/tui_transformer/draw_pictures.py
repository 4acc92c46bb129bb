"""The pictures in README.md and docs/, and the sample report there: `make pictures`.

Or `python -m tests.tui_transformer.draw_pictures [RUNS]`.

The studio itself is opened over runs that were really trained: `demo`, `no-pe` on it, and the study `attention`. Those
that RUNS (by default `runs/`) does not have are trained first: about half an hour. `docs/session.svg` moves: for it the
demo is trained once more, in a studio with an empty runs folder, where the study appears when it is compared.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from tests.tui_transformer.moving_picture import Frame, picture

DOCS = Path(__file__).parents[2] / "docs"
SIZE, SESSION_SIZE = (120, 36), (100, 30)
TRAINED = {"demo": ("--preset", "demo"), "no-pe-demo": ("--preset", "no-pe", "--on", "demo")}
STUDY = "attention"
PATIENCE = 600.0  # seconds: for a demo on a busy machine
CALM = 1.5  # seconds until charts are at rest

Claim = str | Callable[[str], bool]  # words that the screen shows, or what is asked of its text
TypeUntil = Callable[[Sequence[str], Claim], Awaitable[None]]
Steps = Sequence[tuple[Sequence[str], Claim]]  # keys, and what holds once they have been obeyed


def keys(text: str) -> list[str]:
    """The keys that type a text."""
    return [{" ": "space", "&": "ampersand"}.get(sign, sign) for sign in text]


def trained(share: int) -> Callable[[str], bool]:
    """Whether the bar in Train's header stands at so many percent, or beyond."""
    return lambda text: any(int(percent) >= share for percent in re.findall(r"[━╸─]  (\d+)%", text))


FIRST = (("2", "down"), "100%")  # Train, with the run that was trained first
DESIGN: Steps = [(("slash", *keys("win16"), "enter"), "what win16 changes")]
TRAIN: Steps = [FIRST, (("b",), "no leak")]
COMPARE: Steps = [(("3",), "at the end")]
PLAYGROUND: Steps = [
    FIRST,
    (("w",), "temperature"),
    ((*keys("enter & Hero"), "enter"), "tokens in "),
    (("escape", "exclamation_mark", "exclamation_mark"), "0."),
]
VARIANTS: Steps = [(("3",), "n3")]


@dataclass(frozen=True)
class Shot:
    """A frame of the moving picture: how it comes about, and how it is shown."""

    typed: Sequence[str]
    claim: Claim
    caption: str
    seconds: float
    calm: float = CALM
    before: str = ""  # a study that another terminal has trained by then


WRITING = "w: write with it"
SESSION = (
    Shot((), "a minute or two", "tui-transformer", 3.0),
    Shot(("enter",), lambda text: "A studio for" not in text, "enter: choose the demo", 3.5),
    Shot(("f5",), trained(3), "F5: train it", 1.2, calm=0.0),
    *(Shot((), trained(share), "F5: train it", 0.8, calm=0.0) for share in (9, 17, 26, 42, 59, 76, 92)),
    Shot((), "finished", "F5: train it", 2.0),
    Shot(("b",), "no leak", "b: what the checks found", 3.0),
    Shot(("3",), "n3", "3: compare the study attention, trained meanwhile", 5.0, before=STUDY),
    Shot(("D",), "characters back", "D: recall, by how far back the answer stands", 4.0),
    Shot(("2", "w"), "temperature", WRITING, 2.0),
    Shot(keys("enter & Hero"), "enter & Hero", WRITING, 1.5, calm=0.3),
    Shot(("enter",), "tokens in ", WRITING, 2.0),
    Shot(("escape", "exclamation_mark", "exclamation_mark"), "0.", "!: what else it might have written", 4.5),
)
STILL = "3: compare"  # the caption of the frame that is shown where nothing moves


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
    command("ablate", "--study", STUDY, "--on", "demo", "--seeds", "3", "--runs-dir", str(runs))


def copied(names: Sequence[str], runs: Path, folder: Path) -> Path:
    """A folder with these, and in one made for it with only these: other runs in `runs` appear in no picture."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (shutil.copytree if (runs / name).is_dir() else shutil.copy2)(runs / name, folder / name)
    return folder


def of_study(runs: Path) -> list[str]:
    """What belongs to the study."""
    return [path.name for path in runs.glob(f"{STUDY}.*")]


@asynccontextmanager
async def opened(runs: Path, size: tuple[int, int]) -> AsyncIterator[tuple[App[None], Pilot[None], TypeUntil]]:
    """A studio over `runs`, once it stands; and what types into it until a claim holds.

    Raises:
        SystemExit: a claim did not come true in time.
    """
    from tui_transformer.studio.app import Studio

    app = Studio(runs_dir=runs, device="cpu")
    async with app.run_test(size=size) as pilot:
        await pilot.pause(4.0)  # the engine is imported, the positions are drawn

        async def type_until(typed: Sequence[str], claim: Claim) -> None:
            await pilot.press(*typed)
            for _ in range(round(PATIENCE / 0.1)):
                await pilot.pause(0.1)
                lines = app.screen._compositor.render_strips()
                shown = "\n".join("".join(part.text for part in line) for line in lines)
                if claim in shown if isinstance(claim, str) else claim(shown):
                    return
            raise SystemExit(f"{' '.join(typed)} did not lead to {claim!r}; the screen:\n{shown}")

        yield app, pilot, type_until


def save(name: str, frames: Sequence[Frame], still: int = 0) -> None:
    """Write docs/NAME.svg."""
    (DOCS / f"{name}.svg").write_text(picture(frames, still), encoding="utf-8")
    print(f"docs/{name}.svg")


async def draw(name: str, runs: Path, steps: Steps) -> None:
    """Type the steps into a studio over `runs` and save its screen as docs/NAME.svg."""
    async with opened(runs, SIZE) as (app, pilot, type_until):
        for typed, claim in steps:
            await type_until(typed, claim)
        await pilot.pause(CALM)
        save(name, [Frame(app.export_screenshot(), 1.0, "tui-transformer")])


async def draw_session(runs: Path, folder: Path) -> None:
    """Play the session in a studio over `folder`, which is empty, and save its frames as docs/session.svg."""
    frames = []
    async with opened(folder, SESSION_SIZE) as (app, pilot, type_until):
        for shot in SESSION:
            if shot.before:
                copied(of_study(runs), runs, folder)
                await pilot.pause(CALM)
            await type_until(shot.typed, shot.claim)
            await pilot.pause(shot.calm)
            frames.append(Frame(app.export_screenshot(), shot.seconds, shot.caption))
    save("session", frames, next(at for at, shot in enumerate(SESSION) if shot.caption.startswith(STILL)))


def share_figures(reports: Path) -> None:
    """Keep once, in `reports/figures`, what the reports in folders below `reports` have drawn alike."""
    shared = reports / "figures"
    shared.mkdir(exist_ok=True)
    for old in shared.iterdir():
        old.unlink()
    pages = sorted(reports.glob("*/report.md"))
    for figure in sorted((pages[0].parent / "figures").iterdir()):
        copies = [page.parent / "figures" / figure.name for page in pages]
        if len({copy.read_bytes() if copy.is_file() else b"" for copy in copies}) > 1:
            continue
        figure.replace(shared / figure.name)
        for page, copy in zip(pages, copies, strict=True):
            copy.unlink(missing_ok=True)
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(f"](figures/{figure.name})", f"](../figures/{figure.name})"), encoding="utf-8")
    for page in pages:
        if not any((page.parent / "figures").iterdir()):
            (page.parent / "figures").rmdir()


def main() -> None:
    """All pictures."""
    runs = Path(sys.argv[1] if sys.argv[1:] else "runs").resolve()
    os.environ.pop("NO_COLOR", None)
    train(runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "settings.toml"
        os.environ["TUI_TRANSFORMER_SETTINGS"] = str(settings)
        (folder / "session").mkdir()
        asyncio.run(draw_session(runs, folder / "session"))
        settings.write_text("welcomed = true\n", encoding="utf-8")
        two = copied(list(TRAINED), runs, folder / "runs")
        for picture_, steps in (("design", DESIGN), ("train", TRAIN), ("compare", COMPARE), ("playground", PLAYGROUND)):
            asyncio.run(draw(picture_, two, steps))
        asyncio.run(draw("variants", copied(of_study(runs), runs, folder / "study"), VARIANTS))
        recall = ("--by-distance", "recall", "--out", str(DOCS / "recall.svg"))
        command("compare", STUDY, *recall, "--runs-dir", str(runs))
    for code in ("en", "zh"):
        out = DOCS / f"report-{STUDY}" / code
        command("--language", code, "report", STUDY, "--out", str(out), "--runs-dir", str(runs))
    share_figures(DOCS / f"report-{STUDY}")


if __name__ == "__main__":
    main()
