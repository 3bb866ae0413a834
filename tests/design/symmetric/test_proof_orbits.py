"""Orbits of sets: the program over them is that over all patterns, and no multipliers prove less than the optimum."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import ldpopt_check
from ldpopt.design import (
    BalancedSets,
    LocalDP,
    MutualInformation,
    OrbitDual,
    OrbitProgram,
    PatternLP,
    TotalVariation,
    WeightedSum,
    optimal_channel,
)
from ldpopt.design.files import design_text
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.design.kernel.sets import level_of
from ldpopt.design.load import parse_design
from ldpopt.design.symmetric.families import best_turning, coupled_rotations, weigh_spread_sets
from ldpopt.design.symmetric.program_orbits import separation_caps, separations
from ldpopt.design.symmetric.proof_orbits import Groups, orbit_count, orbits
from ldpopt.errors import InvalidInput
from ldpopt.numbers.enclosures import EXACT, FLOAT
from ldpopt.privacy import total_variation

GROUPS = [(1, 1), (1, 4), (3, 4), (2, 2, 3), (1, 2, 4), (2, 2, 2, 2), (1, 1, 1, 2), (5,)]


def prior_of(sizes, seed=0, zeros=0):
    """A prior with groups of these sizes and of different masses, in any order."""
    rng = np.random.default_rng([seed, *sizes])
    masses = np.repeat((1 + np.arange(len(sizes))) ** rng.uniform(0.3, 2.0), sizes)
    return rng.permutation(np.append(masses / masses.sum(), np.zeros(zeros)))


def constraints_of(epsilon, share):
    """LDP, and total variation at a share of what it implies; 1 for none."""
    caps = [] if share == 1 else [TotalVariation(share * math.tanh(epsilon / 2))]
    return (LocalDP(epsilon), *caps)


def full_program(prior, epsilon, eta):
    """The optimum of the linear program over all 2^k patterns and all caps of pairs."""
    k = len(prior)
    inside = ((np.arange(2**k - 1)[:, None] >> np.arange(k)) & 1).T
    columns = np.where(inside == 1, 1.0, math.exp(-epsilon))
    mean = prior @ columns
    with np.errstate(divide="ignore"):
        worth = prior @ (columns * np.log(columns / mean))
    x, y = np.nonzero(~np.eye(k, dtype=bool))
    found = linprog(
        -worth,
        A_ub=np.maximum(columns[x] - columns[y], 0.0),
        b_ub=np.full(len(x), eta),
        A_eq=columns,
        b_eq=np.ones(k),
        method="highs",
    )
    return -found.fun


def least_numbers(groups, epsilon, eta):
    """The multipliers with the least bound, by a linear program over the orbits that is written here."""
    sizes, values, t = groups.sizes, groups.values, level_of(epsilon)
    c, whole = len(sizes), float(groups.values @ groups.sizes)
    left, right = np.nonzero(np.ones((c, c)) - np.diag(sizes == 1))
    paid, worth = [], []
    for number in range(orbit_count(sizes)):
        j = orbits(sizes, np.array([number]))[:, 0]
        a = float(values @ j) / whole
        ways = np.where(left == right, sizes[left] * (sizes[left] - 1), sizes[left] * sizes[right])
        paid.append(np.concatenate([t + j / sizes, j[left] * (sizes - j)[right] / ways]))
        worth.append(a * (t + 1) * math.log((t + 1) / (t + a)) + (1 - a) * t * math.log(t / (t + a)))
    cost = np.concatenate([np.ones(c), np.full(len(left), eta)])
    ends = [(None, None)] * c + [(0, None)] * len(left)
    found = linprog(cost, -np.array(paid), -np.array(worth), bounds=ends, method="highs")
    pairs = np.zeros((c, c))
    pairs[left, right] = np.maximum(found.x[c:], 0.0)
    return found.x[:c] + 1e-11 * sum(worth) / len(worth), pairs  # what a solver leaves unpaid


@pytest.mark.parametrize("sizes", GROUPS)
@pytest.mark.parametrize(("epsilon", "share"), [(0.2, 0.5), (1.0, 0.2), (1.0, 1.0), (3.0, 0.7)])
def test_the_least_bound_is_the_optimum_over_all_patterns(sizes, epsilon, share):
    """The best numbers prove the optimum of all 2^k patterns; drawn ones prove no less, in either arithmetic."""
    prior, constraints = prior_of(sizes), constraints_of(epsilon, share)
    best, groups = full_program(prior, epsilon, share * math.tanh(epsilon / 2)), Groups.from_prior(prior)
    rows, pairs = least_numbers(groups, epsilon, share * math.tanh(epsilon / 2))
    posed = MutualInformation(prior), constraints, None
    certificate = OrbitDual(*posed, groups.values, rows, pairs)
    assert best * (1 - 1e-9) <= certificate.proved(FLOAT) <= best * (1 + 1e-6)
    rng = np.random.default_rng(1)
    for factor in (1.0, 1 - 2.0**-20, 0.5, 2.0, 1e-300, 1e300):
        moved = rows * factor * rng.uniform(0.9, 1.1, len(rows)), pairs * rng.uniform(0.0, 1.5, pairs.shape)
        drawn = OrbitDual(*posed, groups.values, *moved)
        assert min(drawn.bound, drawn.bound_in(EXACT).value) >= best * (1 - 1e-9)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("sizes", GROUPS)
@pytest.mark.parametrize(("epsilon", "share"), [(1e-6, 0.3), (1.0, 1.0), (1.0, 0.2), (8.0, 0.9), (700.0, 0.4)])
def test_the_program_agrees_with_that_of_all_patterns(sizes, epsilon, share):
    """Values and bounds agree to 1e-7 with `PatternLP`, and the channel is within its constraints."""
    posed, constraints = MutualInformation(prior_of(sizes, 3, zeros=len(sizes) - 1)), constraints_of(epsilon, share)
    design = optimal_channel(posed, constraints, method=OrbitProgram())
    other = optimal_channel(posed, constraints, method=PatternLP())
    assert design.certified
    assert design.verify(exact=True)
    assert design.value == pytest.approx(other.value, rel=1e-7)
    assert design.upper_bound == pytest.approx(other.upper_bound, rel=1e-7)
    if share < 1:
        assert total_variation(design.channel).value <= constraints[1].eta


@pytest.mark.full(but=1)
@pytest.mark.parametrize("sizes", [(20, 20), (10, 10, 20), (10, 10, 10, 10)])
@pytest.mark.parametrize("share", [0.43, 1.0])
def test_forty_answers_are_certified(sizes, share):
    """At two to four probabilities the optimum is proved, by the method that is chosen."""
    design = optimal_channel(MutualInformation(prior_of(sizes)), constraints_of(1.0, share))
    assert isinstance(design.certificate, OrbitDual)
    assert design.certified
    assert design.relative_gap < 1e-9


@pytest.mark.full
def test_another_method_brackets_the_optimum():
    """`BalancedSets` proves nothing near this optimum, which lies between its value and its bound."""
    posed, constraints = MutualInformation(prior_of((10, 10, 20))), constraints_of(1.0, 0.43)
    design = optimal_channel(posed, constraints)
    other = optimal_channel(posed, constraints, method=BalancedSets())
    assert not other.certified
    assert other.value < design.value < other.upper_bound


def test_masses_that_differ_by_rounding_are_one_group():
    """The bound holds for the prior as it is, and costs no more than rounding."""
    prior = prior_of((3, 5, 4))
    moved = prior * (1 + 1e-15 * np.random.default_rng(2).normal(size=12))
    assert len(np.unique(moved)) > 4
    design = optimal_channel(MutualInformation(moved), constraints_of(1.0, 0.4), method=OrbitProgram())
    assert design.certified
    assert len(design.certificate.values) == 3
    read = parse_design(design_text(design))
    assert read.verify(exact=True)
    assert not ldpopt_check.check(json.loads(design_text(design))).failures


@pytest.mark.parametrize("seed", range(6))
def test_masses_may_be_rounded_up_to_few_values(seed):
    """At any prior, the bound for its masses rounded up is above the optimum, in the package and in the checker."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(6))
    values = np.sort(prior)[[2, 5]]
    epsilon, eta = 1.0, 0.25
    rows, pairs = least_numbers(Groups.rounded(prior, values), epsilon, eta)
    posed, constraints = MutualInformation(prior), (LocalDP(epsilon), TotalVariation(eta))
    bound = OrbitDual(posed, constraints, None, values, rows, pairs).proved(EXACT)
    assert full_program(prior, epsilon, eta) <= bound <= math.log(6) * 3


