"""The search over directions up to symmetry, against all patterns, and forged numbers."""

import math

import numpy as np
import pytest

from ldpopt.design import Marginals
from ldpopt.design.estimation import scores
from ldpopt.design.estimation.prices import Charges
from ldpopt.design.estimation.scores import SymmetricScores
from ldpopt.numbers.enclosures import FLOAT

EPSILON = 1.5


def kernel(shape, kappas):
    """(d, K) blocks of one kappa for each question, at the even law."""
    scale = np.concatenate([np.full(k - 1, kappa) for k, kappa in zip(shape, kappas, strict=True)])
    return Marginals(shape).directions.T * scale[:, None] / math.prod(shape)


def best(kernel, epsilon=EPSILON):
    """The largest |K u_q|^2 over all 2^K patterns."""
    size = kernel.shape[1]
    columns = np.where((np.arange(2**size)[:, None] >> np.arange(size)) & 1, math.exp(epsilon), 1.0)
    return float(((columns @ kernel.T / columns.mean(axis=1)[:, None]) ** 2).sum(axis=1).max())


def gain_bound(shape, kernel, level, law=None):
    size = math.prod(shape)
    law = np.full(size, 1 / size) if law is None else law
    priced = Charges.from_kernel(FLOAT.of(kernel), law, np.zeros(size), np.zeros((size, size)))
    return SymmetricScores(level, shape).gain_bound(priced, FLOAT.of(EPSILON))


SHAPES = [((2, 2, 2), (1.0, 1.0, 1.0)), ((2, 2, 3), (1.0, 1.0, 1.3)), ((3, 4), (0.9, 1.1)), ((2, 6), (1.0, 0.5)),
          ((3, 3), (1.0, 1.0)), ((2, 2, 2), (1.0, 1.2, 1.0)), ((10,), (1.0,)), ((2,), (1.0,))]  # fmt: skip


@pytest.mark.parametrize("compared", [0, 300_000])
@pytest.mark.parametrize(("shape", "kappas"), SHAPES)
def test_a_level_is_proved_exactly_if_no_pattern_gains_more(shape, kappas, compared, monkeypatch):
    """A level 1e-9 above the largest of all 2^K gains is proved, by cones and set by set; one 1e-9 below is not."""
    monkeypatch.setattr(scores, "MAX_SETS_COMPARED", compared)
    own = kernel(shape, kappas)
    reached = best(own)
    assert reached * (1 + 1e-9) <= gain_bound(shape, own, reached * (1 + 1e-9)) <= reached * (1 + 1.1e-9)
    assert gain_bound(shape, own, reached * (1 - 1e-9)) == math.inf


@pytest.mark.parametrize("scale", [1e-6, 1e-2])
def test_the_bound_covers_asymmetric_kernels_and_distributions(scale):
    """What kernel and law differ from symmetric ones is added, so that no pattern gains more than what is proved."""
    rng = np.random.default_rng(3)
    own = kernel((2, 2, 3), (1.0, 1.0, 1.3))
    level = best(own) * (1 + 10 * scale)
    for _ in range(5):
        changed = own + scale * rng.normal(size=own.shape) / 12
        changed -= changed.mean(axis=1, keepdims=True)
        assert best(changed) <= gain_bound((2, 2, 3), changed, level) < level * (1 + 60 * scale)
    law = np.full(12, 1 / 12) * (1 + scale * rng.uniform(-1, 1, 12))
    assert gain_bound((2, 2, 3), own, level, law / law.sum()) > level


@pytest.mark.parametrize(("shape", "kappas"), [((2, 3), (1.0, 0.7)), ((2, 2, 3), (0.0, 0.0, 1.3))])
def test_a_kernel_may_have_a_row_for_each_answer(shape, kappas):
    """Rows for answers are rows for differences, turned; a question of which nothing is wanted earns nothing."""
    cells = np.unravel_index(np.arange(math.prod(shape)), shape)
    own = np.vstack([(np.eye(k)[one].T - 1 / k) * kappa for k, one, kappa in zip(shape, cells, kappas, strict=True)])
    own = own / math.prod(shape)
    level = best(own) * (1 + 1e-9)
    assert best(own) <= gain_bound(shape, own, level) <= level * (1 + 1e-10)
    assert gain_bound(shape, own, best(own) * (1 - 1e-9)) == math.inf
    assert gain_bound(shape, own[:-1], 1e9) == math.inf


@pytest.mark.parametrize("level", [math.nan, math.inf, -1.0, 0.0])
@pytest.mark.parametrize("shape", [(2, 2, 3), (4, 3)])
def test_forged_numbers_prove_no_bound(level, shape):
    """A level that is no positive number, and a shape of another product, fail closed."""
    own = kernel((2, 2, 3), (1.0, 1.0, 1.0))
    assert gain_bound(shape, own, level) == math.inf
    assert gain_bound((4, 3), own, 1e9) == math.inf
    assert gain_bound((3, 2, 2), own, best(own) * (1 + 1e-9)) > best(own)


def test_prices_of_rows_are_paid_and_pairs_prove_nothing():
    """Every column pays at least the least price for its probability."""
    own, paid = kernel((2, 2), (1.0, 1.0)), np.array([0.3, 0.2, 0.4, 0.2])
    level = best(own) * (1 + 1e-9)
    priced = Charges.from_kernel(FLOAT.of(own), np.full(4, 0.25), paid, np.zeros((4, 4)))
    assert SymmetricScores(level, (2, 2)).gain_bound(priced, FLOAT.of(EPSILON)) == pytest.approx(level - 0.8)
    paired = Charges.from_kernel(FLOAT.of(own), np.full(4, 0.25), paid, np.ones((4, 4)))
    assert SymmetricScores(level, (2, 2)).gain_bound(paired, FLOAT.of(EPSILON)) == math.inf
