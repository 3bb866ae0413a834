"""Screening of the blocks of sorted inputs: whole boxes of them at a time, in floats with a rounding margin.

A block i..j-1 has the masses a = t + P0(j) - P0(i) and b = t + P1(j) - P1(i). Its value must be at most kappa times its
price: g(a, b) <= kappa (t A + u_j - u_i). g is convex and homogeneous, so between two ratios a/b it is below the chord
x a + y b of its values there. For i in a range I and j in a range J, with F = x P0 + y P1 - kappa u, all blocks pay if

    (x + y) t + max over J of F - min over I of F <= kappa t A.

On a range, P0, P1 and u are between their values at the ends, by one common fraction, plus deviations. Those of P0 and
P1 are opposite, as the fraction is that of P0 + P1. So the largest and the smallest deviation of P0 and of u bound F,
with an error of second order in the range. Undecided boxes are split. Few blocks are left: those near blocks with a
price equal to their value. They are compared in rational numbers elsewhere.

Rounding: P0, P1 and their differences err by 2^-52, products and sums of a few floats by a few 2^-53. A fraction of
2^-44 of all terms covers that. Intervals of ratios are widened by a fraction of 2^-30, more than the error of ratios.
"""

import math
from bisect import bisect_right
from fractions import Fraction

from ldpopt_check import shortened

RATIO_RTOL = 2.0**-30  # Relative error of ratios.
MAX_RATIOS = 2**17  # Largest number of intervals of ratios: about as many as inputs.
MAX_LEAF_SIZE = 4  # Largest number of inputs of a range that is not split further.
LEAST_MASS = 1e-5  # Smaller masses have too large a relative error.


class Chords:
    """g from above: (x, y) of the chord between two of many ratios, computed where it is asked for."""

    def __init__(self, g, t, number, bits):
        reach = 1.001 * math.log1p(float(1 / t)) + 1e-8  # (t + a)/(t + b) lies between t/(t + 1) and its inverse
        self.cuts = [math.exp(reach * (2 * i / number - 1)) for i in range(number + 1)]
        self.g, self.number, self.bits, self.ends, self.known = g, number, bits, {}, {}

    def end(self, index):
        """Return the ray of masses of a ratio, and g there from above."""
        if index not in self.ends:
            r = Fraction(self.cuts[index])
            self.ends[index] = (r, 1), self.g(r, Fraction(1), self.bits).hi
        return self.ends[index]

    def between(self, low, high):
        """Return the chord for all ratios from low to high, in floats; None out of range."""
        first, last = (
            bisect_right(self.cuts, low * (1 - RATIO_RTOL)) - 1,
            bisect_right(self.cuts, high * (1 + RATIO_RTOL)),
        )
        if first < 0 or last > self.number:
            return None
        step = 1 << max(
            0, (last - first).bit_length() - 2
        )  # Ends are rounded to few numbers, so that their chords are reused.
        first, last = first // step * step, min(self.number, -(-last // step) * step)
        if (first, last) not in self.known:
            chord = plane(self.end(first), self.end(last), self.bits)
            self.known[first, last] = tuple(map(float, chord))
        return self.known[first, last]


def plane(first, second, bits):
    """Compute (x, y) of the linear function x a + y b with given values on two rays (a, b)."""
    ((a, b), f), ((c, e), h) = first, second
    determinant = a * e - c * b
    return shortened((f * e - h * b) / determinant, 2 * bits, True), shortened(
        (h * a - f * c) / determinant, 2 * bits, True
    )


