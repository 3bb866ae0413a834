"""The envelope theorem, one test for each step of its proof (docs/explanation/envelope.md), each trying to break it."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from experiments.papers.envelope import (
    Line,
    Problem,
    comb,
    distances,
    envelope_at,
    exchange,
    lay,
    partition_points,
    pattern_optimum,
    prove,
    windows,
)
from ldpopt import Divergence, LocalDP, TotalVariation, optimal_channel
from ldpopt.design import EnvelopeDual, Partition, PatternDual, PatternLP
from ldpopt.design.problems.reduction import Pair
from ldpopt.divergences import KL, NAMED, TOTAL_VARIATION, FDivergence, hockey_stick
from ldpopt.mechanisms import binary_with_erasure

DIVERGENCES = [*NAMED.values(), hockey_stick(1.5), hockey_stick(0.4)]


def random_line(rng, whole=False):
    """Cells, and masses in them of one total for all inputs, none above its cell's length; integers if `whole`."""
    k, n = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    lengths = rng.integers(1, 9, n)
    total = int(rng.integers(1, lengths.sum() + 1))
    slots = np.repeat(np.arange(n), lengths)
    masses = np.array([np.bincount(rng.permutation(slots)[:total], minlength=n) for _ in range(k)])
    scale = 1.0 if whole else float(np.exp(rng.normal()))
    return Line(scale * lengths, scale * masses)


def single_peaked(rng, k, n):
    """Gains (k, n), integers of either sign, that rise over the first peaks[x] cells and fall over the others."""
    peaks = rng.integers(0, n + 1, k)
    gains = rng.integers(-20, 20, (k, n))
    return peaks, np.array([[*sorted(row[:p]), *sorted(row[p:])[::-1]] for row, p in zip(gains, peaks, strict=True)])


def random_pair(rng, k):
    """Hypotheses sorted by ratio: ordinary, nearly equal, concentrated, or without mass at the ends."""
    p0, p1 = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), 2) + 1e-7
    form = rng.integers(4)
    if form == 0:
        p1 = p0 * np.exp(rng.choice([1e-3, 0.1]) * rng.normal(size=k))
    order = np.argsort(p0 / p1)
    p0, p1 = p0[order], p1[order]
    if form == 1:
        p0[0], p1[-1] = 0.0, 0.0
    return Pair.from_masses(p0 / p0.sum(), p1 / p1.sum())


def random_channel(rng, k, gain):
    """A channel under epsilon-LDP: columns 1 + (E-1) u of random weight, u in [0, 1], and one that evens the rows."""
    m = int(rng.integers(2, 9))
    kinds = rng.random((k, m)), (rng.random((k, m)) < 0.5).astype(float), np.sort(rng.random((k, m)), axis=0)
    columns = (1 + gain * kinds[rng.integers(3)]) * rng.dirichlet(np.ones(m))
    lacking = columns.sum(axis=1).max() - columns.sum(axis=1)
    matrix = np.column_stack([columns, lacking + max(lacking.max() / gain, 1e-3)])
    return matrix / matrix[0].sum()


