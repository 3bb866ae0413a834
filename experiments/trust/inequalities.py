"""Look for instances that break the inequalities proved here: random ones, computed without the package.

    python experiments/trust/inequalities.py [--instances 100000] [--seed 0] [--quick]

Every function below draws laws, channels and limits and returns the two sides of one inequality, the left one claimed
not to be larger. Nothing is imported from the package: optima are those of sorted contiguous partitions, written anew.
The table says how many instances were drawn, how many broke the claim, and the largest quotient left/right, which is
near 1 where the claim is sharp. Exit code 1 if any is broken. It takes about two minutes.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Array = np.ndarray
Sides = tuple[Array, Array]
ROUNDING = 1e-9
CHUNK = 4000

CLAIMS: dict[str, tuple[str, Callable[[np.random.Generator, int], Sides]]] = {}


def claim(sentence: str) -> Callable[..., Callable[[np.random.Generator, int], Sides]]:
    def named(sides: Callable[[np.random.Generator, int], Sides]) -> Callable[[np.random.Generator, int], Sides]:
        CLAIMS[sides.__name__] = sentence, sides
        return sides

    return named


# Laws, divergences and private optima.


def laws(rng: np.random.Generator, n: int, k: int, parts: int = 2) -> Array:
    """Shape (parts, n, k): even and spiky laws, near ones, and rare answers."""
    drawn = rng.gamma(rng.choice([0.2, 1.0, 5.0], size=(n, 1)), size=(parts, n, k)) + 1e-12
    near = drawn[:1] * np.exp(10.0 ** rng.uniform(-3, 0, (n, 1)) * rng.standard_normal((parts, n, k)))
    drawn = np.where(rng.random((n, 1)) < 0.3, near, drawn)
    drawn *= np.where(rng.random((n, k)) < 0.2, 1e-3, 1.0)
    return np.asarray(drawn / drawn.sum(axis=2, keepdims=True))


def positive(p: Array, q: Array, summand: Callable[[Array, Array], Array]) -> Array:
    return np.asarray(summand(p, q).sum(axis=-1))


def _le_cam(p: Array, q: Array) -> Array:
    return np.asarray((p - q) ** 2 / (p + q))


def _jensen_shannon(p: Array, q: Array) -> Array:
    return np.asarray(p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q)))


def _kl(p: Array, q: Array) -> Array:
    return np.asarray(p * np.log(p / q) - p + q)


DIVERGENCES: dict[str, Callable[[Array, Array], Array]] = {
    "KL": _kl,
    "chi-squared": lambda p, q: (p - q) ** 2 / q,
    "squared Hellinger": lambda p, q: (np.sqrt(p) - np.sqrt(q)) ** 2,
    "Jeffreys": lambda p, q: (p - q) * np.log(p / q),
    "Le Cam": _le_cam,
    "Jensen-Shannon": _jensen_shannon,
}


def partitions(p: Array, q: Array, growth: Array) -> Iterator[tuple[Array, Array, int]]:
    """The reports' two laws, shape (n, blocks), under each channel of a contiguous partition of the sorted answers."""
    k = p.shape[1]
    order = np.argsort(np.log(p) - np.log(q), axis=1)
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    for cuts in itertools.product((False, True), repeat=k - 1):
        blocks = np.concatenate([[0], np.cumsum(cuts)])
        m = int(blocks[-1]) + 1
        if m > 1:
            joined = np.eye(m)[blocks]
            scale = growth + m - 1
            yield (1 + (growth - 1) * (p @ joined)) / scale, (1 + (growth - 1) * (q @ joined)) / scale, m


def optimum(p: Array, q: Array, growth: Array, summand: Callable[[Array, Array], Array]) -> Array:
    return np.max([positive(one, other, summand) for one, other, _ in partitions(p, q, growth)], axis=0)


def distance(p: Array, q: Array) -> Array:
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def drawn_epsilon(rng: np.random.Generator, n: int, most: float = 6.0) -> Array:
    return np.asarray(
        np.where(rng.random((n, 1)) < 0.2, 10.0 ** rng.uniform(-3, 0, (n, 1)), rng.uniform(0.01, most, (n, 1)))
    )


