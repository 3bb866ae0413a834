"""Probes of other packages, which run where these are installed."""
