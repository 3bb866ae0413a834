"""One file a claim: where it is computed, how it is judged and drawn."""
