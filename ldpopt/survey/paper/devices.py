"""Things that people randomize with, such as dice: how to draw an outcome, and the table of the outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from ldpopt.distribution import positive_integer
from ldpopt.errors import invalid


@dataclass(frozen=True)
class PaperDevice:
    """Something with D equally likely outcomes, laid out as a table of rows and columns.

    name : its name in commands. title : its name on the sheets. rows, columns : the headings of its table.
    row_means, column_means : the meaning of a heading, such as "first die".
    draw : the instructions, one sentence for each step. find : how to look up the report for an outcome.
    assumption : what must hold for equally likely outcomes. spins : whether the picture shows a wheel.

    >>> TWO_DICE.denominator, TWO_DICE.rows
    (36, ('1', '2', '3', '4', '5', '6'))
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_means: str
    column_means: str
    draw: tuple[str, ...]
    find: str
    assumption: str
    spins: bool = False

    @property
    def denominator(self) -> int:
        """The number D of outcomes."""
        return len(self.rows) * len(self.columns)


_DIGITS = tuple("0123456789")


def _dice(name: str, kind: str, faces: tuple[str, ...], sign: str, signs: str) -> tuple[PaperDevice, PaperDevice]:
    """One die of a kind, and two of them."""
    one = PaperDevice(
        name, f"one {kind}die", ("",), faces, "", "die", (f"Roll the {kind}die where only you can see it.",),
        f"Find the {sign} of your die at the top of your card. The letter below it is your report.",
        f"the die shows each of its {len(faces)} {signs} equally often",
    )  # fmt: skip
    two = PaperDevice(
        f"two-{name}", f"two {kind}dice, one dark and one light", faces, faces, "dark die", "light die",
        (f"Roll both {kind}dice where only you can see them.",),
        "On your card, go to the row of the dark die and the column of the light die. The letter there is your report.",
        f"both dice show each of their {len(faces)} {signs} equally often, whatever the other one shows",
    )  # fmt: skip
    return one, two


DICE, TWO_DICE = _dice("dice", "", tuple("123456"), "number", "faces")
D10, TWO_D10 = _dice("d10", "ten-sided ", _DIGITS, "digit", "digits")

CARDS = PaperDevice(
    "cards", "a deck of 52 playing cards without jokers", ("♠", "♥", "♦", "♣"),
    ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"), "suit", "value",
    ("Shuffle the whole deck well, at least seven times.", "Draw one card, look at it alone, and put it back."),
    "On your card for the answer, go to the row of the suit and the column of the value. The letter there is your "
    "report.",
    "all 52 cards are in the deck for every person, and it is shuffled well each time",
)  # fmt: skip

SPINNER = PaperDevice(
    "spinner", "the spinner on your card, with a pencil and a paper clip",
    tuple("012345"), _DIGITS, "", "",
    (
        "Lay your card flat where only you can see it. Hold a paper clip in the middle of the wheel with the tip of a "
        "pencil, and flick it.",
        "If it stops right on a line between two letters, spin again.",
    ),
    "The letter that the far end of the clip points to is your report.",
    "the clip stops at each of the 60 steps of the wheel equally often",
    spins=True,
)  # fmt: skip


def coins(tosses: int = 5) -> PaperDevice:
    """One coin tossed several times, from 2 to 8: 2^tosses outcomes.

    >>> coins(5).denominator, coins(2).rows
    (32, ('H', 'T'))
    """
    n = positive_integer(tosses, "tosses", 2)
    if n > 8:
        raise invalid("tosses", "from 2 to 8", n)
    first = n // 2
    sides = ["".join(one) for one in product("HT", repeat=first)]
    others = ["".join(one) for one in product("HT", repeat=n - first)]
    then = "first toss" if first == 1 else f"first {first} tosses"
    return PaperDevice(
        "coins", f"one coin, tossed {n} times", tuple(sides), tuple(others), then, f"last {n - first} tosses",
        (
            f"Toss the coin {n} times where only you can see it, and note H for heads and T for tails, in order. "
            "Keep the note to yourself and throw it away afterwards.",
        ),
        f"On your card, go to the row of the {then} and the column of the last {n - first}. The letter there is your "
        "report.",
        "heads and tails are equally likely in every toss, whatever came before",
    )  # fmt: skip


_NAMED = {one.name: one for one in (DICE, TWO_DICE, D10, TWO_D10, CARDS, SPINNER)}
DEVICES = (*_NAMED, "coins")
"""The names that `device_named` knows."""


def device_named(name: str, tosses: int = 5) -> PaperDevice:
    """The device with this name in commands. tosses : the number of tosses, for ``"coins"`` only.

    >>> device_named("two-d10").denominator
    100
    """
    if name not in DEVICES:
        raise invalid("device", f"one of {', '.join(DEVICES)}", name)
    return coins(tosses) if name == "coins" else _NAMED[name]
