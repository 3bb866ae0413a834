"""A bound without some of the constraints."""

from dataclasses import replace

import numpy as np

from ldpopt.design import Divergence, LocalDP, Outputs, Relaxed, TotalVariation, optimal_channel
from ldpopt.divergences import CHI_SQUARED, KL


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
