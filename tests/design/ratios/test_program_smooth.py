"""The interior-point method for divergences between rows, alone and beside other constraints."""

from functools import lru_cache

import numpy as np
import pytest

from ldpopt.design import Divergence, LocalDP, RenyiLDP, optimal_channel
from ldpopt.design.constraints.hockey_stick import approximate
from ldpopt.design.constraints.moment import Moment
from ldpopt.design.constraints.terms import Ratio, all_pairs
from ldpopt.design.ratios.program import label_program
from ldpopt.design.ratios.program_barrier import Pairs
from ldpopt.design.ratios.program_smooth import moment_program, smooth_program
from ldpopt.divergences import CHI_SQUARED, KL


def random_gains(k, n=4, seed=5):
    return np.random.default_rng(seed).normal(size=(n, k))


@pytest.mark.parametrize("program", [smooth_program, moment_program])
@pytest.mark.parametrize("order", [1.0, 1.0001, 1.2, 2.0, 8.0])
def test_the_optimum_is_that_of_the_cone_program(order, program):
    """Values agree with a cone solver's, the matrix is feasible, and the multipliers prove the value."""
    gains = random_gains(3)
    term = Moment(*all_pairs(3), order, 0.4)
    solved = program(gains, (term,))
    value = float((gains * solved.columns).sum())
    # Near order 1 cones lose the digits; order 1 itself is as near.
    cone = label_program(gains, (Moment(*all_pairs(3), 1.0 if order == 1.0001 else order, 0.4),)).value
    assert value == pytest.approx(cone, rel=3e-4 if order == 1.0001 else 1e-5)
    assert np.allclose(solved.columns.sum(axis=0), 1, atol=1e-8)
    assert term.excess(solved.columns.T).max() <= 1e-7 * term.cap
    t = solved.columns[:, term.left] / solved.columns[:, term.right]
    pair, label = np.tile(np.arange(6), 4), np.repeat(np.arange(4), 6)
    planes = np.stack([pair, label, t.ravel(), np.tile(solved.weights[0], 4)])
    reduced = gains - solved.rows - term.support(planes, 4, 3)
    assert reduced.max() <= 1e-7
    assert solved.rows.sum() + term.charge(planes) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize(
    "terms",
    [
        (Moment(*all_pairs(5), 2.0, 0.5), Ratio(0.8)),
        (Moment(*all_pairs(5), 2.0, 0.5), approximate(5, 0.0, 0.2)),
        (Moment(*all_pairs(5), 1.5, 0.5), Moment(*all_pairs(5), 4.0, 1.0), approximate(5, 0.5, 0.05), Ratio(1.5)),
        (approximate(5, 0.5, 0.05), approximate(5, 0.0, 0.3)),
        (Ratio(1.5),),
    ],
    ids=["ratio", "variation", "all", "sticks", "ratio alone"],
)
def test_other_constraints_beside_them_are_held(terms):
    """With pure and approximate LDP and total variation beside them: the value of the cone program, and its price."""
    gains = random_gains(5)
    solved = smooth_program(gains, terms)
    matrix = solved.columns.T
    value = float((gains * solved.columns).sum())
    assert value == pytest.approx(label_program(gains, terms).value, rel=1e-6)
    for term in terms:
        if isinstance(term, Ratio):
            assert (matrix.max(axis=0) / matrix.min(axis=0)).max() <= term.ratio * (1 + 1e-7)
        else:
            assert term.excess(matrix).max() <= 1e-7
    charged = sum(float((t.cap * w).sum()) for t, w in zip(terms, solved.weights, strict=True) if len(w))
    assert solved.rows.sum() + charged == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("cap", [1e-8, 1e-4, 1.0, 1e8])
def test_psi_keeps_its_digits_next_to_ratio_one(cap):
    """For order 2, psi(a, b) = (a - b)^2 / b exactly, also where a and b differ by little."""
    epsilon = float(np.log1p(cap))
    q = np.array([[1.0, 1.0 + 2.0**-30, 1.0 - 2.0**-12, 1.75]])
    term = Moment(*all_pairs(4), 2.0, epsilon)
    level, *_ = Pairs((term,), 4).psi(q)
    a, b = q[:, term.left], q[:, term.right]
    assert np.allclose(level * term.cap, (a - b) ** 2 / b, rtol=1e-12, atol=0)


@lru_cache
def designed(order, epsilon):
    """The best channel for three inputs."""
    return optimal_channel(Divergence(KL, *np.random.default_rng(6).dirichlet(np.ones(3), 2)), RenyiLDP(order, epsilon))


@pytest.mark.full
@pytest.mark.parametrize(("order", "epsilon"), [(2.0, 1e-4), (8.0, 20.0)])
def test_every_scale_of_epsilon_is_certified(order, epsilon):
    """From nearly useless channels to nearly free ones, three inputs are certified to 1e-6."""
    design = designed(order, epsilon)
    assert design.certified
    assert design.guarantees[0].value <= epsilon
    assert design.certificate.verify()


@pytest.mark.full
def test_small_epsilon_tends_to_its_limit():
    """As epsilon falls, the optimum under order 2 becomes proportional to it."""
    rates = [designed(2.0, epsilon).value / epsilon for epsilon in (1e-4, 1e-2)]
    assert rates[0] == pytest.approx(rates[1], rel=2e-2)


def test_many_binding_pairs_do_no_harm():
    """At eight inputs, where most pairs bind at once, order 1.1 is certified."""
    rng = np.random.default_rng(1)
    utility = Divergence(KL, rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8)))
    design = optimal_channel(utility, RenyiLDP(1.1, 0.5))
    assert design.guarantees[0].value <= 0.5
    assert design.relative_gap <= 1e-6
    assert design.certificate.verify()


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [400.0])
def test_pure_ldp_whose_ratio_has_no_square_in_floats_changes_nothing(epsilon):
    """e^400 is a float and e^800 is none: the design is that of the other constraint alone."""
    utility, constraint = Divergence(CHI_SQUARED, [0.4, 0.6], [0.6, 0.4]), RenyiLDP(2.0, 0.1)
    design = optimal_channel(utility, [LocalDP(epsilon), constraint])
    assert design.certified
    assert design.value == pytest.approx(optimal_channel(utility, constraint).value, rel=1e-7)
