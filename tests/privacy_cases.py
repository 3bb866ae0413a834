"""The cases of `results_on_record` for measures of channels and pairs, claims and their conversions."""

import math
from fractions import Fraction
from importlib import import_module
from typing import Any

import networkx as nx
import numpy as np
from results_on_record import CHANNELS, PAIRS, Case, matrix, odd

from ldpopt import privacy as pv
from ldpopt.channel import Channel
from ldpopt.exact import ExactChannel


def module(name: str) -> Any:
    """A module whose name a function has, too."""
    return import_module(f"ldpopt.privacy.{name}")


PATH = nx.path_graph(3)
SMALL = np.array(CHANNELS["many"])
CLOSE = np.array(matrix(1, 5, 2)) * (1 + 1e-6 * np.array(matrix(9, 5, 4)))
CLOSE = CLOSE / CLOSE.sum(axis=1, keepdims=True)
NAMED = Channel([[0.75, 0.25], [0.25, 0.75]], inputs=["a", "b"], outputs=["no", "yes"])


def channels(name: str, measure: Any, only: Any = None) -> list[Case]:
    """A measure of every channel, and of a policy graph."""
    found = [
        (f"{name} of {said}", lambda rows=rows: measure(rows))
        for said, rows in CHANNELS.items()
        if not only or said in only
    ]
    return found


def pairs(name: str, measure: Any) -> list[Case]:
    """A function of two stacked rows, on the first two of every channel, in both orders."""
    made = []
    for said, (p, q) in PAIRS.items():
        made.append((f"{name} of {said}", lambda p=p, q=q: measure(p, q)))
        made.append((f"{name} of {said} swapped", lambda p=p, q=q: measure(q, p)))
    return made


def graphs(name: str, measure: Any) -> list[Case]:
    """A measure under a policy graph, under a directed one, and under those that are none."""
    rows = CHANNELS["three"]
    return [
        (f"{name} on a path", lambda: measure(rows, PATH)),
        (f"{name} on an arrow", lambda: measure(rows, nx.DiGraph([(0, 2)]))),
        (f"{name} on another arrow", lambda: measure(rows, nx.DiGraph([(2, 0)]))),
        (f"{name} on no edge", lambda: measure(rows, nx.empty_graph(3))),
        (f"{name} on an unknown input", lambda: measure(rows, nx.Graph([(0, 7)]))),
        (f"{name} on a list", lambda: measure(rows, [(0, 1)])),
        (f"{name} of names", lambda: measure(NAMED)),
    ]


def _local_dp() -> list[Case]:
    m = module("local_dp")
    return [
        *channels("local_dp", pv.local_dp),
        *graphs("local_dp", pv.local_dp),
        *pairs("largest", m._largest),
        ("log error", lambda: m._log_error(np.array([-3.0, -0.5, 0.0, 1e-9, 2.0, 700.0]))),
        ("ends", lambda: [(m._up(x), m._down(x)) for x in (0.0, -1e-17, 1e-300, 0.5, 700.0, math.inf)]),
    ]


def _laws() -> list[Case]:
    m = module("laws")
    exponents = (-800.0, -1.0, 0.0, 1e-9, 0.5, 699.9, 700.0, 700.1, 1400.0, 1e7)
    return [
        *channels("centred", lambda q: m.centred(np.array(q))),
        *channels("sums", lambda q: (m.defects(np.array(q)), m.log_sums(np.array(q)))),
        *pairs("shift", m.shift),
        *(
            (f"scaled by {x}", lambda x=x: m.scaled(np.array([[1.0, 0.3, 1e-300, 5e-324, 0.0]]), np.array([x])))
            for x in exponents
        ),
    ]


