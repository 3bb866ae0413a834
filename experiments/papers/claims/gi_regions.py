"""Figures 1 to 3, 6 and 7 and section VI: privacy regions, and the total variation of noise.

Propositions 1 and 2: total variation and epsilon, and both after sampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.integrate import quad

from experiments.papers.drawing import curves, finish, formula, frames, key, line, marks, panel, picture
from experiments.papers.experiment import Axis, Row, Subject, Table, grid, nearest
from experiments.papers.statements import Part, among, bounded, claim, decided, off_by
from ldpopt import mechanisms
from ldpopt.channel import Channel
from ldpopt.composition import subsample
from ldpopt.mechanisms import Staircase, dominating_pair, laplace
from ldpopt.privacy import TV, ApproximateDP, TradeOffCurve, hockey_stick, local_dp, total_variation
from ldpopt.values.distribution import Array

TESTS: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, 1), "aspect": "equal"}
"""The axes of a picture of type II errors against type I errors."""


def region(t: Array, epsilon: float, delta: float, eta: float) -> Array:
    """Compute the smallest type II error at type I error t under (epsilon, delta)-DP and eta-TV."""
    growth = math.exp(epsilon)
    lines = [1 - delta - growth * t, (1 - delta - t) / growth, 1 - eta - t, np.zeros_like(t)]
    return np.asarray(np.max(lines, axis=0))


def _regions(table: Table) -> Any:
    selected = table.where(epsilon=nearest(1), delta=max)
    unlimited, limited = selected.where(share=1.0), selected.having(lambda row: row["share"] < 1).where(share=max)
    title = f"Figure 1: ε = {unlimited.rows[0]['epsilon']:g}, δ = {unlimited.rows[0]['delta']:g}"
    axes = frames(2)
    for ax, rows, name in zip(axes, (unlimited, limited), (title, "Figure 2: the same"), strict=True):
        t, curve = rows.column("type_one"), rows.column("curve")
        ax.fill_between(t, curve, 1 - t, where=1 - t >= curve, color="0.85", lw=0, label="what tests can reach")
        if rows is limited:
            line(ax, unlimited.column("type_one"), unlimited.column("curve"), 1, "without η")
        line(ax, t, curve, 0, "dominating pair")
        finish(ax, f"{name}, η = {rows.rows[0]['eta']:.3f}", "type I error", "type II error")
        ax.set(**TESTS)
    return axes[0]


@claim(
    "gi-figures-1-2", "[GI, Fig 1-2; GI, Cor 1; GI, eq. 7-8]",
    points=grid(epsilon=Axis([0.3, 1.0, 3.0], [1.0]), delta=Axis([0.0, 0.05], [0.05]),
                share=Axis([0.3, 0.7, 1.0], [0.7, 1.0])),
    judge=decided(
        "The dominating pair's trade-off curve is the region's edge to {largest error:.1e} at {_points} points.",
        {"largest error": lambda table: np.abs(table.column("curve") - table.column("printed")).max(),
         "_points": lambda table: len(table.rows)}, lambda figures: figures["largest error"] <= 1e-12),
    draw=_regions,
    caption="The privacy regions: type II against type I error. Shaded: what some test of a mechanism may reach.",
)  # fmt: skip
def edges(epsilon: float, delta: float, share: float) -> list[Row]:
    """A mechanism is (ε, δ)-DP and η-TV exactly when its trade-off curves lie above three pairs of lines, and a
    five-point pair attains all of them."""
    # Share 1 of the largest eta is Figure 1.
    eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
    pair = dominating_pair(epsilon, delta, eta)
    curve = TradeOffCurve.of_pair(pair.p, pair.q)
    t = np.unique(np.round(np.concatenate([np.linspace(0, 1, 21), curve.knots[:, 0]]), 12))  # corners too
    cells = zip(t, curve(t), region(t, epsilon, delta, eta), strict=True)
    return [{"eta": eta, "type_one": a, "curve": b, "printed": c} for a, b, c in cells]


def _distances(table: Table) -> dict[str, Any]:
    """The distances of the regions of ε alone, and of ε and η, from the curve."""
    names = {"ε alone": "pure", "ε and η": "with_eta"}
    mean_distances = {(epsilon, name): float(np.mean(rows.column("exact") - rows.column(column)))
           for epsilon, rows in table.groups("epsilon") for name, column in names.items()}  # fmt: skip
    variations = [float(np.max(1 - rows.column("type_one") - rows.column("exact"))) + math.expm1(-epsilon / 2)
                  for epsilon, rows in table.groups("epsilon")]  # fmt: skip
    return {
        "largest violation": float(np.max(table.column("with_eta") - table.column("exact"))),
        "total variation off its formula by": max(map(abs, variations)),
        **{
            f"mean distance to the curve, {name}, ε = {epsilon:g}": mean
            for (epsilon, name), mean in mean_distances.items()
        },
        "_last": list(mean_distances.values())[-2:],
        "_worst": max(mean_distances[key, "ε and η"] / mean_distances[key, "ε alone"] for key, _ in mean_distances),
    }


@claim(
    "gi-figure-3", "[GI, Fig 3; GI, section VI-A]", points=grid(epsilon=Axis([0.3, 3.0, 1.0], [1.0])),
    judge=decided(
        "Better at every ε: the curve lies above the region of (ε, η) and touches its η-line, and the mean distance "
        "falls from {_last[0]:.4f} with ε alone to {_last[1]:.4f} with η = 1 - exp(-ε/2) too. Elsewhere the curve "
        "leaves the region: no equality is claimed.",
        _distances, lambda figures: figures["largest violation"] <= 1e-9 and figures["_worst"] < 1
        and figures["total variation off its formula by"] <= 1e-3),
    draw=picture(panel("Figure 3: Laplace mechanism, ε = {epsilon:g}", "type I error", "type II error",
                       curves("type_one", "exact", "Laplace mechanism, exact", first=2, ls="-"),
                       curves("type_one", "pure", "region of ε", ls="--"),
                       curves("type_one", "with_eta", "region of ε and η = 1 - exp(-ε/2)", first=1, ls="-."),
                       repeat_by="epsilon", last=1, **TESTS)),
    caption="The Laplace mechanism's exact trade-off curve, and what ε alone and ε with η say of it.",
)  # fmt: skip
def laplace_curve(epsilon: float) -> list[Row]:
    """The total variation 1 - exp(-ε/2) of the Laplace mechanism bounds its privacy region better than ε alone."""
    t = np.linspace(0, 1, 201)
    pure = region(t, epsilon, 0.0, math.tanh(epsilon / 2))
    both = region(t, epsilon, 0.0, 1 - math.exp(-epsilon / 2))
    cells = zip(t, laplace(epsilon).pair.trade_off_at(t), pure, both, strict=True)
    return [{"type_one": a, "exact": b, "pure": c, "with_eta": d} for a, b, c, d in cells]


def _variation(density: Callable[[float], float], end: float) -> float:
    """Half the integral of |f(x) - f(x - 1)| for symmetric f, by quadrature on the side of 1/2 where f is larger."""
    pieces = ((-end, 0.0), (0.0, 0.5))
    return float(sum(quad(lambda x: density(x) - density(x - 1), a, b, epsabs=1e-13, limit=200)[0] for a, b in pieces))


def staircase_variation(epsilon: float, gamma: float) -> float:
    """Compute the total variation as printed, for gamma in [0, 1] [GI, section VI-C]."""
    q = math.exp(-epsilon)
    factor = 2 * gamma * (1 - q) + q if gamma < 0.5 else 1.0
    return (1 - q) * factor / (2 * (gamma + q * (1 - gamma)))


GAMMAS: Array = np.linspace(0, 1, 201)


def _of_gammas(epsilon: float) -> Array:
    return np.array([staircase_variation(epsilon, gamma) for gamma in GAMMAS.tolist()])


ERASURE_OF_FIGURE_4 = 1 - staircase_variation(1.0, 0.0139) / math.tanh(0.5)


def stairs(epsilon: float, gamma: float, falls: float = 40.0) -> tuple[Array, Array, Array]:
    """Compute the masses of staircase noise and of moved noise on cells, and the cells' middles."""
    last = math.ceil(falls / epsilon) + 2
    integers = np.arange(-last, last + 1, dtype=np.float64)
    cuts = np.unique(np.concatenate([integers, integers + gamma, integers - gamma]))
    middle, width = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    steps = (np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= gamma) for x in (middle, middle - 1))
    p, q = (np.exp(-epsilon * down) * width for down in steps)
    return p / p.sum(), q / q.sum(), middle


