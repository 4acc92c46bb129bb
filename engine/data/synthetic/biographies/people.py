"""People who never were: no two share a surname, and nothing about a person gives away another thing about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from engine.data.synthetic.draws import Draws


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Invented towns; how many of a hundred people were born there.
SHARES = (12, 9, 8, 7, 6, 6, 5, 5, 4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 1)
TOWNS = _words(
    """Arlow Brindale Corvik Dunholt Eskarra Fenmoor Galdene Hestor Iverna Jorvale Kelstead Lunmere Mardock Norbeck
    Ostrell Pelmouth Quenby Rindal Selvik Tormere Ulwick Vandrin Westrin Yarrowby"""
)
PLACES: Mapping[str, int] = dict(zip(TOWNS, SHARES, strict=True))
HER = _words(
    """Ada Alma Anna Clara Cora Dora Edith Ella Emma Flora Greta Hanna Ida Irene Julia Laura Lena Mary Nora Olga Paula
    Rosa Sofia Vera"""
)
HIS = _words(
    """Adam Albert Arthur Bruno Carl David Edgar Emil Felix Frank George Henry Hugo Ivan Jacob Leo Martin Oscar Otto
    Paul Peter Robert Simon Victor"""
)
# Written after "a": none begins with a vowel.
JOBS = _words(
    """baker barber brewer carpenter cook dentist doctor farmer fisher gardener judge lawyer librarian miller musician
    nurse painter pilot potter sailor singer tailor teacher writer"""
)
HOBBIES = _words(
    """archery astronomy chess cycling dancing drawing fishing gardening hiking juggling knitting photography poetry
    pottery reading riding rowing running sailing sewing singing skating skiing swimming"""
)
# Of a surname.
BEGINNINGS = _words(
    """Bal Bar Bel Bor Cal Cor Dal Dar Del Dor Fal Far Fen Gal Gar Gor Hal Har Hol Jar Kal Kel Kor Lan Lor Mal Mar Mel
    Mor Nal Nor Pal Por Ral Ron Sal Sel Sor Tal Tor Val Ver Vol Wal Wen Yal Zan Zel"""
)
LINKS = ("", "a", "e", "i", "o", "u")
ENDINGS = _words(
    """bek bert by dan den der din dor feld gard gen grin ham kin land len lin lund man mar men mer mond nik nor ric rin
    ros sen stad sted ten ton van ven vik"""
)
FEWEST, MOST = 20, 5_000  # people


@dataclass(frozen=True)
class Person:
    """Somebody, and what there is to know of them.

    Attributes:
        he: "he" or "she"; `his` goes with it.
    """

    given: str
    surname: str
    he: str
    his: str
    place: str
    job: str
    hobby: str

    @property
    def name(self) -> str:
        """Both names, which nobody else has."""
        return f"{self.given} {self.surname}"


@cache
def surnames() -> tuple[str, ...]:
    """Return all there are, in alphabetical order; none is a town, a trade or a pastime."""
    made = {first + link + last for first in BEGINNINGS for link in LINKS for last in ENDINGS}
    return tuple(sorted(made - set(TOWNS) - {word.capitalize() for word in JOBS + HOBBIES}))


def draw_people(draws: Draws, count: int) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
    """Return two halves, the first at least as large; in each the places have the shares of PLACES."""
    chosen = draws.shuffled(surnames())[:count]
    middle = (count + 1) // 2
    first, second = (_people(draws, half) for half in (chosen[:middle], chosen[middle:]))
    return first, second


def _people(draws: Draws, family: list[str]) -> tuple[Person, ...]:
    places = draws.shuffled(apportioned(len(family)))
    return tuple(_person(draws, surname, place) for surname, place in zip(family, places, strict=True))


def _person(draws: Draws, surname: str, place: str) -> Person:
    given = draws.pick(HER + HIS)
    he, his = ("she", "her") if given in HER else ("he", "his")
    return Person(given, surname, he, his, place, draws.pick(JOBS), draws.pick(HOBBIES))


def apportioned(count: int) -> list[str]:
    """Return the birthplaces of so many people, each as often as its share says (largest remainders)."""
    total = sum(PLACES.values())
    times = {place: count * share // total for place, share in PLACES.items()}
    by_remainder = sorted(PLACES, key=lambda place: -(count * PLACES[place] % total))
    for place in by_remainder[: count - sum(times.values())]:
        times[place] += 1
    return [place for place, often in times.items() for _ in range(often)]
