"""Losses of given decisions and private sampling: sound for any numbers, in float64 and in balls."""

from dataclasses import replace

import numpy as np
import pytest

from ldpopt.design import (
    AlphabetLossDual,
    ExpectedLoss,
    Invariant,
    LocalDP,
    PrivateSampling,
    SamplingDual,
    Support,
    TotalVariation,
    optimal_channel,
)
from ldpopt.design.decisions.proof import tangent_planes
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.divergences import CHI_SQUARED, KL, SQUARED_HELLINGER
from tests.design.kernel.forging import NO_RECORD, fails_in_words, forged

MASK = Support(np.array([[True, True, False], [True, True, True], [False, True, True]]))


@pytest.mark.parametrize(
    "caps", [[LocalDP(1.0), Invariant([0.5, 0.3, 0.2])], [TotalVariation(0.4), MASK]], ids=["invariant", "mask"]
)
@pytest.mark.parametrize("prior", [[0.5, 0.3, 0.2], None], ids=["one prior", "every prior"])
def test_forged_losses_prove_no_false_bound(caps, prior):
    """No accepted bound on minus the loss is below that of a feasible channel."""
    rng = np.random.default_rng(1)
    loss = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    design = optimal_channel(ExpectedLoss(prior, loss), caps)
    assert isinstance(design.certificate, AlphabetLossDual)
    assert design.verify()
    assert design.verify(exact=True)
    bounds = [replace(design.certificate, leaf=leaf).bound for leaf in forged(design.certificate.leaf, rng)]
    assert min(bounds) >= design.value
    assert np.isfinite(bounds).sum() >= 20
    assert np.isinf(bounds).sum() >= 20


@pytest.mark.full(but=1)
@pytest.mark.parametrize("f", [KL, CHI_SQUARED, SQUARED_HELLINGER], ids=lambda f: f.name)
def test_forged_tangents_prove_no_false_bound(f):
    """No accepted bound on minus the risk is below that of a feasible channel, for the inner numbers neither."""
    rng = np.random.default_rng(2)
    held = np.array([[0.7, 0.2, 0.1], [0.1, 0.0, 0.9], [0.3, 0.3, 0.4]])
    design = optimal_channel(PrivateSampling(f, held), LocalDP(1.0))
    certificate = design.certificate
    assert isinstance(certificate, SamplingDual)
    assert design.certified
    assert design.verify()
    assert design.verify(exact=True)
    keep = ("utility", "constraints", "channel", "edges")
    outer = [one.bound for one in forged(certificate, rng, (*keep, "loss"))]
    inner = [replace(certificate, loss=one).bound for one in forged(certificate.loss, rng, (*keep, "posed"))]
    for bounds in (outer, inner):
        assert min(bounds) >= design.value
        assert np.isfinite(bounds).sum() >= 5
        assert np.isinf(bounds).sum() >= 5


def test_a_certificate_of_another_utility_proves_nothing():
    """Numbers for a loss are none for a risk, nor the other way round."""
    loss = optimal_channel(ExpectedLoss([0.5, 0.3, 0.2], 1 - np.eye(3)), [TotalVariation(0.4), MASK])
    risk = optimal_channel(PrivateSampling(KL, np.eye(3)), LocalDP(1.0))
    assert np.isinf(loss.certificate.rebind(risk.utility, loss.constraints, loss.channel).bound)
    assert np.isinf(risk.certificate.rebind(loss.utility, risk.constraints, loss.channel).bound)


def test_a_wrong_leaf_or_loss_certificate_proves_no_bound():
    """The leaf of an expected loss, and the loss of private sampling, are nested records: others fail in words."""
    loss = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    leaf = optimal_channel(ExpectedLoss([0.5, 0.3, 0.2], loss), [TotalVariation(0.4), MASK]).certificate
    sampling = optimal_channel(PrivateSampling(KL, [[0.7, 0.3], [0.2, 0.8]]), LocalDP(1.0)).certificate
    assert isinstance(leaf, AlphabetLossDual)
    assert isinstance(sampling, SamplingDual)
    for other in (*NO_RECORD, leaf, sampling):
        assert fails_in_words(replace(leaf, leaf=other))
        assert fails_in_words(replace(sampling, loss=other))
        assert fails_in_words(replace(sampling, prior=other))
        assert fails_in_words(replace(sampling, ratios=other))


@pytest.mark.parametrize("ratios", [(0.0,), (1.0,), (1.0, 0.5), (0.0, 0.0), (-1.0, 0.0), (1.0, 0.0, 0.0), ()])
def test_tangents_have_positive_ratios_and_end_at_zero(ratios):
    """Other ratios are none of tangents of a risk."""
    utility = PrivateSampling(KL, np.array([[0.7, 0.3], [0.2, 0.8]]))
    with pytest.raises(Unproved, match=r"ratios|shape|are none"):
        tangent_planes(utility, np.array(ratios), np.ones((2, 2, len(ratios))))
