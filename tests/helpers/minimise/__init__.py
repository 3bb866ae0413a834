"""The minimising attack: the least bound that a certificate of each class can be made to prove, against the truth."""
