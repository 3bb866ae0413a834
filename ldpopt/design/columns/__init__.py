"""The columns that designs for estimation are made of, and bounds on the gain of every column."""
