"""Cheaters: the published formulas, brute-force likelihood, and what can and cannot be identified."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt.privacy import local_dp
from ldpopt_survey import (
    CHEATS,
    MaximumLikelihood,
    NotIdentifiable,
    compliance_groups,
    directed_answers,
    estimate_compliance,
    estimate_contrasts,
    pooled_channel,
    repeated,
    with_cheaters,
)

GROUPS = ((500, 0.43), (700, 0.66))
"""Respondents of two groups, and the share of yes among their reports."""


def counts(n, share):
    return {"no": round(n * (1 - share)), "yes": round(n * share)}


def test_cheating_detection_model():
    """pi, beta, gamma and their standard errors are Clark and Desharnais's, as in RRreg [CDM]."""
    p1, p2 = 0.2, 0.75
    made = estimate_compliance([(counts(*g), directed_answers(p)) for g, p in zip(GROUPS, (p1, p2), strict=True)], "no")
    (n1, l1), (n2, l2) = GROUPS
    v1, v2 = l1 * (1 - l1) / n1, l2 * (1 - l2) / n2
    d = p2 - p1
    want = {"yes": (p2 * l1 - p1 * l2) / d, "no": (l2 - l1) / d}
    want[CHEATS] = 1 - sum(want.values())
    errors = {
        "yes": np.sqrt(p2**2 * v1 + p1**2 * v2) / d,
        "no": np.sqrt(v1 + v2) / d,
        CHEATS: np.sqrt((1 - p2) ** 2 * v1 + (1 - p1) ** 2 * v2) / d,
    }
    for label, value, error in zip(
        made.estimate.labels, made.estimate.values, made.estimate.standard_errors, strict=True
    ):
        assert np.isclose(value, want[label], atol=1e-12)
        assert np.isclose(error, errors[label], rtol=1e-10)
    assert np.isclose(made.cheaters.values[0], want[CHEATS])


def test_symmetric_cheating_detection_model():
    """RRreg's model CDMsym: directed to yes and to no [CDMsym]."""
    y1, o1, y2, o2 = 0.3, 0.1, 0.1, 0.4
    made = estimate_compliance(
        [(counts(*GROUPS[0]), directed_answers(y1, o1)), (counts(*GROUPS[1]), directed_answers(y2, o2))], "no"
    )
    (n1, l1), (n2, l2) = GROUPS
    v1, v2 = l1 * (1 - l1) / n1, l2 * (1 - l2) / n2
    down = y2 * (1 - o1) - y1 * (1 - o2)
    found = dict(zip(made.estimate.labels, made.estimate.values, strict=True))
    errors = dict(zip(made.estimate.labels, made.estimate.standard_errors, strict=True))
    assert np.isclose(found["yes"], (y2 * l1 - y1 * l2) / down)
    assert np.isclose(errors["yes"], np.sqrt(y2**2 * v1 + y1**2 * v2) / abs(down))
    gamma = ((y1 - l1) * (1 - y2 - o2) - (y2 - l2) * (1 - y1 - o1)) / -down
    assert np.isclose(found[CHEATS], gamma)
    assert np.isclose(errors[CHEATS], np.sqrt((1 - y2 - o2) ** 2 * v1 + (1 - y1 - o1) ** 2 * v2) / abs(down))


def test_stochastic_lie_detector():
    """pi and t with their standard errors are Moshagen, Musch and Erdfelder's, as in RRreg [SLD]."""
    p1, p2 = 0.8, 0.25  # those without the trait say no with this probability
    groups = [(counts(*g), directed_answers(1 - p)) for g, p in zip(GROUPS, (p1, p2), strict=True)]
    pi, t = estimate_compliance(groups, "no").if_cheaters_have("yes")
    (n1, l1), (n2, l2) = GROUPS
    v1, v2 = l1 * (1 - l1) / n1, l2 * (1 - l2) / n2
    top = (l2 - l1) + (p2 - p1)
    assert np.isclose(pi.values[0], top / (p2 - p1))
    assert np.isclose(pi.standard_errors[0], np.sqrt(v1 + v2) / abs(p2 - p1))
    assert np.isclose(t.value, (l2 * (1 - p1) - l1 * (1 - p2)) / top)
    slopes = ((p1 - p2) * (p2 + l2 - 1) / top**2, (p1 - p2) * (p1 + l1 - 1) / top**2)
    assert np.isclose(t.standard_error, np.sqrt(v1 * slopes[0] ** 2 + v2 * slopes[1] ** 2))


