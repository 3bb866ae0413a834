"""Check a design file without ldpopt, by the standard library, rational arithmetic and enclosed logarithms.

    python -m ldpopt_check FILE [--json] [--bits N] [--budget T]    exit 0: all claims hold; 1: one does not; 2: not a
                                                                   design file; 3: not covered, or too much work

This file holds numbers, the strict reading of a file and its claims about the channel. `proofs` holds the theorems
that prove a bound for every channel, `screen` the float comparisons for many inputs, and `__main__` the command.

The claims of a file. Q is a channel (row x: the distribution of the report if the answer is x); p0, p1, a prior and the
rows of Q are divided by their sums. Numbers are doubles, hence rational.
  1. Q meets every constraint. The stated `guarantees` are those of the constraints in this order, each not below the
     value of the channel nor above its cap. `local_dp` is the largest log-ratio of two entries of a column (along the
     edges of a graph, divided by their weights). `total_variation` and `hockey_stick` are the largest sum over y of
     (Q(x,y) - e^epsilon Q(x',y))_+, with epsilon = 0 for the first.
  2. `value` is at most the utility of Q (of an error: at least its error).
  3. No channel within the constraints has a utility above `upper_bound` (an error below `lower_bound`).
  4. The other bound is `value`.
  5. It is `certified` exactly if the bound is finite, on its side of the value, and within `tolerance` times |value| of
       it (of a logarithm: within `tolerance`). Moreover 0 < tolerance <= 1e-3.
The utilities: Divergence, sum_y mu(M0(y), M1(y)) with M = P Q, mu(a,b) = b f(a/b). MutualInformation, of the answer and
the report. WeightedSum of these; WorstOf, the smallest of several. ExpectedLoss, minus sum prior Q loss, the worst of
several priors. FisherInformation, an error: a criterion of the covariance of one report's best estimate.
Over outputs f'(1)(a-b) sums to 0, so g(a,b) = mu(a,b) - f'(1)(a-b) >= 0 replaces mu: convex, homogeneous, subadditive.
"""

import json
import math
from collections import namedtuple
from copy import copy
from decimal import Context
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, permutations
from operator import mul

MOST_BITS, MOST_BYTES = 4096, 2**26
MOST_WORK = 4e5  # units of about 50 microseconds: twenty seconds


class BadInput(Exception):
    """The file is not a design file, or this program does not judge it."""


class NotCovered(BadInput):
    """The file may be a design file whose claims hold, or fail: this program does not decide."""


def need(condition, otherwise, kind=BadInput):
    """Refuse the file unless a condition holds."""
    if not condition:
        raise kind(otherwise)


cover = partial(need, kind=NotCovered)


class Budget:
    """So many times twenty seconds of work."""

    def __init__(self, times):
        self.left = self.whole = times * MOST_WORK

    def spend(self, work):
        """Subtract work from the budget; raise `NotCovered` if it exceeds the remainder."""
        self.left -= work
        times = math.ceil(min(1e12, (self.whole - self.left) / MOST_WORK))
        message = f"that may take {20 * times:,} seconds, longer than the budget; --budget {times} allows it"
        cover(self.left > 0, message)


# --- Numbers: a real number is known by two rationals around it -----------------------------------------------------


def magnitude(x):
    """Return an integer within 1 of log2 |x|."""
    return x.numerator.bit_length() - x.denominator.bit_length()


