"""`bench` at the smallest effort: its output's shape, never its numbers."""

import json

import pytest
import torch

from engine.config import presets
from engine.config.schema import RunConfig
from engine.proofs.bench.cases import CASES, BenchmarkSpec, CaseResult
from engine.proofs.bench.measure import linear_map_counts_and_shapes
from tui_transformer.__main__ import main
from tui_transformer.cli.show.bench import MARK, _title

LEAST = ["--rounds", "1", "--seconds", "0.01", "--device", "cpu"]


def test_training_is_timed_beside_torchs_own_and_the_limit(capsys, tmp_path) -> None:
    page = tmp_path / "benchmarks.md"
    other = "## sampling, fp32, batch 1 (tokens/s)\n\nanother day\n\n| a table |\n"
    same = "## training, fp32, demo (tokens/s)\n\nlast year\n"
    page.write_text(f"# Old\n\n{other}\n{same}\n## Notes\n\nWhat was tried.\n")
    command = ["bench", "--case", "training", "--size", "demo", "--against", "torch", "--precision", "fp32", "--json"]
    assert main([*command, *LEAST, "--write", str(page)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [s["name"] for s in result["speeds"]] == ["tui-transformer", "torch"] and result["limit"] > 0
    assert all(0 < s["low"] <= s["median"] <= s["high"] for s in result["speeds"])
    text = page.read_text()
    assert "| matrix products alone |" in text and text.endswith("\n## Notes\n\nWhat was tried.\n")
    assert other in text and "Old" not in text and "last year" not in text


def test_one_command_measures_several_sizes_beside_all_installed_peers(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("engine.proofs.bench.peers.importlib.util.find_spec", lambda name: name == "torch" or None)
    monkeypatch.setattr("engine.proofs.bench.cases.LENGTHS", (64,))
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Benchmarks\n\n{MARK}\n\nAn introduction.\n\n## Notes\n")
    command = ["bench", "--case", "training,attention", "--precision", "fp32", "--against", "installed"]
    assert main([*command, "--size", "demo,shakespeare-cpu", *LEAST, "--write", str(page)]) == 0
    assert [line for line in page.read_text().splitlines() if line.startswith("## ")] == [
        "## training, fp32, demo (tokens/s)",
        "## attention, T = 64 (tokens/s)",
        "## training, fp32, shakespeare-cpu (tokens/s)",
        "## Notes",
    ]
    assert page.read_text().count("| torch |") == 2 and "An introduction." in page.read_text()
    assert "training, fp32, shakespeare-cpu, tokens/s" in capsys.readouterr().out


def test_a_gpus_tables_do_not_replace_a_cpus() -> None:
    result = CaseResult("training", "bf16", "tokens/s", [])
    assert _title(result, "baseline", "cpu") == "## training, bf16 (tokens/s)"
    assert _title(result, "nanogpt", "cuda:0 H100") == "## training, bf16, nanogpt, cuda:0 H100 (tokens/s)"


def test_on_a_gpu_one_command_measures_every_size_and_skips_what_does_not_fit(capsys, monkeypatch) -> None:
    asked: list[tuple[str, str]] = []
    wanted: list[BenchmarkSpec] = []

    def case(name: str):
        def timed(given: BenchmarkSpec):
            asked.append((name, given.config.preset))
            wanted.append(given)
            if given.config.preset == "gpt2-small":
                raise torch.OutOfMemoryError("CUDA out of memory")
            return iter(())

        return timed

    monkeypatch.setattr("engine.model.devices.resolve_device", lambda name: torch.device("cuda", 0))
    monkeypatch.setattr("engine.model.devices.device_name", lambda device: "cuda:0 H100")
    monkeypatch.setattr("engine.proofs.bench.cases.CASES", {name: case(name) for name in CASES})
    assert main(["bench", "--device", "cuda"]) == 0
    sizes = ("baseline", "nanogpt", "gpt2-small", "win16", "linear")
    each = [(name, size) for size in sizes for name in ("training", "sampling")]
    assert asked == [*each[:2], ("attention", "baseline"), *each[2:]]
    assert set(wanted[0].precisions) == {"bf16", "fp32-fast", "fp32"} and "torch" in wanted[0].against
    assert "bench: training, gpt2-small: does not fit in the memory of cuda:0" in capsys.readouterr().err


def spec(config: RunConfig) -> BenchmarkSpec:
    return BenchmarkSpec(config, ("fp32",), ("torch",), torch.device("cpu"), 1, 1, 0.01)


def test_a_network_that_does_not_see_all_tokens_is_timed_without_peers() -> None:
    found = {}
    for name in ("baseline", "win16", "linear"):
        config = presets.resolve(presets.find(name))
        found[name] = spec(config).peers
    assert found == {"baseline": ("torch",), "win16": (), "linear": ()}


def test_the_limit_is_computed_for_the_models_own_vocabulary() -> None:
    config = presets.resolve(presets.find("gpt2-small"))
    config = spec(config).resolved(config, "fp32")
    assert config.model.vocab_size == 50257 and linear_map_counts_and_shapes(config, 50257)[-1][-1] == 50257


@pytest.mark.slow
def test_all_that_is_not_training_is_timed_too(capsys) -> None:
    command = ["bench", "--case", "trainer,evaluation,sampling", "--size", "demo", "--precision", "fp32", "--json"]
    assert main([*command, *LEAST, "--against", "torch"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [(r["case"], [s["name"] for s in r["speeds"]]) for r in results]
    assert found == [
        ("trainer", ["trainer", "bare loop"]),
        ("evaluation", ["tui-transformer", "torch"]),
        ("sampling", ["tui-transformer"]),
        ("sampling", ["tui-transformer"]),
    ]


@pytest.mark.parametrize(
    "wrong", [["--case", "training", "--against", "nano"], ["--case", "x"], ["--precision", "fp8"]]
)
def test_bench_mistakes_are_one_line(wrong: list[str], capsys) -> None:
    assert main(["bench", *wrong, *LEAST, "--size", "demo"]) == 2
    assert "must be" in [line for line in capsys.readouterr().err.splitlines() if "warming" not in line][-1]