LEFT = Part("γ ≤ ½, on (-∞, -γ]: ae^-ε", Subject.STEP, equal=True, cells=("epsilon", "gamma"))
MIDDLE = Part("γ ≤ ½, on (-γ, γ]: 2aγ(1 - e^ε), as printed", Subject.STEP, equal=True, cells=("epsilon", "gamma"))
MIDDLE_REPAIRED = Part("repaired: 2aγ(1 - e^-ε)", Subject.STEP, equal=True, cells=("epsilon", "gamma"))
WHOLE = Part("γ > ½, on (-∞, 1-γ): a", Subject.STEP, equal=True, cells=("epsilon", "gamma"))


@claim(
    "gi-appendix-i", "[GI, App I-1; GI, Fig 6-7]", LEFT, MIDDLE, MIDDLE_REPAIRED, WHOLE,
    title="Appendix I-1: the parts of the staircase's total variation", subject=Subject.STEP,
    points=grid(epsilon=Axis([0.1, 1.0, 3.0], [1.0]), gamma=Axis([0.0139, 0.25, 0.5, 0.75, 1.0], [0.25, 0.75])),
    caption="The difference of the two densities of Figures 6 and 7 on each interval, against the formulas.",
)  # fmt: skip
def staircase_parts(epsilon: float, gamma: float) -> list[Row]:
    """Let a = (1-e^-ε)/(2(γ+e^-ε(1-γ))) and Δ = 1. If γ ≤ ½, staircase noise and the noise moved by Δ differ by ae^-ε
    on (-∞, -γ] and by 2aγ(1-e^ε) on (-γ, γ] (as printed). If γ > ½, they differ by a on (-∞, 1-γ)."""
    p, q, middle = stairs(epsilon, gamma)
    small, difference = math.exp(-epsilon), p - q
    height = (1 - small) / (2 * (gamma + small * (1 - gamma)))
    if gamma > 0.5:
        return [WHOLE(float(difference[middle < 1 - gamma].sum()), height)]
    middle_mass = float(difference[np.abs(middle) < gamma].sum())
    return [
        LEFT(float(difference[middle < -gamma].sum()), height * small),
        MIDDLE(middle_mass, 2 * gamma * height * (1 - 1 / small)),
        MIDDLE_REPAIRED(middle_mass, 2 * gamma * height * (1 - small)),
    ]


