"""The cases of `results_on_record` for what proofs are made of: residuals, raises, rays, orders and boxes."""

import math
from importlib import import_module
from typing import Any

import numpy as np
from results_on_record import Case, matrix, odd

from ldpopt import divergences as dv
from ldpopt.design import LocalDP, Outputs, RenyiLDP, Support, TotalVariation
from ldpopt.design.utilities.laws import Laws
from ldpopt.numbers import rounding
from ldpopt.numbers.enclosures import EXACT, FLOAT


def module(name: str) -> Any:
    """A module of the kernel."""
    return import_module(f"ldpopt.design.certificates.{name}")


def ends(enclosure: Any) -> Any:
    """The two ends, nested as they are."""
    if isinstance(enclosure, tuple | list):
        return [ends(one) for one in enclosure]
    return (
        [np.asarray(enclosure.lower, dtype=float), np.asarray(enclosure.upper, dtype=float)]
        if hasattr(enclosure, "upper")
        else enclosure
    )


P0, P1 = np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.125, 0.25, 0.125, 0.5])
FS = {
    "kl": dv.KL,
    "tv": dv.TOTAL_VARIATION,
    "chi": dv.CHI_SQUARED,
    "hellinger": dv.SQUARED_HELLINGER,
    "hockey": dv.hockey_stick(1.5),
    "reverse": dv.REVERSE_KL,
}
EPSILONS = (1e-9, 1e-3, 0.05, 0.5, 1.0, 5.0, 40.0, 800.0)


def _numbers() -> list[Case]:
    m = module("numbers")
    made: list[Case] = []
    lists: tuple[Any, ...] = (
        [1.0, 2.0],
        [2.0, 1.0],
        [1.0, 1.0],
        [],
        [0.0, 0.0],
        [-1.0, 1.0],
        [-5e-324],
        [math.nan],
        [math.inf],
        [[1.0]],
        "x",
        None,
        [1, 2],
        [True],
        ["1"],
        np.array([1 + 0j]),
        [10**400],
        [None],
        np.zeros((2, 0)),
        3.0,
    )
    for name in ("real_numbers", "increasing", "nonnegative_list"):
        function = getattr(m, name)
        made += [(f"{name} {at}", lambda f=function, x=x: f(x, "it")) for at, x in enumerate(lists)]
    for name in ("real_array", "nonnegative_array"):
        function = getattr(m, name)
        for shape in ((-1,), (2,), (), (1, 1)):
            made += [
                (f"{name} {at} {shape}", lambda f=function, x=x, s=shape: f(x, s, "it")) for at, x in enumerate(lists)
            ]
    made += [(f"count {at}", lambda x=x: m.count(x)) for at, x in enumerate(lists)]
    made += [
        (f"positions {at}", lambda x=x: m.positions(x, 2, 3, "it"))
        for at, x in enumerate((*lists, [0, 1], [0, 3], [2, 2], [-1, 0], [0, 1, 2]))
    ]
    made += odd("nonnegative", lambda x: m.nonnegative(x, "it")) + odd("position", lambda x: m.position(x, 2, "it"))
    made += [
        ("expect", lambda: m.expect(1, float, "it")),
        ("each", lambda: m.expect_each((1, "x"), int, "it")),
        ("no each", lambda: m.expect_each([1], int, "it")),
    ]
    for name in ("up", "down"):
        sizes = (0.0, 5e-324, 0.5, 1.0, 1e308, math.inf)
        made += [
            (f"{name} {x}", lambda f=name, x=x: [getattr(rounding, f)(x, n) for n in (0, 1, 4.0, 64)]) for x in sizes
        ]
    for name in ("ceil_digits", "floor_digits"):
        values = (
            0.0,
            1.0,
            0.1,
            1 / 3,
            -2 / 3,
            123456.7,
            1234567.8,
            5e-324,
            1e308,
            math.inf,
            math.nan,
            0.5000000001,
            rounding.up(0.5),
            -0.1234567,
        )
        made += [
            (f"{name} {x!r}", lambda f=name, x=x: [getattr(rounding, f)(x, n) for n in (1, 3, 6, 10)]) for x in values
        ]
    made += [
        ("sums", lambda: [rounding.sum_up(*x) for x in ((1.0, -1.0), (0.0,), (1e300, 1.0, -1e300), (0.1, 0.2, 0.3))])
    ]
    made += [
        (
            "exact sums",
            lambda: [rounding.exact_sum(np.array(x)) for x in ([1e300, 1e-300, -1e300], [0.1, 0.2], [5e-324], [])],
        )
    ]
    return [
        *made,
        ("toward privacy", lambda: [rounding.toward_privacy(x) for x in (0.0, 1e-300, 1e-15, 2.0**-46, 1.0, 700.0)]),
    ]


