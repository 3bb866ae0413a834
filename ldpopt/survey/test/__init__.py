"""Tests of hypotheses about the true answers, from their reports, and the power of these tests."""
