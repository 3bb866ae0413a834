"""Constraints of a user's own, as classes and as functions: feasible, and no worse than what anybody can do by hand."""

import cvxpy as cp
import numpy as np
import pytest

from ldpopt.design import (
    ApproximateLDP,
    Divergence,
    Exchange,
    ExpectedLoss,
    LocalDP,
    LocalSearch,
    MutualInformation,
    Outputs,
    PrivateSampling,
    RenyiLDP,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.own_constraints import split_outputs
from ldpopt.divergences import KL, TOTAL_VARIATION
from ldpopt.errors import SolverError
from ldpopt.privacy import Guarantee


class Limit:
    """A cap on a measure of the matrix; each case says what it measures, and as cvxpy constraints."""

    def __init__(self, bound):
        self.bound = bound

    def measure(self, channel):
        found = self.of(channel.matrix)
        return Guarantee(type(self).__name__.lower(), found * (1 + 1e-9), found * (1 - 1e-9), None, True, "")


def pairs(q):
    return [(x, z) for x in range(q.shape[0]) for z in range(q.shape[0]) if x != z]


class Close(Limit):
    """The widest column."""

    def expression(self, q):
        return [cp.abs(q[x] - q[z]) <= self.bound for x, z in pairs(q)]

    def of(self, q):
        return float(np.ptp(q, axis=0).max())


class Entries(Limit):
    """The largest entry."""

    def expression(self, q):
        return [q <= self.bound]

    def of(self, q):
        return float(q.max())


class Squares(Limit):
    """The largest sum of squares of a row."""

    def expression(self, q):
        return [cp.sum_squares(q[x]) <= self.bound for x in range(q.shape[0])]

    def of(self, q):
        return float((q**2).sum(axis=1).max())


class Distance(Limit):
    """The largest Euclidean distance of two rows."""

    def expression(self, q):
        return [cp.norm(q[x] - q[z]) <= self.bound for x, z in pairs(q)]

    def of(self, q):
        return max(float(np.linalg.norm(q[x] - q[z])) for x, z in pairs(q))


class Kullback(Limit):
    """The largest KL divergence between rows, which copies of outputs do not change."""

    def expression(self, q):
        return [cp.sum(cp.rel_entr(q[x], q[z])) <= self.bound for x, z in pairs(q)]

    def of(self, q):
        return max(KL(q[x], q[z]) for x, z in pairs(q))


class Apart(Limit):
    """The largest sum of absolute differences of two rows; it treats all inputs alike, and says so."""

    symmetric = True

    def expression(self, q):
        return [cp.sum(cp.abs(q[x] - q[z])) <= self.bound for x, z in pairs(q)]

    def of(self, q):
        return max(float(np.abs(q[x] - q[z]).sum()) for x, z in pairs(q))


def by_hand(utility, limit, free):
    """The most that the free optimum keeps when its outputs are split, and it is mixed with a constant row by hand."""
    kept = -np.inf
    for copies in (1, 2, 3, 8):
        whole = np.repeat(free / copies, copies, axis=1)
        for row in (whole.mean(axis=0), np.full(whole.shape[1], 1 / whole.shape[1])):
            low, high = 0.0, 1.0
            if limit.of(row + 0 * whole) > limit.bound:
                continue
            for _ in range(40):
                middle = (low + high) / 2
                within = limit.of((1 - middle) * whole + middle * row) <= limit.bound
                low, high = (low, middle) if within else (middle, high)
            kept = max(kept, utility.value((1 - high) * whole + high * row))
    return kept


def judge(utility, limit, others):
    """The design under a limit, as a class and as a function, against each other and against what a hand can do."""
    free = optimal_channel(utility, others, certify=False).channel.matrix if others else np.eye(utility.size)
    design = optimal_channel(utility, [limit, *others])
    assert limit.of(design.channel.matrix) <= limit.bound
    least = by_hand(utility, limit, free)
    try:  # A function fixes the number of outputs, with which a limit on single entries may be out of reach.
        lifted = optimal_channel(utility, [limit.expression, *others])
    except SolverError as error:
        assert "no channel meets all constraints" in str(error)
    else:
        assert limit.of(lifted.channel.matrix) <= limit.bound + 1e-6
        least = max(least, lifted.value * (1 - 1e-5))
    assert design.value >= least * (1 - 1e-6) - 1e-12
    assert design.upper_bound >= max(design.value, least)
    return design


def of(k, seed):
    return np.random.default_rng(seed).dirichlet(np.full(k, 2.0))


P0, P1 = np.array([0.4, 0.25, 0.15, 0.1, 0.1]), np.array([0.1, 0.1, 0.15, 0.25, 0.4])


@pytest.mark.full
def test_a_limit_on_entries_is_met_by_copies_of_outputs():
    """A cap on how far apart entries are costs nothing where outputs may be split, and the design says so."""
    design = judge(Divergence(KL, P0, P1), Close(0.15), [LocalDP(1.0)])
    free = optimal_channel(Divergence(KL, P0, P1), LocalDP(1.0))
    assert design.value == pytest.approx(free.value, rel=1e-9)
    assert design.certified
    assert design.verify()
    assert "each output split into 4" in design.method
    assert design.channel.shape == (5, 4 * free.channel.shape[1])
    assert "Close" in repr(design).split("certified")[1].splitlines()[0]


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("utility", "limit", "others"),
    [
        (MutualInformation(P0), Close(0.1), [LocalDP(1.0)]),
        (Divergence(TOTAL_VARIATION, P0, P1), Squares(0.2), []),
        (WorstOf(KL, P0[:3] / P0[:3].sum(), [[0.2, 0.3, 0.5]]), Entries(0.3), [ApproximateLDP(0.5, 0.05)]),
        (Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), Kullback(0.05), [LocalDP(1.0)]),
        (Divergence(KL, P0, P1), Apart(0.1), [LocalDP(1.0)]),
        (MutualInformation([0.6, 0.4]), Kullback(0.2), []),
        (Divergence(KL, [0.5, 0.5], [0.2, 0.8]), Distance(0.05), [RenyiLDP(2.0, 0.3)]),
    ],
    ids=["information", "no privacy", "worst", "divergence", "symmetric", "binary", "renyi"],
)
def test_an_own_class_is_no_worse_than_a_function_or_a_hand(utility, limit, others):
    """Neither the same expression as a function nor splitting and mixing by hand keeps more, and no bound is below."""
    judge(utility, limit, others)


