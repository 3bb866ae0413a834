import math
import tracemalloc

import networkx as nx
import numpy as np
import pytest

from ldpopt.channel import Channel
from ldpopt.design import (
    AOptimal,
    Box,
    Contamination,
    COptimal,
    DOptimal,
    FisherInformation,
    LocalDP,
    Marginals,
    MVOptimal,
    TotalVariation,
    optimal_channel,
)
from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import subset_selection
from ldpopt.privacy import local_dp, total_variation

SKEWED = np.array([0.9, 0.025, 0.025, 0.025, 0.025])


def brute_covariance(matrix, p):
    """J^-1 - p p^T, from the definition."""
    matrix = np.asarray(matrix)
    m = p @ matrix
    return np.linalg.inv((matrix / m) @ matrix.T) - np.outer(p, p)


@pytest.mark.parametrize(
    ("prior", "epsilon", "value"),
    [([0.2] * 5, 0.5, 50.258657), ([0.2] * 5, 1.0, 12.229751), (SKEWED, 1.0, 10.150574)],
)
def test_a_optimal_values_are_those_of_the_literature(prior, epsilon, value):
    """The optimal sums of variances are the known ones, proved, and those of the returned matrix [KOV14], [YB]."""
    design = optimal_channel(FisherInformation(prior), LocalDP(epsilon))
    assert design.value == pytest.approx(value, abs=1e-6)
    assert np.trace(brute_covariance(design.channel, np.asarray(prior))) == pytest.approx(design.value, rel=1e-9)
    assert design.certified
    assert design.lower_bound <= design.value
    assert design.certificate.verify()
    assert design.guarantees[0].value <= epsilon


@pytest.mark.parametrize(("k", "epsilon"), [(3, 0.3), (5, 0.5), (5, 1.0), (6, 1.5), (9, 0.8)])
def test_uniform_priors_recover_subset_selection(k, epsilon):
    """For a uniform distribution no channel beats the best subset selection [YB]."""
    p = np.full(k, 1 / k)
    utility = FisherInformation(p)
    best = min(utility.value(subset_selection(k, epsilon, size)) for size in range(1, k))
    assert optimal_channel(utility, LocalDP(epsilon)).value == pytest.approx(best, rel=1e-7)


def test_a_skewed_prior_gains_over_every_subset_selection():
    """At p = (0.9, 0.025 x 4), epsilon 1, the optimum saves 12.6 % of the respondents of any subset selection with its
    usual estimate (11.617251), and 6.6 % of one with the efficient estimate (10.869812, at size 2).
    """
    utility = FisherInformation(SKEWED)
    optimum = optimal_channel(utility, LocalDP(1.0)).value
    usual, efficient = [], []
    for size in range(1, 5):
        channel = subset_selection(5, 1.0, size)
        loadings = np.linalg.pinv(channel.matrix.T)
        usual.append(float((loadings**2 @ channel.push(SKEWED)).sum() - SKEWED @ SKEWED))
        efficient.append(utility.value(channel))
    assert min(usual) == pytest.approx(11.617251, abs=1e-6)
    assert min(efficient) == pytest.approx(10.869812, abs=1e-6)
    assert 1 - optimum / min(usual) == pytest.approx(0.126, abs=5e-4)
    assert 1 - optimum / min(efficient) == pytest.approx(0.066, abs=5e-4)


@pytest.mark.parametrize(
    "criterion", [AOptimal(), AOptimal([5, 1, 1, 1]), COptimal([0, 0, 1, 0]), DOptimal()], ids=repr
)
@pytest.mark.parametrize("eta", [1.0, 0.2])
def test_no_random_channel_beats_the_bound(criterion, eta):
    """Random channels within the constraints are never below the certified bound (seed 3)."""
    rng = np.random.default_rng(3)
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    utility = FisherInformation(prior, criterion)
    constraints = [LocalDP(1.0), TotalVariation(eta)]
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert design.certificate.verify()
    assert all(c.measure(design.channel).value <= c.bound for c in constraints)
    tried = 0
    for _ in range(300):
        columns = np.where(rng.random((4, rng.integers(2, 9))) < 0.4, math.e, 1.0)
        found = np.linalg.lstsq(columns, np.ones(4), rcond=None)[0]
        if found.min() < 0 or np.abs(columns @ found - 1).max() > 1e-9:
            continue
        channel = Channel(columns * found)
        reach = float(TotalVariation(1.0).measure(channel))
        if reach > eta:
            channel = channel.erase(1 - eta / reach)
        tried += 1
        assert utility.value(channel) >= design.lower_bound
    assert tried > 20


