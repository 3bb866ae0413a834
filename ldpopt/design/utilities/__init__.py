"""What a design keeps: one file per notion."""
