"""Formulas against R's rules as statsmodels has them, with public and with private columns, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.special import expit

from ldpopt.channel import Channel
from ldpopt.errors import InvalidInput
from ldpopt_survey import linear_regression, logit_regression
from ldpopt_survey.regress.formula import parse_formula
from ldpopt_survey.regress.moments import logit_by_moments
from ldpopt_survey.regress.regressors import sort_codes


def frame(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    made = pd.DataFrame({"f": rng.choice(list("abc"), n), "g": rng.choice(["x", "y"], n), "z": rng.uniform(1, 5, n)})
    made["k"] = rng.integers(1, 4, n)
    made["two words"] = rng.normal(size=n)
    made["y"] = (rng.random(n) < expit(-1 + 0.5 * (made.f == "b") + 0.3 * made.z * (made.g == "y"))).astype(int)
    made["t"] = 600 + made.z + 2 * (made.f == "c") + rng.normal(size=n)
    return made


FRAME = frame()
FORMULAS = [
    "1", "f", "0 + f", "f - 1", "z:f", "z:f - 1", "f:g", "f*g", "f*z", "0 + f:g", "f + f:g", "z + z:f", "f/g",
    "(f + g + z)**2",
    "(f + g)**2 - f:g", "log(z)", "I(z**2) + z", "np.log(z):g", "C(k)", "C(k)*g", "0 + C(k) + f", "k", "center(z)",
    "C(f, Treatment('b'))", "C(f, Treatment('b')):z", "C(f, Sum)", "exp(-z)", "z:k", "g + z + 0", "scale(z)*g",
]  # fmt: skip


@pytest.mark.full(but=12)
@pytest.mark.parametrize("right", FORMULAS)
def test_factors_are_coded_as_in_r(right):
    """Intercepts, full coding where nothing else has what a term needs, interactions, reference levels, functions.

    The law is the same and the coefficients are the same, but for the order of columns, which their names tell.
    """
    reference = {"scale(z)*g": "standardize(z, ddof=1)*g"}.get(right, right)
    log, exp = np.log, np.exp  # as R has them
    assert callable(log)
    assert callable(exp)
    want = smf.ols(f"t ~ {reference}", FRAME).fit(cov_type="HC1")
    made = linear_regression(f"t ~ {right}", FRAME, {})
    assert np.allclose(np.sort(made.values), np.sort(want.params), rtol=1e-6, atol=1e-6)
    assert np.allclose(np.sort(made.standard_errors[0]), np.sort(want.bse), rtol=1e-6)
    logit = smf.logit(f"y ~ {reference}", FRAME).fit(disp=0, maxiter=200)
    for function in (logit_regression, logit_by_moments):
        fit = function(f"y ~ {right}", FRAME, {})
        assert np.allclose(np.sort(fit.values), np.sort(logit.params), atol=2e-5)


@pytest.mark.parametrize(
    "right", ["f", "0 + f", "z:f", "f:g", "f*g - 1", "f/g", "C(k):f", "C(f, contr.treatment('b')):z"]
)
def test_private_columns_are_coded_like_public_ones(right):
    """With the identity as channel a private predictor gives what the same public one does, by name."""
    channels = {"f": Channel(np.eye(3), ("a", "b", "c")), "k": Channel(np.eye(3), (1, 2, 3))}
    data = FRAME.assign(f=FRAME.f.map({"a": 0, "b": 1, "c": 2}), k=FRAME.k - 1)
    known = {name: channel for name, channel in channels.items() if name in right}
    for function in (linear_regression, logit_by_moments):
        text = f"{'t' if function is linear_regression else 'y'} ~ {right}"
        open_fit = function(text, FRAME, {})
        used = {name: FRAME[name] if name not in known else data[name] for name in FRAME.columns}
        private = function(text, used, known)
        assert private.names == open_fit.names
        assert np.allclose(private.values, open_fit.values, atol=1e-6)
        assert private.levels == open_fit.levels


def test_names_have_the_column_and_the_level():
    """Columns are named as they are, also those that Python could not name, and levels stand in brackets."""
    data = FRAME.rename(columns={"z": "größe", "g": "in.come"}).assign(**{"class": FRAME.k})
    made = linear_regression(
        "t ~ `two words` + größe:in.come + class + log(größe) + C(f, contr.treatment('b'))", data, {}
    )
    assert set(made.names) == {
        "Intercept", "two words", "class", "log(größe)", "größe:in.come[x]", "größe:in.come[y]",
        "C(f, contr.treatment('b'))[a]", "C(f, contr.treatment('b'))[c]",
    }  # fmt: skip
    assert made.levels == {"f": "b", "in.come": "x"}
    assert parse_formula("log(`how many`) ~ `the age` + x.y").columns == ("the age", "x.y")
    assert parse_formula("log(`how many`) ~ `the age` + x.y").outcome == "how many"


def test_functions_of_the_outcome_are_of_its_numbers():
    """log(t) of a public outcome, and of a private one whose answers are numbers."""
    want = smf.ols("np.log(t) ~ z", FRAME).fit()
    assert np.allclose(linear_regression("log(t) ~ z", FRAME, {}).values, want.params)
    made = linear_regression("log(k) ~ z", {"z": FRAME.z, "k": FRAME.k - 1}, {"k": Channel(np.eye(3), (1, 2, 3))})
    assert np.allclose(made.values, smf.ols("np.log(k) ~ z", FRAME).fit().params)
    with pytest.raises(InvalidInput, match="categories"):
        logit_regression("log(y) ~ z", FRAME, {})


def test_declared_categories_give_the_reference_level():
    """The first category that a data frame declares is the reference, whatever the alphabet says."""
    data = FRAME.assign(f=pd.Categorical(FRAME.f, categories=["c", "a", "b", "nobody"]))
    assert linear_regression("t ~ f", data, {}).names == ("Intercept", "f[a]", "f[b]")
    assert linear_regression("t ~ f", data, {}).levels == {"f": "c"}


def test_text_is_a_factor_even_if_it_looks_like_numbers():
    """Columns of text are factors, in the order of their numbers; columns of numbers are numbers."""
    text = FRAME.assign(k=FRAME.k.astype(str))
    assert linear_regression("t ~ k", text, {}).names == ("Intercept", "k[2]", "k[3]")
    assert linear_regression("t ~ k", FRAME, {}).names == ("Intercept", "k")


@pytest.mark.parametrize(
    "text",
    ["", "y", "y ~", "~ a", "y ~ a +", "y ~ + a +", "y ~ a b", "y ~ 2", "y ~ y", "y ~ C(a", "y ~ a ~ b", "y ~ 0",
     "y ~ `a", None, 3, "y ~ :a", "- ~ a", "y + x ~ a", "y ~ a | b", "y ~ .", "y:x ~ a", "C(y) ~ a", "y ~ log(y)",
     "y ~ open('x')", "y ~ __import__('os').system('true')", "y ~ log.__self__(a)",
     "y ~ [x for x in a]", "y ~ a[0]", "y ~ np.load('x')", "y ~ Q('a')", "y ~ lag(a)", "y ~ f'{a}'", "y ~ column_0_",
     "y ~ contr.__init__(a)", "log(1) ~ a"]
)  # fmt: skip
def test_invalid_formulas_are_refused(text):
    """Other input is one clear error, and no Python is run but the listed functions."""
    with pytest.raises(InvalidInput, match="formula"):
        parse_formula(text)


def test_functions_that_the_columns_do_not_have_are_refused():
    """Logarithms of zero and of text, all answers of a private column, and too few values."""
    private = {"z": Channel(np.eye(3), (1, 2, 3))}
    some = {"z": FRAME.k - 1, "t": FRAME.t, "f": FRAME.f}
    for text in ("t ~ scale(z)", "t ~ poly(z, 2)", "t ~ f + bs(z, df=3)"):
        with pytest.raises(InvalidInput, match="of public columns"):
            linear_regression(text, some, private)
    for text in ("t ~ log(zero)", "t ~ log(f)", "t ~ I(f + 1)", "t ~ f**z", "t ~ I(z / zero)"):
        with pytest.raises(InvalidInput, match="formula"):
            linear_regression(text, FRAME.assign(zero=0.0), {})


def test_splines_are_of_all_respondents():
    """The knots of a spline, and the mean of a centred column, are those of the respondents."""
    many = pd.concat([FRAME, FRAME[FRAME.k == 1]]).assign(k2=lambda data: data.k)
    for right, reference in (("center(k2)", "center(k2)"), ("bs(z, df=4) + g", "bs(z, df=4) + g")):
        made, want = linear_regression(f"t ~ {right}", many, {}), smf.ols(f"t ~ {reference}", many).fit()
        assert np.allclose(np.sort(made.values), np.sort(want.params), rtol=1e-5)


def test_levels_are_ordered_numbers_first():
    """Numbers come by their size, whatever they are written as, and other labels after them as text."""
    code, kinds = sort_codes(np.array([0, 1, 2, 3, 0]), ["b", "10", 9, "a"])
    assert kinds == [9, "10", "a", "b"]
    assert code.tolist() == [3, 1, 0, 2, 3]