def _loss() -> list[Case]:
    m = module("loss")
    steps = np.array([1e-12, 3e-10, 2e-7, 1e-4, 0.003, 0.07, 0.3, 0.5, 0.5 + 1e-12, 2.0, 30.0, 300.0, 599.0, 601.0])
    steps = np.concatenate([steps, -steps, [0.0]])
    orders = (-300.0, -1.0, 1e-9, 0.5, 1.0, 63.0, 1e5)
    made = [*pairs("loss", lambda p, q: m.privacy_loss(p, q, 0.0)), *pairs("rounded loss", m.privacy_loss)]
    made += [("excess", lambda: m.excess(steps)), ("infinite order", lambda: m.privacy_loss(*PAIRS["four"]).rows([0]))]
    for s in orders:
        at = np.array([s])
        made += pairs(f"cumulant at {s}", lambda p, q, at=at: m.privacy_loss(p, q, 0.0).cumulant(at))
        made += pairs(f"sum at {s}", lambda p, q, at=at: m.privacy_loss(p, q)._summed(np.array([0]), at))
        if s > 0:
            made += pairs(f"divergence at {s}", lambda p, q, at=at: m.privacy_loss(p, q).divergence(at))
    return [*made, *pairs("log ratios", lambda p, q: m.log_ratios(np.maximum(p, 5e-324), np.maximum(q, 5e-324)))]


def _renyi() -> list[Case]:
    m = module("renyi")
    made = [
        case
        for order in (1, 1 + 1e-9, 1.5, 2, 64.0, math.inf)
        for case in channels(f"renyi of order {order}", lambda q, order=order: pv.renyi(q, order))
    ]
    made += [*graphs("renyi", lambda q, graph=None: pv.renyi(q, 2, graph)), *odd("renyi", lambda x: pv.renyi(SMALL, x))]
    for said, q in (("many", SMALL), ("close", CLOSE), ("erasure", np.array(CHANNELS["erasure"]))):
        for s in (1e-6, 0.3, 2.0, 40.0, -0.5):
            made.append((f"moments of {said} at {s}", lambda q=q, s=s: m.Moments.of(q).log_moment(s)))
        made.append((f"mean of {said}", lambda q=q: (m.Moments.of(q).mean, m.Moments.of(q).span)))
        made.append((f"screen of {said}", lambda q=q: (m._screen(q, 1.0), m._screen(q, 3.0))))
    made += pairs("renyi of pairs", lambda p, q: [m.renyi_of_pairs(p, q, order) for order in (1, 2.5, math.inf)])
    return [*made, *odd("order", m.renyi_order)]


def _hockey_stick() -> list[Case]:
    m, laws = module("approximate_dp"), module("laws")
    made = []
    for x in (0.0, 1e-9, 0.3, 0.5, 0.6, 3.0, 700.0, 745.0):
        made += channels(f"hockey_stick at {x}", lambda q, x=x: pv.hockey_stick(q, x))
        made += pairs(f"positive part at {x}", lambda p, q, x=x: m._positive_part(p, q, x, laws.shift(p, q)))
        made.append((f"screens at {x}", lambda x=x: (m.screen(SMALL, x), m.screen(CLOSE, x))))
    made += [*graphs("hockey_stick", lambda q, graph=None: pv.hockey_stick(q, 0.3, graph))]
    return [*made, *odd("hockey_stick", lambda x: pv.hockey_stick(SMALL, x))]


def _approximate_dp() -> list[Case]:
    m = module("approximate_dp")
    made = []
    for x in (0.0, 1e-300, 1e-12, 0.03, 0.1, 0.5, 0.6, 1.0):
        made += channels(f"approximate_dp at {x}", lambda q, x=x: pv.approximate_dp(q, x))
        made += pairs(f"epsilon at {x}", lambda p, q, x=x: m.epsilon_of_pairs(p, q, x))
        made.append((f"screens at {x}", lambda x=x: (m._screen(SMALL, x), m._screen(CLOSE, x))))
        made += pairs(f"exceeds {x}", lambda p, q, x=x: m._exceeds(p[0], q[0], x))
    made += [*pairs("events", m._events), *odd("approximate_dp", lambda x: pv.approximate_dp(SMALL, x))]
    return [*made, *graphs("approximate_dp", lambda q, graph=None: pv.approximate_dp(q, 0.03, graph))]


def _total_variation() -> list[Case]:
    m = module("approximate_dp")
    return [
        *channels("total_variation", pv.total_variation),
        *graphs("total_variation", pv.total_variation),
        ("close", lambda: pv.total_variation(CLOSE)),
        *channels("candidates", lambda q: m._candidates(np.array(q))),
    ]


CURVES = ("randomized response", "three", "strong", "zeros", "erasure", "subnormal", "sums", "equal")


