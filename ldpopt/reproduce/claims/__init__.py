"""The claims, one in each file: the points at which it is computed, its verdict and its picture."""
