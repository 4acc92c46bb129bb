"""Makes everything in this folder with the version that is checked out: `python -m tests.earlier.make PART...`.

The parts are `runs` (`runs.tar.gz`: ten minutes), `expected` (what this version says of them: three minutes) and
`presets` (`presets.json`: five minutes), made at commit b1df0aa, and `readings` (`readings.tar.gz`: two minutes), made
at the last commit that read files by the first rules. They are to be kept. After a decision to
change what is printed, `expected` may be made again: its difference is what reviewers read.

Runs are trained by `python -m tui_transformer` in processes of their own, and the studio is used through its keys on a
terminal: nothing of the program is imported.
"""

import io
import json
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.earlier import miniatures, readings
from tests.earlier.asking import PROGRAM, environment
from tests.earlier.commands import GROUPS, HALF_WAY
from tests.earlier.kept import (
    EXPECTED,
    FOLDER,
    HOST,
    KEPT,
    MACHINE,
    READINGS,
    RUNS,
    TEXTS,
    answers,
    machine,
    resumed,
    studio,
    study_gone_on_with,
    take_out,
    write_expected,
)

SMALL = {
    "model.n_layers": "1",
    "model.d_model": "8",
    "model.n_heads": "2",
    "model.d_ff": "16",
    "model.context_length": "32",
    "train.batch_size": "4",
    "train.steps": "60",
    "train.threads": "1",
    "optimizer.lr": "0.01",
    "optimizer.warmup": "5",
    "evaluation.every": "15",
    "evaluation.sample_every": "30",
    "evaluation.sample_length": "12",
    "checkpoint.every": "20",
    "log.every": "4",
}
ON_TEXT = {"data.corpus": "playlets", "data.corpus_size": "20000"}
ON_PAIRS = {"data.corpus_size": "1000", "data.bpe_size": "300", "evaluation.translations": "6"}
ON_PAIRS |= {"model.context_length": "48", "train.batch_tokens": "200"}
ON_PEOPLE = {"data.corpus": "biographies", "data.corpus_size": "30"}
FROM_SPANS = {**ON_PEOPLE, "train.init_from": "spans@last"}
LONG = {"train.steps": "800", "evaluation.every": "200", "evaluation.sample_every": "400", "log.every": "40"}
LONG |= {"checkpoint.every": "100"}
ENOUGH = {"train.steps": "600", "evaluation.every": "150", "evaluation.sample_every": "300", "log.every": "50"}
ENOUGH |= {"checkpoint.every": "150", "optimizer.lr": "0.02", "model.dropout": "0"}  # to write more than blanks
HARD = {"train.accumulation": "2", "model.dropout": "0.1", "evaluation.batch_size": "8"}

# Runs that train to their end: name -> preset, settings.
FINISHED: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("demo", ON_TEXT | {"log.every": "1", "data.test_fraction": "0.1"}),
    "first-name": ("alibi", ON_TEXT | {"train.steps": "30"}),
    "masked": ("encoder-mlm", ON_TEXT),
    "copied": ("copy", ON_TEXT),
    "reversed": ("reverse", ON_TEXT),
    "continued": ("report-seq2seq-char-honest", ON_TEXT | {"model.source_length": "32", "data.window_stride": "32"}),
    "leaking": ("report-seq2seq-char", ON_TEXT | {"model.source_length": "32", "data.window_stride": "32"}),
    "translated": ("phrasebook", ON_PAIRS | ENOUGH | {"checkpoint.average_last": "2"}),
    "spans": ("biographies-pretrain", ON_PEOPLE),
    "questions": ("biographies-finetune", FROM_SPANS),
}
# In a folder of runs of its own, for its absolute path would be in every table: a text file.
OWN_TEXT_RUN = ("own-text", "swiglu", {"data.corpus": "own.txt", "data.test_fraction": "0.1"})
# Runs that are ended half-way: name -> preset, settings, how.
ENDED: dict[str, tuple[str, dict[str, str], str]] = {
    "stopped": ("demo", ON_TEXT | LONG | HARD | {"checkpoint.average_last": "2"}, "stop"),
    "masked-killed": ("encoder-mlm", ON_TEXT | LONG | HARD, "KILL"),
    "copied-ended": ("copy", ON_TEXT | LONG | HARD | {"train.precision": "bf16"}, "TERM"),
    "translated-ended": ("phrasebook", ON_PAIRS | LONG | HARD | {"train.steps": "400"}, "TERM"),
    "spans-t5-ended": (
        "biographies-pretrain",
        ON_PEOPLE | LONG | HARD | {"model.architecture": "encoder-decoder", "objective.span_form": "t5"},
        "INT",
    ),
    "questions-ended": ("biographies-finetune", FROM_SPANS | LONG | HARD, "TERM"),
}
DIVERGES = {"optimizer.lr": "1000", "optimizer.eps": "1e-30", "train.clip": "1000", "model.norm": "none"}

