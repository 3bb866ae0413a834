"""Where the primary units show less variance than the channel's noise, one rule for intervals, p-values and tests.

The noise is known, so Student's quantile belongs to the variance that the units show, and the normal one to the noise.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import chi2, f

from ldpopt_survey import SampleDesign, Wald, difference, estimate, linear_regression
from ldpopt_survey.estimate.conditional_mean import conditional_mean
from ldpopt_survey.estimate.groups import tables_by_group
from ldpopt_survey.estimate.intervals import wald_half_widths
from ldpopt_survey.estimate.results import p_values_of
from ldpopt_survey.estimate.sampled import SampledReports
from ldpopt_survey.hypothesis_tests import wald_result

Q = np.array([[0.55, 0.45], [0.45, 0.55]])


def test_p_values_and_half_widths_take_the_larger_of_two() -> None:
    """At fractions 0, 1/4, 9/10, 1 and 4 of the variance, on 3 degrees, as computed by hand."""
    statistic, fractions = np.full(5, 2.0), np.array([0.0, 0.25, 0.9, 1.0, 4.0])
    student = [2 * stdtr(3, -2 / np.sqrt(part)) for part in fractions[1:]]
    normal = 2 * 0.02275013194817921
    wanted = [normal, max(student[0], normal), student[1], student[2], student[3]]
    np.testing.assert_allclose(p_values_of(statistic, 3.0, fractions), wanted, rtol=1e-9)
    half = wald_half_widths(np.ones(5), 0.95, 3.0, fractions)
    z, t = -ndtri(0.025), -stdtrit(3, 0.025)
    np.testing.assert_allclose(half, [z, z, t * np.sqrt(0.9), t, 2 * t], rtol=1e-9)
    assert (p_values_of(statistic, 0.0, fractions) == 1).all()
    assert np.isinf(wald_half_widths(np.ones(5), 0.95, 0.0, fractions)).all()


@pytest.mark.parametrize("fraction", [1e-9, 0.1, 0.95])
def test_wald_tests_take_the_larger_of_two(fraction: float) -> None:
    """Hotelling's F with the variance of the units, or chi-squared with the noise: that with the larger p-value."""
    d, covariance = np.array([1.0, -2.0]), np.array([[1.0, 0.3], [0.3, 2.0]])
    form = d @ np.linalg.solve(covariance, d)
    by_noise = chi2.sf(form, 2)
    by_units = f.sf(form / max(fraction, 1e-6) * (6 - 1) / (6 * 2), 2, 6 - 1)
    made = wald_result("test", d, covariance, 6.0, np.full(2, fraction))
    assert made.p_value == pytest.approx(max(by_noise, by_units), rel=1e-9)
    assert wald_result("test", d, covariance, 6.0).p_value >= made.p_value


def sample(seed: int, clusters: int = 4, members: int = 400) -> tuple[np.ndarray, np.ndarray, SampleDesign, np.ndarray]:
    """Reports, groups within clusters, the design and the true answers: 30 % in all clusters."""
    g = np.random.default_rng(seed)
    n = clusters * members
    answers = (g.random(n) < 0.3).astype(int)
    reports = (g.random(n) < Q[answers, 1]).astype(int)
    group = np.where(np.arange(n) % 2 == 0, "a", "b")
    return reports, group, SampleDesign(clusters=np.repeat(np.arange(clusters), members)), answers


def test_regressions_and_differences_follow_the_rule_of_estimates() -> None:
    """The mean as a regression has the Wald interval of the estimate, where units show less variance than the noise."""
    raised = 0
    for seed in range(12):
        reports, group, design, _ = sample(seed)
        shares = estimate(SampledReports.of(reports, Q, design), Q)
        fitted = linear_regression("y ~ 1", {"y": reports}, {"y": Q}, sample=design)
        fraction = fitted.unit_fractions[0]
        limits, wanted = fitted.intervals(), shares.intervals(Wald())
        half, t_half = (limits.upper - limits.lower)[0] / 2, (wanted.upper - wanted.lower)[1] / 2
        assert half == pytest.approx(t_half, rel=0.02)
        if fraction < 0.3:
            raised += 1
            assert half == pytest.approx(-ndtri(0.025) * fitted.standard_errors[0, 0], rel=1e-9)
        by_group = tables_by_group(reports, Q, group, design)
        change = difference(estimate(by_group["a"], Q), estimate(by_group["b"], Q))
        z = np.abs(change.values) / change.standard_errors
        assert (change.p_values <= 2 * stdtr(change.degrees, -z) + 1e-12).all() or (change.unit_fractions > 1).any()
        assert (change.p_values >= 2 * stdtr(np.inf, -z) - 1e-12).all()
    assert raised


@pytest.mark.full
def test_coverage_of_regressions_with_few_units_and_much_noise() -> None:
    """400 samples of 4 clusters: intervals of the mean cover 95 % or more, and are shorter than Student's."""
    covered, ratios = 0, []
    for seed in range(400):
        reports, _, design, _ = sample(seed)
        fitted = linear_regression("y ~ 1", {"y": reports}, {"y": Q}, sample=design)
        limits = fitted.intervals()
        covered += limits.lower[0] <= 0.3 <= limits.upper[0]
        ratios.append((limits.upper - limits.lower)[0] / 2 / fitted.standard_errors[0, 0] / -stdtrit(3, 0.025))
    assert covered >= 0.95 * 400 - 2 * np.sqrt(400 * 0.95 * 0.05)
    assert np.mean(ratios) < 0.95


def test_a_mean_among_the_asked_follows_the_rule_of_its_differences() -> None:
    """Its interval ends where the interval of sum - r share, as a contrast of its own, ends at 0."""
    raised, q = 0, np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    for seed in range(8):
        g = np.random.default_rng(seed)
        answers = np.repeat(np.tile([0, 1, 2], 400), 2)
        reports = (g.random((len(answers), 1)) > q[answers].cumsum(axis=1)).sum(axis=1)
        design = SampleDesign(clusters=np.repeat(np.arange(6), len(answers) // 6))
        shares = estimate(SampledReports.of(reports, q, design), q)
        mean = conditional_mean(shares, np.array([0.0, 0.0, 80.0]), np.array([0.0, 1.0, 1.0]), (0.0, 80.0))
        limits = mean.intervals(Wald())
        for end, sign in ((limits.lower[0], 1), (limits.upper[0], -1)):
            for step, is_outside in ((-1e-3, True), (1e-3, False)):
                row = np.array([[1.0, -(end + sign * step)]])
                made = mean.sums.contrast(row, ("difference",)).intervals(Wald())
                assert (made.lower[0] > 0 or made.upper[0] < 0) == is_outside
        raised += bool((mean.sums.sampling.unit_fractions < 0.9).any())
    assert raised > 1
