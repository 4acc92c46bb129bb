"""The checks run beside the tests, all to their end, and what each prints stands in one piece."""

import sys

import pytest

from tests import lint


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


@pytest.mark.parametrize("beside", [(), ("-c", "print('tests')")], ids=["alone", "beside tests"])
def test_all_are_done_whatever_fails_and_each_says_so_once(beside, monkeypatch, capfd) -> None:
    fails = python("print('one'); print('two'); raise SystemExit(3)")
    monkeypatch.setattr(lint, "CHECKS", {"types": fails, "lint": python("print('quiet')"), "format": fails})
    assert lint.main(beside) == 1
    said = capfd.readouterr().out
    for name in ("types", "format"):
        assert f"{name}: FAILED\none\ntwo\n" in said
    assert "lint: ok\n" in said and "quiet" not in said
    assert said.startswith("tests\n") or not beside


def test_nothing_fails_where_nothing_is_wrong(monkeypatch, capfd) -> None:
    monkeypatch.setattr(lint, "CHECKS", {"lint": python("")})
    assert lint.main(()) == lint.main(("-c", "")) == 0


def test_the_tests_exit_code_is_kept(monkeypatch, capfd) -> None:
    monkeypatch.setattr(lint, "CHECKS", {"lint": python("raise SystemExit(1)")})
    assert lint.main(("-c", "raise SystemExit(4)")) == 4
    assert "lint: FAILED" in capfd.readouterr().out


def test_what_fails_without_a_word_is_told_by_its_exit_code(monkeypatch, capfd) -> None:
    monkeypatch.setattr(lint, "CHECKS", {"lint": python("raise SystemExit(7)")})
    assert lint.main(()) == 1 and "exit code 7" in capfd.readouterr().out
