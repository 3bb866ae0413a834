"""The f-divergence: a convex function f with f(1) = 0, its generator, and the functions that are derived from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ldpopt.divergences.checked import (
    Function,
    check_derivative,
    check_ends,
    check_generator,
    difference,
    limit,
    require_findable,
    taken_whole,
    vectorised,
)
from ldpopt.errors import InvalidInput, invalid
from ldpopt.values.distribution import Array, distribution, unwrap_scalar
from ldpopt.values.labels import aligned


class FDivergence:
    """D_f(p || q) = sum_y q_y f(p_y / q_y) for a convex f on (0, inf) with f(1) = 0 [GI, section VII].

    Parameters
    ----------
    generator : The function f of a positive array. A function of a single number works, too, but more slowly.
    name : The name of the divergence in reports.
    derivative : f', or any subgradient at a kink; differences of f if missing.
    at_zero, slope_at_infinity : The limits of f at 0+ and of f(t)/t as t grows, possibly inf; extrapolated if missing.
    conjugate : The function f*(s) = sup_{t >= 0} s t - f(t); computed numerically if missing.

    The attribute `recipe` holds the arguments of `rebuild` for a named divergence. It is None for a user-defined
    divergence. Divergences with a logarithm are in nats. Raises `InvalidInput` if f, checked on a grid of points, is
    not convex, not finite on (0, inf), or f(1) is not 0.

    >>> mine = FDivergence(lambda t: (t - 1) ** 4, name="fourth power")
    >>> round(mine([0.5, 0.5], [0.25, 0.75]), 6)
    0.259259
    """

    __slots__ = (
        "_conjugate", "_derivative", "_excess", "_functions", "_generator",
        "at_zero", "name", "recipe", "slope_at_infinity",
    )  # fmt: skip

    name: str
    at_zero: float
    slope_at_infinity: float
    _generator: Function
    _derivative: Function
    _conjugate: Function | None
    _excess: Callable[[Any, Any, Any], Any] | None
    recipe: tuple[Any, ...] | None
    _functions: tuple[Function | None, ...]
    """The functions that a user passed, unchanged."""

    def __init__(
        self,
        generator: Function,
        *,
        name: str = "f-divergence",
        derivative: Function | None = None,
        at_zero: float | None = None,
        slope_at_infinity: float | None = None,
        conjugate: Function | None = None,
    ) -> None:
        f = vectorised(generator)
        values = check_generator(f)
        slope = vectorised(derivative) if derivative is not None else difference(f)
        if derivative is not None:
            check_derivative(slope, values)
        ends = (
            limit(f, 0.0) if at_zero is None else float(at_zero),
            limit(f, math.inf) if slope_at_infinity is None else float(slope_at_infinity),
        )
        check_ends(*ends, values)
        self._set(name, f, slope, *ends, conjugate, None, None)
        object.__setattr__(self, "_functions", (generator, derivative, conjugate))

    def _set(self, *fields: Any) -> None:
        for field, value in zip(_FIELDS, fields, strict=True):
            object.__setattr__(self, field, value)

    @classmethod
    def _trusted(cls, *fields: Any) -> FDivergence:
        """A named divergence. Tests compare its closed forms with the definition, so they are not checked at import."""
        divergence = cls.__new__(cls)
        divergence._set(*fields)
        object.__setattr__(divergence, "_functions", ())
        if divergence.recipe and len(divergence.recipe) == 1:
            NAMED[divergence.recipe[0]] = divergence
        return divergence

    def __setattr__(self, field: str, value: object) -> None:
        raise AttributeError(f"FDivergence is frozen; cannot set {field}")

    def __delattr__(self, field: str) -> None:
        raise AttributeError(f"FDivergence is frozen; cannot delete {field}")

    def generator(self, t: Any) -> Any:
        """Compute f(t) for t in [0, inf], with its limits at the ends."""
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(all="ignore"):
            inner = self._generator(np.where((t > 0) & np.isfinite(t), t, 1.0))
            top = float(self._generator(np.float64(math.inf)))
        if math.isnan(top):
            top = math.inf if self.slope_at_infinity > 0 else -math.inf
        return unwrap_scalar(np.where(t == 0, self.at_zero, np.where(np.isinf(t), top, inner)))

    def derivative(self, t: Any) -> Any:
        """Compute f'(t) for t in (0, inf); at a kink, some subgradient."""
        return unwrap_scalar(self._derivative(np.asarray(t, dtype=np.float64)))

    def perspective(self, a: Any, b: Any) -> Any:
        """Compute the perspective mu(a, b) = b f(a/b) of f, for a, b >= 0.

        mu(a, 0) = a lim f(t)/t and mu(0, 0) = 0. D_f(p || q) is the sum of mu(p_y, q_y). The function is convex, zero
        on a = b, and positively homogeneous.

        >>> from ldpopt.divergences import KL
        >>> KL.perspective(0.0, 0.5), KL.perspective(0.5, 0.0)
        (0.0, inf)
        """
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        both_positive = (a > 0) & (b > 0)
        with np.errstate(all="ignore"):
            value = np.where(
                b > 0, b * self._generator(np.where(both_positive, a, 1.0) / np.where(both_positive, b, 1.0)), 0.0
            )
            if self._excess is not None and not np.isfinite(value[both_positive]).all():
                # a/b left the range of doubles; mu itself may not have.
                safe = self.positive_excess(np.where(both_positive, a, 1.0), np.where(both_positive, b, 1.0))
                safe = safe + self._slope_at_one() * (a - b)
                value = np.where(both_positive & ~np.isfinite(value), safe, value)
            value = np.where((a == 0) & (b > 0), b * self.at_zero, value)
            value = np.where((b == 0) & (a > 0), a * self.slope_at_infinity, value)
        return unwrap_scalar(value)

    def excess(self, a: Any, b: Any) -> Any:
        """Compute mu(a, b) - f'(1) (a - b) >= 0, without cancellation near a = b."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        return self._edged(a - b, a, b)

    def excess_of(self, d: Any, b: Any, a: Any = None) -> Any:
        """Compute `excess(b + d, b)` from the difference d, for b, b + d >= 0.

        All digits are right where |d| is far below b.

        a : b + d, where it is known to more digits than the rounded sum has.

        >>> from ldpopt.divergences import CHI_SQUARED
        >>> CHI_SQUARED.excess_of(1e-100, 0.5), CHI_SQUARED.excess(0.5 + 1e-100, 0.5)
        (2e-200, 0.0)
        """
        if a is None:
            with np.errstate(over="ignore", invalid="ignore"):
                # Where exact d and b nearly cancel, their floating-point sum is exact; elsewhere it is rounded once.
                a = np.add(b, d)
        d, a, b = np.broadcast_arrays(*(np.asarray(part, np.float64) for part in (d, a, b)))
        return self._edged(d, a, b)

    def _edged(self, d: Array, a: Array, b: Array) -> Any:
        """The excess of d = a - b, with its limits where a or b is zero."""
        is_positive = (a > 0) & (b > 0)
        if is_positive.all():
            return unwrap_scalar(self._inner(d, a, b))
        value = self._inner(*(np.where(is_positive, part, neutral) for part, neutral in ((d, 0.0), (a, 1.0), (b, 1.0))))
        slope = self._slope_at_one()
        with np.errstate(over="ignore", invalid="ignore"):
            edge = np.where(a > 0, a * (self.slope_at_infinity - slope), 0.0)
            edge = np.where(b > 0, b * (self.at_zero + slope), edge)
        return unwrap_scalar(np.where(is_positive, value, np.where((a > 0) | (b > 0), edge, 0.0)))

    def positive_excess(self, a: Array, b: Array) -> Array:
        """Compute `excess` for arrays with positive entries only, which is faster."""
        return self._inner(a - b, a, b)

    def _inner(self, d: Array, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            if self._excess is not None:
                return np.asarray(self._excess(d, a, b))
            return np.asarray(b * self._generator(a / b) - self._slope_at_one() * d)

    def tangent(self, ratio: Any) -> tuple[Any, Any]:
        """Compute (slope, level) of the plane that touches `excess` at a/b = ratio from below.

        The plane is slope * a + level * b.

        >>> from ldpopt.divergences import CHI_SQUARED
        >>> CHI_SQUARED.tangent(2.0)
        (2.0, -3.0)
        """
        ratio = np.asarray(ratio, dtype=np.float64)
        slope = np.asarray(self.derivative(ratio)) - self._slope_at_one()
        return unwrap_scalar(slope), unwrap_scalar(np.asarray(self.excess(ratio, np.ones_like(ratio))) - ratio * slope)

    @property
    def in_nats(self) -> bool:
        """True if the divergence has a logarithm, and so a unit; others are pure numbers."""
        return (self.recipe or ("",))[0] in IN_NATS

    @property
    def operator_convex(self) -> bool:
        """True if f is known to be operator convex, so that D_f contracts like chi-squared [CRS].

        Such an f is, up to a multiple of t - 1, a mixture of (t - 1)^2 and (t - 1)^2 / (t + s) over s >= 0. Of the
        named divergences all but the total variation are, of the alpha-divergences those of order -1 to 2.

        >>> from ldpopt.divergences import JENSEN_SHANNON, alpha
        >>> JENSEN_SHANNON.operator_convex, alpha(2.5).operator_convex
        (True, False)
        """
        name, *parameters = self.recipe or ("",)
        if type(self) is not FDivergence:  # another class may compute something else
            return False
        return -1 <= parameters[0] <= 2 if name == "alpha" else name in OPERATOR_CONVEX

    def _slope_at_one(self) -> float:
        return float(self._derivative(np.float64(1.0)))

    def conjugate(self, s: Any) -> Any:
        """Compute f*(s) = sup over t >= 0 of s t - f(t), possibly inf.

        >>> from ldpopt.divergences import CHI_SQUARED
        >>> CHI_SQUARED.conjugate(2.0)
        3.0
        """
        s = np.asarray(s, dtype=np.float64)
        if self._conjugate is not None:
            with np.errstate(all="ignore"):
                return unwrap_scalar(np.asarray(self._conjugate(s), dtype=np.float64))
        return unwrap_scalar(np.vectorize(self._numeric_conjugate, otypes=[np.float64])(s))

    def _numeric_conjugate(self, s: float) -> float:
        from scipy.optimize import minimize_scalar

        if s > self.slope_at_infinity:
            return math.inf
        minimum = minimize_scalar(
            lambda u: float(self._generator(np.exp(u))) - s * math.exp(u), bounds=(-60.0, 60.0), method="bounded",
            options={"xatol": 1e-12},
        )  # fmt: skip
        return max(-float(minimum.fun), -self.at_zero)

    def __call__(self, p: Any, q: Any) -> float:
        """D_f(p || q) of two distributions of one length, shape (k,); inf where the formula gives inf."""
        (p, q), _ = aligned([("p", p), ("q", q)])
        p = distribution(p, "p")
        q = distribution(q, "q", size=len(p))
        return self.sum(p, q)

    def sum(self, p: Array, q: Array) -> float:
        """Compute the divergence of two checked probability vectors."""
        return float(np.sum(self.excess(p, q)))

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, FDivergence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        """The value that equality compares: the recipe, or the user's arguments. A function equals only itself."""
        return self.recipe or (self.name, self._functions, self.at_zero, self.slope_at_infinity)

    def __reduce__(self) -> Any:
        if self.recipe:
            return rebuild, self.recipe
        if not taken_whole():
            for function in self._functions:
                require_findable(function, self.name)
        generator, derivative, conjugate = self._functions
        options = {"derivative": derivative, "at_zero": self.at_zero, "slope_at_infinity": self.slope_at_infinity}
        made_again: Any = partial(FDivergence, name=self.name, conjugate=conjugate, **options)  # type: ignore[arg-type]
        return made_again, (generator,)


