"""The masses of a tilted law in a window, against convolution in high precision."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import laws as windows
from ldpopt.composition.laws import LatticeLaw, Window


def law(spacing=0.25, counts=(30, 12)):
    """Two kinds of summands, one of them far from symmetric."""
    parts = (
        (np.array([-2, 0, 3]), np.array([0.2, 0.5, 0.3]), counts[0]),
        (np.array([-40, 1, 7]), np.array([0.001, 0.9, 0.099]), counts[1]),
    )
    return LatticeLaw(spacing, parts, 0.0)


def exact(made):
    """{position: mass} of the sum."""
    found = {0: mpf(1)}
    for at, masses, count in made.parts:
        for _ in range(count):
            longer = {}
            for place, mass in found.items():
                for step, more in zip(at.tolist(), masses.tolist(), strict=True):
                    longer[place + step] = longer.get(place + step, mpf(0)) + mass * mpf(more)
            found = longer
    return found


@pytest.mark.parametrize("tilt", [0.0, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("direct", [True, False])
def test_masses_are_right_within_their_error(tilt, direct, monkeypatch):
    """Each mass of the window is the tilted one up to `error`, and what lies outside is no more than that."""
    if not direct:
        monkeypatch.setattr(windows, "_DIRECT", 0)
    made = law()
    found = Window.of(made, tilt)
    truth = {place: mass * mpmath.exp(tilt * made.spacing * place) for place, mass in exact(made).items()}
    total = mpmath.fsum(truth.values())
    assert found.cumulant == pytest.approx(float(mpmath.log(total)), rel=1e-13, abs=1e-13)
    mean = float(mpmath.fsum(place * mass for place, mass in truth.items()) / total) * made.spacing
    assert found.mean == pytest.approx(mean, rel=1e-12)
    inside = mpf(0)
    for place, mass in enumerate(found.masses.tolist(), start=found.first):
        right = truth.get(place, mpf(0)) / total
        inside += right
        assert abs(mass - right) <= found.error
    assert 1 - inside <= found.error + mpf(10) ** -20
    assert found.error <= 1e-12
    assert found.first >= made.ends[0]
    assert found.first + len(found.masses) - 1 <= made.ends[1]


@pytest.mark.parametrize("tilt", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("epsilon", [-3.0, 2.0, 8.0, 15.0])
def test_delta_is_within_its_stated_error(tilt, epsilon):
    """The sum over losses above epsilon, whatever window answers for it, as long as epsilon lies in it."""
    made = law()
    found = Window.of(made, tilt)
    if epsilon < found.first * made.spacing or epsilon > (found.first + len(found.masses) - 1) * made.spacing:
        return
    value, error = found.delta(epsilon)
    with mpmath.workdps(40):
        right = mpmath.fsum(
            mass * -mpmath.expm1(epsilon - place * mpf(made.spacing))
            for place, mass in exact(made).items()
            if place * mpf(made.spacing) > epsilon
        )
    assert abs(value - right) <= error


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.3])
def test_straddling_positions_are_on_both_sides(delta):
    """The position inside has more delta than the given one, the one outside at most as much."""
    made = law()
    window = made.window(made.tilt_to(made.epsilon(delta)))
    low, high = made.ends
    inside, outside = window.straddle(delta, low, high)
    assert low <= inside < outside <= high
    truth = exact(made)

    def at(position):
        return mpmath.fsum(
            m * -mpmath.expm1((position - p) * mpf(made.spacing)) for p, m in truth.items() if p > position
        )

    assert inside == low or at(inside) > delta * (1 - 1e-6)
    assert outside == high or at(outside) <= delta
    assert outside - inside == 1


def test_a_window_that_cannot_reach_says_so():
    """Far from its mean a window knows nothing, and gives back the ends that it was given."""
    made = law()
    high = made.ends[1]
    window = made.window(0.0)
    assert window.straddle(1e-300, high - 4, high) == (high - 4, high)


def test_large_laws_have_windows_of_a_few_deviations():
    """The window of many summands is far smaller than the range, and holds nearly all of the mass."""
    made = law(counts=(40_000, 1_000))
    found = Window.of(made, 0.0)
    assert len(found.masses) * made.spacing <= 200 * found.deviation
    assert len(found.masses) * made.spacing >= 26 * found.deviation
    assert math.fsum(found.masses) == pytest.approx(1.0, abs=1e-10)
    assert len(found.masses) < (made.ends[1] - made.ends[0]) / 4
    at = (found.first + np.arange(len(found.masses))) * made.spacing
    assert float(found.masses @ at) == pytest.approx(found.mean, rel=1e-9)
    assert float(found.masses @ (at - found.mean) ** 2) == pytest.approx(found.deviation**2, rel=1e-6)
