"""The sure shares of the optimum: checked against optima found by brute force.

The least share of the chi-squared divergence that the binary mechanism keeps:
docs/explanation/open-problems/binary-share.md.

Contraction: the bounds hold for every channel tried, and are attained where they are said to be.

Tests of `ldpopt.bounds.published`: how much a private report can tell.

The bounds on symmetrised KL hold, and improve on one another as stated.

What survives of total variation: the bounds hold and are attained.
"""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.bounds import (
    asoodeh_zhang,
    binary_share,
    binary_share_ghazi_issa,
    binary_share_kairouz,
    capacity_mass,
    dobrushin,
    duchi_jordan_wainwright,
    erased_share,
    ghazi_issa,
    ghazi_issa_corollary,
    ghazi_issa_total_variation,
    information_capacity,
    information_under_cap,
    jeffreys_of_total_variation,
    kairouz_oh_viswanath,
)
from ldpopt.channel import Channel
from ldpopt.design import MutualInformation
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NAMED,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    alpha,
    hockey_stick,
)
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import binary
from ldpopt.privacy import local_dp, total_variation

FILE = Path(__file__).parents[1] / "data" / "optimal_channels.json"
INSTANCES = json.loads(FILE.read_text("utf-8"))["instances"]


def binary_kl(p0, p1, epsilon):
    first = np.where(np.asarray(p0) >= np.asarray(p1), math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
    q = Channel(np.stack([first, 1 - first], axis=1))
    return KL(q.push(p0), q.push(p1))


def test_the_binary_mechanism_reaches_its_shares_of_the_optimum():
    """[KOV14, Thm 7; GI, VII-B1] BIN >= OPT / (min{2, e^eps}(e^eps + 1)) >= OPT / (2 (e^eps + 1)^2) for KL."""
    for instance in INSTANCES:
        epsilon, optimum = instance["epsilon"], instance["optimum_without_eta"]["kl"]
        reached = binary_kl(instance["p0"], instance["p1"], epsilon)
        assert reached >= binary_share_ghazi_issa(epsilon) * optimum
        assert reached >= binary_share(epsilon) * optimum * (1 - 1e-12)
        assert reached >= binary_share_kairouz(epsilon) * optimum
        assert reached <= optimum * (1 + 1e-9)


def test_the_newer_share_is_larger():
    """[GI, Fig 5] The share from total variation exceeds the older one at every epsilon."""
    for epsilon in np.geomspace(1e-6, 500, 100):
        assert binary_share_ghazi_issa(epsilon) > binary_share_kairouz(epsilon) >= 0


@pytest.mark.parametrize("name", list(INSTANCES[0]["optimum"]))
def test_the_erased_optimum_keeps_its_share(name):
    """[GI, Thm 8] OPT(eps, eta) >= eta / tanh(eps/2) OPT(eps) for every divergence, and erasure may be beaten."""
    for instance in INSTANCES:
        if instance["eta"] is not None:
            share = erased_share(instance["epsilon"], instance["eta"])
            assert instance["optimum"][name] >= share * instance["optimum_without_eta"][name] * (1 - 1e-8) - 1e-15


def test_erasing_meets_eta_and_keeps_exactly_the_share():
    """[GI, Thm 8] Erasing any eps-LDP channel with probability 1 - share is eta-TV and keeps that share of D_f."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        k = int(rng.integers(2, 6))
        raw = np.exp(rng.uniform(0, 2, (k, 4)))
        q = Channel(raw / raw.sum(axis=1, keepdims=True))
        epsilon = local_dp(q).value
        eta = rng.random() * math.tanh(epsilon / 2)
        share = erased_share(epsilon, eta)
        erased = q.erase(1 - share)
        assert total_variation(erased).lower <= eta
        assert local_dp(erased).lower <= epsilon
        p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
        for f in (KL, CHI_SQUARED, TOTAL_VARIATION, JENSEN_SHANNON):
            assert f(erased.push(p0), erased.push(p1)) == pytest.approx(share * f(q.push(p0), q.push(p1)), rel=1e-9)


def test_values_agree_with_thirty_digits():
    """Values of the formulas computed with 30 digits, and the ends of the range."""
    assert binary_share_kairouz(1.0) == pytest.approx(0.0361647440642566341, rel=1e-14)
    assert binary_share_ghazi_issa(1.0) == pytest.approx(0.134470710684997560, rel=1e-14)
    assert binary_share_ghazi_issa(0.5) == pytest.approx(1 / (math.exp(0.5) * (math.exp(0.5) + 1)), rel=1e-14)
    assert erased_share(1.0, 0.2) == pytest.approx(0.432790682747730570, rel=1e-14)
    assert erased_share(1.0, 0.0) == 0
    assert 1 - 1e-14 <= erased_share(1.0, math.tanh(0.5)) <= 1
    assert erased_share(1.0, 0.47) == 1
    assert erased_share(1e-9, 1e-10) == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize("bound", [binary_share_kairouz, binary_share_ghazi_issa, lambda e: erased_share(e, 0.1)])
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1"])
def test_an_epsilon_that_is_not_positive_and_finite_is_refused(bound, epsilon):
    """An epsilon that is no positive finite number is an error."""
    with pytest.raises(InvalidInput, match="epsilon: expected a"):
        bound(epsilon)


@pytest.mark.parametrize("eta", [-0.1, 1.5, math.nan])
def test_an_eta_outside_the_unit_interval_is_refused(eta):
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        erased_share(1.0, eta)


def least_share(e):
    """min(4 e, 2 (e + 2)) / (e + 1)^2."""
    return min(4 * e, 2 * (e + 2)) / (e + 1) ** 2


@pytest.mark.parametrize("epsilon", [0.1, np.log(2.0), 4.0])
def test_chi_squared_never_keeps_less(epsilon):
    """BIN >= min(4e, 2(e+2))/(e+1)^2 OPT for chi-squared: random and hostile pairs, among them the limit's own kind."""
    rng = np.random.default_rng(0)
    e, shares = np.exp(epsilon), []
    for n in range(40):
        k = int(rng.integers(2, 8))
        p0, p1 = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0])), 2)
        if n % 2:  # two rare answers that differ, and common ones that nearly do not
            rare = 10.0 ** rng.uniform(-6, -1)
            p1 = np.array([rare, 0.5 - rare, 0.5 - rare, rare])
            tilt = rare * rng.uniform(0.2, 1.0)
            p0 = p1 + np.array([tilt, 1e-3 * tilt, -1e-3 * tilt, -tilt])
        utility = Divergence(CHI_SQUARED, p0, p1)
        optimum = optimal_channel(utility, LocalDP(epsilon), certify=False).value
        shares.append(utility.value(binary(p0, p1, epsilon)) / optimum)
    assert min(shares) >= least_share(e) * (1 - 1e-9)
    assert min(shares) <= least_share(e) * 1.02


