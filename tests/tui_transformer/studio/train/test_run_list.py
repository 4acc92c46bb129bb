import pytest

from tui_transformer.studio.train.run_list import _named


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("attention.win16.s1", "…on.win16.s1"),
        ("a.b.s1", "a.b.s1      "),
        ("a-long-name-of-a-run", "a-long-name…"),
        ("漢字漢字.漢字.s10", "…字.漢字.s10"),
    ],
)
def test_what_is_cut_of_a_name_is_what_others_have_too(name: str, shown: str) -> None:
    assert _named(name, 12) == shown


def test_no_room_is_no_name() -> None:
    assert _named("attention.win16.s1", 0) == ""
