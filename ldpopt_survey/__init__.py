"""Plan surveys, privatize answers, count reports, and estimate with valid confidence intervals.

Modules load when a name is first used: planning needs no estimates, and estimates no solver.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from ldpopt.extras import load_with, offering
from ldpopt.values.references import cite_with

import_module(f"{__name__}.estimate")
del globals()["estimate"]  # the name means the function; a folder takes its name once, when it is loaded

_HOMES = {
    "ldpopt_survey.collect.aggregate": ("Counts", "ReportRows", "aggregate", "read_rows"),
    "ldpopt_survey.collect.batch": ("privatize_frame",),
    "ldpopt_survey.collect.privatize": ("privatize",),
    "ldpopt_survey.collect.randomness": ("Fresh", "Memoized", "Simulated"),
    "ldpopt_survey.collect.remaining": ("RemainingBudget", "within_promises"),
    "ldpopt_survey.estimate.counts": ("CountTable", "merge"),
    "ldpopt_survey.estimate.estimate": ("Estimate", "estimate", "estimate_contrasts"),
    "ldpopt_survey.estimate.groups": (
        "Difference", "difference", "estimate_waves", "pooled_channel", "tables_by_group",
    ),
    "ldpopt_survey.estimate.intervals": ("Binomial", "Bonferroni", "Simultaneous", "Wald"),
    "ldpopt_survey.estimate.likelihood": ("Bootstrap", "MaximumLikelihood", "parametric_bootstrap"),
    "ldpopt_survey.estimate.linear": (
        "GeneralizedLeastSquares", "LeastSquares", "LeftInverse", "NotIdentifiable", "asymptotic_covariance",
        "estimable_contrasts", "fisher_information",
    ),
    "ldpopt_survey.estimate.noncompliance": (
        "CHEATS", "Compliance", "Ratio", "compliance_groups", "directed_answers", "estimate_compliance", "repeated",
        "with_cheaters",
    ),
    "ldpopt_survey.estimate.numbers": ("Quantile", "among_answered", "mean", "population_total", "quantile"),
    "ldpopt_survey.estimate.results": ("Intervals", "Projection", "norm_sub", "simplex_projection"),
    "ldpopt_survey.estimate.sampled": ("SampledReports",),
    "ldpopt_survey.estimate.tables": (
        "ThreeWayTable", "TwoWayTable", "independence_power", "two_way", "two_way_from_counts",
    ),
    "ldpopt_survey.hypothesis_tests": (
        "Power", "TestResult", "goodness_of_fit", "goodness_of_fit_power", "respondents_for_power", "two_sample",
        "two_sample_power",
    ),
    "ldpopt_survey.kit.device": ("Device",),
    "ldpopt_survey.kit.folder": ("kit_files",),
    "ldpopt_survey.paper.design": ("PaperDevice", "PaperSurvey", "device_named", "paper_survey"),
    "ldpopt_survey.paper.entry": ("enter_reports",),
    "ldpopt_survey.plan.budget": ("Budget", "BudgetRequirement", "Split", "split_budget"),
    "ldpopt_survey.plan.number_question": ("NumberSpec",),
    "ldpopt_survey.plan.numbers_and_sets": ("MultiSelect", "NumericQuestion", "multi_select", "numeric_question"),
    "ldpopt_survey.plan.options_question": ("AnyOfSpec",),
    "ldpopt_survey.plan.plan": ("Plan", "make_plan"),
    "ldpopt_survey.plan.planned_question": ("PlannedQuestion",),
    "ldpopt_survey.plan.precision": ("HalfWidth", "RelativeError", "TestPower", "Together"),
    "ldpopt_survey.plan.propose": ("Proposal", "ProposedQuestion", "ProposalOptions", "propose"),
    "ldpopt_survey.plan.protocols": ("ProtocolTable", "compare_protocols"),
    "ldpopt_survey.plan.public_question": ("PublicQuestion",),
    "ldpopt_survey.plan.question": ("QuestionPlanner",),
    "ldpopt_survey.plan.reading": ("Reading",),
    "ldpopt_survey.plan.spec": ("QuestionSpec", "SurveySpec"),
    "ldpopt_survey.plan.planned_survey": ("PlannedSurvey",),
    "ldpopt_survey.plan.survey": ("plan_survey", "respondents_needed"),
    "ldpopt_survey.plan.target_precision": ("TargetPrecision",),
    "ldpopt_survey.plan.targets": ("TargetSpec",),
    "ldpopt_survey.plan.two_stage": (
        "TwoStagePlan", "advise_stages", "pilot_shares", "plan_two_stages", "second_channel", "second_spec",
    ),
    "ldpopt_survey.regress.logit": ("logistic_regression", "logit_regression", "with_constant"),
    "ldpopt_survey.regress.moments": ("linear_regression", "logit_by_moments"),
    "ldpopt_survey.regress.result": ("Regression", "Subsample"),
    "ldpopt_survey.sample.analysis": ("Analysis", "Findings"),
    "ldpopt_survey.sample.design": ("Linearization", "LonelyUnit", "SampleDesign", "SamplingVariance"),
    "ldpopt_survey.sample.replicates": (
        "GivenReplicates", "Jackknife", "RescaledBootstrap", "post_stratify", "rake", "trim",
    ),
    "ldpopt_survey.sample.respondents": ("Respondents",),
    "ldpopt_survey.sample.spec": ("Condition", "SampleSpec"),
    "ldpopt_survey.survey": ("Survey",),
    "ldpopt_survey.two_hypotheses": (
        "RequiredRespondents", "chernoff_exponent", "neyman_pearson_power", "respondents_to_distinguish",
        "stein_exponent",
    ),
}  # fmt: skip

__all__, __getattr__, __dir__ = offering(__name__, _HOMES)


def _sources(result: Any) -> Iterable[Any] | None:
    """Return the citations that `ldpopt.cite` requests."""
    if not type(result).__module__.startswith(f"{__name__}."):
        return None
    citations: Iterable[Any] | None = import_module("ldpopt_survey.citations").sources(result)
    return citations


cite_with(_sources)
load_with(lambda: import_module("ldpopt_survey.pictures"))
