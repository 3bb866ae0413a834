"""The columns that designs for estimation are made of, and what none of them exceeds."""
