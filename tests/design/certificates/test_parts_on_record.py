"""The parts that proofs are made of give what they gave, to a few units in the last place: see `results_on_record`."""

import kernel_cases
import pytest
import results_on_record as on_record


@pytest.mark.parametrize("module", list(kernel_cases.CASES))
def test_results_are_as_on_record(module):
    """Numbers that are refused, enclosures and their width, orders, boxes and bounds of small problems."""
    assert on_record.differences("kernel", module, kernel_cases.CASES[module], kernel_cases.ULPS[module]) == []
