"""Newton's method under a cap on total variation, beside the general program."""

from dataclasses import replace

import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import AOptimal, DOptimal, FisherInformation, MVOptimal
from ldpopt.design.estimation.prices import subsets
from ldpopt.design.estimation.program import fisher_program
from ldpopt.design.estimation.program_dual import survey_dual
from ldpopt.design.estimation.program_mixture import by_newton
from ldpopt.design.estimation.program_newton import survey_program
from ldpopt.design.estimation.staircase import StaircaseColumns
from ldpopt.design.kernel.sets import balanced_sets


@pytest.mark.parametrize("criterion", [AOptimal(), DOptimal(), MVOptimal()], ids=["A", "D", "MV"])
@pytest.mark.parametrize("eta", [0.05, 0.15, 0.4, None])
def test_the_weights_are_those_of_the_general_program(criterion, eta):
    """Over all 64 patterns the error is that of the cones, rows sum to one, the cap is kept and the multipliers pay."""
    k = 6
    p = np.random.default_rng(k).dirichlet(np.ones(k))
    columns = np.exp(subsets(k)[:-1])
    found = survey_program(criterion, p, columns, 1e-9, eta)
    general = fisher_program(criterion, [p], columns, 1.0, eta)
    utility = FisherInformation(p, criterion=criterion)

    def error(theta):
        matrix = columns.T * theta
        return utility.value(matrix / matrix.sum(axis=1, keepdims=True))

    assert error(found.theta) == pytest.approx(error(general.theta), rel=1e-6)
    assert columns.T @ found.theta == pytest.approx(np.ones(k), abs=1e-8)
    x, other = np.triu_indices(k, 1)
    apart = np.maximum(columns[:, x] - columns[:, other], 0.0)
    assert eta is None or (apart.T @ found.theta <= eta * (1 + 1e-7)).all()
    assert (found.pairs >= 0).all()
    mass = columns @ p
    u = columns / mass[:, None] - 1
    earned = ((u @ found.kernel.T) ** 2).sum(axis=1)
    paid = (columns @ found.rows + apart @ found.pairs[x, other]) / mass
    assert (earned <= paid + 1e-6 * np.abs(earned).max()).all()


@pytest.mark.full
@pytest.mark.parametrize("eta", [0.08, 0.15, 0.3])
def test_twelve_categories_under_a_cap_are_certified(eta):
    """A cap that binds hard, one that just binds, and one that does not: certified, kept, and in order."""
    p = np.random.default_rng(12).dirichlet(np.ones(12))
    utility = FisherInformation(p)
    design = optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)])
    assert design.certified
    assert design.verify()
    assert design.guarantees[1].value <= eta
    plain = optimal_channel(utility, LocalDP(1.0))
    assert design.value >= plain.lower_bound
    assert (design.lower_bound > plain.value * 1.01) == (eta < 0.2)


@pytest.mark.parametrize("criterion", [AOptimal(), DOptimal(), MVOptimal()], ids=["A", "D", "MV"])
@pytest.mark.parametrize("eta", [0.15, None])
def test_columns_that_join_on_the_way_lead_to_the_same_optimum(criterion, eta):
    """A program begun with a third of the patterns, to which all others join, and some leave, ends where the one over
    all of them ends, and its multipliers pay for every pattern.
    """
    k = 6
    p = np.random.default_rng(2).dirichlet(np.ones(k))
    columns = np.exp(subsets(k)[:-1])
    order = np.random.default_rng(1).permutation(len(columns))
    columns = columns[np.append(order[order > 0], 0)]  # the constant pattern comes last
    few = np.vstack([columns[:20], columns[-1:]])
    begun = survey_program(criterion, p, few, 1e-3, eta)
    kept = np.arange(21) != 3
    both = np.vstack([few[kept], few[3:4], columns[20:-1]])
    joined = survey_program(criterion, p, both, 1e-8, eta, begun.central.with_columns(kept, len(both) - 20))
    alone = survey_program(criterion, p, both, 1e-8, eta)
    utility = FisherInformation(p, criterion=criterion)
    reached = [utility.value((m := both.T * one.theta) / m.sum(axis=1, keepdims=True)) for one in (joined, alone)]
    assert reached[0] == pytest.approx(reached[1], rel=1e-7)
    x, other = np.triu_indices(k, 1)
    mass = both @ p
    earned = (((both / mass[:, None] - 1) @ joined.kernel.T) ** 2).sum(axis=1)
    paid = both @ joined.rows + np.maximum(both[:, x] - both[:, other], 0.0) @ joined.pairs[x, other]
    assert (earned <= paid / mass + 1e-6 * earned.max()).all()


