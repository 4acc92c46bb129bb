"""A run's row: from its small files alone, whatever state they are in."""

import json
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.keys import flatten
from engine.config.schema import RunConfig
from engine.config.toml import config_toml as write_toml
from engine.config.toml import read_toml
from engine.runs.scan import REST_INTERVAL
from tests.tui_transformer.lab.analysis.variants import LEAK, change, entry, variant
from tests.tui_transformer.lab.records.test_feed import POISON, spoil
from tests.tui_transformer.recorded import put_status, record
from tui_transformer.lab.analysis.columns import columns
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.export import FORMATS, comparison_table
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.query import FilterKeys, parse_partial
from tui_transformer.lab.records.run_files import READ_FILES, read_flat_config


def test_a_row_says_what_a_run_is_and_scored(tmp_path) -> None:
    found = entry(tmp_path, "a", "seed=3", "model.n_heads=2", preset="heads2", note="odd", tags=("x",), by=0.1)
    assert (found.name, found.state, found.step, found.steps) == ("a", "finished", 2000, 2000)
    assert found.last == pytest.approx(1.0005, abs=1e-3) and found.last_step == 2000 and found.gap == 0.0
    assert (found.parameters, found.tokens, found.seed, found.preset) == (108_288, 8_192_000, 3, "heads2")
    assert found.tokens_per_second == pytest.approx(41_200, rel=0.01)
    assert found.probes["recall<110"] == 0.62 and found.scores["perplexity"] > 1
    assert found.config["model.n_heads"] == 2 and (found.notes, found.tags) == ("odd", ("x",))
    assert (found.protocol.context, found.protocol.stride, found.protocol.unit) == (256, 128, "character")


def test_metrics_are_never_read(tmp_path) -> None:
    run = record(tmp_path, "a")
    before = read_entry(run)
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()
    assert read_entry(run) == before and "metrics.jsonl" not in READ_FILES


def test_a_run_that_failed_for_no_number_has_diverged(tmp_path) -> None:
    hot = entry(tmp_path, "hot", state="failed", step=310, reason="the loss is NaN or infinite at step 310")
    full = entry(tmp_path, "full", state="failed", step=310, reason="no space is left on the device")
    assert hot.badges == {"DIVERGED": "the loss is NaN or infinite at step 310"} and full.badges == {}


def test_badges_and_their_reasons_come_from_the_checks(tmp_path) -> None:
    assert entry(tmp_path, "a", verdicts=[LEAK]).badges == {"LEAK": LEAK[2]}


def test_a_study_is_known_where_run_json_names_it(tmp_path) -> None:
    run = variant(tmp_path, "a")
    change(run / "run.json", study={"name": "heads", "variant": "two", "seed": 3})
    study = read_entry(run).study
    assert study is not None and (study.name, study.variant, study.seed) == ("heads", "two", 3)


def test_losses_over_tokens_are_not_per_character(tmp_path) -> None:
    run = variant(tmp_path, "a")
    text = (run / "config.toml").read_text().replace('tokenizer = "characters"', 'tokenizer = "bpe"')
    (run / "config.toml").write_text(text)
    assert read_entry(run).protocol.unit == "token"


@pytest.mark.parametrize("file", READ_FILES)
@pytest.mark.parametrize("damage", [b'{"schema": 1, "lo', b"\xff\xfe\x00", b"[[[", b"", b"[" * 100_000])
def test_a_damaged_file_is_named_and_hides_nothing_else(tmp_path, file, damage) -> None:
    run = record(tmp_path, "a")
    (run / file).write_bytes(damage)
    found = read_entry(run)
    assert found.name == "a" and (file in found.problems or file == "notes.json" or not damage)
    assert file == "status.json" or found.state == "finished"


@pytest.mark.parametrize("poison", POISON, ids=lambda value: repr(value)[:12])
def test_values_of_any_type_are_survived_by_everything(tmp_path, poison) -> None:
    run = record(tmp_path, "a")
    spoil(run, poison)
    (run / "notes.json").write_text(json.dumps({"text": poison, "tags": [poison]}))
    found = [read_entry(run), entry(tmp_path, "b")]
    for baseline in (None, *found):
        assert columns(found, baseline)
        for kind in FORMATS.values():
            assert kind.write(comparison_table(found, baseline, all_settings=True))
    assert parse_partial("loss<1 params>1 state:x", FilterKeys(found))[0](found) == ()


def test_a_config_of_odd_values_is_survived(tmp_path) -> None:
    run = record(tmp_path, "a")
    odd = "seed = 1979-05-27\n[model]\nn_heads = nan\nd_model = 99999999999999999999999999\nnext = [[1], {a = 2}]\n"
    (run / "config.toml").write_text(odd)
    found = [read_entry(run), entry(tmp_path, "b")]
    for kind in FORMATS.values():
        assert kind.write(comparison_table(found, found[1]))


