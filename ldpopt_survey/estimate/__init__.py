"""From counts of reports to shares of the true answers, with confidence intervals."""
