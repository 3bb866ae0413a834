""""""

import math

import adaptive_trees as trees
import numpy as np
import pytest

from ldpopt.composition import (
    FinitePair,
    Ledger,
    advanced_composition,
    compose,
    compose_approximate,
    compose_approximate_zcdp,
    compose_mcdp,
    compose_pure,
    compose_renyi,
    compose_zcdp,
    k_fold,
    renyi_advanced_composition,
    restricted_parallel,
    restricted_sequential,
    subsample,
    zcdp_advanced_composition,
    zcdp_advanced_delta,
)
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import gaussian
from ldpopt.privacy import MCDP, TV, ZCDP, ApproximateDP, ApproximateZCDP, Guarantee, PureDP, RenyiDP, mcdp
from ldpopt.privacy.approximate_dp import hockey_stick_of_pairs
from ldpopt.privacy.conversions import mcdp_to_zcdp
from ldpopt.privacy.renyi import renyi_of_pairs


def response(epsilon):
    """Randomized response on two answers."""
    kept = 1 / (1 + math.exp(-epsilon))
    return np.array([[kept, 1 - kept], [1 - kept, kept]])


def claim(channel):
    """Its own (mu, tau)."""
    found = mcdp(channel)
    return MCDP(float(found.mu), float(found.tau))


CONSTANT = np.full((2, 2), 0.5)


def test_a_second_question_after_one_report_exceeds_the_root_of_squares():
    """RR(2), then RR(3) only if the first report is 0: the joint tau is 3.0787, above sqrt(sum tau^2) [DR, Thm 3.4]."""
    p, q = trees.joint(
        [response(2.0), response(3.0)],
        lambda seen, left: (0, 0, 1) if not seen else (1, 0, 1) if seen[0][3] == 0 else None,
    )
    _, tau = trees.concentration(p, q)
    assert tau == pytest.approx(3.0787, abs=1e-3)
    items = [claim(response(2.0)), claim(response(3.0))]
    assert compose_mcdp(items, adaptive=False).tau < tau <= compose_mcdp(items, ordered=True).tau
    assert tau <= compose_mcdp(items).tau
    assert tau <= Ledger().add(response(2.0)).add(response(3.0)).mcdp().tau
    assert Ledger().add(response(2.0)).add(response(3.0)).mcdp(adaptive=False).tau < tau


def stopped(epsilon, count, drift):
    """(losses, masses) of `count` randomized responses that stop once the loss is below `drift` a step."""
    kept = 1 / (1 + math.exp(-epsilon))
    law, ended = np.array([1.0]), {}
    for step in range(1, count + 1):
        law = np.concatenate([[0.0], law * kept]) + np.concatenate([law * (1 - kept), [0.0]])
        losses = 2 * np.arange(step + 1) - step
        out = (losses < drift * step - 1) if step < count else np.ones(step + 1, bool)
        for at in np.flatnonzero(out & (law > 0)):
            ended[losses[at]] = ended.get(losses[at], 0.0) + law[at]
        law = np.where(out, 0.0, law)
    at = np.array(sorted(ended))
    return epsilon * at, np.array([ended[x] for x in at])


def test_the_ledger_covers_the_joint_channel_of_a_stopping_rule():
    """Up to 401 uses of RR(0.3) with a stopping rule: tau of the whole exceeds 5.985, and is covered."""
    worst = 0.0
    for drift in (-0.05, 0.0, 0.02, 0.05):
        losses, masses = stopped(0.3, 401, drift)
        assert math.fsum(masses) == pytest.approx(1.0, abs=1e-12)
        _, tau = trees.concentration(masses, masses * np.exp(-losses))
        worst = max(worst, tau)
    item = claim(response(0.3))
    assert compose_mcdp([(item, 401)], adaptive=False).tau == pytest.approx(5.985, abs=1e-3)
    assert worst > 9.0
    assert worst <= compose_mcdp([(item, 401)]).tau == pytest.approx(13.688, abs=1e-3)
    assert Ledger().add(response(0.3), 401).mcdp().tau == pytest.approx(13.688, abs=1e-3)


def coin_and_gaussian(s, tau):
    """2 K(s)/s^2 when a fair coin decides between a Gaussian of standard tau and a constant."""
    return 2 * (np.logaddexp(s * tau**2 / 4 + (s * tau) ** 2 / 2, -s * tau**2 / 4) - math.log(2)) / s**2


