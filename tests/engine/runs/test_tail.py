import io
import os
from itertools import pairwise
from pathlib import Path

import pytest

from engine.config.schema import RunConfig
from engine.runs import tail as tail_module
from engine.runs.files import json_line, read_lines
from engine.runs.reader import RunReader
from engine.runs.records import TrainRecord, ValidationRecord, metric_record
from engine.runs.tail import BLOCK, MAX_LINE_BYTES, THIN_ABOVE_BYTES, VALIDATION, Metrics, MetricsHistory, MetricsTail
from engine.runs.writer import RunWriter

LINES, EVERY = 200_000, 250  # of the long file: lines, and lines to a validation record


@pytest.fixture
def writer(tmp_path):
    made = RunWriter.create(tmp_path, "a", RunConfig(), {"command": "test"})
    yield made
    made.close("finished")


@pytest.fixture
def metrics(tmp_path) -> Path:
    return tmp_path / "metrics.jsonl"


@pytest.fixture(scope="module")
def long_run(tmp_path_factory) -> Path:
    """Never written to by a test."""
    run = tmp_path_factory.mktemp("long")
    with (run / "metrics.jsonl").open("w") as file:
        file.writelines(
            f'{{"kind":"{"validation" if i % EVERY == EVERY // 2 else "train"}","step":{i},"loss":{1.0 + i / 7}}}\n'
            for i in range(LINES)
        )
    return run


def train(step: int, **more) -> TrainRecord:
    return TrainRecord.read({"kind": "train", "step": step, **more})


def validation(step: int, **more) -> ValidationRecord:
    return ValidationRecord.read({"kind": "validation", "step": step, **more})


def raw(*records: TrainRecord | ValidationRecord) -> bytes:
    return "".join(json_line(record.dump()) for record in records).encode("utf-8", "surrogatepass")


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def naive(path: Path) -> Metrics:
    found = [metric_record(record) for record in read_lines(path)]
    train, validation = ([one for one in found if isinstance(one, k)] for k in (TrainRecord, ValidationRecord))
    return Metrics(tuple(train), tuple(validation))


def steps(records: tuple[TrainRecord, ...] | tuple[ValidationRecord, ...]) -> list[int]:
    return [record.step for record in records]


