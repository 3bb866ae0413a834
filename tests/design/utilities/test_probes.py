"""What a user's own utility promises is tried when it is made, and refused by name where it does not hold."""

import math

import numpy as np
import pytest

from ldpopt.design import (
    ApproximateLDP,
    ColumnUtility,
    Divergence,
    LocalDP,
    MutualInformation,
    WorstOf,
    optimal_channel,
)
from ldpopt.design.utilities.base import probe_user_utility
from ldpopt.divergences import KL
from ldpopt.errors import InvalidInput

PRIOR = np.array([0.5, 0.3, 0.2])


class Guess(ColumnUtility):
    """The chance to guess; a case changes its functions."""

    name, inputs, value_without_privacy, size = "guess", None, 1.0, 3

    def guess(self, matrix):
        return (PRIOR[:, None] * matrix).max(axis=0)

    def columns(self, matrix):
        return np.atleast_2d(self.guess(matrix))

    def gradients(self, matrix):
        return (np.eye(3) * PRIOR)[(PRIOR[:, None] * matrix).argmax(axis=0)][None]


def ratio(matrix):
    """The first entry over the second."""
    return matrix[0] / np.maximum(matrix[1], 1e-300)


def bump(width, height):
    """A factor that is above one where the ratio of two entries is within `width` of 1.8."""
    return lambda q: 1 + height * np.clip(1 - np.abs(ratio(q) - 1.8) / width, 0, 1)


HOMOGENEOUS, CONVEX, ALONE = "positively homogeneous function, mu\\(c q\\)", "convex function", "each column alone"
BROKEN = {
    "a sum of squares": (lambda g, q: (q**2).sum(axis=0), HOMOGENEOUS),
    "a power near one": (lambda g, q: g**1.001, HOMOGENEOUS),
    "degree 0": (lambda g, q: g / np.maximum(q.sum(axis=0), 1e-300), HOMOGENEOUS),
    "negative degree": (lambda g, q: 1 / np.maximum(g, 1e-300), "0 at a column of zeros"),
    "a constant added": (lambda g, q: g + 1e-3, "0 at a column of zeros"),
    "twice as much at a large scale": (lambda g, q: g * np.where(q.max(axis=0) > 1e7, 2, 1), HOMOGENEOUS),
    "twice as much at a small scale": (lambda g, q: g * np.where(q.max(axis=0) < 1e-7, 2, 1), HOMOGENEOUS),
    "rounded to single precision": (lambda g, q: g.astype(np.float32).astype(float), HOMOGENEOUS),
    "concave": (lambda g, q: np.sqrt(q[0] * q[1]), CONVEX),
    "the smallest entry": (lambda g, q: q.min(axis=0), CONVEX),
    "minus the utility": (lambda g, q: -g, CONVEX),
    "a narrow bump": (lambda g, q: g * bump(0.01, 0.1)(q), CONVEX),
    "a low bump": (lambda g, q: g * bump(0.1, 1e-5)(q), CONVEX),
    "a jump up": (lambda g, q: g * np.where(ratio(q) > 2, 1.3, 1), CONVEX),
    "a jump down": (lambda g, q: g * np.where(ratio(q) > 2, 0.7, 1), CONVEX),
    "concave near the faces": (lambda g, q: g + np.minimum(1e6 * q.min(axis=0), 1e-3 * q.max(axis=0)), CONVEX),
    "not a number": (lambda g, q: np.where((ratio(q) > 2) & (ratio(q) < 2.2), np.nan, g), "none of them NaN"),
    "infinite inside": (lambda g, q: np.where((ratio(q) > 2) & (ratio(q) < 2.2), np.inf, g), "finite values"),
    "by place": (lambda g, q: g * np.linspace(1, 2, q.shape[1]), ALONE),
    "cumulative": (lambda g, q: np.cumsum(g), ALONE),
    "by the number of columns": (lambda g, q: g * q.shape[1], ALONE),
    "in units of the largest column": (lambda g, q: g / max(g.max(), 1e-300), f"{ALONE}|{HOMOGENEOUS}"),
}


