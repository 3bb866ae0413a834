"""Table 1's unrestricted column, and Corollary 1, which lacks a term that is in the table."""

from __future__ import annotations

import math
from itertools import pairwise

from scipy.integrate import quad

from ldpopt.mechanisms import gaussian, laplace
from ldpopt.reproduce.experiment import Experiment, Parameters, Row, grid
from ldpopt.reproduce.statements import Part, inequalities

CELLS = ("shift", "order", "d")
KL_LAPLACE = Part("KL, Laplace: ε - 1 + e^-ε", equal=True, cells=CELLS, tolerance=1e-8)
KL_GAUSSIAN = Part("KL, Gaussian: 1/(2σ²)", equal=True, cells=CELLS, tolerance=1e-8)
LAPLACE = Part("Rényi, Laplace, at least ε‖v‖₁ - d log 2/(α-1)", lower=True, cells=CELLS)
GAUSSIAN = Part("Rényi, Gaussian: α‖v‖₂²/(2σ²)", equal=True, cells=CELLS, tolerance=1e-8)
EXACT = Part("eq. (4), Theorem 11", equal=True, cells=CELLS, tolerance=1e-8)
COROLLARY = Part("Corollary 1: Rényi, Laplace, at least ε‖v‖₁", lower=True, cells=CELLS)
TABLE = (KL_LAPLACE, KL_GAUSSIAN, LAPLACE, GAUSSIAN, EXACT)


def points(parameters: Parameters) -> list[Row]:
    """Every shift (epsilon or 1/sigma), order and number d of coordinates, each of which is shifted by this much."""
    return grid(shift=parameters["shifts"], order=parameters["orders"], d=parameters["dimensions"])


def integrated(log_p: str, shift: float, order: float) -> float:
    """D_order of noise of scale 1 against itself moved by `shift`, by quadrature; order 1 is KL."""

    def density(u: float) -> float:
        return -abs(u) - math.log(2) if log_p == "Laplace" else -u * u / 2 - math.log(2 * math.pi) / 2

    # The exponent order log p + (1 - order) log q is largest at 0 for Laplace noise, at (1 - order) shift for Gaussian.
    peak = 0.0 if log_p == "Laplace" else (1 - order) * shift
    top = order * density(peak) + (1 - order) * density(peak - shift)

    def integrand(u: float) -> float:
        p, q = density(u), density(u - shift)
        return math.exp(p) * (p - q) if order == 1 else math.exp(order * p + (1 - order) * q - top)

    low, high = (-60.0, shift + 60.0) if log_p == "Laplace" else (-order * shift - 40, shift + 40)
    edges = [low, low / 8 - 1, peak - 8, peak - 2, peak, peak + 2, 0.0, shift, shift + 8, high]
    edges = sorted({min(max(edge, low), high) for edge in edges})
    total = math.fsum(quad(integrand, a, b, epsabs=0, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))
    return total if order == 1 else (top + math.log(total)) / (order - 1)


def measure(shift: float, order: float, d: float) -> list[Row]:
    """The cells of the column, and integrals over one coordinate times the number of coordinates."""
    if order == 1:
        return [{"part": KL_LAPLACE.name, "exact": d * integrated("Laplace", shift, 1.0),
                 "claimed": d * (shift + math.expm1(-shift))},
                {"part": KL_GAUSSIAN.name, "exact": d * integrated("Gaussian", shift, 1.0),
                 "claimed": d * shift**2 / 2}]  # fmt: skip
    exact = d * integrated("Laplace", shift, order)
    return [
        {"part": LAPLACE.name, "exact": exact, "claimed": d * shift - d * math.log(2) / (order - 1)},
        {"part": COROLLARY.name, "exact": exact, "claimed": d * shift},
        {"part": EXACT.name, "exact": exact, "claimed": d * laplace(shift).pair.renyi(order).value},
        {"part": GAUSSIAN.name, "exact": d * integrated("Gaussian", shift, order),
         "claimed": d * gaussian(1 / shift).pair.renyi(order).value},
    ]  # fmt: skip


EXPERIMENT: Experiment = inequalities(
    TABLE,
    title="Table 1: unrestricted adversaries",
    name="cim-table-1-unrestricted",
    claim="Unrestricted parameters are as in Table 1: ε-1+e^-ε and 1/(2σ²) for KL, at least ε‖v‖₁ - d log 2/(α-1) and "
    "α‖v‖₂²/(2σ²) for Rényi divergences of Laplace and Gaussian noise.",
    source="[CIM, Table 1; CIM, Thm 8; CIM, Thm 11; CIM, Thm 12; CIM, eq. 4]",
    full={"shifts": [0.1, 0.5, 1.0, 3.0], "orders": [1.0, 1.5, 2.0, 3.0, 6.0, 20.0], "dimensions": [1, 3]},
    quick={"shifts": [0.5, 1.0], "orders": [1.0, 2.0, 6.0], "dimensions": [1, 3]},
    points=points,
    measure=measure,
    caption="Every cell of the column against an integral. Laplace's Rényi cell is a lower bound.",
)
