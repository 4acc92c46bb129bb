"""The studio in Chinese: no English words but names, and every line fits its terminal."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from engine.config.keys import all_keys
from engine.config.presets import list_presets
from engine.config.schema import RunConfig
from engine.data.known import CORPORA
from tests.catalogue import ROOT
from tests.tui_transformer.studio.in_chinese import WALKS
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.work.study import read_study, shipped_studies
from tui_transformer.studio.themes import THEMES

WORD = re.compile(r"[A-Za-z][\w.+²-]*", re.ASCII)
CHINESE = re.compile("[\u4e00-\u9fff]")
EDGES = {*"…-│╭╰▏╮╯▁▂▃▄▅▆▇█"}  # where a name may be cut, or go on in the next line
# What Chinese engineers call so themselves: programs, formats, units, networks, people.
PROPER = {
    *("CPU", "GPU", "GB", "MB", "MFLOP", "kFLOP", "SIGTERM", "min", "cpu"),
    *("CSV", "JSON", "HTML", "LaTeX", "Markdown", "README", "SVG", "TOML", "pandas", "pdflatex", "xelatex"),
    *("Transformer", "GPT", "nanoGPT", "GELU", "ReLU", "SwiGLU", "RMSNorm", "RoPE", "ALiBi", "AdamW", "Muon", "BPE"),
    *("Adam", "WikiText-2", "Penn", "Treebank", "Mikolov", "Merity", "Gigaword"),
    *("KV", "QK", "PE", "XL", "NaN", "dropout", "logit", "softmax", "top-k", "top-p", "Holm", "Shakespeare", "Tiny"),
    *("small", "ReLU²"),  # GPT-2's size
    *("NAME", "VARIANT", "KEY", "VALUE", "sSEED", "tui-transformer", "ablate", "check"),
}
PRESSED = {"enter", "esc", "escape", "tab", "space", "ctrl", "shift", "alt", "del"}
# Typed by the walk, examples in the help, places; and the program's log.
TYPED = {
    "compare-export": {"issue", "input"},
    "design-save": {"config", "presets"},
    "compare-filter": {"loss"},
    "compare-mistake": {"loss", "last"},
    "help-compare": {"rope", "n_heads", "loss", "tag", "old", "badge"},
}
# Names and settings that are written without their section, by how a scene's name begins.
BEGIN = {
    "compared": {"causal", "lr"},
    "design": {"architecture", "init"},
    "help": {"keys", "launch", "settings.toml"},
    "palette": {"left", "right"},
    "play": {"best", "last"},
    "settings": {"keys", "launch", "settings.toml"},
    "study": {"demo-study", "keys"},
    "train": {"log.txt"},
}
LOG = re.compile(r"^.*\bINFO engine\.training: .*$", re.MULTILINE)
SAID = re.compile(r"^(information|warning|error): ", re.MULTILINE)  # how serious a message is: the driver's word


def named() -> set[str]:
    """What is called the same in every language: settings and their values, presets, studies, keys …"""
    found = {*PROPER, *BADGES, *CORPORA, *PRESSED, "true", "false"}
    for key in all_keys():
        found |= {part for part in (key, key.rpartition(".")[2]) if "." in part or "_" in part}
    found |= set(options(RunConfig.model_json_schema()))
    found |= {preset.name for preset in list_presets()} | {theme.name for theme in THEMES}
    for file in shipped_studies().values():
        study = read_study(file)
        found |= {study.name, *(variant.name for variant in study.variants), *(stage.name for stage in study.stages)}
    return found


def named_in(scene: str) -> set[str]:
    """What has a name that is an English word, and is shown in few scenes."""
    found = set(TYPED.get(scene, ()))
    if "help" in scene:
        tables = tomllib.loads((ROOT / "tui_transformer/studio/shared/keys.toml").read_text(encoding="utf-8"))
        keys = [(name, key) for table in tables.values() for name, key in table.items() if "key" in key]
        found |= {part for name, key in keys for part in (name, *key["key"].split(","))}
    if scene.startswith("play-"):
        commands = tomllib.loads((ROOT / "tui_transformer/lab/play/commands.toml").read_text(encoding="utf-8"))
        found |= {name for table in commands.values() for name in table} | {"self", "cross"}
    if scene.startswith("compare-about"):
        found |= {key for key in all_keys() if "." not in key}
    return found.union(*(words for start, words in BEGIN.items() if scene.startswith(start)))


def options(schema: Any) -> Iterator[str]:
    """The named values of settings."""
    if isinstance(schema, dict):
        yield from (value for value in [*schema.get("enum", ()), schema.get("const")] if isinstance(value, str))
        for value in schema.values():
            yield from options(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from options(value)


@pytest.fixture(scope="module")
def names() -> set[str]:
    return named()


def known(word: str, names: set[str], *, cut: bool) -> bool:
    """Whether a word is a name, made of names, or, where it is cut, a part of one."""
    if len(re.findall("[A-Za-z]", word)) < 2 or word in names:
        return True
    parts = re.split(r"[.+-]", word)
    if len(parts) > 1 and all(re.fullmatch(r"[a-z]?\d*", part) or part in names for part in parts):
        return True
    return cut and any(word in name for name in names)


def english(text: str, names: set[str], runs: Iterable[str] = (), width: int = 80) -> list[str]:
    """The words on a screen that are neither names nor parts of them, where these are cut."""
    names = names | {part for run in runs for part in (run, *run.split("."))}
    # Names of runs and presets may end under a dialog, or go on in the next line, without a sign.
    long = [*runs, *(name for name in names if "-" in name)]
    found = []
    for line in re.sub(r"(?<!\w)--[a-z][\w-]*", "", LOG.sub("", SAID.sub("", text))).splitlines():
        full = cell_len(line) >= width - 1
        for word in WORD.finditer(line):
            before, after, text = line[: word.start()], line[word.end() :], word[0].strip(".-+")
            cut = before.rstrip()[-1:] in EDGES or after.lstrip()[:1] in EDGES or (not after and full)
            if known(text, names, cut=cut):
                continue
            begun = after[:2] in ("", "  ") and any(name.startswith(text) for name in long)
            ended = not before.strip() and any(name.endswith(text) for name in long)
            if not begun and not ended:
                found.append(text)
    return found


def drawn(folder: Path, walks: str, size: tuple[int, int]) -> dict[str, str]:
    """The scenes of some walks by name, drawn in a process of its own."""
    command = [sys.executable, "-m", "tests.tui_transformer.studio.in_chinese", *map(str, size), str(folder)]
    subprocess.run([*command, *walks.split()], check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.txt"))}


def slowly(size: tuple[int, int], walks: str) -> Any:
    return pytest.param(size, walks, marks=pytest.mark.slow, id=f"{size[0]}x{size[1]}-{walks.replace(' ', '-')}")


@pytest.mark.parametrize(
    ("size", "walks"),
    [
        pytest.param((80, 24), "none runs study play", id="80x24-none-runs-study-play"),
        slowly((80, 24), "corpora"),
        *(slowly(size, walks) for size in ((120, 36), (200, 50)) for walks in ("none corpora", "runs study play")),
    ],
)
def test_the_studio_is_chinese(tmp_path, names, size, walks) -> None:
    scenes = drawn(tmp_path, walks, size)
    runs = [path.name for path in tmp_path.glob("*/*/")]
    assert {*scenes} == {name for walk in walks.split() for name, _ in WALKS[walk]}
    for name, text in scenes.items():
        assert CHINESE.search(text), name
        assert not (found := english(text, names | named_in(name), runs, size[0])), (name, found, text)
        assert max(map(cell_len, text.splitlines()[: size[1]])) <= size[0], name
        assert not (wrong := (tmp_path / f"{name}.faults").read_text(encoding="utf-8")), (name, wrong)


def test_the_walks_lead_past_ninety_scenes() -> None:
    scenes = [name for walk in WALKS.values() for name, _ in walk]
    assert len(scenes) == len(set(scenes)) >= 90


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("训练 2,000 steps.", ["steps"]),
        ("│ 损失  model.d_model  demo-win16 │", []),
        ("│ shakespe…  │", []),
        ("│ biographies-pre│", []),
        ("按 Enter", ["Enter"]),
        ("--set model.n_heads=7", []),
        ("a. 高于 ctrl+s", []),
    ],
)
def test_english_is_found(text, found, names) -> None:
    assert english(text, names) == found