def _trade_off() -> list[Case]:
    m = module("trade_off")
    curve, other = pv.trade_off(CHANNELS["three"]), pv.trade_off(CHANNELS["strong"])
    bad = (
        [],
        [[0.0, 1.0]],
        [[0, 1], [1, 0], [0.5, 0]],
        [[0.0, 1.0], [0.5, 0.6], [1.0, 0.0]],
        [[0.1, 1.0], [1.0, 0.0]],
        [[0.0, 1.0], [1.0, 0.1]],
        [[0.0, 0.5], [0.5, 0.5], [0.6, 0.0]],
        [[0, 1], [1, 0]],
        [[0, -0.1], [1, 0]],
        [[0.0, 1.0 + 1e-9], [1.0, 0.0]],
        [[0.0, 1.0 + 3e-9], [1.0, 0.0]],
        [[0.0, 0.0]],
        [0.0, 1.0],
        "x",
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    )
    many = np.stack([np.linspace(0, 1, 20001), (1 - np.linspace(0, 1, 20001)) ** 2], axis=1)
    return [
        *channels("trade_off", lambda q: (pv.trade_off(q).knots, pv.trade_off(q).slack), CURVES),
        *graphs("trade_off", lambda q, graph=None: pv.trade_off(q, graph).knots),
        ("at", lambda: [curve(t) for t in (0.0, 0.1, 0.5, 1.0)] + [curve([0.2, 0.3])]),
        *odd("curve", curve),
        *((f"curve at {one}", lambda x=one: curve(x)) for one in ([0.5, 2.0], [-1.0, 0.5], [], [0.0, 1.0])),
        ("inverse", lambda: (curve.inverse().knots, curve.symmetrised().knots, str(curve))),
        ("dominates", lambda: [a.dominates(b) for a in (curve, other) for b in (curve, other)]),
        ("to delta", lambda: [curve.to_approximate_dp(x) for x in (0.0, 0.3, 2.0, 50.0)]),
        ("to variation", lambda: (curve.to_total_variation(), other.to_total_variation())),
        *((f"knots {bad}", lambda bad=bad: pv.TradeOffCurve(bad).knots) for bad in bad),
        ("hull of many", lambda: m._hull(many)[::500]),
        *odd("to_approximate_dp", curve.to_approximate_dp),
    ]


FEW = ("randomized response", "three", "strong", "near", "an ulp", "erasure", "rare", "subnormal", "sums", "equal")


def _zcdp() -> list[Case]:
    m = module("concentrated")
    made = channels("zcdp", pv.zcdp, FEW)
    made += channels("zcdp beyond", lambda q: pv.zcdp(q, 0.05, 3.0), FEW)
    made += [
        ("screens", lambda: (m._screen(SMALL, 0.0, math.inf), m._screen(CLOSE, 0.0, 8.0), m._screen(SMALL, 0.1, 4.0)))
    ]
    made += [*odd("xi", lambda x: pv.zcdp(CHANNELS["strong"], x)), *odd("max_order", m.bounded_order)]
    return [*made, *graphs("zcdp", lambda q, graph=None: pv.zcdp(q, graph=graph))]


def _approximate_zcdp() -> list[Case]:
    m = module("concentrated")
    made = channels("approximate_zcdp", lambda q: pv.approximate_zcdp(q, 1e-6), FEW)
    made += channels("approximate_zcdp beyond", lambda q: pv.approximate_zcdp(q, 0.1, 0.01), FEW)
    made += [(f"screen {x}", lambda x=x: m._screen_approximate(SMALL[:6], x, 0.0)) for x in (0.0, 0.05)]
    made += pairs("conditioned", lambda p, q: (m._conditioned(p, q, 0.05, 0), m._conditioned(p, q, 0.05, 1)))
    made += odd("delta", lambda x: pv.approximate_zcdp(CHANNELS["randomized response"], x))
    return [*made, *graphs("approximate_zcdp", lambda q, graph=None: pv.approximate_zcdp(q, 0.05, graph=graph))]


def _mcdp() -> list[Case]:
    m = module("concentrated")
    return [
        *channels("mcdp", pv.mcdp, FEW),
        ("screens", lambda: tuple(m._screen_mcdp(q) for q in (SMALL, CLOSE, np.full((3, 2), 0.5)))),
        ("text", lambda: str(pv.mcdp(CHANNELS["three"]))),
        *pairs("standard", m.subgaussian_of_pairs),
        *graphs("mcdp", pv.mcdp),
    ]