def refuse_to_open(monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(Path, "open", refuse)


def test_a_validation_record_that_holds_another_is_read_once(metrics) -> None:
    metrics.write_bytes(raw(*map(train, range(10)), validation(10, of={"kind": "validation"}), train(11)))
    assert steps(MetricsTail(metrics.parent).load(max_points=2).validation) == [10]


def test_the_writer_spells_a_validation_record_as_the_reader_looks_for_it(writer) -> None:
    writer.metrics(validation(1, loss=float("nan"), probes={"kind": 1}))
    assert (writer.path / "metrics.jsonl").read_bytes().startswith(b"{" + VALIDATION)


def test_an_evaluation_is_given_back_as_it_was_written(metrics) -> None:
    scores = {"exact_match": 0.5, "loss": 2.0, "by_distance": {"recall": [[24, 26, 0, 2]]}, "beam": 1, "later": [1]}
    written = {"kind": "validation", "step": 1, **scores}
    metrics.write_text(json_line(written))
    (found,) = MetricsTail(metrics.parent).load().validation
    assert json_line(found.dump()) == json_line(written) and found.exact_match == 0.5


@pytest.mark.parametrize("count", [0, 1, 2, 39, 40])
def test_a_short_file_is_read_whole(metrics, count: int) -> None:
    metrics.write_bytes(raw(*(validation(i, text="é\r\u2028") if i % 3 == 0 else train(i) for i in range(count))))
    assert MetricsTail(metrics.parent).load(max_points=40) == naive(metrics)
    assert MetricsTail(metrics.parent).poll() == (False, naive(metrics))


def test_a_torn_last_line_is_left_for_later(writer) -> None:
    tail = RunReader(writer.path).follow()
    writer.metrics(train(1))
    with (writer.path / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","st')
        file.flush()
        assert steps(tail.load().train) == [1]
        assert tail.poll() == (False, Metrics()) == tail.poll()
        file.write('ep":2}\n')
    assert steps(tail.poll()[1].train) == [2]


@pytest.mark.parametrize("torn", [b'{"kind":"validation","step":8', b'"kind":"validation"', b"\n{", b"\xff"])
def test_a_torn_line_of_a_thinned_file_is_neither_read_nor_lost(metrics, torn: bytes) -> None:
    metrics.write_bytes(raw(*map(train, range(100)), validation(100)) + torn)
    tail = MetricsTail(metrics.parent)
    found = tail.load(max_points=10)
    assert steps(found.validation) == [100] and steps(found.train)[-1] == 99
    append(metrics, b'"}\n' + raw(train(101)))
    assert steps(tail.poll()[1].train) == [101]


def test_a_file_that_shrinks_resets_its_readers(writer) -> None:
    tail = RunReader(writer.path).follow()
    for step in range(5):
        writer.metrics(train(step))
    assert len(tail.load().train) == 5
    path = writer.path / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    reset, columns = tail.poll()
    assert reset and len(columns.train) == 2
    assert tail.poll() == (False, Metrics())


def test_another_attempt_resets_its_readers_even_where_the_file_is_longer_again(writer) -> None:
    tail = RunReader(writer.path).follow()
    writer.metrics(train(1))
    kept = writer.sync()
    writer.metrics(train(2))
    assert steps(tail.poll()[1].train) == [1, 2]
    writer.begin_attempt_from_checkpoint(kept, 1)
    for step in (2, 3, 4):
        writer.metrics(train(step, again=True))
    reset, columns = tail.poll()
    assert reset and columns.train == (train(1), *(train(step, again=True) for step in (2, 3, 4)))
    assert tail.poll() == (False, Metrics())


def test_a_status_file_that_cannot_be_read_for_a_while_resets_nobody(metrics) -> None:
    status = metrics.with_name("status.json")
    status.write_text('{"attempt":1}')
    metrics.write_bytes(raw(train(1)))
    tail = MetricsTail(metrics.parent)
    tail.load()
    for text in ("", "{}", "[]"):
        status.write_text(text)
        assert tail.poll() == (False, Metrics())
    status.unlink()
    assert tail.poll() == (False, Metrics())
    status.write_text('{"attempt":2}')
    assert tail.poll() == (True, naive(metrics))


def test_a_poll_opens_nothing_where_nothing_changed(writer, monkeypatch) -> None:
    writer.metrics(train(1))
    tail = RunReader(writer.path).follow()
    tail.load()
    refuse_to_open(monkeypatch)
    assert tail.poll() == (False, Metrics())


def test_thinning_keeps_every_validation_record(writer) -> None:
    for step in range(1000):
        writer.metrics(train(step))
        if step % 100 == 0:
            writer.metrics(validation(step))
    columns = RunReader(writer.path).follow().load(max_points=50)
    assert len(columns.train) <= 50 and len(columns.validation) == 10


@pytest.mark.parametrize("look", [lambda tail: tail.load(), lambda tail: tail.poll()[1]], ids=["load", "poll"])
def test_a_long_file_is_read_in_strides(long_run, look) -> None:
    tail = MetricsTail(long_run)
    found = look(tail)
    assert steps(found.validation) == list(range(EVERY // 2, LINES, EVERY))
    trained = steps(found.train)
    assert (trained[0], trained[-1]) == (0, LINES - 1)
    between = [b - a for a, b in pairwise(trained)]
    assert 3900 <= len(trained) <= 4000 and min(between) > 0 and max(between) <= 1.2 * LINES / 4000
    assert all(record.loss == 1.0 + record.step / 7 for record in found.train)
    assert tail.poll() == (False, Metrics())


@pytest.mark.parametrize("block", [1, 30, 1000])
@pytest.mark.parametrize("most", [2, 3, 7, 100, 499, 500])
def test_where_blocks_end_makes_no_difference(metrics, monkeypatch, block: int, most: int) -> None:
    metrics.write_bytes(raw(*(validation(i) if i % 10 == 5 else train(i, pad="x" * (i % 23)) for i in range(500))))
    expected = MetricsTail(metrics.parent).load(max_points=most)
    assert len(expected.train) <= most and len(expected.validation) == 50
    monkeypatch.setattr(tail_module, "BLOCK", block)
    tail = MetricsTail(metrics.parent)
    assert tail.load(max_points=most) == expected and tail.poll() == (False, Metrics())


def test_a_long_file_that_begins_and_ends_in_other_lines_gives_its_first_and_last_train_record(metrics) -> None:
    damage = b"damage\n" * (BLOCK // 4)
    trained, validated = raw(*map(train, range(300))), raw(*map(validation, range(300, 310)))
    metrics.write_bytes(damage + trained + validated + damage)
    found = MetricsTail(metrics.parent).load(max_points=20)
    assert steps(found.train)[:: len(found.train) - 1] == [0, 299] and len(found.validation) == 10
    assert len(set(steps(found.train))) == len(found.train)


def test_as_many_evaluations_as_log_records_leave_both(metrics) -> None:
    profile = [0.123456789] * 100
    metrics.write_bytes(raw(*(r for i in range(1000) for r in (train(i), validation(i, profile=profile)))))
    found = MetricsTail(metrics.parent).load(max_points=100)
    assert steps(found.validation) == list(range(1000))
    assert 90 <= len(found.train) <= 100 and steps(found.train)[-1] == 999


def test_a_short_jump_is_read_whole_and_a_long_one_in_strides(metrics) -> None:
    metrics.write_bytes(raw(train(0)))
    tail = MetricsTail(metrics.parent)
    tail.load()
    append(metrics, raw(*map(train, range(1, 10_001))))
    assert steps(tail.poll()[1].train) == list(range(1, 10_001))
    append(metrics, raw(*(validation(i) if i % 1000 == 0 else train(i, pad="x" * 500) for i in range(10_001, 20_001))))
    assert metrics.stat().st_size > THIN_ABOVE_BYTES
    reset, new = tail.poll()
    assert not reset and steps(new.validation) == list(range(11_000, 20_001, 1000))
    assert 3000 < len(new.train) <= 4000 and steps(new.train)[0] == 10_001 and steps(new.train)[-1] == 19_999


LURES = [
    raw(train(-1, text='"kind":"validation"')),  # escaped, and so not even found
    raw(train(-1, probes={"kind": "validation"})),
    b'{"kind":"validation","kind":"train","step":-1}\n',
    b'["kind":"validation"]\n',
    b'{"kind":"validation","step":\n',
    b'"kind":"validation"' * 50 + b"\n",
    b'{"kind":"validation","step":-1}' * 2 + b"\n",
]
DAMAGE = [
    b"\xff\xfe{]\n",
    b'{"kind":"train","step":-1,"text":"\xff"}\n',
    b"\n\n\r\n",
    b"\0" * 5000 + b"\n",
    b"[" * 100_000 + b"\n",
    b"9" * 10_000 + b"\n",
    b"null\n1\n[]\n{}\n",
    b'{"kind":["validation"],"step":-1}\n',
]


@pytest.mark.parametrize("most", [100_000, 50], ids=["whole", "strided"])
@pytest.mark.parametrize("poison", LURES + DAMAGE, ids=lambda poison: repr(poison[:30]))
def test_poison_is_never_read_as_a_validation_record(metrics, poison: bytes, most: int) -> None:
    good = [raw(validation(i)) if i % 100 == 50 else raw(train(i)) for i in range(1000)]
    metrics.write_bytes(poison + b"".join(each + poison * (i % 40 == 0) for i, each in enumerate(good)) + poison)
    found = MetricsTail(metrics.parent).load(max_points=most)
    assert steps(found.validation) == list(range(50, 1000, 100))
    assert all(record in naive(metrics).train for record in found.train[:3] + found.train[-3:])
    assert [s for s in steps(found.train) if s >= 0] == sorted({s for s in steps(found.train) if s >= 0})
    if most > 1000:
        assert found == naive(metrics)


@pytest.mark.parametrize("most", [100, 2])
def test_a_record_of_a_megabyte_is_a_record_and_a_longer_line_than_any_is_damage(
    metrics, monkeypatch, most: int
) -> None:
    long, longer = raw(validation(1, text="x" * (1 << 20))), raw(validation(2, text="x" * (MAX_LINE_BYTES + BLOCK)))
    metrics.write_bytes(raw(train(0)) + long + longer + raw(train(3), validation(4)) + longer[:-1])
    tail = MetricsTail(metrics.parent)
    found = tail.load(max_points=most)
    assert steps(found.train) == [0, 3] and steps(found.validation) == [1, 4]
    append(metrics, b"\n" + raw(train(5)))
    assert steps(tail.poll()[1].train) == [5]
    append(metrics, longer)
    assert tail.poll() == (False, Metrics())
    refuse_to_open(monkeypatch)
    assert tail.poll() == (False, Metrics())  # that line, too, was read to its end


def test_a_file_that_is_cut_while_it_is_read_gives_what_is_left(long_run, metrics, monkeypatch) -> None:
    metrics.write_bytes((long_run / "metrics.jsonl").read_bytes())
    parse = tail_module.parse_line

    def cut(line: bytes) -> dict | None:
        os.truncate(metrics, 2 * BLOCK)
        return parse(line)

    monkeypatch.setattr(tail_module, "parse_line", cut)
    tail = MetricsTail(metrics.parent)
    found = tail.load()
    assert 0 < len(found.train) < 400 and steps(found.train)[-1] <= naive(metrics).train[-1].step
    assert tail.poll()[1] == Metrics()


class _BadDisk(io.FileIO):
    """Fails beyond its first megabyte."""

    def readinto(self, buffer) -> int:
        if self.tell() >= 1 << 20:
            raise OSError(5, "input/output error")
        return super().readinto(memoryview(buffer)[:BLOCK]) or 0


@pytest.mark.parametrize("most", [100_000, 100])
def test_a_disk_that_fails_halfway_gives_what_could_be_read_and_the_rest_later(long_run, monkeypatch, most) -> None:
    tail = MetricsTail(long_run)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *_: io.BufferedReader(_BadDisk(path)))
        first = tail.load(max_points=most)
        assert first.train and first.validation
    rest = tail.poll()[1]
    found = steps(first.train) + steps(rest.train)
    assert found == sorted(set(found)) and found[-1] == LINES - 1
    assert steps(first.validation) + steps(rest.validation) == list(range(EVERY // 2, LINES, EVERY))


def test_a_file_that_vanishes_is_empty_until_it_is_back(metrics) -> None:
    tail = MetricsTail(metrics.parent)
    assert tail.load() == Metrics() and tail.poll() == (False, Metrics())
    metrics.write_bytes(raw(train(1), train(2)))
    assert steps(tail.poll()[1].train) == [1, 2]
    metrics.unlink()
    assert tail.poll() == (False, Metrics())
    metrics.write_bytes(raw(train(1)))
    assert tail.poll() == (True, naive(metrics))
    metrics.unlink()
    metrics.mkdir()
    assert tail.load() == Metrics() and tail.poll()[1] == Metrics()


def test_a_history_halves_and_then_keeps_every_second_record(most: int = 10) -> None:
    history = MetricsHistory(Path(), most=most)
    for step in range(7, 7 * 22, 7):  # one more than twice as many
        history.add(Metrics((train(step),)))
    assert steps(history.metrics.train) == list(range(7, 7 * 22, 14))
    history.add(Metrics((train(7 * 22),)))
    assert steps(history.metrics.train)[-1] == 7 * 21 and history.latest_train == train(7 * 22)
    history.add(Metrics((train(7 * 23),)))
    assert steps(history.metrics.train)[-1] == 7 * 23


@pytest.mark.parametrize("apart", [1, 10, 64, 1000])
def test_a_history_stays_at_equal_distances_and_bounded_over_100_000_updates(apart: int) -> None:
    history = MetricsHistory(Path(), most=100)
    longest = 0
    for i in range(100_000):
        history.add(Metrics((train(i * apart),), (validation(i * apart),) if i % 1000 == 0 else ()))
        longest = max(longest, len(history.metrics.train))
    kept = steps(history.metrics.train)
    assert longest == 200 and kept == list(range(0, 100_000 * apart, 512 * apart))
    assert steps(history.metrics.validation) == [i * apart for i in range(0, 100_000, 1000)]
    assert history.latest_train == train(99_999 * apart)


def test_a_past_that_was_thinned_is_not_thinned_again_until_the_present_is_as_thin() -> None:
    history = MetricsHistory(Path(), most=100)
    history.reset(Metrics(tuple(map(train, range(0, 25_000, 250)))))
    for step in range(25_000, 50_000):
        history.add(Metrics((train(step),)))
    kept = steps(history.metrics.train)
    past, present = [s for s in kept if s < 25_000], [s for s in kept if s >= 25_000]
    assert len(kept) <= 200 and len(past) >= 95 and len(present) >= 95


def test_a_history_that_is_reset_forgets_what_it_held_and_leaves_the_givers_lists_alone() -> None:
    history = MetricsHistory(Path(), most=2)
    history.add(Metrics(tuple(map(train, range(100))), (validation(1),)))
    given = Metrics((train(1),), (validation(2),))
    history.reset(given)
    history.add(Metrics((train(2), train(3))))
    assert steps(history.metrics.train) == [1, 2, 3] and steps(history.metrics.validation) == [2]
    assert given == Metrics((train(1),), (validation(2),))
    history.reset(Metrics())
    assert not history.metrics and history.latest_train is None


@pytest.mark.parametrize(
    "step",
    [None, "1", 1.5, float("nan"), float("inf"), 10**4000, -(1 << 61), 0],
    ids=lambda step: str(step)[:10],
)
def test_a_history_of_damaged_steps_is_bounded(step: object) -> None:
    history = MetricsHistory(Path(), most=10)
    for i in range(1000):
        records = {"kind": "train", "step": step if i % 2 else i}, {"kind": "train"}
        history.add(Metrics(tuple(map(TrainRecord.read, records))))
        assert 1 <= len(history.metrics.train) <= 20
    assert history.latest_train.dump() == {"kind": "train"}
