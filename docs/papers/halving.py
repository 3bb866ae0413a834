"""Check in ball arithmetic the inequality of two halves, for the profile f of the paper on questionnaires.

python docs/papers/halving.py     prints each check; python-flint is all that it needs

f(a) is the least of f1(a) = B1 phi(Phi^-1(a/A1)) and f2(a) = B2 phi(Phi^-1((a + S)/A2)) for 0 <= a <= 1/2. For
0 <= a <= b <= 1/2 and c = (a + b)/2 the inequality is

    D(a, b) = f(c)^2 - ((b - a)/2)^2 - ((f(a) + f(b))/2)^2 >= 0.

With a = A1 Phi(x) and b = A1 Phi(y) the paper proves it by hand for y <= -1 and for y - x <= NEAR, from numbers that
`hand` checks. `cells` counts the boxes of (y, y - x) that prove the rest up to y - x = FAR, and `strips` the intervals
of y that prove it beyond.
"""

from flint import arb

# Balls that contain the decimal numbers and the nearest floating-point numbers, so that f may be computed with either.
A1, B1, A2, B2, S = (arb(decimal, 1e-15) for decimal in ("1.319", "1.3197", "1.3038", "1.309", "0.00076"))
NEAR, FAR = 0.11, 5.0
ROOT = arb(2).sqrt()
UNIT = 1 / (2 * arb.pi()).sqrt()
HALF = arb(1) / 2


def density(x):
    """Return the normal density on a ball."""
    return (-x * x / 2).exp() * UNIT


def share(x):
    """Return the normal distribution function on a ball."""
    return (-x / ROOT).erfc() / 2


def quantile(p):
    """Return the inverse of the normal distribution function on a ball."""
    return -ROOT * (2 * p).erfcinv()


def interval(low, high):
    """Return a ball that contains all numbers between two floats."""
    return arb((arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2 + arb(2) ** -60)


def arcs(a):
    """Return the values and the slopes (f1, f2, f1', f2') of the two arcs at a share."""
    x1, x2 = quantile(a / A1), quantile((a + S) / A2)
    return B1 * density(x1), B2 * density(x2), -B1 / A1 * x1, -B2 / A2 * x2


def crossing():
    """Return a ball that contains the only share between 0 and 1/2 at which the arcs cross."""
    low, high = arb("0.2"), arb("0.4")
    for _ in range(30):
        middle = ((low + high) / 2).mid()
        first, second, *_ = arcs(middle)
        if first < second:
            low = middle
        elif first > second:
            high = middle
        else:
            break
    return interval(low.mid(), high.mid())


KINK = crossing()


def profile(a):
    """Return f and a ball that contains its slopes (both of them at the kink) on a ball of shares."""
    first, second, slope1, slope2 = arcs(a)
    if a < KINK:
        return first, slope1
    if a > KINK:
        return second, slope2
    return first.min(second), slope1.union(slope2)


def difference(x, y):
    """Return D and its slopes in x and in y, for balls x and y."""
    a, b = A1 * share(x), A1 * share(y)
    (fa, in_a), (fb, in_b), (fc, in_c) = profile(a), profile(b), profile((a + b) / 2)
    half, mean = (b - a) / 2, (fa + fb) / 2
    value = fc * fc - half * half - mean * mean
    return value, A1 * density(x) * (fc * in_c + half - mean * in_a), A1 * density(y) * (fc * in_c - half - mean * in_b)


def cells(limit=1_000_000, near=NEAR):
    """Return the number of boxes that prove D > 0 for -1 <= y, b <= 1/2 and near <= y - x <= FAR; 0 if none do."""
    boxes, count = [(-1.0, float(quantile(HALF / A1).upper()), near, FAR)], 0
    while boxes:
        low, high, short, long = boxes.pop()
        count += 1
        if count > limit:
            return 0
        y = interval(low, high)
        _, in_x, in_y = difference(y - interval(short, long), y)
        room = abs(in_x + in_y) * (high - low) / 2 + abs(in_x) * (long - short) / 2
        middle = arb((low + high) / 2)
        if difference(middle - (short + long) / 2, middle)[0] > room:
            continue
        if high - low > long - short:
            boxes += [(low, (low + high) / 2, short, long), ((low + high) / 2, high, short, long)]
        else:
            boxes += [(low, high, short, (short + long) / 2), (low, high, (short + long) / 2, long)]
    return count


def strips(width=2.0**-10):
    """Return the number of intervals of y that prove D > 0 for y - x >= FAR; 0 if one does not.

    There f(c) >= f(b/2), (b - a)/2 <= b/2 and f(a) <= B1 phi(-FAR).
    """
    start, end, count = -1.0, float(quantile(HALF / A1).upper()), 0
    while start < end:
        b = A1 * share(interval(start, start + width))
        middle, mean = profile(b / 2)[0], (B1 * density(arb(-FAR)) + profile(b)[0]) / 2
        if not middle * middle - b * b / 4 - mean * mean > 0:
            return 0
        start, count = start + width, count + 1
    return count


def hand():
    """Return the numbers that the proofs by hand use, each with True if its enclosure satisfies what is needed."""
    near = arb(str(NEAR))
    g1, g2 = (B1 / A1) ** 2, (B2 / A2) ** 2
    value, _ = profile(HALF)
    last = quantile((HALF + S) / A2)
    fk, _, left, right = arcs(KINK)
    # Short intervals with c <= KINK lie where the first arc has x >= -1 - NEAR and y <= quantile(KINK/A1) + NEAR.
    top = quantile(KINK / A1) + near
    bend1 = (1 - top**2) * density(top)
    # Short intervals with c >= KINK: b - a <= A1 phi(x(1/2)) NEAR, hence a bound of the length in the second arc.
    length = A1 * density(quantile(HALF / A1)) * near
    bottom = quantile((KINK - length + S) / A2)
    long2 = length / (A2 * density(bottom))
    bend2 = (1 - last**2) * density(last)
    slopes, a = True, 2.0**-17
    while a < 0.5:  # the first arc is the steeper one
        wide = a * 2.0**-9
        *_, first, second = arcs(interval(a, a + wide))
        slopes, a = slopes and first > second, a + wide
    slopes = slopes and arcs(arb(2.0**-17))[2] > -B2 / A2 * quantile(S / A2)
    return {
        "the arcs cross once": slopes and abs(KINK - arb("0.29")) < 0.01,
        "f(1/2) >= 1/2": value >= HALF,
        "1 <= g1 <= g2": g1 >= 1 and g2 >= g1,
        "short intervals, first arc": bend1 * near**2 / 12 <= (g1 - 1) * density(-1 - near),
        "short intervals, second arc": bend2 * long2**2 / 12 <= (g2 - 1) * density(bottom),
        "H is convex on both sides of its kink": g2 * last**2 >= g2 - 1,
        "H falls up to its kink": fk * right >= HALF - KINK,
        "the kink is concave": left > right,
    }


if __name__ == "__main__":
    for claim, holds in hand().items():
        print(f"{claim}: {bool(holds)}")
    print(f"kink at {KINK}")
    print(f"boxes: {cells():,}; strips: {strips():,}")
