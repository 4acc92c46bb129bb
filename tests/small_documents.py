"""A few documents and questions in the place of a real corpus."""

from pathlib import Path

from engine.config.schema import RunConfig
from engine.data.documents.corpus import DocumentCorpus, Question, RecallFact

PLACES = {"Ada": "London", "Bo": "Rome", "Cy": "Oslo", "Di": "Rome", "Eve": "Rome", "Fay": "Oslo"}
TINY = {
    "model": {"n_layers": 2, "d_model": 32, "n_heads": 4, "d_ff": 64, "context_length": 64, "dropout": 0.0},
    "data": {"corpus": "biographies", "corpus_size": 20, "tokenizer": "words"},
    "train": {"steps": 6, "batch_size": 16, "threads": 1},
    "optimizer": {"lr": 1e-2, "warmup": 2, "schedule": "constant"},
    "evaluation": {"every": 3, "sample_every": 3},
    "checkpoint": {"every": 3},
    "log": {"every": 1},
}


def config(kind: str, *, reads: bool = False, **changes: dict) -> RunConfig:
    """A config that trains in a second: `reads` makes it an encoder-decoder."""
    tables = {section: dict(values) for section, values in TINY.items()}
    tables["objective"] = {"kind": kind}
    if reads:
        tables["model"]["architecture"] = "encoder-decoder"
        tables["objective"]["span_form"] = "t5"
    for section, values in changes.items():
        tables[section] = tables.get(section, {}) | values
    return RunConfig.model_validate(tables)


def corpus() -> DocumentCorpus:
    """What can be learned by heart in a moment: two documents a person, half of the people asked about."""
    told = [f"{name}. {name} was born in {place}." for name, place in PLACES.items()]
    again = [f"{name}. {place} is where {name} was born." for name, place in PLACES.items()]
    asked = [Question(f"Where was {name} born?", place) for name, place in PLACES.items()]
    return DocumentCorpus(
        "small",
        "small@1",
        "written down",
        (),
        {"train": (*told, *again), "validation": tuple(told[:3])},
        {"train": tuple(asked[:4]), "validation": tuple(asked[4:]), "test": (Question("Where was Bo born?", None),)},
        {"recall": tuple(RecallFact(f"{name}. {name} was born in ", ".", place) for name, place in PLACES.items())},
    )


def folder(path: Path, held_out: int = 2) -> Path:
    """The same as files of one's own."""
    made = corpus()
    path.mkdir(parents=True, exist_ok=True)
    (path / "documents.txt").write_text("".join(f"{text}\n" for text in made.documents["train"]))
    for split in ("train", "validation"):
        rows = made.questions[split][: held_out if split == "validation" else None]
        (path / f"{split}.tsv").write_text("".join(f"{q.text}\t{q.answer}\n" for q in rows))
    return path
