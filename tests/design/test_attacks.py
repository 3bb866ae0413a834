"""Attacks on designs that once succeeded, each as a sentence of what must hold."""

import math

import mpmath
import networkx as nx
import numpy as np
import pytest
from attacked import P0, P1
from truth.decisions import Estimate
from truth.feasible import violations
from truth.optimum import optimum, rows_of
from truth.utilities import Kept, Pair, Prior, divergence_utility

from ldpopt import (
    AgainstSet,
    ApproximateLDP,
    Channel,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    LocalDP,
    MutualInformation,
    MVOptimal,
    PrivateSampling,
    RenyiLDP,
    TotalVariation,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.design import (
    ColumnUtility,
    ConcentratedLDP,
    Exchange,
    Hull,
    LocalSearch,
    Outputs,
    TangentExchange,
    TradeOff,
)
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    KL,
    LE_CAM,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    hockey_stick,
)
from ldpopt.privacy import TradeOffCurve, zcdp
from ldpopt.privacy import hockey_stick as delta_of

ZERO = [0.2, 0.8, 0.0]


def exact(f, p0, p1, epsilon, eta=1.0):
    """The optimum of one pair under LDP and total variation, from below, as a float."""
    return float(optimum(divergence_utility(f, p0, p1), epsilon, eta).lower)


def exact_value(f, p0, p1, matrix):
    """What a channel keeps, in high precision."""
    with mpmath.workdps(80):
        return float(divergence_utility(f, p0, p1).value(rows_of(np.asarray(matrix))))


def proves(design):
    """Certified by a finite bound that is recomputed."""
    return design.certified and math.isfinite(design.upper_bound) and bool(design.verify())


# -- bounds that are none ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "name"), [(KL, "kl"), (JEFFREYS, "jeffreys"), (CHI_SQUARED, "chi-squared")])
@pytest.mark.parametrize(
    "constraints", [[LocalDP(1.0)], [LocalDP(1.0), TotalVariation(0.3)], [LocalDP(1.0), Outputs(3)]]
)
def test_a_divergence_that_is_infinite_without_privacy_has_a_finite_proved_bound_under_ldp(f, name, constraints):
    """`inf <= inf` proves nothing."""
    design = optimal_channel(Divergence(f, P0, ZERO), constraints)
    assert math.isfinite(design.upper_bound)
    assert proves(design)
    eta = 0.3 if TotalVariation(0.3) in constraints else 1.0
    assert design.value == pytest.approx(exact((name,), P0, ZERO, 1.0, eta), rel=1e-6)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("prior", "epsilon"),
    [([0.4, 0.3, 0.2, 0.1], 1.0), ([0.4, 0.3, 0.2, 0.1], 6.0), ([0.7, 0.2, 0.1], 1.0), ([0.25] * 4, 6.0)],
)
def test_no_channel_has_a_largest_variance_below_the_lower_bound(prior, epsilon):
    """And the certificate of the design is the one that proves its bound."""
    design = optimal_channel(FisherInformation(prior, MVOptimal()), LocalDP(epsilon))
    truth = Estimate(np.array(prior), "mv")
    reached = float(truth.value(rows_of(truth.best(epsilon, 1.0))))
    assert design.lower_bound <= reached * (1 + 1e-9)
    assert design.lower_bound <= design.value
    assert design.value <= reached * (1 + 1e-5)
    assert design.certified
    assert design.verify()
    assert design.certificate.verify()


def test_the_largest_variance_under_a_tiny_cap_is_not_bounded_by_a_bad_channel():
    """Randomized response, erased until eta = 1e-4 holds, errs half as much as the bound once said was possible."""
    prior = np.array([0.4, 0.6])
    design = optimal_channel(FisherInformation(prior, MVOptimal()), [LocalDP(1.0), TotalVariation(1e-4)])
    flip = np.array([[math.e, 1.0], [1.0, math.e]]) / (math.e + 1)
    keep = 0.999e-4 / math.tanh(0.5)
    reached = float(Estimate(prior, "mv").value(rows_of(np.hstack([keep * flip, np.full((2, 1), 1 - keep)]))))
    assert design.lower_bound <= reached * (1 + 1e-9)
    assert design.certified
    assert design.value <= reached
    assert design.verify()


def test_a_bound_counts_patterns_of_no_worth_and_negative_charge():
    """The bound of a hockey stick at a large epsilon is not below what a channel keeps, however slightly."""
    p1 = [0.1, 0.2, 0.7]
    eta = 0.999 * math.tanh(4)
    design = optimal_channel(Divergence(hockey_stick(1.7), P0, p1), [LocalDP(8.0), TotalVariation(eta)])
    truth = exact(("hockey-stick", 1.7), P0, p1, 8.0, eta)
    assert design.upper_bound >= truth * (1 - 1e-14)
    assert design.value <= design.upper_bound
    assert proves(design)


