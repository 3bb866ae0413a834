import math

import numpy as np
import pytest
from mpmath import mp

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import ContinuousPair, GaussianPair, LaplacePair
from ldpopt.mechanisms.continuous_pair import expm2


def quadrature(pair):
    """The same pair with every closed form taken away."""
    return ContinuousPair(pair.log_p, pair.log_q, pair.edges, pair.epsilon)


PAIRS = [LaplacePair(0.1), LaplacePair(1.0), LaplacePair(4.0), GaussianPair(0.2), GaussianPair(1.5)]


def overlap(a, b):
    """Two guarantees that can both be true."""
    return a.lower <= b.value and b.lower <= a.value


@pytest.mark.full
@pytest.mark.parametrize("pair", [pair for pair in reversed(PAIRS) if pair.epsilon != 1.0], ids=repr)
def test_every_closed_form_agrees_with_quadrature(pair):
    """Total variation, hockey stick, Rényi and the trade-off curve: closed form and quadrature bracket one value."""
    plain = quadrature(pair)
    assert overlap(pair.total_variation(), plain.total_variation())
    for epsilon in (-0.7, 0.0, 3.0):
        assert overlap(pair.hockey_stick(epsilon), plain.hockey_stick(epsilon))
        assert pair.hockey_stick(epsilon).value == pytest.approx(plain.hockey_stick(epsilon).value, rel=1e-8, abs=1e-14)
    for order in (1.0, 1.0001, 7.0):
        assert overlap(pair.renyi(order), plain.renyi(order))
        assert pair.renyi(order).value == pytest.approx(plain.renyi(order).value, rel=1e-8)
    rates = np.array([0.001, 0.3, 1.0])
    np.testing.assert_allclose(pair.trade_off_at(rates), plain.trade_off_at(rates), rtol=0, atol=3e-8)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_cumulants_agree_with_quadrature(pair):
    """The centred cumulant of the privacy loss, at both signs and through the removable singularity at -1/2."""
    for s in (-4.0, -1.0, -0.6, -0.5, -0.4, -0.2, -1e-4, 1e-6, 0.01, 0.9, 5.0):
        low, high = pair.cumulant(s)
        other = quadrature(pair).cumulant(s)
        assert low <= other[1]
        assert other[0] <= high
        assert high == pytest.approx(other[1], rel=1e-7)
        assert high - low <= 1e-6 * high


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_laplace_agrees_with_fifty_digits(epsilon):
    """Laplace: TV = 1 - e^(-epsilon/2); Rényi as in [M, Table II]; KL = epsilon - 1 + e^-epsilon (50 digits)."""
    mp.dps = 50
    e, pair = mp.mpf(epsilon), LaplacePair(epsilon)
    truth = {pair.total_variation(): 1 - mp.exp(-e / 2), pair.renyi(1): e - 1 + mp.exp(-e), pair.renyi(math.inf): e}
    for order in (1.01, 2.0, 30.0, 1000.0):
        a = mp.mpf(order)
        moment = a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
        truth[pair.renyi(order)] = mp.log(moment) / (a - 1)
    for epsilon_at in (0.01, epsilon / 2, 2 * epsilon):
        truth[pair.hockey_stick(epsilon_at)] = max(1 - mp.exp((mp.mpf(epsilon_at) - e) / 2), mp.mpf(0))
    for guarantee, value in truth.items():
        assert guarantee.lower <= value <= guarantee.value
        assert guarantee.value - guarantee.lower <= 1e-11 * guarantee.value


