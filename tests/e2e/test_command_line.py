"""The program as a person meets it: in-process where it can be, as a process where it must be."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import command
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.cli import app

pytestmark = [
    pytest.mark.one_in(2),  # each opens an app or a run of its own
    pytest.mark.usefixtures("cached_corpora"),
]

SMALL = [
    *("--set", "train.steps=8", "--set", "train.batch_size=4", "--set", "model.d_model=16", "--set", "model.n_heads=2"),
    *("--set", "model.context_length=32", "--set", "evaluation.every=4", "--set", "evaluation.sample_length=20"),
    *("--set", "optimizer.warmup=2", "--set", "log.every=2", "--set", "train.threads=1", "--device", "cpu"),
]
CORPUS = ["--set", "data.corpus_size=20000"]
ENDLESS = ["run", "--preset", "demo", *SMALL, *CORPUS, "--set", "train.steps=1000000"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    assert main(["run", "--preset", "demo", *SMALL, *CORPUS, "--runs-dir", str(root)]) == 0
    return root


def test_a_run_prints_chart_verdicts_probes_sample_and_what_is_next(tmp_path, capsys) -> None:
    assert main(["run", "--preset", "demo", *SMALL, *CORPUS, "--runs-dir", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    for part in (
        "loss, nats per character",
        "floor reachable at context 32, stride 16",
        "✓ no leak, after training",
        "rhyme",  # of the probes that a window of 32 shows
        "sample at step 8",
    ):
        assert part in out
    assert f"tui-transformer sample demo --runs-dir {tmp_path}" in out
    assert "demo: step 8 of 8" in err
    assert "\x1b" not in out + err


def test_a_second_run_of_the_same_preset_gets_its_own_name(runs) -> None:
    assert main(["run", "--preset", "demo", *SMALL, *CORPUS, "--runs-dir", str(runs), "--json"]) == 0
    assert (runs / "demo-2" / "summary.json").exists()


def test_json_is_one_object_a_line_from_start_to_end(tmp_path, capsys) -> None:
    assert main(["run", "--preset", "demo", *SMALL, *CORPUS, "--runs-dir", str(tmp_path), "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["kind"] for r in records] == [
        "run",
        "train",
        "train",
        "validation",
        "train",
        "train",
        "validation",
        "end",
    ]
    assert records[-1]["state"] == "finished"


def test_the_written_config_repeats_the_run(runs, tmp_path) -> None:
    config = runs / "demo" / "config.toml"
    assert (
        main(["run", "--config", str(config), "--runs-dir", str(tmp_path), "--device", "cpu", "--name", "again"]) == 0
    )
    losses = [
        [json.loads(line)["loss"] for line in (root / "metrics.jsonl").read_text().splitlines()]
        for root in (runs / "demo", tmp_path / "again")
    ]
    assert losses[0] == losses[1]


def test_one_shot_samples_are_repeatable_and_differ_among_themselves(runs, capsys) -> None:
    command = ["sample", "demo", "--prompt", "enter", "--n", "2", "--length", "40", "--runs-dir", str(runs)]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert main([*command, "--json"]) == 0
    a, b = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert a["text"] != b["text"] and len(a["text"]) == 40
    assert first == f"enter{a['text']}\nenter{b['text']}\n"


def test_past_the_trained_context_there_is_one_warning(runs, capsys) -> None:
    command = ["sample", "demo", "--prompt", "enter", "--n", "3", "--length", "100", "--runs-dir", str(runs)]
    assert main(command) == 0
    err = capsys.readouterr().err
    assert err.count("warning: the model was trained on 32 tokens at a time, but you asked for 105") == 1


def test_a_pipe_is_answered_line_by_line(runs) -> None:
    words = ["sample", "demo", "--length", "10", "--runs-dir", str(runs)]
    done = command(*words, typed="enter\n/temperature 0\nenter\n/quit\n")
    assert done.code == 0
    lines = done.out.splitlines()
    assert sum(line.startswith("enter") for line in lines) == 2 and "temperature 0" in lines


def test_a_prompt_with_unseen_characters_is_refused(runs, capsys) -> None:
    assert main(["sample", "demo", "--prompt", "日本", "--runs-dir", str(runs)]) == 2
    assert "U+65E5" in capsys.readouterr().err


WRONG = {
    "nothing to build": ["run"],
    "two things to build": ["run", "--preset", "demo", "--config", "x.toml"],
    "unknown command": ["rum"],
    "unknown flag": ["run", "--preest", "demo"],
    "unknown preset": ["run", "--preset", "dmo"],
    "missing config": ["run", "--config", "nowhere.toml"],
    "a folder as config": ["run", "--config", "."],
    "unknown key": ["run", "--preset", "demo", "--set", "model.heads=2"],
    "no value": ["run", "--preset", "demo", "--set", "model.n_heads"],
    "a word for a number": ["run", "--preset", "demo", "--seed", "one"],
    "impossible heads": ["run", "--preset", "demo", "--set", "model.n_heads=5"],
    "unknown corpus": ["run", "--preset", "demo", "--corpus", "playlet"],
    "unknown base": ["run", "--preset", "rope", "--on", "dem"],
    "bad name": ["run", "--preset", "demo", "--name", "../evil"],
    "escape in a name": ["run", "--preset", "demo", "--name", "\x1b[2J"],
    "unknown device": ["run", "--preset", "demo", "--device", "tpu"],
    "missing device": ["run", "--preset", "demo", "--device", "cuda:99"],
    "no such run": ["sample", "nothing"],
    "no such checkpoint": ["sample", "demo", "--checkpoint", "17", "--prompt", "a"],
    "hot": ["sample", "demo", "--temperature", "-1", "--prompt", "a"],
    "empty prompt": ["sample", "demo", "--prompt", ""],
    "zero answers": ["sample", "demo", "--prompt", "a", "--n", "0"],
    "unknown preset to show": ["presets", "show", "x"],
    "half a difference": ["presets", "diff", "demo"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_one_line_and_exit_code_2(runs, capsys, arguments: list[str]) -> None:
    before = sorted(path.name for path in runs.iterdir())
    if arguments[0] in ("run", "sample"):
        arguments = [*arguments, "--runs-dir", str(runs)]
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("tui-transformer: ")
    assert "Traceback" not in err and "\x1b" not in err
    assert sorted(path.name for path in runs.iterdir()) == before


def test_ctrl_c_stops_with_a_checkpoint_and_130(tmp_path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", *ENDLESS, "--runs-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = tmp_path / "demo" / "metrics.jsonl"
    wait_for(lambda: process.poll() is not None or (metrics.exists() and metrics.stat().st_size), "the first record")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    status = json.loads((tmp_path / "demo" / "status.json").read_text())
    assert status["state"] == "interrupted" and status["checkpoint"] == f"step-{status['step']:08d}"
    assert "Traceback" not in err and "SIGINT: stopped at step" in err


def test_a_run_whose_reader_leaves_stops_with_a_checkpoint(tmp_path, fork_start) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", *ENDLESS, "--runs-dir", str(tmp_path), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 141
    assert process.stderr.read() == b""
    status = json.loads((tmp_path / "demo" / "status.json").read_text())
    assert status["state"] == "interrupted" and status["checkpoint"] == f"step-{status['step']:08d}"


def test_a_run_stopped_before_its_first_evaluation_can_be_sampled(tmp_path, capsys) -> None:
    arguments = ["run", "--preset", "demo", *SMALL, *CORPUS, "--set", "train.steps=0", "--set", "evaluation.every=0"]
    assert main([*arguments, "--runs-dir", str(tmp_path), "--json"]) == 0
    (tmp_path / "demo" / "checkpoints" / "best").unlink()
    assert main(["sample", "demo", "--prompt", "a", "--length", "3", "--runs-dir", str(tmp_path)]) == 0


def test_a_corpus_without_a_suffix_is_found_again_from_elsewhere(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "deutsch").write_text(TEXTS["German"], encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    common = ["--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--json"]
    assert main(["run", "--preset", "demo", *SMALL, "--corpus", "deutsch", "--name", "a", *common]) == 0
    monkeypatch.chdir(tmp_path / "there")
    config = tmp_path / "runs" / "a" / "config.toml"
    assert main(["run", "--config", str(config), "--name", "b", *common]) == 0


def test_check_finds_a_switch_without_effect(capsys) -> None:
    inert = ["--set", "model.position=none", "--set", "model.rope_pairing=adjacent", *CORPUS, *SMALL[2:8]]
    assert main(["check", "--preset", "demo", *inert, "--set", "train.batch_size=2", "--device", "cpu"]) == 1
    assert "INERT" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["presets", "list"], ["presets", "show", "demo"], ["run", "--help"]])
def test_help_and_presets_need_no_torch(arguments: list[str]) -> None:
    code = (
        "import sys; from tui_transformer.__main__ import main; main(sys.argv[1:]);"
        "heavy = {'torch', 'textual', 'plotext'} & set(sys.modules); sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_the_studio_wants_a_terminal_and_says_what_works_without_one(capsys) -> None:
    assert main([]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and "needs a terminal" in error and "run --preset demo" in error


def test_a_folder_that_cannot_hold_runs_is_said_before_the_screen_is_taken(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(app, "is_terminal", lambda stream: True)
    (tmp_path / "file").write_text("")
    assert main(["--runs-dir", str(tmp_path / "file")]) == 2
    assert "file is not a folder" in capsys.readouterr().err
    assert main(["--runs-dir", str(tmp_path / "file" / "runs")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_show_says_what_a_preset_changes_and_counts(capsys) -> None:
    assert main(["presets", "show", "report-decoder"]) == 0
    assert "3,192,897 parameters" in capsys.readouterr().out
    assert main(["presets", "show", "rope", "--on", "demo", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["config"]["model"]["position"] == "rope" and shown["parameters"] == 108_352


def test_diff_and_schema(capsys) -> None:
    assert main(["presets", "diff", "heads2", "heads8"]) == 0
    assert "model.n_heads  2       8" in capsys.readouterr().out
    assert main(["presets", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$defs"]["ModelConfig"]["properties"]["n_heads"]["default"] == 4


def test_check_tries_a_model_without_training_it(capsys) -> None:
    small = ["--on", "demo", "--set", "data.corpus_size=20000", "--set", "train.batch_size=2", "--device", "cpu"]
    assert main(["check", "--preset", "heads2", *small]) == 0
    out = capsys.readouterr().out
    for part in (
        "leak: the model sees no later token",
        "cache parity: decoding",
        "switch effect: model.n_heads 4 → 2",
        "one step takes",
    ):
        assert part in out


TEXTS = {
    "German": "Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch. " * 40,
    "Python": Path(__file__).read_text(encoding="utf-8"),
    "Chinese": "床前明月光，疑是地上霜。举头望明月，低头思故乡。\n" * 80,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_any_text_file_trains_and_samples(tmp_path, capsys, text: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    assert (
        main(["run", "--preset", "demo", *SMALL, "--corpus", str(path), "--runs-dir", str(tmp_path / "r"), "--json"])
        == 0
    )
    capsys.readouterr()
    command = ["sample", "last", "--prompt", text[:5], "--length", "30", "--json", "--runs-dir", str(tmp_path / "r")]
    assert main(command) == 0
    assert len(json.loads(capsys.readouterr().out)["text"]) == 30


@pytest.mark.parametrize("by_name", [True, False])
def test_tiny_shakespeare_trains_by_name_and_by_path(tmp_path, capsys, real_data, by_name: bool) -> None:
    where = ["--data-dir", str(real_data)] if by_name else ["--corpus", str(real_data / "tiny-shakespeare/input.txt")]
    arguments = ["run", "--preset", "shakespeare-cpu", *SMALL, *where, "--runs-dir", str(tmp_path), "--json"]
    assert (
        main([*arguments, "--set", "data.validation_fraction=0.002", "--set", "evaluation.sample_prompt=ROMEO:"]) == 0
    )
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["state"] == "finished"


def test_no_color_is_respected(runs) -> None:
    words = ["sample", "demo", "--prompt", "a", "--length", "5", "--runs-dir", str(runs)]
    done = command(*words, variables={"NO_COLOR": "1"})
    assert done.code == 0 and "\x1b" not in done.out + done.err
