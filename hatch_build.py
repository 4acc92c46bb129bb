"""Compile the catalogues of messages into a wheel. An editable install compiles them at their first use instead."""

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "tui_transformer"


class CompiledCatalogues(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        compile_po = runpy.run_path(str(root / PACKAGE / "msgfmt.py"))["compile_po"]
        self.folder = TemporaryDirectory()  # until the wheel is written; the working copy stays as it is
        for source in sorted((root / PACKAGE / "locale").rglob("*.po")):
            place = source.relative_to(root).with_suffix(".mo")
            made = Path(self.folder.name) / place
            made.parent.mkdir(parents=True)
            made.write_bytes(compile_po(source.read_bytes()))
            build_data["force_include"][str(made)] = place.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.folder.cleanup()
