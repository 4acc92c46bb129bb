"""Files that version 1 of the rules read in its own way, and a run on each that was ended half-way."""

import gzip
import json
import random
from collections.abc import Mapping

SHORT = {
    "model.n_layers": "1",
    "model.d_model": "8",
    "model.n_heads": "2",
    "model.d_ff": "16",
    "model.context_length": "32",
    "train.batch_size": "4",
    "train.steps": "400",
    "train.threads": "1",
    "evaluation.every": "100",
    "evaluation.sample_every": "400",
    "evaluation.sample_length": "8",
    "checkpoint.every": "50",
    "log.every": "50",
}
PAIRS = {"data.tokenizer": "characters", "evaluation.translations": "2", "model.context_length": "96"}
LABELLED = {"data.tokenizer": "characters", "model.context_length": "96"}


def _sentences(count: int) -> list[str]:
    pick = random.Random(1).choice
    words = ["ash", "bee", "cow", "dew", "elm", "fig", "gum", "hay", "ivy", "jay"]
    return [" ".join(pick(words) for _ in range(6)) for _ in range(count)]


def _files() -> dict[str, bytes]:
    lines = _sentences(300)
    odd = [f"{line[:9]}\u2028{line[9:]}" if i % 3 else f"{line}\u0085." for i, line in enumerate(lines)]
    rows = [{"id": f"note-{i:04}", "text": text if i else None} for i, text in enumerate(lines)]
    quoted = ['"en"\t"de"', *(f'"{line}"\t"{line[::-1]}"' for line in lines)]
    asked = [f'"What is ""{line}""?"\t{line[:3]}' for line in lines]
    found = {
        "crlf.txt": "\r\n".join(lines),
        "lines.csv": "text\n" + "\n".join(odd) + "\n",
        "first-null.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "array.json": json.dumps([{"text": line} for line in lines], indent=1),
        "semicolons.csv": "id;text\n" + "".join(f"{i};{line}\n" for i, line in enumerate(lines)),
        "quoted.tsv": "\n".join(quoted) + "\n",
        "asked/documents.txt": "\n".join(lines) + "\n",
        "asked/train.tsv": "\n".join(asked[:200]) + "\n",
        "asked/validation.tsv": "\n".join(asked[200:]) + "\n",
        "folder/a.txt": "\n".join(lines) + "\n",
        "labels.csv": "".join(f'{i % 3},"{line}\r\n{line[:5]}"\r\n' for i, line in enumerate(lines)),
    }
    return {name: text.encode() for name, text in found.items()} | {"folder/b.txt.gz": gzip.compress(b"more\n" * 99)}


FILES: Mapping[str, bytes] = _files()
# Runs: preset, corpus and settings, by name.
RUNS: dict[str, tuple[str, str, dict[str, str]]] = {
    "crlf": ("demo", "crlf.txt", {}),
    "lines": ("demo", "lines.csv", {}),
    "first-null": ("demo", "first-null.jsonl", {}),
    "array": ("demo", "array.json", {}),
    "semicolons": ("demo", "semicolons.csv", {}),
    "packed-beside": ("demo", "folder", {}),
    "quoted": ("phrasebook", "quoted.tsv", PAIRS),
    "asked": ("biographies-scratch", "asked", LABELLED),
    "labels": ("ag-news", "labels.csv", LABELLED),
}
