"""Campaigns: many runs of several targets, on all cores."""
