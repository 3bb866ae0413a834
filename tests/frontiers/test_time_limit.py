"""Frontiers, sweeps, envelopes, structures and comparisons that run out of time, or are cancelled."""

from itertools import pairwise

import numpy as np
import pytest

from ldpopt import bounds
from ldpopt.design import ApproximateLDP, Divergence, LocalDP, MutualInformation, TotalVariation
from ldpopt.design.structure import structures
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.frontiers import envelope, frontier, sweep
from ldpopt.values import deadline as module

SMALL = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
P = np.arange(1, 13.0) / 78
LONG = Divergence(KL, P, P[::-1])


def deltas(delta):
    return [ApproximateLDP(1.0, delta), TotalVariation(0.2)]


@pytest.fixture
def late(monkeypatch):
    """A clock on which every look takes a second."""
    now = [0.0]

    def look():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(module, "monotonic", look)


def rising(heard):
    return heard[-1] == 1.0 and all(0 <= a <= b <= 1 for a, b in pairwise([0.0, *heard]))


def test_each_design_of_a_sweep_has_the_time_it_is_given(late):
    """Every row is there, bounded and within its constraints, and says that its time ended."""
    heard = []
    table = sweep(SMALL, deltas, [0.01, 0.02], time_limit=0.5, progress=heard.append)
    assert rising(heard)
    for row, full in zip(table, sweep(SMALL, deltas, [0.01, 0.02]), strict=True):
        assert max(row.lower_bound, full.lower_bound) <= min(row.upper_bound, full.upper_bound)
        assert row.guarantees[0].value <= 1.0
        assert row.certified or "time limit of 0.5 s" in row.note


@pytest.mark.full
def test_a_frontier_has_all_its_rows_in_no_time(late):
    """A utility without a closed form is cut at every point; rows are in order and enclose the optimum."""
    heard = []
    utility = MutualInformation(P)
    table = frontier(utility, [1.0], [0.2, 0.4], time_limit=0.5, progress=heard.append)
    assert [row.eta for row in table] == [0.2, 0.4]
    assert rising(heard)
    for row, full in zip(table, frontier(utility, [1.0], [0.2, 0.4]), strict=True):
        assert row.optimum <= full.upper_bound
        assert row.upper_bound >= full.optimum


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_limit_that_is_far_away_changes_no_row(jobs):
    """With an hour for each design the rows are those without a limit, in one process and in two."""
    heard = []
    plain = sweep(SMALL, LocalDP, [0.5, 1.0, 2.0])
    timed = sweep(SMALL, LocalDP, [0.5, 1.0, 2.0], jobs=jobs, time_limit=3600, progress=heard.append)
    assert timed.value.tolist() == plain.value.tolist()
    assert rising(heard)


def test_a_folder_of_another_limit_is_refused(tmp_path):
    """What a row holds depends on its limit, so the limit is part of the problem."""
    sweep(SMALL, LocalDP, [0.5], resume=tmp_path / "run", time_limit=60)
    sweep(SMALL, LocalDP, [0.5], resume=tmp_path / "run", time_limit=60.0)
    for limit in (None, 61):
        with pytest.raises(InvalidInput, match="another"):
            sweep(SMALL, LocalDP, [0.5], resume=tmp_path / "run", time_limit=limit)


def test_a_cancelled_sweep_resumes_from_its_finished_rows(tmp_path):
    """What the listener raises is passed on; finished rows are whole in the folder, and the next run uses them."""

    class Cancelled(Exception):
        pass

    def listen(share):
        if share >= 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        sweep(SMALL, LocalDP, [0.5, 1.0, 2.0], resume=tmp_path / "run", progress=listen)
    heard = []
    table = sweep(SMALL, LocalDP, [0.5, 1.0, 2.0], resume=tmp_path / "run", progress=heard.append)
    assert heard[0] == pytest.approx(1 / 3)
    assert table.value.tolist() == sweep(SMALL, LocalDP, [0.5, 1.0, 2.0]).value.tolist()


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "1"])
def test_no_sweep_is_begun_with_a_limit_that_is_none(bad):
    """It is refused before the first design."""
    with pytest.raises(InvalidInput, match="time_limit"):
        sweep(SMALL, LocalDP, [0.5], time_limit=bad)
    with pytest.raises(InvalidInput, match="time_limit"):
        frontier(SMALL, [0.5], [0.1], time_limit=bad)


def test_an_envelope_says_whether_it_is_complete(late):
    """In no time some corners are known; the straight lines between them are below the optimum everywhere."""
    heard = []
    early, full = envelope(LONG, 2.0, time_limit=0.5, progress=heard.append), envelope(LONG, 2.0)
    assert (early.complete, full.complete) == (False, True)
    assert rising(heard)
    for eta in np.linspace(0, 1, 21):
        assert early.value_at(eta) <= full.value_at(eta) * (1 + 1e-12)
    assert envelope(LONG, 2.0, time_limit=1e9) == full


def test_break_points_are_bracketed_as_well_as_time_allows(monkeypatch):
    """Cut while bisecting, the widest bracket is the tolerance that is told; cut before, nothing is claimed."""
    pair = Divergence(KL, [0.6, 0.3, 0.1], [0.1, 0.3, 0.6])
    full = structures(pair, 0.1, 5.0, tolerance=1e-6, grid=8)
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    heard = []

    def listen(share):
        heard.append(share)
        now[0] = 0.0 if share < 0.5 else 100.0

    early = structures(pair, 0.1, 5.0, tolerance=1e-6, grid=8, time_limit=10, progress=listen)
    assert early.tolerance > full.tolerance
    assert [piece.patterns for piece in early] == [piece.patterns for piece in full]
    for (low, high), (below, above) in zip(early.breaks, full.breaks, strict=True):
        assert low <= below < above <= high
        assert high - low <= early.tolerance
    monkeypatch.setattr(module, "monotonic", lambda: now.append(0) or float(len(now)))
    with pytest.raises(SolverError, match="before the grid was looked at"):
        structures(pair, 0.1, 5.0, grid=8, time_limit=0.5)


def test_a_comparison_shares_its_time(late):
    """Every divergence is there, with a value below its bound."""
    heard = []
    table = bounds.compare(P, P[::-1], 1.0, 0.2, time_limit=0.5, progress=heard.append)
    assert rising(heard)
    assert all(row.optimum <= row.upper_bound for row in table)
    full = bounds.compare(P, P[::-1], 1.0, 0.2)
    assert {row.divergence for row in table} == {row.divergence for row in full}
