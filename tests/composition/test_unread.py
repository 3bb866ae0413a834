"""A result of `add` that is thrown away is noticed; one that is stored, read or passed on is not."""

import copy
import gc
import pickle
import warnings

import pytest

from ldpopt.composition import Ledger, PrivacyFilter, PrivacyOdometer
from ldpopt.errors import DroppedResult
from ldpopt.privacy import PureDP


def raised(statements):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        statements()
        gc.collect()
    return [warning for warning in seen if issubclass(warning.category, DroppedResult)]


def in_a_loop():
    ledger = Ledger()
    for _ in range(3):
        ledger.add((0.5,))


def with_keywords():
    Ledger().add(*[(0.5,)], **{"count": 2})


def of_filters():
    PrivacyFilter(PureDP(1.0)).add((0.5,), name="first")
    PrivacyOdometer(0.1).add((0.5,))


@pytest.mark.parametrize(("statements", "count"), [(in_a_loop, 3), (with_keywords, 1), (of_filters, 2)])
def test_a_dropped_result_warns(statements, count):
    """Each statement that drops the new account warns once, says what to write, and names its own line."""
    seen = raised(statements)
    assert len(seen) == count
    assert all("name = name.add(...)" in str(warning.message) and warning.filename == __file__ for warning in seen)


def test_a_stored_result_never_warns():
    """Stored and never read, read, chained, copied, compared, refused: nothing was dropped, so nothing warns."""

    def stored():
        ledger = Ledger()
        kept = [ledger.add((0.5,))]
        ledger = ledger.add((0.5,))
        ledger = ledger.add((0.25,)).add((0.25,))
        unused = {"a": ledger.add((0.5,))}
        del kept, unused
        filter_ = PrivacyFilter(PureDP(1.0), ledger)
        filter_.admits((0.1,))
        filter_.room((0.1,))
        assert len(Ledger().add((0.5,))) == 1
        assert copy.copy(Ledger().add((0.5,))) == pickle.loads(pickle.dumps(Ledger().add((0.5,))))
        return PrivacyOdometer(0.1).add((0.5,))

    assert raised(stored) == []
    added = Ledger().add((0.5,))
    assert repr(added).startswith("Ledger(1 entries)")
    assert type(added) is Ledger
