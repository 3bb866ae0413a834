"""Forged certificates prove nothing false: a small part of experiments/trust/forge.py. The forger sees faults."""

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from forging import forgeries
from forging.bases import Base, bases, designed, designs, simple
from forging.forgeries import Forger
from forging.judge import Judge
from forging.tamper import put, sites

from ldpopt import LocalDP, TotalVariation
from ldpopt import design as ld
from ldpopt.design.codec.kinds import encodable_subtypes
from ldpopt.design.kernel.certificate import Bound, Certificate

SOME = {
    "divergence and TV", "hockey stick", "worst", "worst, approximate, TV", "outputs", "denominator", "approximate",
    "approximate, chi", "renyi and LDP", "support, two answers", "support, approximate",
    "information", "information, groups", "loss", "loss, support", "sampling",
    "set, chi", "sum of divergences", "information along a path", "information, renyi",
    "estimation DOptimal()", "estimation AOptimal()",
}  # fmt: skip


pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def forger():
    """A forger of a few nice problems, whose truth is known."""
    judge = Judge(steps=0)
    return Forger(bases(designs(0, SOME), judge, most=2, quick=math.inf), judge)


def test_every_class_of_certificates_is_forged(forger):
    """All that a design file may name, but for the one that proves nothing."""
    known = {one.__name__ for one in encodable_subtypes(Certificate)}
    assert {kind.split(",")[0] for kind in forger.bases} == known - {"Unbounded"}


@pytest.mark.parametrize("kind", sorted({one.__name__ for one in encodable_subtypes(Certificate)} - {"Unbounded"}))
def test_no_forgery_proves_a_false_bound(forger, kind, monkeypatch):
    """28 forgeries of each class: numbers, parts, problems, designs and files; some hold and are true, none raises."""
    monkeypatch.setattr(forgeries, "RANDOM", 16)
    monkeypatch.setattr(forgeries, "CLIMB", 8)
    tally = forger.block(kind, 3, 0)
    assert not tally.findings
    assert tally.counts["proved"] > 0
    assert tally.counts["refused"] > 0


@pytest.mark.full
def test_a_certificate_of_another_kind_of_problem_fails_in_words(forger):
    """Each class put to the problem of each other, each third within a `Relaxed`: refused, and nothing is raised."""
    one_of_each = [own[0] for own in forger.bases.values()]
    problems = {base.name: base.certificate for base in one_of_each}
    for at, (base, posed) in enumerate(product(one_of_each, problems.values())):
        put = base.certificate.rebind(posed.utility, posed.constraints, posed.channel, posed.edges)
        own = ld.Relaxed(posed.utility, posed.constraints, posed.channel, base.certificate)
        for certificate in (put, own) if at % 3 == 0 else (put,):
            found = certificate.verify()
            assert found.outcome != "refuted" or all(found.failures)
            assert found.outcome != "not checked" or all(found.unchecked)


class Careless(ld.EnvelopeDual):
    """A certificate whose bound is what a field says, and which falls over where that is no number."""

    def bound_in(self, arithmetic):
        return Bound(float(self.level))


@pytest.fixture(scope="module")
def careless():
    """A forger of that certificate."""
    design = designed(simple()["divergence and TV"])
    own = design.certificate
    fields = (own.utility, own.constraints, own.channel, design.upper_bound, own.potentials, None)
    judge = Judge(steps=0)
    return Forger({"Careless": [Base("careless", design, Careless(*fields))]}, judge)


def test_a_forger_finds_a_proof_that_believes_its_numbers(careless):
    """Both false bounds and raw exceptions of the careless certificate above are seen."""
    said = {one["said"] for at in range(3) for one in careless.block("Careless", 3, at).findings}
    assert said == {"wrong", "raised"}


@pytest.mark.parametrize(
    ("claim", "forged"),
    [
        ("upper_bound", lambda d: 0.99 * d.upper_bound), ("value", lambda d: 1.01 * d.value),
        ("constraints", lambda d: (LocalDP(1.4), TotalVariation(0.2))), ("constraints", lambda d: d.constraints[:1]),
        ("certified", lambda d: True), ("guarantees", lambda d: d.guarantees[:1]),
    ],
)  # fmt: skip
def test_a_design_that_claims_too_much_is_judged_so(claim, forged):
    """The judge sees each false claim by the truth alone, even if a check of the package were blind to all of them."""
    design = designed(simple()["divergence and TV"])
    false = dataclasses.replace(design, **{claim: forged(design)})
    if claim == "certified":
        false = dataclasses.replace(false, upper_bound=2 * design.upper_bound)
    elif claim == "constraints" and len(false.constraints) == 1:
        false = dataclasses.replace(false, guarantees=false.guarantees[:1])
    assert Judge(steps=0).claims(false)
    assert not Judge(steps=0).claims(design)


@pytest.mark.parametrize(
    "claim",
    [
        {"upper_bound": np.float32}, {"value": np.float32, "lower_bound": np.float32}, {"tolerance": complex},
        {"value": str}, {"upper_bound": lambda x: [x]}, {"certified": lambda x: None}, {"lower_bound": np.array},
    ],
)  # fmt: skip
def test_claims_of_another_type_do_not_hold(claim):
    """float32(x) is not x, though `x <= numpy.float32(x)` may say so, and what cannot be compared is no traceback."""
    design = designed(simple()["sampling"])
    assert design.verify()
    forged = dataclasses.replace(design, **{name: of(getattr(design, name)) for name, of in claim.items()})
    assert not forged.verify()
    assert not dataclasses.replace(forged, certificate=None).verify()


def test_every_part_can_be_replaced():
    """A part put back where it was found leaves every number of the certificate as it is."""
    certificate = designed(simple()["loss, support"]).certificate
    found = dict(sites(certificate))
    assert {("leaf",), ("leaf", "rows"), ("leaf", "terms"), ("leaf", "terms", 0, "values"), ("constraints",)} <= set(
        found
    )
    for path, value in found.items():
        assert put(certificate, path, value).bound == certificate.bound
    rows = found["leaf", "rows"]
    assert np.array_equal(put(certificate, ("leaf", "rows"), rows + 1).leaf.rows, rows + 1)
