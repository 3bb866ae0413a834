"""Every tolerance of the package, each with its name: the numbers that decide whether a quantity is small enough.

No tolerance enters a privacy claim. Claims are rounded outward instead, so that they are never too small
(`ldpopt.numbers.rounding`). Bounds on rounding errors are defined next to the arithmetic that they bound, and the sizes
of a search next to the search.
"""

from __future__ import annotations

__all__ = [
    "AFTER_RESPONSE", "ATTAINED_GAP", "BALANCED_GAP", "BOOKLET_RTOL", "BRACKET_GAP", "CAP_EXCESS_RTOL",
    "CENTRAL_GAIN", "CENTRE_WEIGHT", "CERTIFIED_GAP", "CLAIM_ATTAINED", "CLAIM_ROUNDING", "CLASS_RANK",
    "CLIMB_GAIN", "CLOSE_ROWS", "COARSE_GAP", "COLUMN_GAP", "CONIC_GAP", "CONVEXITY_RTOL", "CRITERION_FRACTION",
    "CURVE_TOLERANCE", "DENSITY_SUM", "DRAWN_WEIGHT", "ERASED_MASS", "ERASURE_RTOL", "EXACT_GAP", "EXCHANGE_GAP",
    "EXPRESSION_TOLERANCE", "EXTRAPOLATION_RTOL", "FEASIBILITY_TOLERANCE", "FINEST_CAP", "FINE_LATTICE",
    "FREE_LOSS", "GARBLING_DISTANCE", "GAUSSIAN_INFINITE", "IDLE_MULTIPLIER", "IDLE_PRICE", "INTEGER_GAP",
    "INTERVAL_GAIN", "INVARIANCE_TOLERANCE", "IN_SPAN", "JOINING_GAIN", "KNOWN_ENTRY", "LATE_GAP", "LEFT_OUT",
    "LEVEL_ROOM", "LITTLE_COST", "LOCAL_GAP", "LOSS_EXCESS", "MARGINALS_GAP", "MARGINALS_GAP_CAPPED", "MASS_LEFT",
    "MAXIMUM_EPSILON", "MAX_CONDITION", "MAX_WEIGHT", "MEETING_DISTANCE", "MERGED_FREE", "MERGED_SHARES",
    "MINIMUM_EPSILON", "MIN_FACE_WEIGHT", "MIN_OUTPUT_MASS", "MOMENT_TOLERANCE", "NARROW_BOX", "NARROW_ORDERS",
    "NEGLIGIBLE_EXACT", "NEGLIGIBLE_WEIGHT", "NEVER_SENT", "NEWTON_EPSILON", "NEWTON_EPSILON_CAPPED", "NOISE_SHARE",
    "NOISE_SIZE", "NULL_SPACE", "ON_LATTICE", "ORDER_PAID", "OTHER_PROCESSOR", "OUTER_SHARE", "PAIRED_GAIN",
    "PAIRED_GAP", "PLANNED_EPSILON", "POSTERIOR_ROUNDING", "QUERY_RANK", "RAKING_RTOL", "RANGE_END", "RARE_SHARES",
    "RATIO_DISAGREEMENT", "RATIO_RTOL", "REDUNDANT_FRACTION", "REPAIR_LOSS", "ROUGH_SPREAD", "ROUNDED_BASELINE",
    "ROW_GAP", "ROW_ROUNDING", "ROW_SUM", "SAME_END", "SAME_ENTRY", "SAME_KAPPA", "SAME_OPTIMUM", "SAME_ORDER",
    "SAME_PATH", "SAME_TANGENT", "SEARCHED_PAIR", "SEEN_MASS", "SERIES_RATIO", "SETTLED_PRICE", "SHUFFLED_GAP",
    "SMALL_SETS_GAP", "SPAN_RTOL", "SPLIT_RESPONDENTS", "STEP_ROUNDING", "STEP_SMALL", "SUM_ORDER", "SUPREMUM_GAP",
    "TANGENT_GAP", "TIE_RTOL", "TIGHT_LIMIT", "TURN_RTOL", "UNSEEN_SHIFT", "UNTOLD_LOSSES", "VERTEX_GAIN",
    "WIDER_POINTS", "ZERO_LOSS", "ZERO_VALUE",
]  # fmt: skip

ROW_SUM = 1e-9
"""How far a row of a channel, or a distribution, may be from summing to one."""

TIE_RTOL = 1e-9
"""Candidates whose values differ by no more than this share of the largest are tied: the first of them is named."""

ROUNDED_BASELINE = 1e-9
"""A user's mechanism beyond a limit by no more than this share is so by rounding: it is mended, and measured again."""