def _leakage() -> list[Case]:
    made = channels("doeblin", pv.doeblin) + channels("maximal_leakage", pv.maximal_leakage)
    for weight in (0.5, 1.0, 1e-9):
        made += channels(
            f"mutual_information with {weight}",
            lambda q, w=weight: pv.mutual_information(q, [w, 1 - w, *[0.0] * (len(q) - 2)]),
        )
    made += [("close", lambda: (pv.maximal_leakage(CLOSE), pv.mutual_information(CLOSE, np.full(9, 1 / 9))))]
    return [*made, *graphs("doeblin", pv.doeblin), *graphs("maximal_leakage", pv.maximal_leakage)]


def _contraction() -> list[Case]:
    m = module("leakage")
    made = channels("chi_squared_contraction", pv.chi_squared_contraction, FEW)
    made += channels("hockey_stick_contraction", lambda q: pv.hockey_stick_contraction(q, 1.5), FEW)
    made += [*odd("gamma", lambda x: pv.hockey_stick_contraction(SMALL[:3], x)), *pairs("chi", m.chi_squared_of_pairs)]
    made += graphs("chi_squared_contraction", pv.chi_squared_contraction)
    return [
        *made,
        *graphs("hockey_stick_contraction", lambda q, graph=None: pv.hockey_stick_contraction(q, 1.3, graph)),
    ]


DIVERGENCES = [
    pv.RestrictedKL(),
    pv.RestrictedRenyi(1.5),
    pv.RestrictedRenyi(3.0),
    pv.RestrictedAlpha(2.5),
    pv.RestrictedTotalVariation(),
]


def _capacity() -> list[Case]:
    made: list[Case] = []
    for divergence in DIVERGENCES:
        for said in ("three", "strong", "erasure", "sums"):
            q, plain = CHANNELS[said], [float(y) for y in range(len(CHANNELS[said][0]))]
            made += [
                (f"{divergence!r} of {said} by {name}", lambda q=q, f=f, d=divergence: pv.capacity_bounded(q, f, d))
                for name, f in (("numbers", plain), ("squares", pv.Polynomial(plain, 2)))
            ]
    made += odd("RestrictedRenyi", pv.RestrictedRenyi) + odd("RestrictedAlpha", pv.RestrictedAlpha)
    made += odd("degree", lambda x: pv.Polynomial([0, 1, 2], x).degree)
    for said, given in (
        ("words", ["a", "b", "c"]),
        ("none", []),
        ("wide", [[[0.0]]]),
        ("two", [0.0, 1.0]),
        ("flat", [1.0] * 3),
    ):
        made.append((f"features {said}", lambda g=given: pv.capacity_bounded(CHANNELS["equal"], g, pv.RestrictedKL())))
        made.append((f"basis {said}", lambda g=given: pv.Affine(g).basis(3)))
    made += [("basis", lambda: (pv.Affine([0.0, 1.0, 5.0]).basis(3), pv.Polynomial([0.0, 1.0, 5.0, 7.0], 2).basis(4)))]
    return [*made, *((f"words {d!r}", lambda d=d: (d.notion, d.parameters)) for d in DIVERGENCES)]


