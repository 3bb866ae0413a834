"""The masses of a tilted law in a window, against convolution in high precision.

The curves of composed losses, by enumeration and on a lattice, against sums in 60 digits.
"""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from ldpopt.composition import laws as windows
from ldpopt.composition.laws import UNDERFLOW_ERROR, AtomLaw, LatticeLaw, Window
from ldpopt.errors import InvalidInput
from ldpopt.numbers.rounding import up


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


@cache
def truth_of_law():
    """{position: mass} of `law()`, in 40 digits."""
    with mpmath.workdps(40):
        return exact(law())


@pytest.mark.parametrize("tilt", [0.0, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("direct", [True, False])
def test_masses_are_right_within_their_error(tilt, direct, monkeypatch):
    """Each mass of the window is the tilted one up to `error`, and what lies outside is no more than that."""
    if not direct:
        monkeypatch.setattr(windows, "_MAX_DIRECT_TERMS", 0)
    made = law()
    found = Window.from_law(made, tilt)
    truth = {place: mass * mpmath.exp(tilt * made.spacing * place) for place, mass in truth_of_law().items()}
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
    found = Window.from_law(made, tilt)
    if epsilon < found.first * made.spacing or epsilon > (found.first + len(found.masses) - 1) * made.spacing:
        return
    value, error = found.delta(epsilon)
    with mpmath.workdps(40):
        right = mpmath.fsum(
            mass * -mpmath.expm1(epsilon - place * mpf(made.spacing))
            for place, mass in truth_of_law().items()
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
    truth = truth_of_law()

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


def test_sums_of_many_terms_have_windows_of_a_few_deviations():
    """The window of many summands is far smaller than the range, and holds nearly all of the mass."""
    made = law(counts=(40_000, 1_000))
    found = Window.from_law(made, 0.0)
    assert len(found.masses) * made.spacing <= 200 * found.deviation
    assert len(found.masses) * made.spacing >= 26 * found.deviation
    assert math.fsum(found.masses) == pytest.approx(1.0, abs=1e-10)
    assert len(found.masses) < (made.ends[1] - made.ends[0]) / 4
    at = (found.first + np.arange(len(found.masses))) * made.spacing
    assert float(found.masses @ at) == pytest.approx(found.mean, rel=1e-9)
    assert float(found.masses @ (at - found.mean) ** 2) == pytest.approx(found.deviation**2, rel=1e-6)


def composed(parts, spacing):
    """{position: mass} of the sum, in the digits at hand."""
    law = {0: mpf(1)}
    for at, masses, count in parts:
        for _ in range(count):
            longer = {}
            for place, mass in law.items():
                for step, more in zip(at.tolist(), masses.tolist(), strict=True):
                    longer[place + step] = longer.get(place + step, mpf(0)) + mass * mpf(more)
            law = longer
    return law


def delta(law, spacing, epsilon):
    """E (1 - e^(epsilon - L))_+."""
    over = ((mpf(place) * mpf(spacing), mass) for place, mass in law.items())
    return mpmath.fsum(mass * -mpmath.expm1(mpf(epsilon) - loss) for loss, mass in over if loss > epsilon)


def lattice(epsilon, count):
    """`count` randomized responses of epsilon and one of half, on the lattice of half epsilon."""
    high, half = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(-epsilon / 2))
    parts = (
        (np.array([2, -2]), np.array([high, 1 - high]), count),
        (np.array([1, -1]), np.array([half, 1 - half]), 1),
    )
    return LatticeLaw(epsilon / 2, parts, 0.0)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 40), (1.0, 30), (1e-5, 20), (8.0, 6)])
def test_a_lattice_gives_the_curve_with_its_digits(epsilon, count):
    """delta is right within its stated error, from the bulk to the last atom, and the error is small relatively."""
    law = lattice(epsilon, count)
    with mpmath.workdps(60):
        truth = composed(law.parts, law.spacing)
        assert law.ends == (min(truth), max(truth))
        for share in (-0.1, 0.0, 0.2, 0.45, 0.7, 0.9, 0.99):
            at = share * law.ends[1] * law.spacing
            value, error = law.delta(at)
            exact = delta(truth, law.spacing, at)
            assert abs(value - exact) <= error
            assert error <= 1e-6 * exact
            bulk, wide = law.bulk(at)
            assert abs(bulk - exact) <= wide
    assert law.delta(law.ends[1] * law.spacing) == (0.0, 0.0)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 40), (1.0, 30), (8.0, 6)])
def test_epsilon_inverts_the_curve_of_a_lattice(epsilon, count):
    """At the epsilon found, but for its own rounding, delta is not exceeded, and a little below it is."""
    law = lattice(epsilon, count)
    with mpmath.workdps(60):
        truth = composed(law.parts, law.spacing)
        for asked in (1e-25, 1e-9, 1e-3, 0.1, 0.4):
            found = law.epsilon(asked)
            # What uses it raises it by so much, since epsilon itself is rounded.
            assert delta(truth, law.spacing, up(found, 16)) <= asked
            assert delta(truth, law.spacing, found - 1e-6 * epsilon) > asked * (1 - 1e-9)


