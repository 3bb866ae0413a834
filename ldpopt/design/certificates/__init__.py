"""The trusted kernel: what proves a bound, rounded outward. It imports no solver and no method."""
