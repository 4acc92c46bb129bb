"""Comparisons as files: whatever is in names and notes, each format stays what it is."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from engine.base.errors import InputError
from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import LEAK, entry, study
from tests.waiting import PATIENCE
from tui_transformer.lab.analysis import columns
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.export import (
    FORMATS,
    ComparisonTable,
    comparison_table,
    save,
    to_latex,
    to_latex_document,
)
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.query import parse
from tui_transformer.lab.escaping import LATEX_SIGNS, latex_text

HOSTILE = (
    "a | b \\| c\nnew | line",
    "<script>alert(1)</script> &amp; `code` **bold** [x](http://y) ![i](j) ~~s~~ www.example.org",
    r"\end{tabular} \input{/etc/passwd} % $ & # _ { } ~ ^ \\ --- `` '' ?` \\[2cm]",
    "模型 🚀 naïve Čapek Æsir ﷽ \u202ertl\x1b[31m\x07\x9b\ud800",
    '=cmd|"/c calc"!A1',
    "",
    "* * *",
    "| --- | --- |",
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> RunEntry:
    return entry(tmp_path_factory.mktemp("runs"), "baseline", verdicts=[LEAK])


def hostile(sound: RunEntry, text: str) -> ComparisonTable:
    odd = {"model.position": text, "model.n_heads": 3}
    other = replace(sound, path=sound.path / (text.replace("/", "").replace("\0", "") or "x"), preset=text, notes=text)
    return comparison_table(
        [sound, replace(other, tags=(text, text), badges={text: text}, config=odd, state=text)], sound
    )


def test_files_have_full_names_units_badges_and_verdicts(tmp_path) -> None:
    study(tmp_path)
    entries = RunsFolder(tmp_path).scan().entries
    made = comparison_table(entries, entries[-1])
    for head in ("last validation loss (nats per character)", "verdict", "checks", "model.n_heads", "parameters"):
        assert head in made.heads
    for head in ("corpus", "unit of the loss", "scoring context (tokens)", "scoring stride (tokens)"):
        assert head in made.heads  # what a number means goes wherever the number goes
    checks = [row[made.heads.index("checks")] for row in made.rows]
    assert "LEAK" in checks and "DIVERGED" in checks


def test_mixed_units_are_not_given_one(sound) -> None:
    other = replace(sound, protocol=replace(sound.protocol, unit="token"))
    assert "last validation loss (nats, per the unit in each row)" in comparison_table([sound, other], None).heads


def test_a_large_setting_is_easy_to_read_on_the_screen_and_plain_in_files(tmp_path) -> None:
    base, short = entry(tmp_path, "base", "train.steps=12000"), entry(tmp_path, "short", "train.steps=1200")
    found = detail(short, base)
    assert ("train.steps", "1,200") in [(line.head, line.text) for line in found["Settings"]]
    assert "1,200   (baseline: 12,000)" in [line.text for line in found["Compared to the baseline"]]
    steps = columns.setting_column("train.steps")
    assert steps.screen_text(short, base) == "1,200" and steps.file_text(short, base) == "1200"
    for kind in ("csv", "json", "markdown"):
        assert "1,200" not in FORMATS[kind].write(comparison_table([short, base], base))
    assert parse("train.steps=1200", [base, short])([base, short], base) == (short,)


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_reads_back_as_it_was_written(sound, text) -> None:
    made = hostile(sound, text)
    written = FORMATS["csv"].write(made)
    rows = list(csv.reader(io.StringIO(written)))
    assert len(rows) == 3 and all(len(row) == len(made.heads) for row in rows)
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
    assert "\x1b" not in written and "\u202e" not in written


@pytest.mark.parametrize("text", HOSTILE)
def test_json_is_one_object_a_run(sound, text) -> None:
    found = json.loads(FORMATS["json"].write(hostile(sound, text)))
    assert len(found) == 2 and found[0]["last"] == pytest.approx(sound.last) and found[1].get("notes", "") == text


def rendered(markdown: str) -> list[list[str]]:
    """Rows of plain text of the one table that a Markdown text must be; anything else in a cell fails."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(markdown)
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            children = token.children or []
            assert {child.type for child in children} <= {"text", "text_special"}, children
            rows[-1].append("".join(child.content for child in children))
    return rows


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_stays_a_table_of_plain_text(sound, text) -> None:
    made = hostile(sound, text)
    rows = rendered(FORMATS["markdown"].write(made))
    assert len(rows) == 3 and all(len(row) == len(made.heads) for row in rows)
    plain = [[" ".join(cell.replace("\u2212", "-").split()) for cell in row] for row in rows[1:]]
    assert plain == [[" ".join(cell.replace("\u2212", "-").split()) for cell in row] for row in made.rows]


