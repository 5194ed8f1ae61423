"""Undecided disks: the disk after a power cut, decided only as far as a boot has read it."""