@pytest.mark.parametrize("e", [Fraction(3, 2), Fraction(2), Fraction(5), Fraction(50)])
def test_the_limit_is_reached_in_fractions(e):
    """Rare answers of mass s, half of s apart, others even: the share of chi-squared nears the formula."""
    s = Fraction(1, 10**8)
    p1 = [s, Fraction(1, 2) - s, Fraction(1, 2) - s, s]
    d = [s / 2, s / 1000, -s / 1000, -s / 2]

    def kept(blocks):
        m = len(blocks)
        parts = [(sum(d[x] for x in block), sum(p1[x] for x in block)) for block in blocks]
        return sum(((e - 1) * a) ** 2 / (1 + (e - 1) * b) for a, b in parts) / (e + m - 1)

    best = max(kept([[0], [1, 2], [3]]), kept([[0], [1, 2, 3]]))
    assert abs(kept([[0, 1], [2, 3]]) / best / least_share(e) - 1) < Fraction(1, 100)


@pytest.mark.parametrize("f", [KL, SQUARED_HELLINGER])
def test_other_smooth_divergences_come_as_low(f):
    """Near ratio one every smooth f is chi-squared, so that the least share of each is at most the formula."""
    p1 = np.array([1e-4, 0.4999, 0.4999, 1e-4])
    p0 = p1 + np.array([1e-5, 1e-9, -1e-9, -1e-5])
    utility = Divergence(f, p0, p1)
    for epsilon in (0.5, 2.0, 4.0):
        share = utility.value(binary(p0, p1, epsilon)) / optimal_channel(utility, LocalDP(epsilon), certify=False).value
        assert share == pytest.approx(least_share(np.exp(epsilon)), rel=1e-2)


