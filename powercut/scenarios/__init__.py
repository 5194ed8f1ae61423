"""The built-in scenarios of ``powercut explore``: small workloads, crashed everywhere."""