# Sharp constants.


@claim("the binary mechanism keeps 4/(e+1)^2 / max(1/e, 2/(e+2)) of the optimum, for operator convex f")
def binary_share(rng: np.random.Generator, n: int) -> Sides:
    k = int(rng.integers(3, 6))
    (p, q), growth = laws(rng, n, k), np.exp(drawn_epsilon(rng, n))
    summand = list(DIVERGENCES.values())[int(rng.integers(len(DIVERGENCES)))]
    above = (p >= q).astype(float)
    one, other = ((1 + (growth - 1) * (law * above).sum(axis=1, keepdims=True)) / (1 + growth) for law in (p, q))
    binary = summand(one, other) + summand(1 - one, 1 - other)
    e = growth[:, 0]
    share = 4 / (e + 1) ** 2 / np.maximum(1 / e, 2 / (e + 2))
    return share * optimum(p, q, growth, summand), binary[:, 0]


@claim("J <= (e-1) TV^2 min{2 eta, (e-1) max(2/(e+2), 1/e)} for epsilon-LDP, eta-TV channels")
def jeffreys_of_total_variation(rng: np.random.Generator, n: int) -> Sides:
    (p, q), growth = laws(rng, n, int(rng.integers(2, 6))), np.exp(drawn_epsilon(rng, n))
    e = growth[:, 0]
    eta = rng.random(n) * (e - 1) / (e + 1)
    kept = [positive(one, other, DIVERGENCES["Jeffreys"]) * np.minimum(1, eta * (e + m - 1) / (e - 1))
            for one, other, m in partitions(p, q, growth)]  # fmt: skip
    constant = (e - 1) * np.minimum(2 * eta, (e - 1) * np.maximum(2 / (e + 2), 1 / e))
    return np.max(kept, axis=0), constant * distance(p, q) ** 2


@claim("no epsilon-LDP channel keeps more than tanh(epsilon/2)^2 of KL, chi^2, H^2, Jeffreys, Le Cam, JS")
def contraction(rng: np.random.Generator, n: int) -> Sides:
    (p, q), epsilon = laws(rng, n, int(rng.integers(2, 6))), drawn_epsilon(rng, n)
    summand = list(DIVERGENCES.values())[int(rng.integers(len(DIVERGENCES)))]
    return optimum(p, q, np.exp(epsilon), summand), np.tanh(epsilon[:, 0] / 2) ** 2 * positive(p, q, summand)


@claim("I(X;Y) <= t - 1 - log t, t = epsilon/(1 - e^-epsilon), and <= c + n eta (1 - sum P^2) with a cap eta")
def information(rng: np.random.Generator, n: int) -> Sides:
    k = int(rng.integers(2, 7))
    prior, epsilon = laws(rng, n, k, 1)[0], drawn_epsilon(rng, n)
    growth = np.exp(epsilon)
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    # The sets of one size together, or single answers: channels with equal columns, erased to eta.
    size = int(rng.integers(1, k))
    chosen = sets[sets.sum(axis=1) == size]
    scale = len(chosen) + (growth - 1) * chosen.sum(axis=0)[0]
    rows = (1 + (growth[:, :, None] - 1) * chosen.T) / scale[:, :, None]
    reports = np.einsum("nk,nky->ny", prior, rows)
    kept = np.einsum("nk,nky->n", prior, rows * np.log(rows / reports[:, None]))
    spread = np.abs(rows[:, :, None] - rows[:, None]).sum(axis=3).max(axis=(1, 2)) / 2
    eta = spread * rng.uniform(0.05, 1.2, n)
    kept *= np.minimum(1, eta / spread)
    eps, t = epsilon[:, 0], epsilon[:, 0] / -np.expm1(-epsilon[:, 0])
    pure = t - 1 - np.log(t)
    grid = np.linspace(0, 1, 2001)
    mass = 1 + (growth - 1) * grid
    gain = (growth * eps[:, None] * grid - mass * np.log(mass)) / (growth - 1)
    price = pure[:, None] * 10.0 ** rng.uniform(-1, 2, (n, 1))
    per_mass = (gain - price * grid * (1 - grid)) / (1 / (growth - 1) + grid)
    # Between points of the grid the quotient rises by less than its largest step.
    c = per_mass.max(axis=1) + np.abs(np.diff(per_mass, axis=1)).max(axis=1)
    capped = c + price[:, 0] * eta * (1 - (prior**2).sum(axis=1))
    return kept, np.minimum(pure, capped)


