"""Tests of `ldpopt.design.optimal`: the designs of the oracle, the theorems of [GI], and bad problems."""

import math

import numpy as np
import pytest
from design_problems import DIVERGENCES, ORACLE, constraints, random_pair, utility
from scipy import stats

from ldpopt import Channel, Divergence, InvalidInput, LocalDP, TotalVariation, optimal_channel
from ldpopt import design as design_package
from ldpopt.bounds import erased_share
from ldpopt.design import (
    Contraction,
    EnvelopeDual,
    Erasure,
    MergedPartition,
    Method,
    MutualInformation,
    Partition,
    PatternDual,
    PatternLP,
)
from ldpopt.design.two_hypotheses.method import inputs_envelope_dual
from ldpopt.divergences import CHI_SQUARED, KL, NAMED, TOTAL_VARIATION
from ldpopt.mechanisms import binary_with_erasure
from ldpopt.privacy import local_dp, total_variation


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("number", "method"),
    [*((number, Partition()) for number in range(0, len(ORACLE), 5)), *((number, PatternLP()) for number in (5, 15))],
    ids=lambda one: one if isinstance(one, int) else type(one).__name__,
)
def test_both_methods_reach_the_oracles_optimum(number, method):
    """Both methods reach the brute-force optimum of every divergence, with and without eta, feasible and certified."""
    instance = ORACLE[number]
    epsilon = instance["epsilon"]
    for name, f in DIVERGENCES.items():
        for eta, key in ((None, "optimum_without_eta"), (instance["eta"], "optimum")):
            problem = Divergence(f, instance["p0"], instance["p1"])
            design = optimal_channel(problem, constraints(epsilon, eta), method=method)
            truth = instance[key][name]
            assert design.value == pytest.approx(truth, rel=1e-7, abs=1e-15)
            assert design.upper_bound >= truth * (1 - 1e-9)
            assert design.certified
            assert design.certificate.verify()
            assert float(local_dp(design.channel)) <= epsilon
            assert eta is None or float(total_variation(design.channel)) <= eta


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_two_hundred_inputs_are_certified(seed, epsilon):
    """Random pure LDP designs with 200 inputs are certified to a relative gap of 1e-6."""
    design = optimal_channel(utility(200, seed), LocalDP(epsilon))
    assert design.certified
    assert design.relative_gap <= 1e-6
    assert design.certificate.verify()


@pytest.mark.full
def test_large_alphabet_is_bracketed():
    """Thirty thousand inputs are bracketed to 1e-4, and every input keeps a row in the caller's order."""
    p0, p1 = random_pair(30_000, 5)
    design = optimal_channel(Divergence(KL, p0, p1), LocalDP(1.0))
    assert design.relative_gap <= 1e-4
    assert design.channel.shape[0] == 30_000
    likelier = design.channel.matrix[:, -1] > design.channel.matrix[:, 0]
    assert np.array_equal(np.sort((p0 / p1)[likelier]), np.sort(p0 / p1)[-likelier.sum() :])


@pytest.mark.parametrize(("shift", "epsilon"), [(0.1, 1.0), (1.0, 3.0)])
def test_two_gaussians_are_bracketed_to_1e_4(shift, epsilon):
    """Two Gaussians are bracketed to 1e-4, by intervals whose masses give the value."""
    hypotheses = stats.norm(0, 1), stats.norm(shift, 1)
    design = optimal_channel(Divergence(KL, *hypotheses), LocalDP(epsilon))
    masses = [np.diff(np.concatenate([[0.0], p.cdf(design.edges), [1.0]])) for p in hypotheses]
    marginals = [mass @ design.channel.matrix for mass in masses]
    assert design.value == pytest.approx(stats.entropy(*marginals), rel=1e-9)
    assert design.certified
    assert design.relative_gap <= 1e-4
    assert design.certificate.verify()
    assert design.channel.inputs[np.digitize(-50.0, design.edges, right=True)].startswith("(-inf")


def test_the_binary_threshold_of_gaussians_agrees_with_a_scan():
    """For two close Gaussians and small epsilon the optimum is binary; its best threshold agrees with a scan."""
    p0, p1 = stats.norm(0, 1), stats.norm(0.5, 1)
    design = optimal_channel(Divergence(KL, p0, p1), LocalDP(0.5))
    low = 1 / (1 + math.exp(0.5))
    thresholds = np.linspace(-2, 3, 20001)
    m0, m1 = (low + (1 - 2 * low) * p.cdf(thresholds) for p in (p0, p1))
    scan = m0 * np.log(m0 / m1) + (1 - m0) * np.log((1 - m0) / (1 - m1))
    assert design.value <= scan.max() * (1 + 1e-12)
    assert scan.max() <= design.upper_bound


