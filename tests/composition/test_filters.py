import math
from fractions import Fraction
from functools import cache

import adaptive_trees as trees
import numpy as np
import pytest

from ldpopt.composition import Ledger, PrivacyFilter, PrivacyOdometer
from ldpopt.composition.mechanism import as_mechanism
from ldpopt.errors import BudgetExceeded, InvalidInput
from ldpopt.mechanisms import gaussian
from ldpopt.privacy import MCDP, TV, ZCDP, ApproximateDP, PureDP, RenyiDP

RR = [[0.75, 0.25], [0.25, 0.75]]
POOL = [
    [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]],
    [[Fraction(9, 16), Fraction(7, 16)], [Fraction(7, 16), Fraction(9, 16)]],
    [[Fraction(1, 8), Fraction(3, 8), Fraction(1, 2)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]],
    [[Fraction(15, 16), Fraction(1, 16)], [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 2), Fraction(1, 2)]],
]
LEAKY = [[Fraction(1, 1024), Fraction(1023, 1024), Fraction(0)], [Fraction(0), Fraction(1023, 1024), Fraction(1, 1024)]]


@cache
def mechanism(at):
    """One of `POOL`, or the leaky one after them, in floats: what it was asked for, it keeps for the next filter."""
    return as_mechanism(np.array([*POOL, LEAKY][at], float))


class Adversary:
    """Asks what a filter admits, by the reports so far: at random, or harder while the loss is high (greedy)."""

    def __init__(self, start, pool, rng, depth=4):
        self.start, self.pool, self.rng, self.depth = start, pool, rng, depth
        self.greedy, self.known, self.admitted = bool(rng.integers(2)), {}, {}

    def filter_after(self, used):
        """The filter after the mechanisms with these numbers, whatever their order; None when it refuses one."""
        used = tuple(sorted(used))
        if used not in self.admitted:
            before = self.filter_after(used[:-1]) if used else self.start
            try:
                self.admitted[used] = before.add(mechanism(used[-1])) if used and before else before
            except BudgetExceeded:
                self.admitted[used] = None
        return self.admitted[used]

    def choose(self, seen):
        if seen in self.known:
            return self.known[seen]
        used = [step[0] for step in seen]
        open_ = [at for at in range(len(self.pool)) if self.filter_after([*used, at]) is not None]
        step = None
        if open_ and len(seen) < self.depth:
            loss = sum(
                math.log(self.pool[at][a][y] / self.pool[at][b][y])
                for at, a, b, y in seen
                if self.pool[at][a][y] and self.pool[at][b][y]
            )
            at = (open_[0] if loss >= 0 else open_[-1]) if self.greedy else int(self.rng.choice(open_))
            inputs = self.rng.permutation(len(self.pool[at]))[:2]
            step = (at, int(inputs[0]), int(inputs[1]))
        self.known[seen] = step
        return step


def transcript(start, pool, seed):
    """The two exact laws of what an adversary sees who keeps to the filter."""
    adversary = Adversary(start, pool, np.random.default_rng(seed))
    paths = []

    def walk(seen, p, q):
        step = adversary.choose(seen)
        if step is None:
            paths.append((p, q))
            return
        at, a, b = step
        for y, (one, other) in enumerate(zip(pool[at][a], pool[at][b], strict=True)):
            if one or other:
                walk((*seen, (at, a, b, y)), p * one, q * other)

    walk((), Fraction(1), Fraction(1))
    return [p for p, _ in paths], [q for _, q in paths]


def divergence(p, q, order):
    return math.log(math.fsum(float(a) ** order * float(b) ** (1 - order) for a, b in zip(p, q, strict=True) if a)) / (
        order - 1
    )


@pytest.mark.parametrize("seed", range(12))
def test_pure_filters_bound_the_loss_of_every_path(seed):
    """Under a PureDP filter no path has a loss above epsilon, even if queries depend on the reports."""
    epsilon = float(np.random.default_rng(seed).choice([0.3, 1.2, 2.5]))
    p, q = transcript(PrivacyFilter(PureDP(epsilon)), POOL, seed)
    assert max(max(a / b, b / a) for a, b in zip(p, q, strict=True)) <= Fraction(math.exp(epsilon))


