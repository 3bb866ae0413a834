"""Designs for all shares of a questionnaire: certified values, never worse than one question at random."""

import itertools
import math

import numpy as np
import pytest

import ldpopt
from ldpopt.design import (
    AOptimal,
    FisherInformation,
    LocalDP,
    Marginals,
    MVOptimal,
    TotalVariation,
    load_design,
    optimal_channel,
)
from ldpopt.design.estimation.method import EstimationColumns
from ldpopt.design.estimation.method_thresholds import ThresholdColumns
from ldpopt.design.estimation.program import fisher_program
from ldpopt.design.estimation.program_thresholds import ThresholdProgram
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.privacy import total_variation
from ldpopt.values import deadline


def designed(shape, epsilon, *marginals):
    criterion = Marginals(shape)
    problem = FisherInformation(criterion.pilot(*marginals), criterion)
    return optimal_channel(problem, LocalDP(epsilon), method=ThresholdColumns())


def rule(m, epsilon):
    """2m/(4 lambda) with lambda = (c/m) ((E - 1)/(2^c + E - 1))^2: c of m yes/no questions, by randomized response."""
    gain = math.expm1(epsilon)
    best = max(c * (gain / (2**c + gain)) ** 2 for c in range(1, m + 1))
    return m * m / (2 * best)


@pytest.mark.parametrize(
    ("m", "epsilon"), [(2, 0.5), (2, 1.0), (2, 3.0), (3, 0.5), (3, 2.0), (3, 3.0), (4, 0.5), (4, 3.0)]
)
def test_yes_no_questions_follow_the_rule(m, epsilon):
    """At even shares some c of the m questions, drawn at random and answered together, are optimal: certified."""
    design = designed((2,) * m, epsilon)
    assert design.certified
    assert design.value == pytest.approx(rule(m, epsilon), rel=1e-6)
    assert design.lower_bound <= rule(m, epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("shape", "epsilon", "value"),
    [((2, 2), 0.5, 33.34158), ((2, 2, 2), 3.0, 3.02105), ((2, 3), 0.5, 55.942608), ((2, 3), 1.0, 14.229407),
     ((2, 3), 2.0, 4.386820)],
)  # fmt: skip
def test_values_agree_with_an_independent_engine(shape, epsilon, value):
    """The value is that of an independent engine."""
    design = designed(shape, epsilon)
    assert design.certified
    assert design.value == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
@pytest.mark.parametrize(
    ("shape", "marginals"),
    [((2, 2, 3), ([0.5, 0.5], [0.5, 0.5], [1 / 3] * 3)), ((2, 3), ([0.9, 0.1], [0.2, 0.3, 0.5])),
     ((3, 3), ([0.7, 0.2, 0.1], [0.1, 0.1, 0.8]))],
)  # fmt: skip
def test_all_thresholds_cost_at_most_one_question_at_random(shape, marginals, epsilon):
    """One question, with probabilities like the roots of the questions' own errors, costs (sum of the roots)^2."""
    alone = [optimal_channel(FisherInformation(shares), LocalDP(epsilon), certify=False).value for shares in marginals]
    design = designed(shape, epsilon, *marginals)
    assert design.certified
    assert design.value <= np.sqrt(alone).sum() ** 2 * (1 + 1e-7)
    assert design.channel.shape[0] == math.prod(shape)
    assert ldpopt.privacy.local_dp(design.channel).value <= epsilon


def test_a_dependent_joint_distribution_is_certified():
    """Dependent answers: two even questions with correlation 0.9, where bounds for products are false."""
    same, other = 0.475, 0.025
    criterion = Marginals((2, 2))
    design = optimal_channel(FisherInformation([same, other, other, same], criterion), LocalDP(2.0))
    assert design.certified
    assert design.value < 2.65  # the sum of the questions' own bounds would be 3.358


def test_a_design_comes_back_from_its_file_with_its_proof(tmp_path):
    """The level that was proved is a number of the file, and is searched again."""
    design = designed((2, 3), 1.0)
    design.save(tmp_path / "design.json")
    back = load_design(tmp_path / "design.json")
    assert back == design
    assert back.verify()
    assert back.verify(exact=True)  # searches are on floats, and so is their memory
    text = (tmp_path / "design.json").read_text("utf-8")
    assert '"Thresholds"' in text


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("shape", "epsilon"),
    [((3, 3, 3), 2.0), ((2,) * 5, 0.5), ((2, 10), 2.0)],
)
def test_uneven_pilots_are_certified(shape, epsilon):
    """Uneven questions of up to 32 cells, in 5 to 10 directions: certified, within one answer to each target."""
    rng = np.random.default_rng(1)
    marginals = [rng.dirichlet(np.full(k, 4.0)) for k in shape]
    design = designed(shape, epsilon, *marginals)
    assert design.certified
    assert ldpopt.privacy.local_dp(design.channel).value <= epsilon
    # Influences of d contrasts and the balance of k rows tell how many reports are enough.
    k, d = math.prod(shape), sum(shape) - len(shape)
    assert design.channel.shape[1] <= k * (d + 1)


