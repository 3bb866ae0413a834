"""The theorems: from the numbers of a certificate to an enclosure of a bound for every channel.

Everywhere a rational slightly above e^epsilon replaces it, and E is this one: more channels are allowed, and a bound
for them holds for all.

Theorem 1 (Dobrushin). D <= eta D_f(P0||P1), and ratios of at most E imply eta <= (E-1)/(E+1). Proof. g is an average of
(a - c b)_+ over c >= 1 and (c b - a)_+ over c <= 1. For c >= 1, P0 - c P1 has a positive part of mass h and a negative
part of mass >= h. Q maps the parts, divided by their masses, to distributions at most eta apart. Cancel h of one with h
of the other: at most h eta stays positive. The case c <= 1 is the same. For rows p, q and S = {p > q}, let d = p(S) -
q(S). It is at most (E-1) q(S), and at most (E-1) (1 - p(S)) = (E-1) (1 - q(S) - d). Adding up, (E+1) d <= E-1. QED
Mutual information is the average of the divergences KL(row x || distribution of the report), and contracts likewise. An
excess delta beyond E implies eta <= delta + (1 - delta)(E-1)/(E+1) [Kairouz, Oh, Viswanath]. If f is operator convex, g
is a mixture of (a-b)^2/(s a + (1-s) b), 0 <= s <= 1 [Choi, Ruskai, Seneta], and information is one of them, too. They
contract at least as much as chi-squared, whose coefficient two inputs attain [Ordentlich, Polyanskiy]: the largest s
(1-s) sum (p-q)^2/(s p + (1-s) q) of two rows. That is convex and homogeneous in the columns (p_y, q_y). So splitting
them into (E,1), (1,E) and (1,1) makes it no smaller: it is at most eta (E+1)/(E-1) times that of randomized response,
((E-1)/(E+1))^2. Then D <= eta (E-1)/(E+1) D_f(P0||P1).

Theorem 2 (envelope). Merge inputs of equal P0/P1 and sort by it. Let t = 1/(E-1), and w(B) = g(t + P0(B), t + P1(B))
for a block B of neighbors. V(m) is the largest sum of w over partitions into m blocks, and v(m) = 1/(1 + t m). Maximize
the sum of c(m) v(m) V(m) over c >= 0 with sum c(m) <= 1 and sum c(m) v(m) <= eta. The maximum is the largest D of
channels that fulfil 1. Proof, shortened. (a) A column with ratios up to E is a sum of staircases b (1 + (E-1) 1_A),
with upper sets A of one order of its entries. Each |q_x - q_x'| adds up, and g does not fall, so staircases suffice.
Lay them on a line, each of length b, by their ratio M0/M1. Rows sum to 1, so all inputs are in sets A of one total
length N. Any input is in sets without any other one for a length of at most L = eta/(E-1). (b) Tangents of g bound g
from below. An input's gain from them rises along the line up to its ratio and falls after it. If L < N, a length N - L
common to all inputs can go while the rest of each moves towards its peak. The common part, constant over inputs, is
uninformative (erasure), and the rest has total variation at most (E-1) L by itself. (c) Now each input fills a window
of length L where it gains most. Gains have increasing differences in both ratios: windows move right with the input's
ratio, and each place of the line holds a block of neighbors. (d) "Each input is in blocks of length L in all" is solved
by mixtures of partitions (consecutive ones). Such m blocks, rows scaled to 1, are randomized response of a block
number: total variation v(m), divergence v(m) V(m). The weights of the mixture are the c(m). QED

"EnvelopeDual": let U = u_n - u_0, A >= 0, and w(i..j-1) <= kappa (t A + u_j - u_i) for all cuts i < j. Then no D is
above kappa (A + eta (U-A)_+). Proof. Adding up, V(m) <= kappa (U + m t A). So v(m) V(m) is at most kappa (v(m) U + (1 -
v(m)) A) = kappa (A + v(m) (U-A)). Multiply by c(m) and add. "points": if sum ((1-s) A0 - s A1)_+ >= sum ((1-s) P0 - s
P1)_+ for all s, a channel K turns the laws A0, A1 into P0, P1 [Blackwell]; K Q fulfils 1 and gives the same M0, M1. QED

Theorem 3 (columns). Let the utility be a sum over reports of a convex, homogeneous function of the column c, or the
smallest of several such. Then it is at most their mixture by any weights. Cut the cone of columns by all planes where a
capped sum has a kink. On each piece the column is a sum of extreme rays, and neither the value falls nor a cap's sum
grows. Let every extreme c have a value of at most kappa (rows.c + pairs . the capped sums of c). Then no channel has a
utility above kappa (sum rows + pairs . caps), as columns add up to 1. The rays: "PatternDual", ratios E: t + 1_A.
"PolicyDual": entries linked to each other by ratios at the limits of a graph, through all of the support; "pairs" link
equal entries, too. "LevelDual": powers of E on a support, without gaps; "spreads" are for total variation, whose planes
c_x = c_y add the columns that are constant on two inputs or more, and on all of them. "InformationDual": some inputs
indivisible, and fractions rho of the rest, of mass R, as if it were divisible. With a = P(I) + R rho the value h(a) = a
kl(t+1, t+a) + (1-a) kl(t, t+a) is concave, below its tangent anywhere, and the price linear. "InformationCapacity":
rows in proportion to the prior, for the largest h(a)/(t+a): x - 1 - log x, x = eps/(1-e^-eps).

Theorem 4 (weak duality). Let linear functions G_i of columns be above the value of those whose ratio M0/M1 is in
interval i (chords of g), or minus the loss of decision i. Take rows, and z_i >= 0 for each pair of a cap. Let r_i = G_i
- rows - z_i (Q_x - E^w Q_x'). Then no channel has a utility above sum rows + sum caps max_i z_i + the maximum of sum_i
r_i.q_i. That maximum is at most T = sum_x max_i (r_ix)_+. The smallest entries of the columns add up to at most 1, and
the remainder of a row to (k-1) eta, its variations from the others. So it is at most max_i (sum r_i)_+ + (k-1) eta T.
With ratios of at most E, columns being multiples of t + a, 0 <= a <= 1, it is at most k s if t (sum r_i - k s) + sum
(r_i - s)_+ <= 0 for all i, as rows sum to 1.

Theorem 5 (equivalence [Kiefer, Wolfowitz]). Report y has the probability w and the centered column u = c/(p.c) - 1. If
sum w |K u|^2 <= M for every channel, then tr(W C), W = F F^T, is at least tr(K (F - 1 p^T F))^2 / M (Cauchy, Schwarz);
the largest variance at least sum_x (K_x.(e_x - p_x))^2 / M; log det C at least 2 log det R - (k-1) log(M/(k-1)) for K =
(R, -R 1) (eigenvalues' means). M is found as in theorem 3, per unit of probability.

Theorem 6 (Scarf). For scores of mean 0 and covariance I, the information of one report has a trace of at most rho^2 =
sinh^2(eps/2) = (E-1)^2/(4E). With m yes/no questions of independent even answers it is also at most (E-1)/8,
tanh^2(eps/2) if E <= 3, and for m <= 7, all sets compared, max_c c ((E-1)/(2^c+E-1))^2. So n sum w tau >= (sum tr
S^(1/2))^2/rho^2, and tr S^(1/2), the sum of the singular values of A = diag(p)^(1/2) (F - 1 p^T F), is at least tr(Z^T
A)/|Z| for any Z.

Theorem 7 [Shor]. In theorem 5 a pattern t + a of mass m gains -N/m^2, N = m (t sum rows + rows.a + price) - |K a|^2.
For a_x of 0 or 1 and low <= m <= high, N is at least its value with low price for m price, plus d_x (a_x^2 - a_x),
minus span (m-low)(high-m) and n_xy a_x a_y. This is a quadratic form in z = (a_x (t + p_x), t). As |z|^2 <= (k+1) m^2,
no gain exceeds minus its least eigenvalue times k+1. The classes [low, high] cover all masses.

Theorem 8 (symmetric envelope). Let n inputs be exchangeable, and the utility a convex, homogeneous function of columns
that no permutation changes. By theorem 3 patterns suffice: e on w inputs, 1 on the others, over the sum s = n + (e-1)
w. The average of a channel over permutations preserves as much and fulfils 1, as no distance of rows grows. Its
patterns of w inputs, of total probability b_w, are all equally likely. So any two rows have the distance sum b_w eta_w,
where eta_w = (e-1) w (n-w)/((n-1) s), and the utility is sum b_w u_w. It is at most a eta + max(0, max_w (u_w - a
eta_w)) for any a >= 0. For information u_w is the divergence of the ratios to the mean, e n/s on w and n/s on n-w
inputs. For estimation it is the trace T of sum_y m_y u u^T, u = c/m - 1: n w (n-w) ((e-1)/s)^2. Let a criterion fall
and be convex in this matrix, and be unchanged by permutations. It is at least its value at the average, T/(n-1) on all
contrasts: n-1 variances of (n-1)/T in all, (1-1/n) (n-1)/T each, and log det -(n-1) log(T/(n-1)) - log n. Inputs
without mass are left out.

Theorem 9 (orbits). Let the inputs with mass be in groups, n_i of mass v_i in the group i. Permutations within the
groups change nothing, as in theorem 8. So all sets with j_i inputs of each group i get one weight, b_j in all, in units
of t + 1_A. The row of the group i is sum b_j (t + j_i/n_i) = 1. Rows of the groups i and l have the distance sum b_j
s_il. Here s_il = j_i (n_l - j_l) / (n_i n_l), and j_i (n_i - j_i) / (n_i (n_i - 1)) within a group. Let a = sum j_i
v_i, and let h(a) be at most kappa (sum rows_i (t + j_i/n_i) + sum pairs_il s_il) for all j. Then no channel has a
utility above kappa (sum rows + eta sum pairs). Information is concave in the prior: masses may be rounded up, to a
distribution times M, and M times the bound of the distribution holds for them.
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
    """Enclose the bound that the certificate proves, for claim 3."""
    proof, k, kind = d.proof, float(d.k), d.proof["kind"]
    sets, columns = 2.0 ** min(k, 99), math.gamma(1 + min(k, 99)) * 1.6 ** min(k, 99)
    graph, knots = any(cap.edges is not None for cap in d.caps), len(proof.get("knots", ()))
    two, single_term = ("Divergence",), ("Divergence", "MutualInformation")
    summed, estimated = (*single_term, "WeightedSum", "WorstOf"), ("FisherInformation",)
    listed = 20 * k**2 + k**3 / 10 if relaxation(d.k, proof.get("relaxed")) else sets * (1 + k**2 / 100)
    dominance = (len(proof["points"]) + k) / 4 if proof.get("points") else 0
    prove_it, about, work = {  # The proof, its utilities, and its work in units of 50 microseconds.
        "Contraction": (contraction if d.kind in single_term else parts, summed, k),
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


def ratio_and_eta(d, bits):
    """Return E of all pairs, rounded up, and eta."""
    prove(d.epsilon() < math.inf, "no constraint asks for LocalDP between all inputs")
    e = exp_bound(d.epsilon(), bits, True)
    return e, min(d.eta(), (e - 1) / (e + 1))


def variation(d, bits):
    """Compute a cap on the total variation between any two rows, by theorem 1."""
    caps = ((cap.cap, exp_bound(cap.epsilon, bits, True)) for cap in d.caps if cap.edges is None)
    return min([Fraction(1), *(delta + (1 - delta) * (e - 1) / (e + 1) for delta, e in caps)])


def ratios(d, bits):
    """Bound the ratios c_x/c_y of a column under the constraints, (k, k), rounded up; None for no limit."""
    tightest = [[None] * d.k for _ in range(d.k)]
    pair_limits = ((x, y, w * cap.epsilon) for cap in d.caps if cap.notion == "local_dp" for x, y, w in cap.pairs(d.k))
    for x, y, limit in pair_limits:
        tightest[x][y] = min(exp_bound(limit, bits, True), tightest[x][y] or math.inf)
    return shortest(tightest, lambda ends: shortened(ends[0] * ends[1], 4 * bits, True))


def farthest(d, bits):
    """Return the largest ratio of two entries of a column, or None."""
    if d.epsilon() < math.inf and all(cap.edges is None for cap in d.caps):
        return ratio_and_eta(d, bits)[0]
    ratio_list = [ratio for row in ratios(d, bits) for ratio in row]
    return max(ratio for ratio in ratio_list if ratio) if ratio_list.count(None) == d.k else None


def factor(values_and_prices, bits):
    """Find the smallest kappa >= 1 with worth <= kappa paid for every (worth, paid)."""
    low = high = Fraction(1)
    for value, price in values_and_prices:
        prove(price > 0 or (price == 0 and value.hi <= 0), "what may be worth something pays nothing")
        if price > 0:  # Otherwise price and value are 0, so every kappa does.
            low, high = max(low, value.lo / price), max(high, value.hi / price)
    return Interval(low, high, bits)


def parts(d, bits):
    """Bound a sum by the sum of its parts' bounds, and a minimum by the smallest of them."""
    bounds, certificates = [], d.proof.get("each", [d.proof] * len(d.parts))
    need(len(certificates) == len(d.parts), "there must be one certificate for each part")
    for (weight, *part), certificate in zip(d.parts, certificates, strict=True):
        kind = "Divergence" if part[0] else "MutualInformation"
        try:  # A part of weight 0 adds nothing to the sum.
            bounds.append(weight and weight * proved(d.restated(certificate, kind=kind, parts=[(1, *part)]), bits))
        except ArithmeticError:  # The least of several is at most the least of those that have a bound.
            prove(d.kind == "WorstOf", "a part has no bound")
    prove(bounds, "no part has a bound")
    if d.kind == "WeightedSum":
        return sum(bounds, exactly(0, bits))
    return Interval(min(certificate.lo for certificate in bounds), min(certificate.hi for certificate in bounds), bits)


