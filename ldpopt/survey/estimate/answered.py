"""Shares among the people who answered, when one category of the channel stands for "no answer"."""

from __future__ import annotations

import numpy as np

from ldpopt.channel import Label
from ldpopt.errors import invalid
from ldpopt.survey.estimate.estimate import Estimate


def among_answered(found: Estimate, missing: Label) -> Estimate:
    """The shares p_x / (1 - p_missing) of the other categories, a ratio linearised at the estimate [SSW, section 5.6].

    found : an estimate of all shares, for a simple or a weighted sample. missing : the label of the category that
        stands for "no answer".

    Raises `InvalidInput` if there is no such category, if there are fewer than two others, or if the estimated share of
    people who answered is not positive.

    >>> from ldpopt.survey import estimate
    >>> channel = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> made = among_answered(estimate([31, 38, 31], channel), 2)
    >>> made.labels, made.values.round(4)
    ((0, 1), array([0.4286, 0.5714]))
    """
    if missing not in found.labels or len(found.labels) < 3:
        raise invalid("missing", f"one of three or more categories {found.labels[:8]}", missing)
    at = found.labels.index(missing)
    others = np.arange(len(found.labels)) != at
    answered = float(found.values[others].sum())
    if not answered > 0:
        raise invalid("missing", "an estimate in which some answered", f"{answered:.4g} of all")
    shares = found.values[others] / answered
    loadings = found.loadings[others]
    # These loadings are the gradient of the ratio plus the share itself. Frequencies sum to one, so loadings @
    # frequencies gives the shares, and its variance is the variance of the linearised ratio.
    linear = (loadings - np.outer(shares, loadings.sum(axis=0))) / answered + shares[:, None]
    labels = tuple(label for label in found.labels if label != missing)
    held = tuple(label for label in found.boundary if label != missing)
    return Estimate(shares, labels, linear, found.table, found.channel, f"{found.estimator}, among those who answered",
                    held)  # fmt: skip
