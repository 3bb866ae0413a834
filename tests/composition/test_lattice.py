"""Losses enumerated, on the lattice they share, and split between lattice points, against brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ldpopt.composition.lattice import MAX_ATOMS, Rounding, atom_law, collect, exact_lattice, finite_part, grid
from ldpopt.composition.parametric import RARE, ParametricPair
from ldpopt.numbers.rounding import ULP
from ldpopt.privacy.finite_pair import FinitePair


def sums(parts):
    """{sum of losses: mass} over every choice."""
    made = {}
    draws = [list(zip(at, masses, strict=True)) for at, masses, count in parts for _ in range(count)]
    for chosen in itertools.product(*draws):
        loss = math.fsum(at for at, _ in chosen)
        made[round(loss, 9)] = made.get(round(loss, 9), 0.0) + math.prod(mass for _, mass in chosen)
    return made


def as_dict(losses, masses):
    made = {}
    for loss, mass in zip(losses.tolist(), masses.tolist(), strict=True):
        made[round(loss, 9)] = made.get(round(loss, 9), 0.0) + mass
    return made


def test_finite_losses_are_merged_and_fall():
    """Equal losses become one, impossible outcomes none, and the largest comes first."""
    pair = FinitePair([0.4, 0.2, 0.1, 0.3, 0.0], [0.2, 0.1, 0.2, 0.0, 0.5])
    losses, masses = finite_part(pair)
    assert losses == pytest.approx([math.log(2), -math.log(2)])
    assert masses == pytest.approx([0.6, 0.1])
    assert collect(np.array([1, 1, 0]), np.array([0.1, 0.2, 0.3]), 4) == pytest.approx([0.3, 0.3, 0.0, 0.0])


def test_losses_of_rare_outcomes_are_raised():
    """A loss that is known only to the tolerance of rows is raised by more than that, others are not."""
    pair = FinitePair([1.0, 1e-310], [1.0, 5e-310])
    losses, _ = finite_part(pair)
    assert losses.tolist() == pytest.approx([0.0, -math.log(5) + RARE], abs=1e-13)
    assert losses[1] - pair.losses[1] == pytest.approx(RARE, rel=1e-6)


PARTS = [
    (np.array([0.5, -0.25]), np.array([0.6, 0.4]), 3),
    (np.array([1.0, 0.0, -1.0]), np.array([0.5, 0.3, 0.2]), 2),
]


def test_atoms_are_every_sum():
    """Enumeration gives each sum its mass, largest first, and its slack covers the additions."""
    law = atom_law(PARTS, Rounding(1e-9, 2e-9))
    assert as_dict(law.losses, law.masses) == pytest.approx(sums(PARTS))
    assert (np.diff(law.losses) < 0).all()
    assert law.relative == 2e-9
    # Four additions round: each by half a unit of what it gives at most.
    assert 1e-9 < law.slack <= 1e-9 + 4 * ULP * 3.5 * 2


def test_the_first_addition_is_exact():
    """A single loss is not rounded, so that one mechanism has no slack of its own."""
    assert atom_law([(np.array([0.1, -0.1]), np.array([0.5, 0.5]), 1)]).slack == 0.0
    assert atom_law([(np.array([0.1, -0.1]), np.array([0.5, 0.5]), 2)]).slack >= ULP * 0.2


def test_too_many_atoms_are_not_enumerated():
    """More than 64 of one kind, or more sums than are kept, are for another law."""
    one = (np.array([1.0]), np.array([1.0]))
    assert atom_law([(*one, 64)]) is not None
    assert atom_law([(*one, 65)]) is None
    rng = np.random.default_rng(0)
    odd = (rng.uniform(0, 1, 150), np.full(150, 1 / 150))
    assert atom_law([(*odd, 1)]) is not None
    assert len(atom_law([(*odd, 2)]).losses) <= MAX_ATOMS
    assert atom_law([(*odd, 3)]) is None


def test_the_shared_lattice_is_found():
    """Losses 1/2, 1/3 and 0 lie on sixths, where the law of the sum is that of the enumeration."""
    parts = [(np.array([1 / 2, -1 / 3, 0.0]), np.array([0.5, 0.3, 0.2]), 2)]
    law = exact_lattice(parts, Rounding(1e-9, 3e-9))
    assert law.spacing == pytest.approx(1 / 6)
    assert law.parts[0][0].tolist() == [3, -2, 0]
    assert law.relative == 3e-9
    assert 1e-9 <= law.slack <= 1e-9 + 1e-14
    assert as_dict(*law.atoms())[round(1 / 6, 9)] == pytest.approx(sums(parts)[round(1 / 6, 9)], rel=1e-9)


def test_the_slack_is_the_distance_from_the_lattice():
    """What a loss is off its lattice point counts once for each time that it is drawn."""
    off = 1e-13
    law = exact_lattice([(np.array([1.0, 2.0 + off]), np.array([0.5, 0.5]), 5)])
    assert law.slack == pytest.approx(5 * off, rel=0.01)


def test_losses_without_a_coarse_lattice_have_none():
    """Incommensurable losses, and lattices of too many points, are refused; equal laws have a lattice of their own."""
    half = np.array([0.5, 0.5])
    assert exact_lattice([(np.array([1.0, math.sqrt(2)]), half, 1)]) is None
    assert exact_lattice([(np.array([1.0, 2.0**21]), half, 1)]) is None
    assert exact_lattice([(np.array([1.0, 2.0**20]), half, 1)]) is not None
    assert exact_lattice([(np.array([1.0, 1.0 + 1e-11]), half, 1)]) is None
    assert exact_lattice([(np.zeros(1), np.ones(1), 3)]).spacing == 1.0


def sticks(parts, epsilon):
    """E (1 - e^(epsilon - L))_+ of one pair of each part, alone."""
    return [math.fsum(float(m) * max(0.0, -math.expm1(epsilon - float(a))) for a, m in zip(at, masses, strict=True))
            for at, masses, _ in parts]  # fmt: skip


@pytest.mark.parametrize("spacing", [0.3, 0.07, None])
def test_splitting_losses_dominates_and_merges_back(spacing):
    """Both masses of a pair are kept, no hockey stick falls, and drift and spread are what was added [GI, Thm 1]."""
    rng = np.random.default_rng(1)
    parts = []
    for count in (2, 5):
        at = np.sort(rng.uniform(-1, 1, 7))[::-1]
        masses = rng.dirichlet(np.ones(7))
        parts.append((at, masses, count))
    law, drift, spread = grid(parts, cells=400, spacing=spacing)
    again = [(positions * law.spacing, masses, count) for positions, masses, count in law.parts]
    added = 0.0
    for (at, masses, count), (new, moved, _) in zip(parts, again, strict=True):
        assert math.fsum(moved) == pytest.approx(math.fsum(masses), rel=1e-13)
        assert math.fsum(moved * np.exp(-new)) == pytest.approx(math.fsum(masses * np.exp(-at)), rel=1e-12)
        added += count * (math.fsum(moved * new) - math.fsum(masses * at))
    assert drift == pytest.approx(added, rel=1e-9)
    assert spread == pytest.approx(7 * law.spacing**2)
    for epsilon in np.linspace(-1.5, 1.5, 41).tolist():
        for old, new in zip(sticks(parts, epsilon), sticks(again, epsilon), strict=True):
            assert new >= old * (1 - 1e-12)
    if spacing is None:
        deviation = math.sqrt(math.fsum(c * float(m @ (a - m @ a) ** 2) for a, m, c in parts))
        assert law.spacing <= min(deviation * 28 / 400, max(float(np.abs(a).max()) for a, _, _ in parts) / 16)
        assert law.spacing >= 0.9 * min(deviation * 28 / 400, max(float(np.abs(a).max()) for a, _, _ in parts) / 16)
    else:
        assert law.spacing == spacing


def test_a_distribution_whose_variance_underflows_has_a_grid():
    """Near epsilon 700 the variance underflows; then the cells divide the largest loss."""
    law, _, _ = grid([(np.array([700.0, -700.0]), np.array([1.0, 1e-304]), 1)], cells=100)
    assert law.spacing == 7.0


def test_rounding_counts_every_pair_by_its_losses():
    """Of measured pairs losses and masses are off, of known losses the masses alone, of equal laws nothing."""
    measured = FinitePair([0.75, 0.25], [0.25, 0.75])
    found = Rounding.from_pairs([(measured, 3)], Rounding(1e-3, 1e-4))
    assert found.losses == pytest.approx(1e-3 + 3 * ULP * (12 + 4 * math.log(3)), rel=1e-15)
    assert found.masses == pytest.approx(1e-4 + 3 * ULP * 12, rel=1e-15)
    known = Rounding.from_pairs([(ParametricPair.from_parameters(1.0), 3)], Rounding())
    assert known.losses == 0.0
    assert known.masses == pytest.approx(36 * ULP)
    assert Rounding.from_pairs([(FinitePair([0.5, 0.5], [0.5, 0.5]), 9)], Rounding()) == Rounding()


def test_rounding_covers_the_losses_of_floats():
    """The loss of a pair of floats differs from that of the laws they stand for by less than the slack."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        p, q = rng.dirichlet(np.ones(5), 2)
        pair = FinitePair(p, q)
        slack = Rounding.from_pairs([(pair, 1)], Rounding()).losses
        wholes = [sum(map(Fraction, law)) for law in (pair.p.tolist(), pair.q.tolist())]
        for a, b, loss in zip(pair.p.tolist(), pair.q.tolist(), pair.losses.tolist(), strict=True):
            ratio = Fraction(a) / wholes[0] / (Fraction(b) / wholes[1])
            near = ratio / Fraction(math.exp(loss))  # within an ulp or two of one
            assert abs(float(near - 1)) <= slack
