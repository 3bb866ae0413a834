"""The hypotheses are drawn in the order of their ratio, with the blocks of the channel."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from ldpopt import Channel, Divergence, InvalidInput, LocalDP, optimal_channel, plots
from ldpopt.divergences import KL
from ldpopt.mechanisms import sort_partition_randomize

P0, P1 = [0.2, 0.5, 0.3], [0.5, 0.2, 0.3]
UTILITY = Divergence(KL, P0, P1, inputs=["a", "b", "c"])


def test_answers_are_sorted_by_their_likelihood_ratio():
    """From top to bottom the ratio P0/P1 rises, and every bar has its answer's probability."""
    ax = plots.blocks(UTILITY, np.full((3, 1), 1.0))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "2", "1"]
    first, second = ([bar.get_width() for bar in bars] for bars in ax.containers)
    assert first == [0.2, 0.3, 0.5]
    assert second == [0.5, 0.3, 0.2]
    assert ax.yaxis.get_inverted()


def test_bands_are_the_blocks_of_the_channel():
    """A band for every block that the channel was built from, with the range of its ratios."""
    channel = sort_partition_randomize(P0, P1, 1.0, [[0, 2], [1]], inputs=["a", "b", "c"])
    ax = plots.blocks(UTILITY, channel, names=("left", "right"))
    assert [text.get_text() for text in ax.texts] == ["block 0\nP0/P1 0.4 to 1", "block 1\nP0/P1 = 2.5"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P0: left", "P1: right"]


def test_a_design_brings_its_own_channel():
    """A design is drawn with its own channel and labels; for continuous hypotheses with their intervals."""
    design = optimal_channel(UTILITY, LocalDP(1.0))
    ax = plots.blocks(design)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "c", "b"]
    gauss = optimal_channel(Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), LocalDP(1.0))
    intervals = [label.get_text() for label in plots.blocks(gauss).get_yticklabels()]
    assert sorted(intervals) == sorted(gauss.channel.inputs)


def test_answers_that_never_occur_have_no_ratio():
    """An answer outside both supports is drawn last and says so; a ratio may be infinite."""
    utility = Divergence(KL, [0.5, 0.5, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0])
    ax = plots.blocks(utility, np.eye(4))
    assert ax.texts[-1].get_text() == "block 3\nnever occurs"
    utility = Divergence(KL, [0.5, 0.5], [1.0, 0.0])
    assert plots.blocks(utility, np.eye(2)).texts[-1].get_text() == "block 1\nP0/P1 = inf"


def test_narrow_blocks_do_not_write_over_each_other():
    """Among 300 answers, blocks of two answers have their texts below one another."""
    p0 = np.random.default_rng(1).dirichlet(np.ones(300))
    utility = Divergence(KL, p0, np.full(300, 1 / 300))
    block = np.minimum(np.argsort(np.argsort(p0)) // 2, 9)
    ax = plots.blocks(utility, np.eye(10)[block])
    plots.picture(ax)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 10
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(boxes))


def test_a_large_alphabet_is_drawn_as_outlines():
    """Ten thousand answers are two outlines, without labels for each."""
    p0 = np.random.default_rng(0).dirichlet(np.ones(10_000))
    ax = plots.blocks(Divergence(KL, p0, p0[::-1]), np.full((10_000, 1), 1.0))
    assert not ax.containers
    assert len(ax.get_yticklabels()) < 50


def test_channels_that_do_not_fit_are_refused():
    """A channel of another size, none at all, and continuous hypotheses without a design are errors."""
    with pytest.raises(InvalidInput, match="3 rows"):
        plots.blocks(UTILITY, Channel(np.eye(2)))
    with pytest.raises(InvalidInput, match="channel not given"):
        plots.blocks(UTILITY)
    with pytest.raises(InvalidInput, match="finitely many"):
        plots.blocks(Divergence(KL, stats.norm(0, 1), stats.norm(1, 1)), np.eye(2))