def _staircase(gamma: float, figure: int) -> Any:
    density = Staircase(1.0, gamma).density
    fine: dict[str, Any] = {"count": 1201, "space": np.linspace, "lw": 1.5}
    return panel(f"Figure {figure}: staircase noise, ε = 1, γ = {gamma:g}", "x, in units of Δ", "density",
                 formula(density, (-2.5, 3.5), "f(x)", 0, **fine),
                 formula(lambda x: density(x - 1), (-2.5, 3.5), "f(x - Δ)", 1, **fine))  # fmt: skip


@claim(
    "gi-section-6", "[GI, section VI-A; GI, eq. 17; GI, section VI-C; GI, Fig 6-7]",
    points=grid(noise=["Laplace", "Gaussian"], parameter=Axis([0.1, 0.5, 1.0, 3.0], [1.0, 3.0]))
    + grid(noise=["staircase"], parameter="parameter",
           gamma=Axis([0.0, 0.0139, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0], [0.0139, 0.5, 0.75])),
    judge=decided(
        "The three formulas are exact (to {formulas off by:.1e}), the staircase's for γ in [0, 1], not for all "
        "positive γ as printed; its trade-off curve is the edge of the region of (ε, η) (to {staircase off its region "
        "by:.1e}). γ = 0.0139 at ε = 1 has α = {α at ε = 1, γ = 0.0139:.4f} (printed: 0.3).",
        {"formulas off by": lambda table: np.abs(table.column("printed") - table.column("exact")).max(),
         "staircase off its region by": lambda table: table.column("curve_off_region").max(),
         "α at ε = 1, γ = 0.0139": ERASURE_OF_FIGURE_4},
        lambda figures: max(figures["formulas off by"], figures["staircase off its region by"]) <= 1e-8
        and round(ERASURE_OF_FIGURE_4, 1) == 0.3),
    draw=picture(_staircase(0.25, 6), _staircase(0.75, 7),
                 panel("Total variation of the staircase", "γ", "η",
                       curves(GAMMAS, lambda rows: _of_gammas(rows.rows[0]["parameter"]),
                              "ε = {parameter:g}", by=("parameter",)),
                       key("from the densities", marker="o", ms=4, mfc="none", color="0.3", ls=""),
                       marks("gamma", "exact", by=("parameter",)), where={"noise": "staircase"}, ylim=(0, None))),
    caption="Left and middle: the densities of Figures 6 and 7. Right: the total variation, by formula (lines) and "
    "from the densities (circles).",
)  # fmt: skip
def noise_variation(noise: str, parameter: float, gamma: float = 0.0) -> Row:
    """Laplace noise has total variation 1 - exp(-ε/2), Gaussian noise 2Φ(μ/2) - 1, and staircase noise the closed form
    of section VI-C. The staircase attains the whole region of (ε, η)."""
    if noise == "staircase":
        p, q, _ = stairs(parameter, gamma)
        eta, curve = staircase_variation(parameter, gamma), TradeOffCurve.of_pair(p, q)
        t = np.unique(np.concatenate([np.linspace(0, 1, 101), curve.knots[:, 0]]))
        deviation = float(np.max(np.abs(curve(t) - region(t, parameter, 0.0, eta))))
        return {"printed": eta, "exact": float(np.abs(p - q).sum() / 2), "curve_off_region": deviation}
    if noise == "Laplace":
        exact = _variation(lambda x: parameter / 2 * math.exp(-parameter * abs(x)), 40 / parameter)
        return {"printed": -math.expm1(-parameter / 2), "exact": exact}
    scale = parameter / math.sqrt(2 * math.pi)
    exact = _variation(lambda x: scale * math.exp(-((parameter * x) ** 2) / 2), 10 / parameter)
    return {"printed": math.erf(parameter / 2 / math.sqrt(2)), "exact": exact}  # 2 Phi(mu/2) - 1


