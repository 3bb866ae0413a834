"""What pure-ldp does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from peer_probes.base import N, drawn, near, pitfall, probe


@probe("pure-ldp", "response")
def _() -> str:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(1.0, 4, index_mapper=lambda x: x)
    drawn(np.mean([client.privatise(2) == 2 for _ in range(N)]), math.e / (math.e + 3))
    return "DEClient"


def _bits(oue: bool) -> None:
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    client = UEClient(1.0, 4, use_oue=oue, index_mapper=lambda x: x)
    share = np.mean([client.privatise(2) for _ in range(N)], axis=0)
    half = math.exp(0.5)
    drawn(share[2], 0.5 if oue else half / (half + 1))
    drawn(share[0], 1 / (math.e + 1) if oue else 1 / (half + 1))


@probe("pure-ldp", "unary")
def _() -> str:
    _bits(True)
    _bits(False)
    return "UEClient"


@probe("pure-ldp", "hashing")
def _() -> str:
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    client = LHClient(2.0, 8, use_olh=True, index_mapper=lambda x: x)
    server = LHServer(2.0, 8, use_olh=True, index_mapper=lambda x: x)
    for _ in range(N):
        server.aggregate(client.privatise(3))
    near(server.estimate(3) / N, 1.0, 0.15)
    return "LHClient, LHServer"


@probe("pure-ldp", "thresholding")
def _() -> str:
    from pure_ldp.frequency_oracles.histogram_encoding import HEClient, HEServer

    client = HEClient(2.0, 4, index_mapper=lambda x: x)
    server = HEServer(2.0, 4, use_the=True, index_mapper=lambda x: x)
    for _ in range(N):
        server.aggregate(client.privatise(1))
    near(server.estimate(1) / N, 1.0, 0.15)
    return "HEClient, HEServer(use_the=True)"


@probe("pure-ldp", "hadamard")
def _() -> str:
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer

    server = HadamardResponseServer(2.0, 4, index_mapper=lambda x: x)
    client = HadamardResponseClient(2.0, 4, server.get_hash_funcs(), index_mapper=lambda x: x)
    for _ in range(N):
        server.aggregate(client.privatise(1))
    near(server.estimate(1, suppress_warnings=True) / N, 1.0, 0.2)
    return "HadamardResponseClient, HadamardResponseServer"


@probe("pure-ldp", "shares")
def _() -> str:
    from pure_ldp.frequency_oracles.direct_encoding import DEServer

    server = DEServer(1.0, 3, index_mapper=lambda x: x)
    for report in [0] * 100 + [1] * 300 + [2] * 200:
        server.aggregate(report)
    p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    near(float(server.estimate(0, suppress_warnings=True)), (100 - 600 * q) / (p - q), 1e-6)
    return "DEServer.estimate"


@pitfall("pure-ldp", "rappor")
def _() -> dict[str, Any]:
    from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer

    f = 0.5
    server = RAPPORServer(f, 16, 2, 8, index_mapper=lambda x: x)
    client = RAPPORClient(f, 16, server.get_hash_funcs(), 8, index_mapper=lambda x: x)
    kept = total = 0
    for _ in range(N):
        bits, cohort = client.privatise(3)
        own = {hashed("3") for hashed in client.hash_family[cohort]}
        kept += sum(bits[at] for at in own)
        total += len(own)
    return {"a set bit is reported as set": kept / total, "it should be": 1 - f / 2}


@pitfall("pure-ldp", "fast local hashing")
def _() -> dict[str, Any]:
    from pure_ldp.frequency_oracles.local_hashing import FastLHServer

    rng, d, seeds, epsilon, runs = np.random.default_rng(5), 32, 100, 3.0, 3
    ratios = []
    for n in (100_000, 1_000_000):
        g = round(math.exp(epsilon)) + 1
        p, theory = math.exp(epsilon) / (math.exp(epsilon) + g - 1), 0.0
        theory = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2 / n
        errors = []
        for _ in range(runs):
            server = FastLHServer(epsilon, d, seeds, use_olh=True, index_mapper=lambda x: x)
            answers, given = rng.permutation(np.repeat(np.arange(d), n // d + 1)[:n]), rng.integers(seeds, size=n)
            answers[: n // 2] = 0
            told = server.hash_matrix[given, answers].astype(int)
            other = rng.integers(g - 1, size=n)
            told = np.where(rng.random(n) < p, told, other + (other >= told))
            np.add.at(server.hash_counts, (given, told), 1)
            server.n = n
            found = np.array([server.estimate(x, suppress_warnings=True) / n for x in range(d)])
            errors.append(np.mean((found - np.bincount(answers, minlength=d) / n)[1:] ** 2))
        ratios.append(float(np.mean(errors)) / theory)
    return {"seeds": seeds, "times the theoretical error, 10^5 reports": ratios[0], "10^6 reports": ratios[1]}