# Decisions.


@claim("errors a, b of a test of n reports: (1-a)^s b^(1-s) + a^s (1-b)^(1-s) >= (1 - OPT_s)^n")
def decisions(rng: np.random.Generator, n: int) -> Sides:
    (p, q), growth = laws(rng, n, 3), np.exp(drawn_epsilon(rng, n))
    s, reports = rng.uniform(0.02, 0.98, n)[:, None], int(rng.integers(1, 5))
    best = optimum(p, q, growth, lambda a, b: s * a + (1 - s) * b - a**s * b ** (1 - s))
    channels = list(partitions(p, q, growth))
    one, other, m = channels[int(rng.integers(len(channels)))]
    words = np.array(list(itertools.product(range(m), repeat=reports)))
    first, second = one[:, words].prod(axis=2), other[:, words].prod(axis=2)
    # A likelihood ratio test at a random threshold.
    log = np.log(first / second)
    threshold = np.quantile(log, rng.random(), axis=1)[:, None] + 1e-12
    a = np.minimum((first * (log < threshold)).sum(axis=1), 1)
    b = np.minimum((second * (log >= threshold)).sum(axis=1), 1)
    s = s[:, 0]
    joint = (1 - a) ** s * b ** (1 - s) + a**s * (1 - b) ** (1 - s)
    return (1 - best) ** reports, joint


@claim("1 - sum M^s M'^(1-s) <= kappa H for laws of reports within e^epsilon of each other")
def several(rng: np.random.Generator, n: int) -> Sides:
    k, epsilon = int(rng.integers(2, 5)), drawn_epsilon(rng, n, 20.0)[:, 0]
    base = laws(rng, n, k, 1)[0]
    # Ratios in [1/e, e] whose mean under the base is one: the ends of a range that holds one, mixed.
    ratio = np.exp(epsilon[:, None] * rng.uniform(-1, 1, (n, k)))
    ratio /= (base * ratio).sum(axis=1, keepdims=True)
    inside = (np.abs(np.log(ratio)) <= epsilon[:, None]).all(axis=1)
    s = rng.uniform(0.01, 0.99, n)
    kept = (base * (s[:, None] * ratio + 1 - s[:, None] - ratio ** s[:, None])).sum(axis=1)
    hellinger = (base * (np.sqrt(ratio) - 1) ** 2).sum(axis=1) / 2
    t = np.exp(epsilon)
    order = np.log((t - 1) / epsilon) / epsilon
    kappa = (order * t + 1 - order - t**order) / (0.5 * (np.sqrt(t) - 1) ** 2)
    return np.where(inside, kept, 0.0), kappa * hellinger * (1 + 1e-7) + 1e-12


# Concentrated privacy.


def cumulant(loss: Array, law: Array, orders: Array) -> Array:
    """log E exp(order loss) under a law, shape (n, orders)."""
    powers = loss[:, None, :] * orders[None, :, None]
    peak = powers.max(axis=2, keepdims=True)
    return np.asarray(peak[..., 0] + np.log((law[:, None, :] * np.exp(powers - peak)).sum(axis=2)))


ORDERS = np.concatenate([np.geomspace(1e-2, 1e3, 60), -np.geomspace(1e-2, 1e3, 60)])


def concentration(p: Array, q: Array) -> tuple[Array, Array]:
    """The mean of the privacy loss and its subgaussian parameter squared, of p against q."""
    loss = np.log(p) - np.log(q)
    mean = (p * loss).sum(axis=1)
    centred = cumulant(loss - mean[:, None], p, ORDERS)
    variance = (p * (loss - mean[:, None]) ** 2).sum(axis=1)
    return mean, np.maximum(variance, (2 * centred / ORDERS**2).max(axis=1))


