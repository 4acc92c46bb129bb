"""Where the columns of the table stand: marks and name stay, the others move past them. Pure."""

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from tui_transformer.lab.analysis.view import Shown

MARKS = 5  # columns: letter, pin, sign, and air
GAP = 2
NAME = ((150, 36), (100, 24), (0, 16))  # from so many columns of the screen, at most so many for the name
WIDEST = {"verdict": 32, "notes": 40, "tags": 24, "checks": 24, "corpus": 24, "expected": 32}
NARROWEST = {"verdict": 12, "expected": 14}  # a column that is rather cut than not shown
USUAL = 18  # the widest cell of any other column


@dataclass(frozen=True)
class Place:
    """A column on the screen: which, where it begins, how wide it is."""

    index: int
    start: int
    width: int


@dataclass(frozen=True)
class Layout:
    """What is seen of a table.

    Args:
        places: from the left; the first is the name.
        first: the column after the name.
        more: whether there are columns further right.
    """

    places: tuple[Place, ...] = ()
    first: int = 1
    more: bool = False

    def width_of(self, index: int) -> int:
        """How much of a column is seen; 0 where it is not."""
        return next((place.width for place in self.places if place.index == index), 0)

    def at(self, x: int) -> int | None:
        """The column at a place of the screen."""
        return next((p.index for p in self.places if p.start <= x < p.start + p.width + GAP), None)


def lay_out(shown: Shown, width: int, first: int) -> Layout:
    """The columns that there is room for, from `first` on."""
    if not shown.columns or width <= MARKS:
        return Layout()
    widest_name = next(most for least, most in NAME if width >= least)
    name = max(8, min(shown.widths[0], widest_name))
    places, x = [Place(0, MARKS, name)], MARKS + name + GAP
    first = max(1, min(first, len(shown.columns) - 1))
    for index in range(first, len(shown.columns)):
        wide = min(shown.widths[index], WIDEST.get(shown.columns[index].key, USUAL))
        room = width - x
        if wide > room:
            least = NARROWEST.get(shown.columns[index].key)
            if (least is None or room < least) and (len(places) > 1 or room < 4):
                return Layout(tuple(places), first, True)
            wide = room
        places.append(Place(index, x, wide))
        x += wide + GAP
    return Layout(tuple(places), first, False)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """Exactly so wide; what is longer ends in an ellipsis."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    return " " * (width - size) + text if right else text + " " * (width - size)
