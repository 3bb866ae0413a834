import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Box,
    Contamination,
    COptimal,
    Divergence,
    DOptimal,
    FisherInformation,
    LocalDP,
    MVOptimal,
    TotalVariation,
    TotalVariationBall,
    optimal_channel,
)
from ldpopt.design.estimation.proof import EquivalenceDual
from ldpopt.divergences import KL

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
CRITERIA = [AOptimal(), AOptimal([5, 0, 1, 1]), COptimal([1, 0, -1, 0.5]), MVOptimal(), DOptimal()]
NAMES = ["A", "weighted", "c", "MV", "D"]


def brute_value(criterion, q, p):
    """The criterion from the definition, J^-1 - p p^T."""
    covariance = np.linalg.inv((q / (p @ q)) @ q.T) - np.outer(p, p)
    return criterion.value(covariance)


def best_of_all_patterns(criterion, p, epsilon, eta=1.0):
    """The criterion of a feasible channel that Frank and Wolfe's steps over all patterns reach.

    Weights of all 2^k - 1 patterns, kept to constant rows by a linear program at every step.
    """
    from scipy.optimize import linprog, minimize_scalar

    k = len(p)
    sets = np.array(list(itertools.product([0, 1], repeat=k)))[1:]
    patterns = np.exp(epsilon * sets)
    x, other = np.array(list(itertools.permutations(range(k), 2))).T
    apart = np.maximum(patterns[:, x] - patterns[:, other], 0.0).T

    def cost(theta):
        used = theta > 0
        return brute_value(criterion, patterns[used].T * theta[used], p)

    rng = np.random.default_rng(0)
    theta = np.mean(
        [
            linprog(c, A_ub=apart, b_ub=np.full(len(x), eta), A_eq=patterns.T, b_eq=np.ones(k), method="highs").x
            for c in rng.random((12, len(sets)))
        ],
        axis=0,
    )
    for _ in range(30):
        now, step = cost(theta), 1e-7
        slope = np.array([(cost(theta + step * e / patterns[i].max()) - now) for i, e in enumerate(np.eye(len(sets)))])
        slope *= patterns.max(axis=1)
        to = linprog(slope, A_ub=apart, b_ub=np.full(len(x), eta), A_eq=patterns.T, b_eq=np.ones(k), method="highs").x
        move = to - theta
        found = minimize_scalar(lambda t, at=theta, move=move: cost(at + t * move), bounds=(0, 0.9), method="bounded")
        theta = theta + found.x * move
    return cost(theta)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
@pytest.mark.parametrize(("epsilon", "eta"), [(1.0, 0.25), (6.0, 1.0)])
def test_no_bound_is_above_a_feasible_channel(criterion, epsilon, eta):
    """The bound is below what a descent over all patterns attains, and certified within a millionth of the value."""
    design = optimal_channel(FisherInformation(PRIOR, criterion), [LocalDP(epsilon), TotalVariation(eta)])
    assert design.certified
    assert design.verify()
    assert design.lower_bound <= best_of_all_patterns(criterion, PRIOR, epsilon, eta) + 1e-9
    assert design.value == pytest.approx(brute_value(criterion, design.channel.matrix, PRIOR), rel=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 20.0, 300.0])
def test_both_arithmetics_prove_the_same(criterion, epsilon):
    """Bounds and values in balls of 256 bits are those in floats, to 1e-9, from tiny to huge epsilon."""
    design = optimal_channel(FisherInformation(PRIOR, criterion), LocalDP(epsilon))
    floats, balls = design.verify(), design.verify(exact=True)
    assert floats
    assert balls
    assert balls.bound == pytest.approx(floats.bound, rel=1e-9)
    assert balls.value == pytest.approx(floats.value, rel=1e-9)
    assert design.certified


@pytest.mark.parametrize(
    "graph", [nx.path_graph(4), nx.cycle_graph(4), nx.Graph([(0, 1), (2, 3)])], ids=["path", "cycle", "two parts"]
)
@pytest.mark.parametrize("eta", [1.0, 0.3])
def test_bounds_under_a_policy_graph_agree(graph, eta):
    """Extreme columns of a policy graph are priced in either arithmetic, columns with zeros too."""
    design = optimal_channel(FisherInformation(PRIOR), [LocalDP(0.7, graph), TotalVariation(eta)])
    assert design.certified
    assert design.verify(exact=True).bound == pytest.approx(design.verify().bound, rel=1e-9)


def test_the_kernel_of_the_largest_variance_has_a_row_for_every_proportion():
    """A kernel of one row proves nothing where every proportion needs its own, and the bound is below the value."""
    utility = FisherInformation(PRIOR, MVOptimal())
    design = optimal_channel(utility, LocalDP(6.0))
    assert design.lower_bound <= design.value == pytest.approx(0.243745, abs=1e-6)
    assert design.certified
    made = design.certificate
    assert made.kernel.shape == (4, 4)
    assert replace(made, kernel=made.kernel[:1]).bound == -math.inf
    assert replace(made, kernel=np.broadcast_to(made.kernel[:1], (4, 4))).bound <= design.value


def forged(made):
    """Certificates of which one field is wrong, with what is wrong."""
    k = len(made.prior)
    for field in ("prior", "kernel", "rows", "pairs"):
        own = np.array(getattr(made, field), dtype=float)
        for bad in (math.nan, math.inf, -math.inf):
            broken = own.copy()
            broken.flat[0] = bad
            yield field, replace(made, **{field: broken})
        yield field, replace(made, **{field: own[..., :-1]})
        yield field, replace(made, **{field: own.T[:1]})
        yield field, replace(made, **{field: float(own.flat[0])})
        yield field, replace(made, **{field: "none"})
        yield field, replace(made, **{field: None})
    yield "prior", replace(made, prior=np.full(k, 1 / k))
    yield "prior", replace(made, prior=made.prior * 2)
    yield "prior", replace(made, prior=np.nextafter(made.prior, 1))
    yield "pairs", replace(made, pairs=made.pairs - 1e-9)
    yield "utility", replace(made, utility=Divergence(KL, PRIOR, PRIOR[::-1]))
    yield "utility", replace(made, utility=FisherInformation([0.2] * 5))


