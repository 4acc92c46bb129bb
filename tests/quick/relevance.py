"""How near each test is to what has changed: 0 for a test that changed itself, 1 for one that names what changed.

Three ways lead from a change to a test, and the shortest counts:

* by name: what a changed function is called, the functions that name it, the tests that name those, and so on; a name
  counts only in modules that import the one that defines it.
* by a rare word: a test that uses the name of what changed, or a word of a changed line, is nearer the fewer tests use
  it.
* by import: modules that import the changed one, directly or not.
"""

import heapq
import math
import re
from collections.abc import Container, Iterable, Iterator
from itertools import count
from pathlib import Path, PurePosixPath

from tests.quick.changes import Change
from tests.quick.readers import readers
from tests.quick.references import Code, Module, Unit, name_of

WITHIN = 0.5  # from a function to another one of its module that names it
ACROSS = 1.0  # the same in another module
OF_CLASS = 1.0  # extra distance if only a method's class is named
IMPORTED = 1.5  # by import alone, besides one for each import
FARTHEST = 4.0  # by name
SHORTEST = 4  # characters of a word that can be rare
RARE = 10  # files of tests that use a word of a changed line at most
# A method that the class's user calls without naming it.
CALLED_BY_OTHERS = ("__", "on_", "action_", "watch_", "compute_", "validate_", "render", "compose", "forward")

Names = list[tuple[str, float]]  # (name, extra distance of its users)


def relevance(code: Code, changes: Iterable[Change], root: Path) -> dict[tuple[str, str], float]:
    """Return how far away each test is that any change reaches, by its file and function; 0 is nearest."""
    found: dict[tuple[str, str], float] = {}
    for change in changes:
        for key, distance in _reached(code, change, root).items():
            found[key] = min(distance, found.get(key, math.inf))
    return found


def _reached(code: Code, change: Change, root: Path) -> dict[tuple[str, str], float]:
    rare: dict[str, float] = {}  # words, and how far away a test is that alone uses one
    if change.path.endswith(".py"):
        module, starts = name_of(change.path), {name_of(change.path): 0}
        changed = list(_changed(code.modules.get(module), change))
        seeds = [(0.0, module, unit, _names(unit)) for unit in changed]
        seeds += [(0.0, module, None, [(name, 0.0) for name in change.removed])] if change.removed else []
        if not change.path.startswith("tests/"):
            seeds += [(IMPORTED, where, unit, _names(unit)) for where, unit in _readers_of_sources(code)]
            rare |= dict.fromkeys(_words(root / change.path, change.lines), IMPORTED)
        rare |= dict.fromkeys([name for unit in changed for name, farther in _names(unit) if not farther], ACROSS)
        rare |= dict.fromkeys(change.removed, ACROSS)
    else:
        file = PurePosixPath(change.path)
        starts = {name: 0 if name.startswith("tests.") else 1 for name in readers(change.path, root) or ()}
        seeds = []
        for name in set(starts) & set(code.modules):
            units = code.users(name, file.stem) or code.modules[name].units
            seeds += [(WITHIN, name, unit, _names(unit)) for unit in units]
        rare |= dict.fromkeys(_words(root / file, change.lines), IMPORTED) if change.lines else {}
        rare[file.name.partition(".")[0]] = ACROSS
    found = dict(_by_name(code, seeds))
    hops = code.hops(starts)
    reached = [code.modules[name] for name in hops if name in code.modules and code.modules[name].is_test]
    for module in reached:
        nearer = 0.5 if change.path.endswith(".py") and _mirrors(module, change.path) else 1.0
        by_import = IMPORTED + hops[module.name]
        for unit in module.tests():
            key = module.path, unit.names[0]
            found[key] = min(found.get(key, by_import), by_import) * nearer
    for word, alone in rare.items():
        users = {module: units for module in reached if (units := code.users(module.name, word))}
        if len(word) < SHORTEST or not users or (alone > ACROSS and len(users) > RARE):
            continue
        for module, units in users.items():
            for unit in set(units) & set(module.tests()):
                key = module.path, unit.names[0]
                found[key] = min(found[key], alone + math.log10(len(users)))
    return found


def _words(file: Path, lines: Container[int]) -> set[str]:
    """Return the words of some lines; a binary file has none, and neither has one that is gone."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return set()
    chosen = (line for number, line in enumerate(text.splitlines(), start=1) if number in lines)
    return {word for line in chosen for word in re.findall(r"\w+", line)}


def _changed(module: Module | None, change: Change) -> Iterator[Unit]:
    """Yield the innermost parts that changed lines are in."""
    for line in sorted(change.lines) if module else ():
        around = [unit for unit in module.units if unit.first <= line <= unit.last]
        if around:
            yield min(around, key=lambda unit: unit.last - unit.first)


def _names(unit: Unit) -> Names:
    """Return what the users of a part call it."""
    if not unit.owner:
        return [(name, 0.0) for name in unit.names]
    by_class = 0.0 if unit.names[0].startswith(CALLED_BY_OTHERS) else OF_CLASS
    return [*((name, 0.0) for name in unit.names), (unit.owner, by_class)]


def _readers_of_sources(code: Code) -> Iterator[tuple[str, Unit]]:
    """Yield the parts of the tests that read every source file."""
    for name in code.modules:
        if name.startswith("tests."):
            yield from ((name, unit) for unit in code.users(name, "rglob") if "*.py" in unit.uses)


def _by_name(code: Code, seeds: list[tuple[float, str, Unit | None, Names]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield how far away tests are that lead by names to some parts (Dijkstra's algorithm)."""
    order = count()
    heap = [(distance, next(order), module, unit, names) for distance, module, unit, names in seeds]
    heapq.heapify(heap)
    done: set[tuple[str, Unit]] = set()
    while heap:
        distance, _, name, unit, names = heapq.heappop(heap)
        if distance > FARTHEST or (name, unit) in done:
            continue
        module = code.modules.get(name)
        if unit is not None:
            done.add((name, unit))
            if module and module.is_test and unit.names[:1] and unit.names[0].startswith("test"):
                yield (module.path, unit.names[0]), distance
                continue
        users = (name, *code.importers.get(name, ()), *code.users_of_fixtures.get(name, ()))
        if unit is not None and "autouse" in unit.uses and name.startswith("tests."):
            for where in users:
                for test in code.modules[where].tests():
                    heapq.heappush(heap, (distance + ACROSS, next(order), where, test, []))
        for where in users:
            step = WITHIN if where == name else ACROSS
            for called, farther in names if where in code.modules else ():
                for user in code.users(where, called):
                    if (where, user) not in done:
                        heapq.heappush(heap, (distance + step + farther, next(order), where, user, _names(user)))


def _mirrors(test: Module, path: str) -> bool:
    """Say whether a test file has a module's name: `test_name`, `test_folder_name`, or one that goes on from there."""
    file, stem = PurePosixPath(path), PurePosixPath(test.path).stem.removeprefix("test_")
    names = (file.stem, f"{file.parent.name}_{file.stem}")
    beside = PurePosixPath(test.path).parent in (PurePosixPath("tests") / parent for parent in file.parents)
    return stem in names or (beside and stem.startswith(tuple(f"{name}_" for name in names)))
