"""The guarantees that the integers of an exact channel prove, in the form in which measures give them for floats."""

from __future__ import annotations

from ldpopt.exact import ExactChannel, ExactProof
from ldpopt.privacy.guarantee import Guarantee, Witness
from ldpopt.privacy.local_dp import REFERENCE as LOCAL_DP
from ldpopt.privacy.total_variation import REFERENCE as TOTAL_VARIATION
from ldpopt.rounding import down


def proved(channel: ExactChannel) -> tuple[Guarantee, Guarantee]:
    """The epsilon (nats) and eta of an exact channel, proved in rational arithmetic [GI, Def 6; GI, Def 7].

    >>> epsilon, eta = proved(ExactChannel([[3, 1], [1, 3]], bits=2))
    >>> round(float(epsilon), 9), float(eta), epsilon.witness.inputs
    (1.098612289, 0.5, (0, 1))
    """
    proof = channel.proof()
    return _epsilon(channel, proof), _eta(channel, proof)


def _epsilon(channel: ExactChannel, proof: ExactProof) -> Guarantee:
    x, other, y = proof.ratio_at
    witness = Witness((channel.inputs[x], channel.inputs[other]), (channel.outputs[y],)) if x != other else None
    return Guarantee("local_dp", proof.epsilon, down(proof.epsilon), witness, True, LOCAL_DP)


def _eta(channel: ExactChannel, proof: ExactProof) -> Guarantee:
    x, other = proof.distance_at
    if x == other:
        return Guarantee("total_variation", 0.0, 0.0, None, True, TOTAL_VARIATION)
    event = channel.weights[x] > channel.weights[other]
    outputs = tuple(label for label, inside in zip(channel.outputs, event.tolist(), strict=True) if inside)
    witness = Witness((channel.inputs[x], channel.inputs[other]), outputs)
    return Guarantee("total_variation", proof.eta, down(proof.eta), witness, True, TOTAL_VARIATION)