def test_counts_as_hypotheses():
    """Frozen discrete distributions on infinitely many values are accepted and bracketed."""
    design = optimal_channel(Divergence(KL, stats.poisson(3), stats.poisson(4)), LocalDP(1.0))
    assert design.certified
    masses = [p.pmf(np.arange(60)) for p in (stats.poisson(3), stats.poisson(4))]
    exact = optimal_channel(Divergence(KL, *(m / m.sum() for m in masses)), LocalDP(1.0))
    assert design.value == pytest.approx(exact.value, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_5_holds(seed):
    """[GI, Thm 5]: the optimum of total variation is exactly eta TV(P0, P1), for any P0 and P1."""
    for k, epsilon, share in ((2, 0.3, 0.5), (6, 1.0, 0.9), (40, 2.0, 0.2), (300, 0.7, 0.6)):
        p0, p1 = random_pair(k, seed)
        eta = share * math.tanh(epsilon / 2)
        design = optimal_channel(Divergence(TOTAL_VARIATION, p0, p1), constraints(epsilon, eta))
        assert design.value == pytest.approx(eta * np.abs(p0 - p1).sum() / 2, rel=1e-9)
        assert design.certified


@pytest.mark.parametrize("f", NAMED.values(), ids=NAMED)
def test_theorem_8_holds(f):
    """[GI, Thm 8]: OPT(epsilon, eta) is at least eta (e^epsilon + 1)/(e^epsilon - 1) OPT(epsilon)."""
    for seed in range(2):
        problem = utility(7, seed, f)
        pure = optimal_channel(problem, LocalDP(1.5)).value
        for eta in (0.05, 0.3, 0.6):
            capped = optimal_channel(problem, constraints(1.5, eta)).value
            assert capped >= erased_share(1.5, eta) * pure * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_proposition_2_holds(epsilon):
    """[GI, Prop 2]: an epsilon-LDP channel is tanh(epsilon/2)-TV, so such an eta does not bind; the design says so."""
    problem = utility(9, 1)
    pure = optimal_channel(problem, LocalDP(epsilon))
    assert float(total_variation(pure.channel)) <= math.tanh(epsilon / 2) * (1 + 1e-12)
    loose = optimal_channel(problem, constraints(epsilon, math.tanh(epsilon / 2)))
    assert loose.value == pytest.approx(pure.value, rel=1e-12)
    assert "does not bind" in loose.note


def test_the_optimum_exceeds_erasure_by_more_than_5_percent():
    """Erasing the best epsilon-LDP channel can lose more than 5 % of what the cap allows, binary with erasure too."""
    p0, p1 = [0.13, 0.69, 0.01, 0.03, 0.14], [0.16, 0.6, 0.08, 0.15, 0.01]
    problem, epsilon, eta = Divergence(KL, p0, p1), 2.0, 0.5 * math.tanh(1.0)
    best = optimal_channel(problem, constraints(epsilon, eta))
    erased = erased_share(epsilon, eta) * optimal_channel(problem, LocalDP(epsilon)).value
    assert best.certified
    assert best.value > 1.05 * erased
    assert best.value > 1.05 * problem.value(binary_with_erasure(p0, p1, epsilon, eta))


def test_erasure_is_optimal_under_total_variation_alone():
    """Under a TV cap alone the optimum is eta D_f(P0 || P1), attained by erasure of full disclosure [Dobrushin]."""
    problem = Divergence(CHI_SQUARED, [0.5, 0.3, 0.2], [0.2, 0.5, 0.3])
    design = optimal_channel(problem, TotalVariation(0.3))
    assert design.value == pytest.approx(0.3 * problem.value_without_privacy, rel=1e-12)
    assert isinstance(design.certificate, Contraction)
    assert design.certified
    with pytest.raises(InvalidInput, match="add LocalDP"):
        optimal_channel(Divergence(KL, [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]), TotalVariation(0.3))


def test_value_is_that_of_the_returned_channel():
    """Value and guarantees are those of the returned matrix, measured again from it."""
    problem = utility(6, 3)
    design = optimal_channel(problem, constraints(1.0, 0.2))
    m0, m1 = problem.p0 @ design.channel.matrix, problem.p1 @ design.channel.matrix
    assert design.value == pytest.approx(np.sum(m0 * np.log(m0 / m1)), rel=1e-12)
    for stated, measured in zip(
        design.guarantees, (local_dp(design.channel), total_variation(design.channel)), strict=True
    ):
        assert (stated.notion, stated.witness) == (measured.notion, measured.witness)
        assert measured.value <= stated.value <= measured.value * (1 + 1e-12)
    assert all(float(g) <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))


