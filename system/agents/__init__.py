"""Agents: their logs and state, turns, tools, the tree, and the pool of conversations."""
