"""The theorems: from the numbers of a certificate to an enclosure of a bound for every channel.

Everywhere a rational slightly above e^epsilon replaces it, and E is this one: more channels are allowed, and a bound
for them holds for all.

Theorem 1 (Dobrushin). D <= eta D_f(P0||P1), and ratios of at most E imply eta <= (E-1)/(E+1).
Proof. g is an average of (a - c b)_+ over c >= 1 and (c b - a)_+ over c <= 1. For c >= 1, P0 - c P1 has a positive part
of mass h and a negative part of mass >= h. Q maps the parts, divided by their masses, to laws at most eta apart. Cancel
h of one with h of the other: at most h eta stays positive. The case c <= 1 is the same. For rows p, q and S = {p > q},
d = p(S) - q(S) is at most (E-1) q(S) and (E-1) (1 - p(S)) = (E-1) (1 - q(S) - d); adding up, (E+1) d <= E-1. QED
Mutual information is the average of the divergences KL(row x || law of the report), and contracts likewise. An excess
delta beyond E implies eta <= delta + (1 - delta)(E-1)/(E+1) [Kairouz, Oh, Viswanath].
If f is operator convex, g is a mixture of (a-b)^2/(s a + (1-s) b), 0 <= s <= 1 [Choi, Ruskai, Seneta], and information
is one of them, too; these keep at most the same share as chi-squared, which is reached with two inputs [Ordentlich,
Polyanskiy]: the largest s (1-s) sum (p-q)^2/(s p + (1-s) q) of two rows. That is convex and homogeneous in the columns
(p_y, q_y), so splitting them into (E,1), (1,E) and (1,1) makes it no smaller: it is at most eta (E+1)/(E-1) times that
of randomized response, ((E-1)/(E+1))^2. Then D <= eta (E-1)/(E+1) D_f(P0||P1).

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

"EnvelopeDual": if w(i..j-1) <= kappa (t A + u_j - u_i) for all cuts i < j, and A >= 0, then no D is above kappa (A +
eta (U-A)_+), U = u_n - u_0. Proof. Adding up, V(m) <= kappa (U + m t A), so v(m) V(m) <= kappa (v(m) U + (1 - v(m)) A)
= kappa (A + v(m) (U-A)); multiply by c(m) and add. "points": if sum ((1-s) A0 - s A1)_+ >= sum ((1-s) P0 - s P1)_+ for
all s, a channel K turns the laws A0, A1 into P0, P1 [Blackwell]; K Q fulfils 1 and gives the same M0, M1. QED

Theorem 3 (columns). Let what is kept be a sum over reports of a convex, homogeneous function of the column c, or the
least of several such; then it is at most their mixture by any weights. Cut the cone of columns by all planes on which a
capped sum has a kink: on each piece the column is a sum of extreme rays, and neither the worth falls nor a cap's sum
grows. If every extreme c is worth at most kappa (rows.c + pairs . the capped sums of c), then no channel keeps more
than kappa (sum rows + pairs . caps), as columns add up to 1. The rays: "PatternDual", ratios E: t + 1_A. "PolicyDual":
entries linked to each other by ratios at the limits of a graph, through all of the support; "pairs" link equal entries,
too. "LevelDual": powers of E on a support, without gaps; "spreads" are for total variation, whose planes c_x = c_y add
the columns that are constant on two inputs or more, and on all of them.
"InformationDual": some inputs whole, and shares rho of the rest, of mass R, as if it were divisible. With a = P(I) + R
rho the worth h(a) = a kl(t+1, t+a) + (1-a) kl(t, t+a) is concave, below its tangent anywhere, and the price linear.
"InformationCapacity": rows in proportion to the prior, for the largest h(a)/(t+a): x - 1 - log x, x = eps/(1-e^-eps).

Theorem 4 (weak duality). Let linear functions G_i of columns be above the worth of those whose ratio M0/M1 is in
interval i (chords of g), or minus the loss of decision i. With rows, and z_i >= 0 for each pair of a cap, no channel
keeps more than sum rows + sum caps max_i z_i + the most that sum_i r_i.q_i can be, r_i = G_i - rows - z_i (Q_x - E^w
Q_x'). That is at most T = sum_x max_i (r_ix)_+. The least entries of the columns add up to at most 1, and what is left
of a row to (k-1) eta, its variations from the others: so it is at most max_i (sum r_i)_+ + (k-1) eta T. With ratios of
at most E, columns being multiples of t + a, 0 <= a <= 1, it is at most k s if t (sum r_i - k s) + sum (r_i - s)_+ <= 0
for all i, as rows sum to 1.

Theorem 5 (equivalence [Kiefer, Wolfowitz]). Report y has the probability w and the centred column u = c/(p.c) - 1. If
sum w |K u|^2 <= M for every channel, then tr(W C), W = F F^T, is at least tr(K (F - 1 p^T F))^2 / M (Cauchy, Schwarz);
the largest variance at least sum_x (K_x.(e_x - p_x))^2 / M; log det C at least 2 log det R - (k-1) log(M/(k-1)) for K =
(R, -R 1) (eigenvalues' means). M is found as in theorem 3, per unit of probability.

Theorem 6 (Scarf). For scores of mean 0 and covariance I, the information of one report has a trace of at most rho^2 =
sinh^2(eps/2) = (E-1)^2/(4E); with m yes/no questions of independent even answers also (E-1)/8, tanh^2(eps/2) if E <= 3,
and for m <= 7, all sets compared, max_c c ((E-1)/(2^c+E-1))^2. So n sum w tau >= (sum tr S^(1/2))^2/rho^2, and
tr S^(1/2), the sum of the singular values of A = diag(p)^(1/2) (F - 1 p^T F), is at least tr(Z^T A)/|Z| for any Z.

Theorem 7 [Shor]. In theorem 5 a pattern t + a of mass m gains -N/m^2, N = m (t sum rows + rows.a + price) - |K a|^2.
For a_x of 0 or 1 and low <= m <= high, N is at least what it is with low price for m price, more d_x (a_x^2 - a_x),
less span (m-low)(high-m) and n_xy a_x a_y: a quadratic form in z = (a_x (t + p_x), t). As |z|^2 <= (k+1) m^2, no gain
exceeds minus its least eigenvalue times k+1. The classes [low, high] cover all masses.

Theorem 8 (symmetric envelope). Let n inputs be alike, and what is kept a convex, homogeneous function of columns that
no permutation changes. By theorem 3 patterns suffice: e on w inputs, 1 on the others, over the sum s = n + (e-1) w. The
average of a channel over permutations keeps as much and fulfils 1, as no distance of rows grows. Its patterns of w
inputs, of total probability b_w, are all equally likely, so that any two rows are sum b_w eta_w apart, eta_w =
(e-1) w (n-w)/((n-1) s), and sum b_w u_w is kept: at most a eta + max(0, max_w (u_w - a eta_w)) for any a >= 0. For
information u_w is the divergence of the ratios to the mean, e n/s on w and n/s on n-w inputs. For estimation it is the
trace T of sum_y m_y u u^T, u = c/m - 1: n w (n-w) ((e-1)/s)^2. A criterion that falls and is convex in this matrix and
unchanged by permutations is at least its value at the average, T/(n-1) on all contrasts: n-1 variances of (n-1)/T in
all, (1-1/n) (n-1)/T each, and log det -(n-1) log(T/(n-1)) - log n. Inputs without mass are left out.

Theorem 9 (orbits). Let the inputs with mass be in groups, n_i of mass v_i in the group i. As in theorem 8, permutations
within the groups change nothing: all sets with j_i inputs of each group i get one weight, b_j in all, in units of t +
1_A. The row of the group i is sum b_j (t + j_i/n_i) = 1, rows of the groups i and l are sum b_j s_il apart, where s_il
= j_i (n_l - j_l) / (n_i n_l), and j_i (n_i - j_i) / (n_i (n_i - 1)) within a group. So if h(a), a = sum j_i v_i, is at
most kappa (sum rows_i (t + j_i/n_i) + sum pairs_il s_il) for all j, no channel keeps more than kappa (sum rows + eta
sum pairs). Information is concave in the prior: masses may be rounded up, to a law times M, and what M times the law's
bound says holds for them.
"""

