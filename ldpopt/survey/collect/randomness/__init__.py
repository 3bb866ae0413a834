"""The random words (64-bit integers) that decide reports: where they come from, and who can compute them again."""
