"""What the runtime of agents must keep: readers, folds and laws over the bytes of a root.

``oracles/shadow_runtime.py`` is the way in for a machine, ``seen.py`` for anyone with files.
"""