def _residuals() -> list[Case]:
    m = module("chords")
    made: list[Case] = []
    for seed in range(4):
        rows = np.array(matrix(3, 4, seed)) - 0.2 - 0.05 * seed
        for spread in (None, 1e-3, 0.5, 3.0, 40.0, 800.0):
            for variation in (None, 0.0, 0.3):
                given = [None if x is None else FLOAT.of(x) for x in (spread, variation)]
                made.append(
                    (
                        f"residual {seed} {spread} {variation}",
                        lambda r=rows, g=given: m.enclosed_residual(FLOAT.of(r), FLOAT.of(r.sum(axis=1)), *g),
                    )
                )
        made += [
            (f"least shift {seed} {t}", lambda r=rows, t=t: m._least_shift(r, r.sum(axis=1), t))
            for t in (1e-3, 0.7, 1e3)
        ]
    made += [
        (
            "residual of none",
            lambda: m.enclosed_residual(FLOAT.of(np.full((1, 2), math.inf)), FLOAT.of(np.zeros(1)), None),
        )
    ]
    made += [
        (
            "residual beyond",
            lambda: m.enclosed_residual(FLOAT.of(np.ones((1, 2))), FLOAT.of(np.full(1, math.inf)), FLOAT.of(1.0)),
        )
    ]
    c = module("capacity")
    made += [
        (f"capacity {x} {of}", lambda x=x, a=a: ends(c.information_capacity(a.of(x))))
        for x in EPSILONS
        for of, a in (("floats", FLOAT), ("balls", EXACT))
    ]
    return made


def _raises() -> list[Case]:
    m = module("marginals")
    made: list[Case] = []
    for seed in range(4):
        rows = np.array(matrix(3, 4, seed)) - 0.23
        left, base, mean = rows[:, :3], rows[:, 3] / 4, np.array([0.5, 0.3, 0.2])
        given = [FLOAT.of(x) for x in (left, base, mean)]
        sinks = np.array([True, False, seed > 1])
        other = m.Raise(np.abs(rows[:, 3]), np.abs(rows[:, 1:]), np.abs(left))
        for x in (0.0, 0.3, 2.0, 1e6):
            level = FLOAT.of(x)
            made += [
                (f"least raise {seed} {x}", lambda a=left, b=base, c=mean, x=x: m.least_raise(a, b, c, x)),
                (f"rows {seed} {x}", lambda g=given, x=level: m.raise_of_rows(*g, x, 1.0)),
                (
                    f"both {seed} {x}",
                    lambda g=given, k=sinks, x=level: _fields(m.raise_of_both(*g[:2], k, g[2], x, 1.0)),
                ),
                (f"total {seed} {x}", lambda a=other, x=level: ends(a.total(x))),
                (
                    f"costs {seed} {x}",
                    lambda a=other, x=x: (
                        a.cost(x),
                        [part[[0, 2]] for part in _fields(a)],
                        [np.concatenate([part, part]) for part in _fields(a)],
                    ),
                ),
            ]
    return made