FORGED = [
    ({"values": [0.1, 0.3]}, "likelier"),
    ({"values": [0.4, 0.1, 0.5]}, "increase"),
    ({"values": [0.1, 0.1, 0.4]}, "increase"),
    ({"values": [-0.1, 0.1, 0.4]}, "no answers|likelier"),
    ({"values": [0.0, 0.1, 0.4]}, "likelier|no answers"),
    ({"values": [0.1, 0.2, 0.4]}, "no answers"),
    ({"values": [0.1, math.nan]}, "finite"),
    ({"values": [0.1, 0.2, 0.3, 0.4, 0.5]}, "groups"),
    ({"values": "many"}, "numbers"),
    ({"rows": [0.1]}, "shape"),
    ({"rows": [-1.0, 0.5]}, "worth something"),
    ({"rows": [0.0, 0.0], "pairs": [[0.0, 0.0], [0.0, 0.0]]}, "worth something"),
    ({"rows": [math.inf, 0.0]}, "finite"),
    ({"pairs": [[0.1, -0.1], [0.1, 0.1]]}, "non-negative"),
    ({"pairs": [0.1, 0.1]}, "shape"),
    ({"rows": None}, "numbers"),
]


@pytest.mark.parametrize(("change", "why"), FORGED)
@pytest.mark.parametrize("arithmetic", [FLOAT, EXACT])
def test_forged_numbers_prove_no_bound(change, why, arithmetic):
    """Wrong groups, shapes and prices are refused with a reason."""
    numbers = {"values": [0.1, 0.4], "rows": [0.05, 0.1], "pairs": [[0.1, 0.1], [0.1, 0.1]]} | change
    made = OrbitDual(MutualInformation([0.1, 0.4, 0.1, 0.4]), constraints_of(1.0, 0.4), None, **numbers)
    with pytest.raises(Unproved, match=why):
        made.proved(arithmetic)


