"""Utilities of the marginals alone: the same values from the masses as from the columns."""

import numpy as np
import pytest

from ldpopt.design import Divergence, MutualInformation, WeightedSum, WorstOf
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION

RNG = np.random.default_rng(3)
LAWS = RNG.dirichlet(np.ones(5), 4)
UTILITIES = [
    Divergence(KL, LAWS[0], LAWS[1]),
    WorstOf(CHI_SQUARED, LAWS[0], LAWS[1:]),
    WorstOf(KL, LAWS[0], [LAWS[1], LAWS[1]]),
    WeightedSum([0.5, 2.0], [Divergence(KL, LAWS[0], LAWS[1]), Divergence(TOTAL_VARIATION, LAWS[2], LAWS[0])]),
    WeightedSum([2.0, 0.0], [Divergence(KL, LAWS[3], LAWS[1]), MutualInformation(LAWS[2])]),
    WeightedSum([1.0, 3.0], [WeightedSum([2.0], [Divergence(KL, LAWS[0], LAWS[1])]), Divergence(KL, LAWS[1], LAWS[0])]),
]


@pytest.mark.parametrize("utility", UTILITIES, ids=lambda u: u.name)
def test_the_terms_add_up_to_the_utility_of_a_column(utility):
    """mu_j(s) is the sum of the weighted divergences between the masses P_i.s, for every criterion j."""
    columns = RNG.uniform(0.1, 1.0, (5, 40))
    compared = utility.compared
    found = np.zeros((compared.criteria, 40))
    for term in compared.terms:
        a, b = compared.laws[term.first] @ columns, compared.laws[term.second] @ columns
        found[term.criterion] += term.weight * term.f.excess(a, b)
    np.testing.assert_allclose(found, utility.columns(columns), rtol=1e-12)


def test_shared_distributions_are_stored_once():
    """A distribution that several terms share is stored once."""
    assert [len(utility.compared.laws) for utility in UTILITIES] == [2, 4, 2, 3, 2, 2]


def test_mutual_information_is_no_utility_of_few_marginals():
    """Neither alone nor with a positive weight in a sum."""
    information = MutualInformation(LAWS[0])
    assert information.compared is None
    assert WeightedSum([1.0, 1.0], [UTILITIES[0], information]).compared is None
