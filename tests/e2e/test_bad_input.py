"""Bad input at every door: one line on stderr that says what would be right, exit code 2, nothing lost or half made.

Generated input: tests/fuzz.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_transformer.__main__ import main

TINY = [
    *("train.steps=2", "train.batch_size=2", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("model.context_length=16", "evaluation.sample_length=4", "optimizer.warmup=1", "data.corpus_size=20000"),
]
OVERRIDES = [part for setting in TINY for part in ("--set", setting)]
RUN = ["run", "--preset", "demo", *OVERRIDES, "--device", "cpu"]

PAIRS = [
    *("train.steps=2", "train.batch_tokens=100", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("optimizer.warmup=1", "data.bpe_size=300", "evaluation.translations=2", "data.corpus_size=2000"),
]
RUN_PAIRS = [
    "run",
    *("--preset", "phrasebook", *(part for setting in PAIRS for part in ("--set", setting)), "--device", "cpu"),
]

# A case is a command line, or a function that prepares a folder and gives one.
Case = list[str] | Callable[[Path], list[str]]


def config(text: str | bytes) -> Callable[[Path], list[str]]:
    """`run --config` on a file of this content."""

    def prepare(folder: Path) -> list[str]:
        path = folder / "my.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return ["run", "--config", str(path)]

    return prepare


def corpus(content: bytes) -> Callable[[Path], list[str]]:
    """`run --corpus` on a file of this content."""

    def prepare(folder: Path) -> list[str]:
        path = folder / "text.txt"
        path.write_bytes(content)
        return [*RUN, "--corpus", str(path)]

    return prepare


def pairs(content: bytes, other: bytes | None = None) -> Callable[[Path], list[str]]:
    """`run --corpus` on a table of this content, or on two files."""

    def prepare(folder: Path) -> list[str]:
        if other is None:
            (folder / "pairs.tsv").write_bytes(content)
            return [*RUN_PAIRS, "--corpus", str(folder / "pairs.tsv")]
        (folder / "a.en").write_bytes(content)
        (folder / "a.de").write_bytes(other)
        return [*RUN_PAIRS, "--corpus", f"{folder / 'a.en'},{folder / 'a.de'}"]

    return prepare


def damaged(name: str, content: str | None) -> Callable[[Path], list[str]]:
    """`sample` from a run with one damaged or missing file."""

    def prepare(folder: Path) -> list[str]:
        shutil.copytree(folder / "good", folder / "runs" / "broken")
        path = folder / "runs" / "broken" / name
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        return ["sample", "broken", "--prompt", "a"]

    return prepare


def checkpoint_file(name: str, content: bytes) -> Callable[[Path], list[str]]:
    """`sample` from a run whose last checkpoint has one damaged file."""

    def prepare(folder: Path) -> list[str]:
        shutil.copytree(folder / "good", folder / "runs" / "broken")
        (folder / "runs" / "broken" / "checkpoints" / "step-00000002" / name).write_bytes(content)
        return ["sample", "broken", "--checkpoint", "last", "--prompt", "a"]

    return prepare


CASES: dict[str, Case] = {
    # flags
    "nothing to build": ["run"],
    "two things to build": ["run", "--preset", "demo", "--config", "x.toml"],
    "unknown command": ["rum"],
    "unknown group command": ["presets", "lst"],
    "unknown flag": ["run", "--preest", "demo"],
    "unknown short flag": ["run", "-x"],
    "a flag without its value": ["run", "--preset"],
    "an argument too many": ["sample", "a", "b"],
    "an argument too few": ["presets", "diff", "demo"],
    "a word for a seed": ["run", "--preset", "demo", "--seed", "one"],
    "a fraction for a seed": ["run", "--preset", "demo", "--seed", "1.5"],
    "a negative seed": [*RUN, "--seed", "-1"],
    "a huge seed": [*RUN, "--seed", "9" * 30],
    "unknown device": [*RUN, "--device", "tpu"],
    "nonsense device": [*RUN, "--device", "cuda:x"],
    "missing device": [*RUN, "--device", "cuda:99"],
    "a device that keeps nothing": [*RUN, "--device", "meta"],
    "empty device": [*RUN, "--device", ""],
    "an escape in a flag": ["run", "--\x1b[2J"],
    # presets
    "unknown preset": ["run", "--preset", "dmo"],
    "empty preset": ["run", "--preset", ""],
    "a path as preset": ["run", "--preset", "../presets/demo"],
    "unknown base": ["run", "--preset", "rope", "--on", "dem"],
    "a base on a base": ["run", "--preset", "demo", "--on", "baseline"],
    "unknown preset to show": ["presets", "show", "x"],
    # --set
    "unknown key": [*RUN, "--set", "model.heads=2"],
    "no value": [*RUN, "--set", "model.n_heads"],
    "empty override": [*RUN, "--set", ""],
    "a section as key": [*RUN, "--set", "model=3"],
    "a key too deep": [*RUN, "--set", "model.n_heads.x=3"],
    "a long key": [*RUN, "--set", "a." * 10_000 + "=1"],
    "impossible heads": [*RUN, "--set", "model.n_heads=5"],
    "rope on odd heads": [*RUN, "--set", "model.d_model=6", "--set", "model.n_heads=2"],
    "negative layers": [*RUN, "--set", "model.n_layers=-2"],
    "a million layers": [*RUN, "--set", "model.n_layers=1000000"],
    "nan": [*RUN, "--set", "optimizer.lr=nan"],
    "infinite": [*RUN, "--set", "optimizer.lr=1e999"],
    "a list for a number": [*RUN, "--set", "train.steps=[1,2]"],
    "a deep value": [*RUN, "--set", "train.steps=" + "[" * 3000],
    "a bad duration": [*RUN, "--set", "optimizer.warmup=5 years"],
    "no run to start from": [*RUN, "--set", "train.init_from=nowhere"],
    "no checkpoint to start from": [*RUN, "--set", "train.init_from=nowhere@bset"],
    "a number to start from": [*RUN, "--set", "train.init_from=3"],
    "steps and epochs": [*RUN, "--set", "train.epochs=1", "--set", "train.epochs=-1"],
    "vocabulary too small": [*RUN, "--set", "model.vocab_size=3"],
    "a prompt with unseen characters": [*RUN, "--set", "evaluation.sample_prompt=日本"],
    # config files
    "missing config": ["run", "--config", "nowhere.toml"],
    "a folder as config": ["run", "--config", "."],
    "a device file as config": ["run", "--config", "/dev/null/x"],
    "not TOML": config("model = = 3"),
    "not UTF-8": config(b"description = '\xff\xfe'"),
    "binary": config(bytes(range(256))),
    "oversized": config("# x\n" * 20_000),
    "deep brackets": config("a = " + "[" * 9000),
    "deep dotted key": config("a." * 20_000 + "b = 1"),
    "unknown section": config("[modle]\nn_heads = 2"),
    "unknown key in a file": config("[model]\nn_head = 2"),
    "wrong type": config("[model]\nn_heads = 'four'"),
    "a number for a section": config("model = 3"),
    "a deep quoted key": config('seed."a"' + '."a"' * 1500 + " = 1"),
    "a deep quoted header": config("[seed" + '."a"' * 1500 + "]"),
    "a boolean for a count": config("[train]\nsteps = true"),
    "a text for a switch": config("[model]\nbias = 'yes'"),
    "unknown extends": config("extends = 'basline'"),
    "a number to extend": config("extends = 3"),
    "a list as description": config("description = []"),
    "a future schema": config("schema = 99"),
    "an escape in a key": config('"\\u001b[2J" = 1'),
    "nan in a file": config("[optimizer]\nlr = nan"),
    "saying it twice": config("[train]\nsteps = 5\nepochs = 2.0"),
    # corpora
    "unknown corpus": [*RUN, "--corpus", "playlet"],
    "empty corpus name": [*RUN, "--corpus", ""],
    "missing file": [*RUN, "--corpus", "nowhere.txt"],
    "a folder as corpus": [*RUN, "--corpus", "/"],
    "an escape in a corpus": [*RUN, "--corpus", "\x1b]0;x\x07.txt"],
    "a long corpus": [*RUN, "--corpus", "x/" * 3000],
    "a zero byte in a corpus": [*RUN, "--corpus", "a\x00b.txt"],
    "a device as corpus": [*RUN, "--corpus", "/dev/zero"],
    "a long name as corpus": [*RUN, "--corpus", "a" * 300],
    "only a byte-order mark": corpus(b"\xef\xbb\xbf"),
    "a zero byte far into the text": corpus(b"text " * 40_000 + b"\x00"),
    "a corpus too small to split": [*RUN, "--set", "data.corpus_size=2000"],
    "a corpus too large to make": [*RUN, "--set", "data.corpus_size=1000000000"],
    "a model too large": [*RUN, "--set", "model.d_model=1000000", "--set", "model.d_ff=1000000"],
    "empty text": corpus(b""),
    "blank text": corpus(b"\n \n"),
    "binary text": corpus(b"\x00\x01" * 5000),
    "latin-1 text": corpus("Grüße ".encode("latin-1") * 1000),
    "utf-16 text": corpus("Grüße ".encode("utf-16-be") * 100),
    "text shorter than the context": corpus(b"abc"),
    "text of little more than the context": corpus(b"abcdefghijklmnopqr"),
    "nobody's home": [*RUN, "--corpus", "~nobody-at-all/text.txt"],
    # sentence pairs
    "unknown pairs": [*RUN_PAIRS, "--corpus", "phrasebok"],
    "pairs for a text": [*RUN, "--corpus", "phrasebook"],
    "a text for pairs": [*RUN_PAIRS, "--corpus", "playlets"],
    "too few pairs": [*RUN_PAIRS, "--set", "data.corpus_size=2000000000000"],
    "a missing table": [*RUN_PAIRS, "--corpus", "nowhere.tsv"],
    "an empty table": pairs(b""),
    "a table of one column": pairs(b"one\ntwo\n" * 50),
    "a table with a short row": pairs(b"a\tb\n" * 50 + b"alone\n"),
    "a table with an empty side": pairs(b"a\tb\n" * 50 + b"\tb\n"),
    "a table that is not UTF-8": pairs(b"a\tb\n" * 50 + b"\xff\tb\n"),
    "a table with an escape in it": pairs(b"a\x1b[2J\n" * 50),
    "a table of one pair": pairs(b"a\tb\n"),
    "one file longer than the other": pairs(b"a\nb\nc\n" * 50, b"a\nb\nc\n" * 49),
    "one file and no other": [*RUN_PAIRS, "--corpus", "a.en,nowhere.de"],
    "byte pairs for a text": [*RUN, "--set", "data.tokenizer=bpe"],
    "too few byte pairs": [*RUN_PAIRS, "--set", "data.bpe_size=100"],
    "too small a vocabulary for byte pairs": [*RUN_PAIRS, "--set", "model.vocab_size=200"],
    "sentences longer than a batch": [*RUN_PAIRS, "--set", "train.batch_tokens=2"],
    "no sentence short enough": [*RUN_PAIRS, "--set", "data.max_length=1"],
    "a BLEU of a text": [*RUN, "--set", "evaluation.select=bleu"],
    "windows of sentences": [*RUN_PAIRS, "--set", "data.window_stride=4"],
    "no warm-up to fall from": [*RUN_PAIRS, "--set", "optimizer.schedule=inverse-sqrt", "--set", "optimizer.warmup=0"],
    "two vocabularies of a text": [*RUN, "--set", "data.shared_vocabulary=false"],
    "a source vocabulary that is shared": [*RUN_PAIRS, "--set", "model.source_vocab_size=400"],
    "a text's run to translate": ["translate", "good", "--text", "a"],
    "nothing to translate with": ["translate", "nothing", "--text", "a"],
    "a beam of nothing": ["translate", "good", "--text", "a", "--beam", "0"],
    "a beam for a text": ["evaluate", "good", "--beam", "3"],
    "unknown corpus to show": ["data", "show", "playlet"],
    "unknown corpus to fetch": ["data", "fetch", "tiny"],
    # names and runs
    "a name that leaves the folder": [*RUN, "--name", "../evil"],
    "a hidden name": [*RUN, "--name", ".evil"],
    "the name last": [*RUN, "--name", "last"],
    "an empty name": [*RUN, "--name", ""],
    "an escape in a name": [*RUN, "--name", "\x1b[2J"],
    "a long name": [*RUN, "--name", "x" * 300],
    "no such run": ["sample", "nothing", "--prompt", "a"],
    "a run name too long to be": ["sample", "x" * 5000, "--prompt", "a"],
    "no run yet": ["sample", "--prompt", "a"],
    "a run outside": ["evaluate", "/etc"],
    "nothing to watch": ["watch", "nothing"],
    "nothing to resume": ["resume", "nothing"],
    "a finished run to resume": ["resume", "good"],
    "a finished run to stop": ["stop", "good"],
    "a finished run to pause": ["pause", "good"],
    "nothing to examine": ["doctor", "nothing"],
    # prompts and settings
    "hot": ["sample", "good", "--temperature", "-1", "--prompt", "a"],
    "not a temperature": ["sample", "good", "--temperature", "warm", "--prompt", "a"],
    "temperature nan": ["sample", "good", "--temperature", "nan", "--prompt", "a"],
    "top-p above one": ["sample", "good", "--top-p", "1.5", "--prompt", "a"],
    "top-k below zero": ["sample", "good", "--top-k", "-3", "--prompt", "a"],
    "an empty prompt": ["sample", "good", "--prompt", ""],
    "an unseen prompt": ["sample", "good", "--prompt", "日本\x1b[2J"],
    "no answers": ["sample", "good", "--prompt", "a", "--n", "0"],
    "no such checkpoint": ["sample", "good", "--checkpoint", "17", "--prompt", "a"],
    "a checkpoint outside": ["sample", "good", "--checkpoint", "../../x", "--prompt", "a"],
    "unknown split": ["evaluate", "good", "--split", "dev"],
    "a split that is not there": ["evaluate", "good", "--split", "test"],
    "stride zero": ["evaluate", "good", "--stride", "0"],
    "stride past the context": ["evaluate", "good", "--stride", "17"],
    # damaged runs
    "a run without a config": damaged("config.toml", None),
    "a run with a wrong config": damaged("config.toml", "[model]\nn_heads = 'x'"),
    "a run with another config": damaged("config.toml", "[model]\nd_model = 32"),
    "a run with impossible heads": damaged("config.toml", "[model]\nn_heads = 3"),
    "a run with too small a vocabulary": damaged("config.toml", "[model]\nvocab_size = 3"),
    "a run with a huge model": damaged("config.toml", "[model]\nd_model = 1000000"),
    "a checkpoint with a flipped byte": checkpoint_file("model.safetensors", b"x" * 100),
    "a checkpoint without a tokenizer": checkpoint_file("tokenizer.json", b"{}"),
    "a checkpoint without a manifest": checkpoint_file("manifest.json", b"[]"),
    "a checkpoint with a deep tokenizer": checkpoint_file("tokenizer.json", b"[" * 100_000),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("good")
    assert main([*RUN, "--name", "good", "--runs-dir", str(root), "--json"]) == 0
    return root / "good"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


def check_refusal(capsys, arguments: list[str], runs: Path) -> str:
    capsys.readouterr()
    before = tree(runs)
    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 2, (code, out, err)
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("tui-transformer: ") and len(err) < 1500
    assert "Traceback" not in err and not any(ord(c) < 32 and c != "\n" for c in err)
    assert tree(runs) == before
    return err


def test_there_are_eighty_ways_to_err() -> None:
    assert len(CASES) >= 80


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_one_line_and_exit_code_2(case: Case, good: Path, tmp_path, capsys) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copytree(good, tmp_path / "good")
    if isinstance(case, list) and "good" in case:
        shutil.copytree(good, runs / "good")
    arguments = case if isinstance(case, list) else case(tmp_path)
    if arguments[0] in ("run", "sample", "evaluate", "watch", "doctor", "resume", "stop", "pause"):
        arguments = [*arguments, "--runs-dir", str(runs)]
    check_refusal(capsys, arguments, runs)


ENVIRONMENT = {
    "a file as runs folder": ("TUI_TRANSFORMER_RUNS", "/dev/null", RUN),
    "a runs folder too long to be": ("TUI_TRANSFORMER_RUNS", "x" * 300, RUN),
    "a data folder too long to be": ("TUI_TRANSFORMER_DATA", "x" * 5000, ["run", "--preset", "shakespeare-cpu"]),
    "a data folder that is not there": ("TUI_TRANSFORMER_DATA", "/nowhere", ["run", "--preset", "shakespeare-cpu"]),
    "an escape in the data folder": ("TUI_TRANSFORMER_DATA", "\x1b[2J", ["run", "--preset", "shakespeare-cpu"]),
    "a mirror that is not there": ("TUI_TRANSFORMER_MIRROR", "/nowhere", ["data", "fetch", "tiny-shakespeare"]),
}


@pytest.mark.parametrize(("name", "value", "arguments"), ENVIRONMENT.values(), ids=ENVIRONMENT.keys())
def test_bad_environment_is_one_line_too(name, value, arguments, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    check_refusal(capsys, arguments, tmp_path)


def test_a_pointer_to_somewhere_else_is_not_followed(good: Path, tmp_path, capsys) -> None:
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / "checkpoints" / "best").write_text("../../../etc")
    assert main(["sample", "run", "--prompt", "a", "--length", "3", "--runs-dir", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint_step"] == 2


POISON = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2066\x7f"


def test_no_hostile_byte_of_any_text_reaches_the_output(good: Path, tmp_path, capsys) -> None:
    text = tmp_path / f"poison{POISON}.txt"
    text.write_text(f"All the world {POISON} is a stage. " * 200, encoding="utf-8")
    runs = tmp_path / f"runs{POISON}"
    assert main([*RUN, "--corpus", str(text), "--runs-dir", str(runs), "--set", f"description={POISON}"]) == 0
    common = ["--runs-dir", str(runs)]
    main(["sample", "last", "--prompt", f"All{POISON}", "--length", "50", "--temperature", "3", *common])
    main(["evaluate", "last", *common])
    main(["doctor", "last", *common])
    main(["watch", "last", *common])
    main(["data", "show", str(text)])
    for key in ("preset", "description", "data.corpus", "evaluation.sample_prompt"):
        main(["presets", "show", "demo", "--set", f"{key}={POISON}"])
    out, err = capsys.readouterr()
    assert len(out) > 1000
    assert [
        c for c in out + err if (ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"
    ] == []


def test_a_run_that_fails_says_so_in_one_line_and_keeps_the_rest_in_its_log(tmp_path, capsys) -> None:
    explode = ["--set", "optimizer.lr=1000", "--set", "train.clip=0", "--set", "train.steps=200"]
    explode += ["--set", "model.init_std=10", "--set", "optimizer.warmup=0", "--set", "optimizer.schedule=constant"]
    code = main([*RUN, *explode, "--runs-dir", str(tmp_path), "--name", "boom", "--json"])
    err = capsys.readouterr().err
    assert code == 1 and err.startswith("tui-transformer: ") and "Traceback" not in err
    assert "boom' failed: " in err.splitlines()[-1] and "is NaN or infinite at step" in err
    assert "Traceback" in (tmp_path / "boom" / "log.txt").read_text()


def test_a_damaged_line_in_the_middle_of_the_metrics_is_left_out(good: Path, tmp_path, capsys) -> None:
    shutil.copytree(good, tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_bytes(b"\xff\xfe{]\n" + path.read_bytes() + b'{"kind":"train","ste')
    assert main(["watch", "run", "--runs-dir", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["state"] == "finished"