CLAIMS = {
    "pure": (pv.PureDP(0.0), pv.PureDP(1e-9), pv.PureDP(0.7), pv.PureDP(3.0), pv.PureDP(50.0), pv.PureDP(800.0)),
    "approximate": (
        pv.ApproximateDP(0.5, 0.0),
        pv.ApproximateDP(0.0, 1e-3),
        pv.ApproximateDP(1.0, 1e-6),
        pv.ApproximateDP(30.0, 0.3),
        pv.ApproximateDP(800.0, 1e-300),
        pv.ApproximateDP(0.1, 1.0),
    ),
    "variation": (pv.TV(0.0), pv.TV(0.3), pv.TV(1.0)),
    "renyi": (
        pv.RenyiDP(1.0, 0.5),
        pv.RenyiDP(2.0, 0.0),
        pv.RenyiDP(2.0, 0.3),
        pv.RenyiDP(1.01, 4.0),
        pv.RenyiDP(64.0, 1e-9),
        pv.RenyiDP(1e10, 1.0),
        pv.RenyiDP(math.inf, 1.0),
    ),
    "zcdp": (
        pv.ZCDP(0.0, 0.0),
        pv.ZCDP(0.0, 0.02),
        pv.ZCDP(0.1, 0.5),
        pv.ZCDP(0.0, 30.0),
        pv.ZCDP(0.0, 1e-12),
        pv.ZCDP(3.0, 0.0),
    ),
    "approximate zcdp": (
        pv.ApproximateZCDP(0.0, 0.0, 0.1),
        pv.ApproximateZCDP(1e-6, 0.1, 0.5),
        pv.ApproximateZCDP(1.0, 0.0, 0.5),
    ),
    "mcdp": (pv.MCDP(0.0, 0.0), pv.MCDP(0.1, 0.5), pv.MCDP(3.0, 0.2)),
    "measured": (
        pv.local_dp(CHANNELS["three"]),
        pv.zcdp(CHANNELS["three"]),
        pv.renyi(CHANNELS["three"], 2),
        pv.approximate_dp(CHANNELS["three"], 0.01),
    ),
}
EVERY = [claim for each in CLAIMS.values() for claim in each]
MORE = {
    "order": (1.0, 1.5, 2.0, 100.0, 1e10),
    "delta": (0.0, 1e-300, 1e-6, 0.3, 1.0),
    "epsilon": (0.0, 1e-9, 0.5, 4.0, 800.0),
}
TWO = {
    "pure_to_approximate": "delta",
    "pure_to_renyi": "order",
    "renyi_to_approximate": "delta",
    "zcdp_to_renyi": "order",
    "renyi_to_approximate_sharp": "delta",
    "renyi_to_approximate_closed": "delta",
    "zcdp_to_approximate": "delta",
    "zcdp_delta": "epsilon",
    "zcdp_to_approximate_sharp": "delta",
    "approximate_zcdp_to_approximate": "epsilon",
    "approximate_zcdp_to_epsilon": "delta",
}


def _conversions() -> list[Case]:
    made: list[Case] = []
    for name in pv.conversions.__all__:
        convert = getattr(pv.conversions, name)
        if name == "approximate_curve_to_zcdp":
            made += odd("xi_hat", lambda x: pv.conversions.approximate_curve_to_zcdp(x, 0.3))
            made += odd("rho_hat", lambda x: pv.conversions.approximate_curve_to_zcdp(0.1, x))
            continue
        for at, claim in enumerate(EVERY):
            refused = _tried(convert, claim, *([MORE[TWO[name]][2]] if name in TWO else []))
            if isinstance(refused, str) and at % 9:
                continue  # some of those that are no claims of this kind stand for all
            for more in MORE[TWO[name]] if name in TWO else ():
                made.append((f"{name} {at} {more}", lambda f=convert, c=claim, x=more: f(c, x)))
            if name not in TWO:
                made.append((f"{name} {at}", lambda f=convert, c=claim: f(c)))
        if name in TWO:
            kind = next(claim for claim in EVERY if not isinstance(_tried(convert, claim, MORE[TWO[name]][2]), str))
            made += odd(name, lambda x, f=convert, c=kind: f(c, x))
    return made


def _tried(convert: Any, *given: Any) -> Any:
    try:
        return convert(*given)
    except ValueError as error:
        return str(error)


def _least() -> list[Case]:
    m = module("least_divergence")
    given = [
        (order, epsilon, delta)
        for order in (1.0 + 1e-9, 1.5, 3.0, 200.0, 1e9, 2e9)
        for epsilon in (0.0, 1e-6, 0.7, 30.0, 2e9)
        for delta in (1e-300, 1e-6, 0.2, 0.99)
    ]
    return [
        *((f"divergence {one}", lambda one=one: m.least_divergence(*one)) for one in given),
        *(
            (f"epsilon {one}", lambda one=one: m.least_epsilon(one[0], 0.3, one[2], 5.0))
            for one in given
            if one[1] == 0.7
        ),
        *((f"pieces {t}", lambda t=t: m._pieces(2.0, 0.5, 0.1, t)) for t in (-600.0, -1.0, 0.0, 3.0, 600.0)),
        *((f"rough {t}", lambda t=t: m._rough(2.0, 0.5, 0.1, t)) for t in (-20.0, 0.0, 3.0)),
        *(
            (f"proved {t}", lambda t=t: m._proved(2.0, 0.5, 0.1, t))
            for t in (-20.0, 0.0, m._best_share(2.0, 0.5, 0.1), 9.0)
        ),
    ]