def relaxed(d, bits):
    """Prove the bound of a relaxation with only some of the constraints."""
    inner, forms = d.proof["relaxation"], [cap.form for cap in d.caps]
    kept_forms = inner.get("constraints", forms)
    prove(
        isinstance(kept_forms, list) and kept_forms and all(form in forms for form in kept_forms),
        "it has a constraint of its own",
    )
    return proved(d.restated(inner, caps=[d.caps[forms.index(form)] for form in kept_forms]), bits)


def dominated(d, bits):
    """Prove the bound for points that a channel turns into the distributions [Blackwell]."""
    # The constraints treat all inputs equally. The channel exists if sum ((1-s) a - s b)_+ is nowhere smaller for the #
    # points. That is linear between its kinks, and for the distributions convex; they agree at s = 0 and 1, so the
    # kinks # suffice. Without the caps of graphs, more channels are allowed.
    caps, (_, g, *laws) = [cap for cap in d.caps if cap.edges is None], d.parts[0]
    need({len(pair) for pair in d.proof["points"]} == {2}, "points must be pairs")
    points = [law(xs, slack=math.inf) for xs in zip(*d.proof["points"], strict=True)]
    kinks = [s for s, _, _ in by_ratio(*points)]
    points_sums, law_sums = (parts_above(kinks, by_ratio(*mass_pair)) for mass_pair in (points, laws))
    prove(caps and all(map(ge, points_sums, law_sums)), "the points do not dominate the hypotheses")
    inner = d.proof.get("of_points", Object({**d.proof, "points": None}, d.proof.read))
    return proved(d.restated(inner, caps=caps, k=len(points[0]), parts=[(1, g, *points)]), bits)


