"""The program of private sampling, at scales where a solver sees nothing but noise in a plain matrix."""

import math

import numpy as np
import pytest

from ldpopt import LocalDP, SolverError, TotalVariation, optimal_channel
from ldpopt.design import PrivateSampling
from ldpopt.design.outputs.program import MAX_TANGENT_COEFFICIENT, _planes, tangents_at
from ldpopt.divergences import JENSEN_SHANNON, KL, NEYMAN_CHI_SQUARED, REVERSE_KL, SQUARED_HELLINGER

MIRRORED = [[0.9, 0.1], [0.1, 0.9]]


SCALES = [(5e-8, 1.0), (1e-9, 1.0), (6e-8, 9e-9), (4.0, 3e-12), (45.0, 0.5), (260.0, 3e-9), (650.0, 0.3)]


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("f", "epsilon", "eta"),
    [(f, *scale) for f in (KL, NEYMAN_CHI_SQUARED) for scale in SCALES[::2]]
    + [(f, *scale) for f in (REVERSE_KL, SQUARED_HELLINGER) for scale in SCALES[1::2]],
    ids=lambda one: getattr(one, "name", None),
)
def test_mirrored_distributions_have_mirrored_rows_at_every_scale(f, epsilon, eta):
    """Rows (1/2 + s, 1/2 - s) and their mirror are best for mirrored distributions, with the largest s allowed."""
    spread = min(math.tanh(epsilon / 2), eta) / 2
    best = float(f.excess(np.array(MIRRORED[0]), np.array([0.5 + spread, 0.5 - spread])).sum())
    design = optimal_channel(PrivateSampling(f, MIRRORED), [LocalDP(epsilon), TotalVariation(eta)])
    assert design.certified
    assert design.verify()
    assert -design.value == pytest.approx(best, rel=1e-6)
    assert -design.upper_bound <= best * (1 + 1e-12)
    assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("epsilon", [6e-8, 2.0])
def test_a_mass_of_1e_60_is_the_limit_of_none(epsilon):
    """For Hellinger distances, a mass of 1e-60 changes the smallest risk by nothing that floats can tell."""
    tiny, none = ([[0.05, 0.06, 0.89], [0.4, 0.6 - mass, mass]] for mass in (1e-60, 0.0))
    caps = [LocalDP(epsilon), TotalVariation(1e-8)]
    first, second = (optimal_channel(PrivateSampling(SQUARED_HELLINGER, held), caps) for held in (tiny, none))
    assert first.certified
    assert second.certified
    assert first.value == pytest.approx(second.value, rel=1e-6)


def test_tangents_too_steep_for_a_solver_are_approached():
    """Reverse KL of a mass of 1e-40 is -log of it; the optimum is between the bound and the value of the design."""
    held = [[0.6, 0.4, 1e-40], [0.3, 0.5, 0.2]]
    design = optimal_channel(PrivateSampling(REVERSE_KL, held), [LocalDP(3.0), TotalVariation(1e-11)])
    assert design.certified
    # Equal rows to 1e-11: a search over all of them, by the geometric mixture of the two, which is best.
    logs = np.log(np.array(held))
    weights = np.linspace(0, 1, 200_001)[:, None]
    rows = np.exp(weights * logs[0] + (1 - weights) * logs[1])
    rows /= rows.sum(axis=1, keepdims=True)
    risks = [(rows * (np.log(rows) - one)).sum(axis=1) for one in logs]
    assert -design.value == pytest.approx(float(np.maximum(*risks).min()), rel=1e-4)
    assert np.abs(_planes(PrivateSampling(REVERSE_KL, held), np.array([1e-40]))).max() > MAX_TANGENT_COEFFICIENT


def test_tangents_at_a_matrix_touch_the_risks_there():
    """At its own ratios, the planes below the risks have their values."""
    utility = PrivateSampling(KL, [[0.7, 0.3, 0.0], [0.2, 0.3, 0.5]])
    matrix = np.array([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
    _, ratios, mixture, prior = tangents_at(utility, matrix)
    slope, level = _planes(utility, ratios)
    touched = ((mixture @ slope) * utility.distributions + (mixture @ level) * matrix).sum(axis=1)
    np.testing.assert_allclose(touched, utility.risks(matrix), rtol=1e-12)
    assert prior.sum() > 0


def test_distributions_that_are_private_themselves_are_drawn_from():
    """Where the distributions meet the constraints, the risk is zero but for rounding, and the bound says no less."""
    held = [[1e-75, 0.48, 0.52], [0.2, 0.25, 0.55]]
    design = optimal_channel(PrivateSampling(JENSEN_SHANNON, held), [LocalDP(500.0), TotalVariation(0.9)])
    assert -1e-25 <= design.value <= 0
    assert -1e-30 <= design.upper_bound <= 1e-14
    assert "themselves" in design.method


@pytest.mark.full(but=2)
@pytest.mark.parametrize(("epsilon", "eta"), [(1.0, 1.0), (1e-9, 1.0), (300.0, 1e-7)])
def test_a_failing_solver_leaves_a_feasible_design(monkeypatch, epsilon, eta):
    """Without the program's answer the distributions are mixed with their mean: private, noted and honestly bounded."""
    utility, caps = PrivateSampling(KL, MIRRORED), [LocalDP(epsilon), TotalVariation(eta)]
    best = optimal_channel(utility, caps)

    def failing(*_):
        raise SolverError("private sampling: no")

    monkeypatch.setattr("ldpopt.design.decisions.method.sampling_program", failing)
    design = optimal_channel(utility, caps)
    assert "no solver" in design.note
    assert all(g.value <= c.bound for g, c in zip(design.guarantees, design.constraints, strict=True))
    assert -math.inf < design.value <= best.upper_bound
    assert best.value <= design.upper_bound + 1e-12
