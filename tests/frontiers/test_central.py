"""Families of channels compared at one central guarantee."""

import pytest

from ldpopt import FisherInformation
from ldpopt.composition import shuffled
from ldpopt.design import AOptimal
from ldpopt.errors import InvalidInput
from ldpopt.frontiers import after_shuffling
from ldpopt.mechanisms import randomized_response, subset_selection

FEW = {
    "kRR": lambda epsilon: randomized_response(5, epsilon),
    "pairs": lambda epsilon: subset_selection(5, epsilon, 2),
}


@pytest.mark.full
def test_each_family_meets_the_limit_and_no_more_would():
    """The channel returned meets (epsilon, delta) after shuffling, a little more epsilon would not."""
    made = after_shuffling(FisherInformation([1 / 5] * 5), 0.2, 1e-5, 1000, FEW)
    assert [row.family for row in made.rows] == ["kRR", "pairs"]
    for row in made.rows:
        assert shuffled(row.channel, 1000).delta_at(0.2).value <= 1e-5
        assert shuffled(FEW[row.family](row.epsilon * 1.001), 1000).delta_at(0.2).value > 1e-5
        assert row.central.value <= 0.2
        assert row.value == FisherInformation([1 / 5] * 5).value(row.channel)
    assert made.rows[0].value < made.rows[1].value
    assert list(made.to_pandas().columns) == ["family", "local", "epsilon", "value"]


def test_limits_are_checked():
    """Deltas of 0 and 1 and epsilons of 0 are refused."""
    for epsilon, delta in ((0.0, 1e-6), (0.1, 0.0), (0.1, 1.0)):
        with pytest.raises(InvalidInput):
            after_shuffling(FisherInformation([0.5, 0.5]), epsilon, delta, 100)


def test_a_criterion_in_place_of_a_utility_is_refused():
    """A criterion alone is not a utility."""
    with pytest.raises(InvalidInput, match="utility"):
        after_shuffling(AOptimal(), 0.1, 1e-6, 100)
