"""Whether a forgery that is accepted proves something true."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from truth import divided
from truth.feasible import violations
from truth.optimum import envelope, rows_of
from truth.utilities import Kept
from truth.verdict import Found, Posed, caps, faults, truth

from forging.plain import Unknown, posed
from ldpopt.errors import LdpoptError

OWN = 1e-24
"""The accuracy of what the truth says a feasible channel attains, relative to it."""
MOST = 7
"""The most inputs whose patterns the truth looks at."""


@dataclass
class Judge:
    """Remembers what is true of every problem that it has met."""

    steps: int = 20
    allowed: float = math.inf
    """How many more problems may be searched for feasible channels, which takes a second each."""
    last: float = math.nan
    """The bound that was judged last."""
    known: dict[str, Found | None] = field(default_factory=dict)
    by_object: dict[tuple[int, ...], tuple[Any, Found | None]] = field(default_factory=dict)

    def found(self, utility: Any, constraints: Any, channel: Any = None) -> Found | None:
        """Bounds on the optimum; None where the truth has no program for the problem."""
        own = (id(utility), *map(id, constraints))
        if own not in self.by_object:
            if self.allowed <= 0 and not _exact(constraints):
                return None
            self.allowed -= not _exact(constraints)
            # The objects are kept with the answer, so that no other object ever has their identity.
            self.by_object[own] = ((utility, constraints), self._found(utility, constraints, channel))
        return self.by_object[own][1]

    def _found(self, utility: Any, constraints: Any, channel: Any) -> Found | None:
        try:
            told = posed(utility, constraints)
        except Unknown:
            return None
        key = repr(told)
        if key not in self.known:
            try:
                self.known[key] = self._true(told, utility.continuous, channel)
            except (ValueError, IndexError, ArithmeticError):
                # Constraints that contradict each other, or are for other numbers of inputs: there is no such channel.
                self.known[key] = None
        return self.known[key]

    def _true(self, told: Posed, continuous: bool, channel: Any) -> Found | None:
        utility = told.utility
        if any(one[0] == "denominator" for one in told.constraints):
            if not isinstance(utility, Kept) or not divided.within_reach(utility, told.constraints):
                return None
            return Found(lower=divided.best(utility, told.constraints))
        if isinstance(utility, Kept) and utility.size > MOST:
            parts = utility.criteria[0]
            epsilon, eta, exact = caps(told.constraints)
            if len(utility.criteria) > 1 or len(parts) > 1 or not exact or not hasattr(parts[0][1], "p1"):
                return None
            # Masses of cells are rounded.
            return Found(lower=envelope(parts[0][1], epsilon, eta) * (1 - mpf(10) ** -12 * continuous))
        if channel is None and not told.constraints and isinstance(utility, Kept):
            channel = np.eye(utility.size)
        return truth(told, np.random.default_rng(0), channel, self.steps)

    def certificate(self, forged: Any) -> tuple[str, str]:
        """("refused" | "proved" | "wrong" | "raised" | "unknown", words) for what `forged.bound` says."""
        self.last = math.nan
        try:
            bound = forged.bound
        except LdpoptError:
            return "refused", ""
        except Exception as error:
            return "raised", described(error)
        self.last = bound
        return self.bound(forged, bound)

    def bound(self, forged: Any, bound: Any) -> tuple[str, str]:
        """The same for the bound that it said."""
        error = forged.utility.error
        if not isinstance(bound, float) or math.isnan(bound):
            return "wrong", f"the bound is {bound!r}"
        if bound == (-math.inf if error else math.inf):
            return "refused", ""
        found = self.found(forged.utility, forged.constraints)
        if found is None:
            return "unknown", ""
        best = found.upper if error else found.lower
        if not mpmath.isfinite(best):
            return ("unknown", "") if best == (mpmath.inf if error else -mpmath.inf) else ("proved", "")
        slack = OWN * abs(best) + _slack(forged.constraints, best)
        right = bound <= best + slack if error else bound >= best - slack
        return ("proved", "") if right else ("wrong", f"bound {bound!r}, but a channel has {mpmath.nstr(best, 17)}")

    def design(self, forged: Any) -> tuple[str, str]:
        """The same for what `forged.verify()` says."""
        try:
            if not forged.verify().proved:
                return "refused", ""
        except LdpoptError:
            return "refused", ""
        except Exception as error:
            return "raised", described(error)
        stated = ("value", "lower_bound", "upper_bound", "tolerance")
        wrong = self.claims(dataclasses.replace(forged, **{name: float(getattr(forged, name)) for name in stated}))
        if wrong is None:
            return "unknown", ""
        return ("wrong", "; ".join(wrong)[:500]) if wrong else ("proved", "")

    def _modest(self, told: Posed, forged: Any) -> str:
        """The end of the words for a value that is not the channel's, where it claims less than the channel keeps."""
        matrix = np.asarray(forged.channel.matrix)
        least = [v for v in matrix.ravel().tolist() if v > 0]
        with mpmath.workdps(
            (told.utility.digits(*least) if isinstance(told.utility, Kept) else told.utility.digits()) + 20
        ):
            own = told.utility.value(rows_of(matrix))
            claimed = mpf(forged.value) if math.isfinite(forged.value) else mpmath.nan
            less = claimed >= own if forged.utility.error else claimed <= own
            return f"the channel's is {mpmath.nstr(own, 12)}" if less else ""

    def claims(self, forged: Any) -> list[str] | None:
        """What a design claims that is not so; None where the truth cannot tell."""
        if forged.utility.continuous:
            kind, words = self.bound(forged, forged.upper_bound)
            return [words] if kind == "wrong" else []
        try:
            told = posed(forged.utility, forged.constraints)
        except Unknown:
            return None
        found = self.found(forged.utility, forged.constraints, np.asarray(forged.channel.matrix))
        if found is None:
            return None
        said = faults(told, forged, np.random.default_rng(0), found=found)
        modest = self._modest(told, forged)
        wrong = [f"{kind}: {text}" for kind, text in said if not (modest and text.endswith(modest))]
        if len(forged.guarantees) != len(told.constraints):
            wrong.append("guarantees: not one for each constraint")
            return wrong
        matrix = np.asarray(forged.channel.matrix)
        for stated, one, own in zip(forged.guarantees, told.constraints, forged.constraints, strict=True):
            if stated.notion != own.measure(forged.channel).notion:
                wrong.append(f"guarantees: {stated.notion} is stated of {one[0]}")
            if one[0] in ("local-dp", "total-variation", "zcdp", "outputs"):
                wrong += [f"guarantees: {text}" for text in violations(matrix, [(one[0], stated.value)])]
        return wrong


def _exact(constraints: Any) -> bool:
    """Whether the truth is a program that takes some milliseconds."""
    names = {type(one).__name__ for one in constraints}
    return "LocalDP" in names and names <= {"LocalDP", "TotalVariation"}


def _slack(constraints: Any, best: mpf) -> mpf:
    """What a channel may miss an equation by is worth something."""
    missed = any(type(one).__name__ == "Invariant" for one in constraints)
    return abs(best) * mpf(10) ** -6 if missed else mpf(0)


def described(error: BaseException) -> str:
    """The exception and where the package raised it."""
    at = error.__traceback__
    places = []
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if "ldpopt" in name:
            places.append(f"{name.rsplit('/', 1)[-1]}:{at.tb_lineno}")
        at = at.tb_next
    return f"{type(error).__name__}: {str(error)[:120]} at {' < '.join(places[::-1][:3])}"