@pytest.mark.parametrize(("function", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_named_with_its_column(function, said):
    """Each property that a proof relies on is refused where it fails, with the property and a column."""
    broken = type("Broken", (Guess,), {"columns": lambda self, q: np.atleast_2d(function(self.guess(q), q))})
    with pytest.raises(InvalidInput, match=f"columns of guess: expected .*({said})") as refused:
        broken()
    assert "at the column (" in str(refused.value) or "zeros" in str(refused.value)


SLOPES = {
    "half of it": lambda g: g / 2,
    "twice it": lambda g: 2 * g,
    "of another input": lambda g: g[..., [1, 2, 0]],
    "minus it": lambda g: -g,
    "zero": lambda g: 0 * g,
    "a little off": lambda g: g + 1e-4,
}


@pytest.mark.parametrize("function", SLOPES.values(), ids=SLOPES)
def test_wrong_gradients_are_refused(function):
    """A gradient touches its function and is nowhere above it, or the utility is refused."""
    broken = type("Broken", (Guess,), {"gradients": lambda self, q: function(Guess.gradients(self, q))})
    with pytest.raises(InvalidInput, match=r"gradients of guess: expected a linear function .* at the column"):
        broken()


STATED = {
    "less than full disclosure": (
        {"value_without_privacy": 0.5},
        "value_without_privacy of guess: expected at least 1",
    ),
    "contraction": ({"contracts": True}, "contracts of guess: expected values of at most"),
    "information": ({"information": True, "prior": PRIOR}, "mutual information that it says it is"),
    "an error": ({"error": True}, "more is better"),
    "another value": ({"value": lambda self, channel: 1.0}, "value of guess"),
    "other enclosures": (
        {"enclosed_columns": lambda self, base, rise: (rise.sum(axis=0) * 0 + base)[None, :]},
        "enclosed_columns of guess: expected intervals that hold",
    ),
    "a pair of laws": ({"pair": (PRIOR, PRIOR[::-1]), "f": KL}, "divergence of two laws that it says it is"),
    "a failure": ({"columns": lambda self, q: {}[0]}, "values for every non-negative matrix .* KeyError"),
}


@pytest.mark.parametrize(("changed", "said"), STATED.values(), ids=STATED)
def test_statements_of_a_class_are_tried(changed, said):
    """A class attribute such as `value_without_privacy` is compared with the values themselves."""
    with pytest.raises(InvalidInput, match=said):
        type("Stated", (Guess,), changed)()


@pytest.mark.parametrize("k", [2, 3, 14, 300])
@pytest.mark.parametrize("law", ["even", "rough", "with zeros"])
def test_utilities_that_keep_their_promises_are_taken(k, law):
    """No probe refuses a subclass of a utility that this package proves to be convex and homogeneous."""
    rng = np.random.default_rng(k)
    p, q = np.exp(-3 * rng.random((2, k))) if law != "even" else (np.ones(k), 1.0 + np.arange(k))
    p[0] *= law != "with zeros"
    p, q = p / p.sum(), q / q.sum()
    for kind, arguments in ((Divergence, (KL, p, q)), (MutualInformation, (p,)), (WorstOf, (KL, p, [q, q[::-1]]))):
        if kind is MutualInformation and np.count_nonzero(p) < 2:
            continue
        assert type("Mine", (kind,), {})(*arguments).size == k
    if k == 3:
        assert Guess().name == "guess"


def test_a_bump_within_the_ratio_of_the_constraint_is_found():
    """What only shows within the ratio of the constraints is tried there: both two-valued columns and mixtures."""

    class Late(Guess):
        on = False

        def columns(self, matrix):
            inside = (matrix.max(axis=0) <= 1.011 * matrix.min(axis=0)) & (matrix.max(axis=0) > 0) & self.on
            return np.atleast_2d(self.guess(matrix) * np.where(inside & (ratio(matrix) > 1.004), 1.01, 1.0))

    utility = Late()
    utility.on = True
    with pytest.raises(InvalidInput, match="convex"):
        optimal_channel(utility, LocalDP(0.01))


def test_the_certified_line_names_the_trusted_parts():
    """What nobody proved of an own utility stands beside "certified", in the verdict and in the note."""
    design = optimal_channel(Guess(), LocalDP(1.0))
    assert design.certified
    line = next(line for line in repr(design).splitlines() if line.strip().startswith("certified"))
    assert "taken on trust: what the class Guess computes, that guess is convex and homogeneous" in line
    assert "takes on trust" in design.note
    assert "taken on trust" in repr(design.verify())
    plain = optimal_channel(MutualInformation([0.5, 0.5]), LocalDP(1.0))
    assert "trust" not in repr(plain) + plain.note


def test_probing_is_repeatable_and_does_not_move_the_design():
    """A utility is refused always or never, and probing it again changes nothing."""
    utility = Guess()
    before = optimal_channel(utility, ApproximateLDP(1.0, 0.1), certify=False).value
    probe_user_utility(utility, [math.e])
    probe_user_utility(utility)
    assert optimal_channel(utility, ApproximateLDP(1.0, 0.1), certify=False).value == before
