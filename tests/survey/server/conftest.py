"""A PostgreSQL server for the tests that need one, started once; and a round in each kind of database."""

import itertools

import postgresql_server
import pytest
from collectors import habits

ROUNDS = itertools.count(1)


@pytest.fixture(scope="session")
def postgresql():
    """A server of the tests' own."""
    if postgresql_server.programs() is None:
        pytest.skip(postgresql_server.ABSENT)
    with postgresql_server.server() as made:
        yield made


@pytest.fixture
def plan():
    """A plan for a round of its own, since all tests share one PostgreSQL database."""
    return habits(next(ROUNDS))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def location(request, tmp_path):
    """Where reports are kept, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'reports.db'}"
    return request.getfixturevalue("postgresql").url
