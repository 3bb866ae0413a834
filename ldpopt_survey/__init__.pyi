from ldpopt_survey.collect.aggregate import Counts as Counts
from ldpopt_survey.collect.aggregate import ReportRows as ReportRows
from ldpopt_survey.collect.aggregate import aggregate as aggregate
from ldpopt_survey.collect.aggregate import read_rows as read_rows
from ldpopt_survey.collect.batch import privatize_frame as privatize_frame
from ldpopt_survey.collect.privatize import privatize as privatize
from ldpopt_survey.collect.randomness import Fresh as Fresh
from ldpopt_survey.collect.randomness import Memoized as Memoized
from ldpopt_survey.collect.randomness import Simulated as Simulated
from ldpopt_survey.collect.remaining import RemainingBudget as RemainingBudget
from ldpopt_survey.collect.remaining import within_promises as within_promises
from ldpopt_survey.estimate.counts import CountTable as CountTable
from ldpopt_survey.estimate.counts import merge as merge
from ldpopt_survey.estimate.estimate import Estimate as Estimate
from ldpopt_survey.estimate.estimate import estimate as estimate
from ldpopt_survey.estimate.estimate import estimate_contrasts as estimate_contrasts
from ldpopt_survey.estimate.groups import Difference as Difference
from ldpopt_survey.estimate.groups import difference as difference
from ldpopt_survey.estimate.groups import estimate_waves as estimate_waves
from ldpopt_survey.estimate.groups import pooled_channel as pooled_channel
from ldpopt_survey.estimate.groups import tables_by_group as tables_by_group
from ldpopt_survey.estimate.intervals import Binomial as Binomial
from ldpopt_survey.estimate.intervals import Bonferroni as Bonferroni
from ldpopt_survey.estimate.intervals import Simultaneous as Simultaneous
from ldpopt_survey.estimate.intervals import Wald as Wald
from ldpopt_survey.estimate.likelihood import Bootstrap as Bootstrap
from ldpopt_survey.estimate.likelihood import MaximumLikelihood as MaximumLikelihood
from ldpopt_survey.estimate.likelihood import parametric_bootstrap as parametric_bootstrap
from ldpopt_survey.estimate.linear import GeneralizedLeastSquares as GeneralizedLeastSquares
from ldpopt_survey.estimate.linear import LeastSquares as LeastSquares
from ldpopt_survey.estimate.linear import LeftInverse as LeftInverse
from ldpopt_survey.estimate.linear import NotIdentifiable as NotIdentifiable
from ldpopt_survey.estimate.linear import asymptotic_covariance as asymptotic_covariance
from ldpopt_survey.estimate.linear import estimable_contrasts as estimable_contrasts
from ldpopt_survey.estimate.linear import fisher_information as fisher_information
from ldpopt_survey.estimate.noncompliance import CHEATS as CHEATS
from ldpopt_survey.estimate.noncompliance import Compliance as Compliance
from ldpopt_survey.estimate.noncompliance import Ratio as Ratio
from ldpopt_survey.estimate.noncompliance import compliance_groups as compliance_groups
from ldpopt_survey.estimate.noncompliance import directed_answers as directed_answers
from ldpopt_survey.estimate.noncompliance import estimate_compliance as estimate_compliance
from ldpopt_survey.estimate.noncompliance import repeated as repeated
from ldpopt_survey.estimate.noncompliance import with_cheaters as with_cheaters
from ldpopt_survey.estimate.numbers import Quantile as Quantile
from ldpopt_survey.estimate.numbers import among_answered as among_answered
from ldpopt_survey.estimate.numbers import mean as mean
from ldpopt_survey.estimate.numbers import population_total as population_total
from ldpopt_survey.estimate.numbers import quantile as quantile
from ldpopt_survey.estimate.results import Intervals as Intervals
from ldpopt_survey.estimate.results import Projection as Projection
from ldpopt_survey.estimate.results import norm_sub as norm_sub
from ldpopt_survey.estimate.results import simplex_projection as simplex_projection
from ldpopt_survey.estimate.sampled import SampledReports as SampledReports
from ldpopt_survey.estimate.tables import ThreeWayTable as ThreeWayTable
from ldpopt_survey.estimate.tables import TwoWayTable as TwoWayTable
from ldpopt_survey.estimate.tables import independence_power as independence_power
from ldpopt_survey.estimate.tables import two_way as two_way
from ldpopt_survey.estimate.tables import two_way_from_counts as two_way_from_counts
from ldpopt_survey.hypothesis_tests import Power as Power
from ldpopt_survey.hypothesis_tests import TestResult as TestResult
from ldpopt_survey.hypothesis_tests import goodness_of_fit as goodness_of_fit
from ldpopt_survey.hypothesis_tests import goodness_of_fit_power as goodness_of_fit_power
from ldpopt_survey.hypothesis_tests import respondents_for_power as respondents_for_power
from ldpopt_survey.hypothesis_tests import two_sample as two_sample
from ldpopt_survey.hypothesis_tests import two_sample_power as two_sample_power
from ldpopt_survey.kit.device import Device as Device
from ldpopt_survey.kit.folder import kit_files as kit_files
from ldpopt_survey.paper.design import PaperDevice as PaperDevice
from ldpopt_survey.paper.design import PaperSurvey as PaperSurvey
from ldpopt_survey.paper.design import device_named as device_named
from ldpopt_survey.paper.design import paper_survey as paper_survey
from ldpopt_survey.paper.entry import enter_reports as enter_reports
from ldpopt_survey.plan.budget import Budget as Budget
from ldpopt_survey.plan.budget import BudgetRequirement as BudgetRequirement
from ldpopt_survey.plan.budget import Split as Split
from ldpopt_survey.plan.budget import split_budget as split_budget
from ldpopt_survey.plan.number_question import NumberSpec as NumberSpec
from ldpopt_survey.plan.numbers_and_sets import MultiSelect as MultiSelect
from ldpopt_survey.plan.numbers_and_sets import NumericQuestion as NumericQuestion
from ldpopt_survey.plan.numbers_and_sets import multi_select as multi_select
from ldpopt_survey.plan.numbers_and_sets import numeric_question as numeric_question
from ldpopt_survey.plan.options_question import AnyOfSpec as AnyOfSpec
from ldpopt_survey.plan.plan import Plan as Plan
from ldpopt_survey.plan.plan import make_plan as make_plan
from ldpopt_survey.plan.planned_question import PlannedQuestion as PlannedQuestion
from ldpopt_survey.plan.planned_survey import PlannedSurvey as PlannedSurvey
from ldpopt_survey.plan.precision import HalfWidth as HalfWidth
from ldpopt_survey.plan.precision import RelativeError as RelativeError
from ldpopt_survey.plan.precision import TestPower as TestPower
from ldpopt_survey.plan.precision import Together as Together
from ldpopt_survey.plan.propose import Proposal as Proposal
from ldpopt_survey.plan.propose import ProposalOptions as ProposalOptions
from ldpopt_survey.plan.propose import ProposedQuestion as ProposedQuestion
from ldpopt_survey.plan.propose import propose as propose
from ldpopt_survey.plan.protocols import ProtocolTable as ProtocolTable
from ldpopt_survey.plan.protocols import compare_protocols as compare_protocols
from ldpopt_survey.plan.public_question import PublicQuestion as PublicQuestion
from ldpopt_survey.plan.question import QuestionPlanner as QuestionPlanner
from ldpopt_survey.plan.reading import Reading as Reading
from ldpopt_survey.plan.spec import QuestionSpec as QuestionSpec
from ldpopt_survey.plan.spec import SurveySpec as SurveySpec
from ldpopt_survey.plan.survey import plan_survey as plan_survey
from ldpopt_survey.plan.survey import respondents_needed as respondents_needed
from ldpopt_survey.plan.target_precision import TargetPrecision as TargetPrecision
from ldpopt_survey.plan.targets import TargetSpec as TargetSpec
from ldpopt_survey.plan.two_stage import TwoStagePlan as TwoStagePlan
from ldpopt_survey.plan.two_stage import advise_stages as advise_stages
from ldpopt_survey.plan.two_stage import pilot_shares as pilot_shares
from ldpopt_survey.plan.two_stage import plan_two_stages as plan_two_stages
from ldpopt_survey.plan.two_stage import second_channel as second_channel
from ldpopt_survey.plan.two_stage import second_spec as second_spec
from ldpopt_survey.regress.logit import logistic_regression as logistic_regression
from ldpopt_survey.regress.logit import logit_regression as logit_regression
from ldpopt_survey.regress.logit import with_constant as with_constant
from ldpopt_survey.regress.moments import linear_regression as linear_regression
from ldpopt_survey.regress.moments import logit_by_moments as logit_by_moments
from ldpopt_survey.regress.result import Regression as Regression
from ldpopt_survey.regress.result import Subsample as Subsample
from ldpopt_survey.sample.analysis import Analysis as Analysis
from ldpopt_survey.sample.analysis import Findings as Findings
from ldpopt_survey.sample.design import Linearization as Linearization
from ldpopt_survey.sample.design import LonelyUnit as LonelyUnit
from ldpopt_survey.sample.design import SampleDesign as SampleDesign
from ldpopt_survey.sample.design import SamplingVariance as SamplingVariance
from ldpopt_survey.sample.replicates import GivenReplicates as GivenReplicates
from ldpopt_survey.sample.replicates import Jackknife as Jackknife
from ldpopt_survey.sample.replicates import RescaledBootstrap as RescaledBootstrap
from ldpopt_survey.sample.replicates import post_stratify as post_stratify
from ldpopt_survey.sample.replicates import rake as rake
from ldpopt_survey.sample.replicates import trim as trim
from ldpopt_survey.sample.respondents import Respondents as Respondents
from ldpopt_survey.sample.spec import Condition as Condition
from ldpopt_survey.sample.spec import SampleSpec as SampleSpec
from ldpopt_survey.survey import Survey as Survey
from ldpopt_survey.two_hypotheses import RequiredRespondents as RequiredRespondents
from ldpopt_survey.two_hypotheses import chernoff_exponent as chernoff_exponent
from ldpopt_survey.two_hypotheses import neyman_pearson_power as neyman_pearson_power
from ldpopt_survey.two_hypotheses import respondents_to_distinguish as respondents_to_distinguish
from ldpopt_survey.two_hypotheses import stein_exponent as stein_exponent

