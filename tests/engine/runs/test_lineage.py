import json

import pytest

from engine.base.errors import InputError
from engine.runs.lineage import (
    chain_text,
    child_origin,
    find_init_run,
    find_origin_run,
    portable_init_from,
    split_init_from,
)
from engine.runs.reader import RunReader
from engine.runs.records import Origin, Run

FIRST = Origin(id="1", name="pretrain", checkpoint="best", step=1500, sha256="ab")
SECOND = Origin(id="2", name="middle", checkpoint="300", step=300, sha256="cd", before=FIRST)


def run(root, name, number, **facts):
    path = root / name
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"id": number, "created": name} | facts))
    return RunReader(path)


NAMES = {
    "pretrain": ("pretrain", "best"),
    "pretrain@last": ("pretrain", "last"),
    "pretrain@1500": ("pretrain", "1500"),
    "pretrain@average": ("pretrain", "average"),
    "pretrain@ema": ("pretrain", "ema"),
    "/runs@home/pretrain": ("/runs@home/pretrain", "best"),
    "/runs@home/pretrain@last": ("/runs@home/pretrain", "last"),
}


@pytest.mark.parametrize("text", NAMES)
def test_a_run_is_named_with_or_without_a_checkpoint_and_the_best_is_meant_without(text: str) -> None:
    assert split_init_from(text) == NAMES[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pretrain@bset", "did you mean 'best'?"),
        ("pretrain@−3", "average, ema or a step"),
        ("@best", "does not name a run"),
    ],
)
def test_what_names_no_checkpoint_is_refused_with_what_would(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"train\.init_from") as error:
        split_init_from(text)
    assert said in str(error.value)


def test_a_run_that_is_missing_is_one_line_that_names_where_it_was_looked_for(tmp_path) -> None:
    run(tmp_path, "pretrain", "1")
    with pytest.raises(InputError, match=r"'prtrain@best': no run named 'prtrain' in .*did you mean 'pretrain'"):
        find_init_run("prtrain@best", tmp_path)


def test_a_run_elsewhere_is_kept_by_its_whole_path_and_one_beside_by_its_name(tmp_path) -> None:
    there = run(tmp_path / "elsewhere", "pretrain", "1")
    assert portable_init_from(there, "best", tmp_path / "runs") == f"{there.path.resolve()}@best"
    assert portable_init_from(there, "best", tmp_path / "elsewhere") == "pretrain@best"


def test_an_origin_is_read_back_with_all_that_led_to_it() -> None:
    assert Run.read({"from": SECOND.model_dump(by_alias=True)}).origin == SECOND
    assert SECOND.label == "middle@300 (step 300)"
    assert chain_text(SECOND, "finetune") == "pretrain ─▶ middle ─▶ finetune"


@pytest.mark.parametrize("damaged", [None, 3, {}, {"from": 3}, {"from": {"id": "1", "step": "x"}}, {"from": {}}])
def test_a_damaged_origin_is_none(damaged) -> None:
    assert Run.read(damaged).origin is None


def test_a_chain_that_never_ends_is_cut() -> None:
    said = FIRST.model_dump(by_alias=True)
    for _ in range(100):
        said = FIRST.model_dump(by_alias=True) | {"from": said}
    origin = Run.read({"from": said}).origin
    assert origin is not None and len(origin.chain) == 32


def test_the_other_run_is_found_by_its_id_whatever_it_is_called_now(tmp_path) -> None:
    run(tmp_path, "renamed", "1")
    other = run(tmp_path, "pretrain", "9")
    assert find_origin_run(FIRST, "pretrain@best", tmp_path).name == "renamed"
    assert (
        find_origin_run(
            Origin(id="8", name="pretrain", checkpoint="best", step=1, sha256=""), "pretrain@best", tmp_path
        ).path
        == other.path
    )
    assert (
        find_origin_run(Origin(id="8", name="gone", checkpoint="best", step=1, sha256=""), "gone@best", tmp_path)
        is None
    )
    assert child_origin(other, "best", 3, "ef") == Origin(
        id="9", name="pretrain", checkpoint="best", step=3, sha256="ef"
    )