GARBLING_DISTANCE = 1e-12
"""Two channels of floats are one garbling of the other if no row is off by more than this total variation."""

ROUGH_SPREAD = 1e-6
"""Outputs whose ratio, computed roughly, falls short of the largest by more than this share cannot attain it."""

EXACT_GAP = TIE_RTOL
"""A measure is exact if no pair that it left out can exceed its value relatively by more than this."""

SUPREMUM_GAP = 2e-11
"""A supremum over orders is found when its upper bound exceeds the best value relatively by no more than this."""

NARROW_ORDERS = 3e-7
"""Intervals of orders relatively narrower than this are not halved: that would only resolve rounding."""

ATTAINED_GAP = 1e-7
"""A restricted divergence counts as attained when its two bounds differ relatively by no more than this."""

MOMENT_TOLERANCE = 1e-10
"""How far the moments of a law may be from those it is to have, before a restricted divergence counts as infinite."""

IN_SPAN = 1e-13
"""A function whose part outside of the span of earlier ones is relatively this small counts as in the span."""

NULL_SPACE, CLASS_RANK = 1e-14, 1e-13
"""Relatively smaller singular values count as zero: of the moments of a law, and of a class of functions on it."""

EXPRESSION_TOLERANCE = 1e-7
"""How far a channel may be from a constraint that the caller gave as a cvxpy expression: solvers come this close."""

MIN_FACE_WEIGHT = 1e-7
"""An output counts as possible under the moments asked for when the solver gives it at least this weight."""

CURVE_TOLERANCE = 1e-9
"""How far the knots of a trade-off curve may lie above the line of perfect privacy."""

TURN_RTOL = 1e-12
"""How far, relatively to its steps, a trade-off curve may turn the wrong way before it is refused as not convex."""

DENSITY_SUM = 1e-8
"""How far a log density from the caller may be from integrating to one."""

LOSS_EXCESS = 1e-9
"""How much, relatively, a continuous pair's loss may exceed the epsilon that the caller states for it."""

UNTOLD_LOSSES = 1e-25
"""In a finite pair for a continuous one, losses beyond the epsilon with this delta count as infinite."""

GAUSSIAN_INFINITE = 1e-290
"""In a finite pair for a Gaussian, infinite losses have at most this probability, if epsilons up to 600 suffice."""

RANGE_END = 1e-15
"""How far, relatively, a staircase's eta may lie outside of the range that its epsilon allows."""

QUERY_RANK, UNSEEN_SHIFT = 1e-12, 1e-15
"""Relatively smaller singular values of the answered queries count as zero; a shift they see this little is none."""

SPAN_RTOL = 1e-9
"""The largest relative part of a query that a strategy of the matrix mechanism may miss."""

AFTER_RESPONSE = 1e-9
"""How much, relatively, epsilon is raised before a test whether a channel post-processes randomized response."""

ZERO_LOSS = 1e-14
"""A privacy loss below this, and below a millionth of the largest, counts as zero; the slack in epsilon covers it."""

ON_LATTICE = 1e-12
"""Privacy losses this near, relatively, to multiples of one number are taken as such, at the cost of slack."""

MASS_LEFT = 1e-9
"""How far the masses of another library's distribution may be from one before it is refused as not pessimistic."""

ROW_ROUNDING = 1e-15
"""Rows of a channel made from channels are divided by their sums where these differ from one by more than this."""

RATIO_RTOL = 1e-14
"""Inputs whose likelihood ratios agree to this relative difference count as one input."""

FEASIBILITY_TOLERANCE = 1e-9
"""How far a solver's point may be from feasible before it is refused."""

MAX_CONDITION = 1e12
"""A matrix whose condition number is below this is inverted; of others the singular values decide its rank."""

CERTIFIED_GAP = 1e-6
"""A design is certified when its upper bound lies within this relative gap of its value."""

BRACKET_GAP = 1e-4
"""The same gap for a design that merges inputs, as designs for large or continuous alphabets do."""

COARSE_GAP = 1e-3
"""The same gap for an estimation design with too many possible columns to check each: one respondent in a thousand."""

PLANNED_EPSILON = 1e-4
"""The relative accuracy of an epsilon or eta that the planner of a survey solves for, on the safe side."""

SPLIT_RESPONDENTS = 1e-3
"""The relative accuracy of the fewest respondents over all splits of a budget, on the safe side."""

BOOKLET_RTOL = 5e-4
"""Relative differences of respondents that do not count where booklets, or fractions for their shares, are chosen."""

INVARIANCE_TOLERANCE = 1e-13
"""How far the law of the reports may be from an invariant one in any entry: float64 meets an equation only nearly."""