def _claims() -> list[Case]:
    made: list[Case] = [(f"claim {at}", lambda one=one: (one, repr(one))) for at, one in enumerate(EVERY)]
    made += odd("PureDP", pv.PureDP) + odd("TV", pv.TV)
    for kind in (pv.ApproximateDP, pv.RenyiDP, pv.MCDP, pv.ZCDP):
        made += odd(f"{kind.__name__} first", lambda x, kind=kind: kind(x, 0.5))
        made += odd(f"{kind.__name__} second", lambda x, kind=kind: kind(1.5, x))
    for at in range(3):
        made += odd(
            f"ApproximateZCDP {at}", lambda x, at=at: pv.ApproximateZCDP(*[x if n == at else 0.5 for n in range(3)])
        )
    measured = [
        pv.local_dp,
        pv.total_variation,
        pv.zcdp,
        lambda q: pv.renyi(q, 3),
        lambda q: pv.hockey_stick(q, 0.3),
        pv.doeblin,
        lambda q: pv.approximate_zcdp(q, 0.1),
        lambda q: pv.mcdp(q).mu,
        pv.maximal_leakage,
    ]
    made += [(f"as_claim {at}", lambda f=f: pv.as_claim(f(CHANNELS["three"]))) for at, f in enumerate(measured)]
    over, point = 1 + 2.0**-52, {"epsilon": 0.3, "delta": 0.1, "order": 2.0, "xi": 0.1}
    for notion in ("total_variation", "hockey_stick", "zcdp", "approximate_zcdp", "renyi", "approximate_dp", "x"):
        one = pv.Guarantee(notion, over, 0.5, None, True, "", point)
        made.append((f"as_claim of {notion}", lambda one=one: pv.as_claim(one)))
    made += [("as_claim of words", lambda: pv.as_claim("x")), ("budget", lambda: repr(pv.PureDP(1 / 3, budget=True)))]
    made += [
        ("need", lambda: module("claims").need(pv.PureDP, pv.TV(0.1), "it")),
        ("nothing", lambda: repr(pv.PureDP(1 / 3))),
    ]
    for given in (
        ("local_dp", 1.0, 2.0),
        ("local_dp", 1.0, 1.0),
        ("local_dp", math.nan, 0.0),
        ("local_dp", 1.0, math.nan),
    ):
        made.append((f"guarantee {given}", lambda g=given: pv.Guarantee(g[0], g[1], g[2], None, True, "")))
    made.append(("witness", lambda: str(pv.Witness(("a", "b"), tuple(range(20))))))
    return [*made, ("hash", lambda: hash(pv.PureDP(1.0)) == hash(pv.PureDP(1.0)))]


def _parameters() -> list[Case]:
    m = module("least_pair")
    made = odd("epsilon", m.nonnegative_epsilon)
    for at in range(3):
        made += odd(f"checked {at}", lambda x, at=at: m.checked(*[x if n == at else 0.4 for n in range(3)]))
    given = [(epsilon, delta) for epsilon in (0.0, 1e-9, 0.5, 30.0, 800.0) for delta in (0.0, 1e-12, 0.3, 1.0)]
    made += [(f"eta {one}", lambda one=one: m.largest_eta(*one)) for one in given]
    shares = (None, 0.0, 0.2, 1.0)
    made += [(f"mass {one} {eta}", lambda one=one, eta=eta: m.kept_mass(*one, eta)) for one in given for eta in shares]
    return [
        *made,
        *((f"checked {one} {eta}", lambda one=one, eta=eta: m.checked(*one, eta)) for one in given for eta in shares),
    ]