def test_unrelated_question_of_unknown_prevalence():
    """RRreg's UQTunknown: two groups, four kinds of people, of whom two contrasts are identified."""
    p = (0.7, 0.3)
    kinds = [(s, u) for s in (0, 1) for u in (0, 1)]
    groups = [Channel([[1 - a, a] for a in (q * s + (1 - q) * u for s, u in kinds)], kinds) for q in p]
    channel = pooled_channel(groups, [500, 700])
    data = {(1, 0): 285, (1, 1): 215, (2, 0): 238, (2, 1): 462}
    made = estimate_contrasts(data, channel, [[s for s, _ in kinds], [u for _, u in kinds]])
    l1, l2 = 215 / 500, 462 / 700
    v1, v2 = l1 * (1 - l1) / 500, l2 * (1 - l2) / 700
    pi = (l1 * (1 - p[1]) - l2 * (1 - p[0])) / (p[0] - p[1])
    assert np.isclose(made.values[0], pi)
    assert np.isclose(made.values[1], (p[1] * l1 - p[0] * l2) / (p[1] - p[0]))
    # The variance of fixed group sizes; the estimate's own counts the draw of the group, which for a contrast whose
    # mean is the same in both groups adds nothing, and here adds what least norm costs.
    assert made.standard_errors[0] >= np.sqrt(v1 * (1 - p[1]) ** 2 + v2 * (1 - p[0]) ** 2) / (p[0] - p[1]) - 1e-12


def brute_force(groups, cheating):
    """The largest log-likelihood over all shares, by general-purpose search from many starts."""

    def cost(x):
        shares = np.exp(x - x.max())
        shares /= shares.sum()
        total = 0.0
        for data, channel in groups:
            rows = with_cheaters(channel, "no").matrix if cheating else channel.matrix
            m = shares @ rows
            total -= sum(c * np.log(max(v, 1e-300)) for c, v in zip((data["no"], data["yes"]), m, strict=True))
        return total

    size = 3 if cheating else 2
    starts = np.random.default_rng(1).normal(0, 2, (12, size))
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 6000}
    return -min(minimize(cost, start, method="Nelder-Mead", options=options).fun for start in starts)


def test_tests_against_brute_force_likelihood():
    """The statistic is twice the difference of two likelihoods that a general-purpose search finds, too."""
    q = [directed_answers(0.3, 0.1), directed_answers(0.1, 0.4)]
    groups = [({"no": 330, "yes": 170}, q[0]), ({"no": 560, "yes": 140}, q[1])]
    made = estimate_compliance(groups, "no")
    with_them, without = brute_force(groups, True), brute_force(groups, False)
    test = made.test()
    assert np.isclose(test.statistic, 2 * (with_them - without), atol=1e-4)
    assert np.isclose(test.p_value, chi2.sf(test.statistic, 1) / 2)
    free = sum(c * np.log(c / sum(data.values())) for data, _ in groups for c in data.values())
    fit = made.all_comply()
    assert fit.degrees == 1
    assert np.isclose(fit.statistic, 2 * (free - without), atol=1e-4)


@pytest.mark.full
def test_level_of_the_test():
    """Without cheaters, a test at 5 % rejects in about 5 % of surveys, since half of the statistics are zero."""
    rng = np.random.default_rng(2)
    rejected = 0
    (w, direct), (_, reverse) = compliance_groups(2.0)
    truth = np.array([0.7, 0.3])
    for _ in range(200):
        n = (round(1000 * w), 1000 - round(1000 * w))
        groups = [(rng.multinomial(size, truth @ q.matrix), q) for size, q in zip(n, (direct, reverse), strict=True)]
        rejected += (
            estimate_compliance([(dict(zip(q.outputs, c, strict=True)), q) for c, q in groups], "no").test().p_value
            < 0.05
        )
    assert 0.02 <= rejected / 200 <= 0.085


