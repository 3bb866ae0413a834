"""The frontier over (epsilon, eta): the optimum beside the textbook mechanisms and the papers' bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from ldpopt.bounds import duchi_jordan_wainwright, erased_share, ghazi_issa, ghazi_issa_total_variation
from ldpopt.design import Design, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.distribution import Array, positive_epsilon, unit_interval
from ldpopt.divergences import JEFFREYS, KL, REVERSE_KL, TOTAL_VARIATION
from ldpopt.errors import Phrase, invalid
from ldpopt.frontiers.run import Work, number_from_json, number_or_none, number_to_json, run
from ldpopt.frontiers.table import Table
from ldpopt.mechanisms import binary_with_erasure, randomized_response

BOUNDS = ("tv_bound", "thm6", "thm7")
BASELINES = ("binary_with_erasure", "randomized_response_with_erasure", "erased_optimum")


@dataclass(frozen=True)
class FrontierRow:
    """One point (epsilon, eta) of a frontier, all values in the unit of its utility.

    optimum, upper_bound, certified : of the designed channel. binary_with_erasure, randomized_response_with_erasure :
    what these mechanisms keep. erased_optimum : the best epsilon-LDP channel, erased until it is eta-TV [GI, Thm 8].
    tv_bound : eta TV(P0, P1) [GI, Thm 5], for total variation. thm6, thm7 : [GI, Thm 6 and 7], for the Jeffreys
    divergence and the two KL divergences below it. None where a bound does not apply.
    """

    epsilon: float
    eta: float
    optimum: float
    upper_bound: float
    certified: bool
    binary_with_erasure: float
    randomized_response_with_erasure: float
    erased_optimum: float
    tv_bound: float | None
    thm6: float | None
    thm7: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Table):
    """The rows of a frontier, by epsilon and then eta, as a small table."""

    rows: tuple[FrontierRow, ...]
    utility: Divergence

    def column(self, name: str) -> Array:
        """A column as a float64 array, shape (rows,); NaN where a bound does not apply."""
        if name not in {field.name for field in fields(FrontierRow)}:
            raise invalid("column", f"one of {', '.join(field.name for field in fields(FrontierRow))}", name)
        return np.array([math.nan if (v := getattr(row, name)) is None else v for row in self.rows], dtype=np.float64)

    def gap(self, name: str) -> Array:
        """The optimality gap 1 - column / optimum, shape (rows,); negative for a bound. 0 where nothing is kept."""
        optimum = self.column("optimum")
        kept = self.column(name)
        return np.asarray(1 - np.divide(kept, optimum, out=np.ones_like(kept), where=optimum > 0))

    def _columns(self) -> dict[str, list[Any]]:
        table = {field.name: [getattr(row, field.name) for row in self.rows] for field in fields(FrontierRow)}
        compared = (*BASELINES, *BOUNDS)
        shown = [name for name in compared if any(value is not None for value in table[name])]
        return table | {f"gap_{name}": self.gap(name).tolist() for name in shown}

    def __iter__(self) -> Iterator[FrontierRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        heads = ("epsilon", "eta", "optimum", "binary", "k-RR", "erased")
        lines = [f"Frontier of {self.utility!r}; what each mechanism loses", "".join(f"{head:>10}" for head in heads)]
        gaps = [self.gap(name) for name in BASELINES]
        for i, row in enumerate(self.rows[:30]):
            # Adding zero turns a loss of -0.0 % into 0.0 %.
            lost = "".join(f"{round(gap[i], 4) + 0.0:>10.1%}" for gap in gaps)
            lines.append(f"{row.epsilon:>10.4g}{row.eta:>10.4g}{row.optimum:>10.4g}{lost}")
        return "\n".join(lines + ([f"... {len(self) - 30} more rows"] if len(self) > 30 else []))


Factory: TypeAlias = Divergence | Callable[[float, float], Divergence]

CHAIN = 8
"""Caps of one epsilon in a part: along them the multipliers of one design prove the next."""


def eta_frontier(utility: Factory, epsilons: Iterable[float], etas: Iterable[float], **how: Any) -> Frontier:
    """The frontier over (epsilon, eta); see `ldpopt.frontier`. how : what `run` takes besides."""
    listed = [positive_epsilon(epsilon) for epsilon in epsilons]
    caps = [unit_interval(eta, "eta") for eta in etas]
    if not listed or not caps:
        raise invalid("frontier", "at least one epsilon and one eta", "none")
    parts = [
        tuple((_posed(utility, epsilon, eta), epsilon, eta) for eta in caps[start : start + CHAIN])
        for epsilon in listed
        for start in range(0, len(caps), CHAIN)
    ]
    rows = run(Work(parts, _chain, _pack, _unpack, len), **how)
    return Frontier(rows, parts[0][0][0])


def _posed(utility: Factory, epsilon: float, eta: float) -> Divergence:
    made = utility if isinstance(utility, Divergence) else utility(epsilon, eta)
    if not isinstance(made, Divergence) or made.continuous:
        raise invalid("utility", "a Divergence of finite distributions", made)
    return made


Part: TypeAlias = tuple[tuple[Divergence, float, float], ...]


def _chain(part: Part) -> list[FrontierRow]:
    """The rows of a part, each design proved by the multipliers of the one before where they suffice."""
    rows: list[FrontierRow] = []
    near: Design | None = None
    pure: dict[Divergence, float] = {}
    for utility, epsilon, eta in part:
        if utility not in pure:
            pure[utility] = optimal_channel(utility, LocalDP(epsilon), certify=False).value
        known = near if near is not None and near.utility is utility else None
        near = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)], near=known)
        rows.append(row_of(near, epsilon, eta, pure[utility]))
    return rows


def _pack(row: FrontierRow) -> dict[str, Any]:
    return {name: number_to_json(value) for name, value in asdict(row).items()}


def _unpack(part: Part, at: int, saved: dict[str, Any]) -> FrontierRow:
    if set(saved) != {field.name for field in fields(FrontierRow)}:
        raise invalid("row", "the columns of a frontier", Phrase("others"))
    numbers: dict[str, Any] = {
        name: (number_or_none if name in BOUNDS else number_from_json)(value)
        for name, value in saved.items()
        if name != "certified"
    }
    row = FrontierRow(**numbers, certified=saved["certified"] is True)
    if (row.epsilon, row.eta) != part[at][1:]:
        raise ValueError(f"the point {(row.epsilon, row.eta)}")
    return row


def row_of(design: Design, epsilon: float, eta: float, pure: float) -> FrontierRow:
    """The row of a design under `epsilon` and `eta`; pure : what the best channel keeps without the cap."""
    utility = design.utility
    p0, p1 = utility.p0, utility.p1
    k, cap = len(p0), min(eta, math.tanh(epsilon / 2))
    shared = (math.exp(epsilon) - 1) / (math.exp(epsilon) + k - 1)
    response = utility.value(randomized_response(k, epsilon)) * min(1.0, eta / shared)
    relative = any(utility.f is f for f in (KL, REVERSE_KL, JEFFREYS))
    return FrontierRow(
        epsilon=epsilon,
        eta=eta,
        optimum=design.value,
        upper_bound=design.upper_bound,
        certified=design.certified,
        binary_with_erasure=utility.value(binary_with_erasure(p0, p1, epsilon, eta)),
        randomized_response_with_erasure=response,
        erased_optimum=erased_share(epsilon, eta) * pure,
        tv_bound=ghazi_issa_total_variation(p0, p1, cap) if utility.f is TOTAL_VARIATION else None,
        thm6=duchi_jordan_wainwright(p0, p1, epsilon) if relative else None,
        thm7=ghazi_issa(p0, p1, epsilon, eta) if relative else None,
    )
