"""Measures, claims and conversions give what they gave, to a few units in the last place: see `results_on_record`."""

import privacy_cases
import pytest
import results_on_record as on_record


@pytest.mark.parametrize("module", list(privacy_cases.CASES))
def test_results_are_as_on_record(module):
    """Values, brackets, witnesses and refusals of each module, on channels from the harmless to the subnormal."""
    cases = privacy_cases.CASES[module]
    assert on_record.differences("privacy", module, cases, privacy_cases.ULPS[module]) == []