import math
from bisect import bisect_left, bisect_right
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, combinations, pairwise, product
from operator import ge, mul

from ldpopt_check import (
    RELAXED,
    Interval,
    Object,
    Result,
    cover,
    dot,
    exactly,
    exp_bound,
    fits,
    kl,
    law,
    log,
    need,
    outward,
    rational,
    shaped,
    shortened,
    shortest,
)
from ldpopt_check.screen import Screen, plane


class Unproved(ArithmeticError):
    """The certificate does not prove a bound."""


prove = partial(need, kind=Unproved)
MOST_LISTED = 12  # The most cells of all questions together whose patterns are priced.


def proved(d, bits):
    """Claim 3: the bound that the certificate proves, enclosed. More digits take longer."""
    proof, k, kind = d.proof, float(d.k), d.proof["kind"]
    sets, columns = 2.0 ** min(k, 99), math.gamma(1 + min(k, 99)) * 1.6 ** min(k, 99)
    graph, knots = any(cap.edges is not None for cap in d.caps), len(proof.get("knots", ()))
    two, one = ("Divergence",), ("Divergence", "MutualInformation")
    summed, estimated = (*one, "WeightedSum", "WorstOf"), ("FisherInformation",)
    listed = 20 * k**2 + k**3 / 10 if relaxation(d.k, proof.get("relaxed")) else sets * (1 + k**2 / 100)
    dominance = (len(proof["points"]) + k) / 4 if proof.get("points") else 0
    prove_it, about, work = {  # What shows it, for which utilities, in how many units of 50 microseconds.
        "Contraction": (contraction if d.kind in one else parts, summed, k),
        "EnvelopeDual": (envelope, two, dominance or envelope_work(k)),
        "PatternDual": (columns_paid, summed, (18 + k**2 / 10 + 4 * len(d.parts)) * sets),
        "PolicyDual": (columns_paid, summed, k),
        "LevelDual": (columns_paid, summed, 25 * columns),
        "LevelVariationDual": (columns_paid, summed, 25 * columns),
        "IntervalDual": (intervals, two, knots * (20 + k**2 / 10)),
        "LossDual": (losses, ("ExpectedLoss",), d.m * k**2 / 10),
        "InformationDual": (information, ("MutualInformation",), 22 * 2.0 ** min(len(proof.get("whole", ())), 99)),
        "SymmetricEnvelope": (symmetric, ("MutualInformation", "FisherInformation"), 10 * k),
        "OrbitDual": (orbits, ("MutualInformation",), k),
        "InformationCapacity": (capacity, ("MutualInformation",), k),
        "EquivalenceDual": (equivalence, estimated, k**4 / 40 + (0 if graph else listed)),
        "SharedInformation": (shared, estimated, k**3),
        "PartsBound": (parts, ("WeightedSum", "WorstOf"), 0),
        "Relaxed": (relaxed, summed + estimated + ("ExpectedLoss",), 0),
        "Dominated": (dominated, two, dominance),
    }[kind]
    prove(d.kind in about, f"{kind} is not about this utility")
    d.spend((work + (k**3 / 20 if graph or knots else 0)) * bits / 128)
    return prove_it(d, bits)


def plain(d, bits):
    """E of all pairs, rounded up, and eta."""
    prove(d.epsilon() < math.inf, "no constraint asks for LocalDP between all inputs")
    e = exp_bound(d.epsilon(), bits, True)
    return e, min(d.eta(), (e - 1) / (e + 1))


def variation(d, bits):
    """A cap on the total variation between any two rows, by theorem 1."""
    each = ((cap.cap, exp_bound(cap.epsilon, bits, True)) for cap in d.caps if cap.edges is None)
    return min([Fraction(1), *(delta + (1 - delta) * (e - 1) / (e + 1) for delta, e in each)])


def ratios(d, bits):
    """The largest ratio c_x/c_y that the constraints allow a column, (k, k) with None for no limit, rounded up."""
    found = [[None] * d.k for _ in range(d.k)]
    limits = ((x, y, w * cap.epsilon) for cap in d.caps if cap.notion == "local_dp" for x, y, w in cap.pairs(d.k))
    for x, y, limit in limits:
        found[x][y] = min(exp_bound(limit, bits, True), found[x][y] or math.inf)
    return shortest(found, lambda ends: shortened(ends[0] * ends[1], 4 * bits, True))


def farthest(d, bits):
    """The largest ratio of two entries of a column, or None."""
    if d.epsilon() < math.inf and all(cap.edges is None for cap in d.caps):
        return plain(d, bits)[0]
    every = [one for row in ratios(d, bits) for one in row]
    return max(one for one in every if one) if every.count(None) == d.k else None


def factor(each, bits):
    """The least kappa >= 1 with worth <= kappa paid for every (worth, paid)."""
    low = high = Fraction(1)
    for worth, paid in each:
        prove(paid > 0 or (paid == 0 and worth.hi <= 0), "what may be worth something pays nothing")
        if paid > 0:  # Else it pays nothing for what is worth nothing, which holds for every kappa.
            low, high = max(low, worth.lo / paid), max(high, worth.hi / paid)
    return Interval(low, high, bits)