def _finite_pair() -> list[Case]:
    made: list[Case] = []
    given = [
        (epsilon, delta, eta)
        for epsilon in (0.0, 1e-9, 0.7, 40.0, 800.0)
        for delta in (0.0, 1e-6, 0.3)
        for eta in (None, 0.1, 0.3)
    ]
    made += [(f"of_parameters {one}", lambda one=one: pv.FinitePair.of_parameters(*one)) for one in given]
    found = [(said, pv.FinitePair(p[0], q[0])) for said, (p, q) in PAIRS.items()]
    for said, pair in found:
        made.append(
            (
                f"about {said}",
                lambda x=pair: (x.losses, x.infinite, x.swapped, x.ordered, x.symmetric, repr(x), x.both_ways()),
            )
        )
        made.append(
            (
                f"measures of {said}",
                lambda x=pair: (x.local_dp(), x.total_variation(), x.hockey_stick(0.1), x.approximate_dp(0.01)),
            )
        )
        rates = (1e-3, 0.4, 1.0)
        made += [(f"subsampled {said} at {rate}", lambda x=pair, rate=rate: x.subsampled(rate)) for rate in rates]
    made += [*odd("rate", found[0][1].subsampled), *channels("of_channel", pv.FinitePair.of_channel, FEW)]
    made += [
        ("least", lambda: pv.FinitePair.least([found[0][1], found[3][1]])),
        ("none", lambda: pv.FinitePair.least([])),
    ]
    x = np.array([0.0, 0.3, 0.7, 2.0])
    made += [("through", lambda: pv.FinitePair.through(x, np.array([0.3, 0.2, 0.15, 0.01])))]
    made += [("through a dent", lambda: pv.FinitePair.through(x, np.array([0.3, 0.29, 0.05, 0.01])))]
    for bad in (
        ([0.5, 0.5], [0.5]),
        ([0.5, 0.4], [0.5, 0.5]),
        ([1.5, -0.5], [0.5, 0.5]),
        ([], []),
        ("x", "y"),
        ([math.nan, 1], [0.5, 0.5]),
    ):
        made.append((f"of {bad}", lambda bad=bad: pv.FinitePair(*bad)))
    m = module("least_pair")
    two = [(np.array(a[0]), np.array(a[1])) for a in (CHANNELS["three"], CHANNELS["equal"], CHANNELS["strong"])]
    made += [(f"least of {n}", lambda n=n: m.least_pair(two[:n])) for n in (1, 2, 3)]
    made += [("chain", lambda: m._chain(np.array([[0.0, 0.1], [0.2, 0.5], [0.3, 0.55], [0.8, 0.9], [1.0, 1.0]])))]
    made += [("shortened", lambda: m._shortened(np.array([[0.1, 0.5], [0.2, 0.3], [0.3, 0.1]]), 0.2))]
    return [*made, ("sums", lambda: m._sums(np.array([1.0, 1e-16, 1e-16, 0.1, 0.3]))), ("antipodal", _antipodal)]


def _antipodal() -> Any:
    return [pv.antipodal_pair(p[0], q[0]) if said not in ("erasure",) else None for said, (p, q) in PAIRS.items()]


def _groups() -> list[Case]:
    made: list[Case] = []
    for name in ("group_pure", "group_approximate", "group_zcdp", "group_renyi"):
        function = getattr(pv.implications, name)
        made += [
            (f"{name} {at} {n}", lambda f=function, c=c, n=n: f(c, n)) for at, c in enumerate(EVERY) for n in (1, 3)
        ]
        claim = {
            "group_pure": pv.PureDP(0.3),
            "group_zcdp": pv.ZCDP(0.1, 0.2),
            "group_renyi": pv.RenyiDP(8.0, 0.3),
        }.get(name, EVERY[6])
        made += odd(name, lambda x, f=function, c=claim: f(c, x))
    made += odd("sensitivity", lambda x: pv.implications.group_gaussian_mcdp(x, 2.0, 3))
    made += odd("sigma", lambda x: pv.implications.group_gaussian_mcdp(1.5, x, 3)) + odd(
        "size", lambda x: pv.implications.group_gaussian_mcdp(1.5, 2.0, x)
    )
    targets = (
        pv.ApproximateDP(1.0, 1e-6),
        pv.ApproximateDP(0.0, 0.1),
        pv.ApproximateDP(0.3, 0.0),
        pv.ApproximateDP(20.0, 1e-300),
        pv.PureDP(1.0),
    )
    for at, target in enumerate(targets):
        for name in ("largest_rho", "largest_rho_sharp", "largest_pure"):
            function = getattr(pv.calibrate, name)
            made.append((f"{name} {at}", lambda f=function, t=target: f(t)))
        made += [
            (f"largest_renyi {at} {order}", lambda t=target, o=order: pv.calibrate.largest_renyi(t, o))
            for order in (1.5, 2.0, 32.0)
        ]
    made += odd("xi", lambda x: pv.calibrate.largest_rho(targets[0], x)) + odd(
        "order", lambda x: pv.calibrate.largest_renyi(targets[0], x)
    )
    return made


