"""Answers become reports, and reports become counts: in memory, in files, on many machines."""
