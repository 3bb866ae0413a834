"""Where the random words of a report come from, and who can compute them again."""