def test_asking_twice_identifies_cheaters():
    """Two reports of each person tell always-no from honest answers, at twice the epsilon; the truth is recovered."""
    q = directed_answers(0.2, 0.2)
    twice = repeated(q)
    assert np.isclose(float(local_dp(twice)), 2 * float(local_dp(q)), rtol=1e-9)
    truth = np.array([0.6, 0.25, 0.15])
    expected = truth @ with_cheaters(twice, ("no", "no")).matrix * 10_000
    made = estimate_compliance([(np.round(expected).astype(int), twice)], ("no", "no"))
    assert np.allclose(made.estimate.values, truth, atol=1e-3)
    assert made.all_comply().degrees == 2
    assert made.all_comply().p_value < 1e-6
    low, high = made.bounds("yes")
    assert low < 0.25
    assert high > 0.4
    assert np.isclose(made.among_compliers("yes").value, 0.25 / 0.85, atol=1e-3)


def test_random_cheaters_are_not_identified_by_the_crosswise_design():
    """Random answers move both groups' reports to a half, as other proportions do: `NotIdentifiable` names this."""
    groups = [({"no": 60, "yes": 40}, q) for _, q in compliance_groups(1.0)]
    with pytest.raises(NotIdentifiable, match="does not comply"):
        estimate_compliance(groups, report_distribution=[0.5, 0.5])


def test_one_group_never_identifies_cheaters():
    with pytest.raises(NotIdentifiable, match=r"p\(no\) \+ 1.33333 p\(does not comply\)"):
        estimate_compliance([({"no": 60, "yes": 40}, directed_answers(0.2, 0.2))], "no")


def test_groups_within_epsilon():
    """Both channels keep epsilon, and no other split of the sample leaves a smaller sum of variances."""
    from ldpopt_survey import asymptotic_covariance

    pilot = np.array([0.7, 0.2, 0.1])
    made = compliance_groups(1.5, pilot)
    assert all(float(local_dp(q)) <= 1.5 * (1 + 1e-12) for _, q in made)
    rows = [Channel(with_cheaters(q, "no").matrix) for _, q in made]
    best = np.trace(asymptotic_covariance(pooled_channel(rows, [w for w, _ in made]), pilot))
    for w in np.linspace(0.05, 0.95, 19):
        assert best <= np.trace(asymptotic_covariance(pooled_channel(rows, [w, 1 - w]), pilot)) * (1 + 1e-6)


def test_maximum_likelihood_keeps_to_the_simplex():
    """Shares outside the simplex come back to it, and the bounds and ratios still stand."""
    groups = [({"no": 80, "yes": 20}, directed_answers(0.25)), ({"no": 20, "yes": 80}, directed_answers(0.75))]
    linear = estimate_compliance(groups, "no")
    assert linear.estimate.values.min() < 0
    inside = estimate_compliance(groups, "no", estimator=MaximumLikelihood())
    assert inside.estimate.values.min() >= 0
    assert linear.test().p_value == 1.0
    assert linear.bounds("yes")[0] == 0.0


def test_wrong_models_are_refused():
    q = directed_answers(0.2)
    for call, said in (
        (lambda: directed_answers(0.7, 0.4), "at most 1"),
        (lambda: directed_answers(-0.1), "0, 1"),
        (lambda: repeated(q, 1), "2 to 6"),
        (lambda: with_cheaters(q), "neither"),
        (lambda: with_cheaters(q, "maybe"), "reports"),
        (lambda: with_cheaters(q, "no", [0.5, 0.5]), "both"),
        (lambda: with_cheaters(with_cheaters(q, "no"), "no"), "without them"),
        (lambda: estimate_compliance([], "no"), "at least one"),
        (lambda: estimate_compliance([({"no": 4, "yes": 6}, q), ([4, 3, 9], np.eye(3))], "no"), "reports"),
        (lambda: compliance_groups(1.0, [0.5, 0.5]), "3 entries"),
    ):
        with pytest.raises(InvalidInput, match=said):
            call()
    made = estimate_compliance([({"no": 40, "yes": 60}, q), ({"no": 60, "yes": 40}, directed_answers(0.7))], "no")
    with pytest.raises(InvalidInput, match="answer"):
        made.bounds(CHEATS)
