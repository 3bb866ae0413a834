"""The criterion of a joint design for the proportions of every question of a questionnaire [KW].

A respondent's whole vector of answers is one input: a cell of the product of the questions' answers, the last question
fastest. The proportions of one question are sums of cells. So the sum of the variances of all proportions of all
questions is tr(W C). Here C is the covariance (K, K) of the estimated cells, and W has few directions, sum_j (k_j - 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ldpopt.design.utilities.criterion import LinearCriterion
from ldpopt.errors import Phrase, invalid
from ldpopt.numbers.enclosures import Arithmetic, Enclosure
from ldpopt.values.distribution import Array, distribution, finite_array

MAX_CELLS = 4096  # Cells of a product of answers: its factor is a matrix with one row per cell.


@dataclass(frozen=True, eq=False)
class Marginals(LinearCriterion):
    """The sum of the variances of all proportions of all questions, for jointly reported answers [KW].

    - `shape` : the number of answers of each question, each at least 2. `FisherInformation` then takes a pilot of the
      product, (K,) with K = prod(shape). Its last question changes fastest (`pilot` makes one of marginals).
    - `weights` : one number a question, the weight of each of its variances; or for each question one number a share.
      None weighs every variance by 1.
    - `pairs` : pairs of questions, by position, whose two-way shares count as well.
    - `contrasts` : (K, r) further linear functions of the cells whose variances count as well, or None.

    Raises `InvalidInput` for anything else.

    >>> from ldpopt.design import FisherInformation
    >>> marginals = Marginals((2, 3))
    >>> u = FisherInformation(marginals.pilot([0.5, 0.5], [0.2, 0.3, 0.5]), marginals)
    >>> round(u.value_without_privacy, 12)  # 2 * 0.25 for the first question, and 0.62 for the second
    1.12
    """

    shape: tuple[int, ...]
    weights: Any = None
    pairs: Sequence[tuple[int, int]] = ()
    contrasts: Any = None
    directions: Array = field(init=False, repr=False)
    """F (K, d), with W = F F^T up to directions of the sum of the proportions, which is 1."""

    def __post_init__(self) -> None:
        if isinstance(self.shape, str) or not isinstance(self.shape, Sequence | np.ndarray) or not len(self.shape):
            raise invalid("shape", "a number of answers for each question", self.shape)
        for k in self.shape:
            if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 2:
                raise invalid("shape", "an integer of at least 2 for each question", k)
        shape = tuple(int(k) for k in self.shape)
        if math.prod(shape) > MAX_CELLS:
            raise invalid("shape", f"at most {MAX_CELLS} cells", math.prod(shape))
        vars(self).update(shape=shape)
        pairs = tuple(self._pair(pair) for pair in self.pairs)
        if len(set(pairs)) < len(pairs):
            raise invalid("pairs", "each pair of questions once", Phrase("one twice"))
        vars(self).update(pairs=pairs)
        weights = self._weights()
        blocks = [self._indicators((j,)) @ _root(weights[j]) for j in range(len(shape))]
        if pairs or self.contrasts is not None:
            blocks += [self._indicators(pair) @ _root(np.ones(shape[pair[0]] * shape[pair[1]])) for pair in pairs]
            if self.contrasts is not None:
                contrasts = finite_array(self.contrasts, "contrasts", 2)
                if len(contrasts) != math.prod(shape):
                    raise invalid("contrasts", f"{math.prod(shape)} rows", len(contrasts))
                object.__setattr__(self, "contrasts", contrasts)
                blocks.append(contrasts - contrasts.mean(axis=0))
            left, size, _ = np.linalg.svd(np.hstack(blocks), full_matrices=False)
            blocks = [(left * size)[:, size > 1e-12 * size.max()]]
        object.__setattr__(self, "directions", np.hstack(blocks))

    def _pair(self, pair: Any) -> tuple[int, int]:
        try:
            first, second = (int(j) for j in pair)
        except (TypeError, ValueError):
            raise invalid("pairs", "pairs of positions of questions", pair) from None
        if not (0 <= first < len(self.shape) and 0 <= second < len(self.shape) and first != second):
            raise invalid("pairs", f"two different positions below {len(self.shape)}", pair)
        return first, second

    def _weights(self) -> list[Array]:
        """Return the weights of the proportions of each question."""
        if self.weights is None:
            return [np.ones(k) for k in self.shape]
        if isinstance(self.weights, str) or len(self.weights) != len(self.shape):
            raise invalid("weights", f"one entry for each of {len(self.shape)} questions", Phrase("another number"))
        weights = []
        for entry, k in zip(self.weights, self.shape, strict=True):
            share_weights = finite_array(np.full(k, entry) if np.ndim(entry) == 0 else entry, "weights", 1)
            if len(share_weights) != k or share_weights.min() < 0 or not (share_weights > 0).any():
                raise invalid(
                    "weights", f"{k} numbers of at least 0, not all 0, for a question of {k} answers", share_weights
                )
            weights.append(share_weights)
        return weights

    def _indicators(self, questions: tuple[int, ...]) -> Array:
        """Return indicators (K, answers) of the joint answers of every cell to some questions."""
        cells = np.stack(np.unravel_index(np.arange(math.prod(self.shape)), self.shape), axis=1)
        sizes = tuple(self.shape[j] for j in questions)
        answer = np.ravel_multi_index(tuple(cells[:, j] for j in questions), sizes)
        return np.eye(math.prod(sizes))[answer]

    @property
    def has_only_single_questions(self) -> bool:
        """True if only the proportions of single questions count."""
        return not self.pairs and self.contrasts is None

    @property
    def question_weights(self) -> tuple[float, ...] | None:
        """The weight of each question; None if its proportions have different ones."""
        weights = self._weights()
        return (
            tuple(float(share_weights[0]) for share_weights in weights)
            if all(np.ptp(share_weights) == 0 for share_weights in weights)
            else None
        )

    @property
    def name(self) -> str:
        """The name of the criterion, including the number of questions."""
        additions = [f"{len(self.pairs)} pairs"] if self.pairs else []
        additions += [f"{self.contrasts.shape[1]} contrasts"] if self.contrasts is not None else []
        prefix = "" if self.weights is None else "weighted "
        return f"{prefix}sum of variances of all shares of {', '.join([f'{len(self.shape)} questions', *additions])}"

    def check(self, k: int) -> None:
        """Raise `InvalidInput` if the product of the questions' answers does not have k cells."""
        if math.prod(self.shape) != k:
            raise invalid("prior", f"{math.prod(self.shape)} entries for questions of {self.shape} answers", k)

    def factor(self, k: int) -> Array:
        """Return F (K, d): an orthonormal basis of each question's differences, times roots of weights."""
        return self.directions

    def enclosed_factor(self, k: int, arithmetic: Arithmetic) -> Enclosure:
        """Enclose F if every question has one weight; other roots are taken as their floats."""
        weights = self._weights()
        if not self.has_only_single_questions or any(np.ptp(share_weights) > 0 for share_weights in weights):
            return arithmetic.of(self.directions)
        blocks = []
        for j, share_weights in enumerate(weights):
            contrasts, squares = helmert(len(share_weights))
            scale = (arithmetic.of(np.full(len(squares), share_weights[0])) / squares).sqrt()
            blocks.append(arithmetic.of(self._indicators((j,)) @ contrasts) * scale[None, :])
        return arithmetic.concatenate(blocks, 1)

    def pilot(self, *marginals: Any) -> Array:
        """Return the distribution (K,) of independent answers with these marginals; uniform without marginals.

        >>> Marginals((2, 2)).pilot([0.5, 0.5], [0.25, 0.75])
        array([0.125, 0.375, 0.125, 0.375])
        """
        if not marginals:
            return np.full(math.prod(self.shape), 1 / math.prod(self.shape))
        if len(marginals) != len(self.shape):
            raise invalid("marginals", f"one for each of {len(self.shape)} questions", len(marginals))
        laws = [distribution(law, f"marginals[{j}]") for j, law in enumerate(marginals)]
        for j, (law, k) in enumerate(zip(laws, self.shape, strict=True)):
            if len(law) != k:
                raise invalid(f"marginals[{j}]", f"{k} entries", len(law))
        return np.array([math.prod(cell) for cell in product(*laws)])

    def __repr__(self) -> str:
        return f"Marginals({self.shape})"


def helmert(k: int) -> tuple[Array, Array]:
    """Return integers (k, k - 1) in orthogonal columns of sum 0, and the squared lengths (k - 1,) of the columns."""
    i = np.arange(1, k)
    contrasts = np.where(np.arange(k)[:, None] < i, 1.0, 0.0)
    contrasts[i, i - 1] = -i
    return contrasts, i * (i + 1.0)


def _root(weights: Array) -> Array:
    """Return R (k, r) such that R R^T and diag(weights) give the same weighted sum of variances.

    The proportions sum to 1.
    """
    contrasts, squares = helmert(len(weights))
    basis = contrasts / np.sqrt(squares)
    if np.ptp(weights) == 0:
        return np.asarray(basis * math.sqrt(weights[0]))
    values, vectors = np.linalg.eigh(basis.T @ (weights[:, None] * basis))
    is_positive = values > 1e-14 * values[-1]
    return np.asarray(basis @ vectors[:, is_positive] * np.sqrt(values[is_positive]))
