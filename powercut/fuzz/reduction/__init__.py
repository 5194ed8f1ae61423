"""Reduce a failing run to a short one."""
