"""Figures 1 to 3, 6 and 7 and section VI: privacy regions, and the total variation of noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import quad

from ldpopt.distribution import Array
from ldpopt.mechanisms import Staircase, dominating_pair, laplace
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.reproduce.drawing import curves, finish, formula, frames, line, marks, panel, picture
from ldpopt.reproduce.experiment import Outcome, Row, Table, Verdict, agreement, grid, nearest
from ldpopt.reproduce.statements import claim

TESTS: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, 1), "aspect": "equal"}
"""The axes of a picture of type II errors against type I errors."""


def region(t: Array, epsilon: float, delta: float, eta: float) -> Array:
    """The least type II error at type I error t under (epsilon, delta)-DP and eta-TV [GI, Cor 1]."""
    growth = math.exp(epsilon)
    lines = [1 - delta - growth * t, (1 - delta - t) / growth, 1 - eta - t, np.zeros_like(t)]
    return np.asarray(np.max(lines, axis=0))


def _edges_agree(table: Table) -> Verdict:
    errors = np.abs(table.column("curve") - table.column("printed"))
    return Verdict(
        agreement(errors, 1e-12),
        f"The dominating pair's trade-off curve is the region's edge to {errors.max():.1e} at {len(errors)} points.",
        {"largest error": errors.max()},
    )


def _regions(table: Table) -> Any:
    shown = table.where(epsilon=nearest(1), delta=max)
    whole, less = shown.where(share=1.0), shown.having(lambda row: row["share"] < 1).where(share=max)
    title = f"Figure 1: ε = {whole.rows[0]['epsilon']:g}, δ = {whole.rows[0]['delta']:g}"
    axes = frames(2)
    for ax, rows, name in zip(axes, (whole, less), (title, "Figure 2: the same"), strict=True):
        t, curve = rows.column("type_one"), rows.column("curve")
        ax.fill_between(t, curve, 1 - t, where=1 - t >= curve, color="0.85", lw=0, label="what tests can reach")
        if rows is less:
            line(ax, whole.column("type_one"), whole.column("curve"), 1, "without η")
        line(ax, t, curve, 0, "dominating pair")
        finish(ax, f"{name}, η = {rows.rows[0]['eta']:.3f}", "type I error", "type II error")
        ax.set(**TESTS)
    return axes[0]


@claim(
    "gi-figures-1-2", "[GI, Fig 1-2; GI, Cor 1; GI, eq. 7-8]",
    full={"epsilons": [0.3, 1.0, 3.0], "deltas": [0.0, 0.05], "shares": [0.3, 0.7, 1.0]},
    quick={"epsilons": [1.0], "deltas": [0.05], "shares": [0.7, 1.0]},
    points=grid(epsilon="epsilons", delta="deltas", share="shares"),
    judge=_edges_agree, draw=_regions,
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


def _laplace_verdict(table: Table) -> Verdict:
    below, off, distances = 0.0, 0.0, {}
    for epsilon, rows in table.groups("epsilon"):
        exact, eta = rows.column("exact"), rows.column("with_eta")
        below = max(below, float(np.max(eta - exact)))
        variation = 1 - float(np.min(rows.column("type_one") + exact))
        off = max(off, abs(variation - (1 - math.exp(-epsilon / 2))))
        distances[epsilon] = float(np.mean(exact - rows.column("pure"))), float(np.mean(exact - eta))
    right = below <= 1e-9 and off <= 1e-3 and all(both < alone for alone, both in distances.values())
    attained = right and all(both <= 1e-6 for _, both in distances.values())
    first, second = list(distances.values())[-1]
    return Verdict(
        (Outcome.HOLDS if attained else Outcome.LOOSELY) if right else Outcome.FAILS,
        "The curve lies above the region of (ε, η), touches its η-line, and leaves the region elsewhere: the mean "
        f"distance falls from {first:.4f} with ε alone to {second:.4f} with η = 1 - exp(-ε/2) too, not to zero.",
        {"largest violation": below, "total variation off its formula by": off}
        | {f"mean distance to the curve, {name}, ε = {epsilon:g}": distance for epsilon, pair in distances.items()
           for name, distance in zip(("ε alone", "ε and η"), pair, strict=True)},
    )  # fmt: skip


@claim(
    "gi-figure-3", "[GI, Fig 3; GI, section VI-A]",
    full={"epsilons": [0.3, 3.0, 1.0]}, quick={"epsilons": [1.0]},
    points=grid(epsilon="epsilons"), judge=_laplace_verdict,
    draw=picture(panel("Figure 3: Laplace mechanism, ε = {epsilon:g}", "type I error", "type II error",
                       curves("type_one", "exact", "Laplace mechanism, exact", at=2, ls="-"),
                       curves("type_one", "pure", "region of ε", ls="--"),
                       curves("type_one", "with_eta", "region of ε and η = 1 - exp(-ε/2)", at=1, ls="-."),
                       each="epsilon", last=1, **TESTS), width=5.6, height=4.6),
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
    """The total variation as printed, for gamma in [0, 1] [GI, section VI-C]."""
    q = math.exp(-epsilon)
    below = 2 * gamma * (1 - q) + q if gamma < 0.5 else 1.0
    return (1 - q) * below / (2 * (gamma + q * (1 - gamma)))


def stairs(epsilon: float, gamma: float, falls: float = 40.0) -> tuple[Array, Array]:
    """The masses of staircase noise, and of the noise moved by 1, on the cells where both densities are constant."""
    last = math.ceil(falls / epsilon) + 2
    whole = np.arange(-last, last + 1, dtype=np.float64)
    cuts = np.unique(np.concatenate([whole, whole + gamma, whole - gamma]))
    middle, width = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    steps = (np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= gamma) for x in (middle, middle - 1))
    p, q = (np.exp(-epsilon * down) * width for down in steps)
    return p / p.sum(), q / q.sum()


def _noise_verdict(table: Table) -> Verdict:
    errors, off = np.abs(table.column("printed") - table.column("exact")), table.column("curve_off_region")
    alpha = 1 - staircase_variation(1.0, 0.0139) / math.tanh(0.5)
    return Verdict(
        agreement(np.concatenate([errors, off, [abs(round(alpha, 1) - 0.3)]]), 1e-8),
        f"The three formulas are exact (to {errors.max():.1e}), the staircase's for γ in [0, 1], not for all positive "
        f"γ as printed; its trade-off curve is the edge of the region of (ε, η) (to {off.max():.1e}). γ = 0.0139 "
        f"at ε = 1 has α = {alpha:.4f} (printed: 0.3).",
        {"formulas off by": errors.max(), "staircase off its region by": off.max(),
         "α at ε = 1, γ = 0.0139": alpha},
    )  # fmt: skip


def _staircase(gamma: float, figure: int) -> Any:
    density = Staircase(1.0, gamma).density
    fine: dict[str, Any] = {"count": 1201, "space": np.linspace, "lw": 1.5}
    return panel(f"Figure {figure}: staircase noise, ε = 1, γ = {gamma:g}", "x, in units of Δ", "density",
                 formula(density, (-2.5, 3.5), "f(x)", 0, **fine),
                 formula(lambda x: density(x - 1), (-2.5, 3.5), "f(x - Δ)", 1, **fine))  # fmt: skip


def _staircase_variations(ax: Any, table: Table) -> None:
    gammas = np.linspace(0, 1, 201)
    for at, (epsilon, _) in enumerate(table.groups("parameter")):
        line(ax, gammas, [staircase_variation(epsilon, g) for g in gammas], at, f"ε = {epsilon:g}")
    ax.plot([], [], "o", ms=4, mfc="none", color="0.3", label="from the densities")


@claim(
    "gi-section-6", "[GI, section VI-A; GI, eq. 17; GI, section VI-C; GI, Fig 6-7]",
    full={"parameters": [0.1, 0.5, 1.0, 3.0], "gammas": [0.0, 0.0139, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0]},
    quick={"parameters": [1.0, 3.0], "gammas": [0.0139, 0.5, 0.75]},
    points=grid(noise=["Laplace", "Gaussian"], parameter="parameters")
    + grid(noise=["staircase"], parameter="parameters", gamma="gammas"),
    judge=_noise_verdict,
    draw=picture(_staircase(0.25, 6), _staircase(0.75, 7),
                 panel("Total variation of the staircase", "γ", "η", _staircase_variations,
                       marks("gamma", "exact", by=("parameter",)), where={"noise": "staircase"},
                       legend="upper right", ylim=(0, 1.65)), width=4.4, height=3.9),
    caption="Left and middle: the densities of Figures 6 and 7. Right: the total variation, by formula (lines) and "
    "from the densities (circles).",
)  # fmt: skip
def noise_variation(noise: str, parameter: float, gamma: float = 0.0) -> Row:
    """Laplace noise has total variation 1 - exp(-ε/2), Gaussian noise 2Φ(μ/2) - 1, staircase noise the closed form of
    section VI-C, and the staircase attains the whole region of (ε, η)."""
    if noise == "staircase":
        p, q = stairs(parameter, gamma)
        eta, curve = staircase_variation(parameter, gamma), TradeOffCurve.of_pair(p, q)
        t = np.unique(np.concatenate([np.linspace(0, 1, 101), curve.knots[:, 0]]))
        off = float(np.max(np.abs(curve(t) - region(t, parameter, 0.0, eta))))
        return {"printed": eta, "exact": float(np.abs(p - q).sum() / 2), "curve_off_region": off}
    if noise == "Laplace":
        exact = _variation(lambda x: parameter / 2 * math.exp(-parameter * abs(x)), 40 / parameter)
        return {"printed": -math.expm1(-parameter / 2), "exact": exact}
    scale = parameter / math.sqrt(2 * math.pi)
    exact = _variation(lambda x: scale * math.exp(-((parameter * x) ** 2) / 2), 10 / parameter)
    return {"printed": math.erf(parameter / 2 / math.sqrt(2)), "exact": exact}  # 2 Phi(mu/2) - 1