def parts(d, bits):
    """A sum is at most the sum of its parts' bounds, and the worst of several at most the least of theirs."""
    bounds, each = [], d.proof.get("each", [d.proof] * len(d.parts))
    need(len(each) == len(d.parts), "there must be one certificate for each part")
    for (weight, *part), one in zip(d.parts, each, strict=True):
        kind = "Divergence" if part[0] else "MutualInformation"
        try:  # A part of weight 0 adds nothing to the sum, whatever its bound is.
            bounds.append(weight and weight * proved(d.posed(one, kind=kind, parts=[(1, *part)]), bits))
        except ArithmeticError:  # The least of several is at most the least of those that have a bound.
            prove(d.kind == "WorstOf", "a part has no bound")
    prove(bounds, "no part has a bound")
    if d.kind == "WeightedSum":
        return sum(bounds, exactly(0, bits))
    return Interval(min(one.lo for one in bounds), min(one.hi for one in bounds), bits)


def relaxed(d, bits):
    """More channels fulfil some of the constraints than all of them."""
    inner, forms = d.proof["relaxation"], [cap.form for cap in d.caps]
    kept = inner.get("constraints", forms)
    prove(isinstance(kept, list) and kept and all(one in forms for one in kept), "it has a constraint of its own")
    return proved(d.posed(inner, caps=[d.caps[forms.index(one)] for one in kept]), bits)


def dominated(d, bits):
    """Points that a channel turns into the laws keep no less, under constraints that treat all inputs alike: there is
    one if sum ((1-s) a - s b)_+ is nowhere smaller for the points [Blackwell]. That is linear between its kinks, and
    for the laws convex; they agree at s = 0 and 1, so the kinks suffice."""
    # Without the caps of graphs, more channels are allowed.
    caps, (_, g, *laws) = [cap for cap in d.caps if cap.edges is None], d.parts[0]
    need({len(pair) for pair in d.proof["points"]} == {2}, "points must be pairs")
    points = [law(xs, slack=math.inf) for xs in zip(*d.proof["points"], strict=True)]
    kinks = [s for s, _, _ in by_ratio(*points)]
    above, below = (parts_above(kinks, by_ratio(*one)) for one in (points, laws))
    prove(caps and all(map(ge, above, below)), "the points do not dominate the hypotheses")
    inner = d.proof.get("of_points", Object({**d.proof, "points": None}, d.proof.read))
    return proved(d.posed(inner, caps=caps, k=len(points[0]), parts=[(1, g, *points)]), bits)


def parts_above(kinks, sorted_by_ratio):
    """sum ((1-s) a - s b)_+ for each s: of the masses with a ratio above s, which are the last ones."""
    ratios, *masses = zip(*sorted_by_ratio, strict=True)
    a, b = ([*accumulate(one[::-1], initial=Fraction(0))] for one in masses)
    numbers = (len(ratios) - bisect_right(ratios, s) for s in kinks)
    return [(1 - s) * a[n] - s * b[n] for s, n in zip(kinks, numbers, strict=True)]


# --- Two hypotheses ---------------------------------------------------------------------------------------------------


def by_ratio(p0, p1):
    """(P0/(P0+P1), P0, P1) of the inputs with positive mass, sorted by P0/P1. The row of another input changes no
    marginal, and may be a copy of any other row."""
    found = [(a / (a + b), a, b) for a, b in zip(p0, p1, strict=True) if a + b]
    return sorted(found, key=lambda one: (float(one[0]), one))  # Floats of rationals are in order; ties are settled.


def contraction(d, bits):
    """Theorem 1."""
    eta, (_, g, p, q) = variation(d, bits), d.parts[0]
    if eta == 0:  # All rows are equal, and tell nothing even of infinitely much.
        return exactly(0, bits)
    if d.epsilon() < math.inf and (g is None or g.operator_convex):
        e = plain(d, bits)[0]
        eta *= (e - 1) / (e + 1)
    # In the entropy, an answer of mass 0 counts as 0 log 0 = 0.
    each = (g(*ab, bits) for ab in zip(p, q, strict=True)) if g else (-a * log(a, bits) for a in p if a)
    return eta * sum(each, exactly(0, bits))


def envelope(d, bits):
    """Theorem 2. For many inputs boxes of blocks are screened, and few blocks are left."""
    if d.proof.get("points") is not None:
        return dominated(d, bits)
    (_, g, *laws), (e, eta) = d.parts[0], plain(d, bits)
    level, u = rational(d.proof["level"]), rational(d.proof["potentials"])
    t, n, (s, *masses) = 1 / (e - 1), len(points := by_ratio(*laws)), zip(*points, strict=True)
    need(len(u) == n + 1, "there must be one potential more than inputs or points")
    prove(level >= 0, "the level is negative")
    p0, p1 = ([0, *accumulate(p)] for p in masses)
    cuts = [i for i in range(n + 1) if i in (0, n) or s[i - 1] < s[i]]  # Equal ratios stay together.
    blocks, kappa, spend = combinations(cuts, 2), Fraction(1), Prepaid(envelope_work(n), d.spend)
    if n > 60 and t * 10**300 > 1 and max(level * t, *map(abs, u)) < 10**300:
        kappa += Fraction(SCREENED if bits <= 128 else 0)  # Ties are settled by a factor that is as large as rounding.
        blocks = Screen(g, t, (p0, p1), u, level, cuts, kappa, bits, spend).unsettled()
    found = factor(((g(t + p0[j] - p0[i], t + p1[j] - p1[i], bits), t * level + u[j] - u[i]) for i, j in
                    spending(blocks, spend)), bits)  # fmt: skip
    return Interval(found.lo, max(found.hi, kappa), bits) * (level + eta * max(0, u[n] - u[0] - level))


SCREENED = 2.0**-42  # What the package states its bounds weaker by is four times this.


def envelope_work(n):
    """What the blocks of n inputs usually take; what they take beyond is spent when it shows."""
    return min(2.0 * n**2, 15.0 * n)


class Prepaid:
    """Work of which some is paid for."""

    def __init__(self, left, spend):
        self.left, self.further = left, spend

    def __call__(self, work):
        """Take from what is paid for, and spend the rest."""
        self.left -= work
        if self.left < 0:
            self.further(-self.left)
            self.left = 0


def spending(blocks, spend):
    """The blocks, each of which costs the work of its logarithms."""
    for block in blocks:
        spend(4)
        yield block


# --- Columns ----------------------------------------------------------------------------------------------------------


def staircases(k, e):
    """(t, 1_A) for all sets A of k inputs but the full one: the column is t + 1_A."""
    return ((1 / (e - 1), inside) for inside in product((0, 1), repeat=k) if not all(inside))


