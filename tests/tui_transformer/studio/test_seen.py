"""The key that acknowledges a run's warnings, in Train and in Compare."""

from engine.runs.reader import RunReader
from tests.tui_transformer.lab.analysis.variants import LEAK, variant
from tests.tui_transformer.lab.records.test_seen import FALLING, SUSPICIOUS
from tests.tui_transformer.studio.compare.test_compare_pane import Open as OpenCompare
from tests.tui_transformer.studio.on_screen import said
from tests.tui_transformer.studio.train.test_train_pane import Open as OpenTrain
from tui_transformer.studio.shared.keys import PANE_BINDINGS


def test_the_key_is_free_elsewhere() -> None:
    assert {pane for pane, keys in PANE_BINDINGS.items() for key in keys if "Y" in key.key.split(",")} == {
        "train",
        "compare",
    }


async def test_train_marks_a_warning_and_takes_it_back(tmp_path) -> None:
    run = variant(tmp_path, "low", verdicts=[SUSPICIOUS])
    async with OpenTrain(tmp_path, "low") as train:
        assert "SUSPECT" in train.text and "(seen)" not in train.text
        await train.pilot.press("Y")
        await train.until(lambda: train.text.count("SUSPECT (seen)") == 2)
        assert RunReader(run).notes.seen == ("SUSPICIOUS",) and "SUSPECT marked as seen" in said(train.app)
        await train.pilot.press("Y")
        await train.until(lambda: "(seen)" not in train.text)
        assert RunReader(run).notes.seen == () and "no longer marked as seen" in said(train.app)


async def test_the_name_of_the_checks_counts_what_is_not_seen_and_looks_like_the_worst_of_it(tmp_path) -> None:
    cleared = ("learning", "NOT-LEARNING", "no better yet"), ("learning", "ok", "better now")
    variant(tmp_path, "low", verdicts=[*cleared, SUSPICIOUS, FALLING])
    variant(tmp_path, "leaky", verdicts=[SUSPICIOUS, LEAK])

    def name() -> tuple[str, str]:
        line = train.pane._tabs._line_with_tab_names()[0]
        text, start = line.plain, line.plain.index("checks")
        styles = {str(span.style) for span in line.spans if text[span.start : span.end].strip()[:1] in ("!", "✗")}
        return text[start : text.index("log")].split(" ", 2)[2].strip(), " ".join(styles)

    async with OpenTrain(tmp_path, "low") as train:
        assert name() == ("!2", "$warning bold")
        await train.pilot.press("Y")
        await train.until(lambda: name() == ("", ""))
        train.pane.show(tmp_path / "leaky")
        await train.until(lambda: name() == ("✗2", "$error bold"))
        await train.pilot.press("Y")
        await train.until(lambda: name() == ("✗1", "$error bold"))


async def test_train_says_what_cannot_be_marked(tmp_path) -> None:
    variant(tmp_path, "leaky", verdicts=[LEAK])
    variant(tmp_path, "fine")
    async with OpenTrain(tmp_path, "leaky") as train:
        await train.pilot.press("Y")
        assert "leaky: LEAK cannot be marked as seen" in said(train.app)
        train.pane.show(tmp_path / "fine")
        await train.until(lambda: train.pane.current_run()[1] is not None)
        await train.pilot.press("Y")
        assert "fine has no warning to mark as seen" in said(train.app)
    assert not list(tmp_path.glob("*/notes.json"))


async def test_compare_marks_the_run_at_the_cursor_and_leaves_a_leak(tmp_path) -> None:
    run = variant(tmp_path, "low", verdicts=[LEAK, SUSPICIOUS, FALLING])
    variant(tmp_path, "fine")
    async with OpenCompare(tmp_path, "low", size=(200, 50)) as compare:
        await compare.pilot.press("Y")
        await compare.until(lambda: "LEAK SUSPECT (seen) UN" in compare.text)
        assert RunReader(run).notes.seen == ("SUSPICIOUS", "STILL-FALLING")
        await compare.pilot.press("enter")
        await compare.until(lambda: "SUSPICIOUS (seen)" in compare.text and "LEAK (seen)" not in compare.text)
        await compare.pilot.press("escape", "Y")
        await compare.until(lambda: "LEAK SUSPECT UNDER" in compare.text)
        await compare.go("fine")
        await compare.pilot.press("Y")
        assert "fine has no warning to mark as seen" in said(compare.app)


async def test_an_answer_marks_what_was_seen_in_all_runs_of_a_variant(tmp_path) -> None:
    for seed in (1, 2):
        variant(tmp_path, f"base-{seed}", f"seed={seed}")
        variant(tmp_path, f"low-{seed}", f"seed={seed}", "model.n_heads=2", by=-0.5 + seed / 100, verdicts=[SUSPICIOUS])
    async with OpenCompare(tmp_path, size=(200, 50)) as compare:
        for name, shown in (("low-1", "SUSPECT  "), ("low-2", "SUSPECT (seen)")):
            run = RunReader(tmp_path / name)
            await compare.go(name)
            await compare.pilot.press("Y")
            await compare.until(lambda run=run: run.notes.seen == ("SUSPICIOUS",))
            await compare.pilot.press("v")
            await compare.until(lambda shown=shown: shown in compare.text)
            await compare.pilot.press("v")
