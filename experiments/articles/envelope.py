"""Compute the figures and the numbers of docs/papers/envelope.tex.

python experiments/articles/envelope.py     about ten seconds
"""

from __future__ import annotations

import math
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from sheet import BLUE, GREEN, GREY, ORANGE, PURPLE, Sheet, power_of_ten, write_numbers, write_rows  # noqa: E402

from experiments.papers.envelope import envelope_at, partition_points, pattern_optimum  # noqa: E402
from ldpopt.divergences import CHI_SQUARED, JENSEN_SHANNON, KL, LE_CAM, SQUARED_HELLINGER, hockey_stick  # noqa: E402

FAMILY = {"KL": KL, r"$\chi^2$": CHI_SQUARED, "Hellinger": SQUARED_HELLINGER, "Jensen-Shannon": JENSEN_SHANNON}
INSTANCES = 2000
PAIRS = 400


def sorted_pair(rng, k, concentration=1.0):
    """Return a random pair of distributions, the inputs in increasing order of their likelihood ratio."""
    p0, p1 = rng.dirichlet(np.full(k, concentration), 2) + 1e-6
    order = np.argsort(p0 / p1)
    return p0[order] / p0.sum(), p1[order] / p1.sum()


def comparison():
    """Return the largest relative difference of the envelope and the linear program over all subsets of inputs."""
    rng = np.random.default_rng(1)
    divergences = [KL, CHI_SQUARED, SQUARED_HELLINGER, JENSEN_SHANNON, LE_CAM, hockey_stick(1.5)]
    worst = 0.0
    for number in range(INSTANCES):
        p0, p1 = sorted_pair(rng, int(rng.integers(3, 8)), rng.choice([0.2, 1.0, 5.0]))
        gain = math.expm1(math.exp(rng.uniform(math.log(0.05), math.log(5))))
        eta = gain / (gain + 2) * rng.uniform(0.02, 1)
        utility = divergences[number % len(divergences)].excess
        envelope = envelope_at(partition_points(utility, p0, p1, gain), eta)
        worst = max(worst, abs(envelope - pattern_optimum(utility, p0, p1, gain, eta)) / max(envelope, 1e-9))
    return worst


EXAMPLE = (np.array([0.02, 0.02, 0.34, 0.08, 0.32, 0.22]), np.array([0.17, 0.06, 0.41, 0.08, 0.26, 0.02]))


def hulls():
    """Draw the points of one pair with their envelope, and what erasing the unconstrained optimum keeps of it."""
    sheet = Sheet(2)
    left, right = sheet.axes
    gain = math.expm1(2.0)
    top = gain / (gain + 2)
    eta = np.linspace(0, top, 300)
    p0, p1 = EXAMPLE
    points = partition_points(KL.excess, p0, p1, gain)
    left.plot(eta, [envelope_at(points, x) for x in eta], color=BLUE, label="optimum")
    left.plot(
        [0, top], [0, max(y for _, y in points)], "--", color=ORANGE, label="erasing the optimum for $\\varepsilon$"
    )
    left.plot(*zip(*points, strict=True), "o", color=BLUE, ms=3.5)
    for m, (x, y) in enumerate(points, 2):
        left.annotate(f"${m}$", (x, y), (-9, 2), textcoords="offset points", fontsize=7.5)
    left.set(xlabel=r"total variation $\eta$", ylabel="KL divergence kept (nats)", xlim=(0, None), ylim=(0, None))
    left.legend(loc="lower right")
    for (name, f), color, dashes in zip(
        FAMILY.items(), (BLUE, ORANGE, GREEN, PURPLE), ("-", "--", "-.", ":"), strict=True
    ):
        points = partition_points(f.excess, p0, p1, gain)
        best = max(y for _, y in points)
        right.plot(eta[1:], [x / top * best / envelope_at(points, x) for x in eta[1:]], dashes, color=color, label=name)
    right.set(xlabel=r"total variation $\eta$", ylabel="erased / optimum", xlim=(0, None), ylim=(None, 1.005))
    right.legend(loc="upper left")
    sheet.save("envelope-hulls")


def binary_over_optimum(p0, p1, epsilon):
    """Return what the binary mechanism keeps of the optimum of the KL divergence under epsilon-LDP."""
    gain = math.expm1(epsilon)
    first = p0 >= p1
    masses = [np.array([1 + gain * p[first].sum(), 1 + gain * p[~first].sum()]) for p in (p0, p1)]
    binary = float(KL.excess(*masses).sum()) / (gain + 2)
    return binary / max(y for _, y in partition_points(KL.excess, p0, p1, gain))


def least_share(epsilon):
    """Return the least share of the optimum that the binary mechanism keeps, for an operator convex f."""
    e = np.exp(epsilon)
    return np.minimum(4 * e, 2 * (e + 2)) / (e + 1) ** 2


def extremal(mass):
    """Return the pair of four inputs of the sharpness proof, in increasing order of the likelihood ratio."""
    lean = mass**2
    p1 = np.array([mass, (1 - mass) / 2 + lean, (1 - mass) / 2 - lean, 0.0])
    return p1[::-1].copy(), p1