def linked(d, allowed, flat):
    """The extreme columns under limits (k, k) on c_x/c_y: from an entry of 1 on, entries at a limit to one that is
    there, as far as limits reach; `flat`: equal entries are linked, too. How many there are is not known before."""
    k, met = len(allowed), set()
    steps = [[{allowed[y][x], allowed[x][y] and 1 / allowed[x][y], flat or None} - {None} for y in range(k)]
             for x in range(k)]  # fmt: skip
    for start in range(k):
        waiting = [tuple(Fraction(x == start) for x in range(k))]
        while waiting:
            c = waiting.pop()
            inside, outside = ([x for x in range(k) if (c[x] > 0) is side] for side in (True, False))
            open_to = {y for x in inside for y in outside if allowed[x][y]}
            # It was grown before in another order; or it needs an entry of an input before `start`: its support is
            # linked, so that each column is grown from the first input of its support.
            if c in met or min(open_to, default=k) < start:
                continue
            met.add(c)
            d.spend(k**2 / 4)
            if not open_to:  # Else a limit asks for a further entry: it is no column yet, but grows on.
                yield c
            for y in (y for y in outside if y > start):
                for value in {c[x] * r for x in inside for r in steps[x][y]}:
                    kept = (value <= (allowed[y][z] or math.inf) * c[z] and c[z] <= (allowed[z][y] or math.inf) * value
                            for z in inside)  # fmt: skip
                    if all(kept):
                        waiting.append((*c[:y], value, *c[y + 1 :]))


def levels(k, e, flat):
    """The extreme rays of all columns >= 0, cut by c_x = e c_y and, if `flat`, by c_x = c_y: powers of e on a support,
    without gaps; of more than one input not all equal, unless `flat`."""
    for size in range(1, k + 1):
        for shape in product(range(size), repeat=size):
            if len(set(shape)) == max(shape) + 1 and (max(shape) > 0 or size == 1 or flat):
                for support in combinations(range(k), size):
                    at = dict(zip(support, shape, strict=True))
                    yield tuple(e ** at[x] if x in at else Fraction(0) for x in range(k))


def prices_of(matrix, size, what):
    """[(x, y, price)] of a matrix of prices; not of the diagonal, where no pair is, nor of 0, which pays nothing."""
    found = shaped(matrix, size, size, what)
    prove(min(map(min, found)) >= 0, "a price is negative")
    return [(x, y, one) for x, row in enumerate(found) for y, one in enumerate(row) if one and x != y]


def charged(c, prices, e=1):
    """sum of prices (c_x - e c_y)_+, which is 0 where c_x <= e c_y."""
    return sum(one * (c[x] - e * c[y]) for x, y, one in prices if c[x] > e * c[y])


def total(prices):
    """The sum of all prices."""
    return sum(one for _, _, one in prices)


def columns_paid(d, bits):
    """Theorem 3."""
    proof, k, kind, e, more = d.proof, d.k, d.proof["kind"], 1, []
    rows, prices = shaped([proof["rows"]], 1, k, "rows")[0], prices_of(proof["pairs"], k, "pairs")
    shares = law(proof["weights"], len(d.parts) if d.kind == "WorstOf" else 1, math.inf)
    if kind == "PatternDual":
        ratio, eta = plain(d, bits)
        every, charge = (tuple(t + one for one in a) for t, a in staircases(k, ratio)), total(prices) * eta
    elif kind == "PolicyDual":
        every, charge = linked(d, ratios(d, bits), bool(prices) and Fraction(1)), total(prices) * d.eta()
    else:
        each = [cap for cap in d.caps if cap.notion == "hockey_stick"]
        cover(len(each) == 1, "columns of levels for other than one ApproximateLDP are not supported")
        e, more = exp_bound(each[0].epsilon, bits, True), prices_of(proof.get("spreads", [[0] * k] * k), k, "spreads")
        every, charge = levels(k, e, bool(more)), total(prices) * each[0].cap + total(more) * d.eta()
    each = ((d.worths(c, bits), dot(rows, c) + charged(c, prices, e) + charged(c, more)) for c in every)
    return factor(((dot(shares, worths), paid) for worths, paid in each), bits) * (sum(rows) + charge)


def symmetric(d, bits):
    """Theorem 8: a eta + max(0, max_w (u_w - a eta_w)), and what the criterion makes of a trace."""
    slope, (e, eta), one = rational(d.proof["slope"]), plain(d, bits), d.utility.get("criterion", {})
    prior = d.prior if d.error else [p for p in d.parts[0][2] if p]
    prove(slope >= 0, "the slope is negative")
    prove(len(set(prior)) == 1 < len(prior), "the prior is not even")
    kind, sizes = one.get("kind"), [w for w, _ in functions(d)] if one.get("weights") else [Fraction(1)] * d.k
    invariant = kind in ("AOptimal", "MVOptimal", "DOptimal", None) and one.get("contrasts") is None
    prove(invariant and sizes == sizes[:1] * d.k, "the criterion does not treat all inputs alike")
    n, most = len(prior), exactly(0, bits)
    for w in range(1, n):
        s = n + (e - 1) * w
        spread = (e - 1) * w * (n - w) / ((n - 1) * s)
        each = () if d.error else ((e * n / s, w), (n / s, n - w))  # The ratios of the entries to their mean.
        worth = exactly(n * w * (n - w) * ((e - 1) / s) ** 2 if d.error else 0, bits)
        rest = sum((Fraction(count, n) * kl(r, Fraction(1), bits) for r, count in each), worth) + -slope * spread
        most = Interval(max(most.lo, rest.lo), max(most.hi, rest.hi), bits)
    most += slope * eta
    if not d.error:
        return most
    prove(most.lo > 0, "the slope does not bound the information")
    if kind == "DOptimal":
        each = Interval(log(most.lo / (n - 1), bits).lo, log(most.hi / (n - 1), bits).hi, bits)
        return (1 - n) * each + -1 * log(Fraction(n), bits)
    scale = Fraction((n - 1) ** 2, n) if kind == "MVOptimal" else (n - 1) ** 2 * sizes[0]
    return Interval(scale / most.hi, scale / most.lo, bits)


def orbits(d, bits):
    """Theorem 9, with masses rounded up to `values`."""
    cover(d.utility["kind"] == "MutualInformation", "orbits of a part of a utility are not supported")
    values, (e, eta), c = rational(d.proof["values"]), plain(d, bits), len(d.proof["values"])
    rows, given = shaped([d.proof["rows"]], 1, c, "rows")[0], shaped(d.proof["pairs"], c, c, "pairs")
    masses = [p for p in rational(d.utility["prior"]) if p]
    prove(values[0] > 0 and all(a < b for a, b in pairwise(values)), "the masses of groups must be positive and rise")
    prove(max(masses) <= values[-1], "an input has more mass than those of any group")
    t, which = 1 / (e - 1), [bisect_left(values, p) for p in masses]
    prove(all(sizes := [which.count(i) for i in range(c)]), "a group is empty")
    d.spend(math.prod(n + 1 for n in sizes) * (6 + c**2 / 4) * bits / 128)
    prove(min(map(min, given)) >= 0, "a price is negative")
    ways = ((x, y, sizes[x] * (sizes[y] - (x == y))) for x, y in product(range(c), repeat=2))
    prices = [(x, y, n, given[x][y]) for x, y, n in ways if n and given[x][y]]  # One input makes no pair.
    whole, each = dot(sizes, values), []
    for j in product(*(range(n + 1) for n in sizes)):
        a, paid = dot(j, values) / whole, sum(Fraction(j[x] * (sizes[y] - j[y]), n) * one for x, y, n, one in prices)
        paid += sum(one * (t + Fraction(held, n)) for one, held, n in zip(rows, j, sizes, strict=True))
        if j != (*sizes,):  # The full set makes a constant column, as the empty one does.
            each.append((a * kl(t + 1, t + a, bits) + (1 - a) * kl(t, t + a, bits), paid))
    return factor(each, bits) * ((sum(rows) + eta * sum(one for *_, one in prices)) * whole / sum(masses))


