import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.optimize import minimize
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput, SolverError
from ldpopt.mechanisms import randomized_response, subset_selection
from ldpopt_survey import NotIdentifiable, SampleDesign, logistic_regression, logit_regression, with_constant

Q = np.array([[0.8, 0.2], [0.2, 0.8]])
THREE = randomized_response(3, 2.0, inputs=["no", "rarely", "often"])


def people(rng, n):
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "sex": rng.choice(["f", "m"], n), "region": rng.choice(list("abc"), n)}
    )
    frame["evade"] = (rng.random(n) < expit(-1 + 0.03 * (frame.age - 40) + 0.5 * (frame.sex == "m"))).astype(int)
    odds = np.stack([np.zeros(n), 0.3 + 0.02 * (frame.age - 40), -0.5 + 0.4 * (frame.sex == "m")], axis=1)
    chance = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    frame["drug"] = (rng.random(n)[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    return frame


def test_without_privacy_it_is_logistic_regression():
    """With public columns, or the identity channel, the fit is that of statsmodels' logit."""
    frame = people(np.random.default_rng(301), 1500)
    want = smf.logit("evade ~ age + sex + region + age:sex", frame).fit(disp=0)
    for channels in ({}, {"evade": np.eye(2)}):
        made = logit_regression("evade ~ age + sex + region + age:sex", frame, channels)
        order = [want.params.index.get_loc(name.replace("[", "[T.")) for name in made.names]
        assert np.allclose(made.values, want.params.to_numpy()[order], atol=1e-6)
        assert np.allclose(made.standard_errors[0], want.bse.to_numpy()[order], rtol=1e-5)
        assert np.isclose(made.log_likelihood, want.llf)


def test_without_privacy_it_is_multinomial_regression():
    """Three categories: coefficients and errors of statsmodels' MNLogit."""
    frame = people(np.random.default_rng(302), 1500)
    want = smf.mnlogit("drug ~ age + sex", frame).fit(disp=0)
    made = logit_regression("drug ~ age + sex", frame, {"drug": np.eye(3)})
    names = [name.replace("[", "[T.") for name in made.names]
    assert np.allclose(made.coefficients, want.params.loc[names].to_numpy().T, atol=1e-4)
    assert np.allclose(made.standard_errors, want.bse.loc[names].to_numpy().T, rtol=1e-4)
    assert made.equations == (1, 2)
    assert made.kind == "multinomial"


def test_a_large_epsilon_is_nearly_no_privacy():
    """At epsilon 30 the coefficients are those of the answers."""
    frame = people(np.random.default_rng(303), 800)
    made = logit_regression("evade ~ age", frame, {"evade": randomized_response(2, 30.0)})
    assert np.allclose(made.values, logit_regression("evade ~ age", frame, {}).values, atol=1e-8)


def test_it_is_logistic_regression_of_one_report():
    """A private binary outcome with public predictors: what `logistic_regression` gives, errors included."""
    rng = np.random.default_rng(304)
    frame = people(rng, 2000)
    reports = np.where(rng.random(2000) < 0.8, frame.evade, 1 - frame.evade)
    made = logit_regression("r ~ age", {"r": reports, "age": frame.age}, {"r": Q})
    want = logistic_regression(reports, with_constant(frame[["age"]]), Q)
    assert np.allclose(made.values, want.values, atol=1e-7)
    assert np.allclose(made.covariance, want.covariance, rtol=1e-5)


def test_a_private_predictor_is_summed_over():
    """With a private predictor no parameters, found by a general optimiser, make the reports more likely."""
    rng = np.random.default_rng(305)
    frame = people(rng, 1200)
    first = Channel(Q).sample_indices(frame.evade.to_numpy(), rng)
    second = subset_selection(3, 2.0, 2)
    drug = second.sample_indices(frame.drug.to_numpy(), rng)
    x = (frame.sex == "m").to_numpy().astype(float)
    data = {"r": first, "sex": frame.sex, "d": np.array(range(len(second.outputs)))[drug]}
    channel = Channel(second.matrix, ["no", "rarely", "often"])
    made = logit_regression("r ~ sex + d", data, {"r": Q, "d": channel})

    def minus(t):
        chance = np.exp(np.stack([np.zeros(1200), t[4] + t[5] * x, t[6] + t[7] * x], axis=1))
        chance /= chance.sum(axis=1, keepdims=True)
        yes = expit((t[0] + t[1] * x)[:, None] + np.array([0, t[2], t[3]]))
        seen = yes * Q[1, first][:, None] + (1 - yes) * Q[0, first][:, None]
        return -np.log((chance * second.matrix[:, drug].T * seen).sum(axis=1)).sum()

    want = minimize(minus, np.zeros(8), method="BFGS", options={"gtol": 1e-5})
    assert made.names == ("Intercept", "sex[m]", "d[rarely]", "d[often]")
    assert np.isclose(made.log_likelihood, -want.fun, atol=1e-5)
    assert np.allclose(made.values, want.x[:4], atol=2e-2)


@pytest.mark.filterwarnings("ignore:cov_type not fully supported")
def test_weights_and_clusters_give_the_sandwich():
    """Weighted scores by cluster: statsmodels' clustered errors but for its factor (n - 1)/(n - d)."""
    rng = np.random.default_rng(306)
    frame = people(rng, 1000)
    w, cluster = rng.uniform(0.5, 2.0, 1000), rng.integers(0, 60, 1000)
    made = logit_regression("evade ~ age", frame, {}, sample=SampleDesign(w, clusters=cluster))
    plain = sm.GLM(frame.evade, sm.add_constant(frame[["age"]]), family=sm.families.Binomial(), var_weights=w)
    want = plain.fit(cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False})
    assert np.allclose(made.values, want.params, atol=1e-6)
    assert np.allclose(made.standard_errors[0], want.bse * np.sqrt(60 / 59), rtol=1e-4)
    assert made.degrees == 58  # as R has it: 60 clusters, less one stratum and one slope


def test_many_rows_are_counted_not_kept():
    """A public predictor with two values: 200,000 respondents are two rows of the design."""
    rng = np.random.default_rng(307)
    group, reports = rng.integers(0, 2, 200_000), rng.integers(0, 2, 200_000)
    made = logit_regression("r ~ C(g)", {"r": reports, "g": group}, {"r": Q})
    assert np.abs(made.values).max() < 0.05


def test_the_reference_can_be_chosen():
    """Against the other category a binary outcome has the opposite signs."""
    frame = people(np.random.default_rng(308), 500)
    one, other = (logit_regression("evade ~ age", frame, {"evade": Q}, reference=r) for r in (0, 1))
    assert np.allclose(one.values, -other.values, atol=1e-6)


def test_regressions_without_a_fit_are_refused():
    """Collinear predictors, unknown columns, empty cells, coarse channels, separation."""
    frame = people(np.random.default_rng(309), 300)
    frame["twice"] = 2 * frame.age
    frame["gap"] = ["", *["x", "y"] * 149, "x"]
    for formula in ("evade ~ age + twice", "evade ~ nothing", "evade ~ gap"):
        with pytest.raises(InvalidInput):
            logit_regression(formula, frame, {"evade": Q})
    with pytest.raises(NotIdentifiable):
        logit_regression("evade ~ age", frame, {"evade": [[0.5, 0.5], [0.5, 0.5]]})
    apart = {"y": [0, 0, 0, 1, 1, 1], "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    with pytest.raises(SolverError):
        logit_regression("y ~ x", apart, {"y": np.eye(2)})
    with pytest.raises(InvalidInput):
        logit_regression("evade ~ age", frame, {"evade": Q}, reference="maybe")
    with pytest.raises(InvalidInput):
        logit_regression("evade ~ age", frame, {"evade": Q}, sample=SampleDesign(np.ones(299)))


@pytest.mark.full
def test_intervals_cover():
    """Of a private outcome and a private predictor, intervals hold the truth in 150 surveys as often as they say."""
    rng = np.random.default_rng(310)
    truth, hits = np.array([-0.5, 0.8, 0.6]), np.zeros(3)
    for _ in range(150):
        z, x = rng.integers(0, 2, 1500), rng.integers(0, 2, 1500)
        y = (rng.random(1500) < expit(truth[0] + truth[1] * x + truth[2] * z)).astype(int)
        r, s = (np.where(rng.random(1500) < 0.85, v, 1 - v) for v in (y, z))
        channel = [[0.85, 0.15], [0.15, 0.85]]
        made = logit_regression("r ~ x + s", {"r": r, "x": x, "s": s}, {"r": channel, "s": channel})
        hits += made.intervals().contains(truth)
    # Five standard errors of 150 draws.
    assert np.abs(hits / 150 - 0.95).max() < 5 * np.sqrt(0.05 * 0.95 / 150)


def test_rare_combinations_of_private_predictors_are_penalized():
    """Of 80 combinations most are rare; the likelihood has no finite maximum, and its penalty gives finite slopes."""
    rng, n = np.random.default_rng(3), 3000
    x = {"a": rng.choice(4, n, p=[0.7, 0.2, 0.08, 0.02]), "b": rng.choice(5, n, p=[0.6, 0.3, 0.07, 0.02, 0.01]),
         "c": rng.choice(4, n, p=[0.02, 0.03, 0.15, 0.8])}  # fmt: skip
    y = (rng.random(n) < 1 / (1 + np.exp(0.5 - 0.5 * x["a"]))).astype(int)
    channels = {name: randomized_response(1 + max(column), 1.0) for name, column in x.items()}
    channels["y"] = randomized_response(2, 1.0)
    data = {name: channels[name].sample_indices(column, rng) for name, column in {**x, "y": y}.items()}
    made = logit_regression("y ~ a + b + c", data, channels)
    assert made.method == "penalised likelihood"
    assert made.log_likelihood is None
    assert np.isfinite(made.coefficients).all()
    assert abs(made.coefficients[0, 1] - 0.5) < 3 * made.standard_errors[0, 1]
    assert (made.standard_errors > 0).all()
