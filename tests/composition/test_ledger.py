""""""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.composition import FinitePair, Ledger, compose, k_fold, largest_count, largest_epsilon
from ldpopt.composition.ledger import concentrated
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import (
    gaussian,
    hadamard_response,
    laplace,
    matrix_mechanism,
    staircase,
    triangular,
    unary_encoding,
    warner,
)
from ldpopt.privacy import (
    TV,
    ZCDP,
    ApproximateDP,
    Guarantee,
    PureDP,
    RestrictedKL,
    RestrictedRenyi,
    RestrictedTotalVariation,
    capacity_bounded,
    mcdp,
    renyi,
)

RR = [[0.75, 0.25], [0.25, 0.75]]
TOTALS = [
    lambda ledger: ledger.local_dp(),
    lambda ledger: ledger.total_variation(),
    lambda ledger: ledger.hockey_stick(1.0),
    lambda ledger: ledger.approximate_dp(1e-3),
    lambda ledger: ledger.renyi(1.0),
    lambda ledger: ledger.renyi(7.5),
    lambda ledger: ledger.renyi(math.inf),
    lambda ledger: ledger.zcdp(),
    lambda ledger: ledger.zcdp(xi=0.1),
    lambda ledger: ledger.approximate_zcdp(),
    lambda ledger: ledger.mcdp(),
    lambda ledger: ledger.mcdp(adaptive=False),
]


@pytest.mark.parametrize("mechanism", [RR, (0.4, 0.0, 0.1), (0.4, 1e-4), FinitePair([0.5, 0.3, 0.2], [0.3, 0.4, 0.3])])
def test_count_is_that_many_additions(mechanism):
    """count = n equals n separate additions for every notion, in any order."""
    other = (0.25, 0.0, 0.05)
    counted = Ledger().add(mechanism, count=3).add(other, count=2)
    separate = Ledger().add(mechanism).add(other).add(mechanism).add(other).add(mechanism)
    assert [total(counted) for total in TOTALS] == [total(separate) for total in TOTALS]


def test_totals_of_randomized_response_are_closed_forms():
    """Every total of n randomized responses is its closed form."""
    epsilon, n = math.log(3), 12
    ledger = Ledger().add(Channel(RR), count=n)
    assert float(ledger.local_dp()) == pytest.approx(n * epsilon)
    assert float(ledger.zcdp()) == pytest.approx(n * epsilon * math.tanh(epsilon / 2), rel=1e-6)
    assert ledger.zcdp().lower <= n * epsilon * math.tanh(epsilon / 2) <= ledger.zcdp().value
    assert float(ledger.renyi(1)) == pytest.approx(n * epsilon * math.tanh(epsilon / 2))
    assert float(ledger.renyi(2)) == pytest.approx(n * math.log(0.75**2 / 0.25 + 0.25**2 / 0.75))
    assert float(ledger.renyi(math.inf)) == pytest.approx(float(ledger.local_dp()))
    mcdp = ledger.mcdp(adaptive=False)
    assert mcdp.mu == pytest.approx(n * epsilon * math.tanh(epsilon / 2))
    assert mcdp.tau == pytest.approx(math.sqrt(n * 2 * epsilon * math.tanh(epsilon / 2)))
    assert float(ledger.hockey_stick(0.0)) == pytest.approx(float(ledger.total_variation()))
    assert ledger.approximate_dp(1e-6).value == compose([RR], n).epsilon_at(1e-6)


def test_zcdp_of_an_erased_pair_is_the_interior_supremum():
    """sup of D_a/a lies inside for a rarely answering pair: rho(1, eta) of erasure 0.9 is 0.082192, of 0.3 0.323482."""
    for erasure, rho in ((0.9, 0.082192), (0.3, 0.323482)):
        ledger = Ledger().add((1.0, 0.0, (1 - erasure) * math.tanh(0.5)))
        assert float(ledger.zcdp()) == pytest.approx(rho, abs=6e-7)


def test_summed_curve_beats_summed_rho():
    """The rho of a sum of curves is at most the sum of the rhos."""
    a, b = (1.0, 0.0, 0.1 * math.tanh(0.5)), (0.5, 0.0, 0.2)
    together = Ledger().add(a).add(b).zcdp().value
    assert together <= (Ledger().add(a).zcdp().value + Ledger().add(b).zcdp().value) * (1 + 1e-8)


def test_approximate_zcdp_conditions_on_finite_losses():
    """(eps, delta)-DP counts as delta-approximate zCDP (BS Cor 8.7): rho = eps tanh(eps/2), deltas unite."""
    ledger = Ledger().add((0.5, 0.01), count=4)
    found = ledger.approximate_zcdp()
    assert found.parameters["delta"] == pytest.approx(1 - 0.99**4)
    assert found.value == pytest.approx(4 * 0.5 * math.tanh(0.25), rel=1e-6)
    assert math.isinf(float(ledger.zcdp()))
    assert math.isinf(float(ledger.renyi(2.0)))


