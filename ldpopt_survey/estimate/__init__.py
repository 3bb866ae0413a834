"""Counts of reports -> proportions of the true answers, with confidence intervals."""
