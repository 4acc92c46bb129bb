"""Reports as folders: byte for byte, in three formats, nobody else's files touched; poison stays text."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from engine.base.errors import InputError
from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import change, variant
from tests.tui_transformer.lab.reports.reports import document, files
from tui_transformer import languages
from tui_transformer.__main__ import main
from tui_transformer.cli.show.report import report
from tui_transformer.lab.reports.figures.style import PNG, SVG, render
from tui_transformer.lab.reports.folder import write
from tui_transformer.lab.reports.formats import FORMATS, inline, latex, markdown, mathml

POISON = "\x1b[2J\u202eevil <script>alert(1)</script> | `x` $\\alpha$ 50% #1 a_b^c~{d} & ![i](http://x) [b]not[/b] 中文"
KINDS = tuple(FORMATS)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("reported") / "runs"
    attention(root)
    return root


@pytest.fixture(scope="module")
def drawn(root, tmp_path_factory):
    """A report with its pictures."""
    return written(root, tmp_path_factory.mktemp("drawn") / "out")


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures take a second each: where they are not looked at, there are empty ones."""
    empty = {SVG: b'<svg xmlns="http://www.w3.org/2000/svg"></svg>\n', PNG: b"png"}
    monkeypatch.setattr("tui_transformer.lab.reports.report.render", lambda *_: empty)
    monkeypatch.setattr("tui_transformer.lab.reports.report.chinese_font", lambda: "some font")


def written(root: Path, out: Path, *names: str, kind: str = "markdown", language: str = "en") -> dict[str, bytes]:
    languages.use(language)
    report(list(names or ("att",)), kind, out=out, runs_dir=root)
    languages.use("en")
    return files(out)


@pytest.mark.parametrize("kind", KINDS)
def test_two_reports_are_the_same_to_the_byte_wherever_the_runs_lie(root, tmp_path, kind, request) -> None:
    one = request.getfixturevalue("drawn") if kind == "markdown" else None
    if one is None:
        request.getfixturevalue("undrawn")
        one = written(root, tmp_path / "one", kind=kind)
    moved = shutil.copytree(root, tmp_path / "elsewhere" / "deep" / "runs")
    assert written(moved, tmp_path / "two", kind=kind) == one
    assert FORMATS[kind].file in one
    told = b"".join(one.values())
    assert str(root).encode() not in told and str(tmp_path).encode() not in told


def test_a_page_of_html_needs_nothing_else(root, tmp_path) -> None:
    found = written(root, tmp_path / "out", kind="html")
    page = found["report.html"].decode()
    assert list(found) == ["report.html"]
    assert "<script" not in page and not re.search(r'(?:src|href)="(?!#)', page.replace("xmlns", ""))
    assert page.count("<svg") == 3 and "<math" in page and "@media print" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert all(name in ids for name in re.findall(r'(?:href="#|url\(#)([^")]+)', page))
    Balanced().check(page)


class Balanced(HTMLParser):
    """Every tag that is opened is closed."""

    EMPTY = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def check(self, page: str) -> None:
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_pictures_have_neither_dates_nor_programs_in_them(drawn) -> None:
    found = drawn
    assert {name for name in found if name.endswith(".svg")} == {
        f"figures/{name}.svg" for name in ("ablation", "curves", "model")
    }
    for name, content in found.items():
        if name.endswith(".svg"):
            assert b"<metadata>" not in content and b"Matplotlib" not in content and b"<text" in content
        if name.endswith(".png"):
            assert b"tEXt" not in content and b"tIME" not in content


def poisoned(root: Path) -> None:
    for seed in (1, 2):
        run = variant(root, f"p{seed}", f"seed={seed}", text=POISON, data={"corpus": POISON}, note=POISON)
        change(
            run / "run.json",
            command=f"tui-transformer run --name '{POISON}'",
            study={"name": "st", "variant": POISON, "seed": seed},
        )
    description = json.dumps(POISON)
    (root / "st.study.toml").write_text(f'name = "st"\ndescription = {description}\nbaseline = "a"\n', encoding="utf-8")


