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
    """One channel for the respondents of all waves. Its outputs are pairs (wave, report).

    channels : one (k, m) channel for each wave, with the same k inputs and perhaps different outputs. A single wave
        need not identify all inputs, as long as the waves together do.
    sizes : the numbers of respondents in the waves; a respondent is in a wave with probability proportional to its
        size.

    `InvalidInput` for different inputs.

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

    All reports are treated as those of one channel whose output is the wave together with the report. In the estimate
    each wave has the weight that its information deserves. The channel of a second wave may depend on the reports of
    the first, since the randomness of the second wave is independent of them. `InvalidInput` for channels with
    different answers, and for samples with a design (average their estimates instead).

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
    """The loadings shifted to have the same mean in every wave, so that their variance is for waves of fixed sizes.

    The shifts average to zero over the waves. So the loadings remain a left inverse, and the estimate does not change.
    """
    made, at, whole = loadings.copy(), 0, np.concatenate(counts)
    mean = loadings @ whole / whole.sum()
    for wave in counts:
        here = slice(at, at + len(wave))
        if wave.sum():
            made[:, here] -= (loadings[:, here] @ wave / wave.sum() - mean)[:, None]
        at += len(wave)
    return made
