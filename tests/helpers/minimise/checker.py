"""The bound that the second checker proves from a certificate of the package, read from its design file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

import ldpopt_check
from ldpopt.channel import Channel
from ldpopt.design.design import Design
from ldpopt.design.files import design_text

NOT_COVERED = {"MarginalDual", "PairwiseInformation", "ChamberDual", "BranchDual", "AlphabetLossDual", "SamplingDual",
               "SaddlePoint", "IntegerColumns"}  # fmt: skip
"""The classes that the second checker does not judge."""


def bound(certificate: Any) -> float:
    """The bound, rounded outward; infinitely bad where nothing is proved, nan where the file is not supported."""
    utility = certificate.utility
    worst = -math.inf if utility.error else math.inf
    k = utility.size
    channel = certificate.channel
    if channel is None or (utility.error and np.ptp(channel.matrix) == 0):
        many = utility.loss.shape[1] if hasattr(utility, "loss") else 1
        channel = Channel(np.full((k, many), 1 / many)) if not utility.error else Channel(np.eye(k))
    own = replace(certificate, channel=channel)
    design = Design(utility, own.constraints, channel, 0.0, 0.0, 0.0, (), "", own, False, 1e-6, "")
    try:
        text = design_text(design)
        document = json.loads(text)
        document["guarantees"] = [{"notion": "local_dp", "value": 0.0}]
        found = ldpopt_check.check(document, budget=100.0).bound
    except ldpopt_check.BadInput:
        return math.nan
    number = found[0] if utility.error else found[1]
    return number if math.isfinite(number) else worst