def shortened(x, bits, up):
    """Return x itself if it is short, else x rounded down or up to `bits` binary digits."""
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

    def root(self):
        """Enclose the square root of the nonnegative part."""
        ends = [max(Fraction(0), x) for x in (self.lo, self.hi)]
        shift = [2 * max(0, self.bits - (magnitude(x) if x else 0) // 2) for x in ends]
        low, high = (math.isqrt(math.floor(x * 2**s)) for x, s in zip(ends, shift, strict=True))
        return Interval(Fraction(low, 2 ** (shift[0] // 2)), Fraction(high + 1, 2 ** (shift[1] // 2)), self.bits)


def exactly(x, bits):
    """Enclose a rational without a radius."""
    return Interval(Fraction(x), Fraction(x), bits)


def dot(p, q):
    """Compute the sum of products."""
    return sum(map(mul, p, q))


def decimally(name, x, bits):
    """Compute ln or exp of a rational x, and a bound on its error."""
    # The functions of `decimal` are rounded correctly, as x is before.
    digits = Context(prec=10 + math.ceil(bits * 0.302))
    value = Fraction(getattr(digits, name)(digits.divide(x.numerator, x.denominator)))
    return value, Fraction(10) ** (2 - digits.prec) * (1 + abs(x if name == "exp" else value))


@lru_cache(4096)
def log(x, bits):
    """Enclose log x of a rational x > 0, to `bits` of its significant digits."""
    value, error = decimally("ln", x, bits + max(0, -magnitude(x - 1))) if x != 1 else (Fraction(0), 0)
    return Interval(value - error, value + error, bits)


@lru_cache(4096)
def exp_bound(x, bits, up):
    """Bound e^x for a rational x, such that e^x - 1 has about `bits` digits."""
    precision = bits + abs(magnitude(x))
    value, error = decimally("exp", x, precision) if x else (Fraction(1), 0)
    return shortened(value * (1 + error if up else 1 - error), precision + 8, up)


# --- Divergences: g(a,b) = b f(a/b) - f'(1) (a-b) for rationals a, b >= 0, not equal, keeping its digits near a = b ---


def lost_digits(a, b):
    """Estimate the number of digits that a difference of second order loses."""
    return 2 * (magnitude(a + b) - magnitude(a - b)) + 16


def kl(a, b, bits):
    """Enclose a log(a/b) - (a-b)."""
    value = (a * log(a / b, bits + lost_digits(a, b)) if a else exactly(0, bits)) + (b - a)
    return Interval(value.lo, value.hi, bits)


def alpha(order, a, b, bits):
    """Enclose (b (a/b)^order - b - order (a-b)) / (order (order-1))."""
    if (a == 0 and order > 0) or (b == 0 and order < 1):
        return (b / order if a == 0 else a / (1 - order)) * exactly(1, bits)
    scale = order * (order - 1)
    precision = bits + lost_digits(a, b) + abs(magnitude(scale)) + abs(magnitude(order))
    x = log(a / b, precision) * order if order > 0 else log(b / a, precision) * -order
    power = Interval(exp_bound(x.lo, precision, False), exp_bound(x.hi, precision, True), precision)
    value = (b * power + (-b - order * (a - b))) * (1 / scale)
    return Interval(value.lo, value.hi, bits)


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


def divergence(f):
    """Return g of an f-divergence, as an interval, 0 at a = b."""
    name, c = f["name"], rational(f.get("parameter", 1))
    cover(abs(c) <= 100 and (c > 0 or name == "alpha"), "a parameter of this size is not supported")
    g = NAMED.get(name) or partial(FAMILIES[name], c)

    def divergence_of(a, b, bits):
        return exactly(0, bits) + (g(a, b, bits) if a != b else 0)

    divergence_of.operator_convex = name not in ("total-variation", "hockey-stick") and (
        name != "alpha" or -1 <= c <= 2
    )
    return divergence_of


# --- Reading: input that is not exactly as expected is rejected -------------------------------------------------------


class Object(dict):
    """An object of the file that knows which of its keys were read."""

    def __init__(self, pairs, read=()):
        super().__init__(pairs)
        self.read = read if isinstance(read, set) else set(read)

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key, otherwise=None):
        """Return the value of a key that may be missing."""
        self.read.add(key)
        return super().get(key, otherwise)


def watched(x):
    """Convert the JSON to one with every object as an `Object`."""
    # Lists of numbers and of lists hold no objects.
    if isinstance(x, dict):
        return Object((key, watched(value)) for key, value in x.items())
    return [watched(value) for value in x] if isinstance(x, list) and any(isinstance(value, dict) for value in x) else x


def compared(x):
    """Mark an object as read, because it is compared as one value."""
    x.read.update(x) if isinstance(x, Object) else None
    return x


def unread(x, path=""):
    """Iterate over the places of a file with contents that were not read."""
    if isinstance(x, Object):
        for key, value in x.items():
            place = f"{path}.{key}" if path else key
            if key in x.read:
                yield from unread(value, place)
            elif value not in (None, "", [], {}):
                yield place
    elif isinstance(x, list) and x and isinstance(x[0], Object):
        for index, value in enumerate(x):
            yield from unread(value, f"{path}[{index}]")


def double(x):
    """Return True if x is a number within the range of doubles."""
    return type(x) in (int, float) and abs(x) < 2**1023


def label(x):
    """Return True if x is a label: a text, a number, true or false, or a list of them."""
    return type(x) in (str, bool) or double(x) or (type(x) is list and all(map(label, x)))


def name_of(x):
    """Return the label of x. Numbers are equal by value; true is 1, and false is 0."""
    return tuple(map(name_of, x)) if type(x) is list else x


def names_of(labels):
    """Return the labels of a list; raise `BadInput` unless they are distinct."""
    names = tuple(map(name_of, labels))
    need(len(set(names)) == len(names), "labels must be distinct")
    return names


def agree(name, stated, names, by_name=False):
    """Raise `BadInput` for labels other than these, in this order."""
    # None stated: 0, 1, ..; then these may be other words, none of them from 0, 1, .., unless something is named by
    # them.
    expected, places = names_of(range(len(names)) if stated is None else stated), range(len(names))
    are_other_words = not by_name and expected == tuple(places) and not set(names).intersection(places)
    texts = ("0, 1, .." if stated is None else json.dumps(stated)[:200], json.dumps(names)[:200])
    need(expected == names or are_other_words, f"{name}: the labels are {texts[0]} and, of the channel, {texts[1]}")


def kinds(**fields):
    """Return the forms of objects of these types."""
    return tuple({"kind": kind, **form} for kind, form in fields.items())


# A form is a value, a type, a test, [form of the entries], (alternatives), or {key: form}; with None a key may lack.
EXTENDED, INPUTS, ROWS = (double, "inf", "-inf"), {"inputs": (None, [label])}, [[double]]
F = *({"name": f} for f in NAMED), *({"name": f, "parameter": double} for f in FAMILIES)
GRAPH = {"kind": "graph", "directed": bool, "multiple": bool, "nodes": list, "edges": list}
SHARES = {"weights": (None, [(double, [double])]), "pairs": (None, []), "contrasts": (None,)}
CRITERIA = kinds(
    **{"AOptimal": {"weights": (None, [double], ROWS)}, "COptimal": {"contrast": [double]}, "DOptimal": {}},
    **{"MVOptimal": {"contrasts": (None,)}, "Marginals": {"shape": [int], **SHARES}},
)
SIMPLE = kinds(
    Divergence={"f": F, "p0": [double], "p1": [double], **INPUTS}, MutualInformation={"prior": [double], **INPUTS}
)
UTILITIES = SIMPLE + kinds(
    WorstOf={"f": F, "p0": [double], "others": ROWS, **INPUTS},
    WeightedSum={"weights": [double], "utilities": [SIMPLE]},
    ExpectedLoss={"prior": (None, [double], ROWS), "loss": ROWS, "decisions": (None, [label]), **INPUTS},
    FisherInformation={"prior": [double], "criterion": CRITERIA, "neighbourhood": (None,), **INPUTS},
)
CONSTRAINTS = kinds(
    LocalDP={"epsilon": double, "graph": (None, GRAPH)},
    TotalVariation={"eta": double},
    ApproximateLDP={"epsilon": double, "delta": double},
)
LISTED = {"rows": [double], "pairs": ROWS, "weights": [double]}
CHOSEN = {"kind": "TermMultiplier", "term": int, "pairs": (dict, [int]), "values": (dict, ROWS)}
TERMS = {"rows": [double], "posed": (None,), "multipliers": ([], [CHOSEN])}
PROOFS = kinds(
    **{kind: {} for kind in ("Contraction", "InformationCapacity", "SharedInformation")},
    **{kind: LISTED for kind in ("PatternDual", "PolicyDual", "LevelDual")},
    **{"LevelVariationDual": {**LISTED, "spreads": ROWS}, "LossDual": {**TERMS, "weights": [double]}},
    **{"PartsBound": {"each": [dict]}, "Relaxed": {"relaxation": dict}},
    Dominated={"points": ROWS, "of_points": dict},
    EnvelopeDual={"level": double, "potentials": [double], "points": (None, ROWS)},
    InformationDual={"whole": ([int], {"shape": list}), "rows": [double], "pairs": ROWS},
    OrbitDual={"values": [double], "rows": [double], "pairs": ROWS},
    SymmetricEnvelope={"slope": double},
    IntervalDual={**TERMS, "classes": (None, [int]), "knots": [double]},
    EquivalenceDual={"prior": [double], "kernel": ROWS, "rows": [double], "pairs": ROWS, "relaxed": (None, dict)},
)
RELAXED = {"kind": "Relaxation", "squares": ROWS, "spans": [double], "products": (None, ROWS)}
PROBLEM = {"utility", "constraints", "channel", "edges"}  # Keys of a nested certificate that describe its problem.
OLDER = {"lower", "exact", "reference", "witness"}  # Of guarantees in older files; `ldpopt verify` checks them.
DESIGN = {
    **{"schema": "ldpopt-design", "version": 1, "edges": (None,), "method": str, "reference": str, "note": str},
    **{"value": EXTENDED, "lower_bound": EXTENDED, "upper_bound": EXTENDED, "certified": bool, "tolerance": double},
    **{"utility": UTILITIES, "channel": {"inputs": [label], "outputs": [label], "matrix": ROWS}},
    **{"constraints": [CONSTRAINTS], "certificate": PROOFS},
    "guarantees": [{"notion": str, "value": EXTENDED, "parameters": (None, {}, {"epsilon": double})}],
}
RESPONDENTS = {
    **{"schema": "ldpopt-respondents", "version": 1, "kind": "RespondentsBound", "epsilon": EXTENDED, "least": int},
    **{"pilots": ROWS, "targets": [ROWS], "variances": ROWS, "weights": ROWS},
    **{"kernel": (None, ROWS), "rows": (None, [double]), "relaxed": (None, dict)},
}


def fits(x, form):
    """Return True if x has a form."""
    # Objects must have exactly its keys, since an unknown one might change the others.
    if isinstance(form, dict):
        if not isinstance(x, dict) or not set(x) <= set(form):
            return False
        lacking = all(isinstance(form[key], tuple) and None in form[key] for key in set(form) - set(x))
        if isinstance(x, Object):  # To compare with the only value that is allowed is to read.
            x.read.update(key for key, part in x.items() if isinstance(form[key], str | int) and part == form[key])
        return lacking and all(fits(part, form[key]) for key, part in x.items())
    if form == [double] and isinstance(x, list) and x:  # Quickly, of many.
        is_sized = set(map(type, x)) <= {int, float} and min(x) > -(2**1023) and max(x) < 2**1023
        return is_sized and all(map(math.isfinite, x))
    if isinstance(form, list):
        return isinstance(x, list) and bool(x) == bool(form) and all(fits(y, form[0]) for y in x)
    if isinstance(form, tuple):
        return any(fits(x, part) for part in form)
    if isinstance(form, type):
        return type(x) is form or (form is dict and isinstance(x, dict))
    return form(x) if callable(form) else type(x) is type(form) and x == form


VARIED = {"utility", "constraints", "certificate"}  # Keys with values whose types this program may not know.


def formed(x, form):
    """Refuse an object of another form."""
    need(isinstance(x, dict) and set(x) == set(form), f"its keys must be {', '.join(form)}")
    for key, value in x.items():
        guarantees = value if key == "guarantees" and isinstance(value, list) else ()
        older = any(isinstance(guarantee, dict) and OLDER & set(guarantee) for guarantee in guarantees)
        cover(not older, "what older files state of guarantees beside their values is not supported")
        kind = NotCovered if key in VARIED and isinstance(value, dict | list) else BadInput
        need(fits(value, form[key]), f"{key} is malformed, or of a kind that is not supported", kind)
        x.read.update([key] if isinstance(form[key], str | int) else [])


def rational(x):
    """Convert a double to a rational; infinities stay floats. Nested lists are converted."""
    if isinstance(x, list | tuple):
        return [rational(y) for y in x]
    return Fraction(float(x)) if double(x) else float(x)


def shaped(x, rows, columns, name):
    """Return a matrix of rationals of this shape."""
    need(len(x) == rows and all(len(row) == columns for row in x), f"{name} must have shape {rows} x {columns}")
    return rational(x)


def law(xs, size=None, slack=1e-9):
    """Return the distribution in proportion to masses with a sum of 1 within `slack`."""
    total = sum(masses := rational(xs))
    is_law = min(masses) >= 0 < total and abs(float(total) - 1) <= slack
    need(is_law, "laws and rows must be masses >= 0 that sum to 1 within 1e-9")
    need(size in (None, len(masses)), "laws must have as many masses as there are inputs")
    return tuple(x / total for x in masses)


# --- Constraints, and claim 1 -----------------------------------------------------------------------------------------


class Cap:
    """A constraint: sum_y (Q(x,y) - e^(epsilon w) Q(x',y))_+ <= cap for its ordered pairs (x, x', w). `pure`: cap 0,
    all pairs, w = 1. `edges`: of a graph, {(x, x'): w}, the least of parallel ones."""

    def __init__(self, form, labels):
        kind, graph = form["kind"], form.get("graph")
        self.form, self.epsilon = form, rational(form.get("epsilon", 0))
        self.cap = rational(form.get("eta", form.get("delta", 0)))
        cover(0 <= self.epsilon <= 1000 and 0 <= self.cap <= 1, "such caps are not supported")
        cover(self.epsilon > 0 or kind == "TotalVariation", "epsilon = 0 is not supported")
        cover(self.cap > 0 or kind != "ApproximateLDP", "delta = 0 is not supported")
        self.notion = {"LocalDP": "local_dp", "TotalVariation": "total_variation"}.get(kind, "hockey_stick")
        self.limit = self.epsilon if kind == "LocalDP" else self.cap
        self.pure, self.edges = kind == "LocalDP" and not graph, {} if graph else None
        if not graph:
            return
        position, nodes, pairs_read = (
            {label: x for x, label in enumerate(labels)},
            set(map(name_of, graph["nodes"])),
            set(),
        )
        need(nodes <= set(position), "a node is no input")
        for edge in graph["edges"]:
            need(fits(edge, list) and len(edge) == 3 and double(edge[2]), "an edge is malformed")
            need(edge[2] > 0, "an edge has a weight that is not positive")
            cover(self.epsilon * rational(edge[2]) <= 2000, "an edge of this weight is not supported")
            between = tuple(map(name_of, edge[:2]))
            need(nodes >= set(between), "an edge is not between nodes")
            ends = tuple(position[end] for end in between)
            pair = ends if graph["directed"] else tuple(sorted(ends))
            need(graph["multiple"] or pair not in pairs_read, 'an edge is there twice, though "multiple" is false')
            pairs_read.add(pair)
            for way in {ends, ends if graph["directed"] else ends[::-1]} if ends[0] != ends[1] else ():
                self.edges[way] = min(self.edges.get(way, math.inf), rational(edge[2]))

    def pairs(self, k):
        """List its pairs as certificates number them, of k inputs."""
        # With epsilon = 0 each pair once; of a graph, the edges that no path through other inputs implies.
        if self.edges is None:
            return [(x, y, Fraction(1)) for x in range(k) for y in range(k) if x < y or (x > y and self.epsilon)]
        w = shortest([[self.edges.get((x, y)) for y in range(k)] for x in range(k)], sum)
        ways = {(x, y): [w[x][z] + w[z][y] for z in range(k) if z not in (x, y) and w[x][z] and w[z][y]]
                for x, y in sorted(self.edges)}  # fmt: skip
        return [(x, y, w[x][y]) for (x, y), lengths in ways.items() if min([math.inf, *lengths]) > SLACK * w[x][y]]

    def exceeded(self, limit, rows, bits):
        """Return True if the channel with these rows exceeds a limit, or may exceed it."""
        if not 0 <= limit < math.inf:
            return True
        if self.notion == "local_dp":
            columns, worst = [q for q in zip(*rows, strict=True) if any(q)], {}
            if self.pure:
                ratios = ((max(q), min(q), 1) for q in columns)
            else:
                ratios = ((q[x], q[y], w) for q in columns for (x, y), w in self.edges.items() if q[x] > q[y])
            for p, q, w in ratios:
                worst[w] = max(worst.get(w, 1), p / q if q else math.inf)
            return any(
                r == math.inf or settle(partial(log, r), limit * w, bits).hi > limit * w for w, r in worst.items()
            )
        ratio_bound = exp_bound(self.epsilon, bits, False)
        different = map(proofs.to_integers, dict.fromkeys(rows))  # Equal rows but once.
        pairs = (permutations if self.epsilon else combinations)(different, 2)
        for (p, denominator), (q, other_denominator) in pairs:
            scale, other_scale = other_denominator * ratio_bound.denominator, denominator * ratio_bound.numerator
            if (
                sum(max(0, a * scale - b * other_scale) for a, b in zip(p, q, strict=True))
                > limit * denominator * scale
            ):
                return True
        return False


SLACK = 1 + Fraction(1e-12)  # Paths that are longer than an edge by less than this imply it.


def shortest(limits, join):
    """Compute the tightest limits that a matrix of them implies along paths."""
    # None means unlimited; `join` combines two.
    tightest, k = [list(row) for row in limits], range(len(limits))
    for z in k:
        for x in (x for x in k if tightest[x][z] is not None):
            for y in (y for y in k if y != x and tightest[z][y] is not None):
                path_limit = join((tightest[x][z], tightest[z][y]))
                tightest[x][y] = path_limit if tightest[x][y] is None else min(tightest[x][y], path_limit)
    return tightest


class Design:
    """The claims of a file, in rationals."""

    def __init__(self, file, budget):
        formed(file, DESIGN)
        self.value, self.lower, self.upper = (rational(file[x]) for x in ("value", "lower_bound", "upper_bound"))
        self.certified, self.tolerance, self.proof = file["certified"], rational(file["tolerance"]), file["certificate"]
        self.spend, self.utility, channel = budget.spend, file["utility"], file["channel"]
        groups = {}
        for x, row in enumerate(map(tuple, channel["matrix"])):
            groups.setdefault(row, []).append(x)
        self.distinct, self.groups = [law(row) for row in groups], list(groups.values())
        self.k, self.m = len(channel["matrix"]), len(self.distinct[0])
        self.rows = [None] * self.k
        for row, members in zip(self.distinct, self.groups, strict=True):
            for x in members:
                self.rows[x] = row
        inputs, outputs = map(names_of, (channel["inputs"], channel["outputs"]))
        need(len(inputs) == self.k, "inputs: rows and labels must be equally many")
        need({len(outputs)} == {len(row) for row in groups}, "outputs: columns and labels must be equally many")
        self.kind, sized = self.utility["kind"], partial(law, size=self.k)
        self.match_labels(inputs, outputs, any(form.get("graph") for form in file["constraints"]))
        self.error = self.kind == "FisherInformation"
        self.logarithmic = self.error and self.utility["criterion"]["kind"] == "DOptimal"
        self.caps = [Cap(form, inputs) for form in file["constraints"]]
        self.stated = [
            (x["notion"], compared(x.get("parameters") or {}), rational(x["value"])) for x in file["guarantees"]
        ]
        self.parts = []  # (weight, g, law, other law) of a divergence, (weight, None, law, None) of information
        if self.error:
            self.prior = sized(self.utility["prior"])
        elif self.kind == "ExpectedLoss":
            self.loss, stated_prior = shaped(self.utility["loss"], self.k, self.m, "the loss"), self.utility["prior"]
            stated_prior = (
                [[int(x == y) for y in range(self.k)] for x in range(self.k)] if stated_prior is None else stated_prior
            )
            self.priors = [
                sized(prior) for prior in (stated_prior if isinstance(stated_prior[0], list) else [stated_prior])
            ]
        elif self.kind == "WorstOf":
            others, first = (
                map(sized, self.utility["others"]),
                (divergence(self.utility["f"]), sized(self.utility["p0"])),
            )
            self.parts = [(1, *first, other) for other in others]
        else:
            weights, utilities = (
                rational(self.utility.get("weights", [1])),
                self.utility.get("utilities", [self.utility]),
            )
            need(
                len(weights) == len(utilities) and min(weights) >= 0 < sum(weights), "one weight >= 0 for each utility"
            )
            for weight, utility in zip(weights, utilities, strict=True):
                of_two = utility["kind"] == "Divergence"
                pair = (sized(utility["p0"]), sized(utility["p1"])) if of_two else (sized(utility["prior"]), None)
                self.parts.append((weight, divergence(utility["f"]) if of_two else None, *pair))

    def match_labels(self, inputs, outputs, by_name):
        """Refuse a utility with labels other than those of the channel."""
        part_labels = [part.get("inputs") for part in self.utility.get("utilities", ())]
        stated = (
            next((labels for labels in part_labels if labels is not None), None)
            if part_labels
            else self.utility.get("inputs")
        )
        for labels in (stated, *(labels for labels in part_labels if labels is not None)):
            agree("inputs", labels, inputs, by_name)
        if self.kind == "ExpectedLoss":
            decisions = self.utility.get("decisions")
            square = decisions is None and stated is not None and len(inputs) == len(self.utility["loss"][0])
            agree("decisions", stated if square else decisions, outputs)

    def epsilon(self):
        """Return the smallest epsilon between all inputs, or infinity."""
        return min([math.inf, *(cap.epsilon for cap in self.caps if cap.pure)])

    def eta(self):
        """Return the smallest cap on total variation, at most 1."""
        return min([Fraction(1), *(cap.cap for cap in self.caps if cap.notion == "total_variation")])

    def restated(self, proof, **changes):
        """Return the design of another problem, with a nested certificate."""
        # The problem that the nested certificate states is not read.
        proof = Object(((key, content) for key, content in proof.items() if key not in PROBLEM), proof.read)
        cover(fits(proof, PROOFS), "a certificate within another is malformed, or of a kind that is not supported")
        other = copy(self)
        vars(other).update(changes, proof=proof)
        return other

    def broken_caps(self, bits):
        """Check claim 1: yield a sentence for every part that fails."""
        expected = [(x.notion, {"epsilon": float(x.epsilon)} if x.notion == "hockey_stick" else {}) for x in self.caps]
        if expected != [(notion, parameters) for notion, parameters, _ in self.stated]:
            yield "the guarantees stated are of other notions than the constraints"
            return
        for cap, (notion, _, stated) in zip(self.caps, self.stated, strict=True):
            if not stated <= cap.limit:
                yield f"the {notion} guaranteed exceeds its cap"
            for reference, limit in (("its cap", cap.limit), ("the guarantee", stated)):
                if cap.exceeded(limit, self.rows if cap.edges is not None else self.distinct, bits):
                    yield f"the {notion} of the channel exceeds {reference}"

    def worths(self, column, bits):
        """Enclose the value of a column of rationals for each criterion."""
        values = []
        for weight, g, p, other in self.parts:
            a, masses = dot(p, column), {} if g else {c: dot(p, [c == x for x in column]) for c in set(column)}
            terms = [g(a, dot(other, column), bits)] if g and weight else []
            terms += (share * kl(c, a, bits) for c, share in masses.items() if share and c != a)
            values.append(weight * sum(terms, exactly(0, bits)))
        return values if self.kind == "WorstOf" else [sum(values, exactly(0, bits))]

    def grouped(self, law):
        """Sum the masses of the inputs with each row."""
        return tuple(sum(law[x] for x in members) for members in self.groups)

    def evaluate(self, bits):
        """Enclose the utility of the channel, or its error, for claim 2."""
        if self.kind == "ExpectedLoss":
            expected_losses = [dot(q, loss) for q, loss in zip(self.rows, self.loss, strict=True)]
            return exactly(-max(dot(p, expected_losses) for p in self.priors), bits)
        if self.error:
            return proofs.criterion(self, bits)
        merged = copy(self)  # Inputs of equal rows are as one.
        merged.parts = [(weight, g, *(law and self.grouped(law) for law in laws)) for weight, g, *laws in self.parts]
        columns = zip(
            *(merged.worths(column, bits) for column in zip(*self.distinct, strict=True) if any(column)), strict=True
        )
        sums = [sum(merged, exactly(0, bits)) for merged in columns]
        return Interval(min(x.lo for x in sums), min(x.hi for x in sums), bits)


def settle(enclose, x, bits):
    """Return the first of ever tighter enclosures that excludes x or is exact, or the last one."""
    enclosure = enclose(bits)
    is_undecided = enclosure.lo <= x <= enclosure.hi and enclosure.lo < enclosure.hi and bits < MOST_BITS
    return settle(enclose, x, min(2 * bits, MOST_BITS)) if is_undecided else enclosure


def outward(enclosure):
    """Return two floats, below and above an enclosed number."""
    ends = zip((enclosure.lo, enclosure.hi), (-math.inf, math.inf), strict=True)
    neighbors = (
        (float(x) if abs(x) < 2**1024 - 2**970 else math.inf * (1 if x > 0 else -1), x, way) for x, way in ends
    )
    return tuple(end if end == x else math.nextafter(end, way) for end, x, way in neighbors)


# Sentences, two pairs of floats, the file's claim, and the places of the file that nothing was computed of.
Result = namedtuple("Result", "failures value bound certified unchecked", defaults=((),))
NOTHING = namedtuple("Nothing", "lo hi")(-math.inf, math.inf)


def check(document, bits=128, budget=1.0):
    """Check the claims of a file, given as parsed JSON; BadInput if they cannot be judged."""
    document = watched(document)
    if isinstance(document, dict) and document.get("schema") == RESPONDENTS["schema"]:
        for key in ("kernel", "rows", "relaxed"):
            document.setdefault(key, None)
        formed(document, RESPONDENTS)
        results = proofs.respondents(document, bits, Budget(budget))
        return results._replace(unchecked=(*unread(document),))
    d = Design(document, Budget(budget))
    inner, k, m = d.k * d.m if d.kind in ("MutualInformation", "WeightedSum") else d.m, d.k, d.m
    inner += 4 * m * len(d.parts)
    n = len(d.distinct)
    d.spend(n**2 * m / 20 + n * m / 5 + k / 10 + inner + (k**2 * m / 5 + k**4 / 10 if d.error else 0))
    failures, stated_bound = [f"Claim 1: {x}." for x in d.broken_caps(bits)], d.lower if d.error else d.upper
    results = [NOTHING, NOTHING]
    for number, (find, stated) in enumerate(((d.evaluate, d.value), (partial(proofs.proved, d), stated_bound))):
        try:
            results[number] = settle(find, stated, bits)
        except ArithmeticError as reason:
            infinite = type(reason) is ZeroDivisionError
            failures.append(f"Claim {number + 2}: {'a divergence is infinite' if infinite else reason}.")
    value, bound = results
    comparisons = (
        (value.hi <= d.value, stated_bound <= bound.lo) if d.error else (d.value <= value.lo, bound.hi <= stated_bound)
    )
    finite = abs(d.value) < math.inf > abs(stated_bound) and 0 < d.tolerance <= Fraction(1e-3)
    gap = d.value - stated_bound if d.error else stated_bound - d.value
    honest = finite and 0 <= gap <= d.tolerance * (1 if d.logarithmic else abs(d.value))
    claims = (
        (f"Claim 2: the value is not as stated, but between {outward(value)}.", comparisons[0]),
        (f"Claim 3: the bound stated is not proved; the proved one is between {outward(bound)}.", comparisons[1]),
        ("Claim 4: the value is not one of the two bounds.", (d.upper if d.error else d.lower) == d.value),
        ("Claim 5: `certified` is not as the gap and the tolerance have it.", d.certified is honest),
    )
    failures += [claim for claim, holds in claims if not holds]
    return Result(failures, outward(value), outward(bound), d.certified, (*unread(document),))


from ldpopt_check import proofs  # noqa: E402 (it takes the numbers above)