@pytest.mark.parametrize("mu", [0.01, 1.0, 6.0])
def test_gaussian_agrees_with_fifty_digits(mu):
    """Gaussian: delta(t) = Phi(-t/mu + mu/2) - e^t Phi(-t/mu - mu/2), far tails included; Rényi order mu^2/2."""
    mp.dps = 50
    m, pair = mp.mpf(mu), GaussianPair(mu)
    for t in (0.0, 1e-3, 0.5, 2.0, 30.0):
        x = mp.mpf(t)
        value = mp.ncdf(-x / m + m / 2) - mp.exp(x) * mp.ncdf(-x / m - m / 2)
        guarantee = pair.hockey_stick(t)
        assert guarantee.lower <= value + mp.mpf(10) ** -320
        assert guarantee.value >= value - mp.mpf(10) ** -320
        assert guarantee.value <= float(value) * (1 + 1e-8) + 1e-300
    for order in (1.0, 2.5, 40.0):
        assert pair.renyi(order).lower <= order * m**2 / 2 <= pair.renyi(order).value
    assert pair.renyi(math.inf).value == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_concentration_of_laplace_agrees_with_a_scan(epsilon):
    """rho is the KL divergence (attained as the order falls to 1); mu too; tau is found by a fine scan in between."""
    pair = LaplacePair(epsilon)
    kl = epsilon - 1 + math.exp(-epsilon)
    zcdp, mcdp = pair.zcdp(), pair.mcdp()
    orders = 1 + np.geomspace(1e-6, 1e3, 400)
    scan = max(pair.renyi(order).value / order for order in orders)
    assert zcdp.lower <= max(scan, kl) * (1 + 1e-12)
    assert scan <= zcdp.value * (1 + 1e-9)
    assert zcdp.value == pytest.approx(kl, rel=1e-8)
    assert mcdp.mu.value == pytest.approx(kl, rel=1e-12)
    grid = np.concatenate([-np.geomspace(1e-3, 1e3, 4000), np.geomspace(1e-3, 1e3, 4000)])
    tau = math.sqrt(max(2 * pair.cumulant(s)[1] / s**2 for s in grid))
    assert tau <= mcdp.tau.value
    assert mcdp.tau.value == pytest.approx(tau, rel=1e-6)
    assert mcdp.tau.value / mcdp.tau.lower - 1 <= 1e-9


def test_concentration_of_gaussian_agrees_with_the_papers():
    """mu^2/2-zCDP at every xi <= 0 shift, bounded orders included [BS, Prop 1.6]; (mu^2/2, mu)-mCDP [DR, Thm 3.2]."""
    pair = GaussianPair(0.8)
    assert pair.zcdp().value == pytest.approx(0.32, rel=1e-12)
    assert pair.zcdp(xi=-0.1).value == pytest.approx(0.42, rel=1e-12)
    assert pair.zcdp(xi=0.1, max_order=4).value == pytest.approx(0.32 - 0.1 / 4, rel=1e-12)
    assert (pair.mcdp().mu.value, pair.mcdp().tau.value) == pytest.approx((0.32, 0.8), rel=1e-12)


@pytest.mark.full
def test_the_generic_bracket_contains_the_closed_form():
    """The generic bracket of rho contains the closed form, at bounded orders and shifts too."""
    pair, plain = LaplacePair(1.0), quadrature(LaplacePair(1.0))
    for arguments in ((0.0, math.inf), (0.05, math.inf), (0.0, 3.0), (-0.2, 8.0)):
        assert overlap(pair.zcdp(*arguments), plain.zcdp(*arguments))
        assert plain.zcdp(*arguments).value == pytest.approx(pair.zcdp(*arguments).value, rel=1e-6)
    generic = plain.zcdp()
    assert generic.value / generic.lower - 1 < 1e-8


def test_a_user_pair_has_the_worse_direction():
    """For a pair that is not symmetric the worse direction counts."""
    pair = ContinuousPair(lambda x: -x, lambda x: math.log(2) - 2 * x, (0.0, math.inf))
    kl = max(math.log(1 / 2) + 2 - 1, math.log(2) + 1 / 2 - 1)
    assert pair.renyi(1).lower <= kl <= pair.renyi(1).value
    assert pair.total_variation().value == pytest.approx(0.25, abs=1e-9)
    assert pair.renyi(math.inf).value == math.inf
    assert pair.zcdp().value == math.inf


def test_the_second_order_exponential_keeps_its_digits_near_zero():
    """exp(x) - 1 - x keeps its digits near 0."""
    mp.dps = 40
    for x in (-3.0, -0.4, -1e-9, 1e-12, 0.3, 2.0):
        assert expm2(x) == pytest.approx(float(mp.expm1(x) - mp.mpf(x)), rel=1e-14)
    assert expm2(0.0) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ContinuousPair(lambda x: -x, lambda x: -x, (0.0,)), "edges"),
        (lambda: ContinuousPair(lambda x: -x, lambda x: -2 * x, (0.0, math.inf)), "log_q: expected a log density"),
        (lambda: LaplacePair(1.0).renyi(0.5), "order"),
        (lambda: LaplacePair(1.0).renyi("2"), "order"),
        (lambda: LaplacePair(1.0).trade_off_at([0.5, 1.5]), "type I error"),
        (lambda: LaplacePair(1.0).hockey_stick(math.nan), "epsilon"),
        (lambda: LaplacePair(1.0).zcdp(max_order=1.0), "max_order"),
        (lambda: GaussianPair(-1.0), "mu"),
        (lambda: LaplacePair(0.0), "epsilon"),
    ],
)
def test_bad_input_is_refused(call, message):
    """Edges, densities, orders and rates are checked."""
    with pytest.raises(InvalidInput, match=message):
        call()


