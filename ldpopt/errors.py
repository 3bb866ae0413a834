"""The exceptions of the package: one tree, messages that say what, expected, got and where."""

from __future__ import annotations

__all__ = ["BudgetExceeded", "CertificateError", "InvalidInput", "LdpoptError", "SolverError"]


class LdpoptError(Exception):
    """Base of every exception the package raises on purpose."""


class InvalidInput(LdpoptError, ValueError):
    """A value from outside is not what the function takes."""


class SolverError(LdpoptError, RuntimeError):
    """No solver returned an answer that may be used."""


class BudgetExceeded(LdpoptError, RuntimeError):
    """What was asked for would exceed a privacy budget; nothing was spent."""


class CertificateError(LdpoptError, RuntimeError):
    """A certificate does not prove what it claims."""


class Phrase(str):
    """Words for the `got` of `invalid`, shown as they are; other text is quoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def invalid(what: str, expected: str, got: object, where: str = "") -> InvalidInput:
    """An `InvalidInput` in the package's one form.

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
    return InvalidInput(f"{what}: expected {expected}, got {text}" + (f" at {where}" if where else ""))
