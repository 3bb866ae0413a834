"""Tests of `ldpopt.design.kernel.certificate`: what every certificate checks, and failures that show."""

import math
from dataclasses import replace

import numpy as np
import pytest
from design_problems import constraints, utility
from scipy import stats

from ldpopt import Channel, Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import Contraction, Partition, WeightedSum
from ldpopt.design.kernel.certificate import Bound, unproved_assumptions
from ldpopt.design.kernel.numbers import Unproved
from ldpopt.divergences import KL, FDivergence
from ldpopt.numbers.enclosures import FLOAT
from ldpopt.words import verdict
from tests.design.kernel.forging import NO_RECORD


def test_verify_catches_a_channel_that_is_not_private():
    """A certificate whose channel breaks epsilon or eta fails, and says by how much."""
    design = optimal_channel(utility(5, 1), constraints(1.0, 0.2))
    leaky = replace(design.certificate, channel=Channel(np.eye(5)))
    result = leaky.verify()
    assert not result
    assert any("local dp is inf" in failure for failure in result.failures)
    assert any("total variation is 1" in failure for failure in result.failures)
    assert any("wrong side of the bound" in failure for failure in result.failures)
    assert "refuted: " in repr(result)


def test_no_constraint_bounds_nothing():
    """A certificate without constraints does not verify, whatever its numbers are."""
    design = optimal_channel(utility(5, 1), LocalDP(1.0))
    assert not replace(design.certificate, constraints=()).verify()
    assert not Contraction(design.utility, (), design.channel).verify()


def test_an_infinite_bound_is_no_proof():
    """Of hypotheses with an infinite divergence the contraction proves nothing, and does not verify [Dobrushin]."""
    problem = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
    design = optimal_channel(problem, LocalDP(1.0))
    assert design.certified
    assert math.isfinite(design.upper_bound)
    assert design.verify()
    empty = Contraction(problem, design.constraints, design.channel)
    assert empty.bound == math.inf
    assert not empty.verify()
    forged = replace(design, certificate=empty, upper_bound=math.inf)
    assert not forged.verify()


def test_verification_shares_nothing_with_the_search(monkeypatch):
    """A search that returns a wrong but plausible partition is caught: its gap shows in the bound."""
    honest = optimal_channel(utility(12, 2), LocalDP(2.0))
    monkeypatch.setattr(
        "ldpopt.design.two_hypotheses.program.Blocks.best", lambda self, price: self.cut([0, 6, len(self.pair)])
    )
    wrong = optimal_channel(utility(12, 2), LocalDP(2.0), method=Partition())
    assert wrong.value < honest.value
    assert wrong.upper_bound >= honest.value
    assert not wrong.certified


def test_verification_repr_names_the_figures():
    """A verification shows value, bound and the channel's own epsilon and total variation."""
    verification = optimal_channel(Divergence(KL, [0.5, 0.5], [0.2, 0.8]), LocalDP(1.0)).certificate.verify()
    assert "proved: value" in repr(verification)
    assert verification.epsilon <= 1.0
    assert verification.upper_bound == verification.lower_bound == verification.bound


@pytest.mark.parametrize("exact", [False, True])
def test_a_design_is_checked_not_its_certificate(exact):
    """Every claim of a design is recomputed: none of these edits passes, though the certificate itself is sound."""
    problem = utility(4, 3)
    design = optimal_channel(problem, constraints(1.0, 0.2))
    assert design.verify(exact)
    forgeries = {
        "channel": replace(design, channel=Channel(np.eye(4))),
        "utility": replace(design, utility=utility(4, 4)),
        "constraints": replace(design, constraints=(LocalDP(0.5), TotalVariation(0.2))),
        "no constraints": replace(design, constraints=()),
        "value": replace(design, value=design.value * (1 + 1e-9), lower_bound=design.value * (1 + 1e-9)),
        "one bound": replace(design, lower_bound=design.lower_bound * 0.5),
        "infinite bound": replace(design, upper_bound=math.inf),
        "nan bound": replace(design, upper_bound=math.nan),
        "smaller bound": replace(design, upper_bound=design.value * (1 - 1e-9)),
        "no guarantees": replace(design, guarantees=()),
        "better guarantees": replace(
            design, guarantees=tuple(replace(g, value=g.value / 2) for g in design.guarantees)
        ),
        "no certificate": replace(design, certificate=None),
        "tolerance": replace(design, tolerance=1.0, upper_bound=2 * design.upper_bound),
    }
    for name, forged in forgeries.items():
        assert not forged.verify(exact), name


def test_certified_cannot_be_flipped():
    """A design whose gap is above its tolerance is not certified by saying so."""
    problem = utility(12, 2)
    loose = replace(optimal_channel(problem, LocalDP(1.0)), upper_bound=problem.value_without_privacy, certified=False)
    assert loose.verify()
    assert not replace(loose, certified=True).verify()


def test_a_bare_design_proves_nothing():
    """A design made without a certificate is neither proved nor refuted, and says why."""
    bare = optimal_channel(utility(4, 3), LocalDP(1.0), certify=False)
    result = bare.verify()
    assert (result.outcome, result.proved) == ("not checked", False)
    assert "no certificate" in result.unchecked[-1]


