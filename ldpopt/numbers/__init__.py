"""Arithmetic shared by every layer: outward rounding, enclosures by floats and by balls, and named tolerances."""