def test_general_channel_takes_the_worst_pair_each_time():
    """Rényi totals sum the maximum over pairs of rows; they dominate the product of any pairs."""
    rng = np.random.default_rng(4)
    q, r = rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(3), 3)
    ledger = Ledger().add(q).add(r)
    for order in (1.0, 2.0, 5.0):
        worst = [max(float(FinitePair(a, b).renyi(order)) for a in m for b in m) for m in (q, r)]
        assert float(ledger.renyi(order)) == pytest.approx(sum(worst), rel=1e-12)


def test_claims_and_guarantees_are_mechanisms():
    """A claim or a measured guarantee enters as the class of mechanisms that have it."""
    assert float(Ledger().add(PureDP(0.5)).local_dp()) == pytest.approx(0.5)
    assert float(Ledger().add(ApproximateDP(0.5, 0.1)).hockey_stick(0.5)) == pytest.approx(0.1)
    assert float(Ledger().add(TV(0.2), 2).total_variation()) == pytest.approx(1 - 0.8**2)
    measured = Guarantee("local_dp", 0.5, 0.5, None, True, "[GI, Def 6]")
    assert Ledger().add(measured).local_dp() == Ledger().add(PureDP(0.5)).local_dp()


def test_pair_counts_in_both_directions():
    """A pair entered as a mechanism may be used in either direction at each step."""
    pair = FinitePair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    skew = FinitePair([0.6, 0.4], [0.2, 0.8])
    ledger = Ledger().add(skew, 2)
    mixed = FinitePair(np.outer(skew.p, skew.q).ravel(), np.outer(skew.q, skew.p).ravel())
    for epsilon in (0.0, 0.5):
        assert mixed.hockey_stick(epsilon).lower <= float(ledger.hockey_stick(epsilon))
    assert float(Ledger().add(pair).total_variation()) == pytest.approx(0.3)


def test_ledger_is_immutable_and_adds():
    """Adding returns a new ledger; an empty one has spent nothing."""
    empty = Ledger()
    one = empty.add(RR, name="survey")
    assert len(empty) == 0
    assert len(one) == 1
    assert len(one + one) == 2
    assert "survey" in repr(one)
    for total in TOTALS[:-2]:
        assert float(total(empty)) == 0.0
    assert empty.mcdp().mu == 0.0
    assert (one + one).approximate_dp(0.01) == empty.add(RR, 2).approximate_dp(0.01)
    with pytest.raises(AttributeError):
        object.__getattribute__(one, "__setattr__")("entries", ())
    with pytest.raises(TypeError):
        operator.add(one, 3)


@pytest.mark.parametrize(
    ("mechanism", "count"), [(RR, 0), (RR, 1.5), (ZCDP(0, 1), 1), ("x", 1), ((1, 2, 3, 4), 1), (None, 1)]
)
def test_bad_counts_and_mechanisms_are_refused(mechanism, count):
    """Zero counts and values that are not mechanisms are refused."""
    with pytest.raises(InvalidInput):
        Ledger().add(mechanism, count)


NAMED = [
    warner(0.75),
    triangular(0.25),
    laplace(0.3),
    gaussian(2.0),
    gaussian(2.0).pair,
    staircase(0.5, 0.3),
    hadamard_response(16, 0.5),
    unary_encoding(100, 0.5),
    matrix_mechanism([[1.0]], [[1.0]], 0.2),
]


@pytest.mark.full(but=1)
@pytest.mark.parametrize("mechanism", NAMED, ids=repr)
def test_named_mechanisms_count_as_that_many_additions(mechanism):
    """Survey designs, additive noise, frequency oracles and matrix mechanisms are entries like any other."""
    counted, separate = Ledger().add(mechanism, 2).add(RR), Ledger().add(mechanism).add(RR).add(mechanism)
    assert [total(counted) for total in TOTALS] == [total(separate) for total in TOTALS]


