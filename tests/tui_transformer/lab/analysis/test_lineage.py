"""Runs that start from other runs: what a comparison shows of that, and what it leaves out."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.runs.reader import RunReader
from engine.runs.records import Origin
from tests.tui_transformer.lab.analysis.studies import cell
from tests.tui_transformer.lab.analysis.variants import change, variant
from tui_transformer.cli.run.summary import print_summary
from tui_transformer.cli.show.compare import compare
from tui_transformer.cli.show.runs import runs as list_runs
from tui_transformer.lab.analysis.columns import columns
from tui_transformer.lab.analysis.detail import detail, variant_detail
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.query import FilterKeys
from tui_transformer.lab.analysis.verdict import VariantEvaluator

PRETRAIN = Origin(id="pretrain", name="pretrain", checkpoint="best", step=1500, sha256="ab" * 32)


def started_from(run: Path, origin: Origin = PRETRAIN, **place: Any) -> Path:
    """A recorded run that has an origin."""
    change(run / "run.json", **{"from": origin.model_dump(by_alias=True)})
    if place:
        born = json.loads((run / "run.json").read_text())
        change(run / "run.json", study=born["study"] | place)
    return run


def staged(root: Path) -> list[RunEntry]:
    """Two variants of a study with two seeds, one of which was pretrained."""
    paths = []
    for seed in (1, 2):
        name = f"st.both.pretrain.s{seed}"
        early = cell(root, "st", "both", seed, "data.corpus_seed=7", loss=-0.5)
        early.rename(root / name)
        change(root / name / "run.json", study={"name": "st", "variant": "both", "seed": seed, "stage": "pretrain"})
        late = cell(root, "st", "both", seed, f"train.init_from={name}@best", loss=-0.2)
        started_from(late, Origin(id=name, name=name, checkpoint="best", step=1500, sha256="ab" * 32), after="pretrain")
        paths += [root / name, late, cell(root, "st", "scratch", seed)]
    return [read_entry(path) for path in paths]


def lines_of(blocks: Any) -> dict[str, list[tuple[str, str]]]:
    return {title: [(line.head, line.text) for line in lines] for title, lines in blocks.items()}


def test_where_a_run_came_from_is_a_setting_that_differs_and_the_chain_stands_in_its_detail(tmp_path) -> None:
    before = Origin(id="first", name="first", checkpoint="last", step=9, sha256="cd" * 32)
    origin = Origin(id="pretrain", name="pretrain", checkpoint="best", step=1500, sha256="ab" * 32, before=before)
    entries = [
        read_entry(started_from(variant(tmp_path, "finetune", "train.init_from=pretrain@best"), origin)),
        read_entry(variant(tmp_path, "scratch")),
    ]
    shown = {column.title: column for column in columns(entries, None)}
    assert [shown["from"].screen_text(entry, None) for entry in entries] == ["pretrain@best", "–"]
    assert FilterKeys(entries).column("from").key == "train.init_from"
    blocks = lines_of(detail(entries[0], entries[1]))
    assert blocks["Where its initial weights come from"] == [
        ("chain", "first ─▶ pretrain ─▶ finetune"),
        ("from", "pretrain@best (step 1,500), weights with SHA-256 abababababab…"),
    ]
    assert "Where its initial weights come from" not in lines_of(detail(entries[1], None))


def test_in_a_study_the_stage_is_named_so_that_seeds_have_their_settings_in_common(tmp_path) -> None:
    entries = staged(tmp_path)
    assert {e.config.get("train.init_from") for e in entries if e.study.variant == "both" and not e.study.stage} == {
        "pretrain@best"
    }
    groups = {group.name: group for group in Grouping().group(entries)}
    assert list(groups["both"].counted_runs) == [1, 2] and not groups["both"].exclusion_reasons
    assert [run.name for run in groups["both"].earlier_stages] == ["st.both.pretrain.s1", "st.both.pretrain.s2"]
    assert groups["scratch"].earlier_stages == ()


def test_earlier_stages_are_in_no_table_of_variants_and_a_note_says_so(tmp_path, capsys) -> None:
    staged(tmp_path)
    compare(["st"], baseline="st.scratch.s1", runs_dir=tmp_path)
    said = capsys.readouterr().out
    assert "both     2" in said and "Runs of earlier stages (pretrain; 2 in all) are not in this table" in said
    compare([], baseline="st.scratch.s1", by="run", csv=True, runs_dir=tmp_path)
    assert '"st: both, pretrain, seed 1"' in capsys.readouterr().out


def test_the_detail_of_a_variant_draws_the_chain_of_each_seed_and_what_became_of_its_stages(tmp_path) -> None:
    standings = VariantEvaluator().evaluate(Grouping().group(staged(tmp_path)))
    blocks = lines_of(variant_detail(next(s for s in standings if s.group.name == "both")))
    found = blocks["Where their initial weights come from"]
    assert found[0] == ("seed 1", "st.both.pretrain.s1 ─▶ st.both.s1")
    assert found[2][0] == "st.both.pretrain.s1" and found[2][1].startswith("finished")
    assert "Where their initial weights come from" not in lines_of(
        variant_detail(next(s for s in standings if s.group.name == "scratch"))
    )


def test_a_group_is_made_anew_when_a_run_of_an_earlier_stage_changes(tmp_path) -> None:
    grouping, entries = Grouping(), staged(tmp_path)
    before = {group.name: group for group in grouping.group(entries)}
    change(entries[0].path / "status.json", state="failed")
    after = {group.name: group for group in grouping.group([read_entry(entries[0].path), *entries[1:]])}
    assert after["scratch"] is before["scratch"] and after["both"] is not before["both"]


def test_what_a_run_says_of_its_origin_never_reaches_the_terminal_raw(tmp_path, capsys) -> None:
    poison = Origin(id="x", name="\x1b]0;owned\x07\u202eevil", checkpoint="be\x9bst", step=3, sha256="\x1b[2J" * 8)
    run = started_from(variant(tmp_path, "finetune"), poison)
    said = str(lines_of(detail(read_entry(run), None)))
    list_runs(runs_dir=tmp_path)
    print_summary(RunReader(run), as_json=False)
    said += capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said) and "evil" in said


@pytest.mark.parametrize("damaged", [{"id": 3}, {"from": {"id": []}}, "pretrain", [1]])
def test_a_damaged_origin_is_none_and_no_problem(tmp_path, damaged: Any) -> None:
    run = variant(tmp_path, "finetune")
    change(run / "run.json", **{"from": damaged})
    assert read_entry(run).origin is None and not read_entry(run).problems
