"""What the runtime of agents must keep: readers, states and laws over the bytes of a root.

``oracles/shadow_runtime.py`` is the way in for a machine, ``snapshot.py`` for anyone with files.
"""
