"""The shape of curves: what came apart, what was learned by heart, what was not done; and a sound run is left alone."""

import math
import random

from engine.evaluation.alarms import check_curves, nan_verdict
from engine.runs.records import TrainRecord, ValidationRecord
from engine.runs.verdict import DIVERGED, OK, OVERFIT, STILL_FALLING

STEPS = 2_000


def records(loss, every: int, noise: float = 0.0) -> list[TrainRecord]:
    draw = random.Random(1)
    return [
        TrainRecord(step=step, loss=loss(step / STEPS) + noise * draw.gauss(0.0, 1.0))
        for step in range(every, STEPS + 1, every)
    ]


def verdict(train, validation=None, *, every: int = 250, noise: float = 0.02, when="after") -> str:
    validation = validation or train
    found = check_curves(records(train, 10, noise), records(validation, every), when=when, step=STEPS)
    assert found is not None
    return found.verdict


def settled(t: float) -> float:
    return 1.3 + 2.0 * math.exp(-8.0 * t)


def falling(t: float) -> float:
    return 3.0 - 1.5 * t


def overfit(t: float) -> float:
    return 1.5 + (2.0 * math.exp(-20.0 * t)) + 0.2 * t


def test_a_sound_run_is_left_alone() -> None:
    assert verdict(settled) == OK
    assert verdict(settled, lambda t: settled(t) + 0.1) == OK


def test_nothing_is_said_before_the_first_evaluation() -> None:
    assert check_curves(records(falling, 10), [], when="after", step=STEPS) is None


def test_a_validation_loss_that_rose_from_its_best_is_overfit() -> None:
    assert verdict(settled, overfit) == OVERFIT
    assert verdict(settled, overfit, when="evaluation") == OVERFIT


def test_one_dip_is_no_overfitting() -> None:
    validation = records(settled, 250)
    validation[-2] = TrainRecord(step=validation[-2].step, loss=validation[-2].loss - 0.2)
    assert check_curves(records(settled, 10), validation, when="after", step=STEPS).verdict == OK


def test_the_founding_report_that_rose_for_29_epochs_is_overfit() -> None:
    validation = [ValidationRecord(step=epoch, loss=1.72 + 0.0026 * epoch) for epoch in range(1, 31)]
    train = [TrainRecord(step=epoch, loss=1.4 / epoch**0.1) for epoch in range(1, 31)]
    found = check_curves(train, validation, when="evaluation", step=30)
    assert found.verdict == OVERFIT
    assert "step 1 " in found.why


def test_a_training_loss_that_rose_has_come_apart_and_is_not_called_overfit() -> None:
    apart = lambda t: settled(t) if t < 0.5 else 2.5
    assert verdict(apart) == DIVERGED


def test_a_run_that_recovered_is_forgiven() -> None:
    assert verdict(lambda t: 2.9 if 0.4 < t < 0.5 else settled(t)) == OK


def test_a_run_that_was_not_done_says_so_only_at_its_end() -> None:
    assert verdict(falling) == STILL_FALLING
    assert verdict(falling, when="evaluation") == OK


def test_one_evaluation_at_the_end_leaves_it_to_the_training_loss() -> None:
    assert verdict(falling, every=STEPS, noise=0.02) == STILL_FALLING
    assert verdict(settled, every=STEPS, noise=0.02) == OK


def test_a_short_run_with_few_records_is_asked_too() -> None:
    train = [TrainRecord(step=step, loss=4.0 - step / 60) for step in range(10, 121, 10)]
    assert check_curves(train, [ValidationRecord(step=120, loss=2.0)], when="after", step=120).verdict == STILL_FALLING


def test_noise_alone_is_not_a_fall() -> None:
    assert all(verdict(lambda t: 1.3, every=STEPS, noise=noise) == OK for noise in (0.0, 0.05, 0.2, 0.5))


def test_records_without_a_number_are_passed_over() -> None:
    broken = {"step": 1}, {"step": 2, "loss": math.nan}, {"step": 3, "loss": "x"}
    spoilt = [*map(TrainRecord.read, broken), *records(settled, 10)]
    assert check_curves(spoilt, spoilt, when="after", step=STEPS).verdict == OK


def test_no_number_names_the_step_it_was_told() -> None:
    found = nan_verdict("loss is NaN or infinite at step 7; the last good state is step 6", step=6)
    assert found.verdict == DIVERGED
    assert "step 7" in found.why
