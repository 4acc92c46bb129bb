"""The Playground with a model that translates: /beam, /nbest and /alpha, as in `translate`."""

import threading

from tests.tui_transformer.fake_writer import FakeWriter
from tests.tui_transformer.studio.on_screen import said, shown, until
from tests.tui_transformer.studio.playground.test_playground_pane import answered, app, fakes, opened, runs, type_line
from tui_transformer.studio.shared.dialog import TextScreen

__all__ = ["app", "fakes", "runs"]  # fixtures


async def test_a_beam_decodes_what_was_typed_and_lists_the_best(app, fakes) -> None:
    writer = fakes.known["win16"] = FakeWriter(kind="translation")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot, "I see.")
        assert "seed 1" in shown(app) and "beam" not in shown(app)
        await type_line(pilot, "/beam 5")  # which asks again
        await until(pilot, lambda: "answer 1 of 5" in shown(app) and "step 2,000, beam 5" in shown(app))
        assert "beam 5" in said(app) and "answer 2 of 5" not in shown(app)
        await type_line(pilot, "/nbest 3")
        await until(pilot, lambda: all(f"  {-n / 2:.3f}  answer {n} of 5" in shown(app) for n in (1, 2, 3)))
        assert found._first.answer_text == "answer 1 of 5" and found._first.answer_tokens[0].probability is not None
        await type_line(pilot, "/alpha 1.5")
        await until(pilot, lambda: writer.asked[-1][1]["alpha"] == 1.5)
        await type_line(pilot, "/beam 2")
        await until(pilot, lambda: "/nbest 3: more than a beam of 2 can give" in shown(app))
        await type_line(pilot, "/beam 20")
        await type_line(pilot, "/nbest 20")
        await until(pilot, lambda: "answer 8 of 20" in shown(app) and "and 12 more" in shown(app))
        await type_line(pilot, "/help")
        assert isinstance(app.screen, TextScreen) and "/beam 20" in shown(app) and "translated" in shown(app)


async def test_a_model_that_does_not_translate_has_no_beam(app, fakes) -> None:
    fakes.known["baseline"] = FakeWriter("baseline", kind="translation")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        assert not found.session.completions("/be") and "/beam" not in found.session.help
        await type_line(pilot, "/beam 5")
        assert "unknown command /beam" in said(app)
        await type_line(pilot, "/run baseline")
        await until(pilot, lambda: found.session.completions("/be") == ["/beam "])
        found._line.focus()
        await pilot.press("slash", "b", "e", "tab")
        assert found._line.value == "/beam "
        await type_line(pilot, "/beam 5")
        await type_line(pilot, "/run win16")
        await until(pilot, lambda: not found.session.completions("/be") and not found._first.busy)
        await answered(pilot, "the gate")
        assert "seed 1" in shown(app)
        await type_line(pilot, "/run baseline")  # which keeps its own
        await until(pilot, lambda: found.session.settings.get("beam") == 5 and bool(found.session.completions("/be")))


async def test_each_model_has_its_own_alpha_unless_one_is_typed(app, fakes) -> None:
    first = fakes.known["win16"] = FakeWriter(kind="translation")
    second = fakes.known["baseline"] = FakeWriter("baseline", kind="translation")
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        await type_line(pilot, "/vs baseline")
        await type_line(pilot, "/beam 5")
        await type_line(pilot, "/length 7")
        await answered(pilot, "I see.")
        await until(pilot, lambda: bool(second.asked) and second.asked[-1][0] == "I see.")
        for writer in (first, second):
            asked = writer.asked[-1][1]
            assert asked["length"] == 7 and "alpha" not in asked, asked
        alphas = lambda: [writer.asked[-1][1].get("alpha") for writer in (first, second)]
        await type_line(pilot, "/alpha 0.6")  # the first one's own
        await until(pilot, lambda: alphas() == [0.6, 0.6])
        await type_line(pilot, "/alpha 1.5")
        await until(pilot, lambda: alphas() == [1.5, 1.5])


async def test_a_text_that_is_not_continued_sets_nothing(app, fakes) -> None:
    fakes.known["win16"] = FakeWriter(kind="translation")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/alpha 1.5")
        found._user_settings.clear()  # as for another run
        found.action_mode("surprise")
        await type_line(pilot, "I see. → Ich sehe.")
        await until(pilot, lambda: found.session.history[-1:] == ["I see. → Ich sehe."])
        assert not any(found._user_settings.values())


async def test_escape_ends_a_search(app, fakes) -> None:
    gate = threading.Event()
    fakes.known["win16"] = FakeWriter(kind="translation", gate=gate)
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/beam 5")
        await type_line(pilot, "I see.")
        await until(pilot, lambda: "writing" in shown(app) and bool(found._first.writer.asked))
        await pilot.press("escape")
        await until(pilot, lambda: "stopped after 0 tokens" in shown(app))
        await type_line(pilot, "I hear.")  # the engine's thread is free again: it is asked, though the gate is shut
        await until(pilot, lambda: found._first.writer.asked[-1][0] == "I hear.")
        gate.set()
        await until(pilot, lambda: "answer 1 of 5" in shown(app))
