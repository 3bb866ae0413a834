"""The constraints of a problem by kind: column terms, constraints on given outputs, and expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ldpopt.design.constraints.alphabet import AlphabetConstraint
from ldpopt.design.constraints.terms import Ratio, Term

Expression = Callable[[Any], Sequence[Any]]
"""From the cvxpy variable Q (k, n) to cvxpy constraints on it."""


def outputs_of(fixed: Sequence[Any], inputs: int) -> int:
    """The number of outputs that the alphabet constraints agree on; where all are budgets, the smallest."""
    from ldpopt.errors import InvalidInput

    exact = {one.outputs(inputs) for one in fixed if one.labelled}
    budgets = [one.outputs(inputs) for one in fixed if not one.labelled]
    if len(exact) > 1:
        raise InvalidInput(f"constraints: expected one number of outputs, got {sorted(exact)}")
    if exact and budgets and min(budgets) < min(exact):
        raise InvalidInput(
            f"constraints: expected a budget of at least the {min(exact)} outputs that others name, got {min(budgets)}"
        )
    return int(min(exact or budgets))


def implied(constraints: Sequence[Any], posed: Any) -> bool:
    """Whether some constraint is `posed` itself or implies it."""
    return any(c is posed or (hasattr(c, "implies") and c.implies(posed)) for c in constraints)


def symmetric(constraints: Sequence[Any]) -> bool:
    """Whether every constraint says that it treats all inputs alike."""
    return all(getattr(constraint, "symmetric", False) for constraint in constraints)


def parts(
    constraints: Sequence[Any], inputs: Sequence[Any]
) -> tuple[tuple[Term | Ratio, ...], tuple[AlphabetConstraint, ...], tuple[Expression, ...]]:
    """The constraints by kind: column terms, constraints on given outputs, and expressions of users' own."""
    from ldpopt.design.constraints.base import ColumnConstraint

    terms: list[Term | Ratio] = []
    fixed, expressions = [], []
    for constraint in constraints:
        if isinstance(constraint, ColumnConstraint):
            terms += constraint.columns(inputs)
        elif isinstance(constraint, AlphabetConstraint):
            fixed.append(constraint)
        else:
            expressions.append(constraint.expression)
    return tuple(terms), tuple(fixed), tuple(expressions)
