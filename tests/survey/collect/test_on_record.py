"""Reports, counts, resumed runs and refusals are what they were, byte for byte: see `results_on_record`."""

from __future__ import annotations

import collect_cases
import pytest
import results_on_record as on_record


@pytest.mark.parametrize("module", list(collect_cases.CASES))
def test_results_are_as_on_record(module: str) -> None:
    """What a run writes under a known key, how it goes on after an interrupt, and what it says of whatever is wrong."""
    assert on_record.differences("collect", module, collect_cases.CASES[module], 0.0) == []