@pytest.mark.parametrize("f", [CHI_SQUARED, KL])
def test_erasing_the_pure_optimum_loses_nearly_a_quarter(f):
    """At e^epsilon = 2 and a small cap the erased optimum keeps max((E+2)^-1 (E+1), (1 + 1/E)/2) = 3/4 [GI, Thm 8]."""
    p1 = np.array([1e-4, 0.9998, 1e-4])
    p0 = p1 + np.array([1e-5, 0.0, -1e-5])
    utility, epsilon = Divergence(f, p0, p1), float(np.log(2.0))
    eta = 0.1 * np.tanh(epsilon / 2)
    pure = optimal_channel(utility, LocalDP(epsilon), certify=False).value
    capped = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)])
    assert capped.certified
    assert 0.1 * pure / capped.value == pytest.approx(0.75, rel=1e-3)


SQUARED = [
    CHI_SQUARED, KL, SQUARED_HELLINGER, REVERSE_KL, NEYMAN_CHI_SQUARED, JEFFREYS, LE_CAM, JENSEN_SHANNON,
]  # fmt: skip


@pytest.mark.full(but=3)
@pytest.mark.parametrize("divergence", SQUARED, ids=lambda f: f.name)
def test_private_channels_contract_by_the_square_of_tanh(trials, divergence):
    """[AZ] D(M0 || M1) <= tanh(eps/2)^2 D(P0 || P1) for every eps-LDP channel and these divergences."""
    for p0, p1, q, epsilon, _ in trials:
        kept = divergence(q.push(p0), q.push(p1))
        assert kept <= asoodeh_zhang(divergence, p0, p1, epsilon) * (1 + 1e-11)


@pytest.mark.full(but=4)
@pytest.mark.parametrize("divergence", [*NAMED.values(), hockey_stick(1.5), hockey_stick(0.4), alpha(3), alpha(-1)])
def test_every_divergence_contracts_by_the_dobrushin_coefficient(trials, divergence):
    """[Dobrushin] D_f(M0 || M1) <= eta D_f(P0 || P1) for every channel of Dobrushin coefficient eta."""
    for p0, p1, q, _, eta in trials:
        # The hockey stick of orders below one is a difference of numbers near 1 - gamma.
        assert divergence(q.push(p0), q.push(p1)) <= dobrushin(divergence, p0, p1, eta) * (1 + 1e-11) + 1e-15


def flip(epsilon):
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Channel([[keep, 1 - keep], [1 - keep, keep]])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_randomized_response_attains_chi_squared(epsilon):
    """[AZ] Binary randomized response contracts chi-squared by exactly tanh(eps/2)^2 when P1 is uniform."""
    q, p0, p1 = flip(epsilon), [0.7, 0.3], [0.5, 0.5]
    kept = CHI_SQUARED(q.push(p0), q.push(p1))
    assert kept == pytest.approx(asoodeh_zhang(CHI_SQUARED, p0, p1, epsilon), rel=1e-11)


@pytest.mark.parametrize("divergence", SQUARED, ids=lambda f: f.name)
def test_close_pairs_attain_the_bound_in_the_limit(divergence):
    """[AZ] For pairs at distance d about the uniform one, the ratio to the bound is 1 - O(d^2)."""
    short = []
    for d in (0.02, 0.01):
        p0, p1, q = [0.5 + d, 0.5 - d], [0.5 - d, 0.5 + d], flip(1.0)
        short.append(1 - divergence(q.push(p0), q.push(p1)) / asoodeh_zhang(divergence, p0, p1, 1.0))
    assert -1e-13 <= short[0] < 0.01
    assert short[0] / short[1] == pytest.approx(4.0, rel=0.01) or short[0] < 1e-12


