"""Questions and answers in two columns of a tab-separated file; one column where answers are not told."""

from pathlib import Path

from engine.data.documents.corpus import Question
from engine.data.parallel.lines import Lines, read_lines

HEADINGS = ("question", "answer")


def read_questions(path: Path, *, blind: bool = False) -> tuple[Question, ...]:
    """The questions of a file: `question`, a tab, `answer`; a first line that says just that is a header.

    Args:
        path: the file.
        blind: whether answers may be missing, as in a test split that somebody else will score; then all of them are.

    Raises:
        InputError: a file that cannot be read, a line with too many or too few columns, or an empty side.
    """
    text = read_lines(path)
    rows = [line.split("\t") for line in text.without_trailing()]
    first = int(tuple(cell.strip().lower() for cell in rows[0]) in (HEADINGS, HEADINGS[:1]))
    if first == len(rows):
        raise text.refuse(1, "a header and nothing below it")
    columns = 1 if blind and len(rows[first]) == 1 else 2
    return tuple(_question(text, number, cells, columns) for number, cells in enumerate(rows[first:], start=first + 1))


def _question(text: Lines, number: int, cells: list[str], columns: int) -> Question:
    if len(cells) != columns:
        shown = "an empty line" if not any(cell.strip() for cell in cells) else _counted(len(cells))
        wanted = "a question, a tab and its answer are needed" if columns == 2 else "the first one is a question alone"
        raise text.refuse(number, f"{shown}; {wanted}")
    for name, cell in zip(HEADINGS, cells, strict=False):
        if not cell.strip():
            raise text.refuse(number, f"the {name} is empty; take the line out")
    return Question(cells[0].strip(), cells[1].strip() if columns == 2 else None)


def _counted(columns: int) -> str:
    return "one column" if columns == 1 else f"{columns} columns"
