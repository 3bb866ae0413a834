"""Designs as plain JSON values and back: what a design file holds (docs/design-file.md)."""