def test_a_lone_answer_makes_no_pair():
    """The price of a group of one answer with itself neither pays for an orbit nor counts in the bound."""
    posed, constraints = MutualInformation([0.2, 0.4, 0.4]), constraints_of(1.0, 0.3)
    rows, pairs = least_numbers(Groups.from_prior(posed.prior), 1.0, constraints[1].eta)
    bound = OrbitDual(posed, constraints, None, np.array([0.2, 0.4]), rows, pairs).bound
    pairs[0, 0] = 1e3
    assert OrbitDual(posed, constraints, None, np.array([0.2, 0.4]), rows, pairs).bound == bound


def test_relabelled_answers_have_the_same_optimum():
    """The order of the answers, and answers without mass, change nothing."""
    prior, constraints = prior_of((6, 11)), constraints_of(1.0, 0.5)
    bounds = [
        optimal_channel(MutualInformation(each), constraints, method=OrbitProgram()).upper_bound
        for each in (prior, prior[::-1], np.append(0.0, np.sort(prior)))
    ]
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-11)


@pytest.mark.parametrize(
    ("prior", "why"),
    [
        (np.arange(1, 7) / 21, "up to 4 different"),
        (prior_of((60, 60, 60, 60)), "orbits"),
        (prior_of((900, 900)), "reports"),
    ],
)
def test_other_problems_are_refused(prior, why):
    """Many probabilities, too many orbits, or too many reports: the refusal says so."""
    with pytest.raises(InvalidInput, match=why):
        optimal_channel(MutualInformation(prior), constraints_of(1.0, 0.4), method=OrbitProgram())


def test_a_sum_of_two_mutual_informations_is_refused():
    """A sum of two is another utility."""
    both = WeightedSum([1.0, 1.0], [MutualInformation([0.3, 0.7]), MutualInformation([0.7, 0.3])])
    with pytest.raises(Unproved, match="is about"):
        OrbitDual(both, (LocalDP(1.0),), None, np.array([0.3, 0.7]), np.ones(2), np.zeros((2, 2))).proved(FLOAT)


@pytest.mark.parametrize(
    ("sizes", "inside"), [((4, 6), (1, 3)), ((5, 7, 1), (5, 3, 0)), ((3,), (0,)), ((2, 2), (2, 1))]
)
def test_rotations_that_go_together_hold_all_answers_alike(sizes, inside):
    """Every answer of a group is in equally many of at most as many sets as there are answers."""
    sets, weights = coupled_rotations(np.array(sizes), np.array(inside))
    assert len(sets) <= sum(sizes)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights @ sets, np.repeat(np.array(inside) / sizes, sizes), atol=1e-14)


@pytest.mark.parametrize("sizes", [(4, 6), (5, 7), (3, 3, 4), (1, 9)])
def test_few_sets_keep_the_distances_of_their_orbits(sizes):
    """At the cap that the orbits themselves keep, the weighed sets keep it, with the weights of the orbits."""
    rng, sizes = np.random.default_rng(5), np.array(sizes)
    listed = np.stack([np.maximum(sizes // 2, 1), np.minimum(sizes // 3 + 1, sizes)], axis=1)
    caps = separation_caps(sizes, 0.9)
    # Weights for which all groups have the same share, by another orbit for each group that lacks some.
    lack = (listed / sizes[:, None]).sum(axis=1).max() - (listed / sizes[:, None]).sum(axis=1)
    whole = sizes[:, None] * np.eye(len(sizes), dtype=int)[:, lack > 1e-12]
    every = np.hstack([listed, whole])
    weights = np.concatenate([np.ones(2), lack[lack > 1e-12]])
    cap = float((separations(every.astype(float), sizes, caps) @ weights).max())
    turning = best_turning(sizes, 10**6)
    sets, phi = weigh_spread_sets(turning, every, weights, cap * (1 + 1e-12), rng)
    assert phi.sum() == pytest.approx(weights.sum(), rel=1e-8)
    share = sets.T.astype(float) @ phi
    np.testing.assert_allclose(share, share[0], rtol=1e-8)
    apart = share[:, None] - (sets.T * phi) @ sets
    assert apart[~np.eye(len(share), dtype=bool)].max() <= cap * (1 + 1e-9)
