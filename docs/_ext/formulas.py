"""Formulas in the prose of docstrings, as LaTeX: ``e^epsilon <= 2`` is drawn as a formula on a page of the reference.

A docstring is read in a terminal, too, so it says ``epsilon`` and ``D_f(P0 || P1) <= eta``. A run of such symbols that
has a Greek name or a relation, a power, an index or a fraction in it is a formula; what is not surely one stays.
"""

from __future__ import annotations

import re

GREEK = {
    name: f"\\{name}"
    for name in (
        "eta", "delta", "rho", "xi", "mu", "tau", "gamma", "alpha", "beta", "lambda", "sigma", "theta", "Phi", "Delta",
    )
} | {"epsilon": r"\varepsilon", "eps": r"\varepsilon"}  # fmt: skip
NAMED = {name: f"\\{name}" for name in ("exp", "log", "tanh", "min", "max", "sup", "inf", "sum", "prod")} | {
    name: rf"\mathrm{{{name}}}" for name in ("TV", "Lap", "tr")
}
SIGNS = {
    "<=": r"\le", ">=": r"\ge", "||": r"\Vert", "|": r"\vert", "*": r"\cdot", "{": r"\{", "}": r"\}",
    "...": r"\dots", "+-": r"\pm", "->": r"\to",
}  # fmt: skip

_LONG = "|".join(sorted([*GREEK, *NAMED.keys() - {"TV"}, "sqrt"], key=len, reverse=True))
_WORD = rf"(?:TV(?=[(^])|(?:xi|rho)_hat|{_LONG}|[A-Za-z])(?:\d(?![\w.]))?'?(?![A-Za-z'’])|(?:{_LONG})(?=_)"
_TOKEN = re.compile(
    rf"(?<![A-Za-z\d'])(?P<word>{_WORD})|(?P<number>(?<![A-Za-z])\d+(?:\.\d+)?(?![A-Za-z\d]))"
    r"|(?P<sign><=|>=|\+-|->|\|\||\.\.\.(?= [+,])|[-=<>+*/^_|,()\[\]{}])"
)
_STRONG = re.compile(r"<=|>=|[=<>^/*_]|\|\|")
_OPEN, _CLOSED = "([{", ")]}"


def formulas(text: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is a formula, in LaTeX."""
    pieces: list[tuple[str, bool]] = []
    at = 0
    for start, stop in _runs(text):
        for first, last in _kept(text, start, stop):
            pieces += [(text[at:first], False), (latex(text[first:last]), True)]
            at = last
    return [*pieces, (text[at:], False)]


def _runs(text: str) -> list[tuple[int, int]]:
    """The longest runs of symbols with at most one blank between them."""
    runs: list[tuple[int, int]] = []
    for found in _TOKEN.finditer(text):
        start, stop = found.span()
        between = text[runs[-1][1] : start] if runs else "none"
        if runs and between in ("", " ", "\n"):
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((start, stop))
    return runs


def _kept(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """What of a run is a formula: all of it without punctuation at its ends, or else the Greek names in it."""
    while True:
        run = text[start:stop]
        lead = re.match(r"[-=<>+*/^_|,)\]}\s]+|[aAI](?= )|\[(?=[A-Z][,;\]])", run)
        tail = re.search(r"(?:[=<>+*/^_|,(\[{\s]|-|(?<= )[aAI])+$", run)
        if lead and lead[0] not in ("-",):
            start += lead.end()
        elif lead and start and not text[start - 1].isspace():
            start += 1
        elif tail:
            stop = start + tail.start()
        elif run[:1] and run[0] in _OPEN and not _balanced(run):
            start += 1
        elif run[-1:] and run[-1] in _CLOSED and not _balanced(run):
            stop -= 1
        else:
            break
        if start >= stop:
            return []
    run = text[start:stop]
    joined = text[stop : stop + 1].isalnum() or text[stop : stop + 2] in ("_+",) or text[start - 1 : start].isalnum()
    words = [found["word"] for found in _TOKEN.finditer(run) if found["word"]]
    greek = any(word.rstrip("'0123456789") in GREEK for word in words)
    if words and _balanced(run) and not joined and (greek or _STRONG.search(run)):
        return [(start, stop)]
    found = re.finditer(rf"(?<![\w^(])(?:{'|'.join(GREEK)})(?![\w^(\[])", run)
    return [(start + one.start(), start + one.end()) for one in found]


def _balanced(text: str) -> bool:
    """Whether every bracket and every bar in a text has its partner."""
    depth: list[str] = []
    for sign in text:
        if sign in _OPEN:
            depth.append(_CLOSED[_OPEN.index(sign)])
        elif sign in _CLOSED and (not depth or depth.pop() != sign):
            return False
    return not depth and text.replace("||", "").count("|") % 2 == 0


def latex(text: str) -> str:
    """A formula of a docstring as LaTeX."""
    tokens = [(found.lastgroup or "", found[0]) for found in _TOKEN.finditer(text)]
    made, rest = _row(tokens, 0, None)
    assert rest == len(tokens), text
    text = re.sub(r"\\inf(?= [,)]|[,)\]]|$)", r"\\infty", " ".join(made))
    return re.sub(r" (?=[,)\]])", "", text).replace(r" \cdot (", "^{*} (")


def _row(tokens: list[tuple[str, str]], at: int, end: str | None) -> tuple[list[str], int]:
    """The tokens from a place to a closing bracket, as LaTeX, and the place behind it."""
    made: list[str] = []
    while at < len(tokens):
        kind, text = tokens[at]
        if text == end:
            return made, at + 1
        if text in ("^", "_"):
            script, at = _script(tokens, at + 1)
            base = made.pop() if made else ""
            twice = text in base or "'" in base  # an index of what has one already, which LaTeX wants in braces
            made.append(f"{{{base}}}{text}{{{script}}}" if twice else f"{base}{text}{{{script}}}")
        elif text in _OPEN:
            inner, at = _row(tokens, at + 1, _CLOSED[_OPEN.index(text)])
            root = bool(made) and made[-1] == "sqrt"
            closed = _CLOSED[_OPEN.index(text)]
            if root:
                made[-1] = rf"\sqrt{{{' '.join(inner)}}}"
            else:
                made.append(f"{SIGNS.get(text, text)}{' '.join(inner)}{SIGNS.get(closed, closed)}")
        else:
            made.append(_symbol(kind, text))
            at += 1
    return made, at


def _script(tokens: list[tuple[str, str]], at: int) -> tuple[str, int]:
    """A power or an index: one symbol with its sign, or all that is between brackets."""
    if at >= len(tokens):
        return "", at
    kind, text = tokens[at]
    if text == "-":
        script, at = _script(tokens, at + 1)
        return f"-{script}", at
    if text in ("(", "{"):
        inner, at = _row(tokens, at + 1, _CLOSED[_OPEN.index(text)])
        return " ".join(inner), at
    return _symbol(kind, text), at + 1


def _symbol(kind: str, text: str) -> str:
    if kind != "word":
        return SIGNS.get(text, text)
    if text.endswith("_hat"):
        return rf"\hat{{{GREEK[text.removesuffix('_hat')]}}}"
    stem, digit, prime = re.fullmatch(r"(.*?)(\d?)('?)", text).groups()  # type: ignore[union-attr]
    return (GREEK | NAMED).get(stem, stem) + (f"_{digit}" if digit else "") + prime