def parts_above(kinks, sorted_by_ratio):
    """sum ((1-s) a - s b)_+ for each s: of the masses with a ratio above s, which are the last ones."""
    ratios, *masses = zip(*sorted_by_ratio, strict=True)
    a, b = ([*accumulate(mass_list[::-1], initial=Fraction(0))] for mass_list in masses)
    numbers = (len(ratios) - bisect_right(ratios, s) for s in kinks)
    return [(1 - s) * a[n] - s * b[n] for s, n in zip(kinks, numbers, strict=True)]


# --- Two hypotheses ---------------------------------------------------------------------------------------------------


def by_ratio(p0, p1):
    """Sort (P0/(P0+P1), P0, P1) of the inputs with positive mass by P0/P1."""
    # The row of another input changes no marginal, and may be a copy of any other row.
    triples = [(a / (a + b), a, b) for a, b in zip(p0, p1, strict=True) if a + b]
    return sorted(
        triples, key=lambda triple: (float(triple[0]), triple)
    )  # Floats of rationals are in order; ties are settled.


def contraction(d, bits):
    """Prove the bound of theorem 1."""
    eta, (_, g, p, q) = variation(d, bits), d.parts[0]
    if eta == 0:  # All rows are equal, and tell nothing even of infinitely much.
        return exactly(0, bits)
    if d.epsilon() < math.inf and (g is None or g.operator_convex):
        e = ratio_and_eta(d, bits)[0]
        eta *= (e - 1) / (e + 1)
    # In the entropy, an answer of mass 0 counts as 0 log 0 = 0.
    terms = (g(*ab, bits) for ab in zip(p, q, strict=True)) if g else (-a * log(a, bits) for a in p if a)
    return eta * sum(terms, exactly(0, bits))


def envelope(d, bits):
    """Prove the bound of theorem 2."""
    # For many inputs boxes of blocks are screened, and few blocks are left.
    if d.proof.get("points") is not None:
        return dominated(d, bits)
    (_, g, *laws), (e, eta) = d.parts[0], ratio_and_eta(d, bits)
    level, u = rational(d.proof["level"]), rational(d.proof["potentials"])
    t, n, (s, *masses) = 1 / (e - 1), len(points := by_ratio(*laws)), zip(*points, strict=True)
    need(len(u) == n + 1, "there must be one potential more than inputs or points")
    prove(level >= 0, "the level is negative")
    p0, p1 = ([0, *accumulate(p)] for p in masses)
    cuts = [i for i in range(n + 1) if i in (0, n) or s[i - 1] < s[i]]  # Equal ratios stay together.
    blocks, kappa, spend = combinations(cuts, 2), Fraction(1), Prepaid(envelope_work(n), d.spend)
    if n > 60 and t * 10**300 > 1 and max(level * t, *map(abs, u)) < 10**300:
        kappa += Fraction(
            SCREENING_RTOL if bits <= 128 else 0
        )  # Ties are settled by a factor that is as large as rounding.
        blocks = Screen(g, t, (p0, p1), u, level, cuts, kappa, bits, spend).unsettled()
    least_kappa = factor(((g(t + p0[j] - p0[i], t + p1[j] - p1[i], bits), t * level + u[j] - u[i]) for i, j in
                    spending(blocks, spend)), bits)  # fmt: skip
    return Interval(least_kappa.lo, max(least_kappa.hi, kappa), bits) * (level + eta * max(0, u[n] - u[0] - level))


SCREENING_RTOL = 2.0**-42  # The package weakens its stated bounds by four times this.


def envelope_work(n):
    """Estimate the usual work for the blocks of n inputs; further work is spent as it occurs."""
    return min(2.0 * n**2, 15.0 * n)


class Prepaid:
    """Work that is partly prepaid."""

    def __init__(self, left, spend):
        self.left, self.further = left, spend

    def __call__(self, work):
        """Take from the prepaid work, and spend the rest."""
        self.left -= work
        if self.left < 0:
            self.further(-self.left)
            self.left = 0


def spending(blocks, spend):
    """Iterate over the blocks, and spend the work of the logarithms of each."""
    for block in blocks:
        spend(4)
        yield block


# --- Columns ----------------------------------------------------------------------------------------------------------


def staircases(k, e):
    """Iterate over (t, 1_A), the column t + 1_A, for all sets A of k inputs but the full one."""
    return ((1 / (e - 1), indicator) for indicator in product((0, 1), repeat=k) if not all(indicator))


def linked(d, allowed, flat):
    """Iterate over the extreme columns under limits (k, k) on c_x/c_y."""
    # From an entry of 1 on, entries at a limit to an existing one are added, as far as limits reach; `flat`: equal
    # entries are linked, too. Their number is not known in advance.
    k, listed_columns = len(allowed), set()
    steps = [[{allowed[y][x], allowed[x][y] and 1 / allowed[x][y], flat or None} - {None} for y in range(k)]
             for x in range(k)]  # fmt: skip
    for start in range(k):
        waiting = [tuple(Fraction(x == start) for x in range(k))]
        while waiting:
            c = waiting.pop()
            support, others = ([x for x in range(k) if (c[x] > 0) is side] for side in (True, False))
            open_to = {y for x in support for y in others if allowed[x][y]}
            # It was grown before in another order; or it needs an entry of an input before `start`: its support is
            # linked, so that each column is grown from the first input of its support.
            if c in listed_columns or min(open_to, default=k) < start:
                continue
            listed_columns.add(c)
            d.spend(k**2 / 4)
            if not open_to:  # Otherwise a limit requires a further entry: the column is incomplete and grows on.
                yield c
            for y in (y for y in others if y > start):
                for value in {c[x] * r for x in support for r in steps[x][y]}:
                    within_limits = (
                        value <= (allowed[y][z] or math.inf) * c[z] and c[z] <= (allowed[z][y] or math.inf) * value
                        for z in support
                    )
                    if all(within_limits):
                        waiting.append((*c[:y], value, *c[y + 1 :]))