def capacity(d, bits):
    """The bound for every prior."""
    e = farthest(d, bits)
    prove(e is not None, "some two inputs may differ without limit")
    x = log(e, bits) * (e / (e - 1))
    return Interval(kl(Fraction(1), x.lo, bits).lo, kl(Fraction(1), x.hi, bits).hi, bits)


def information(d, bits):
    """Theorem 3 with a divisible rest."""
    (_, _, p, _), whole, (e, eta), each = d.parts[0], d.proof["whole"], plain(d, bits), []
    whole = [] if isinstance(whole, dict) else whole  # An array without entries is stated as its shape.
    need(all(0 <= x < d.k for x in whole) and len(set(whole)) == len(whole), "whole: expected inputs, each once")
    n, t = len(whole), 1 / (e - 1)
    rows = shaped([d.proof["rows"]], 1, n + 1, "rows")[0]
    prices, own = prices_of(d.proof["pairs"], n + 1, "pairs"), [p[x] for x in whole]
    rest = 1 - sum(own)
    cover(d.proof["pairs"][n][n] == 0 or rest == 0, "prices within the rest are not supported")
    for inside in product((0, 1), repeat=n):
        mass = at = dot(own, inside)
        paid = [t * sum(rows) + dot(rows, c) + charged(c, prices) for c in ((*inside, 0), (*inside, 1))]
        # Without a rest, `at` = P(I), where the tangent is h(P(I)) itself, and the last row is that of an answer of
        # mass 0. Else the tangent at a point where h rises as the price does; which point is not trusted.
        if rest:
            tf, slope = float(t), float((paid[1] - paid[0]) / rest)
            best = math.exp(min(700, (tf + 1) * math.log(tf + 1) - tf * math.log(tf) - 1 - slope)) - tf - float(mass)
            at = mass + rest * Fraction(min(1.0, max(0.0, best / float(rest))))
        low, high = kl(t, t + at, bits), kl(t + 1, t + at, bits)
        each += (((1 - a) * low + a * high, price) for a, price in zip((mass, mass + rest), paid, strict=True))
    return factor(each, bits) * (sum(rows) + eta * total(prices))


def unpaid(d, caps, gains, ratio, bits):
    """Theorem 4, for gains (labels, inputs)."""
    rows = shaped([d.proof["rows"]], 1, k := len(gains[0]), "rows")[0]
    left, bound = [[a - b for a, b in zip(one, rows, strict=True)] for one in gains], sum(rows)
    for one in d.proof["multipliers"]:
        prove(0 <= one["term"] < len(caps), "a multiplier is of no constraint")
        cap, chosen = caps[one["term"]], one["pairs"]
        # Multipliers may be left out, as if they were 0. LDP between all inputs has none, but `ratio` below; an array
        # without entries is stated as its shape.
        if cap.pure or isinstance(chosen, dict):
            continue
        pairs, z = cap.pairs(k), shaped(one["values"], len(gains), len(chosen), "the values of a multiplier")
        prove(all(0 <= x < len(pairs) for x in chosen), "a multiplier is of no pair")
        prove(len(set(chosen)) == len(chosen) and min(map(min, z)) >= 0, "a multiplier is negative")
        bound += cap.cap * sum(map(max, zip(*z, strict=True)))
        for number, (x, y, w) in enumerate(pairs[at] for at in chosen):
            e = exp_bound(cap.epsilon * w, bits, True)
            for row, prices in zip(left, z, strict=True):
                row[x] -= prices[number]
                row[y] += prices[number] * e
    free = sum(max(0, *one) for one in zip(*left, strict=True))
    free = min(free, max(0, *map(sum, left)) + (k - 1) * variation(d, bits) * free)
    if ratio:  # Else the two bounds above hold alone.
        t, sums = 1 / (ratio - 1), [[0, *accumulate(sorted(r, reverse=True))] for r in left]
        free = min(free, k * max((t * s[-1] + one) / (t * k + j) for s in sums for j, one in enumerate(s)))
    return exactly(bound + free, bits)


def losses(d, bits):
    """Theorem 4 for a mixture of the priors, whose loss is at most the worst."""
    shares = law(d.proof["weights"], len(d.priors), math.inf)
    mean = [dot(shares, each) for each in zip(*d.priors, strict=True)]
    gains = [[-a * b for a, b in zip(mean, loss, strict=True)] for loss in zip(*d.loss, strict=True)]
    return unpaid(d, d.caps, gains, farthest(d, bits), bits)


def intervals(d, bits):
    """Theorem 4 for chords."""
    (_, g, p0, p1), caps, classes, e = d.parts[0], d.caps, d.proof.get("classes"), farthest(d, bits)
    # Inputs of equal ratios are merged; only caps that treat all alike are used, and without the others more channels
    # are allowed.
    if classes is not None:
        caps, number = [cap for cap in caps if cap.edges is None], max(classes) + 1
        prove(len(classes) == d.k and set(classes) == set(range(number)), "classes are numbers from 0")
        sums = [[dot(p, [c == one for c in classes]) for one in range(number)] for p in (p0, p1)]
        alike = (a * sums[1][c] == b * sums[0][c] for a, b, c in zip(p0, p1, classes, strict=True))
        prove(all(alike), "inputs of one class differ in their ratios")
        p0, p1 = sums
    (low, *_), *_, (high, *_) = points if len(points := by_ratio(p0, p1)) > 1 else 2 * points
    if e is not None:
        low, high = max(low, 1 / (1 + e)), min(high, e / (1 + e))
    cuts = [low, *rational(d.proof["knots"])[1:-1], high]
    prove(all(a < b for a, b in pairwise(cuts)), "the knots do not increase between the ends")
    rays = [((s, 1 - s), g(s, 1 - s, bits).hi) for s in cuts]
    planes = [plane(*both, bits) for both in pairwise(rays)]
    gains = [[x * a + y * b for a, b in zip(p0, p1, strict=True)] for x, y in planes]
    return unpaid(d, caps, gains, e, bits)