@pytest.mark.parametrize("seed", range(4))
def test_total_variation_filters_bound_the_distance(seed):
    """Under a TV filter the distributions are within eta."""
    eta = float(np.random.default_rng(seed).choice([0.3, 0.55, 0.8]))
    p, q = transcript(PrivacyFilter(TV(eta)), POOL, seed)
    assert trees.hockey_stick(p, q, Fraction(1)) <= Fraction(eta)


@pytest.mark.parametrize("seed", range(4))
def test_renyi_and_zcdp_filters_bound_the_divergence(seed):
    """Under a Rényi filter the divergence of its order, under a zCDP filter of every order, is within the budget."""
    rng = np.random.default_rng(seed)
    order, epsilon = float(rng.choice([1.5, 3.0, 10.0])), float(rng.choice([0.2, 0.6, 1.5]))
    p, q = transcript(PrivacyFilter(RenyiDP(order, epsilon)), POOL, seed)
    assert max(divergence(p, q, order), divergence(q, p, order)) <= epsilon * (1 + 1e-12)
    budget = ZCDP(float(rng.choice([0.0, 0.1])), float(rng.choice([0.05, 0.2, 0.6])))
    p, q = transcript(PrivacyFilter(budget), POOL, seed)
    for order in (1.01, 1.5, 2.0, 5.0, 20.0):
        worst = max(divergence(p, q, order), divergence(q, p, order))
        assert worst <= (budget.xi + budget.rho * order) * (1 + 1e-12)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(4))
def test_approximate_filters_bound_the_hockey_stick(seed):
    """Under an (epsilon, delta) filter, with a part of delta for infinite losses, the hockey stick is within delta."""
    rng = np.random.default_rng(seed)
    budget = ApproximateDP(float(rng.choice([0.5, 1.5, 3.0])), float(rng.choice([0.02, 0.1])))
    start = PrivacyFilter(budget, lost=0.01 if seed % 2 else 0.0)
    p, q = transcript(start, [*POOL, LEAKY], seed)
    ratio = Fraction(math.exp(budget.epsilon) * (1 + 1e-15))
    assert max(trees.hockey_stick(p, q, ratio), trees.hockey_stick(q, p, ratio)) <= Fraction(budget.delta)


def test_budgets_are_used_up():
    """What fits exactly is admitted and one more is not: filters are no looser than their sums."""
    half = PrivacyFilter(PureDP(1.0)).add((0.5,))
    assert half.room((0.5,)) == 1
    assert half.room((0.25,), limit=1) == 1
    assert half.add((0.5,)).room((1e-9,)) == 0
    assert PrivacyFilter(TV(0.5)).room((1.0, 0.0, 0.5)) in (0, 1)
    assert PrivacyFilter(ZCDP(0.0, 0.5)).room(gaussian(2.0)) == 4
    assert PrivacyFilter(ZCDP(0.0, math.nextafter(0.5, 0.0))).room(gaussian(2.0)) == 3
    count = PrivacyFilter(RenyiDP(4.0, 3.0)).room(RR)
    assert Ledger().add(RR, count).renyi(4.0).value <= 3.0 < Ledger().add(RR, count + 1).renyi(4.0).value
    many = PrivacyFilter(ApproximateDP(1.0, 1e-6)).room((0.01,))
    assert many > 150  # pure sums alone would allow 100
    assert PrivacyFilter(ApproximateDP(1.0, 1e-6)).room((0.5,)) == 2


def test_leaky_mechanisms_need_a_part_of_delta():
    """A mechanism with infinite losses passes only when a part of delta was kept for it."""
    leaky = (0.01, 1e-7)
    assert not PrivacyFilter(ApproximateDP(1.0, 1e-6)).admits(leaky)
    assert PrivacyFilter(ApproximateDP(1.0, 1e-6), lost=5e-7).room(leaky, 8) == 5
    assert not PrivacyFilter(ApproximateDP(1.0, 1e-6), lost=1e-6).admits(leaky)
    assert not PrivacyFilter(PureDP(1.0)).admits(leaky)
    assert not PrivacyFilter(ZCDP(0.0, 1.0)).admits(leaky)


def test_a_refusal_spends_nothing():
    """A mechanism that does not fit raises before it is used, and what is spent stays."""
    spent = PrivacyFilter(PureDP(1.0), Ledger().add((0.4,), name="first"))
    with pytest.raises(BudgetExceeded, match="would exceed"):
        spent.add((0.7,))
    assert len(spent.ledger) == 1
    assert len(spent.add((0.6,)).ledger) == 2
    assert len(spent.ledger) == 1


