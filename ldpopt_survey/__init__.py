"""Surveys: plan the questions, privatize the answers, count the reports, estimate with honest errors."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ldpopt.extras import load_with
from ldpopt.values.references import cite_with
from ldpopt_survey import plan
from ldpopt_survey.collect.aggregate import Counts, ReportRows, aggregate, read_rows
from ldpopt_survey.collect.batch import privatize_frame
from ldpopt_survey.collect.privatize import privatize
from ldpopt_survey.collect.randomness import Fresh, Memoised, Simulated
from ldpopt_survey.estimate.counts import CountTable, merge
from ldpopt_survey.estimate.estimate import Estimate, estimate, estimate_contrasts
from ldpopt_survey.estimate.groups import Difference, difference, estimate_waves, pooled_channel, tables_by_group
from ldpopt_survey.estimate.intervals import Binomial, Bonferroni, Simultaneous, Wald
from ldpopt_survey.estimate.likelihood import Bootstrap, MaximumLikelihood, parametric_bootstrap
from ldpopt_survey.estimate.linear import (
    GeneralizedLeastSquares,
    LeastSquares,
    LeftInverse,
    NotIdentifiable,
    asymptotic_covariance,
    estimable_contrasts,
    fisher_information,
)
from ldpopt_survey.estimate.noncompliance import (
    CHEATS,
    Compliance,
    Ratio,
    compliance_groups,
    directed_answers,
    estimate_compliance,
    repeated,
    with_cheaters,
)
from ldpopt_survey.estimate.numbers import Quantile, among_answered, mean, population_total, quantile
from ldpopt_survey.estimate.results import Intervals, Projection, norm_sub, simplex_projection
from ldpopt_survey.estimate.sampled import SampledReports
from ldpopt_survey.estimate.tables import ThreeWayTable, TwoWayTable, independence_power, two_way, two_way_from_counts
from ldpopt_survey.hypothesis_tests import (
    Power,
    TestResult,
    goodness_of_fit,
    goodness_of_fit_power,
    respondents_for_power,
    two_sample,
    two_sample_power,
)
from ldpopt_survey.kit.device import Device
from ldpopt_survey.kit.folder import kit_files
from ldpopt_survey.paper.design import PaperDevice, PaperSurvey, device_named, paper_survey
from ldpopt_survey.paper.entry import enter_reports
from ldpopt_survey.plan.budget import Budget, Needed, Split, split_budget
from ldpopt_survey.plan.numbers_and_sets import MultiSelect, NumericQuestion, multi_select, numeric_question
from ldpopt_survey.plan.plan import Plan, make_plan
from ldpopt_survey.plan.planned_question import PlannedQuestion
from ldpopt_survey.plan.precision import HalfWidth, TestPower, Together
from ldpopt_survey.plan.propose import Proposal, ProposedQuestion, Wishes, propose
from ldpopt_survey.plan.protocols import ProtocolTable, compare_protocols
from ldpopt_survey.plan.public_question import PublicQuestion
from ldpopt_survey.plan.question import QuestionPlanner
from ldpopt_survey.plan.reading import Reading
from ldpopt_survey.plan.spec import QuestionSpec, SurveySpec, question_types
from ldpopt_survey.plan.survey import PlannedSurvey, plan_survey, respondents_needed
from ldpopt_survey.plan.two_stage import (
    TwoStagePlan,
    advise_stages,
    pilot_shares,
    plan_two_stages,
    second_channel,
    second_spec,
)
from ldpopt_survey.regress.logit import logistic_regression, logit_regression, with_constant
from ldpopt_survey.regress.moments import linear_regression, logit_by_moments
from ldpopt_survey.regress.result import Regression, Subsample
from ldpopt_survey.sample.analysis import Analysis, Findings
from ldpopt_survey.sample.design import Linearization, LonelyUnit, SampleDesign, SamplingVariance
from ldpopt_survey.sample.replicates import GivenReplicates, Jackknife, RescaledBootstrap, post_stratify, rake, trim
from ldpopt_survey.sample.respondents import Respondents
from ldpopt_survey.sample.spec import Condition, SampleSpec
from ldpopt_survey.survey import Survey
from ldpopt_survey.two_hypotheses import (
    Enough,
    chernoff_exponent,
    neyman_pearson_power,
    respondents_to_tell,
    stein_exponent,
)

__all__ = [
    "CHEATS", "Analysis", "Binomial", "Bonferroni", "Bootstrap", "Budget", "Compliance", "Condition", "CountTable",
    "Counts", "Device", "Difference", "Enough", "Estimate", "Findings", "Fresh", "GeneralizedLeastSquares",
    "GivenReplicates", "HalfWidth", "Intervals", "Jackknife", "LeastSquares", "LeftInverse", "Linearization",
    "LonelyUnit", "MaximumLikelihood", "Memoised", "MultiSelect", "Needed", "NotIdentifiable", "NumericQuestion",
    "PaperDevice", "PaperSurvey", "Plan", "PlannedQuestion", "PlannedSurvey", "Power", "Projection", "Proposal",
    "ProposedQuestion", "ProtocolTable", "PublicQuestion", "Quantile", "QuestionPlanner", "QuestionSpec", "Ratio",
    "Reading", "Regression", "ReportRows", "RescaledBootstrap", "Respondents", "SampleDesign", "SampleSpec",
    "SampledReports", "SamplingVariance", "Simulated", "Simultaneous", "Split", "Subsample", "Survey", "SurveySpec",
    "TestPower", "TestResult", "ThreeWayTable", "Together", "TwoStagePlan", "TwoWayTable", "Wald", "Wishes",
    "advise_stages",
    "aggregate", "among_answered", "asymptotic_covariance", "chernoff_exponent", "compare_protocols",
    "compliance_groups", "device_named", "difference", "directed_answers", "enter_reports", "estimable_contrasts",
    "estimate", "estimate_compliance", "estimate_contrasts", "estimate_waves", "fisher_information",
    "goodness_of_fit", "goodness_of_fit_power", "independence_power", "kit_files", "linear_regression",
    "logistic_regression", "logit_by_moments", "logit_regression", "make_plan", "mean", "merge", "multi_select",
    "neyman_pearson_power", "norm_sub", "numeric_question", "paper_survey", "parametric_bootstrap", "pilot_shares",
    "plan_survey", "plan_two_stages", "pooled_channel", "population_total", "post_stratify", "privatize",
    "privatize_frame", "propose", "quantile", "rake", "read_rows", "repeated", "respondents_for_power",
    "respondents_needed", "respondents_to_tell", "second_channel", "second_spec", "simplex_projection",
    "split_budget", "stein_exponent", "tables_by_group", "trim", "two_sample", "two_sample_power", "two_way",
    "two_way_from_counts", "with_cheaters", "with_constant",
]  # fmt: skip

_TYPES = question_types(plan)
globals().update(_TYPES)
__all__ += [name for name in _TYPES if name not in __all__]


def _sources(result: Any) -> Iterable[Any] | None:
    """What `ldpopt.cite` asks, once somebody cites."""
    if not type(result).__module__.startswith(f"{__name__}."):
        return None
    found: Iterable[Any] | None = import_module("ldpopt_survey.citations").sources(result)
    return found


cite_with(_sources)
load_with(lambda: import_module("ldpopt_survey.pictures"))