def levels(k, e, flat):
    """Iterate over the extreme rays of all columns >= 0, cut by c_x = e c_y and, if `flat`, by c_x = c_y."""
    # Powers of e on a support, without gaps; of more than one input not all equal, unless `flat`.
    for size in range(1, k + 1):
        for shape in product(range(size), repeat=size):
            if len(set(shape)) == max(shape) + 1 and (max(shape) > 0 or size == 1 or flat):
                for support in combinations(range(k), size):
                    exponents = dict(zip(support, shape, strict=True))
                    yield tuple(e ** exponents[x] if x in exponents else Fraction(0) for x in range(k))


def prices_of(matrix, size, name):
    """List (x, y, price) of a matrix of prices, without the diagonal and without zeros."""
    prices = shaped(matrix, size, size, name)
    prove(min(map(min, prices)) >= 0, "a price is negative")
    return [(x, y, price) for x, row in enumerate(prices) for y, price in enumerate(row) if price and x != y]


def charged(c, prices, e=1):
    """sum of prices (c_x - e c_y)_+, which is 0 where c_x <= e c_y."""
    return sum(price * (c[x] - e * c[y]) for x, y, price in prices if c[x] > e * c[y])


def total(prices):
    """Sum all prices."""
    return sum(price for _, _, price in prices)


def columns_paid(d, bits):
    """Prove the bound of theorem 3."""
    proof, k, kind, e, spread_prices = d.proof, d.k, d.proof["kind"], 1, []
    rows, prices = shaped([proof["rows"]], 1, k, "rows")[0], prices_of(proof["pairs"], k, "pairs")
    shares = law(proof["weights"], len(d.parts) if d.kind == "WorstOf" else 1, math.inf)
    if kind == "PatternDual":
        ratio, eta = ratio_and_eta(d, bits)
        columns, charge = (tuple(t + entry for entry in a) for t, a in staircases(k, ratio)), total(prices) * eta
    elif kind == "PolicyDual":
        columns, charge = linked(d, ratios(d, bits), bool(prices) and Fraction(1)), total(prices) * d.eta()
    else:
        caps = [cap for cap in d.caps if cap.notion == "hockey_stick"]
        cover(len(caps) == 1, "columns of levels for other than one ApproximateLDP are not supported")
        e, spread_prices = (
            exp_bound(caps[0].epsilon, bits, True),
            prices_of(proof.get("spreads", [[0] * k] * k), k, "spreads"),
        )
        columns, charge = (
            levels(k, e, bool(spread_prices)),
            total(prices) * caps[0].cap + total(spread_prices) * d.eta(),
        )
    caps = ((d.worths(c, bits), dot(rows, c) + charged(c, prices, e) + charged(c, spread_prices)) for c in columns)
    return factor(((dot(shares, worths), price) for worths, price in caps), bits) * (sum(rows) + charge)


def symmetric(d, bits):
    """Prove the bound of theorem 8: a eta + max(0, max_w (u_w - a eta_w)), mapped by the criterion."""
    slope, (e, eta), criterion_form = rational(d.proof["slope"]), ratio_and_eta(d, bits), d.utility.get("criterion", {})
    prior = d.prior if d.error else [p for p in d.parts[0][2] if p]
    prove(slope >= 0, "the slope is negative")
    prove(len(set(prior)) == 1 < len(prior), "the prior is not even")
    kind, sizes = (
        criterion_form.get("kind"),
        [w for w, _ in functions(d)] if criterion_form.get("weights") else [Fraction(1)] * d.k,
    )
    invariant = kind in ("AOptimal", "MVOptimal", "DOptimal", None) and criterion_form.get("contrasts") is None
    prove(invariant and sizes == sizes[:1] * d.k, "the criterion does not treat all inputs alike")
    n, upper = len(prior), exactly(0, bits)
    for w in range(1, n):
        s = n + (e - 1) * w
        spread = (e - 1) * w * (n - w) / ((n - 1) * s)
        ratios_and_counts = (
            () if d.error else ((e * n / s, w), (n / s, n - w))
        )  # The ratios of the entries to their mean.
        value = exactly(n * w * (n - w) * ((e - 1) / s) ** 2 if d.error else 0, bits)
        rest = (
            sum((Fraction(count, n) * kl(r, Fraction(1), bits) for r, count in ratios_and_counts), value)
            + -slope * spread
        )
        upper = Interval(max(upper.lo, rest.lo), max(upper.hi, rest.hi), bits)
    upper += slope * eta
    if not d.error:
        return upper
    prove(upper.lo > 0, "the slope does not bound the information")
    if kind == "DOptimal":
        ratios_and_counts = Interval(log(upper.lo / (n - 1), bits).lo, log(upper.hi / (n - 1), bits).hi, bits)
        return (1 - n) * ratios_and_counts + -1 * log(Fraction(n), bits)
    scale = Fraction((n - 1) ** 2, n) if kind == "MVOptimal" else (n - 1) ** 2 * sizes[0]
    return Interval(scale / upper.hi, scale / upper.lo, bits)


def orbits(d, bits):
    """Prove the bound of theorem 9, with masses rounded up to `values`."""
    cover(d.utility["kind"] == "MutualInformation", "orbits of a part of a utility are not supported")
    values, (e, eta), c = rational(d.proof["values"]), ratio_and_eta(d, bits), len(d.proof["values"])
    rows, pair_prices = shaped([d.proof["rows"]], 1, c, "rows")[0], shaped(d.proof["pairs"], c, c, "pairs")
    masses = [p for p in rational(d.utility["prior"]) if p]
    prove(values[0] > 0 and all(a < b for a, b in pairwise(values)), "the masses of groups must be positive and rise")
    prove(max(masses) <= values[-1], "an input has more mass than those of any group")
    t, group_of_input = 1 / (e - 1), [bisect_left(values, p) for p in masses]
    prove(all(sizes := [group_of_input.count(i) for i in range(c)]), "a group is empty")
    d.spend(math.prod(n + 1 for n in sizes) * (6 + c**2 / 4) * bits / 128)
    prove(min(map(min, pair_prices)) >= 0, "a price is negative")
    ways = ((x, y, sizes[x] * (sizes[y] - (x == y))) for x, y in product(range(c), repeat=2))
    prices = [(x, y, n, pair_prices[x][y]) for x, y, n in ways if n and pair_prices[x][y]]  # One input makes no pair.
    total_mass, values_and_prices = dot(sizes, values), []
    for j in product(*(range(n + 1) for n in sizes)):
        a, price = (
            dot(j, values) / total_mass,
            sum(Fraction(j[x] * (sizes[y] - j[y]), n) * unit_price for x, y, n, unit_price in prices),
        )
        price += sum(unit_price * (t + Fraction(count, n)) for unit_price, count, n in zip(rows, j, sizes, strict=True))
        if j != (*sizes,):  # The full set makes a constant column, as the empty one does.
            values_and_prices.append((a * kl(t + 1, t + a, bits) + (1 - a) * kl(t, t + a, bits), price))
    return factor(values_and_prices, bits) * (
        (sum(rows) + eta * sum(unit_price for *_, unit_price in prices)) * total_mass / sum(masses)
    )


