"""The certificate of designs for estimation: no channel within the constraints has a smaller criterion.

The information of one private report about many questions -> bounds on errors, and on a survey's respondents.

Let phi_1, ..., phi_d be functions of the answer with mean 0 and covariance I under its distribution p. A report y with
column q has the score a = E[q phi]/E[q]. The information of one report about the means of phi is Lambda, the average of
a a^T. So tr Lambda <= rho^2, the largest |a|^2 of any column. Let T = v.phi for the direction v of a, so E T = 0 and E
T^2 = 1. The best column is e^epsilon where T > r, and (e^epsilon - 1) E(T - r)_+ = r = |a|. As E(T - r)_+ is at most
(sqrt(1 + r^2) - r)/2 [Scarf], rho^2 <= sinh^2(epsilon/2), for any answers and any distribution.

For yes/no questions with independent even answers, T is symmetric: E(T - r)_+ = (E max(|T|, r) - r)/2. Below r = 1/2,
max(|t|, r) <= (1 + t^2)/2, so that r <= tanh(epsilon/2). Beyond, max(|t|, r) <= r + t^2/(4 r), so that r^2 <=
(e^epsilon - 1)/8; for epsilon <= log 3 that is at most 1/4. For m of them the best column is e^epsilon on a set A of
answer vectors and 1 elsewhere. With answers +1 and -1, let n = |A|, let s be the sum of the vectors of A, and E =
e^epsilon. Then rho^2 is the largest (E - 1)^2 |s|^2 / (2^m + (E - 1) n)^2. Let M_m(n) be the largest |s|^2 of n
vectors; M_m(n) = M_m(2^m - n), because the complement has the sum -s. Up to eight questions all sets were compared. Up
to seven the best c questions at random, answered together, are optimal at every epsilon. For more than eight, cut A by
the first answer into sets of n0 and n1 vectors. Then s has the first entry n1 - n0, and the others are the sum of
theirs, so that

    M_m(n0 + n1) <= max (n1 - n0)^2 + (sqrt M_(m-1)(n0) + sqrt M_(m-1)(n1))^2.

Beyond fourteen, |s| <= 2^m f(n/2^m) for n <= 2^(m-1). Here f is the least of two arcs B phi(Phi^-1((a + S)/A)), with
phi and Phi of the normal distribution. The cut preserves this for every m. The proof is in
docs/papers/questionnaires.tex, and its computation in docs/papers/halving.py. Each arc is concave, so f(a) <= v (a + S)
+ c, the tangent at any x = Phi^-1((a + S)/A). Here v = -x B/A and c = B (phi(x) + x Phi(x)).

Let F^T p be estimated from n reports, S = F^T (diag p - p p^T) F. By Cramer and Rao its covariance is at least S^(1/2)
Lambda^-1 S^(1/2)/n, and by Cauchy and Schwarz the trace of that is at least (tr S^(1/2))^2/(n rho^2). This holds for
unbiased estimates and every protocol, interactive or not, whose part for each respondent is epsilon-LDP. It is sharper
where the best channel for all questions together is known by a kernel K: no channel has a sum sum_y P(y) |K u_y|^2
above `most` (`estimation.proof`). Let K have a row for each target f_j, divided by its target standard error. Then
n >= sum_j (K_j.(f_j - p.f_j))^2 / most. This holds for interactive protocols as well, since the information of each
part is that of a channel.

tr S^(1/2) is the sum of the singular values of A = diag(p)^(1/2) (F - 1 p^T F), and so at least tr(Z^T A)/|Z| for any
Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ldpopt.design.constraints.base import plain_caps, tanh_of_half
from ldpopt.design.estimation.policy import columns_for, pricing
from ldpopt.design.estimation.prices import MAX_INPUTS_ALL_PRICED, Charges
from ldpopt.design.estimation.staircase import AnyRelaxation, Columns, StaircaseColumns
from ldpopt.design.kernel.certificate import Certificate, Verification, unchecked_verification
from ldpopt.design.kernel.listed import Caps
from ldpopt.design.kernel.numbers import (
    Unproved,
    expect,
    nonnegative,
    nonnegative_array,
    pair_prices,
    real_array,
    require,
    weights_array,
)
from ldpopt.design.registry import Kind
from ldpopt.design.utilities.criterion import LinearCriterion
from ldpopt.design.utilities.fisher_information import FisherInformation
from ldpopt.design.utilities.laws import law
from ldpopt.design.utilities.marginals import Marginals
from ldpopt.design.work import Work, count_numbers, positive_budget
from ldpopt.errors import InvalidInput
from ldpopt.files.atomic import write_text
from ldpopt.numbers.enclosures import FLOAT, Arithmetic, Enclosure, arithmetic
from ldpopt.numbers.rounding import ceil_digits
from ldpopt.values.distribution import Array
from ldpopt.values.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceDual(Certificate):
    """A proof, by the equivalence theorem, that no channel within the caps has a criterion below `bound` [KW].

    Let report y have the probability w_y and the centered column u_y (`utilities.criteria`). For any matrix K (r, k),
    every channel has sum_y w_y |K u_y|^2 <= sum lambda + eta sum nu + t. Here t is the largest gain of any column at
    the multipliers lambda and nu (`estimation.prices`). The criterion turns this into a bound on itself.

    - `prior` : the distribution of the bound: the utility's own, or a member of its neighborhood, because the worst
      case is at least the criterion there.
    - `kernel` : K (r, k), of the shape that the criterion requires.
    - `rows`, `pairs` : multipliers lambda (k,) and nu >= 0 (k, k); the diagonal is ignored.
    - `relaxed` : the relaxation of the columns, or the branching of sets, if there are too many columns to price every
      one; else None.

    In exact arithmetic, patterns of up to 12 categories are priced in 256-bit ball arithmetic. Patterns of more
    categories, branches, and the least eigenvalue of a relaxation, are computed in floats with a proved error: as
    rigorous, but not sharper.
    """

    proves = FisherInformation
    prior: Array
    kernel: Array
    rows: Array
    pairs: Array
    relaxed: AnyRelaxation | None = None

    def work(self) -> Work:
        """Bound the work of products with the kernel, and of pricing or relaxing all columns."""
        k, rows = self.answers, count_numbers(self.kernel) / max(self.answers, 1)
        return Work.on(float(k) ** 2, 40.0 + 10.0 * rows) + pricing(k, rows, self.constraints, self.relaxed)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the criterion's bound from the largest possible sum_y w_y |K u_y|^2."""
        utility = self.utility
        k, criterion = utility.size, utility.criterion
        prior = nonnegative_array(self.prior, (k,), "the prior")
        if not utility.stands_for(prior):
            raise Unproved("the bound is for a distribution that is neither the prior nor in its neighbourhood")
        kernel = real_array(self.kernel, (criterion.kernel_rows(k), k), "the kernel")
        rows = real_array(self.rows, (k,), "the row multipliers")
        pairs = pair_prices(self.pairs, k, "the pair multipliers")
        criterion_kernel = criterion.kernel(kernel, arithmetic)
        charges = Charges.from_kernel(criterion_kernel, prior, rows, pairs)
        largest_gain = self._column_form(utility, bool(pairs.any())).gain_bound(charges, self.relaxed)
        epsilon, eta = plain_caps(self.constraints)
        cap = Caps.from_constraints(self.constraints, arithmetic).eta if epsilon < np.inf else eta
        information_bound = (charges.total + arithmetic.of(pairs).sum() * cap + largest_gain).ends[1]
        require(
            np.isfinite(information_bound.upper) and information_bound.lower > 0,
            "the multipliers do not bound what the kernel can earn",
        )
        bound: Enclosure | None = criterion.bound(criterion_kernel, information_bound, charges.prior)
        if bound is None:
            raise Unproved("the kernel is singular")
        return bound

    def _column_form(self, utility: FisherInformation, has_pair_prices: bool = False) -> Columns:
        try:
            return columns_for(utility, self.constraints, has_pair_prices)[0]
        except InvalidInput as error:
            raise Unproved(str(error)) from None

    @property
    def argument(self) -> str:
        """The reason why the bound holds."""
        utility: Any = self.utility
        try:
            columns = self._column_form(expect(utility, FisherInformation, "the utility"))
        except Unproved:
            return "the equivalence theorem of optimal design"
        proof_phrase = getattr(self.relaxed, "words", "nothing said of")
        description = (
            f"over all {columns.name}"
            if columns.exact and self.relaxed is None
            else f"with {proof_phrase} the {columns.kind}"
        )
        return f"the equivalence theorem of optimal design, {description}"


