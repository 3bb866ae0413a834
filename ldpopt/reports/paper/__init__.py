"""Printable sheets as PDF: instructions, cards, the interviewer's form and the guarantees."""
