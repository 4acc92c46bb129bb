"""`doctor --gpu`: its table, JSON and exit codes; and a full run on the CPU."""

import json
from pathlib import Path

import pytest

from engine.proofs.device.proof import Proof
from engine.runs.verdict import failed, passed, skipped
from tests.engine.proofs.device import planted
from tui_transformer.__main__ import main
from tui_transformer.cli.show import prove
from tui_transformer.cli.show.prove import every_proof, machine_line, rows


@pytest.fixture
def no_facts(monkeypatch) -> None:
    """Skip the facts about the machine: loading torch to collect them takes two seconds."""
    facts = {"device": "cpu", "torch": "2.13", "python": "3.11", "os": "Linux"}
    monkeypatch.setattr("engine.proofs.device.prove._machine_facts", lambda worker, device: facts)


def run_proofs(monkeypatch, proofs: list[Proof], out: Path, *, as_json: bool) -> int:
    monkeypatch.setattr(prove, "every_proof", lambda: proofs)
    return prove.prove_all(device="cpu", out=out, as_json=as_json)


HOLDING = [planted.proof(planted.holds), planted.proof(planted.cannot_tell)]


def test_every_proof_has_a_unique_name() -> None:
    names = [proof.name for proof in every_proof()]
    assert len(set(names)) == len(names)


def test_the_table_lists_every_result_and_the_exit_code_says_whether_one_failed(
    tmp_path, capsys, monkeypatch, no_facts
) -> None:
    out = tmp_path / "proof.json"
    assert run_proofs(monkeypatch, HOLDING, out, as_json=False) == 0
    said = capsys.readouterr()
    head, _, *table = said.out.splitlines()
    assert head.startswith("cpu, torch ")
    assert [line.split()[:3] for line in table] == [
        ["proof", "result", "seconds"],
        ["holds", "✓", "passed"],
        ["cannot_tell", "·", "skipped"],
    ]
    assert "doctor: 1 of 2, about 0:02 left: holds" in said.err
    assert "1 passed, 0 failed, 1 skipped in 0:" in said.err and str(out) in said.err
    assert run_proofs(monkeypatch, [planted.proof(planted.breaks)], out, as_json=False) == 1


def test_json_is_one_object_per_line(tmp_path, capsys, monkeypatch, no_facts) -> None:
    proofs = [*HOLDING, planted.proof(planted.raises)]
    assert run_proofs(monkeypatch, proofs, tmp_path / "proof.json", as_json=True) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines] == ["machine", "proof", "proof", "proof", "summary"]
    assert lines[0]["torch"] and lines[0]["project"]["version"]
    assert [line["status"] for line in lines[1:4]] == ["passed", "skipped", "failed"]
    assert (lines[4]["passed"], lines[4]["failed"], lines[4]["skipped"]) == (1, 1, 1)


def test_consecutive_equal_results_share_a_row_with_the_largest_differences() -> None:
    results = [passed("alike", loss_difference=x, steps=3) for x in (1e-6, 3e-4, 2e-5)]
    found = [(planted.proof(planted.holds, group="presets"), result) for result in results]
    found.append((planted.proof(planted.breaks, group="presets"), failed("apart")))
    found += [(planted.proof(planted.cannot_tell, group="two"), skipped("no GPU")) for _ in range(2)]
    assert [row[:2] + row[3:] for row in rows(found)] == [
        ("presets (3 proofs)", "✓ passed", "alike; largest: loss difference 3.0e-04"),
        ("breaks", "✗ failed", "apart"),
        ("cannot_tell", "· skipped", "no GPU"),
        ("cannot_tell", "· skipped", "no GPU"),
    ]


def test_a_gpu_is_named_with_its_driver_and_versions() -> None:
    facts = {"device_name": "cuda:0 H100", "capability": "9.0", "device_memory_bytes": 80 * 10**9, "driver": "580.1"}
    facts |= {"torch": "2.11.0+cu130", "python": "3.12.3", "os": "Linux"}
    expected = "cuda:0 H100, compute capability 9.0, 80.0 GB, driver 580.1, torch 2.11.0+cu130, Python 3.12.3, Linux"
    assert machine_line(facts) == expected


MISTAKES = {
    "no GPU here": (["--gpu"], "--gpu: no GPU found on this machine; --device cpu runs the same proofs on the CPU"),
    "no such device": (["--gpu", "--device", "tpu"], "must be auto, cpu, cuda, cuda:0 or mps"),
    "a run as well": (["demo", "--gpu"], "leave out 'demo'"),
    "a device without it": (["--device", "cpu"], "doctor --device: only works with --gpu"),
    "a file without it": (["--out", "x.json"], "doctor --out: only works with --gpu"),
    "a file that cannot be": (["--gpu", "--device", "cpu", "--out", "/no/where.json"], "--out /no/where.json: cannot"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_one_line(case: str, capsys, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    words, expected = MISTAKES[case]
    assert main(["doctor", *words]) == 2
    said = capsys.readouterr()
    assert expected in said.err and len(said.err.splitlines()) == 1 and not said.out


def test_the_command_runs_every_proof_on_the_named_device(tmp_path, monkeypatch, capsys, no_facts) -> None:
    monkeypatch.setattr("tui_transformer.cli.show.prove.every_proof", lambda: HOLDING)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--gpu", "--device", "cpu"]) == 0
    assert json.loads((tmp_path / prove.FILE).read_text())["machine"]["device"] == "cpu"


@pytest.mark.slow
def test_every_proof_passes_on_the_cpu(tmp_path, capsys) -> None:
    out = tmp_path / "proof.json"
    code = main(["doctor", "--gpu", "--device", "cpu", "--out", str(out)])
    proofs = json.loads(Path(out).read_text())["proofs"]
    assert code == 0, [proof for proof in proofs if proof["status"] == "failed"]
    assert all("CUDA" in proof["why"] or "compile" in proof["why"] for proof in proofs if proof["status"] == "skipped")
