"""Several waves of one survey, each through its own channel: all their reports in one estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpopt.channel import Channel, ChannelLike, as_channel
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.counts import CountTable, as_table
from ldpopt.survey.estimate.estimate import Estimate, estimate
from ldpopt.survey.estimate.linear import Estimator


def pooled_channel(channels: Sequence[ChannelLike], sizes: Sequence[float]) -> Channel:
    """The channel of a respondent of any wave: outputs (wave, report), waves in proportion to their `sizes`.

    channels : for the same k inputs, perhaps with different outputs. A wave may leave some inputs unidentified, if the
    waves together identify them. `InvalidInput` for different inputs.

    >>> pooled_channel([[[0.8, 0.2], [0.2, 0.8]], [[0.6, 0.4], [0.4, 0.6]]], [100, 300]).matrix
    array([[0.2 , 0.05, 0.45, 0.3 ],
           [0.05, 0.2 , 0.3 , 0.45]])
    """
    known = [as_channel(channel) for channel in channels]
    if not known or len(sizes) != len(known) or not min(sizes) >= 0 or not sum(sizes) > 0:
        raise invalid("waves", "one or more, each with a size that is not negative", Phrase(f"{len(known)}"))
    for channel in known[1:]:
        if channel.inputs != known[0].inputs:
            raise invalid("waves", f"channels of the same answers {known[0].inputs[:8]}", channel.inputs[:8])
    shares = np.asarray(sizes, dtype=np.float64) / sum(sizes)
    outputs = tuple((wave, label) for wave, channel in enumerate(known, 1) for label in channel.outputs)
    matrix = np.hstack([share * channel.matrix for share, channel in zip(shares, known, strict=True)])
    return Channel(matrix, known[0].inputs, outputs)


def estimate_waves(waves: Sequence[tuple[Any, ChannelLike]], estimator: Estimator | None = None) -> Estimate:
    """The `Estimate` from several waves or random groups of simple samples of one population [Rao, chapter 5].

    waves : pairs of reports (or counts) and the channel that they went through.

    The likelihood of all reports is that of one channel with the wave as a part of the report; so is the efficient
    linear estimate, in which a wave counts by its information, and whose mean in every wave is the true one. A second
    wave's channel may have been designed from the first: given the first wave, its reports are as random as ever.
    `InvalidInput` for other answers, and samples with a design (weight their estimates instead).

    >>> estimate_waves([({0: 40, 1: 60}, [[0.8, 0.2], [0.2, 0.8]]), ({0: 90, 1: 110}, [[0.7, 0.3], [0.3, 0.7]])])
    Estimate of 2 proportions from 300 reports, generalised least squares
              estimate         se  95 % score interval
    0         ...
    1         ...
    """
    tables = [as_table(data, channel) for data, channel in waves]
    if not all(isinstance(table, CountTable) and table.simple for table in tables):
        raise invalid("waves", "simple samples", Phrase("one with a design"))
    channel = pooled_channel([channel for _, channel in waves], [table.n for table in tables])
    counts = np.concatenate([table.totals for table in tables])
    found = estimate(CountTable.from_counts(counts, channel.outputs), channel, estimator)
    return replace(found, loadings=_centred(found.loadings, [table.totals for table in tables]))


def _centred(loadings: Array, counts: Sequence[npt.NDArray[np.int64]]) -> Array:
    """The loadings with the same mean in every wave, which makes the variance that of waves of fixed sizes.

    Constants for the waves that average to zero leave a left inverse a left inverse, and the estimate where it is.
    """
    made, at, whole = loadings.copy(), 0, np.concatenate(counts)
    mean = loadings @ whole / whole.sum()
    for wave in counts:
        here = slice(at, at + len(wave))
        if wave.sum():
            made[:, here] -= (loadings[:, here] @ wave / wave.sum() - mean)[:, None]
        at += len(wave)
    return made