COMMANDS = {
    *("begin", "end", "hline", "footnotesize", "setlength", "tabcolsep", "input", "cdot", "char"),
    *(name for text in LATEX_SIGNS.values() for name in re.findall(r"\\([A-Za-z]+)", text)),
}


def strict(tex: str, columns: int) -> int:
    """The rows of a table, read by LaTeX's own rules for characters; anything that could go wrong fails."""
    assert tex.isascii()
    body = tex[tex.index("\\hline") : tex.rindex("\\hline")]
    lines = [line for line in body.splitlines() if line != "\\hline"]
    for line in lines:
        assert line.endswith(" \\\\")
        text = line[:-3]
        depth, cells, math, at = 0, 1, False, 0
        while at < len(text):
            c = text[at]
            if c == "\\":
                name = re.match(r"\\([A-Za-z]+|.)", text[at:])
                assert name is not None
                word = name[1]
                assert word in COMMANDS or word in set("{}$&#%_`'^~\"vc"), word
                at += name.end()
                continue
            assert c not in "#%~^_" or (c == "^" and math and text[at + 1] == "{"), (c, text)
            depth += (c == "{") - (c == "}")
            assert depth >= 0
            math ^= c == "$"
            if c == "&":
                assert depth == 0 and not math
                cells += 1
            assert c not in '<>|"' or math
            at += 1
        assert depth == 0 and not math and cells == columns, line
    return len(lines)


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_is_a_table_whatever_is_in_it(sound, text) -> None:
    made = hostile(sound, text)
    assert strict(to_latex(made), len(made.heads)) == 3
    assert strict(to_latex_document(made), len(made.heads)) == 3
    assert to_latex_document(made).startswith("\\documentclass{article}") and to_latex_document(made).endswith(
        "\\end{document}\n"
    )


@given(st.text(max_size=40))
def test_escaped_text_is_ascii_without_a_bare_special_character(text) -> None:
    line = f"\\hline\n{latex_text(text.translate(dict.fromkeys(range(32))))} \\\\\n\\hline"
    assert strict(line, 1) == 1


def test_latex_writes_letters_of_western_europe_and_numbers_for_others() -> None:
    assert latex_text("naïve") == 'na\\"{\\i{}}ve' and latex_text("Č") == "\\v{C}" and latex_text("ß") == "\\ss{}"
    assert latex_text("中") == "{[}U+4E2D{]}" and latex_text("a--b") == "a{-}{-}b"


def test_small_numbers_are_powers_of_ten_in_latex(sound) -> None:
    tiny = replace(sound, path=sound.path / "x", config={"optimizer.lr": 1e-05, "model.n_heads": 2})
    assert r"$1 \cdot 10^{-5}$" in to_latex(comparison_table([sound, tiny], None))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed here")
@pytest.mark.parametrize("text", HOSTILE)
def test_pdflatex_compiles_it(sound, text, tmp_path) -> None:
    (tmp_path / "a.tex").write_text(to_latex_document(hostile(sound, text)))
    command = ["pdflatex", "-halt-on-error", "-no-shell-escape", "a.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE).returncode == 0


def test_json_is_json_for_a_run_without_a_score(tmp_path) -> None:
    found = json.loads(FORMATS["json"].write(comparison_table([entry(tmp_path, "q", state="queued", step=0)], None)))
    assert found[0]["last"] is None


def test_a_file_that_cannot_be_written_says_why(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        save("x", tmp_path / "no" / "folder.csv")


@pytest.mark.parametrize("kind", ["--csv", "--json"])
def test_an_export_is_the_same_in_every_language(tmp_path, kind) -> None:
    attention(tmp_path)
    command = [sys.executable, "-m", "tui_transformer", "--runs-dir", str(tmp_path), "compare", "att", kind]
    english, chinese = (
        subprocess.run([*command[:3], "--language", code, *command[3:]], capture_output=True, check=True).stdout
        for code in ("en", "zh")
    )
    assert b"verdict" in english and chinese == english
