"""Measures, claims and conversions give what they gave, to a few units in the last place: see `results_on_record`."""

import privacy_cases
import pytest
import results_on_record as on_record

SEARCHED = {"zcdp", "approximate_zcdp", "mcdp", "capacity", "contraction", "groups", "others", "trade_off"}
"""What a search brackets, whose steps may end elsewhere by the rounding of another machine."""


@pytest.mark.parametrize("module", list(privacy_cases.CASES))
def test_results_are_as_on_record(module):
    """Values, brackets, witnesses and refusals of each module, on channels from the harmless to the subnormal."""
    ulps = 2.0**14 if module in SEARCHED else 6.0
    assert on_record.differences("privacy", module, privacy_cases.CASES[module], ulps) == []
