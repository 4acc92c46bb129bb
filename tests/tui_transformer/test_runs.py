import json

from tests.tui_transformer.recorded import record
from tui_transformer.commands.runs import runs_command


def test_a_line_has_the_short_word_of_a_badge_and_json_its_name(tmp_path, capsys) -> None:
    record(tmp_path, "short", verdicts=[("shape", "STILL-FALLING", "it still fell by 0.2 a thousand steps")])
    runs_command(as_json=False, runs_dir=tmp_path)
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "FALLING"
    runs_command(as_json=True, runs_dir=tmp_path)
    assert json.loads(capsys.readouterr().out)["badges"] == ["STILL-FALLING"]
