"""The correct code with one known bug planted in each."""
