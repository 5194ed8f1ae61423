"""Oracles: executable specifications, and the violations that they prove.

The modules here are generic and know no application. ``oracles.runtime`` specifies the agent
runtime.
"""