# -- gaps that are none ------------------------------------------------------------------------------------------------


def test_certified_values_are_relatively_near_a_tiny_optimum():
    """(epsilon, 0)-LDP at epsilon = 1e-7 keeps more than nothing."""
    pair = ([0.75, 0.25], [0.25, 0.75])
    design = optimal_channel(Divergence(KL, *pair), ApproximateLDP(1e-7, 0.0))
    truth = exact(("kl",), *pair, 1e-7)
    assert design.upper_bound >= truth * (1 - 1e-9)
    assert not design.certified or design.value >= truth * (1 - 1.1 * design.tolerance)


def test_mutual_information_under_a_tiny_cap_is_certified_only_within_its_tolerance():
    """A gap of a tenth is no certificate, though both numbers are tiny."""
    design = optimal_channel(MutualInformation(P0), [LocalDP(1e-3), TotalVariation(1e-9)])
    truth = float(optimum(Kept((((1.0, Prior(tuple(P0))),),)), 1e-3, 1e-9).lower)
    assert design.upper_bound >= truth * (1 - 1e-9)
    if design.certified:
        assert design.value >= truth * (1 - 1.1 * design.tolerance)
        assert design.relative_gap <= design.tolerance


# -- ordinary inputs ---------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_renyi_designs_of_near_hypotheses_are_nearly_optimal():
    """Hypotheses 0.1 % apart have a design, near that of a channel one can write down."""
    p0 = np.array(P0)
    p1 = p0 * [1.001, 1.0, 0.9985]
    p1 /= p1.sum()
    design = optimal_channel(Divergence(KL, p0, p1), RenyiLDP(2.0, 0.5))
    flip = binary(lambda q: renyi_two(q) <= 0.5, 3)
    assert design.value >= 0.999 * exact_value(("kl",), p0, p1, flip)
    assert math.isfinite(design.upper_bound)


def binary(holds, k):
    """Randomized response on the first input against the others, as open as `holds` allows."""
    low, high = 0.0, 0.5
    for _ in range(50):
        bias = (low + high) / 2
        q = np.full((k, 2), 0.5) + bias * np.array([[1, -1]] + [[-1, 1]] * (k - 1))
        low, high = (bias, high) if bias < 0.5 and holds(q) else (low, bias)
    return np.full((k, 2), 0.5) + low * (1 - 1e-9) * np.array([[1, -1]] + [[-1, 1]] * (k - 1))


def renyi_two(q):
    """The Rényi divergence of order 2 between its extreme rows."""
    return max(math.log(float((a**2 / b).sum())) for a, b in ((q[0], q[-1]), (q[-1], q[0])))


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1e-4, 20.0])
def test_a_renyi_constraint_is_solved_at_small_and_large_epsilon(epsilon):
    """Without a failure of the solver, and at least as well as by randomized response."""
    p1 = [0.2, 0.4, 0.4]
    design = optimal_channel(Divergence(KL, P0, p1), RenyiLDP(2.0, epsilon))
    flip = binary(lambda q: renyi_two(q) <= epsilon, 3)
    assert design.value >= 0.999 * exact_value(("kl",), P0, p1, flip)
    assert design.value <= design.upper_bound < math.inf


@pytest.mark.full
def test_concentrated_privacy_at_a_small_rho_keeps_something():
    """rho = 1e-4 is no reason for a constant channel."""
    p0, p1 = [0.7, 0.3], [0.4, 0.6]
    design = optimal_channel(Divergence(KL, p0, p1), ConcentratedLDP(1e-4), method=TangentExchange(accuracy=1e-4))
    flip = binary(lambda q: float(zcdp(q)) <= 1e-4, 2)
    assert design.value >= 0.999 * exact_value(("kl",), p0, p1, flip) > 0


