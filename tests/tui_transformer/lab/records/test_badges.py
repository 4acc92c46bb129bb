"""A badge means and looks the same wherever it is shown; passed and not yet checked are told apart."""

import json

import pytest

from engine.base.language import translate
from engine.runs import verdict as engine_verdict
from engine.runs.manage import write_notes
from engine.runs.reader import RunReader
from tests.tui_transformer.lab.analysis.variants import variant
from tests.tui_transformer.lab.reports.reports import document, words
from tests.tui_transformer.recorded import record
from tui_transformer.__main__ import main
from tui_transformer.catalogues import catalogue
from tui_transformer.cli.output import print_badges
from tui_transformer.cli.show.runs import runs as list_runs
from tui_transformer.lab.analysis.columns import FIXED_COLUMNS
from tui_transformer.lab.analysis.detail import variant_detail
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.groups import Grouping, comparable, why_incomparable
from tui_transformer.lab.analysis.verdict import VariantEvaluator, verdict
from tui_transformer.lab.records.badges import BADGES, badge, cell_text, is_warning, worst_first
from tui_transformer.lab.records.feed import Feed

OVERLAP = ("overlap", "OVERLAP", "100.0% of the validation text also appears word for word in the training text")
REPEATED = ("overlap", "REPEATED", "distinct lines found there whole: 999 of 1,000 (99.9%)")
SUSPICIOUS = ("plausible", "SUSPICIOUS", "the loss 0.6351 is suspiciously low")
FALLING = ("curve", "STILL-FALLING", "it still fell")


def test_every_verdict_of_the_engine_is_a_badge_with_words_in_both_languages() -> None:
    chinese = catalogue("zh")
    names = {value for name, value in vars(engine_verdict).items() if name.isupper() and isinstance(value, str)} - {
        engine_verdict.OK
    }
    assert names <= BADGES.keys()
    for name in names:
        assert len(badge(name).word) <= 12
        assert "{names}" in badge(name).alarm, name
        for text in filter(None, (badge(name).means, badge(name).alarm, badge(name).alarm_of_one)):
            assert translate(text, chinese) != text


def test_only_what_makes_a_score_void_is_red() -> None:
    void = {"LEAK", "BROKEN", "OVERLAP", "IMPLAUSIBLE", "DIVERGED"}
    assert {name for name in BADGES if badge(name).severity == "bad"} == void
    assert badge("OF-TOMORROW").severity == "warn"


def test_a_run_whose_held_out_text_was_trained_on_is_not_compared(tmp_path) -> None:
    clean = read_entry(variant(tmp_path, "clean"))
    seen = read_entry(variant(tmp_path, "seen", verdicts=[OVERLAP], by=-0.5))
    assert not comparable(seen, clean) and not comparable(clean, seen)
    assert verdict(seen, clean) == "OVERLAP: not comparable"
    assert verdict(clean, seen) == "baseline OVERLAP: not comparable"
    assert (
        "measures memorization" in why_incomparable(seen, clean) and FIXED_COLUMNS["Δlast"].value(seen, clean) is None
    )


def test_a_suspiciously_low_loss_excludes_nothing(tmp_path) -> None:
    clean = read_entry(variant(tmp_path, "clean"))
    low = read_entry(variant(tmp_path, "low", verdicts=[SUSPICIOUS], by=-0.5))
    assert comparable(low, clean) and verdict(low, clean) == "one seed: inconclusive"
    assert FIXED_COLUMNS["Δlast"].value(low, clean) == pytest.approx(-0.5)


def test_repeated_lines_are_a_warning_and_exclude_nothing(tmp_path) -> None:
    clean, low = (read_entry(variant(tmp_path, name, verdicts=found)) for name, found in (("a", []), ("b", [REPEATED])))
    assert set(low.badges) == {"REPEATED"} and comparable(low, clean) and is_warning("REPEATED")


def test_what_passed_what_was_not_checked_and_what_is_wrong_are_three_cells(tmp_path, capsys) -> None:
    passed = ("leak", "ok", "no later token is seen")
    record(tmp_path, "a-passed", verdicts=[passed])
    record(tmp_path, "b-wrong", verdicts=[passed, SUSPICIOUS, OVERLAP])
    (record(tmp_path, "c-unchecked") / "checks.json").unlink(missing_ok=True)
    (record(tmp_path, "d-unscored", verdicts=[passed]) / "summary.json").unlink()
    entries = [read_entry(tmp_path / name) for name in ("a-passed", "b-wrong", "c-unchecked", "d-unscored")]
    compared = [FIXED_COLUMNS["checks"].screen_text(entry, None) for entry in entries]
    list_runs(runs_dir=tmp_path)
    listed = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert compared[0] == listed[0] == "✓" and compared[2:] == listed[2:] == ["–", "–"]
    assert compared[1] == "OVERLAP SUSPECT" and listed[1] == "SUSPECT"


def test_the_worst_badge_comes_first(tmp_path) -> None:
    record(tmp_path, "run", verdicts=[FALLING, SUSPICIOUS, OVERLAP])
    (row,) = Feed(tmp_path).poll(None).rows
    assert row.badges == ("OVERLAP", "STILL-FALLING", "SUSPICIOUS")
    assert worst_first(["OVERFIT", "LEAK"]) == ("LEAK", "OVERFIT")
    assert cell_text(["OVERLAP"], checked=True) == "OVERLAP"


def test_a_badge_that_people_know_by_another_name_has_that_name_wherever_they_read_it(tmp_path, capsys) -> None:
    run = variant(tmp_path, "short", verdicts=[FALLING])
    write_notes(run, see=["STILL-FALLING"])
    (standing,) = VariantEvaluator().evaluate(Grouping().group([read_entry(run)]), {})
    variant_of = "\n".join(f"{one.head} {one.text}" for lines in variant_detail(standing).values() for one in lines)
    print_badges(RunReader(run))
    for command in (["doctor", "short"], ["note", "short"], ["note", "short", "--seen", "LEAK"]):
        main([*command, "--runs-dir", str(tmp_path)])
    typed = "".join(capsys.readouterr())
    assert typed.count("UNDERTRAINED") == 4 and variant_of.count("UNDERTRAINED") == 2
    reported = "\n".join(words(document(tmp_path, "short")))
    assert "UNDERTRAINED" in reported and "STILL-FALLING" not in typed + variant_of + reported
    main(["doctor", "short", "--json", "--runs-dir", str(tmp_path)])
    assert '"STILL-FALLING"' in capsys.readouterr().out


def test_json_keeps_names(tmp_path, capsys) -> None:
    record(tmp_path, "run", verdicts=[SUSPICIOUS])
    list_runs(json=True, runs_dir=tmp_path)
    assert json.loads(capsys.readouterr().out)["badges"] == ["SUSPICIOUS"]
