"""Which blocks of sorted inputs are surely paid for: whole boxes of them at a time, in floats with room for rounding.

A block i..j-1 has the masses a = t + P0(j) - P0(i) and b = t + P1(j) - P1(i), and must be worth at most kappa times
what it pays: g(a, b) <= kappa (t A + u_j - u_i). g is convex and homogeneous, so between two ratios a/b it is below
the chord x a + y b of its values there. For i in a range I and j in a range J, with F = x P0 + y P1 - kappa u, all is
paid if

    (x + y) t + max over J of F - min over I of F <= kappa t A.

On a range, P0, P1 and u are between their values at the ends, by one common share, plus deviations: those of P0 and P1
are opposite, as the share is that of P0 + P1. So the largest and the least deviation of P0 and of u bound F, by what
falls with the square of the range. Boxes that are not settled so are split. Few blocks are left: those near blocks of
which the price is exactly their worth. They are looked at in rational numbers elsewhere.

Rounding: P0, P1 and their differences are off by 2^-52, products and sums of a few floats by a few 2^-53. A share of
2^-44 of all terms is for that. Intervals of ratios reach farther by a share of 2^-30, by more than ratios are off.
"""

import math
from bisect import bisect_right
from fractions import Fraction

from ldpopt_check import shortened

WIDER = 2.0**-30  # A share by which ratios may be off.
MOST_RATIOS = 2**17  # The most intervals of ratios: about as many as inputs.
LEAF = 4  # The most inputs of a range that is looked at one by one.
LEAST_MASS = 1e-5  # Smaller masses are off by too much, relatively.


class Chords:
    """g from above: (x, y) of the chord between two of many ratios, computed where it is asked for."""

    def __init__(self, g, t, number, bits):
        reach = 1.001 * math.log1p(float(1 / t)) + 1e-8  # (t + a)/(t + b) lies between t/(t + 1) and its inverse
        self.cuts = [math.exp(reach * (2 * i / number - 1)) for i in range(number + 1)]
        self.g, self.number, self.bits, self.ends, self.known = g, number, bits, {}, {}

    def end(self, at):
        """The ray of masses of a ratio, and g there from above."""
        if at not in self.ends:
            r = Fraction(self.cuts[at])
            self.ends[at] = (r, 1), self.g(r, Fraction(1), self.bits).hi
        return self.ends[at]

    def between(self, low, high):
        """The chord for all ratios from low to high, in floats; None where they are out of reach."""
        first, last = bisect_right(self.cuts, low * (1 - WIDER)) - 1, bisect_right(self.cuts, high * (1 + WIDER))
        if first < 0 or last > self.number:
            return None
        step = 1 << max(
            0, (last - first).bit_length() - 2
        )  # Ends are rounded to few numbers, of which chords are kept.
        first, last = first // step * step, min(self.number, -(-last // step) * step)
        if (first, last) not in self.known:
            chord = plane(self.end(first), self.end(last), self.bits)
            self.known[first, last] = tuple(map(float, chord))
        return self.known[first, last]


def plane(first, second, bits):
    """(x, y) of the linear function x a + y b with given values on two rays (a, b)."""
    ((a, b), f), ((c, e), h) = first, second
    apart = a * e - c * b
    return shortened((f * e - h * b) / apart, 2 * bits, True), shortened((h * a - f * c) / apart, 2 * bits, True)


