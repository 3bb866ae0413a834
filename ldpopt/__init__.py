"""ldpopt: design, certify and use locally private mechanisms."""