ZERO_VALUE = 1e-12
"""A value of up to this size is rounding: no other is stated as a share of it."""

SAME_PATH = 1e-12
"""An edge of a policy graph adds nothing beside a path that is longer by no more than this share of it."""

SAME_ORDER = 1e-4
"""An order of a Rényi divergence adds nothing beside one within this share of its distance from 1."""

CONVEXITY_RTOL = 1e-9
"""How far, relatively, a user's generator f may lie above a chord of its graph before it is refused as not convex."""

PROBED_VALUE, PROBED_SHAPE, PROBED_TANGENT = 1e-9, 1e-11, 1e-6
"""A user's utility is refused where, relatively, it differs by more than the first from what it should equal, lies
higher than the second above a chord of its own, or where a gradient of it is off by more than the third."""

EXTRAPOLATION_RTOL = 1e-6
"""A limit of a user's generator is found when it moves relatively less than this, and may be below its chord by it."""

MINIMUM_EPSILON = 1e-9
MAXIMUM_EPSILON = 700.0
"""The range of epsilon, in nats, in which a float64 channel can represent entries whose ratio is exp(epsilon)."""

MINIMUM_RHO = 1e-300
"""The least limit of zCDP: the squares and products of smaller ones are below the range of floats."""

CENTRAL_GAIN, VERTEX_GAIN = 1e-9, 1e-11
"""Columns that gain less than this share of the best one join no program, at central dual values, or a vertex's."""

COLUMN_GAP = 1e-10
"""The relative distance of a program's value from the best bound at which no further columns join it."""

CRITERION_FRACTION = 1e-8
"""Of every criterion at least this share of its best column's value is asked; a mixture spends about that on it."""

EXCHANGE_GAP, CONIC_GAP, ROW_GAP, TANGENT_GAP = 1e-8, 3e-7, 5e-8, 1e-9
"""The relative gaps at which rounds end: of labels or sets, of cone programs, of divergences of rows, and of risks."""

BALANCED_GAP, SMALL_SETS_GAP, INTEGER_GAP = 2e-8, 1.5e-5, 1e-5
"""The same for balanced sets, for weights of small sets, and for cuts of integer programs."""

CLIMB_GAIN = 1e-9
"""A climb from channel to channel ends with a step that gains a smaller share than this."""

REPAIR_LOSS = 1e-7
"""The optimum of an easier problem is taken if its repair for the whole problem costs at most this share."""

CAP_ROOM = 1e-9
"""The share of a cap that is left free for a solver's rounding where a later mixture would cost far more."""

LOSS_RTOL = 1e-7
"""No further program of an expected loss is posed when the channel loses relatively no more above the last one."""

IDLE_WEIGHT = 1e-7
"""Of several priors, those with a smaller weight decide nothing about the loss."""

MIXED_LOSS = 1e-6
"""A larger share of the utility that a mixture with a constant channel costs is told in the note of the design."""

MERGED_SHARES, MERGED_FREE = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-13), 1e-9
"""Shares of the utility that one merger of outputs may cost: the coarsest is taken that costs less than the last."""

CLOSE_ROWS = 1e-6
"""Where rows differ by less than this, columns are merged only with columns whose rows differ about as much."""

NOISE_SHARE, NOISE_SIZE = 1e-11, 1e-13
"""Entries below this share of their column's largest, and columns nowhere larger, are noise and mean zero."""

NEGLIGIBLE_WEIGHT, NEGLIGIBLE_EXACT, SETTLED_PRICE = 1e-6, 1e-12, 1e-7
"""Relatively smaller weights of columns count as zero, as a solver gives them or nearly exact; and smaller prices."""

INTERVAL_GAIN, CAP_EXCESS_RTOL = 1e-10, 1e-9
"""Gains of shapes or intervals, in units of the optimum, and excesses over caps that are within solvers' accuracy."""

ORDER_PAID, IDLE_PRICE = 1e-6, 1e-6
"""An order stays while its prices exceed this share of the optimum; prices below this share of the accuracy go."""

LATE_GAP = 1e-6
"""Below this gap, Newton steps towards the prices of pairs and of columns wait for the residuals."""

SAME_TANGENT, MEETING_DISTANCE = 1e-6, 1e-9
"""Nearer ratios share one tangent; two sets of hypotheses meet where their total variation is at most this."""

ERASURE_RTOL, ERASED_MASS = 1e-12, 1e-12
"""A report whose probabilities agree to this share under all inputs is an erasure; a rarer one is only rounding."""

NARROW_BOX, TIGHT_LIMIT = 1e-9, 1e-9
"""Narrower intervals, as a share of all log-ratios, are not split; limits nearer, as one of the largest, are equal."""

