"""From counts of reports to shares of answers, with errors that cover as they say."""
