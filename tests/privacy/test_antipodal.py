import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpopt.divergences import CHI_SQUARED, KL, TOTAL_VARIATION
from ldpopt.errors import InvalidInput
from ldpopt.privacy import antipodal_pair


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.floats(0.01, 4.0))
def test_the_split_is_antipodal_and_kl_never_falls(seed, size, spread):
    """DR Lemma 3.9: all losses are -eps, 0 or eps, the split merges back, and no divergence falls."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(size) * 3)
    p = q * np.exp(rng.uniform(-spread, spread, size))
    p /= p.sum()
    epsilon = float(np.abs(np.log(p / q)).max())
    m, m_prime = antipodal_pair(p, q)
    assert (m >= 0).all()
    assert m.sum() == pytest.approx(1.0)
    assert m[:size] + m[size:] == pytest.approx(p)
    assert m_prime[:size] + m_prime[size:] == pytest.approx(q)
    used = (m > 1e-300) & (m_prime > 1e-300)
    losses = np.log(m[used] / m_prime[used])
    assert np.minimum(np.abs(losses), np.abs(np.abs(losses) - epsilon)).max() < 1e-9
    assert np.abs(losses).max() == pytest.approx(epsilon)
    for divergence in (KL, CHI_SQUARED, TOTAL_VARIATION):
        assert divergence(m, m_prime) >= divergence(p, q) * (1 - 1e-9) - 1e-14


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_both_directions_agree_and_bound_the_mean(seed):
    """DR Lemmas 3.10 and 3.8: KL is the same both ways on the split, and at most eps (e^eps - 1)/2."""
    p, q = np.random.default_rng(seed).dirichlet(np.ones(4) * 2, 2)
    m, m_prime = antipodal_pair(p, q)
    epsilon = float(np.abs(np.log(p / q)).max())
    assert KL(m, m_prime) == pytest.approx(KL(m_prime, m), rel=1e-7)
    assert KL(m, m_prime) <= epsilon * math.tanh(epsilon / 2) * (1 + 1e-9) <= epsilon * math.expm1(epsilon) / 2


def test_equal_distributions():
    """Nothing is split when nothing differs."""
    m, m_prime = antipodal_pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    assert np.array_equal(m, m_prime)
    assert m.tolist() == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]


def test_bad_input():
    """An infinite ratio has no antipodal split; lengths must agree."""
    with pytest.raises(InvalidInput, match="support"):
        antipodal_pair([0.5, 0.5], [1.0, 0.0])
    with pytest.raises(InvalidInput):
        antipodal_pair([0.5, 0.5], [1.0])


def test_a_refused_pair_names_the_outcome_that_only_one_gives():
    """The first outcome that is impossible under one law alone; one impossible under both is no matter."""
    for p, q in (([0.0, 0.5, 0.5, 0.0], [0.0, 0.5, 0.3, 0.2]), ([0.0, 0.5, 0.3, 0.2], [0.0, 0.5, 0.5, 0.0])):
        with pytest.raises(InvalidInput, match="outcome 3"):
            antipodal_pair(p, q)
    split, other = antipodal_pair([0.0, 0.4, 0.6], [0.0, 0.6, 0.4])
    assert split[[0, 3]].tolist() == other[[0, 3]].tolist() == [0.0, 0.0]
