"""Benchmarks: each figure is measured together with a peer or a goal, in the same run."""
