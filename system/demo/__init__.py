"""The demo ``python -m system demo``: a small team of agents on a real directory."""
