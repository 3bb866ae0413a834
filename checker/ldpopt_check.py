"""Check a design file of ldpopt without ldpopt: one file, the standard library alone, rational arithmetic.
python ldpopt_check.py FILE [--json] [--bits N]     exit 0: the proof holds; 1: it does not; 2: bad or unsupported input

What a file claims. P0, P1 are laws on k inputs; Q is a channel (row x: the law of the report if the answer is x); f is
convex, f(1) = 0. M0 = P0 Q and M1 = P1 Q are the laws of the report, D = sum_y mu(M0(y), M1(y)), mu(a,b) = b f(a/b).
  1. Two entries of a column of Q have a ratio of at most E = e^epsilon, two rows a total variation of at most eta; the
     stated `guarantees` are not below the channel's own values, nor above these caps.
  2. `value` is at most D.   3. No channel that fulfils 1 has a D above `upper_bound`.   4. `lower_bound` is `value`.
  5. If it is `certified`, upper_bound - value <= tolerance |value|, tolerance at most 1e-6 (1e-4 if there are points).
Numbers are doubles, hence rational; p0, p1 and rows are divided by their sums. Only claim 3 needs a proof. For it a
rational slightly above E replaces E: more channels are allowed, and a bound for them holds for all. Over outputs f'(1)
(a-b) sums to 0, so g(a,b) = mu(a,b) - f'(1) (a-b) >= 0 replaces mu: convex, homogeneous, subadditive.

Theorem 1 (Dobrushin). D <= eta D_f(P0||P1), and ratios of at most E imply eta <= (E-1)/(E+1).
Proof. g is an average of (a - c b)_+ over c >= 1 and (c b - a)_+ over c <= 1. For c >= 1, P0 - c P1 has a positive part
of mass h and a negative part of mass >= h. Q maps the parts, divided by their masses, to laws at most eta apart. Cancel
h of one with h of the other: at most h eta stays positive. The case c <= 1 is the same. For rows p, q and S = {p > q},
d = p(S) - q(S) is at most (E-1) q(S) and (E-1) (1 - p(S)) = (E-1) (1 - q(S) - d); adding up, (E+1) d <= E-1. QED

Theorem 2 (envelope). Merge inputs of equal P0/P1 and sort by it. Let t = 1/(E-1), w(B) = g(t + P0(B), t + P1(B)) for a
block B of neighbours, V(m) the largest sum of w over partitions into m blocks, v(m) = 1/(1 + t m). The largest D of
channels that fulfil 1 is the largest sum of c(m) v(m) V(m) over c >= 0 with sum c(m) <= 1 and sum c(m) v(m) <= eta.
Proof, shortened. (a) A column with ratios up to E is a sum of staircases b (1 + (E-1) 1_A), A running through the upper
sets of one order of its entries: each |q_x - q_x'| adds up, and g does not fall, so staircases suffice. Lay them on a
line, each of length b, by their ratio M0/M1. Rows sum to 1: all inputs are in sets A of one total length N, and any
input is in sets without any other one for a length of at most L = eta/(E-1). (b) Tangents of g bound g from below; what
an input gains from them rises along the line up to its own ratio and falls after it. If L < N, a length N - L common to
all inputs can go while the rest of each moves towards its peak; the common part, constant over inputs, tells nothing
(erasure), and the rest has total variation at most (E-1) L by itself. (c) Now each input fills a window of length L
where it gains most. Gains have increasing differences in both ratios: windows move right with the input's ratio, and
each place of the line holds a block of neighbours. (d) "Each input is in blocks of length L in all" is solved by
mixtures of partitions (consecutive ones), and m blocks, rows scaled to 1, are randomized response of a block number:
total variation v(m), divergence v(m) V(m). The weights of the mixture are the c(m). QED

"Contraction" is theorem 1. "EnvelopeDual": if w(i..j-1) <= kappa (t A + u_j - u_i) for all cuts i < j, and A >= 0, then
no D is above kappa (A + eta (U-A)_+), U = u_n - u_0. Proof. Adding up, V(m) <= kappa (U + m t A), so v(m) V(m) <= kappa
(v(m) U + (1 - v(m)) A) = kappa (A + v(m) (U-A)); multiply by c(m) and add. (Without LocalDP t = 0: the sum of w over
single inputs, D_f(P0||P1), is at most kappa U; use theorem 1.) "points": if sum ((1-s) A0 - s A1)_+ >= sum
((1-s) P0 - s P1)_+ for all s, a channel K turns the laws A0, A1 into P0, P1 [Blackwell]; K Q fulfils 1 and
gives the same M0, M1, so the largest D for A0, A1 is not smaller. QED
"""

