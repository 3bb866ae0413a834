"""Deadlines: time is an argument, progress never falls, and what is no limit is refused."""

import math

import numpy as np
import pytest

from ldpopt.errors import InvalidInput
from ldpopt.values import deadline as module
from ldpopt.values.deadline import UNLIMITED, bar, watched


@pytest.fixture
def clock(monkeypatch):
    """A clock of seconds that the test moves."""
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, math.nan, -math.inf, "soon", "5", True, [1.0], 1j, 10**400])
def test_a_bad_time_limit_is_refused_in_one_line(bad):
    """Zero, negative numbers, nan, minus infinity, text and booleans are refused as time limits."""
    with pytest.raises(InvalidInput, match="time_limit: expected seconds above 0") as refused, watched(bad, False):
        pass
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("none", [None, math.inf, np.float64(math.inf)])
def test_none_and_infinity_are_no_limit(none):
    """Without a limit and a listener nothing is counted."""
    with watched(none, False) as deadline:
        assert deadline is UNLIMITED
        assert not deadline.over()
        assert deadline.left is None
        assert list(deadline.rounds(range(3))) == [0, 1, 2]


@pytest.mark.parametrize("bad", [None, 1, "yes", []])
def test_progress_is_a_flag_or_a_function(bad):
    """Anything else is refused by name."""
    with pytest.raises(InvalidInput, match="progress"), watched(None, bad):
        pass


def test_rounds_end_when_the_time_is_over_and_the_first_is_always_done(clock):
    """Of five rounds of 4 s under a limit of 10 s three are begun; of one that is late already, one."""
    with watched(10, False) as deadline:
        done = []
        for item in deadline.rounds(range(5)):
            done.append(item)
            clock[0] += 4
        assert done == [0, 1, 2]
        assert deadline.late
        assert list(deadline.rounds(range(5))) == [0]


def test_rounds_that_all_fit_are_not_late(clock):
    """Nothing was left out, so nothing is said, even when the clock passes the limit in the last round."""
    with watched(10, False) as deadline:
        for _ in deadline.rounds(range(2)):
            clock[0] += 6
        assert not deadline.late
        assert deadline.over()


def test_progress_never_falls_and_ends_at_one(clock):
    """Whatever rounds lie in rounds and however the clock runs, the shares rise from 0 to 1."""
    heard = []
    with watched(100, heard.append) as deadline:
        for _ in deadline.part(0.0, 0.5).rounds(range(3)):
            for _ in deadline.inner.rounds(range(7)):
                clock[0] += 1
        for at in range(3):
            turn = deadline.part(0.5, 1.0).turn(at, 3)
            assert list(turn.rounds("ab")) == ["a", "b"]
    assert heard == sorted(heard)
    assert (heard[0], heard[-1]) == (0.0, 1.0)
    assert all(0 <= share <= 1 for share in heard)


def test_the_clock_alone_never_says_that_all_is_done(clock):
    """Time that runs out is not work that is done."""
    heard = []
    with watched(1, heard.append) as deadline:
        clock[0] += 1000
        deadline.tell(0.0)
        assert heard[-1] == module.MAX_TIMED < 1


def test_turns_share_the_remaining_time(clock):
    """Each piece of work gets an even share of what those before it left; none less than a moment."""
    with watched(12, False) as deadline:
        assert deadline.turn(0, 3).seconds == pytest.approx(4)
        clock[0] += 2
        assert deadline.turn(1, 3).seconds == pytest.approx(5)
        clock[0] += 100
        last = deadline.turn(2, 3)
        assert 0 < last.seconds < 1e-6
        assert 0 < last.left < 1e-6
        assert deadline.left < 1e-6


def test_exceptions_of_the_listener_end_the_work():
    """An exception from the function is passed on, and nothing is told after it."""
    heard = []

    class Stop(Exception):
        pass

    def listen(share):
        heard.append(share)
        if share >= 0.5:
            raise Stop

    with pytest.raises(Stop), watched(None, listen) as deadline:
        for _ in deadline.rounds(range(4)):
            pass
    assert heard == [0.0, 0.25, 0.5]


@pytest.mark.parametrize("kind", [{"steps": 2}, {"shares": True}, {}])
def test_no_bar_is_shown_without_a_terminal(kind, capsys):
    """Neither stream gets a character."""
    with bar("working", **kind) as step:
        step(0.5)
        step(1.0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [{"steps": 2}, {"shares": True}, {}])
def test_a_terminal_sees_a_bar(kind, capsys, monkeypatch):
    """It goes to standard error, and standard output stays empty."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with bar("working", **kind) as step:
        step(0.5)
        step(1.0)
    out, err = capsys.readouterr()
    assert out == ""
    assert "working" in err
