from engine.runs.manage import write_notes
from tests.tui_transformer.recorded import record
from tui_transformer.lab.exports.huggingface import card
from tui_transformer.lab.exports.recorded import ExportedRun


def made(root, which="best", step=2000, **options) -> str:
    return card(ExportedRun(record(root, "run", **options)), which, step)


def test_a_leak_is_told_before_the_scores_and_before_other_badges(tmp_path) -> None:
    wrong = [("curve", "STILL-FALLING", "it fell"), ("leak", "LEAK", "it sees the answer")]
    text = made(tmp_path, verdicts=wrong)
    assert text.index("**LEAK**") < text.index("**STILL\\-FALLING**") < text.index("## Scores")
    assert "so its loss means nothing" in text


def test_scores_say_what_they_were_taken_over_and_that_the_best_was_chosen(tmp_path) -> None:
    text = made(tmp_path)
    assert "| loss, nats per character |" in text and "whole validation split" in text
    assert "in windows of 256 tokens every 128" in text and "chosen on that very split" in text
    assert "chosen on that very split" not in made(tmp_path / "other", which="last")


def test_a_checkpoint_without_a_score_has_none(tmp_path) -> None:
    text = made(tmp_path, which="1999", step=1999)
    assert "was not scored" in text and "| loss" not in text


def test_no_claim_is_made_that_nobody_knows(tmp_path) -> None:
    text = made(tmp_path)
    assert "license: unknown" in text and "`transformers.AutoModel` cannot load" in text


def test_what_others_wrote_is_text_and_nothing_else(tmp_path) -> None:
    poison = "```\n# Heading\n<script>alert(1)</script>\n\x1b[31m![x](http://evil) **bold**\n---\nlicense: mit"
    run = record(tmp_path, "run", text=poison, verdicts=[("leak", "LEAK", poison)])
    write_notes(run, text=poison)
    text = card(ExportedRun(run), "last", 2000)
    assert "\x1b" not in text
    # Only the front matter's rules, only our own headings, fences and pictures.
    assert [line for line in text.splitlines() if line.startswith("---")] == ["---", "---"]
    assert "# Heading" not in [line.strip() for line in text.splitlines() if not line.startswith("    ")]
    assert [line for line in text.splitlines() if line.startswith("```")] == ["```python", "```"]
    for line in text.splitlines():
        if not line.startswith("    "):
            assert "<script" not in line and "![x]" not in line and "**bold**" not in line