def test_point_masses_attain_the_dobrushin_coefficient():
    """[Dobrushin] For total variation the bound is attained by point masses on the two most distant rows."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        q = rng.dirichlet(np.ones(4), size=5)
        distances = [(abs(q[x] - q[y]).sum() / 2, x, y) for x in range(5) for y in range(5)]
        eta, x, y = max(distances)
        p0, p1 = np.eye(5)[x], np.eye(5)[y]
        assert TOTAL_VARIATION(p0 @ q, p1 @ q) == pytest.approx(dobrushin(TOTAL_VARIATION, p0, p1, eta), rel=1e-12)


def test_total_variation_contracts_more_slowly():
    """Total variation contracts by tanh(eps/2), not by its square: the bound refuses it, and the example shows why."""
    q, p0, p1 = flip(1.0), [1, 0], [0, 1]
    assert TOTAL_VARIATION(q.push(p0), q.push(p1)) > 1.5 * math.tanh(0.5) ** 2
    for divergence in (TOTAL_VARIATION, hockey_stick(1.5), alpha(2.5)):
        with pytest.raises(InvalidInput, match="divergence: expected one of chi-squared divergence, KL divergence"):
            asoodeh_zhang(divergence, p0, p1, 1.0)


def test_infinite_divergences_have_infinite_bounds():
    """Disjoint populations at infinite divergence give an infinite bound, and zero when eta is zero."""
    assert asoodeh_zhang(KL, [1, 0], [0, 1], 1.0) == math.inf
    assert dobrushin(KL, [1, 0], [0, 1], 0.5) == math.inf
    assert dobrushin(KL, [1, 0], [0, 1], 0.0) == 0


def test_contraction_values_agree_with_thirty_digits():
    """The contraction bounds agree with values computed with 30 digits."""
    assert asoodeh_zhang(KL, [0.9, 0.1], [0.4, 0.6], 1.0) == pytest.approx(0.117594957808143119, rel=2e-12)
    assert dobrushin(CHI_SQUARED, [0.9, 0.1], [0.4, 0.6], 0.5) == pytest.approx(0.520833333333333333, rel=1e-13)


def test_bad_levels_are_refused_by_bounds_of_divergences():
    """Bad epsilon and eta are errors."""
    with pytest.raises(InvalidInput, match="epsilon"):
        asoodeh_zhang(KL, [1, 0], [0, 1], 0)
    with pytest.raises(InvalidInput, match="eta"):
        dobrushin(KL, [1, 0], [0, 1], 2)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 9e-4, 2.9e-3, 3.1e-3, 0.5, 1.0, 3.0, 60.0, 700.0])
def test_the_capacity_agrees_with_sixty_digits(epsilon):
    """t - 1 - log t, never below it, and a* = (t - 1)/(e^epsilon - 1), in 60 digits."""
    with mpmath.workdps(60):
        exact = mpmath.mpf(epsilon)
        t = exact / (1 - mpmath.exp(-exact))
        capacity, mass = t - 1 - mpmath.log(t), (t - 1) / mpmath.expm1(exact)
        assert capacity <= information_capacity(epsilon) <= capacity * (1 + mpmath.mpf(1e-7))
        assert abs(capacity_mass(epsilon) / mass - 1) < 1e-11


@pytest.mark.parametrize(("epsilon", "capacity", "mass"), [(1.0, 0.12330156, 0.339), (3.0, 1.00750562, 0.113)])
def test_the_capacity_mass_agrees_with_a_search(epsilon, capacity, mass):
    """The capacity masses agree with those of a search over masses."""
    assert information_capacity(epsilon) == pytest.approx(capacity, abs=6e-9)
    assert capacity_mass(epsilon) == pytest.approx(mass, abs=6e-4)


def test_no_optimum_exceeds_the_information_bound_under_a_cap():
    """No certified optimum of a small problem exceeds the bound for any eta; the bound is the least of its parts."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        prior, epsilon = rng.dirichlet(np.ones(3)), float(rng.uniform(0.3, 4))
        for share in (1e-6, 0.5, 1.0):
            eta = share * math.tanh(epsilon / 2)
            caps = [LocalDP(epsilon), TotalVariation(eta)]
            bound = information_under_cap(prior, epsilon, eta)
            assert optimal_channel(MutualInformation(prior), caps).value <= bound
            assert bound <= min(
                information_capacity(epsilon), eta * MutualInformation(prior).value_without_privacy * (1 + 1e-12)
            )


def test_the_bound_under_a_cap_is_the_one_dimensional_program():
    """It is the least of c(n) + eta n (1 - sum P^2), on a grid of n and of masses."""
    prior, epsilon, eta = np.full(50, 0.02), 1.0, 0.2
    level, a = 1 / math.expm1(1.0), np.linspace(0, 1, 4001)
    mean = level + a
    h = a * (level + 1) * np.log((level + 1) / mean) + (1 - a) * level * np.log(level / mean)
    least = min(
        n * eta * (1 - 0.02) + ((h - n * a * (1 - a)) / mean).max() for n in np.linspace(0, (level + 1) - 1, 3001)
    )
    assert information_under_cap(prior, epsilon, eta) == pytest.approx(least, rel=1e-5)


def test_the_ends():
    """An eta of 0 keeps nothing, a single answer has nothing to tell, and what is no number is refused."""
    assert information_under_cap([0.5, 0.5], 1.0, 0.0) == 0
    assert information_under_cap([1.0, 0.0], 1.0, 0.5) == 0
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidInput):
            information_capacity(bad)
        with pytest.raises(InvalidInput):
            capacity_mass(bad)
    with pytest.raises(InvalidInput):
        information_under_cap([0.5, 0.5], 1.0, 1.5)