def _information() -> list[Case]:
    i = pv.implications
    made: list[Case] = []
    one = (i.information_any, i.information_independent, i.bayes_factor_moment, i.bayes_factor_log)
    for at, claim in enumerate(EVERY):
        for n in (1, 7):
            made += [(f"{f.__name__} {at} {n}", lambda f=f, c=claim, n=n: f(c, n)) for f in one[:2]]
        made += [(f"{f.__name__} {at}", lambda f=f, c=claim: f(c)) for f in one[2:]]
        made.append((f"blocks {at}", lambda c=claim: i.information_blocks(c, 3, 12)))
        made += [(f"bad_outcome {at} {x}", lambda c=claim, x=x: i.bad_outcome(c, x)) for x in (0.0, 1e-9, 0.2, 1.0)]
        made += [(f"tail {at} {x}", lambda c=claim, x=x: i.bayes_factor_tail(c, x)) for x in (1.0, 3.0, 1e9)]
    made += odd("probability", lambda x: i.bad_outcome(pv.PureDP(0.5), x)) + odd(
        "factor", lambda x: i.bayes_factor_tail(pv.RenyiDP(2.0, 0.3), x)
    )
    made += odd("size", lambda x: i.information_any(pv.PureDP(0.5), x)) + odd(
        "blocks", lambda x: i.information_blocks(pv.MCDP(0.1, 0.5), x, 9)
    )
    for at in range(3):
        made += odd(
            f"composed_event {at}",
            lambda x, at=at: i.composed_event(*[x if n == at else (0.3, 2, 0.1)[n] for n in range(3)]),
        )
    return [*made, *odd("gap", i.generalization_gap), *odd("pinsker", i.restricted_pinsker)]


def _others() -> list[Case]:
    exact = (
        ExactChannel.of([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
        if hasattr(ExactChannel, "of")
        else None
    )
    report = pv.audit(CHANNELS["three"])
    made: list[Case] = [
        ("audit", lambda: report),
        ("rows", report.rows),
        ("text", lambda: str(report)),
        ("html", report.to_html),
    ]
    made += [
        ("json", report.to_dict),
        ("features", lambda: pv.audit(CHANNELS["three"], features=[0.0, 1.0, 2.0, 3.0]).rows()),
    ]
    made += [
        ("path", lambda: pv.audit(CHANNELS["three"], PATH).rows()),
        ("erasure", lambda: pv.audit(CHANNELS["erasure"]).to_dict()),
    ]
    if exact is not None:
        made.append(("proved", lambda: pv.proved(exact)))
    return made


CASES = {
    "laws": _laws(),
    "loss": _loss(),
    "local_dp": _local_dp(),
    "renyi": _renyi(),
    "hockey_stick": _hockey_stick(),
    "approximate_dp": _approximate_dp(),
    "total_variation": _total_variation(),
    "trade_off": _trade_off(),
    "zcdp": _zcdp(),
    "approximate_zcdp": _approximate_zcdp(),
    "mcdp": _mcdp(),
    "leakage": _leakage(),
    "contraction": _contraction(),
    "capacity": _capacity(),
    "conversions": _conversions(),
    "least_divergence": _least(),
    "claims": _claims(),
    "parameters": _parameters(),
    "finite_pair": _finite_pair(),
    "groups": _groups(),
    "information": _information(),
    "others": _others(),
}
SEARCHED = {"zcdp", "approximate_zcdp", "mcdp", "capacity", "contraction", "groups", "others"}
ULPS = {name: 2.0**14 if name in SEARCHED else 6.0 for name in CASES}
"""Units in the last place that results may differ by: more where a search ends where rounding lets it."""
