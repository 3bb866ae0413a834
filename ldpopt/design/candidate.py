"""The base class of methods, the reasons why a method rejects a problem, and the candidate passed to `finish`."""

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
from ldpopt.design.registry import Kind, ModuleGroup, class_headers, inherits
from ldpopt.design.utilities.base import ColumnUtility, Utility
from ldpopt.values.distribution import Array

Ask = Callable[..., Any]
"""`optimal_channel` itself, for methods and proofs that need the optimum of another problem."""
Prove = Callable[[Problem, Channel], Iterable[Certificate]]
"""The certificates supplied by a method, as a function of the problem and of the repaired channel."""


def proof_by(kind: Callable[..., Certificate], *numbers: Any) -> Prove:
    """Return a proof that consists of one certificate of type `kind`, with `numbers`, of the whole problem."""
    return lambda problem, channel: (kind(problem.original_utility, problem.constraints, channel, *numbers),)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A nearly feasible channel found by a method, before `finish` repairs, measures and certifies it.

    - `matrix` : (n, m) the channel. It has one row per reduced input for a pair of hypotheses (`Problem.reduction`),
      and one row per input otherwise.
    - `method` : a description of the search for a reader.
    - `prove` : the certificates supplied by the method, best first.
    - `tolerance` : the relative gap that counts as certified; None for the default.
    - `problem` : the problem with the orders that were added during the search; None if unchanged.
    - `note` : anything else that a reader should know.
    - `shortfall` : the reason why the bound may miss the tolerance, shown only if it does.
    - `reference` : the papers of this particular search, if they differ from those of the method.
    - `has_fixed_outputs` : True if the outputs must not be merged, since merging might break a constraint.

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
    has_fixed_outputs: bool = False


class Limit(str):
    """A reason of size alone to reject a problem: the method would apply to a smaller one."""

    __slots__ = ()


