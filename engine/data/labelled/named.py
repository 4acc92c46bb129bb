"""The kind of labelled texts, and the loader of the generated ones; AG News is laid out as one's own files."""

from engine.base.errors import InputError
from engine.base.language import tr
from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind
from engine.data.labelled.by_path import load_path, takes
from engine.data.labelled.corpus import Labelled, LabelledCorpus, Readers
from engine.data.synthetic import bulletins


def load_bulletins(entry: CorpusEntry, data: DataConfig, place: None) -> LabelledCorpus:
    """News items from `data.corpus_seed`; `data.corpus_size` is their number. Training comes first, the test last."""
    items = bulletins.generate(data.corpus_seed, data.corpus_size or bulletins.TEXTS)
    tested = round(len(items) * data.test_fraction)
    last = len(items) - tested
    first = last - max(1, round(len(items) * data.validation_fraction))
    parts = {"train": items[:first], "validation": items[first:last], "test": items[last:]}
    names = tuple(bulletins.CLASSES)
    missing = set(names) - {item.label for item in parts["train"]}
    if missing:
        raise InputError(
            tr(
                "data.corpus_size = {size}: too few for all {n} classes to occur in training; 200 is enough",
                size=len(items),
                n=len(names),
            )
        )
    best, blind = (bulletins.best_accuracy(ordered=ordered) for ordered in (True, False))
    notes = (
        tr(
            "over all texts, the best possible classifier gets {best:.2%} right, or {blind:.2%} if it ignores word "
            "order (words or characters as tokens; byte pairs reveal which word is first)",
            best=best,
            blind=blind,
        ),
    )
    return LabelledCorpus(
        entry.name,
        bulletins.VERSION,
        "generated",
        notes,
        names,
        {
            split: Labelled(tuple(item.text for item in part), tuple(names.index(item.label) for item in part))
            for split, part in parts.items()
            if part
        },
        tuple(map(names.index, bulletins.ORDERED)),
        {split: _readers(part) for split, part in parts.items() if part},
    )


def _readers(items: list[bulletins.Item]) -> Readers:
    ordered = [item for item in items if item.label in bulletins.ORDERED]

    def right(of: list[bulletins.Item], *, sees_order: bool) -> float:
        likeliest = {kinds: bulletins.best(kinds, ordered=sees_order) for kinds in {one.kinds for one in of}}
        return sum(likeliest[one.kinds] == one.label for one in of) / max(1, len(of))

    return Readers(
        right(items, sees_order=True),
        bulletins.best_accuracy(),
        right(items, sees_order=False),
        right(ordered, sees_order=False),
    )


LABELLED = CorpusKind(
    LabelledCorpus,
    noun=tr("corpus of labelled texts"),
    is_a=tr("labelled texts"),
    preset="ag-news",
    known=tr("known"),
    path=tr("the path to a CSV file, or to a folder with train.csv"),
    yours=tr("a CSV file whose first column is the class"),
    signs="/\\.~",
    meanwhile=tr("bulletins needs no download"),
    takes=takes,
    load_path=load_path,
    named={"bulletins": load_bulletins},
)
