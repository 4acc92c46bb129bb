"""The cost of hostile files: no command needs 2 s of CPU time or 500 MB more for them than for an intact run."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.forked import TRACEBACK, Said, said
from tests.tui_transformer.trained import train
from tui_transformer.lab.analysis.entry import read_entry

SECONDS, MEMORY = 2.0, 500_000_000
HOLE = 3 << 30  # bytes
COMMANDS = (
    *("runs", "compare", "doctor run", "verify run --steps 0", "watch run", "note run", "resume run", "translate run"),
    *("report run --format html", "report run --format latex", "report run --format markdown", "compare run --json"),
    *("export run --to csv", "export run --to json", "export run --to huggingface", "export run --to tensorboard"),
    *("sample run --prompt a --length 2", "evaluate run --split test", "compare run --by-distance recall --out d.svg"),
)
# The processor time of these hangs on the model, not on what others wrote.
JSON = ("model", "data", "status", "summary", "checks", "notes", "translations", "environment", "tokenizer")
STREAMS = ("metrics.jsonl", "samples.jsonl", "events.jsonl", "log.txt")


def hole(path: Path, size: int = HOLE) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        file.truncate(size)


def holes_in_json(run: Path) -> None:
    for name in JSON:
        hole(run / f"{name}.json")


def holes_in_streams(run: Path) -> None:
    for name in STREAMS:
        hole(run / name)


def a_hole_of_a_gibibyte(run: Path) -> None:
    (run / "metrics.jsonl").write_bytes(b"")
    hole(run / "metrics.jsonl", 1 << 30)


def holes_with_ends(run: Path) -> None:
    """Each line a hole that is no longer than a record may be."""
    for name in STREAMS:
        with (run / name).open("wb") as file:
            for number in range(1, 400):
                file.seek(number * (7 << 20))
                file.write(b"\n")


def holes_in_checkpoints(run: Path) -> None:
    for folder in (run / "checkpoints").glob("step-*"):
        for path in folder.iterdir():
            hole(path)


def a_hole_in_the_config(run: Path) -> None:
    hole(run / "config.toml")


def many_probes(run: Path) -> None:
    names = [f"probe {i}" for i in range(3000)]
    shares = {name: i / 3000 for i, name in enumerate(names)}
    rows = {name: [[0, 8, 3, 4], [8, 16, 1, 4]] for name in names}

    def widened(record: dict[str, Any]) -> dict[str, Any]:
        more = {"probes": shares, "by_distance": rows} if record.get("kind") == "validation" else {}
        return record | more

    summary = json.loads((run / "summary.json").read_text())
    summary |= {key: widened(summary[key]) for key in ("best", "last")}
    (run / "summary.json").write_text(json.dumps(summary))
    data = json.loads((run / "data.json").read_text())
    data["probes"] = [{"name": name, "description": name, "n": 4, "chance": 0.1, "shortcut": 0.2} for name in names]
    (run / "data.json").write_text(json.dumps(data))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(widened(line)) + "\n" for line in lines))


def many_tables(run: Path) -> None:
    for name in JSON:
        (run / f"{name}.json").write_text("[" + "{}," * 10_000_000 + "{}]")


HOSTILE: dict[str, Callable[[Path], None]] = {
    plant.__name__: plant
    for plant in (
        *(many_probes, holes_in_json, holes_in_streams, a_hole_of_a_gibibyte, holes_with_ends),
        *(holes_in_checkpoints, a_hole_in_the_config, many_tables),
    )
}
IN_CI = ("many_probes", "a_hole_of_a_gibibyte")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Said]]:
    """A whole run, and what each command about it costs."""
    runs = tmp_path_factory.mktemp("whole")
    train(runs, "run")
    return runs, {}


def of(words: str, runs: Path, folder: Path) -> Said:
    where = ["--runs-dir", str(runs)]
    out = ["--out", str(folder / "out")] if words.startswith(("report", "export")) else []
    shutil.rmtree(folder / "out", ignore_errors=True)
    os.chdir(folder)
    return said([*words.split(), *out, *where])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IN_CI else pytest.mark.slow) for name in HOSTILE]
)
def test_hostile_files_cost_little(whole, tmp_path, monkeypatch, name: str) -> None:
    runs, usual = whole
    monkeypatch.chdir(tmp_path)
    shutil.copytree(runs, tmp_path / "runs")
    HOSTILE[name](tmp_path / "runs" / "run")
    worst: list[tuple[float, int, str]] = []
    for words in COMMANDS:
        found = of(words, tmp_path / "runs", tmp_path)
        assert found.code not in (TRACEBACK, -9) and "Traceback" not in found.text, found
        if found.seconds <= SECONDS and found.peak <= MEMORY:
            continue  # the difference is less still
        if words not in usual:
            usual[words] = of(words, runs, tmp_path)
        worst.append((found.seconds - usual[words].seconds, found.peak - usual[words].peak, words))
    if worst:
        print(f"\n{name}: {max(worst)[0]:.2f} s ({max(worst)[2]}), {max(peak for _, peak, _ in worst) / 1e6:.0f} MB")
    assert not [one for one in worst if one[0] > SECONDS or one[1] > MEMORY]
    if name == "many_probes":
        assert "and 2,936 more" in of("watch run", tmp_path / "runs", tmp_path).text
        assert "3,000 probes; only the first 64 are read" in read_entry(tmp_path / "runs" / "run").badges["DAMAGED"]
