"""A few sentence pairs in the place of a real corpus."""

import gzip
from pathlib import Path

SENTENCES = (
    ("A brown dog runs over the grass.", "Ein brauner Hund läuft über das Gras."),
    ("Two men are at the stove preparing food.", "Zwei Männer stehen am Herd und bereiten Essen zu."),
    ("A little girl climbs into a wooden playhouse.", "Ein kleines Mädchen klettert in ein Spielhaus aus Holz."),
    ("A man in a blue shirt is cleaning a window.", "Ein Mann in einem blauen Hemd putzt ein Fenster."),
    ("Children are playing in the water.", "Kinder spielen im Wasser."),
    ("A woman is reading a book on a bench.", "Eine Frau liest auf einer Bank ein Buch."),
)


def pairs(count: int) -> list[tuple[str, str]]:
    """Different ones, the first as people write them."""
    more = [(f"{source} {i}", f"{target} {i}") for i in range(count) for source, target in [SENTENCES[i % 6]]]
    return [*SENTENCES, *more][:count]


def multi30k(data: Path, train: int = 120) -> Path:
    """The files of multi30k, with other sentences in them, under a data folder."""
    folder = data / "multi30k"
    folder.mkdir(parents=True)
    known, others = pairs(train), pairs(train + 40)[train:]
    for stem, found in {"train": known, "val": others[:20], "test_2016_flickr": others[20:]}.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in found)
            (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


def table(path: Path, count: int = 120) -> Path:
    """The same as a tab-separated file."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs(count)), encoding="utf-8")
    return path
