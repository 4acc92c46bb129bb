"""A reproduction package: its folder, its proof, its report."""

import csv
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.base.language import translate
from engine.config.model import PARTS
from engine.config.schemes import SCHEMES
from tests import trained_runs
from tests.catalogue import messages
from tests.tui_transformer.lab.exports.test_source import packaged
from tui_transformer import languages
from tui_transformer.lab.exports import formats, package
from tui_transformer.lab.exports.recorded import ExportedRun
from tui_transformer.lab.reports import paper
from tui_transformer.lab.reports.languages import LANGUAGES, load_report_language

# The sections that course sheets ask for, in both languages.
SECTIONS = {
    "en": ("Introduction", "Related work", "Architecture and derivation", "Implementation", "Experimental setup",
           "Results and analysis", "Reproducibility and code structure", "Conclusion and future work", "References"),
    "zh": ("引言", "相关工作", "模型结构与推导", "实现", "实验设置", "结果与分析",
           "可复现性与代码结构", "结论与展望", "参考文献"),
}  # fmt: skip
CHANGES = ("model.dropout=0.1", "model.position=rope", "model.qk_norm=before", "train.steps=12")


PAIRS = (
    *("model.architecture=encoder-decoder", "objective.kind=translation", "data.corpus=phrasebook-2"),
    *("data.corpus_size=300", "data.tokenizer=bpe", "data.bpe_size=400", "model.context_length=64", "train.steps=12"),
    *("evaluation.translations=4", "evaluation.probes=false", "objective.label_smoothing=0.1", "model.dropout=0.1"),
)
LABELLED = (
    *("model.architecture=encoder", "objective.kind=classification", "data.corpus=bulletins", "data.corpus_size=200"),
    *("data.tokenizer=words", "model.context_length=48", "train.steps=12"),
)


def trained_with(changes: tuple[str, ...], folder: Path) -> Path:
    from engine.config.keys import parse_overrides
    from engine.config.presets import merge
    from engine.config.schema import RunConfig
    from tests.conftest import TINY

    tables = TINY
    for override in parse_overrides(changes):
        tables = merge(tables, override)
    return trained_runs.cached_run(RunConfig.model_validate(tables), folder, "small")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    return trained_with(CHANGES, tmp_path_factory.mktemp("runs"))


def write_unproved(run: ExportedRun, out: Path, language: str, *, drawn: bool = True) -> Path:
    """A package whose program has not trained its first steps: another test trains it to the same losses."""
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            leave_figures(patch)
        patch.setattr(package, "language_code", lambda: language)
        patch.setattr(package, "_prove", lambda *_: None)
        return formats.write("package", run, out, "best")[0]


def leave_figures(patch: pytest.MonkeyPatch) -> None:
    """The report's figures are empty: drawing them takes longest, and other tests do."""
    patch.setattr(paper, "render", lambda draw, font, forms: dict.fromkeys(forms, b""))


@pytest.fixture(scope="module", params=LANGUAGES)
def made(request, trained, tmp_path_factory) -> tuple[Path, str]:
    return write_unproved(ExportedRun(trained), tmp_path_factory.mktemp("out"), request.param), request.param


def test_the_folder_has_what_a_sheet_asks_for(made) -> None:
    folder, language = made
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names >= {
        *("README.md", "requirements.txt", "configs/run.toml", "scripts/run.sh", "report/report.tex"),
        *("src/model.py", "src/data.py", "src/train.py", "src/plot.py", "src/sample.py"),
        *("data/train.txt", "data/validation.txt", "results/curves.png", "results/metrics.csv", "results/sample.txt"),
        "results/first-losses.csv",
    }
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "bash scripts/run.sh" in text and "python src/train.py --config configs/run.toml" in text
    assert ("wrote everything in this folder" in text) if language == "en" else ("由工具写成的部分" in text)
    assert re.search(r"^torch==[\d.]+$", (folder / "requirements.txt").read_text(), re.MULTILINE)


def programs(folder: Path) -> dict[str, bytes]:
    """What is run: it says nothing in any language."""
    parts = [path for part in ("src", "scripts", "configs") for path in (folder / part).iterdir()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in parts}


def test_the_program_is_the_same_in_every_language(trained, tmp_path) -> None:
    made = [programs(write_unproved(ExportedRun(trained), tmp_path / code, code, drawn=False)) for code in LANGUAGES]
    assert len(made[0]) >= 7 and all(one == made[0] for one in made)


