"""Check a design file of ldpopt without ldpopt: the standard library alone, rational arithmetic, enclosed logarithms.

    python -m ldpopt_check FILE [--json] [--bits N] [--budget T]    exit 0: all claims hold; 1: one does not; 2: bad or
                                                                   unsupported input, or too much work

Three files, each complete for its kind: here are numbers, the strict reading of a file and its claims about the
channel, in `proofs` the theorems that prove a bound for every channel, in `__main__` the command.

What a file claims. Q is a channel (row x: the law of the report if the answer is x); p0, p1, a prior and the rows of Q
are divided by their sums. Numbers are doubles, hence rational.
  1. Q keeps every constraint; the stated `guarantees` are those of the constraints in this order, each not below the
     channel's own value nor above its cap: `local_dp`, the largest log-ratio of two entries of a column (along the
     edges of a graph, divided by their weights); `total_variation` and `hockey_stick`, the largest sum over y of
     (Q(x,y) - e^epsilon Q(x',y))_+, with epsilon = 0 for the first.
  2. `value` is at most what Q keeps (of an error: at least its error).
  3. No channel within the constraints keeps more than `upper_bound` (has an error below `lower_bound`).
  4. The other bound is `value`.
  5. It is `certified` exactly if the bound is finite, on its side of the value, and within `tolerance` times |value| of
     it (of a logarithm: within `tolerance`), and 0 < tolerance <= 1e-3.
What is kept: Divergence, sum_y mu(M0(y), M1(y)) with M = P Q, mu(a,b) = b f(a/b). MutualInformation, of the answer and
the report. WeightedSum of these; WorstOf, the least of several. ExpectedLoss, minus sum prior Q loss, the worst of
several priors. FisherInformation, an error: a criterion of the covariance of one report's best estimate.
Over outputs f'(1)(a-b) sums to 0, so g(a,b) = mu(a,b) - f'(1)(a-b) >= 0 replaces mu: convex, homogeneous, subadditive.
"""

import json
import math
from collections import namedtuple
from copy import copy
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import combinations, permutations
from operator import mul

MOST_BITS, MOST_BYTES = 4096, 2**26
MOST_WORK = 4e5  # units of about 50 microseconds: twenty seconds


class BadInput(Exception):
    """The file is not a design file, or this program cannot judge it."""


def need(condition, otherwise, kind=BadInput):
    """Refuse the file unless a condition holds."""
    if not condition:
        raise kind(otherwise)


# --- Numbers: a real number is known by two rationals around it -----------------------------------------------------


def magnitude(x):
    """An integer within 1 of log2 |x|."""
    return x.numerator.bit_length() - x.denominator.bit_length()