def test_c_optimal_is_the_binary_question():
    """For the share of one category, asking about it alone is optimal: p(1-p) + E/(E-1)^2 [Warner]."""
    design = optimal_channel(FisherInformation(SKEWED, COptimal([1, 0, 0, 0, 0])), LocalDP(1.0))
    assert design.value == pytest.approx(0.09 + math.e / (math.e - 1) ** 2, rel=1e-7)
    assert design.channel.shape[1] == 2


def test_d_optimal_value_is_minus_log_det_of_the_information():
    """log det of the covariance of k - 1 shares is -log det J."""
    design = optimal_channel(FisherInformation(SKEWED, DOptimal()), LocalDP(1.0))
    q = design.channel.matrix
    assert design.value == pytest.approx(-np.linalg.slogdet((q / (SKEWED @ q)) @ q.T)[1], rel=1e-9)


def test_an_eta_that_cannot_bind_is_noted():
    """An eta above tanh(epsilon/2) changes nothing and the note says so; a smaller one costs precision."""
    utility = FisherInformation(SKEWED)
    loose = optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.9)])
    assert "does not bind" in loose.note
    assert loose.value == pytest.approx(10.150574, abs=1e-6)
    assert optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.2)]).value > 14


@pytest.mark.parametrize("eta", [1.0, 0.25])
def test_mv_optimal_designs_have_the_least_largest_variance(eta):
    """The largest variance of the MV-optimal design is proved least: below that of the A-optimal one, of subset
    selections, and of A-optimal designs for any weights, which it equals for the least favourable ones.
    """
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    utility, constraints = FisherInformation(prior, MVOptimal()), [LocalDP(1.0), TotalVariation(eta)]
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert design.certificate.verify()
    assert design.value == pytest.approx(np.diag(brute_covariance(design.channel, prior)).max(), rel=1e-9)
    assert design.value < 0.97 * utility.value(optimal_channel(FisherInformation(prior), constraints).channel)
    rng = np.random.default_rng(4)
    for weights in rng.dirichlet(np.ones(4), 20):
        weighted = optimal_channel(FisherInformation(prior, AOptimal(weights)), constraints, certify=False)
        assert weighted.value <= design.value * (1 + 1e-6)
        assert utility.value(weighted.channel) >= design.lower_bound