_FIELDS = ("name", "_generator", "_derivative", "at_zero", "slope_at_infinity", "_conjugate", "_excess", "recipe")

OPERATOR_CONVEX = frozenset(
    ("kl", "reverse-kl", "jeffreys", "chi-squared", "neyman-chi-squared", "squared-hellinger", "jensen-shannon",
     "le-cam")
)  # fmt: skip
"""The named divergences with an operator convex f."""

IN_NATS = frozenset(("kl", "reverse-kl", "jeffreys", "jensen-shannon"))
"""The named divergences that are logarithms."""

NAMED: dict[str, FDivergence] = {}
"""The named divergences, by the names that the command line and files use."""

FAMILIES: dict[str, tuple[str, Callable[[Any], FDivergence], Callable[[str], Any]]] = {}
"""The families of divergences: the name of the parameter, what makes a member of it, and what reads it from text."""


def rebuild(name: str, *parameters: Any) -> FDivergence:
    """Build the divergence of a `recipe`: a name of `NAMED`, or a family and a parameter."""
    if name in NAMED and not parameters:
        return NAMED[name]
    if name in FAMILIES and len(parameters) == 1:
        return FAMILIES[name][1](parameters[0])
    choices = ", ".join([*NAMED, *(f"{family} {spelling[0]}" for family, spelling in FAMILIES.items())])
    raise invalid("divergence", f"one of {choices}", " ".join([name, *map(str, parameters)]))


