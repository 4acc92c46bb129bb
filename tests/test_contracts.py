"""Each import contract notices a forbidden import, and what it ignores is needed for types alone."""

import ast
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from grimp import ImportGraph, build_graph
from importlinter import configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).parents[1]
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS = {row["id"]: row for row in OPTIONS.pop("contracts")}
TYPES = {"acyclic_siblings": AcyclicSiblingsContract, "forbidden": ForbiddenContract, "layers": LayersContract}
FORBIDDEN = {
    "engine-alone": ("engine.model.layers", "rich"),
    "torch-free": ("engine.config.model", "torch"),
    "rooms": ("tui_transformer.lab.formatting", "tui_transformer.studio.shared.keys"),
    "engine-rooms": ("engine.runs.reader", "engine.model.size"),
    "lab-rooms": ("tui_transformer.lab.work.device_queue", "tui_transformer.lab.records.feed"),
    "studio-rooms": ("tui_transformer.studio.compare.pane", "tui_transformer.studio.design.pane"),
    "lab-no-screen": ("tui_transformer.lab.formatting", "textual"),
    "comparison-plain": ("tui_transformer.lab.analysis.statistics", "torch"),
    "no-circles": ("engine.model.attention", "engine.model.heads"),
}


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph(*OPTIONS["root_packages"], include_external_packages=True, cache_dir=None)


def is_kept(contract: dict[str, Any], graph: ImportGraph) -> bool:
    configuration.configure()
    options = {key: value for key, value in contract.items() if key not in ("id", "name", "type", "exhaustive")}
    options |= {"exhaustive": "true"} if contract.get("exhaustive") else {}  # read from TOML as a word
    checked = TYPES[contract["type"]](contract["name"], session_options=OPTIONS, contract_options=options)
    return checked.check(graph=deepcopy(graph), verbose=False).kept


def test_every_contract_is_tried() -> None:
    assert FORBIDDEN.keys() == CONTRACTS.keys()


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_forbidden_import_is_noticed(graph, name) -> None:
    importer, imported = FORBIDDEN[name]
    assert is_kept(CONTRACTS[name], graph)
    planted = deepcopy(graph)
    planted.add_import(importer=importer, imported=imported)
    assert not is_kept(CONTRACTS[name], planted)


def test_what_is_ignored_is_imported_for_types_alone() -> None:
    for contract in CONTRACTS.values():
        for importer, imported in (row.split(" -> ") for row in contract.get("ignore_imports", ())):
            tree = ast.parse((ROOT / f"{importer.replace('.', '/')}.py").read_text(encoding="utf-8"))
            checking = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
            typed = [one for node in checking if ast.unparse(node.test) == "TYPE_CHECKING" for one in ast.walk(node)]
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module == imported:
                    assert node in typed, f"{importer}:{node.lineno}"
