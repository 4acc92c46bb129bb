"""`schema`: what a run writes is what its schemas say."""

import json

import pytest
from pydantic import TypeAdapter

from engine.base.errors import InputError
from engine.runs.records import SCHEMAS
from tests.tui_transformer.recorded import record
from tui_transformer.cli.show.schema import schema


def test_every_file_of_a_run_has_a_schema_and_is_read_whole(tmp_path, capsys) -> None:
    run = record(tmp_path, "demo")
    schema()
    shown = json.loads(capsys.readouterr().out)
    assert set(shown) == {*SCHEMAS, "NAME.study.toml"}
    for name, kind in SCHEMAS.items():
        if (run / name).exists():
            text = (run / name).read_text(encoding="utf-8")
            for line in text.splitlines() if name.endswith(".jsonl") else [text]:
                TypeAdapter(kind).validate_json(line)


def test_schemas_are_written_into_a_folder_and_a_wrong_name_is_answered_with_the_nearest(tmp_path) -> None:
    schema("status.json", tmp_path / "out")
    assert "control_id" in json.loads((tmp_path / "out" / "status.json.schema.json").read_text())["properties"]
    with pytest.raises(InputError, match=r"did you mean 'status\.json'"):
        schema("stats.json")
