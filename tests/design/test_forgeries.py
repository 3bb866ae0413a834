"""Forged certificates and altered designs: none is verified that proves what does not hold."""

import math
from dataclasses import fields, replace
from itertools import islice

import numpy as np
import pytest
from attacked import DESIGNS, accepted, altered, made

from ldpopt import (
    ApproximateLDP,
    Channel,
    Divergence,
    LdpoptError,
    LocalDP,
    optimal_channel,
)
from ldpopt.design import LocalSearch
from ldpopt.divergences import (
    KL,
)


def tampered(value):
    """Other values of one field, structured and random."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        yield from (0.0, value / 2, 0.9 * value, -value, math.nan, math.inf, -math.inf)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        rng = np.random.default_rng(0)
        yield from (0 * value, 0.5 * value, 0.9 * value, -value, value - 1e-3)
        yield from (np.full_like(value, math.nan), np.full_like(value, math.inf))
        yield value * rng.uniform(0.5, 1.0, value.shape)
        spoiled = value.copy()
        spoiled.flat[0] = math.nan
        yield spoiled
        if value.ndim:
            yield np.concatenate([value, 0 * value[:1]])
            yield np.concatenate([value, -value[:1]])
            yield value[:-1]
            yield np.concatenate([value[1:], value[:1]])
    elif isinstance(value, tuple):
        yield ()
        yield value[:-1]
        yield value[::-1]
        for at, one in enumerate(value[:3]):
            yield from ((*value[:at], other, *value[at + 1 :]) for other in tampered(one))
    elif hasattr(value, "__dataclass_fields__"):
        for field in fields(value):
            if field.init and field.name not in ("f", "inputs", "outputs"):
                for other in tampered(getattr(value, field.name)):
                    try:
                        yield replace(value, **{field.name: other})
                    except (LdpoptError, ValueError, TypeError):
                        continue


def bound_of(certificate):
    """The number that a certificate proves, whatever its name."""
    names = ("bound", "upper_bound", "lower_bound")
    return next(float(getattr(certificate, name)) for name in names if hasattr(certificate, name))


@pytest.mark.parametrize("name", DESIGNS)
def test_no_forged_certificate_proves_a_bound_below_the_channels_value(name):
    """Whatever a field is replaced by, a bound that is accepted is one that holds.

    The channel of the design is feasible for the design's constraints, so no bound may be on the wrong side of it.
    """
    design = made(name)
    certificate, error = design.certificate, name == "estimation"
    assert accepted(certificate)
    tried = 0
    for field in fields(certificate):
        if not field.init or field.name in ("utility", "channel"):
            continue
        for other in islice(tampered(getattr(certificate, field.name)), 0, None, 3):
            tried += 1
            try:
                forged = replace(certificate, **{field.name: other})
            except LdpoptError:
                continue
            for one in (forged, altered(design, certificate=forged)):
                if accepted(one):
                    bound = bound_of(one)  # a design poses the numbers for its own problem
                    slack = 1e-12 * abs(design.value)
                    holds = bound <= design.value + slack if error else bound >= design.value - slack
                    assert holds, f"{field.name} = {other!r} proves {bound!r}"
                    assert math.isfinite(bound), f"{field.name} = {other!r} proves {bound!r}"
    assert tried


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_whose_certificate_is_of_other_constraints_is_not_verified(name):
    """Neither of none, nor of a larger epsilon than the design's, nor of a smaller one."""
    design = made(name)
    first, *rest = design.constraints
    for other in ((), tuple(rest), (replace(first, epsilon=first.epsilon / 2), *rest), (LocalDP(9.0),)):
        assert not accepted(altered(design, constraints=other)), other


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_with_another_channel_is_not_verified(name):
    """Full disclosure is not private, and a constant channel does not keep the value."""
    design = made(name)
    assert accepted(design)
    k, m = design.channel.shape
    disclosed = np.eye(k, m) + 0.0
    disclosed[disclosed.sum(axis=1) == 0, 0] = 1.0
    assert not accepted(altered(design, channel=Channel(disclosed, design.channel.inputs)))
    constant = np.full((k, m), 1 / m)
    assert not accepted(altered(design, channel=Channel(constant, design.channel.inputs, design.channel.outputs)))


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_with_another_utility_is_not_verified(name):
    """A proof for one utility is none for another."""
    other = made("columns" if name != "columns" else "labels").utility
    assert not accepted(altered(made(name), utility=other))


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_without_its_guarantees_is_not_verified(name):
    """What is stated of the channel is recomputed."""
    design = made(name)
    assert not accepted(altered(design, guarantees=()))
    lying = replace(design.guarantees[0], value=design.guarantees[0].value / 2, lower=0.0)
    assert not accepted(altered(design, guarantees=(lying, *design.guarantees[1:])))


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("changed", ["inf", "nan", "tighter", "looser"])
def test_a_design_with_another_bound_is_not_verified(name, changed):
    """An infinite bound is not certified, and a better one not proved."""
    design = made(name)
    where = "lower_bound" if name == "estimation" else "upper_bound"
    sign = -1 if name == "estimation" else 1
    size = abs(design.value) or 1.0
    bound = {"inf": sign * math.inf, "nan": math.nan, "tighter": design.value - sign * size / 10,
             "looser": design.value + sign * size}[changed]  # fmt: skip
    other = altered(design, **{where: bound})
    if changed == "looser":  # true, but too far from the value to certify it
        assert not accepted(other) or not other.certified
    else:
        assert not accepted(other)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_with_another_value_or_a_flipped_verdict_is_not_verified(name):
    """A value that the channel does not have, a tolerance that is not one, certified turned to not."""
    design = made(name)
    assert not accepted(altered(design, value=design.value + abs(design.value) / 2))
    assert not accepted(altered(design, value=math.nan))
    assert not accepted(altered(design, certified=not design.certified))
    strict = altered(design, tolerance=-1.0)
    assert not accepted(strict) or not strict.certified


def test_a_design_far_from_its_bound_is_not_verified_as_certified():
    """The verdict follows from the bound, the value and the tolerance."""
    p0, p1 = np.random.default_rng(5).dirichlet(np.ones(4), 2)
    design = optimal_channel(Divergence(KL, p0, p1), [ApproximateLDP(1.0, 0.05)], method=LocalSearch(1, outputs=1))
    assert not design.certified
    assert not accepted(altered(design, certified=True))