def capacity(d, bits):
    """Prove the bound for every prior."""
    e = farthest(d, bits)
    prove(e is not None, "some two inputs may differ without limit")
    x = log(e, bits) * (e / (e - 1))
    return Interval(kl(Fraction(1), x.lo, bits).lo, kl(Fraction(1), x.hi, bits).hi, bits)


def information(d, bits):
    """Prove the bound of theorem 3 with a divisible rest."""
    (_, _, p, _), indivisible, (e, eta), values_and_prices = d.parts[0], d.proof["whole"], ratio_and_eta(d, bits), []
    indivisible = (
        [] if isinstance(indivisible, dict) else indivisible
    )  # An array without entries is stated as its shape.
    need(
        all(0 <= x < d.k for x in indivisible) and len(set(indivisible)) == len(indivisible),
        "whole: expected inputs, each once",
    )
    n, t = len(indivisible), 1 / (e - 1)
    rows = shaped([d.proof["rows"]], 1, n + 1, "rows")[0]
    prices, masses = prices_of(d.proof["pairs"], n + 1, "pairs"), [p[x] for x in indivisible]
    rest = 1 - sum(masses)
    cover(d.proof["pairs"][n][n] == 0 or rest == 0, "prices within the rest are not supported")
    for indicator in product((0, 1), repeat=n):
        mass = point = dot(masses, indicator)
        prices_at = [t * sum(rows) + dot(rows, c) + charged(c, prices) for c in ((*indicator, 0), (*indicator, 1))]
        # Without a rest, `point` = P(I), where the tangent is h(P(I)) itself, and the last row is that of an answer of
        # mass 0. Else the tangent at a point where h rises as the price does; which point is not trusted.
        if rest:
            tf, slope = float(t), float((prices_at[1] - prices_at[0]) / rest)
            best = math.exp(min(700, (tf + 1) * math.log(tf + 1) - tf * math.log(tf) - 1 - slope)) - tf - float(mass)
            point = mass + rest * Fraction(min(1.0, max(0.0, best / float(rest))))
        low, high = kl(t, t + point, bits), kl(t + 1, t + point, bits)
        values_and_prices += (
            ((1 - a) * low + a * high, price) for a, price in zip((mass, mass + rest), prices_at, strict=True)
        )
    return factor(values_and_prices, bits) * (sum(rows) + eta * total(prices))


def unpaid(d, caps, gains, ratio, bits):
    """Prove the bound of theorem 4, for gains (labels, inputs)."""
    rows = shaped([d.proof["rows"]], 1, k := len(gains[0]), "rows")[0]
    residuals, bound = [[a - b for a, b in zip(multiplier, rows, strict=True)] for multiplier in gains], sum(rows)
    for multiplier in d.proof["multipliers"]:
        prove(0 <= multiplier["term"] < len(caps), "a multiplier is of no constraint")
        cap, chosen = caps[multiplier["term"]], multiplier["pairs"]
        # Multipliers may be left out, as if they were 0. LDP between all inputs has none, but `ratio` below; an array
        # without entries is stated as its shape.
        if cap.pure or isinstance(chosen, dict):
            continue
        pairs, z = cap.pairs(k), shaped(multiplier["values"], len(gains), len(chosen), "the values of a multiplier")
        prove(all(0 <= x < len(pairs) for x in chosen), "a multiplier is of no pair")
        prove(len(set(chosen)) == len(chosen) and min(map(min, z)) >= 0, "a multiplier is negative")
        bound += cap.cap * sum(map(max, zip(*z, strict=True)))
        for number, (x, y, w) in enumerate(pairs[position] for position in chosen):
            e = exp_bound(cap.epsilon * w, bits, True)
            for row, prices in zip(residuals, z, strict=True):
                row[x] -= prices[number]
                row[y] += prices[number] * e
    free = sum(max(0, *multiplier) for multiplier in zip(*residuals, strict=True))
    free = min(free, max(0, *map(sum, residuals)) + (k - 1) * variation(d, bits) * free)
    if ratio:  # Else the two bounds above hold alone.
        t, sums = 1 / (ratio - 1), [[0, *accumulate(sorted(r, reverse=True))] for r in residuals]
        free = min(
            free, k * max((t * s[-1] + multiplier) / (t * k + j) for s in sums for j, multiplier in enumerate(s))
        )
    return exactly(bound + free, bits)


def losses(d, bits):
    """Prove the bound of theorem 4 for a mixture of the priors, whose loss is at most the worst."""
    shares = law(d.proof["weights"], len(d.priors), math.inf)
    mean = [dot(shares, masses) for masses in zip(*d.priors, strict=True)]
    gains = [[-a * b for a, b in zip(mean, loss, strict=True)] for loss in zip(*d.loss, strict=True)]
    return unpaid(d, d.caps, gains, farthest(d, bits), bits)


def intervals(d, bits):
    """Prove the bound of theorem 4 for chords."""
    (_, g, p0, p1), caps, classes, e = d.parts[0], d.caps, d.proof.get("classes"), farthest(d, bits)
    # Inputs of equal ratios are merged; only caps that treat all alike are used, and without the others more channels
    # are allowed.
    if classes is not None:
        caps, number = [cap for cap in caps if cap.edges is None], max(classes) + 1
        prove(len(classes) == d.k and set(classes) == set(range(number)), "classes are numbers from 0")
        sums = [[dot(p, [c == label for c in classes]) for label in range(number)] for p in (p0, p1)]
        is_proportional = (a * sums[1][c] == b * sums[0][c] for a, b, c in zip(p0, p1, classes, strict=True))
        prove(all(is_proportional), "inputs of one class differ in their ratios")
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
    """Compute det and matrix^-1 right by exact elimination of a positive definite matrix."""
    a, det = [[*row, *right_row] for row, right_row in zip(matrix, right, strict=True)], Fraction(1)
    for i, pivot_row in enumerate(a):
        cover(
            pivot_row[i] > matrix[i][i] / 2**96, "a channel that does not tell all proportions apart is not supported"
        )
        det *= pivot_row[i]
        pivot_row[:] = [x / pivot_row[i] for x in pivot_row]
        for row in (row for row in a if row is not pivot_row and row[i]):  # Where it is 0, nothing is to be taken away.
            row[:] = [x - row[i] * y for x, y in zip(row, pivot_row, strict=True)]
    return det, [row[len(a) :] for row in a]


