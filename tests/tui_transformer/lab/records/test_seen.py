"""A warning can be acknowledged: it is marked as seen, stays listed, and counts as before; what voids a run cannot."""

import json
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.runs.manage import write_notes
from engine.runs.reader import RunReader
from tests.tui_transformer.lab.analysis.variants import variant
from tests.tui_transformer.lab.reports.reports import document, words
from tests.tui_transformer.recorded import record
from tui_transformer.__main__ import main
from tui_transformer.lab.analysis.columns import CHECKS
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.export import FORMATS as TABLES
from tui_transformer.lab.analysis.export import comparison_table
from tui_transformer.lab.analysis.verdict import verdict
from tui_transformer.lab.exports.formats import TEXTS
from tui_transformer.lab.exports.huggingface import card
from tui_transformer.lab.exports.recorded import ExportedRun
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.records.feed import Feed
from tui_transformer.lab.records.seen import toggle_seen, why_cannot_be_acknowledged

LEAK = ("leak", "LEAK", "a later token is seen")
SUSPICIOUS = ("plausible", "SUSPICIOUS", "the loss 0.6351 is suspiciously low")
FALLING = ("curve", "STILL-FALLING", "it still fell")


def seen_in(run: Path) -> tuple[str, ...]:
    (row,) = Feed(run.parent).poll(full=False).rows
    assert row.seen == read_entry(run).badges_acknowledged
    return row.seen


def test_a_warning_is_marked_and_taken_back_and_the_notes_stay(tmp_path) -> None:
    run = variant(tmp_path, "low", verdicts=[SUSPICIOUS, FALLING], note="look again", tags=("odd",))
    badges = read_entry(run).badges
    assert seen_in(run) == () and CHECKS.screen_text(read_entry(run), None) == "SUSPECT UNDERTRAINED"
    assert toggle_seen(run, badges).startswith("low: SUSPECT, UNDERTRAINED marked as seen")
    notes = RunReader(run).notes
    assert (notes.text, notes.tags, notes.seen) == ("look again", ("odd",), ("SUSPICIOUS", "STILL-FALLING"))
    entry = read_entry(run)
    assert seen_in(run) == ("SUSPICIOUS", "STILL-FALLING") and entry.badges == badges
    assert CHECKS.screen_text(entry, None) == "SUSPECT (seen) UNDERTRAINED (seen)"
    heads = [line.head for line in detail(entry, None)["Problems"]]
    assert "SUSPICIOUS (seen)" in heads and "UNDERTRAINED (seen)" in heads
    write_notes(run, text="later", add=["more"])  # which leave what was seen
    assert seen_in(run) == ("SUSPICIOUS", "STILL-FALLING")
    assert toggle_seen(run, badges) == "low: SUSPECT, UNDERTRAINED no longer marked as seen"
    assert seen_in(run) == () and RunReader(run).notes.text == "later"


def test_a_warning_that_comes_later_is_not_seen_yet(tmp_path) -> None:
    run = record(tmp_path, "low", verdicts=[SUSPICIOUS, FALLING])
    write_notes(run, see=["SUSPICIOUS"])
    assert CHECKS.screen_text(read_entry(run), None) == "SUSPECT (seen) UNDERTRAINED"
    toggle_seen(run, read_entry(run).badges)  # sees the other, too
    assert seen_in(run) == ("SUSPICIOUS", "STILL-FALLING")


@pytest.mark.parametrize("name", [*(name for name, one in BADGES.items() if one.void), "OF-TOMORROW"])
def test_what_voids_a_run_or_may_do_so_is_never_seen(tmp_path, name: str) -> None:
    run = record(tmp_path, "void", verdicts=[("leak", name, "why")])
    with pytest.raises(InputError, match="cannot be marked as seen"):
        toggle_seen(run, read_entry(run).badges)
    assert not (run / "notes.json").exists()
    write_notes(run, see=[name])  # or by hand, or in a run of someone else's
    assert seen_in(run) == () and "(seen)" not in CHECKS.screen_text(read_entry(run), None)


