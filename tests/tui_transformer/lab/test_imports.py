"""Importing the lab loads neither torch nor a screen: the app opens before torch is there."""

import subprocess
import sys

CODE = """
import importlib, pkgutil, sys
import tui_transformer.lab
for module in pkgutil.walk_packages(tui_transformer.lab.__path__, "tui_transformer.lab."):
    importlib.import_module(module.name)
sys.exit(", ".join(name for name in ("torch", "textual", "typer") if name in sys.modules) or None)
"""


def test_the_first_paint_needs_neither_torch_nor_numpy_nor_psutil() -> None:
    loaded = "{'torch', 'numpy', 'psutil'} & {*sys.modules}"
    code = f"import sys, tui_transformer.studio.app; sys.exit(', '.join({loaded}) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_module_of_the_lab_loads_torch_or_a_screen() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