# --- Estimation -------------------------------------------------------------------------------------------------------


def eliminated(matrix, right):
    """(det, matrix^-1 right) by exact elimination of a symmetric positive definite matrix."""
    a, det = [[*row, *more] for row, more in zip(matrix, right, strict=True)], Fraction(1)
    for i, own in enumerate(a):
        cover(own[i] > matrix[i][i] / 2**96, "a channel that does not tell all proportions apart is not supported")
        det *= own[i]
        own[:] = [x / own[i] for x in own]
        for row in (row for row in a if row is not own and row[i]):  # Where it is 0, nothing is to be taken away.
            row[:] = [x - row[i] * y for x, y in zip(row, own, strict=True)]
    return det, [row[len(a) :] for row in a]


def shares(size, weight):
    """[(weight, function of the answer)] of a question: its shares if each has a weight of its own, else i ones and -i,
    over sqrt(i (i + 1)), for i = 1, 2, .., whose variances have the same sum [Helmert]."""
    if isinstance(weight, list):
        need(len(weight) == size, "there must be one weight for each share")
        return [(one, [int(v == x) for x in range(size)]) for v, one in enumerate(weight)]
    return [(Fraction(weight) / (i * (i + 1)), [1] * i + [-i] + [0] * (size - 1 - i)) for i in range(1, size)]


def functions(d):
    """[(weight, function)]: the functions (k,) that are estimated, each times the root of its weight."""
    one, k = d.utility["criterion"], d.k
    units, weights = [[Fraction(x == y) for y in range(k)] for x in range(k)], one.get("weights")
    if one["kind"] == "COptimal":
        return [(Fraction(1), shaped([one["contrast"]], 1, k, "the contrast")[0])]
    if one["kind"] == "Marginals":
        shape, given = one["shape"], weights or [1] * len(one["shape"])
        need(min(shape) > 1 and math.prod(shape) == k and len(given) == len(shape), "the shape has not k cells")
        cells = list(product(*map(range, shape)))
        each = [(w, f, j) for j, (size, own) in enumerate(zip(shape, given, strict=True)) for w, f in shares(size, own)]
        weights, units = [w for w, _, _ in each], [[Fraction(f[cell[j]]) for cell in cells] for _, f, j in each]
    elif weights and isinstance(weights[0], list):
        full = shaped(weights, k, k, "the weights")
        weights = [full[x].pop(x) for x in range(k)]
        cover(not any(map(any, full)), "full matrices of weights: not supported")
    sizes = [Fraction(w) for w in weights or [1] * k]
    need(len(sizes) == len(units) and min(sizes) >= 0 < max(sizes), "weights must be >= 0, one for each function")
    return [(w, unit) for w, unit in zip(sizes, units, strict=True) if w]  # Weight 0: its variance does not count.


def criterion(d, bits):
    """The criterion of the channel, by the information M of one report about all proportions but the last. It falls
    where M grows: it is rounded to multiples of a unit, and so lies between two matrices, less and plus k units on the
    diagonal, but for the share by which 1/mass is rounded up. A report of mass 0 never comes; whatever it would tell
    could only make M larger and the error smaller, so that it is left out."""
    n, kind = d.k - 1, d.utility["criterion"]["kind"]
    seen = ((*whole([x - c[-1] for x in c[:-1]]), dot(d.prior, c)) for c in zip(*d.rows, strict=True))
    seen = [one for one in seen if one[2]]
    weights, unit = whole([shortened(1 / (mass * below**2), 2 * bits, True) for _, below, mass in seen])
    each = [(s, [w * one for one in s]) for (s, _, _), w in zip(seen, weights, strict=True)]
    matrix = [[Fraction(sum(s[i] * t[j] for s, t in each), unit) if j <= i else 0 for j in range(n)] for i in range(n)]
    unit = shortened(Fraction(max(matrix[i][i] for i in range(n)) or 1), 1, True) / 2 ** (2 * bits)
    matrix = [[unit * round(matrix[max(i, j)][min(i, j)] / unit) for j in range(n)] for i in range(n)]
    asked, ends = functions(d), []
    targets = [[f[x] - f[-1] for x in range(n)] for _, f in asked]
    for shift, share in ((d.k * unit, 1), (-d.k * unit, 1 - Fraction(2) ** (2 - 2 * bits))):
        one = [[(x + (i == j) * shift) * share for j, x in enumerate(row)] for i, row in enumerate(matrix)]
        det, solved = eliminated(one, [*zip(*targets, strict=True)])
        pairs = zip(asked, targets, zip(*solved, strict=True), strict=True)
        worst = (max if kind == "MVOptimal" else sum)(w * dot(t, x) for (w, _), t, x in pairs)
        ends.append(-1 * log(det, bits) if kind == "DOptimal" else exactly(worst, bits))
    return Interval(ends[0].lo, ends[1].hi, bits)


def whole(numbers):
    """(whole numbers, their common denominator) of rationals."""
    below = math.lcm(*(x.denominator for x in numbers))
    return [int(x * below) for x in numbers], below


def gram(rows):
    """The products of all two columns."""
    return [[dot(one, other) for other in zip(*rows, strict=True)] for one in zip(*rows, strict=True)]


def centred(kernel, p):
    """The kernel less p times the sums of its rows, in whole numbers, and their common denominator."""
    flat, below = whole([one - sum(row) * a for row in kernel for one, a in zip(row, p, strict=True)])
    return [flat[at : at + len(p)] for at in range(0, len(flat), len(p))], below


def dearest(p, kernel, rows, prices, every, bits):
    """The most that a column earns above its price, per unit of mass: of (base, rise) in `every`, in whole numbers
    where they can be. One without mass, of answers that never occur, may be a part of any column. That earns without
    end, unless the kernel takes the part to 0, which then earns nothing, and must not pay less."""
    k, (own, below) = len(p), centred(kernel, p)
    paid, unit = whole([*p, *rows, *(one for _, _, one in prices)])
    priced, most = [(x, y, one) for (x, y, _), one in zip(prices, paid[2 * k :], strict=True)], []
    for base, rise in every:
        mass, told = base + Fraction(dot(paid[:k], rise)) / unit, Fraction(sum(dot(row, rise) ** 2 for row in own))
        price = base * sum(rows) + Fraction(dot(paid[k : 2 * k], rise) + charged(rise, priced)) / unit
        if mass:
            most.append(shortened((told / below**2 / mass - price) / mass, 2 * bits, True))
        else:
            prove(told == 0 <= price, "a report on answers of no mass may earn without end")
    return max(most)