def test_a_plain_cone_program_over_all_columns_agrees():
    """All 2^8 columns of three uneven yes/no questions, by another program and another solver."""
    criterion = Marginals((2, 2, 2))
    utility = FisherInformation(criterion.pilot([0.1, 0.9], [0.3, 0.7], [0.45, 0.55]), criterion)
    columns = np.where(np.array(list(itertools.product((False, True), repeat=8)))[:-1], math.e**2, 1.0)
    solved = fisher_program(criterion, [utility.prior], columns, 2.0, None)
    matrix = (columns * solved.theta[:, None]).T
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    design = optimal_channel(utility, LocalDP(2.0), method=ThresholdColumns())
    assert design.certified
    assert design.value == pytest.approx(utility.value(ldpopt.Channel(matrix)), rel=1e-5)


def test_weights_far_apart_leave_a_channel_of_finite_error():
    """Weights 1e16 apart are at the limit of Newton's method: a design of finite error, whether it is proved or not."""
    criterion = Marginals((2, 2, 3), weights=[1, 1e8, 1e-8])
    pilot = criterion.pilot([0.3, 0.7], [0.6, 0.4], [0.2, 0.3, 0.5])
    design = optimal_channel(FisherInformation(pilot, criterion), LocalDP(2.0), method=ThresholdColumns())
    assert 0 < design.lower_bound < design.value < math.inf
    assert design.certified == (design.relative_gap <= 1e-6)


CAPPED_SHAPES = [
    ((2, 3), 1.0, 0.2, 10.0),
    ((2, 2, 3), 2.0, 0.4, 10.0),
    ((3, 4), 3.0, 0.3, 10.0),
    ((2, 5), 0.5, 0.15, 0.3),
]


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("shape", "epsilon", "eta", "concentration"), CAPPED_SHAPES)
def test_with_a_cap_the_search_agrees_with_the_method_that_prices_all_patterns(shape, epsilon, eta, concentration):
    """Two searches for the columns of one program, and the proof of each bounds the other."""
    rng = np.random.default_rng(len(shape))
    criterion = Marginals(shape)
    pilot = criterion.pilot(*(rng.dirichlet(np.full(k, concentration)) * 0.9 + 0.1 / k for k in shape))
    utility, constraints = FisherInformation(pilot, criterion), [LocalDP(epsilon), TotalVariation(eta)]
    searched = optimal_channel(utility, constraints, method=ThresholdColumns(gap=1e-4))
    priced = optimal_channel(utility, constraints)
    assert searched.certified
    assert priced.certified
    assert priced.lower_bound <= searched.value <= priced.value * (1 + 2e-4)
    assert searched.lower_bound <= priced.value
    assert ldpopt.total_variation(searched.channel).value <= eta
    assert ldpopt.privacy.local_dp(searched.channel).value <= epsilon


def test_a_search_whose_coarse_steps_end_nowhere_begins_again(monkeypatch):
    utility = FisherInformation(np.arange(1.0, 9) / 36, MVOptimal(np.eye(8)))
    good = optimal_channel(utility, LocalDP(1.0), method=ThresholdColumns(gap=1e-3), certify=False)
    solve, starts = ThresholdProgram.solve, []

    def failing(self, sets, accuracy, start):
        starts.append(start)
        if len(starts) == 1:
            raise SolverError("no good start")
        return solve(self, sets, accuracy, start)

    monkeypatch.setattr(ThresholdProgram, "solve", failing)
    again = optimal_channel(utility, LocalDP(1.0), method=ThresholdColumns(gap=1e-3), certify=False)
    assert starts[0] is not None
    assert starts[1] is None
    assert again.value == pytest.approx(good.value, rel=2e-3)


def test_a_cap_without_a_gap_or_with_few_informative_reports_is_refused():
    criterion = Marginals((2, 2, 3))
    utility = FisherInformation(criterion.pilot([0.3, 0.7], [0.6, 0.4], [0.2, 0.3, 0.5]), criterion)
    with pytest.raises(InvalidInput, match="LocalDP alone"):
        optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.2)], method=ThresholdColumns())
    with pytest.raises(InvalidInput, match="few informative reports"):
        optimal_channel(utility, [LocalDP(1.0), TotalVariation(0.01)], method=ThresholdColumns(gap=1e-3))