__all__ = [
    "CHEATS",
    "Analysis",
    "AnyOfSpec",
    "Binomial",
    "Bonferroni",
    "Bootstrap",
    "Budget",
    "BudgetRequirement",
    "Compliance",
    "Condition",
    "CountTable",
    "Counts",
    "Device",
    "Difference",
    "Estimate",
    "Findings",
    "Fresh",
    "GeneralizedLeastSquares",
    "GivenReplicates",
    "HalfWidth",
    "Intervals",
    "Jackknife",
    "LeastSquares",
    "LeftInverse",
    "Linearization",
    "LonelyUnit",
    "MaximumLikelihood",
    "Memoized",
    "MultiSelect",
    "NotIdentifiable",
    "NumberSpec",
    "NumericQuestion",
    "PaperDevice",
    "PaperSurvey",
    "Plan",
    "PlannedQuestion",
    "PlannedSurvey",
    "Power",
    "Projection",
    "Proposal",
    "ProposalOptions",
    "ProposedQuestion",
    "ProtocolTable",
    "PublicQuestion",
    "Quantile",
    "QuestionPlanner",
    "QuestionSpec",
    "Ratio",
    "Reading",
    "Regression",
    "RelativeError",
    "RemainingBudget",
    "ReportRows",
    "RequiredRespondents",
    "RescaledBootstrap",
    "Respondents",
    "SampleDesign",
    "SampleSpec",
    "SampledReports",
    "SamplingVariance",
    "Simulated",
    "Simultaneous",
    "Split",
    "Subsample",
    "Survey",
    "SurveySpec",
    "TargetPrecision",
    "TargetSpec",
    "TestPower",
    "TestResult",
    "ThreeWayTable",
    "Together",
    "TwoStagePlan",
    "TwoWayTable",
    "Wald",
    "advise_stages",
    "aggregate",
    "among_answered",
    "asymptotic_covariance",
    "chernoff_exponent",
    "compare_protocols",
    "compliance_groups",
    "device_named",
    "difference",
    "directed_answers",
    "enter_reports",
    "estimable_contrasts",
    "estimate",
    "estimate_compliance",
    "estimate_contrasts",
    "estimate_waves",
    "fisher_information",
    "goodness_of_fit",
    "goodness_of_fit_power",
    "independence_power",
    "kit_files",
    "linear_regression",
    "logistic_regression",
    "logit_by_moments",
    "logit_regression",
    "make_plan",
    "mean",
    "merge",
    "multi_select",
    "neyman_pearson_power",
    "norm_sub",
    "numeric_question",
    "paper_survey",
    "parametric_bootstrap",
    "pilot_shares",
    "plan_survey",
    "plan_two_stages",
    "pooled_channel",
    "population_total",
    "post_stratify",
    "privatize",
    "privatize_frame",
    "propose",
    "quantile",
    "rake",
    "read_rows",
    "repeated",
    "respondents_for_power",
    "respondents_needed",
    "respondents_to_distinguish",
    "second_channel",
    "second_spec",
    "simplex_projection",
    "split_budget",
    "stein_exponent",
    "tables_by_group",
    "trim",
    "two_sample",
    "two_sample_power",
    "two_way",
    "two_way_from_counts",
    "with_cheaters",
    "with_constant",
    "within_promises",
]