MAX_QUESTIONS_COMPARED = 8
"""Up to this many yes/no questions all columns were compared."""

_MAX_QUESTIONS_HALVED = 14
"""Up to this many, sets are bounded by their halves; that takes 4^m steps."""

# fmt: off
_SQUARED_LARGEST_SUMS = (
    0, 8, 28, 56, 96, 136, 188, 248, 320, 392, 456, 528, 608, 696, 796, 904, 1024, 1096, 1180, 1272, 1376, 1488, 1608,
    1720, 1856, 1976, 2108, 2248, 2400, 2552, 2716, 2888, 3072, 3144, 3228, 3320, 3424, 3528, 3644, 3768, 3904, 4024,
    4156, 4296, 4448, 4600, 4764, 4936, 5120, 5256, 5404, 5560, 5728, 5896, 6076, 6264, 6464, 6648, 6844, 7048, 7264,
    7480, 7708, 7944, 8192, 8200, 8220, 8248, 8288, 8328, 8380, 8440, 8512, 8568, 8636, 8712, 8800, 8888, 8988, 9096,
    9216, 9288, 9372, 9464, 9568, 9672, 9788, 9912, 10048, 10168, 10300, 10440, 10592, 10744, 10908, 11080, 11264,
    11336, 11420, 11512, 11616, 11720, 11836, 11960, 12096, 12216, 12348, 12488, 12640, 12792, 12956, 13128, 13312,
    13448, 13596, 13752, 13920, 14088, 14268, 14456, 14656, 14840, 15036, 15240, 15456, 15672, 15900, 16136, 16384,
)
# fmt: on
"""M_8(n) for n = 0..128. A test enumerates the 44,315 sets of seven questions that can be halves of the best ones."""

