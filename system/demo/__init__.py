"""A small team of agents on a real directory: what ``python -m system demo`` runs."""
