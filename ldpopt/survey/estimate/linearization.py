"""Variances of linear functions of the reports, from a simple or a complex sample, by linearisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import starmap

import numpy as np

from ldpopt.channel import Label
from ldpopt.distribution import Array
from ldpopt.survey.estimate.counts import CountTable
from ldpopt.survey.estimate.sampled import Part, SampledReports, designed_variance
from ldpopt.survey.sample.strata import SamplingVariance, over_strata

Table = CountTable | SampledReports
"""Reports for estimates: counted, or of single respondents with their design."""


def sampling_variance(parts: Sequence[tuple[Table, Array]]) -> SamplingVariance:
    """Covariance of sum_i l_i f_i, for tables with frequencies f_i and loadings l_i of shape (r, m_i).

    For a simple sample it is (l diag(f) l^T - t t^T) / n.

    For count tables with weights, strata or clusters it is the linearised variance of a ratio of weighted totals, for
    sampling with replacement: within each stratum, n_h / (n_h - 1) times the scatter of the totals of its n_h units
    [SSW, section 5.5]. The units are the clusters, or the respondents if there are no clusters. Clusters of the same
    stratum and name in several tables are one unit, so the covariance between groups that share clusters is counted. A
    stratum with a single unit is `InvalidInput`.

    For reports with a `SampleDesign` the design determines the variance. Different designs are taken as independent
    samples, and the degrees of freedom are then the smallest of theirs.
    """
    counted: list[tuple[CountTable, Array]] = []
    designed: dict[int, list[Part]] = {}
    for table, loadings in parts:
        if isinstance(table, SampledReports):
            designed.setdefault(id(table.design), []).append((table, loadings))
        else:
            counted.append((table, loadings))
    found = [designed_variance(same) for same in designed.values()]
    if counted:
        found.append(_counted_variance(counted))
    if len(found) == 1:
        return found[0]
    return SamplingVariance(np.sum([one.covariance for one in found], axis=0), min(one.degrees for one in found))


def _simple_covariance(table: CountTable, loadings: Array) -> Array:
    """(l diag(f) l^T - t t^T) / n of a simple sample, with t = l f taken off first, so that no digits cancel."""
    f = table.frequencies
    centred = loadings - (loadings @ f)[:, None]
    return np.asarray((centred * f) @ centred.T / table.n)


def _counted_variance(parts: Sequence[tuple[CountTable, Array]]) -> SamplingVariance:
    if all(table.simple for table, _ in parts):
        return SamplingVariance(sum(starmap(_simple_covariance, parts[1:]), _simple_covariance(*parts[0])), math.inf)
    r = parts[0][1].shape[0]
    scatter: dict[Label, Array] = {}
    totals: dict[Label, dict[Label, Array]] = {}
    singles: dict[Label, list[Array]] = {}
    units: dict[Label, int] = {}
    for table, loadings in parts:
        f = table.frequencies
        centred = loadings - (loadings @ f)[:, None]
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
    names = list(dict.fromkeys([*units, *totals]))
    inner, sizes = np.zeros((len(names), r, r)), np.zeros(len(names))
    for h, stratum in enumerate(names):
        clusters = np.array(list(totals.get(stratum, {}).values())).reshape(-1, r)
        sizes[h] = count = units.get(stratum, 0) + len(clusters)
        if count:
            mean = (clusters.sum(axis=0) + np.sum(singles.get(stratum, [np.zeros(r)]), axis=0)) / count
            inner[h] = scatter.get(stratum, np.zeros((r, r))) + clusters.T @ clusters - count * np.outer(mean, mean)
    return over_strata(inner, sizes, names)
