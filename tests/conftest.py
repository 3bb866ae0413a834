"""One hypothesis profile for the whole suite: the same examples on every run, no clock, nothing left on disk."""

from hypothesis import settings

settings.register_profile("ldpopt", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("ldpopt")