def _rays() -> list[Case]:
    chords, tails, log = module("chords"), module("tails"), module("hypotheses")
    made: list[Case] = []
    laws = Laws.of(P0, P1, FLOAT)
    knots = np.array([0.0, 0.3, 0.5, 0.6, 1.0])
    sets: dict[str, list[Any]] = {
        "pure": [LocalDP(1.0)],
        "renyi": [RenyiLDP(2.0, 0.5)],
        "variation": [TotalVariation(0.3)],
        "both": [RenyiLDP(3.0, 0.5), LocalDP(2.0)],
        "none": [],
    }
    for spread in (None, 0.2, 1.0, 9.0):
        given = None if spread is None else FLOAT.of(spread)
        made.append(
            (
                f"rays {spread}",
                lambda g=given: _halved(chords.rays(laws, [0, 1, 2, 3], knots, g, FLOAT)),
            )
        )
        cut = chords.rays(laws, [3, 1, 2, 0], knots, given, FLOAT)
        made.append((f"rays in order {spread}", lambda c=cut: _halved(c)))
        for name, f in FS.items():
            made += [
                (
                    f"open chords {name} {spread}",
                    lambda f=f, c=cut: [ends(x) for x in _fields(chords.open_chords(f, laws, c))],
                ),
                (f"open sides {name} {spread}", lambda f=f, c=cut: chords.open_sides(f, c)),
                (f"planes {name} {spread}", lambda f=f, c=cut: ends(chords._planes(f, c))),
            ]
            for said, constraints in sets.items():
                made.append(
                    (
                        f"chords {name} {spread} {said}",
                        lambda f=f, c=cut, k=constraints: _chords(chords, f, laws, c, knots, k),
                    )
                )
    for name, f in FS.items():
        for said, constraints in sets.items():
            made.append(
                (
                    f"reach {name} {said}",
                    lambda f=f, k=constraints: chords.posterior_range(
                        f, P0, np.array([0.0, 0.4, 0.2, 0.4]), k, range(4)
                    ),
                )
            )
            for mirrored in (False, True):
                made.append(
                    (f"far {name} {said} {mirrored}", lambda f=f, k=constraints, x=mirrored: tails.far_enough(f, x, k))
                )
        for mirrored in (False, True):
            made.append((f"power {name} {mirrored}", lambda f=f, x=mirrored: _curve(tails.tail_curve(f, x))))
    for power in ((2.0, 1.0), (1.5, 0.5), (3.0, 2.0)):
        curve = (power[0], power[0] * power[1])
        for said, constraints in sets.items():
            made.append(
                (
                    f"cost {power} {said}",
                    lambda c=curve, k=constraints: ends(tails.tail_cost(c, FLOAT.of(2.0), k)),
                )
            )
    made += [
        (f"log rays {x}", lambda x=x: [ends(y) for y in _fields(log.Rays.at(np.array([x, -x]), FLOAT))])
        for x in (0.0, 1e-9, 0.5, 1.0, 2.0, 300.0, 800.0)
    ]
    made += [
        (
            "log ratios",
            lambda: (log.log_ratios(laws), log.log_ratios(Laws.of(P0, np.array([0.0, 0.5, 0.25, 0.25]), FLOAT))),
        )
    ]
    return made


def _chords(chords: Any, *given: Any) -> Any:
    return [[ends(x) for x in _fields(one)] for one in chords.enclosed_chords(*given)]


def _halved(rays: Any) -> Any:
    """The ends of a, b and a - 1/2."""
    return [ends(rays.a), ends(rays.b), [part / 2 for part in ends(rays.lean)]]


def _curve(curve: Any) -> Any:
    """The degree and the factor of the rest above a tangent, and the curve itself."""
    return (None, None) if curve is None else ((float(curve[0]), curve[1] / float(curve[0])), curve)


def _fields(record: Any) -> list[Any]:
    return [getattr(record, name) for name in record.__dataclass_fields__]


