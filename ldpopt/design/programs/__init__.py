"""Convex programs posed to solvers, and the reading of their dual values. Nothing here is trusted."""