P0, P1 = [0.9, 0.1], [0.4, 0.6]


def test_no_channel_exceeds_duchi_jordan_wainwright(trials):
    """[GI, Thm 6] J(M0, M1) <= min{4, e^2eps} (e^eps - 1)^2 TV(P0, P1)^2 for every eps-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert JEFFREYS(q.push(p0), q.push(p1)) <= duchi_jordan_wainwright(p0, p1, epsilon) * (1 + 1e-12)


def test_no_channel_exceeds_ghazi_issa(trials):
    """[GI, Thm 7] J(M0, M1) <= 2 eta min{2, e^eps} (e^eps - 1) TV(P0, P1)^2 for every eps-LDP, eta-TV channel."""
    for p0, p1, q, epsilon, eta in trials:
        reached = JEFFREYS(q.push(p0), q.push(p1))
        assert reached <= jeffreys_of_total_variation(p0, p1, epsilon, eta) * (1 + 1e-12)
        assert reached <= ghazi_issa(p0, p1, epsilon, eta) * (1 + 1e-12)


def test_no_channel_exceeds_the_corollary_of_ghazi_issa(trials):
    """[GI, Cor 2] J(M0, M1) <= 2 min{2, e^eps} (e^eps - 1)^2 / (e^eps + 1) TV(P0, P1)^2 for every eps-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert JEFFREYS(q.push(p0), q.push(p1)) <= ghazi_issa_corollary(p0, p1, epsilon) * (1 + 1e-12)


def test_each_bound_improves_on_the_one_before():
    """[GI, eq 45] With eta = tanh(eps/2) Theorem 7 is Corollary 2, which is never above Theorem 6."""
    for epsilon in np.geomspace(1e-6, 300, 60):
        corollary = ghazi_issa_corollary(P0, P1, epsilon)
        assert ghazi_issa(P0, P1, epsilon, math.tanh(epsilon / 2)) == pytest.approx(corollary, rel=1e-12)
        assert corollary <= duchi_jordan_wainwright(P0, P1, epsilon)
        assert ghazi_issa(P0, P1, epsilon, 0.3 * math.tanh(epsilon / 2)) == pytest.approx(0.3 * corollary, rel=1e-12)


def test_small_epsilon_is_within_a_factor_of_the_truth():
    """At small eps the binary mechanism reaches half of Theorem 7 (min{2, e^eps} is 1 there): J = eps^2 TV^2 / 1."""
    epsilon = 1e-4
    first = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    m0, m1 = np.dot(P0, first), np.dot(P1, first)
    reached = JEFFREYS([m0, 1 - m0], [m1, 1 - m1])
    assert reached / ghazi_issa_corollary(P0, P1, epsilon) == pytest.approx(1.0, rel=1e-3)


def test_jeffreys_bounds_agree_with_thirty_digits():
    """Values of the three formulas computed with 30 digits."""
    assert duchi_jordan_wainwright(P0, P1, 0.5) == pytest.approx(0.285989946678391454, rel=1e-13)
    assert ghazi_issa(P0, P1, 0.5, 0.1) == pytest.approx(0.0534780278879458544, rel=1e-13)
    assert ghazi_issa_corollary(P0, P1, 0.5) == pytest.approx(0.130977670583039527, rel=1e-13)
    assert duchi_jordan_wainwright(P0, P1, 1.0) == pytest.approx(4 * (math.e - 1) ** 2 / 4, rel=1e-13)


def test_the_ends_of_the_range():
    """Equal populations give zero at any epsilon; a huge epsilon gives a huge or infinite bound, not an error."""
    assert duchi_jordan_wainwright(P0, P0, 500) == 0
    assert duchi_jordan_wainwright(P0, P1, 500) == math.inf
    assert ghazi_issa(P0, P1, 500, 1.0) > 1e200
    assert ghazi_issa(P0, P1, 1.0, 0.0) == 0


def test_an_eta_above_what_epsilon_allows_does_not_bind():
    """[GI, Prop 2] eta above tanh(eps/2) changes nothing."""
    assert ghazi_issa(P0, P1, 1.0, 0.9) == pytest.approx(ghazi_issa(P0, P1, 1.0, math.tanh(0.5)), rel=1e-14)


