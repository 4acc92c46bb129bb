"""Every order in which three takers can claim, look, and give back one run, on the functions themselves.

A step is a call of the system. A round (claim, is it held?, give it back) depends on nothing but the answers to its
calls, so it is brought to any step by running it again with the answers that it has had; the next call is then made, on
a folder in memory. Each state of folder and takers is reached once, whatever led there: its future is the same.
"""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.runs import claims
from engine.runs.claims import RELEASED, claim
from engine.runs.process import identity
from engine.runs.records import Process

NAME, RUNS = "a", Path("/runs")


class Suspended(BaseException):
    """The round has made its step."""


@dataclass(frozen=True)
class Taker:
    rounds: int  # still to come, with this one
    answers: tuple[Any, ...] = ()  # to the calls that this round has made
    holds: int = 0  # the number that it was told is held
    doubted: bool = False  # the others take it for gone, rightly or not
    dead: bool = False  # it makes no more steps


@dataclass(frozen=True)
class State:
    takers: tuple[Taker, ...]
    names: tuple[tuple[int, str], ...]  # numbers and the files that they name
    files: tuple[tuple[str, bytes], ...]
    highest: int = 0  # that anybody was told is held


class Folder:
    """The calls of one taker's round: the first ones are answered as before, the next is made, then it is suspended."""

    def __init__(self, state: State, who: int) -> None:
        self.names, self.files, self.who = dict(state.names), dict(state.files), who
        doubted = [number for number, taker in enumerate(state.takers) if taker.doubted]
        self.doubted = {f"{number}-{round}" for number in doubted for round in range(9)}
        self.answers, self.next = list(state.takers[who].answers), 0
        self.known = len(self.answers)
        self.id = f"{who}-{state.takers[who].rounds}"

    def call(self, act: Callable[[], Any]) -> Any:
        if self.next == len(self.answers):
            if self.next > self.known:
                raise Suspended
            try:
                self.answers.append(act())
            except OSError as error:
                self.answers.append(error)
        answer = self.answers[self.next]
        self.next += 1
        if isinstance(answer, OSError):
            raise answer
        return answer

    def listdir(self, path: Path) -> list[str]:
        return [str(number) for number in self.call(lambda: tuple(self.names))]

    def file(self, path: Path) -> str:
        if int(path.name) not in self.names:
            raise FileNotFoundError(errno.ENOENT, "gone")
        return self.names[int(path.name)]

    def read(self, path: Path) -> Any:
        """A claim; the same look says whether its maker is alive."""

        def look() -> tuple[bytes, bool]:
            file = self.file(path)
            return self.files[file], file not in self.doubted

        data, self.alive = self.call(look)
        return Opened(SimpleNamespace(read=lambda most: data, fileno=lambda: 0))

    def create(self, path: Path, flags: int, mode: int) -> str:
        assert flags & os.O_CREAT and flags & os.O_EXCL

        def made() -> str:
            if int(path.name) in self.names:
                raise FileExistsError(errno.EEXIST, "is there")
            self.names[int(path.name)], self.files[self.id] = self.id, b""
            return self.id

        return self.call(made)

    def append(self, file: str, data: bytes) -> None:
        self.call(lambda: self.files.__setitem__(file, self.files[file] + data))

    def unlink(self, path: Path, missing_ok: bool = False) -> None:
        def unlinked() -> None:
            if self.names.pop(int(path.name), None) is None and not missing_ok:
                raise FileNotFoundError(errno.ENOENT, "gone")

        self.call(unlinked)


class Opened:
    def __init__(self, what: Any) -> None:
        self.what = what

    def __enter__(self) -> Any:
        return self.what

    def __exit__(self, *_: object) -> None: ...


