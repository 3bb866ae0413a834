"""Surveys on paper: sheets with which people randomize by hand, and the entry of their reports."""