def _order() -> list[Case]:
    m, classes, boxes = module("hypotheses"), module("hypotheses"), module("boxes")
    given = {
        "plain": (P0, P1),
        "turned": (P1, P0),
        "equal": (P0, P0),
        "zeros": (np.array([0.5, 0.5, 0.0, 0.0]), np.array([0.0, 0.25, 0.75, 0.0])),
        "near": (P0, P0 * np.array([1, 1 + 2.0**-50, 1, 1 - 2.0**-50])),
        "huge": (P0 * 1e300, P1 * 1e300),
        "few": (np.array([0.75, 0.25]), np.array([0.25, 0.75])),
        "less": (np.array([0.625, 0.375]), np.array([0.25, 0.75])),
        "many": tuple(np.array(matrix(2, 40, 3))),
    }
    made: list[Case] = [(f"order {name}", lambda x=x: m.by_ratio(*x)) for name, x in given.items()]
    made += [
        (f"{a} dominates {b}", lambda x=x, y=y: m.dominates(*x, *y)) for a, x in given.items() for b, y in given.items()
    ]
    for name, pair in given.items():
        made.append(
            (
                f"sorted {name}",
                lambda x=pair: (lambda s: (s.posterior, s.blur, ends(s.first), ends(s.rest)))(m._Sorted.of(*x)),
            )
        )
        for upper in (False, True):
            made.append(
                (
                    f"most {name} {upper}",
                    lambda x=pair, u=upper: m._Sorted.of(*x).most(np.array([0.0, 0.25, 0.3, 0.5, 0.8, 1.0]), u),
                )
            )
            for other, against in given.items():
                made.append(
                    (
                        f"settled {name} {other} {upper}",
                        lambda x=pair, y=against, u=upper: m._settled(
                            m._Sorted.of(*x), m._Sorted.of(*y), np.array([0.0, 0.2, 0.25, 0.5, 0.75, 1.0]), u
                        ),
                    )
                )
        numbers = (
            np.zeros(len(pair[0]), int),
            np.arange(len(pair[0])),
            np.array([0, 1, 1, 2]),
            np.array([0, 2, 2, 2]),
            np.array([0.5] * len(pair[0])),
            None,
        )
        made += [
            (
                f"classes {name} {at}",
                lambda x=pair, n=n: (lambda c: (c.number, c.count, c.trivial))(classes.Classes.checked(n, *x)),
            )
            for at, n in enumerate(numbers)
        ]
    mask = np.array([[True, True, False], [True, True, True], [False, False, True], [True, True, True]])
    other = np.array([[True, False, False], [True, True, True], [False, True, True], [True, True, True]])
    for name, constraints in {
        "outputs": [Outputs(3)],
        "alike": [Support(mask)],
        "unlike": [Support(other)],
        "two": [Support(mask), Outputs(3)],
    }.items():
        for extra in ([TotalVariation(0.3)], [LocalDP(1.0)]):
            made.append((f"boxes {name} {extra}", lambda k=[*constraints, *extra]: _boxes(boxes, k)))
    return made


def _boxes(boxes: Any, constraints: list[Any]) -> Any:
    classes = module("hypotheses").Classes.checked(np.arange(4), P0, P1)
    made = boxes.Boxes.of(dv.KL, classes, (P0, P1), constraints, range(4), FLOAT)
    splits = [boxes.Split(output, cut, 1, 2) for output in (0, 2) for cut in (-0.3, 0.4, 9.0)]
    halves = [made.halves(made.root, split) for split in splits]
    planes = made.planes(np.stack([made.root, *halves[0], *halves[1]]))
    return (
        made.root,
        made.groups,
        halves,
        [made.empty(box) for pair in halves for box in pair],
        ends(planes.level),
        planes.slope,
        planes.near,
        planes.above,
    )


CASES = {"numbers": _numbers(), "residuals": _residuals(), "raises": _raises(), "rays": _rays(), "order": _order()}
ULPS = dict.fromkeys(CASES, 256.0)
"""Units in the last place that results may differ by."""