def by_sizes(p, kernel, rows, prices, e, _):
    """The same for all sets of n inputs, n < k, by the largest entries of K^T K, the least row and the range of p."""
    prove(not prices, "sizes of sets say nothing of prices of pairs")
    t, (own, below), k = 1 / (e - 1), centred(kernel, p), len(p)
    square = gram(own)
    alone, both = max(square[x][x] for x in range(k)), max(square[x][y] for x in range(k) for y in range(x))
    each = ((Fraction(n * alone + n * (n - 1) * both, below**2), t * sum(rows) + n * min(rows), n) for n in range(k))
    ends = ((a, b, [t + n * min(p), t + n * max(p)]) for a, b, n in each)
    return max((earned / one - paid) / other for earned, paid, masses in ends for one in masses for other in masses)


def by_moments(p, kernel, rows, prices, e, _):
    """The same by theorem 6: the score v.K/p has a second moment of at most that of the largest row sum of K K^T/p."""
    prove(not prices and min(p) > 0, "second moments say nothing of prices of pairs, nor of inputs without mass")
    own, below = centred(kernel, p)
    over = [[one / q for one, q in zip(row, p, strict=True)] for row in own]
    second = max(sum(abs(dot(row, other)) for other in own) for row in over) / below**2
    even = p == p[::-1] and all(row == [-one for one in row[::-1]] for row in own)
    return second * information_limit(e, even, 0) - min(one / q for one, q in zip(rows, p, strict=True))


def by_eigenvalues(p, kernel, rows, prices, e, numbers):
    """The same by theorem 7."""
    k, t, (own, below), spans = len(p), 1 / (e - 1), centred(kernel, p), rational(numbers["spans"])
    squares, least = shaped(numbers["squares"], len(spans), k, "squares"), Fraction(0)
    together = shaped(numbers.get("products") or [[0] * k] * k, k, k, "products")
    prove(min([*spans, *map(min, together)]) >= 0, "spans or products are negative")
    cost, sizes, mass, paid = [[0] * k for _ in p], [*(t + q for q in p), t], [*p, t], [*rows, t * sum(rows)]
    for x, y, one in prices:
        cost[x][y] = one
    fixed = [[Fraction(2 * one, below**2) + together[x][y] + together[y][x] for y, one in enumerate(row)]
             for x, row in enumerate(gram(own))]  # fmt: skip
    lows = [t * shortened(Fraction(float(e) ** (at / len(spans))), 53, False) for at in range(len(spans))]
    for d, span, low, high in zip(squares, spans, lows, [*lows[1:], t * e], strict=True):
        edge = [one - low * sum(row) for one, row in zip(d, cost, strict=True)]
        less = [[fixed[x][y] + low * (cost[x][y] + cost[y][x]) - 2 * d[x] * (x == y) for y in range(k)] + [edge[x]]
                for x in range(k)] + [[*edge, 0]]  # fmt: skip
        above, under = [*p, t - low], [*(-one for one in p), high - t]
        outer = ((mass, paid, 1), (paid, mass, 1), (above, under, -span), (under, above, -span))
        form = [[(sum(a[x] * b[y] * c for a, b, c in outer) - less[x][y]) / (2 * sizes[x] * sizes[y])
                 for y in range(k + 1)] for x in range(k + 1)]  # fmt: skip
        least = min(least, least_eigenvalue(form))
    return -least * (k + 1)


