import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from ldpopt.errors import InvalidInput
from ldpopt.mechanisms import LaplacePair, laplace


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_guarantees(epsilon):
    """epsilon-DP and (1 - e^(-epsilon/2))-TV, whatever the sensitivity; variance 2 (sensitivity/epsilon)^2."""
    m = laplace(epsilon, 3.0)
    assert m.pair == LaplacePair(epsilon)
    assert m.eta >= -math.expm1(-epsilon / 2)
    assert m.eta == pytest.approx(-math.expm1(-epsilon / 2), rel=1e-13)
    assert m.variance == pytest.approx(2 * (3 / epsilon) ** 2, rel=1e-15)


@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1.0, 10.0])
def test_restricted_kl(epsilon):
    """The formula of [CIM, Thm 9] is the supremum of a - log E exp(a Y) = a + log(1 - a^2/epsilon^2) over a."""
    guarantee = laplace(epsilon, 2.0).restricted_kl()
    if epsilon > 1e-3:
        root = math.sqrt(1 + epsilon**2)
        printed = math.log(1 - ((1 - root) / epsilon) ** 2) + root - 1
        assert guarantee.value == pytest.approx(printed, rel=1e-9)
        found = minimize_scalar(
            lambda a: -a - math.log1p(-((a / epsilon) ** 2)),
            bounds=(0, epsilon * (1 - 1e-12)),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert guarantee.value == pytest.approx(-found.fun, rel=1e-8)
    else:
        assert guarantee.value == pytest.approx(epsilon**2 / 4, rel=1e-9)
    assert guarantee.value < laplace(epsilon).pair.renyi(1).value


def test_moment_generating_function_by_quadrature():
    """E exp(a Y) = 1/(1 - a^2/epsilon^2): the step of [CIM, Thm 9] that the closed form rests on."""
    a, epsilon = 0.4, 1.0
    value = 2 * quad(lambda y: epsilon / 2 * math.exp(-epsilon * y) * math.cosh(a * y), 0, 100)[0]
    assert value == pytest.approx(1 / (1 - (a / epsilon) ** 2), rel=1e-10)


def test_sample():
    """Noise has the stated scale (seed 1, 5 standard errors), shape and type."""
    m, rng = laplace(0.5), np.random.default_rng(1)
    noise = m.sample(np.zeros(20_000), rng)
    assert np.mean(np.abs(noise)) == pytest.approx(2.0, abs=5 * 2 / math.sqrt(20_000))
    assert isinstance(m.sample(3, rng), float)
    assert m.sample([[1, 2]], rng).shape == (1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: laplace(-1.0), "epsilon"),
        (lambda: laplace(1.0, 0.0), "sensitivity: expected a positive finite number"),
        (lambda: laplace(1.0, math.inf), "sensitivity"),
        (lambda: laplace(1.0).sample([1.0], "3"), "rng"),
        (lambda: laplace(1.0).sample([math.nan], np.random.default_rng()), "answers"),
        (lambda: laplace(1.0).sample(["a"], np.random.default_rng()), "answers"),
        (lambda: laplace(1.0).restricted_renyi(1.0), "order: expected a finite number of at least 1.01"),
    ],
)
def test_bad_input_is_refused(call, message):
    """Parameters, answers and generators are checked."""
    with pytest.raises(InvalidInput, match=message):
        call()
