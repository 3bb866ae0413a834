"""What a design keeps, one file a notion."""