@pytest.mark.full(but=2)
@pytest.mark.parametrize("number", [0, 2, 5, 7])
def test_differences_near_one_in_ten_million_raise_no_raw_error(number):
    """Hypotheses 1e-7 apart, mixed constraints: a design, or an error of the package."""
    rng = np.random.default_rng(number)
    k = 3 if number < 4 else 2
    p0 = rng.dirichlet(np.ones(k))
    p1 = p0 * (1 + 1e-7 * rng.standard_normal(k))
    p1 /= p1.sum()
    extra = [ApproximateLDP(0.5, 0.01), RenyiLDP(2.0, 0.3), TotalVariation(0.1), ConcentratedLDP(0.1)][number % 4]
    design = optimal_channel(Divergence([KL, CHI_SQUARED][number // 4], p0, p1), [LocalDP(1.0), extra])
    assert design.value > 0
    assert design.upper_bound >= design.value


@pytest.mark.parametrize("epsilon", [60.0, 300.0])
def test_mutual_information_has_a_design_at_large_epsilon(epsilon):
    """It is nearly all of the entropy."""
    design = optimal_channel(MutualInformation(P0), LocalDP(epsilon))
    truth = float(optimum(Kept((((1.0, Prior(tuple(P0))),),)), epsilon).lower)
    assert design.value == pytest.approx(truth, rel=1e-6)
    assert design.upper_bound >= truth * (1 - 1e-12)


def test_exchange_works_at_tiny_epsilon():
    """epsilon = 1e-8 is small, not zero."""
    design = optimal_channel(Divergence(KL, P0, P1), LocalDP(1e-8), method=Exchange())
    truth = exact(("kl",), P0, P1, 1e-8)
    assert design.upper_bound >= truth * (1 - 1e-9)
    assert not design.certified or design.value >= truth * (1 - 1.1 * design.tolerance)


@pytest.mark.parametrize("epsilon", [30.0, 60.0])
def test_a_policy_graph_is_solved_at_large_epsilon(epsilon):
    """At least what the same epsilon keeps between all inputs."""
    design = optimal_channel(Divergence(KL, P0, P1), LocalDP(epsilon, nx.path_graph(3)))
    assert design.value >= exact(("kl",), P0, P1, epsilon) * (1 - 1e-6)
    assert design.upper_bound < math.inf


@pytest.mark.parametrize("epsilon", [60.0, 300.0])
def test_losses_and_few_outputs_are_solved_at_large_epsilon(epsilon):
    """Nearly full disclosure of the decision."""
    loss = optimal_channel(ExpectedLoss(P0, 1 - np.eye(3)), LocalDP(epsilon))
    assert loss.value >= -1e-9
    two = optimal_channel(Divergence(KL, P0, P1), [LocalDP(epsilon), Outputs(2)])
    flip = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert two.value >= 0.999 * exact_value(("kl",), P0, P1, flip)


def test_a_path_with_rare_inputs_reaches_its_optimum():
    """0.442717, the optimum of the linear program over the eight extreme columns of the path."""
    p, q = [0.5, 0.3, 0.2, 1e-12], [0.2, 0.3, 1e-12, 0.5]
    p, q = (np.array(v) / np.sum(v) for v in (p, q))
    design = optimal_channel(Divergence(CHI_SQUARED, p, q), LocalDP(1.0, nx.path_graph(4)))
    assert design.value >= 0.4427
    assert design.value <= design.upper_bound <= 0.4428


# -- refusals, useless bounds, false ones ------------------------------------------------------------------------------


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    "constraint",
    [LocalDP(1.0, nx.path_graph(3)), ApproximateLDP(1.0, 0.0), RenyiLDP(2.0, 0.5), ConcentratedLDP(0.2)],
    ids=["graph", "approximate", "renyi", "zcdp"],
)
def test_a_finite_optimum_of_a_divergence_with_a_zero_is_not_refused(constraint):
    """These constraints leave every report possible under every answer."""
    design = optimal_channel(Divergence(KL, P0, ZERO), constraint)
    assert 0 < design.value <= design.upper_bound < math.inf
    assert design.relative_gap < 1e-3
    assert design.certificate.verify(exact=True)


def test_the_bound_on_mutual_information_is_not_beyond_the_trivial_one():
    """No channel of total variation eta keeps more than eta times the entropy."""
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    design = optimal_channel(MutualInformation(prior), [LocalDP(20.0), TotalVariation(0.5)])
    assert design.upper_bound <= 0.5 * -(prior * np.log(prior)).sum() * (1 + 1e-9)


FOUR = ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("eta", [1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_the_worst_of_several_divergences_is_found_under_a_tiny_cap(epsilon, eta):
    """At eta = 1e-12 as nearly all of the optimum as at 1e-1."""
    others = [P1, [0.3, 0.5, 0.2]]
    design = optimal_channel(WorstOf(KL, P0, others), [LocalDP(epsilon), TotalVariation(eta)])
    truth = Kept(tuple(((1.0, Pair(("kl",), tuple(P0), tuple(p))),) for p in others))
    best = float(optimum(truth, epsilon, eta).lower)
    assert design.value >= best * (1 - 1e-5)
    assert design.upper_bound >= best * (1 - 1e-9)


@pytest.mark.parametrize("eta", [1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize(
    "utility",
    [
        WeightedSum([1.0, 2.0], [Divergence(KL, *FOUR), MutualInformation(FOUR[0])]),
        ExpectedLoss(FOUR[0], 1 - np.eye(4)),
        PrivateSampling(TOTAL_VARIATION, FOUR),
        PrivateSampling(KL, FOUR),
    ],
    ids=["weighted sum", "loss", "sampling", "sampling, KL"],
)
def test_a_tiny_cap_on_total_variation_can_be_met(utility, eta):
    """There is a design, not an error of repair, and its channel meets the cap."""
    design = optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)])
    assert all(float(g) <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    assert design.upper_bound >= design.value


class Guess(ColumnUtility):
    """sum_y max_x Q[x, y]: a utility of one's own, convex and homogeneous."""

    inputs = None
    size = 2
    name = "chance to guess, doubled"
    value_without_privacy = 2.0

    def columns(self, matrix):
        return matrix.max(axis=0)[None]

    def gradients(self, matrix):
        return np.eye(2)[matrix.argmax(axis=0)][None]


def test_the_bound_of_a_users_utility_exceeds_a_channels_value():
    """A utility that the package does not know has no bound that it does not prove."""
    design = optimal_channel(Guess(), ApproximateLDP(0.5, 0.01), method=LocalSearch(1, outputs=1))
    e = math.exp(0.5)
    q = np.array([[e, 1.0], [1.0, e]]) / (e + 1)
    assert float(delta_of(Channel(q), 0.5)) <= 0.01
    assert design.upper_bound >= Guess().value(q)


def test_the_bound_on_mutual_information_under_renyi_is_not_above_full_disclosure():
    """RenyiLDP(2, 10) leaves nearly everything, and no more."""
    prior = np.array(P0)
    design = optimal_channel(MutualInformation(prior), RenyiLDP(2.0, 10.0))
    assert design.upper_bound <= -(prior * np.log(prior)).sum() * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("caps", [[], [TotalVariation(1e-9)]], ids=["alone", "and TV"])
@pytest.mark.parametrize("pair", [([0.5, 0.5], [0.25, 0.75]), ([0.9, 0.1], [0.1, 0.9]), (P0, P1)])
def test_the_bound_holds_for_the_exact_epsilon(epsilon, caps, pair):
    """The bound is not for an epsilon a little smaller, which at epsilon = 1e-8 makes 2e-8 of the bound."""
    design = optimal_channel(Divergence(KL, *pair), [LocalDP(epsilon), *caps])
    truth = exact(("kl",), *pair, epsilon, 1e-9 if caps else 1.0)
    assert design.upper_bound >= truth * (1 - 1e-12)


# -- Beyond the list ---------------------------------------------------------------------------------------------------


def test_a_channel_within_an_asymmetric_trade_off_curve_is_nowhere_below_it():
    """T(Q[x], Q[x']) >= f for all ordered pairs says T >= max(f, f^-1), not the lower of the two [DRS, Prop 2.4]."""
    knots = ((0.0, 1.0), (0.03, 0.83), (0.21, 0.67), (1.0, 0.0))
    design = optimal_channel(Divergence(SQUARED_HELLINGER, [0.44, 0.56], [0.84, 0.16]), TradeOff(TradeOffCurve(knots)))
    assert not violations(design.channel.matrix, [("trade-off", knots)])


@pytest.mark.parametrize(
    ("utility", "constraints"),
    [
        (
            Divergence(LE_CAM, [0.6655968747878074, 0.2668149100437507, 0.06758821516844193],
                       [0.7426929281303485, 0.2573070718696515, 0.0]),
            [LocalDP(0.866), TotalVariation(0.35162767640552556)],
        ),
        (
            AgainstSet(LE_CAM, [1 / 3] * 3, Hull([[0.53600894, 0.22767243, 0.23631863],
                                                 [0.53771669, 0.21182367, 0.25045964]])),
            [LocalDP(6.6068307088342334e-06)],
        ),
    ],
    ids=["cap", "set"],
)  # fmt: skip
def test_the_channel_that_is_returned_keeps_its_caps(utility, constraints):
    """Merged reports and rows spread over all inputs may measure an ulp more than what was repaired: it is seen."""
    design = optimal_channel(utility, constraints)
    for constraint, guarantee in zip(constraints, design.guarantees, strict=True):
        assert guarantee.value <= constraint.bound
        assert constraint.measure(design.channel).value <= constraint.bound
    assert design.verify() or not design.certified
