"""The one source of writing, with real models of a few steps."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.runs.reader import RunReader
from tests.trained_runs import cached_run
from tests.tui_transformer.trained import KINDS, train_all
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writers import ModelWriter, WriterCache, best_or_newest_run
from tui_transformer.lab.records.run_view import RunRow

HOW: Settings = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 12}
GIVEN = {"masked": "the g_te", "copy": "the gate"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return train_all(tmp_path_factory.mktemp("runs"))


def writer(runs: Path, name: str) -> ModelWriter:
    found = ModelWriter(RunReader(runs / name), "best", "cpu")
    assert found.config.task.corpus == "text"
    return found


@pytest.mark.parametrize("name", KINDS)
def test_a_run_that_does_not_translate_names_the_command_that_prompts_it(runs, name) -> None:
    with pytest.raises(InputError, match=f"'{name}' is not a translation model; use `tui-transformer sample {name}"):
        ModelWriter(RunReader(runs / name), "best", "cpu").require_translation()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_answers_with_alternatives_and_the_same_without(runs, name) -> None:
    found, text = writer(runs, name), GIVEN.get(name, "the")
    told = list(found.stream(text, HOW, 0, 5))
    assert [piece.text for piece in told] == [piece.text for piece in found.stream(text, HOW)]
    drawn = [piece for piece in told if piece.probability is not None]
    assert len(drawn) == {"masked": 1, "copy": 8}.get(name, 12) and all(len(one.alternatives) == 5 for one in drawn)
    for piece in drawn:
        same = [one for one in piece.alternatives if one.text == piece.text]
        assert all(one.probability == pytest.approx(piece.probability) for one in same)
    if name == "masked":
        assert "".join(piece.text for piece in told).startswith("the g") and len(told) == 8


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_answers_the_prompts_it_offers(runs, name) -> None:
    found = writer(runs, name)
    offered = found.prompts()
    assert 1 <= len(offered) <= 3 and len(set(offered)) == len(offered)
    assert all(list(found.stream(prompt, HOW)) for prompt in offered)
    assert offered[0] == next(found.reader.samples()).prompt


def test_a_prompt_that_the_model_cannot_read_is_not_offered(runs, tmp_path) -> None:
    run = tmp_path / "decoder"
    shutil.copytree(runs / "decoder", run)
    written = {"step": 1, "prompt": "你", "text": "\n你 你你\nthe gate is"}
    (run / "samples.jsonl").write_text(f"{json.dumps(written)}\n")
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps(data | {"examples": [{"source": "你你", "from": "held out"}]}))
    assert writer(tmp_path, "decoder").prompts()[0] == "the gate"


def test_the_best_finished_run_is_the_lowest_loss_of_those_comparable_with_the_newest(runs) -> None:
    row = lambda name, loss, **more: RunRow(
        runs / name, more.pop("state", "finished"), loss=loss, scored=True, checkpoint="step-2", **more
    )
    newest, better = row("decoder", 1.5), row("again", 1.2)
    shutil.copytree(runs / "decoder", runs / "again")
    assert best_or_newest_run([newest, row("copy", 0.1), better]) == runs / "again"
    assert best_or_newest_run([newest, replace(better, badges=("LEAK",))]) == runs / "decoder"
    live = replace(newest, state="running")
    assert best_or_newest_run([live, better]) == runs / "again" and best_or_newest_run([live]) == runs / "decoder"
    assert best_or_newest_run([replace(live, checkpoint="")]) is None
    shutil.rmtree(runs / "again")


def test_colours_and_alternatives_are_those_of_a_direct_pass(runs) -> None:
    found, text = writer(runs, "decoder"), "the"
    for piece in found.stream("the", HOW, 0, 5):
        ids = torch.from_numpy(found.tokenizer.encode(text))
        with torch.no_grad():
            belief = found.model(ids[None])[0, -1].softmax(-1)
        best = belief.topk(5)
        assert piece.probability == pytest.approx(belief[found.tokenizer.encode(piece.text)[0]].item(), abs=1e-5)
        assert "".join(one.text for one in piece.alternatives) == found.tokenizer.decode(best.indices.tolist())
        assert [one.probability for one in piece.alternatives] == pytest.approx(best.values.tolist(), abs=1e-5)
        text += piece.text


def test_what_is_drawn_adds_up_to_its_surprise(runs) -> None:
    """Two ways to the same number: the probabilities of an answer, and the surprise of the text it became."""
    found = writer(runs, "decoder")
    told = list(found.stream("the", HOW))
    surprised = found.surprise("the" + "".join(piece.text for piece in told))
    assert math.fsum(surprised.nats[3:]) == pytest.approx(sum(piece.nats for piece in told), abs=1e-4)
    assert surprised.total_nats == pytest.approx(math.fsum(surprised.nats[1:]))
    assert surprised.perplexity == pytest.approx(math.exp(surprised.total_nats / (len(surprised.nats) - 1)))
    assert "perplexity" in surprised.summary and f"{surprised.characters} characters" in surprised.summary


@pytest.mark.parametrize("name", KINDS)
def test_attention_of_every_kind_has_its_own_tokens_or_a_reason(runs, name) -> None:
    found, text = writer(runs, name), GIVEN.get(name, "the gate")
    for which in found.attention_kinds:
        if name == "linear":
            with pytest.raises(InputError, match="no weights"):
                found.attention(text, "", 1, 1, which)
            continue
        written = "the gate"[:6] if name == "copy" else ""
        looks = found.attention(text, written, 2, 1, which)
        assert looks.weights.shape == (len(looks.queries), len(looks.keys)) == looks.visible.shape
        assert looks.weights.sum(1) == pytest.approx(1.0) and (looks.bias is not None) == (name == "alibi")
        assert looks.is_cross == (which == "cross")
        expected = {"self": "▷the ga", "encoder": "the gate", "cross": "▷the ga"}[which] if name == "copy" else text
        assert "".join(looks.queries) == expected and "layer 2 of 2, head 1 of 2" in looks.title


def test_past_the_context_the_newest_tokens_are_looked_at(runs) -> None:
    looks = writer(runs, "decoder").attention("the gate", " is the gate", 1, 1)
    assert "".join(looks.queries) == "the gate is the gate"[-16:]


def test_a_model_is_loaded_once_until_its_files_are_others(runs, tmp_path) -> None:
    run = Path(shutil.copytree(runs / "decoder", tmp_path / "decoder"))
    writers = WriterCache("cpu")
    first = writers.get(run, "best")
    assert writers.get(run, "best") is first
    shutil.copytree(runs / "alibi", run, dirs_exist_ok=True)
    again = writers.get(run, "last")
    assert again is not first and again is writers.get(run, "last")


def test_a_damaged_checkpoint_is_one_line(runs, tmp_path) -> None:
    run = Path(shutil.copytree(runs / "decoder", tmp_path / "decoder"))
    for file in run.glob("checkpoints/*/*.safetensors"):
        file.write_bytes(b"not weights")
    with pytest.raises(InputError, match="doctor"):
        WriterCache("cpu").get(run, "best")
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(InputError, match="it has none"):
        WriterCache("cpu").get(run, "best")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [("decoder", "", "at least one character"), ("decoder", "日", r"U\+65E5"), ("masked", "the", "mark each with _")],
)
def test_what_cannot_be_answered_says_why(runs, name, text, said) -> None:
    with pytest.raises(InputError, match=said):
        list(writer(runs, name).stream(text, HOW))


def test_notices_say_what_will_happen(runs) -> None:
    assert writer(runs, "decoder").length_warning("the", HOW) == ""
    assert "last 8 tokens" in writer(runs, "decoder").length_warning("the", HOW | {"length": 40})
    assert "sources of 8 characters" in writer(runs, "copy").length_warning("the", HOW)


def test_each_layer_shows_what_it_sees_where_layers_differ(tmp_path, tiny) -> None:
    pattern = 'model.layers=["window none", "linear", "global"]'
    config = tiny(pattern, "model.position=rope", "model.window=3", "model.n_layers=3", "model.attention_dropout=0.0")
    cached_run(config, tmp_path, "mixed")
    found = writer(tmp_path, "mixed")
    near, far = found.attention("the gate", "", 1, 1), found.attention("the gate", "", 3, 1)
    assert near.visible.sum(1).max() == 3 and far.visible.sum(1).max() == 8
    assert "in layer 1, window: each query sees the last 3 keys" in near.rule
    assert "in layer 3, global" in far.rule
    with pytest.raises(InputError, match="has no weights to show"):
        found.attention("the gate", "", 2, 1)


def test_what_a_text_decoder_is_offered_is_from_its_held_out_text(runs) -> None:
    held_out = load_corpus(TextCorpus, RunReader(runs / "decoder").config.data).splits["validation"].text
    asked, *others = writer(runs, "decoder").prompts()
    assert others and all(held_out.startswith(one) or f"\n{one}" in held_out for one in (asked, *others))
    assert "\n" not in others and "The " not in others