def test_totals_of_additive_noise_agree_with_closed_forms():
    """k Gaussians are one of mu sqrt(k) in every notion, from above; Laplace noise adds its Rényi divergences."""
    ledger, whole = Ledger().add(gaussian(1.0), 9), gaussian(1.0, 3.0).pair
    assert float(ledger.zcdp()) == pytest.approx(4.5, rel=1e-12)
    assert float(ledger.zcdp(xi=-1.0)) == pytest.approx(5.5, rel=1e-9)
    fixed = ledger.mcdp(adaptive=False)
    assert (fixed.mu, fixed.tau) == (pytest.approx(4.5), pytest.approx(3.0))
    assert math.isinf(float(ledger.local_dp()))
    assert float(ledger.approximate_zcdp()) == pytest.approx(4.5, rel=1e-9)
    for epsilon in (0.0, 3.0, 10.0):
        exact, found = whole.hockey_stick(epsilon), ledger.hockey_stick(epsilon)
        assert found.lower <= exact.value
        assert exact.lower <= found.value == pytest.approx(exact.value, rel=1e-3)
    laplaces = Ledger().add(laplace(0.5), 4)
    assert float(laplaces.renyi(3.0)) == pytest.approx(4 * float(laplace(0.5).pair.renyi(3.0)), rel=1e-12)
    assert float(laplaces.local_dp()) == pytest.approx(2.0)
    rates = np.linspace(0.01, 0.99, 9)
    curve = Ledger().add(laplace(0.5)).trade_off()
    assert (curve(rates) <= laplace(0.5).pair.trade_off_at(rates) + 1e-12).all()
    np.testing.assert_allclose(curve(rates), laplace(0.5).pair.trade_off_at(rates), atol=1e-4)


def test_mcdp_is_the_exact_standard_of_channels_alone():
    """tau is the mechanism's own for a channel or pair, epsilon for a class of mechanisms (mCDP is not closed)."""
    q = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    assert Ledger().add(q, 4).mcdp(adaptive=False).tau == pytest.approx(2 * float(mcdp(q).tau), rel=1e-12)
    assert Ledger().add((0.5, 0.0, 0.1), 4).mcdp(adaptive=False).tau == pytest.approx(1.0)


def test_capacity_bounded_totals_add():
    """Restricted divergences of fixed mechanisms add [CIM, Thm 4]; entries without features count in full."""
    rng = np.random.default_rng(7)
    q, r = rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(5), 3)
    ledger = Ledger().add(q, 2, features=np.arange(4)).add(r, features=np.arange(5) ** 2.0)
    for divergence in (RestrictedKL(), RestrictedRenyi(3.0)):
        one = capacity_bounded(q, np.arange(4), divergence), capacity_bounded(r, np.arange(5) ** 2.0, divergence)
        assert float(ledger.capacity_bounded(divergence)) == pytest.approx(2 * float(one[0]) + float(one[1]), rel=1e-12)
        split = (
            Ledger().add(q, features=np.arange(4)).add(q, features=np.arange(4)).add(r, features=np.arange(5) ** 2.0)
        )
        assert split.capacity_bounded(divergence) == ledger.capacity_bounded(divergence)
    full = Ledger().add(q).capacity_bounded(RestrictedRenyi(3.0))
    assert float(full) == pytest.approx(float(renyi(q, 3.0)), rel=1e-12)
    for call in (
        lambda: ledger.capacity_bounded(RestrictedTotalVariation()),
        lambda: Ledger().add(laplace(1.0), features=[0, 1]),
        lambda: Ledger().add(q, features=[0, 1]),
    ):
        with pytest.raises(InvalidInput, match=r"divergence|features"):
            call()


def test_gaussians_are_one_gaussian():
    """Gaussian mechanisms compose to mu = sqrt(sum mu^2) in closed form, at any count and however small delta."""
    single = gaussian(1.0).pair
    for ledger in (
        Ledger().add(gaussian(1.0)),
        Ledger().add(gaussian(1000.0), 10**6),
        Ledger().add(gaussian(2.0), 2).add(gaussian(math.sqrt(2.0))),
    ):
        for delta in (1e-1, 1e-6, 1e-30, 1e-200):
            found = ledger.approximate_dp(delta)
            assert single.hockey_stick(found.value * (1 + 1e-12)).lower <= delta
            assert single.hockey_stick(found.value * (1 - 1e-9)).value > delta
            assert found.lower <= found.value
            assert found.lower == pytest.approx(found.value, rel=1e-6)
        for epsilon in (0.0, 1.0, 10.0):
            found = ledger.hockey_stick(epsilon)
            assert found.exact
            assert found.lower <= single.hockey_stick(epsilon).value
            assert single.hockey_stick(epsilon).lower <= found.value
    assert Ledger().add(gaussian(1.0)).approximate_dp(1e-30).value == pytest.approx(11.743883, abs=1e-5)


@pytest.mark.full
def test_gaussians_with_other_mechanisms_have_deep_tails():
    """Beside a channel the Gaussians are one finite pair with a deep tail: finite at delta 1e-60, never below alone."""
    mixed, alone = Ledger().add(gaussian(1.0), 4).add(RR), Ledger().add(gaussian(0.5))
    for delta in (1e-6, 1e-60):
        found = mixed.approximate_dp(delta)
        assert alone.approximate_dp(delta).value <= found.value
        assert found.value <= alone.approximate_dp(delta).value + math.log(3) + 1e-2
        assert 0 < found.lower <= found.value
        assert not found.exact