def test_a_coin_between_a_gaussian_and_a_constant_raises_tau():
    """A coin that does not depend on the data raises tau, though it is (0, 0)-mCDP itself."""
    coin = Ledger().add(CONSTANT).add(gaussian(1.0))
    for tau in (0.1, 1.0, 2.0):
        joint = math.sqrt(float(coin_and_gaussian(np.geomspace(1e-3, 1e4, 2000), tau).max()))
        items = [MCDP(0.0, 0.0), MCDP(tau**2 / 2, tau)]
        assert compose_mcdp(items, adaptive=False).tau < joint <= compose_mcdp(items, ordered=True).tau
        assert joint <= compose_mcdp(items).tau
    assert coin.mcdp().tau == pytest.approx(math.sqrt(1 + 1 / 16))


@pytest.mark.full
def test_random_adaptive_trees_are_never_understated():
    """500 trees of three mechanisms, order, inputs and stopping by earlier reports: (mu, tau) is never understated.

    The upper tail around sum mu, and so the conversion to zCDP, is that of fixed mechanisms.
    """
    rng = np.random.default_rng(11)
    drawn = []
    for _ in range(40):
        q = rng.dirichlet(np.full(int(rng.integers(2, 4)), rng.choice([0.3, 1.0, 5.0])), int(rng.integers(2, 4)))
        q = np.maximum(q, 1e-6) / np.maximum(q, 1e-6).sum(axis=1, keepdims=True)
        drawn.append((q, claim(q)))
    above = 0
    for _ in range(500):
        taken = [drawn[int(at)] for at in rng.integers(0, len(drawn), 3)]
        mechanisms, items = [q for q, _ in taken], [item for _, item in taken]
        sizes = [len(q) for q in mechanisms]
        claimed, fixed = compose_mcdp(items), compose_mcdp(items, adaptive=False)
        p, q = trees.joint(mechanisms, trees.random_choice(rng, sizes))
        mu, tau = trees.concentration(p, q)
        assert mu <= claimed.mu * (1 + 1e-12)
        assert tau <= claimed.tau * (1 + 1e-9)
        assert fixed.tau <= claimed.tau
        above += tau > fixed.tau
        rho = mcdp_to_zcdp(fixed)
        for order in (1.5, 3.0, 10.0):
            divergence = np.log((np.array(p) ** order * np.array(q) ** (1 - order)).sum()) / (order - 1)
            assert divergence <= (rho.xi + rho.rho * order) * (1 + 1e-9)
    assert above > 0


def test_chosen_trees_of_equal_mechanisms():
    """Trees that go on only while the loss is high push tau up on purpose; in the given order the claim still holds."""
    for epsilon in (0.2, 1.0, 3.0):
        for bound in (-1, 0, 1):
            p, q = trees.joint(
                [response(epsilon)] * 5,
                lambda seen, left, bound=bound: (
                    (min(left), 0, 1) if sum(1 - 2 * report[3] for report in seen) >= bound - (not seen) * 9 else None
                ),
            )
            _, tau = trees.concentration(p, q)
            assert tau <= compose_mcdp([(claim(response(epsilon)), 5)], ordered=True).tau * (1 + 1e-9)


def bound_by_hand(items):
    """The variance for mechanisms in a given order, by the formula of the concept page."""
    means = [min(mu, tau**2 / 2) for mu, tau in items]
    total = sum(tau**2 for _, tau in items) + sum(means[1:]) ** 2 / 4
    return total + sum(mean * math.sqrt(sum(tau**2 for _, tau in items[:i])) for i, mean in enumerate(means))


