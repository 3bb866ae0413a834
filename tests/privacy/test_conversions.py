import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import gaussian
from ldpopt.numbers.rounding import up
from ldpopt.privacy import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, FinitePair, Guarantee, PureDP, RenyiDP
from ldpopt.privacy import conversions as c
from ldpopt.privacy.least_divergence import largest_delta, least_divergence

EPSILONS = [1e-6, 0.1, 1.0, 3.0, 20.0]
ORDERS = np.concatenate([1 + np.geomspace(1e-6, 1, 40), np.geomspace(2.1, 500, 60)])


def gaussian_delta(mu, epsilon):
    """The exact delta of a mu-GDP Gaussian at epsilon."""
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_conversions_hold_for_randomized_response(epsilon):
    """Every bound for epsilon-DP holds for the pair that dominates all of it, and the tight ones are attained."""
    pair = FinitePair.of_parameters(epsilon)
    claim = PureDP(epsilon)
    assert c.pure_to_tv(claim).eta == pytest.approx(float(pair.hockey_stick(0.0)), rel=1e-9)
    curve = np.array([float(found) for found in pair.renyi(ORDERS)])
    for order, value in zip(ORDERS.tolist(), curve, strict=True):
        assert c.pure_to_renyi(claim, order).epsilon == pytest.approx(value, rel=1e-9)
    curve = np.array([found.lower for found in pair.renyi(ORDERS)])
    assert (curve <= c.pure_to_zcdp_sharp(claim).rho * ORDERS * (1 + 1e-9)).all()
    assert c.pure_to_zcdp_sharp(claim).rho <= c.pure_to_zcdp(claim).rho
    assert c.pure_to_renyi(claim, 1).epsilon == pytest.approx(c.pure_to_zcdp_sharp(claim).rho)
    assert c.pure_to_renyi(claim, math.inf).epsilon == pytest.approx(epsilon)
    assert c.pure_to_mcdp_sharp(claim).mu <= c.pure_to_mcdp(claim).mu * (1 + 1e-12)
    for delta in (0.0, 0.01 * epsilon / 20, 0.5 * math.tanh(epsilon / 2)):
        at = c.pure_to_approximate(claim, delta).epsilon
        assert float(pair.hockey_stick(at)) == pytest.approx(delta, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("order", [1 + 1e-9, 1.5, 8.0, 1e5])
def test_renyi_of_pure_agrees_with_fifty_digits(epsilon, order):
    """pure_to_renyi equals log(cosh((a - 1/2) eps)/cosh(eps/2))/(a - 1) in 50 digits, and is not below it."""
    with mpmath.workdps(50):
        e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
        exact = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
    found = c.pure_to_renyi(PureDP(epsilon), order).epsilon
    assert found == pytest.approx(float(exact), rel=1e-7)
    assert found >= float(exact) * (1 - 1e-15)


def test_zcdp_sup_is_at_order_one():
    """D_a / a of randomized response falls in a, so rho = eps tanh(eps/2) is the supremum (50 digits)."""
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        with mpmath.workdps(50):
            e = mpmath.mpf(epsilon)
            values = [
                mpmath.log(mpmath.cosh((a - mpmath.mpf(0.5)) * e) / mpmath.cosh(e / 2)) / (a - 1) / a
                for a in [1 + mpmath.mpf(10) ** -i for i in range(12, 0, -1)] + [mpmath.mpf(i) for i in range(2, 60)]
            ]
            assert all(later < earlier for earlier, later in itertools.pairwise(values))
            assert values[0] < e * mpmath.tanh(e / 2)


def test_conversions_agree_with_their_sources():
    """BS Prop 1.4, DR Thm 3.5 and GI Thm 2 as printed."""
    assert c.pure_to_zcdp(PureDP(2.0)) == ZCDP(0.0, up(2.0))
    assert c.pure_to_mcdp(PureDP(1.0)).mu == pytest.approx((math.e - 1) / 2)
    assert c.pure_to_mcdp(PureDP(1.0)).tau == 1.0
    assert c.approximate_to_tv(ApproximateDP(1.0, 0.1)).eta == pytest.approx(0.1 + 0.9 * math.tanh(0.5))
    assert c.tv_to_approximate(TV(0.3)) == ApproximateDP(0.0, 0.3)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8])