def test_beside_a_leak_the_warning_alone_is_seen(tmp_path) -> None:
    run = record(tmp_path, "both", verdicts=[LEAK, SUSPICIOUS])
    toggle_seen(run, read_entry(run).badges)
    assert CHECKS.screen_text(read_entry(run), None) == "LEAK SUSPECT (seen)"
    fine = record(tmp_path, "fine")
    assert why_cannot_be_acknowledged("fine", read_entry(fine).badges) == "fine has no warning to mark as seen"


def test_nothing_is_hidden_from_a_reader_of_results(tmp_path) -> None:
    base = variant(tmp_path, "base", verdicts=[])
    run = variant(tmp_path, "low", "model.n_heads=2", verdicts=[SUSPICIOUS, FALLING], by=-0.1)

    def told() -> list[str]:
        entries = [read_entry(base), read_entry(run)]
        found = ExportedRun(run)
        made = [kind.write(comparison_table(entries, entries[0])) for kind in TABLES.values()]
        made += ["".join(write([found])) for write in TEXTS.values()] + [card(found, "last", 2000)]
        return [*made, verdict(entries[1], entries[0]), "\n".join(words(document(tmp_path, "base", "low")))]

    before = told()
    assert toggle_seen(run, read_entry(run).badges) and "SUSPICIOUS" in RunReader(run).badges
    assert told() == before
    assert sum("SUSPICIOUS" in text for text in before) >= 6


def test_a_damaged_run_is_marked_in_every_list_and_its_mark_can_be_seen(tmp_path, capsys) -> None:
    run = record(tmp_path, "torn", verdicts=[FALLING])
    (run / "data.json").write_text('{"floor"')
    (row,) = Feed(tmp_path).poll(full=False).rows
    assert set(row.badges) == read_entry(run).badges.keys() == {"STILL-FALLING", "DAMAGED"} and seen_in(run) == ()
    assert toggle_seen(run, row.badges).startswith("torn: UNDERTRAINED, DAMAGED marked as seen")
    assert seen_in(run) == ("STILL-FALLING", "DAMAGED")
    assert main(["note", "torn", "--unseen", "DAMAGED", "--runs-dir", str(tmp_path)]) == 0
    assert main(["runs", "--runs-dir", str(tmp_path)]) == 0
    assert "UNDERTRAINED (seen) DAMAGED\n" in capsys.readouterr().out


def test_a_note_of_anothers_shows_nothing_but_known_badges(tmp_path) -> None:
    run = record(tmp_path, "low", verdicts=[SUSPICIOUS])
    (run / "notes.json").write_text(json.dumps({"seen": ["\x1b[31m", "[red]x", "SUSPICIOUS", 5, None]}))
    assert seen_in(run) == ("SUSPICIOUS",)
    (run / "notes.json").write_text(json.dumps({"text": "kept", "seen": {"SUSPICIOUS": True}}))
    assert seen_in(run) == () and RunReader(run).notes.text == "kept"


def test_the_command_line_marks_and_says_so(tmp_path, capsys) -> None:
    record(tmp_path, "low", verdicts=[LEAK, SUSPICIOUS])

    def said(*line: str, code: int = 0) -> str:
        assert main(["note", "low", *line, "--runs-dir", str(tmp_path)]) == code
        found = capsys.readouterr()
        return found.out + found.err

    assert said("looks right", "--seen", "suspect") == "looks right\nSUSPICIOUS (seen)\n"
    assert json.loads(said("--json"))["seen"] == ["SUSPICIOUS"]
    assert main(["runs", "--runs-dir", str(tmp_path)]) == 0
    assert "LEAK SUSPECT (seen)" in capsys.readouterr().out
    assert "cannot be marked as seen" in said("--seen", "LEAK", code=2)
    assert "has no badge 'OVERFIT'; it has LEAK, SUSPICIOUS" in said("--seen", "OVERFIT", code=2)
    assert said("--unseen", "SUSPICIOUS") == "looks right\n" and "seen" not in json.loads(said("--json"))
