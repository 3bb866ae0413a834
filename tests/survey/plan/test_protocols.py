import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import randomized_response
from ldpopt.plots import picture
from ldpopt_survey.estimate.linear import asymptotic_covariance
from ldpopt_survey.pictures import protocols
from ldpopt_survey.plan.precision import HalfWidth
from ldpopt_survey.plan.protocols import compare_protocols

SKEWED = [0.9, 0.025, 0.025, 0.025, 0.025]


def test_the_optimal_channel_needs_the_fewest_respondents():
    """No named protocol needs fewer respondents for equal shares; where one category counts, none for any pilot."""
    for pilot, target in [([0.2] * 5, HalfWidth(0.05)), (SKEWED, HalfWidth(0.05, category=1))]:
        table = compare_protocols(pilot, target, 1.0)
        assert len(table) >= 8
        assert table.rows[0].respondents == table["optimal channel"].respondents


def test_design_effect_is_variance_over_that_without_privacy():
    """The design effect of randomized response is V / (p (1 - p)) for the widest category [Kish]."""
    row = compare_protocols([0.2] * 5, HalfWidth(0.05), 1.0)["randomized response"]
    variance = asymptotic_covariance(randomized_response(5, 1.0), [0.2] * 5)[0, 0]
    assert row.design_effect == pytest.approx(variance / 0.16, rel=1e-9)
    assert row.respondents == pytest.approx(1.959964**2 * variance / 0.05**2, abs=1)


def test_all_designs_for_yes_or_no_are_equal_at_one_epsilon():
    """Warner, crosswise, forced, unrelated and Kuk at one epsilon and even shares need the same respondents."""
    table = compare_protocols([0.5, 0.5], HalfWidth(0.05), 1.0)
    names = ["Warner", "crosswise", "forced response", "unrelated question", "Kuk", "optimal channel"]
    assert len({table[name].respondents for name in names}) == 1


def test_a_cap_on_eta_leaves_out_protocols_above_it():
    """Every protocol in the table is within both caps."""
    for row in compare_protocols(SKEWED, HalfWidth(0.05), 1.0, 0.25):
        assert row.epsilon <= 1.0
        assert row.eta <= 0.25


def test_the_table_shows_itself():
    """Text, HTML, pandas and a picture hold one row a protocol."""
    table = compare_protocols([0.5, 0.5], HalfWidth(0.1), 1.0)
    assert len(table.to_pandas()) == len(table)
    assert repr(table).count("\n") == len(table) + 1
    assert table._repr_html_().count("<tr>") == len(table) + 1
    assert picture(protocols(table))[1:4] == b"PNG"
    with pytest.raises(InvalidInput, match="protocol"):
        table["none"]
    with pytest.raises(InvalidInput, match="precision"):
        compare_protocols(np.full(2, 0.5), 0.1, 1.0)
