import pytest

from engine.config import keys, toml
from engine.config.schema import RunConfig
from engine.errors import InputError


def test_defaults_are_the_baseline() -> None:
    model = RunConfig().model
    assert (model.n_layers, model.n_heads, model.d_model, model.d_ff, model.context_length) == (4, 4, 256, 1024, 128)
    assert RunConfig().optimizer.betas == (0.9, 0.98)


def test_derived_defaults_follow_what_they_derive_from() -> None:
    config = toml.validate({"model": {"d_model": 32, "dropout": 0.3, "norm_placement": "post"}}, "x")
    assert config.model.d_ff == 128
    assert config.model.attention_dropout == config.model.ff_dropout == 0.3
    assert config.model.final_norm is False


def test_written_config_reads_back_equal() -> None:
    config = RunConfig().resolved(vocab_size=65, threads=2)
    assert toml.validate(toml.parse(toml.write(config).encode(), "x"), "x") == config


def test_bookkeeping_is_left_out_of_differences() -> None:
    a = toml.validate({"log": {"every": 5}, "model": {"n_heads": 2}}, "x")
    assert keys.diff(RunConfig(), a) == {"model.n_heads": (4, 2)}
    assert "log.every" in keys.diff(RunConfig(), a, with_bookkeeping=True)


def test_every_key_is_reachable_by_its_dotted_name() -> None:
    assert set(keys.flatten(RunConfig().resolved(vocab_size=2, threads=1).dump())) <= set(keys.all_keys())


def test_a_miniature_keeps_the_function_and_shrinks_the_size(tiny) -> None:
    config = tiny("model.position=rope", "model.norm_placement=post", "model.n_heads=8")
    small = config.miniature()
    assert (small.model.position, small.model.norm_placement) == ("rope", "post")
    assert small.train.steps <= 8 and small.model.d_model <= 32


WRONG = {
    "unknown section": ({"modle": {}}, "unknown key 'modle'; did you mean 'model'"),
    "unknown key": ({"model": {"n_head": 2}}, "did you mean 'model.n_heads'"),
    "key of another section": ({"train": {"lr": 1}}, "unknown key 'train.lr'; did you mean"),
    "wrong type": ({"model": {"n_heads": "four"}}, "model.n_heads = 'four'"),
    "a table for a number": ({"train": {"steps": {"a": 1}}}, "train.steps"),
    "a number for a table": ({"model": 3}, "model = 3"),
    "not a choice": ({"model": {"position": "rop"}}, "did you mean 'rope'"),
    "negative": ({"model": {"n_layers": -1}}, "model.n_layers = -1"),
    "zero width": ({"model": {"d_model": 0}}, "model.d_model = 0"),
    "dropout 1": ({"model": {"dropout": 1.0}}, "model.dropout = 1.0"),
    "nan": ({"optimizer": {"lr": float("nan")}}, "optimizer.lr"),
    "infinite": ({"optimizer": {"lr": float("inf")}}, "optimizer.lr"),
    "three betas": ({"optimizer": {"betas": [0.9, 0.9, 0.9]}}, "optimizer.betas"),
    "step without interval": ({"optimizer": {"schedule": "step"}}, "decay_every"),
    "min above max": ({"optimizer": {"lr": 1e-4, "min_lr": 1e-3}}, "min_lr 0.001 is above lr 0.0001"),
    "no training text": ({"data": {"validation_fraction": 0.6, "test_fraction": 0.5}}, "leave some text"),
    "schema from the future": ({"schema": 2}, "schema = 2"),
    "huge seed": ({"seed": 2**70}, "seed"),
    "boolean for a count": ({"train": {"steps": "yes"}}, "train.steps = 'yes'"),
}


@pytest.mark.parametrize(("tables", "said"), WRONG.values(), ids=WRONG.keys())
def test_wrong_settings_are_named_in_one_line(tables: dict, said: str) -> None:
    with pytest.raises(InputError) as caught:
        toml.validate(tables, "my.toml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


BAD_TOML = {
    "not toml": b"model = = 3",
    "not utf-8": b"description = '\xff\xfe'",
    "deep": b"a = " + b"[" * 5000 + b"]" * 5000,
    "deep over lines": b"a = " + b"[\n" * 5000 + b"]\n" * 5000,
    "deep tables": b"a = " + b"{ x = " * 500 + b"1" + b"}" * 500,
    "a long dotted key": b"a." * 12_000 + b"a = 1",
    "long header": b"[" + b"a." * 12_000 + b"a]\n",
    "duplicate": b"seed = 1\nseed = 2",
}


@pytest.mark.parametrize("raw", BAD_TOML.values(), ids=BAD_TOML.keys())
def test_bad_toml_is_refused_at_once(raw: bytes) -> None:
    with pytest.raises(InputError):
        toml.parse(raw, "my.toml")


def test_a_large_file_is_not_read(tmp_path) -> None:
    path = tmp_path / "big.toml"
    path.write_bytes(b"# x\n" * 20_000)
    with pytest.raises(InputError, match="64 KiB"):
        toml.read(path)