_ARC_PARAMETERS = ((1.319, 1.3197, 0.0), (1.3038, 1.309, 0.00076))
"""(A, B, S) of the arcs of f, with f(1/2) >= 1/2."""

_NORMAL = NormalDist()
_CONTINUED_FRACTION_TERMS = 201


def yes_no_limit(epsilon: Enclosure, m: int) -> Enclosure:
    """Bound rho^2 of m >= 1 questions from above, without Scarf's inequality."""
    one_less_inverse, inverse_ratio = -(-epsilon).expm1(), (-epsilon).exp()  # 1 - 1/E and 1/E
    if m < MAX_QUESTIONS_COMPARED:
        joint_bounds = [
            (one_less_inverse / (inverse_ratio * 2.0**c + one_less_inverse)).square() * c for c in range(1, m + 1)
        ]
        return epsilon.arithmetic.stack(joint_bounds).max()
    if m <= _MAX_QUESTIONS_HALVED:
        size = np.arange(1.0, 2 ** (m - 1) + 1)
        sums: Enclosure = epsilon.arithmetic.of(_largest_sums(m)[1:])
        return (sums * one_less_inverse / (one_less_inverse * size + inverse_ratio * 2.0**m)).square().max()
    return _arc_bound(epsilon, m).square()


def _arc_bound(epsilon: Enclosure, m: int) -> Enclosure:
    """Bound (1 - 1/E) f(a) / (a (1 - 1/E) + 1/E) for a >= 2^-m from above, by a tangent of either arc."""
    first, second = (_tangent_bound(epsilon, m, *arc) for arc in _ARC_PARAMETERS)
    return first.minimum(second)


def _tangent_bound(epsilon: Enclosure, m: int, scale: float, height: float, shift: float) -> Enclosure:
    """Bound the same for the arc height phi(Phi^-1((a + shift)/scale)), by one of its tangents."""
    arithmetic = epsilon.arithmetic
    one_less_inverse, inverse_ratio, smallest_fraction = -(-epsilon).expm1(), (-epsilon).exp(), 2.0 ** -min(m, 1000)
    x = max(
        _touching_point(float((inverse_ratio / one_less_inverse).upper) - shift, scale),
        _NORMAL.inv_cdf((smallest_fraction + shift) / scale),
    )
    density = (arithmetic.of(-x) * x / 2).exp() / (2 * arithmetic.between(math.pi, math.nextafter(math.pi, 4))).sqrt()
    # Phi(x) = phi(x)/(-x + 1/(-x + 2/(-x + ...))) [Laplace], from below after an odd number of fractions.
    fraction: Enclosure = arithmetic.of(-x)
    for term in range(_CONTINUED_FRACTION_TERMS, 0, -1):
        fraction = term / fraction - x
    slope = arithmetic.of(-x) * height / scale
    c = (density + density / fraction * x) * height + slope * shift
    return slope.maximum(
        (c + slope * smallest_fraction) * one_less_inverse / (inverse_ratio + one_less_inverse * smallest_fraction)
    )


