"""Designs of every kind that the attacks on certificates share, each made once."""

from dataclasses import fields, replace

import numpy as np

from ldpopt import (
    ApproximateLDP,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    LdpoptError,
    LocalDP,
    MutualInformation,
    PrivateSampling,
    TotalVariation,
    WorstOf,
    optimal_channel,
)
from ldpopt.design import AgainstSet, Exchange, Hull, Outputs
from ldpopt.divergences import (
    KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
)

P0, P1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]

DESIGNS = {
    "labels": (lambda: Divergence(KL, P0, P1), [LocalDP(1.0)], None),
    "patterns": (lambda: Divergence(KL, P0, P1), [LocalDP(1.0), TotalVariation(0.2)], None),
    "exchange": (lambda: Divergence(KL, P0, P1), [LocalDP(1.0), TotalVariation(0.2)], Exchange()),
    "approximate": (lambda: Divergence(SQUARED_HELLINGER, P0, P1), [ApproximateLDP(1.0, 0.1)], None),
    "columns": (lambda: MutualInformation(P0), [LocalDP(1.0), TotalVariation(0.2)], None),
    "worst": (lambda: WorstOf(KL, P0, [P1, [0.3, 0.5, 0.2]]), [LocalDP(1.0)], None),
    "branches": (lambda: Divergence(KL, P0, P1), [LocalDP(1.0), Outputs(2)], None),
    "loss": (lambda: ExpectedLoss(P0, 1 - np.eye(3)), [LocalDP(1.0)], None),
    "sampling": (lambda: PrivateSampling(TOTAL_VARIATION, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]), [LocalDP(1.0)], None),
    "saddle": (lambda: AgainstSet(KL, P0, Hull([P1, [0.1, 0.3, 0.6]])), [LocalDP(1.0)], None),
    "estimation": (lambda: FisherInformation(P0), [LocalDP(1.0)], None),
}
_MADE = {}


def made(name):
    """A design, made once."""
    if name not in _MADE:
        utility, constraints, method = DESIGNS[name]
        _MADE[name] = optimal_channel(utility(), constraints, method=method)
    return _MADE[name]


def accepted(forged):
    """Whether verify() says yes; an error of the package is a no, and what cannot be made is not verified."""
    try:
        return forged is not None and forged.verify().proved
    except LdpoptError:
        return False


def altered(design, **changes):
    """The design with other fields; None where it does not let itself be made so, or derives them."""
    known = {field.name for field in fields(design) if field.init}
    try:
        return replace(design, **changes) if set(changes) <= known else None
    except LdpoptError:
        return None