def test_cumulants_are_those_of_the_tilted_distribution():
    """log E e^(tL), the tilted mean and variance, of all summands, one of them without mass at its largest place."""
    parts = ((np.array([-1, 2, 9]), np.array([0.3, 0.7, 0.0]), 3), (np.array([0, 1]), np.array([0.5, 0.5]), 2))
    law = LatticeLaw(0.25, parts, 0.0)
    for tilt in (0.0, 0.3, -2.0, 50.0):
        weights = [(0.25 * mpf(place), mass) for place, mass in composed(parts, 0.25).items()]
        total = mpmath.fsum(mass * mpmath.exp(tilt * loss) for loss, mass in weights)
        mean = mpmath.fsum(loss * mass * mpmath.exp(tilt * loss) for loss, mass in weights) / total
        spread = mpmath.fsum((loss - mean) ** 2 * mass * mpmath.exp(tilt * loss) for loss, mass in weights) / total
        value, first, second = law.cumulant(tilt)
        assert value == pytest.approx(float(mpmath.log(total)), rel=1e-12, abs=1e-12)
        assert first == pytest.approx(float(mean), rel=1e-12)
        assert second == pytest.approx(float(spread), rel=1e-9, abs=1e-15)


def test_the_tilt_moves_the_mean():
    """The tilted mean is the epsilon that was asked for; no tilt where the mean is there or beyond."""
    law = lattice(1.0, 10)
    mean = law.cumulant(0.0)[1]
    assert law.tilt_to(mean) == 0.0
    assert law.tilt_to(mean - 1) == 0.0
    for epsilon in (mean + 0.5, 0.9 * law.ends[1] * law.spacing):
        assert law.cumulant(law.tilt_to(epsilon))[1] == pytest.approx(epsilon, rel=1e-9)


def test_windows_are_cached_up_to_a_limit():
    """The same tilt gives the same window; only some of many tilts stay in the cache."""
    law = lattice(1.0, 10)
    assert law.window(0.5) is law.window(0.5)
    for tilt in np.linspace(1, 2, 17).tolist():
        law.window(tilt)
    assert len(law._windows) == 1
    assert law.window(0.5).tilt == 0.5


def test_the_atoms_of_a_lattice_are_its_bulk():
    """Losses and masses are those of the sum."""
    law = lattice(1.0, 4)
    losses, masses = law.atoms()
    truth = composed(law.parts, law.spacing)
    for loss, mass in zip(losses.tolist(), masses.tolist(), strict=True):
        assert mass == pytest.approx(float(truth.get(round(loss / law.spacing), 0.0)), abs=1e-14)


LOSSES, MASSES = np.array([2.0, 1.0, 0.5, -1.0]), np.array([0.1, 0.3, 0.2, 0.4])


@pytest.mark.parametrize("epsilon", [-2.0, -1.0, 0.0, 0.5, 0.75, 1.5, 2.0, 3.0])
def test_the_curve_of_atoms_is_a_sum(epsilon):
    """delta of finitely many losses, by its definition."""
    value, error = AtomLaw(LOSSES, MASSES, 0.0).delta(epsilon)
    exact = mpmath.fsum(mpf(m) * max(mpf(0), -mpmath.expm1(mpf(epsilon) - mpf(a)))
                        for a, m in zip(LOSSES, MASSES, strict=True))  # fmt: skip
    assert abs(value - exact) <= error
    assert error <= 1e-14 * value + UNDERFLOW_ERROR


@pytest.mark.parametrize("asked", [0.0, 1e-9, 0.05, 0.0632, 0.2, 0.5, 0.9, 1.0, 5.0])
def test_epsilon_inverts_the_curve_of_atoms(asked):
    """The least epsilon at which delta is not exceeded, -inf where every one will do."""
    law = AtomLaw(LOSSES, MASSES, 0.0)
    found = law.epsilon(asked)
    if asked >= 1.0:
        assert found == -math.inf
        return
    assert law.delta(found)[0] <= asked * (1 + 1e-12) + 1e-15
    assert asked == 0.0 or law.delta(found - 1e-9)[0] > asked
    assert found <= 2.0


def test_where_no_digits_are_left_the_safe_end_is_taken():
    """A piece whose masses have underflowed counts as if it were needed whole."""
    law = AtomLaw(np.array([3.0, 1.0]), np.array([1e-310, 1.0]), 0.0)
    assert law.epsilon(1e-311) == 3.0


def test_a_window_of_rare_losses_is_narrow():
    """A million losses of which each is large with probability 1e-9: Chernoff's bound sees that few of them are."""
    law = LatticeLaw(1.0, ((np.array([0, 4000]), np.array([1 - 1e-9, 1e-9]), 10**6),), 0.0)
    window = law.window(0.0)
    assert len(window.masses) <= 2**18
    assert window.masses[0 - window.first] == pytest.approx(np.exp(-1e-3), rel=1e-9)
    assert window.masses[4000 - window.first] == pytest.approx(1e-3 * np.exp(-1e-3), rel=1e-9)


def test_a_window_beyond_memory_is_refused():
    """Losses that lie terabytes of cells apart are refused, not computed."""
    law = LatticeLaw(1.0, ((np.array([0, 2**24]), np.array([0.5, 0.5]), 10**6),), 0.0)
    with pytest.raises(InvalidInput, match="too many cells"):
        law.window(0.0)