def test_poison_in_names_samples_and_notes_stays_text_in_every_format(tmp_path, capsys, undrawn) -> None:
    root = tmp_path / "runs"
    poisoned(root)
    for kind in KINDS:
        text = written(root, tmp_path / kind, "st", kind=kind)[FORMATS[kind].file].decode()
        assert "\x1b" not in text and "\u202e" not in text
    page = (tmp_path / "html" / "report.html").read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    Balanced().check(page)
    lines = (tmp_path / "markdown" / "report.md").read_text().splitlines()
    prose = [line for line in lines if not line.startswith("    ") and "evil" in line]
    assert prose and not any(re.search(r"<script|(?<!\\)\]\(|http://", line) for line in prose)
    tex = (tmp_path / "latex" / "report.tex").read_text()
    assert r"\alpha" not in tex.replace(r"\rho(\alpha)", "").replace(r"\cos\alpha", "").replace(r"\sin\alpha", "")
    assert (
        r"50\%" in tex
        and r"a\_b\textasciicircum{}c\textasciitilde{}" in tex
        and "[U+4E2D]" in tex.replace("{[}", "[").replace("{]}", "]")
    )
    assert POISON[:4] not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>", "&lt;b&gt;"),
        ("$x$", r"\$x\$"),
        ("a & b", "a &amp; b"),
        ("https://x.y", r"https:\//x.y"),
        ("playlets@1", "playlets@1"),
        ("-0.5", "\u22120.5"),
        ("win-16", "win-16"),
    ],
)
def test_markdown_keeps_what_is_plain_and_breaks_what_is_not(text, shown) -> None:
    assert inline(text) == shown


# The folder


def test_our_own_report_is_written_over_and_its_stale_pictures_go(root, tmp_path, undrawn) -> None:
    out = tmp_path / "out"
    written(root, out)
    (out / "figures" / "distance.png").write_bytes(b"of an older report")
    (out / "report.pdf").write_bytes(b"what compiling left")
    found = written(root, out)
    assert "figures/distance.png" not in found and "report.pdf" in found


def test_reports_in_other_formats_stay(root, tmp_path, undrawn) -> None:
    written(root, tmp_path / "out", kind="html")
    assert {"report.html", "report.md"} <= written(root, tmp_path / "out").keys()


@pytest.mark.parametrize("name", ["thesis.docx", "figures/mine.png", "figures/deep/model.png", "model.png"])
def test_a_folder_with_anything_else_is_refused_and_left_as_it_is(root, tmp_path, name, undrawn) -> None:
    mine = tmp_path / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    with pytest.raises(InputError, match="is not part of a report"):
        written(root, tmp_path / "mine")
    assert files(tmp_path / "mine") == {name: b"years of work"}


