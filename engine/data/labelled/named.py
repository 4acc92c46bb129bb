"""The kind of labelled texts, and the loader of the generated ones; AG News is laid out as one's own files."""

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind
from engine.data.labelled.by_path import accepts_path, load_path
from engine.data.labelled.corpus import LabelledCorpus, LabelledTexts, ReaderAccuracies
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
        problem = Message(
            "data.corpus_size = {size}: too few for all {n} classes to occur in training; 200 is enough",
            size=len(items),
            n=len(names),
        )
        raise InputError(problem)
    best, blind = (bulletins.best_accuracy(ordered=ordered) for ordered in (True, False))
    notes = (
        Message(
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
            split: LabelledTexts(tuple(item.text for item in part), tuple(names.index(item.label) for item in part))
            for split, part in parts.items()
            if part
        },
        tuple(map(names.index, bulletins.ORDER_ONLY_CLASSES)),
        {split: _reader_accuracies(part) for split, part in parts.items() if part},
    )


def _reader_accuracies(items: list[bulletins.Item]) -> ReaderAccuracies:
    ordered = [item for item in items if item.label in bulletins.ORDER_ONLY_CLASSES]

    def right(of: list[bulletins.Item], *, sees_order: bool) -> float:
        likeliest = {kinds: bulletins.likeliest_class(kinds, ordered=sees_order) for kinds in {one.kinds for one in of}}
        return sum(likeliest[one.kinds] == one.label for one in of) / max(1, len(of))

    return ReaderAccuracies(
        right(items, sees_order=True),
        bulletins.best_accuracy(),
        right(items, sees_order=False),
        right(ordered, sees_order=False),
    )


LABELLED = CorpusKind(
    LabelledCorpus,
    noun=tr("corpus of labelled texts"),
    description=tr("labelled texts"),
    preset="ag-news",
    names_heading=tr("known"),
    path_hint=tr("the path to a CSV file, or to a folder with train.csv"),
    own_files_hint=tr("a CSV file whose first column is the class"),
    path_characters="/\\.~",
    offline_hint=tr("bulletins needs no download"),
    accepts_path=accepts_path,
    load_path=load_path,
    named_loaders={"bulletins": load_bulletins},
)