def test_laying_columns_on_a_line_loses_nothing():
    """Densities have one total N, the line is 1 - (E-1) N long, and total variations are E - 1 times theirs."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        k, gain = int(rng.integers(2, 6)), float(np.exp(rng.normal()))
        matrix = random_channel(rng, k, gain)
        line = lay(matrix, gain)
        totals = line.masses.sum(axis=1)
        assert totals == pytest.approx(totals[0], rel=1e-9)
        assert line.lengths.sum() + gain * totals[0] == pytest.approx(1.0)
        assert ((line.columns >= 0) & (line.columns <= 1 + 1e-12)).all()
        apart = np.maximum(matrix[:, None] - matrix, 0).sum(axis=2).max()
        assert gain * distances(line.masses)[0] == pytest.approx(apart, rel=1e-9)


@pytest.mark.parametrize("f", DIVERGENCES, ids=str)
def test_tangents_bound_the_utility_and_gains_have_one_peak(f):
    """The tangent at each cell's ratio is met there and bounds any other densities; its gains peak at r_x."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        k, gain = int(rng.integers(2, 6)), float(np.exp(rng.normal()))
        problem = Problem(f, random_pair(rng, k), gain)
        line, ratio = problem.sorted(lay(random_channel(rng, k, gain), gain))
        gains, peaks = problem.gains(ratio), problem.peaks(ratio)
        slope, level = (np.asarray(part) for part in f.tangent(ratio))
        empty = float(((slope * problem.pair.p0.sum() + level * problem.pair.p1.sum()) * line.lengths).sum())
        room = 1e-11 * (1 + np.abs(gains).max())
        assert empty + (gains * line.masses).sum() == pytest.approx(problem.value(line), abs=room)
        for _ in range(5):
            other = Line(line.lengths, line.lengths * rng.random(line.masses.shape))
            assert empty + (gains * other.masses).sum() <= problem.value(other) + room
        for row, peak in zip(gains, peaks, strict=True):
            assert (np.diff(row[:peak]) >= -room).all()
            assert (np.diff(row[peak:]) <= room).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kolmogorov", [False, True], ids=["total variation", "kolmogorov"])
def test_the_exchange_lemma_holds(seed, kolmogorov):
    """Densities that differ by at most D split into a common part and rests of total D, and no gain falls.

    In integers, hence without rounding; also where D is only the Kolmogorov distance along the line.
    """
    rng, weaker = np.random.default_rng([seed, 3]), 0
    for _ in range(400):
        line = random_line(rng, whole=True)
        peaks, gains = single_peaked(rng, *line.masses.shape)
        far, near = distances(line.masses)
        weaker += near < far
        least, total = (near if kolmogorov else far), line.masses[0].sum()
        most = float(rng.choice([least, total, rng.integers(least, total + 1)]))
        common, rest = exchange(line, peaks, most)
        assert (common >= 0).all()
        assert common.sum() == total - most
        assert (rest >= 0).all()
        assert (rest.sum(axis=1) == most).all()
        assert (common + rest <= line.lengths).all()
        assert ((gains * (common + rest)).sum(axis=1) >= (gains * line.masses).sum(axis=1)).all()
    assert weaker > 100


def splits(line, gains, most):
    """Whether a common part of total N - D and rests of total D exist that lose no gain: by a linear program."""
    k, n = line.masses.shape
    free = k * n + n  # the rests, row by row, then the common part
    same, keep = np.zeros((k + 1, free)), np.zeros((k, free))
    room = np.zeros((k * n, free))
    for x in range(k):
        same[x, x * n : (x + 1) * n] = 1
        keep[x, x * n : (x + 1) * n], keep[x, k * n :] = -gains[x], -gains[x]
        room[x * n : (x + 1) * n, x * n : (x + 1) * n] = np.eye(n)
        room[x * n : (x + 1) * n, k * n :] = np.eye(n)
    same[k, k * n :] = 1
    totals = np.append(np.full(k, most), line.masses[0].sum() - most)
    limits = np.append(-(gains * line.masses).sum(axis=1), np.tile(line.lengths, k))
    return linprog(np.zeros(free), np.vstack([keep, room]), limits, same, totals, method="highs").status == 0


def test_exchange_needs_single_peaks():
    """With gains that rise, fall and rise again it fails: three cells, and each input in all but its own.

    Every input wants exactly the two cells in which it is, so nothing can be common to all; but N - D = 1 should be.
    """
    line = Line(np.ones(3), 1 - np.eye(3))
    assert distances(line.masses) == (1.0, 1.0)
    assert not splits(line, 1 - np.eye(3), 1.0)
    rng, failed = np.random.default_rng(4), 0
    for _ in range(60):
        _, gains = single_peaked(rng, 3, 3)
        assert splits(line, gains, 1.0)
        failed += not splits(line, 10 * (1 - np.eye(3)) + rng.integers(-5, 6, (3, 3)), 1.0)
    assert failed > 30