def test_conversions_to_approximate_dp_hold_for_the_gaussian(mu, delta):
    """Rényi, zCDP and mCDP claims of the Gaussian convert to (eps, delta) above its exact curve, sharp below plain."""
    rho = mu**2 / 2
    plain, sharp = c.zcdp_to_approximate(ZCDP(0, rho), delta), c.zcdp_to_approximate_sharp(ZCDP(0, rho), delta)
    assert gaussian_delta(mu, sharp.epsilon) <= delta
    assert sharp.epsilon <= plain.epsilon
    assert plain.epsilon == pytest.approx(rho + math.sqrt(4 * rho * math.log(1 / delta)))
    assert c.mcdp_to_zcdp(MCDP(rho, mu)).rho == pytest.approx(rho)
    assert c.mcdp_to_zcdp(MCDP(rho, mu)).xi == pytest.approx(0.0, abs=1e-13)
    for order in (1.5, 4.0, 40.0):
        claim = c.zcdp_to_renyi(ZCDP(0, rho), order)
        assert claim.epsilon == pytest.approx(rho * order)
        loose, tighter = c.renyi_to_approximate(claim, delta), c.renyi_to_approximate_sharp(claim, delta)
        assert tighter.epsilon <= loose.epsilon
        assert gaussian_delta(mu, tighter.epsilon) <= delta
    epsilon = sharp.epsilon
    assert c.zcdp_delta(ZCDP(0, rho), max(epsilon, rho)).delta >= gaussian_delta(mu, max(epsilon, rho))


def test_three_way_minimum_is_the_lemma():
    """BS Lemma 3.6: the third factor is the least, and the bound is its Gaussian tail (high precision)."""
    for rho, over in ((0.01, 0.3), (0.5, 2.0), (4.0, 9.0)):
        epsilon = rho + over
        with mpmath.workdps(40):
            r, u = mpmath.mpf(rho), mpmath.mpf(over) / (2 * mpmath.mpf(rho))
            factors = [
                1,
                mpmath.sqrt(mpmath.pi * r),
                1 / (1 + u),
                2 / (1 + u + mpmath.sqrt((1 + u) ** 2 + 4 / (mpmath.pi * r))),
            ]
            exact = mpmath.exp(-(mpmath.mpf(over) ** 2) / (4 * r)) * min(factors)
            assert min(factors) == factors[3]
        assert c.zcdp_delta(ZCDP(0, rho), epsilon).delta == pytest.approx(float(exact), rel=1e-11)
    assert c.zcdp_delta(ZCDP(0, 1.0), 0.5).delta == 1.0
    assert c.zcdp_delta(ZCDP(0.5, 0.0), 0.5).delta == 0.0


@pytest.mark.parametrize("order", [1.2, 10.0])
def test_the_sharp_renyi_conversion_holds_on_random_pairs(order):
    """CKS Prop 12 and M Prop 3 hold for the exact divergence and curve of arbitrary pairs."""
    rng = np.random.default_rng(int(order * 10))
    for _ in range(5):
        pair = FinitePair(*rng.dirichlet(np.ones(4) * 0.7, 2))
        claim = RenyiDP(order, float(pair.renyi(order)))
        for delta in (0.4, 0.01):
            sharp, closed = c.renyi_to_approximate_sharp(claim, delta), c.renyi_to_approximate_closed(claim, delta)
            assert pair.hockey_stick(sharp.epsilon).lower <= delta
            assert sharp.epsilon <= closed.epsilon


def test_approximate_zcdp_converts_both_ways():
    """BS Prop 1.13 and Lemma 8.8: to delta-approximate eps^2/2-zCDP and back, above the dominating pair's curve."""
    claim = ApproximateDP(0.5, 1e-3)
    made = c.approximate_to_approximate_zcdp(claim)
    assert (made.delta, made.rho) == (1e-3, pytest.approx(0.125))
    assert c.approximate_to_approximate_zcdp_sharp(claim).rho == pytest.approx(0.5 * math.tanh(0.25))
    pair = FinitePair.of_parameters(0.5, 1e-3)
    for epsilon in (0.2, 0.4):
        back = c.approximate_zcdp_to_approximate(made, epsilon)
        assert back.delta >= float(pair.hockey_stick(epsilon))
    for delta in (2e-3, 0.1):
        inner = c.approximate_zcdp_to_epsilon(made, delta)
        assert float(pair.hockey_stick(inner.epsilon)) <= delta
    assert math.isinf(c.approximate_zcdp_to_epsilon(made, 1e-3).epsilon)
    assert c.approximate_zcdp_to_epsilon(ApproximateZCDP(1e-3, 0.5, 0.0), 1e-3).epsilon == pytest.approx(0.5)


