"""Group privacy: what a guarantee for one person implies for a group of several people."""

from __future__ import annotations

import math
from fractions import Fraction

from ldpopt.distribution import number, positive_integer
from ldpopt.errors import invalid
from ldpopt.privacy.claims import MCDP, ZCDP, ApproximateDP, Claim, PureDP, RenyiDP, need, nonnegative
from ldpopt.privacy.guarantee import Guarantee
from ldpopt.rounding import up

LARGEST = 2**53
"""The largest size of a group, up to which floats count exactly."""
DOUBLINGS = 600
"""The most doublings; more would leave the range of floats."""


def group_pure(claim: Claim | Guarantee, size: int) -> PureDP:
    """epsilon-DP for one person is (size epsilon)-DP for a group of `size`; Laplace noise attains it [M, Table I].

    >>> group_pure(PureDP(0.5), 3).epsilon > 1.5
    True
    """
    size = positive_integer(size, "size", maximum=LARGEST)
    return PureDP(up(size * need(PureDP, claim).epsilon), tight=True, reference="[M, Table I]")


def group_approximate(claim: Claim | Guarantee, size: int) -> ApproximateDP:
    """(epsilon, delta)-DP for one person is (size epsilon, delta')-DP for a group of `size`.

    delta' = delta (e^(size epsilon) - 1)/(e^epsilon - 1), from the definition applied `size` times [GI, Def 1].

    >>> group_approximate(ApproximateDP(0.5, 1e-6), 3)
    ApproximateDP(epsilon=1.500000001, delta=5.36701e-06) (not tight, [GI, Def 1])
    """
    made, size = need(ApproximateDP, claim), positive_integer(size, "size", maximum=LARGEST)
    epsilon = made.epsilon
    if made.delta == 0 or epsilon == 0:
        factor = float(size)
    elif size * epsilon > 700:
        factor = math.inf
    else:
        factor = math.expm1(size * epsilon) / math.expm1(epsilon)
    delta = 0.0 if made.delta == 0 else min(1.0, up(made.delta * factor, 16 + 2 * size * epsilon))
    return ApproximateDP(up(size * epsilon), delta, tight=False, reference="[GI, Def 1]")


def group_zcdp(claim: Claim | Guarantee, size: int) -> ZCDP:
    """(xi, rho)-zCDP for one person is (xi size H, rho size^2)-zCDP for a group of `size` [BS, Prop 5.3].

    H is the harmonic number 1 + 1/2 + ... + 1/size. The bound on rho is tight, that on xi is not. The proof needs
    xi >= 0, so a negative xi counts as 0.

    >>> group_zcdp(ZCDP(0.0, 0.1), 3)
    ZCDP(xi=0, rho=0.9000000001) (tight, [BS, Prop 5.3])
    """
    made, size = need(ZCDP, claim), positive_integer(size, "size", maximum=LARGEST)
    harmonic = math.fsum(1 / i for i in range(1, size + 1)) if size <= 10**6 else 1 + math.log(size)
    xi = up(max(0.0, made.xi) * size * harmonic, 16)
    return ZCDP(xi, up(made.rho * size**2), tight=made.xi <= 0, reference="[BS, Prop 5.3]")


def group_renyi(claim: Claim | Guarantee, doublings: int) -> RenyiDP:
    """Rényi privacy (order, epsilon) for one person is (order/2^c, 3^c epsilon) for groups of 2^c [M, Prop 2].

    c = `doublings`. Raises `InvalidInput` unless order >= 2^(c + 1).

    >>> group_renyi(RenyiDP(8, 0.1), 2).order
    2.0
    """
    made, c = need(RenyiDP, claim), positive_integer(doublings, "doublings", 0, DOUBLINGS)
    if made.order < 2 ** (c + 1):
        raise invalid("order", f"an order of at least 2^(c + 1) = {2 ** (c + 1)}", made.order)
    return RenyiDP(made.order / 2**c, up(3**c * made.epsilon), tight=False, reference="[M, Prop 2]")


def group_gaussian_mcdp(sensitivity: float, sigma: float, size: int = 1) -> MCDP:
    """The mCDP of the Gaussian mechanism for a group: ((s D/sigma)^2/2, s D/sigma) [DR, Cor 3.3, corrected].

    s is `size`, D is `sensitivity`, and sigma the standard deviation of the noise. The paper gives the second
    parameter as s D, without dividing by sigma.

    >>> group_gaussian_mcdp(1.0, 2.0, size=3)
    MCDP(mu=1.125000001, tau=1.500000001) (tight, [DR, Cor 3.3, corrected])
    """
    sensitivity, size = nonnegative(sensitivity, "sensitivity"), positive_integer(size, "size", maximum=LARGEST)
    sigma = number(sigma, "sigma", "a positive number")
    if sigma <= 0:
        raise invalid("sigma", "a positive number", sigma)
    exact = Fraction(sensitivity) * size / Fraction(sigma) if math.isfinite(sensitivity) else Fraction(2) ** 1024
    tau = float(exact) if exact < 2**1023 else math.inf
    return MCDP(up(tau * tau / 2), up(tau), tight=True, reference="[DR, Cor 3.3, corrected]")