def pairs(rng: np.random.Generator, n: int, k: int) -> tuple[Array, Array]:
    """Two laws; a third of them a rare loss on either side, which separate the notions most."""
    p, q = laws(rng, n, k)
    epsilon = 10.0 ** rng.uniform(-1, 2, n)
    tail = np.exp(-epsilon) / 2
    extreme = np.full((n, k), 1e-300)
    extreme[:, 0], extreme[:, 1], extreme[:, 2] = 0.5, -np.expm1(-epsilon) / 2, tail
    mirrored = extreme.copy()
    mirrored[:, 1], mirrored[:, 2] = extreme[:, 2], extreme[:, 1]
    use = (rng.random((n, 1)) < 0.33) & (tail > 1e-290)[:, None]
    return np.where(use, extreme, p), np.where(use, mirrored, q)


@claim("(xi, rho)-zCDP implies tau^2 <= 8 max(v, v^2), v = xi + 2 rho")
def zcdp_to_mcdp(rng: np.random.Generator, n: int) -> Sides:
    p, q = pairs(rng, n, int(rng.integers(3, 6)))
    alphas = 1 + np.geomspace(1e-3, 1e4, 80)
    both = []
    for one, other in ((p, q), (q, p)):
        loss = np.log(one) - np.log(other)
        both.append(cumulant(loss, one, alphas - 1) / (alphas - 1))
    renyi = np.maximum(*both)
    xi = np.where(rng.random(n) < 0.5, 0.0, rng.random(n) * renyi[:, 0])
    rho = np.maximum((renyi - xi[:, None]) / alphas, 0).max(axis=1)
    v = xi + 2 * rho
    return np.maximum(concentration(p, q)[1], concentration(q, p)[1]), 8 * np.maximum(v, v * v)


@claim("post-processing of (mu, tau)-mCDP has tau'^2 <= 8 max(v, v^2), v = mu + tau^2/2")
def processed(rng: np.random.Generator, n: int) -> Sides:
    k, m = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    p, q = pairs(rng, n, k)
    rows = rng.dirichlet(np.full(m, 0.3), (n, k))
    (mu, tau), (nu, sigma) = concentration(p, q), concentration(q, p)
    v = np.maximum(mu, nu) + np.maximum(tau, sigma) / 2
    one, other = ((law[:, :, None] * rows).sum(axis=1) for law in (p, q))
    good = ((one > 0) & (other > 0)).all(axis=1)
    one, other = np.where(good[:, None], one, 1 / m), np.where(good[:, None], other, 1 / m)
    return concentration(one, other)[1], 8 * np.maximum(v, v * v)


@claim("two adaptive mCDP steps have tau^2 <= tau1^2 + tau2^2 + (mu1 + mu2)^2/4 + mu2 tau1")
def adaptive(rng: np.random.Generator, n: int) -> Sides:
    first, second = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    p, q = laws(rng, n, first)
    if rng.random() < 0.5:
        q = p.copy()  # a coin that does not look at the data
    branches = [laws(rng, n, second) for _ in range(first)]
    if rng.random() < 0.5:
        branches[0][1] = branches[0][0]  # a constant step on one branch
    mu1, tau1 = concentration(p, q)
    parts = [concentration(*branch) for branch in branches]
    mu2, tau2 = (np.max([part[turn] for part in parts], axis=0) for turn in (0, 1))
    whole = [np.concatenate([law[:, [y]] * branch[side] for y, branch in enumerate(branches)], axis=1)
             for side, law in ((0, p), (1, q))]  # fmt: skip
    return concentration(*whole)[1], tau1 + tau2 + (mu1 + mu2) ** 2 / 4 + mu2 * np.sqrt(tau1) + 1e-11


# Shuffling.


def counts(total: int, cells: int) -> Array:
    return np.array([c for c in itertools.product(range(total + 1), repeat=cells) if sum(c) == total])


