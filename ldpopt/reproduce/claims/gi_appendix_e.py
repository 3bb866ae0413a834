"""Appendix E: the three integrals behind Theorem 3, and a misprinted limit of integration."""

from __future__ import annotations

import math

import numpy as np

from ldpopt.mechanisms import dominating_pair
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, Subject, grid
from ldpopt.reproduce.statements import Part, inequalities

MEAN = Part("eq. 72: kl = εη", equal=True, cells=("epsilon", "share"))
SECOND = Part("eq. 73: κ₂", equal=True, cells=("epsilon", "share"))
THIRD = Part("eq. 74: κ₃", equal=True, cells=("epsilon", "share"))
PRINTED = Part("eq. 72's integrals with the printed limit", Subject.STEP, equal=True, cells=("epsilon", "share"))
REPAIRED = Part("the same with e^ε-1", Subject.STEP, equal=True, cells=("epsilon", "share"))
EXPANSION = Part("|ε(e^ε+1)/(2(e^ε-1)) - 1| ≤ ε²", Subject.STEP, cells=("epsilon",))
PARTS = (MEAN, SECOND, THIRD, PRINTED, REPAIRED, EXPANSION)


def points(parameters: Parameters) -> list[Row]:
    """Every epsilon and eta as a share of its largest value."""
    return grid(epsilon=parameters["epsilons"], share=parameters["shares"])


def measure(epsilon: float, share: float) -> list[Row]:
    """The moments of the slope of the curve, from its dominating pair and by the printed formulas."""
    eta, gain = share * math.tanh(epsilon / 2), math.expm1(epsilon)
    pair = dominating_pair(epsilon, 0.0, eta)
    used = (pair.p > 0) & (pair.q > 0)
    p, loss = pair.p[used], np.log(pair.p[used] / pair.q[used])

    def integrals(denominator: float) -> float:  # slope -e^epsilon on the first stretch, -e^-epsilon on the last
        return -(epsilon * eta / gain - epsilon * eta * math.exp(epsilon) / denominator)

    ratio = (math.exp(epsilon) + 1) / gain
    mean = float(p @ loss)
    sides = {
        MEAN: (mean, epsilon * eta),
        SECOND: (float(p @ loss**2), eta * epsilon**2 * ratio),
        THIRD: (float(p @ np.abs(loss) ** 3), eta * epsilon**3 * ratio),
        PRINTED: (mean, integrals(math.exp(epsilon) + 1)),
        REPAIRED: (mean, integrals(gain)),
        EXPANSION: (abs(epsilon * ratio / 2 - 1), epsilon**2),
    }
    return [{"part": part.name, "exact": exact, "claimed": claimed} for part, (exact, claimed) in sides.items()]


EXPERIMENT: Experiment = inequalities(
    PARTS,
    title="Appendix E: moments of the slope",
    ending="The lower limit of the second integral is 1 - ηe^ε/(e^ε-1); the results (72) to (74) are those of the "
    "right one.",
    name="gi-appendix-e",
    claim="The (ε, η) trade-off curve has kl = εη, κ₂ = ηε²(e^ε+1)/(e^ε-1) and κ₃ = ηε³(e^ε+1)/(e^ε-1), by "
    "integrals from 0 to η/(e^ε-1) and from 1 - ηe^ε/(e^ε+1) (as printed) to 1.",
    source="[GI, eq. 72-74; GI, App E]",
    full={"epsilons": [0.01, 0.1, 0.5, 1.0, 2.0, 4.0], "shares": [0.1, 0.5, 0.9, 1.0]},
    quick={"epsilons": [0.1, 1.0], "shares": [0.5, 1.0]},
    points=points,
    measure=measure,
    caption="Each formula against the moment computed from the curve's dominating pair. Filled: the printed limit.",
    subject=Subject.STEP,
)