def test_rows_follow_the_order_and_labels_of_the_caller():
    """Rows follow the caller's inputs and labels; an input that never occurs gets the row of a neighbour."""
    p0, p1 = np.array([0.1, 0.0, 0.5, 0.2, 0.2]), np.array([0.3, 0.0, 0.1, 0.4, 0.2])
    design = optimal_channel(Divergence(KL, p0, p1, inputs=tuple("abcde")), LocalDP(1.0))
    assert design.channel.inputs == tuple("abcde")
    assert np.array_equal(design.channel.matrix[1], design.channel.matrix[0])
    order = [4, 2, 0, 1, 3]
    again = optimal_channel(Divergence(KL, p0[order], p1[order]), LocalDP(1.0))
    assert np.allclose(again.channel.matrix[[2, 4, 0]], design.channel.matrix[[0, 3, 4]], atol=1e-12)
    assert again.value == pytest.approx(design.value, rel=1e-12)


def test_merging_equal_ratios_keeps_the_optimum():
    """Splitting an input into two of the same likelihood ratio changes nothing about the optimum."""
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    whole = optimal_channel(Divergence(KL, p0, p1), constraints(1.3, 0.3))
    parts = np.array([0.25, 0.75, 1.0, 0.5, 0.5])
    at = [0, 0, 1, 2, 2]
    split = optimal_channel(Divergence(KL, p0[at] * parts, p1[at] * parts), constraints(1.3, 0.3))
    assert split.value == pytest.approx(whole.value, rel=1e-9)
    assert np.array_equal(split.channel.matrix[0], split.channel.matrix[1])


def test_an_optimum_of_zero_is_certified():
    """Where no private channel tells the hypotheses apart (hockey-stick, small epsilon) the optimum 0 is certified."""
    design = optimal_channel(utility(5, 2, DIVERGENCES["hockey_stick_1_5"]), LocalDP(0.1))
    assert (design.value, design.upper_bound, design.certified) == (0.0, 0.0, True)
    design = optimal_channel(utility(5, 2), constraints(1.0, 0.0))
    assert (design.value, design.upper_bound, design.certified) == (0.0, 0.0, True)


@pytest.mark.parametrize(("k", "epsilon", "eta"), [(17, 1.0, 0.2), (40, 0.3, 0.1), (61, 4.0, 0.2), (250, 1.5, 0.3)])
def test_the_default_route_is_certified_with_eta(k, epsilon, eta):
    """Under a TV cap the coin between partitions is proved optimal for any number of inputs met in practice."""
    design = optimal_channel(utility(k, 0), constraints(epsilon, eta))
    assert design.certified
    assert design.tolerance == 1e-6
    assert design.relative_gap <= 1e-7
    assert isinstance(design.certificate, EnvelopeDual)
    assert design.verify()


@pytest.mark.parametrize("k", [8, 40])
def test_multipliers_of_a_neighbor_prove_optima_between_break_points(monkeypatch, k):
    """Between two break points in eta one set of multipliers proves every optimum; beyond them new ones are found."""
    problem = utility(k, 0)
    first = optimal_channel(problem, constraints(1.0, 0.10))
    calls = []
    monkeypatch.setattr("ldpopt.design.two_hypotheses.method.inputs_envelope_dual", _counted(calls))
    second = optimal_channel(problem, constraints(1.0, 0.12), neighbor=first)
    assert not calls
    assert second.certified
    assert second.verify()
    assert second.upper_bound > first.upper_bound
    other = optimal_channel(problem, constraints(2.0, 0.5), neighbor=first)
    assert calls
    assert other.certified
    alone = optimal_channel(problem, constraints(2.0, 0.5))
    assert other.value == alone.value
    assert other.verify()
    with pytest.raises(InvalidInput, match="neighbor: expected a Design"):
        optimal_channel(problem, constraints(1.0, 0.1), neighbor="first")
    with pytest.raises(InvalidInput, match="neighbor: expected a Design of a MutualInformation"):
        optimal_channel(MutualInformation([0.5, 0.5]), LocalDP(1.0), neighbor=first)


def _counted(calls):
    def counted(*arguments):
        calls.append(arguments)
        return inputs_envelope_dual(*arguments)

    return counted


def test_each_problem_gets_its_kind_of_certificate():
    """Each kind of problem gets the certificate made for it; certify=False leaves the optimum unbounded."""
    assert isinstance(optimal_channel(utility(10, 0), constraints(1.0, 0.2)).certificate, EnvelopeDual)
    assert isinstance(optimal_channel(utility(10, 0), LocalDP(1.0), method=PatternLP()).certificate, PatternDual)
    bare = optimal_channel(utility(10, 0), LocalDP(1.0), certify=False)
    assert bare.certificate is None
    assert bare.upper_bound == math.inf
    assert not bare.certified
    assert "no certificate" in repr(bare)