@pytest.mark.full(but=2)
@pytest.mark.parametrize(
    ("k", "criterion", "eta"),
    [(16, DOptimal(), 0.15), (9, MVOptimal(), 0.1), (14, MVOptimal(), None), (12, MVOptimal(), 0.2)],
    ids=["D", "MV small cap", "MV", "MV cap"],
)
def test_other_criteria_are_certified_with_and_without_a_cap(k, criterion, eta):
    """Log determinants and largest variances are certified to a millionth, with few reports, within their caps."""
    p = np.random.default_rng(k).dirichlet(np.ones(k))
    constraints = [LocalDP(1.0), *([] if eta is None else [TotalVariation(eta)])]
    utility = FisherInformation(p, criterion)
    assert by_newton(criterion, StaircaseColumns(k, 1.0), eta)
    design = optimal_channel(utility, constraints)
    assert design.certified
    assert design.relative_gap <= 1e-6
    assert design.verify()
    assert all(float(c.measure(design.channel)) <= c.bound for c in constraints)
    assert design.channel.shape[1] <= k * (k + 1) // 2 + 1 + (0 if eta is None else k * (k - 1) // 2)
    covariance = np.linalg.inv((design.channel.matrix / (p @ design.channel.matrix)) @ design.channel.matrix.T)
    if isinstance(criterion, MVOptimal):
        assert design.value == pytest.approx((np.diag(covariance) - p**2).max(), rel=1e-9)
        sums = optimal_channel(FisherInformation(p), constraints, certify=False)
        assert design.value <= utility.value(sums.channel) * (1 + 1e-9)


def test_sets_are_as_small_as_the_cap_requires():
    """Drawn under a cap, sets make a channel of about that total variation; a cap that does not bind changes none."""
    k, ratio = 20, np.e
    p = np.full(k, 1 / k)
    dual = survey_dual(p, ratio, np.ones(k))

    def drawn(eta):
        return balanced_sets(p, dual.squares, dual.target, ratio, 1000, np.random.default_rng(1), eta)

    assert np.array_equal(drawn(None), drawn(0.9))
    sizes = [drawn(eta).sum(axis=1).mean() for eta in (0.08, 0.15, 0.25, None)]
    assert sizes == sorted(sizes)
    for eta, size in zip((0.15, 0.25), sizes[1:], strict=False):
        share = size / k
        spread = (ratio - 1) * share * (1 - share) * k / (k - 1) / (1 + (ratio - 1) * share)
        assert spread == pytest.approx(eta, rel=0.1)


def test_caps_that_are_left_out_join_when_they_are_exceeded():
    """Caps with much slack at the first point have no price, or join. Either way the optimum is that of all caps."""
    k, eta = 6, 0.24
    p = np.random.default_rng(4).dirichlet(np.ones(k))
    columns = np.exp(subsets(k)[:-1])
    x, other = np.triu_indices(k, 1)
    alone = survey_program(AOptimal(), p, columns, 1e-8, eta)
    near = survey_program(AOptimal(), p, columns, 1e-3, eta).central
    far = replace(survey_program(AOptimal(), p, columns, 0.1, 2.0).central, limit_slack=np.full(len(x), 0.9 * eta))
    for start, has_unpriced in ((near, True), (far, False)):
        found = survey_program(AOptimal(), p, columns, 1e-8, eta, start)
        use = np.maximum(columns[:, x] - columns[:, other], 0.0).T @ found.theta
        assert use.max() == pytest.approx(eta, rel=1e-6)
        value, expected = (one.rows.sum() + eta * one.pairs.sum() for one in (found, alone))
        assert value == pytest.approx(expected, rel=1e-6)
        assert (found.pairs[x, other] == 0).any() == has_unpriced
        assert len(found.central.limit_slack) == len(x)
