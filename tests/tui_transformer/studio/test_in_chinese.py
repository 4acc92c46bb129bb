"""The studio in Chinese: no English words but names, every line as wide as its terminal, every screen as it was.

`--snapshot-update` writes the screens again, to `__snapshots__/zh/WIDTHxHEIGHT/NAME.txt`: read them before a commit.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from engine.config.keys import all_keys
from engine.config.presets import list_presets
from engine.config.schema import RunConfig
from engine.data.corpora import CORPORA
from tests.catalogue import ROOT
from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.recorded import everything
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.studies.study import read_study, shipped_studies
from tui_transformer.studio.settings import Settings
from tui_transformer.studio.themes import THEMES

SNAPSHOTS = Path(__file__).parent / "__snapshots__" / "zh"
WORD = re.compile(r"[A-Za-z][\w.+²-]*", re.ASCII)
CHINESE = re.compile("[\u4e00-\u9fff]")
EDGE = re.compile(r"[…│▏╮╯▄▂▁▃▅▆▇ ]|$")  # where a name may be cut, or go on in the next line
# What Chinese engineers call so themselves: programs, formats, units, networks, people.
PROPER = {
    *("CPU", "GPU", "GB", "MB", "MFLOP", "kFLOP", "SIGTERM", "min", "cpu"),
    *("CSV", "JSON", "HTML", "LaTeX", "Markdown", "README", "SVG", "TOML", "pandas", "pdflatex", "xelatex"),
    *("Transformer", "GPT", "nanoGPT", "GELU", "ReLU", "SwiGLU", "RMSNorm", "RoPE", "ALiBi", "AdamW", "Muon", "BPE"),
    *("KV", "QK", "PE", "XL", "dropout", "logit", "softmax", "top-k", "top-p", "Holm", "Shakespeare", "Tiny"),
    *("NAME", "VARIANT", "KEY", "VALUE", "tui-transformer", "ablate"),
}
# Typed by the walk, examples in the help, and the program's log.
TYPED = {
    "compare-filter": {"loss"},
    "compare-mistake": {"loss", "x"},
    "help-compare": {"rope", "n_heads", "loss", "tag", "old", "badge"},
}
LOG = re.compile(r"^.*\bINFO engine\.training: .*$", re.MULTILINE)
SAID = re.compile(r"^(information|warning|error): ", re.MULTILINE)  # how serious a message is: the driver's word
