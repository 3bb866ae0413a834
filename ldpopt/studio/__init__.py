"""The studio: a local page on which the optimum moves while one drags; each view is a function from JSON to JSON."""
