"""Held-out text that is also in training is reported when a run starts, and its badge stays to the end."""

import json
import random
from pathlib import Path

import pytest

from engine.config.schema import RunConfig
from engine.proofs.verify.claims import verify
from engine.runs.control import Control, RunCommand
from engine.runs.reader import RunReader
from engine.training.assemble import assemble, resume
from tests.conftest import Tiny
from tests.engine.data.test_overlap import words
from tests.tui_transformer.lab.analysis.variants import change
from tui_transformer.lab.records.badges import is_warning

pytestmark = pytest.mark.usefixtures("no_self_check")

SHARED = ("objective.kind=translation", "model.architecture=encoder-decoder", "data.shared_vocabulary=true")
TRANSLATES = (*SHARED, "data.tokenizer=characters", "model.context_length=64", "evaluation.translations=2")
DOCUMENTS = ("objective.kind=span-corruption", "data.tokenizer=characters", "model.context_length=128")
QUESTIONS = ("objective.kind=question-answer", "data.tokenizer=characters", "model.context_length=128")


def started(config: RunConfig, runs: Path, name: str = "run"):
    return assemble(config, runs_dir=runs, name=name, device="cpu")


def text_twice(folder: Path) -> tuple[str, ...]:
    (folder / "twice.txt").write_text(words(700) * 2)
    return (f"data.corpus={folder / 'twice.txt'}",)


def documents_again(folder: Path) -> tuple[str, ...]:
    """Short documents of a table, each of which stands in it many times."""
    rows = [json.dumps({"text": words(8, seed=i)}) for i in range(40)] * 9
    random.Random(1).shuffle(rows)
    (folder / "rows.jsonl").write_text("\n".join(rows))
    return (f"data.corpus={folder / 'rows.jsonl'}",)


def lines_again(folder: Path) -> tuple[str, ...]:
    rows = [words(8, seed=i) for i in range(40)] * 9
    random.Random(1).shuffle(rows)
    (folder / "lines.txt").write_text("\n".join(rows))
    return (f"data.corpus={folder / 'lines.txt'}",)


def lines(count: int, language: str) -> list[str]:
    return [f"{language} sentence {i}, which says {words(2, seed=i)}." for i in range(count)]


def cut_from_training(folder: Path) -> tuple[str, ...]:
    """A validation file that is the beginning of the training file."""
    for language in ("en", "de"):
        (folder / f"train.{language}").write_text("\n".join(lines(60, language)))
        (folder / f"val.{language}").write_text("\n".join(lines(10, language)))
    return (f"data.corpus={folder}", *TRANSLATES)


def three_commas(folder: Path) -> tuple[str, ...]:
    """Three of twenty held-out pairs are training pairs without their comma."""
    for language in ("en", "de"):
        known, new = lines(60, language), [f"other {line}" for line in lines(80, language)[60:77]]
        (folder / f"train.{language}").write_text("\n".join(known))
        (folder / f"val.{language}").write_text("\n".join([line.replace(",", "") for line in known[:3]] + new))
    return (f"data.corpus={folder}", *TRANSLATES)


def repeated_documents(folder: Path) -> tuple[str, ...]:
    (folder / "documents.txt").write_text("\n".join(lines(60, "en")))
    (folder / "documents-validation.txt").write_text("\n".join(line.upper() for line in lines(9, "en")))
    return (f"data.corpus={folder}", *DOCUMENTS)


def repeated_questions(folder: Path) -> tuple[str, ...]:
    (folder / "documents.txt").write_text("\n".join(lines(60, "en")))
    (folder / "train.tsv").write_text("".join(f"Where is P{i}?\tT{i % 3}\n" for i in range(40)))
    (folder / "validation.tsv").write_text("".join(f"where is P{i} ?\tT{i % 3}\n" for i in range(30, 50)))
    return (f"data.corpus={folder}", *QUESTIONS)


OVERLAPPING = {
    text_twice: "100.0% of the validation text also appears word for word in the training text",
    cut_from_training: "100.0% of the validation pairs (10 of 10) share a sentence with the training pairs",
    three_commas: "15.0% of the validation pairs (3 of 20) share a sentence with the training pairs",
    repeated_documents: "100.0% of the validation documents' text also appears",
    repeated_questions: "50.0% of the validation questions (10 of 20) are also asked in training",
}


