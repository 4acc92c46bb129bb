"""The help of every command and some errors, in Chinese, as JSON: `python -m tests.tui_transformer.cli.in_chinese`.

A process of its own, for module-level texts are translated when their module is imported.
"""

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

from tui_transformer import languages

ERRORS = {  # typical mistakes
    "no such command": ["trian"],
    "no such option": ["run", "--preest", "demo"],
    "no such preset": ["run", "--preset", "dmeo"],
    "no preset": ["run"],
    "two presets": ["run", "--preset", "demo", "--config", "my.toml"],
    "a missing argument": ["rename", "demo"],
    "an argument too many": ["sample", "a", "b"],
    "a word for a number": ["run", "--preset", "demo", "--seed", "one"],
    "no such key": ["run", "--preset", "demo", "--set", "model.heads=2"],
    "no value": ["run", "--preset", "demo", "--set", "model.n_heads"],
    "a wrong value": ["run", "--preset", "demo", "--set", "train.steps=many"],
    "a value out of range": ["run", "--preset", "demo", "--set", "model.n_layers=-1"],
    "settings that exclude each other": ["run", "--preset", "demo", "--set", "model.n_heads=5"],
    "pairs for a text": ["run", "--preset", "demo", "--corpus", "phrasebook"],
    "no such corpus": ["run", "--preset", "demo", "--corpus", "playlet"],
    "no such corpus file": ["run", "--preset", "demo", "--corpus", "nowhere.txt"],
    "no such config": ["run", "--config", "nowhere.toml"],
    "no such device": ["run", "--preset", "demo", "--device", "tpu"],
    "a bad name": ["run", "--preset", "demo", "--name", "../evil"],
    "no run yet": ["resume", "--runs-dir", "none"],
    "no such run": ["sample", "nothing"],
    "a run to start from": ["run", "--preset", "demo", "--set", "train.init_from=nowhere"],
    "no such study": ["ablate", "--study", "nothing"],
    "nothing to vary": ["ablate", "--preset", "demo"],
    "seeds in words": ["ablate", "--preset", "demo", "--vary", "model.n_heads=2,4", "--seeds", "few"],
    "two ways to treat failures": ["ablate", "--study", "heads", "--retry-failed", "--skip-failed"],
    "no such format": ["export", "a", "--to", "word"],
    "no such schema": ["schema", "run.jsno"],
    "no such benchmark": ["bench", "--case", "sleeping"],
    "a corpus to fetch": ["data", "fetch", "tiny"],
    "two formats": ["compare", "--csv", "--latex"],
}
STATES = {"a finished run to stop": "baseline", "a waiting run to pause": "alibi", "a failed run to continue": "heads2"}


def said(words: list[str]) -> tuple[int, str, str]:
    """The exit code, and what goes to stdout and stderr."""
    from tui_transformer.__main__ import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def main() -> None:
    """Print them."""
    languages.use("zh")
    os.environ |= {"LANGUAGE": "zh", "COLUMNS": "80"}
    from tests.tui_transformer.loaded import loaded
    from tests.tui_transformer.recorded import everything

    helps = {"": said(["--help"])[1]}
    for name, one in loaded().commands.items():
        below = [[name, other] for other in getattr(one, "commands", {})]
        if not one.hidden:
            helps |= {" ".join(words): said([*words, "--help"])[1] for words in ([name], *below)}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        everything(Path("runs"))
        cases = ERRORS | {case: [case.rpartition(" ")[2], run] for case, run in STATES.items()}
        errors = {case: [code, err] for case, words in cases.items() for code, _, err in [said(words)]}
        shown = {" ".join(words): "".join(said(words)[1:]) for words in (["runs"], ["doctor", "baseline"])}
        os.chdir("/")
    print(json.dumps({"helps": helps, "errors": errors, "shown": shown}))


if __name__ == "__main__":
    main()
