"""Lists, tuples, and what pandas and Polars have go wherever arrays do, with the same result; labels are respected."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ldpopt import (
    AOptimal,
    Channel,
    COptimal,
    Divergence,
    ExpectedLoss,
    FisherInformation,
    InvalidInput,
    LocalDP,
    MutualInformation,
    MVOptimal,
    bounds,
    composition,
    mechanisms,
    optimal_channel,
    privacy,
)
from ldpopt.design import Hull, Invariant, Support
from ldpopt.divergences import KL
from ldpopt.exact import round_exact
from ldpopt_survey import (
    HalfWidth,
    LeftInverse,
    QuestionPlanner,
    asymptotic_covariance,
    chernoff_exponent,
    estimate,
    estimate_contrasts,
    fisher_information,
    goodness_of_fit,
    goodness_of_fit_power,
    independence_power,
    logistic_regression,
    mean,
    norm_sub,
    pooled_channel,
    respondents_for_power,
    respondents_to_distinguish,
    simplex_projection,
    stein_exponent,
    two_sample,
    two_sample_power,
    two_way,
    two_way_from_counts,
)

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
MATRIX = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.3, 0.1, 0.6]])
LOSS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
REPORTS = np.repeat([0, 1, 2], [30, 40, 30])
LABELS = ["a", "b", "c"]


def optimum(utility: object) -> float:
    """The value at epsilon 1."""
    return optimal_channel(utility, LocalDP(1.0)).value


PAIRS = {
    "Divergence": lambda p, q: optimum(Divergence(KL, p, q)),
    "KL": KL,
    "binary": lambda p, q: mechanisms.binary(p, q, 1.0).matrix,
    "binary_with_erasure": lambda p, q: mechanisms.binary_with_erasure(p, q, 1.0, 0.2).matrix,
    "sort_partition_randomize": lambda p, q: mechanisms.sort_partition_randomize(p, q, 1.0, [[0], [1, 2]]).matrix,
    "antipodal_pair": lambda p, q: privacy.antipodal_pair(p, q),
    "FinitePair": lambda p, q: privacy.FinitePair(p, q).p / privacy.FinitePair(p, q).q,
    "chernoff": lambda p, q: bounds.chernoff(p, q, 1.0).upper,
    "stein": lambda p, q: bounds.stein(p, q, 1.0).upper,
    "ghazi_issa": lambda p, q: bounds.ghazi_issa(p, q, 1.0, 0.2),
    "ghazi_issa_total_variation": lambda p, q: bounds.ghazi_issa_total_variation(p, q, 0.2),
    "duchi_jordan_wainwright": lambda p, q: bounds.duchi_jordan_wainwright(p, q, 1.0),
    "kairouz_oh_viswanath": lambda p, q: bounds.kairouz_oh_viswanath(p, q, 1.0),
}
"""Functions of two distributions over the same labels."""

WITH_CHANNEL = {
    "goodness_of_fit_power": lambda c, p, q: goodness_of_fit_power(c, p, q, 100),
    "respondents_for_power": lambda c, p, q: respondents_for_power(c, p, q, 0.8),
    "stein_exponent": stein_exponent,
    "chernoff_exponent": chernoff_exponent,
    "respondents_to_distinguish": lambda c, p, q: respondents_to_distinguish(c, p, q, 0.05, 0.05).respondents,
    "two_sample_power": lambda c, p, q: two_sample_power(c, p, q, 100, 100),
}
"""Functions of a channel and two distributions of its inputs."""

OTHERS = {
    "Channel": (lambda m: Channel(m).then(m).matrix, MATRIX),
    "garbles": (lambda m, n: Channel(m).garbles(n), MATRIX, MATRIX @ MATRIX),
    "ExpectedLoss": (lambda p, loss: optimum(ExpectedLoss(p, loss)), P, LOSS),
    "priors": (lambda priors: ExpectedLoss(priors, LOSS).value(Channel(MATRIX)), np.array([P, Q])),
    "AOptimal": (lambda p, w: optimum(FisherInformation(p, AOptimal(w))), P, np.array([1.0, 2.0, 1.0])),
    "COptimal": (lambda p, c: optimum(FisherInformation(p, COptimal(c))), P, np.array([1.0, 0.0, -1.0])),
    "MVOptimal": (lambda p, c: optimum(FisherInformation(p, MVOptimal(c))), P, np.eye(3) - 1 / 3),
    "MutualInformation": (lambda p: optimum(MutualInformation(p)), P),
    "Hull": (lambda laws: Hull(laws).vertices, np.array([P, Q])),
    "Invariant": (lambda p: Invariant(p).p, P),
    "Support": (lambda mask: Support(mask).mask, np.ones((3, 2), dtype=bool)),
    "mutual_information": (lambda m, p: float(privacy.mutual_information(m, p)), MATRIX, P),
    "trade_off": (lambda m: privacy.trade_off(m)(0.1), MATRIX),
    "compose": (lambda m: float(composition.compose([m, m]).local_dp()), MATRIX),
    "shuffled": (lambda m: float(composition.shuffled(m, 20).epsilon_at(1e-6)), MATRIX),
    "round_exact": (lambda m: round_exact(m, 20).matrix, MATRIX),
    "chernoff_of_several": (lambda laws: bounds.chernoff_of_several(laws, 1.0).upper, np.array([P, Q])),
    "fisher_information": (fisher_information, MATRIX, P),
    "asymptotic_covariance": (asymptotic_covariance, MATRIX, P),
    "simplex_projection": (simplex_projection, np.array([0.7, 0.5, -0.1])),
    "norm_sub": (norm_sub, np.array([0.7, 0.5, -0.1])),
    "QuestionPlanner": (lambda p: QuestionPlanner(p).respondents(HalfWidth(0.1), epsilon=1.0), P),
    "independence_power": (lambda j, a, b: independence_power(j, a, b, 100), np.full((3, 3), 1 / 9), MATRIX, MATRIX),
    "estimate": (lambda r, m: estimate(r, m).values, REPORTS, MATRIX),
    "estimate_contrasts": (lambda r, m, c: estimate_contrasts(r, m, c).values, REPORTS, MATRIX, np.array([[1, 0, -1]])),
    "goodness_of_fit": (lambda r, m, p: goodness_of_fit(r, m, p).statistic, REPORTS, MATRIX, P),
    "two_sample": (lambda r, s, m: two_sample(r, s, m).statistic, REPORTS, REPORTS[10:], MATRIX),
    "two_way": (lambda r, s, m: two_way(r, s, m, m).joint.values, np.tile(REPORTS, 3), np.repeat(REPORTS, 3), MATRIX),
    "two_way_from_counts": (lambda n, m: two_way_from_counts(n, m, m).joint.values, 10 + MATRIX.round() * 20, MATRIX),
    "mean": (lambda r, m, s: mean(estimate(r, m), s).values, REPORTS, MATRIX, np.array([1.0, 2.0, 3.0])),
    "LeftInverse": (lambda m: LeftInverse(m).matrix, MATRIX),
    "pooled_channel": (lambda m, w: pooled_channel([m, m], w).matrix, MATRIX, np.array([10.0, 20.0])),
    "logistic_regression": (
        lambda r, x, m: logistic_regression(r, x, m).coefficients,
        np.tile([0, 1], 60), np.c_[np.ones(120), np.linspace(-1, 1, 120)], np.array([[0.8, 0.2], [0.2, 0.8]]),
    ),
}  # fmt: skip
"""Functions of anything else, with their arrays."""

EVERY = {
    **{name: (function, P, Q) for name, function in PAIRS.items()},
    **{name: (function, MATRIX, P, Q) for name, function in WITH_CHANNEL.items()},
    **OTHERS,
}


def forms(array: np.ndarray) -> dict[str, object]:
    """An array as people have it."""
    if array.ndim == 1:
        labels = LABELS if len(array) == 3 else None
        return {"list": array.tolist(), "pandas": pd.Series(array, labels), "polars": pl.Series(array.tolist())}
    labels = LABELS if len(array) == 3 and array.shape != (3, 2) else None
    columns = {str(place): column.tolist() for place, column in enumerate(array.T)}
    return {"list": array.tolist(), "pandas": pd.DataFrame(array, labels), "polars": pl.DataFrame(columns)}


@pytest.mark.full(but=4)
@pytest.mark.parametrize("name", EVERY)
def test_arrays_may_be_lists_and_frames(name) -> None:
    """Of pandas, with labels, and of Polars."""
    function, *arrays = EVERY[name]
    expected = np.asarray(function(*arrays), dtype=float)
    for form in ("list", "pandas", "polars"):
        got = np.asarray(function(*(forms(array)[form] for array in arrays)), dtype=float)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12, err_msg=f"{name} of {form}")


@pytest.mark.full(but=8)
@pytest.mark.parametrize("name", [*PAIRS, *WITH_CHANNEL])
def test_labels_are_respected(name) -> None:
    """Two series over the same labels are put into one order; over other labels they are refused."""
    first, second = pd.Series(P, LABELS), pd.Series(Q, LABELS)
    channel = [pd.DataFrame(MATRIX, LABELS, ["x", "y", "z"])] if name in WITH_CHANNEL else []
    function = {**PAIRS, **WITH_CHANNEL}[name]
    expected = np.asarray(function(*channel, first, second), dtype=float)
    turned = np.asarray(function(*channel, first, second[["c", "a", "b"]]), dtype=float)
    np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(InvalidInput, match="labels"):
        function(*channel, first, second.set_axis(["a", "b", "d"]))


def test_measures_of_composed_results_are_methods() -> None:
    """What is measured is called, on every class; a field or a property is what the object was made with."""
    measures = {name for name in privacy.__all__ if name.islower()} | {"epsilon_at", "delta_at"}
    for name in composition.__all__:
        thing = getattr(composition, name)
        if isinstance(thing, type):
            for measure in measures & set(dir(thing)):
                assert callable(getattr(thing, measure)), f"{name}.{measure}"