def hidden(p: Array, q: Array, others: Array, growth: Array, total: int) -> Array:
    """The hockey stick of the histograms of a report by p or q beside independent `others`, (total - 1, n, m)."""
    cells = p.shape[1]
    found = counts(total - 1, cells)
    place = {tuple(c): at for at, c in enumerate(found.tolist())}
    law = np.zeros((len(p), len(found)))
    # Reports one after the other: words of all the others, added up by their histogram.
    for word in itertools.product(range(cells), repeat=total - 1):
        law[:, place[tuple(np.bincount(word, minlength=cells).tolist())]] += np.prod(
            [others[turn, :, y] for turn, y in enumerate(word)], axis=0
        )
    histograms = {tuple(c): at for at, c in enumerate(counts(total, cells).tolist())}
    sides = np.zeros((2, len(p), len(histograms)))
    for at, c in enumerate(found):
        for y in range(cells):
            larger = c.copy()
            larger[y] += 1
            sides[0, :, histograms[tuple(larger)]] += law[:, at] * p[:, y]
            sides[1, :, histograms[tuple(larger)]] += law[:, at] * q[:, y]
    return np.asarray(np.maximum(sides[0] - growth[:, None] * sides[1], 0).sum(axis=1))


def shuffled_rows(rng: np.random.Generator, n: int) -> tuple[Array, Array, int]:
    answers, reports = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    epsilon = drawn_epsilon(rng, n, 3.0)
    rows = np.exp(epsilon[:, None] * np.where(rng.random((n, 1, 1)) < 0.5, rng.random((n, answers, reports)),
                                              rng.random((n, answers, reports)) < 0.5))  # fmt: skip
    rows /= rows.sum(axis=2, keepdims=True)
    return rows, np.exp(epsilon[:, 0] * rng.random(n) ** 2), answers


@claim("after shuffling, delta(epsilon) is at most that of the blanket")
def blanket(rng: np.random.Generator, n: int) -> Sides:
    rows, growth, answers = shuffled_rows(rng, n)
    total = int(rng.integers(2, 5))
    blanketed = rows.min(axis=1)
    shown = np.concatenate([blanketed, 1 - blanketed.sum(axis=1, keepdims=True)], axis=1)
    above, truth = np.zeros(n), np.zeros(n)
    for x, other in itertools.permutations(range(answers), 2):
        p, q = (np.pad(rows[:, one], ((0, 0), (0, 1))) for one in (x, other))
        above = np.maximum(above, hidden(p, q, np.repeat(shown[None], total - 1, axis=0), growth, total))
        for composition in itertools.combinations_with_replacement(range(answers), total - 1):
            crowd = np.moveaxis(rows[:, list(composition)], 1, 0)
            truth = np.maximum(truth, hidden(rows[:, x], rows[:, other], crowd, growth, total))
    return truth, above + 1e-14


@claim("with two reports, j others at one end bound every data set whose expected number of yes lies between")
def two_reports(rng: np.random.Generator, n: int) -> Sides:
    epsilon, total = drawn_epsilon(rng, n, 3.0)[:, 0], int(rng.integers(2, 7))
    low = 1 / (1 + np.exp(epsilon)) * rng.uniform(0.3, 1, n)
    high = np.minimum(low * np.exp(epsilon), 1 - (1 - low) * np.exp(-epsilon))
    growth = np.exp(epsilon * rng.random(n) ** 2)

    def worst(person: tuple[Array, Array], shares: Array) -> Array:
        stacked = np.stack([shares, 1 - shares], axis=2)
        p, q = (np.stack([share, 1 - share], axis=1) for share in person)
        return np.maximum(hidden(p, q, stacked, growth, total), hidden(q, p, stacked, growth, total))

    shares = low + (high - low) * rng.random((total - 1, n))
    mine = (low + (high - low) * rng.random(n), low + (high - low) * rng.random(n))
    ends = [worst((low, high), np.array([low] * j + [high] * (total - 1 - j))) for j in range(total)]
    return worst(mine, shares), np.max(ends, axis=0) + 1e-14


# Questionnaires.


