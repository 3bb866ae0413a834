"""Variances of linear functions of the reports, from a simple or a complex sample, by linearisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpopt.channel import Label
from ldpopt.distribution import Array
from ldpopt.errors import invalid
from ldpopt.survey.estimate.counts import CountTable


@dataclass(frozen=True)
class SamplingVariance:
    """The covariance (r, r) of r linear functions, and the degrees of freedom it rests on (inf if simple)."""

    covariance: Array
    degrees: float


def sampling_variance(parts: Sequence[tuple[CountTable, Array]]) -> SamplingVariance:
    """Covariance of sum_i l_i f_i, for tables with frequencies f_i and loadings l_i of shape (r, m_i).

    A simple sample: (l diag(f) l^T - t t^T) / n. Otherwise the with-replacement linearised variance of a ratio
    of weighted totals: within each stratum, n_h / (n_h - 1) times the scatter of the totals of its primary units
    [SSW, section 5.5]. Units are clusters, or respondents where there are
    none. Clusters of the same stratum and name in several tables are one unit, so the covariance between
    groups that share clusters is counted. A stratum with a single unit is `InvalidInput`.
    """
    r = parts[0][1].shape[0]
    simple = all(table.simple for table, _ in parts)
    scatter: dict[Label, Array] = {}
    totals: dict[Label, dict[Label, Array]] = {}
    singles: dict[Label, list[Array]] = {}
    units: dict[Label, int] = {}
    covariance = np.zeros((r, r))
    for table, loadings in parts:
        f = table.frequencies
        centred = loadings - (loadings @ f)[:, None]
        if simple:
            covariance += (centred * f) @ centred.T / table.n
            continue
        influence = centred / table.total_weight
        for (stratum, cluster), counts, weights, squares in zip(
            table.keys, table.counts, table.weights, table.squares, strict=True
        ):
            if cluster is None:
                scatter[stratum] = scatter.get(stratum, np.zeros((r, r))) + (influence * squares) @ influence.T
                singles.setdefault(stratum, []).append(influence @ weights)
                units[stratum] = units.get(stratum, 0) + int(counts.sum())
            else:
                inside = totals.setdefault(stratum, {})
                inside[cluster] = inside.get(cluster, np.zeros(r)) + influence @ weights
    if simple:
        return SamplingVariance(covariance, math.inf)
    degrees = 0
    for stratum in dict.fromkeys([*units, *totals]):
        clusters = np.array(list(totals.get(stratum, {}).values())).reshape(-1, r)
        count = units.get(stratum, 0) + len(clusters)
        if count == 0:
            continue
        if count == 1:
            raise invalid(
                "strata", "at least two clusters or respondents in each (merge a stratum that has one)", repr(stratum)
            )
        mean = (clusters.sum(axis=0) + np.sum(singles.get(stratum, [np.zeros(r)]), axis=0)) / count
        inner = scatter.get(stratum, np.zeros((r, r))) + clusters.T @ clusters - count * np.outer(mean, mean)
        covariance += count / (count - 1) * inner
        degrees += count - 1
    return SamplingVariance(covariance, float(degrees))