def shortened(x, bits, up):
    """x itself if it is short, else x rounded down or up to `bits` binary digits."""
    n, d = x.numerator, x.denominator
    if n.bit_length() <= bits and d.bit_length() <= bits:
        return x
    shift = bits - magnitude(x)
    n, d = (n << shift, d) if shift >= 0 else (n, d << -shift)
    return Fraction(-(-n // d) if up else n // d) / Fraction(2) ** shift


class Interval:
    """A number between two rationals `lo` and `hi`; sums and products round them outward to `bits` digits."""

    def __init__(self, lo, hi, bits):
        self.lo, self.hi, self.bits = shortened(lo, bits, False), shortened(hi, bits, True), bits

    def __add__(self, other):
        lo, hi = (other.lo, other.hi) if isinstance(other, Interval) else (other, other)
        return Interval(self.lo + lo, self.hi + hi, self.bits)

    def __mul__(self, other):
        lo, hi = (other.lo, other.hi) if isinstance(other, Interval) else (other, other)
        ends = self.lo * lo, self.lo * hi, self.hi * lo, self.hi * hi
        return Interval(min(ends), max(ends), self.bits)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Interval(-self.hi, -self.lo, self.bits)

    def root(self):
        """The square root; of what may be below zero, that of what is not."""
        ends = [max(Fraction(0), x) for x in (self.lo, self.hi)]
        shift = [2 * max(0, self.bits - (magnitude(x) if x else 0) // 2) for x in ends]
        low, high = (math.isqrt(math.floor(x * 2**s)) for x, s in zip(ends, shift, strict=True))
        return Interval(Fraction(low, 2 ** (shift[0] // 2)), Fraction(high + 1, 2 ** (shift[1] // 2)), self.bits)


def dot(p, q):
    """The sum of products."""
    return sum(map(mul, p, q))


def exactly(x, bits):
    """A rational as an interval."""
    return Interval(Fraction(x), Fraction(x), bits)


def series(y):
    """h(y) = 1/3 + y/5 + y^2/7 + ... for 0 <= y <= 1/8, which gives atanh z = z + z^3 h(z^2). The terms are positive:
    rounding each down gives a lower bound; rounding each up, and adding the last power for those left out (at most
    y^n / (1-y) / 3), an upper one. Integers count units of 2^-(bits+16)."""
    shift, ends = y.bits + 16, []
    for x, up in ((math.floor(y.lo * 2**shift), 0), (math.ceil(y.hi * 2**shift), 1)):
        total, power, odd = 0, 1 << shift, 3
        while power > 1:
            total, power, odd = total + power // odd + up, (power * x >> shift) + up, odd + 2
        ends.append(Fraction(total + up * power, 1 << shift))
    return Interval(*ends, y.bits)


@lru_cache(64)
def log(x, bits):
    """log x of a rational x > 0: for x = 2^k r with 1/2 <= r <= 2 it is k log 2 + 2 atanh((r-1)/(r+1))."""
    k = 0 if x == 2 else magnitude(x)
    r = x / Fraction(2) ** k
    z = exactly((r - 1) / (r + 1), bits)
    return 2 * (z + z * z * z * series(z * z)) + (k * log(Fraction(2), bits) if k else 0)


@lru_cache(4096)
def exp_bound(x, bits, up):
    """A bound of e^x for a rational x, such that e^x - 1 has about `bits` digits: Taylor's series at x / 2^n < 2^-8,
    squared n times. The terms are positive, and those left out after one are together worth less than it."""
    if x <= 0:
        return 1 / exp_bound(-x, bits, not up) if x else Fraction(1)
    work, squarings = bits + abs(magnitude(x)) + 32, max(0, magnitude(x) + 9)
    y = (x.numerator << work) // (x.denominator << squarings) + up
    total, term, n = 1 << work, 1 << work, 1
    while term > 1:
        term, n = (term * y >> work) // n + up, n + 1
        total += term
    total += up * term
    for _ in range(squarings):
        total = (total * total >> work) + up
    return Fraction(total, 1 << work)


def exp(lo, hi, bits):
    """e^x for x between two rationals."""
    return Interval(exp_bound(lo, bits, False), exp_bound(hi, bits, True), bits)


# --- Divergences: g(a,b) = b f(a/b) - f'(1) (a-b) for rationals a, b >= 0, not equal, keeping its digits near a = b ---


def kl(a, b, bits):
    """a log(a/b) - (a-b). Near a = b, with z = (a-b)/(a+b) and log(a/b) = 2 atanh z: (a+b) z^2 (1 + (1+z) z h(z^2))."""
    if a == 0 or 3 * abs(a - b) > a + b:
        return (a * log(a / b, bits) if a else Interval(a, a, bits)) + (b - a)
    z = exactly((a - b) / (a + b), bits)
    return (a + b) * (z * z * (1 + (1 + z) * z * series(z * z)))


def alpha(order, a, b, bits):
    """(b (a/b)^order - b - order (a-b)) / (order (order-1)), with as many more digits as the difference loses."""
    if (a == 0 and order > 0) or (b == 0 and order < 1):
        return (b / order if a == 0 else a / (1 - order)) * exactly(1, bits)
    scale = order * (order - 1)
    lost = 2 * (magnitude(a + b) - magnitude(a - b)) + abs(magnitude(scale)) + abs(magnitude(order)) + 16
    x = log(a / b, bits + lost) * order if order > 0 else log(b / a, bits + lost) * -order
    found = (b * exp(x.lo, x.hi, x.bits) + (-b - order * (a - b))) * (1 / scale)
    return Interval(found.lo, found.hi, bits)


NAMED = {
    "kl": kl,
    "reverse-kl": lambda a, b, bits: kl(b, a, bits),
    "jeffreys": lambda a, b, bits: kl(a, b, bits) + kl(b, a, bits),
    "jensen-shannon": lambda a, b, bits: (kl(a, (a + b) / 2, bits) + kl(b, (a + b) / 2, bits)) * Fraction(1, 2),
    "squared-hellinger": lambda a, b, bits: alpha(Fraction(1, 2), a, b, bits) * Fraction(1, 2),
    "total-variation": lambda a, b, _: abs(a - b) / 2,
    "chi-squared": lambda a, b, _: (a - b) ** 2 / b,
    "neyman-chi-squared": lambda a, b, _: (a - b) ** 2 / a,
    "le-cam": lambda a, b, _: (a - b) ** 2 / (a + b),
}
FAMILIES = {
    "alpha": lambda c, *ab: {0: NAMED["reverse-kl"], 1: kl}.get(c, partial(alpha, c))(*ab),
    "hockey-stick": lambda c, a, b, _: abs(a - b) / 2 if c == 1 else max(0 * a, a - c * b if c > 1 else c * b - a),
}


# --- Reading: whatever is not exactly as expected is refused ----------------------------------------------------------


def double(x):
    """Whether x is a number within the range of doubles."""
    return type(x) in (int, float) and abs(x) < 2**1023


def label(x):
    """Whether x is a label: a text, a number, or a list of them."""
    return type(x) is str or double(x) or (type(x) is list and all(map(label, x)))


# A form is a value, a type, a test, [form of the entries], (alternatives), or {key: form}; with None a key may lack.
EXTENDED, OF_INPUTS, ROWS = (double, "inf", "-inf"), {"inputs": (None, [label])}, [[double]]
F = *({"name": f} for f in NAMED), *({"name": f, "parameter": double} for f in FAMILIES)
GRAPH = {"kind": "graph", "directed": bool, "multiple": bool, "nodes": list, "edges": list}
SIMPLE = (
    {"kind": "Divergence", "f": F, "p0": [double], "p1": [double], **OF_INPUTS},
    {"kind": "MutualInformation", "prior": [double], **OF_INPUTS},
)
MARGINALS = {"shape": [int], "weights": (None, [(double, [double])]), "pairs": (None, []), "contrasts": (None,)}
CRITERIA = (
    {"kind": "AOptimal", "weights": (None, [double], ROWS)},
    {"kind": "COptimal", "contrast": [double]},
    *({"kind": "DOptimal"}, {"kind": "MVOptimal", "contrasts": (None,)}, {"kind": "Marginals", **MARGINALS}),
)
LOSS = {"prior": (None, [double], ROWS), "loss": ROWS, "decisions": (None, [label])}
UTILITIES = (
    *SIMPLE,
    {"kind": "WorstOf", "f": F, "p0": [double], "others": ROWS, **OF_INPUTS},
    {"kind": "WeightedSum", "weights": [double], "utilities": [SIMPLE]},
    {"kind": "ExpectedLoss", **LOSS, **OF_INPUTS},
    {"kind": "FisherInformation", "prior": [double], "criterion": CRITERIA, "neighbourhood": (None,), **OF_INPUTS},
)
CONSTRAINTS = (
    {"kind": "LocalDP", "epsilon": double, "graph": (None, GRAPH)},
    {"kind": "TotalVariation", "eta": double},
    {"kind": "ApproximateLDP", "epsilon": double, "delta": double},
)
LISTED = {"rows": [double], "pairs": ROWS, "weights": [double]}
MULTIPLIER = {"kind": "TermMultiplier", "term": int}
CHOSEN = ({**MULTIPLIER, "pairs": [int], "values": ROWS}, {**MULTIPLIER, "pairs": dict, "values": dict})
TERMS = {"rows": [double], "posed": (None,), "multipliers": ([], [CHOSEN])}
KERNEL = {"prior": [double], "kernel": ROWS, "rows": [double], "pairs": ROWS, "relaxed": (None, dict)}
PROOFS = (
    *({"kind": kind} for kind in ("Contraction", "InformationCapacity", "SharedInformation")),
    {"kind": "EnvelopeDual", "level": double, "potentials": [double], "points": (None, ROWS)},
    *({"kind": kind, **LISTED} for kind in ("PatternDual", "PolicyDual", "LevelDual")),
    {"kind": "LevelVariationDual", **LISTED, "spreads": ROWS},
    {"kind": "InformationDual", "whole": object, "rows": [double], "pairs": ROWS},
    {"kind": "IntervalDual", **TERMS, "classes": (None, [int]), "knots": [double]},
    {"kind": "LossDual", **TERMS, "weights": [double]},
    {"kind": "EquivalenceDual", **KERNEL},
    {"kind": "PartsBound", "each": [dict]},
)
PROBLEM = {"utility", "constraints", "channel", "edges"}
SAID = {"lower": (None, *EXTENDED), "exact": (None, bool), "reference": (None, str), "witness": (None, dict)}
STATED = {"notion": str, "value": EXTENDED, "parameters": (None, {}, {"epsilon": double}), **SAID}
DESIGN = {
    **{"schema": "ldpopt-design", "version": 1, "edges": (None,), "method": str, "reference": str, "note": str},
    **{"value": EXTENDED, "lower_bound": EXTENDED, "upper_bound": EXTENDED, "certified": bool, "tolerance": double},
    **{"utility": UTILITIES, "channel": {"inputs": [label], "outputs": [label], "matrix": ROWS}},
    **{"constraints": [CONSTRAINTS], "certificate": PROOFS},
    "guarantees": [STATED],
}
RESPONDENTS = {
    **{"schema": "ldpopt-respondents", "version": 1, "kind": "RespondentsBound", "epsilon": EXTENDED, "least": int},
    **{"pilots": ROWS, "targets": [ROWS], "variances": ROWS, "weights": ROWS},
    **{"kernel": (None, ROWS), "rows": (None, [double]), "relaxed": (None, object)},
}


def fits(x, form):
    """Whether x has a form. Objects must have exactly its keys, since an unknown one might change the others."""
    if isinstance(form, dict):
        if not isinstance(x, dict) or not set(x) <= set(form):
            return False
        lacking = all(isinstance(form[key], tuple) and None in form[key] for key in set(form) - set(x))
        return lacking and all(fits(x[key], form[key]) for key in x)
    if isinstance(form, list):
        return isinstance(x, list) and bool(x) == bool(form) and all(fits(y, form[0]) for y in x)
    if isinstance(form, tuple):
        return any(fits(x, one) for one in form)
    if isinstance(form, type):
        return form is object or type(x) is form
    return form(x) if callable(form) else type(x) is type(form) and x == form


def formed(x, form):
    """Refuse an object of another form."""
    need(isinstance(x, dict) and set(x) == set(form), f"its keys must be {', '.join(form)}")
    for key in form:
        need(fits(x[key], form[key]), f"{key} is malformed, or of a kind that is not supported")


def rational(x):
    """The rational of a double; infinities stay floats. Of nested lists, each."""
    if isinstance(x, list | tuple):
        return [rational(y) for y in x]
    return Fraction(float(x)) if double(x) else float(x)


def shaped(x, rows, columns, what):
    """A matrix of rationals of this shape."""
    need(len(x) == rows and all(len(row) == columns for row in x), f"{what} must have shape {rows} x {columns}")
    return rational(x)


def law(xs, size=None, slack=1e-9):
    """The law in proportion to some masses, whose sum may differ from 1 by `slack`."""
    total = sum(masses := rational(xs))
    alike = min(masses) >= 0 < total and abs(float(total) - 1) <= slack
    need(alike, "laws and rows must be masses >= 0 that sum to 1 within 1e-9")
    need(size in (None, len(masses)), "laws must have as many masses as there are inputs")
    return tuple(x / total for x in masses)


def by_ratio(p0, p1):
    """(P0/(P0+P1), P0, P1) of the inputs with positive mass, sorted by P0/P1."""
    return sorted((a / (a + b), a, b) for a, b in zip(p0, p1, strict=True) if a + b)


def divergence(f):
    """g of an f-divergence."""
    name, c = f["name"], rational(f.get("parameter", 1))
    need(abs(c) <= 100 and (c > 0 or name == "alpha"), "a parameter of this size is not supported")
    return NAMED.get(name) or partial(FAMILIES[name], c)


# --- Constraints, and claim 1 -----------------------------------------------------------------------------------------


class Cap:
    """A constraint: sum_y (Q(x,y) - e^(epsilon w) Q(x',y))_+ <= cap for its ordered pairs (x, x', w). `pure`: cap 0,
    all pairs, w = 1."""

    def __init__(self, form, labels):
        kind = form["kind"]
        self.epsilon, self.cap = rational(form.get("epsilon", 0)), rational(form.get("eta", form.get("delta", 0)))
        need(0 <= self.epsilon <= 1000 and 0 <= self.cap <= 1, "such caps are not supported")
        need(kind == "TotalVariation" or self.epsilon > 0, "epsilon = 0 is not supported")
        need(kind != "ApproximateLDP" or self.cap > 0, "delta = 0 is not supported")
        self.notion = {"LocalDP": "local_dp", "TotalVariation": "total_variation"}.get(kind, "hockey_stick")
        self.limit = self.epsilon if kind == "LocalDP" else self.cap
        self.edges = self._edges(form["graph"], labels) if form.get("graph") else None
        self.pure = kind == "LocalDP" and self.edges is None

    def _edges(self, graph, labels):
        """The least weight of the edges between two inputs, in both orders unless they are directed."""
        position, least = {json.dumps(one): x for x, one in enumerate(labels)}, {}
        need({json.dumps(node) for node in graph["nodes"]} <= set(position), "a node of the graph is no input")
        for edge in graph["edges"]:
            need(fits(edge, list) and len(edge) == 3 and double(edge[2]) and edge[2] > 0, "an edge is malformed")
            a, b = (position.get(json.dumps(end)) for end in edge[:2])
            need(None not in (a, b), "an edge is between other inputs")
            for ends in ((a, b), (b, a))[: 1 if graph["directed"] else 2]:
                least[ends] = min(least.get(ends, math.inf), rational(edge[2]))
        return {ends: w for ends, w in least.items() if ends[0] != ends[1]}

    def pairs(self, k):
        """Its pairs as certificates number them, of k inputs: with epsilon = 0 each pair once; of a graph, the edges
        that no path through other inputs implies."""
        if self.edges is None:
            return [(x, y, Fraction(1)) for x in range(k) for y in range(k) if x < y or (x > y and self.epsilon)]
        w = shortest([[self.edges.get((x, y)) for y in range(k)] for x in range(k)], sum)
        slack, found = 1 + Fraction(1e-12), []
        for x, y in sorted(self.edges):
            ways = [w[x][z] + w[z][y] for z in range(k) if z not in (x, y) and w[x][z] and w[z][y]]
            if min([math.inf, *ways]) > slack * w[x][y]:
                found.append((x, y, w[x][y]))
        return found

    def exceeded(self, limit, rows, bits):
        """Whether the channel with these rows is worse than a limit."""
        if self.edges is not None:
            each = [((rows[x], rows[y]), w) for (x, y), w in self.edges.items()]
            return any(not at_most_exp(largest_ratio(*pair), limit * w, bits) for pair, w in each)
        rows = list(dict.fromkeys(rows))  # Equal rows are compared once.
        if self.pure:
            ratio = max(max(q) / min(q) if min(q) else math.inf for q in zip(*rows, strict=True) if any(q))
            return not at_most_exp(ratio, limit, bits)
        least = exp_bound(self.epsilon, bits, False)
        pairs = (permutations if self.epsilon else combinations)(rows, 2)
        return any(sum(max(0, a - least * b) for a, b in zip(p, q, strict=True)) > limit for p, q in pairs)


def largest_ratio(p, q):
    """The largest p(y)/q(y), at least 1."""
    return max([1, *(a / b if b else math.inf for a, b in zip(p, q, strict=True) if a > b)])


def at_most_exp(ratio, exponent, bits):
    """Whether a ratio is surely at most e^exponent. Ratios of doubles are below e^2000."""
    if math.inf in (ratio, exponent):
        return exponent == math.inf
    exponent = max(-1, min(exponent, 2000))
    return ratio <= settle(lambda more: exp(exponent, exponent, more), ratio, bits).lo


def shortest(limits, join):
    """The tightest limits that a matrix of them (None: no limit) implies along paths, each `join`ed of two."""
    found, k = [list(row) for row in limits], range(len(limits))
    for z in k:
        for x in (x for x in k if found[x][z] is not None):
            for y in (y for y in k if y != x and found[z][y] is not None):
                there = join((found[x][z], found[z][y]))
                found[x][y] = there if found[x][y] is None else min(found[x][y], there)
    return found


# --- The claims -------------------------------------------------------------------------------------------------------


class Design:
    """The claims of a file, in rationals."""

    def __init__(self, file):
        formed(file, DESIGN)
        self.value, self.lower, self.upper = (rational(file[x]) for x in ("value", "lower_bound", "upper_bound"))
        self.certified, self.tolerance, self.proof = file["certified"], rational(file["tolerance"]), file["certificate"]
        utility, channel = file["utility"], file["channel"]
        self.rows = [law(row) for row in channel["matrix"]]
        self.k, self.m = len(self.rows), len(self.rows[0])
        for names, sizes in (("inputs", {self.k}), ("outputs", {len(row) for row in self.rows})):
            own = {len(channel[names]), len({json.dumps(one) for one in channel[names]})}
            need(len(own | sizes) == 1, f"{names}: rows and distinct labels must be equally many")
        for part in (utility, *utility.get("utilities", ())):
            need(part.get("inputs") in (None, channel["inputs"]), "the inputs of utility and channel differ")
        self.kind, self.utility = utility["kind"], utility
        self.error = self.kind == "FisherInformation"
        self.logarithmic = self.error and utility["criterion"]["kind"] == "DOptimal"
        self.caps = [Cap(one, channel["inputs"]) for one in file["constraints"]]
        said = file["guarantees"]
        self.stated = [(one["notion"], one.get("parameters") or {}, rational(one["value"])) for one in said]
        self._pose(utility)

    @property
    def epsilon(self):
        """The least epsilon between all inputs, or infinity."""
        return min([math.inf, *(one.epsilon for one in self.caps if one.pure)])

    @property
    def eta(self):
        """The least cap on total variation, at most 1."""
        return min([Fraction(1), *(one.cap for one in self.caps if one.notion == "total_variation")])

    def posed(self, part, proof):
        """One part (g or None, law, other law) of the utility as a design of its own, with its certificate."""
        proof = {key: one for key, one in proof.items() if key not in PROBLEM}
        need(fits(proof, PROOFS), "a certificate within another is malformed, or of a kind that is not supported")
        own = copy(self)
        own.kind, own.parts, own.proof = "Divergence" if part[0] else "MutualInformation", [(1, *part)], proof
        return own

    def _pose(self, utility):
        """The parts of the utility: (weight, g or None, law, other law); and what the others need."""
        sized = partial(law, size=self.k)
        weights, parts = rational(utility.get("weights", [1])), utility.get("utilities", [utility])
        need(len(weights) == len(parts) and min(weights) >= 0 < sum(weights), "one weight >= 0 for each utility")
        if self.kind == "WorstOf":
            parts = [{"kind": "Divergence", **utility, "p1": other} for other in utility["others"]]
            parts, weights = [{**one, "kind": "Divergence"} for one in parts], [1] * len(parts)
        self.parts = []
        for weight, one in zip(weights, parts, strict=True):
            if one["kind"] == "Divergence":
                self.parts.append((weight, divergence(one["f"]), sized(one["p0"]), sized(one["p1"])))
            elif one["kind"] == "MutualInformation":
                self.parts.append((weight, None, sized(one["prior"]), None))
        if self.kind == "ExpectedLoss":
            self.loss, given = shaped(utility["loss"], self.k, self.m, "the loss"), utility["prior"]
            given = [[int(x == y) for y in range(self.k)] for x in range(self.k)] if given is None else given
            self.priors = [sized(prior) for prior in (given if isinstance(given[0], list) else [given])]
        if self.error:
            self.prior = sized(utility["prior"])

    @cached_property
    def work(self):
        """What claims 1 and 2 take at most, in units of 50 microseconds."""
        k, m = self.k, self.m
        inner = k * m if self.kind in ("MutualInformation", "WeightedSum") else m
        return len(set(self.rows)) ** 2 * m / 20 + k * m / 5 + inner + (k**2 * m / 10 + k**4 / 40 if self.error else 0)

    def spend(self, work):
        """Refuse what takes more than is left of the budget."""
        self.left -= work
        need(self.left > 0, "not checked, as that takes longer than the budget; a larger --budget may allow it")

    def broken_caps(self, bits):
        """Claim 1: the sentences about what does not hold."""
        given = [{"epsilon": float(cap.epsilon)} if cap.notion == "hockey_stick" else {} for cap in self.caps]
        asked = [(cap.notion, one) for cap, one in zip(self.caps, given, strict=True)]
        if asked != [(notion, parameters) for notion, parameters, _ in self.stated]:
            yield "the guarantees stated are of other notions than the constraints"
            return
        for cap, (notion, _, stated) in zip(self.caps, self.stated, strict=True):
            if not stated <= cap.limit:
                yield f"the {notion} guaranteed exceeds its cap"
            for what, limit in (("its cap", cap.limit), ("the guarantee", stated)):
                if not limit >= 0 or cap.exceeded(limit, self.rows, bits):
                    yield f"the {notion} of the channel exceeds {what}"

    def worths(self, column, bits):
        """What a column of rationals is worth: [an interval for each criterion]."""
        found = []
        for weight, g, p, other in self.parts:
            a, masses, worth = dot(p, column), {}, exactly(0, bits)
            if g is None:
                for share, c in zip(p, column, strict=True):
                    masses[c] = masses.get(c, 0) + share
                worth = sum((share * kl(c, a, bits) for c, share in masses.items() if share and c != a), worth)
            elif a != (b := dot(other, column)) and weight:
                worth = worth + g(a, b, bits)
            found.append(weight * worth)
        return found if self.kind == "WorstOf" else [sum(found, exactly(0, bits))] if found else []

    def kept(self, bits):
        """Claim 2: what the channel keeps, or its error."""
        if self.kind == "ExpectedLoss":
            paid = [dot(q, loss) for q, loss in zip(self.rows, self.loss, strict=True)]
            return exactly(-max(dot(p, paid) for p in self.priors), bits)
        if self.error:
            return proofs.criterion(self, bits)
        each = zip(*(self.worths(column, bits) for column in zip(*self.rows, strict=True) if any(column)), strict=True)
        sums = [sum(one, exactly(0, bits)) for one in each]
        return Interval(min(x.lo for x in sums), min(x.hi for x in sums), bits)

    def honest(self, near):
        """Whether a design with this proved bound may be called certified."""
        if not abs(self.value) < math.inf > abs(near) or not 0 < self.tolerance <= Fraction(1e-3):
            return False
        gap = self.value - near if self.error else near - self.value
        return 0 <= gap <= self.tolerance * (1 if self.logarithmic else abs(self.value))


def settle(enclose, x, bits):
    """The first of ever tighter enclosures of a number that excludes x or is exact, or the last one."""
    found = enclose(bits)
    undecided = found.lo <= x <= found.hi and found.lo < found.hi and bits < MOST_BITS
    return settle(enclose, x, min(2 * bits, MOST_BITS)) if undecided else found


def outward(found):
    """Two floats, below and above an enclosed number."""
    ends = zip((found.lo, found.hi), (-math.inf, math.inf), strict=True)
    near = ((float(x) if abs(x) < 2**1024 - 2**970 else math.inf * (1 if x > 0 else -1), x, way) for x, way in ends)
    return tuple(end if end == x else math.nextafter(end, way) for end, x, way in near)


Result = namedtuple("Result", "failures value bound certified")  # Sentences, two pairs of floats, the file's claim.
NOTHING = namedtuple("Nothing", "lo hi")(-math.inf, math.inf)


def attempt(failures, claim, find, stated, bits):
    """What a function finds, or nothing and a sentence why."""
    try:
        return settle(find, stated, bits)
    except ArithmeticError as reason:  # A division by zero is an infinite divergence.
        failures.append(f"{claim}: {'a divergence is infinite' if type(reason) is ZeroDivisionError else reason}.")
    return NOTHING


def within(work, budget):
    """Refuse what takes more than a budget."""
    needed = work / MOST_WORK
    need(needed <= budget, f"not checked, as that may take {20 * needed:,.0f} seconds; --budget {needed:.0f} allows it")


def check(document, bits=128, budget=1.0):
    """Check the claims of a file, given as parsed JSON; BadInput if they cannot be judged."""
    if isinstance(document, dict) and document.get("schema") == RESPONDENTS["schema"]:
        formed({"kernel": None, "rows": None, "relaxed": None, **document}, RESPONDENTS)
        return proofs.respondents(document, bits, budget)
    d = Design(document)
    within(d.work + proofs.cost(d), budget)
    d.left = budget * MOST_WORK
    failures, near = [f"Claim 1: {x}." for x in d.broken_caps(bits)], d.lower if d.error else d.upper
    value = attempt(failures, "Claim 2", d.kept, d.value, bits)
    bound = attempt(failures, "Claim 3", partial(proofs.proved, d), near, bits)
    shown = (value.hi <= d.value, near <= bound.lo) if d.error else (d.value <= value.lo, bound.hi <= near)
    claims = (
        (f"Claim 2: the value is not as stated, but between {outward(value)}.", shown[0]),
        (f"Claim 3: the bound stated is not proved; the proved one is between {outward(bound)}.", shown[1]),
        ("Claim 4: the value is not one of the two bounds.", (d.upper if d.error else d.lower) == d.value),
        ("Claim 5: `certified` is not as the gap and the tolerance have it.", d.certified is d.honest(near)),
    )
    failures += [claim for claim, holds in claims if not holds]
    return Result(failures, outward(value), outward(bound), d.certified)


from ldpopt_check import proofs  # noqa: E402 (it takes the numbers above)
