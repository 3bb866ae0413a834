"""The exceptions of the package, in one tree. Messages name the value, the expectation, the actual value and its
place."""

from __future__ import annotations

__all__ = [
    "BudgetExceeded", "CertificateError", "DroppedResult", "InvalidInput", "LdpoptError", "NotChecked", "Phrase",
    "SolverError",
    "invalid",
]  # fmt: skip


class LdpoptError(Exception):
    """The base class of every exception that the package raises on purpose."""


class InvalidInput(LdpoptError, ValueError):
    """A value that the caller passed, or that a file holds, is not one that the function accepts."""


class SolverError(LdpoptError, RuntimeError):
    """No solver returned an answer that may be used."""


class BudgetExceeded(LdpoptError, RuntimeError):
    """The request would exceed a privacy budget. It was refused, and nothing was spent."""


class CertificateError(LdpoptError, RuntimeError):
    """A certificate does not prove its claims."""


class DroppedResult(UserWarning):
    """The new value that a method of an immutable object returned was dropped, so that the call had no effect."""


class NotChecked(LdpoptError, RuntimeError):
    """A proof was not checked: that exceeds the budget, or this arithmetic cannot check it. It may hold or not."""


class Phrase(str):
    """Text for the argument `got` of `invalid` that the message shows without quotes; other text is quoted.

    >>> Phrase("another text")
    another text
    """

    __slots__ = ()

    def __new__(cls, text: object) -> Phrase:
        """Show a value by `str`."""
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return str(self)


def invalid(name: str, expected: str, got: object, where: str = "") -> InvalidInput:
    """Build an `InvalidInput` with the standard form of messages; the caller raises it.

    name : the name of the value.
    expected, got : a description of valid values, and the actual one.
    where : the entry or line, if any.

    >>> print(invalid("epsilon", "a positive finite number", -1))
    epsilon: expected a positive finite number, got -1
    >>> print(invalid("p0", "non-negative entries", -0.5, "entry 3"))
    p0: expected non-negative entries, got -0.5 at entry 3
    >>> print(invalid("labels", "distinct labels", Phrase("'a' twice")))
    labels: expected distinct labels, got 'a' twice
    """
    text = repr(got) if isinstance(got, str) else str(got)
    if len(text) > 120:
        text = text[:117] + "..."
    return InvalidInput(f"{name}: expected {expected}, got {text}" + (f" at {where}" if where else ""))
