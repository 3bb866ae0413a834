"""A bound without some of the constraints."""

from dataclasses import replace

import numpy as np

from ldpopt.design import (
    Contraction,
    Divergence,
    LocalDP,
    MutualInformation,
    Outputs,
    PartsBound,
    Relaxed,
    TotalVariation,
    WeightedSum,
    optimal_channel,
)
from ldpopt.divergences import CHI_SQUARED, KL
from tests.design.certificates.forging import NO_RECORD, fails_in_words


def test_a_relaxation_has_some_of_the_constraints_and_no_other():
    """Its numbers are applied to the design's utility, under constraints that are among the design's."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    design = optimal_channel(u, [LocalDP(1.0), Outputs(2)])
    proof = design.certificate
    assert isinstance(proof, Relaxed)
    assert design.verify()
    tighter = optimal_channel(u, LocalDP(0.5)).certificate
    assert np.isinf(replace(proof, relaxation=tighter).bound)
    assert np.isinf(replace(proof, relaxation=replace(proof.relaxation, constraints=())).bound)
    capped = optimal_channel(u, [LocalDP(1.0), TotalVariation(0.1)]).certificate
    assert np.isinf(replace(proof, relaxation=capped).bound)
    wide = optimal_channel(Divergence(CHI_SQUARED, u.p0, u.p1), LocalDP(1.0))
    other = replace(proof, relaxation=wide.certificate)
    assert other.bound >= design.value
    assert replace(proof, utility=wide.utility).bound >= wide.value
    assert np.isinf(replace(proof, constraints=(Outputs(2),)).bound)
    nested = replace(proof, relaxation=proof)
    assert nested.bound >= design.value


def test_what_is_no_relaxation_proves_nothing():
    """The relaxation, and the constraints that it has, are records of their kind: others fail in words."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    proof = optimal_channel(u, [LocalDP(1.0), Outputs(2)]).certificate
    for other in NO_RECORD:
        assert fails_in_words(replace(proof, relaxation=other))
        assert fails_in_words(replace(proof, relaxation=replace(proof.relaxation, constraints=other)))


def test_what_are_no_certificates_of_the_parts_prove_nothing():
    """Each part of a sum has a certificate: fewer, more, and anything else fail in words."""
    u = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    total, caps = WeightedSum([1.0, 2.0], [u, MutualInformation([0.5, 0.3, 0.2])]), (LocalDP(1.0),)
    design = optimal_channel(total, caps[0])
    one = Contraction(u, caps, design.channel)
    assert design.value <= PartsBound(total, caps, design.channel, (one, one)).bound < np.inf
    for other in (*NO_RECORD, one, (one,), (one, one, one), [one, one]):
        assert fails_in_words(PartsBound(total, caps, design.channel, other))
        assert other is one or fails_in_words(PartsBound(total, caps, design.channel, (one, other)))
