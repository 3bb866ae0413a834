import math

import adaptive_trees as trees
import numpy as np
import pytest

from ldpopt.composition import Ledger, compose_mcdp
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import gaussian
from ldpopt.privacy import MCDP, mcdp
from ldpopt.privacy.conversions import mcdp_to_zcdp


def response(epsilon):
    """Randomized response on two answers."""
    kept = 1 / (1 + math.exp(-epsilon))
    return np.array([[kept, 1 - kept], [1 - kept, kept]])


def claim(channel):
    """Its own (mu, tau)."""
    found = mcdp(channel)
    return MCDP(float(found.mu), float(found.tau))


CONSTANT = np.full((2, 2), 0.5)


def test_a_second_question_only_after_one_report():
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


def test_stopping_rules_against_the_joint_channel():
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


def test_a_coin_between_a_gaussian_and_a_constant():
    """A coin that does not depend on the data raises tau, though it is (0, 0)-mCDP itself."""
    coin = Ledger().add(CONSTANT).add(gaussian(1.0))
    for tau in (0.1, 1.0, 2.0):
        joint = math.sqrt(float(coin_and_gaussian(np.geomspace(1e-3, 1e4, 2000), tau).max()))
        items = [MCDP(0.0, 0.0), MCDP(tau**2 / 2, tau)]
        assert compose_mcdp(items, adaptive=False).tau < joint <= compose_mcdp(items, ordered=True).tau
        assert joint <= compose_mcdp(items).tau
    assert coin.mcdp().tau == pytest.approx(math.sqrt(1 + 1 / 16))


def test_random_adaptive_trees():
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


def test_the_formula():
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


def test_no_scale_breaks_it():
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