def additive(rng: np.random.Generator, n: int, margins: list[Array]) -> tuple[Array, list[Array]]:
    """Random sets of a product, half of them thresholds of additive scores: (n, cells), and the cells' coordinates."""
    cells = list(itertools.product(*(range(margin.shape[1]) for margin in margins)))
    places = [np.array([cell[j] for cell in cells]) for j in range(len(margins))]
    scores = np.zeros((n, len(cells)))
    for margin, place in zip(margins, places, strict=True):
        scores += rng.standard_normal((n, margin.shape[1]))[:, place] * rng.gamma(0.5, size=(n, 1))
    chosen = scores > np.quantile(scores, rng.random(), axis=1)[:, None]
    loose = rng.random((n, len(cells))) < rng.random((n, 1))
    return np.where(rng.random((n, 1)) < 0.8, chosen, loose).astype(float), places


def information_traded(chosen: Array, places: list[Array], margins: list[Array], growth: Array) -> tuple[Array, Array]:
    """|a|^2 of a column, e^epsilon on a set and 1 elsewhere, and the set's probability; independent questions."""
    joint = np.prod([margin[:, place] for margin, place in zip(margins, places, strict=True)], axis=0)
    probability = (joint * chosen).sum(axis=1)
    traded = np.zeros(len(chosen))
    for margin, place in zip(margins, places, strict=True):
        for value in range(margin.shape[1]):
            inside = (joint * chosen * (place == value)).sum(axis=1) / margin[:, value]
            traded += margin[:, value] * (inside - probability) ** 2
    return traded * (growth - 1) ** 2 / (1 + (growth - 1) * probability) ** 2, probability


@claim("|a(q)|^2 <= sinh(epsilon/2)^2 for every column, any independent questions")
def universal(rng: np.random.Generator, n: int) -> Sides:
    shape = rng.integers(2, 5, int(rng.integers(1, 5)))
    margins, epsilon = [laws(rng, n, int(k), 1)[0] for k in shape], drawn_epsilon(rng, n)[:, 0]
    traded, _ = information_traded(*additive(rng, n, margins), margins, np.exp(epsilon))
    return traded, np.sinh(epsilon / 2) ** 2


@claim("the information of a channel is at most d tanh(epsilon/2)^2: a set and its complement, in proportion 1 : 1")
def trace(rng: np.random.Generator, n: int) -> Sides:
    shape = rng.integers(2, 5, int(rng.integers(1, 4)))
    margins, growth = [laws(rng, n, int(k), 1)[0] for k in shape], np.exp(drawn_epsilon(rng, n)[:, 0])
    chosen, places = additive(rng, n, margins)
    total = np.zeros(n)
    for one in (chosen, 1 - chosen):
        traded, probability = information_traded(one, places, margins, growth)
        total += traded * (1 + (growth - 1) * probability) / (1 + growth)
    return total, (shape - 1).sum() * ((growth - 1) / (growth + 1)) ** 2


@claim("yes/no questions, even: |a(q)|^2 <= tanh(epsilon/2)^2 up to epsilon = log 3, (e-1)/8 beyond")
def even_questions(rng: np.random.Generator, n: int) -> Sides:
    m, epsilon = int(rng.integers(1, 8)), drawn_epsilon(rng, n)[:, 0]
    margins = [np.full((n, 2), 0.5)] * m
    traded, _ = information_traded(*additive(rng, n, margins), margins, np.exp(epsilon))
    return traded, np.where(epsilon <= math.log(3), np.tanh(epsilon / 2) ** 2, np.expm1(epsilon) / 8)


@claim("up to seven even yes/no questions: |a(q)|^2 <= max_c c ((e-1)/(2^c + e - 1))^2")
def the_rule(rng: np.random.Generator, n: int) -> Sides:
    m, epsilon = int(rng.integers(1, 8)), drawn_epsilon(rng, n, 9.0)[:, 0]
    margins = [np.full((n, 2), 0.5)] * m
    traded, _ = information_traded(*additive(rng, n, margins), margins, np.exp(epsilon))
    grown = np.expm1(epsilon)
    return traded, np.max([c * (grown / (2**c + grown)) ** 2 for c in range(1, m + 1)], axis=0)


# (epsilon, delta).