def test_exchange_needs_the_whole_distance():
    """With D below the Kolmogorov distance it fails: two inputs apart, each at its peak, have nothing to share."""
    line, gains = Line(np.ones(2), np.eye(2)), np.array([[2, 1], [1, 2]])
    assert distances(line.masses) == (1.0, 1.0)
    assert splits(line, gains, 1.0)
    assert not splits(line, gains, 0.9)


def test_another_order_of_the_outputs_is_not_enough():
    """Kolmogorov distances in a shuffled order may be small where far more is kept than the envelope at them allows.

    Randomized response in a thousand thin slices that take turns has nearly no such distance, and keeps everything;
    in the order of the slices' own ratios the distance is the total variation again.
    """
    gain, slices = math.e - 1, 1000
    sliced = np.tile(np.array([[math.e, 1.0], [1.0, math.e]]) / (math.e + 1) / slices, slices)
    pair = Pair.from_masses(np.array([0.3, 0.7]), np.array([0.7, 0.3]))
    line = lay(sliced, gain)
    allowed = gain * distances(line.masses)[1]
    points = partition_points(KL.excess, pair.p0, pair.p1, gain)
    assert allowed < 1e-3
    assert Problem(KL, pair, gain).value(line) > 100 * envelope_at(points, allowed)
    line, _ = Problem(KL, pair, gain).sorted(line)
    assert gain * distances(line.masses)[1] == pytest.approx(math.tanh(0.5))


@pytest.mark.parametrize("f", DIVERGENCES, ids=str)
def test_the_common_part_is_erased_without_loss(f):
    """mu(a + c w0, b + c w1) <= mu(a, b) where mu(w0, w1) = 0: what all inputs share is erased without loss."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        k, n = int(rng.integers(2, 6)), int(rng.integers(1, 9))
        problem, lengths = Problem(f, random_pair(rng, k), float(np.exp(rng.normal()))), rng.random(n)
        common = lengths * rng.random(n)
        rest = (lengths - common) * rng.random((k, n))
        with_it, without = (problem.value(Line(lengths, masses)) for masses in (common + rest, rest))
        assert with_it <= without * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("f", DIVERGENCES, ids=str)
def test_windows_are_best_and_move_right(f):
    """Each input's best mass D is one window, no set of cells gains more, and the leftmost ones move right with r_x."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        k, gain = int(rng.integers(2, 6)), float(np.exp(rng.normal()))
        problem = Problem(f, random_pair(rng, k), gain)
        line, ratio = problem.sorted(lay(random_channel(rng, k, gain), gain))
        gains, most = problem.gains(ratio), float(line.lengths.sum() * rng.uniform(0.05, 0.9))
        starts = windows(line, gains, most)
        assert (np.diff(starts) >= -1e-9).all()
        for x, row in enumerate(gains):
            within = np.clip(
                np.minimum(line.edges[1:], starts[x] + most) - np.maximum(line.edges[:-1], starts[x]), 0, 9
            )
            order = np.argsort(-row)
            before = np.cumsum(line.lengths[order]) - line.lengths[order]
            best = row[order] @ np.clip(most - before, 0, line.lengths[order])
            assert row @ within == pytest.approx(best, abs=1e-10 * (1 + np.abs(row).max()))


