import json

import numpy as np
import pandas as pd
import pytest

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import (
    Binomial,
    CountTable,
    GeneralizedLeastSquares,
    MaximumLikelihood,
    NotIdentifiable,
    SampleDesign,
    SampledReports,
    Wald,
    asymptotic_covariance,
    estimate,
    estimate_contrasts,
    norm_sub,
)

Q = Channel([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], inputs=["a", "b", "c"], outputs=["A", "B", "C"])
WIDE = Channel([[0.5, 0.2, 0.2, 0.1], [0.1, 0.5, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1]])


def test_every_kind_of_data_gives_the_same_estimate():
    """Counts, a mapping, reports in an array or a series, and a table are one and the same survey."""
    counts = [50, 30, 20]
    reports = np.repeat(["A", "B", "C"], counts)
    made = [
        estimate(data, Q)
        for data in (
            counts,
            np.array(counts),
            dict(zip("ABC", counts, strict=True)),
            reports,
            list(reports),
            pd.Series(reports),
            CountTable.from_reports(reports, Q),
        )
    ]
    for other in made[1:]:
        assert np.array_equal(other.values, made[0].values)
        assert np.array_equal(other.covariance, made[0].covariance)


def test_columns_with_only_the_array_protocol_are_read():
    """Any column that numpy can read is a column of reports: Polars and Arrow need nothing more."""

    class Column:
        def __array__(self, dtype=None, copy=None):
            return np.repeat(["A", "B", "C"], [5, 3, 2])

    assert np.allclose(estimate(Column(), Q).values, estimate({"A": 5, "B": 3, "C": 2}, Q).values)


def test_default_is_unbiased_and_may_be_negative():
    made = estimate({"A": 5, "B": 70, "C": 25}, Q)
    assert made.values.min() < 0
    assert abs(made.values.sum() - 1) < 1e-12
    assert np.allclose(Q.matrix.T @ made.values, [0.05, 0.7, 0.25])


def test_maximum_likelihood_agrees_with_least_squares_inside_the_simplex():
    """With as many outputs as inputs, the two estimates are one when no proportion is negative."""
    a, b = (estimate({"A": 500, "B": 300, "C": 200}, Q, e) for e in (GeneralizedLeastSquares(), MaximumLikelihood()))
    assert np.allclose(a.values, b.values, atol=1e-9)
    assert np.allclose(a.covariance, b.covariance, atol=1e-9)
    assert np.allclose(a.intervals().lower, b.intervals().lower, atol=1e-8)


def test_likelihood_covariance_is_the_inverse_information():
    """Inside the simplex the covariance of the maximum is (J^-1 - p p^T)/n at the estimate, and Wald uses it."""
    made = estimate(CountTable.from_counts([300, 270, 240, 190], WIDE.outputs), WIDE, MaximumLikelihood())
    assert made.boundary == ()
    assert np.allclose(made.covariance, asymptotic_covariance(WIDE, made.values, 1000), atol=1e-15)
    shown = made.intervals(Wald())
    assert np.allclose(shown.width, 2 * 1.959963984540054 * made.standard_errors)


def test_boundary_estimates_are_named_and_have_no_covariance():
    """On the boundary the categories are named, the covariance is refused, and binomial intervals still hold."""
    made = estimate({"A": 5, "B": 70, "C": 25}, Q, MaximumLikelihood())
    assert made.boundary == ("a",)
    with pytest.raises(InvalidInput, match="held at zero"):
        _ = made.covariance
    assert np.allclose(made.intervals().upper, estimate({"A": 5, "B": 70, "C": 25}, Q).intervals().upper, atol=1e-3)
    assert made.to_dict()["standard_errors"] is None
    assert "boundary" in repr(made)


def test_intervals_of_the_maximum_cover_at_the_boundary():
    """With a proportion of zero, intervals of the maximum-likelihood estimate cover as often as they say."""
    rng = np.random.default_rng(61)
    p = np.array([0.0, 0.6, 0.4])
    rounds = 150
    hits = np.mean(
        [
            estimate(CountTable.from_counts(row, WIDE.outputs), WIDE, MaximumLikelihood()).intervals().contains(p)
            for row in rng.multinomial(1000, WIDE.push(p), size=rounds)
        ],
        axis=0,
    )
    # Three and a half standard errors of 0.95 over 150 surveys.
    assert np.abs(hits - 0.95).max() < 0.063


