"""What opendp and diffprivlib do, which are about data sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from peer_probes.base import EXACT, N, drawn, near, pitfall, probe


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@probe("opendp", "response")
def _() -> str:
    measure = _opendp().m.make_randomized_response(categories=list(range(4)), prob=0.5)
    drawn(np.mean([measure(2) == 2 for _ in range(N)]), 0.5)
    return "m.make_randomized_response"


def _bitvec(f: float) -> Any:
    dp = _opendp()
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=f)


@probe("opendp", "unary")
def _() -> str:
    measure, bits = _bitvec(0.5), np.array([0, 0, 1, 0, 0, 0, 0, 0])
    told = [np.unpackbits(np.frombuffer(measure(np.packbits(bits).tobytes()), dtype=np.uint8)) for _ in range(N)]
    drawn(np.mean(told, axis=0)[2], 0.75)
    drawn(np.mean(told, axis=0)[0], 0.25)
    return "m.make_randomized_response_bitvec; symmetric"


@probe("opendp", "number")
def _() -> str:
    dp = _opendp()
    noise = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=2.0)
    near(float(np.mean([abs(noise(0.0)) for _ in range(N)])), 2.0, 0.3)
    return "m.make_laplace, m.make_gaussian"


@probe("opendp", "shares")
def _() -> str:
    measure, bits = _bitvec(0.1), np.array([0, 0, 1, 0, 0, 0, 0, 0])
    told = [measure(np.packbits(bits).tobytes()) for _ in range(N)]
    near(float(max(_opendp().m.debias_randomized_response_bitvec(told, 0.1))) / N, 1.0, 0.05)
    return "m.debias_randomized_response_bitvec; bit vectors"


@probe("opendp", "intervals")
def _() -> str:
    low, high = _opendp().numpy.canonical.BinomialCND(300.0, 1.0, (1.0, 1e-6), 1000).confidence_interval(0.05)
    if not 0.2 < low < 0.3 < high < 0.4:
        raise AssertionError((low, high))
    return "numpy.canonical.BinomialCND.confidence_interval; noisy counts"


@probe("opendp", "states")
def _() -> str:
    measure = _opendp().m.make_randomized_response(categories=list(range(4)), prob=0.5)
    near(measure.map(1), math.log(3), 1e-9)
    return "Measurement.map"


@probe("opendp", "composition")
def _() -> str:
    dp = _opendp()
    one = dp.c.make_pureDP_to_zCDP(dp.m.make_randomized_response_bool(prob=math.exp(0.1) / (1 + math.exp(0.1))))
    both = dp.c.make_zCDP_to_approxDP(dp.c.make_composition([one] * 100))
    found = float(dp.c.make_fix_delta(both, 1e-6).map(1)[0])
    if not EXACT <= found < 10:
        raise AssertionError(found)
    return f"c.make_composition, make_pureDP_to_zCDP, make_zCDP_to_approxDP; {100 * (found / EXACT - 1):.1f} % above"


@pitfall("opendp", "reversed bits")
def _() -> dict[str, Any]:
    measure, bits = _bitvec(0.1), np.zeros(16, dtype=int)
    bits[2] = 1
    told = [measure(np.packbits(bits).tobytes()) for _ in range(500)]
    found = _opendp().m.debias_randomized_response_bitvec(told, 0.1)
    return {"the bit that is set": 2, "the largest estimate": int(np.argmax(found))}


@probe("diffprivlib", "response")
def _() -> str:
    from diffprivlib.mechanisms import Binary

    made = Binary(epsilon=1.0, value0="a", value1="b")
    drawn(np.mean([made.randomise("a") == "a" for _ in range(N)]), math.e / (math.e + 1))
    return "mechanisms.Binary; two answers"


@probe("diffprivlib", "number")
def _() -> str:
    from diffprivlib.mechanisms import Laplace

    made = Laplace(epsilon=0.5, sensitivity=1.0)
    near(float(np.mean([abs(made.randomise(0.0)) for _ in range(N)])), 2.0, 0.3)
    return "mechanisms.Laplace"


@probe("diffprivlib", "composition")
def _() -> str:
    from diffprivlib import BudgetAccountant

    accountant = BudgetAccountant(slack=1e-6)
    for _ in range(100):
        accountant.spend(0.1, 0.0)
    found = float(accountant.total()[0])
    if not EXACT <= found <= 10:
        raise AssertionError(found)
    return f"BudgetAccountant; {100 * (found / EXACT - 1):.1f} % above"
