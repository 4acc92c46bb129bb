"""Lists and sentences are joined as each language joins them, and names in them are never translated."""

import pytest

from engine.base.language import Message, tr
from tui_transformer import languages
from tui_transformer.lab.analysis.lists import CLAUSES, NAMES, PHRASES, SENTENCES, in_brackets, join, join_names


@pytest.mark.parametrize(
    ("pair", "english", "chinese"),
    [(SENTENCES, " ", ""), (CLAUSES, "; ", "；"), (PHRASES, ", ", "，"), (NAMES, ", ", "、")],
)
def test_parts_are_joined_in_order_however_many_there_are(pair, english, chinese) -> None:
    for n in (0, 1, 2, 3, 5, 3_000):
        parts = [str(i) for i in range(n)]
        joined = join(pair, parts)
        assert joined == english.join(parts)
        languages.use("zh")
        assert tr(joined) == chinese.join(parts)
        languages.use("en")


def test_names_are_not_translated_and_messages_are() -> None:
    languages.use("zh")
    stopped = tr("stopped")
    assert stopped != "stopped"
    assert tr(join_names(["stopped"])) == tr(join(NAMES, ["stopped"])) == tr(in_brackets("stopped", "")) == "stopped"
    assert tr(join_names([Message("stopped")])) == stopped
    assert tr(join_names(["a", "stopped", Message("stopped")])) == f"a、stopped 和 {stopped}"
    assert tr(in_brackets("{stopped}", Message("stopped"))) == f"{{stopped}}（{stopped}）"
