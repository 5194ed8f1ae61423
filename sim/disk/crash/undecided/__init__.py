"""Undecided disks: what a power cut left, decided only as far as a boot has read it."""
