"""Section VI: the total variation of Laplace, Gaussian and staircase noise, and the staircase's privacy region."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ldpopt.distribution import Array
from ldpopt.mechanisms import Staircase
from ldpopt.privacy.trade_off import TradeOffCurve
from ldpopt.reproduce.claims.gi_regions import region
from ldpopt.reproduce.drawing import COLOURS, finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, agreement, grid


def points(parameters: Parameters) -> list[Row]:
    """Laplace and Gaussian noise at every parameter, and the staircase also at every gamma."""
    smooth = grid(noise=["Laplace", "Gaussian"], parameter=parameters["parameters"])
    return smooth + grid(noise=["staircase"], parameter=parameters["parameters"], gamma=parameters["gammas"])


def measure(noise: str, parameter: float, gamma: float = 0.0) -> Row:
    """The printed total variation, and half the integral of |f(x) - f(x - 1)|."""
    if noise == "staircase":
        p, q = stairs(parameter, gamma)
        eta = staircase_variation(parameter, gamma)
        curve = TradeOffCurve.of_pair(p, q)
        t = np.unique(np.concatenate([np.linspace(0, 1, 101), curve.knots[:, 0]]))
        off = float(np.max(np.abs(curve(t) - region(t, parameter, 0.0, eta))))
        return {"printed": eta, "exact": float(np.abs(p - q).sum() / 2), "curve_off_region": off}
    if noise == "Laplace":
        return {
            "printed": -math.expm1(-parameter / 2),
            "exact": variation(lambda x: parameter / 2 * math.exp(-parameter * abs(x)), 40 / parameter),
        }
    return {
        "printed": math.erf(parameter / 2 / math.sqrt(2)),  # 2 Phi(mu/2) - 1
        "exact": variation(lambda x: parameter * math.exp(-((parameter * x) ** 2) / 2) / math.sqrt(2 * math.pi),
                           10 / parameter),
    }  # fmt: skip


def variation(density: Callable[[float], float], reach: float) -> float:
    """Half the integral of |f(x) - f(x - 1)| for symmetric f, by quadrature on the side of 1/2 where f is larger."""
    from scipy.integrate import quad

    pieces = ((-reach, 0.0), (0.0, 0.5))
    return float(sum(quad(lambda x: density(x) - density(x - 1), a, b, epsabs=1e-13, limit=200)[0] for a, b in pieces))


def staircase_variation(epsilon: float, gamma: float) -> float:
    """The total variation as printed, for gamma in [0, 1] [GI, section VI-C]."""
    q = math.exp(-epsilon)
    below = 2 * gamma * (1 - q) + q if gamma < 0.5 else 1.0
    return (1 - q) * below / (2 * (gamma + q * (1 - gamma)))


def stairs(epsilon: float, gamma: float, falls: float = 40.0) -> tuple[Array, Array]:
    """The masses of staircase noise, and of the noise moved by 1, on the cells where both densities are constant."""
    reach = math.ceil(falls / epsilon) + 2
    whole = np.arange(-reach, reach + 1, dtype=np.float64)
    cuts = np.unique(np.concatenate([whole, whole + gamma, whole - gamma]))
    middle, width = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)

    def mass(x: Array) -> Array:
        steps = np.floor(np.abs(x))
        lower = np.abs(x) - steps >= gamma
        return np.exp(-epsilon * (steps + lower)) * width

    p, q = mass(middle), mass(middle - 1)
    return p / p.sum(), q / q.sum()


def judge(table: Table) -> Verdict:
    """The verdict: the formulas are equal to the integrals, and the staircase's curve is that of the region."""
    errors = np.abs(table.column("printed") - table.column("exact"))
    curves = table.where(noise="staircase").column("curve_off_region")
    alpha = 1 - staircase_variation(1.0, 0.0139) / math.tanh(0.5)
    return Verdict(
        agreement(np.concatenate([errors, curves, [abs(round(alpha, 1) - 0.3)]]), 1e-8),
        f"The three formulas are exact (to {errors.max():.1e}), the staircase's for γ in [0, 1], not for all positive "
        f"γ as printed; its trade-off curve is the edge of the region of (ε, η) (to {curves.max():.1e}). γ = 0.0139 "
        f"at ε = 1 has α = {alpha:.4f} (printed: 0.3).",
        {"formulas off by": float(errors.max()), "staircase off its region by": float(curves.max()),
         "α at ε = 1, γ = 0.0139": alpha},
    )  # fmt: skip


def draw(table: Table) -> Any:
    """Figures 6 and 7, two staircases and their shifts, and the total variation against gamma."""
    left, middle, right = frames(3, 4.4, 3.9)
    x = np.linspace(-2.5, 3.5, 1201)
    for ax, gamma, figure in ((left, 0.25, 6), (middle, 0.75, 7)):
        noise = Staircase(1.0, gamma)
        line(ax, x, noise.density(x), 0, "f(x)", lw=1.5)
        line(ax, x, noise.density(x - 1), 1, "f(x - Δ)", lw=1.5)
        finish(ax, f"Figure {figure}: staircase noise, ε = 1, γ = {gamma:g}", "x, in units of Δ", "density")
    gammas = np.linspace(0, 1, 201)
    for at, (epsilon, rows) in enumerate(table.where(noise="staircase").groups("parameter")):
        e = float(epsilon)
        line(right, gammas, [staircase_variation(e, g) for g in gammas], at, f"ε = {e:g}")
        right.plot(rows.column("gamma"), rows.column("exact"), "o", ms=4, mfc="none", color=COLOURS[at])
    right.plot([], [], "o", ms=4, mfc="none", color="0.3", label="from the densities")
    finish(right, "Total variation of the staircase", "γ", "η", "upper right")
    right.set_ylim(0, 1.65)
    return left


EXPERIMENT = Experiment(
    name="gi-section-6",
    claim="Laplace noise has total variation 1 - exp(-ε/2), Gaussian noise 2Φ(μ/2) - 1, staircase noise the closed "
    "form of section VI-C, and the staircase attains the whole region of (ε, η).",
    source="[GI, section VI-A; GI, eq. 17; GI, section VI-C; GI, Fig 6-7]",
    full={"parameters": [0.1, 0.5, 1.0, 3.0], "gammas": [0.0, 0.0139, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0]},
    quick={"parameters": [1.0, 3.0], "gammas": [0.0139, 0.5, 0.75]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left and middle: the densities of Figures 6 and 7. Right: the total variation, by formula (lines) and "
    "from the densities (circles).",
)
