"""One hypothesis profile for the suite: the same examples on every run, no clock, nothing left on disk or behind."""

import gc
import os
import re
import sys
from collections import Counter
from pathlib import Path

import mpmath
import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:  # of several processes, each has one thread
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("ldpopt", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("ldpopt")

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # `experiments`, which is not installed; what is installed goes first
SLOW = [HERE / name for name in (HERE / "slow_files.txt").read_text("utf-8").split()]
"""The files that take longest, of which several processes begin first, so that none waits at the end for another."""

TOGETHER = (
    r"tests/docs/test_(formulas|reference|site)\.py",
    r"tests/studio/test_journeys_\w+\.py",
    r"tests/(design/test_(files|load|work)|test_fuzzing|studio/test_inspect)\.py",
)
"""Files that share the pages of the reference, a running studio, or a design of each kind: one process makes it."""

# Collecting makes millions of objects that stay: nothing is gained by looking at them for garbage again and again.
gc.disable()


def pytest_configure(config):
    """Of several processes, each begins to read the tests elsewhere, and finds what others have read compiled."""
    worker = getattr(config, "workerinput", None)
    if worker and [Path(path).resolve() for path in config.args] == [HERE]:
        files = sorted(map(str, HERE.rglob("test_*.py")))
        begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args = files[begin:] + files[:begin]


def pytest_collection_modifyitems(config, items):
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        order = {path: place for place, path in enumerate(SLOW)}
        items.sort(key=lambda item: (order.get(item.path, len(order)), -tests[item.path], item.path))


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _own_precision():
    """A test that sets mpmath's precision sets it for itself alone."""
    with mpmath.workdps(15):
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file run in one process, which makes its designs and starts its servers and its browser once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            scope = super()._split_scope(nodeid)
            return next((name for name in TOGETHER if re.match(name, scope)), scope)

    config.option.loadscopereorder = False  # by the order of the items
    return Scheduling(config, log) if config.getvalue("dist") == "load" else None
