"""How a channel is found: one file per method."""
