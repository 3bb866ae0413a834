"""Tests of hypotheses about the answers from their reports, and the power that they have."""