import argparse
import json
import math
import sys
from collections import namedtuple
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate, combinations
from operator import ge, mul

MOST_BITS, MOST_BYTES, MOST_WORK = 4096, 2**26, 10**7


class BadInput(Exception):
    """The file is not a design file, or this program cannot judge it."""


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
    z = Interval((r - 1) / (r + 1), (r - 1) / (r + 1), bits)
    return 2 * (z + z * z * z * series(z * z)) + (k * log(Fraction(2), bits) if k else 0)


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
    z = Interval((a - b) / (a + b), (a - b) / (a + b), bits)
    return (a + b) * (z * z * (1 + (1 + z) * z * series(z * z)))


def alpha(order, a, b, bits):
    """(b (a/b)^order - b - order (a-b)) / (order (order-1)), with as many more digits as the difference loses."""
    if (a == 0 and order > 0) or (b == 0 and order < 1):
        return (b / order if a == 0 else a / (1 - order)) * Interval(Fraction(1), Fraction(1), bits)
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


EXTENDED = (double, "inf", "-inf")
NOTIONS = {"local_dp": ("LocalDP", "epsilon"), "total_variation": ("TotalVariation", "eta")}
F = *({"name": f} for f in NAMED), *({"name": f, "parameter": double} for f in FAMILIES)
POTENTIALS = {"kind": "EnvelopeDual", "level": double, "potentials": [double], "points": (None, [[double]])}
FORM = {  # A form is a value, a type, a test, [form of the entries], (alternative forms) or {key: form}.
    **{"schema": "ldpopt-design", "version": 1, "edges": None, "method": str, "reference": str, "note": str},
    **{"value": EXTENDED, "lower_bound": EXTENDED, "upper_bound": EXTENDED, "certified": bool, "tolerance": double},
    "utility": {"kind": "Divergence", "f": F, "p0": [double], "p1": [double], "inputs": (None, list)},
    "channel": {"inputs": list, "outputs": list, "matrix": [[double]]},
    "constraints": [tuple({"kind": kind, cap: double} for kind, cap in NOTIONS.values())],
    "guarantees": [lambda x: isinstance(x, dict) and x.get("notion") in [*NOTIONS] and fits(x.get("value"), EXTENDED)],
    "certificate": ({"kind": "Contraction"}, POTENTIALS),
}


def fits(x, form):
    """Whether x has a form. Objects must have exactly its keys, since an unknown one might change the others."""
    if isinstance(form, dict):
        return isinstance(x, dict) and set(x) == set(form) and all(fits(x[key], form[key]) for key in form)
    if isinstance(form, list):
        return isinstance(x, list) and len(x) > 0 and all(fits(y, form[0]) for y in x)
    if isinstance(form, tuple):
        return any(fits(x, one) for one in form)
    if isinstance(form, type):
        return type(x) is form
    return form(x) if callable(form) else type(x) is type(form) and x == form


def need(condition, otherwise):
    """Refuse the file unless a condition holds."""
    if not condition:
        raise BadInput(otherwise)


def rational(x):
    """The rational of a double; infinities stay floats."""
    return Fraction(float(x)) if double(x) else float(x)


def law(xs, slack=1e-6):
    """The law in proportion to some masses, whose sum may differ from 1 by `slack`."""
    total = sum(masses := [rational(x) for x in xs])
    need(min(masses) >= 0 < total and abs(total - 1) <= slack, "laws and rows must be masses >= 0 that sum to 1")
    return tuple(x / total for x in masses)


def by_ratio(p0, p1):
    """(P0/(P0+P1), P0, P1) of the inputs with positive mass, sorted by P0/P1."""
    return sorted((a / (a + b), a, b) for a, b in zip(p0, p1, strict=True) if a + b)


