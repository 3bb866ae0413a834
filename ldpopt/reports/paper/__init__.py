"""Printable sheets: cards, instructions, the interviewer's form and what is guaranteed, as PDF."""