class Calls:
    """The module `os` as `claims` uses it."""

    def __init__(self) -> None:
        self.folder: Folder

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def listdir(self, path: Path) -> list[str]:
        return self.folder.listdir(path)

    def open(self, path: Path, flags: int, mode: int) -> str:
        return self.folder.create(path, flags, mode)

    def fdopen(self, handle: str, *_: Any, **__: Any) -> Opened:
        return Opened(handle)

    def fstat(self, _: int) -> Any:
        return SimpleNamespace(st_mtime_ns=0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found, me = Calls(), identity()
    monkeypatch.setattr(claims, "os", found)
    monkeypatch.setattr(claims, "open_regular_file", lambda path: found.folder.read(path))
    monkeypatch.setattr(claims, "append_whole", lambda file, data: found.folder.append(file, data))
    monkeypatch.setattr(claims, "is_alive", lambda holder: found.folder.alive)
    monkeypatch.setattr(claims, "heartbeat_liveness", lambda *_: "unknown" if found.folder.alive else "dead")
    monkeypatch.setattr(
        claims,
        "identity",
        lambda: Process(pid=found.folder.who + 1, process_started=0.0, boot=me.boot, host=me.host),
    )
    monkeypatch.setattr(claims.uuid, "uuid4", lambda: SimpleNamespace(hex=found.folder.id))
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)
    monkeypatch.setattr(Path, "open", lambda path, *_, **__: Opened(found.folder.call(lambda: found.folder.file(path))))
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: found.folder.unlink(path, missing_ok))
    return found


def stepped(state: State, who: int, calls: Calls) -> State:
    """The state after a taker's next call; fails if two hold the run then."""
    taker, holds, ended = state.takers[who], 0, True
    folder = calls.folder = Folder(state, who)
    try:
        made = claim(RUNS, NAME)
        if made is not None:
            holds = made.number if made.is_held else 0
            made.release()
    except Suspended:
        ended = False
    after = replace(taker, answers=tuple(folder.answers), holds=holds)
    if ended:
        after = replace(taker, rounds=taker.rounds - 1, answers=(), holds=0)
    takers = tuple(after if number == who else one for number, one in enumerate(state.takers))
    if after.holds and not taker.holds:
        others = [one for number, one in enumerate(takers) if number != who and one.holds and not one.doubted]
        assert not others, "two hold it"
        assert after.holds > state.highest, "one that was taken over holds it again"
    opened = (answer for one in takers for answer in one.answers if isinstance(answer, str))
    used = {*folder.names.values(), *opened}
    files = tuple(sorted((name, data) for name, data in folder.files.items() if name in used))
    return State(takers, tuple(sorted(folder.names.items())), files, max(state.highest, after.holds))


def nexts(state: State, fault: str, calls: Calls) -> Iterator[State]:
    for who, taker in enumerate(state.takers):
        if taker.rounds and not taker.dead:
            yield stepped(state, who, calls)
    *others, last = state.takers
    if fault and last.rounds and not last.doubted:
        killed = replace(last, doubted=True, dead=True, answers=(), holds=0)
        yield replace(state, takers=(*others, killed if fault == "killed" else replace(last, doubted=True)))


@pytest.mark.parametrize(
    ("rounds", "fault"),
    [
        ((2, 2, 1), "none"),
        ((1, 1, 1), "killed"),
        *(
            pytest.param(rounds, fault, marks=pytest.mark.slow)
            for rounds, fault in [((2, 2, 2), "none"), ((2, 2, 1), "killed"), ((2, 2, 1), "doubted")]
        ),
    ],
)
def test_in_no_order_do_two_hold_a_run(rounds: tuple[int, ...], fault: str, calls: Calls) -> None:
    """Nor does one that was taken over hold it again. At any step, the last taker may be killed, or only taken for gone
    (`doubted`), as a host that is suspended is, and go on later.
    """
    first = State(tuple(map(Taker, rounds)), ((1, "before"),), (("before", b'{"pid": 9}\n' + RELEASED),))
    seen, left, held = {first}, [first], set[int]()
    while left:
        for state in nexts(left.pop(), "" if fault == "none" else fault, calls):
            if state not in seen:
                seen.add(state)
                left.append(state)
                held |= {who for who, taker in enumerate(state.takers) if taker.holds}
    print(f"\n[claims] {rounds}, {fault}: {len(seen):,} states")
    assert held == {0, 1, 2}