def test_the_conversion_of_a_curve_to_zcdp_is_sound():
    """BS Lemma 3.7 is sound on the Gaussian: (rho + sqrt(4 rho log(1/delta)), delta) for all delta."""
    rho = 0.2
    claim = c.approximate_curve_to_zcdp(rho, 4 * rho)
    assert claim.rho == pytest.approx(rho)
    assert claim.xi == pytest.approx(rho - rho + 5 * (4 * rho) ** 0.25)
    assert (claim.xi + claim.rho * ORDERS >= rho * ORDERS).all()
    with pytest.raises(InvalidInput):
        c.approximate_curve_to_zcdp(0.1, 1.5)


def test_mcdp_and_zcdp_convert_both_ways():
    """BS Lemma 4.2 is tight for randomized response; Lemma 4.3 gives the mean and claims no tau."""
    epsilon = 1.3
    mu = epsilon * math.tanh(epsilon / 2)
    made = c.mcdp_to_zcdp(MCDP(mu, math.sqrt(2 * mu)))
    assert made.rho == pytest.approx(mu)
    assert made.xi == pytest.approx(0.0, abs=1e-12)
    back = c.zcdp_to_mcdp_mean(ZCDP(0.1, mu))
    assert (back.order, back.epsilon) == (1.0, pytest.approx(0.1 + mu))
    assert math.isinf(c.mcdp_to_zcdp(MCDP(math.inf, 1.0)).xi)


def test_guarantees_are_taken_and_claims_say_their_worth():
    """A measured guarantee converts like its claim; results say whether they are tight and why."""
    measured = Guarantee("local_dp", 1.0, 1.0, None, True, "[GI, Def 6]")
    made = c.pure_to_tv(measured)
    assert made == c.pure_to_tv(PureDP(1.0))
    assert made.tight is True
    assert "GI, Prop 2" in repr(made)
    assert c.pure_to_zcdp(measured).tight is False
    assert PureDP(1.0).tight is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: c.pure_to_tv(TV(0.1)),
        lambda: c.pure_to_renyi(PureDP(1.0), 0.5),
        lambda: c.renyi_to_approximate(RenyiDP(2, 1), 0.0),
        lambda: c.zcdp_to_approximate(ZCDP(0, 1), 1.5),
        lambda: c.zcdp_delta(ZCDP(0, 1), -1.0),
        lambda: PureDP(-1.0),
        lambda: PureDP("a"),
        lambda: PureDP(math.nan),
        lambda: RenyiDP(0.5, 1.0),
        lambda: ApproximateDP(1.0, 1.5),
        lambda: ZCDP(-2.0, 1.0),
        lambda: TV(2.0),
    ],
)
def test_wrong_notions_and_numbers_out_of_range_are_refused(call):
    """Wrong notions and numbers outside their ranges are refused."""
    with pytest.raises(InvalidInput, match="expected"):
        call()


def test_extreme_claims_convert_to_their_limits():
    """Infinite claims stay infinite, order one converts to nothing, all delta to zero."""
    assert math.isinf(c.renyi_to_approximate(RenyiDP(1, 0.1), 0.1).epsilon)
    assert math.isinf(c.renyi_to_approximate_sharp(RenyiDP(1, 0.1), 0.1).epsilon)
    assert c.renyi_to_approximate_sharp(RenyiDP(math.inf, 0.5), 0.1).epsilon == pytest.approx(0.5)
    assert math.isinf(c.pure_to_mcdp(PureDP(800.0)).mu)
    assert math.isinf(c.zcdp_to_approximate_sharp(ZCDP(0, math.inf), 0.1).epsilon)
    assert c.pure_to_approximate(PureDP(1.0), 1.0).epsilon == 0.0
    assert math.isinf(c.zcdp_to_renyi(ZCDP(0.1, 1.0), math.inf).epsilon)