POSITIONS = """description = "three ways to tell order, three seeds"
base = "demo"
baseline = "rope"
primary = "loss"
seeds = [1, 2, 3]

[changes]
{changes}

[[variants]]
name = "rope"
changes = {{ "model.position" = "rope" }}
why = "The baseline."

[[variants]]
name = "alibi"
preset = "alibi"
why = "Near characters count most in so short a context."
expect = {{ loss = "same", rhyme = "unknown" }}

[[variants]]
name = "none"
preset = "no-pe"
expect = {{ loss = "worse" }}
"""
STAGES = """description = "documents first, or not"
base = "biographies-pretrain"
baseline = "scratch"
seeds = [1, 2]

[changes]
{changes}

[[stages]]
name = "documents"

[[stages]]
name = "asked"
from = "documents@last"
preset = "biographies-scratch"

[[variants]]
name = "scratch"
stages = ["asked"]

[[variants]]
name = "read"
expect = {{ loss = "better" }}
"""
PALETTE, BACKSPACE = "\x10", "\x7f"
STUDIES = {"positions": (POSITIONS, ON_TEXT), "stages": (STAGES, ON_PEOPLE)}
OWN_TEXT = "The {a} {b} sat on the {c}. A {b} that is {a} likes a {c}, said the {d}.\n"
WORDS = {
    "a": ("old", "young", "red", "quiet", "small"),
    "b": ("cat", "dog", "fox", "owl"),
    "c": ("mat", "roof", "hill"),
    "d": ("man", "boy", "girl", "queen", "king", "cook", "judge"),
}


def settings(changes: dict[str, str]) -> list[str]:
    """As the command line takes them."""
    return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]