@pytest.mark.parametrize("share", [0.09, 1e-5])
def test_a_small_cap_leaves_out_reports_of_the_best_channel_for_a_larger_one(share):
    """The variances are in proportion to 1/eta; cone programs of all patterns have the same value."""
    pilot = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    utility = FisherInformation(pilot, MVOptimal((np.eye(5) - pilot).T))
    eta = share * math.tanh(1.0)
    within = [LocalDP(2.0), TotalVariation(eta)]
    found = optimal_channel(utility, within, method=ThresholdColumns(1e-3), certify=False)
    assert found.value == pytest.approx(optimal_channel(utility, within, certify=False).value, rel=1e-3)
    assert float(total_variation(found.channel)) <= eta
    larger = optimal_channel(utility, [LocalDP(2.0), TotalVariation(0.15)], method=ThresholdColumns(1e-3))
    assert found.value * eta == pytest.approx(larger.value * 0.15, rel=1e-3)


@pytest.mark.full
def test_a_search_without_a_proof_is_as_good_as_its_gap():
    """24 answers of questions that hang on one another, whose pilots are extreme: sets that no climb finds matter."""
    root = np.hstack([np.kron(np.eye(6), np.ones((4, 1)))[:, 1:], np.tile(np.eye(4), (6, 1))[:, 1:]])
    pilot = np.array([0.94, *[0.06 / 23] * 23])
    utility = FisherInformation(pilot, AOptimal(root @ root.T))
    coarse = optimal_channel(utility, LocalDP(1.0), method=ThresholdColumns(gap=1e-3), certify=False)
    proved = optimal_channel(utility, LocalDP(1.0), method=ThresholdColumns())
    assert proved.lower_bound * (1 - 1e-9) <= coarse.value <= proved.lower_bound * (1 + 3e-3)


@pytest.mark.parametrize("eta", [None, 0.2])
def test_a_search_may_begin_at_a_channel_for_another_epsilon(eta):
    """From the sets of epsilon 2 the design for 1.2 is within its gap of the best one, also under a cap."""
    criterion = Marginals((3, 4))
    utility = FisherInformation(criterion.pilot([0.2, 0.3, 0.5], [0.4, 0.3, 0.2, 0.1]), criterion)
    cap = [] if eta is None else [TotalVariation(eta)]
    start = optimal_channel(utility, LocalDP(2.0), method=ThresholdColumns(gap=1e-3), certify=False).channel
    within = [LocalDP(1.2), *cap]
    near = optimal_channel(utility, within, method=ThresholdColumns(1e-2, start), certify=False)
    best = optimal_channel(utility, within, method=ThresholdColumns(gap=1e-4))
    assert best.lower_bound * (1 - 1e-9) <= near.value <= best.value * 1.01
    with pytest.raises(InvalidInput, match="a channel with 12 inputs"):
        optimal_channel(utility, within, method=ThresholdColumns(1e-2, np.eye(3)), certify=False)


def test_out_of_time_the_bound_of_second_moments_is_left(monkeypatch):
    """Three uneven questions of three answers, by a clock on which every look takes a second: after three of them a
    rigorous bound is left that is not within the tolerance."""
    looks = itertools.count(1.0)
    monkeypatch.setattr(deadline, "monotonic", lambda: next(looks))
    criterion = Marginals((3, 3, 3))
    pilot = criterion.pilot(*[[0.1, 0.3, 0.6]] * 3)
    design = optimal_channel(FisherInformation(pilot, criterion), LocalDP(0.5), time_limit=3)
    assert 0 < design.lower_bound < design.value
    assert not design.certified


@pytest.mark.parametrize(
    ("utility", "words"),
    [
        (FisherInformation([0.5, 0.5, 0.0, 0.0], Marginals((2, 2))), "empty cells"),
        (FisherInformation(np.full(512, 1 / 512), Marginals((2,) * 9)), "up to 256 inputs"),
        (FisherInformation(np.full(12, 1 / 12)), "few contrasts"),
    ],
)
def test_unsupported_problems_are_refused_with_a_reason(utility, words):
    """The method says why it does not apply."""
    with pytest.raises(InvalidInput, match=words):
        optimal_channel(utility, LocalDP(1.0), method=ThresholdColumns())


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_largest_variance_of_contrasts(epsilon, tmp_path):
    """No weights of the variances have a larger least sum, and all methods agree; at epsilon 1 one question at random,
    each by its own best channel, is as good."""
    shape, pilots = (2, 2, 3), ([0.3, 0.7], [0.6, 0.4], [0.5, 0.2, 0.3])
    marginals = Marginals(shape)
    pilot, cells = marginals.pilot(*pilots), np.stack(np.unravel_index(np.arange(12), shape))
    contrasts = np.array([cells[0] == 0, cells[1] == 0, *(cells[2] == x for x in range(3))], dtype=float).T
    design = optimal_channel(
        FisherInformation(pilot, MVOptimal(contrasts)), LocalDP(epsilon), method=ThresholdColumns()
    )
    assert design.certified
    variances = np.diag(contrasts.T @ covariance(design.channel.matrix, pilot) @ contrasts)
    assert variances.max() == pytest.approx(design.value, rel=1e-7)
    other = optimal_channel(FisherInformation(pilot, MVOptimal(contrasts)), LocalDP(epsilon))
    assert other.value == pytest.approx(design.value, rel=1e-5)
    rng = np.random.default_rng(0)
    for weights in rng.dirichlet(np.ones(5), 2):
        summed = optimal_channel(
            FisherInformation(pilot, Marginals(shape, [*weights[:2] / 2, weights[2:]])), LocalDP(epsilon)
        )
        assert summed.lower_bound <= design.value * (1 + 1e-9)
    if epsilon == 1.0:
        alone = sum(optimal_channel(FisherInformation(one, MVOptimal()), LocalDP(1.0)).value for one in pilots)
        assert design.value == pytest.approx(alone, rel=1e-6)
    design.save(tmp_path / "d.json")
    assert load_design(tmp_path / "d.json").verify()


