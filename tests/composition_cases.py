"""The cases of `results_on_record` for compositions of channels, pairs, claims and parameters."""

import math
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from privacy_cases import CLAIMS, EVERY
from results_on_record import CHANNELS, PAIRS, Case, odd

from ldpopt import composition as co
from ldpopt import mechanisms, rounding
from ldpopt import privacy as pv


def module(name: str) -> Any:
    """A module of the package."""
    return import_module(f"ldpopt.composition.{name}")


PLAIN = co.FinitePair([0.75, 0.25], [0.25, 0.75])
WIDE = co.FinitePair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
OPEN = co.FinitePair([0.6, 0.1, 0.3], [0.0, 0.7, 0.3])
UNEVEN = co.FinitePair(*(CHANNELS["four"][:2]))
RARE = co.FinitePair(*(CHANNELS["rare"]))
LISTS: dict[str, Any] = {
    "two plain": ([PLAIN], 2),
    "nine plain": ([PLAIN], 9),
    "plain and wide": ([PLAIN, WIDE], 3),
    "open": ([OPEN], 4),
    "uneven": ([UNEVEN, PLAIN], 2),
    "rare": ([RARE], 3),
    "parameters": ([(0.5, 1e-6), (0.3,)], 5),
    "eta": ([(0.5, 1e-6, 0.1)], 20),
    "many": ([(0.1, 1e-8)], 500),
    "three": ([CHANNELS["three"]], 2),
    "two channels": ([CHANNELS["randomized response"], CHANNELS["strong"]], 1),
    "gaussian": ([mechanisms.GaussianPair(0.5)], 10),
    "gaussian and pair": ([mechanisms.GaussianPair(0.5), PLAIN], 2),
    "claims": ([pv.PureDP(0.4), pv.ApproximateDP(0.2, 1e-5)], 3),
    "equal": ([co.FinitePair([1.0], [1.0])], 3),
}


def _compose() -> list[Case]:
    made: list[Case] = [
        (f"compose {bad!r}", lambda bad=bad: co.compose(bad)) for bad in ((), ["x"], [None], [(1.0, 2.0)])
    ]
    for name, (items, count) in LISTS.items():
        made += [
            (f"about {name}", lambda i=items, n=count: _about(co.compose(i, n))),
            (f"delta of {name}", lambda i=items, n=count: _deltas(co.compose(i, n))),
            (f"epsilon of {name}", lambda i=items, n=count: _epsilons(co.compose(i, n))),
            (
                f"renyi of {name}",
                lambda i=items, n=count: [co.compose(i, n).renyi(x) for x in (1, 1.5, 2, 32, math.inf)],
            ),
            (f"curve of {name}", lambda i=items, n=count: co.compose(i, n).trade_off(9).knots),
        ]
    same = [CHANNELS["three"], CHANNELS["three"]]
    made.append(("same input", lambda: {key: _deltas(one) for key, one in co.compose_same_input(same, 2).items()}))
    made += odd("count", lambda x: _about(co.compose([PLAIN], x)))
    return [
        *made,
        *odd("delta at", co.compose([PLAIN], 3).delta_at),
        *odd("epsilon at", co.compose([PLAIN], 3).epsilon_at),
    ]


def _about(made: Any) -> Any:
    return made.count, made.exact, made.attained, repr(made), made.local_dp(), made.total_variation()


def _deltas(made: Any) -> Any:
    return [made.hockey_stick(x) for x in (0.0, 0.3, 1.0, 4.0, 30.0)] + [made.delta_at(x) for x in (0.7, 800.0)]


def _epsilons(made: Any) -> Any:
    return [made.approximate_dp(x) for x in (0.0, 1e-300, 1e-9, 0.01, 0.5, 1.0)] + [made.epsilon_at(1e-5)]


def _laws() -> list[Case]:
    lattice, direction, compose = module("lattice"), module("direction"), module("compose")
    made: list[Case] = []
    for name, parts in {
        "plain": ((PLAIN, 6),),
        "wide": ((WIDE, 3), (PLAIN, 2)),
        "open": ((OPEN, 5),),
        "uneven": ((UNEVEN, 40),),
        "rare": ((RARE, 2),),
        "parametric": ((module("parametric").ParametricPair.of(0.3, 1e-6, 0.1), 300),),
        "long": ((PLAIN, 4000),),
    }.items():
        made += [
            (f"direction of {name}", lambda p=parts: _direction(direction.Direction.of(p))),
            (f"inner {name}", lambda p=parts: _law(direction.Direction.of(p))),
            (f"largest loss of {name}", lambda p=parts: direction.largest_loss(p)),
            (f"counted {name}", lambda p=parts: compose.counted(p)),
        ]
    for name, (p, q) in PAIRS.items():
        pair = co.FinitePair(p[0], q[0])
        made += [
            (f"finite part of {name}", lambda x=pair: lattice.finite_part(x)),
            (f"mass of {name}", lambda x=pair: (direction.infinite_mass(x), direction.variation(x))),
            (f"rare of {name}", lambda x=pair: (module("parametric").rare(x), module("parametric").rare_error(x))),
        ]
    return made