class Maker:
    """Makes the runs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder, folder / "runs"
        (folder / "home").mkdir(parents=True)
        self.environment = environment(folder / "home", folder / "cache")

    def do(self, *words: str, code: int = 0) -> None:
        """Run a command to its end."""
        print("$", *words, flush=True)
        done = subprocess.run([*PROGRAM, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr + done.stdout

    def started(self, *words: str) -> "subprocess.Popen[bytes]":
        """A command that is at work."""
        print("$", *words, "...", flush=True)
        return subprocess.Popen(
            [*PROGRAM, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def until(self, true: Callable[[], bool], seconds: float = 600.0) -> None:
        """Wait."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def status(self, run: str) -> dict[str, object]:
        """What a run's status.json says; {} while it is not there."""
        try:
            found = json.loads((self.runs / run / "status.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def train(self, name: str, preset: str, changes: dict[str, str], code: int = 0) -> None:
        """A run to its end."""
        self.do(*self.words(name, preset, changes), code=code)

    def words(self, name: str, preset: str, changes: dict[str, str]) -> list[str]:
        """The command line of a run."""
        return ["run", "--preset", preset, "--name", name, "--device", "cpu", *settings(small(changes))]

    def end(self, name: str, preset: str, changes: dict[str, str], how: str) -> None:
        """A run that is ended half-way."""
        reached = 200 if how == "stop" else 330
        reached = min(reached, int(changes["train.steps"]) * 5 // 8)
        self.end_command(self.words(name, preset, changes), name, reached, how)

    def end_command(self, words: Sequence[str], name: str, reached: int, how: str) -> None:
        """A run that is ended at a step or soon after it."""
        process = self.started(*words)
        self.until(lambda: int(str(self.status(name).get("step", 0))) >= reached)
        if how == "stop":
            self.do("stop", name)
        else:
            process.send_signal(signal.Signals[f"SIG{how}"])
        process.wait(600)
        print(name, self.status(name).get("state"), self.status(name).get("step"), flush=True)

    def study(self, name: str, finished: int | None) -> None:
        """A study; to its end, or until so many of its runs are finished."""
        text, on = STUDIES[name]
        changes = "\n".join(
            f'"{key}" = {_toml(value)}' for key, value in small(on | {"checkpoint.keep_last": "1"}).items()
        )
        (self.folder / f"{name}.toml").write_text(text.format(changes=changes), encoding="utf-8")
        words = ["ablate", "--study", f"{name}.toml", "--device", "cpu", "--jobs", "1"]
        if finished is None:
            return self.do(*words)
        process = self.started(*words)
        runs = lambda: [path.name for path in self.runs.glob(f"{name}.*.s*")]
        self.until(lambda: sum(self.status(run).get("state") == "finished" for run in runs()) >= finished)
        process.send_signal(signal.SIGTERM)
        process.wait(600)
        return None


def small(changes: dict[str, str]) -> dict[str, str]:
    """A run's settings; what says how much is in a batch says it once."""
    found = SMALL | changes
    if "train.batch_tokens" in found:
        del found["train.batch_size"]
    return found


def _toml(value: str) -> str:
    try:
        float(value)
    except ValueError:
        return json.dumps(value)
    return value


def own_text() -> str:
    """A text of a person's own: short sentences, all different, and none by chance."""
    pick = lambda key, i: WORDS[key][i % len(WORDS[key])]
    lines = [OWN_TEXT.format(**{key: pick(key, i * (3 + n)) for n, key in enumerate(WORDS)}) for i in range(1, 211)]
    return "".join(lines)


def make_runs() -> None:
    """`runs.tar.gz`."""
    with tempfile.TemporaryDirectory() as name:
        maker = Maker(Path(name))
        (maker.folder / "own.txt").write_text(own_text(), encoding="utf-8")
        for run, (preset, changes) in FINISHED.items():
            maker.train(run, preset, changes)
        run, preset, changes = OWN_TEXT_RUN
        maker.do(*maker.words(run, preset, changes), "--runs-dir", "others")
        maker.do("rename", "first-name", "another-name")
        maker.do("note", "another-name", "the first one; a — note, with “signs”", "--tag", "old", "--tag", "kept")
        maker.do("note", "plain", "compare the others with this")
        for run, (preset, changes, how) in ENDED.items():
            maker.end(run, preset, changes, how)
        maker.train("diverged", "demo", ON_TEXT | DIVERGES, code=1)
        maker.study("positions", None)
        maker.study("stages", 3)
        use_the_studio(maker)
        pack(maker.folder)


def use_the_studio(maker: Maker) -> None:
    """Settings, a preset and a study of one's own, by keys."""
    settings_file = maker.folder / "home" / "config" / "tui-transformer" / "settings.toml"
    settings_file.parent.mkdir(parents=True)
    settings_file.write_text('on_quit = "stop"\n\n[keys]\ntrain = "8"\n', encoding="utf-8")
    screen = studio(maker.folder, maker.environment, "--runs-dir", str(maker.folder / "cache" / "none"))
    try:
        screen.until("A studio for Transformers")
        screen.press("enter")
        screen.until_gone("A studio for Transformers")
        screen.press(PALETTE)
        screen.until("Search for commands")
        screen.press(*"theme")
        screen.until("Change the current theme")
        screen.press("enter")
        screen.until("Search for themes")
        screen.press(*"blind")
        screen.until_gone("studio-dark")
        screen.press("enter")
        screen.until_gone("studio-colour-blind")
        screen.press("e")
        screen.until("KEY=VALUE")
        screen.press(*"model.position=alibi", "enter")
        screen.until_gone("Set any key")
        screen.press("s")
        screen.until("Save as a preset")
        screen.press(*"my-preset", "enter")
        screen.until("your own")
        screen.press("v")
        screen.until("a study of my-preset")
        screen.press("v")
        screen.until("Values")
        screen.press(*"model.n_heads=1,2,4", "enter")
        screen.until("n_heads-4")
        screen.press("r")
        screen.until("Study name")
        screen.press(*[BACKSPACE] * 20, *"my-study", "enter")
        screen.until("my-study   a study of")
        screen.press("s")
        screen.until("saved")
        time.sleep(1.0)
        screen.press("escape")
        screen.until("1 Design")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()


def make_readings() -> None:
    """`readings.tar.gz`, and how its runs end."""
    with tempfile.TemporaryDirectory() as name:
        maker = Maker(Path(name) / "made")
        for file, raw in readings.FILES.items():
            (maker.folder / file).parent.mkdir(exist_ok=True)
            (maker.folder / file).write_bytes(raw)
        for run, (preset, corpus, changes) in readings.RUNS.items():
            changes = small(readings.SHORT | changes | {"data.corpus": corpus})
            words = ["run", "--preset", preset, "--name", run, "--device", "cpu", *settings(changes)]
            maker.end_command(words, run, 150, "TERM")
        pack(maker.folder, READINGS)
        folder = take_out(Path(name) / "resumed", READINGS)
        _write(EXPECTED / "readings.json", resumed([*readings.RUNS], folder, Path(name) / "cache"))


def pack(folder: Path, into: str = RUNS) -> None:
    """All files but the cache, as they are, the machine's name left out."""
    host = json.dumps(socket.gethostname())
    with tarfile.open(KEPT / into, "w:gz", compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            if name.parts[0] == "cache":
                continue
            entry = archive.gettarinfo(path, str(name))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            if path.suffix in TEXTS:
                raw = path.read_bytes().replace(f'"host": {host}'.encode(), f'"host": {json.dumps(HOST)}'.encode())
                raw = raw.replace(str(folder).encode(), FOLDER.encode())  # line ends stay as they are
                entry.size = len(raw)
                archive.addfile(entry, io.BytesIO(raw))
            elif path.is_dir():
                archive.addfile(entry)
            else:
                archive.addfile(entry, io.BytesIO(path.read_bytes()))


def make_expected() -> None:
    """`expected/`: all answers, and how the runs end that are resumed here."""
    shutil.rmtree(EXPECTED, ignore_errors=True)
    EXPECTED.mkdir()
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name) / "cache"
        for group, commands in GROUPS.items():
            folder = take_out(Path(name) / group)
            write_expected(group, answers(commands, folder, cache))
        folder = take_out(Path(name) / "resumed")
        found = resumed(HALF_WAY, folder, cache)
        found |= study_gone_on_with(take_out(Path(name) / "gone-on-with"), cache)
    _write(EXPECTED / "resumed.json", found)
    _write(EXPECTED / MACHINE, machine())


def _write(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def make_presets() -> None:
    """`presets.json`."""
    with tempfile.TemporaryDirectory() as name:
        miniatures.make(Path(name), Path(name) / "cache")


PARTS: dict[str, Callable[[], None]] = {
    "runs": make_runs,
    "expected": make_expected,
    "presets": make_presets,
    "readings": make_readings,
}


def main(parts: Sequence[str]) -> int:
    """Make these parts."""
    if not parts or set(parts) - PARTS.keys():
        print(__doc__)
        return 2
    for part in PARTS:
        if part in parts:
            PARTS[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
