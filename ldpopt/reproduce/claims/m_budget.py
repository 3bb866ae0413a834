"""Table II and Proposition 3: Rényi budget curves, and the approximate privacy that they imply."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldpopt.composition import FinitePair, compose
from ldpopt.mechanisms import gaussian, laplace
from ldpopt.privacy import renyi
from ldpopt.privacy.claims import RenyiDP
from ldpopt.privacy.conversions import renyi_to_approximate, renyi_to_approximate_closed
from ldpopt.reproduce.drawing import finish, frames, line
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Table, Verdict, grid, outcome_of

MECHANISMS = ("randomized response", "Laplace", "Gaussian")
ORDERS = tuple(float(a) for a in np.geomspace(1.05, 400, 120))


def printed(mechanism: str, order: float) -> float:
    """The budget curves of Table II at p = e/(1+e), noise scale 1 and sigma 1."""
    if mechanism == "Gaussian":
        return order / 2
    if mechanism == "Laplace":
        first, second = math.log(order / (2 * order - 1)) + order - 1, math.log((order - 1) / (2 * order - 1)) - order
        return float(np.logaddexp(first, second)) / (order - 1)
    log_p, log_q = -math.log1p(math.exp(-1)), -math.log1p(math.e)
    one, two = order * log_p + (1 - order) * log_q, order * log_q + (1 - order) * log_p
    return float(np.logaddexp(one, two)) / (order - 1)


def response() -> list[list[float]]:
    """Randomized response at epsilon = 1."""
    p = math.e / (1 + math.e)
    return [[p, 1 - p], [1 - p, p]]


def points(parameters: Parameters) -> list[Row]:
    """The curves, then the (epsilon, delta) of several uses."""
    curves = grid(part=["curve"], mechanism=MECHANISMS, order=parameters["orders"])
    return curves + grid(part=["implied"], mechanism=MECHANISMS, delta=parameters["deltas"], uses=parameters["uses"])


def measure(part: str, mechanism: str, order: float = 0, delta: float = 0, uses: float = 1) -> Row:
    """Table II and the measured divergence; or epsilon by both conversions over all orders, and the exact epsilon."""
    if part == "curve":
        pair = {"Laplace": laplace(1.0).pair, "Gaussian": gaussian(1.0).pair}.get(mechanism)
        exact = renyi(response(), order).value if pair is None else pair.renyi(order).value
        return {"printed": printed(mechanism, order), "exact": exact}
    claims = [RenyiDP(a, uses * printed(mechanism, a)) for a in ORDERS]
    return {
        "plain": min(renyi_to_approximate(claim, delta).epsilon for claim in claims),
        "sharp": min(renyi_to_approximate_closed(claim, delta).epsilon for claim in claims),
        "exact": exact_epsilon(mechanism, delta, int(uses)),
    }


def exact_epsilon(mechanism: str, delta: float, uses: int) -> float:
    """A lower bound on the epsilon of `uses` uses at `delta`, good to the digits shown."""
    if mechanism == "randomized response":
        return compose([FinitePair.of_channel(response())], uses).approximate_dp(delta).lower
    if mechanism == "Gaussian":
        from scipy.optimize import brentq

        pair = gaussian(1.0, math.sqrt(uses)).pair
        return float(brentq(lambda e: math.log(max(pair.hockey_stick(e).lower, 1e-300) / delta), 0, 60 + 9 * uses))
    # Unit Laplace noise of answers 0 and 1: the loss 1 - 2y on [0, 1] is cut into cells, which can only lower epsilon.
    y = np.linspace(0, 1, 401)
    p = np.concatenate([[0.5], -np.diff(np.exp(-y)) / 2, [math.exp(-1) / 2]])
    return compose([FinitePair(p / p.sum(), p[::-1] / p.sum())], uses).approximate_dp(delta).lower


def judge(table: Table) -> Verdict:
    """The verdict: Table II equals the divergences; and the ratio of the implied epsilon to the exact one."""
    curve, implied = table.where(part="curve"), table.where(part="implied")
    off = float(np.max(np.abs(curve.column("printed") / curve.column("exact") - 1)))
    plain, sharp = (implied.column(name) / implied.column("exact") for name in ("plain", "sharp"))
    worst = implied.with_column("r", plain).row("r", np.argmax)
    return Verdict(
        outcome_of(np.concatenate([plain, sharp, [1.0 if off < 1e-9 else 0.0]]), tolerance=1e-4),
        f"Table II is exact (to {off:.1e}). The ε that Proposition 3 implies is {plain.min():.3f} to "
        f"{plain.max():.3f} times "
        f"the exact one (most for {worst['mechanism']}, {worst['uses']:g} uses, δ = {worst['delta']:g}); with the "
        "newer "
        f"conversion [CKS, Prop 12] {sharp.min():.3f} to {sharp.max():.3f} times.",
        {
            "Table II off by, relative": off,
            "Proposition 3 over exact ε, smallest": float(plain.min()),
            "Proposition 3 over exact ε, largest": float(plain.max()),
            "newer conversion over exact ε, smallest": float(sharp.min()),
            "newer conversion over exact ε, largest": float(sharp.max()),
        },
    )


def draw(table: Table) -> Any:
    """The budget curves, and the implied epsilon against the number of uses."""
    left, right = frames(2)
    for at, (name, rows) in enumerate(table.where(part="curve").groups("mechanism")):
        line(left, rows.column("order"), rows.column("exact"), at, str(name))
        left.plot(rows.column("order"), rows.column("printed"), "o", ms=3, mfc="none", color="0.2")
    left.plot([], [], "o", ms=3, mfc="none", color="0.2", label="Table II")
    finish(left, "Budget curves at ε = 1, σ = 1", "order α", "Rényi divergence (nats)", scale="xy")
    delta = min(table.where(part="implied").column("delta"))
    for at, (name, rows) in enumerate(table.where(part="implied", delta=delta).groups("mechanism")):
        colour = {"color": ("#0072B2", "#D55E00", "#009E73")[at]}
        line(right, rows.column("uses"), rows.column("exact"), at, f"{name}, exact", ls="-", **colour)
        line(right, rows.column("uses"), rows.column("plain"), at, f"{name}, Proposition 3", ls=":", **colour)
    finish(right, f"The ε of several uses at δ = {delta:g}", "uses", "ε (nats)", scale="xy")
    return left


EXPERIMENT = Experiment(
    name="m-budget-curves",
    claim="Randomized response, Laplace and Gaussian noise have the Rényi budget curves of Table II, and (α, ε)-RDP "
    "implies (ε + log(1/δ)/(α-1), δ)-DP.",
    source="[M, Table II; M, Prop 3; CKS, Prop 12]",
    full={
        "orders": [1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0], "deltas": [1e-3, 1e-6],
        "uses": [1, 2, 4, 8, 16, 32, 64],
    },
    quick={"orders": [1.5, 8.0], "deltas": [1e-6], "uses": [1, 16]},
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    caption="Left: the budget curves, measured (lines) and by Table II (circles). Right: the ε that they imply for "
    "several uses, and the exact one.",
)  # fmt: skip
