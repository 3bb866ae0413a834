"""The methods in order of preference, and the first of them that does not refuse a problem."""

from __future__ import annotations

from ldpopt.design.candidate import Method
from ldpopt.design.methods.balanced import BalancedSets
from ldpopt.design.methods.branch_and_bound import BranchAndBound
from ldpopt.design.methods.decisions import DecisionProgram, SamplingProgram
from ldpopt.design.methods.erasure import Erasure
from ldpopt.design.methods.estimation import EstimationColumns
from ldpopt.design.methods.even_pilot import EvenPilot
from ldpopt.design.methods.exchange import Exchange
from ldpopt.design.methods.given_outputs import GivenDecisions, GivenSearch
from ldpopt.design.methods.integer_program import IntegerProgram
from ldpopt.design.methods.levels import LevelLP
from ldpopt.design.methods.local_search import LocalSearch
from ldpopt.design.methods.marginals import MarginalPatterns
from ldpopt.design.methods.partition import MergedPartition, Partition
from ldpopt.design.methods.patterns import PatternLP
from ldpopt.design.methods.policies import PolicyLP
from ldpopt.design.methods.rounded import Rounded
from ldpopt.design.methods.saddle import Saddle
from ldpopt.design.methods.sampled_columns import SampledColumns, SmallSets
from ldpopt.design.methods.shapes import LevelShapes
from ldpopt.design.methods.tangent_exchange import TangentExchange
from ldpopt.design.methods.threshold_columns import ThresholdColumns
from ldpopt.design.problems.problem import Problem
from ldpopt.errors import InvalidInput, Phrase, invalid

METHODS: tuple[Method, ...] = (
    IntegerProgram(),
    Rounded(),
    Erasure(),
    Partition(),
    MergedPartition(),
    BranchAndBound(),
    GivenDecisions(),
    GivenSearch(),
    DecisionProgram(),
    SamplingProgram(),
    Saddle(),
    ThresholdColumns(),
    EvenPilot(),
    SmallSets(),
    SampledColumns(),
    EstimationColumns(),
    PatternLP(),
    MarginalPatterns(),
    LevelLP(),
    BalancedSets(),
    TangentExchange(),
    Exchange(),
    LevelShapes(),
    PolicyLP(),
    LocalSearch(8),
)
"""All methods, in the order in which they are tried."""


def choose(problem: Problem, named: Method | None) -> Method:
    """The method that the caller named, or the first that does not refuse; `InvalidInput` says why none does."""
    if named is not None:
        if isinstance(named, type) or not callable(getattr(named, "refuses", None)):
            raise invalid("method", "a method object such as Partition()", named)
        if why := refusal(named, problem):
            # A method for pairs of hypotheses may be used by one for sets of hypotheses.
            outer: list[Method] = [
                one.using(named) for one in METHODS if hasattr(one, "using") and not refusal(one, problem)
            ]
            if outer:
                return outer[0]
            raise invalid("method", "one that applies", Phrase(f"{type(named).__name__}: {why}"))
        return named
    found = next((method for method in METHODS if not refusal(method, problem)), None)
    if found is None:
        reasons = "; ".join(f"{type(one).__name__}: {refusal(one, problem)}" for one in METHODS)
        raise InvalidInput(f"problem: expected one that a method solves, got one that all refuse ({reasons})")
    return found


def refusal(method: Method, problem: Problem) -> str:
    """Why a method does not apply, as half a sentence; empty where it does."""
    if problem.denominator is not None and not getattr(method, "integral", False):
        return f"it finds no multiples of 1/{problem.denominator}"
    return method.refuses(problem)
