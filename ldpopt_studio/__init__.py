"""The studio: a local web page that shows the optimum while one drags. Each view is a function from JSON to JSON."""