def _direction(made: Any) -> Any:
    points = (0.0, 1e-9, 0.4, 2.0, 9.0, 60.0)
    deltas = (1e-300, 1e-12, 1e-3, 0.2, 0.9)
    return (
        made.slack,
        made.relative,
        [(made.upper(x), made.lower(x), made.bulk(x)) for x in points],
        [made.epsilon(x) for x in deltas],
        [made.shift(x) for x in (1e-9, 0.3, 1.0)],
    )


def _law(made: Any) -> Any:
    law = made.law
    if law is None:
        return None
    found = [[law.delta(x), law.bulk(x)] for x in (0.0, 0.4, 2.0, 30.0)], [law.epsilon(x) for x in (1e-9, 0.01)]
    losses, masses = law.atoms()
    more = [law.cumulant(x) for x in (-1.0, 0.0, 0.5, 3.0)] if hasattr(law, "cumulant") else None
    return type(law).__name__, found, losses[:: max(1, len(losses) // 9)], masses[:: max(1, len(masses) // 9)], more


def _k_fold() -> list[Case]:
    made: list[Case] = []
    for given in (
        (0.5, 0.0, None, 4),
        (0.5, 1e-6, 0.1, 7),
        (1e-9, 0.0, None, 3),
        (3.0, 0.01, None, 5),
        (0.0, 0.1, None, 3),
        (0.2, 0.0, 0.05, 60),
        (40.0, 0.0, None, 2),
        (800.0, 0.0, None, 2),
        (0.5, 1.0, None, 2),
        (0.3, 0.0, 0.0, 2),
    ):
        made.append((f"k_fold {given}", lambda g=given: _fold(co.k_fold(*g))))
        if given[2] is None:
            made.append((f"kov15 {given}", lambda g=given: _fold(co.kov15(g[0], g[1], g[3]))))
    for at in range(4):
        made += odd(
            f"k_fold {at}", lambda x, at=at: co.k_fold(*[x if n == at else (0.5, 1e-6, 0.1, 3)[n] for n in range(4)])
        )
    made += odd("at", co.k_fold(0.5, 1e-6, 0.1, 3).delta_at) + odd("epsilon", co.k_fold(0.5, 1e-6, 0.1, 3).epsilon_at)
    m = module("k_fold")
    made += [
        (f"trinomial {one}", lambda one=one: m.trinomial_log_pmf(*one))
        for one in ((3, 0.5, 0.2), (6, 2.0, 0.0), (5, 1e-9, 0.9), (4, 1.0, 1.0))
    ]
    return [
        *made,
        ("multiples", lambda: module("k_fold")._multiples(np.arange(5), 0.3)),
        ("binomial", lambda: m._binomial(7, 0.4)),
    ]


def _fold(made: Any) -> Any:
    points = (0.0, 0.25, 0.5, 1.0, 3.0, 1e3)
    return (
        made,
        [made.delta_at(x) for x in points],
        [made.epsilon_at(x) for x in (1e-9, 0.01, 0.4, 1.0)],
        made.total_variation,
        repr(made),
    )


ITEMS = {
    "compose_pure": ("pure", "measured"),
    "compose_approximate": ("approximate", "pure"),
    "compose_renyi": ("renyi",),
    "compose_zcdp": ("zcdp",),
    "compose_approximate_zcdp": ("approximate zcdp",),
    "compose_mcdp": ("mcdp",),
}


def _sums() -> list[Case]:
    made: list[Case] = []
    for name, kinds in ITEMS.items():
        function, found = getattr(co, name), [claim for kind in kinds for claim in CLAIMS[kind]]
        made += [(f"{name} {at}", lambda f=function, c=claim: f([c, c])) for at, claim in enumerate(found)]
        made += [(f"{name} of {n}", lambda f=function, c=found, n=n: f(c[:n])) for n in range(len(found) + 1)]
        made += [(f"{name} times {n}", lambda f=function, c=found, n=n: f([(c[-1], n), c[1]])) for n in (1, 2, 1000)]
        made += odd(f"{name} count", lambda x, f=function, c=found: f([(c[1], x)]))
        made.append((f"{name} of others", lambda f=function: f([pv.TV(0.1)])))
        made.append((f"{name} of one", lambda f=function: f(pv.TV(0.1))))
    means = [pv.MCDP(0.1, 0.5), pv.MCDP(0.3, 0.7), (pv.MCDP(0.05, 0.2), 9)]
    for adaptive in (True, False):
        for ordered in (True, False):
            made.append(
                (
                    f"mcdp {adaptive} {ordered}",
                    lambda a=adaptive, o=ordered: co.compose_mcdp(means, adaptive=a, ordered=o),
                )
            )
    for at, claim in enumerate(EVERY):
        for slack in (1e-300, 1e-6, 0.3):
            made += [
                (f"advanced {at} {slack}", lambda c=claim, s=slack: co.advanced_composition(c, 10, s)),
                (f"renyi advanced {at} {slack}", lambda c=claim, s=slack: co.renyi_advanced_composition(c, 10, s)),
                (f"zcdp advanced {at} {slack}", lambda c=claim, s=slack: co.zcdp_advanced_composition([c, c], s)),
            ]
        made += [
            (f"zcdp delta {at} {x}", lambda c=claim, x=x: co.zcdp_advanced_delta([c, c], x)) for x in (0.0, 0.7, 9.0)
        ]
        made += [(f"subsample {at} {n}", lambda c=claim, n=n: co.subsample(c, n, 10)) for n in (1, 9, 10, 11)]
    pure, zcdp = pv.PureDP(0.3), pv.ZCDP(0.0, 0.1)
    made += odd("slack", lambda x: co.advanced_composition(pure, 3, x)) + odd(
        "times", lambda x: co.advanced_composition(pure, x, 0.1)
    )
    made += odd("renyi slack", lambda x: co.renyi_advanced_composition(pure, 3, x))
    made += odd("renyi times", lambda x: co.renyi_advanced_composition(pure, x, 0.1))
    made += odd("zcdp slack", lambda x: co.zcdp_advanced_composition([zcdp], x)) + odd(
        "zcdp epsilon", lambda x: co.zcdp_advanced_delta([zcdp], x)
    )
    made += odd("sampled", lambda x: co.subsample(pure, x, 10)) + odd("population", lambda x: co.subsample(pure, 2, x))
    for name in ("restricted_sequential", "restricted_parallel"):
        function = getattr(co, name)
        made += [
            *odd(name, lambda x, f=function: f([0.3, x])),
            (f"{name} of none", lambda f=function: f([])),
        ]
    m, exact = (
        module("parametric"),
        (Fraction(1, 3), Fraction(1, 2**1080), Fraction(2) ** 1030, Fraction(0), Fraction(5, 2**1074)),
    )
    made += [(f"ends {at}", lambda x=x: (rounding.float_up(x), rounding.float_down(x))) for at, x in enumerate(exact)]
    made += [
        ("total", lambda: (m.total([(0.1, 3), (0.2, 1)]), m.union([(0.1, 3), (0.2, 1), (1e-300, 9)]), m.union([])))
    ]
    made += [("union", lambda: m.union_up([(Fraction(1, 3), 2), (Fraction(1), 0)]))]
    return [
        *made,
        *((f"largest {n}", lambda n=n: m.largest_integer(lambda x: x <= n, 100)) for n in (-1, 0, 1, 7, 99, 100, 300)),
    ]


def _ledger() -> list[Case]:
    made: list[Case] = []
    ledger = co.Ledger().add(CHANNELS["three"], 2, "first").add(PLAIN, 3).add((0.2, 1e-6), 4, "claims")
    mixed = co.Ledger().add(mechanisms.GaussianPair(0.4), 3).add(CHANNELS["randomized response"])
    open_one, empty = co.Ledger().add(OPEN, 2).add(PLAIN), co.Ledger()
    features = co.Ledger().add(CHANNELS["three"], 2, "first", [0.0, 1.0, 2.0, 3.0])
    claimed = co.Ledger().add(pv.PureDP(0.3), 2).add(pv.ApproximateDP(0.2, 1e-6))
    books = {
        "plain": ledger,
        "mixed": mixed,
        "open": open_one,
        "empty": empty,
        "claimed": claimed,
        "features": features,
    }
    for name, book in books.items():
        made += [
            (f"pure of {name}", lambda b=book: (b.local_dp(), b.total_variation(), len(b), repr(b), repr(list(b)))),
            (
                f"delta of {name}",
                lambda b=book: (
                    [b.hockey_stick(x) for x in (0.0, 1.0, 9.0)],
                    [b.approximate_dp(x) for x in (0.0, 1e-6, 0.2)],
                ),
            ),
            (f"renyi of {name}", lambda b=book: [b.renyi(x) for x in (1, 1.5, 8.0, math.inf)]),
            (f"zcdp of {name}", lambda b=book: [b.zcdp(x) for x in (0.0, 0.2)]),
            (f"approximate zcdp of {name}", lambda b=book: [b.approximate_zcdp(x) for x in (0.0, 0.2)]),
            (f"mcdp of {name}", lambda b=book: [b.mcdp(adaptive=x) for x in (True, False)]),
            *(
                (f"{d!r} of {name}", lambda b=book, d=d: b.capacity_bounded(d))
                for d in (pv.RestrictedKL(), pv.RestrictedRenyi(2.0))
            ),
        ]
    made += (
        odd("times", lambda x: co.Ledger().add(PLAIN, x))
        + odd("order", ledger.renyi)
        + odd("xi", lambda x: mixed.zcdp(x))
    )
    made += odd("what", co.Ledger().add)
    made.append(("sum of two", lambda: (mixed + open_one).local_dp()))
    m = module("mechanism")
    for name, (items, _) in LISTS.items():
        made.append((f"mechanism of {name}", lambda i=items: [_mechanism(m.as_mechanism(one)) for one in i]))
    made += [(f"claim {at}", lambda c=claim: _mechanism(m.as_mechanism(c))) for at, claim in enumerate(EVERY)]
    return made


def _mechanism(made: Any) -> Any:
    return made.pure, [made.renyi(x) for x in (1e-6, 0.5, 30.0)], made.gaussian, made.mcdp


def _filters() -> list[Case]:
    made: list[Case] = []
    budgets = (
        pv.PureDP(1.0),
        pv.ApproximateDP(1.0, 1e-6),
        pv.ZCDP(0.0, 0.1),
        pv.RenyiDP(4.0, 0.5),
        pv.ApproximateDP(0.3, 0.0),
        pv.ApproximateZCDP(1e-6, 0.0, 0.1),
        pv.TV(0.5),
        pv.MCDP(0.1, 0.5),
        "x",
    )
    steps = (CHANNELS["randomized response"], (0.1,), (0.05, 1e-8), mechanisms.GaussianPair(0.05), pv.PureDP(0.2), OPEN)
    for at, budget in enumerate(budgets):
        for step, one in enumerate(steps):
            made.append((f"room {at} {step}", lambda b=budget, s=one: _room(co.PrivacyFilter(b), s)))
    made += [
        (f"odometer {delta}", lambda d=delta: co.PrivacyOdometer(d).add((0.1,), 5).add(PLAIN).reading)
        for delta in (0.0, 1e-9, 0.1, 1.0)
    ]
    made += odd("odometer", lambda x: co.PrivacyOdometer(x).add((0.1,), 2).reading)
    made += [
        (f"orders {x}", lambda x=x: co.PrivacyOdometer(1e-6, x).add((0.1,), 3).reading)
        for x in ((2.0,), (), (1.0,), (4.0, 2.0), "x")
    ]
    made += odd("lost", lambda x: co.PrivacyFilter(pv.PureDP(1.0), lost=x))
    target = pv.ApproximateDP(1.0, 1e-6)
    for n in (1, 2, 30):
        made += [
            (f"largest epsilon {n} {e}", lambda n=n, e=e: co.largest_epsilon(target, n, e)) for e in (0.0, 0.3, 1.0)
        ]
    made += odd("erasure", lambda x: co.largest_epsilon(target, 3, x))
    made += [(f"largest count {at}", lambda s=one: co.largest_count(s, target, 200)) for at, one in enumerate(steps)]
    made += odd("limit", lambda x: co.largest_count((0.2,), target, x if not isinstance(x, int) or x < 10**6 else 50))
    return made


def _room(book: Any, step: Any) -> Any:
    added = book.add(step) if book.admits(step) else book
    return (
        book.admits(step),
        book.admits(step, 3),
        book.room(step, 40),
        added.room(step, 40),
        added.lost,
        len(added.ledger),
    )


def _gaussian() -> list[Case]:
    made: list[Case] = []
    made += [
        (f"variation {mu} {n}", lambda mu=mu, n=n: co.gaussian_total_variation(mu, n))
        for mu in (0.0, 1e-9, 0.5, 60.0)
        for n in (1, 4)
    ]
    made += [
        (f"curve {mu}", lambda mu=mu: co.gaussian_trade_off(mu, [0.0, 1e-9, 0.3, 0.5, 1.0]))
        for mu in (0.0, 0.5, 6.0, 60.0)
    ]
    made += odd("mu", co.gaussian_total_variation) + odd("count", lambda x: co.gaussian_total_variation(0.5, x))
    arrays = ([0.5, 2.0], [-1.0, 0.5], [[0.1], [0.9]], [], [0.0, 1.0])
    made += [(f"type one {one}", lambda x=one: co.gaussian_trade_off(0.5, x)) for one in arrays]
    made += odd("type one", lambda x: co.gaussian_trade_off(0.5, x)) + odd(
        "mu of curve", lambda x: co.gaussian_trade_off(x, 0.1)
    )
    for given in (
        ([0.1] * 30, [0.02] * 30),
        ([0.1], [0.02]),
        ([0.5, 0.1], [0.1, 0.01]),
        ([], []),
        ([0.1], [0.5]),
        ([0.1, 0.2], [0.01]),
        ("x", [0.1]),
    ):
        made.append((f"limit {given}"[:90], lambda g=given: co.gaussian_limit(*g)))
    made += odd("limit of", lambda x: co.gaussian_limit([x], [0.01])) + odd(
        "eta of limit", lambda x: co.gaussian_limit([0.3], [x])
    )
    law = module("direction").GaussianLaw
    for scale, n in ((0.3, 1), (0.5, 40), (6.0, 2)):
        made.append((f"law {scale} {n}", lambda s=scale, n=n: _gauss(law.of([(mechanisms.GaussianPair(s), n)]))))
    m = module("sums")
    parts = (((0.1, 0.5, 2), (0.3, 0.7, 1)), ((0.0, 0.0, 3),), ((0.0, 0.7, 1),), ((2.0, 0.1, 1), (0.01, 3.0, 50)))
    for at, part in enumerate(parts):
        made += [
            (f"fixed {at}", lambda p=part: m.fixed_standard(p)),
            (f"adaptive {at}", lambda p=part: m.adaptive_standard(p)),
            (f"in order {at}", lambda p=part: m.adaptive_standard(p, ordered=True)),
        ]
    s, plain = module("mechanism"), (PLAIN,)
    rows = tuple(co.FinitePair(a, b).ordered for a in CHANNELS["three"] for b in CHANNELS["three"] if a != b)
    for name in ("best_pair", "best_in_order"):
        function = getattr(s, name)
        made.append((name, lambda f=function: f([(rows, 2)])))
        made.append((f"{name} of two", lambda f=function: f([(rows, 1), (plain, 2)])))
    p = module("parametric").ParametricPair
    for given in ((0.5, 0.0, None), (0.5, 1e-6, 0.1), (0.0, 0.1, None), (800.0, 0.0, None), (1e-9, 1e-12, None)):
        made.append(
            (f"parametric {given}", lambda g=given: (p.of(*g), p.of(*g).losses, p.of(*g).swapped, p.of(*g).ordered))
        )
    return made


def _gauss(law: Any) -> Any:
    points = [[law.delta(x), law.bulk(x)] for x in (0.0, 1e-9, 0.4, 9.0, 80.0)]
    losses, masses = law.atoms()
    pair = law.finite_pair()
    return (
        points,
        [law.epsilon(x) for x in (1e-300, 1e-9, 0.1, 0.9)],
        losses[::500],
        masses[::500],
        pair.p[::500],
        pair.q[::500],
    )


CASES = {
    "compose": _compose(),
    "laws": _laws(),
    "k_fold": _k_fold(),
    "sums": _sums(),
    "ledger": _ledger(),
    "filters": _filters(),
    "gaussian": _gaussian(),
}
SEARCHED = {"laws", "filters", "gaussian"}
ULPS = {name: 2.0**14 if name in SEARCHED else 100.0 if name in ("compose", "ledger") else 6.0 for name in CASES}
"""Units in the last place that results may differ by: more where a search or a transform ends."""