def shares(size, weight):
    """List the (weight, function of the answer) of a question."""
    # Its proportions if each has its weight, else i ones and -i, over sqrt(i (i + 1)), for i = 1, 2, .., whose
    # variances have the same sum [Helmert].
    if isinstance(weight, list):
        need(len(weight) == size, "there must be one weight for each share")
        return [(share_weight, [int(v == x) for x in range(size)]) for v, share_weight in enumerate(weight)]
    return [(Fraction(weight) / (i * (i + 1)), [1] * i + [-i] + [0] * (size - 1 - i)) for i in range(1, size)]


def functions(d):
    """List the (weight, function): the estimated functions (k,), each times the root of its weight."""
    form, k = d.utility["criterion"], d.k
    units, weights = [[Fraction(x == y) for y in range(k)] for x in range(k)], form.get("weights")
    if form["kind"] == "COptimal":
        return [(Fraction(1), shaped([form["contrast"]], 1, k, "the contrast")[0])]
    if form["kind"] == "Marginals":
        shape, question_weights = form["shape"], weights or [1] * len(form["shape"])
        need(
            min(shape) > 1 and math.prod(shape) == k and len(question_weights) == len(shape),
            "the shape has not k cells",
        )
        cells = list(product(*map(range, shape)))
        weighted_functions = [
            (w, f, j)
            for j, (size, question_weight) in enumerate(zip(shape, question_weights, strict=True))
            for w, f in shares(size, question_weight)
        ]
        weights, units = (
            [w for w, _, _ in weighted_functions],
            [[Fraction(f[cell[j]]) for cell in cells] for _, f, j in weighted_functions],
        )
    elif weights and isinstance(weights[0], list):
        full = shaped(weights, k, k, "the weights")
        weights = [full[x].pop(x) for x in range(k)]
        cover(not any(map(any, full)), "full matrices of weights: not supported")
    sizes = [Fraction(w) for w in weights or [1] * k]
    need(len(sizes) == len(units) and min(sizes) >= 0 < max(sizes), "weights must be >= 0, one for each function")
    return [(w, unit) for w, unit in zip(sizes, units, strict=True) if w]  # Weight 0: its variance does not count.


def criterion(d, bits):
    """Enclose the criterion of the channel, by the information M of one report."""
    # M is about all proportions but the last. The criterion falls where M grows. M is rounded to multiples of a unit,
    # and so lies between two matrices, minus and plus k units on the diagonal, except for the fraction by which 1/mass
    # is rounded up. A report of mass 0 never occurs. It could only make M larger and the error smaller, so it is left
    # out.
    n, kind = d.k - 1, d.utility["criterion"]["kind"]
    reports = ((*to_integers([x - c[-1] for x in c[:-1]]), dot(d.prior, c)) for c in zip(*d.rows, strict=True))
    reports = [entry for entry in reports if entry[2]]
    weights, unit = to_integers(
        [shortened(1 / (mass * denominator**2), 2 * bits, True) for _, denominator, mass in reports]
    )
    scaled_reports = [(s, [w * entry for entry in s]) for (s, _, _), w in zip(reports, weights, strict=True)]
    matrix = [
        [Fraction(sum(s[i] * t[j] for s, t in scaled_reports), unit) if j <= i else 0 for j in range(n)]
        for i in range(n)
    ]
    unit = shortened(Fraction(max(matrix[i][i] for i in range(n)) or 1), 1, True) / 2 ** (2 * bits)
    matrix = [[unit * round(matrix[max(i, j)][min(i, j)] / unit) for j in range(n)] for i in range(n)]
    weighted_functions, ends = functions(d), []
    targets = [[f[x] - f[-1] for x in range(n)] for _, f in weighted_functions]
    for shift, share in ((d.k * unit, 1), (-d.k * unit, 1 - Fraction(2) ** (2 - 2 * bits))):
        entry = [[(x + (i == j) * shift) * share for j, x in enumerate(row)] for i, row in enumerate(matrix)]
        det, solutions = eliminated(entry, [*zip(*targets, strict=True)])
        pairs = zip(weighted_functions, targets, zip(*solutions, strict=True), strict=True)
        worst = (max if kind == "MVOptimal" else sum)(w * dot(t, x) for (w, _), t, x in pairs)
        ends.append(-1 * log(det, bits) if kind == "DOptimal" else exactly(worst, bits))
    return Interval(ends[0].lo, ends[1].hi, bits)


def to_integers(numbers):
    """Convert rationals to integers over their common denominator."""
    denominator = math.lcm(*(x.denominator for x in numbers))
    return [int(x * denominator) for x in numbers], denominator


def gram(rows):
    """Compute the products of all two columns."""
    return [[dot(column, other) for other in zip(*rows, strict=True)] for column in zip(*rows, strict=True)]


def centred(kernel, p):
    """Subtract p times the row sums from the kernel; return integers over their denominator."""
    flat, denominator = to_integers([entry - sum(row) * a for row in kernel for entry, a in zip(row, p, strict=True)])
    return [flat[start : start + len(p)] for start in range(0, len(flat), len(p))], denominator


def dearest(p, kernel, rows, prices, columns, bits):
    """Find the largest excess of a column above its price, per unit of mass."""
    # Of (base, rise) in `columns`, in integers where they can be. A column without mass, of answers that never occur,
    # may be a part of any column. Its excess is unbounded, unless the kernel maps it to 0; then it must not have a
    # negative price.
    k, (centred_kernel, denominator) = len(p), centred(kernel, p)
    integers, unit = to_integers([*p, *rows, *(pair_price for _, _, pair_price in prices)])
    priced, excesses = [(x, y, pair_price) for (x, y, _), pair_price in zip(prices, integers[2 * k :], strict=True)], []
    for base, rise in columns:
        mass, squared_norm = (
            base + Fraction(dot(integers[:k], rise)) / unit,
            Fraction(sum(dot(row, rise) ** 2 for row in centred_kernel)),
        )
        price = base * sum(rows) + Fraction(dot(integers[k : 2 * k], rise) + charged(rise, priced)) / unit
        if mass:
            excesses.append(shortened((squared_norm / denominator**2 / mass - price) / mass, 2 * bits, True))
        else:
            prove(squared_norm == 0 <= price, "a report on answers of no mass may earn without end")
    return max(excesses)


def by_sizes(p, kernel, rows, prices, e, _):
    """Bound the excess for all sets of n inputs, n < k, by the largest entries of K^T K."""
    # Also by the smallest row and the range of p.
    prove(not prices, "sizes of sets say nothing of prices of pairs")
    t, (centred_kernel, denominator), k = 1 / (e - 1), centred(kernel, p), len(p)
    square = gram(centred_kernel)
    alone, both = max(square[x][x] for x in range(k)), max(square[x][y] for x in range(k) for y in range(x))
    bounds = (
        (Fraction(n * alone + n * (n - 1) * both, denominator**2), t * sum(rows) + n * min(rows), n) for n in range(k)
    )
    ends = ((a, b, [t + n * min(p), t + n * max(p)]) for a, b, n in bounds)
    return max(
        (gain / mass - price) / other_mass for gain, price, masses in ends for mass in masses for other_mass in masses
    )


