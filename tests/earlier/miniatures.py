"""Every shipped preset at a size that takes a second: the same function, trained for thirty steps on generated text."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.earlier.asking import ask
from tests.earlier.commands import CPU
from tests.earlier.kept import KEPT, ended, machine

FILE = KEPT / "presets.json"
STEPS = 30
CHARACTERS, BYTE_PAIRS = 70, 300  # of playlets, with room for special tokens; of phrasebook
DOCUMENTS, PAIRS = ("span-corruption", "question-answer"), ("translation",)


def shrunk(config: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Changes to a preset's complete settings, for `--set`; what they name keeps its kind and loses its size."""
    model, data, train, optimizer = (config[name] for name in ("model", "data", "train", "optimizer"))
    kind = config["objective"]["kind"]
    heads = min(model["n_heads"], 4)
    changes: dict[str, Any] = {"model.n_layers": min(model["n_layers"], 2), "model.n_heads": heads}
    changes |= {"model.d_model": 8 * heads, "model.d_ff": 32}
    changes["model.context_length"] = context = 64 if kind in DOCUMENTS else 40 if kind in PAIRS else 16
    least = {"source_length": context, "n_encoder_layers": 2, "window": 5, "link_every": 4}
    changes |= {f"model.{key}": min(model[key], most) for key, most in least.items() if key in model}
    if "n_kv_heads" in model:
        changes["model.n_kv_heads"] = 1 if model["n_kv_heads"] < model["n_heads"] else heads
    sizes = [key for key in ("vocab_size", "source_vocab_size") if key in model and kind not in DOCUMENTS]
    changes |= {f"model.{key}": BYTE_PAIRS + 10 if data["tokenizer"] == "bpe" else CHARACTERS for key in sizes}
    corpus, size = (
        ("biographies", 20) if kind in DOCUMENTS else ("phrasebook", 500) if kind in PAIRS else ("playlets", 20_000)
    )
    changes |= {"data.corpus": corpus, "data.corpus_size": size}
    changes |= {"data.bpe_size": BYTE_PAIRS} if data["tokenizer"] == "bpe" else {}
    changes |= {"data.max_length": context} if "max_length" in data else {}
    changes |= {"train.steps": STEPS, "train.threads": 1}
    changes |= {"train.batch_tokens": 160} if "batch_tokens" in train else {"train.batch_size": 4}
    changes |= {f"optimizer.{key}": 10 for key in ("warmup", "decay_every", "decay_over") if key in optimizer}
    changes |= {"evaluation.every": STEPS, "evaluation.sample_every": STEPS, "evaluation.sample_length": 8}
    changes |= {"evaluation.sample_prompt": "", "evaluation.translations": 4}
    return changes | {"checkpoint.every": 10, "log.every": 1}


def command(preset: str, changes: Mapping[str, Any]) -> list[str]:
    """Trains it; the run is called as the preset, so that others find it to start from."""
    words = ["run", "--preset", preset, "--name", preset, *CPU]
    return words + [word for key, value in changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def with_parents(names: Iterable[str], kept: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """These presets, each after the one whose weights it starts from."""
    found: list[str] = []
    for name in names:
        parent = kept[name]["from"]
        found += [one for one in ([parent] if parent else []) + [name] if one not in found]
    return found


def trained(names: Iterable[str], kept: Mapping[str, Mapping[str, Any]], folder: Path, cache: Path) -> dict[str, Any]:
    """How presets end, with those that they start from."""
    order = with_parents(names, kept)
    (folder / "home").mkdir()
    for name, answer in zip(
        order, ask([command(name, kept[name]["set"]) for name in order], folder, cache), strict=True
    ):
        assert answer.code == 0, (name, answer.err)
    return {name: outcome(folder / "runs" / name) for name in order}


def outcome(run: Path) -> dict[str, Any]:
    """The part of a run's end that is kept for each preset."""
    found = ended(run)
    return {"weights": found["weights"], "losses": [found["losses"][0][2], found["losses"][-1][2]]}


def make(folder: Path, cache: Path) -> None:
    """`presets.json`, from the presets of the version that is checked out."""
    (folder / "home").mkdir()
    [listed] = ask([("presets", "list", "--json")], folder, cache)
    names = [json.loads(line)["name"] for line in listed.out.splitlines()]
    shown = ask([("presets", "show", name, "--json") for name in names], folder, cache)
    configs = {name: json.loads(answer.out)["config"] for name, answer in zip(names, shown, strict=True)}
    kept = {}
    for name, config in configs.items():
        parent = config["train"].get("init_from", "").partition("@")[0]
        kept[name] = {"from": parent or None, "config": config, "set": shrunk(config)}
    (folder / "all").mkdir()
    ends = trained(names, kept, folder / "all", cache)
    found = {name: {**kept[name], **ends[name]} for name in names}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
    FILE.write_text(f'{{\n "machine": {json.dumps(machine())},\n "presets": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