def _touching_point(level: float, scale: float) -> float:
    """Approximate the x whose tangent of an arc passes through (-level - shift, 0).

    Any x gives a bound.
    """
    low, high = -37.0, -0.2
    while high - low > 1e-12 * -low:
        x = (low + high) / 2
        low, high = (x, high) if -x * level / scale > _NORMAL.pdf(x) + x * _NORMAL.cdf(x) else (low, x)
    return low


@lru_cache(maxsize=8)
def _largest_sums(m: int) -> Array:
    """Bound sqrt M_m(n) for n = 0..2^(m-1) from above, for m >= 8."""
    if m == MAX_QUESTIONS_COMPARED:
        return np.sqrt(np.array(_SQUARED_LARGEST_SUMS, dtype=np.float64)) * (1 + 2.0**-50)
    half = _largest_sums(m - 1)
    all_roots = np.append(half, half[-2::-1])
    squares = np.zeros(2 ** (m - 1) + 1)
    for smaller in range(len(half)):
        larger = np.arange(smaller, 2 ** (m - 1) - smaller + 1)
        bound = (larger - smaller) ** 2 + (all_roots[smaller] + all_roots[larger]) ** 2
        squares[2 * smaller :] = np.maximum(squares[2 * smaller :], bound)
    return np.asarray(np.sqrt(squares) * (1 + 2.0**-49))


if TYPE_CHECKING:
    from os import PathLike


def information_limit(epsilon: Enclosure, yes_no_questions: int) -> Enclosure:
    """Bound rho^2 from above.

    yes_no_questions : the number of questions, where all are yes/no with independent uniform answers; else 0.
    """
    ratio_less_one, one_less_inverse = epsilon.expm1(), -(-epsilon).expm1()
    any_law = ratio_less_one * one_less_inverse / 4
    if yes_no_questions:
        is_small = float(epsilon.exp().upper) <= 3
        symmetric = tanh_of_half(epsilon).square() if is_small else ratio_less_one / 8
        return any_law.minimum(symmetric).minimum(yes_no_limit(epsilon, yes_no_questions))
    return any_law


def root_trace(p: Array, factor: Enclosure) -> Enclosure:
    """Bound tr S^(1/2) closely from below, for a distribution p (k,) and F (k, r)."""
    arithmetic, mean = factor.arithmetic, law(p, factor.arithmetic)
    a = mean.sqrt()[:, None] * (factor - (mean @ factor)[None, :])
    midpoints = np.asarray(a.midpoint)
    require(np.isfinite(midpoints).all(), "the linear functions are not finite")
    left, _, right = np.linalg.svd(midpoints, full_matrices=False)
    z = left @ right if len(left) >= right.shape[1] else (left @ right).T
    size = (arithmetic.of(z.T) @ arithmetic.of(z) - np.eye(z.shape[1])).square().sum().sqrt() + 1  # at least |Z|^2
    bound: Enclosure = (a * (left @ right)).sum() / size.sqrt()
    return bound


def root_trace_work(k: int, functions: int) -> Work:
    """Bound the work of `root_trace`."""
    return Work.on(float(k) * functions, 100.0 + 8.0 * min(k, functions))


@dataclass(frozen=True, eq=False, repr=False)
class SharedInformation(Certificate):
    """The bound (tr S^(1/2))^2 / rho^2 on the sum of variances of epsilon-LDP channels, for one respondent [Scarf].

    It takes no numbers. rho^2 is sinh^2(epsilon/2), and less for yes/no questions at the uniform pilot, where one
    question at random is optimal up to epsilon = log 3. Other constraints are ignored, which can only lower the bound.
    """

    proves = FisherInformation
    argument = "one budget of information for all questions, by Scarf's inequality"
    tight = False

    def work(self) -> Work:
        """Bound the work for the singular values of a matrix for all answers and functions."""
        return root_trace_work(self.answers, self.answers)

    def enclosed_bound(self, arithmetic: Arithmetic) -> Enclosure:
        """Compute (tr S^(1/2))^2 / rho^2 at the utility's prior."""
        prior, criterion = self.utility.prior, self.utility.criterion
        if not isinstance(criterion, LinearCriterion):
            raise Unproved(f"the {criterion.name} is no sum of variances of fixed functions")
        epsilon, _ = plain_caps(self.constraints)
        require(epsilon < math.inf, "no constraint asks for LocalDP between all inputs")
        shape = (
            criterion.shape
            if isinstance(criterion, Marginals) and criterion.has_only_single_questions
            else (len(prior),)
        )
        yes_no_questions = len(shape) if set(shape) == {2} and np.ptp(prior) == 0 else 0
        root = root_trace(prior, criterion.enclosed_factor(len(prior), arithmetic)).positive()
        return root.square() / information_limit(arithmetic.of(epsilon), yes_no_questions)