def test_contrasts_carry_covariance_and_intervals():
    """The variance of a contrast is a^T C a, and of several the whole a C a^T."""
    made = estimate({"A": 500, "B": 300, "C": 200}, Q)
    a = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 2.0]])
    contrast = made.contrast(a)
    assert np.allclose(contrast.covariance, a @ made.covariance @ a.T)
    assert np.allclose(contrast.values, a @ made.values)
    assert contrast.labels == ("p(a) - p(b)", "p(b) + 2 p(c)")
    model = estimate({"A": 500, "B": 300, "C": 200}, Q, MaximumLikelihood()).contrast(a, ("one", "two"))
    assert model.labels == ("one", "two")
    assert np.allclose(model.covariance, contrast.covariance, atol=1e-9)


def test_estimable_contrasts_of_a_channel_of_low_rank():
    """What a channel does determine is estimated without bias; anything else is refused."""
    q = Channel([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    p = np.array([0.3, 0.2, 0.5])
    m = q.push(p)
    made = estimate_contrasts(CountTable.from_counts(np.round(m * 1000), q.outputs), q, [[1, 1, 0], [0, 0, 1]])
    assert np.allclose(made.values, [0.5, 0.5])
    assert np.allclose(made.standard_errors, np.sqrt(m[0] * m[1] / 1000) / 0.5)
    with pytest.raises(NotIdentifiable, match=r"got p\(0\)"):
        estimate_contrasts({0: 450, 1: 550}, q, [1, 0, 0])


def test_weights_strata_and_clusters_enter_the_estimate():
    rng = np.random.default_rng(62)
    y = rng.integers(0, 3, 200)
    design = SampleDesign(rng.uniform(1, 2, 200), rng.integers(0, 2, 200), rng.integers(0, 9, 200))
    table = SampledReports.of(np.array(["A", "B", "C"])[y], Q, design)
    made = estimate(table, Q)
    assert np.allclose(Q.matrix.T @ made.values, table.frequencies)
    assert 8 < made.degrees < 16  # 18 clusters of unequal weights in two strata
    assert made.intervals(Wald()).width[0] > 2 * 1.96 * made.standard_errors[0]
    assert estimate(table, Q, MaximumLikelihood()).values.min() >= 0


def test_projection_is_a_labelled_step():
    made = estimate({"A": 5, "B": 70, "C": 25}, Q).project(norm_sub)
    assert made.step == "norm_sub"
    assert made.labels == ("a", "b", "c")
    assert made.values.min() == 0


def test_shown_as_text_html_dict_and_frame():
    made = estimate({"A": 500, "B": 300, "C": 200}, Q)
    assert "1000 reports" in repr(made)
    html = made._repr_html_()
    assert html.count("<tr>") == 4
    assert json.loads(json.dumps(made.to_dict()))["n"] == 1000
    frame = made.to_pandas()
    assert list(frame.index) == ["a", "b", "c"]
    assert np.allclose(frame["se"], made.standard_errors)
    assert np.allclose(frame["upper"], made.intervals(Binomial()).upper)


def test_html_escapes_labels():
    q = Channel([[0.7, 0.3], [0.3, 0.7]], inputs=["<b>", "&"])
    assert "&lt;b&gt;" in estimate({0: 5, 1: 5}, q)._repr_html_()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate({"A": 0}, Q), "at least one report"),
        (lambda: estimate({0: 1, 2: 1}, [[0.8, 0.2, 0], [0.2, 0.8, 0]]), "can give"),
        (lambda: estimate({"A": 5}, Q).contrast([1, 2]), "3 weights"),
        (lambda: estimate_contrasts({"A": 5}, Q, [1, 2]), "3 weights"),
        (lambda: estimate(["A", "Z"], Q), "one of the outputs"),
        (lambda: estimate([1, 2, 3], "channel.json"), "text"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
