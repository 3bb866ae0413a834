"""The programs that judge designs: they agree with each other, and they see what is wrong."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from truth import problems
from truth.feasible import violations
from truth.optimum import envelope, optimum
from truth.utilities import Kept, Prior, divergence_utility
from truth.verdict import Posed, faults, truth

from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.divergences import KL

P0, P1 = (0.5, 0.25, 0.25), (0.125, 0.375, 0.5)


def test_two_programs_of_the_truth_agree():
    """The program over all patterns and the envelope theorem give one optimum [KOV14, Thm 2], in 40 nasty problems."""
    for number in range(40):
        posed = problems.of_kind("divergence, LDP and TV", 11, number).posed
        epsilon, eta = (told[1] for told in posed.constraints)
        found = optimum(posed.utility, epsilon, eta)
        ((_, pair),) = posed.utility.criteria[0]
        with mpmath.workdps(50):
            value = envelope(pair, epsilon, eta)
            assert found.lower <= value * (1 + mpmath.mpf("1e-40"))
            assert found.upper >= value * (1 - mpmath.mpf("1e-40"))
        assert found.width <= 1e-7, number


def test_the_optimum_of_total_variation_is_the_known_one():
    """tanh(epsilon / 2) times the distance of the hypotheses, or eta times it [KOV14, Thm 5; GI, Thm 5]."""
    for epsilon, eta in ((1e-8, 1.0), (1.0, 1.0), (1.0, 1e-12), (700.0, 0.25)):
        found = optimum(divergence_utility(("total-variation",), P0, P1), epsilon, eta)
        with mpmath.workdps(50):
            known = min(mpmath.tanh(mpmath.mpf(epsilon) / 2), mpmath.mpf(eta)) * mpmath.mpf("0.375")
            assert abs(found.lower / known - 1) < 1e-12
            assert abs(found.upper / known - 1) < 1e-10


def test_the_mutual_information_of_two_equal_answers_is_that_of_randomized_response():
    """Under pure LDP, log 2 less the entropy of the flip [KOV14, section 4]."""
    found = optimum(Kept((((1.0, Prior((0.5, 0.5))),),)), 2.0)
    with mpmath.workdps(40):
        flip = 1 / (1 + mpmath.exp(2))
        known = mpmath.log(2) + flip * mpmath.log(flip) + (1 - flip) * mpmath.log(1 - flip)
        assert abs(found.lower / known - 1) < 1e-12


@pytest.mark.parametrize(
    "told",
    [
        ("approximate", 1.0, 0.0),
        ("graph", 1.0, ((0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (2, 0, 1.0), (1, 2, 1.0), (2, 1, 1.0))),
    ],
)
def test_feasible_channels_reach_the_optimum_where_it_is_known(told):
    """(epsilon, 0)-LDP, and a complete graph, are pure LDP: what is attained is near its optimum, and not above it."""
    utility = divergence_utility(("kl",), P0, P1)
    known = optimum(utility, 1.0)
    found = truth(Posed(utility, (told,)), np.random.default_rng(0), None)
    assert known.lower * (1 - 1e-3) <= found.lower <= known.upper


def test_channels_beyond_a_constraint_are_detected():
    """Every kind of constraint, each exceeded a little by one row."""
    q = np.array([[0.75, 0.25], [0.25, 0.75]])
    mask = ((True, False), (True, True))
    near = 1e-9
    for told in (
        ("local-dp", np.log(3) - near), ("total-variation", 0.5 - near), ("approximate", 0.5, 0.3378 - 1e-3),
        ("renyi", 2.0, np.log(0.75**2 / 0.25 + 0.25**2 / 0.75) - near), ("zcdp", np.log(3) * 0.5 - near),
        ("outputs", 1), ("support", mask), ("invariant", (0.25, 0.75)), ("trade-off", ((0.0, 1.0), (1.0, 0.0))),
        ("graph", np.log(3) / 2 - near, ((0, 1, 2.0),)),
    ):  # fmt: skip
        assert violations(q, [told]), told
    for told in (
        ("local-dp", np.log(3) + near), ("total-variation", 0.5), ("approximate", 0.5, 0.34),
        ("renyi", 2.0, np.log(0.75**2 / 0.25 + 0.25**2 / 0.75) + near), ("zcdp", np.log(3) * 0.5 + near),
        ("outputs", 2), ("invariant", (0.5, 0.5)), ("trade-off", ((0.0, 0.75), (0.25, 0.25), (0.75, 0.0))),
    ):  # fmt: skip
        assert not violations(q, [told]), told


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"upper_bound": 0.9}, "bound"), ({"upper_bound": np.nan}, "bound"), ({"upper_bound": np.inf}, "certified"),
        ({"upper_bound": 1.01}, "certified"), ({"value": 1.001}, "value"), ({"value": 0.99}, "value"),
        ({"constraints": None}, "infeasible"),
    ],
)  # fmt: skip
def test_false_bounds_values_and_channels_are_detected(change, kind):
    """A bound or a value that is off, relative to the right one, and a channel under tighter constraints."""
    design = optimal_channel(Divergence(KL, P0, P1), [LocalDP(1.0), TotalVariation(0.25)])
    posed = Posed(divergence_utility(("kl",), P0, P1), (("local-dp", 1.0), ("total-variation", 0.25)))
    rng = np.random.default_rng(0)
    assert not faults(posed, design, rng)
    if "constraints" in change:
        posed = Posed(posed.utility, (("local-dp", 0.99), ("total-variation", 0.25)))
    else:
        design = replace(design, **{name: factor * getattr(design, name) for name, factor in change.items()})
    assert kind in {said for said, _ in faults(posed, design, rng)}