def test_compose_mcdp_agrees_with_the_printed_sum():
    """In a given order tau^2 is the printed sum; without one it is no smaller than for any order with a coin first."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        items = [(float(rng.exponential()), float(rng.exponential())) for _ in range(int(rng.integers(1, 5)))]
        claims = [MCDP(*item) for item in items]
        found = compose_mcdp(claims, ordered=True)
        assert found.tau == pytest.approx(math.sqrt(bound_by_hand(items)), rel=1e-9)
        assert found.mu == pytest.approx(sum(mu for mu, _ in items))
        if len(items) > 1:
            for _ in range(4):
                order = [items[int(i)] for i in rng.permutation(len(items))]
                assert compose_mcdp(claims).tau >= math.sqrt(bound_by_hand([(0.0, 0.0), *order])) * (1 - 1e-12)
    assert compose_mcdp([(MCDP(0.5, 1.0), 2)], ordered=True).tau == pytest.approx(1.600781, abs=1e-6)


@pytest.mark.parametrize("count", [2, 17, 5000, 60_000])
def test_equal_mechanisms_have_no_order(count):
    """For n equal mechanisms the bound is the printed formula, with a coin before the first; long sums in blocks."""
    mean, tau = 0.02, 0.3
    exact = count * tau**2 + (count * mean) ** 2 / 4 + mean * tau * np.sqrt(np.arange(count)).sum()
    found = compose_mcdp([(MCDP(mean, tau), count)]).tau
    assert math.sqrt(exact) <= found
    assert found == pytest.approx(math.sqrt(exact), rel=1e-6)


def test_one_use_keeps_its_own():
    """Where nothing is chosen nothing is lost: a single mechanism keeps its mu and tau."""
    q = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    own = mcdp(q)
    assert Ledger().add(q).mcdp().tau == pytest.approx(float(own.tau), rel=1e-12)
    assert Ledger().add(q).mcdp().mu == pytest.approx(float(own.mu), rel=1e-12)


def test_sums_are_sound_at_every_scale():
    """Tiny, huge, infinite and zero parameters: never below the plain sum of squares, never an error."""
    assert compose_mcdp([(MCDP(0.0, 1e-170), 4)], adaptive=False).tau >= 2e-170
    assert compose_mcdp([(MCDP(1.0, 1e-170), 4)]).tau >= 2e-170
    assert compose_mcdp([(MCDP(1e308, 1e300), 4)]).tau >= 2e300
    assert compose_mcdp([MCDP(1e300, 1e100), MCDP(1e-80, 1e-70), MCDP(0.0, 1e-200)]).tau >= 1e100
    assert compose_mcdp([MCDP(1.0, math.inf), MCDP(1.0, 1.0)]).tau == math.inf
    assert compose_mcdp([(MCDP(1.0, 0.0), 4)]).tau == 0.0
    assert compose_mcdp([MCDP(math.inf, 1.0), MCDP(1.0, 1.0)]).mu == math.inf
    assert math.isfinite(compose_mcdp([MCDP(math.inf, 1.0), MCDP(1.0, 1.0)]).tau)


def test_order_of_items_and_counts_do_not_matter():
    """Without a given order, n items are the item n times, wherever they stand."""
    a, b = MCDP(0.1, 0.3), MCDP(0.7, 1.1)
    assert compose_mcdp([a, (b, 2), a]) == compose_mcdp([(b, 1), (a, 2), b])
    assert compose_mcdp([a, a, b], ordered=True) == compose_mcdp([(a, 2), b], ordered=True)
    with pytest.raises(InvalidInput):
        compose_mcdp([])


SUMS = [
    (compose_pure, PureDP(0.1), PureDP(0.37)),
    (compose_approximate, ApproximateDP(0.1, 1e-7), ApproximateDP(0.37, 1e-5)),
    (compose_renyi, RenyiDP(3.0, 0.1), RenyiDP(3.0, 0.37)),
    (compose_zcdp, ZCDP(0.1, 0.2), ZCDP(-0.03, 0.3)),
    (compose_approximate_zcdp, ApproximateZCDP(1e-6, 0.1, 0.2), ApproximateZCDP(1e-3, 0.0, 0.7)),
    (compose_mcdp, MCDP(0.1, 0.3), MCDP(0.7, 1.1)),
]


@pytest.mark.parametrize(("function", "one", "other"), SUMS, ids=lambda value: getattr(value, "__name__", ""))
def test_count_is_that_many_items(function, one, other):
    """count = n equals n separate items, exactly, for every sum."""
    assert function([(one, 3), (other, 2)]) == function([one, other, one, other, one])
    assert function([(one, 1000)]) == function([one] * 1000)


@pytest.mark.parametrize(("function", "one", "other"), SUMS, ids=lambda value: getattr(value, "__name__", ""))
def test_bad_items_are_refused(function, one, other):
    """Other notions, empty lists and zero counts are refused."""
    wrong = TV(0.1)
    for items in ([wrong], [], one, [(one, 0)], [(other, 1.5)]):
        with pytest.raises(InvalidInput):
            function(items)


def test_sums_are_the_theorems():
    """The parameters add as stated (M Prop 1; BS Lemmas 2.3, 8.2; DR Thm 3.4), never below the exact sum."""
    assert compose_zcdp([(ZCDP(0.5, 0.25), 8)]) == ZCDP(4.0, 2.0)
    assert compose_renyi([(RenyiDP(4, 0.125), 8)]) == RenyiDP(4, 1.0)
    found = compose_mcdp([MCDP(0.25, 3.0), MCDP(0.5, 4.0)], adaptive=False)
    assert (found.mu, found.tau) == (0.75, pytest.approx(5.0))
    approximate = compose_approximate_zcdp([ApproximateZCDP(0.1, 0, 1), ApproximateZCDP(0.2, 0, 1)])
    assert approximate.delta == pytest.approx(0.1 + 0.2 - 0.02)
    assert compose_pure([(PureDP(0.1), 10)]).epsilon >= 1.0
    assert compose_pure([PureDP(math.inf)]).epsilon == math.inf
    with pytest.raises(InvalidInput, match="one order"):
        compose_renyi([RenyiDP(2, 1), RenyiDP(3, 1)])
    assert compose_pure([Guarantee("local_dp", 0.5, 0.5, None, True, "")]) == PureDP(0.5)


def divergence(pair, order):
    return float(renyi_of_pairs(pair.p, pair.q, order)[1][0])


def test_renyi_adds_on_products():
    """The Rényi divergence of a product pair is the sum of the divergences."""
    rng = np.random.default_rng(1)
    a, b = (FinitePair(*rng.dirichlet(np.ones(4), 2)) for _ in range(2))
    product = FinitePair(np.outer(a.p, b.p).ravel(), np.outer(a.q, b.q).ravel())
    for order in (1.0, 2.5, math.inf):
        assert divergence(product, order) == pytest.approx(divergence(a, order) + divergence(b, order), rel=1e-10)


@pytest.mark.parametrize(("epsilon", "delta", "count"), [(0.1, 0.0, 100), (0.5, 1e-6, 20), (0.02, 0.0, 5000)])
def test_advanced_theorems_hold_and_exact_composition_beats_them(epsilon, delta, count):
    """Every advanced composition theorem is above the exact curve (DR Thm 1.1, M Cor 1, BS Cor 8.9)."""
    exact = k_fold(epsilon, delta, count=count)
    claim = ApproximateDP(epsilon, delta)
    found = advanced_composition(claim, count, 1e-5)
    assert found.epsilon == pytest.approx(
        math.sqrt(2 * count * math.log(1e5)) * epsilon + count * epsilon * math.expm1(epsilon) / 2
    )
    through_zcdp = zcdp_advanced_composition([(claim, count)], 1e-5)
    claims = [found, through_zcdp, zcdp_advanced_delta([(claim, count)], through_zcdp.epsilon)]
    if delta == 0:
        claims.append(renyi_advanced_composition(PureDP(epsilon), count, 1e-5))
    for claimed in claims:
        assert exact.delta_at(claimed.epsilon) <= claimed.delta
    assert through_zcdp.epsilon < found.epsilon
    assert exact.epsilon_at(found.delta) < found.epsilon


def test_mironov_corollary_needs_small_delta():
    """M Cor 1 requires log(1/delta) >= eps^2 n."""
    with pytest.raises(InvalidInput, match="log"):
        renyi_advanced_composition(PureDP(1.0), 100, 1e-3)


def test_subsampling_is_the_proposition_and_attained():
    """GI Prop 1: with probability p the pair is seen, else its erasure; hockey stick and variation scale as stated."""
    epsilon, delta, eta = 1.0, 0.01, 0.3
    pair = FinitePair.of_parameters(epsilon, delta, eta)
    share = 0.2
    # One person of n: with probability p the report comes from their own row, else from the other's.
    mixed = FinitePair(share * pair.p + (1 - share) * pair.q, pair.q)
    found = subsample(ApproximateDP(epsilon, delta), 20, 100)
    assert found.epsilon == pytest.approx(math.log(1 + share * math.expm1(epsilon)))
    assert found.delta == pytest.approx(share * delta)
    assert float(hockey_stick_of_pairs(mixed.p, mixed.q, found.epsilon)[1][0]) == pytest.approx(found.delta, rel=1e-12)
    assert float(mixed.hockey_stick(0.0)) == pytest.approx(subsample(TV(eta), 20, 100).eta, rel=1e-12)
    assert subsample(PureDP(200.0), 1, 10).epsilon == pytest.approx(200 - math.log(10))
    assert subsample(PureDP(0.7), 10, 10).epsilon == pytest.approx(0.7, rel=1e-14)
    with pytest.raises(InvalidInput, match="population"):
        subsample(PureDP(1.0), 11, 10)


def linear_restricted_kl(p, q, features):
    """sup over affine h of E_p h - E_q f*(h) for KL: sup_a a E_p phi - log E_q e^(a phi) (CIM Lemma 1)."""
    from scipy.optimize import minimize_scalar

    def loss(a):
        return -(a * (p @ features)) + math.log(q @ np.exp(a * features))

    return max(0.0, -minimize_scalar(loss, bracket=(-1, 1), tol=1e-12).fun)


def test_restricted_sums_hold_without_adaptivity():
    """CIM Thm 4: against h1(y1) + h2(y2), two fixed releases leak the sum of their restricted divergences."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(2)
    (p1, q1), (p2, q2) = rng.dirichlet(np.ones(4), 2), rng.dirichlet(np.ones(3), 2)
    f1, f2 = np.arange(4.0), np.arange(3.0)
    p, q = np.outer(p1, p2).ravel(), np.outer(q1, q2).ravel()
    both = np.stack([np.repeat(f1, 3), np.tile(f2, 4)])
    found = -minimize(lambda a: -(p @ (a @ both)) + math.log(q @ np.exp(a @ both)), np.zeros(2), tol=1e-12).fun
    total = restricted_sequential([linear_restricted_kl(p1, q1, f1), linear_restricted_kl(p2, q2, f2)])
    assert found == pytest.approx(total, rel=1e-6)
    assert restricted_parallel([0.1, 0.3, 0.2]) == 0.3