@pytest.mark.parametrize("criterion", [AOptimal(), DOptimal(), COptimal([1.0, 0.0])], ids=["A", "D", "C"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_one_channel_for_all_pilots_is_proved_at_the_worst_of_them(criterion, epsilon):
    """Two categories have one best channel whatever the shares, so that no other decides where the bound is proved."""
    for pilot, width in (([0.3, 0.7], 0.2), ([0.3, 0.7], 0.02), ([0.15, 0.85], 0.1)):
        design = optimal_channel(FisherInformation(pilot, criterion, Box(width)), LocalDP(epsilon))
        assert design.certified, (pilot, width)
        worst = np.array([pilot[0] + width, pilot[1] - width])
        assert design.value == pytest.approx(FisherInformation(worst, criterion).value(design.channel), rel=1e-6)


@pytest.mark.parametrize("around", [Box(0.1), Contamination(0.3)], ids=repr)
def test_minimax_designs_guard_against_a_wrong_pilot(around):
    """The worst case of the minimax design is proved optimal and below that of the design that trusts the pilot."""
    utility = FisherInformation(SKEWED, neighbourhood=around)
    design = optimal_channel(utility, LocalDP(1.0))
    assert design.certified
    assert design.certificate.verify()
    trusting = optimal_channel(FisherInformation(SKEWED), LocalDP(1.0)).channel
    assert design.value <= utility.value(trusting) * (1 + 1e-6)
    rng = np.random.default_rng(5)
    for _ in range(200):
        p = around.highest(rng.normal(size=5), SKEWED)
        assert around.highest(p, SKEWED) @ p >= p @ p - 1e-9  # p is one of those that are guarded against
        p = 0.9 * p + 0.1 * SKEWED
        assert np.trace(brute_covariance(design.channel, p)) <= design.value * (1 + 1e-9)


def test_anything_else_at_all_leaves_the_uniform_design():
    """Where every distribution is possible the minimax sum of variances is that of the uniform one [YB]."""
    design = optimal_channel(FisherInformation(SKEWED, neighbourhood=Contamination(1.0)), LocalDP(1.0))
    assert design.value == pytest.approx(12.229751, rel=1e-4)


@pytest.mark.parametrize(("k", "epsilon"), [(4, 8.0), (8, 6.0), (8, 10.0), (6, 14.0)])
def test_designs_of_little_privacy_are_certified(k, epsilon):
    """At a large epsilon, where dual values are poor, sharper multipliers still prove the optimum (seed 1)."""
    p = np.random.default_rng(1).dirichlet(np.ones(k))
    utility = FisherInformation(p)
    design = optimal_channel(utility, LocalDP(epsilon))
    assert design.certified
    assert utility.value_without_privacy < design.lower_bound <= design.value


def test_more_categories_than_can_be_priced_have_a_relaxed_bound():
    """Beyond 24 categories the bound is a semidefinite relaxation: rigorous, and the note says that it is coarse."""
    p = np.full(26, 1 / 26)
    design = optimal_channel(FisherInformation(p, COptimal(np.eye(26)[0])), LocalDP(1.0))
    optimum = p[0] * (1 - p[0]) + math.e / (math.e - 1) ** 2
    assert design.value == pytest.approx(optimum, rel=1e-6)
    assert 0 < design.lower_bound <= optimum
    assert design.certificate.verify()


def test_too_many_categories_are_refused_before_memory_is_taken():
    """150 and 1000 categories end in a sentence that names the limit, under a graph too."""
    tracemalloc.start()
    try:
        for k in (150, 1000):
            for constraints in ([LocalDP(1.0, nx.path_graph(k))], [LocalDP(1.0), TotalVariation(0.1)], [LocalDP(1.0)]):
                if k == 1000 or len(constraints) == 2 or constraints[0].graph is not None:  # the others are designed
                    pilot = np.linspace(1, 2, k) / np.linspace(1, 2, k).sum()
                    with pytest.raises(InvalidInput, match=f"takes at most .* categories, and here are {k}"):
                        optimal_channel(FisherInformation(pilot), constraints)
        assert tracemalloc.get_traced_memory()[1] < 5e8
    finally:
        tracemalloc.stop()


def test_a_false_certificate_fails():
    """A certificate whose numbers are wrong proves less, and one with another prior proves nothing."""
    from dataclasses import replace

    design = optimal_channel(FisherInformation(SKEWED), LocalDP(1.0))
    made = design.certificate
    assert replace(made, rows=made.rows * 0.5).lower_bound < design.lower_bound
    assert replace(made, prior=np.full(5, 0.2)).lower_bound == -math.inf
    worse = replace(made, channel=subset_selection(5, 1.5, 1))
    assert any("local dp" in failure for failure in worse.verify().failures)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FisherInformation([1.0]), "prior: expected at least 2"),
        (lambda: FisherInformation([0.5, 0.5], "A"), "criterion"),
        (lambda: FisherInformation([0.5, 0.5], COptimal([1, 0, 0])), "contrast: expected 2 weights"),
        (lambda: COptimal([1, 1]), "not all equal"),
        (lambda: optimal_channel(FisherInformation([0.5, 0.5]), LocalDP(701)), "between 1e-09 and 700"),
        (lambda: AOptimal([1, -1]), "non-negative"),
        (lambda: AOptimal([[1, 0], [0, -1]]), "positive semidefinite"),
        (lambda: FisherInformation([0.5, 0.5], neighbourhood=0.1), "neighbourhood"),
        (lambda: FisherInformation([0.5, 0.5], MVOptimal(), Box(0.1)), "concave"),
        (lambda: Box(0), "radius"),
        (lambda: optimal_channel(FisherInformation([0.5, 0.5]), TotalVariation(0.3)), "LocalDP among them"),
        (lambda: optimal_channel(FisherInformation([0.5, 0.5]), [LocalDP(1), TotalVariation(0)]), "eta"),
        (lambda: optimal_channel(FisherInformation([0.5, 0.5]), "ldp"), "constraint"),
        (lambda: FisherInformation([0.5, 0.5]).value(np.eye(3)), "channel: expected 2 inputs"),
    ],
)
def test_bad_input_is_refused(call, message):
    """Each error names what is wrong."""
    with pytest.raises(InvalidInput, match=message):
        call()


def test_results_show_themselves():
    """The repr, the HTML and the dictionary carry the value, the bound and the verdict."""
    design = optimal_channel(FisherInformation([0.3, 0.7], inputs=["no", "yes"]), LocalDP(1.0))
    assert "sum of variances" in repr(design)
    assert design.to_dict()["certified"] is True
    assert design.channel.inputs == ("no", "yes")
    assert "<table>" in design._repr_html_()
    bare = optimal_channel(FisherInformation([0.3, 0.7]), LocalDP(1.0), certify=False)
    assert bare.certificate is None
    assert "no certificate" in bare.note


