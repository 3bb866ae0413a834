"""The utilities of designs, one file per utility."""