def parse_divergence(text: str) -> FDivergence:
    """Return the divergence that a text names, as people type it.

    Parameters
    ----------
    text : The name, with the parameter after a colon.

    Returns
    -------
    FDivergence
        The named divergence.

    Raises
    ------
    InvalidInput
        If the name is unknown, or its family does not take the parameter.

    Examples
    --------
    >>> parse_divergence("hockey-stick:1.5")
    <hockey-stick divergence of 1.5>
    """
    if not isinstance(text, str):
        raise invalid("divergence", "its name, as text", type(text).__name__)
    family, _, parameter = text.strip().partition(":")
    if not parameter:
        return rebuild(family)
    try:
        value = FAMILIES[family][2](parameter) if family in FAMILIES else float(parameter)
        return rebuild(family, value)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        takes_list = family in FAMILIES and FAMILIES[family][2] is not float
        expected = FAMILIES[family][0] if takes_list else "a number"
        raise invalid(f"divergence {family}", expected, parameter) from None


def spellings() -> str:
    """List the texts that `parse_divergence` reads: names, and families with their parameter."""
    *names, last = [*NAMED, *(f"{family}:{spelling[0]}" for family, spelling in FAMILIES.items())]
    return f"{', '.join(names)} or {last}"


def format_divergence(f: FDivergence) -> str:
    """Format a named divergence as the text that `parse_divergence` reads.

    Parameters
    ----------
    f : A named divergence.

    Returns
    -------
    str
        Its name, with the parameter after a colon.

    Raises
    ------
    InvalidInput
        If the divergence is user-defined.

    Examples
    --------
    >>> from ldpopt.divergences import KL
    >>> format_divergence(KL)
    'kl'
    """
    if not isinstance(f, FDivergence) or f.recipe is None:
        raise invalid("divergence", "a named one", getattr(f, "name", f))
    name, *parameters = f.recipe
    return ":".join([name, *("/".join(",".join(map(repr, numbers)) for numbers in p) if isinstance(p, tuple) else str(p)
                             for p in parameters)])  # fmt: skip
