"""Who drives a machine: Hypothesis, a seed, a recording."""