class Design:
    """The claims of a file, in rationals, and the checks of them."""

    def __init__(self, file):
        need(isinstance(file, dict) and set(file) == set(FORM), f"its keys must be {', '.join(FORM)}")
        for key, form in FORM.items():
            need(fits(file[key], form), f"{key} is malformed, or of a kind that is not supported")
        self.value, self.lower, self.upper = (rational(file[x]) for x in ("value", "lower_bound", "upper_bound"))
        self.certified, self.tolerance = file["certified"], rational(file["tolerance"])
        utility, channel, proof = file["utility"], file["channel"], file["certificate"]
        name, c = utility["f"]["name"], rational(utility["f"].get("parameter", 1))
        need(abs(c) <= 100 and (c > 0 or name == "alpha"), "a parameter of this size is not supported")
        self.g = NAMED.get(name) or partial(FAMILIES[name], c)
        p0, p1, rows = law(utility["p0"]), law(utility["p1"]), [law(row) for row in channel["matrix"]]
        for names, sizes in (("inputs", {len(p0), len(p1), len(rows)}), ("outputs", {len(row) for row in rows})):
            own = {len(channel[names]), len({json.dumps(label) for label in channel[names]})}
            need(len(own | sizes) == 1, f"{names}: masses, rows and distinct labels must be equally many")
        named = json.dumps(utility["inputs"])
        need(named in ("null", json.dumps(channel["inputs"])), "the inputs of utility and channel differ")
        self.laws, self.rows = by_ratio(p0, p1), dict.fromkeys(rows, (0, 0))
        for a, b, row in zip(p0, p1, rows, strict=True):  # The different rows, and the mass of each under both laws.
            self.rows[row] = self.rows[row][0] + a, self.rows[row][1] + b
        asked = [[x[cap] for x in file["constraints"] if x["kind"] == kind] for kind, cap in NOTIONS.values()]
        self.epsilon, self.eta = rational(min([math.inf, *asked[0]])), rational(min([1, *asked[1]]))
        need(self.epsilon > 0 <= self.eta and not 1000 < self.epsilon < math.inf, "such caps are not supported")
        self.stated = [(x["notion"], rational(x["value"])) for x in file["guarantees"]]
        self.points, self.dual = self.laws, proof["kind"] == "EnvelopeDual"
        if self.dual:
            self.level, self.potentials = rational(proof["level"]), [rational(u) for u in proof["potentials"]]
            if proof["points"] is not None:
                need({len(pair) for pair in proof["points"]} == {2}, "points must be pairs")
                self.points = by_ratio(*(law(xs, math.inf) for xs in zip(*proof["points"], strict=True)))
            need(len(self.potentials) == len(self.points) + 1, "there must be one potential more than inputs or points")
        need(max(len(self.rows) ** 2 * len(rows[0]), len(self.points) ** 2) <= MOST_WORK, "too large, not supported")

    def broken_caps(self, bits):
        """Claim 1: the sentences about what does not hold."""
        ratio = max(max(q) / min(q) if min(q) else math.inf for q in zip(*self.rows, strict=True) if any(q))
        apart = (sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2 for p, q in combinations(self.rows, 2))
        own = {"local_dp": ratio, "total_variation": max(apart, default=0)}
        caps = {"local_dp": self.epsilon, "total_variation": self.eta}
        for what, limits in (("its cap", caps.items()), ("the guarantee", self.stated)):
            for notion, limit in limits:
                if not limit <= caps[notion]:
                    yield f"the {notion} guaranteed exceeds its cap"
                if notion == "local_dp" and isinstance(limit, Fraction):  # Ratios of doubles are below e^2000.
                    limit = settle(partial(exp, *2 * [max(-1, min(limit, 2000))]), ratio, bits).lo
                if not own[notion] <= limit:
                    yield f"the {notion} of the channel exceeds {what}"

    def total(self, pairs, bits):
        """The sum of g over pairs. Pairs with a = b add 0."""
        return sum((self.g(a, b, bits) for a, b in pairs if a != b), Interval(Fraction(0), Fraction(0), bits))

    def kept(self, bits):
        """Claim 2: the divergence of the laws of the report, M_v(y) = sum of P_v(x) Q(x,y)."""
        columns, masses = list(zip(*self.rows, strict=True)), zip(*self.rows.values(), strict=True)
        return self.total(zip(*([sum(map(mul, p, q)) for q in columns] for p in masses), strict=True), bits)

    def proved(self, bits):
        """Claim 3: the bound of the certificate, with t and eta rounded up."""
        e = exp_bound(self.epsilon, bits, True) if self.epsilon < math.inf else None
        t, eta = (1 / (e - 1), min(self.eta, (e - 1) / (e + 1))) if e else (Fraction(0), self.eta)
        if not self.dual:
            return eta * self.total(((a, b) for _, a, b in self.laws), bits)
        if not (self.level >= 0 and dominates(self.points, self.laws)):
            raise ArithmeticError("the level is negative, or the points do not dominate p0 and p1")
        s, *masses = zip(*self.points, strict=True)
        n, u, kappa, (p0, p1) = len(s), self.potentials, [1, 1], ([0, *accumulate(p)] for p in masses)
        cuts = [i for i in range(n + 1) if i in (0, n) or s[i - 1] < s[i]]  # Equal ratios stay together.
        for i, j in combinations(cuts, 2):
            worth = self.total([(t + p0[j] - p0[i], t + p1[j] - p1[i])], bits)
            paid = t * self.level + u[j] - u[i]
            if not (paid > 0 or (paid == 0 and worth.hi <= 0)):
                raise ArithmeticError(f"the potentials pay too little for the sorted inputs {i} to {j - 1}")
            if paid > 0:
                kappa = [max(kappa[0], worth.lo / paid), max(kappa[1], worth.hi / paid)]
        return Interval(*kappa, bits) * (self.level + eta * max(0, u[n] - u[0] - self.level))