def shares():
    """Draw the least share with earlier bounds, the pair of the proof and random pairs; return the numbers."""
    sheet = Sheet(1, 2.7)
    (ax,) = sheet.axes
    epsilon = np.linspace(0.02, 5, 200)
    e = np.exp(epsilon)
    rng = np.random.default_rng(2)
    ax.semilogy(epsilon, least_share(epsilon), color=BLUE, label="least share")
    ax.semilogy(epsilon, 1 / (np.minimum(2, e) * (e + 1)), "--", color=ORANGE, label="Ghazi and Issa (2024)")
    ax.semilogy(epsilon, 1 / (2 * (e + 1) ** 2), ":", color=GREY, label="Kairouz, Oh and Viswanath (2016)")
    grid = np.array([0.25, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5])
    near = np.array([binary_over_optimum(*extremal(1e-4), one) for one in grid])
    ax.semilogy(grid, near, "o", color=BLUE, ms=3.5, label="the pair of the proof, $\\tau = 10^{-4}$")
    drawn = [
        [binary_over_optimum(*sorted_pair(rng, int(rng.integers(3, 7)), 0.3), one) for _ in range(PAIRS)]
        for one in grid
    ]
    ax.semilogy(grid, np.min(drawn, axis=1), "x", color=GREEN, ms=4, label=f"least of {PAIRS} random pairs")
    ax.set(xlabel=r"$\varepsilon$", ylabel="binary mechanism / optimum (KL)", xlim=(0, 5))
    ax.legend(loc="lower left")
    sheet.save("envelope-shares")
    assert (np.min(drawn, axis=1) >= least_share(grid)).all()
    assert (near >= least_share(grid) * (1 - 1e-6)).all()
    return float((near / least_share(grid)).max() - 1)


def subset_points(k, gain):
    """Return (total variation, utility) of subset selection for w = 1..k-1: information and trace of Fisher's."""
    w = np.arange(1, k)
    weight = k / (k + gain * w)
    eta = gain * w * (k - w) / ((k - 1) * (k + gain * w))
    inside, mean = 1 + gain, 1 + gain * w / k
    information = weight * (w / k * inside * math.log(inside) - mean * np.log(mean))
    trace = weight * ((w * inside**2 + k - w) / mean - k * mean)
    return [list(zip(eta, values, strict=True)) for values in (information, trace)]


def full_program(k, gain, eta):
    """Return the optima over all subsets of k inputs of both symmetric utilities, under the caps of all pairs."""
    sets = np.array([[x in chosen for x in range(k)] for w in range(k) for chosen in combinations(range(k), w)])
    columns = 1 + gain * sets
    mean = columns.mean(axis=1)
    values = (
        (columns * np.log(columns)).mean(axis=1) - mean * np.log(mean),
        (columns**2).sum(axis=1) / mean - k * mean,
    )
    caps = np.array([gain * (sets[:, x] & ~sets[:, y]) for x in range(k) for y in range(k) if x != y])
    found = [linprog(-v, caps, np.full(len(caps), eta), columns.T, np.ones(k), method="highs") for v in values]
    assert all(one.status == 0 for one in found)
    return [-one.fun for one in found]


def symmetric():
    """Return the largest difference of the symmetric envelope and the full program, and write the table of errors."""
    worst, rng = 0.0, np.random.default_rng(3)
    for k in range(3, 8):
        for _ in range(16):
            gain = math.expm1(math.exp(rng.uniform(-2, 1.3)))
            eta = gain / (gain + 2) * rng.uniform(0.05, 1)
            exact = full_program(k, gain, eta)
            for points, value in zip(subset_points(k, gain), exact, strict=True):
                worst = max(worst, abs(envelope_at(points, eta) / value - 1))
    rows, gain = [], math.expm1(1.0)
    for k, eta in ((10, 0.2), (25, 0.2), (30, 0.1), (30, 0.2), (40, 0.2), (60, 0.2)):
        points = subset_points(k, gain)[1]
        best = max(points, key=lambda point: point[1])
        erased = best[1] * min(1.0, eta / best[0])
        variance = [(k - 1) ** 2 / u for u in (envelope_at(points, eta), erased)]
        sizes = ", ".join(str(1 + i) for i in used_sizes(points, eta))
        rows.append(
            [
                str(k),
                f"{eta:g}",
                sizes,
                f"{variance[0]:.3f}",
                f"{variance[1]:.3f}",
                rf"{100 * (variance[1] / variance[0] - 1):.1f}\,\%",
            ]
        )
    write_rows("envelope-symmetric", rows)
    return worst


def used_sizes(points, eta):
    """Return the indices of the points on the edge of the envelope above eta."""
    value = envelope_at(points, eta)
    chords = [(i, j) for i, p in enumerate(points) for j, q in enumerate(points) if p[0] <= eta <= q[0] and q[0] > p[0]]
    for i, j in chords:
        p, q = points[i], points[j]
        if p[1] + (q[1] - p[1]) * (eta - p[0]) / (q[0] - p[0]) >= value * (1 - 1e-12):
            return sorted({i, j})
    return [max(range(len(points)), key=lambda i: points[i][1] / points[i][0])]


if __name__ == "__main__":
    hulls()
    numbers = {
        "instances": f"{INSTANCES:,}",
        "largestdifference": power_of_ten(comparison()),
        "symmetricdifference": power_of_ten(symmetric()),
        "pairsdrawn": str(PAIRS),
        "extremalexcess": power_of_ten(shares()),
    }
    write_numbers("envelope", numbers)
    print(numbers)
