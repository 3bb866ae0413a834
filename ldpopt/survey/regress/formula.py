"""Formulas such as ``evade ~ age + sex``: the outcome, and the terms that explain it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ldpopt.errors import Phrase, invalid

_TOKEN = re.compile(r"\s*(?:(`[^`]+`)|(C)\s*\(|([^\W\d]\w*(?:\.\w+)*)|(\d+)|([~+:*()-]))")


@dataclass(frozen=True)
class Factor:
    """A column that a term names; `categorical` if it is written ``C(...)``."""

    name: str
    categorical: bool = False


Term = tuple[Factor, ...]
"""One column, or several columns whose products are the regressors."""


@dataclass(frozen=True)
class Formula:
    """The outcome, the terms in their order, and whether there is an intercept.

    >>> made = parse_formula("evade ~ age + C(region) + age:sex")
    >>> made.outcome, [factor.name for factor in made.terms[2]], made.intercept
    ('evade', ['age', 'sex'], True)
    """

    outcome: str
    terms: tuple[Term, ...]
    intercept: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """All predictors in the formula, each once."""
        return tuple(dict.fromkeys(factor.name for term in self.terms for factor in term))


def parse_formula(text: str) -> Formula:
    """A formula from its text: ``outcome ~ term + term``.

    A term is a column ``a``, a column taken as labels ``C(a)``, an interaction ``a:b``, or ``a*b``, which stands for
    ``a + b + a:b``. ``0`` or ``-1`` leaves the intercept out. A name with blanks or signs is put in backticks. Anything
    else is `InvalidInput`.
    """
    words = _words(text)
    if len(words) < 3 or words[0][0] != "name" or words[1] != ("sign", "~"):
        raise invalid("formula", "outcome ~ predictor + predictor", text)
    outcome, rest = words[0][1], words[2:]
    terms: list[Term] = []
    intercept, at, sign = True, 0, "+"
    while at < len(rest):
        if rest[at][0] == "number":
            number, at = rest[at][1], at + 1
            if number not in ("0", "1") or (sign == "-" and number == "0"):
                raise invalid("formula", "no number but 0, 1 and -1, which are about the intercept", number)
            intercept = number == "1" and sign == "+"
        else:
            if sign == "-":
                raise invalid("formula", "- before 1 alone", text)
            made, at = _product(rest, at, text)
            terms += [term for term in made if set(term) not in [set(one) for one in terms]]
        if at < len(rest):
            if rest[at] not in (("sign", "+"), ("sign", "-")) or at + 1 == len(rest):
                raise invalid("formula", "terms with + between them", text)
            sign, at = rest[at][1], at + 1
        elif rest[-1][0] == "sign" and rest[-1][1] != ")":
            raise invalid("formula", "a term after the last sign", text)
    if not terms and not intercept:
        raise invalid("formula", "an intercept or a predictor", text)
    if any(factor.name == outcome for term in terms for factor in term):
        raise invalid("formula", "predictors other than the outcome", outcome)
    return Formula(outcome, tuple(terms), intercept)


def _words(text: str) -> list[tuple[str, str]]:
    if not isinstance(text, str):
        raise invalid("formula", "a text such as 'evade ~ age + sex'", Phrase(type(text).__name__))
    words, at, text = [], 0, text.strip()
    if text.startswith(("-", "~")):
        raise invalid("formula", "outcome ~ predictor + predictor", text)
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise invalid("formula", "names, C(name), + : * and ~ (a name with other signs in backticks)", text)
        quoted, categorical, name, number, sign = found.groups()
        if quoted is not None:
            words.append(("name", quoted[1:-1]))
        elif categorical is not None:
            words.append(("sign", "C("))
        elif name is not None:
            words.append(("name", name))
        elif number is not None:
            words.append(("number", number))
        else:
            words.append(("sign", sign))
        at = found.end()
        if not text[at:].strip():
            break
    if ("sign", "~") in words and words[words.index(("sign", "~")) + 1 :][:1] == [("sign", "-")]:
        # "y ~ -1 + x" has a sign before the first term.
        first = words.index(("sign", "~")) + 1
        if words[first + 1 : first + 2] == [("number", "1")]:
            words[first : first + 2] = [("number", "0")]
    return words


def _product(words: list[tuple[str, str]], at: int, text: str) -> tuple[list[Term], int]:
    """The terms of ``a``, ``a:b`` or ``a*b*c`` at a position, and the position after them."""
    made, at = _interaction(words, at, text)
    terms = [made]
    while at < len(words) and words[at] == ("sign", "*"):
        other, at = _interaction(words, at + 1, text)
        terms = [*terms, other, *[_joined(term, other) for term in terms]]
    return sorted(terms, key=len), at


def _interaction(words: list[tuple[str, str]], at: int, text: str) -> tuple[Term, int]:
    factor, at = _factor(words, at, text)
    term: Term = (factor,)
    while at < len(words) and words[at] == ("sign", ":"):
        factor, at = _factor(words, at + 1, text)
        term = _joined(term, (factor,))
    return term, at


def _joined(first: Term, second: Term) -> Term:
    return (*first, *(factor for factor in second if factor not in first))


def _factor(words: list[tuple[str, str]], at: int, text: str) -> tuple[Factor, int]:
    if words[at : at + 1] == [("sign", "C(")]:
        inside = words[at + 1 : at + 3]
        if len(inside) == 2 and inside[0][0] == "name" and inside[1] == ("sign", ")"):
            return Factor(inside[0][1], True), at + 3
    elif at < len(words) and words[at][0] == "name":
        return Factor(words[at][1]), at + 1
    raise invalid("formula", "a column's name in every term", text)
