import json
import shutil
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.data.tokenizers import PairTokenizer
from engine.runs.reader import RunReader
from engine.training.checkpoint import load_network
from engine.training.pretrained import OWN_TOKENIZER, load_pretrained, write_pretrained
from tests.engine.proofs.verify.test_verify import TRANSLATION
from tests.tui_transformer.trained import KINDS, train

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

MORE = {
    "translation": TRANSLATION,
    "two-vocabularies": (*TRANSLATION, "data.shared_vocabulary=false"),
    "tied": ("model.tie_embeddings=true", "model.position=learned"),
}


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_the_folder_alone_gives_the_same_logits_to_the_last_bit(kind, tmp_path) -> None:
    run = train(tmp_path / "runs", kind, *(KINDS | MORE)[kind])
    step = write_pretrained(RunReader(run), "last", tmp_path / "out")
    before, tokenizer, at = load_network(RunReader(run), "last")
    shutil.rmtree(run)
    after, same = load_pretrained(tmp_path / "out")
    assert step == at and same.sha256 == tokenizer.sha256 and not after.training
    tokens = torch.arange(12)[None] % tokenizer.vocab_size
    inputs = (tokens, tokens) if before.reads_source else (tokens,)
    with torch.inference_mode():
        assert torch.equal(before(*inputs), after(*inputs))


def test_special_tokens_are_named_and_numbered(tmp_path) -> None:
    run = train(tmp_path / "runs", "translation", *TRANSLATION)
    write_pretrained(RunReader(run), "best", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "config.json").read_text())
    _, tokenizer = load_pretrained(tmp_path / "out")
    assert isinstance(tokenizer, PairTokenizer)
    size = tokenizer.vocab_size
    assert found["special_tokens"] == {"[pad]": size, "[start]": size + 1, "[end]": size + 2}
    names = json.loads((tmp_path / "out" / "special_tokens_map.json").read_text())
    assert names == {"pad_token": "[pad]", "bos_token": "[start]", "eos_token": "[end]"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("exported")
    write_pretrained(RunReader(train(root / "runs", "run")), "best", root / "out")
    return root / "out"


def test_a_folder_with_something_in_it_is_left_alone(exported) -> None:
    before = sorted(path.stat().st_mtime_ns for path in exported.iterdir())
    with pytest.raises(InputError, match="is not empty"):
        write_pretrained(RunReader(exported.parent / "runs" / "run"), "best", exported)
    assert sorted(path.stat().st_mtime_ns for path in exported.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2', must be 'tui-transformer'"),
        ({"model": {"n_heads": 3, "d_model": 16}}, "n_heads|weights of another model|cannot build"),
        ({"model": {"depth": 3}}, "unknown key 'model.depth'"),
    ],
)
def test_another_model_is_one_clear_line(change, says, exported, tmp_path) -> None:
    folder = shutil.copytree(exported, tmp_path / "copy")
    found = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(found | change))
    with pytest.raises(InputError, match=says):
        load_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", OWN_TOKENIZER])
def test_a_missing_file_is_one_clear_line(name, exported, tmp_path) -> None:
    folder = shutil.copytree(exported, tmp_path / "copy")
    (folder / name).unlink()
    with pytest.raises(InputError, match=name.removeprefix("tui_transformer_")):
        load_pretrained(folder)


def test_a_folder_of_an_earlier_version_is_loaded(exported, tmp_path) -> None:
    folder = shutil.copytree(exported, tmp_path / "copy")
    (folder / OWN_TOKENIZER).replace(folder / "tokenizer.json")
    assert load_pretrained(folder)[1].sha256 == load_pretrained(exported)[1].sha256