def positive(a):
    """Whether a symmetric matrix of whole numbers is positive definite: its leading minors are, found one by one."""
    before = 1
    for i, own in enumerate(a):
        if own[i] <= 0:
            return False
        for j in range(i + 1, len(a)):
            a[j][i + 1 : j + 1] = [(a[j][x] * own[i] - a[j][i] * a[x][i]) // before for x in range(i + 1, j + 1)]
        before = own[i]
    return True


def least_eigenvalue(form):
    """A number below all eigenvalues of a symmetric matrix, by little of them and of its trace."""
    n = len(form)
    unit = (Fraction(1, 4) + Fraction(2, n)) * sum(abs(row[x]) for x, row in enumerate(form)) / 2**53 or Fraction(1)
    whole_ones = [[round(one / unit) for one in row] for row in form]  # Off by 1/2 each, by n/2 together.

    def shifted(more):
        """Whether the matrix is positive definite with this more on its diagonal."""
        return positive([[*row[:x], row[x] + more, *row[x + 1 :]] for x, row in enumerate(whole_ones)])

    low = high = 16 * n
    while not shifted(high):
        low, high = high, 2 * high
    while high - low > 1 + high // 2**40:
        low, high = (low, (low + high) // 2) if shifted((low + high) // 2) else ((low + high) // 2, high)
    return -unit * (high + n)


def relaxation(k, told):
    """What bounds the gain of all patterns where they are too many to price each; None where each is priced."""
    if k > 24 and fits(told, RELAXED):
        return by_eigenvalues
    plain_ones = {"Sizes": by_sizes, "Scarf": by_moments} if k > MOST_LISTED and told and set(told) == {"kind"} else {}
    return plain_ones.get(str((told or {}).get("kind")))


def dearest_pattern(p, kernel, rows, prices, e, told, bits):
    """The same for all staircases, or a bound of it."""
    searched = relaxation(len(p), told)
    posed = (p, kernel, rows, prices)
    return searched(*posed, e, told) if searched else dearest(*posed, staircases(len(p), e), bits)


def equivalence(d, bits):
    """Theorem 5. A column is base + rise; entries are in whole numbers where they can be."""
    k, kind, p, proof = d.k, d.utility["criterion"]["kind"], d.prior, d.proof
    of_shares = any(isinstance(w, list) for w in d.utility["criterion"].get("weights") or ())
    cover(kind != "Marginals" or not of_shares, "marginals with a weight for each share: not supported")
    prove(law(proof["prior"], k) == p, "the bound is for another prior")
    rows, prices = shaped([proof["rows"]], 1, k, "rows")[0], prices_of(proof["pairs"], k, "pairs")
    asked = functions(d) if kind in ("AOptimal", "COptimal", "Marginals") else []
    kernel = shaped(proof["kernel"], {"DOptimal": k - 1, "MVOptimal": k}.get(kind, len(asked)), k, "the kernel")
    if kind == "DOptimal":
        kernel = [[*row[:-1], -sum(row[:-1])] for row in kernel]
    if any(cap.edges is not None for cap in d.caps):
        cover(not proof.get("relaxed"), "relaxations along graphs are not supported")
        every = linked(d, ratios(d, bits), bool(prices) and Fraction(1))
        most = dearest(p, kernel, rows, prices, ((min(c), [one - min(c) for one in c]) for c in every), bits)
    else:
        most = dearest_pattern(p, kernel, rows, prices, plain(d, bits)[0], proof.get("relaxed"), bits)
    most += sum(rows) + variation(d, bits) * total(prices)
    prove(most > 0, "the multipliers do not bound what the kernel can earn")
    if kind == "MVOptimal":
        return exactly(sum((kernel[x][x] - p[x] * sum(kernel[x])) ** 2 for x in range(k)) / most, bits)
    if kind == "DOptimal":
        det = eliminated(gram([row[:-1] for row in kernel]), [[]] * (k - 1))[0]
        return log(det, bits) + (1 - k) * log(most / (k - 1), bits)
    traced = exactly(0, bits)
    for row, (w, f) in zip(kernel, asked, strict=True):
        traced = traced + exactly(w, bits).root() * (dot(row, f) - sum(row) * dot(p, f))
    return Interval(max(0, traced.lo, -traced.hi) ** 2 / most, max(-traced.lo, traced.hi) ** 2 / most, bits)


# --- Questionnaires ---------------------------------------------------------------------------------------------------


def root_trace(p, asked, bits):
    """A number surely at most tr S^(1/2), and nearly equal: Z is near the polar factor of A, found in floats."""
    r = range(len(asked))
    a = [[exactly(q * w, bits).root() * (f[x] - dot(p, f)) for w, f in asked] for x, q in enumerate(p)]
    z = [[float(one.lo + one.hi) / 2 for one in row] for row in a]
    size = math.sqrt(sum(one * one for row in z for one in row)) or 1.0
    z = [[one / size for one in row] for row in z]
    for _ in range(60):
        square = gram(z)
        z = [[1.5 * one - 0.5 * dot(row, other) for one, other in zip(row, square, strict=True)] for row in z]
    squared = gram(square := gram(exact := rational(z)))
    # An eigenvalue v >= 1 of Z^T Z has v - 1 <= v^2 (v - 1) <= off; where A has none, v is nearly 0, and v^2 nothing.
    off = sum((dot(squared[i], square[j]) - squared[i][j]) ** 2 for i in r for j in r)
    norm = (1 + exactly(off, bits).root()).root()
    inner = sum(map(mul, chain(*a), chain(*exact)), exactly(0, bits))
    return Interval(max(Fraction(0), inner.lo / norm.hi), max(Fraction(0), inner.hi / norm.lo), bits)


def information_limit(e, even, questions):
    """rho^2. even : whether all scores are as often x as -x, as of even yes/no questions; how many, or 0."""
    found = [(e - 1) ** 2 / (4 * e)]
    if even:
        found.append((e - 1) / 8 if e > 3 else ((e - 1) / (e + 1)) ** 2)
    if 0 < questions <= 7:
        found.append(max(c * ((e - 1) / (2**c + e - 1)) ** 2 for c in range(1, questions + 1)))
    return min(found)


def shared(d, bits):
    """Theorem 6 for one respondent."""
    prove(d.utility["criterion"]["kind"] not in ("DOptimal", "MVOptimal"), "the criterion is no sum of variances")
    shape = d.utility["criterion"].get("shape", [d.k])
    even = len(shape) if set(shape) == {2} and len(set(d.prior)) == 1 else 0
    root, limit = root_trace(d.prior, functions(d), bits), information_limit(plain(d, bits)[0], even, even)
    return Interval(root.lo**2 / limit, root.hi**2 / limit, bits)


def together(file, epsilon, bits):
    """What the kernel proves of all questions together: Theorem 5 for the largest of all variances."""
    laws, targets, taus = map(law, file["pilots"]), rational(file["targets"]), rational(file["variances"])
    cells, p = [*product(*(range(len(pilot)) for pilot in file["pilots"]))], tuple(map(math.prod, product(*laws)))
    kernel = shaped(file["kernel"], sum(map(len, targets)), len(p), "the kernel")
    asked = ((j, row, v) for j, own in enumerate(zip(targets, taus, strict=True)) for row, v in zip(*own, strict=True))
    told, rows = Fraction(0), shaped([file["rows"] or []], 1, len(p), "rows")[0]
    for own, (j, row, v) in zip(kernel, asked, strict=True):
        f = [row[cell[j]] for cell in cells]
        told += (dot(own, f) - sum(own) * dot(p, f)) ** 2 / v
    e = exp_bound(epsilon, bits, True)
    most = dearest_pattern(p, kernel, rows, [], e, file["relaxed"], bits) + sum(rows)
    return told / most if most > 0 else Fraction(0)


def respondents(file, bits, budget):
    """Theorem 6 for a survey: the least number of respondents, proved."""
    parts = [file[name] for name in ("pilots", "targets", "variances", "weights")]
    need(len({len(part) for part in parts}) == 1, "pilots, targets, variances and weights differ in number")
    budget.spend(sum(len(p) * len(rows) * (len(p) + len(rows)) for p, rows in zip(*parts[:2], strict=True)))
    epsilon, (root, paid, low, even) = rational(file["epsilon"]), (exactly(0, bits), Fraction(0), Fraction(0), 0)
    cover(0 <= epsilon <= 1000 or epsilon == math.inf, "such an epsilon is not supported")
    for pilot, rows, tau, weights in zip(*parts, strict=True):
        p, tau, weights = law(pilot), rational(tau), rational(weights)
        f = shaped(rows, len(rows), len(p), "targets")
        need(len(f) == len(tau) == len(weights) and min(tau) > 0 <= min(weights), "one variance and weight a target")
        root, paid = root + root_trace(p, [*zip(weights, f, strict=True)], bits), paid + dot(weights, tau)
        spreads = (dot(p, [one**2 for one in row]) - dot(p, row) ** 2 for row in f)
        low = max(low, *(spread / v for spread, v in zip(spreads, tau, strict=True)))
        even += len(p) == 2 and p[0] == p[1]
    even = even if even == len(parts[0]) else 0
    # Without a promise, or where reports tell nothing, or with all weights 0, only the variance of the sample counts.
    if 0 < epsilon < math.inf and paid:
        low = max(low, root.lo**2 / paid / information_limit(exp_bound(epsilon, bits, True), even, even))
    cells, kernel = math.prod(map(len, file["pilots"])), file["kernel"]
    judged = not kernel or cells <= MOST_LISTED or relaxation(cells, file["relaxed"])
    if kernel and judged and 0 < epsilon < math.inf:
        budget.spend(2**cells * cells * len(kernel) if cells <= MOST_LISTED else cells**3)
        with suppress(ArithmeticError):  # Then the kernel proves nothing.
            low = max(low, together(file, epsilon, bits))
    least, said = math.ceil(low), file["least"]
    cover(said <= least or judged, "a kernel for more than 12 cells with a relaxation of this kind is not supported")
    cover(said <= least or even <= 7, "more than seven yes/no questions at the even pilot are not supported")
    failures = [] if said <= least else [f"the number proved is {least:,}, not {said:,}"]
    return Result(failures, outward(exactly(said, bits)), outward(exactly(low, bits)), not failures)
