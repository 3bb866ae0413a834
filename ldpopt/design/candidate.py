"""A method that finds channels, why it refuses a problem in words, and the candidate that it passes to `finish`."""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from ldpopt.channel import Channel
from ldpopt.design.constraints.local_dp import LocalDP
from ldpopt.design.kernel.certificate import Certificate
from ldpopt.design.problems.problem import Problem
from ldpopt.design.registry import Kind, Room, heads_of, inherits
from ldpopt.design.utilities.base import ColumnUtility, Utility
from ldpopt.values.distribution import Array

Ask = Callable[..., Any]
"""`optimal_channel` itself, handed to methods and proofs that need the optimum of another problem."""
Prove = Callable[[Problem, Channel], Iterable[Certificate]]
"""From a problem, and the channel made of a method's matrix, to the certificates that the method brings along."""


def proved_by(kind: Callable[..., Certificate], *numbers: Any) -> Prove:
    """The proof that is one certificate of a kind, with these numbers, of the whole problem."""
    return lambda posed, channel: (kind(posed.whole, posed.constraints, channel, *numbers),)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A channel as a method found it, nearly feasible: `finish` repairs, measures and proves it.

    matrix : (n, m), one row for each of the n reduced inputs of a pair of hypotheses (`Problem.reduction`), and for
        each of the k inputs otherwise.
    method : how it was found, in words for a reader.
    prove : the certificates that came with it, best first.
    tolerance : the relative gap that counts as certified; None for the usual one.
    problem : the problem with the orders that were added for a constraint of infinitely many; None where none were.
    note : what else a reader should know.
    shortfall : why the bound may miss the tolerance, told where it does.
    reference : the papers of the way it was found, where they are not those of the method.
    apart : whether its outputs stay as they are, as merging them might break a constraint.

    >>> Candidate(np.eye(2), "full disclosure").tolerance is None
    True
    """

    matrix: Array
    method: str
    prove: Prove | None = None
    tolerance: float | None = None
    problem: Problem | None = None
    note: str = ""
    shortfall: str = ""
    reference: str = ""
    apart: bool = False


class Limit(str):
    """A reason to refuse a problem that is a matter of size only: the method is for problems of this kind."""

    __slots__ = ()


class Method(Kind, ABC):
    """A way to find a channel; an object of such a class can be passed to `optimal_channel` as `method=`.

    Beside the readers of its fields, a class names what it declares: ``class PatternLP(Method, preference=160)``.

    reference : the keys of its papers, e.g. ``"[SPR]"``, for `cite`. solves : the kind of utility that it is made for,
    where there is one. needs : functions such as `needs_columns` that say why a problem is of another class; they are
    asked before `refuses`. preference : its place in `METHODS`, which are tried in ascending order. integral : whether
    it finds multiples of 1/D; problems with a `Denominator` are given to such methods only. by_cvxpy : whether it
    solves programs through cvxpy.

    `declared` reads solves, needs, preference and integral from the sources, so that only a method that may apply is
    imported.
    """

    reference: ClassVar[str] = ""
    solves: ClassVar[type] = Utility
    needs: ClassVar[tuple[Callable[[Problem], str], ...]] = ()
    integral: ClassVar[bool] = False
    by_cvxpy: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        for name in ("reference", "solves", "needs", "preference", "integral", "by_cvxpy"):
            if name in keywords:
                setattr(cls, name, keywords.pop(name))
        super().__init_subclass__(**keywords)

    @classmethod
    def usual(cls) -> Self:
        """The object that is tried where the caller names no method."""
        return cls()

    @abstractmethod
    def refuses(self, problem: Problem) -> str:
        """Why this method does not apply to a `problem` of its class, as half a sentence; empty where it applies.

        A `Limit` where it would apply to a smaller problem of the kind.
        """

    @abstractmethod
    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """A channel for a `problem` that this method does not refuse. ask : `optimal_channel`, for other problems.

        Its loops run over ``problem.deadline.rounds(...)``, which ends when the time is over.
        """

    def using(self, inner: Method) -> Method | None:
        """The same method with `inner` for the simpler problems that it asks for; None where it asks for none."""
        return None


def refusal(method: Method, problem: Problem) -> str:
    """Why a method does not apply, as half a sentence; empty where it does."""
    if problem.denominator is not None and not method.integral:
        return f"it finds no multiples of 1/{problem.denominator}"
    return next(filter(None, (needed(problem) for needed in method.needs)), "") or method.refuses(problem)


@dataclass(frozen=True)
class Declared:
    """A method as the head of its class declares it; `method` imports its module."""

    name: str
    module: str
    preference: int
    integral: bool
    solves: str
    needs: tuple[str, ...]

    @cached_property
    def method(self) -> Method:
        """The object that is tried where the caller names no method."""
        usual: Method = getattr(import_module(self.module), self.name).usual()
        return usual

    def may_apply(self, problem: Problem) -> bool:
        """Return True if the problem is of the class that the method declares."""
        if self.integral != (problem.denominator is not None):
            return False
        return inherits(problem.utility, self.solves) and not any(globals()[need](problem) for need in self.needs)


@cache
def declared(room: ModuleType | Room) -> tuple[Declared, ...]:
    """The methods of a package that are tried where none is named, in order, as the heads of their classes say."""
    heads = heads_of(room)

    def words(name: str) -> dict[str, Any]:
        """What a class declares or inherits; empty for a class that is no method."""
        if name not in heads:
            return words_of(globals().get(name))
        if heads[name].arguments is None:
            return words_of(getattr(import_module(heads[name].module), name))
        call = ast.parse(f"_({heads[name].arguments})", mode="eval").body
        assert isinstance(call, ast.Call)
        inherited: dict[str, Any] = next(filter(None, (words(ast.unparse(base)) for base in call.args)), {})
        stated = {each.arg: each.value for each in call.keywords if each.arg in inherited}
        return inherited | {word: _literal(value) for word, value in stated.items()}

    found = [Declared(name, heads[name].module, **said) for name in heads if (said := words(name))]
    tried = (each for each in found if each.preference < Method.preference)
    return tuple(sorted(tried, key=lambda each: each.preference))


def words_of(kind: Any) -> dict[str, Any]:
    """What a class that is imported declares, in the words of `Declared`; empty for one that is no method."""
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        return {}
    needs = tuple(need.__name__ for need in kind.needs)
    return {"preference": kind.preference, "integral": kind.integral, "solves": kind.solves.__name__, "needs": needs}


def _literal(value: ast.expr) -> Any:
    """The value of a word in the head of a class: a constant, a name, or a tuple of names."""
    if isinstance(value, ast.Tuple):
        return tuple(map(ast.unparse, value.elts))
    return ast.unparse(value) if isinstance(value, ast.Name) else ast.literal_eval(value)


MAX_LISTED_INPUTS = 1000  # With more inputs, pairs are not listed to be counted: the list would take all memory
# The most inputs, and the most constrained pairs, at every likelihood ratio; near these a design takes very long.
MAX_LABELLED, MAX_PAIRS = 200, 5000


def only(problem: Problem, *kinds: type) -> bool:
    """Whether every constraint is of one of these kinds."""
    return all(isinstance(constraint, kinds) for constraint in problem.constraints)


def pairs_of(problem: Problem, inputs: int) -> int:
    """The number of constrained pairs of inputs; `LocalDP` between all inputs needs none.

    With more than `MAX_LISTED_INPUTS` inputs, all ordered pairs are taken to be constrained.
    """
    free = problem.free
    if free is None or (only(free, LocalDP) and free.symmetric):
        return 0
    return inputs * (inputs - 1) if inputs > MAX_LISTED_INPUTS else sum(len(term) for term in problem.terms)


def too_many_pairs(problem: Problem, inputs: int) -> str:
    """Why a method whose programs have all constrained pairs at every ratio refuses; empty if it does not."""
    if inputs > MAX_LABELLED:
        return Limit(f"{inputs} inputs are too many for its programs (at most {MAX_LABELLED})")
    count = pairs_of(problem, inputs)
    if count > MAX_PAIRS:
        return Limit(f"its programs would constrain {count} pairs of inputs, and it takes at most {MAX_PAIRS}")
    return ""


def too_large(problem: Problem, inputs: int, outputs: int, most: int) -> str:
    """Why a method for programs of up to `most` entries refuses; empty if it does not.

    Entries are the outputs, times the inputs and the constrained pairs of inputs.
    """
    entries = outputs * (inputs + pairs_of(problem, inputs))
    return Limit(f"its programs would have {entries} entries, and it takes at most {most}") if entries > most else ""


def needs_columns(problem: Problem) -> str:
    """Why a method for sums over outputs refuses; empty if it does not."""
    if isinstance(problem.utility, ColumnUtility):
        return ""
    return f"{problem.utility.name} is no sum over outputs of functions of the column"


def needs_outputs(problem: Problem) -> str:
    """Why a method for given outputs refuses; empty if it does not."""
    return "" if problem.given else "it needs a constraint on the outputs, such as Outputs(m)"


def needs_ratios(problem: Problem) -> str:
    """Why a method that chooses outputs by the likelihood ratio of two hypotheses refuses; empty if it does not."""
    if problem.utility.pair is None:
        return f"it goes by the likelihood ratio of two hypotheses, and {problem.utility.name} has none, or several"
    fixed = problem.given or problem.placed
    return "constraints fix the outputs, which it chooses by likelihood ratio" if fixed else ""


def needs_pure_ldp(problem: Problem) -> str:
    """Why a method for two hypotheses under `LocalDP`, with `TotalVariation` or without, refuses; empty if not."""
    if problem.utility.pair is None:
        return needs_ratios(problem)
    if not problem.plain:
        return "it takes LocalDP and TotalVariation between all inputs, and there are other constraints"
    if math.isinf(problem.epsilon):
        return "it needs a LocalDP constraint; Erasure solves a cap on total variation alone"
    return ""


def needs_patterns(problem: Problem) -> str:
    """Why a method whose columns are staircase patterns refuses; empty if not."""
    if problem.plain and math.isfinite(problem.epsilon):
        return ""
    return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"


def needs_information(problem: Problem) -> str:
    """Why a method for mutual information refuses; empty if it does not."""
    if problem.utility.information:
        return ""
    return f"it goes by the probability of sets of answers, and {problem.utility.name} depends on more"


def needs_even_prior(problem: Problem) -> str:
    """Why a method for one even prior or pilot refuses; empty if it does not."""
    prior = getattr(problem.utility, "prior", None)
    if prior is None or np.ndim(prior) != 1 or np.ptp(prior[prior > 0]) > 0:
        return "the prior is not even, or there is none"
    return ""


def needs_laws(problem: Problem) -> str:
    """Why a method for utilities of the marginals of a few laws refuses; empty if it does not."""
    if getattr(problem.utility, "compared", None) is None:
        return f"{problem.utility.name} is no utility of the marginals of a few laws"
    return ""
