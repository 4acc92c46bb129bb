"""Doors for run directories: whatever became of a run's files, what reads them goes on, or says so in one line."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.runs import twins
from engine.runs.reader import LIVE_STATES, RunReader, list_runs
from engine.runs.tail import MetricsHistory, MetricsTail
from engine.runs.verdict import Verdict
from engine.runs.writer import RunWriter
from tests.fuzz.door import Door, command
from tests.fuzz.mutations import EDITS, VALUES, Edit, damaged
from tests.tui_transformer.recorded import train_record, validation_record
from tui_transformer.lab.analysis import curves as bands
from tui_transformer.lab.analysis import curves as distance
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.chart_lines import AXES, CHARTED, SMOOTHINGS, curve_of, measure_chart
from tui_transformer.lab.analysis.charts.canvas import ChartLine, line_chart
from tui_transformer.lab.analysis.curves import MetricsReader, difference
from tui_transformer.lab.analysis.detail import detail, results_text, variant_detail
from tui_transformer.lab.analysis.export import FORMATS, comparison_table, variant_comparison_table
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.verdict import VariantEvaluator
from tui_transformer.lab.analysis.view import View, ViewOptions
from tui_transformer.lab.records.feed import Feed
from tui_transformer.lab.reports.context import read_context
from tui_transformer.lab.reports.languages import LANGUAGES, load_report_language
from tui_transformer.lab.reports.report import report_document

Given = tuple[list[Edit], int]


def files_of(root: Path) -> list[Path]:
    """All that a runs folder holds but locks."""
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.name.startswith("."))


def reader(folder: Path, edits: list[Edit]) -> None:
    root = folder / "runs"
    with damaged(files_of(root), edits):
        for found in list_runs(root):
            assert isinstance(found.state, str) and isinstance(found.badges, dict) and isinstance(found.liveness(), str)
            assert found.status.dump() is not None and found.summary.dump() is not None and found.verdicts is not None
            for name in ("run", "model", "data", "environment"):
                assert isinstance(found.raw(name), dict), name
            for stream in ("metrics", "samples", "events"):
                assert all(isinstance(record, dict) for record in found.raw_lines(stream))
            try:
                found.config  # noqa: B018
            except InputError as error:
                assert "\n" not in str(error)
            assert found.notes is not None
            _ = found.run.origin
            twins.loss_and_gradient_hash(found.path)
            list(twins.inert_switches(found, root))


def listed(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / "runs"
    with damaged(files_of(root), edits):
        command("runs", "--runs-dir", str(root), *(["--json"] if how % 2 else []))


def feed(folder: Path, edits: list[Edit]) -> None:
    root = folder / "runs"
    followed = Feed(root)
    runs = sorted(path for path in root.iterdir() if path.is_dir())
    followed.poll(runs[0])
    with damaged(files_of(root), edits):
        for looks in (followed, Feed(root)):
            for run in runs:
                view = looks.poll(run).view
                if view is not None:
                    pictures(view.train, view.validation, [floor.known_nats_per_char for floor in view.floors])
    followed.poll(runs[0])


def pictures(train: Any, validation: Any, floors: list[float]) -> None:
    for measure in CHARTED:
        for axis, smoothing in zip(AXES, SMOOTHINGS, strict=True):
            made = measure_chart(
                measure, train, validation, axis=axis, smoothing=smoothing, log=axis == "step", floors=floors
            )
            assert all(math.isfinite(y) for y in (*made.train.y, *made.validation.y))


OPTIONS = (ViewOptions(), ViewOptions(by="variants", sort="loss"), ViewOptions(query="loss<2 rope", all_settings=True))


def compared(folder: Path, given: Given) -> None:
    edits, _ = given
    root = folder / "study"
    with damaged(files_of(root), edits):
        look = RunsFolder(root).scan()
        for entry in look.entries:
            detail(entry, look.entries[0])
        view = View()
        for options in OPTIONS:
            view.arrange(look.entries, options, look.studies)
        standings = VariantEvaluator().evaluate(Grouping().group(look.entries), look.studies, None)
        for standing in standings:
            variant_detail(standing)
        for made in (
            comparison_table(look.entries, look.entries[0] if look.entries else None),
            variant_comparison_table(standings),
        ):
            for form in FORMATS.values():
                form.write(made).encode()
        results_text(standings, all_settings=True, width=100)
        curves = MetricsReader().read([entry.path for entry in look.entries])
        for found in curves.values():
            pictures(found.train, found.validation, [])
        groups = bands.group_seeds(look.entries, look.entries)
        for group in groups:
            bands.band(
                {seed: bands.points_by_step(curves[run.path].validation, "step") for seed, run in group.by_seed.items()}
            )
        for found in curves.values():
            distance.newest_distance_bins(found.validation)
        group_columns.columns(standings, all_settings=True)


COMPARED = (
    *(("compare",), ("compare", "--csv"), ("compare", "--json", "--all-settings"), ("compare", "--markdown")),
    *(("compare", "att"), ("compare", "att", "--latex"), ("compare", "--by", "variant", "--sort", "loss")),
    *(("compare", "--sort", "-lr"), ("compare", "att.global.s1", "att.win16.s1"), ("compare", "--filter", "seed=1")),
)


def compare(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / "study"
    with damaged(files_of(root), edits):
        command(*COMPARED[how % len(COMPARED)], "--runs-dir", str(root))


def doctor(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / "verified"
    with damaged(files_of(root), edits):
        command("doctor", "text", "--runs-dir", str(root), *(["--json"] if how % 2 else []))


def watch(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / "runs"
    with damaged(files_of(root), edits):
        for run in ("baseline", "sine", "text"):
            if RunReader(root / run).state not in LIVE_STATES:
                command("watch", run, "--runs-dir", str(root), *(["--json"] if how % 2 else []))


def begun(folder: Path, edits: list[Edit]) -> None:
    """A queued run is taken, one that ended is gone on with: what a trainer does before its first step."""
    root = folder / "begun"  # a copy: what is begun leaves records behind
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(folder / "runs", root)
    with damaged(files_of(root), edits):
        for run in ("alibi", "baseline", "text"):
            writer = None
            try:
                if run == "alibi":
                    writer = RunWriter.adopt(root / run)
                else:
                    writer = RunWriter(root / run)
                    writer.begin_attempt_from_checkpoint({"metrics": 100, "samples": 50}, 3)
                writer.verdict(Verdict("leak", "before", 3, "ok", 0.0, ""))
                writer.update_status(step=4)
            except (InputError, OSError) as error:
                assert str(error)
            finally:
                if writer is not None:
                    writer.close("stopped", "")


def verify(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / "verified"
    with damaged(files_of(root), edits):
        command("verify", "text", "--steps", "0", "--runs-dir", str(root), *(["--json"] if how % 2 else []))


def gathered(folder: Path, given: Given) -> None:
    edits, how = given
    root = folder / ("study" if how % 2 else "runs")
    spoken = load_report_language(LANGUAGES[how // 2 % len(LANGUAGES)])
    with damaged(files_of(root), edits):
        look = RunsFolder(root).scan()
        if look.entries:
            found = read_context(look.entries, look.studies if how % 2 else {}, spoken, spoken)
            assert report_document(found).blocks and found.folder_name


_RECORDS = st.builds(
    lambda make, step, changes: {**make(step, 600), **changes},
    st.sampled_from([train_record, validation_record]),
    st.integers(0, 700),
    st.dictionaries(
        st.sampled_from(
            ["kind", "step", "tokens", "seconds", "loss", "lr", "probes", "accuracy", "perplexity", "by_distance"]
        ),
        VALUES,
        max_size=3,
    ),
)
_LINES = st.one_of(
    _RECORDS.map(lambda record: json.dumps(record, separators=(",", ":")).encode() + b"\n"),
    _RECORDS.map(lambda record: json.dumps(record, separators=(",", ":")).encode() + b"\n"),
    VALUES.map(lambda value: json.dumps(value).encode() + b"\n"),
    st.sampled_from(
        [
            *(b'{"kind":"train","step":1e400,"loss":1e400}\n', b'{"kind":"train"', b"\n", b"\x00\n", b"\xff\xfe{}\n"),
            *(b'{"kind":"validation","step":' + b"9" * 4000 + b',"loss":1}\n', b"[" * 100_000 + b"\n", b"{]\r\n"),
            *(b'{"kind":"validation","step":NaN,"loss":-Infinity}\n', b'{"kind":"validation","loss":"\xe9"}\n'),
        ]
    ),
    st.binary(max_size=30),
)


def metrics(folder: Path, given: tuple[list[bytes], list[bytes]]) -> None:
    before, after = given
    run = folder / "one" / "alone"
    path = run / "metrics.jsonl"
    kept = path.read_bytes()
    try:
        path.write_bytes(b"".join(before))
        tail, history = MetricsTail(run), MetricsHistory(run, 8)
        history.reset(tail.load(8))
        with path.open("ab") as file:
            file.write(b"".join(after))
        reset, new = tail.poll()
        (history.reset if reset else history.add)(new)
        columns = history.metrics
        pictures(columns.train, columns.validation, [0.5])
        ours, theirs = curve_of(columns.train, "step", "loss"), curve_of(columns.validation, "step", "loss")
        difference(ours, theirs)
        line_chart([ChartLine(ours.x, ours.y, "blue", label="train")], title="loss", width=40, height=10)
        bands.band(
            {1: bands.points_by_step(columns.validation, "step"), 2: bands.points_by_step(columns.train, "tokens")}
        )
        distance.newest_distance_bins(columns.validation)
    finally:
        path.write_bytes(kept)


_GIVEN = st.tuples(EDITS, st.integers(0, 1000))
RUN_DOORS = {
    "runs: the reader": Door(EDITS, reader),
    "runs: the list": Door(_GIVEN, listed),
    "runs: the Train pane's feed": Door(EDITS, feed),
    "runs: the comparison": Door(_GIVEN, compared),
    "runs: compare": Door(_GIVEN, compare),
    "runs: doctor": Door(_GIVEN, doctor),
    "runs: watch": Door(_GIVEN, watch),
    "runs: the writer": Door(EDITS, begun),
    "runs: verify": Door(_GIVEN, verify),
    "runs: the report": Door(_GIVEN, gathered),
    "metrics": Door(st.tuples(st.lists(_LINES, max_size=20), st.lists(_LINES, max_size=5)), metrics),
}
