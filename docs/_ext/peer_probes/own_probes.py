"""What ldpopt does; a test runs these probes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from peer_probes.base import EXACT, FLIP, THREE, N, drawn, near, probe


@probe("ldpopt", "response")
def _() -> str:
    from ldpopt.mechanisms import randomized_response

    reports = randomized_response(4, 1.0).sample([2] * N, np.random.default_rng(1))
    drawn(np.mean(np.asarray(reports) == 2), math.e / (math.e + 3))
    return "mechanisms.randomized_response, ldpopt_survey.privatize"


@probe("ldpopt", "unary")
def _() -> str:
    from ldpopt.mechanisms import optimized_unary_encoding, unary_encoding

    half = math.exp(0.5)
    for made, own in ((optimized_unary_encoding(4, 1.0), 0.5), (unary_encoding(4, 1.0), half / (half + 1))):
        near(made.own, own, 1e-9)
        drawn(float(np.mean(np.asarray(made.sample([2] * N, np.random.default_rng(1)))[:, 2])), own)
    return "mechanisms.unary_encoding, optimized_unary_encoding"


@probe("ldpopt", "hashing")
def _() -> str:
    from ldpopt.mechanisms import optimized_local_hashing

    made = optimized_local_hashing(8, 2.0)
    counts = made.support_counts(made.sample([3] * N, np.random.default_rng(1)))
    near(float(made.estimate(counts, N)[3]), 1.0, 0.15)
    return "mechanisms.optimized_local_hashing"


@probe("ldpopt", "subset")
def _() -> str:
    from ldpopt.mechanisms import subset_selection

    near(subset_selection(6, 1.0, 2).matrix[2].max() / subset_selection(6, 1.0, 2).matrix[2].min(), math.e, 1e-9)
    return "mechanisms.subset_selection"


@probe("ldpopt", "hadamard")
def _() -> str:
    from ldpopt.mechanisms import hadamard_response

    made = hadamard_response(4, 2.0)
    counts = made.support_counts(made.sample([1] * N, np.random.default_rng(1)))
    near(float(made.estimate(counts, N)[1]), 1.0, 0.15)
    return "mechanisms.hadamard_response"


@probe("ldpopt", "number")
def _() -> str:
    from ldpopt.mechanisms import Laplace

    noise = np.asarray(Laplace(0.5).sample(np.zeros(N), np.random.default_rng(1)))
    near(float(np.abs(noise).mean()), 2.0, 0.3)
    return "mechanisms.Laplace, Piecewise, SquareWave, ldpopt_survey.numeric_question"


def _estimated() -> Any:
    from ldpopt_survey import estimate

    return estimate({0: 100, 1: 300, 2: 200}, [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])


@probe("ldpopt", "shares")
def _() -> str:
    near(float(_estimated().proportions[0]), (100 / 600 - 0.2) / 0.4, 1e-9)
    return "ldpopt_survey.estimate"


@probe("ldpopt", "intervals")
def _() -> str:
    found = _estimated().intervals()
    if not (found.lower[1] < 0.75 < found.upper[1]):
        raise AssertionError(found)
    return "ldpopt_survey.Estimate.intervals"


@probe("ldpopt", "bayes")
def _() -> str:
    from ldpopt_survey import MaximumLikelihood, estimate

    truth, channel = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.4, 0.6]])
    counts = (10_000 * truth @ channel).round()
    found = estimate(dict(enumerate(counts.astype(int).tolist())), channel, MaximumLikelihood())
    near(float(found.proportions[0]), 0.3, 1e-3)
    return "ldpopt_survey.MaximumLikelihood"


@probe("ldpopt", "attributes")
def _() -> str:
    from ldpopt_survey import Budget, HalfWidth, split_budget

    asked = {name: ([0.3, 0.7], HalfWidth(0.05)) for name in ("a", "b")}
    near(sum(split_budget(asked, Budget(1.0)).epsilons.values()), 1.0, 1e-6)
    return "ldpopt_survey.plan_survey, split_budget"


@probe("ldpopt", "samples")
def _() -> str:
    from ldpopt_survey import SampleDesign

    design = SampleDesign(weights=[1.0, 3.0, 2.0, 2.0], strata=["a", "a", "b", "b"])
    near(float(np.sum(design.total([0, 1, 1, 0]))), 5.0, 1e-12)
    return "ldpopt_survey.SampleDesign"


@probe("ldpopt", "replicates")
def _() -> str:
    from ldpopt_survey import Jackknife, SampleDesign, post_stratify

    made = post_stratify(SampleDesign(size=4), ["f", "m", "m", "m"], {"f": 50, "m": 50})
    near(float(made.weights[0]), 50.0, 1e-9)
    SampleDesign(size=4).with_method(Jackknife()).total_variance([0, 1, 1, 0])
    return "ldpopt_survey.post_stratify, rake, Jackknife, RescaledBootstrap"


@probe("ldpopt", "power")
def _() -> str:
    from ldpopt_survey import respondents_to_distinguish

    if not respondents_to_distinguish(FLIP, [0.9, 0.1], [0.4, 0.6]).respondents > 1:
        raise AssertionError
    return "ldpopt_survey.respondents_to_distinguish, respondents_needed"


@probe("ldpopt", "regression")
def _() -> str:
    from ldpopt_survey import logit_regression

    data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    if not np.isfinite(logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).coefficients).all():
        raise AssertionError
    return "ldpopt_survey.logit_regression, linear_regression"


@probe("ldpopt", "states")
def _() -> str:
    from ldpopt.mechanisms import optimized_unary_encoding

    near(optimized_unary_encoding(4, 1.0).epsilon, 1.0, 1e-12)
    return "FrequencyOracle.epsilon, eta"


@probe("ldpopt", "epsilon")
def _() -> str:
    from ldpopt.privacy import local_dp

    near(local_dp(FLIP).value, math.log(3), 1e-9)
    return "privacy.local_dp, audit"


@probe("ldpopt", "variation")
def _() -> str:
    from ldpopt.privacy import total_variation

    near(total_variation(THREE).value, 0.3, 1e-9)
    return "privacy.total_variation"


@probe("ldpopt", "renyi")
def _() -> str:
    from ldpopt.privacy import renyi, zcdp

    near(renyi(FLIP, 2.0).value, math.log(0.75**2 / 0.25 + 0.25**2 / 0.75), 1e-9)
    if not zcdp(FLIP).value > 0:
        raise AssertionError
    return "privacy.renyi, zcdp"


@probe("ldpopt", "leakage")
def _() -> str:
    from ldpopt.privacy import maximal_leakage, mutual_information

    near(mutual_information(FLIP, [0.5, 0.5]).value, math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25), 1e-9)
    near(maximal_leakage(FLIP).value, math.log(1.5), 1e-9)
    return "privacy.mutual_information, maximal_leakage"


@probe("ldpopt", "tradeoff")
def _() -> str:
    from ldpopt.privacy import trade_off

    near(float(trade_off(FLIP)(0.25)), 0.25, 1e-9)
    return "privacy.trade_off"


@probe("ldpopt", "composition")
def _() -> str:
    from ldpopt import k_fold

    near(k_fold(0.1, count=100).epsilon_at(1e-6), EXACT, 1e-9)
    return "composition.k_fold; exact"


@probe("ldpopt", "pairs")
def _() -> str:
    from ldpopt import compose

    near(compose([THREE], 2).epsilon_at(0.0), 2 * math.log(2.5), 1e-6)
    return "composition.compose"


@probe("ldpopt", "loss")
def _() -> str:
    from ldpopt import LocalDP, optimal_channel
    from ldpopt.design import ExpectedLoss

    made = optimal_channel(ExpectedLoss(np.full(4, 0.25), 1 - np.eye(4)), LocalDP(1.0))
    near(-made.value, 3 / (math.e + 3), 1e-9)
    return "design.ExpectedLoss; with certificate"


def _optimal() -> Any:
    from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
    from ldpopt.divergences import KL

    return optimal_channel(Divergence(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), [LocalDP(1.0), TotalVariation(0.3)])


@probe("ldpopt", "optimal")
def _() -> str:
    if not _optimal().certified:
        raise AssertionError
    return "design.optimal_channel"


@probe("ldpopt", "certificate")
def _() -> str:
    if not _optimal().certificate.verify(exact=True):
        raise AssertionError
    return "design.Certificate.verify, ldpopt_check"