def test_an_epsilon_that_the_densities_exceed_is_refused():
    """A pair that claims a loss of 0.1 where log p/q reaches 1 is refused, and so are replaced ones."""
    pair = quadrature(LaplacePair(1.0))
    assert pair.epsilon == 1.0
    with pytest.raises(InvalidInput, match="epsilon: expected at least 1"):
        ContinuousPair(pair.log_p, pair.log_q, pair.edges, 0.1)
    with pytest.raises(InvalidInput, match="a loss that occurs"):
        ContinuousPair(GaussianPair(1.0).log_p, GaussianPair(1.0).log_q, (-math.inf, 0.5, math.inf), 5.0)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("delta", [0.5, 1e-6])
def test_epsilon_at_delta_agrees_by_quadrature_and_in_closed_form(pair, delta):
    """Both brackets can be true, the curve at the value is at most delta, and Laplace has eps + 2 log(1 - delta)."""
    found = pair.approximate_dp(delta)
    assert overlap(found, quadrature(pair).approximate_dp(delta))
    assert pair.hockey_stick(found.value).lower <= delta
    if isinstance(pair, LaplacePair):
        assert found.value == pytest.approx(max(0.0, pair.epsilon + 2 * math.log1p(-delta)), abs=1e-12)
    assert found.parameters == {"delta": delta}


def test_epsilon_at_the_ends_of_delta():
    """delta = 0 is the largest loss, delta from the total variation on needs none; others are refused."""
    assert LaplacePair(2.0).approximate_dp(0.0).value == pytest.approx(2.0, rel=1e-13)
    assert LaplacePair(2.0).approximate_dp(LaplacePair(2.0).total_variation().value).value == 0.0
    with pytest.raises(InvalidInput, match="delta"):
        LaplacePair(2.0).approximate_dp(-0.1)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 0.99])
def test_poisson_subsampling_amplifies_as_it_should(rate):
    """The curve of r p + (1 - r) q is r delta(eps') at log(1 + r (e^eps' - 1)), its largest loss that of eps [ZDW]."""
    pair = LaplacePair(1.0)
    made = pair.subsampled(rate)
    assert made.epsilon == pytest.approx(math.log1p(rate * math.expm1(1.0)), rel=1e-14)
    for inner in (0.0, 0.2, 0.7):
        outer = math.log1p(rate * math.expm1(inner))
        assert made.hockey_stick(outer).value == pytest.approx(rate * pair.hockey_stick(inner).value, rel=1e-8)
    assert made.total_variation().value == pytest.approx(rate * pair.total_variation().value, rel=1e-8)
    assert pair.subsampled(1) is pair
    for bad in (0.0, -0.1, 1.5, math.nan):
        with pytest.raises(InvalidInput, match="rate"):
            pair.subsampled(bad)


@pytest.mark.parametrize(
    ("mu", "rate"), [(2.3376242493567876, 0.01636202061447609), (2.7783683438997477, 4.36e-4), (0.5, 0.2)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9])
def test_the_kink_of_a_hockey_stick_is_integrated_up_to(mu, rate, epsilon):
    """A subsampled Gaussian's curve is two normal tails beyond one threshold, which quadrature is cut at."""
    with mp.workdps(50):
        r, m, e = mp.mpf(rate), mp.mpf(mu), mp.exp(mp.mpf(epsilon))
        cut = (mp.log((e - 1 + r) / r) + m**2 / 2) / m
        exact = r * mp.ncdf(m - cut) + (1 - r - e) * mp.ncdf(-cut)
        if 1 / e - 1 + r > 0:
            low = (mp.log((1 / e - 1 + r) / r) + m**2 / 2) / m
            exact = max(exact, mp.ncdf(low) * (1 - e * (1 - r)) - e * r * mp.ncdf(low - m))
        found = GaussianPair(mu).subsampled(rate).hockey_stick(epsilon)
        assert found.lower * (1 - 1e-9) <= exact <= found.value * (1 + 1e-9)
        assert found.value == pytest.approx(float(exact), rel=1e-8)