def test_a_place_that_cannot_be_written_is_one_line(root, tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "deep", tmp_path / "nul\0"):
        with pytest.raises(InputError) as caught:
            write({"report.md": b"x"}, out)
        assert "\n" not in str(caught.value) and "--out" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attt"], "no run named 'attt'"),
        (["att", "--format", "latx"], "did you mean 'latex'?"),
        (["att", "--language", "de"], "--language 'de': must be en or zh"),
        ([], "missing argument"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(root, words, said, capsys) -> None:
    assert main(["report", *words, "--runs-dir", str(root)]) == 2
    told = capsys.readouterr()
    assert said in told.err.lower() and len(told.err.strip().splitlines()) == 1 and not told.out


def test_a_study_without_a_run_says_so(tmp_path, undrawn) -> None:
    (tmp_path / "s.study.toml").write_text('baseline = "a"\n')
    with pytest.raises(InputError, match="study 's' has no run"):
        written(tmp_path, tmp_path / "out", "s")


def test_json_lists_the_files(root, tmp_path, undrawn, capsys) -> None:
    out = tmp_path / "out"
    assert main(["report", "att", "--format", "html", "--json", "-o", str(out), "--runs-dir", str(root)]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(out / "report.html")]


def test_without_out_a_report_has_a_folder_of_its_own(root, tmp_path, monkeypatch, capsys, undrawn) -> None:
    monkeypatch.chdir(tmp_path)
    report(["att"], "html", runs_dir=root)
    assert capsys.readouterr().out == "reports/att/report.html\n"


def test_latex_says_how_to_make_a_pdf_and_whether_it_can_be_done_here(
    root, tmp_path, monkeypatch, capsys, undrawn
) -> None:
    monkeypatch.setattr("tui_transformer.cli.show.report.shutil.which", lambda name: None)
    written(root, tmp_path / "out", kind="latex")
    said = capsys.readouterr().err
    assert "pdflatex" in said and "was not found on this machine" in said and said.count("\n") == 1


# Languages and fonts


def test_without_a_chinese_font_the_figures_are_english_and_the_report_says_so(root) -> None:
    from tui_transformer.cli.names import resolve_names
    from tui_transformer.lab.reports.context import read_context
    from tui_transformer.lab.reports.languages import load_report_language
    from tui_transformer.lab.reports.report import report_document

    meant = resolve_names(["att"], root)
    made = report_document(
        read_context(meant.entries, meant.studies, load_report_language("zh"), load_report_language("en"))
    )
    image = render(made.figures[0].draw, "", (SVG,))
    assert b"layer norm" in image[SVG]
    assert "本机没有中文字体" in markdown(made, {})["report.md"].decode()


def test_a_chinese_latex_report_asks_for_ctex(root) -> None:
    tex = latex(document(root, "att", language="zh"), {})["report.tex"].decode()
    assert r"\documentclass[11pt,a4paper]{ctexart}" in tex and "xelatex" in tex and "存在泄漏" in tex


@pytest.mark.slow
@pytest.mark.parametrize(("language", "engine"), [("en", "pdflatex"), ("zh", "xelatex")])
def test_latex_compiles(root, tmp_path, language, engine) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not here")
    poisoned(tmp_path / "poison")
    for number, (runs, name) in enumerate(((root, "att"), (tmp_path / "poison", "st"))):
        out = tmp_path / f"out{number}"
        written(runs, out, name, kind="latex", language=language)
        for _ in range(2):
            done = subprocess.run(
                [engine, "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
                cwd=out,
                capture_output=True,
                text=True,
                errors="replace",
            )
            assert done.returncode == 0, done.stdout[-2000:]
        assert (out / "report.pdf").stat().st_size > 10_000


def test_every_formula_becomes_mathml_without_a_stray_sign() -> None:
    from engine.config.model import PARTS, ModelConfig
    from engine.config.schema import RunConfig
    from engine.config.schemes import ACTIVATIONS, ATTENTIONS, NORMS, OPTIMIZERS, POSITIONS, SCHEDULES
    from tui_transformer.lab.reports.formulas import formulas

    models = [ModelConfig(position=name) for name in POSITIONS]
    models += [ModelConfig(attention=name) for name in ATTENTIONS]
    models += [ModelConfig(norm=name) for name in NORMS] + [ModelConfig(activation=name) for name in ACTIVATIONS]
    models += [
        ModelConfig(norm="rms", activation="swiglu", norm_placement="post"),
        ModelConfig(n_heads=2, position="alibi"),
        ModelConfig(parallel=True, norm_placement="sandwich"),
        *(ModelConfig.model_validate({name: value}) for name, row in PARTS.items() for value in row.on_values),
    ]
    models += [ModelConfig(position="rope", **{name: value}) for name, row in PARTS.items() for value in row.on_values]
    models.append(ModelConfig(position="rope", layers=("window", "window none", "global alibi")))
    found = [shown.latex for m in models for shown in formulas([("m", m)], RunConfig(model=m))]
    found += [scheme.formula(RunConfig().optimizer) for scheme in (*SCHEDULES.values(), *OPTIMIZERS.values())]
    for formula in found:
        drawn = mathml(formula, display="block")
        assert "\\" not in drawn and "<mi>&</mi>" not in drawn, formula