POPULATION_SIZE = 100


def _both(part: str) -> Callable[[Table], Array]:
    """Claimed over exact, for ε or δ and for η."""
    pairs = ("claimed / exact", "eta_claimed / eta_exact")
    return lambda table: np.concatenate([table.where(part=part).values(ratio) for ratio in pairs])


def _sampled(column: str, symbol: str) -> Any:
    def share(rows: Table) -> Array:
        return rows.column("sampled") / POPULATION_SIZE

    return panel(
        "Proposition 1",
        "sampled share m/n",
        f"{symbol} of the sampled mechanism" + " (nats)" * (symbol == "ε"),
        curves(share, f"{column}claimed", "ε = {epsilon:g}", by=("epsilon",), lw=1.2),
        marks(share, f"{column}exact", "exact, worst mechanism"),
        where={"part": "worst", "delta": 0.0, "share": max},
    )


@claim(
    "gi-proposition-1", "[GI, Prop 1]",
    points=grid(part=["worst"], epsilon=Axis([0.3, 1.0, 3.0], [1.0]), delta=Axis([0.0, 0.05]),
                share=Axis([0.3, 1.0]), sampled=Axis([1, 10, 25, 50, 75, 100], [10, 50]))
    + grid(part=["random"], seed=Axis(20, 3), sampled="sampled"),
    judge=bounded(
        "Attained, in ε, δ and η, by the dominating pair when the others answer like the second input (to "
        "{off at the worst mechanism:.1e}); over {_samples} samples from random mechanisms the claim is {random} times "
        "the exact value.",
        {"_worst": _both("worst"), "_random": lambda table: np.minimum(_both("random")(table), 1.0)},
        {"off at the worst mechanism": lambda table: off_by(_both("worst")(table)), "random": _both("random"),
         "_samples": lambda table: len(table.where(part="random").rows)}),
    draw=picture(_sampled("", "ε"), _sampled("eta_", "η")),
    caption="ε and η after sampling: the claim (lines) and the exact value of the worst mechanism (circles), δ = 0.",
)  # fmt: skip
def sampled_mechanism(
    part: str, sampled: float, epsilon: float = 0.0, delta: float = 0.0, share: float = 0.0, seed: float = 0
) -> Row:
    """Sampling m of n without replacement first makes an (ε, δ)-DP and η-TV mechanism (log(1 + p(e^ε - 1)), pδ)-DP and
    pη-TV, p = m/n."""
    # Without the differing person in the sample the mechanism sees the answers of others: the same report both times.
    p = sampled / POPULATION_SIZE
    if part == "worst":
        eta = delta + share * (1 - delta) * math.tanh(epsilon / 2)
        pair = dominating_pair(epsilon, delta, eta)
        yes, no, other = pair.p, pair.q, pair.q  # the others give the same answer as the second input
    else:
        yes, no, other = rows = np.random.default_rng(int(seed)).dirichlet(np.ones(4), size=3) * 0.9 + 0.025
        epsilon, eta = local_dp(rows).value, total_variation(rows).value
    mixed = np.stack([p * yes + (1 - p) * other, p * no + (1 - p) * other])
    claimed = subsample(ApproximateDP(epsilon, delta), int(sampled), POPULATION_SIZE)
    variation = subsample(TV(eta), int(sampled), POPULATION_SIZE)
    assert isinstance(claimed, ApproximateDP)
    assert isinstance(variation, TV)
    row: Row = {"eta_claimed": variation.eta, "eta_exact": total_variation(mixed).lower}
    if delta > 0:
        return row | {"claimed": claimed.delta, "exact": hockey_stick(mixed, claimed.epsilon).lower}
    return row | {"claimed": claimed.epsilon, "exact": local_dp(mixed).lower}


