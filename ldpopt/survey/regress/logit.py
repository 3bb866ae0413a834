"""Logistic and multinomial regression by the likelihood of the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldpopt.channel import Channel, ChannelLike, Label, as_channel
from ldpopt.distribution import Array
from ldpopt.errors import Phrase, invalid
from ldpopt.survey.estimate.encode import positions
from ldpopt.survey.estimate.linear import require_identifiable
from ldpopt.survey.regress.design import numbers_of, public_column, regressors
from ldpopt.survey.regress.formula import parse_formula
from ldpopt.survey.regress.likelihood import CellLikelihood
from ldpopt.survey.regress.result import Regression
from ldpopt.survey.regress.sampling import Sample, sampled


def logit_regression(
    formula: str,
    data: Any,
    channels: Mapping[str, ChannelLike],
    reference: Label = None,
    weights: Any = None,
    strata: Any = None,
    clusters: Any = None,
    sample: Sample | None = None,
) -> Regression:
    """Logistic or multinomial regression, when the outcome or predictors are private [VHG].

    Parameters
    ----------
    formula : such as ``evade ~ age + C(region) + age:sex``. Text columns are factors, number columns are numbers.
    data : the columns by name, each (n,), as a mapping or a data frame. Private columns hold reports.
    channels : the channel of each private column. All other columns are public.
    reference : the category with which the log-odds of the others are compared; the first by default.
    weights, strata, clusters : (n,), for a complex sample.
    sample : a `SampleDesign`, or a `Subsample` of one for a subgroup, instead of these three.

    The coefficients maximise the likelihood of the reports. The unknown private predictors are summed over; their own
    model is a multinomial logit in the public predictors [BIZ]. For a simple sample the covariance is the inverse of
    the information. Otherwise the scores are weighted, and the variance of their total is that of the sample
    (pseudo-likelihood) [SSW]. The reports of one person must have been made independently of one another.

    Raises `InvalidInput` for a formula or columns that do not fit, `NotIdentifiable` for a channel that does not
    determine the answers, and `SolverError` if the likelihood has no finite maximum.

    >>> data = {"evade": [0, 0, 0, 1, 0, 1, 1, 1], "group": list("aaaabbbb")}
    >>> logit_regression("evade ~ group", data, {"evade": [[0.9, 0.1], [0.1, 0.9]]}).kind
    'logistic'
    """
    asked = parse_formula(formula)
    known = {name: as_channel(channel) for name, channel in channels.items()}
    told, outcome = _outcome(data, asked.outcome, known.get(asked.outcome))
    n = len(outcome)
    for name in (asked.outcome, *asked.columns):
        if name in known:
            require_identifiable(known[name])
    answers, labels = _from_reference(told, reference)
    design = regressors(asked, data, known, n)
    drawn = sampled(weights, strata, clusters, sample, n)
    made = CellLikelihood(design, answers, outcome, np.ones(n) if drawn is None else drawn.weights)
    if n <= made.split:
        raise invalid("data", f"more respondents than the {made.split} coefficients", n)
    found = made.fit()
    degrees, likelihood = math.inf, None
    if drawn is None:
        covariance, likelihood = _inverse(found.information), found.log_likelihood
    else:
        influence = found.scores @ _inverse(found.information)
        total = drawn.total_variance(influence)
        covariance, degrees = total.covariance, total.degrees
    split = made.split
    return Regression(
        formula,
        "logistic" if len(labels) == 2 else "multinomial",
        design.names,
        labels[1:],
        labels[0],
        found.coefficients[:split].reshape(len(labels) - 1, -1),
        np.asarray(covariance)[:split, :split],
        n,
        degrees,
        design.levels,
        likelihood,
    )


def _outcome(data: Any, name: str, channel: Channel | None) -> tuple[Channel, Any]:
    """The channel of the outcome (the identity if it is public), and the position of every report among its outputs."""
    if channel is not None:
        return channel, positions(data[name], channel.outputs)
    n = len(next(iter(data.values()))) if isinstance(data, Mapping) else len(data)
    code, kinds = public_column(data, name, n)
    numbers = numbers_of(kinds)
    order = sorted(range(len(kinds)), key=lambda at: str(kinds[at]) if numbers is None else numbers[at])
    if not 2 <= len(kinds) <= 50:
        raise invalid(f"outcome {name!r}", "2 to 50 categories (linear_regression is for numbers)", len(kinds))
    place = np.argsort(order)
    return Channel(np.eye(len(kinds)), [kinds[at] for at in order]), np.asarray(place[code], dtype=np.intp)


def _from_reference(answers: Channel, reference: Label) -> tuple[Array, tuple[Label, ...]]:
    """The rows of the channel and their labels, with the reference first."""
    labels = list(answers.inputs)
    at = 0
    if reference is not None:
        known = [place for place, label in enumerate(labels) if label == reference or str(label) == reference]
        if len(known) != 1:
            raise invalid("reference", f"one of the categories {tuple(labels[:8])}", reference)
        at = known[0]
    order = [at, *(place for place in range(len(labels)) if place != at)]
    return answers.matrix[order], tuple(labels[place] for place in order)


def _inverse(information: Array) -> Array:
    scale = np.sqrt(np.diag(information))
    if not (scale > 0).all():
        raise invalid("regression", "reports that say something about every coefficient", Phrase("reports that do not"))
    scaled = information / np.outer(scale, scale)
    if not np.linalg.cond(scaled) < 1e13:
        raise invalid("regression", "reports that tell the coefficients apart", Phrase("a singular information"))
    return np.asarray(np.linalg.inv(scaled) / np.outer(scale, scale))