def by_moments(p, kernel, rows, prices, e, _):
    """Bound the excess by theorem 6, from the second moment of the score v.K/p."""
    # The second moment is at most that of the largest row sum of K K^T/p.
    prove(not prices and min(p) > 0, "second moments say nothing of prices of pairs, nor of inputs without mass")
    centred_kernel, denominator = centred(kernel, p)
    scaled = [[entry / q for entry, q in zip(row, p, strict=True)] for row in centred_kernel]
    second = max(sum(abs(dot(row, other)) for other in centred_kernel) for row in scaled) / denominator**2
    even = p == p[::-1] and all(row == [-entry for entry in row[::-1]] for row in centred_kernel)
    return second * information_limit(e, even, 0) - min(entry / q for entry, q in zip(rows, p, strict=True))


def by_eigenvalues(p, kernel, rows, prices, e, numbers):
    """Bound the excess by theorem 7."""
    k, t, (centred_kernel, denominator), spans = len(p), 1 / (e - 1), centred(kernel, p), rational(numbers["spans"])
    squares, smallest = shaped(numbers["squares"], len(spans), k, "squares"), Fraction(0)
    products = shaped(numbers.get("products") or [[0] * k] * k, k, k, "products")
    prove(min([*spans, *map(min, products)]) >= 0, "spans or products are negative")
    cost, sizes, mass, costs = [[0] * k for _ in p], [*(t + q for q in p), t], [*p, t], [*rows, t * sum(rows)]
    for x, y, entry in prices:
        cost[x][y] = entry
    fixed = [[Fraction(2 * entry, denominator**2) + products[x][y] + products[y][x] for y, entry in enumerate(row)]
             for x, row in enumerate(gram(centred_kernel))]  # fmt: skip
    lows = [t * shortened(Fraction(float(e) ** (index / len(spans))), 53, False) for index in range(len(spans))]
    for d, span, low, high in zip(squares, spans, lows, [*lows[1:], t * e], strict=True):
        edge = [entry - low * sum(row) for entry, row in zip(d, cost, strict=True)]
        subtracted = [
            [fixed[x][y] + low * (cost[x][y] + cost[y][x]) - 2 * d[x] * (x == y) for y in range(k)] + [edge[x]]
            for x in range(k)
        ] + [[*edge, 0]]
        first_factor, second_factor = [*p, t - low], [*(-entry for entry in p), high - t]
        outer = (
            (mass, costs, 1),
            (costs, mass, 1),
            (first_factor, second_factor, -span),
            (second_factor, first_factor, -span),
        )
        form = [[(sum(a[x] * b[y] * c for a, b, c in outer) - subtracted[x][y]) / (2 * sizes[x] * sizes[y])
                 for y in range(k + 1)] for x in range(k + 1)]  # fmt: skip
        smallest = min(smallest, least_eigenvalue(form))
    return -smallest * (k + 1)


