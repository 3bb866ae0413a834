"""How a channel is found, one file a method."""
