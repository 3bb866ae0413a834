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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file run in one process, which makes its designs and starts its servers and its browser once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getvalue("dist") == "load" else None
