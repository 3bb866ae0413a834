"""One hypothesis profile for the suite: the same examples on every run, no clock, nothing left on disk or behind."""

import mpmath
import pytest
from hypothesis import settings

settings.register_profile("ldpopt", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("ldpopt")


@pytest.fixture(autouse=True)
def _own_precision():
    """A test that sets mpmath's precision sets it for itself alone."""
    with mpmath.workdps(15):
        yield