def positive(a):
    """Return True if a symmetric integer matrix is positive definite, by its leading minors."""
    before = 1
    for i, pivot_row in enumerate(a):
        if pivot_row[i] <= 0:
            return False
        for j in range(i + 1, len(a)):
            a[j][i + 1 : j + 1] = [(a[j][x] * pivot_row[i] - a[j][i] * a[x][i]) // before for x in range(i + 1, j + 1)]
        before = pivot_row[i]
    return True


def least_eigenvalue(form):
    """Bound all eigenvalues of a symmetric matrix from below, tightly."""
    n = len(form)
    unit = (Fraction(1, 4) + Fraction(2, n)) * sum(abs(row[x]) for x, row in enumerate(form)) / 2**53 or Fraction(1)
    whole_ones = [[round(entry / unit) for entry in row] for row in form]  # Each errs by 1/2, all by n/2.

    def shifted(addition):
        """Return True if the matrix with this addition to its diagonal is positive definite."""
        return positive([[*row[:x], row[x] + addition, *row[x + 1 :]] for x, row in enumerate(whole_ones)])

    low = high = 16 * n
    while not shifted(high):
        low, high = high, 2 * high
    while high - low > 1 + high // 2**40:
        low, high = (low, (low + high) // 2) if shifted((low + high) // 2) else ((low + high) // 2, high)
    return -unit * (high + n)


def relaxation(k, stated):
    """Select the bound on all patterns where they are too many; None where each is priced."""
    if k > 24 and fits(stated, RELAXED):
        return by_eigenvalues
    plain_ones = (
        {"Sizes": by_sizes, "Scarf": by_moments} if k > MOST_LISTED and stated and set(stated) == {"kind"} else {}
    )
    return plain_ones.get(str((stated or {}).get("kind")))


def dearest_pattern(p, kernel, rows, prices, e, stated, bits):
    """Bound the excess of all staircases."""
    search = relaxation(len(p), stated)
    dual = (p, kernel, rows, prices)
    return search(*dual, e, stated) if search else dearest(*dual, staircases(len(p), e), bits)


def equivalence(d, bits):
    """Prove the bound of theorem 5."""
    # A column is base + rise; entries are integers where they can be.
    k, kind, p, proof = d.k, d.utility["criterion"]["kind"], d.prior, d.proof
    of_shares = any(isinstance(w, list) for w in d.utility["criterion"].get("weights") or ())
    cover(kind != "Marginals" or not of_shares, "marginals with a weight for each share: not supported")
    prove(law(proof["prior"], k) == p, "the bound is for another prior")
    rows, prices = shaped([proof["rows"]], 1, k, "rows")[0], prices_of(proof["pairs"], k, "pairs")
    weighted_functions = functions(d) if kind in ("AOptimal", "COptimal", "Marginals") else []
    kernel = shaped(
        proof["kernel"], {"DOptimal": k - 1, "MVOptimal": k}.get(kind, len(weighted_functions)), k, "the kernel"
    )
    if kind == "DOptimal":
        kernel = [[*row[:-1], -sum(row[:-1])] for row in kernel]
    if any(cap.edges is not None for cap in d.caps):
        cover(not proof.get("relaxed"), "relaxations along graphs are not supported")
        columns = linked(d, ratios(d, bits), bool(prices) and Fraction(1))
        largest = dearest(p, kernel, rows, prices, ((min(c), [entry - min(c) for entry in c]) for c in columns), bits)
    else:
        largest = dearest_pattern(p, kernel, rows, prices, ratio_and_eta(d, bits)[0], proof.get("relaxed"), bits)
    largest += sum(rows) + variation(d, bits) * total(prices)
    prove(largest > 0, "the multipliers do not bound what the kernel can earn")
    if kind == "MVOptimal":
        return exactly(sum((kernel[x][x] - p[x] * sum(kernel[x])) ** 2 for x in range(k)) / largest, bits)
    if kind == "DOptimal":
        det = eliminated(gram([row[:-1] for row in kernel]), [[]] * (k - 1))[0]
        return log(det, bits) + (1 - k) * log(largest / (k - 1), bits)
    trace = exactly(0, bits)
    for row, (w, f) in zip(kernel, weighted_functions, strict=True):
        trace = trace + exactly(w, bits).root() * (dot(row, f) - sum(row) * dot(p, f))
    return Interval(max(0, trace.lo, -trace.hi) ** 2 / largest, max(-trace.lo, trace.hi) ** 2 / largest, bits)


# --- Questionnaires ---------------------------------------------------------------------------------------------------


def root_trace(p, weighted_functions, bits):
    """Bound tr S^(1/2) from below, tightly."""
    # Z is near the polar factor of A, computed in floats.
    r = range(len(weighted_functions))
    a = [[exactly(q * w, bits).root() * (f[x] - dot(p, f)) for w, f in weighted_functions] for x, q in enumerate(p)]
    z = [[float(entry.lo + entry.hi) / 2 for entry in row] for row in a]
    size = math.sqrt(sum(entry * entry for row in z for entry in row)) or 1.0
    z = [[entry / size for entry in row] for row in z]
    for _ in range(60):
        square = gram(z)
        z = [[1.5 * entry - 0.5 * dot(row, other) for entry, other in zip(row, square, strict=True)] for row in z]
    squared = gram(square := gram(exact := rational(z)))
    # An eigenvalue v >= 1 of Z^T Z has v - 1 <= v^2 (v - 1) <= defect; where A has none, v and v^2 are nearly 0.
    defect = sum((dot(squared[i], square[j]) - squared[i][j]) ** 2 for i in r for j in r)
    norm = (1 + exactly(defect, bits).root()).root()
    inner = sum(map(mul, chain(*a), chain(*exact)), exactly(0, bits))
    return Interval(max(Fraction(0), inner.lo / norm.hi), max(Fraction(0), inner.hi / norm.lo), bits)


def information_limit(e, even, questions):
    """Return rho^2."""
    # even : all scores are as often x as -x, as of even yes/no questions. questions : their number, or 0.
    limits = [(e - 1) ** 2 / (4 * e)]
    if even:
        limits.append((e - 1) / 8 if e > 3 else ((e - 1) / (e + 1)) ** 2)
    if 0 < questions <= 7:
        limits.append(max(c * ((e - 1) / (2**c + e - 1)) ** 2 for c in range(1, questions + 1)))
    return min(limits)


def shared(d, bits):
    """Prove the bound of theorem 6 for one respondent."""
    prove(d.utility["criterion"]["kind"] not in ("DOptimal", "MVOptimal"), "the criterion is no sum of variances")
    shape = d.utility["criterion"].get("shape", [d.k])
    even = len(shape) if set(shape) == {2} and len(set(d.prior)) == 1 else 0
    root, limit = root_trace(d.prior, functions(d), bits), information_limit(ratio_and_eta(d, bits)[0], even, even)
    return Interval(root.lo**2 / limit, root.hi**2 / limit, bits)


def together(file, epsilon, bits):
    """Prove the bound of theorem 5 for the largest of the variances of all questions together."""
    laws, targets, taus = map(law, file["pilots"]), rational(file["targets"]), rational(file["variances"])
    cells, p = [*product(*(range(len(pilot)) for pilot in file["pilots"]))], tuple(map(math.prod, product(*laws)))
    kernel = shaped(file["kernel"], sum(map(len, targets)), len(p), "the kernel")
    targets_of_all = (
        (j, row, v)
        for j, kernel_row in enumerate(zip(targets, taus, strict=True))
        for row, v in zip(*kernel_row, strict=True)
    )
    gain, rows = Fraction(0), shaped([file["rows"] or []], 1, len(p), "rows")[0]
    for kernel_row, (j, row, v) in zip(kernel, targets_of_all, strict=True):
        f = [row[cell[j]] for cell in cells]
        gain += (dot(kernel_row, f) - sum(kernel_row) * dot(p, f)) ** 2 / v
    e = exp_bound(epsilon, bits, True)
    largest = dearest_pattern(p, kernel, rows, [], e, file["relaxed"], bits) + sum(rows)
    return gain / largest if largest > 0 else Fraction(0)


def respondents(file, bits, budget):
    """Prove the smallest number of respondents of a survey by theorem 6."""
    parts = [file[name] for name in ("pilots", "targets", "variances", "weights")]
    need(len({len(part) for part in parts}) == 1, "pilots, targets, variances and weights differ in number")
    budget.spend(sum(len(p) * len(rows) * (len(p) + len(rows)) for p, rows in zip(*parts[:2], strict=True)))
    epsilon, (root, total_variance, low, even) = (
        rational(file["epsilon"]),
        (exactly(0, bits), Fraction(0), Fraction(0), 0),
    )
    cover(0 <= epsilon <= 1000 or epsilon == math.inf, "such an epsilon is not supported")
    for pilot, rows, tau, weights in zip(*parts, strict=True):
        p, tau, weights = law(pilot), rational(tau), rational(weights)
        f = shaped(rows, len(rows), len(p), "targets")
        need(len(f) == len(tau) == len(weights) and min(tau) > 0 <= min(weights), "one variance and weight a target")
        root, total_variance = (
            root + root_trace(p, [*zip(weights, f, strict=True)], bits),
            total_variance + dot(weights, tau),
        )
        spreads = (dot(p, [target**2 for target in row]) - dot(p, row) ** 2 for row in f)
        low = max(low, *(spread / v for spread, v in zip(spreads, tau, strict=True)))
        even += len(p) == 2 and p[0] == p[1]
    even = even if even == len(parts[0]) else 0
    # Without a promise, or where reports tell nothing, or with all weights 0, only the variance of the sample counts.
    if 0 < epsilon < math.inf and total_variance:
        low = max(low, root.lo**2 / total_variance / information_limit(exp_bound(epsilon, bits, True), even, even))
    cells, kernel = math.prod(map(len, file["pilots"])), file["kernel"]
    is_judged = not kernel or cells <= MOST_LISTED or relaxation(cells, file["relaxed"])
    if kernel and is_judged and 0 < epsilon < math.inf:
        budget.spend(2**cells * cells * len(kernel) if cells <= MOST_LISTED else cells**3)
        with suppress(ArithmeticError):  # Then the kernel proves nothing.
            low = max(low, together(file, epsilon, bits))
    proved_number, stated = math.ceil(low), file["least"]
    cover(
        stated <= proved_number or is_judged,
        "a kernel for more than 12 cells with a relaxation of this kind is not supported",
    )
    cover(stated <= proved_number or even <= 7, "more than seven yes/no questions at the even pilot are not supported")
    failures = [] if stated <= proved_number else [f"the number proved is {proved_number:,}, not {stated:,}"]
    return Result(failures, outward(exactly(stated, bits)), outward(exactly(low, bits)), not failures)