@pytest.mark.parametrize("epsilon", [300.0, 500.0, 700.0])
@pytest.mark.parametrize(
    ("criterion", "error"), [(AOptimal(), 0.7), (DOptimal(), math.log(0.0024)), (MVOptimal(), 0.24)], ids="ADM"
)
def test_a_huge_epsilon_leaves_the_error_of_a_plain_survey(epsilon, criterion, error):
    """Full disclosure has the covariance diag(p) - p p^T, of determinant p_1 ... p_4, and no channel errs less."""
    design = optimal_channel(FisherInformation(np.array([0.4, 0.3, 0.2, 0.1]), criterion), LocalDP(epsilon))
    assert design.certified
    assert design.verify()
    assert design.value == pytest.approx(error, rel=1e-7)


@pytest.mark.parametrize("criterion", [AOptimal(), MVOptimal(), COptimal([1.0, -1.0, 0.0])], ids=lambda c: c.name)
def test_errors_grow_like_one_over_a_small_cap(criterion):
    """Below the cap where erasure alone adapts a design, eta times the error is constant, and every design certified:
    a channel that is erased twice as often tells half as much (theory 3.3: the optimum is linear in eta)."""
    utility = FisherInformation([0.5, 0.3, 0.2], criterion)
    found = [optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)]) for eta in (1e-2, 1e-6, 1e-12)]
    assert all(design.certified and design.verify() for design in found)
    for design, eta in zip(found, (1e-2, 1e-6, 1e-12), strict=True):
        assert design.value * eta == pytest.approx(found[0].value * 1e-2, rel=3e-7)
        assert design.lower_bound * eta == pytest.approx(found[0].value * 1e-2, rel=3e-7)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(("shape", "epsilon", "eta"), [((2, 5), 2.0, 0.2), ((3, 4), 0.5, 0.05), ((2, 2, 3), 2.0, 0.5)])
def test_shares_of_questions_under_a_cap_are_certified(shape, epsilon, eta):
    """The reports of the best design may tell only some proportions apart, and columns generated for it close the gap:
    the design is proved to 1e-6, and no worse than asking each question of a share of people, drawn by a coin."""
    prior = np.random.default_rng(5).dirichlet(np.ones(math.prod(shape)))
    constraints = [LocalDP(epsilon), TotalVariation(eta)]
    design = optimal_channel(FisherInformation(prior, Marginals(shape)), constraints)
    assert design.certified
    assert design.verify()
    cells = np.unravel_index(np.arange(len(prior)), shape)
    shares = [np.bincount(cell, prior, size) for cell, size in zip(cells, shape, strict=True)]
    # Of people in the share s of those asked, tr J^-1 is that of one question over s: best in proportion to its root.
    squares = [float(share @ share) for share in shares]
    errors = [optimal_channel(FisherInformation(share), constraints).value for share in shares]
    whole = [math.sqrt(error + square) for error, square in zip(errors, squares, strict=True)]
    assert design.value <= (sum(whole) ** 2 - sum(squares)) * (1 + 1e-6)


@pytest.mark.parametrize("criterion", [AOptimal(), MVOptimal()])
@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.09])
def test_a_small_cap_without_a_proof_is_met_by_erasing_reports(criterion, eta):
    """It is as good as the design that is searched for within this cap, and certified."""
    prior = np.array([0.94, *[0.01] * 6])
    utility, constraints = FisherInformation(prior, criterion), [LocalDP(4.0), TotalVariation(eta)]
    certified = optimal_channel(utility, constraints)
    design = optimal_channel(utility, constraints, certify=False)
    assert certified.certified
    assert design.value == pytest.approx(certified.value, rel=2e-4)
    assert float(total_variation(design.channel)) <= eta
    assert float(local_dp(design.channel)) <= 4.0


@pytest.mark.parametrize("epsilon", [400.0, 700.0])
@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.1, 0.5])
def test_a_cap_at_an_epsilon_whose_ratios_overflow(epsilon, eta):
    """Newton's method has no floats for the square of e^epsilon, and cone programs take its place."""
    prior = np.array([0.992, *[0.001] * 8])
    constraints = [LocalDP(epsilon), TotalVariation(eta)]
    design = optimal_channel(FisherInformation(prior, AOptimal()), constraints, certify=False)
    assert float(total_variation(design.channel)) <= eta
    assert float(local_dp(design.channel)) <= epsilon
    assert math.isfinite(design.value)
