"""Published bounds on the divergence between P0 and P1 that a private channel or a simple mechanism preserves.

M0 and M1 are the distributions of the report if the answer has the distribution P0 or P1. Upper bounds are rounded up,
fractions and other lower bounds down, so that rounding breaks none. The bounds on the symmetrized divergence J(M0, M1)
= KL(M0 || M1) + KL(M1 || M0), in nats, are not attained. At large epsilon they overflow to inf, which is still a bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel
from ldpopt.design.constraints.base import tanh_of_half
from ldpopt.design.kernel.sets import best_mass, level_of
from ldpopt.design.utilities.laws import LawPair, f_divergence, labeled_distributions
from ldpopt.divergences import (
    CHI_SQUARED,
    JEFFREYS,
    JENSEN_SHANNON,
    KL,
    LE_CAM,
    NEYMAN_CHI_SQUARED,
    REVERSE_KL,
    SQUARED_HELLINGER,
    TOTAL_VARIATION,
    FDivergence,
    hockey_stick,
)
from ldpopt.divergences.enclosed import enclosed_excess
from ldpopt.errors import invalid
from ldpopt.numbers.enclosures import FLOAT, Enclosure
from ldpopt.values.distribution import distribution, positive, positive_epsilon, unit_interval


def _upper(bound: Enclosure) -> float:
    """The upper end; infinite without information, as where an overflow meets a zero."""
    return float(bound.upper)


def _growth(epsilon: float) -> Enclosure:
    """e^epsilon - 1, enclosed, of a checked epsilon."""
    return FLOAT.of(positive_epsilon(epsilon)).expm1()


def _reach(epsilon: float, eta: float) -> Enclosure:
    """The cap eta, or tanh(epsilon/2) where that is less [GI, Prop 2], enclosed."""
    return tanh_of_half(FLOAT.of(positive_epsilon(epsilon))).minimum(unit_interval(eta, "eta"))


def reach(epsilon: float, eta: float) -> float:
    """Bound the total variation of two rows of an epsilon-LDP, eta-TV channel [GI, Prop 2].

    Parameters
    ----------
    epsilon : In nats.
    eta : In [0, 1].

    Returns
    -------
    float
        The smaller of eta and tanh(epsilon/2).

    Examples
    --------
    >>> round(reach(1.0, 1.0), 6), reach(1.0, 0.2)
    (0.462117, 0.2)
    """
    return float(_reach(epsilon, eta).upper)


def _laws(p0: Any, p1: Any) -> LawPair:
    """The two populations as exact distributions, enclosed; equal ones have distance exactly 0."""
    (first, second), _ = labeled_distributions((("p0", p0), ("p1", p1)), None, min_entries=1)
    laws = LawPair.from_floats(first, second, FLOAT)
    return replace(laws, difference=FLOAT.zeros(first.shape)) if np.array_equal(first, second) else laws


def _enclosed_divergence(divergence: FDivergence, p0: Any, p1: Any) -> Enclosure:
    """The divergence D_f(P0 || P1), enclosed."""
    laws = _laws(p0, p1)
    return enclosed_excess(f_divergence(divergence, "f"), laws.difference, laws.p1, laws.p0).sum()


def binary_share_kairouz(epsilon: float) -> float:
    """Bound the fraction of the KL optimum of the binary mechanism [KOV14, Thm 7].

    The mechanism preserves at least the fraction 1 / (2 (e^epsilon + 1)^2).

    Parameters
    ----------
    epsilon : In nats.

    Returns
    -------
    float
        The lower bound on the fraction, in (0, 1].

    Examples
    --------
    >>> round(binary_share_kairouz(1.0), 9)
    0.036164744
    """
    small = (-FLOAT.of(positive_epsilon(epsilon))).exp()
    return float((small / (1 + small)).square().lower) / 2


def binary_share_ghazi_issa(epsilon: float) -> float:
    """Bound the fraction of the KL optimum of the binary mechanism [GI, VII-B1].

    It is 1 / (min{2, e^epsilon} (e^epsilon + 1)), larger than `binary_share_kairouz`.

    Parameters
    ----------
    epsilon : In nats.

    Returns
    -------
    float
        The lower bound on the fraction, in (0, 1].

    Examples
    --------
    >>> round(binary_share_ghazi_issa(1.0), 9)
    0.134470711
    """
    small = (-FLOAT.of(positive_epsilon(epsilon))).exp()
    return float((small * small.maximum(0.5) / (1 + small)).lower)


def binary_share(epsilon: float) -> float:
    """Compute the smallest fraction of the optimum that the binary mechanism preserves.

    It is 4/(e+1)^2 / max(1/e, 2/(e+2)), e = e^epsilon. It holds for every operator convex divergence, such as the eight
    of [AZ, Thm 1] (KL, chi-squared, Hellinger and their relatives), for all P0 and P1. No larger fraction does. The
    proof by [SPR] is on the page "How little the binary mechanism keeps".

    Parameters
    ----------
    epsilon : In nats.

    Returns
    -------
    float
        The fraction, in (0, 1].

    Examples
    --------
    >>> round(binary_share(1.0), 9)
    0.682541819
    """
    small = (-FLOAT.of(positive_epsilon(epsilon))).exp()
    return min(float((4 * small / (1 + small).square() / (2 / (1 + 2 * small)).maximum(1.0)).lower), 1.0)


def jeffreys_of_total_variation(p0: Any, p1: Any, epsilon: float, eta: float = 1.0) -> float:
    """Bound J by (e-1) TV(P0, P1)^2 min{2 eta, (e-1) max(2/(e+2), 1/e)} [SPR].

    J is the Jeffreys divergence of the report. The bound holds for epsilon-LDP, eta-TV channels. It is `ghazi_issa`
    without the factor min{2, e^epsilon}, and the best constant for every epsilon alone.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats, e = e^epsilon.
    eta : In [0, 1].

    Returns
    -------
    float
        The upper bound on J, in nats.

    Examples
    --------
    >>> round(jeffreys_of_total_variation([0.9, 0.1], [0.4, 0.6], 0.5, 0.1), 6)
    0.032436
    """
    growth, eta = _growth(epsilon), unit_interval(eta, "eta")
    pure = (2 / (1 + 3 / growth)).maximum(1 / (1 + 1 / growth))
    return _times_squared_tv(growth * pure.minimum(2 * eta), p0, p1)


def kept_by_binary(divergence: FDivergence, p0: Any, p1: Any, epsilon: float) -> float:
    """Bound the f-divergence that the binary mechanism preserves from above.

    See [KOV14; GI, eq. 23-24].

    Parameters
    ----------
    divergence : An `FDivergence`.
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.

    Returns
    -------
    float
        The divergence, rounded up, in nats for a divergence with a logarithm.

    Examples
    --------
    >>> from ldpopt.divergences import TOTAL_VARIATION
    >>> round(kept_by_binary(TOTAL_VARIATION, [0.9, 0.1], [0.4, 0.6], 1.0), 6)
    0.231059
    """
    laws, share, total = _laws(p0, p1), 1 / _growth(epsilon), FLOAT.of(0.0)
    first = np.asarray(laws.difference.midpoint) >= 0
    for side in (first, ~first):
        merged_block = laws.difference[side].sum(), laws.p1[side].sum() + share, laws.p0[side].sum() + share
        total = total + enclosed_excess(f_divergence(divergence, "f"), *merged_block)
    return _upper(tanh_of_half(FLOAT.of(epsilon)) * total)


def erased_share(epsilon: float, eta: float) -> float:
    """Return the fraction of the epsilon-LDP optimum after erasing to eta [GI, Thm 8].

    It is share = min{1, eta / tanh(epsilon/2)}. If the reports of the optimal epsilon-LDP channel are erased with
    probability 1 - share, for every answer, the channel is eta-TV and preserves this fraction of every f-divergence. So
    OPT(epsilon, eta) >= share * OPT(epsilon).

    Parameters
    ----------
    epsilon : In nats.
    eta : In [0, 1].

    Returns
    -------
    float
        The fraction, in [0, 1].

    Examples
    --------
    >>> round(erased_share(1.0, 0.2), 9), erased_share(1.0, 0.9)
    (0.432790683, 1.0)
    """
    reach = tanh_of_half(FLOAT.of(positive_epsilon(epsilon)))
    return max(float((FLOAT.of(unit_interval(eta, "eta")) / reach).minimum(1.0).lower), 0.0)


CONTRACTED = (
    CHI_SQUARED, KL, SQUARED_HELLINGER, REVERSE_KL, NEYMAN_CHI_SQUARED, JEFFREYS, LE_CAM, JENSEN_SHANNON,
)  # fmt: skip
"""The named divergences with an operator convex f, in the order of tables."""


def asoodeh_zhang(divergence: FDivergence, p0: Any, p1: Any, epsilon: float) -> float:
    """Bound an operator convex divergence under epsilon-LDP by tanh(epsilon/2)^2 D(P0 || P1).

    The bound is [AZ, Thm 1]. Binary randomized response attains the bound for chi-squared if P1 is uniform on two
    inputs, and for the others in the limit of close P0 and P1. Under a cap on the total variation, too, `contraction`
    is never above it.

    Parameters
    ----------
    divergence : An `FDivergence` with an operator convex f (`FDivergence.operator_convex`), such as KL, chi-squared and
        squared Hellinger.
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.

    Returns
    -------
    float
        The upper bound; it may be inf.

    Raises
    ------
    InvalidInput
        If f is not operator convex. The total variation, for example, shrinks only by tanh(epsilon/2).

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> round(asoodeh_zhang(KL, [0.9, 0.1], [0.4, 0.6], 1.0), 9)
    0.117594958
    """
    return contraction(divergence, p0, p1, epsilon, 1.0)


def contraction(divergence: FDivergence, p0: Any, p1: Any, epsilon: float, eta: float = 1.0) -> float:
    """Bound an operator convex divergence by eta tanh(epsilon/2) D(P0 || P1).

    No epsilon-LDP, eta-TV channel preserves more [GI, eq. 7; OP; CRS]. Such divergences contract like chi-squared
    [CRS], whose coefficient two inputs attain [OP]. Any two rows are a post-processing of randomized response erased to
    eta, whose coefficient is eta tanh(epsilon/2).

    Parameters
    ----------
    divergence : An `FDivergence` with an operator convex f (`FDivergence.operator_convex`).
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : In [0, 1]; a value above tanh(epsilon/2), which epsilon implies, is lowered to it [GI, Prop 2].

    Returns
    -------
    float
        The upper bound; it may be inf, and for eta = 0 it is 0.

    Raises
    ------
    InvalidInput
        If f is not operator convex, or a value is out of range.

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> round(contraction(KL, [0.9, 0.1], [0.4, 0.6], 1.0, 0.2), 9)
    0.050894002
    """
    if not isinstance(divergence, FDivergence) or not divergence.operator_convex:
        names = ", ".join(divergence_type.name for divergence_type in CONTRACTED)
        raise invalid("divergence", f"one of {names}, alpha-divergences of order -1 to 2", divergence)
    reach = _reach(epsilon, eta)
    if float(reach.upper) == 0:
        return 0.0
    return _upper(reach * tanh_of_half(FLOAT.of(epsilon)) * _enclosed_divergence(divergence, p0, p1))


def asoodeh_diaz_calmon(gamma: float, p0: Any, p1: Any, epsilon: float, eta: float = 1.0) -> float:
    """Bound E_gamma(M0 || M1) by eta (e - g)/(e - 1) E_gamma(P0 || P1) [ADC; KOV15].

    Here e = e^epsilon and g = max(gamma, 1/gamma). A channel contracts E_gamma, gamma >= 1, by the largest E_gamma of
    two of its rows [ADC]. Randomized response erased to eta attains this. For gamma < 1, E_gamma(P0 || P1) is gamma
    E_(1/gamma)(P1 || P0). Disjoint P0 and P1 attain the bound; `bound_by_tests` is exact for all.

    Parameters
    ----------
    gamma : Of the hockey-stick divergence, positive.
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : In [0, 1]; a value above tanh(epsilon/2) is lowered to it [GI, Prop 2].

    Returns
    -------
    float
        The upper bound on E_gamma of the report.

    Examples
    --------
    >>> round(asoodeh_diaz_calmon(1.5, [0.9, 0.1], [0.2, 0.8], 1.0, 0.3), 6)
    0.127622
    """
    gamma, growth, reach = positive(gamma, "gamma"), _growth(epsilon), _reach(epsilon, eta)
    gamma_excess = FLOAT.of(gamma) - 1 if gamma >= 1 else 1 / FLOAT.of(gamma) - 1
    remaining_fraction = (1 - gamma_excess / growth).positive()
    return max(_upper(reach * remaining_fraction * _enclosed_divergence(hockey_stick(gamma), p0, p1)), 0.0)


def bound_by_tests(divergence: FDivergence, p0: Any, p1: Any, epsilon: float, eta: float = 1.0) -> float:
    """Bound an f-divergence by the divergence of the best test for every ratio.

    The bound is the f-divergence of two distributions whose best tests are exactly as powerful as the best channel for
    each test allows. It is finite, never above `dobrushin`, and exact for two inputs and for every hockey-stick
    divergence, total variation among them.

    Let c = 1/(e^epsilon - 1). A test accepts a report with a probability in [l, u] after each input, u <= e^epsilon l
    and u - l <= eta. So, for gamma >= 1, E_gamma(M0 || M1) is at most

        (u - l) E_gamma(P0 || P1) - l (gamma - 1) <= eta (E_gamma(P0 || P1) - c (gamma - 1))_+.

    A binary report attains it. An f-divergence is an average of these and of those with M0 and M1 exchanged [ADC]. So
    it is at most eta times the sum of mu(p0, p1) = p1 f(p0/p1) over the inputs. In this sum the inputs A of the largest
    ratios are merged into one, mu(P0(A) + c, P1(A) + c), and those of the smallest ratios into another. A holds the
    inputs with ratios not below the largest (P0(B) + c)/(P1(B) + c) of any set B.

    Parameters
    ----------
    divergence : Any `FDivergence`, also a custom one.
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : In [0, 1]; a value above tanh(epsilon/2), which epsilon implies, is lowered to it [GI, Prop 2].

    Returns
    -------
    float
        The upper bound.

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> round(bound_by_tests(KL, [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1.0, 0.3), 6)
    0.029225
    """
    f, laws, reach = f_divergence(divergence, "f"), _laws(p0, p1), _reach(epsilon, eta)
    if float(reach.upper) == 0:
        return 0.0
    share, is_unmerged, total = 1 / _growth(epsilon), np.ones(laws.p0.shape, dtype=np.bool_), FLOAT.of(0.0)
    for ordered_laws in (laws, LawPair(laws.p1, laws.p0, -laws.difference)):
        end = _merged(ordered_laws, share)
        is_unmerged &= ~end
        merged_block = laws.difference[end].sum(), laws.p1[end].sum() + share, laws.p0[end].sum() + share
        total = total + enclosed_excess(f, *merged_block)
    total = total + enclosed_excess(f, laws.difference[is_unmerged], laws.p1[is_unmerged], laws.p0[is_unmerged]).sum()
    return max(_upper(reach * total), 0.0)


def _merged(laws: LawPair, share: Enclosure) -> npt.NDArray[np.bool_]:
    """The inputs A of `bound_by_tests`, whose ratios are at least 1 + x, where sum (p0 - (1 + x) p1)_+ <= share x.

    More inputs could break the bound. So x, computed in floats, is raised until this is proved; fewer only weaken it.
    """
    is_positive = np.asarray(laws.p1.upper) > 0
    odds = laws.difference / FLOAT.where(is_positive, laws.p1, 1.0)
    ratios = np.where(
        is_positive, np.asarray(odds.midpoint), np.where(np.asarray(laws.difference.lower) > 0, np.inf, 0.0)
    )
    order = np.argsort(-ratios, kind="stable")
    difference, mass = (np.cumsum(np.asarray(part.midpoint)[order]) for part in (laws.difference, laws.p1))
    with np.errstate(all="ignore"):
        largest_ratio = float(np.max(difference / (mass + float(share.midpoint))))
    for power in (-44, -40, -30, -20):
        x = FLOAT.of(largest_ratio * (1 + 2.0**power)) if 0 < largest_ratio < 1e300 else FLOAT.of(np.inf)
        excess = (laws.difference - x * laws.p1).positive().sum()
        if float(excess.upper) <= float((share * x).lower) < np.inf:
            return np.asarray((laws.difference - x * laws.p1).lower >= 0) & (np.asarray(laws.difference.lower) > 0)
    return np.zeros(laws.p0.shape, dtype=np.bool_)


def dobrushin(divergence: FDivergence, p0: Any, p1: Any, eta: float) -> float:
    """Bound an f-divergence under eta-TV by eta D_f(P0 || P1) [Dobrushin].

    Two point masses attain the bound for total variation.

    Parameters
    ----------
    divergence : An `FDivergence`.
    p0, p1 : Arrays (k,), the two distributions of the answer.
    eta : In [0, 1].

    Returns
    -------
    float
        The upper bound; it may be inf, and for eta = 0 it is 0.

    Examples
    --------
    >>> from ldpopt.divergences import CHI_SQUARED
    >>> round(dobrushin(CHI_SQUARED, [0.9, 0.1], [0.4, 0.6], 0.5), 9)
    0.520833333
    """
    eta, distance = unit_interval(eta, "eta"), _enclosed_divergence(divergence, p0, p1)
    return _upper(distance * eta) if eta > 0 else 0.0


def information_capacity(epsilon: float) -> float:
    """Bound the mutual information I(X; Y) under epsilon-LDP, in nats [KOV14, Thm 4].

    The bound holds for any distribution of X. It is t - 1 - log t with t = epsilon/(1 - e^-epsilon). An optimal report
    is e^epsilon times as likely under the answers of a set as under all others. Let the set have the probability a, and
    m = 1 + (E - 1) a with E = e^epsilon. The information per unit of the report's probability is

        h(a) = (E epsilon a - m log m)/m.

    The bound is the largest h(a). It is attained if sets of probability `capacity_mass(epsilon)` cover all answers
    evenly, and nearly attained if no answer has much more probability than that.

    Parameters
    ----------
    epsilon : In nats.

    Returns
    -------
    float
        The upper bound in nats, rounded up.

    Examples
    --------
    >>> round(information_capacity(1.0), 8), round(information_capacity(3.0), 8)
    (0.12330156, 1.00750562)
    """
    from ldpopt.design.information.proof_capacity import information_capacity as enclosed_capacity

    return float(enclosed_capacity(FLOAT.of(positive_epsilon(epsilon))).upper)


def capacity_mass(epsilon: float) -> float:
    """Compute the probability of the set of answers that the most informative report favors.

    See [KOV14, section 4]. It is (t - 1)/(e^epsilon - 1) with t = epsilon/(1 - e^-epsilon): 1/2 for small epsilon,
    about epsilon e^-epsilon for large epsilon. A report that favors a set of answers of this probability carries
    `information_capacity(epsilon)` on average.

    Parameters
    ----------
    epsilon : In nats.

    Returns
    -------
    float
        The probability, in (0, 1/2].

    Examples
    --------
    >>> round(capacity_mass(1.0), 3), round(capacity_mass(3.0), 3)
    (0.339, 0.113)
    """
    return best_mass(positive_epsilon(epsilon))


def information_under_cap(prior: Any, epsilon: float, eta: float) -> float:
    """Bound I(X; Y) under epsilon-LDP with total variation at most eta, in nats.

    The bound is the smallest of three [Dobrushin; OP]: `information_capacity(epsilon)`, eta tanh(epsilon/2) H(X), and c
    + eta n (1 - sum P_x^2) for the best n >= 0. Here c is the largest (h(a) - n a (1 - a))/(t + a) over 0 <= a <= 1,
    with t = 1/(e^epsilon - 1). The third averages the limits on all pairs of answers with the weights P_x P_x'.

    Parameters
    ----------
    prior : Array (k,), the distribution P of X.
    epsilon : In nats.
    eta : In [0, 1].

    Returns
    -------
    float
        The upper bound in nats, rounded up; 0 for eta = 0.

    Examples
    --------
    >>> round(information_under_cap([0.01] * 100, 1.0, 0.2), 4), information_under_cap([0.5, 0.5], 1.0, 0.0)
    (0.1062, 0.0)
    """
    from ldpopt.design import Contraction, InformationDual, LocalDP, MutualInformation, TotalVariation
    from ldpopt.design.information.program import SharesProgram

    p, epsilon, eta = distribution(prior, "prior"), positive_epsilon(epsilon), unit_interval(eta, "eta")
    if np.count_nonzero(p) < 2:
        return 0.0
    utility, caps = MutualInformation(p), (LocalDP(epsilon), TotalVariation(eta))
    constant_channel = Channel(np.ones((len(p), 1)))
    bounds = [information_capacity(epsilon), Contraction(utility, caps, constant_channel).bound]
    if 0 < eta < math.tanh(epsilon / 2):
        program = SharesProgram(np.zeros(0), 1.0, 1 - float((p**2).sum()), level_of(epsilon), eta)
        solution = program.solve()
        no_inputs = np.zeros(0, dtype=np.intp)
        bounds.append(InformationDual(utility, caps, constant_channel, no_inputs, solution.rows, solution.pairs).bound)
    return min(bounds)


def duchi_jordan_wainwright(p0: Any, p1: Any, epsilon: float) -> float:
    """Bound J by min{4, e^(2 epsilon)} (e^epsilon - 1)^2 TV(P0, P1)^2 under epsilon-LDP.

    J is the Jeffreys divergence of the report. See [DJW, Thm 1; GI, Thm 6].

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.

    Returns
    -------
    float
        The upper bound on J, in nats.

    Examples
    --------
    >>> round(duchi_jordan_wainwright([0.9, 0.1], [0.4, 0.6], 0.5), 6)
    0.28599
    """
    growth = _growth(epsilon)
    return _times_squared_tv(((growth + 1).minimum(2.0) * growth).square(), p0, p1)


def ghazi_issa(p0: Any, p1: Any, epsilon: float, eta: float) -> float:
    """Bound J by 2 eta min{2, e^epsilon} (e^epsilon - 1) TV(P0, P1)^2 [GI, Thm 7].

    J is the Jeffreys divergence of the report.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.
    eta : In [0, 1]; a value above tanh(epsilon/2), which epsilon implies, is lowered to it [GI, Prop 2].

    Returns
    -------
    float
        The upper bound on J, in nats.

    Examples
    --------
    >>> round(ghazi_issa([0.9, 0.1], [0.4, 0.6], 0.5, 0.1), 6)
    0.053478
    """
    growth = _growth(epsilon)
    return _times_squared_tv(2 * _reach(epsilon, eta) * (growth + 1).minimum(2.0) * growth, p0, p1)


def ghazi_issa_corollary(p0: Any, p1: Any, epsilon: float) -> float:
    """Bound J by 2 min{2, e^epsilon} (e^epsilon - 1)^2 / (e^epsilon + 1) TV^2 [GI, Cor 2].

    J is the Jeffreys divergence of the report. The bound holds for epsilon-LDP channels. It is never above
    `duchi_jordan_wainwright` [GI, eq 45].

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.

    Returns
    -------
    float
        The upper bound on J, in nats.

    Examples
    --------
    >>> round(ghazi_issa_corollary([0.9, 0.1], [0.4, 0.6], 0.5), 6)
    0.130978
    """
    return ghazi_issa(p0, p1, epsilon, 1.0)


def _times_squared_tv(factor: Enclosure, p0: Any, p1: Any) -> float:
    distance = _enclosed_divergence(TOTAL_VARIATION, p0, p1)
    return _upper(factor * distance * distance) if float(distance.upper) > 0 else 0.0


def kairouz_oh_viswanath(p0: Any, p1: Any, epsilon: float) -> float:
    """Bound the total variation under epsilon-LDP by tanh(epsilon/2) TV(P0, P1).

    The bound is [KOV14, Thm 6; GI, Thm 4]. The binary mechanism attains it, for every P0 and P1.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    epsilon : In nats.

    Returns
    -------
    float
        The upper bound, in [0, 1].

    Examples
    --------
    >>> round(kairouz_oh_viswanath([0.9, 0.1], [0.4, 0.6], 1.0), 9)
    0.231058579
    """
    return _upper(_reach(epsilon, 1.0) * _enclosed_divergence(TOTAL_VARIATION, p0, p1))


def ghazi_issa_total_variation(p0: Any, p1: Any, eta: float) -> float:
    """Bound the total variation under eta-TV by eta TV(P0, P1) [GI, Thm 5].

    Under epsilon-LDP with eta <= tanh(epsilon/2), the binary mechanism with erasure attains the bound, for every P0 and
    P1.

    Parameters
    ----------
    p0, p1 : Arrays (k,), the two distributions of the answer.
    eta : In [0, 1].

    Returns
    -------
    float
        The upper bound, in [0, 1].

    Examples
    --------
    >>> round(ghazi_issa_total_variation([0.9, 0.1], [0.4, 0.6], 0.3), 9)
    0.15
    """
    return dobrushin(TOTAL_VARIATION, p0, p1, eta)