@pytest.mark.parametrize("corpus", OVERLAPPING, ids=lambda corpus: corpus.__name__)
def test_a_run_is_stamped_before_its_first_step(tiny: Tiny, tmp_path, corpus) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    ready = started(tiny(*corpus(folder)), tmp_path)
    reader = RunReader(ready.path)
    assert set(reader.badges) == {"OVERLAP"}
    assert reader.badges["OVERLAP"].startswith(OVERLAPPING[corpus])
    assert any(lint.text == reader.badges["OVERLAP"] for lint in ready.lints)
    (verdict,) = reader.verdicts
    assert (verdict.check, verdict.when, verdict.step) == ("overlap", "before", 0)
    assert reader.raw("data")["overlap"]["share"] == pytest.approx(verdict.value, abs=1e-6)


@pytest.mark.parametrize(
    ("corpus", "badge", "unit"), [(documents_again, "OVERLAP", "documents"), (lines_again, "REPEATED", "lines")]
)
def test_whole_documents_void_a_score_and_whole_lines_only_warn(tiny: Tiny, tmp_path, corpus, badge, unit):
    ready = started(tiny(*corpus(tmp_path)), tmp_path, "run")
    reader = RunReader(ready.path)
    facts = reader.data.overlap
    assert facts is not None and facts.share < 0.1 and set(reader.badges) == {badge}
    assert is_warning(badge) is (badge == "REPEATED")
    (verdict,) = reader.verdicts
    assert verdict.value == getattr(facts, f"{unit}_seen") / getattr(facts, unit) > 0.9
    assert any(lint.text == verdict.why for lint in ready.lints) and "distinct" in verdict.why
    assert ready.trainer.run().state == "finished"
    assert not [name for name, found in verify(reader, device="cpu") if found.status == "failed"]


class StopAt(Control):
    """Asks to stop after some steps."""

    def __init__(self, polls: int) -> None:
        super().__init__()
        self.left = polls

    def poll(self) -> RunCommand | None:
        self.left -= 1
        if self.left == 0:
            self.enqueue_command(RunCommand.STOP, "test")
        return super().poll()


def test_the_badge_stays_when_a_run_is_resumed_and_ends_and_verify_confirms_it(tiny: Tiny, tmp_path) -> None:
    control = StopAt(4)
    ready = assemble(tiny(*text_twice(tmp_path)), runs_dir=tmp_path, name="run", device="cpu", control=control)
    assert ready.trainer.run().state == "stopped"
    assert resume(ready.path, device="cpu").trainer.run().state == "finished"
    reader = RunReader(ready.path)
    assert [v.verdict for v in reader.verdicts if v.check == "overlap"] == ["OVERLAP"]
    assert "OVERLAP" in reader.badges
    assert not [name for name, found in verify(reader, device="cpu") if found.status == "failed"]
    change(ready.path / "checks.json", verdicts=[v.dump() for v in reader.verdicts if v.check != "overlap"])
    differs = [found for _, found in verify(reader, device="cpu") if found.status == "failed"]
    assert ["check 'overlap', before" in str(found.figures["differences"]) for found in differs] == [True]


def test_a_run_of_an_earlier_version_stays_as_it_is(tiny: Tiny, tmp_path) -> None:
    ready = started(tiny(*text_twice(tmp_path)), tmp_path)
    assert ready.trainer.run().state == "finished"
    reader = RunReader(ready.path)
    data = reader.raw("data")
    del data["overlap"]
    (ready.path / "data.json").write_text(json.dumps(data))
    change(ready.path / "checks.json", verdicts=[v.dump() for v in reader.verdicts if v.check != "overlap"])
    assert "OVERLAP" not in reader.badges
    assert not [name for name, found in verify(reader, device="cpu") if found.status == "failed"]


def test_a_clean_text_says_nothing_and_records_the_share(tiny: Tiny, tmp_path) -> None:
    (tmp_path / "once.txt").write_text(words(1_500))
    ready = started(tiny(f"data.corpus={tmp_path / 'once.txt'}"), tmp_path)
    reader = RunReader(ready.path)
    assert reader.badges == {} and reader.verdicts == () and reader.raw("data")["overlap"]["share"] == 0.0
    assert not [lint for lint in ready.lints if lint.key == "data.corpus"]


def test_a_little_overlap_is_reported_without_a_badge(tiny: Tiny, tmp_path) -> None:
    settings = cut_from_training(tmp_path)
    for language in ("en", "de"):
        new = [f"other {line}" for line in lines(90, language)[60:]]
        (tmp_path / f"val.{language}").write_text("\n".join([lines(1, language)[0], *new]))
    ready = started(tiny(*settings), tmp_path / "runs")
    assert RunReader(ready.path).badges == {}
    (lint,) = [lint for lint in ready.lints if lint.key == "data.corpus"]
    assert lint.text.startswith("3.2% of the validation pairs (1 of 31) share a sentence with the training pairs")