def test_the_text_of_a_design_names_each_guarantee_once():
    """A row of the text and of the page is the name of a guarantee, and beside it its sign and number alone."""
    made = optimal_channel(utility(4, 0), constraints(1.0, 0.2))
    rows = dict(made._lines())
    for one in made.guarantees:
        assert rows[one.title] == one.limit
        assert repr(made).count(one.title) == made._repr_html_().count(one.title) == 1


def test_the_tightest_constraint_of_one_kind_counts():
    """Of several caps of one kind the tightest counts."""
    problem = utility(6, 4)
    both = optimal_channel(problem, [LocalDP(2.0), LocalDP(1.0)])
    assert both.value == pytest.approx(optimal_channel(problem, LocalDP(1.0)).value, rel=1e-12)


def test_merged_partition_is_a_lower_bound():
    """Merging inputs restricts the channel: the value never exceeds the exact one and approaches it."""
    problem = utility(300, 9)
    exact = optimal_channel(problem, LocalDP(2.0)).value
    values = [
        optimal_channel(problem, LocalDP(2.0), method=MergedPartition(b), certify=False).value for b in (5, 50, 290)
    ]
    assert max(values) <= exact * (1 + 1e-12)
    assert values[-1] > exact * (1 - 1e-4)


@pytest.mark.parametrize(
    ("problem", "caps", "method", "message"),
    [
        ("not a utility", [LocalDP(1.0)], None, "utility: expected a Divergence"),
        (utility(3, 0), [], None, "at least one of LocalDP"),
        (utility(3, 0), ["epsilon"], None, "constraint: expected LocalDP"),
        (utility(3, 0), [TotalVariation(0.2)], Partition(), "Partition: it needs a LocalDP constraint"),
        (utility(3, 0), [LocalDP(1.0)], Erasure(), "Erasure: it takes a cap on total variation alone"),
        (utility(17, 0), [LocalDP(1.0)], PatternLP(), "PatternLP: 17 inputs have too many staircase patterns"),
        (Divergence(KL, stats.norm(), stats.norm(1)), [TotalVariation(0.2)], None, "need LocalDP"),
    ],
)
def test_impossible_problems_are_refused(problem, caps, method, message):
    """Each impossible call raises InvalidInput with a message about the mistake."""
    with pytest.raises(InvalidInput, match=message):
        optimal_channel(problem, caps, method=method)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, "1", None, True, 1e9])
def test_an_epsilon_that_is_not_positive_and_finite_is_refused(epsilon):
    """Epsilon must be a positive finite number of nats."""
    with pytest.raises(InvalidInput, match="epsilon: expected"):
        LocalDP(epsilon)


@pytest.mark.parametrize("eta", [-0.1, 1.1, math.nan, "0.2", None])
def test_an_eta_outside_the_unit_interval_is_refused(eta):
    """Eta must lie in [0, 1]."""
    with pytest.raises(InvalidInput, match=r"eta: expected a number in \[0, 1\]"):
        TotalVariation(eta)


def test_a_designed_channel_serves_as_an_array():
    """A designed channel goes wherever an array goes, and back."""
    channel = optimal_channel(utility(4, 0), LocalDP(1.0)).channel
    assert np.asarray(channel).shape == channel.shape
    assert float(local_dp(np.asarray(channel))) == float(local_dp(channel))
    assert Channel.from_json(channel.to_json()) == channel


def test_a_neighbour_proves_the_next():
    """Multipliers of a neighbouring cap are right for every cap, and tight on the same piece of the envelope."""
    problem = utility(5, 2)
    near = optimal_channel(problem, constraints(1.0, 0.05))
    for eta in (0.01, 0.1, 0.3, 0.45):
        plain = optimal_channel(problem, constraints(1.0, eta))
        made = optimal_channel(problem, constraints(1.0, eta), neighbor=near)
        assert made.certified
        assert made.certificate.verify()
        assert made.value == plain.value
        assert made.upper_bound == pytest.approx(plain.upper_bound, rel=1e-6)
    reused = optimal_channel(problem, constraints(1.0, 0.06), neighbor=near)
    assert np.array_equal(reused.certificate.potentials, near.certificate.potentials)
    assert reused.certificate.constraints == reused.constraints
    other = optimal_channel(utility(5, 3), constraints(1.0, 0.06), neighbor=near)
    assert other.value == optimal_channel(utility(5, 3), constraints(1.0, 0.06)).value
    assert other.certified


class ReturnsAMatrix(Method):
    """A user's method that forgets the candidate."""

    def refuses(self, problem):
        return ""

    def find(self, problem, ask):
        return np.eye(3)


def test_a_method_that_returns_a_matrix_is_refused():
    """A matrix instead of a `Candidate` is an `InvalidInput` that says what to return."""
    with pytest.raises(InvalidInput, match=r"ReturnsAMatrix\.find: expected a design\.Candidate\(matrix.*got ndarray"):
        optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0), method=ReturnsAMatrix())
    assert "Candidate" in dir(design_package)