def test_a_bare_design_is_checked_without_a_certificate():
    """Without a certificate all that is not checked is the optimum; each false claim besides is a failure."""
    bare = optimal_channel(utility(4, 3), LocalDP(1.0), certify=False)
    result = bare.verify()
    assert (result.failures, len(result.unchecked)) == ((), 1)
    assert "there is no certificate, so that nothing about the optimum is proved" in result.unchecked[0]
    assert result.value >= bare.value
    assert result.epsilon <= 1.0
    for false in (
        replace(bare, upper_bound=bare.value), replace(bare, certified=True),
        replace(bare, channel=Channel(np.eye(4))),
        replace(bare, value=2 * bare.value, lower_bound=2 * bare.value), replace(bare, guarantees=()),
        replace(bare, upper_bound=-math.inf), replace(bare, upper_bound=math.nan), replace(bare, edges=np.zeros(2)),
    ):  # fmt: skip
        assert not false.verify()


@pytest.mark.parametrize(
    "name",
    [
        "value", "lower_bound", "upper_bound", "tolerance", "certified", "guarantees", "certificate", "utility",
        "channel", "constraints",
    ],
)  # fmt: skip
def test_a_design_with_something_else_in_a_field_fails_in_words(name):
    """Text, nothing, lists and objects in the place of any claim or part: a failed verification, and no exception."""
    design = optimal_channel(utility(4, 3), LocalDP(1.0))
    for other in (*NO_RECORD, "1", 1, True, 1j, np.zeros(0), np.array([1.0, 2.0]), np.array(design.value), design):
        if name == "certified" and other is True:
            continue
        result = replace(design, **{name: other}).verify()
        assert not result
        assert all(isinstance(failure, str) for failure in result.failures)


def test_a_guarantee_of_something_else_fails_in_words():
    """A notion that is no text, a parameter that is no number, and what is no guarantee at all."""
    design = optimal_channel(utility(4, 3), LocalDP(1.0))
    own = design.guarantees[0]
    named = [replace(own, parameters={"order": order}) for order in ("2", np.zeros(2), None, 2.0)]
    for other in (None, own.value, replace(own, notion=None), *named):
        assert not replace(design, guarantees=(other,)).verify()


def test_a_certificate_of_no_problem_fails_in_words():
    """A utility or constraints that are something else: `verify` says so, and there is no bound."""
    certificate = optimal_channel(utility(4, 3), LocalDP(1.0)).certificate
    for name in ("utility", "constraints"):
        for other in NO_RECORD:
            if name == "constraints" and isinstance(other, tuple) and not other:
                continue
            forged = replace(certificate, **{name: other})
            assert not forged.verify()
            with pytest.raises(Unproved):
                assert forged.bound


def test_a_bound_is_of_the_problem_and_the_numbers_alone():
    """Another channel, or none, leaves the bound as it is; only `verify` claims something of a channel."""
    certificate = optimal_channel(utility(4, 3), LocalDP(1.0)).certificate
    for other in (None, Channel(np.ones((2, 1))), *NO_RECORD):
        moved = replace(certificate, channel=other)
        assert moved.bound == certificate.bound
        assert not moved.verify()
        assert moved.verify().failures


def test_numbers_that_prove_nothing_say_why():
    """A bound that is infinite comes with its reason, and one that is proved without any."""
    certificate = optimal_channel(utility(4, 3), LocalDP(1.0)).certificate
    assert certificate.bound_in(FLOAT) == Bound(certificate.bound)
    problem = Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.8, 0.0])
    nothing = Contraction(problem, (LocalDP(1.0),), None).bound_in(FLOAT)
    assert nothing.value == math.inf
    assert nothing.reason


class _Odd(FDivergence):
    """An f whose excess is computed by a user's own code."""


def test_a_verdict_names_the_trusted_parts():
    """Of an own function, an own class and laws of scipy, the check and its verdict name what is taken on trust."""
    own = FDivergence(lambda t: (t - 1) ** 4, name="fourth power")
    odd = _Odd(lambda t: (t - 1) ** 2, name="odd")
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    for question, named in (
        (Divergence(own, p0, p1), "the floats of fourth power, and that it is convex"),
        (Divergence(odd, p0, p1), "the floats of odd, and that it is convex"),
        (WeightedSum([1.0, 2.0], [Divergence(KL, p0, p1), Divergence(own, p0, p1)]), "the floats of fourth power"),
        (Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), "densities that scipy.stats computes"),
    ):
        design = optimal_channel(question, LocalDP(1.0))
        found = design.verify()
        assert found
        assert named in " ".join(found.trusted)
        assert named in repr(found)
        assert verdict(design).endswith(f"taken on trust: {', '.join(found.trusted)}")


def test_nothing_of_the_package_is_taken_on_trust():
    """A problem of named divergences and finite laws has no such words, and classes of a user's own have."""
    design = optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), LocalDP(1.0))
    assert design.verify().trusted == ()
    assert "trust" not in verdict(design) + repr(design.verify())

    class Mine(LocalDP):
        """A constraint of a user's own."""

    assert unproved_assumptions(design.utility, (Mine(1.0),)) == ("what the class Mine computes",)