@dataclass(frozen=True, eq=False)
class RespondentsBound(Kind, Result):
    """A proved number of respondents, for expected proportions and independent answers to different questions [Scarf].

    Under these assumptions no epsilon-LDP survey of fewer than `least` people meets all targets by unbiased estimates.
    Hence no survey of fewer people meets them at every joint distribution of the answers; at a dependent one it may.

    - `epsilon` : in nats; inf for a survey without privacy, where only the variance of the sample counts.
    - `pilots` : (k,) for each of several questions with independent answers.
    - `targets` : (t, k) per question, linear functions of its proportions.
    - `variances` : (t,) per question, the largest allowed variances of the estimates.
    - `weights` : (t,) nonnegative weights per question; any weights prove a bound: n sum w tau >= (sum of the
      questions' tr S^(1/2))^2 / rho^2 for F = targets^T sqrt(w).
    - `kernel` : (all targets, K) for the K cells of all questions, the last one fastest, or None if the weights alone
      prove the number. Its `rows` (K,) and `relaxed` are as in `EquivalenceDual`, with zero pairs.
    """

    epsilon: float
    pilots: tuple[Array, ...]
    targets: tuple[Array, ...]
    variances: tuple[Array, ...]
    weights: tuple[Array, ...]
    least: int
    kernel: Array | None = None
    rows: Array | None = None
    relaxed: AnyRelaxation | None = None
    MAX_CELLS: ClassVar[int] = 256
    """Cells of all questions together for which a kernel is examined."""

    @classmethod
    def from_targets(
        cls, epsilon: float, pilots: tuple[Array, ...], targets: tuple[Array, ...], variances: tuple[Array, ...],
        weights: tuple[Array, ...], joint: EquivalenceDual | None = None,
    ) -> RespondentsBound:  # fmt: skip
        """Build the bound with the proved number, less 1e-9 of it for rounding in a plan.

        joint : the certificate of the best channel for the largest of all variances, if it is known. It is left out if
        it proves no more.
        """
        bound = cls(epsilon, pilots, targets, variances, weights, 0)
        number = bound.proved(FLOAT)
        if joint is not None:
            can_price_all = len(joint.rows) <= MAX_INPUTS_ALL_PRICED  # All patterns can be priced.
            with_kernel = replace(
                bound, kernel=joint.kernel, rows=joint.rows, relaxed=None if can_price_all else joint.relaxed
            )
            if (larger_number := with_kernel.proved(FLOAT)) > number:
                bound, number = with_kernel, larger_number
        return replace(bound, least=math.ceil(number * (1 - 1e-9)))

    def proved(self, arithmetic: Arithmetic) -> float:
        """Compute the number that the weights prove, rounded down.

        Raises `Unproved` for malformed parts.
        """
        parts = [expect(getattr(self, name), tuple, name) for name in ("pilots", "targets", "variances", "weights")]
        require(len({len(part) for part in parts}) == 1, "pilots, targets, variances and weights differ in number")
        root, weighted_variances, sampling_bound, even_questions = arithmetic.zeros(()), arithmetic.zeros(()), 0.0, 0
        for pilot, rows, question_variances, question_weights in zip(*parts, strict=True):
            p = weights_array(pilot, (-1,), "a pilot", "a pilot")
            functions = real_array(rows, (-1, len(p)), "targets")
            require(len(functions), "a question has no targets")
            tau = arithmetic.of(weights_array(question_variances, (len(functions),), "variances", "the targets"))
            require((np.asarray(tau.lower) > 0).all(), "a variance is not positive")
            weights = arithmetic.of(weights_array(question_weights, (len(functions),), "weights", "the targets"))
            factor, mean = arithmetic.of(functions).T, law(p, arithmetic)
            root = root + root_trace(p, factor * weights.sqrt()[None, :]).positive()
            weighted_variances = weighted_variances + (weights * tau).sum()
            relative_variances = (mean @ (factor - (mean @ factor)[None, :]).square()) / tau
            sampling_bound = max(sampling_bound, float(np.asarray(relative_variances.lower).max()))
            even_questions += len(p) == 2 and p[0] == p[1]
        if not parts[0] or self.epsilon == math.inf or nonnegative(self.epsilon, "epsilon") == 0:
            return sampling_bound
        limit = information_limit(arithmetic.of(self.epsilon), even_questions if even_questions == len(parts[0]) else 0)
        bounds = [sampling_bound, float((root.square() / weighted_variances / limit).lower), self._together(arithmetic)]
        return max(bound for bound in bounds if math.isfinite(bound))

    def _together(self, arithmetic: Arithmetic) -> float:
        """Compute the number that the kernel proves; 0 without one."""
        if self.kernel is None:
            return 0.0
        sizes, p, functions = [len(pilot) for pilot in self.pilots], arithmetic.of(np.ones(1)), list[Enclosure]()
        k = math.prod(sizes)
        require(k <= self.MAX_CELLS, f"a kernel for {k} cells is too large (at most {self.MAX_CELLS})")
        for question, (pilot, rows, question_variances) in enumerate(
            zip(self.pilots, self.targets, self.variances, strict=True)
        ):
            p = (p[:, None] * law(pilot, arithmetic)[None, :]).reshape(-1)
            joint_functions = np.tile(
                np.repeat(rows, math.prod(sizes[question + 1 :]), axis=1), math.prod(sizes[:question])
            )
            functions.append(arithmetic.of(joint_functions) / arithmetic.of(question_variances).sqrt()[:, None])
        f = arithmetic.concatenate(functions, 0)
        kernel = arithmetic.of(real_array(self.kernel, f.shape, "the kernel"))
        prices = real_array(self.rows, (k,), "the row multipliers")
        centered_kernel = kernel - kernel.sum(axis=1)[:, None] * p[None, :]
        charges = Charges(centered_kernel, p, prices, np.zeros((k, k)))
        information_bound = (charges.total + StaircaseColumns(k, self.epsilon).gain_bound(charges, self.relaxed)).ends[
            1
        ]
        if not (np.isfinite(information_bound.upper) and information_bound.lower > 0):
            return 0.0
        products = (kernel * (f - (f @ p)[:, None])).sum(axis=1)
        return float((products.square().sum() / information_bound).lower)

    def cost(self, exact: bool = False) -> Work:
        """Bound the work of `verify`."""
        pilots, targets = (part if isinstance(part, tuple) else () for part in (self.pilots, self.targets))
        question_work = (
            root_trace_work(count_numbers(p), count_numbers(rows) // max(count_numbers(p), 1))
            for p, rows in zip(pilots, targets, strict=False)
        )
        total = sum(question_work, Work.on(count_numbers(self), 1e4))
        if self.kernel is not None:
            k = math.prod(map(count_numbers, pilots))
            total = (
                total
                + pricing(k, count_numbers(self.kernel) / k, (), self.relaxed)
                + Work.on(count_numbers(self.kernel), 100.0)
            )
        return total.in_balls if exact else total

    @property
    def sentence(self) -> str:
        """The claim with its assumptions: the expected proportions, and independent answers to different questions."""
        privacy = "" if self.epsilon == math.inf else f"{ceil_digits(self.epsilon)}-LDP "
        has_several = isinstance(self.pilots, tuple) and len(self.pilots) > 1
        assumption = "the shares are as expected" + (
            " and the questions' answers are independent" if has_several else ""
        )
        claim = f"no {privacy}survey of fewer than {self.least:,} people meets all targets by unbiased estimates"
        return f"If {assumption}, {claim}."

    def verify(self, exact: bool = False, budget: float = 1.0) -> Verification:
        """Recompute the number; the outcome is "refuted" if it is below `least`.

        Parameters
        ----------
        exact : bool
            True for 256-bit ball arithmetic.
        budget : float
            How many times the usual work is allowed.

        Returns
        -------
        Verification
        """
        value: Any = self.least
        try:
            if refusal := self.cost(exact).refusal(positive_budget(budget)):
                return unchecked_verification(refusal)
            number = self.proved(arithmetic(exact))
            claimed_number = nonnegative(value, "the number of respondents")
        except Unproved as error:
            return Verification(math.nan, math.nan, self.epsilon, math.nan, (str(error),))
        failures = (
            ()
            if claimed_number <= math.ceil(number)
            else (f"the number proved is {math.ceil(number):,}, not {value:,}",)
        )
        return Verification(claimed_number, number, self.epsilon, math.nan, failures)

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the bound to a file that `load_respondents` reads.

        An existing file is refused unless `force`.
        """
        write_text(path, self.to_json(), force)

    def to_json(self) -> str:
        """Return the contents of the file that `save` writes."""
        from ldpopt.design.files import respondents_text

        return respondents_text(self)
