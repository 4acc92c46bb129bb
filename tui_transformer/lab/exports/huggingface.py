"""A folder as Hugging Face's hub shows it: weights, config, tokenizer and a model card. Nothing is sent anywhere."""

from pathlib import Path

from tui_transformer.lab.exports.card import LOADED_BY, card
from tui_transformer.lab.exports.recorded import Recorded


def write(run: Recorded, out: Path, checkpoint: str) -> tuple[Path, str]:
    """One folder a run.

    Args:
        run: what to write.
        out: where its folder is made.
        checkpoint: best, last, average, or a step: whose weights.

    Returns:
        The run's folder, and how to load it.

    Raises:
        InputError: no such checkpoint, or a folder that is not empty.
    """
    from engine.training.pretrained import write_pretrained

    folder = out / run.name
    write_pretrained(run.reader, checkpoint, folder, lambda step: {"README.md": card(run, checkpoint, step)})
    return folder, LOADED_BY.replace("`", "").replace("**", "")
