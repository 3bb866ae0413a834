"""Surveys on paper: forms for randomizing by hand, and the entry of the reports."""