@pytest.mark.parametrize(("own", "other"), [(0.9, 0.1), (0.5, 0.2), (1.0, 0.3), (0.6, 0.0)])
def test_a_unary_encoding_is_measured(own, other):
    """The epsilon that a unary encoding was made with is not believed: its bits are measured."""
    oracle = unary_encoding(10, 1.0)
    object.__setattr__(oracle, "own", own)
    object.__setattr__(oracle, "other", other)
    truth = math.log(own * (1 - other) / (other * (1 - own))) if other > 0 and own < 1 else math.inf
    found = Ledger().add(oracle).local_dp()
    assert found.value == pytest.approx(truth, rel=1e-12)
    assert found.value >= truth
    assert float(Ledger().add(oracle).total_variation()) == pytest.approx(own - other, rel=1e-12)


@pytest.mark.parametrize("xi", [0.0, 0.3, 0.6])
def test_bounds_on_divergences_bound_the_concentration(xi):
    """What is known of the divergences only between two ends leaves rho between two ends, on the right sides."""
    exact = np.vectorize(randomized_divergence(1.0), otypes=[float])
    low, high = concentrated(lambda s: (exact(s) * 0.99, exact(s) * 1.01), xi)
    orders = np.geomspace(1e-4, 50, 5001).tolist()
    truth, most = (max((exact(s) * factor - xi) / (1 + s) for s in orders) for factor in (1.0, 1.01))
    assert low <= truth * (1 + 1e-9)
    assert high >= most * (1 - 1e-6)
    assert high <= most * 1.2


def randomized_divergence(epsilon):
    """The divergence of order 1 + s of randomized response, by its definition."""
    p = 1 / (1 + math.exp(-epsilon))

    def at(s):
        if s == 0:
            return (2 * p - 1) * epsilon
        if math.isinf(s):
            return epsilon
        return np.logaddexp(math.log(p) + s * epsilon, math.log(1 - p) - s * epsilon) / s

    return at


@pytest.mark.parametrize(
    ("total", "delta", "count", "erasure"), [(1.0, 1e-6, 100, 0.0), (3.0, 1e-5, 1000, 0.3), (0.5, 0.0, 7, 0.0)]
)
def test_largest_epsilon_errs_to_the_private_side(total, delta, count, erasure):
    """The composition of the result meets the target by Theorem 2, and a slightly larger epsilon does not."""
    found = largest_epsilon(ApproximateDP(total, delta), count, erasure).epsilon
    eta = (1 - erasure) * math.tanh(found / 2)
    assert k_fold(found, 0.0, eta, count).epsilon_at(delta * (1 + 1e-9)) <= total * (1 + 1e-12)
    more = found * (1 + 1e-5)
    assert k_fold(more, 0.0, (1 - erasure) * math.tanh(more / 2), count).epsilon_at(delta) > total


def test_pure_target_is_the_even_share():
    """Without delta the largest epsilon is the total over the count, rounded down."""
    found = largest_epsilon(ApproximateDP(0.7, 0.0), 7).epsilon
    assert found <= 0.1
    assert found == pytest.approx(0.1, rel=1e-8)


def test_largest_count_is_the_last_that_fits():
    """The count meets the target and one more does not."""
    target = ApproximateDP(2.0, 1e-6)
    count = largest_count((0.1, 0.0, 0.03), target)
    assert k_fold(0.1, 0.0, 0.03, count).delta_at(2.0) <= 1e-6 < k_fold(0.1, 0.0, 0.03, count + 1).delta_at(2.0)
    assert largest_count((3.0,), target) == 0
    assert largest_count((0.1, 0.0, 0.0), target, limit=50) == 50


def test_impossible_and_bad_targets_are_refused():
    """A target that no epsilon meets, or that is not an (epsilon, delta), is refused."""
    with pytest.raises(InvalidInput, match="meet"):
        largest_epsilon(ApproximateDP(0.0, 0.0), 3)
    for call in (
        lambda: largest_epsilon(PureDP(1.0), 3),
        lambda: largest_epsilon(ApproximateDP(1.0, 0.1), 0),
        lambda: largest_epsilon(ApproximateDP(1.0, 0.1), 3, 1.5),
        lambda: largest_count((0.1,), ApproximateDP(1.0, 0.1), 0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize(("epsilon", "total", "count"), [(0.5, 1.0, 2), (0.25, 1.0, 4), (0.1, 0.3, 2), (0.125, 12, 96)])
def test_a_pure_budget_is_used_up(epsilon, total, count):
    """With delta 0 the count is that of the rational quotient: two of 0.5 fit into 1, three of 0.1 exceed 0.3."""
    assert largest_count((epsilon,), ApproximateDP(total, 0.0)) == count == int(Fraction(total) / Fraction(epsilon))