SAME_ENTRY, KNOWN_ENTRY = 1e-6, 1e-3
"""Shares of how far two entries of a column may be apart: narrower intervals are not split, and they are split at a
value that entries have already where one is as near as the second."""

FINEST_CAP = 1e-9
"""Below this cap on total variation, channels of given outputs are searched without boxes of their entries."""

WIDER_POINTS, OUTER_SHARE, POSTERIOR_ROUNDING = 1e-6, 1e-8, 1e-12
"""How far outer points stand beyond the posteriors, relative to their range; their mass; what rounding may change."""

SAME_END, RATIO_DISAGREEMENT, SEEN_MASS = 1e-12, 1e-6, 1e-8
"""Posteriors nearer to 0 or 1 are at that end; a cell of at least this mass may be so far from its range of ratios."""

OTHER_PROCESSOR = 2.0**-40
"""A design states numbers weaker than found by this share: other processors round sums and logarithms otherwise."""

CLAIM_ROUNDING = 1e-9
"""In `reproduce`: the largest relative difference of two sides of an inequality that can be due to rounding."""

CLAIM_ATTAINED = 1e-6
"""In `reproduce`: a bound counts as attained when the exact value comes this near, relatively."""

FINE_LATTICE = 1e-5
"""A lattice is fine enough if splitting adds at most this share of the variance."""

NEVER_SENT = 1e-100
"""Reports that the others of a crowd send with less probability count as never sent; from below that costs as much."""

LEFT_OUT = 1e-4
"""Too many helpers have at most this share of delta, and answers that tell less by so much are not refined."""

SHUFFLED_GAP = 2e-4
"""A shuffled epsilon is found to this relative error of each bound."""

LOCAL_GAP = 3e-4
"""The largest local epsilon that a central limit allows is found to this relative error."""

LITTLE_COST = 1e-8
"""The cost of the rest beyond a ratio counts as little below this share of that beyond the first ratio tried."""

IDLE_MULTIPLIER = 1e-6
"""Multipliers below this share of the largest one of their input are left out."""

SAME_KAPPA = 1e-9
"""Questions whose kappas differ by no more than this share of them are given one kappa."""

MIN_OUTPUT_MASS = 1e-9
"""The probability that every output gets where a design under a restricted total variation leaves one unused."""

MAX_WEIGHT = 1e-3
"""The largest weight that a repair may give to the constant channel: differences between rows shrink by this share."""

CENTRE_WEIGHT = 1e-3
"""Where the centre needs more weight than this, the least sufficient weight is searched for."""

DRAWN_WEIGHT = 1e-4
"""The least weight of a variance, in units of the largest, for which columns are drawn."""

NEWTON_EPSILON, NEWTON_EPSILON_CAPPED = 1e-4, 5e-4
"""The least epsilon at which Newton's method, which adds up squares, tells columns from one another; and with a cap."""

MARGINALS_GAP = 1e-7
"""The relative gap at which the search for patterns by marginals stops."""

MARGINALS_GAP_CAPPED = 1e-6
"""The same under a cap on total variation, where every tangent takes a minimum cut."""

SERIES_RATIO = 1e-3
"""Nearer to ratio one than this, psi is computed from its series, which keeps its digits there."""

SUM_ORDER = 1e-9
"""Relative difference of delivered results, since another processor may sum in another order."""

STEP_ROUNDING = 1e-8
"""Larger relative differences between the steps of a proof are not due to rounding, for values above 1e-6."""

STEP_SMALL = 1e-6
"""Smaller values are compared as if they were this large, since differences of nearly equal masses are rounded."""

SAME_OPTIMUM = 1e-10
"""Relative difference below which the binary mechanism counts as optimal."""

SEARCHED_PAIR = 1e-3
"""Pairs that are nearer in total variation are not tried, since ratios of tiny divergences are mostly rounding."""

REDUNDANT_FRACTION = 1e-12
"""Directions whose share of a correlation matrix is at most this have no variance, but for rounding."""

RAKING_RTOL = 1e-10
"""The relative accuracy to which raked weights must meet every known total."""

JOINING_GAIN, LEVEL_ROOM = 1e-9, 1e-7
"""Symmetric columns join that exceed their price by more than the first; the proved level has the second as room."""

RARE_SHARES, FREE_LOSS = (1e-3, 1e-4, 1e-5, 1e-6), 1e-9
"""Symmetric columns of smaller shares, tried in turn, are left out where the error grows by no more than the second."""

PAIRED_GAP, PAIRED_GAIN = 2e-3, 1e-3
"""The relative gap at which pairs of inputs are chosen, and the gain, in units of a price, for which one joins."""