@claim("three answers with 1/e <= u/v <= e: mu(A) + mu(A') >= (e+1) mu(S) + (e^2-e) mu(e_2) for every convex f")
def exchanged(rng: np.random.Generator, n: int) -> Sides:
    (p, q), e = laws(rng, n, 3), np.exp(drawn_epsilon(rng, n, 4.0)[:, 0])
    order = np.argsort(p / q, axis=1)
    p, q = np.take_along_axis(p, order, 1), np.take_along_axis(q, order, 1)
    r = p / q
    u, v = q[:, 0] * (r[:, 1] - r[:, 0]), q[:, 2] * (r[:, 2] - r[:, 1])
    inside = (u <= v * e * (1 - 1e-6)) & (v <= u * e * (1 - 1e-6))
    ones = np.ones(n)
    kinks, weights = rng.uniform(0, 4, (3, n)), rng.gamma(0.5, size=(3, n))
    smooth = list(DIVERGENCES.values())[int(rng.integers(len(DIVERGENCES)))]
    share_of_smooth = rng.random(n)

    def kept(*column: Array) -> Array:
        a, b = ((law * np.stack(column, axis=1)).sum(axis=1) for law in (p, q))
        sticks = (weights * np.maximum(a - kinks * b, 0)).sum(axis=0)
        return sticks + smooth(np.maximum(a, 1e-300), np.maximum(b, 1e-300)) * share_of_smooth

    left = (e + 1) * kept(ones, e, ones) + (e * e - e) * kept(0 * ones, ones, 0 * ones)
    return np.where(inside, left, 0.0), kept(e, e * e, ones) + kept(ones, e * e, e)


# After shuffling, any answers of the others.


@claim("after shuffling, delta(epsilon) is at most the integral of the others' characteristic functions without phases")
def any_crowd(rng: np.random.Generator, n: int) -> Sides:
    rows, growth, answers = shuffled_rows(rng, n)
    total, heads = int(rng.integers(2, 6)), int(rng.integers(0, 2))
    x, other = rng.permutation(answers)[:2]
    crowd = np.moveaxis(rows[:, rng.integers(0, answers, total - 1)], 1, 0)
    truth = hidden(rows[:, x], rows[:, other], crowd, growth, total)
    blanketed = rows.min(axis=1)
    chance = blanketed.sum(axis=1)
    blanketed = blanketed / chance[:, None]
    apart = rows[:, x] - growth[:, None] * rows[:, other]
    scale = np.sqrt((apart**2 / rows[:, other]).sum(axis=1)) + 1e-9
    t, v = 10.0 ** rng.uniform(-0.7, 0.7, n) / scale, 10.0 ** rng.uniform(-1.5, 0.5, n) * scale**2
    steps = np.linspace(0, 1, 161) ** 2  # more of them near 0, and all that the noise leaves
    turns = 7 * steps / np.sqrt(v)[:, None]
    # Of m others with chance P(m) nobody helps; where no one is left, delta is at most 1.
    left = [(m, chance * (1 - chance) ** (total - 2 - m) if heads else chance * 0 + 1.0)
            for m in range(1, total - heads) if heads or m == total - 1]  # fmt: skip
    most = np.zeros((n, 161))
    for z in range(answers):
        mean = np.zeros((n, 161))
        for word in itertools.product(range(rows.shape[2]), repeat=heads + 1):
            drawn = list(word)
            s = (rows[:, z][:, drawn] / blanketed[:, drawn]).mean(axis=1)
            likely = blanketed[:, drawn].prod(axis=1)
            point = s[:, None] * (t[:, None] + 1j * turns)
            size = np.abs(sum(rows[:, z, y, None] * np.exp(point * (apart[:, y] / rows[:, z, y])[:, None])
                              for y in range(rows.shape[2])))  # fmt: skip
            with np.errstate(over="ignore"):  # a tilt too large for the scores proves nothing
                mean += likely[:, None] * sum(p[:, None] * size**m / m for m, p in left)
        most = np.maximum(most, mean)
    weight = np.exp(v[:, None] * (t[:, None] ** 2 - turns**2) / 2) / (t[:, None] ** 2 + turns**2) / math.pi
    above = np.trapezoid(most * weight, turns, axis=1)
    nobody = 1 - sum(p for _, p in left)
    return truth, above * (1 + 1e-4) + nobody + 1e-12