@pytest.mark.full(but=3)
@pytest.mark.parametrize("seed", range(8))
def test_odometers_are_right_at_all_times(seed):
    """With probability 1 - delta the loss of all reports is at most the reading, at every time of an adaptive tree."""
    rng = np.random.default_rng(seed)
    delta, pool = float(rng.choice([0.3, 0.1, 0.01])), POOL
    orders = (1.5, 2.0, 4.0) if seed % 2 else (2.0,)
    readings, choices = {}, {}

    def reading(used):
        if used not in readings:
            odometer = PrivacyOdometer(delta, orders)
            for at in used:
                odometer = odometer.add(np.array(pool[at], float))
            readings[used] = odometer.reading
        return readings[used]

    exceeded = {False: Fraction(0), True: Fraction(0)}

    def walk(seen, p, q, over):
        over = tuple(o or (float(a / b) > math.exp(reading(tuple(sorted(s[0] for s in seen)))) * (1 + 1e-12))
                     for o, a, b in zip(over, (p, q), (q, p), strict=True)) if seen else over  # fmt: skip
        if len(seen) == 4:
            exceeded[False] += p * over[0]
            exceeded[True] += q * over[1]
            return
        if seen not in choices:
            at = int(rng.integers(len(pool)))
            choices[seen] = (at, *(int(x) for x in rng.permutation(len(pool[at]))[:2]))
        at, a, b = choices[seen]
        for y, (one, other) in enumerate(zip(pool[at][a], pool[at][b], strict=True)):
            walk((*seen, (at, a, b, y)), p * one, q * other, over)

    walk((), Fraction(1), Fraction(1), (False, False))
    assert max(exceeded.values()) <= Fraction(delta)


def test_odometer_readings_rise_below_the_pure_sum():
    """The reading is never above the pure sum, rises with use, and is infinite where the loss may be."""
    odometer = PrivacyOdometer(1e-6)
    assert odometer.reading == 0.0
    last = 0.0
    for _ in range(5):
        odometer = odometer.add(gaussian(5.0), 20)
        assert last < odometer.reading < math.inf
        last = odometer.reading
    exact = Ledger().add(gaussian(5.0), 100).approximate_dp(1e-6).value
    assert exact < odometer.reading < 2 * exact
    assert PrivacyOdometer(1e-6).add((0.5,)).reading == 0.5
    assert PrivacyOdometer(1e-6).add((0.5, 1e-9)).reading == math.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivacyFilter(MCDP(1.0, 1.0)),
        lambda: PrivacyFilter(1.0),
        lambda: PrivacyFilter(PureDP(1.0), lost=0.1),
        lambda: PrivacyFilter(ApproximateDP(1.0, 0.1), lost=0.2),
        lambda: PrivacyFilter(PureDP(1.0), Ledger().add((2.0,))),
        lambda: PrivacyFilter(PureDP(1.0), [1]),
        lambda: PrivacyFilter(PureDP(1.0)).add("x"),
        lambda: PrivacyFilter(PureDP(1.0)).room((0.1,), 0),
        lambda: PrivacyOdometer(0.0),
        lambda: PrivacyOdometer(1.0),
        lambda: PrivacyOdometer(0.1, ()),
        lambda: PrivacyOdometer(0.1, (1.0,)),
        lambda: PrivacyOdometer(0.1, (math.inf,)),
        lambda: PrivacyOdometer(0.1, (2.0,), None),
    ],
)
def test_bad_notions_and_exceeded_budgets_are_refused(make):
    """Other notions, exceeded budgets and numbers out of range are refused."""
    with pytest.raises(InvalidInput, match="expected"):
        make()


def test_noise_within_a_zcdp_budget_is_admitted():
    """Noise whose divergences are rho times the order fits until the sum of the rhos is the budget, and no further."""
    filter_ = PrivacyFilter(ZCDP(0.0, 1.0))
    noise = gaussian(math.sqrt(5.0))  # rho = 1/10 for answers one apart
    assert filter_.room(noise) in (9, 10)
    assert filter_.admits(gaussian(1.4))


def test_room_is_limited():
    """What costs nothing fits a million times, unless another limit is given."""
    equal = [[0.5, 0.5], [0.5, 0.5]]
    assert PrivacyFilter(PureDP(1.0)).room(equal) == 10**6
    assert PrivacyFilter(PureDP(1.0)).room(equal, 7) == 7
