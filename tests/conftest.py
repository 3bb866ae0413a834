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
from tiers import first_tier, is_named, is_wholly_full, named_paths

if "PYTEST_XDIST_WORKER" in os.environ:  # of several processes, each has one thread
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("ldpopt", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("ldpopt")

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # `experiments`, which is not installed; what is installed goes first

TOGETHER = (
    r"tests/docs/test_(formulas|reference|site)\.py",
    r"tests/studio/test_journeys_\w+\.py",
    r"tests/(design/test_(files|load|work)|test_fuzzing|studio/test_inspect)\.py",
)
"""Files that share the pages of the reference, a running studio, or a design of each kind: one process makes it."""

WRITES_BYTECODE = not sys.dont_write_bytecode
NAMED = pytest.StashKey()
"""What the command line names below this folder: all its tests are run."""

# Collecting makes millions of objects that stay: nothing is gained by looking at them for garbage again and again.
gc.disable()


def pytest_addoption(parser):
    tiers = parser.getgroup("tiers of the tests").addoption
    tiers("--full", action="store_true", help="run all tests: what takes long, too (see CONTRIBUTING.md)")
    tiers("--rest", action="store_true", help="run what --full adds to the first tier, and nothing else")


def pytest_configure(config):
    """Of several processes, each begins to read the tests elsewhere, and finds what others have read compiled."""
    config.stash[NAMED] = named_paths(config.args, HERE)
    worker = getattr(config, "workerinput", None)
    if worker and [Path(path).resolve() for path in config.args] == [HERE]:
        files = [str(path) for path in sorted(HERE.rglob("test_*.py")) if not _left_out(path, config)]
        begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args = files[begin:] + files[:begin]
        sys.dont_write_bytecode = False


def _left_out(path, config):
    """Whether a file is not read since nothing in it is of the first tier."""
    every = config.option.full or config.option.rest or is_named(path, config.stash[NAMED])
    return not every and is_wholly_full(path)


def pytest_ignore_collect(collection_path, config):
    return True if _left_out(collection_path, config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if not config.option.full:
        first, rest = first_tier(items), config.option.rest
        chosen = [
            item
            for item in items
            if (item.nodeid not in first if rest else item.nodeid in first or is_named(item.path, config.stash[NAMED]))
        ]
        config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
        items[:] = chosen
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        # What is wholly of the full tier takes longest: several processes begin with it, so that none waits at the end.
        order = {path: (not is_wholly_full(path), -count, path) for path, count in tests.items()}
        items.sort(key=lambda item: order[item.path])


def pytest_collection_finish():
    sys.dont_write_bytecode = not WRITES_BYTECODE
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
