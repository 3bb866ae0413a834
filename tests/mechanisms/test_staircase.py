""""""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import FinitePair, Staircase, dominating_pair, staircase
from ldpopt.privacy import local_dp, total_variation


def renyi(p, q, order):
    """Independent of the package: the definition, on the common support."""
    p, q = p[p > 0], q[p > 0]
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return float(np.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


@pytest.mark.parametrize(
    ("epsilon", "delta", "eta"), [(1.0, 0.0, 0.3), (0.3, 0.05, 0.1), (2.0, 0.2, 0.2), (1.0, 0.0, math.tanh(0.5))]
)
def test_entries_are_those_of_equation_7(epsilon, delta, eta):
    """The five points, with alpha = 1 - (eta - delta)(1 + e)/((1 - delta)(e - 1)), and p reversed."""
    e = math.exp(epsilon)
    alpha = 1 - (eta - delta) * (1 + e) / ((1 - delta) * (e - 1))
    rest = (1 - delta) * (1 - alpha)
    pair = dominating_pair(epsilon, delta, eta)
    expected = [delta, rest * e / (1 + e), alpha * (1 - delta), rest / (1 + e), 0]
    np.testing.assert_allclose(pair.p, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(pair.q, pair.p[::-1])


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("share", [1e-6, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.2])
def test_floats_dominate(epsilon, share, delta):
    """The float64 pair is no more private than it says: at 0 and epsilon its hockey sticks reach eta and delta."""
    eta = delta + (1 - delta) * share * math.tanh(epsilon / 2)
    pair = dominating_pair(epsilon, delta, eta)
    p, q = pair.p, pair.q
    assert eta * (1 - 1e-15) <= np.maximum(p - q, 0).sum() <= eta + 5e-13
    reached = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    assert delta - 1e-16 <= reached <= delta + 1e-12 * (1 + math.exp(epsilon))
    if delta == 0:
        assert epsilon <= float(local_dp(pair.channel)) <= epsilon + 1e-13 * (1 + epsilon)
        assert local_dp(pair.channel).lower >= epsilon


def test_kl_is_epsilon_times_eta():
    """With delta = 0 the KL divergence of the pair is exactly epsilon eta."""
    for epsilon, eta in ((1.0, 0.3), (0.2, 0.05), (4.0, 0.9)):
        pair = dominating_pair(epsilon, 0, eta)
        assert renyi(pair.p, pair.q, 1) == pytest.approx(epsilon * eta, rel=1e-12)


@pytest.mark.parametrize(
    ("erasure", "rho", "interior"), [(0.3, 0.323482, False), (0.9, 0.082192, True), (0.0, 0.462117, False)]
)
def test_rho_exceeds_epsilon_eta_only_when_much_is_erased(erasure, rho, interior):
    """sup of D/order is epsilon eta while little is erased, and more, at an interior order, when much is."""
    eta = (1 - erasure) * math.tanh(0.5)
    pair = dominating_pair(1.0, 0.0, eta)
    found = minimize_scalar(lambda a: -renyi(pair.p, pair.q, a) / a, bounds=(1 + 1e-9, 60), method="bounded")
    value = max(-found.fun, renyi(pair.p, pair.q, 1))
    assert value == pytest.approx(rho, abs=1e-6)
    assert (value > eta + 1e-3) == interior


def test_a_cap_that_does_not_bind_is_ignored():
    """eta above its largest value for (epsilon, delta) changes nothing; delta above eta is eta."""
    np.testing.assert_allclose(
        dominating_pair(1.0, 0.1, 0.99).p, dominating_pair(1.0, 0.1, 0.1 + 0.9 * math.tanh(0.5)).p, rtol=0, atol=1e-13
    )
    pair = dominating_pair(1.0, 0.3, 0.2)
    np.testing.assert_allclose(pair.p, [0.2, 0, 0.8, 0, 0], rtol=0, atol=1e-13)
    assert dominating_pair(1.0, 1.0, 1.0).p.tolist() == [1, 0, 0, 0, 0]
    assert float(total_variation(dominating_pair(1.0, 0.0, 0.0).channel)) <= 1e-14


def test_pairs_compare_by_their_distributions_and_are_frozen():
    """Pairs compare and hash by their distributions, and are frozen."""
    pair = FinitePair([0.5, 0.5], [0.25, 0.75])
    assert pair == FinitePair(np.array([0.5, 0.5]), [0.25, 0.75])
    assert hash(pair) == hash(FinitePair([0.5, 0.5], [0.25, 0.75]))
    assert pair != FinitePair([0.5, 0.5], [0.75, 0.25])
    with pytest.raises(AttributeError):
        pair.p = pair.q


def test_bad_input_is_refused():
    """Distributions of one length; epsilon positive; delta and eta in [0, 1]."""
    with pytest.raises(InvalidInput, match="q: expected 2 entries"):
        FinitePair([0.5, 0.5], [1.0])
    with pytest.raises(InvalidInput, match="epsilon"):
        dominating_pair(0.0)
    with pytest.raises(InvalidInput, match="delta"):
        dominating_pair(1.0, -0.1)
    with pytest.raises(InvalidInput, match="eta"):
        dominating_pair(1.0, 0.1, 1.5)


CASES = [(e, g, d) for e in (0.3, 1.0, 4.0) for g in (0.0, 0.0139, 0.3, 0.5, 0.7, 1.0) for d in (1.0, 2.5)]


def steps(m, shift=0.0):
    """Edges at which the noise, or the noise moved by `shift`, jumps, and the middles of the pieces between."""
    count = math.ceil(45 / m.epsilon)
    whole = m.sensitivity * np.arange(-count, count + 1)
    jumps = np.concatenate([whole, whole + m.gamma * m.sensitivity, whole - m.gamma * m.sensitivity])
    edges = np.unique(np.round(np.concatenate([jumps, jumps + shift]), 12))
    return np.diff(edges), (edges[:-1] + edges[1:]) / 2


@pytest.mark.parametrize(("epsilon", "gamma", "sensitivity"), CASES)
def test_eta_is_the_sum_over_steps(epsilon, gamma, sensitivity):
    """The formulas of [GI, section VI-C] for all gamma in [0, 1] are the total variation of the two densities."""
    m = staircase(epsilon, gamma, sensitivity)
    width, middle = steps(m, sensitivity)
    p, q = m.density(middle), m.density(middle - sensitivity)
    assert (width * p).sum() == pytest.approx(1, abs=1e-11)
    assert m.eta == pytest.approx((width * np.maximum(p - q, 0)).sum(), abs=1e-11)


@pytest.mark.parametrize(("epsilon", "gamma", "sensitivity"), CASES[::3])
def test_meets_the_region_exactly(epsilon, gamma, sensitivity):
    """At `sensitivity` apart every hockey stick is that of the (epsilon, eta) pair; closer, none is larger."""
    m = staircase(epsilon, gamma, sensitivity)
    assert m.pair == dominating_pair(epsilon, 0.0, m.eta)
    for part in (1.0, 0.6, 0.1):
        width, middle = steps(m, part * sensitivity)
        p, q = m.density(middle), m.density(middle - part * sensitivity)
        for t in (0.0, epsilon / 3, 0.9 * epsilon, 1.1 * epsilon):
            noise = (width * np.maximum(p - math.exp(t) * q, 0)).sum()
            pair = np.maximum(m.pair.p - math.exp(t) * m.pair.q, 0).sum()
            assert noise <= pair + 1e-11
            if part == 1:
                assert noise == pytest.approx(pair, abs=1e-11)


@pytest.mark.parametrize(("epsilon", "gamma", "sensitivity"), CASES)
def test_variance_is_the_sum_over_steps(epsilon, gamma, sensitivity):
    """The closed form of the variance is the sum over steps of density times width times mean square."""
    m = staircase(epsilon, gamma, sensitivity)
    width, middle = steps(m)
    direct = (width * m.density(middle) * (middle**2 + width**2 / 12)).sum()
    assert m.variance == pytest.approx(direct, rel=1e-10)


def test_gamma_of_0_0139_corresponds_to_an_erasure_of_0_3():
    """gamma = 0.0139 at epsilon = 1 corresponds to an erasure of about 0.3 [GI, section VI-C]."""
    assert 1 - staircase(1.0, 0.0139).eta / math.tanh(0.5) == pytest.approx(0.3, abs=2e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_both_branches_of_eta_are_inverted(epsilon):
    """Both branches of eta(gamma) are inverted, over the whole range [(1 - e^-epsilon)/2, tanh(epsilon/2)]."""
    lowest, highest = -math.expm1(-epsilon) / 2, math.tanh(epsilon / 2)
    for share in (0.0, 0.1, 0.5, 0.99, 1.0):
        eta = lowest + share * (highest - lowest)
        below, above = Staircase.for_total_variation(epsilon, eta, 2.0)
        assert below.gamma <= 0.5 <= above.gamma
        assert below.eta == pytest.approx(eta, rel=1e-12)
        assert above.eta == pytest.approx(eta, rel=1e-12)
        assert (below.sensitivity, above.sensitivity) == (2.0, 2.0)
    for gamma in (0.05, 0.4):
        assert Staircase.for_total_variation(epsilon, staircase(epsilon, gamma).eta)[0].gamma == pytest.approx(gamma)
        high = Staircase.for_total_variation(epsilon, staircase(epsilon, 1 - gamma).eta)[1]
        assert high.gamma == pytest.approx(1 - gamma)


def test_the_moment_generating_function_agrees_with_quadrature():
    """log E exp(a Y) by quadrature, and infinite from a = epsilon/sensitivity on."""
    m = staircase(1.0, 0.3, 2.0)
    width, middle = steps(m)
    edges = list(zip(middle - width / 2, middle + width / 2, strict=True))
    for a in (0.0, 1e-3, 0.1, 0.2):
        direct = sum(
            m.density(x) * quad(lambda y, a=a: math.exp(a * y), *e)[0] for x, e in zip(middle, edges, strict=True)
        )
        assert m.log_mgf(a) == pytest.approx(math.log(direct), rel=1e-7, abs=1e-12)
        assert m.log_mgf(-a) == m.log_mgf(a)
    assert m.log_mgf(0.5) == math.inf


@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.5, 1.0])
def test_the_bracket_of_restricted_kl_encloses_a_scan(gamma):
    """The bracket holds a scan of a D - log E exp(a Y), and lies below the unrestricted KL divergence epsilon eta."""
    m = staircase(1.5, gamma, 2.0)
    scan = max(a * 2.0 - m.log_mgf(a) for a in np.linspace(0, 0.75, 4001)[:-1])
    guarantee = m.restricted_kl()
    assert guarantee.lower <= guarantee.value <= 1.5 * m.eta
    assert scan <= guarantee.value
    assert guarantee.lower == pytest.approx(scan, rel=1e-6)
    assert guarantee.value / guarantee.lower - 1 < 1e-8


def test_sample_follows_the_density():
    """Simulated noise has the stated variance and falls on the first step as often as it should (seed 3)."""
    m, n = staircase(1.0, 0.3, 2.0), 40_000
    noise = m.sample(np.full(n, 5.0), np.random.default_rng(3)) - 5
    assert np.var(noise) == pytest.approx(m.variance, rel=0.06)
    inside = 2 * 0.6 * m.height
    assert np.mean(np.abs(noise) < 0.6) == pytest.approx(inside, abs=5 * math.sqrt(inside * (1 - inside) / n))
    assert abs(np.mean(noise)) <= 5 * math.sqrt(m.variance / n)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: staircase(1.0, 1.5), "gamma: expected a number in"),
        (lambda: staircase(1.0, -0.1), "gamma"),
        (lambda: staircase(1.0, 0.5, -1.0), "sensitivity"),
        (lambda: Staircase.for_total_variation(1.0, 0.5), "eta: expected a number in"),
        (lambda: Staircase.for_total_variation(1.0, 0.3), "eta"),
        (lambda: staircase(1e-4, 0.5).restricted_renyi(2), "epsilon of a staircase: expected at least 0.0023"),
    ],
)
def test_bad_input_is_refused_of_staircase(call, message):
    """gamma in [0, 1]; eta within reach of the staircase."""
    with pytest.raises(InvalidInput, match=message):
        call()