def test_no_total_variation_exceeds_one():
    """However large epsilon is, two laws are at most one apart."""
    for epsilon in (38.0, 700.0, math.inf):
        assert c.pure_to_tv(PureDP(epsilon)).eta == 1.0


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-50, 1e-12, 1e-3, 0.05, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("xi", [0.0, 0.5])
def test_the_three_way_bound_is_sharp_and_below_the_closed_form(rho, delta, xi):
    """A little below the sharp epsilon the three-way bound still exceeds delta [BS, Lemma 3.6; CKS, Prop 12]."""
    found = c.zcdp_to_approximate_sharp(ZCDP(xi, rho), delta).epsilon
    assert 0 <= found <= c.zcdp_to_approximate(ZCDP(xi, rho), delta).epsilon
    assert c.zcdp_delta(ZCDP(xi, rho), found * (1 - 1e-8)).delta >= delta * (1 - 1e-12)


def best_over_orders(xi, rho, epsilon):
    """The least delta of [CKS, Prop 12] over a fine grid of orders."""
    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(k) / 40) for k in range(-160, 320)]
    return min(mpmath.exp((a - 1) * (xi + a * rho - epsilon)) / a * (1 - 1 / a) ** (a - 1) for a in orders)


SETTINGS = [(1 / 32, 0.0), (0.1, 2.0), (0.5, 5.0), (1e-4, 0.01), (10.0, 3.0), (1e-8, 1e-3)]
CONVERTED = [(2.0, 0.0, 0.5), (1.01, 0.1, 0.2), (40.0, 1.0, 1.5), (3.0, 9.0, 2.0)]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("rho", "epsilon"), SETTINGS)
def test_the_sharp_delta_lies_between_the_gaussian_and_the_closed_form(rho, epsilon):
    """Gaussian noise of this rho is a lower bound; the best order of the closed form and [BS, Lemma 3.6] are above."""
    claim = ZCDP(0.0, rho)
    found = c.zcdp_delta_sharp(claim, epsilon).delta
    with mpmath.workdps(40):
        closed = best_over_orders(0, mpmath.mpf(rho), mpmath.mpf(epsilon))
    assert gaussian(1 / math.sqrt(2 * rho)).pair.hockey_stick(epsilon).lower <= found
    assert found <= min(1.0, float(closed) * (1 + 1e-3))
    assert found <= c.zcdp_delta(claim, epsilon).delta
    assert c.zcdp_to_approximate_sharp(claim, found).epsilon >= epsilon * (1 - 1e-7) or found < 1e-12


@pytest.mark.full
def test_the_sharp_delta_at_its_ends():
    """At epsilon 0 and sigma 4: 0.1248, where the closed form gives 0.1508; rho = 0 is pure; infinite claims give 1."""
    assert c.zcdp_delta_sharp(ZCDP(0.0, 1 / 32), 0.0).delta == pytest.approx(0.12478, abs=1e-5)
    with mpmath.workdps(40):
        assert float(best_over_orders(0, mpmath.mpf(1) / 32, 0)) == pytest.approx(0.1508, abs=1e-4)
    assert c.zcdp_delta_sharp(ZCDP(0.5, 0.0), 0.5).delta == 0.0
    assert c.zcdp_delta_sharp(ZCDP(1.0, 0.0), 0.0).delta == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert c.zcdp_delta_sharp(ZCDP(0.0, math.inf), 3.0).delta == 1.0
    assert c.zcdp_delta_sharp(ZCDP(-0.05, 0.1), 1.0).delta <= c.zcdp_delta_sharp(ZCDP(0.0, 0.1), 1.0).delta
    outer = c.approximate_zcdp_to_approximate_sharp(ApproximateZCDP(1e-6, 0.0, 0.1), 2.0).delta
    assert outer <= c.approximate_zcdp_to_approximate(ApproximateZCDP(1e-6, 0.0, 0.1), 2.0).delta
    with pytest.raises(InvalidInput, match="epsilon"):
        c.zcdp_delta_sharp(ZCDP(0.0, 1.0), -1.0)


@pytest.mark.parametrize(("order", "epsilon", "divergence"), CONVERTED)
def test_the_largest_delta_of_one_order_is_the_inverse(order, epsilon, divergence):
    """At the delta found, the least divergence is the one given, from above."""
    delta = largest_delta(order, epsilon, divergence)
    assert least_divergence(order, epsilon, delta) >= divergence
    assert least_divergence(order, epsilon, delta * (1 - 1e-9)) < divergence
