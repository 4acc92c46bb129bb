import json

from engine.runs.records import Origin
from tests.tui_transformer.recorded import record
from tui_transformer.cli.show.runs import runs as list_runs


def test_a_line_has_the_short_word_of_a_badge_and_json_its_name(tmp_path, capsys) -> None:
    record(tmp_path, "short", verdicts=[("shape", "STILL-FALLING", "it still fell by 0.2 a thousand steps")])
    list_runs(runs_dir=tmp_path)
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "UNDERTRAINED"
    list_runs(json=True, runs_dir=tmp_path)
    assert json.loads(capsys.readouterr().out)["badges"] == ["STILL-FALLING"]


def test_what_a_run_started_from_is_a_column_where_any_has_started_from_another(tmp_path, capsys) -> None:
    record(tmp_path, "pretrain")
    list_runs(runs_dir=tmp_path)
    assert "from" not in capsys.readouterr().out
    run = record(tmp_path, "finetune")
    origin = Origin(id="pretrain", name="pretrain", checkpoint="best", step=1500, sha256="ab")
    (run / "run.json").write_text(
        json.dumps({"id": "f", "created": "9", "preset": "demo", "from": origin.model_dump(by_alias=True)})
    )
    list_runs(runs_dir=tmp_path)
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["from", "checks"] and "pretrain@best (step 1,500)" in second and "@" not in first
    list_runs(json=True, runs_dir=tmp_path)
    assert [json.loads(line)["from"] for line in capsys.readouterr().out.splitlines()] == [
        None,
        origin.model_dump(by_alias=True),
    ]


def test_a_live_run_of_another_machine_says_where_it_is(tmp_path, capsys) -> None:
    record(tmp_path, "here", state="running", step=100)
    away = record(tmp_path, "there", state="running", step=100)
    status = json.loads((away / "status.json").read_text())
    (away / "status.json").write_text(json.dumps(status | {"host": "node2", "device": "cuda:0"}))
    list_runs(runs_dir=tmp_path)
    _, here, there = capsys.readouterr().out.splitlines()
    assert "running on node2" in there and "running on" not in here
    list_runs(json=True, runs_dir=tmp_path)
    assert [json.loads(line)["host"] == "node2" for line in capsys.readouterr().out.splitlines()] == [False, True]
