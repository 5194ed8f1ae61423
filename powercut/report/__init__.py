"""Failures and campaigns as text, tables and JSON."""