def channels(epsilon: float, k: int) -> Iterator[tuple[str, Channel]]:
    """Iterate over mechanisms of the literature for k answers."""
    p = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    yield "binary", mechanisms.binary(p, p[::-1], epsilon)
    yield "randomized response", mechanisms.randomized_response(k, epsilon)
    yield "subset selection of half", mechanisms.subset_selection(k, epsilon, k // 2)
    yield "truncated geometric", mechanisms.truncated_geometric(k, epsilon)
    yield "unary encoding", mechanisms.optimized_unary_encoding(k, epsilon).channel()
    yield "Hadamard response", mechanisms.hadamard_response(k, epsilon).channel()


@claim(
    "gi-proposition-2", "[GI, Prop 2]",
    points=grid(part=["mechanisms"], epsilon=Axis([0.1, 0.5, 1.0, 2.0, 4.0], [0.5, 2.0]), k=Axis([2, 4, 8], [4]))
    + grid(part=["random"], epsilon=[0.0], k=[4], seed=Axis(50, 5)),
    judge=bounded(
        "No channel of {_channels} exceeds tanh(ε/2), the binary mechanism attains it at every ε (to {attained "
        "to:.1e}), and others stay as far as {largest ratio:.3g} times below.",
        {"_binary": among("bound / eta", mechanism="binary"),
         "_never above": lambda table: np.minimum(table.ratio("bound", "eta"), 1.0)},
        {"attained to": among(lambda rows: off_by(rows.ratio("bound", "eta")), mechanism="binary"),
         "largest ratio": lambda table: table.ratio("bound", "eta").max(), "_channels": lambda table: len(table.rows)}),
    draw=picture(panel("Proposition 2: mechanisms for {k:g} answers", "ε (nats)", "total variation η",
                       formula(lambda x: np.tanh(x / 2), "measured_epsilon", "tanh(ε/2)", None, 200, color="0.2"),
                       marks("measured_epsilon", "eta", "{mechanism}", "osD^vP", by=("mechanism",), where={"k": max},
                             ms=4), where={"part": "mechanisms", "k": max}, xlim=(0, None),
                       ylim=(0, 1.02))),
    caption="ε and η of six mechanisms: the binary one lies on the bound, the others trade total variation for detail.",
)  # fmt: skip
def variations(part: str, epsilon: float, k: float, seed: float = 0) -> list[Row]:
    """Every ε-LDP channel has total variation at most (e^ε - 1)/(e^ε + 1) = tanh(ε/2)."""
    if part == "mechanisms":
        chosen = list(channels(epsilon, int(k)))
    else:
        rng = np.random.default_rng(int(seed))
        chosen = [("random", Channel(rng.dirichlet(np.ones(5) * rng.choice([0.5, 2.0, 20.0]), size=int(k))))]
    return [
        {
            "mechanism": name,
            "measured_epsilon": measured_epsilon,
            "eta": total_variation(channel).lower,
            "bound": math.tanh(measured_epsilon / 2),
        }
        for name, channel in chosen
        for measured_epsilon in [local_dp(channel).value]
    ]
