"""The pattern program priced by marginals, against the one that lists all patterns."""

import numpy as np
import pytest

from ldpopt import LocalDP, TotalVariation
from ldpopt.design import (
    ApproximateLDP,
    Divergence,
    MarginalDual,
    MarginalPatterns,
    MutualInformation,
    PatternLP,
    WeightedSum,
    WorstOf,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("epsilon", "eta", "summed"),
    [(1e-4, None, False), (0.5, 0.3, True), (1.0, 1e-6, False), (40.0, None, False)],
)
def test_the_design_reaches_the_value_of_all_patterns(epsilon, eta, summed):
    """Three hypotheses, six inputs: the value of the program over all 63 patterns, and a bound of its own."""
    laws = np.random.default_rng(2).dirichlet(np.ones(6), 3)
    constraints = [LocalDP(epsilon), *([TotalVariation(eta)] if eta else [])]
    parts = [Divergence(CHI_SQUARED, laws[0], laws[1]), Divergence(KL, laws[1], laws[2])]
    utility = WeightedSum([1.0, 2.0], parts) if summed else WorstOf(KL, laws[0], laws[1:])
    design = optimal_channel(utility, constraints, method=MarginalPatterns())
    listed = optimal_channel(utility, constraints, method=PatternLP())
    assert design.value == pytest.approx(listed.value, rel=1e-8)
    assert design.upper_bound >= listed.value * (1 - 1e-12)
    assert design.certified


@pytest.mark.parametrize("f", [KL, TOTAL_VARIATION], ids=lambda f: f.name)
def test_three_hypotheses_on_twenty_inputs_are_certified(f):
    """Beyond the inputs whose patterns are listed it is what `optimal_channel` chooses, and it proves the optimum."""
    laws = np.random.default_rng(4).dirichlet(np.ones(20), 3)
    design = optimal_channel(WorstOf(f, laws[0], laws[1:]), LocalDP(1.0))
    assert "marginals" in design.method
    assert design.relative_gap < 1e-7
    assert design.certified
    if f is KL:
        assert isinstance(design.certificate, MarginalDual)
        assert design.certificate.verify()


@pytest.mark.full
def test_sixteen_inputs_are_certified_under_a_cap_on_total_variation():
    """Multipliers of pairs and minimum cuts: certified."""
    laws = np.random.default_rng(4).dirichlet(np.ones(16), 3)
    design = optimal_channel(WorstOf(KL, laws[0], laws[1:]), [LocalDP(1.0), TotalVariation(0.2)])
    assert isinstance(design.certificate, MarginalDual)
    assert design.certified


def test_unsupported_problems_are_refused_with_a_reason():
    """Mutual information, other constraints, six distributions and too many inputs are refused with a reason."""
    rng = np.random.default_rng(0)
    laws, many = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(101), 3)
    for utility, constraint, words in (
        (MutualInformation(laws[0]), LocalDP(1.0), "marginals"),
        (WorstOf(KL, laws[0], laws[1:3]), ApproximateLDP(1.0, 0.1), "staircase"),
        (WorstOf(KL, laws[0], laws[1:]), LocalDP(1.0), "6 laws"),
        (WorstOf(KL, many[0], many[1:]), LocalDP(1.0), "101 inputs"),
    ):
        with pytest.raises(InvalidInput, match=words):
            optimal_channel(utility, constraint, method=MarginalPatterns())
