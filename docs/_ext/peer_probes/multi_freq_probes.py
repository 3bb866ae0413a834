"""What multi-freq-ldpy does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from peer_probes.base import N, drawn, near, pitfall, probe


@probe("multi-freq-ldpy", "response")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    drawn(np.mean([GRR_Client(2, 4, 1.0) == 2 for _ in range(N)]), math.e / (math.e + 3))
    return "GRR_Client"


@probe("multi-freq-ldpy", "unary")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    half = math.exp(0.5)
    for oue, own in ((True, 0.5), (False, half / (half + 1))):
        drawn(np.mean([UE_Client(2, 4, 1.0, oue)[2] for _ in range(N)]), own)
    return "UE_Client"


@probe("multi-freq-ldpy", "hashing")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

    found = LH_Aggregator_MI([LH_Client(3, 8, 2.0, True) for _ in range(N)], 8, 2.0, True)
    near(float(found[3]), 1.0, 0.15)
    return "LH_Client, LH_Aggregator_MI"


@probe("multi-freq-ldpy", "thresholding")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Aggregator_MI, HE_Client

    found = HE_Aggregator_MI([HE_Client(1, 4, 2.0) for _ in range(N)], 4, 2.0)
    near(float(found[1]), 1.0, 0.15)
    return "HE_Client, HE_Aggregator_MI"


@probe("multi-freq-ldpy", "subset")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    kept = np.mean([2 in list(SS_Client(2, 6, 1.0)) for _ in range(N)])
    drawn(kept, 2 * math.e / (2 * math.e + 4))
    return "SS_Client"


@probe("multi-freq-ldpy", "shares")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI

    near(float(GRR_Aggregator_MI([0] * 200 + [1] * 200 + [2] * 200, 3, 1.0)[0]), 1 / 3, 1e-9)
    return "GRR_Aggregator_MI; clipped"


@probe("multi-freq-ldpy", "bayes")
def _() -> str:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU

    found = GRR_Aggregator_IBU([0] * 150 + [1] * 250 + [2] * 200, 3, 1.0)
    p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    near(float(found[1]), (250 / 600 - q) / (p - q), 1e-3)
    return "GRR_Aggregator_IBU"


@probe("multi-freq-ldpy", "attributes")
def _() -> str:
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_GRR_Aggregator_MI, SMP_GRR_Client

    reports = [SMP_GRR_Client([0, 1], [2, 3], 2, 2.0) for _ in range(N)]
    found = SMP_GRR_Aggregator_MI(reports, [2, 3], 2, 2.0)
    near(float(found[1][1]), 1.0, 0.15)
    return "SMP_GRR_Client, SPL_*, RSpFD_*"


@pitfall("multi-freq-ldpy", "clipped")
def _() -> dict[str, Any]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI

    counts = [10, 300, 290]
    found = GRR_Aggregator_MI([x for x, n in enumerate(counts) for _ in range(n)], 3, 1.0)
    p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    return {"estimate": float(found[0]), "without bias": (10 / 600 - q) / (p - q)}


@pitfall("multi-freq-ldpy", "transposed")
def _() -> dict[str, Any]:
    from multi_freq_ldpy.estimators.Histogram_estimator import IBU

    channel, truth = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0.3, 0.7])
    found = IBU(2, channel, truth @ channel, 100_000, 1e-15, "max_abs")
    other = IBU(2, np.ascontiguousarray(channel.T), truth @ channel, 100_000, 1e-15, "max_abs")
    return {"truth": truth[0], "estimate": float(found[0]), "with the channel transposed": float(other[0])}
