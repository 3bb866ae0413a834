"""Regression when the outcome or some of the predictors were privatized."""
