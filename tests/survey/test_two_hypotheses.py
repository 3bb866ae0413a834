""""""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import chernoff_exponent, neyman_pearson_power, respondents_to_distinguish, stein_exponent
from ldpopt_survey.hypothesis_tests import compositions, log_multinomial

Q = Channel([[0.75, 0.25], [0.25, 0.75]])
P0, P1 = [0.8, 0.2], [0.3, 0.7]


def test_stein_exponent_is_the_divergence_of_the_marginals():
    """The exponent is KL of the marginals of the reports."""
    m0, m1 = Q.push(P0), Q.push(P1)
    assert np.isclose(stein_exponent(Q, P0, P1), np.sum(m0 * np.log(m0 / m1)))
    assert stein_exponent(Q, P0, P0) == 0


def test_best_power_approaches_the_stein_exponent():
    """-log(1 - power) / n tends to the Chernoff-Stein exponent, with an error of order 1/sqrt(n)."""
    want = stein_exponent(Q, P0, P1)
    rates = [-np.log1p(-float(neyman_pearson_power(Q, P0, P1, n, 0.5))) / n for n in (20, 80, 200)]
    errors = np.abs(np.array(rates) - want)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.12 * want


def test_chernoff_exponent_is_the_best_power_mean():
    rng = np.random.default_rng(101)
    for _ in range(10):
        q = Channel(rng.dirichlet(np.ones(4), size=3))
        p0, p1 = rng.dirichlet(np.ones(3), size=2)
        m0, m1 = q.push(p0), q.push(p1)
        grid = np.linspace(0, 1, 20001)[:, None]
        want = -np.log((m0**grid * m1 ** (1 - grid)).sum(axis=1).min())
        assert np.isclose(chernoff_exponent(q, p0, p1), want, atol=1e-8)
        assert np.isclose(chernoff_exponent(q, p0, p1), chernoff_exponent(q, p1, p0))
        assert chernoff_exponent(q, p0, p1) <= min(stein_exponent(q, p0, p1), stein_exponent(q, p1, p0))


def test_chernoff_exponent_keeps_its_digits_between_near_hypotheses():
    """For hypotheses that differ by d the exponent is chi-squared / 8 to first order, down to d = 1e-6."""
    d = 1e-6
    made = chernoff_exponent(Q, [0.5 + d, 0.5 - d], [0.5, 0.5])
    assert np.isclose(made, (d / 2) ** 2 * 4 / 8, rtol=1e-3)


def test_disjoint_supports_have_an_infinite_exponent():
    assert chernoff_exponent(np.eye(2), [1, 0], [0, 1]) == np.inf
    assert stein_exponent(np.eye(2), [1, 0], [0, 1]) == np.inf
    assert float(neyman_pearson_power(np.eye(2), [1, 0], [0, 1], 3)) == 1


def test_neyman_pearson_power_of_a_binary_report():
    """For a binary report the best test is randomised at a binomial threshold."""
    n, level = 23, 0.05
    a, b = Q.push(P0)[1], Q.push(P1)[1]
    at = int(binom.isf(level, n, a))
    left = (level - binom.sf(at, n, a)) / binom.pmf(at, n, a)
    want = binom.sf(at, n, b) + left * binom.pmf(at, n, b)
    assert np.isclose(float(neyman_pearson_power(Q, P0, P1, n, level)), want, rtol=1e-10)


def test_no_test_beats_neyman_pearson():
    """A linear program over all randomised tests finds the same power."""
    q = Channel([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    rows = compositions(6, 3)
    mass0, mass1 = (np.exp(log_multinomial(rows, q.push(p))) for p in (P0, P1))
    best = linprog(-mass1, A_ub=mass0[None], b_ub=[0.1], bounds=(0, 1))
    assert np.isclose(float(neyman_pearson_power(q, P0, P1, 6, 0.1)), -best.fun, atol=1e-9)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="count tables"):
        neyman_pearson_power(np.full((2, 4), 0.25), [1, 0], [0, 1], 10_000)
    with pytest.raises(InvalidInput, match="2 entries"):
        stein_exponent(Q, [1.0], [1.0])


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_the_exact_number_of_respondents_is_the_fewest(level):
    """An exact number gives the best test its power, and one fewer does not [CT, Thm 11.7.1]."""
    rng = np.random.default_rng(7)
    seen = 0
    for _ in range(12):
        q, (p0, p1) = Channel(rng.dirichlet(np.ones(3), size=4)), rng.dirichlet(np.ones(4), size=2)
        found = respondents_to_distinguish(q, p0, p1, 0.9, level)
        if not found.exact or found.respondents > 60:
            continue
        seen += 1
        assert float(neyman_pearson_power(q, p0, p1, found.respondents, level)) >= 0.9
        if found.respondents > 1:
            assert float(neyman_pearson_power(q, p0, p1, found.respondents - 1, level)) < 0.9
    assert seen >= 3


def test_many_respondents_are_counted_nearly():
    """Where tables are too many to list, the simulated power of the best test is the power asked for, to a percent."""
    rng = np.random.default_rng(8)
    q, p0, p1 = Channel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]]), [0.5, 0.3, 0.2], [0.42, 0.32, 0.26]
    found = respondents_to_distinguish(q, p0, p1, 0.8, 0.05)
    assert not found.exact
    m0, m1 = q.push(p0), q.push(p1)
    nulls, truths = (rng.multinomial(found.respondents, m, 200_000) @ np.log(m1 / m0) for m in (m0, m1))
    assert abs(np.mean(truths > np.quantile(nulls, 0.95)) - 0.8) < 0.01


def test_equal_reports_are_never_distinguished():
    """For populations with the same reports no number of respondents is enough, which the error states."""
    with pytest.raises(InvalidInput, match="the same reports"):
        respondents_to_distinguish(Q, P0, P0)
    for ulps in (0, 1):  # one report, whose law sums to one but for rounding
        with pytest.raises(InvalidInput, match="the same reports"):
            respondents_to_distinguish(np.array([[1.0], [1.0 - ulps * 2.0**-53]]), [0.3, 0.7], [0.5, 0.5])


def test_disjoint_populations_take_few():
    """A report that is possible from one population alone makes the ratio infinite; the number stays enough."""
    assert respondents_to_distinguish(np.eye(2), [1, 0], [0, 1]).respondents == 1
    many = np.eye(6)
    p0, p1 = np.array([0.0, 0.2, 0.2, 0.2, 0.2, 0.2]), np.array([0.01, 0.2, 0.2, 0.2, 0.2, 0.19])
    found = respondents_to_distinguish(many, p0, p1, 0.8, 0.05)
    merged = [p0[0], p0[1:5].sum(), p0[5]], [p1[0], p1[1:5].sum(), p1[5]]
    if not found.exact:
        assert float(neyman_pearson_power(np.eye(3), *merged, min(found.respondents, 600), 0.05)) >= 0.8
