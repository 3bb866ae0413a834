"""Arithmetic that every layer shares: outward rounding, enclosures in floats and in balls, and named tolerances."""
