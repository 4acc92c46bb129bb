import pytest

from engine.base.errors import InputError
from engine.config import keys, presets, toml
from engine.config.fields import in_steps
from engine.config.schema import RunConfig


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
    config = RunConfig().resolved(vocab_size=65, threads=2, train_tokens=10_000)
    assert toml.validate(toml.parse(toml.config_toml(config).encode(), "x"), "x") == config


def test_bookkeeping_is_left_out_of_differences() -> None:
    a = toml.validate({"log": {"every": 5}, "model": {"n_heads": 2}}, "x")
    assert keys.diff(RunConfig(), a) == {"model.n_heads": (4, 2)}


def test_every_key_is_reachable_by_its_dotted_name() -> None:
    assert set(keys.flatten(RunConfig().resolved(vocab_size=2, threads=1, train_tokens=10_000).dump())) <= set(
        keys.all_keys()
    )


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
    "no training text": (
        {"data": {"validation_fraction": 0.6, "test_fraction": 0.5}},
        "must be below 1, to leave text to train on",
    ),
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


def test_a_date_is_a_text() -> None:
    raw = b"at = 1979-05-27\n[data]\ncorpus = [{x = 1979-05-27T07:32:00Z}, 07:32:00]"
    found = {"at": "1979-05-27", "data": {"corpus": [{"x": "1979-05-27T07:32:00+00:00"}, "07:32:00"]}}
    assert toml.parse(raw, "x") == found


def test_a_large_file_is_not_read(tmp_path) -> None:
    path = tmp_path / "big.toml"
    path.write_bytes(b"# x\n" * 20_000)
    with pytest.raises(InputError, match="64 KiB"):
        toml.read_toml(path)


UNITS = {"steps_per_epoch": 40, "tokens_per_step": 64}


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        *[(100, 100), ("100 steps", 100), ("5 epochs", 200), ("1 epoch", 40), ("0.5 epochs", 20)],
        *[("640 tokens", 10), ("1 token", 1), ("0 tokens", 0), (0, 0)],
    ],
)
def test_durations_become_steps(given, steps: int) -> None:
    checked = RunConfig.model_validate({"optimizer": {"warmup": given}}).optimizer.warmup
    assert in_steps(checked, **UNITS) == steps


@pytest.mark.parametrize(
    "given", ["", "5", "five epochs", "-1 epochs", "1e9 epochs", "5 years", True, 1.5, -1, [1], "9" * 99]
)
def test_bad_durations_are_refused(given) -> None:
    with pytest.raises(InputError, match="optimizer.warmup"):
        toml.validate({"optimizer": {"warmup": given}}, "x")


def test_epochs_and_token_batches_resolve_when_the_run_starts() -> None:
    config = toml.validate(
        {
            "model": {"context_length": 10},
            "train": {"epochs": 2.0, "batch_tokens": 50, "accumulation": 2},
            "optimizer": {"warmup": "1000 tokens", "decay_every": "1 epoch"},
            "data": {"window_stride": 1},
        },
        "x",
    ).resolved(vocab_size=5, threads=1, train_tokens=111)
    # 101 windows start so that input and target fit; 10 a step
    assert (config.train.batch_size, config.train.steps) == (5, 22)
    assert (config.optimizer.warmup, config.optimizer.decay_every) == (10, 11)
    assert config.train.epochs is None and config.train.batch_tokens is None


def test_the_founding_reports_epoch_has_its_number_of_steps() -> None:
    config = toml.validate({"data": {"window_stride": 1}, "train": {"epochs": 30.0}}, "x")
    assert config.resolved(vocab_size=65, threads=1, train_tokens=1_003_854).train.steps == 470_520


def test_saying_the_same_twice_is_refused_in_one_place_and_replaced_over_another() -> None:
    with pytest.raises(InputError, match="set steps or epochs, not both"):
        toml.validate({"train": {"steps": 5, "epochs": 1.0}}, "x")
    merged = presets.merge({"train": {"steps": 5, "batch_size": 3}}, {"train": {"epochs": 1.0}})
    assert merged == {"train": {"epochs": 1.0, "batch_size": 3}}


def test_playlets_are_scored_with_half_a_context_of_history_unless_told_otherwise() -> None:
    def stride(**tables: dict) -> int:
        return RunConfig.model_validate({"model": {"context_length": 100}} | tables).evaluation_stride

    assert stride() == 50
    assert stride(evaluation={"stride": 100}) == 100
    assert stride(data={"corpus": "notes.txt"}) == 100
    assert stride(objective={"kind": "masked"}, model={"context_length": 100, "architecture": "encoder"}) == 100
    assert RunConfig.model_validate({"model": {"context_length": 1}}).evaluation_stride == 1