@pytest.mark.full(but=2)
@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
def test_forged_numbers_prove_no_bound(criterion):
    """Whatever is not a finite number of the right shape proves no bound at all, in either arithmetic."""
    made = optimal_channel(FisherInformation(PRIOR, criterion), [LocalDP(1.0), TotalVariation(0.3)]).certificate
    for number, (field, forgery) in enumerate(forged(made)):
        assert not math.isfinite(forgery.bound), field
        assert not forgery.verify(exact=number % 3 == 0), field


@pytest.mark.full(but=1)
@pytest.mark.parametrize("criterion", CRITERIA, ids=NAMES)
def test_random_numbers_never_prove_too_much(criterion):
    """Multipliers and kernels that are off in any way never give a bound above the optimum."""
    rng = np.random.default_rng(7)
    design = optimal_channel(FisherInformation(PRIOR, criterion), [LocalDP(1.0), TotalVariation(0.3)])
    made = design.certificate
    for _ in range(40):
        size = 10.0 ** rng.integers(-6, 2)
        moved = replace(
            made,
            kernel=made.kernel * (1 + size * rng.normal(size=made.kernel.shape)),
            rows=made.rows * (1 + size * rng.normal(size=4)) * rng.choice([1.0, 1.0, 0.0, -1.0]),
            pairs=np.maximum(made.pairs * (1 + size * rng.normal(size=(4, 4))), 0.0),
        )
        assert moved.bound <= design.value
    for scale in (0.0, 1e-150, 1e-30, 1e30, 1e150):
        assert replace(made, kernel=made.kernel * scale).bound <= design.value


def test_other_constraints_prove_less():
    """For looser constraints the same numbers prove a smaller bound; without any they still hold for every channel."""
    design = optimal_channel(FisherInformation(PRIOR), [LocalDP(1.0), TotalVariation(0.3)])
    made = design.certificate
    loose = made.rebind(made.utility, (LocalDP(2.0),), made.channel)
    assert loose.bound <= optimal_channel(FisherInformation(PRIOR), LocalDP(2.0)).value
    unbound = made.rebind(made.utility, (TotalVariation(0.3),), made.channel)
    assert unbound.bound <= brute_value(AOptimal(), 0.7 / 4 + 0.3 * np.eye(4), PRIOR)
    assert not made.rebind(made.utility, (), made.channel).verify()


@pytest.mark.parametrize("around", [Box(0.05), Contamination(0.2), TotalVariationBall(0.1), Box(1e-9)], ids=repr)
def test_the_least_favourable_distribution_is_in_the_neighbourhood_without_slack(around):
    """The certificate's distribution is in the neighbourhood exactly; one that leaves it by little proves nothing."""
    utility = FisherInformation(PRIOR, neighbourhood=around)
    design = optimal_channel(utility, LocalDP(1.0))
    assert design.certified
    assert design.verify()
    assert design.verify(exact=True)
    made = design.certificate
    assert around.holds(made.prior, PRIOR)
    corner = around.highest(np.array([1.0, 0.0, 0.0, 0.0]), PRIOR)
    out = corner + 1e-13 * np.array([1.0, 0.0, 0.0, -1.0]) + np.array([1e-12, 0, 0, -1e-12])
    assert np.abs(out - corner).max() < 2e-12
    assert not around.holds(out, PRIOR)
    assert replace(made, prior=out).bound == -math.inf
    assert not around.holds(np.array([1.2, -0.2, 0.0, 0.0]), PRIOR)


def test_the_diagonal_of_the_pairs_counts_for_nothing():
    """No row differs from itself, so a price on the diagonal changes no bound; without a cap pairs cost tanh(eps/2)."""
    design = optimal_channel(FisherInformation(PRIOR), LocalDP(1.0))
    own, zero = design.certificate, np.zeros((4, 4))
    assert replace(own, pairs=zero + np.eye(4)).bound == own.bound
    assert replace(own, pairs=zero - np.eye(4)).bound == -math.inf
    one = replace(own, pairs=zero + 1e-6 * (np.arange(4) == 0) * (np.arange(4) == 1)[:, None])
    assert one.bound == one.rebind(own.utility, (LocalDP(1.0), TotalVariation(math.tanh(0.5))), own.channel).bound


def test_a_certificate_of_multipliers_for_total_variation_needs_columns_in_order():
    """Under a graph, pairs that have prices are charged to columns cut by all orders, whether or not a cap binds."""
    utility, graph = FisherInformation(PRIOR), LocalDP(0.7, nx.path_graph(4))
    capped = optimal_channel(utility, [graph, TotalVariation(0.3)]).certificate
    assert capped.pairs.any()
    assert capped.bound > 0
    assert isinstance(capped, EquivalenceDual)
    free = optimal_channel(utility, graph)
    assert 0 < capped.rebind(utility, (graph,), capped.channel).bound <= free.value < capped.bound * (1 + 1e-6)


def test_a_channel_beyond_the_caps_fails():
    """Verification measures the channel itself."""
    design = optimal_channel(FisherInformation(PRIOR), LocalDP(1.0))
    assert not replace(design, channel=Channel(np.eye(4))).verify()
    assert not replace(design, lower_bound=design.value).verify()