class Method(Kind, ABC):
    """A search for a channel; an instance can be passed to `optimal_channel` as `method=`.

    A subclass declares its class variables as keywords: ``class PatternLP(Method, preference=160)``.

    - `reference` : the keys of its papers, such as ``"[SPR]"``, for `cite`.
    - `solves` : the type of utility that the method is made for, if there is one.
    - `needs` : functions such as `needs_columns` that return why a problem is of another class. They are called before
      `refuses`.
    - `preference` : the position in `METHODS`, which are tried in ascending order.
    - `integral` : True if the method finds multiples of 1/D. Only such methods get problems with a `Denominator`.
    - `by_cvxpy` : True if the method solves programs through cvxpy.

    `declared_methods` reads solves, needs, preference and integral from the source files. So only a method that may
    apply is imported.
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
    def default(cls) -> Self:
        """Return the instance that is tried if the caller names no method."""
        return cls()

    @abstractmethod
    def refuses(self, problem: Problem) -> str:
        """Return why this method does not apply to a `problem` of its class, as half a sentence; empty if it applies.

        Returns a `Limit` if the method would apply to a smaller problem.
        """

    @abstractmethod
    def find(self, problem: Problem, ask: Ask) -> Candidate:
        """Find a channel for a `problem` that this method does not refuse.

        ask : `optimal_channel`, for other problems. Loops run over ``problem.deadline.rounds(...)``, which ends when
        the time is over.
        """

    def with_inner(self, inner: Method) -> Method | None:
        """Return this method with `inner` for the simpler problems that it solves; None if it solves none."""
        return None


def refusal(method: Method, problem: Problem) -> str:
    """Return why a method does not apply, as half a sentence; empty if it applies."""
    if problem.denominator is not None and not method.integral:
        return f"it finds no multiples of 1/{problem.denominator}"
    return next(filter(None, (reason_of(problem) for reason_of in method.needs)), "") or method.refuses(problem)


@dataclass(frozen=True)
class DeclaredMethod:
    """A method as declared in the header of its class; `method` imports its module."""

    name: str
    module: str
    preference: int
    integral: bool
    solves: str
    needs: tuple[str, ...]

    @cached_property
    def method(self) -> Method:
        """The instance that is tried if the caller names no method."""
        default: Method = getattr(import_module(self.module), self.name).default()
        return default

    def may_apply(self, problem: Problem) -> bool:
        """Return True if the problem is of the class that the method declares."""
        if self.integral != (problem.denominator is not None):
            return False
        return inherits(problem.utility, self.solves) and not any(globals()[need](problem) for need in self.needs)


@cache
def declared_methods(modules: ModuleType | ModuleGroup) -> tuple[DeclaredMethod, ...]:
    """List the methods of a group of modules that are tried if none is named, in order, from their class headers."""
    heads = class_headers(modules)

    def declarations(name: str) -> dict[str, Any]:
        """Return the declarations of a class, including inherited ones; empty unless it is a method."""
        if name not in heads:
            return declaration_of(globals().get(name))
        if heads[name].arguments is None:
            return declaration_of(getattr(import_module(heads[name].module), name))
        call = ast.parse(f"_({heads[name].arguments})", mode="eval").body
        assert isinstance(call, ast.Call)
        inherited_values: dict[str, Any] = next(
            filter(None, (declarations(ast.unparse(base)) for base in call.args)), {}
        )
        values = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in inherited_values}
        return inherited_values | {word: _literal(value) for word, value in values.items()}

    methods = [DeclaredMethod(name, heads[name].module, **fields) for name in heads if (fields := declarations(name))]
    chosen_by_default = (method for method in methods if method.preference < Method.preference)
    return tuple(sorted(chosen_by_default, key=lambda method: method.preference))


def declaration_of(kind: Any) -> dict[str, Any]:
    """Return the declarations of an imported class, by field of `DeclaredMethod`; empty unless it is a method."""
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        return {}
    needs = tuple(need.__name__ for need in kind.needs)
    return {"preference": kind.preference, "integral": kind.integral, "solves": kind.solves.__name__, "needs": needs}


def _literal(value: ast.expr) -> Any:
    """Return the value of a keyword in a class header: a constant, a name, or a tuple of names."""
    if isinstance(value, ast.Tuple):
        return tuple(map(ast.unparse, value.elts))
    return ast.unparse(value) if isinstance(value, ast.Name) else ast.literal_eval(value)


MAX_LISTED_INPUTS = 1000  # With more inputs, pairs are not listed to be counted: the list would take all memory
# The most inputs, and the most constrained pairs, at every likelihood ratio; near these a design takes very long.
MAX_LABELLED, MAX_PAIRS = 200, 5000


def only(problem: Problem, *kinds: type) -> bool:
    """Return True if every constraint is of one of these types."""
    return all(isinstance(constraint, kinds) for constraint in problem.constraints)


def pairs_of(problem: Problem, inputs: int) -> int:
    """Count the constrained pairs of inputs; `LocalDP` between all inputs needs none.

    With more than `MAX_LISTED_INPUTS` inputs, all ordered pairs count as constrained.
    """
    problem_without_outputs = problem.without_output_constraints
    if problem_without_outputs is None or (
        only(problem_without_outputs, LocalDP) and problem_without_outputs.symmetric
    ):
        return 0
    return inputs * (inputs - 1) if inputs > MAX_LISTED_INPUTS else sum(len(term) for term in problem.terms)


def too_many_pairs(problem: Problem, inputs: int) -> str:
    """Return why a method whose programs contain all constrained pairs at every ratio refuses; empty if it applies."""
    if inputs > MAX_LABELLED:
        return Limit(f"{inputs} inputs are too many for its programs (at most {MAX_LABELLED})")
    count = pairs_of(problem, inputs)
    if count > MAX_PAIRS:
        return Limit(f"its programs would constrain {count} pairs of inputs, and it takes at most {MAX_PAIRS}")
    return ""


def too_large(problem: Problem, inputs: int, outputs: int, max_entries: int) -> str:
    """Return why a method for programs of up to `max_entries` entries refuses; empty if it applies.

    The number of entries is the number of outputs times the numbers of inputs and of constrained pairs of inputs.
    """
    entries = outputs * (inputs + pairs_of(problem, inputs))
    return (
        Limit(f"its programs would have {entries} entries, and it takes at most {max_entries}")
        if entries > max_entries
        else ""
    )


def needs_columns(problem: Problem) -> str:
    """Return why a method for sums over outputs refuses; empty if it applies."""
    if isinstance(problem.utility, ColumnUtility):
        return ""
    return f"{problem.utility.name} is no sum over outputs of functions of the column"


def needs_outputs(problem: Problem) -> str:
    """Return why a method for fixed outputs refuses; empty if it applies."""
    return "" if problem.output_constraints else "it needs a constraint on the outputs, such as Outputs(m)"


def needs_ratios(problem: Problem) -> str:
    """Return why a method that orders outputs by one likelihood ratio refuses; empty if it applies."""
    if problem.utility.pair is None:
        return f"it goes by the likelihood ratio of two hypotheses, and {problem.utility.name} has none, or several"
    fixes_outputs = problem.output_constraints or problem.fixes_output_order
    return "constraints fix the outputs, which it chooses by likelihood ratio" if fixes_outputs else ""


def needs_pure_ldp(problem: Problem) -> str:
    """Return why a method for two hypotheses under `LocalDP` and `TotalVariation` refuses; empty if it applies."""
    if problem.utility.pair is None:
        return needs_ratios(problem)
    if not problem.has_only_ldp_and_tv:
        return "it takes LocalDP and TotalVariation between all inputs, and there are other constraints"
    if math.isinf(problem.epsilon):
        return "it needs a LocalDP constraint; Erasure solves a cap on total variation alone"
    return ""


def needs_patterns(problem: Problem) -> str:
    """Return why a method whose columns are staircase patterns refuses; empty if it applies."""
    if problem.has_only_ldp_and_tv and math.isfinite(problem.epsilon):
        return ""
    return "staircase patterns are optimal under LocalDP between all inputs, with TotalVariation or without"


def needs_information(problem: Problem) -> str:
    """Return why a method for mutual information refuses; empty if it applies."""
    if problem.utility.information:
        return ""
    return f"it goes by the probability of sets of answers, and {problem.utility.name} depends on more"


def needs_uniform_prior(problem: Problem) -> str:
    """Return why a method for one uniform prior or pilot refuses; empty if it applies."""
    prior = getattr(problem.utility, "prior", None)
    if prior is None or np.ndim(prior) != 1 or np.ptp(prior[prior > 0]) > 0:
        return "the prior is not even, or there is none"
    return ""


def needs_compared_distributions(problem: Problem) -> str:
    """Return why a method for utilities of a few marginals refuses; empty if it applies."""
    if getattr(problem.utility, "compared", None) is None:
        return f"{problem.utility.name} is no utility of the marginals of a few laws"
    return ""
