"""Compositions give what they gave, to a few units in the last place: see `results_on_record`."""

import composition_cases
import pytest
import results_on_record as on_record

SEARCHED = {"compose", "laws", "ledger", "filters", "gaussian"}
"""What ends where a search or a transform does, which depends on the rounding of the machine."""


@pytest.mark.parametrize("module", list(composition_cases.CASES))
def test_results_are_as_on_record(module):
    """Values, brackets, counts and refusals of each module, for pairs, channels, claims and parameters."""
    ulps = 2.0**14 if module in SEARCHED else 6.0
    assert on_record.differences("composition", module, composition_cases.CASES[module], ulps) == []
