"""A design problem, posed once: its alphabet sorted, merged, cut or spread."""
