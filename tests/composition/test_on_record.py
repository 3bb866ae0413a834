"""Compositions give what they gave, to a few units in the last place: see `results_on_record`."""

import composition_cases
import pytest
import results_on_record as on_record


@pytest.mark.parametrize("module", list(composition_cases.CASES))
def test_results_are_as_on_record(module):
    """Values, brackets, counts and refusals of each module, for pairs, channels, claims and parameters."""
    cases = composition_cases.CASES[module]
    assert on_record.differences("composition", module, cases, composition_cases.ULPS[module]) == []
