"""Designs of every kind of utility, constraint and certificate, to be written to files and read back."""

from __future__ import annotations

from functools import cache

import networkx as nx
import numpy as np
from scipy import stats

from ldpopt.design import (
    AgainstSet,
    AOptimal,
    ApproximateLDP,
    Around,
    Box,
    CapacityBounded,
    ConcentratedLDP,
    Contamination,
    COptimal,
    Divergence,
    DOptimal,
    ExpectedLoss,
    FisherInformation,
    Hull,
    Invariant,
    LocalDP,
    MarginalPatterns,
    MutualInformation,
    MVOptimal,
    Outputs,
    PatternLP,
    PrivateSampling,
    RenyiLDP,
    Support,
    TotalVariation,
    TotalVariationBall,
    TradeOff,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION, alpha, hockey_stick
from ldpopt.privacy import TradeOffCurve
from ldpopt.privacy.capacity import RestrictedTotalVariation

P0, P1, P2 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.2, 0.7, 0.1]
LABELS = ("a", ("b", 1), 2.5)
LOSS = 1 - np.eye(3)
U = Divergence(KL, P0, P1)
TIED = Divergence(KL, [0.6, 0.2, 0.2], [0.2, 0.4, 0.4])
"""Two of three answers are of one ratio, which makes the programs of the slowest designs a good deal smaller."""


def policy():
    """Three answers in a line, one step twice as long as the other."""
    graph = nx.Graph()
    graph.add_edge("a", ("b", 1), weight=1.0)
    graph.add_edge(("b", 1), 2.5, weight=2.0)
    return graph


PROBLEMS = {
    "potentials": (U, [LocalDP(1.0)]),
    "potentials, a cap": (U, [LocalDP(1.0), TotalVariation(0.2)]),
    "contraction": (Divergence(CHI_SQUARED, P0, P1), [TotalVariation(0.3)]),
    "thirds": (Divergence(hockey_stick(1.5), [1 / 3] * 3, [0.1, 0.2, 0.7], inputs=LABELS), [LocalDP(1.0)]),
    "information": (MutualInformation(P0), [LocalDP(1.0), TotalVariation(0.3)]),
    "approximate": (Divergence(alpha(0.5), P0, P1), [ApproximateLDP(1.0, 0.05)]),
    "renyi": (TIED, [RenyiLDP(2.0, 0.5)]),
    "concentrated": (TIED, [ConcentratedLDP(0.3)]),
    "trade-off": (U, [TradeOff(TradeOffCurve.of_pair([0.75, 0.25], [0.25, 0.75]))]),
    "policy": (Divergence(KL, P0, P1, inputs=LABELS), [LocalDP(1.0, policy())]),
    "worst": (WorstOf(KL, P0, [P1, P2]), [LocalDP(1.0)]),
    "levels and a cap": (WorstOf(KL, P0, [P1, P2]), [ApproximateLDP(1.0, 0.01), TotalVariation(0.3)]),
    "levels": (WorstOf(KL, P0, [P1, P2]), [ApproximateLDP(1.0, 0.01)]),
    "sum": (WeightedSum([1, 0.5], [U, MutualInformation(P1)]), [LocalDP(1.0)]),
    "loss": (ExpectedLoss(P0, LOSS, decisions=("x", "y", "z")), [LocalDP(1.0)]),
    "minimax loss": (ExpectedLoss(None, LOSS), [LocalDP(1.0), TotalVariation(0.3)]),
    "loss of an invariant": (ExpectedLoss(P0, LOSS), [LocalDP(1.0), Invariant(P0)]),
    "sampling": (PrivateSampling(TOTAL_VARIATION, [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]), [LocalDP(1.0)]),
    "estimation": (FisherInformation(P0, inputs=LABELS), [LocalDP(1.0)]),
    "estimation D": (FisherInformation(P0, DOptimal()), [LocalDP(1.0), TotalVariation(0.3)]),
    "estimation c": (FisherInformation(P0, COptimal([1, 0, 0])), [LocalDP(1.0)]),
    "estimation MV": (FisherInformation(P0, MVOptimal()), [LocalDP(1.0)]),
    "estimation, a box": (FisherInformation(P0, AOptimal([1, 2, 3]), Box(0.05)), [LocalDP(1.0)]),
    "normal laws": (Divergence(KL, stats.norm(0, 1), stats.norm(loc=1)), [LocalDP(1.0)]),
}
"""Problems that need no solver to be posed: all that their designs claim can be checked without one."""

OUTPUTS = {
    "few outputs": (Divergence(KL, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]), [LocalDP(3.0), Outputs(2)]),
    "invariant": (Divergence(KL, [0.7, 0.3], [0.2, 0.8]), [LocalDP(1.0), Invariant([0.6, 0.4])]),
    "capacity": (TIED, [LocalDP(2.0), CapacityBounded([0, 1, 2], RestrictedTotalVariation(), 0.3)]),
    "support": (U, [TotalVariation(0.5), Support([[True, True, False], [True, True, True], [False, True, True]])]),
}
"""Problems whose outputs are constrained."""

SETS = {
    "around": (lambda: AgainstSet(KL, P0, Around([0.1, 0.2, 0.7], Contamination(0.05))), [LocalDP(1.0)]),
    "ball": (lambda: AgainstSet(KL, Around(P0, TotalVariationBall(0.05)), P1), [LocalDP(1.0)]),
    "hull": (lambda: AgainstSet(KL, Hull([P0, [0.6, 0.3, 0.1]]), P1), [LocalDP(1.0), TotalVariation(0.2)]),
}
"""Problems between sets of hypotheses."""


@cache
def design(name):
    """The design of a problem, made once."""
    if name == "pattern program":
        return optimal_channel(U, LocalDP(1.0), method=PatternLP())
    if name == "parts":
        several = WorstOf(KL, P0, [P1, P2])
        return optimal_channel(several, [LocalDP(1.0), TotalVariation(0.2)], method=MarginalPatterns())
    if name == "nothing proved":
        return optimal_channel(U, LocalDP(1.0), certify=False)
    utility, constraints = {**PROBLEMS, **OUTPUTS, **SETS}[name]
    return optimal_channel(utility() if callable(utility) else utility, constraints)


NAMES = (*PROBLEMS, "pattern program", "parts", "nothing proved")
