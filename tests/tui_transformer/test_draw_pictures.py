"""The sample reports in docs/ have their figures once."""

from tests.tui_transformer.draw_pictures import share_figures


def test_a_figure_that_two_reports_have_in_common_is_kept_once(tmp_path) -> None:
    for code in ("en", "zh"):
        (tmp_path / code / "figures").mkdir(parents=True)
        (tmp_path / code / "report.md").write_text("![a](figures/a.png) ![b](figures/b.png)")
        (tmp_path / code / "figures" / "a.png").write_bytes(b"the same")
        (tmp_path / code / "figures" / "b.png").write_bytes(code.encode())
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "old.png").write_bytes(b"of the report before")
    share_figures(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")} == {
        *("figures/a.png", "en/figures/b.png", "zh/figures/b.png")
    }
    for code in ("en", "zh"):
        assert (tmp_path / code / "report.md").read_text() == "![a](../figures/a.png) ![b](figures/b.png)"


def test_a_folder_whose_figures_are_all_shared_is_gone(tmp_path) -> None:
    for code in ("en", "zh"):
        (tmp_path / code / "figures").mkdir(parents=True)
        (tmp_path / code / "report.md").write_text("![a](figures/a.png)")
        (tmp_path / code / "figures" / "a.png").write_bytes(b"the same")
    share_figures(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["a.png", "report.md", "report.md"]
