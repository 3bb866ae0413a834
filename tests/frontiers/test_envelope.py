"""The corners of the envelope, beside designs at any cap."""

import numpy as np
import pytest

from ldpopt.design import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL, NAMED
from ldpopt.errors import InvalidInput
from ldpopt.frontiers import envelope


def test_the_optimum_is_straight_between_the_corners():
    """At every cap the designed optimum is the envelope's, and between two corners it is on their line [SPR]."""
    rng = np.random.default_rng(5)
    for f in NAMED.values():
        k = int(rng.integers(2, 16))
        utility = Divergence(f, rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k)))
        epsilon = float(np.exp(rng.uniform(-2, 2)))
        found = envelope(utility, epsilon)
        etas = [one.eta for one in found.corners]
        assert etas == sorted(etas)
        for eta in [*rng.uniform(0, np.tanh(epsilon / 2), 4), *etas[1:]]:
            designed = optimal_channel(utility, [LocalDP(epsilon), TotalVariation(eta)], certify=False)
            assert np.isclose(found.value_at(eta), designed.value, rtol=1e-9, atol=1e-13)


def test_the_envelope_is_concave_and_does_not_fall():
    """Slopes between corners are positive and fall [SPR]."""
    rng = np.random.default_rng(6)
    utility = Divergence(KL, rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(60)))
    found = envelope(utility, 3.0)
    eta, value = (np.array([getattr(one, name) for one in found.corners]) for name in ("eta", "value"))
    slopes = np.diff(value) / np.diff(eta)
    assert len(slopes) > 2
    assert (slopes > 0).all()
    assert (np.diff(slopes) < 0).all()


def test_nearly_equal_populations_have_two_corners():
    """Of populations a billionth apart the envelope is that of the binary mechanism, and no corner is made up."""
    found = envelope(Divergence(KL, [0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]), 1.0)
    assert [one.blocks for one in found.corners] == [1, 2]
    assert found.value_at(1.0) > 0


def test_problems_without_an_envelope_are_refused():
    """Too many inputs, and epsilons that are none, are bad input."""
    utility = Divergence(KL, [0.5, 0.5], [0.2, 0.8])
    with pytest.raises(InvalidInput, match="epsilon"):
        envelope(utility, float("nan"))
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidInput, match="2000 different"):
        envelope(Divergence(KL, rng.dirichlet(np.ones(2500)), rng.dirichlet(np.ones(2500))), 1.0)
