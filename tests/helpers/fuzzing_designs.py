"""Mutated design files: what is accepted and verified must be true, by arithmetic that the package has no part in."""

from __future__ import annotations

import copy
import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import design_files
import mpmath
import numpy as np
from fuzzing import Loader, mutate
from truth.feasible import violations
from truth.optimum import optimum, rows_of
from truth.utilities import Kept, divergence_utility

from ldpopt.design import Design, Divergence, LocalDP, TotalVariation
from ldpopt.design.files import design_text
from ldpopt.design.load import parse_design

SLACK = 1e-9
"""For the truth's own accuracy."""

QUICK = (
    "potentials", "potentials, a cap", "contraction", "thirds", "information", "approximate", "policy", "worst",
    "parts", "sum", "loss", "minimax loss", "loss of an invariant", "sampling", "estimation", "estimation D",
    "estimation c", "pattern program", "nothing proved",
)  # fmt: skip

VALUES: list[Any] = [
    0, 1, -1, 7, -3, 2**39, 0.5, 1e-9, -1e-9, 1e-300, 5e-324, 1e300, 1.7e308, -1e308, "inf", "-inf", "", "a", None,
    True, False, [], {}, [0.5, 0.5], [[1.0]], [1, "a"], [[[]]], {"shape": [0]}, {"shape": [0, 3]},
    {"kind": "Contraction"}, {"kind": "Unbounded"}, {"kind": "LocalDP", "epsilon": 0.5},
    {"kind": "Hull", "vertices": [[0.5, 0.5]]},
]  # fmt: skip


def change(rng: random.Random, data: bytes) -> bytes:
    """Mutated bytes one time in four; else one to three values of the JSON exchanged, or numbers a little off."""
    if rng.random() < 0.25:
        return mutate(rng, data)
    document = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, key = rng.choice(list(_places(document)))
        old = at[key]
        near = [old * 2, -old, old * 0.9, old * 1.001, old * (1 + 1e-12)] if isinstance(old, float) else []
        near += [old + 1, old - 1, -old] if isinstance(old, int) else []
        near += [old[1:], old[::-1], old * 2] if isinstance(old, list) else []
        at[key] = copy.deepcopy(rng.choice(near if near and rng.random() < 0.6 else VALUES))
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    """(what holds it, key) of every value in a document."""
    found, waiting = [], [document]
    while waiting:
        at = waiting.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at))
        found += [(at, key) for key in keys]
        waiting += [at[key] for key in keys if isinstance(at[key], (dict, list))]
    return found


def load(data: bytes, folder: Path) -> Design:
    """Read and verify; a design that verifies must not claim more than is true."""
    design = parse_design(data)
    if design.verify().proved:
        wrong = overclaims(design)
        if wrong:
            raise AssertionError(f"verified, but {wrong}")
    return design


def overclaims(design: Design) -> list[str]:
    """What a plain design claims that is not true; nothing is known here of other designs."""
    utility, known = design.utility, (LocalDP, TotalVariation)
    if not isinstance(utility, Divergence) or utility.continuous or utility.size > 5:
        return []
    if any(type(one) not in known or getattr(one, "graph", None) is not None for one in design.constraints):
        return []
    epsilon = min((one.epsilon for one in design.constraints if isinstance(one, LocalDP)), default=math.inf)
    eta = min((one.eta for one in design.constraints if isinstance(one, TotalVariation)), default=1.0)
    told = [("local-dp", epsilon)] * (epsilon < math.inf) + [("total-variation", eta)]
    kept = _kept(utility)
    matrix = np.asarray(design.channel.matrix)
    wrong = violations(matrix, told)
    least = [v for v in matrix.ravel().tolist() if v > 0]
    with mpmath.workdps(kept.digits(*least)):
        own = kept.value(rows_of(matrix))
        if not design.value <= own * (1 + SLACK):
            wrong.append(f"the value is {mpmath.nstr(own, 17)}, not {design.value!r}")
    if epsilon < math.inf:
        best = optimum(kept, epsilon, eta).lower
        if not design.upper_bound >= best * (1 - SLACK):
            wrong.append(f"some channel keeps {mpmath.nstr(best, 17)}, above {design.upper_bound!r}")
    if design.certified and not design.upper_bound - design.value <= 1e-3 * abs(design.value) * (1 + SLACK):
        wrong.append("it is called certified")
    return wrong


def _kept(utility: Divergence) -> Kept:
    return divergence_utility(utility.f.recipe, utility.p0.tolist(), utility.p1.tolist())


@cache
def loaders() -> tuple[Loader, ...]:
    """The loader of design files, with a file of many kinds of certificate."""
    seeds = tuple(design_text(design_files.design(name)).encode() for name in QUICK)
    return (Loader("design", seeds, load, 1, change),)
