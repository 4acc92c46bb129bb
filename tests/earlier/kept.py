"""What is kept: how runs are taken out to be used, what may vary in an answer, and when two answers are alike."""

import difflib
import hashlib
import json
import math
import re
import socket
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from engine.config.keys import later_defaults
from tests.earlier.asking import Answer, ask
from tests.earlier.commands import CPU, Commands, words
from tests.tui_transformer.screen import Screen

KEPT = Path(__file__).parent
EXPECTED = KEPT / "expected"
MACHINE = "machine.json"
RUNS, READINGS = "runs.tar.gz", "readings.tar.gz"
FOLDER, HOST = "@the-folder-it-was-made-in@", "the-host-it-was-made-on"
TEXTS = (".json", ".jsonl", ".toml", ".txt")
SHOWN = (".md", ".html", ".tex", ".csv", ".json", ".txt", ".svg")
NEAR = 1e-4  # relative: losses on another machine
NEAR_AS_SHOWN = 5e-3  # the same of numbers as they are printed, and of differences between them
CLOCKS = {"seconds", "tokens_per_second", "device_load", "memory_bytes", "interval_seconds"}
LATER = {"bits_per_byte", "word_perplexity", "unknown"}  # scores that the earlier version did not record
_ANSWER = re.compile(r"^==== (.+)\n", re.MULTILINE)  # begins each answer of a group