@pytest.mark.parametrize(
    "bound", [duchi_jordan_wainwright, ghazi_issa_corollary, lambda p, q, e: ghazi_issa(p, q, e, 0.1)]
)
def test_jeffreys_bounds_refuse_bad_populations(bound):
    """A bad epsilon and bad populations are errors."""
    for epsilon in (0, -1, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="epsilon: expected a"):
            bound(P0, P1, epsilon)
    with pytest.raises(InvalidInput, match="sum to 1"):
        bound([0.5, 0.4], P1, 1.0)


def test_jeffreys_bounds_refuse_a_bad_eta():
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match="eta: expected a number in"):
        ghazi_issa(P0, P1, 1.0, -0.1)


def test_an_epsilon_ldp_channel_leaves_at_most_tanh_half_epsilon(trials):
    """[GI, Thm 4] TV(M0, M1) <= tanh(epsilon/2) TV(P0, P1) for every epsilon-LDP channel."""
    for p0, p1, q, epsilon, _ in trials:
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) <= kairouz_oh_viswanath(p0, p1, epsilon) + 1e-15


def test_an_eta_tv_channel_leaves_at_most_eta(trials):
    """[GI, Thm 5] TV(M0, M1) <= eta TV(P0, P1) for every eta-TV channel."""
    for p0, p1, q, _, eta in trials:
        assert TOTAL_VARIATION(q.push(p0), q.push(p1)) <= ghazi_issa_total_variation(p0, p1, eta) + 1e-15


def test_the_binary_mechanism_with_erasure_attains_both_bounds():
    """[GI, Thm 4-5] The binary mechanism, with erasure for eta, attains equality for any P0 and P1."""
    rng = np.random.default_rng(5)
    for epsilon in (0.01, 0.5, 2.0, 8.0):
        for k in (2, 5, 9):
            p0, p1 = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))
            first = np.where(p0 >= p1, math.exp(epsilon), 1.0) / (1 + math.exp(epsilon))
            q = Channel(np.stack([first, 1 - first], axis=1))
            assert local_dp(q).value == pytest.approx(epsilon, rel=1e-12)
            kept = TOTAL_VARIATION(q.push(p0), q.push(p1))
            assert kept == pytest.approx(kairouz_oh_viswanath(p0, p1, epsilon), rel=1e-12)
            eta = 0.4 * math.tanh(epsilon / 2)
            erased = q.erase(0.6)
            assert total_variation(erased).value == pytest.approx(eta, rel=1e-12)
            kept = TOTAL_VARIATION(erased.push(p0), erased.push(p1))
            assert kept == pytest.approx(ghazi_issa_total_variation(p0, p1, eta), rel=1e-12)


def test_total_variation_bounds_are_their_formulas():
    """The bounds are their formulas: tanh(1/2) / 2 and 0.3 / 2 at TV one half."""
    p0, p1 = [0.9, 0.1], [0.4, 0.6]
    assert kairouz_oh_viswanath(p0, p1, 1.0) == pytest.approx(0.231058578630004879, rel=1e-14)
    assert ghazi_issa_total_variation(p0, p1, 0.3) == pytest.approx(0.15, rel=1e-14)
    assert ghazi_issa_total_variation(p0, p1, 0) == 0
    assert kairouz_oh_viswanath(p0, p0, 1.0) == 0


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None])
def test_epsilon_must_be_positive_and_finite(epsilon):
    """An epsilon that is no positive finite number is an error."""
    with pytest.raises(InvalidInput, match="epsilon: expected a"):
        kairouz_oh_viswanath([1, 0], [0, 1], epsilon)


@pytest.mark.parametrize("eta", [-0.1, 1.1, math.nan, "1", None])
def test_eta_must_be_in_the_unit_interval(eta):
    """An eta outside [0, 1] is an error."""
    with pytest.raises(InvalidInput, match=re.escape("eta: expected a number in [0, 1]")):
        ghazi_issa_total_variation([1, 0], [0, 1], eta)


def test_the_populations_must_be_distributions_of_one_length():
    """Entries that do not sum to one and mismatched lengths are errors."""
    with pytest.raises(InvalidInput, match="p0: expected entries that sum to 1"):
        kairouz_oh_viswanath([1, 1], [0, 1], 1.0)
    with pytest.raises(InvalidInput, match="p1: expected 2 entries, as many as p0, got 3"):
        ghazi_issa_total_variation([1, 0], [0, 1, 0], 0.5)