def test_its_script_trains_to_the_runs_own_first_losses(trained, tmp_path) -> None:
    folder = write_unproved(ExportedRun(trained), tmp_path, LANGUAGES[0], drawn=False)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(folder / "scripts" / "run.sh"), "--out", str(folder / "output")],
        env=environment | {"PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with (folder / "output" / "metrics.csv").open() as file:
        again = {int(row["step"]): row for row in csv.DictReader(file)}
    recorded = {(r["kind"], r["step"]): r["loss"] for r in ExportedRun(trained).raw_lines("metrics")}
    for step in range(1, 11):
        assert abs(float(again[step]["train_loss"]) - recorded["train", step]) < 1e-4
    assert abs(float(again[12]["validation_loss"]) - recorded["validation", 12]) < 1e-3
    assert (folder / "output" / "curves.png").stat().st_size > 1000 and (folder / "output" / "model.pt").is_file()


@pytest.mark.usefixtures("fork_start_scripts")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("changes", "files", "scores", "said"),
    [
        (PAIRS, {"data/unseen_pairs.jsonl", "data/vocabulary.json"}, ("BLEU",), ("alignment", "对齐")),
        (
            LABELLED,
            {"data/validation.jsonl", "data/classes.json"},
            ("macro F1", "宏平均 F1"),
            ("has a vote", "都有一票"),
        ),
    ],
    ids=("pairs", "classes"),
)
def test_rows_come_with_their_tokens_their_scores_and_their_derivation(
    tmp_path, monkeypatch, language, changes, files, scores, said
) -> None:
    run = ExportedRun(trained_with(changes, tmp_path / "runs"))
    if language == "en" or changes is PAIRS:  # the program is trained below, for longer
        folder = write_unproved(run, tmp_path / "out", language, drawn=language == "en")
    else:
        leave_figures(monkeypatch)
        monkeypatch.setattr(package, "language_code", lambda: language)
        folder, _ = formats.write("package", run, tmp_path / "out", "best")  # which trains its first steps
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert files <= names and not any("__pycache__" in name or "proof" in name for name in names)
    readme, report = ((folder / name).read_text(encoding="utf-8") for name in ("README.md", "report/report.tex"))
    assert any(score in readme for score in scores) and any(one in report for one in said)
    assert [report.index(rf"\section{{{title}}}") for title in SECTIONS[language]]
    if language == "en":
        return
    for command in (["train.py", "--steps", "12"], ["sample.py", "--rows", "3"]):
        command[0] = f"src/{command[0]}"
        done = subprocess.run([sys.executable, "-B", *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert re.search(r"[0-3] of 3 are exactly right", done.stdout)
    with (folder / "output" / "metrics.csv").open() as file:
        scored = float(list(csv.DictReader(file))[-1]["validation_loss"])
    recorded = [r["loss"] for r in run.raw_lines("metrics") if r["kind"] == "validation" and r["step"] == 12]
    assert scored == pytest.approx(recorded[0], abs=1e-3)


def test_its_report_declares_its_author_and_has_every_section_in_order(made) -> None:
    folder, language = made
    text = (folder / "report" / "report.tex").read_text(encoding="utf-8")
    head = text[text.index(r"\begin{document}") : text.index(r"\tableofcontents")]
    assert "transformer" in head and "src/" in head and ("Declaration" in head or "声明" in head)
    places = [text.index(rf"\section{{{title}}}") for title in SECTIONS[language]]
    assert places == sorted(places)
    assert "angle" in text and "RMS" in text  # pseudocode of rope, and a part
    assert "Attention Is All You Need" in text and "RoFormer" in text
    for name in re.findall(r"includegraphics\[[^\]]*\]\{([^}]*)\}", text):
        assert (folder / "report" / name).is_file()


@pytest.mark.usefixtures("fork_start_scripts")
def test_a_program_that_trains_otherwise_is_not_handed_out(trained, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(package, "recompute_first_losses", lambda run, task: [3.0] * 10)
    leave_figures(monkeypatch)
    with pytest.raises(InputError, match="does not train the same model"):
        formats.write("package", ExportedRun(trained), tmp_path, "best")
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_every_scheme_and_part_has_pseudocode_and_papers() -> None:
    codes, known = paper.pseudocode(), paper.references()
    for key, every in SCHEMES.items():
        rows = {name: every[name] for name in packaged(key)}
        assert set(codes[key]) == {name for name, row in rows.items() if row.citation and name != "none"}, key
        assert {one for row in rows.values() for one in paper.split_citations(row.citation)} <= set(known), key
    assert set(codes[paper.PARTS]) == set(PARTS)
    assert {one for row in PARTS.values() for one in paper.split_citations(row.citation)} <= set(known)
    assert all(
        text.isascii() and max(map(len, text.splitlines())) <= 100 for t in codes.values() for text in t.values()
    )


def test_both_languages_say_the_same_things_with_the_same_formulas() -> None:
    for key, text in paper.prose().items():
        said = translate(text, load_report_language("zh"))
        assert said != text and sorted(paper.MATH.findall(text)) == sorted(paper.MATH.findall(said)), key


def test_every_choice_is_derived() -> None:
    prose = paper.prose()
    for key, table in (("position", "model.position"), ("seen", "model.attention"), ("norm", "model.norm")):
        names = {f"{key}.{name}" for name in packaged(table) if getattr(SCHEMES[table][name], "has_scores", True)}
        assert names <= set(prose), key


def test_every_paper_that_the_text_names_is_in_the_references() -> None:
    named = re.compile(r"\b(?:[A-Z][\w-]+ (?:et al\.|and [A-Z][\w-]+)|[A-Z][\w-]+ Team) \d{4}")
    files = ("tui_transformer/lab/reports/paper.py", "tui_transformer/lab/reports/paper.toml")
    texts = [text for where, text in messages() if where in files and isinstance(text, str)]
    said = "\n".join(translate(text, load_report_language(code)) for text in texts for code in LANGUAGES)
    assert set(named.findall(said)) <= set(paper.references())


def test_a_full_folder_is_left_alone(trained, tmp_path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        formats.write("package", ExportedRun(trained), tmp_path, "best")


def test_the_config_has_what_the_program_reads_and_the_seed(made) -> None:
    folder, _ = made
    found = tomllib.loads((folder / "configs" / "run.toml").read_text())
    assert found["seed"] == 1 and found["model"]["rope_base"] == 10_000.0 and found["train"]["steps"] == 12
    assert languages.LANGUAGES