# What varies from one time to the next, on one machine: version, measured times, and the columns that they widen.
_SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
# Settings that came later, at what was done without them: a line each of JSON.
_LATER = "|".join(rf'"{key.split(".")[1]}": {re.escape(json.dumps(off))}' for key, off in later_defaults().items())
_VARIES = (
    (re.compile(rf"^ *(?:{_LATER}),?\n", re.MULTILINE), ""),
    (re.compile(r",(?=\n *\})"), ""),  # what was before the last of them
    (re.compile(r"tui-transformer \d+\.\d+\.\d+\w*"), "tui-transformer VERSION"),
    (re.compile(r'"(tui_transformer_version|version)": "\d+\.\d+\.\d+\w*"'), r'"\1": "VERSION"'),
    (re.compile(r"[\w.]+\.load_pretrained"), "MODULE.load_pretrained"),
    (re.compile(r"version:\d+\.\d+\.\d+"), "version:VERSION"),  # of sacrebleu
    (re.compile(r"one step takes .*? on cpu \(.*? tok/s\)"), "one step takes TIME on cpu"),
    (re.compile(r" +≈ [\d:.,]+(?: (?:ms|s|min|h|days))?(?= |$|:)", re.MULTILINE), " ≈ TIME"),
    (re.compile(r"^≈ [\d:.,]+ (?:ms|s|min|h|days) +", re.MULTILINE), "≈ TIME "),
    (re.compile(r"(?<=≈ TIME) +"), " "),
    (re.compile(r"(?:A|PER) RUN +"), "A RUN "),
    (re.compile(r'"(seconds|seconds_per_step|saves_from|ratio)": (?:[\d.e+-]+|null)'), r'"\1": TIME'),
    (
        re.compile(r"to the last bit|within rounding(?: error)? \(processor was [^\n]*?\)(?= |,|;|\.|\"|\n|$)"),
        "AS EXACT AS ITS PROCESSOR",
    ),
    # Weights at step 0 are compared only where the processor is known to be the same; earlier versions did not name it.
    (re.compile(r"; the checkpoint (?:at|of) step 0 has them"), ""),
    (re.compile(r"saves (?:no )?time .*?\(forward"), "saves TIME (forward"),
)
_PICTURE = re.compile(r"^sha256 [0-9a-f]{64}$|<svg sha256=[0-9a-f]{64}>", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_CLAIM = re.compile(r"^([✓✗–]) (\S+(?: \S+)*?)  ", re.MULTILINE)


def take_out(folder: Path, kept: str = RUNS) -> Path:
    """All runs, studies and settings, in an empty folder; the runs are of this machine, so that none seems to live."""
    with tarfile.open(KEPT / kept) as archive:
        archive.extractall(folder, filter="data")
    here = {f'"{HOST}"': json.dumps(socket.gethostname()), FOLDER: str(folder)}
    for path in folder.rglob("*"):
        if path.suffix in (".json", ".toml"):
            text = path.read_text(encoding="utf-8")
            if any(name in text for name in here):
                for name, mine in here.items():
                    text = text.replace(name, mine)
                path.write_text(text, encoding="utf-8")
    return folder


def studio(folder: Path, variables: Mapping[str, str], *arguments: str) -> Screen:
    """The studio on a terminal of its own, with the settings that are in a folder's home."""
    variables = {name: value for name, value in variables.items() if name not in ("TERM", "COLUMNS", "NO_COLOR")}
    settings = folder / "home" / "config" / "tui-transformer" / "settings.toml"
    return Screen("--device", "cpu", *arguments, settings=settings, environment=variables, size=(200, 50))


def machine() -> dict[str, str]:
    """What decides the bits of a sum: equal machines give equal weights."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "unknown"
    return {"torch": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability(), "processor": name}


def same_machine(recorded: Mapping[str, str] | None = None) -> bool:
    """Whether this one gives the bits of the one where everything was recorded."""
    made_on = recorded if recorded is not None else json.loads((EXPECTED / MACHINE).read_text(encoding="utf-8"))
    return machine() == made_on


# Answers


def answers(commands: Commands, folder: Path, cache: Path, resume: Sequence[str] = ()) -> dict[str, str]:
    """What the program says and writes, command by command, without what varies.

    Args:
        commands: by name.
        folder: to stand in.
        cache: of generated corpora.
        resume: runs to go on with after all that, in the same process.
    """
    (folder / "out" / "by-distance-svg").mkdir(parents=True, exist_ok=True)
    asked = [words(name, commands) for name in commands]
    found = ask([*asked, *(("resume", run, *CPU) for run in resume)], folder, cache)
    assert [answer.code for answer in found[len(asked) :]] == [0] * len(resume), found[len(asked) :]
    pairs = zip(commands, asked, found, strict=False)
    return {name: _in_full(name, command, said, folder) for name, command, said in pairs}


def _in_full(name: str, command: list[str], said: Answer, folder: Path) -> str:
    parts = [f"$ {' '.join(command)}", f"exit code {said.code}"]
    parts += [f"--- {stream}\n{plain(text, folder)}" for stream, text in (("stdout", said.out), ("stderr", said.err))]
    written = folder / "out" / name
    for path in sorted(path for path in written.rglob("*") if path.is_file()):
        parts.append(f"--- {path.relative_to(written).as_posix()}\n{_shown(path, folder)}")
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _shown(path: Path, folder: Path) -> str:
    if path.suffix == ".safetensors":
        return f"tensors {tensors_sha256(path)}"
    if path.suffix in SHOWN:
        text = plain(path.read_text(encoding="utf-8"), folder)
        return _SVG.sub(lambda found: f"<svg sha256={hashlib.sha256(found[0].encode()).hexdigest()}>", text)
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"


def plain(text: str, folder: Path) -> str:
    """A text without what varies; the only place that says what does."""
    text = text.replace(str(folder), "HERE").replace(json.dumps(socket.gethostname()), '"HOST"')
    for pattern, instead in _VARIES:
        text = pattern.sub(instead, text)
    return text


def expected_of(group: str) -> dict[str, str]:
    """The expected answers of a group, by name; all stand in one file, since a change to one table changes many."""
    _, *parts = _ANSWER.split((EXPECTED / f"{group}.txt").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def write_expected(group: str, expected: Mapping[str, str]) -> None:
    """Write what `expected_of` reads."""
    text = "".join(f"==== {name}\n{answer}" for name, answer in expected.items())
    (EXPECTED / f"{group}.txt").write_text(text, encoding="utf-8")


def differences(found: Mapping[str, str], group: str, *, exact: bool) -> str:
    """How answers differ from the expected ones of a group, as a person reads it; "" where none does."""
    lines: list[str] = []
    earlier = expected_of(group)
    for name, text in found.items():
        expected = earlier[name]
        if not same_machine():  # other fonts, and other last digits, are other pictures
            text, expected = (_PICTURE.sub("PICTURE", one) for one in (text, expected))
        if text != expected and (exact or not alike(text, expected)):
            lines += difflib.unified_diff(expected.splitlines(), text.splitlines(), f"{name}, earlier", name, "", "", 1)
    return "\n".join(line[:400] for line in lines)


def alike(found: str, expected: str) -> bool:
    """Whether two answers agree but for the last digits of their numbers; claims of `verify` but for their words."""
    if expected.startswith("$ verify"):
        return _claims(found) == _claims(expected)
    if " ".join(_NUMBER.split(found)).split() != " ".join(_NUMBER.split(expected)).split():
        return False
    pairs = zip(_NUMBER.findall(found), _NUMBER.findall(expected), strict=True)
    values = ((float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs)
    return all(math.isclose(a, b, rel_tol=NEAR_AS_SHOWN, abs_tol=NEAR_AS_SHOWN) for a, b in values)


def _claims(text: str) -> list[tuple[str, str]]:
    as_json = [json.loads(line) for line in text.splitlines() if line.startswith('{"kind": "claim"')]
    return _CLAIM.findall(text) + [(claim["claim"], claim["result"]) for claim in as_json]


# Runs that have ended


def ended(run: Path) -> dict[str, Any]:
    """How a run ended: its weights and moments, all losses, what it wrote and what its checks said."""
    checkpoints = run / "checkpoints"
    last = checkpoints / (checkpoints / "last").read_text(encoding="utf-8").strip()
    status = _json(run / "status.json")
    metrics = list(_lines(run / "metrics.jsonl"))
    average = checkpoints / "average" / "model.safetensors"
    return {
        "state": status["state"],
        "step": status["step"],
        "weights": tensors_sha256(last / "model.safetensors"),
        "moments": tensors_sha256(last / "optimizer.safetensors"),
        "average": tensors_sha256(average) if average.exists() else None,
        "best": (checkpoints / "best").read_text(encoding="utf-8").strip(),
        "metrics": _sha256([{key: row[key] for key in sorted(row.keys() - CLOCKS - LATER)} for row in metrics]),
        "samples": _sha256(list(_lines(run / "samples.jsonl"))),
        "verdicts": [[v["check"], v["when"], v["verdict"]] for v in _json(run / "checks.json")["verdicts"]],
        "losses": [[row["kind"], row["step"], row["loss"]] for row in metrics],
    }


def resumed(runs: Sequence[str], folder: Path, cache: Path) -> dict[str, dict[str, Any]]:
    """How runs end that are gone on with."""
    answers({}, folder, cache, runs)
    return {run: ended(folder / "runs" / run) for run in runs}


def study_gone_on_with(folder: Path, cache: Path) -> dict[str, dict[str, Any]]:
    """How the runs end of the study that was stopped half-way."""
    [answer] = ask([("ablate", "--study", "stages", "--jobs", "1", *CPU)], folder, cache)
    assert answer.code == 0, answer
    return {run.name: ended(run) for run in sorted((folder / "runs").glob("stages.*.s?"))}


def same_end(found: Mapping[str, Any], expected: Mapping[str, Any], *, exact: bool) -> bool:
    """Whether a run ended as it did: to the bit on an equal machine, else with the same losses but for `NEAR`."""
    if exact:
        return found == expected
    pairs = list(zip(found["losses"], expected["losses"], strict=True))
    return all(a[:2] == b[:2] and math.isclose(a[2], b[2], rel_tol=NEAR) for a, b in pairs) and (
        found["state"] == expected["state"]
    )


def tensors_sha256(file: Path) -> str:
    """Of all tensors with their names, types and shapes, in the order of their names."""
    digest = hashlib.sha256()
    with safe_open(file, framework="numpy") as tensors:
        for name in sorted(tensors.keys()):
            value = tensors.get_tensor(name)
            digest.update(f"{name} {value.dtype} {value.shape}\n".encode())
            digest.update(value.tobytes())
    return digest.hexdigest()


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)