def test_restricted_sum_says_nothing_beyond_its_class():
    """CIM Thm 4 covers H1 + H2 of independent releases only: a second report that uses the first one escapes it.

    The first report is a fair coin, the second repeats it for one input and reverses it for the other. Each report by
    itself, and every h1 + h2, has the same law under both inputs; a function of the two tells the inputs apart.
    """
    p, q = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    assert (p.sum(0) == q.sum(0)).all()
    assert (p.sum(1) == q.sum(1)).all()
    rng = np.random.default_rng(0)
    additive = rng.normal(size=(2, 1)) + rng.normal(size=(1, 2))
    assert (p * additive).sum() == pytest.approx((q * additive).sum())
    agree = np.eye(2)
    assert (p * agree).sum() - (q * agree).sum() == 1.0
    assert restricted_sequential([0.0, 0.0]) == 0.0  # what the two reports reveal one by one


def test_bad_sums():
    """Empty lists, negative parameters and impossible slacks are refused."""
    for call in (
        lambda: restricted_sequential([]),
        lambda: restricted_parallel([-1.0]),
        lambda: advanced_composition(PureDP(1.0), 10, 0.0),
        lambda: advanced_composition(ZCDP(0, 1), 10, 0.1),
        lambda: compose([(0.1,)], count=0),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("delta", [0.0, 1.0, math.exp(-1.01)])
def test_the_printed_corollary_requires_a_delta_in_its_range(delta):
    """log(1/delta) >= eps^2 n, which 0 has without a logarithm and 1 never has [M, Cor 1]."""
    with pytest.raises(InvalidInput, match="delta"):
        renyi_advanced_composition(PureDP(0.1), 102, delta)


def test_only_sums_of_one_order_are_called_tight():
    """Sums of claims of one order are attained, those of approximate claims are not said to be."""
    assert compose_renyi([RenyiDP(2.0, 0.5)]).tight
    assert compose_pure([PureDP(0.5)]).tight
    assert not compose_approximate([(ApproximateDP(0.1, 1e-6), 3)]).tight


def test_sampling_of_claims_is_attained_and_never_worse():
    """Shares of eta and of delta, epsilon on both sides of the change of formulas [GI, Prop 1]."""
    for claim in (TV(0.5), PureDP(1.0), ApproximateDP(40.0, 1e-6)):
        found = subsample(claim, 1, 4)
        assert found.tight
    assert subsample(TV(0.5), 1, 4).eta == pytest.approx(0.125)
    for epsilon in (29.9, 30.1, 600.0):
        found = subsample(PureDP(epsilon), 1, 4).epsilon
        assert found == pytest.approx(epsilon + math.log(0.25 + 0.75 * math.exp(-epsilon)), rel=1e-13)
    assert subsample(PureDP(1.0), 4, 4).epsilon == 1.0
    with pytest.raises(InvalidInput, match="sampled"):
        subsample(PureDP(1.0), 5, 4)
