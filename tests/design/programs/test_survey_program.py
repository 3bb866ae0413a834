"""Newton's method under a cap on total variation, beside the general program."""

import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation, optimal_channel
from ldpopt.design import AOptimal, DOptimal, FisherInformation
from ldpopt.design.columns.prices import subsets
from ldpopt.design.programs.fisher import fisher_program
from ldpopt.design.programs.survey_program import survey_program


@pytest.mark.parametrize("criterion", [AOptimal(), DOptimal()], ids=["A", "D"])
@pytest.mark.parametrize("eta", [0.05, 0.15, 0.4])
def test_the_weights_are_those_of_the_general_program(criterion, eta):
    """Over all 64 patterns the error is that of cvxpy, rows sum to one, the cap is kept and the multipliers pay."""
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
    assert (apart.T @ found.theta <= eta * (1 + 1e-7)).all()
    assert (found.pairs >= 0).all()
    mass = columns @ p
    u = columns / mass[:, None] - 1
    earned = ((u @ found.kernel.T) ** 2).sum(axis=1)
    paid = (columns @ found.rows + apart @ found.pairs[x, other]) / mass
    assert (earned <= paid + 1e-6 * np.abs(earned).max()).all()


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