# Divergences under both limits.


def capped(rng: np.random.Generator, p: Array, q: Array, growth: Array, summand: Callable[..., Array]) -> Sides:
    """What the best partition, erased to a random eta, keeps, and eta."""
    e = growth[:, 0]
    eta = rng.random(len(p)) * (e - 1) / (e + 1)
    kept = [positive(one, other, summand) * np.minimum(1, eta * (e + m - 1) / (e - 1))
            for one, other, m in partitions(p, q, growth)]  # fmt: skip
    return np.max(kept, axis=0), eta


@claim("no epsilon-LDP, eta-TV channel keeps more than eta tanh(epsilon/2) of KL, chi^2, H^2, Jeffreys, Le Cam, JS")
def contraction_by_both_limits(rng: np.random.Generator, n: int) -> Sides:
    (p, q), epsilon = laws(rng, n, int(rng.integers(2, 6))), drawn_epsilon(rng, n)
    summand = list(DIVERGENCES.values())[int(rng.integers(len(DIVERGENCES)))]
    kept, eta = capped(rng, p, q, np.exp(epsilon), summand)
    return kept, eta * np.tanh(epsilon[:, 0] / 2) * positive(p, q, summand)


@claim("no channel keeps more than the pair of laws that every test tells apart as well as the best channel allows")
def every_test_at_once(rng: np.random.Generator, n: int) -> Sides:
    (p, q), growth = laws(rng, n, int(rng.integers(2, 6))), np.exp(drawn_epsilon(rng, n))
    summand = list(DIVERGENCES.values())[int(rng.integers(len(DIVERGENCES)))]
    kept, eta = capped(rng, p, q, growth, summand)
    order = np.argsort(-p / q, axis=1)
    p, q = (np.take_along_axis(law, order, axis=1) for law in (p, q))
    share, merged = 1 / (growth - 1), np.zeros(p.shape, dtype=bool)
    total = np.zeros(n)
    for one, other in ((p, q), (q[:, ::-1], p[:, ::-1])):
        above = (one.cumsum(axis=1) + share) / (other.cumsum(axis=1) + share)
        end = one / other >= above.max(axis=1, keepdims=True)
        ends = [((law * end).sum(axis=1, keepdims=True) + share) for law in (one, other)]
        total += positive(*(ends if one is p else ends[::-1]), summand)
        merged |= end if one is p else end[:, ::-1]
    alone = np.where(merged, 1.0, p), np.where(merged, 1.0, q)
    return kept, eta * (total + positive(*alone, summand))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a thousand instances of each")
    given = parser.parse_args(arguments)
    rows, broken = [], 0
    for turn, (name, (sentence, sides)) in enumerate(CLAIMS.items()):
        left_to_draw, wrong, tightest = 1000 if given.quick else given.instances, 0, 0.0
        rng, drawn = np.random.default_rng([given.seed, turn]), 0
        while drawn < left_to_draw:
            size = min(CHUNK if not given.quick else 100, left_to_draw - drawn)
            smaller, larger = sides(rng, size)
            if not (np.isfinite(smaller).all() and not np.isnan(larger).any()):
                raise ValueError(f"{name}: a side is not a number")
            over = smaller > larger * (1 + ROUNDING) + 1e-13
            wrong, drawn = wrong + int(over.sum()), drawn + size
            clear = larger > 1e-9
            tightest = max(tightest, float((smaller[clear] / larger[clear]).max(initial=0.0)))
        broken += wrong
        rows.append((name, sentence, drawn, wrong, f"{tightest:.6f}"))
        print(f"{name:28} {drawn:8} instances  {wrong:4} broken  largest quotient {tightest:.6f}", flush=True)
    if not given.quick:
        with (Path(__file__).with_suffix(".csv")).open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [("inequality", "sentence", "instances", "broken", "quotient"), *rows]
            )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
