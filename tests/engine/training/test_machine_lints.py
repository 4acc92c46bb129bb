"""Warnings of settings that make training slow on the machine at hand."""

import psutil
import pytest
import torch

from engine.model.numerics import measure_bf16_slowdown
from engine.training import assemble
from engine.training.assemble import machine_lints

CPU = torch.device("cpu")


@pytest.fixture
def four_cores(monkeypatch):
    """Four cores of eight are this run's; the function returned says how busy each of the eight is."""
    monkeypatch.setattr(assemble, "usable_cores", lambda: 4)
    monkeypatch.setattr(assemble, "usable_cpus", lambda: [0, 1, 2, 3])

    def keep_busy(*loads: float) -> None:
        monkeypatch.setattr(psutil, "cpu_percent", lambda interval, percpu: list(loads))

    keep_busy(*[0.0] * 8)
    return keep_busy


def test_threads_that_find_their_cores_idle_are_right(four_cores, tiny) -> None:
    four_cores(*[5.0] * 4, *[100.0] * 4)  # the busy ones are not this run's
    assert not list(machine_lints(tiny("train.threads=4"), CPU))


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_nothing_is_said_where_the_cpu_does_not_train(four_cores, tiny, device) -> None:
    assert not list(machine_lints(tiny("train.threads=64", "train.precision=bf16"), torch.device(device)))


def test_threads_beside_a_busy_program_are_told_of_it(four_cores, tiny) -> None:
    four_cores(100.0, 0.0, 0.0, 0.0, *[0.0] * 4)
    [found] = machine_lints(tiny("train.threads=4"), CPU)
    assert found.key == "train.threads" and "25%" in found.text and "train.threads=1" in found.text
    assert not list(machine_lints(tiny("train.threads=3"), CPU))
    assert not list(machine_lints(tiny("train.threads=1"), CPU))


def test_more_threads_than_cores_are_told_how_many_there_are(four_cores, tiny) -> None:
    [found] = machine_lints(tiny("train.threads=6"), CPU)
    assert "train.threads=4" in found.text


@pytest.mark.parametrize(("cost", "said"), [(9.0, True), (1.1, False), (0.3, False)])
def test_bf16_is_warned_of_where_it_is_slow(four_cores, tiny, monkeypatch, cost, said) -> None:
    monkeypatch.setattr(assemble, "measure_bf16_slowdown", lambda config: cost)
    found = [lint for lint in machine_lints(tiny("train.precision=bf16"), CPU) if lint.key == "train.precision"]
    assert bool(found) is said
    assert not said or "9.0 times" in found[0].text
    assert not list(machine_lints(tiny("train.precision=fp32"), CPU)), "only a run in bf16 is timed"


def test_the_cost_of_bf16_is_measured_here(tiny) -> None:
    assert 0.001 < measure_bf16_slowdown(tiny("model.d_model=256")) < 10_000
