"""Which code refers to which: what each module imports, and which names each of its functions uses."""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("engine", "tui_transformer", "reference", "tests")
DOTTED = re.compile(r"\b(?:engine|tui_transformer|reference|tests)(?:\.\w+)+\.?")  # a module named in a text
LONGEST = 300  # characters of a text whose words count as names: a dotted key, an argument, never prose
VERSION = 2  # of what the cache holds


@dataclass(frozen=True, eq=False)
class Unit:
    """A function, a method or a field of a class, the rest of the class, or a statement of a module."""

    names: tuple[str, ...]  # that it defines
    owner: str  # of a method or a field: its class
    first: int  # line
    last: int
    uses: frozenset[str]  # every name in it: variables, attributes, arguments, words of short texts


@dataclass(frozen=True)
class Module:
    name: str
    path: str  # from the root, with /
    imports: tuple[str, ...]  # as written, in functions too; `a.` is every module in `a`
    units: tuple[Unit, ...]

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/") and Path(self.path).name.startswith("test_")

    def tests(self) -> list[Unit]:
        """Return its tests."""
        return [unit for unit in self.units if self.is_test and unit.names[:1] and unit.names[0].startswith("test")]


def name_of(path: str) -> str:
    """Return the module of a file: `a/b/__init__.py` is `a.b`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def parse(path: str, source: bytes) -> Module:
    """Read a module. One that is no Python has no units."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return Module(name_of(path), path, (), ())
    units = tuple(unit for node in tree.body for unit in _units(node))
    return Module(name_of(path), path, tuple(sorted(_imports(tree))), units)


def _units(node: ast.stmt, owner: str = "") -> Iterator[Unit]:
    if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
        return
    names, inside = tuple(dict.fromkeys(_bound([node]))), [node]
    if isinstance(node, ast.ClassDef) and not owner:
        yield from (unit for part in node.body for unit in _units(part, node.name))
        inside = [*node.bases, *node.keywords, *node.decorator_list]
    yield Unit(names, owner, _first(node), node.end_lineno or 0, _uses(inside))


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _bound(nodes: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield what statements define."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        else:
            for field in ("body", "orelse", "handlers", "finalbody"):
                yield from _bound(part for part in getattr(node, field, ()) if isinstance(part, ast.stmt))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and all below them, without docstrings."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if not _is_docstring(node):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _uses(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    for node in _nodes(nodes):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= LONGEST:
            found.update([node.value] if node.value.startswith("*.") else re.findall(r"\w+", node.value))
    return frozenset(found)


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in _nodes([tree]):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update(f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(DOTTED.findall(node.value))
            if node.value in ("tui_transformer", "tui-transformer"):  # `python -m tui_transformer`, in a process
                found.add("tui_transformer.__main__")
    return {name for name in found if name.partition(".")[0] in PACKAGES}


class Code:
    """All modules of the packages, and who imports whom."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for written in module.imports:
                found = self._starting(written) if written.endswith(".") else self._imported(written)
                for target in found:
                    self.importers[target].add(module.name)
        for name, found in self.importers.items():
            found.discard(name)
        self._users: dict[str, dict[str, list[Unit]]] = {}
        self.users_of_fixtures = {name: self._below(name) for name in self.modules if name.endswith(".conftest")}
        for name, below in self.users_of_fixtures.items():
            fixtures = {one for unit in self.modules[name].units for one in unit.names}
            self.importers[name] |= {module for module in below if any(self.users(module, one) for one in fixtures)}

    def _below(self, conftest: str) -> set[str]:
        """Return the modules whose tests can ask for the fixtures of a `conftest.py`."""
        folder = conftest.removesuffix("conftest")
        return {name for name in self.modules if name.startswith(folder) and name != conftest}

    def _starting(self, written: str) -> list[str]:
        return [name for name in self.modules if name.startswith(written)]

    def _imported(self, written: str) -> list[str]:
        """Return the module that `from a.b import c` is about; of a package, also what may have been a module in it."""
        name = written
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        if name and not self.modules[name].path.endswith("/__init__.py"):
            return [name]
        return [name, written, written.rpartition(".")[0]]

    def users(self, module: str, name: str) -> list[Unit]:
        """Return the parts of a module that use a name."""
        if module not in self._users:
            by_name: defaultdict[str, list[Unit]] = defaultdict(list)
            for unit in self.modules[module].units:
                for used in unit.uses:
                    by_name[used].append(unit)
            self._users[module] = dict(by_name)
        return self._users[module].get(name, [])

    def hops(self, starts: Iterable[str]) -> dict[str, int]:
        """Return how many imports lead from each module to the nearest of some, however indirectly."""
        found = dict.fromkeys(starts, 0)
        waiting = list(found)
        for name in waiting:
            for importer in self.importers.get(name, ()):
                if importer not in found:
                    found[importer] = found[name] + 1
                    waiting.append(importer)
        return found


def read(root: Path, cache: Path) -> Code:
    """Read all modules; those that have not changed since, from the cache."""
    try:
        kept = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    if kept.get("version") != VERSION:
        kept = {}
    files, modules, fresh = {}, [], False
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name, stat = path.relative_to(root).as_posix(), path.stat()
        stamp = [stat.st_mtime_ns, stat.st_size]
        row = kept.get("files", {}).get(name)
        if row and row[0] == stamp:
            module = Module(name_of(name), name, tuple(row[1]), tuple(_unpacked(unit) for unit in row[2]))
        else:
            module, fresh = parse(name, path.read_bytes()), True
        modules.append(module)
        files[name] = [stamp, module.imports, [_packed(unit) for unit in module.units]]
    if fresh or len(files) < len(kept.get("files", {})):
        cache.parent.mkdir(exist_ok=True)
        text = json.dumps({"version": VERSION, "files": files}, ensure_ascii=False, separators=(",", ":"))
        cache.write_text(text, encoding="utf-8")
    return Code(modules)


def _packed(unit: Unit) -> list[object]:
    return [unit.names, unit.owner, unit.first, unit.last, " ".join(sorted(unit.uses))]


def _unpacked(row: list) -> Unit:
    names, owner, first, last, uses = row
    return Unit(tuple(names), owner, first, last, frozenset(uses.split()))
