"""Export a model as a folder in the Hugging Face hub's layout: weights, config.json, tokenizer.json.

config.json has every key of the model, so the folder alone can rebuild it. Its `model_type` is our own: transformers
does not know it. tokenizer.json is for Hugging Face `tokenizers`; our own format is in a separate file.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from engine.base.errors import InputError, write_error
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.config.toml import validate
from engine.data.tokenizers import AnyTokenizer, read_tokenizer
from engine.model.transformer import Network
from engine.runs.files import atomic_folder, read_json, write_atomic, write_json
from engine.runs.reader import RunReader
from engine.training import checkpoint

MODEL_TYPE = "tui-transformer"
OWN_TOKENIZER, SOURCE_TOKENIZER = "tui_transformer_tokenizer.json", "source_tokenizer.json"
CONFIG, SPECIAL = "config.json", "special_tokens_map.json"
SECTIONS = ("model", "objective", "generation")  # of a run's config: what is needed to build, to ask and to answer
# The names that tools of Hugging Face give special tokens.
ROLES = {
    "[pad]": "pad_token",
    "[start]": "bos_token",
    "[end]": "eos_token",
    "[mask]": "mask_token",
    "[unk]": "unk_token",
}


def write_pretrained(
    reader: RunReader, which: str, folder: Path, extra_files: Callable[[int], Mapping[str, str]] = lambda step: {}
) -> int:
    """Write a checkpoint's model into a new folder, all of it or nothing, and return the checkpoint's step.

    `more` gives text files beside it by name. Raises `InputError` for no such checkpoint, a damaged one, or a folder
    that is not empty or cannot be written.
    """
    model, tokenizer, step = checkpoint.load_network(reader, which)
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(Message("{folder} is not empty; choose another --out", folder=folder))
        with atomic_folder(folder) as staged:
            checkpoint.save_tensors(staged / checkpoint.WEIGHTS, checkpoint.weights_of(model))
            write_atomic(staged / OWN_TOKENIZER, tokenizer.to_json())
            write_atomic(staged / checkpoint.TOKENIZER, tokenizer.target.library_json())
            if not tokenizer.shared:
                write_atomic(staged / SOURCE_TOKENIZER, tokenizer.source.library_json())
            write_json(staged / CONFIG, _config(reader.config, model, tokenizer, step, reader.data.classes))
            special = reader.config.special_tokens
            named: dict[str, str | list[str]] = {ROLES[token]: token for token in special if token in ROLES}
            if others := [token for token in special if token not in ROLES]:
                named["additional_special_tokens"] = others
            write_json(staged / SPECIAL, named)
            for name, text in extra_files(step).items():
                write_atomic(staged / name, text)
    except OSError as error:
        raise write_error(tr("{filename} cannot be written", filename=error.filename or folder), error) from None
    return step


def _config(
    config: RunConfig, model: Network, tokenizer: AnyTokenizer, step: int, classes: Sequence[str]
) -> Mapping[str, object]:
    # A model's name and its data's location are not part of it.
    asked = config.dump()
    return {
        "model_type": MODEL_TYPE,
        "architectures": [type(model).__name__],
        "dtype": "float32",
        "vocab_size": model.vocab_size,
        "text_tokens": tokenizer.vocab_size,
        "special_tokens": {token: tokenizer.vocab_size + i for i, token in enumerate(config.special_tokens)},
        **({"id2label": {str(i): name for i, name in enumerate(classes)}} if classes else {}),
        "step": step,
        "seed": config.seed,
        **{section: asked[section] for section in SECTIONS},
    }


def load_pretrained(folder: Path, device: torch.device | str = "cpu") -> tuple[Network, AnyTokenizer]:
    """Return the model of a folder by `write_pretrained`, in evaluation mode, with its tokenizer; bit-exact. Raise
    `InputError` for another kind of model, a damaged file, or files that do not belong together.
    """
    path = folder / CONFIG
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(Message("{path}: missing or damaged; every exported model's folder has this file", path=path))
    if (kind := found.get("model_type")) != MODEL_TYPE:
        text = Message(
            "{path}: model_type is {found!r}, must be '{model_type}'",
            path=path,
            found=str(kind)[:40],
            model_type=MODEL_TYPE,
        )
        raise InputError(text)
    config = validate({section: found.get(section, {}) for section in SECTIONS}, str(path))
    own = folder / OWN_TOKENIZER  # a folder of an earlier version has it in tokenizer.json
    tokenizer = read_tokenizer(own if own.exists() else folder / checkpoint.TOKENIZER)
    size = config.min_vocab_size(tokenizer.vocab_size)
    return checkpoint.network_with_weights(config, size, folder / checkpoint.WEIGHTS, device, path), tokenizer
