"""Forge files of real-valued hypotheses: an adversary chooses laws, shifts, cells and points, and none may be believed.

    python experiments/trust/laws.py [--forgeries N] [--seconds T] [--seed S] [--csv FILE]

Two laws are drawn from thirteen families, shifted, scaled, and at times as narrow as 1e-4 of each other. What every
channel keeps at least is the best of randomized responses on {P0/P1 above a level}, by sums of scipy's distribution
functions on 3000 cells, in formulas of this file. Cells are few: quantiles, ends of a narrow law, shifted atoms. The
points of the proof are the masses of the cells as if the ratio did not move within them, ratios sampled at nine places,
or what is right for other laws; the potentials are the best for these points, and the bound is what they would prove. A
file whose bound is below what is kept is false, and the kernel must not prove it. Only the bound is judged, but in
every twentieth file, which is written, read back and verified in full. What the kernel finds for the same laws, cells
and points it finds once: the other numbers of a file cannot change it. Exit code 1 if a false file is believed, or if
one raises anything but the package's errors.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ldpopt.channel import Channel
from ldpopt.design import Design, Divergence, EnvelopeDual, LocalDP, parse_design
from ldpopt.design.problems import reduction
from ldpopt.design.problems.reduction import Pair
from ldpopt.design.two_hypotheses import proof as envelope
from ldpopt.design.two_hypotheses.method import LEVEL_MARGIN
from ldpopt.design.two_hypotheses.program import Blocks
from ldpopt.divergences import KL, SQUARED_HELLINGER, TOTAL_VARIATION
from ldpopt.errors import LdpoptError
from ldpopt.numbers.enclosures import FLOAT

Array = np.ndarray[Any, Any]
KEPT = {
    "kl": lambda a, b: np.sum(a * np.log(a / b), axis=0),
    "squared-hellinger": lambda a, b: np.sum((np.sqrt(a) - np.sqrt(b)) ** 2, axis=0),
    "total-variation": lambda a, b: np.sum(np.abs(a - b), axis=0) / 2,
}
SAMPLED = 9


def law(rng: np.random.Generator, family: str) -> Any:
    """A random law of a family."""
    place, scale = float(np.round(rng.normal(), 2)), float(10.0 ** rng.choice([0, 0, 0, -1, -2, -4]))
    shape = float(np.round(rng.uniform(0.6, 5), 2))
    whole, share = int(rng.integers(1, 30)), float(np.round(rng.uniform(0.1, 0.9), 2))
    shift = float(rng.choice([0, 0.5, 1, -1]))
    return {
        "norm": lambda: stats.norm(place, scale),
        "laplace": lambda: stats.laplace(place, scale),
        "logistic": lambda: stats.logistic(place, scale),
        "expon": lambda: stats.expon(place, scale),
        "gamma": lambda: stats.gamma(shape, place, scale),
        "beta": lambda: stats.beta(shape, 1 + share, place, scale),
        "t": lambda: stats.t(shape, place, scale),
        "uniform": lambda: stats.uniform(place, scale),
        "lognorm": lambda: stats.lognorm(shape / 4, 0, scale),
        "poisson": lambda: stats.poisson(shape, loc=shift),
        "binom": lambda: stats.binom(whole, share, loc=shift),
        "geom": lambda: stats.geom(share, loc=shift),
        "nbinom": lambda: stats.nbinom(whole, share, loc=shift),
    }[family]()


FAMILIES = (
    "norm", "laplace", "logistic", "expon", "gamma", "beta", "t", "uniform", "lognorm", "poisson", "binom", "geom",
    "nbinom",
)  # fmt: skip


def masses(one: Any, cuts: Array) -> Array:
    """The probabilities of the cells between cut points, each from the nearer tail."""
    below, above = np.append(one.cdf(cuts), 1.0), np.append(one.sf(cuts), 0.0)
    low, high = np.diff(below, prepend=0.0), -np.diff(above, prepend=1.0)
    return np.maximum(np.where(below < 0.5, low, high), 0.0)


def kept(p0: Array, p1: Array, name: str, epsilon: float) -> float:
    """The most that a randomized response on {P0/P1 above a level} keeps of two laws on cells."""
    order = np.argsort(p0 / np.maximum(p0 + p1, 1e-300))
    inside = [np.cumsum(p[order]) / p.sum() for p in (p0, p1)]
    honest = 1 / (1 + math.exp(-epsilon))
    a, b = (np.stack([honest * s + (1 - honest) * (1 - s), honest * (1 - s) + (1 - honest) * s]) for s in inside)
    return float(KEPT[name](a, b).max())


def points(rng: np.random.Generator, laws: tuple[Any, Any], cuts: Array, other: tuple[Any, Any]) -> tuple[str, Array]:
    """What the adversary says the laws are: (how, points)."""
    how = str(rng.choice(["masses", "sampled", "other laws", "merged"]))
    if how == "other laws":
        return how, np.column_stack([masses(one, cuts) for one in other])
    true = np.column_stack([masses(one, cuts) for one in laws])
    if how == "merged" and len(true) > 2:
        at = int(rng.integers(len(true) - 1))
        return how, np.vstack([np.delete(true, [at, at + 1], axis=0), true[at] + true[at + 1]])
    if how == "sampled":  # Each cell's mass of P1 is kept, with the ratios at nine places of it.
        parts = []
        for i, (a, b) in enumerate(pairwise(cuts)):
            x = np.linspace(a, b, SAMPLED + 2)[1:-1]
            dense = [np.nan_to_num(getattr(one, "pdf", one.cdf)(x)) for one in laws]
            ratio = np.unique((dense[0] / np.maximum(dense[0] + dense[1], 1e-300))[[0, -1]])
            whole = true[i + 1].sum()
            parts += [[whole * r / len(ratio), whole * (1 - r) / len(ratio)] for r in ratio]
        return how, np.array([*parts, true[0], true[-1]])
    return how, true


def cuts_of(rng: np.random.Generator, laws: tuple[Any, Any]) -> Array:
    """Cut points between few cells, that the adversary chooses for two laws."""
    quantiles = np.concatenate([one.ppf(rng.uniform(size=int(rng.integers(1, 5)))) for one in laws])
    spots = np.concatenate([quantiles, [float(one.mean()) for one in laws if np.isfinite(one.mean())]])
    return np.unique(np.round(spots + rng.choice([0, 0, 0.5, 1e-3]), 3 if rng.random() < 0.5 else 9))


def sides(rng: np.random.Generator, laws: tuple[Any, Any], other: tuple[Any, Any]) -> list[tuple[str, Array, Array]]:
    """Some cells, and what the adversary says the laws are on them: (how, cut points, sorted points)."""
    every = []
    for cuts in (cuts_of(rng, laws) for _ in range(8)):
        for _ in range(4):
            how, given = points(rng, laws, cuts, other)
            given = given[given.sum(axis=1) > 0]
            with np.errstate(invalid="ignore"):
                given = given / given.sum(axis=0)
            if np.isfinite(given).all():
                every.append((how, cuts, given[np.argsort(given[:, 0] / given.sum(axis=1))]))
    return every


def forged(
    rng: np.random.Generator, laws: tuple[Any, Any], side: tuple[str, Array, Array], f: Any, epsilon: float
) -> tuple[str, Design]:
    """A file about two laws: (how it was made, the design)."""
    how, cuts, given = side
    blocks = Blocks(f, Pair.from_distributions(*given.T), epsilon)
    price = blocks.coin(None).price
    potentials = blocks.paying(price, 2.0**-49) * (1 + rng.choice([0.0, 1e-9, 1e-3]))
    level = price / blocks.level * (1 + LEVEL_MARGIN)
    bound = level + math.tanh(epsilon / 2) * max(0.0, float(potentials[-1]) - level)
    channel = Channel(np.full((len(cuts) + 1, 2), 0.5))
    utility, asked = Divergence(f, *laws), (LocalDP(epsilon),)
    finer = np.unique(np.concatenate([cuts, cuts + 1e-3])) if rng.random() < 0.3 else cuts
    proof = EnvelopeDual(utility, asked, channel, level, potentials, given, finer, edges=cuts)
    guarantees = (asked[0].measure(channel),)
    design = Design(utility, asked, channel, 0.0, 0.0, bound * (1 + 1e-9), guarantees, "", proof, False, 1e-3, "", cuts)
    return f"{how}, {'finer cuts' if finer is not cuts else 'the same cuts'}", design


def judged(design: Design, read_back: bool) -> str:
    """What the kernel says of a bound that is false; `read_back`: of the whole file, written and read."""
    try:
        if read_back:
            found = parse_design(design.to_json()).verify()
            return "BELIEVED" if found or found.bound <= design.upper_bound else "refused"
        assert design.certificate is not None
        return "BELIEVED" if design.certificate.proved(FLOAT) <= design.upper_bound else "refused"
    except LdpoptError:
        return "refused"
    except Exception as error:
        return f"RAISED {type(error).__name__}"


def remembered(compute: Any) -> Any:
    """A function of laws and arrays that computes what it was asked for the same ones once."""
    known: dict[Any, Any] = {}

    def again(*given: Any) -> Any:
        key = tuple((one.shape, one.tobytes()) if isinstance(one, np.ndarray) else id(one) for one in given)
        if key not in known:
            try:
                known[key] = compute(*given)
            except LdpoptError as error:
                known[key] = error
        if isinstance(known[key], LdpoptError):
            raise known[key]
        return known[key]

    return again


def main() -> int:
    """Forge, count, and say what was believed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forgeries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after this time, whatever was forged")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--quick", action="store_true", help="200 forgeries")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted, counts, number = 200 if given.quick else given.forgeries, Counter[tuple[str, str]](), 0
    false = wrong = 0
    over, plain = time.monotonic() + given.seconds, (reduction.posterior_range, envelope.require_dominance)
    while false < wanted and time.monotonic() < over:
        rng, number = np.random.default_rng([given.seed, number]), number + 1
        vars(reduction)["posterior_range"], vars(envelope)["require_dominance"] = map(remembered, plain)
        first, second = rng.choice(FAMILIES, 2) if rng.random() < 0.3 else [str(rng.choice(FAMILIES))] * 2
        p0, p1, *other = (law(rng, str(one)) for one in (first, second, first, second))
        grid = np.unique(np.concatenate([one.ppf(np.linspace(0, 1, 1502)[1:-1]) for one in (p0, p1)]))
        fine = masses(p0, grid), masses(p1, grid)
        tasks = [(f, float(rng.uniform(0.2, 4))) for f in (KL, SQUARED_HELLINGER, TOTAL_VARIATION) for _ in range(3)]
        least = [kept(*fine, f.recipe[0], epsilon) for f, epsilon in tasks]
        every = sides(rng, (p0, p1), (other[0], other[1]))
        for _ in range(400 if every else 0):
            task = int(rng.integers(len(tasks)))
            try:
                how, design = forged(rng, (p0, p1), every[int(rng.integers(len(every)))], *tasks[task])
            except (LdpoptError, ValueError, FloatingPointError):
                counts["not made", "no file"] += 1
                continue
            if not 0 <= design.upper_bound < least[task] * (1 - 1e-7):
                counts[how, "true all the same"] += 1
                continue
            false += 1
            said = judged(design, false % 20 == 0)
            counts[how, said] += 1
            if said != "refused":
                wrong += 1
                print(f"pair {number}, {first} {p0.args} {second} {p1.args}, {how}: {said}: {design.upper_bound} of "
                      f"{least[task]}", flush=True)  # fmt: skip
    vars(reduction)["posterior_range"], vars(envelope)["require_dominance"] = plain
    for (how, said), times in sorted(counts.items()):
        print(f"{times:8} {how}: {said}")
    print(f"{false} false files of {number} pairs of laws, {wrong} believed or raised")
    if given.csv:
        with given.csv.open("w", newline="") as lines:
            rows = [(*key, times) for key, times in sorted(counts.items())]
            csv.writer(lines, lineterminator="\n").writerows([("points and cuts", "verdict", "files"), *rows])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
