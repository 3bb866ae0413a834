"""Surveys: estimates with honest errors from privatized reports."""

from ldpopt.survey.bootstrap import Bootstrap, parametric_bootstrap
from ldpopt.survey.counts import CountTable, merge
from ldpopt.survey.estimate import Estimate, estimate, estimate_contrasts
from ldpopt.survey.groups import Difference, difference, tables_by_group
from ldpopt.survey.hypothesis_tests import (
    Power,
    TestResult,
    goodness_of_fit,
    goodness_of_fit_power,
    respondents_for_power,
    two_sample,
    two_sample_power,
)
from ldpopt.survey.intervals import Intervals, Score, Wald
from ldpopt.survey.likelihood import MaximumLikelihood
from ldpopt.survey.linear import (
    GeneralizedLeastSquares,
    LeastSquares,
    LeftInverse,
    NotIdentifiable,
    asymptotic_covariance,
    estimable_contrasts,
    fisher_information,
)
from ldpopt.survey.project import Projection, norm_sub, simplex_projection
from ldpopt.survey.regression import LogisticRegression, logistic_regression, with_constant
from ldpopt.survey.simultaneous import Bonferroni, Simultaneous
from ldpopt.survey.tables import TwoWayTable, independence_power, two_way, two_way_from_counts
from ldpopt.survey.two_hypotheses import chernoff_exponent, neyman_pearson_power, stein_exponent

__all__ = [
    "Bonferroni",
    "Bootstrap",
    "CountTable",
    "Difference",
    "Estimate",
    "GeneralizedLeastSquares",
    "Intervals",
    "LeastSquares",
    "LeftInverse",
    "LogisticRegression",
    "MaximumLikelihood",
    "NotIdentifiable",
    "Power",
    "Projection",
    "Score",
    "Simultaneous",
    "TestResult",
    "TwoWayTable",
    "Wald",
    "asymptotic_covariance",
    "chernoff_exponent",
    "difference",
    "estimable_contrasts",
    "estimate",
    "estimate_contrasts",
    "fisher_information",
    "goodness_of_fit",
    "goodness_of_fit_power",
    "independence_power",
    "logistic_regression",
    "merge",
    "neyman_pearson_power",
    "norm_sub",
    "parametric_bootstrap",
    "respondents_for_power",
    "simplex_projection",
    "stein_exponent",
    "tables_by_group",
    "two_sample",
    "two_sample_power",
    "two_way",
    "two_way_from_counts",
    "with_constant",
]