def test_windows_that_cross_are_no_blocks():
    """The step needs gains with increasing differences: with others windows move left, and blocks have holes."""
    line, gains = Line(np.ones(4), np.zeros((3, 4))), np.array([[1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    starts = windows(line, gains, 1.0)
    assert starts.tolist() == [0.0, 3.0, 0.0]


def test_a_comb_turns_windows_into_partitions():
    """Every offset of the comb is a partition into neighbours; their columns are those of the windows, D in all."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        k, most = int(rng.integers(2, 7)), float(rng.uniform(0.1, 2))
        starts = np.sort(rng.choice([rng.random(k) * 5, rng.integers(0, 4, k) * most]))
        parts = comb(starts, most)
        assert sum(length for length, _ in parts) == pytest.approx(most)
        pieces = {}
        for length, cuts in parts:
            assert length > 0
            assert cuts[0] == 0 < cuts[1]
            assert cuts[-1] == k
            assert all(a < b for a, b in itertools.pairwise(cuts))
            for block in itertools.pairwise(cuts):
                pieces[block] = pieces.get(block, 0.0) + length
        edges = np.unique(np.concatenate([starts, starts + most]))
        for low, high in itertools.pairwise(edges.tolist()):
            inside = np.flatnonzero((starts <= low) & (starts + most >= high))
            if len(inside):
                block = (int(inside[0]), int(inside[-1]) + 1)
                assert len(inside) == block[1] - block[0]
                pieces[block] -= high - low
        assert all(abs(left) < 1e-9 for left in pieces.values())


def test_intervals_are_totally_unimodular():
    """Every minor of the matrix of all intervals is -1, 0 or 1; with three pairs of three inputs one is 2.

    So vertices of {theta >= 0 : each input is in intervals of total 1} are partitions, for any worth of intervals.
    """
    k = 5
    inside = np.array([[a <= x < b for a, b in itertools.combinations(range(k + 1), 2)] for x in range(k)], dtype=float)
    for size in (2, 3):
        for rows in itertools.combinations(range(k), size):
            for columns in itertools.combinations(range(inside.shape[1]), size):
                assert round(abs(np.linalg.det(inside[np.ix_(rows, columns)]))) <= 1
    assert round(abs(np.linalg.det(1 - np.eye(3)))) == 2
    rng = np.random.default_rng(8)
    for _ in range(100):
        found = linprog(-rng.random(inside.shape[1]), A_eq=inside, b_eq=np.ones(k), method="highs-ds")
        assert set(found.x.round(9)) <= {0.0, 1.0}


@pytest.mark.full(but=2)
@pytest.mark.parametrize("seed", range(6))
def test_the_steps_of_the_proof_hold_for_any_channel(seed):
    """From any channel, by the steps of the proof, to partitions and erasure that keep no less with no larger distance.

    Half of the times the distance is that of Kolmogorov. No channel keeps more than the envelope at its distance.
    """
    rng = np.random.default_rng([seed, 9])
    for _ in range(100):
        k, gain = int(rng.integers(2, 6)), float(np.exp(rng.normal()))
        f, pair = DIVERGENCES[rng.integers(len(DIVERGENCES))], random_pair(rng, k)
        matrix = random_channel(rng, k, gain)
        line, _ = Problem(f, pair, gain).sorted(lay(matrix, gain))
        most = distances(line.masses)[rng.integers(2)]
        made = prove(f, pair, matrix, gain, most)
        room = 1e-10 * max(made.values) + 1e-14
        assert all(before <= after + room for before, after in itertools.pairwise(made.values))
        assert made.values[3] == pytest.approx(made.values[4], abs=room)  # the windows, and the mixture
        assert made.backward <= 1e-9
        assert sum(share for share, _ in made.mixture) <= 1 + 1e-9
        assert made.variation <= gain * most * (1 + 1e-9)
        assert made.values[4] <= envelope_at(partition_points(f.excess, pair.p0, pair.p1, gain), gain * most) + room


def hostile(rng):
    """A small instance: hypotheses, E - 1 and eta, at kinks of the envelope and at either end too."""
    pair, gain = random_pair(rng, int(rng.integers(2, 6))), math.expm1(float(np.exp(rng.uniform(-4, 2))))
    reach = gain / (gain + 2)
    return pair, gain, float(reach * rng.choice([rng.random(), 1e-6, 1.0, (gain + 2) / (gain + rng.integers(2, 6))]))


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(3))
def test_the_theorem_agrees_with_the_pattern_program(seed):
    """The envelope over partitions, all listed, is the optimum of the linear program over all sets of inputs."""
    rng = np.random.default_rng([seed, 10])
    for _ in range(250):
        pair, gain, eta = hostile(rng)
        f = DIVERGENCES[rng.integers(len(DIVERGENCES))]
        envelope = envelope_at(partition_points(f.excess, pair.p0, pair.p1, gain), eta)
        program = pattern_optimum(f.excess, pair.p0, pair.p1, gain, eta)
        assert program == pytest.approx(envelope, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_any_sublinear_utility_of_any_measures(seed):
    """Bayes risk with any prior, and any largest of planes, of measures of any size: the same theorem."""
    rng = np.random.default_rng([seed, 11])
    for _ in range(150):
        pair, gain, eta = hostile(rng)
        p0, p1 = pair.p0 * rng.choice([1.0, rng.uniform(0.1, 3)]), pair.p1
        prior = rng.random()
        planes = rng.normal(size=(rng.integers(2, 6), 2)) if rng.random() < 0.5 else -np.diag([prior, 1 - prior])

        # Less what an erased report is worth, which a linear functional takes off all.
        base = planes[np.argmax(planes @ [p0.sum(), p1.sum()])]

        def worth(a, b, planes=planes, base=base):
            return (np.multiply.outer(a, planes[:, 0] - base[0]) + np.multiply.outer(b, planes[:, 1] - base[1])).max(-1)

        envelope = envelope_at(partition_points(worth, p0, p1, gain), eta)
        assert pattern_optimum(worth, p0, p1, gain, eta) == pytest.approx(envelope, rel=1e-9, abs=1e-13)


def test_bayes_risk_is_certified_as_a_divergence():
    """What a decision gains over the prior alone is an f-divergence of one's own, certified under a cap like others."""
    prior = 0.45
    f = FDivergence(
        lambda t: np.maximum(-prior * t, prior - 1) + min(prior, 1 - prior),
        derivative=lambda t: np.where(prior * t < 1 - prior, -prior, 0.0),
        name="Bayes risk",
    )
    p0, p1 = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    for eta in (0.1, 0.3, 0.45):
        design = optimal_channel(Divergence(f, p0, p1), [LocalDP(1.0), TotalVariation(eta)])
        points = partition_points(f.excess, p0[::-1], p1[::-1], math.e - 1)
        assert design.value == pytest.approx(envelope_at(points, eta), rel=1e-8)
        assert design.certified


def test_the_envelope_does_not_fall():
    """KL of (.6, .3, .1) and (.1, .3, .6) at epsilon = 2 under eta = tanh 1: 0.367979, not V_2/(e^2+1) = 0.351436."""
    p0, p1 = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    gain, eta = math.expm1(2.0), math.tanh(1.0)
    points = partition_points(KL.excess, p0[::-1], p1[::-1], gain)
    assert points[0] == (pytest.approx(eta, rel=1e-15), pytest.approx(0.351436, abs=5e-7))
    assert envelope_at(points, eta) == pytest.approx(0.367979, abs=5e-7)
    assert pattern_optimum(KL.excess, p0[::-1], p1[::-1], gain, eta) == pytest.approx(0.367979, abs=5e-7)
    design = optimal_channel(Divergence(KL, p0, p1), [LocalDP(2.0), TotalVariation(eta)])
    assert design.value == pytest.approx(0.367979, abs=5e-7)
    assert float(design.guarantees[1]) < eta - 0.05


@pytest.mark.full(but=1)
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_linear_up_to_the_best_number_of_blocks(seed):
    """OPT is linear in eta up to (E-1)/(E+m*-1), m* the best m without a price, and strictly below the line beyond."""
    rng = np.random.default_rng([seed, 12])
    for _ in range(60):
        pair, gain, _ = hostile(rng)
        f = DIVERGENCES[rng.integers(len(DIVERGENCES))]
        points = partition_points(f.excess, pair.p0, pair.p1, gain)
        worths = [height * (gain + m) for m, (_, height) in enumerate(points, 2)]
        most = max(m for m, worth in enumerate(worths, 2) if worth >= max(worths) * (1 - 1e-12))
        last = max(m for m, worth in enumerate(worths, 2) if worth <= worths[most - 2])
        edge = gain / (gain + most)
        slope = max(worths) / gain
        for share in (0.01, 0.4, 1.0):
            optimum = pattern_optimum(f.excess, pair.p0, pair.p1, gain, share * edge)
            assert optimum == pytest.approx(slope * share * edge, rel=1e-9, abs=1e-17)
        first = min(m for m, worth in enumerate(worths, 2) if worth >= max(worths) * (1 - 1e-9))
        beyond = min(1.02 * gain / (gain + first), gain / (gain + 2))
        if first > 2 and last:
            optimum = pattern_optimum(f.excess, pair.p0, pair.p1, gain, beyond)
            assert optimum < slope * beyond


def test_total_variation_needs_two_blocks_only():
    """[GI, Thm 5] Binary with erasure is the optimum for total variation, and not for KL, whose optimum has more."""
    p0, p1 = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    caps = [LocalDP(2.0), TotalVariation(0.4)]
    binary = binary_with_erasure(p0, p1, 2.0, 0.4)
    for f, optimal in ((TOTAL_VARIATION, True), (KL, False)):
        kept = f(binary.push(p0), binary.push(p1))
        assert (kept >= optimal_channel(Divergence(f, p0, p1), caps).value * (1 - 1e-9)) is optimal


@pytest.mark.full(but=4)
@pytest.mark.parametrize("f", DIVERGENCES, ids=str)
def test_three_proofs_agree(f):
    """Potentials, staircase patterns and minimum cuts bound one optimum under a cap, each without the others."""
    rng = np.random.default_rng(13)
    p0, p1 = rng.dirichlet(np.ones(9), 2)
    for epsilon, eta in ((0.7, 0.1), (2.0, 0.6)):
        proofs = [(Partition(), EnvelopeDual), (PatternLP(), PatternDual)]
        for method, kind in proofs:
            design = optimal_channel(Divergence(f, p0, p1), [LocalDP(epsilon), TotalVariation(eta)], method=method)
            assert isinstance(design.certificate, kind)
            if kind is EnvelopeDual:
                first = design
            assert design.upper_bound >= first.value * (1 - 1e-12)
            assert design.upper_bound == pytest.approx(first.value, rel=1e-6)
            assert design.value <= first.upper_bound


@pytest.mark.parametrize("k", [17, 100, 1000])
def test_any_size_is_certified_to_ten_digits(k):
    """Under every cap, kinks included, the potentials leave a relative gap of at most 1e-10."""
    p0, p1 = np.random.default_rng(k).dirichlet(np.ones(k), 2)
    for eta in (0.1, math.expm1(2.0) / (math.exp(2.0) + 3), 0.7):
        design = optimal_channel(Divergence(KL, p0, p1), [LocalDP(2.0), TotalVariation(eta)])
        assert isinstance(design.certificate, EnvelopeDual)
        assert design.relative_gap <= 1e-10


@pytest.mark.parametrize("eta", [0.3])
def test_gaussians_are_bracketed_to_six_digits(eta):
    """N(0, 1) against N(1, 1) under a cap: the merged answers and the points that dominate agree to 1e-6."""
    utility = Divergence(KL, stats.norm(0, 1), stats.norm(1, 1))
    design = optimal_channel(utility, [LocalDP(1.0), TotalVariation(eta)])
    assert isinstance(design.certificate, EnvelopeDual)
    assert design.relative_gap <= 1e-6
    assert float(design.guarantees[1]) <= eta
