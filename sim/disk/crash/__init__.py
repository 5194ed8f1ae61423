"""Persistence models, survivor sets and crash images."""