def covariance(matrix, pilot):
    """J^-1 - p p^T."""
    return np.linalg.inv((matrix / (pilot @ matrix)) @ matrix.T) - np.outer(pilot, pilot)


@pytest.mark.parametrize("method", [None, EstimationColumns()])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3])
def test_small_epsilons_and_nearly_empty_cells_are_certified(method, epsilon):
    """One question at random tells sums of cells alone, but for rounding, which must not count as what it leaves."""
    criterion = Marginals((2, 2), [0.1, 0.6])
    for pilot in ([0.42, 0.18, 0.28, 0.12], [1e-12, 1 - 1e-12, 0.0, 0.0], [0.3, 0.7, 1e-14, 0.0]):
        design = optimal_channel(FisherInformation(pilot, criterion), LocalDP(epsilon), method=method)
        assert design.certified
        assert design.verify(exact=True)
        # Randomized response has the variance 1/(4 tanh^2(epsilon/2)), and each share of two is asked of a part.
        worst = (math.sqrt(0.1) + math.sqrt(0.6)) ** 2 / (2 * math.tanh(epsilon / 2) ** 2)
        assert 0.9 * worst < design.value <= worst * (1 + 1e-6)


@pytest.mark.parametrize(
    ("k", "epsilon"), [(9, 0.5), (9, 3.0), (12, 2.0), pytest.param(24, 2.0, marks=pytest.mark.full)]
)
def test_the_largest_variance_at_even_shares_is_that_of_subset_selection(k, epsilon):
    """With a gap, the contrasts may be as many as the inputs, and the optimum has columns for all exchanges of them."""
    utility = FisherInformation(np.full(k, 1 / k), MVOptimal())
    design = optimal_channel(utility, LocalDP(epsilon), method=ThresholdColumns(1e-3), certify=False)
    best = min(subset_variance(k, d, epsilon) for d in range(1, k))
    assert best * (1 - 1e-9) <= design.value <= best * (1 + 5e-4)
    with pytest.raises(InvalidInput, match="few contrasts"):
        optimal_channel(utility, LocalDP(epsilon), method=ThresholdColumns())


def subset_variance(k, d, epsilon):
    """The variance of a share by subset selection of d of k even answers, from one report [YB]."""
    inside, outside = math.exp(epsilon), 1.0
    total = d * inside + (k - d) * outside
    p, q = d * inside / total, d * ((d - 1) * inside + (k - d) * outside) / ((k - 1) * total)  # a report has the answer
    share = p / k + q * (1 - 1 / k)
    return share * (1 - share) / (p - q) ** 2


def test_sets_are_copied_with_inputs_of_equal_probability_exchanged():
    """Copies have as many inputs of each probability, and there are none if all probabilities differ."""
    prior = np.array([0.1, 0.2, 0.1, 0.2, 0.1, 0.3])
    program = ThresholdProgram(MVOptimal(), prior, np.eye(6) - prior[:, None], 2.0, None, deadline.UNLIMITED)
    sets = np.random.default_rng(1).random((30, 6)) < 0.5
    copies = program.relabel(sets, np.random.default_rng(2))
    assert any(not np.array_equal(copy, sets) for copy in copies)
    for copy, places in itertools.product(copies, ([0, 2, 4], [1, 3], [5])):
        assert np.array_equal(copy[:, places].sum(axis=1), sets[:, places].sum(axis=1))
    uneven = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    program = ThresholdProgram(MVOptimal(), uneven, np.eye(5) - uneven[:, None], 2.0, None, deadline.UNLIMITED)
    assert program.relabel(sets[:, :5], np.random.default_rng(3)) == []
