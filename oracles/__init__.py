"""Oracles: executable specifications, and the violations that they prove.

The modules here are generic and know no application. ``oracles.runtime``, ``oracles.recording``
and ``oracles.durable`` specify the agent runtime of this repository.
"""
