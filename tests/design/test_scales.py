"""Designs at every scale: tiny and huge budgets, hypotheses far apart and nearly equal, masses that nearly vanish.

`LDPOPT_SCALES=200` in the environment draws as many random problems; ten by default.
"""

import math
import os

import networkx as nx
import numpy as np
import pytest

from ldpopt import Channel
from ldpopt.design import (
    ApproximateLDP,
    ConcentratedLDP,
    Divergence,
    ExpectedLoss,
    LocalDP,
    RenyiLDP,
    TotalVariation,
    TradeOff,
    optimal_channel,
)
from ldpopt.design.constraints.repair import repair, stochastic
from ldpopt.design.problems.reduction import Pair, value_of, values_of
from ldpopt.design.ratios.program import chord_gains, tangent_gains
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER
from ldpopt.divergences import TOTAL_VARIATION as VARIATION
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.privacy import TradeOffCurve

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
DRAWS = int(os.environ.get("LDPOPT_SCALES", "10"))


def near(apart, k=3, seed=0):
    """Two hypotheses whose ratios are within `apart` of one."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 3.0))
    d = rng.normal(size=k)
    d -= d @ p
    q = p * (1 + apart * d / np.abs(d).max())
    return p, q / q.sum()


def holds(design):
    """Whether the measured guarantees are within the constraints, and the bound above a value above 0."""
    within = all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    return within and 0 < design.value <= design.upper_bound


def mixed_until_private(raw, constraints):
    """The least private matrix from the mean row of `raw` to `raw` that meets the constraints: free of programs."""
    mean = np.tile(raw.mean(axis=0), (len(raw), 1))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = math.sqrt(low * high) if low > 0 else high / 16
        channel = Channel(stochastic((1 - middle) * mean + middle * raw))
        if all(c.measure(channel).value <= c.bound for c in constraints):
            low = middle
            if middle == 1.0:
                break
            high = min(high, 1.0)
            if low >= high * (1 - 1e-9):
                break
        else:
            high = middle
    return stochastic((1 - low) * mean + low * raw)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-3, 1.0, 60.0, 500.0])
def test_constraints_equivalent_to_pure_ldp_are_solved_as_such(epsilon):
    """(epsilon, 0)-LDP, Rényi of order inf and the trade-off curve of randomized response are epsilon-LDP."""
    pure = optimal_channel(Divergence(KL, P, Q), LocalDP(epsilon))
    for same in (ApproximateLDP(epsilon, 0.0), RenyiLDP(math.inf, epsilon)):
        design = optimal_channel(Divergence(KL, P, Q), same)
        assert holds(design)
        assert design.value == pytest.approx(pure.value, rel=2e-5 if epsilon < 1e-8 else 2e-6)
    if epsilon == 1.0:
        e = math.exp(epsilon)
        curve = TradeOffCurve.of_pair([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)])
        design = optimal_channel(Divergence(KL, P, Q), TradeOff(curve))
        assert design.value == pytest.approx(pure.value, rel=1e-9)
        assert design.certified


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-2, 3.0, 18.0, 40.0, 700.0])
def test_a_complete_graph_is_plain_ldp_at_every_epsilon(epsilon):
    """Exchange, through base and rises or with capped ratios, meets the closed form of sort, partition, randomize."""
    utility = Divergence(KL, P, Q)
    plain = optimal_channel(utility, LocalDP(epsilon))
    graph = optimal_channel(utility, LocalDP(epsilon, nx.complete_graph(3)))
    assert holds(graph)
    assert graph.value == pytest.approx(plain.value, rel=1e-6)


def test_a_channel_for_a_small_epsilon_loses_no_more_than_floats_do():
    """Total variation shrinks by tanh(epsilon/2): a channel for epsilon = 1e-6 reaches that to a few billionths."""
    design = optimal_channel(Divergence(VARIATION, P, Q), LocalDP(1e-6))
    exact = math.tanh(0.5e-6) * 0.3
    assert exact * (1 - 2e-9) <= design.value <= exact


@pytest.mark.full(but=1)
@pytest.mark.parametrize("apart", [1e-1, 1e-9])
@pytest.mark.parametrize(
    "constraint",
    [RenyiLDP(2, 0.5), ApproximateLDP(1.0, 0.01), LocalDP(1.0, nx.path_graph(3))],
    ids=["renyi", "approximate", "path"],
)
def test_values_of_near_hypotheses_fall_with_the_squared_distance(apart, constraint):
    """Between nearly equal hypotheses KL is half of chi-squared, and values fall with the square of the distance."""
    p, q = near(apart)
    kl, chi = (optimal_channel(Divergence(f, p, q), constraint) for f in (KL, CHI_SQUARED))
    assert holds(kl)
    assert holds(chi)
    assert kl.value / chi.value == pytest.approx(0.5, rel=max(3 * apart, 1e-5))
    assert kl.certified
    p, q = near(2 * apart)
    double = optimal_channel(Divergence(CHI_SQUARED, p, q), constraint, certify=False)
    assert double.value / chi.value == pytest.approx(4.0, rel=max(10 * apart, 1e-5))


def renyi_of(p, q, order):
    """The Rényi divergence of two rows, from its definition in log space."""
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p * np.exp((order - 1) * np.log(p / q))))) / (order - 1)


def best_of_two(f, p, q, order, epsilon):
    """The best channel of two inputs and two outputs under a Rényi cap: a grid of rows, the other row by bisection."""
    best = 0.0
    for x in np.concatenate([np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(1e-9, 0.5, 60)]):
        low, high = x, 1 - 1e-12
        for _ in range(50):
            y = (low + high) / 2
            a, b = np.array([x, 1 - x]), np.array([y, 1 - y])
            within = max(renyi_of(a, b, order), renyi_of(b, a, order)) <= epsilon
            low, high = (y, high) if within else (low, y)
        rows = np.array([[x, 1 - x], [low, 1 - low]])
        d, b = (np.array(p) - q) @ (rows - rows.min(axis=0)), np.array(q) @ rows
        best = max(best, float(f.excess_of(d, b).sum()))
    return best


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("order", "epsilon"), [(1.0, 0.1), (2.0, 5.0)])
def test_no_binary_channel_exceeds_the_design_for_two_inputs(order, epsilon):
    """No channel with two outputs keeps more than a design for two inputs, nor than its bound."""
    p, q = [0.7, 0.3], [0.2, 0.8]
    design = optimal_channel(Divergence(SQUARED_HELLINGER, p, q), RenyiLDP(order, epsilon))
    assert holds(design)
    assert best_of_two(SQUARED_HELLINGER, p, q, order, epsilon) <= design.value * (1 + 1e-5)


@pytest.mark.full
@pytest.mark.parametrize("eta", [1e-12, 1e-6])
@pytest.mark.parametrize("other", [ApproximateLDP(1.0, 0.01), RenyiLDP(2.0, 0.5)], ids=["approximate", "renyi"])
def test_a_tiny_cap_on_variation_keeps_its_share_of_everything(eta, other):
    """Where (epsilon, delta) or Rényi do not bind, the optimum under eta-TV is eta D(P0 || P1) [Dobrushin]."""
    utility = Divergence(KL, P, Q)
    design = optimal_channel(utility, [other, TotalVariation(eta)])
    assert holds(design)
    assert design.value == pytest.approx(eta * utility.value_without_privacy, rel=2e-5)


@pytest.mark.parametrize("mass", [1e-12, 1e-100, 1e-300])
@pytest.mark.parametrize(
    "constraint", [ApproximateLDP(1.0, 0.01), LocalDP(1.0, nx.path_graph(4))], ids=["delta", "path"]
)
def test_masses_that_nearly_vanish(mass, constraint):
    """A mass of 1e-300 is worth what a mass of 0 is."""
    p, q = [0.5, 0.3, 0.2 - mass, mass], [0.2, 0.3, mass, 0.5 - mass]
    design = optimal_channel(Divergence(SQUARED_HELLINGER, p, q), constraint)
    none = optimal_channel(Divergence(SQUARED_HELLINGER, [0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.0, 0.5]), constraint)
    assert holds(design)
    assert design.value == pytest.approx(none.value, rel=1e-5)


def test_vanishing_masses_on_a_path_leave_bounded_ratios():
    """A ratio of 5e11 between inputs leaves reports of bounded ratio: the design finds them."""
    p, q = [0.5, 0.3, 0.2, 1e-12], [0.2, 0.3, 1e-12, 0.5]
    design = optimal_channel(Divergence(CHI_SQUARED, p, q), LocalDP(1.0, nx.path_graph(4)))
    assert holds(design)
    assert design.value >= 0.4427


@pytest.mark.full
@pytest.mark.parametrize("rho", [1.0, 100.0])
def test_extreme_zcdp_budgets_exceed_randomized_response(rho):
    """A small and the largest zCDP budget keep more than randomized response within them does."""
    constraint = ConcentratedLDP(rho)
    design = optimal_channel(Divergence(KL, P, Q), constraint)
    assert holds(design)
    raw = np.eye(3)[:, [0, 0, 1]] if rho < 2 else np.eye(3)
    assert Divergence(KL, P, Q).value(mixed_until_private(0.999 * raw + 0.001 / 3, [constraint])) <= design.value


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 30.0, 60.0, 500.0])
def test_expected_losses_are_at_most_those_of_randomized_response(epsilon):
    """The least error of naming the answer is that of randomized response, or of the guess without an answer."""
    prior = np.array([0.4, 0.35, 0.25])
    design = optimal_channel(ExpectedLoss(prior, 1 - np.eye(3)), LocalDP(epsilon))
    response = 2 / (math.exp(epsilon) + 2)
    loss = -design.value
    assert design.guarantees[0].value <= epsilon
    assert loss <= min(response, 0.6) * (1 + 1e-9) + 1e-15


def test_mending_keeps_small_differences():
    """A channel of total variation 1e-12 is not shaken by more than a billionth of that."""
    eta = 1e-12
    exact = np.hstack([eta * np.eye(3), np.full((3, 1), 1 - eta)])
    mended = repair(exact * (1 + 3e-16), [TotalVariation(eta)])
    assert np.abs(mended[:, :3] - exact[:, :3]).max() <= 1e-9 * eta
    assert np.ptp(mended[:, 3]) == 0
    assert np.ptp(stochastic(np.array([[0.3, 0.7], [0.3, 0.7]])), axis=0).max() == 0


@pytest.mark.parametrize("apart", [0.3, 1e-5, 1e-9])
def test_planes_touch_and_cover_at_every_scale(apart):
    """Chords lie above the utility between their knots and tangents below it, to a relative 1e-6 of its own size."""
    p, q = near(apart)
    pair = Pair.from_distributions(p, q)
    rng = np.random.default_rng(1)
    columns = 0.5 + 0.5 * rng.random((3, 40))
    own = values_of(KL, pair, columns)
    d, b = pair.difference @ (columns - columns.min(axis=0)), pair.p1 @ columns
    posterior = 0.5 + d / (2 * b + d) / 2
    low, high = posterior.min() - 1e-3 * np.ptp(posterior), posterior.max() + 1e-3 * np.ptp(posterior)
    knots = np.unique(np.concatenate([np.linspace(low, high, 9), [0.5]]))
    knots.sort()
    chords = chord_gains(KL, pair, knots)
    at = np.clip(np.searchsorted(knots, posterior) - 1, 0, len(knots) - 2)
    base = columns.min(axis=0)
    gained = np.einsum("nk,kn->n", chords.entries[at], columns - base) + chords.constant[at] * base
    size = own.max()
    assert (gained >= own - 1e-6 * size).all()
    tangents = tangent_gains(KL, pair, columns)
    touching = np.einsum("nk,kn->n", tangents.entries, columns - base) + tangents.constant * base
    assert np.abs(touching - own).max() <= 1e-6 * size
    assert value_of(KL, pair, columns) == pytest.approx(float(own.sum()))


def random_scaled_problem(seed):
    """A random problem of the kinds above, at random scales."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    if rng.random() < 0.4:
        p, q = near(10 ** rng.uniform(-9, -1), k, seed)
    else:
        p, q = rng.dirichlet(np.ones(k), 2)
    f = [KL, CHI_SQUARED, SQUARED_HELLINGER, VARIATION][rng.integers(4)]
    kind = rng.integers(5)
    if kind == 0:
        order = float(rng.choice([1.0, 1.5, 2.0, 3.0, 10.0]))
        made = [RenyiLDP(order, 10 ** rng.uniform(-3, 1.3))]
    elif kind == 1:
        made = [ApproximateLDP(10 ** rng.uniform(-6, 1.5), 10 ** rng.uniform(-12, -1))]
    elif kind == 2:
        made = [LocalDP(10 ** rng.uniform(-7, 2.6), nx.path_graph(k))]
    elif kind == 3:
        made = [
            ApproximateLDP(10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-6, -1)),
            TotalVariation(10 ** rng.uniform(-12, -1)),
        ]
    else:
        made = [
            LocalDP(10 ** rng.uniform(-6, 2.6)),
            ApproximateLDP(10 ** rng.uniform(-6, 1), 10 ** rng.uniform(-9, -2)),
        ]
    return f, p, q, made


@pytest.mark.full(but=2)
@pytest.mark.parametrize("seed", range(DRAWS))
def test_random_problems_at_random_scales(seed):
    """A design within its constraints that no private mixture of a random channel beats, with a bound above both."""
    f, p, q, constraints = random_scaled_problem(seed)
    utility = Divergence(f, p, q)
    design = optimal_channel(utility, constraints)
    assert holds(design)
    rng = np.random.default_rng(seed)
    k = len(p)
    for raw in (np.eye(k) * 0.999 + 0.001 / k, rng.dirichlet(np.full(3, 0.5), k) + 1e-6):
        channel = mixed_until_private(stochastic(raw / raw.sum(axis=1, keepdims=True)), constraints)
        # A value that is surely reached: floats alone are off by more than the bound is where rows hardly differ.
        value = float(utility.enclosed_value(Channel(channel), FLOAT).lower)
        assert value <= design.value * (1 + 1e-5)
        assert value <= design.upper_bound * (1 + 1e-8)