class Screen:
    """The boxes. sums : running sums of P0 and P1. cuts : the places where a block may begin or end."""

    def __init__(self, g, t, sums, u, level, cuts, kappa, bits, spend):
        number = min(MAX_RATIOS, 2 ** len(cuts).bit_length())
        self.chords, self.t, self.kappa, self.spend = Chords(g, t, number, bits), float(t), float(kappa), spend
        self.cuts, self.charge = cuts, float(kappa * t * level)
        self.a, self.b, self.u = ([float(values[i]) for i in cuts] for values in (*sums, u))
        self.both, self.ranges = [x + y for x, y in zip(self.a, self.b, strict=True)], {}

    def range(self, low, high):
        """Return (smallest, largest deviation of P0, of u, the largest |u|) of the places low..high."""
        if (low, high) not in self.ranges:
            a, both, u = (values[low : high + 1] for values in (self.a, self.both, self.u))
            span = both[-1] - both[0] or math.inf
            shares = [(x - both[0]) / span for x in both]
            deviations = [
                [x - (values[0] + share * (values[-1] - values[0])) for x, share in zip(values, shares, strict=True)]
                for values in (a, u)
            ]
            self.ranges[low, high] = (*(f(values) for values in deviations for f in (min, max)), max(map(abs, u)))
        return self.ranges[low, high]

    def pays(self, first, second):
        """Return True if all blocks from one range of places to another one pay."""
        (i, k), (j, m), a, b, u, t, kappa = first, second, self.a, self.b, self.u, self.t, self.kappa
        low0, high0, low1, high1 = t + (a[j] - a[k]), t + (a[m] - a[i]), t + (b[j] - b[k]), t + (b[m] - b[i])
        chord = self.chords.between(low0 / high1, high0 / low1) if min(low0, low1) >= LEAST_MASS else None
        if not chord:
            return False
        x, y = chord
        ends = [x * a[index] + y * b[index] - kappa * u[index] for index in (i, k, j, m)]
        upper, lower, largest_potential = max(ends[2:]), min(ends[:2]), max(abs(u[index]) for index in (i, k, j, m))
        if j < m:
            low, high, smallest, _, size = self.range(j, m)
            upper, largest_potential = (
                upper + max((x - y) * low, (x - y) * high) - kappa * smallest,
                max(largest_potential, size),
            )
        if i < k:
            low, high, _, largest, size = self.range(i, k)
            lower, largest_potential = (
                lower + min((x - y) * low, (x - y) * high) - kappa * largest,
                max(largest_potential, size),
            )
        loss = 2.0**-44 * ((abs(x) + abs(y)) * (high0 + high1 + 1) + self.charge + 2 * largest_potential)
        return (x + y) * t + upper - lower + loss < self.charge - loss

    def pays_one(self, i, k):
        """Return True if one block pays."""
        a, b, u, t = self.a, self.b, self.u, self.t
        first, second = t + (a[k] - a[i]), t + (b[k] - b[i])
        chord = self.chords.between(first / second, first / second) if min(first, second) >= LEAST_MASS else None
        if not chord:
            return False
        x, y = chord
        loss = 2.0**-44 * ((abs(x) + abs(y)) * (first + second + 1) + self.charge + abs(u[i]) + abs(u[k]))
        return x * first + y * second + loss < self.charge + self.kappa * (u[k] - u[i]) - loss

    def unsettled(self):
        """Iterate over the blocks (i, j) that do not surely pay."""
        all_places, steps = (0, len(self.cuts) - 1), 0
        queue = [(all_places, all_places)]
        while queue:
            first, second = queue.pop()
            steps += 1
            if not steps % 1000:
                self.spend(200)
            if first[0] == first[1] and second[0] == second[1]:
                if first < second and not self.pays_one(first[0], second[0]):
                    yield self.cuts[first[0]], self.cuts[second[0]]
            elif first == second:
                halves = halved(first)
                queue += [(half, other_half) for half in halves for other_half in halves if half <= other_half]
            elif not self.pays(first, second):
                if second[0] == second[1] or self.wider(first, second):
                    queue += [(half, second) for half in halved(first)]
                else:
                    queue += [(first, half) for half in halved(second)]

    def wider(self, first, second):
        """Return True if the first of two ranges, of two places or more, is to be split."""
        sizes = [self.both[high] - self.both[low] for low, high in (first, second)]
        return first[0] < first[1] and sizes[0] >= sizes[1]


def halved(places):
    """Split a range into two halves, or a short one into its places."""
    low, high = places
    if high - low < MAX_LEAF_SIZE:
        return [(place, place) for place in range(low, high + 1)]
    middle = (low + high) // 2
    return [(low, middle), (middle + 1, high)]
