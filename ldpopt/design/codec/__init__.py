"""Designs as plain JSON values and back: the contents of a design file (docs/reference/formats/design-file.md)."""