def dominates(points, laws):
    """Whether sum ((1-s) a - s b)_+ is nowhere smaller for the points than for the laws: the first is linear between
    its kinks, the second convex, and they agree at s = 0 and 1, so the kinks of the first suffice."""
    sides = ([sum(max(0, (1 - s) * a - s * b) for _, a, b in law) for s, _, _ in points] for law in (points, laws))
    return points == laws or all(map(ge, *sides))


def settle(enclose, x, bits):
    """The first of ever tighter enclosures of a number that excludes x or is exact, or the last one."""
    found = enclose(bits)
    undecided = found.lo <= x <= found.hi and found.lo < found.hi and bits < MOST_BITS
    return settle(enclose, x, min(2 * bits, MOST_BITS)) if undecided else found


def outward(found):
    """Two floats, below and above an enclosed number."""
    ends = zip((found.lo, found.hi), (-math.inf, math.inf), strict=True)
    near = ((float(x) if x < 2**1024 - 2**970 else math.inf, x, way) for x, way in ends)
    return tuple(end if end == x else math.nextafter(end, way) for end, x, way in near)


Result = namedtuple("Result", "failures value bound certified")  # Sentences, two pairs of floats, the file's claim.
INFINITE = namedtuple("Infinite", "lo hi")(math.inf, math.inf)


def check(document, bits=128):
    """Check the claims of a file, given as parsed JSON; BadInput if they cannot be judged."""
    d = Design(document)
    failures, value, bound = [f"Claim 1: {x}." for x in d.broken_caps(bits)], INFINITE, INFINITE
    try:
        value = settle(d.kept, d.value, bits)
        bound = settle(d.proved, d.upper, bits)
    except ArithmeticError as reason:  # A division by zero is an infinite divergence.
        failures.append(f"Claims 2, 3: {'a divergence is infinite' if type(reason) is ZeroDivisionError else reason}.")
    claims = {
        f"Claim 2: value is not shown to be kept, which is between {outward(value)}.": d.value <= value.lo,
        f"Claim 3: upper_bound is not proved; the bound is between {outward(bound)}.": bound.hi <= d.upper,
        "Claim 4: lower_bound is not value.": d.lower == d.value,
    }
    if d.certified:
        close = abs(d.value) < math.inf > abs(d.upper) and 0 <= d.upper - d.value <= d.tolerance * abs(d.value)
        claims["Claim 5: upper_bound is not within the tolerance of value."] = close
        claims["Claim 5: the tolerance is too wide."] = 0 < d.tolerance <= (1e-6 if d.points == d.laws else 1e-4)
    failures += [claim for claim, holds in claims.items() if not holds]
    return Result(failures, outward(value), outward(bound), d.certified)


# --- The command ------------------------------------------------------------------------------------------------------


def read(path):
    """The JSON of a file, read strictly: no key may be there twice, and no NaN."""
    strict = {"object_pairs_hook": lambda pairs: need(len(dict(pairs)) == len(pairs), "a key twice") or dict(pairs)}
    try:
        with open(path, "rb") as file:
            need(len(text := file.read(MOST_BYTES + 1)) <= MOST_BYTES, "a file of this size is not supported")
        return json.loads(text.decode(), parse_constant=partial(need, False), **strict)
    except (OSError, ValueError) as error:
        raise BadInput(f"it cannot be read as JSON: {str(error)!a}") from None


def main():
    """Check the file that the command line names."""
    parser = argparse.ArgumentParser(description="Check a design file of ldpopt: exit 0 holds, 1 does not, 2 bad input")
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--bits", type=int, default=128, help="binary digits at the start (default 128)")
    asked = parser.parse_args()
    try:
        need(64 <= asked.bits <= MOST_BITS, f"--bits must lie between 64 and {MOST_BITS}")
        found = check(read(asked.file), asked.bits)
        code = 1 if found.failures else 0
    except (BadInput, RecursionError) as error:
        found, code = Result([f"Bad or unsupported file: {error}."], outward(INFINITE), outward(INFINITE), False), 2
    told = f"The proof holds: the channel keeps at least {found.value[0]}, none allowed more than {found.bound[1]}; "
    told += f"the file {'calls' if found.certified else 'does not call'} it certified. Not checked: method and note."
    as_json = json.dumps({"holds": not code} | found._asdict()).replace("Infinity", '"inf"')
    print(as_json if asked.json else "\n".join(found.failures) or told)
    return code


if __name__ == "__main__":
    sys.exit(main())