@pytest.mark.full
def test_a_named_method_is_not_below_the_mixture():
    """Whoever names a method gets what that finds, or the mixture where that is better; outputs asked for stay."""
    utility, limit = Divergence(KL, P0, P1), Close(0.15)
    free = optimal_channel(utility, LocalDP(1.0)).channel.matrix
    named = optimal_channel(utility, [limit, LocalDP(1.0)], method=Exchange())
    assert named.value >= by_hand(utility, limit, free) * (1 - 1e-6)
    few = optimal_channel(utility, [limit, LocalDP(1.0)], method=LocalSearch(2, outputs=3))
    assert few.channel.shape[1] <= 3
    both = optimal_channel(MutualInformation(P0), [limit, LocalDP(1.0), Outputs(2)])
    assert both.channel.shape[1] == 2
    assert limit.of(both.channel.matrix) <= limit.bound


def test_the_cost_of_mixing_is_noted():
    """Where nothing but a mixture with a constant channel is left, the note says from which value to which."""
    utility = ExpectedLoss([0.4, 0.3, 0.2, 0.1], np.abs(np.subtract.outer(np.arange(4.0), np.arange(4))))

    class Narrow(Close):
        """A cap that its expression does not state, so that only a mixture meets it."""

        def expression(self, q):
            return []

    design = optimal_channel(utility, [Narrow(0.1), LocalDP(1.0)])
    assert Narrow(0.1).of(design.channel.matrix) <= 0.1
    free = optimal_channel(utility, LocalDP(1.0))
    assert "mixed with a constant one to meet the constraints, which took the utility" in design.note
    assert f"from {free.value:.6g} to {design.value:.6g}" in design.note
    weight = 1 - 0.1 / Narrow(0.1).of(free.channel.matrix)
    mixed = (1 - weight) * free.channel.matrix + weight * free.channel.matrix.mean(axis=0)
    assert design.value >= utility.value(mixed) * (1 + 1e-6)


def test_decisions_and_draws_are_mixed_too():
    """Reports that have a meaning are not split; the design is no worse than a mixture of the best without the cap."""
    loss = ExpectedLoss([0.4, 0.3, 0.2, 0.1], np.abs(np.subtract.outer(np.arange(4.0), np.arange(4))))
    draws = PrivateSampling(TOTAL_VARIATION, [[0.9, 0.1], [0.1, 0.9]])
    for utility in (loss, draws):
        free = optimal_channel(utility, LocalDP(1.0)).channel.matrix
        design = optimal_channel(utility, [Close(0.1), LocalDP(1.0)])
        weight = 1 - min(1.0, 0.1 / Close(0.1).of(free))
        mixed = max(
            utility.value((1 - weight) * free + weight * row) for row in (free.mean(axis=0), np.eye(len(free[0]))[0])
        )
        assert design.value >= mixed - 1e-7
        assert design.channel.shape == free.shape


def test_no_channel_at_all_is_still_an_error():
    """Contradictory limits are refused with a reason, whatever else is tried."""
    with pytest.raises(SolverError, match="no channel meets all constraints"):
        optimal_channel(Divergence(KL, P0, P1), [lambda q: q[:, 0] >= 1.2, LocalDP(1.0)])


def test_copies_keep_all():
    """Equal copies keep every row's sum and the utility."""
    q = np.array([[0.75, 0.25], [0.25, 0.75]])
    assert split_outputs(q, 3).sum(axis=1) == pytest.approx([1.0, 1.0])
    assert MutualInformation([0.5, 0.5]).value(split_outputs(q, 3)) == pytest.approx(
        MutualInformation([0.5, 0.5]).value(q)
    )


LIMITS = {
    Close: (0.02, 0.1, 0.3),
    Entries: (0.1, 0.3),
    Squares: (0.1, 0.5),
    Distance: (0.05, 0.2),
    Kullback: (0.01, 0.2),
    Apart: (0.05, 0.5),
}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(40))
def test_random_user_limits_are_bounded_on_both_sides(seed):
    """Random own limits under every kind of privacy: never below a hand or a function, never above a bound."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 3, 4]))
    p0, p1 = rng.dirichlet(np.full(k, 2.0), 2)
    utility = [
        Divergence(KL, p0, p1),
        MutualInformation(p0),
        Divergence(TOTAL_VARIATION, p0, p1),
        WorstOf(KL, p0, [p1, p1[::-1]]),
    ][seed % 4]
    kind = list(LIMITS)[int(rng.integers(len(LIMITS)))]
    others = [[LocalDP(float(rng.choice([0.3, 1.0, 3.0])))], [ApproximateLDP(0.5, 0.05)], []][int(rng.integers(3))]
    judge(utility, kind(float(rng.choice(LIMITS[kind]))), others)