ODD_TOML = [
    "a = 1\n[b]\nc = [\n[1],\n]\n[d]\ne = 2\n",
    'a = """\n[b]\n"""\nc = 1\n',
    "a = '''\n[b]\n'''\n",
    "[a]\nb = 1\n[a]\nc = 2\n",
    "[a]\nb = 1\n[a.c]\nd = 2\n[[e]]\nf = 1\n[[e]]\nf = 2\n",
    "a.b = 1\n[a]\nc = 1\n",
    "a = 1\n[a]\nc = 1\n",
    "[é]\nc = 1\n",
    "a = [\n[true]\n]\nb = 1\n",
    "[a]\nb =\n",
    "a = 1\r\n[b]\r\nc = 2\r\n",
    "",
]


@pytest.mark.parametrize("text", [*ODD_TOML, write_toml(RunConfig())])
def test_a_config_read_by_sections_is_the_config_read_whole(tmp_path, text) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    try:
        whole = flatten(read_toml(path))
    except InputError:
        whole = None
    try:
        found = read_flat_config(path)
    except InputError:
        found = None
    assert found == whole


class Clock:
    """Time that stands until it is told to go on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_second_look_gives_the_same_object_and_opens_nothing(tmp_path, monkeypatch) -> None:
    for i in range(5):
        record(tmp_path, f"run-{i}")
    clock = Clock()
    folder = RunsFolder(tmp_path, clock)
    first = folder.scan()
    monkeypatch.setattr("tui_transformer.lab.analysis.folder.read_entry", lambda path: pytest.fail(f"{path} was read"))
    clock.now += REST_INTERVAL
    assert folder.scan() is first


def test_only_what_changed_is_another_entry(tmp_path) -> None:
    for i in range(3):
        record(tmp_path, f"run-{i}", created=f"2026-11-21T01:0{i}:00+00:00")
    clock = Clock()
    folder = RunsFolder(tmp_path, clock)
    before = folder.scan()
    put_status(tmp_path / "run-1", step=1999)
    clock.now += REST_INTERVAL
    after = folder.scan()
    assert [a is b for a, b in zip(before.entries, after.entries, strict=True)] == [True, False, True]
    assert [e.name for e in after.entries] == ["run-2", "run-1", "run-0"]  # the newest first


def test_live_runs_are_looked_at_each_time(tmp_path) -> None:
    run = record(tmp_path, "live", state="running", step=500)
    folder = RunsFolder(tmp_path, Clock())
    assert folder.scan().entries[0].step == 500
    put_status(run, step=600)
    assert folder.scan().entries[0].step == 600


def test_runs_come_and_go_and_folders_without_one_are_none(tmp_path) -> None:
    import shutil

    clock = Clock()
    folder = RunsFolder(tmp_path / "runs", clock)
    assert folder.scan().entries == () and folder.scan().problem == ""
    record(tmp_path / "runs", "a")
    (tmp_path / "runs" / "other").mkdir()
    clock.now += REST_INTERVAL
    assert [e.name for e in folder.scan().entries] == ["a"]
    shutil.rmtree(tmp_path / "runs" / "a")
    clock.now += REST_INTERVAL
    assert folder.scan().entries == ()


def test_a_folder_that_cannot_be_read_says_so(tmp_path) -> None:
    (tmp_path / "runs").write_text("")
    assert "cannot be read" in RunsFolder(tmp_path / "runs").scan().problem


def test_names_that_are_no_ascii_are_runs_too(tmp_path) -> None:
    record(tmp_path, "模型🚀")
    assert RunsFolder(Path(tmp_path)).scan().entries[0].name == "模型🚀"


def test_a_number_that_an_older_version_defined_differently_is_not_compared_to_newer_ones(tmp_path) -> None:
    run = variant(tmp_path, "a")
    now = read_entry(run)
    change(run / "run.json", records=1)
    older = read_entry(run)
    assert now.excess is not None and now.probes and not now.redefined
    assert older.excess is None and not older.probes and older.redefined == ("excess", "probes")
    assert older.last == now.last and older.scores == now.scores
    scored = dict.fromkeys(("bits_per_character", "bits_per_byte", "word_perplexity", "accuracy"), 0.5)
    for share, left_out in ((0.1, tuple(scored)), (0.0, ())):
        words = variant(tmp_path, f"words-{share}", scored=scored | {"unknown": share})
        change(words / "run.json", records=2)
        of_words = read_entry(words)
        assert of_words.redefined == left_out and of_words.last is not None and "unknown" in of_words.scores
        assert all((name in of_words.scores) is (name not in left_out) for name in scored)
    shown = [line.text for line in detail(older, None)["Not comparable"]]
    assert "excess, probes" in shown[0] and f"tui-transformer evaluate a --runs-dir {tmp_path}" in shown[1]