class Screen:
    """The boxes. sums : running sums of P0 and P1. cuts : the places where a block may begin or end."""

    def __init__(self, g, t, sums, u, level, cuts, kappa, bits, spend):
        number = min(MOST_RATIOS, 2 ** len(cuts).bit_length())
        self.chords, self.t, self.kappa, self.spend = Chords(g, t, number, bits), float(t), float(kappa), spend
        self.cuts, self.charge = cuts, float(kappa * t * level)
        self.a, self.b, self.u = ([float(one[i]) for i in cuts] for one in (*sums, u))
        self.both, self.ranges = [x + y for x, y in zip(self.a, self.b, strict=True)], {}

    def range(self, low, high):
        """(least, largest deviation of P0, of u, the largest |u|) of the places low..high."""
        if (low, high) not in self.ranges:
            a, both, u = (one[low : high + 1] for one in (self.a, self.both, self.u))
            whole = both[-1] - both[0] or math.inf
            shares = [(x - both[0]) / whole for x in both]
            off = [[x - (one[0] + share * (one[-1] - one[0])) for x, share in zip(one, shares, strict=True)]
                   for one in (a, u)]  # fmt: skip
            self.ranges[low, high] = (*(f(one) for one in off for f in (min, max)), max(map(abs, u)))
        return self.ranges[low, high]

    def pays(self, first, second):
        """Whether all blocks from one range of places to another one pay."""
        (i, k), (j, m), a, b, u, t, kappa = first, second, self.a, self.b, self.u, self.t, self.kappa
        low0, high0, low1, high1 = t + (a[j] - a[k]), t + (a[m] - a[i]), t + (b[j] - b[k]), t + (b[m] - b[i])
        chord = self.chords.between(low0 / high1, high0 / low1) if min(low0, low1) >= LEAST_MASS else None
        if not chord:
            return False
        x, y = chord
        ends = [x * a[at] + y * b[at] - kappa * u[at] for at in (i, k, j, m)]
        above, below, most = max(ends[2:]), min(ends[:2]), max(abs(u[at]) for at in (i, k, j, m))
        if j < m:
            low, high, least, _, size = self.range(j, m)
            above, most = above + max((x - y) * low, (x - y) * high) - kappa * least, max(most, size)
        if i < k:
            low, high, _, largest, size = self.range(i, k)
            below, most = below + min((x - y) * low, (x - y) * high) - kappa * largest, max(most, size)
        loss = 2.0**-44 * ((abs(x) + abs(y)) * (high0 + high1 + 1) + self.charge + 2 * most)
        return (x + y) * t + above - below + loss < self.charge - loss

    def pays_one(self, i, k):
        """The same for one block."""
        a, b, u, t = self.a, self.b, self.u, self.t
        first, second = t + (a[k] - a[i]), t + (b[k] - b[i])
        chord = self.chords.between(first / second, first / second) if min(first, second) >= LEAST_MASS else None
        if not chord:
            return False
        x, y = chord
        loss = 2.0**-44 * ((abs(x) + abs(y)) * (first + second + 1) + self.charge + abs(u[i]) + abs(u[k]))
        return x * first + y * second + loss < self.charge + self.kappa * (u[k] - u[i]) - loss

    def unsettled(self):
        """The blocks (i, j) that do not surely pay."""
        whole, looks = (0, len(self.cuts) - 1), 0
        waiting = [(whole, whole)]
        while waiting:
            first, second = waiting.pop()
            looks += 1
            if not looks % 1000:
                self.spend(200)
            if first[0] == first[1] and second[0] == second[1]:
                if first < second and not self.pays_one(first[0], second[0]):
                    yield self.cuts[first[0]], self.cuts[second[0]]
            elif first == second:
                halves = halved(first)
                waiting += [(one, other) for one in halves for other in halves if one <= other]
            elif not self.pays(first, second):
                if second[0] == second[1] or self.wider(first, second):
                    waiting += [(one, second) for one in halved(first)]
                else:
                    waiting += [(first, one) for one in halved(second)]

    def wider(self, first, second):
        """Whether the first of two ranges, of two places or more, is to be split."""
        sizes = [self.both[high] - self.both[low] for low, high in (first, second)]
        return first[0] < first[1] and sizes[0] >= sizes[1]


def halved(places):
    """Two halves of a range; of one that is short, each place."""
    low, high = places
    if high - low < LEAF:
        return [(at, at) for at in range(low, high + 1)]
    middle = (low + high) // 2
    return [(low, middle), (middle + 1, high)]
